//! opencode sessions, as `opencode export` gives them: one document with messages made of parts. Takes the
//! document; gives a segment for the session, and one after each compaction and each clearing of old results.
//! Never guesses what was not exported: system prompt, tools, and the sessions of sub-agents, which are separate
//! files. A message that was reverted but not yet replaced is still one that was sent.

use trimtab_core::{
    Format, Millis,
    json::Value,
    usage::{Usage, number_at},
};

use super::{
    RecordingReader, SegmentStart,
    draft::{RecordingDraft, SegmentDraft, parse_time},
    plain_messages::{CallOutput, MessagePart, PlainMessage, compact_json, write_message},
    source::RecordingSource,
};

pub(super) const READER: RecordingReader =
    RecordingReader { name: "opencode", about: "opencode session (`opencode export`)", fits, read };

/// What opencode sends in the place of a result it cleared.
const CLEARED: &str = "[Old tool result content cleared]";
/// What opencode sends for a call that never ended.
const INTERRUPTED: &str = "[Tool execution was interrupted]";
/// What opencode says for the user before a summary.
const BEFORE_SUMMARY: &str = "What did we do so far?";
/// What opencode says for the user before a command's sub-agent.
const BEFORE_SUBTASK: &str = "The following tool was executed by the user";

fn fits(source: &RecordingSource<'_>) -> bool {
    let Some(root) = source.document() else { return false };
    // Each message names the session, too: one broken field hides no file.
    let named = |info: Option<Value<'_>>, key: &str| {
        info.and_then(|info| info.text(key)).is_some_and(|id| id.starts_with("ses"))
    };
    let messages = || root.items_of("messages").take(10);
    let is_session =
        named(root.get("info"), "id") || messages().any(|message| named(message.get("info"), "sessionID"));
    let is_message = |message: Value<'_>| message.get("info").is_some() && message.get("parts").is_some();
    is_session && (messages().next().is_none() || messages().any(is_message))
}

fn read(source: &RecordingSource<'_>, draft: &mut RecordingDraft) {
    let Some(root) = source.document() else { return };
    let mut messages = Vec::new();
    for (index, value) in root.items_of("messages").enumerate() {
        match OpencodeMessage::from_value(value) {
            Some(message) => messages.push(message),
            None => draft.add_problem(1, format!("message {}: expected `info.role` and `parts`", index + 1)),
        }
    }
    let start = match root.path(&["info", "parentID"]).filter(|parent| parent.is_string()) {
        Some(_) => SegmentStart::SubAgent,
        None => SegmentStart::Session,
    };
    let mut segment = SegmentDraft::new(start, format_of(&messages), 1);
    segment.name = root.get("info").and_then(|info| info.owned_text("title"));
    let mut talk = OpencodeSegment { sent: Vec::new(), segment, cleared: None };
    for (index, message) in messages.iter().enumerate() {
        if let Some(compaction) = message.compaction(&messages) {
            talk.begin_after_compaction(&compaction, messages.get(..index).unwrap_or_default(), draft);
        } else if !message.is_finished_summary() {
            talk.add_message(message, draft);
        }
    }
    draft.add_segment(talk.segment);
}

/// Anthropic's own provider is spoken to in its format; the others understand Chat Completions.
fn format_of(messages: &[OpencodeMessage<'_>]) -> Format {
    let provider = messages.iter().find_map(|message| message.info.text("providerID"));
    if provider.is_some_and(|provider| provider == "anthropic") { Format::Anthropic } else { Format::Chat }
}

#[derive(Clone, Copy)]
struct OpencodeMessage<'a> {
    info: Value<'a>,
    parts: Value<'a>,
    assistant: bool,
}

impl<'a> OpencodeMessage<'a> {
    fn from_value(value: Value<'a>) -> Option<OpencodeMessage<'a>> {
        let (info, parts) = (value.get("info")?, value.get("parts")?);
        let role = info.get("role")?;
        (parts.is_array() && (role.is("user") || role.is("assistant"))).then(|| OpencodeMessage {
            info,
            parts,
            assistant: role.is("assistant"),
        })
    }

    fn parts_of(self, kind: &str) -> impl Iterator<Item = Value<'a>> {
        self.parts.items().filter(move |part| part.member_is("type", kind))
    }

