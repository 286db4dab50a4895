//! Tasks of the Cline extension: `api_conversation_history.json`, a list of Anthropic messages with notes of Cline's own.
//! Takes the list; gives a segment for the task and one behind each summary that replaced what came before.
//! Leaves out the fields that Cline adds and does not send. Where Cline only cut out a range of messages, that is told
//! in another file, so the history here goes on whole.

use std::borrow::Cow;

use super::{
    Millis, Reader, Start, Usage,
    draft::{Draft, SegmentDraft, time},
    source::Source,
};
use crate::{
    json::{Array, Object, Value},
    wire::Format,
};

pub(super) const READER: Reader =
    Reader { name: "cline", about: "Cline task (api_conversation_history.json)", fits, read };

/// Fields of blocks that Cline keeps for itself.
const OWN_FIELDS: [&str; 3] = ["reasoning_details", "call_id", "summary"];
/// The tools by which the model hands in a summary.
const SUMMARIES: [&str; 2] = ["summarize_task", "condense"];

fn fits(source: &Source<'_>) -> bool {
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
    item.get("role").is_some() && (answered || blocks(item).any(wrapped))
}

/// Tells an item of `ui_messages.json`.
fn is_screen_line(item: Value<'_>) -> bool {
    item.get("ts").is_some() && (item.get("say").is_some() || item.get("ask").is_some())
}

fn read(source: &Source<'_>, draft: &mut Draft) {
    let Some(list) = source.document() else { return };
    if list.items().any(is_screen_line) {
        draft.problem(
            1,
            "this is what Cline showed; the conversation is in `api_conversation_history.json` beside it",
        );
        return;
    }
    let messages: Vec<Value<'_>> = list.items().collect();
    let mut segment = SegmentDraft::new(Start::Session, Format::Anthropic, 1);
    let (mut before, mut summarized): (Option<Millis>, bool) = (None, false);
    for (index, message) in messages.iter().enumerate() {
        let at = time(message.get("ts"));
        let Some(written) = message.get("content").and_then(|_| write(*message)) else {
            draft.problem(1, format!("message {}: expected `role` and `content`", index + 1));
            continue;
        };
        let assistant = is_assistant(*message);
        if assistant {
            let model = message.path(&["modelInfo", "modelId"]).and_then(Value::string);
            segment.point(before.or(at), model).usage = message.path(&["metrics", "tokens"]).and_then(usage);
            segment.messages.push(written);
        } else if std::mem::take(&mut summarized) {
            let mut next = SegmentDraft::new(Start::Compaction, Format::Anthropic, 1);
            next.messages = kept(&messages);
            next.messages.push(without_results(*message));
            draft.push(std::mem::replace(&mut segment, next));
        } else {
            segment.messages.push(written);
        }
        summarized |= assistant && is_summary(*message);
        before = at.or(before);
    }
    draft.push(segment);
}

fn is_assistant(message: Value<'_>) -> bool {
    message.get("role").is_some_and(|role| role.is("assistant"))
}

fn blocks(message: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    message.get("content").into_iter().flat_map(Value::items)
}

/// Tells whether the model handed in a summary, by a tool call or in the older way: as XML in its text.
fn is_summary(message: Value<'_>) -> bool {
    let tag = |text: Cow<'_, str>| SUMMARIES.iter().any(|tool| text.contains(&format!("<{tool}>")));
    blocks(message).any(|block| {
        let called = block.get("name").is_some_and(|name| SUMMARIES.iter().any(|tool| name.is(tool)));
        called || block.text("text").is_some_and(tag)
    })
}

