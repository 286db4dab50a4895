//! pi sessions: JSON lines, linear in old files, a tree by `id` and `parentId` in new ones. Takes the lines; gives
//! a segment for the session, one behind each compaction and one for each other way taken in the tree.
//! System prompt and tools are not recorded; the usage of the requests tells their size.

mod say;

use std::collections::{HashMap, HashSet};

use trimtab_core::{
    Format, Millis,
    json::Value,
    usage::{Usage, number},
};

use super::{
    Reader, Start,
    draft::{Draft, SegmentDraft, time},
    said::{Answered, Asked, Piece, Said, add_result, fill},
    source::Source,
};
use say::{broken_signatures, say};

pub(super) const READER: Reader =
    Reader { name: "pi", about: "pi coding agent session (JSON lines)", fits, read };

/// What pi answers in the place of a tool that was never run.
const NO_RESULT: &str = "No result provided";

fn fits(source: &Source<'_>) -> bool {
    let roles = ["user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage"];
    source.begins(|line| {
        let of_type = |name: &str| line.has("type", name);
        let header = of_type("session") && line.get("cwd").is_some() && line.get("id").is_some();
        let role = line.path(&["message", "role"]).and_then(Value::string);
        let known = role.is_some_and(|role| roles.contains(&role.as_ref()));
        header || (of_type("message") && known && line.path(&["message", "timestamp"]).is_some())
    })
}

fn read(source: &Source<'_>, draft: &mut Draft) {
    let entries: Vec<Entry<'_>> = entries(source, draft);
    let speaker = Speaker::most_heard(&entries);
    for entry in &entries {
        if broken_signatures(entry, &speaker) > 0 {
            draft.problem(entry.line, "a `thinkingSignature` is no reasoning item in JSON: left out");
        }
    }
    let mut walk = Walk::new(&entries, speaker);
    let mut segment = SegmentDraft::new(Start::Session, walk.speaker.format, 1);
    for (index, entry) in entries.iter().enumerate() {
        let last = index.checked_sub(1);
        if entry.parent != last && walk.leaves_messages(entry.parent) {
            walk.close(&mut segment, Start::Branch, entry.line, draft);
        }
        if entry.parent != last {
            walk.go_to(entry.parent);
        }
        if entry.is("compaction") {
            walk.close(&mut segment, Start::Compaction, entry.line, draft);
            walk.go_to(Some(index));
            walk.sent = time(entry.value.get("timestamp"));
        } else {
            walk.step(index);
        }
    }
    walk.close(&mut segment, Start::Session, 0, draft);
}

/// One line of the file.
struct Entry<'a> {
    line: usize,
    value: Value<'a>,
    /// The entry before it on its way.
    parent: Option<usize>,
}

impl<'a> Entry<'a> {
    fn is(&self, kind: &str) -> bool {
        self.value.has("type", kind)
    }

    fn message(&self) -> Option<Value<'a>> {
        self.value.get("message").filter(|_| self.is("message"))
    }

    /// Returns the model's answer, where this is one.
    fn answer(&self) -> Option<Value<'a>> {
        self.message().filter(|message| message.has("role", "assistant"))
    }
}

fn entries<'a>(source: &'a Source<'_>, draft: &mut Draft) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (line, value) in source.values() {
        if !value.get("type").is_some_and(Value::is_string) {
            draft.problem(line, "expected an entry with a `type`");
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
        entries.push(Entry { line, value, parent });
    }
    entries
}

/// The model that answered most often; what others thought is text to it.
struct Speaker {
    format: Format,
    model: Option<String>,
}

