//! opencode sessions, as `opencode export` gives them: one document with messages made of parts. Takes the
//! document; gives a segment for the session, and one behind each compaction and each clearing of old results.
//! Never guesses what was not exported: system prompt, tools, and the sessions of sub-agents, which are files of
//! their own. A message that was reverted but not yet replaced is still one that was sent.

use super::{
    Millis, Point, Reader, Start, Usage,
    dialog::{Media, Piece, Speaker, compact, write},
    draft::{Draft, SegmentDraft, time},
    source::Source,
};
use crate::{json::Value, wire::Format};

pub(super) const READER: Reader =
    Reader { name: "opencode", about: "opencode session (`opencode export`)", fits, read };

/// What opencode sends in the place of a result it cleared.
const CLEARED: &str = "[Old tool result content cleared]";
/// What opencode sends for a call that never ended.
const INTERRUPTED: &str = "[Tool execution was interrupted]";
/// What opencode says for the user before a summary.
const BEFORE_SUMMARY: &str = "What did we do so far?";
/// What opencode says for the user before a command's sub-agent.
const BEFORE_SUBTASK: &str = "The following tool was executed by the user";

fn fits(source: &Source<'_>) -> bool {
    let Some(root) = source.document() else { return false };
    let session = root.path(&["info", "id"]).and_then(Value::string);
    let first = root.get("messages").and_then(|messages| messages.items().next());
    session.is_some_and(|id| id.starts_with("ses"))
        && first.is_none_or(|message| message.get("info").is_some() && message.get("parts").is_some())
}

fn read(source: &Source<'_>, draft: &mut Draft) {
    let Some(root) = source.document() else { return };
    let mut messages = Vec::new();
    for (index, value) in root.get("messages").into_iter().flat_map(Value::items).enumerate() {
        match Message::of(value) {
            Some(message) => messages.push(message),
            None => draft.problem(1, format!("message {}: expected `info.role` and `parts`", index + 1)),
        }
    }
    let start = match root.path(&["info", "parentID"]).filter(|parent| parent.is_string()) {
        Some(_) => Start::SubAgent,
        None => Start::Session,
    };
    let mut segment = SegmentDraft::new(start, format_of(&messages), 1);
    segment.name = root.get("info").and_then(|info| info.text("title")).map(std::borrow::Cow::into_owned);
    let mut talk = Talk { sent: Vec::new(), segment, cleared: None };
    for (index, message) in messages.iter().enumerate() {
        if let Some(compaction) = message.compaction(&messages) {
            talk.compact(&compaction, messages.get(..index).unwrap_or_default(), draft);
        } else if !message.is_finished_summary() {
            talk.add(message, draft);
        }
    }
    draft.push(talk.segment);
}

/// Anthropic's own provider is spoken to in its format; the others understand Chat Completions.
fn format_of(messages: &[Message<'_>]) -> Format {
    let provider = messages.iter().find_map(|message| message.info.get("providerID"));
    if provider.is_some_and(|provider| provider.is("anthropic")) { Format::Anthropic } else { Format::Chat }
}

#[derive(Clone, Copy)]
struct Message<'a> {
    info: Value<'a>,
    parts: Value<'a>,
    assistant: bool,
}

impl<'a> Message<'a> {
    fn of(value: Value<'a>) -> Option<Message<'a>> {
        let (info, parts) = (value.get("info")?, value.get("parts")?);
        let role = info.get("role")?;
        (parts.is_array() && (role.is("user") || role.is("assistant"))).then(|| Message {
            info,
            parts,
            assistant: role.is("assistant"),
        })
    }

    fn parts_of(self, kind: &str) -> impl Iterator<Item = Value<'a>> {
        self.parts.items().filter(move |part| part.get("type").is_some_and(|name| name.is(kind)))
    }

    /// Returns the compaction that this message asked for, where its summary was written to the end.
    fn compaction(self, messages: &[Message<'a>]) -> Option<Compaction<'a>> {
        let part = self.parts_of("compaction").next()?;
        let id = self.info.text("id")?;
        let answers =
            |message: &&Message<'_>| message.info.get("parentID").is_some_and(|parent| parent.is(&id));
        let summary = messages.iter().filter(|message| message.is_finished_summary()).find(answers)?;
        Some(Compaction { question: self, summary: *summary, tail: part.get("tail_start_id") })
    }

    fn is_finished_summary(self) -> bool {
        let has = |key| self.info.get(key).is_some();
        self.is_summary() && has("finish") && !has("error")
    }

    fn is_summary(self) -> bool {
        self.assistant && self.info.get("summary").is_some_and(Value::is_true)
    }

    /// An answer that failed is not sent again, except for what was said before the user stopped it.
    fn is_left_out(self) -> bool {
        let Some(error) = self.info.get("error").filter(|_| self.assistant) else { return false };
        let stopped = error.get("name").is_some_and(|name| name.is("MessageAbortedError"));
        let said = |part: Value<'_>| {
            part.get("type").is_some_and(|kind| !kind.is("step-start") && !kind.is("reasoning"))
        };
        !(stopped && self.parts.items().any(said))
    }

    /// Returns the parts of each request's answer: older versions keep several in one message.
    fn steps(self) -> Vec<Vec<Value<'a>>> {
        let mut steps: Vec<Vec<Value<'a>>> = Vec::new();
        for part in self.parts.items() {
            let begins = part.get("type").is_some_and(|kind| kind.is("step-start"));
            match steps.last_mut() {
                Some(step) if !begins => step.push(part),
                _ => steps.push(vec![part]),
            }
        }
        steps
    }

