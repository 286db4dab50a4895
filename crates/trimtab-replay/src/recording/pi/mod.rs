//! pi sessions: JSON lines, linear in old files, a tree by `id` and `parentId` in new ones. Takes the lines; gives
//! a segment for the session, one after each compaction and one for each other way taken in the tree.
//! System prompt and tools are not recorded; the usage of the requests tells their size.

mod entry_messages;

use std::collections::{HashMap, HashSet};

use trimtab_core::{
    Format, Millis,
    json::Value,
    usage::{Usage, number_at},
};

use super::{
    RecordingReader, SegmentStart,
    draft::{RecordingDraft, SegmentDraft, parse_time},
    plain_messages::{CallOutput, MessagePart, PlainMessage, RequestMark, add_result, fill_segment},
    source::RecordingSource,
};
use entry_messages::{broken_signatures, entry_message};

pub(super) const READER: RecordingReader =
    RecordingReader { name: "pi", about: "pi coding agent session (JSON lines)", fits, read };

/// What pi answers in the place of a tool that was never run.
const NO_RESULT: &str = "No result provided";

fn fits(source: &RecordingSource<'_>) -> bool {
    let roles = ["user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage"];
    source.any_of_first(|line| {
        let of_type = |name: &str| line.member_is("type", name);
        let header = of_type("session") && line.get("cwd").is_some() && line.get("id").is_some();
        let role = line.path(&["message", "role"]).and_then(Value::string);
        let known = role.is_some_and(|role| roles.contains(&role.as_ref()));
        header || (of_type("message") && known && line.path(&["message", "timestamp"]).is_some())
    })
}

fn read(source: &RecordingSource<'_>, draft: &mut RecordingDraft) {
    let entries: Vec<PiEntry<'_>> = read_entries(source, draft);
    let speaker = PiModel::most_heard(&entries);
    for entry in &entries {
        if broken_signatures(entry, &speaker) > 0 {
            draft.add_problem(entry.line, "a `thinkingSignature` is no reasoning item in JSON: left out");
        }
    }
    let mut walk = PiPath::new(&entries, speaker);
    let mut segment = SegmentDraft::new(SegmentStart::Session, walk.speaker.format, 1);
    for (index, entry) in entries.iter().enumerate() {
        let last = index.checked_sub(1);
        if entry.parent != last && walk.leaves_messages(entry.parent) {
            walk.close_segment(&mut segment, SegmentStart::Branch, entry.line, draft);
        }
        if entry.parent != last {
            walk.go_to(entry.parent);
        }
        if entry.is_kind("compaction") {
            walk.close_segment(&mut segment, SegmentStart::Compaction, entry.line, draft);
            walk.go_to(Some(index));
            walk.sent = parse_time(entry.value.get("timestamp"));
        } else {
            walk.take_entry(index);
        }
    }
    walk.close_segment(&mut segment, SegmentStart::Session, 0, draft);
}

/// One line of the file.
struct PiEntry<'a> {
    line: usize,
    value: Value<'a>,
    /// The entry before it on its way.
    parent: Option<usize>,
}

impl<'a> PiEntry<'a> {
    fn is_kind(&self, kind: &str) -> bool {
        self.value.member_is("type", kind)
    }

    fn message(&self) -> Option<Value<'a>> {
        self.value.get("message").filter(|_| self.is_kind("message"))
    }

    /// Returns the model's answer, where this is one.
    fn answer(&self) -> Option<Value<'a>> {
        self.message().filter(|message| message.member_is("role", "assistant"))
    }
}

fn read_entries<'a>(source: &'a RecordingSource<'_>, draft: &mut RecordingDraft) -> Vec<PiEntry<'a>> {
    let mut entries: Vec<PiEntry<'a>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (line, value) in source.values() {
        if !value.get("type").is_some_and(Value::is_string) {
            draft.add_problem(line, "expected an entry with a `type`");
        }
        let before = entries.len().checked_sub(1);
        let parent = match value.get("parentId") {
            Some(parent) if parent.is_null() => None,
            // A parent that is not there was a bad line: then the line before it is the nearest.
            Some(parent) => parent.string().and_then(|id| places.get(id.as_ref()).copied()).or(before),
            None => before,
        };
        if let Some(id) = value.text("id") {
            places.insert(id.into_owned(), entries.len());
        }
        entries.push(PiEntry { line, value, parent });
    }
    entries
}