/// Returns what stays behind a summary: the task, and what was said first without the calls whose results are gone.
fn kept(messages: &[Value<'_>]) -> Vec<Vec<u8>> {
    let task = messages.first().and_then(|message| write(*message));
    let words = messages.get(1).filter(|message| is_assistant(**message)).and_then(|message| {
        let texts = blocks(*message).filter(|block| block.get("type").is_some_and(|kind| kind.is("text")));
        let texts = texts.filter_map(sent).fold(Array::new(), |list, block| list.raw(&block));
        (!texts.is_empty())
            .then(|| Object::new().text("role", "assistant").raw("content", &texts.end()).end())
    });
    task.into_iter().chain(words).collect()
}

/// Writes a message of the user with its results as text, since the calls they answer are gone.
fn without_results(message: Value<'_>) -> Vec<u8> {
    let mut content = Array::new();
    for block in blocks(message) {
        let inner = block.get("content").filter(|_| block.get("tool_use_id").is_some());
        match inner {
            Some(inner) if inner.is_string() => {
                content.push(&Object::new().text("type", "text").raw("text", inner.raw()).end());
            }
            Some(inner) => inner.items().filter_map(sent).for_each(|block| content.push(&block)),
            None => sent(block).into_iter().for_each(|block| content.push(&block)),
        }
    }
    Object::new().text("role", "user").raw("content", &content.end()).end()
}

fn write(message: Value<'_>) -> Option<Vec<u8>> {
    let (role, content) = (message.get("role")?, message.get("content")?);
    let content = if content.is_array() {
        content.items().filter_map(sent).fold(Array::new(), |list, block| list.raw(&block)).end()
    } else {
        content.raw().to_vec()
    };
    Some(Object::new().raw("role", role.raw()).raw("content", &content).end())
}

/// Returns a block as Cline sends it; nothing for a thought without signature, which is not sent.
fn sent(block: Value<'_>) -> Option<Vec<u8>> {
    let thought = block.get("type").is_some_and(|kind| kind.is("thinking"));
    let signed = block.get("signature").and_then(Value::string).is_some_and(|text| !text.is_empty());
    if thought && !signed {
        return None;
    }
    let own =
        |key: Value<'_>| OWN_FIELDS.iter().any(|field| key.is(field)) || (!thought && key.is("signature"));
    if !block.members().any(|(key, _)| own(key)) {
        return Some(block.raw().to_vec());
    }
    let others = block.members().filter(|(key, _)| !own(*key));
    let block = others.fold(Object::new(), |object, (key, value)| {
        object.raw(&key.string().unwrap_or_default(), value.raw())
    });
    Some(block.end())
}

/// Cline counts what came from the cache among the prompt.
fn usage(tokens: Value<'_>) -> Option<Usage> {
    let number = |key| tokens.get(key).and_then(Value::number).unwrap_or_default();
    tokens.get("prompt")?;
    Some(Usage {
        input: number("prompt").saturating_sub(number("cached")),
        cache_read: number("cached"),
        cache_write: 0,
        cache_write_1h: 0,
        output: number("completion"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{ReadError, picture, read};
    use crate::history::BlockKind;

    const NATIVE: &[u8] =
        include_bytes!("../../../../fixtures/recordings/cline/api_conversation_history.json");
    const XML: &[u8] =
        include_bytes!("../../../../fixtures/recordings/cline/xml/api_conversation_history.json");
    const SCREEN: &[u8] = include_bytes!("../../../../fixtures/recordings/cline/ui_messages.json");

    fn check(file: &[u8], expected: &[&str]) {
        assert_eq!(picture(file), ["cline"].iter().chain(expected).copied().collect::<Vec<_>>());
    }

    #[test]
    fn a_summary_begins_a_segment() {
        check(
            NATIVE,
            &[
                "session anthropic: 10 messages, 5 requests, last saw 11234 tokens, 10110 of them cached",
                "compaction anthropic: 6 messages, 2 requests, last saw 11866 tokens, 10679 of them cached",
            ],
        );
    }

    #[test]
    fn calls_in_text_are_read_as_text() {
        check(XML, &["session anthropic: 12 messages, 6 requests"]);
    }

    #[test]
    fn behind_a_summary_no_result_is_left_without_its_call() {
        let recording = read(NATIVE).expect("a recording");
        for segment in &recording.segments {
            let results = segment.history.blocks().iter().filter(|block| block.kind == BlockKind::Result);
            assert!(results.into_iter().all(|block| block.partner.is_some()));
        }
    }

    #[test]
    fn fields_of_clines_own_are_not_sent() {
        let recording = read(NATIVE).expect("a recording");
        let request = String::from_utf8_lossy(recording.segments[0].history.bytes()).into_owned();
        assert!(!request.contains("call_id") && !request.contains("modelInfo"));
        assert!(request.contains("\"signature\""), "a signed thought is sent");
    }

    #[test]
    fn what_was_shown_names_the_file_that_is_meant() {
        let Err(ReadError::NoMessages { agent, problems }) = read(SCREEN) else { panic!("no conversation") };
        assert_eq!(agent, "cline");
        assert!(problems[0].what.contains("api_conversation_history.json"));
    }
}
