//! Tasks of the Cline extension: `api_conversation_history.json`, a list of Anthropic messages with Cline's notes.
//! Takes the list; gives a segment for the task and one after each summary that replaced what came before.
//! Leaves out the fields that Cline adds and does not send. Where Cline only cut out a range of messages, another file
//! says so, so the history here goes on whole.

use std::borrow::Cow;

use trimtab_core::{
    Format, Millis,
    json::{Array, Object, Value},
    usage::{self, UsageKeys},
};

use super::{
    RecordingReader, SegmentStart, chat,
    draft::{RecordingDraft, SegmentDraft, parse_time},
    source::RecordingSource,
};

pub(super) const READER: RecordingReader =
    RecordingReader { name: "cline", about: "Cline task (api_conversation_history.json)", fits, read };

/// Fields of blocks that Cline keeps for itself.
const OWN_FIELDS: [&str; 3] = ["reasoning_details", "call_id", "summary"];
/// The tools by which the model hands in a summary.
const SUMMARIES: [&str; 2] = ["summarize_task", "condense"];
/// How Cline names usage. Writes to the cache are not reported.
const USAGE: UsageKeys = ["prompt", "cached", "written", "completion"];

fn fits(source: &RecordingSource<'_>) -> bool {
    let list = source.document().filter(|root| root.is_array());
    list.is_some_and(|list| list.items().take(4).any(|item| is_message(item) || is_screen_line(item)))
}

/// Tells a message of Cline's by what Cline writes around the user's words, or beside an answer.
fn is_message(item: Value<'_>) -> bool {
    let answered = item.path(&["modelInfo", "providerId"]).is_some();
    let wrapped = |block: Value<'_>| {
        block
            .text("text")
            .is_some_and(|text| text.starts_with("<task>") || text.starts_with("<environment_details>"))
    };
    item.get("role").is_some() && (answered || content_blocks(item).any(wrapped))
}

/// Tells an item of `ui_messages.json`.
fn is_screen_line(item: Value<'_>) -> bool {
    item.get("ts").is_some() && (item.get("say").is_some() || item.get("ask").is_some())
}

fn read(source: &RecordingSource<'_>, draft: &mut RecordingDraft) {
    let Some(list) = source.document() else { return };
    if list.items().any(is_screen_line) {
        draft.add_problem(
            1,
            "this is what Cline showed on the screen; the conversation is in `api_conversation_history.json` beside it",
        );
        return;
    }
    let messages: Vec<Value<'_>> = list.items().collect();
    let mut segment = SegmentDraft::new(SegmentStart::Session, Format::Anthropic, 1);
    let (mut before, mut summarized): (Option<Millis>, bool) = (None, false);
    for (index, message) in messages.iter().enumerate() {
        let at = parse_time(message.get("ts"));
        let Some(written) = message.get("content").and_then(|_| write_message(*message)) else {
            draft.add_problem(1, format!("message {}: expected `role` and `content`", index + 1));
            continue;
        };
        let assistant = message.member_is("role", "assistant");
        if assistant {
            let model = message.path(&["modelInfo", "modelId"]).and_then(Value::string);
            let tokens = message.path(&["metrics", "tokens"]);
            segment.add_point(before.or(at), model).usage =
                tokens.and_then(|tokens| usage::cached_within(tokens, USAGE));
            segment.messages.push(written);
        } else if std::mem::take(&mut summarized) {
            draft.add_segment(segment.next(SegmentStart::Compaction, 1));
            segment.messages = kept_messages(&messages);
            segment.messages.push(without_results(*message));
        } else {
            segment.messages.push(written);
        }
        summarized |= assistant && is_summary(*message);
        before = at.or(before);
    }
    draft.add_segment(segment);
}

fn content_blocks(message: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    message.items_of("content")
}

/// Tells whether the model handed in a summary, by a tool call or in the older way: as XML in its text.
fn is_summary(message: Value<'_>) -> bool {
    let tag = |text: Cow<'_, str>| SUMMARIES.iter().any(|tool| text.contains(&format!("<{tool}>")));
    content_blocks(message).any(|block| {
        let called = block.get("name").is_some_and(|name| SUMMARIES.iter().any(|tool| name.is(tool)));
        called || block.text("text").is_some_and(tag)
    })
}