    /// Tells whether a result was cleared after `since` and before a request at `at`.
    fn cleared_between(self, since: Option<Millis>, at: Option<Millis>) -> bool {
        self.parts_of("tool").filter_map(cleared).any(|when| Some(when) > since && Some(when) <= at)
    }

    /// Writes the message as it is sent by a request made when the results until `cleared` were cleared.
    fn write(self, format: Format, cleared: Option<Millis>) -> Vec<Vec<u8>> {
        if !self.assistant {
            let pieces: Vec<Piece<'_>> = self.parts.items().filter_map(user_piece).collect();
            return write(format, Speaker::User, &pieces);
        }
        let steps = self.steps();
        steps.iter().flat_map(|step| write_step(format, step, cleared)).collect()
    }
}

struct Compaction<'a> {
    question: Message<'a>,
    summary: Message<'a>,
    /// The first of the messages that are kept.
    tail: Option<Value<'a>>,
}

/// The segment so far.
struct Talk<'a> {
    sent: Vec<Message<'a>>,
    segment: SegmentDraft,
    /// Results cleared until then are sent as cleared.
    cleared: Option<Millis>,
}

impl<'a> Talk<'a> {
    fn add(&mut self, message: &Message<'a>, draft: &mut Draft) {
        if message.is_left_out() {
            return;
        }
        if !message.assistant || message.is_summary() {
            self.segment.messages.extend(message.write(self.segment.format, self.cleared));
            self.sent.push(*message);
            return;
        }
        let at = time(message.info.path(&["time", "created"]));
        if self.sent.iter().any(|sent| sent.cleared_between(self.cleared, at)) {
            self.cleared = at;
            self.begin(Vec::from_iter(self.sent.iter().copied()), draft);
        }
        for (index, step) in message.steps().iter().enumerate() {
            let at = if index == 0 { at } else { step.iter().find_map(|part| began(*part)) };
            let point = Point { usage: usage_of(*message, step), ..self.point(at, message.info) };
            self.segment.points.push(point);
            self.segment.messages.extend(write_step(self.segment.format, step, self.cleared));
        }
        self.sent.push(*message);
    }

    fn point(&self, at: Option<Millis>, info: Value<'_>) -> Point {
        let model = info.text("modelID").map(std::borrow::Cow::into_owned);
        Point { messages: self.segment.messages.len(), at, model, usage: None }
    }

    /// Goes on with the question for a summary, the summary, and the last messages before, where some were kept.
    fn compact(&mut self, compaction: &Compaction<'a>, before: &[Message<'a>], draft: &mut Draft) {
        let tail = compaction.tail.and_then(Value::string);
        let is_tail = |message: &Message<'_>| message.info.text("id").is_some_and(|id| Some(id) == tail);
        let kept = before.iter().position(is_tail).and_then(|from| before.get(from..)).unwrap_or_default();
        let kept = kept.iter().filter(|message| !message.is_left_out());
        let summed_up = [compaction.question, compaction.summary];
        self.begin(summed_up.iter().chain(kept).copied().collect(), draft);
    }

    /// Closes the segment and begins another one with these messages.
    fn begin(&mut self, messages: Vec<Message<'a>>, draft: &mut Draft) {
        let mut next = SegmentDraft::new(Start::Compaction, self.segment.format, 1);
        next.name.clone_from(&self.segment.name);
        next.messages =
            messages.iter().flat_map(|message| message.write(next.format, self.cleared)).collect();
        self.sent = messages;
        draft.push(std::mem::replace(&mut self.segment, next));
    }
}

