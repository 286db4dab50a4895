//! Gemini CLI sessions: one document, or JSON lines that newer versions append. Takes the records; gives a segment for
//! the session, one after each compression and one after each rewind. Thoughts are left out of the messages: Gemini CLI
//! shows them and does not send them back; the usage counts them as output. System prompt and tools are not recorded.

use trimtab_core::{
    Format, Millis,
    json::{Array, Object, Value},
    usage::{Usage, number_at},
};

use super::{
    RecordingReader, SegmentStart,
    draft::{RecordingDraft, SegmentDraft, parse_time},
    source::RecordingSource,
};

pub(super) const READER: RecordingReader = RecordingReader {
    name: "gemini-cli",
    about: "Gemini CLI session (session-*.json, session-*.jsonl)",
    fits,
    read,
};

/// The types of records: what the user and the model said, and what only the screen showed.
const SPOKEN: [&str; 2] = ["user", "gemini"];
const SHOWN: [&str; 3] = ["info", "warning", "error"];

fn fits(source: &RecordingSource<'_>) -> bool {
    match source.document() {
        Some(document) => {
            let records = || document.items_of("messages").take(10).filter(|record| is_record(*record));
            let named = document.get("projectHash").is_some();
            records().next().is_some()
                && (named || records().any(|record| record.member_is("type", "gemini")))
        }
        None => source.any_of_first(|line| {
            let head = line.get("sessionId").is_some() && line.get("projectHash").is_some();
            let answer = line.member_is("type", "gemini") && line.get("content").is_some();
            (head && line.get("type").is_none()) || answer
        }),
    }
}

/// Tells a record of a message: it has a type of Gemini CLI's, where a request's message has a role.
fn is_record(record: Value<'_>) -> bool {
    let known = |kind: &str| SPOKEN.contains(&kind) || SHOWN.contains(&kind);
    record.get("role").is_none() && record.text("type").is_some_and(|kind| known(&kind))
}

fn read(source: &RecordingSource<'_>, draft: &mut RecordingDraft) {
    let mut session = GeminiSession::new();
    for (line, value) in source.values() {
        if let Some(list) = value.get("messages").filter(|list| list.is_array()) {
            session.read_head(value);
            session.replace_records(list, line, draft);
        } else if let Some(target) = value.get("$rewindTo") {
            session.rewind_to(target, line, draft);
        } else if let Some(update) = value.get("$set") {
            session.read_head(update);
            if let Some(list) = update.get("messages").filter(|list| list.is_array()) {
                session.replace_records(list, line, draft);
            }
        } else if is_record(value) {
            session.add_record(GeminiRecord { line, value });
        } else if value.get("sessionId").is_some() || value.get("projectHash").is_some() {
            session.read_head(value);
        } else {
            draft.add_problem(line, "expected a message with a `type` (user, gemini), `$set` or `$rewindTo`");
        }
    }
    session.close_segment(SegmentStart::Session, 1, draft);
}

/// One message as it was last written.
#[derive(Clone, Copy)]
struct GeminiRecord<'a> {
    line: usize,
    value: Value<'a>,
}

impl GeminiRecord<'_> {
    fn is_from(self, kind: &str) -> bool {
        self.value.member_is("type", kind)
    }

    /// Tells a command for Gemini CLI itself, which is not sent unless it is answered.
    fn is_command(self) -> bool {
        let content = self.value.get("content");
        let first = content.and_then(|content| content.items().next()).and_then(|part| part.text("text"));
        let text = content.and_then(Value::string).or(first);
        self.is_from("user") && text.is_some_and(|text| text.trim_start().starts_with(['/', '?']))
    }
}

/// The records that the next request carries.
struct GeminiSession<'a> {
    name: Option<String>,
    start: SegmentStart,
    line: usize,
    records: Vec<GeminiRecord<'a>>,
    /// How many of them were sent by requests of earlier segments.
    old: usize,
}

