//! Sessions of Cline's command line and of what else stands on its SDK: `SESSION.messages.json`. Takes the document;
//! gives one segment: the session, or a sub-agent's, which is a file of its own.
//! Tools are not recorded; a system prompt is where the file has it.

use std::borrow::Cow;

use super::{
    Millis, Reader, Start, Usage,
    dialog::{Piece, Speaker, compact, write},
    draft::{Draft, SegmentDraft, time},
    source::Source,
};
use crate::{
    json::{Object, Value},
    wire::Format,
};

pub(super) const READER: Reader =
    Reader { name: "cline-cli", about: "Cline session (SESSION.messages.json)", fits, read };

fn fits(source: &Source<'_>) -> bool {
    let Some(root) = source.document() else { return false };
    let has = |key| root.get(key).is_some();
    has("version") && has("sessionId") && root.get("messages").is_some_and(Value::is_array)
}

fn read(source: &Source<'_>, draft: &mut Draft) {
    let Some(root) = source.document() else { return };
    let messages = || root.get("messages").into_iter().flat_map(Value::items);
    let provider = messages().find_map(|message| message.path(&["modelInfo", "provider"]));
    let format = match provider.is_some_and(|provider| provider.is("anthropic")) {
        true => Format::Anthropic,
        false => Format::Chat,
    };
    let lead = root.get("agent").is_none_or(|agent| agent.is("lead"));
    let start = if lead { Start::Session } else { Start::SubAgent };
    let mut segment = SegmentDraft::new(start, format, 1);
    segment.name = root.text("sessionId").map(Cow::into_owned);
    if let Some(prompt) = root.text("system_prompt") {
        system(&mut segment, &prompt);
    }
    let mut before: Option<Millis> = None;
    for (index, message) in messages().enumerate() {
        let at = time(message.get("ts"));
        let Some(content) = message.get("content").filter(|content| content.is_array()) else {
            draft.problem(1, format!("message {}: expected a list `content`", index + 1));
            continue;
        };
        if message.get("role").is_some_and(|role| role.is("assistant")) {
            // The time of an answer is that of its end; what was answered was written just before the request.
            let point =
                segment.point(before.or(at), message.path(&["modelInfo", "id"]).and_then(Value::string));
            point.usage = message.get("metrics").and_then(usage);
            let pieces: Vec<Piece<'_>> = content.items().filter_map(said).collect();
            segment.messages.extend(write(format, Speaker::Model, &pieces));
        } else {
            let results: Vec<Piece<'_>> = content.items().filter_map(result).collect();
            segment.messages.extend(write(format, Speaker::Tools, &results));
            let texts: Vec<Piece<'_>> = content.items().filter_map(asked).collect();
            segment.messages.extend(write(format, Speaker::User, &texts));
        }
        before = at.or(before);
    }
    draft.push(segment);
}

fn system(segment: &mut SegmentDraft, prompt: &str) {
    let message = Object::new().text("role", "system").text("content", prompt).end();
    if segment.format == Format::Anthropic {
        let block = Object::new().text("type", "text").text("text", prompt).end();
        segment.head.push(("system", [b"[".as_slice(), &block, b"]"].concat()));
    } else {
        segment.messages.push(message);
    }
}

fn said(block: Value<'_>) -> Option<Piece<'_>> {
    match block.text("type")?.as_ref() {
        "text" => block.text("text").map(Piece::Text),
        "thinking" => {
            Some(Piece::Reasoning { text: block.text("thinking")?, signature: block.text("signature") })
        }
        "tool_use" => Some(Piece::Call {
            id: block.text("id")?,
            name: block.text("name")?,
            input: block.get("input").map_or_else(|| b"{}".to_vec(), compact),
        }),
        _ => None,
    }
}

fn asked(block: Value<'_>) -> Option<Piece<'_>> {
    let text = block.get("type").filter(|kind| kind.is("text")).and_then(|_| block.text("text"))?;
    Some(Piece::Text(match unwrapped(&text) {
        Some(inner) => Cow::Owned(inner.to_owned()),
        None => text,
    }))
}

/// Returns what the user wrote: `<user_input mode="act">...</user_input>` is for the record and not sent.
fn unwrapped(text: &str) -> Option<&str> {
    let (_, rest) = text.strip_prefix("<user_input")?.split_once('>')?;
    rest.strip_suffix("</user_input>")
}

fn result(block: Value<'_>) -> Option<Piece<'_>> {
    block.get("type").filter(|kind| kind.is("tool_result"))?;
    let content = block.get("content");
    // Results that are not text are sent as the text of their JSON.
    let json = || content.map(|content| String::from_utf8_lossy(&compact(content)).into_owned());
    let text = content.and_then(Value::string).unwrap_or_else(|| Cow::Owned(json().unwrap_or_default()));
    let failed = block.get("is_error").is_some_and(Value::is_true);
    Some(Piece::Result { id: block.text("tool_use_id")?, text, failed, media: Vec::new() })
}

/// Cline counts what came from the cache among the input.
fn usage(metrics: Value<'_>) -> Option<Usage> {
    let number = |key| metrics.get(key).and_then(Value::number).unwrap_or_default();
    metrics.get("inputTokens")?;
    let (cache_read, cache_write) = (number("cacheReadTokens"), number("cacheWriteTokens"));
    Some(Usage {
        input: number("inputTokens").saturating_sub(cache_read + cache_write),
        cache_read,
        cache_write,
        cache_write_1h: 0,
        output: number("outputTokens"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{picture, read};

    const LEAD: &[u8] = include_bytes!("../../../../fixtures/recordings/cline-cli.messages.json");
    const SUB_AGENT: &[u8] =
        include_bytes!("../../../../fixtures/recordings/cline-cli-subagent.messages.json");

    fn check(file: &[u8], expected: &str) {
        assert_eq!(picture(file), ["cline-cli", expected]);
    }

    #[test]
    fn each_answer_is_a_request() {
        check(LEAD, "session chat: 24 messages, 11 requests, last saw 9034 tokens, 8832 of them cached");
    }

    #[test]
    fn the_file_of_a_sub_agent_is_one_segment() {
        check(SUB_AGENT, "sub-agent chat: 7 messages, 3 requests, last saw 4063 tokens, 2816 of them cached");
    }

    #[test]
    fn the_user_is_read_without_the_wrapping() {
        let recording = read(LEAD).expect("a recording");
        let history = &recording.segments[0].history;
        let said: Vec<String> =
            history.blocks().iter().map(|block| history.block_text(block).into_owned()).collect();
        assert!(said[1].starts_with("Four tests in"), "{}", said[1]);
    }

    #[test]
    fn a_session_with_anthropic_is_in_its_format() {
        let file = br#"{"version":1,"sessionId":"s","system_prompt":"Be brief.","messages":[
            {"role":"user","content":[{"type":"text","text":"Hi"}]},
            {"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Ho"}],
             "modelInfo":{"id":"claude-opus-5","provider":"anthropic"}}]}"#;
        let recording = read(file).expect("a recording");
        let expected = r#"{"model":"claude-opus-5","system":[{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]},{"role":"assistant","content":[{"type":"text","text":"Ho"}]}]}"#;
        assert_eq!(String::from_utf8_lossy(recording.segments[0].history.bytes()), expected);
    }
}