    /// Returns the compaction that this message asked for, where its summary was written to the end.
    fn compaction(self, messages: &[OpencodeMessage<'a>]) -> Option<OpencodeCompaction<'a>> {
        let part = self.parts_of("compaction").next()?;
        let id = self.info.text("id")?;
        let answers = |message: &&OpencodeMessage<'_>| message.info.member_is("parentID", &id);
        let summary = messages.iter().filter(|message| message.is_finished_summary()).find(answers)?;
        Some(OpencodeCompaction { question: self, summary: *summary, tail: part.get("tail_start_id") })
    }

    fn is_finished_summary(self) -> bool {
        let has = |key| self.info.get(key).is_some();
        self.is_summary() && has("finish") && !has("error")
    }

    fn is_summary(self) -> bool {
        self.assistant && self.info.is_flag_set("summary")
    }

    /// An answer that failed is not sent again, except for what was said before the user stopped it.
    fn is_left_out(self) -> bool {
        let Some(error) = self.info.get("error").filter(|_| self.assistant) else { return false };
        let stopped = error.member_is("name", "MessageAbortedError");
        let said = |part: Value<'_>| {
            part.get("type").is_some_and(|kind| !kind.is("step-start") && !kind.is("reasoning"))
        };
        !(stopped && self.parts.items().any(said))
    }

    /// Returns the parts of each request's answer: older versions keep several in one message.
    fn steps(self) -> Vec<Vec<Value<'a>>> {
        let mut steps: Vec<Vec<Value<'a>>> = Vec::new();
        for part in self.parts.items() {
            let begins = part.member_is("type", "step-start");
            match steps.last_mut() {
                Some(step) if !begins => step.push(part),
                _ => steps.push(vec![part]),
            }
        }
        steps
    }

    /// Tells whether a result was cleared after `since` and before a request at `at`.
    fn cleared_between(self, since: Option<Millis>, at: Option<Millis>) -> bool {
        self.parts_of("tool").filter_map(clearing_time).any(|when| Some(when) > since && Some(when) <= at)
    }

    /// Writes the message as it is sent by a request made when the results until `cleared` were cleared.
    fn write(self, cleared: Option<Millis>, segment: &mut SegmentDraft) {
        if self.assistant {
            self.steps().iter().for_each(|step| write_step(step, cleared, segment));
        } else {
            write_message(&PlainMessage::User(self.parts.items().filter_map(user_piece).collect()), segment);
        }
    }
}

struct OpencodeCompaction<'a> {
    question: OpencodeMessage<'a>,
    summary: OpencodeMessage<'a>,
    /// The first of the messages that are kept.
    tail: Option<Value<'a>>,
}

/// The segment so far.
struct OpencodeSegment<'a> {
    sent: Vec<OpencodeMessage<'a>>,
    segment: SegmentDraft,
    /// Results cleared until then are sent as cleared.
    cleared: Option<Millis>,
}

impl<'a> OpencodeSegment<'a> {
    fn add_message(&mut self, message: &OpencodeMessage<'a>, draft: &mut RecordingDraft) {
        if message.is_left_out() {
            return;
        }
        if !message.assistant || message.is_summary() {
            message.write(self.cleared, &mut self.segment);
            self.sent.push(*message);
            return;
        }
        let at = parse_time(message.info.path(&["time", "created"]));
        if self.sent.iter().any(|sent| sent.cleared_between(self.cleared, at)) {
            self.cleared = at;
            self.begin_segment(self.sent.clone(), draft);
        }
        for (index, step) in message.steps().iter().enumerate() {
            let at = if index == 0 { at } else { step.iter().find_map(|part| start_time(*part)) };
            self.segment.add_point(at, message.info.text("modelID")).usage = usage_of(*message, step);
            write_step(step, self.cleared, &mut self.segment);
        }
        self.sent.push(*message);
    }