fn user_piece(part: Value<'_>) -> Option<Piece<'_>> {
    match part.text("type").as_deref() {
        Some("text") if !part.get("ignored").is_some_and(Value::is_true) => {
            part.text("text").map(Piece::Text)
        }
        Some("file") => media(part).map(Piece::Media),
        Some("compaction") => Some(Piece::Text(BEFORE_SUMMARY.into())),
        Some("subtask") => Some(Piece::Text(BEFORE_SUBTASK.into())),
        _ => None,
    }
}

/// Files of text are also there as text parts, so only the others are sent as such.
fn media(part: Value<'_>) -> Option<Media<'_>> {
    let (mime, url) = (part.text("mime")?, part.text("url")?);
    (mime != "text/plain" && mime != "application/x-directory").then_some(Media { mime, url })
}

fn write_step(format: Format, step: &[Value<'_>], cleared: Option<Millis>) -> Vec<Vec<u8>> {
    let (mut said, mut results) = (Vec::new(), Vec::new());
    for part in step {
        match part.text("type").as_deref() {
            Some("text") => said.extend(part.text("text").map(Piece::Text)),
            Some("reasoning") => said.push(Piece::Reasoning {
                text: part.text("text").unwrap_or_default(),
                signature: part.path(&["metadata", "anthropic", "signature"]).and_then(Value::string),
            }),
            Some("tool") => {
                let input = part.path(&["state", "input"]).map_or_else(|| b"{}".to_vec(), compact);
                let id = part.text("callID").unwrap_or_default();
                said.push(Piece::Call { id, name: part.text("tool").unwrap_or_default(), input });
                results.push(result(*part, cleared));
            }
            _ => {}
        }
    }
    let mut messages = write(format, Speaker::Model, &said);
    messages.extend(write(format, Speaker::Tools, &results));
    messages
}

fn result<'a>(part: Value<'a>, until: Option<Millis>) -> Piece<'a> {
    let id = part.text("callID").unwrap_or_default();
    let state = |key| part.path(&["state", key]);
    let text = |key| state(key).and_then(Value::string);
    let said = |text| Piece::Result { id: id.clone(), text, failed: false, media: Vec::new() };
    match text("status").as_deref() {
        Some("completed") if cleared(part).is_some_and(|when| Some(when) <= until) => said(CLEARED.into()),
        Some("completed") => {
            let shown = state("attachments").into_iter().flat_map(Value::items).filter_map(media).collect();
            Piece::Result { id, text: text("output").unwrap_or_default(), failed: false, media: shown }
        }
        Some("error") => {
            let interrupted = part.path(&["state", "metadata", "interrupted"]).is_some_and(Value::is_true);
            let output = part.path(&["state", "metadata", "output"]).and_then(Value::string);
            match output.filter(|_| interrupted) {
                Some(output) => said(output),
                None => {
                    let text = text("error").unwrap_or_default();
                    Piece::Result { id, text, failed: true, media: Vec::new() }
                }
            }
        }
        _ => Piece::Result { id, text: INTERRUPTED.into(), failed: true, media: Vec::new() },
    }
}

/// Returns when opencode cleared the part's result.
fn cleared(part: Value<'_>) -> Option<Millis> {
    time(part.path(&["state", "time", "compacted"]))
}

fn began(part: Value<'_>) -> Option<Millis> {
    time(part.path(&["time", "start"]).or_else(|| part.path(&["state", "time", "start"])))
}

fn usage_of(message: Message<'_>, step: &[Value<'_>]) -> Option<Usage> {
    let own = step.iter().find(|part| part.get("type").is_some_and(|kind| kind.is("step-finish")));
    let tokens = own.and_then(|part| part.get("tokens")).or_else(|| message.info.get("tokens"))?;
    let number = |keys: &[&str]| tokens.path(keys).and_then(Value::number).unwrap_or_default();
    let usage = Usage {
        input: number(&["input"]),
        cache_read: number(&["cache", "read"]),
        cache_write: number(&["cache", "write"]),
        cache_write_1h: 0,
        output: number(&["output"]) + number(&["reasoning"]),
    };
    // An answer that broke off before its end reports nothing.
    (usage != Usage::default()).then_some(usage)
}

#[cfg(test)]
mod tests {
    use super::super::{picture, read};
    use crate::history::{BlockKind, Role};

    const WHOLE: &[u8] = include_bytes!("../../../../fixtures/recordings/opencode.json");
    const SUB_AGENT: &[u8] = include_bytes!("../../../../fixtures/recordings/opencode-subagent.json");
    const REVERTED: &[u8] = include_bytes!("../../../../fixtures/recordings/opencode-reverted.json");

    fn check(file: &[u8], expected: &[&str]) {
        assert_eq!(picture(file), ["opencode"].iter().chain(expected).copied().collect::<Vec<_>>());
    }