/// The model that answered most often; what others thought is text to it.
struct PiModel {
    format: Format,
    model: Option<String>,
}

impl PiModel {
    fn most_heard(entries: &[PiEntry<'_>]) -> PiModel {
        let mut heard: Vec<(String, Format, usize)> = Vec::new();
        for answer in entries.iter().filter_map(PiEntry::answer).filter(|answer| !broke_off(*answer)) {
            let model = answer.text("model").unwrap_or_default().into_owned();
            let format = format_of(&answer.text("api").unwrap_or_default());
            match heard.iter_mut().find(|(name, spoken, _)| *name == model && *spoken == format) {
                Some((_, _, times)) => *times += 1,
                None => heard.push((model, format, 1)),
            }
        }
        let times_of =
            |format: Format| heard.iter().filter(|(_, spoken, _)| *spoken == format).map(|(_, _, n)| n).sum();
        let format = Format::ALL.into_iter().rev().max_by_key(|format| -> usize { times_of(*format) });
        let format = format.filter(|_| !heard.is_empty()).unwrap_or(Format::Anthropic);
        let same = heard.into_iter().filter(|(_, spoken, _)| *spoken == format);
        PiModel { format, model: same.max_by_key(|(_, _, times)| *times).map(|(model, _, _)| model) }
    }
}

/// Returns the wire format of one of pi's ways to speak to a provider; Chat where it is no format of ours.
fn format_of(api: &str) -> Format {
    match api {
        "anthropic-messages" | "bedrock-converse-stream" => Format::Anthropic,
        api if api.contains("responses") => Format::Responses,
        _ => Format::Chat,
    }
}

/// Tells an answer that ended by an error or by the user: pi does not send it again.
fn broke_off(answer: Value<'_>) -> bool {
    answer.member_is("stopReason", "error") || answer.member_is("stopReason", "aborted")
}

/// The way through the entries so far.
struct PiPath<'e, 'a> {
    entries: &'e [PiEntry<'a>],
    speaker: PiModel,
    /// The entries that a request carries, in order; the last compaction comes first.
    path: Vec<usize>,
    /// What they say.
    said: Vec<PlainMessage>,
    /// Calls without a result.
    open: Vec<String>,
    asked: Vec<RequestMark>,
    /// When the last entry that goes into a request was written.
    sent: Option<Millis>,
}