impl Speaker {
    fn most_heard(entries: &[Entry<'_>]) -> Speaker {
        let mut heard: Vec<(String, Format, usize)> = Vec::new();
        for answer in entries.iter().filter_map(Entry::answer).filter(|answer| !broke_off(*answer)) {
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
        Speaker { format, model: same.max_by_key(|(_, _, times)| *times).map(|(model, _, _)| model) }
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
    answer.has("stopReason", "error") || answer.has("stopReason", "aborted")
}

/// The way through the entries so far.
struct Walk<'e, 'a> {
    entries: &'e [Entry<'a>],
    speaker: Speaker,
    /// The entries that a request carries, in order; the last compaction comes first.
    path: Vec<usize>,
    /// What they say.
    said: Vec<Said>,
    /// Calls without a result.
    open: Vec<String>,
    asked: Vec<Asked>,
    /// When the last entry that goes into a request was written.
    sent: Option<Millis>,
}

impl<'e, 'a> Walk<'e, 'a> {
    fn new(entries: &'e [Entry<'a>], speaker: Speaker) -> Walk<'e, 'a> {
        let (path, said, open, asked) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Walk { entries, speaker, path, said, open, asked, sent: None }
    }

    /// Returns what a request carries at an entry: from the last compaction on, with what that kept.
    fn path_to(&self, leaf: Option<usize>) -> Vec<usize> {
        let entry_at = |index: usize| self.entries.get(index);
        let parent_of =
            |index: &usize| entry_at(*index).and_then(|entry| entry.parent).filter(|parent| parent < index);
        let mut way: Vec<usize> = std::iter::successors(leaf, parent_of).collect();
        way.reverse();
        let is_compaction = |index: &usize| entry_at(*index).is_some_and(|entry| entry.is("compaction"));
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
            return self.entries.iter().position(|entry| entry.value.has("id", &id));
        }
        usize::try_from(compaction.get("firstKeptEntryIndex")?.number()?).ok()
    }

    /// Tells whether going on from an entry leaves messages behind.
    fn leaves_messages(&self, parent: Option<usize>) -> bool {
        let next: HashSet<usize> = self.path_to(parent).into_iter().collect();
        let left = self.path.iter().filter(|index| !next.contains(index));
        left.filter_map(|index| self.entries.get(*index)).any(|entry| entry.message().is_some())
    }

    /// Takes one more entry.
    fn step(&mut self, index: usize) {
        let Some(entry) = self.entries.get(index) else { return };
        let Some(answer) = entry.answer() else {
            if entry.message().is_some() || entry.is("custom_message") || entry.is("branch_summary") {
                self.sent = time(entry.value.get("timestamp")).or(self.sent);
            }
            self.tell(index);
            return;
        };
        let usage = usage(answer.get("usage"));
        // An answer without usage that broke off never reached the model, as far as the file tells.
        if !broke_off(answer) || usage.is_some() {
            self.answer_open_calls();
            let said = self.said.len();
            // pi stamps an answer when it sends the request, and the line when the answer is complete.
            let at = time(answer.get("timestamp")).or(self.sent);
            let model = answer.owned("model");
            self.asked.push(Asked { said, at, model, usage });
        }
        self.tell(index);
    }

    /// Adds an entry to what the next request carries.
    fn tell(&mut self, index: usize) {
        self.path.push(index);
        let Some(next) = self.entries.get(index).and_then(|entry| say(entry, &self.speaker)) else { return };
        if let Said::Results(results) = next {
            self.open.retain(|call| !results.iter().any(|result| result.call == *call));
            results.into_iter().for_each(|result| add_result(&mut self.said, result));
            return;
        }
        self.answer_open_calls();
        if let Said::Assistant(pieces) = &next {
            self.open.extend(pieces.iter().filter_map(|piece| match piece {
                Piece::Call { id, .. } => Some(id.clone()),
                _ => None,
            }));
        }
        self.said.push(next);
    }

    fn answer_open_calls(&mut self) {
        for call in self.open.drain(..) {
            let result = Answered { call, failed: true, pieces: vec![Piece::words(NO_RESULT)] };
            add_result(&mut self.said, result);
        }
    }

    /// Goes on from an entry.
    fn go_to(&mut self, leaf: Option<usize>) {
        let path = self.path_to(leaf);
        self.path.clear();
        self.said.clear();
        self.open.clear();
        path.into_iter().for_each(|index| self.tell(index));
    }

    /// Closes a segment; the next one begins with `start`.
    fn close(&mut self, segment: &mut SegmentDraft, start: Start, line: usize, draft: &mut Draft) {
        let mut ended = segment.next(start, line);
        fill(&mut ended, &self.said, std::mem::take(&mut self.asked));
        draft.push(ended);
    }
}

/// Reads the usage as pi keeps it: the kinds do not overlap. All zero is no report.
fn usage(value: Option<Value<'_>>) -> Option<Usage> {
    let value = value?;
    let figure = |key| number(value, &[key]).unwrap_or_default();
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
