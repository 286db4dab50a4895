//! Sessions of Cline's command line and of what else stands on its SDK: `SESSION.messages.json`. Takes the document;
//! gives one segment: the session, or a sub-agent's, which is a separate file.
//! Tools are not recorded; a system prompt is where the file has it.

use trimtab_core::{Format, Millis, json::Value, usage};

use super::{
    RecordingReader, SegmentStart,
    draft::{RecordingDraft, SegmentDraft, parse_time},
    plain_messages::{CallOutput, MessagePart, PlainMessage, compact_json, quote_text, write_message},
    source::RecordingSource,
};

pub(super) const READER: RecordingReader =
    RecordingReader { name: "cline-cli", about: "Cline session (SESSION.messages.json)", fits, read };

fn fits(source: &RecordingSource<'_>) -> bool {
    let Some(root) = source.document() else { return false };
    let heads = ["version", "sessionId"].iter().filter(|key| root.get(key).is_some()).count();
    let own = |message: Value<'_>| message.get("ts").is_some() && message.get("role").is_some();
    let messages = || root.items_of("messages").take(10);
    // One broken field hides no file: what Cline notes beside its messages tells, too.
    let is_session = heads == 2 || (heads == 1 && messages().any(own));
    is_session && root.get("messages").is_some_and(Value::is_array)
}

fn read(source: &RecordingSource<'_>, draft: &mut RecordingDraft) {
    let Some(root) = source.document() else { return };
    let messages = || root.items_of("messages");
    let provider = messages().find_map(|message| message.path(&["modelInfo", "provider"]));
    let format = match provider.is_some_and(|provider| provider.is("anthropic")) {
        true => Format::Anthropic,
        false => Format::Chat,
    };
    let lead = root.get("agent").is_none_or(|agent| agent.is("lead"));
    let start = if lead { SegmentStart::Session } else { SegmentStart::SubAgent };
    let mut segment = SegmentDraft::new(start, format, 1);
    segment.name = root.owned_text("sessionId");
    if let Some(prompt) = root.get("system_prompt").filter(|prompt| prompt.is_string()) {
        write_message(&PlainMessage::System(prompt.raw().to_vec()), &mut segment);
    }
    let mut before: Option<Millis> = None;
    for (index, message) in messages().enumerate() {
        let at = parse_time(message.get("ts"));
        let content = message.get("content");
        let Some(content) = content.filter(|content| content.is_array() || content.is_string()) else {
            draft.add_problem(1, format!("message {}: expected a list `content`", index + 1));
            continue;
        };
        let bare = || MessagePart::from_text(Some(content));
        if message.member_is("role", "assistant") {
            // The time of an answer is that of its end; the message before it was written just before the request.
            let point =
                segment.add_point(before.or(at), message.path(&["modelInfo", "id"]).and_then(Value::string));
            point.usage =
                message.get("metrics").and_then(|metrics| usage::cached_within(metrics, usage::CAMEL_CASE));
            write_message(
                &PlainMessage::Assistant(content.items().filter_map(assistant_part).chain(bare()).collect()),
                &mut segment,
            );
        } else {
            write_message(
                &PlainMessage::Results(content.items().filter_map(call_result).collect()),
                &mut segment,
            );
            write_message(
                &PlainMessage::User(content.items().filter_map(user_part).chain(bare()).collect()),
                &mut segment,
            );
        }
        before = at.or(before);
    }
    draft.add_segment(segment);
}

fn assistant_part(block: Value<'_>) -> Option<MessagePart> {
    match block.text("type")?.as_ref() {
        "text" => MessagePart::from_text(block.get("text")),
        "thinking" => Some(MessagePart::Thinking {
            text: block.get("thinking").filter(|text| text.is_string())?.raw().to_vec(),
            signature: block.owned_text("signature"),
        }),
        "tool_use" => Some(MessagePart::Call {
            id: block.owned_text("id").unwrap_or_default(),
            name: block.owned_text("name").unwrap_or_default(),
            arguments: block.get("input").map_or_else(|| b"{}".to_vec(), compact_json),
        }),
        _ => None,
    }
}

fn user_part(block: Value<'_>) -> Option<MessagePart> {
    let text = block.get("text").filter(|_| block.member_is("type", "text"))?;
    match text.string().as_deref().and_then(unwrap_input) {
        Some(inner) => Some(MessagePart::from_words(inner)),
        None => MessagePart::from_text(Some(text)),
    }
}

/// Returns what the user wrote: `<user_input mode="act">...</user_input>` is for the record and not sent.
fn unwrap_input(text: &str) -> Option<&str> {
    let (_, rest) = text.strip_prefix("<user_input")?.split_once('>')?;
    rest.strip_suffix("</user_input>")
}

fn call_result(block: Value<'_>) -> Option<CallOutput> {
    let content = block.get("content").filter(|_| block.member_is("type", "tool_result"));
    // Results that are not text are sent as the text of their JSON.
    let json = content.map(|content| quote_text(&String::from_utf8_lossy(&compact_json(content))));
    let text = MessagePart::from_text(content).or(json.map(MessagePart::Text));
    let call = block.owned_text("tool_use_id")?;
    Some(CallOutput { call, failed: block.is_flag_set("is_error"), pieces: text.into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use crate::recording::picture::check;

    #[test]
    fn the_user_is_read_without_the_wrapping_and_each_answer_is_a_request() {
        check(
            r#"{"version":1,"sessionId":"s","agent":"lead","system_prompt":"Be brief.","messages":[
            {"role":"user","ts":1700000000000,"content":[{"type":"text","text":"<user_input mode=\"act\">Fix it.</user_input>"}]},
            {"role":"assistant","ts":1700000009000,"modelInfo":{"id":"m","provider":"deepseek"},
            "metrics":{"inputTokens":10,"cacheReadTokens":6,"cacheWriteTokens":1,"outputTokens":2},
            "content":[{"type":"thinking","thinking":"Hm."},{"type":"tool_use","id":"a","name":"run","input":{ "c" : "l s" }}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[ {"out" : 1} ]},{"type":"text","text":"Go on."}]},
            {"role":"assistant","content":7}]}"#,
            &[
                "cline-cli",
                "session (s), chat",
                "  system: Be brief.",
                "  user: Fix it.",
                r#"  assistant: reasoning(Hm.) + run#a {"c":"l s"}"#,
                r#"  tool: run#a = [{"out":1}]"#,
                "  user: Go on.",
                "  @2 1700000000000ms m 3+6r+1w>2",
                "line 1: message 4: expected a list `content`",
            ],
        );
    }

    #[test]
    fn the_file_of_a_sub_agent_is_one_segment_and_anthropic_gets_its_format() {
        check(
            r#"{"version":1,"sessionId":"s","agent":"scout","system_prompt":"Be brief.","messages":[
            {"role":"user","content":[{"type":"text","text":"Hi"}]},
            {"role":"assistant","content":[{"type":"thinking","thinking":"Unsigned."},{"type":"tool_use","id":"a","name":"run","input":{}}],
            "modelInfo":{"id":"claude-opus-5","provider":"anthropic"}},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"No.","is_error":true}]}]}"#,
            &[
                "cline-cli", "sub-agent (s), anthropic", "  system: Be brief.", "  user: Hi",
                "  assistant: run#a {}", "  user: run#a failed: No.", "  @1 claude-opus-5",
            ],
        );
    }
}