impl<'a> GeminiSession<'a> {
    fn new() -> GeminiSession<'a> {
        GeminiSession { name: None, start: SegmentStart::Session, line: 1, records: Vec::new(), old: 0 }
    }

    fn read_head(&mut self, head: Value<'_>) {
        self.name = head.owned_text("summary").or(self.name.take()).or_else(|| head.owned_text("sessionId"));
        if head.member_is("kind", "subagent") && self.start == SegmentStart::Session {
            self.start = SegmentStart::SubAgent;
        }
    }

    /// Takes a message. It is written again, with its id, whenever its calls or tokens become known.
    fn add_record(&mut self, record: GeminiRecord<'a>) {
        let id = record.value.text("id");
        let known = self.records.iter_mut().find(|known| id.is_some() && known.value.text("id") == id);
        match known {
            Some(known) => *known = record,
            None => self.records.push(record),
        }
    }

    /// Takes a new list of all messages. It goes on from the messages so far, or replaces them by fewer.
    fn replace_records(&mut self, list: Value<'a>, line: usize, draft: &mut RecordingDraft) {
        let mut records: Vec<GeminiRecord<'a>> = Vec::new();
        for (index, value) in list.items().enumerate() {
            if is_record(value) {
                records.push(GeminiRecord { line, value });
            } else {
                draft.add_problem(line, format!("message {}: expected a `type` (user, gemini)", index + 1));
            }
        }
        let is_there = |known: &GeminiRecord<'_>| {
            let id = known.value.text("id");
            id.is_some() && records.iter().any(|record| record.value.text("id") == id)
        };
        let mut spoken = self.records.iter().filter(|record| SPOKEN.iter().any(|kind| record.is_from(kind)));
        if !spoken.all(is_there) {
            self.close_segment(SegmentStart::Compaction, line, draft);
            self.old = records.len();
        }
        self.records = records;
    }

    /// Takes back a message and all after it; all where it is not known, as Gemini CLI does.
    fn rewind_to(&mut self, target: Value<'a>, line: usize, draft: &mut RecordingDraft) {
        let id = target.string();
        let is_target = |record: &GeminiRecord<'_>| id.is_some() && record.value.text("id") == id;
        let kept = self.records.iter().position(is_target).unwrap_or_default();
        let left = self.records.get(kept..).unwrap_or_default();
        let is_branch = left.iter().any(|record| record.is_from("gemini"));
        if is_branch {
            self.close_segment(SegmentStart::Branch, line, draft);
        }
        self.records.truncate(kept);
        self.old = if is_branch { kept } else { self.old.min(kept) };
    }

    /// Writes the segment so far; the next one begins with `start`.
    fn close_segment(&mut self, start: SegmentStart, line: usize, draft: &mut RecordingDraft) {
        let mut segment = SegmentDraft::new(self.start, Format::Gemini, self.line);
        segment.name.clone_from(&self.name);
        let mut talk = GeminiSegment { segment, sent: None, open: false };
        for (index, record) in self.records.iter().enumerate() {
            let rest = self.records.get(index + 1..).unwrap_or_default();
            talk.add_record(*record, rest, index < self.old, draft);
        }
        if !talk.segment.messages.is_empty() {
            draft.add_segment(talk.segment);
        }
        (self.start, self.line) = (start, line);
    }
}

/// The messages of a segment, as they are written.
struct GeminiSegment {
    segment: SegmentDraft,
    /// When the last message that goes into a request was complete: then the request was sent.
    sent: Option<Millis>,
    /// Whether the answer so far made no calls, so that nothing stands between it and the next record.
    open: bool,
}

impl GeminiSegment {
    fn add_record(
        &mut self,
        record: GeminiRecord<'_>,
        rest: &[GeminiRecord<'_>],
        is_old: bool,
        draft: &mut RecordingDraft,
    ) {
        let next = rest.iter().find(|next| SPOKEN.iter().any(|kind| next.is_from(kind)));
        if record.is_from("user") {
            let answered = next.is_some_and(|next| next.is_from("gemini"));
            if !record.is_command() || answered {
                self.add_user(record, draft);
            }
        } else if record.is_from("gemini") {
            self.add_answer(record, rest, is_old);
        }
    }

    fn add_user(&mut self, record: GeminiRecord<'_>, draft: &mut RecordingDraft) {
        let parts = parts_of(record.value.get("content"));
        if parts.is_empty() {
            draft.add_problem(record.line, "a message of the user without `content`");
            return;
        }
        self.segment.messages.push(content_object("user", parts));
        self.sent = parse_time(record.value.get("timestamp")).or(self.sent);
        self.open = false;
    }

    fn add_answer(&mut self, record: GeminiRecord<'_>, rest: &[GeminiRecord<'_>], is_old: bool) {
        let answer = record.value;
        let usage = parse_usage(answer.get("tokens"));
        let mut parts = parts_of(answer.get("content"));
        let said = || answer.get("content").into_iter().flat_map(Value::items);
        let calls = answer
            .items_of("toolCalls")
            .filter(|call| !said().any(|part| is_about(part, "functionCall", *call)));
        calls.for_each(|call| parts.push(&function_call(call)));
        // A call that was cancelled is written as a separate record, after the text of the same answer.
        let goes_on = self.open && usage.is_none();
        if !goes_on && !is_old {
            let at = self.sent.or_else(|| parse_time(answer.get("timestamp")));
            self.segment.add_point(at, answer.text("model")).usage = usage;
        }
        if !parts.is_empty() {
            self.segment.messages.push(content_object("model", parts));
        }
        self.open = answer.items_of("toolCalls").next().is_none();
        let told = |call: Value<'_>| {
            let parts = rest.iter().filter_map(|next| next.value.get("content")).flat_map(Value::items);
            parts.into_iter().any(|part| is_about(part, "functionResponse", call))
        };
        let results = answer.items_of("toolCalls").filter(|call| !told(*call));
        let mut parts: Vec<Vec<u8>> = Vec::new();
        results.for_each(|call| add_result(&mut parts, call));
        if !parts.is_empty() {
            let parts = parts.iter().fold(Array::new(), |list, part| list.raw(part));
            self.segment.messages.push(content_object("user", parts));
        }
        let ended = answer.items_of("toolCalls").filter_map(|call| parse_time(call.get("timestamp"))).max();
        self.sent = ended.or_else(|| parse_time(answer.get("timestamp"))).or(self.sent);
    }
}