impl<'e, 'a> PiPath<'e, 'a> {
    fn new(entries: &'e [PiEntry<'a>], speaker: PiModel) -> PiPath<'e, 'a> {
        let (path, said, open, asked) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        PiPath { entries, speaker, path, said, open, asked, sent: None }
    }

    /// Returns what a request carries at an entry: from the last compaction on, with what that kept.
    fn path_to(&self, leaf: Option<usize>) -> Vec<usize> {
        let entry_at = |index: usize| self.entries.get(index);
        let parent_of =
            |index: &usize| entry_at(*index).and_then(|entry| entry.parent).filter(|parent| parent < index);
        let mut way: Vec<usize> = std::iter::successors(leaf, parent_of).collect();
        way.reverse();
        let is_compaction = |index: &usize| entry_at(*index).is_some_and(|entry| entry.is_kind("compaction"));
        let Some(at) = way.iter().rposition(is_compaction) else { return way };
        let (before, from) = way.split_at(at);
        let Some((compaction, after)) = from.split_first() else { return way };
        let first = entry_at(*compaction).and_then(|entry| self.first_kept(entry.value));
        let kept =
            before.iter().skip_while(|index| Some(**index) != first).filter(|index| !is_compaction(index));
        std::iter::once(compaction).chain(kept).chain(after).copied().collect()
    }

    fn first_kept(&self, compaction: Value<'_>) -> Option<usize> {
        if let Some(id) = compaction.text("firstKeptEntryId") {
            return self.entries.iter().position(|entry| entry.value.member_is("id", &id));
        }
        usize::try_from(compaction.get("firstKeptEntryIndex")?.number()?).ok()
    }

    /// Tells whether going on from an entry leaves messages out.
    fn leaves_messages(&self, parent: Option<usize>) -> bool {
        let next: HashSet<usize> = self.path_to(parent).into_iter().collect();
        let left = self.path.iter().filter(|index| !next.contains(index));
        left.filter_map(|index| self.entries.get(*index)).any(|entry| entry.message().is_some())
    }

    /// Takes one more entry.
    fn take_entry(&mut self, index: usize) {
        let Some(entry) = self.entries.get(index) else { return };
        let Some(answer) = entry.answer() else {
            if entry.message().is_some() || entry.is_kind("custom_message") || entry.is_kind("branch_summary")
            {
                self.sent = parse_time(entry.value.get("timestamp")).or(self.sent);
            }
            self.add_entry(index);
            return;
        };
        let usage = parse_usage(answer.get("usage"));
        // An answer without usage that broke off never reached the model, as far as the file tells.
        if !broke_off(answer) || usage.is_some() {
            self.answer_open_calls();
            let said = self.said.len();
            // pi stamps an answer when it sends the request, and the line when the answer is complete.
            let at = parse_time(answer.get("timestamp")).or(self.sent);
            let model = answer.owned_text("model");
            self.asked.push(RequestMark { said, at, model, usage });
        }
        self.add_entry(index);
    }

    /// Adds an entry to what the next request carries.
    fn add_entry(&mut self, index: usize) {
        self.path.push(index);
        let Some(next) = self.entries.get(index).and_then(|entry| entry_message(entry, &self.speaker)) else {
            return;
        };
        if let PlainMessage::Results(results) = next {
            self.open.retain(|call| !results.iter().any(|result| result.call == *call));
            results.into_iter().for_each(|result| add_result(&mut self.said, result));
            return;
        }
        self.answer_open_calls();
        if let PlainMessage::Assistant(pieces) = &next {
            self.open.extend(pieces.iter().filter_map(|piece| match piece {
                MessagePart::Call { id, .. } => Some(id.clone()),
                _ => None,
            }));
        }
        self.said.push(next);
    }

    fn answer_open_calls(&mut self) {
        for call in self.open.drain(..) {
            let result = CallOutput { call, failed: true, pieces: vec![MessagePart::from_words(NO_RESULT)] };
            add_result(&mut self.said, result);
        }
    }

    /// Goes on from an entry.
    fn go_to(&mut self, leaf: Option<usize>) {
        let path = self.path_to(leaf);
        self.path.clear();
        self.said.clear();
        self.open.clear();
        path.into_iter().for_each(|index| self.add_entry(index));
    }

    /// Closes a segment; the next one begins with `start`.
    fn close_segment(
        &mut self,
        segment: &mut SegmentDraft,
        start: SegmentStart,
        line: usize,
        draft: &mut RecordingDraft,
    ) {
        let mut ended = segment.next(start, line);
        fill_segment(&mut ended, &self.said, std::mem::take(&mut self.asked));
        draft.add_segment(ended);
    }
}

/// Reads the usage as pi keeps it: the kinds do not overlap. All zero is no report.
fn parse_usage(value: Option<Value<'_>>) -> Option<Usage> {
    let value = value?;
    let figure = |key| number_at(value, &[key]).unwrap_or_default();
    let usage = Usage {
        input: figure("input"),
        cache_read: figure("cacheRead"),
        cache_write: figure("cacheWrite"),
        cache_write_1h: 0,
        output: figure("output"),
    };
    Some(usage).filter(|usage| usage.total_input() > 0)
}

#[cfg(test)]
mod tests;