    /// A session of one answered question; `part` is a tool part of the first answer.
    fn session(provider: &str, part: &str, second: &str) -> Vec<u8> {
        let said = |id: u8, role: &str, parts: &str| {
            format!(
                r#"{{"info":{{"id":"msg_{id}","role":"{role}","providerID":"{provider}","modelID":"m","time":
                {{"created":100000000000{id}}}}},"parts":[{parts}]}}"#
            )
        };
        let question = said(1, "user", r#"{"type":"text","text":"Why?"}"#);
        let answer = said(2, "assistant", &format!(r#"{{"type":"step-start"}},{part}"#));
        let then = said(4, "assistant", second);
        format!(r#"{{"info":{{"id":"ses_1"}},"messages":[{question},{answer},{then}]}}"#).into_bytes()
    }

    #[test]
    fn a_compaction_begins_a_segment_with_the_summary() {
        check(
            WHOLE,
            &[
                "session chat: 56 messages, 24 requests, last saw 15863 tokens, 15488 of them cached",
                "compaction chat: 11 messages, 4 requests, last saw 9153 tokens, 8832 of them cached",
            ],
        );
    }

    #[test]
    fn what_a_compaction_kept_stands_behind_the_summary() {
        let file = br#"{"info":{"id":"ses_1"},"messages":[
            {"info":{"id":"a","role":"user"},"parts":[{"type":"text","text":"old"}]},
            {"info":{"id":"b","role":"user"},"parts":[{"type":"text","text":"kept"}]},
            {"info":{"id":"c","role":"user"},"parts":[{"type":"compaction","auto":true,"tail_start_id":"b"}]},
            {"info":{"id":"d","role":"assistant","parentID":"c","summary":true,"finish":"stop"},
             "parts":[{"type":"text","text":"summary"}]},
            {"info":{"id":"e","role":"user"},"parts":[{"type":"text","text":"new"}]}]}"#;
        let recording = read(file).expect("a recording");
        let history = &recording.segments[1].history;
        let said: Vec<_> = history.blocks().iter().map(|block| history.block_text(block)).collect();
        assert_eq!(said, ["What did we do so far?", "summary", "kept", "new"]);
    }

    #[test]
    fn the_file_of_a_sub_agent_is_one_segment() {
        check(
            SUB_AGENT,
            &["sub-agent chat: 11 messages, 4 requests, last saw 6248 tokens, 5248 of them cached"],
        );
    }

    #[test]
    fn a_reverted_message_was_sent() {
        check(
            REVERTED,
            &["session chat: 10 messages, 5 requests, last saw 8790 tokens, 8704 of them cached"],
        );
    }

    #[test]
    fn every_result_of_the_recording_finds_its_call() {
        for file in [WHOLE, SUB_AGENT, REVERTED] {
            for segment in read(file).expect("a recording").segments {
                let blocks = segment.history.blocks().iter();
                let alone = blocks.filter(|block| {
                    matches!(block.kind, BlockKind::Call | BlockKind::Result) && block.partner.is_none()
                });
                assert_eq!(alone.count(), 0);
            }
        }
    }

    #[test]
    fn a_result_that_was_cleared_later_was_first_sent_whole() {
        let part = r#"{"type":"tool","callID":"c","tool":"bash","state":{"status":"completed","input":{ "a" : "b c" },
            "output":"long","time":{"start":1,"end":2,"compacted":1000000000003}}}"#;
        let recording =
            read(&session("openai", part, r#"{"type":"text","text":"So."}"#)).expect("a recording");
        let texts: Vec<String> = recording
            .segments
            .iter()
            .flat_map(|segment| {
                let results = segment.history.blocks().iter().filter(|block| block.kind == BlockKind::Result);
                results.map(|block| segment.history.block_text(block).into_owned()).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(texts, ["long", "[Old tool result content cleared]"]);
    }

    #[test]
    fn a_session_with_anthropic_is_in_its_format() {
        let part = r#"{"type":"tool","callID":"c","tool":"bash","state":{"status":"running","input":{}}}"#;
        let recording =
            read(&session("anthropic", part, r#"{"type":"text","text":"So."}"#)).expect("a recording");
        let history = &recording.segments[0].history;
        let roles: Vec<Role> = history.messages().iter().map(|entry| entry.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant]);
        assert!(history.blocks().iter().any(|block| block.failed), "a call that never ended has failed");
    }

    #[test]
    fn a_message_without_parts_is_a_problem_and_the_others_are_read() {
        let file = br#"{"info":{"id":"ses_1"},"messages":[
            {"info":{"role":"user"},"parts":[{"type":"text","text":"Hi"}]},{"info":{"role":"user"}}]}"#;
        let recording = read(file).expect("a recording");
        assert_eq!(recording.segments.len(), 1);
        assert_eq!(recording.problems[0].what, "message 2: expected `info.role` and `parts`");
    }
}