/// Returns the parts that were sent of a record's content: a text, a part or a list of them.
fn parts_of(content: Option<Value<'_>>) -> Array {
    let mut parts = Array::new();
    let Some(content) = content else { return parts };
    let items = content.items().chain((!content.is_array()).then_some(content));
    for item in items {
        if item.is_string() && !item.is("") {
            parts.push(&Object::new().raw("text", item.raw()).end());
        } else if item.is_object() && !item.is_flag_set("thought") {
            parts.push(item.raw());
        }
    }
    parts
}

fn content_object(role: &str, parts: Array) -> Vec<u8> {
    Object::new().text("role", role).raw("parts", &parts.end()).end()
}

/// Tells whether a part is the call or the response of a recorded call.
fn is_about(part: Value<'_>, kind: &str, call: Value<'_>) -> bool {
    let id = call.text("id");
    id.is_some() && part.get(kind).and_then(|part| part.text("id")) == id
}

fn function_call(call: Value<'_>) -> Vec<u8> {
    let args = call.get("args").filter(|args| args.is_object()).map_or(b"{}".as_slice(), Value::raw);
    let made = begin_call(call).raw("args", args).end();
    Object::new().raw("functionCall", &made).end()
}

/// Begins an object with the id and the name of a call.
fn begin_call(call: Value<'_>) -> Object {
    let id = call.get("id").filter(|id| id.is_string());
    let object = id.into_iter().fold(Object::new(), |object, id| object.raw("id", id.raw()));
    object.text("name", &call.text("name").unwrap_or_default())
}

/// Adds the result of a call: the parts as they were recorded, else what there is as its output.
fn add_result(parts: &mut Vec<Vec<u8>>, call: Value<'_>) {
    let Some(result) = call.get("result").filter(|result| !result.is_null()) else { return };
    let recorded = || result.items().chain((!result.is_array()).then_some(result));
    let responds = |part: Value<'_>| part.get("functionResponse").is_some_and(Value::is_object);
    if !recorded().any(responds) {
        let response = Object::new().raw("output", result.raw()).end();
        let response = begin_call(call).raw("response", &response).end();
        parts.push(Object::new().raw("functionResponse", &response).end());
        return;
    }
    for part in recorded().filter(|part| part.is_object()) {
        // After a compression every call of an answer holds the results of all of them.
        if !parts.iter().any(|known| known == part.raw()) {
            parts.push(part.raw().to_vec());
        }
    }
}

/// Reads the tokens of an answer. The input includes what was cached; thoughts are output that is counted apart.
fn parse_usage(tokens: Option<Value<'_>>) -> Option<Usage> {
    let tokens = tokens?;
    let figure = |key| number_at(tokens, &[key]).unwrap_or_default();
    let (input, cached) = (number_at(tokens, &["input"])?, figure("cached"));
    Some(Usage {
        input: input.saturating_sub(cached) + figure("tool"),
        cache_read: cached.min(input),
        cache_write: 0,
        cache_write_1h: 0,
        output: figure("output") + figure("thoughts"),
    })
}

#[cfg(test)]
mod tests;