/// Returns what is kept after a summary: the task, and what was said first without the calls whose results are gone.
fn kept_messages(messages: &[Value<'_>]) -> Vec<Vec<u8>> {
    let task = messages.first().and_then(|message| write_message(*message));
    let words =
        messages.get(1).filter(|message| message.member_is("role", "assistant")).and_then(|message| {
            let texts = content_blocks(*message).filter(|block| block.member_is("type", "text"));
            let texts = texts.filter_map(write_block).fold(Array::new(), |list, block| list.raw(&block));
            (!texts.is_empty()).then(|| chat::write_message("assistant", &texts.end()))
        });
    task.into_iter().chain(words).collect()
}

/// Writes a message of the user with its results as text, since the calls they answer are gone.
fn without_results(message: Value<'_>) -> Vec<u8> {
    let mut content = Array::new();
    for block in content_blocks(message) {
        let inner = block.get("content").filter(|_| block.get("tool_use_id").is_some());
        match inner {
            Some(inner) if inner.is_string() => {
                content.push(&Object::new().text("type", "text").raw("text", inner.raw()).end());
            }
            Some(inner) => inner.items().filter_map(write_block).for_each(|block| content.push(&block)),
            None => write_block(block).into_iter().for_each(|block| content.push(&block)),
        }
    }
    chat::write_message("user", &content.end())
}

fn write_message(message: Value<'_>) -> Option<Vec<u8>> {
    let (role, content) = (message.get("role")?, message.get("content")?);
    let content = if content.is_array() {
        content.items().filter_map(write_block).fold(Array::new(), |list, block| list.raw(&block)).end()
    } else {
        content.raw().to_vec()
    };
    Some(Object::new().raw("role", role.raw()).raw("content", &content).end())
}

/// Returns a block as Cline sends it; nothing for a thought without signature, which is not sent.
fn write_block(block: Value<'_>) -> Option<Vec<u8>> {
    let thought = block.member_is("type", "thinking");
    let signed = block.get("signature").and_then(Value::string).is_some_and(|text| !text.is_empty());
    if thought && !signed {
        return None;
    }
    Some(chat::copy_members(block, |key| !OWN_FIELDS.contains(&key) && (thought || key != "signature")))
}

#[cfg(test)]
mod tests {
    use crate::recording::picture::check;

    #[test]
    fn an_answer_is_sent_without_what_cline_notes_beside_it() {
        check(
            r#"[{"role":"user","ts":1700000000000,"content":[{"type":"text","text":"<task>Fix it.</task>"}]},
            {"role":"assistant","ts":1700000009000,"modelInfo":{"providerId":"p","modelId":"m"},
            "metrics":{"tokens":{"prompt":10,"completion":2,"cached":7}},"content":[
            {"type":"thinking","thinking":"Unsigned.","summary":[]},{"type":"thinking","thinking":"Hm.","signature":"s","summary":[]},
            {"type":"tool_use","id":"a","name":"ls","input":{},"call_id":"fc_1","signature":"t"}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x.rs"}]},
            {"role":"assistant","text":"no content"}]"#,
            &[
                "cline",
                "session, anthropic",
                "  user: <task>Fix it.</task>",
                "  assistant: reasoning(Hm.) + ls#a {}",
                "  user: ls#a = x.rs",
                "  @1 1700000000000ms m 3+7r+0w>2",
                "line 1: message 4: expected `role` and `content`",
            ],
        );
    }

    #[test]
    fn calls_in_text_are_read_as_text() {
        check(
            r#"[{"role":"user","content":[{"type":"text","text":"<task>Fix it.</task>"}]},
            {"role":"assistant","content":"<read_file>x</read_file>"},
            {"role":"user","content":[{"type":"text","text":"[read_file for 'x'] Result:"},{"type":"text","text":"1"}]}]"#,
            &[
                "cline",
                "session, anthropic",
                "  user: <task>Fix it.</task>",
                "  assistant: <read_file>x</read_file>",
                "  user: [read_file for 'x'] Result: + 1",
                "  @1",
            ],
        );
    }

    #[test]
    fn behind_a_summary_stay_the_task_and_the_first_words_and_no_result_without_its_call() {
        check(
            r#"[{"role":"user","content":[{"type":"text","text":"<task>Fix it.</task>"}]},
            {"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"ls","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x.rs"}]},
            {"role":"assistant","content":[{"type":"tool_use","id":"b","name":"summarize_task","input":{"context":"All."}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"All."}]},{"type":"text","text":"Go on."}]},
            {"role":"assistant","content":[{"type":"text","text":"Done."}]}]"#,
            &[
                "cline",
                "session, anthropic",
                "  user: <task>Fix it.</task>",
                "  assistant: I look. + ls#a {}",
                "  user: ls#a = x.rs",
                r#"  assistant: summarize_task#b {"context":"All."}"#,
                "  @1",
                "  @3",
                "compaction, anthropic",
                "  user: <task>Fix it.</task>",
                "  assistant: I look.",
                "  user: All. + Go on.",
                "  assistant: Done.",
                "  @3",
            ],
        );
    }

    #[test]
    fn what_was_shown_names_the_file_that_is_meant() {
        check(
            r#"[{"ts":1,"type":"say","say":"text","text":"Hi"}]"#,
            &[
                "no message of this cline recording could be read: line 1: this is what Cline showed on the screen; \
                 the conversation is in `api_conversation_history.json` beside it",
            ],
        );
    }
}