    /// Goes on with the question for a summary, the summary, and the last messages before, where some were kept.
    fn begin_after_compaction(
        &mut self,
        compaction: &OpencodeCompaction<'a>,
        before: &[OpencodeMessage<'a>],
        draft: &mut RecordingDraft,
    ) {
        let tail = compaction.tail.and_then(Value::string);
        let is_tail =
            |message: &OpencodeMessage<'_>| message.info.text("id").is_some_and(|id| Some(id) == tail);
        let kept = before.iter().position(is_tail).and_then(|from| before.get(from..)).unwrap_or_default();
        let kept = kept.iter().filter(|message| !message.is_left_out());
        let summed_up = [compaction.question, compaction.summary];
        self.begin_segment(summed_up.iter().chain(kept).copied().collect(), draft);
    }

    /// Closes the segment and begins another one with these messages.
    fn begin_segment(&mut self, messages: Vec<OpencodeMessage<'a>>, draft: &mut RecordingDraft) {
        draft.add_segment(self.segment.next(SegmentStart::Compaction, 1));
        messages.iter().for_each(|message| message.write(self.cleared, &mut self.segment));
        self.sent = messages;
    }
}

fn user_piece(part: Value<'_>) -> Option<MessagePart> {
    match part.text("type").as_deref() {
        Some("text") if !part.is_flag_set("ignored") => MessagePart::from_text(part.get("text")),
        Some("file") => media_part(part),
        Some("compaction") => Some(MessagePart::from_words(BEFORE_SUMMARY)),
        Some("subtask") => Some(MessagePart::from_words(BEFORE_SUBTASK)),
        _ => None,
    }
}

/// Files of text are also there as text parts, so only the others are sent as such.
fn media_part(part: Value<'_>) -> Option<MessagePart> {
    let (mime, url) = (part.owned_text("mime")?, part.owned_text("url")?);
    (mime != "text/plain" && mime != "application/x-directory").then_some(MessagePart::Media { mime, url })
}

fn write_step(step: &[Value<'_>], cleared: Option<Millis>, segment: &mut SegmentDraft) {
    let (mut said, mut results) = (Vec::new(), Vec::new());
    for part in step {
        match part.text("type").as_deref() {
            Some("text") => said.extend(MessagePart::from_text(part.get("text"))),
            Some("reasoning") => said.extend(thinking_part(*part, segment.format)),
            Some("tool") => {
                said.push(MessagePart::Call {
                    id: part.owned_text("callID").unwrap_or_default(),
                    name: part.owned_text("tool").unwrap_or_default(),
                    arguments: part.path(&["state", "input"]).map_or_else(|| b"{}".to_vec(), compact_json),
                });
                results.push(call_result(*part, cleared));
            }
            _ => {}
        }
    }
    // Seen on the wire: in Chat opencode sends an empty text beside calls where nothing was said.
    let silent = !said.iter().any(|piece| matches!(piece, MessagePart::Text(_)));
    if segment.format == Format::Chat && silent && !results.is_empty() {
        said.push(MessagePart::Text(b"\"\"".to_vec()));
    }
    write_message(&PlainMessage::Assistant(said), segment);
    write_message(&PlainMessage::Results(results), segment);
}

fn thinking_part(part: Value<'_>, format: Format) -> Option<MessagePart> {
    let text = part.get("text").filter(|text| text.is_string())?;
    let signature =
        part.path(&["metadata", "anthropic"]).and_then(|metadata| metadata.owned_text("signature"));
    // Only Anthropic takes its signatures back, and thoughts whose text it keeps to itself.
    let signature = signature.filter(|_| format == Format::Anthropic);
    (signature.is_some() || !text.is(""))
        .then(|| MessagePart::Thinking { text: text.raw().to_vec(), signature })
}

fn call_result(part: Value<'_>, until: Option<Millis>) -> CallOutput {
    let call = part.owned_text("callID").unwrap_or_default();
    let state = |key| part.path(&["state", key]);
    let answered = |failed: bool, text: Option<MessagePart>| CallOutput {
        call: call.clone(),
        failed,
        pieces: text.into_iter().collect(),
    };
    match state("status").and_then(Value::string).as_deref() {
        Some("completed") if clearing_time(part).is_some_and(|when| Some(when) <= until) => {
            answered(false, Some(MessagePart::from_words(CLEARED)))
        }
        Some("completed") => {
            let mut result = answered(false, MessagePart::from_text(state("output")));
            let shown = part.get("state").into_iter().flat_map(|state| state.items_of("attachments"));
            result.pieces.extend(shown.filter_map(media_part));
            result
        }
        Some("error") => {
            let metadata = state("metadata").filter(|metadata| metadata.is_flag_set("interrupted"));
            match MessagePart::from_text(metadata.and_then(|metadata| metadata.get("output"))) {
                Some(output) => answered(false, Some(output)),
                None => answered(true, MessagePart::from_text(state("error"))),
            }
        }
        _ => answered(true, Some(MessagePart::from_words(INTERRUPTED))),
    }
}

/// Returns when opencode cleared the part's result.
fn clearing_time(part: Value<'_>) -> Option<Millis> {
    parse_time(part.path(&["state", "time", "compacted"]))
}

fn start_time(part: Value<'_>) -> Option<Millis> {
    parse_time(part.path(&["time", "start"]).or_else(|| part.path(&["state", "time", "start"])))
}

fn usage_of(message: OpencodeMessage<'_>, step: &[Value<'_>]) -> Option<Usage> {
    let own = step.iter().find(|part| part.member_is("type", "step-finish"));
    let tokens = own.and_then(|part| part.get("tokens")).or_else(|| message.info.get("tokens"))?;
    let figure = |path: &[&str]| number_at(tokens, path).unwrap_or_default();
    let usage = Usage {
        input: figure(&["input"]),
        cache_read: figure(&["cache", "read"]),
        cache_write: figure(&["cache", "write"]),
        cache_write_1h: 0,
        output: figure(&["output"]) + figure(&["reasoning"]),
    };
    // An answer that broke off before its end reports nothing.
    (usage != Usage::default()).then_some(usage)
}

#[cfg(test)]
mod tests;
