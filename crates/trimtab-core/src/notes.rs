//! Tells notes from content: ours, and the placeholders of other tools. Takes a text; gives yes or no. Never looks for a note
//! in the middle of a text: there it may be a quotation.

/// The name of the member that holds the note of a shortened JSON object.
pub(crate) const NOTE_MEMBER: &str = "[trimtab]";

/// What stands in the place of a result that never came.
pub(crate) const NO_RESULT: &str = "[No result: the call was never answered.]";

/// What precedes a handle in a note that promises no recall.
pub(crate) const HANDLE: &str = "handle ";

/// What precedes a conversation that begins with the model's words.
pub(crate) const BEGINNING: &str = "[The beginning of this conversation is not there.]";

/// Why something is hidden to make room.
pub(crate) const TO_FIT: &str = "to fit the context window";

/// What the clause that names a recall says, whatever program it names: notes of a session outlive the program's place.
const RECALL: &str = "recall ";

/// What a note says before its reason.
const BEFORE_REASON: [&str; 3] = [", hidden: ", ", shortened: ", " of this argument are hidden: "];

/// What reasons begin with.
const REASONS: [&str; 11] = [
    "too old",
    "superseded by step ",
    "same as at step ",
    "shown at step ",
    TO_FIT,
    "too long",
    "stale since the edit at step ",
    "read often, shown at steps ",
    "one of ",
    "in the summary of steps 1-",
    "rule ",
];

/// What the reasons begin with for which something is hidden after it was sent whole, or might have been.
const LATER_REASONS: [&str; 4] = ["too old", "superseded by step ", TO_FIT, "stale since the edit at step "];

/// Tells whether a text is one of our notes and nothing else.
#[cfg(test)]
pub(crate) fn is_note(text: &str) -> bool {
    let text = text.trim();
    let gap = text.starts_with("[… ") && text.ends_with(" …]");
    !text.contains('\n') && (gap || is_closing(text))
}

/// Tells whether a text was shortened by us: its last line, or a JSON string in it, is a closing note.
pub fn holds_note(text: &str) -> bool {
    is_closing(last_line(text)) || ends_string_with_handle(text) || ends_string_with_reason(text)
}

/// Tells whether a text of ours tells a series.
pub(crate) fn tells_series(text: &str) -> bool {
    text.match_indices(" changes of ").any(|(at, _)| {
        let count = text.get(..at).and_then(|before| before.rsplit_once('[')).map(|(_, count)| count);
        count.is_some_and(|count| !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// Tells whether a text ends with a note that made room in the window: it says so, or it tells a series of edits.
pub(crate) fn makes_room(text: &str) -> bool {
    let last = last_line(text);
    let of_series = || last.starts_with("[one of the ") || tells_series(last);
    is_closing(last) && (last.contains(TO_FIT) || of_series())
}

/// Tells whether a text was hidden by us when it was no longer new: its closing note says so, or a note in one of its JSON strings.
pub(crate) fn was_hidden_later(text: &str) -> bool {
    let is_later = |note: &str| {
        let is_later = |reason: &str| LATER_REASONS.iter().any(|start| reason.starts_with(start));
        BEFORE_REASON.iter().any(|mark| {
            let reasons =
                memchr::memmem::find_iter(note.as_bytes(), mark).filter_map(|at| note.get(at + mark.len()..));
            reasons.into_iter().any(is_later)
        })
    };
    let last = last_line(text);
    (is_closing(last) && is_later(last)) || (!is_closing(last) && is_later(text) && holds_note(text))
}

/// Returns the path of the file whose content was hidden, as the closing note of a text names it.
pub(crate) fn file_in_note(text: &str) -> Option<&str> {
    let line = Some(last_line(text)).filter(|line| is_closing(line))?;
    let rest = line.strip_prefix("[Read ")?;
    let (file, _) =
        [" again if you need it: ", " again for the rest: "].iter().find_map(|mark| rest.split_once(mark))?;
    let is_range = |range: &str| range.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let path =
        file.rsplit_once(" lines ").filter(|(_, range)| is_range(range)).map_or(file, |(path, _)| path);
    (!path.ends_with('…')).then_some(path)
}

fn last_line(text: &str) -> &str {
    text.trim_end().rsplit('\n').next().unwrap_or_default()
}

fn is_closing(line: &str) -> bool {
    let inside = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
    inside.is_some_and(|note| is_named(note) || is_reasoned(note))
}

/// Tells whether a note ends with the clause of a handle.
fn is_named(note: &str) -> bool {
    last_clause(note).and_then(handle_in_clause).is_some()
}

/// Tells whether a note says why something is hidden, without the promise of a recall.
fn is_reasoned(note: &str) -> bool {
    let after = |mark: &&str| note.rsplit_once(*mark).map(|(_, reason)| reason);
    let plain = note.starts_with("Tool output pruned - ");
    plain || shown_at(note).is_some() || BEFORE_REASON.iter().filter_map(after).any(is_reason)
}

fn is_reason(text: &str) -> bool {
    REASONS.iter().any(|start| text.starts_with(start))
}

/// Tells whether a JSON string ends with a note that names a handle.
fn ends_string_with_handle(text: &str) -> bool {
    let ends = memchr::memchr_iter(b']', text.as_bytes()).filter_map(|end| text.split_at_checked(end));
    let notes = ends.filter(|(_, behind)| ends_string(behind)).map(|(before, _)| before);
    notes.filter(|before| before.get(before.len().saturating_sub(12)..).is_some_and(is_handle)).any(
        |before| {
            let near = before.ceil_char_boundary(before.len().saturating_sub(LONGEST_NOTE));
            before.get(near..).is_some_and(is_named)
        },
    )
}

/// Tells whether a JSON string ends with a note that names no handle.
fn ends_string_with_reason(text: &str) -> bool {
    BEFORE_REASON.iter().chain(&["[Shown at step "]).any(|mark| {
        memchr::memmem::find_iter(text.as_bytes(), mark).any(|at| {
            let Some(behind) = text.get(at + mark.len()..) else { return false };
            let note = behind.get(..behind.floor_char_boundary(LONGEST_NOTE)).unwrap_or_default();
            let known = is_reason(note) || (mark.starts_with('[') && pointed_handle(note).is_some());
            known && note.match_indices(']').any(|(end, _)| note.get(end..).is_some_and(ends_string))
        })
    })
}

/// Tells whether a bracket and the quote that ends a JSON string follow.
fn ends_string(behind: &str) -> bool {
    behind.starts_with("]\"") || behind.starts_with("]\\\"")
}

/// How long a note in a JSON string may be, in bytes: the fields of notes are bounded.
const LONGEST_NOTE: usize = 2_000;

/// Returns what a note says after its last separator.
fn last_clause(note: &str) -> Option<&str> {
    let clause = note.rsplit_once("; ").or_else(|| note.rsplit_once(" - "));
    clause.map(|(_, clause)| clause)
}

/// Returns the handle that a clause names, with the command that recalls it or without.
pub(crate) fn handle_in_clause(clause: &str) -> Option<&str> {
    let (before, handle) = clause.rsplit_once(' ')?;
    let names = clause.starts_with(HANDLE) || format!("{before} ").contains(RECALL);
    (names && is_handle(handle)).then_some(handle)
}

/// Returns the beginning of the hash of what a text points at, where it is a note that says that the same is shown elsewhere.
pub fn points_at(text: &str) -> Option<[u8; 6]> {
    let last = last_line(text);
    let note = last.strip_prefix('[').and_then(|last| last.strip_suffix(']')).filter(|_| is_closing(last))?;
    let same = note.starts_with("Same as at step ") || note.contains(", shown there");
    let named = || last_clause(note).and_then(handle_in_clause);
    hash_of(if same { named()? } else { shown_at(note)? })
}

/// Returns the handle of what a note says its lines are shown by.
fn shown_at(sentence: &str) -> Option<&str> {
    let starts = sentence.strip_prefix("Shown at step ");
    let rest = starts.or_else(|| sentence.rsplit_once(": shown at step ").map(|(_, rest)| rest))?;
    pointed_handle(rest)
}

/// Returns the handle in brackets after the step of a pointer.
fn pointed_handle(rest: &str) -> Option<&str> {
    let (step, handle) = rest.split_once(" (")?;
    let is_step = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
    handle.get(..12).filter(|word| is_step && is_handle(word))
}

/// Returns the beginning of the hash that a handle is made of.
pub fn hash_of(handle: &str) -> Option<[u8; 6]> {
    let mut hash = [0; 6];
    for (index, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(handle.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(hash)
}

/// Returns the beginning of the hash that a word stands for, where the word is a handle.
pub(crate) fn hash_of_handle(word: &str) -> Option<[u8; 6]> {
    if is_handle(word) { hash_of(word) } else { None }
}

fn is_handle(word: &str) -> bool {
    word.len() == 12 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The longest placeholder of another tool, in bytes: some carry a preview of 2 KB.
const LONGEST: usize = 4_000;

/// What placeholders of other tools begin with.
const BEGINNINGS: &[&str] = &[
    "[Old tool result content cleared",
    "[Old tool output ",
    "[old tool output ",
    "[output pruned",
    "[Output pruned",
    "[Tool output pruned",
    "[Tool output truncated",
    "[tool result cleared",
    "[Tool result cleared",
    "[cleared]",
    "[Re-read of ",
    "[Pruned ",
    "[Content truncated",
    "[content truncated",
    "[Output removed to save context",
    "[output removed to save context",
    "[Input removed to save context",
    "[input removed due to failed tool call",
    "[questions removed - see output",
    "[[NOTE] This file read has been removed to save space",
    "[Previous ",
    "[File: ",
    "Old environment output: (",
    "<persisted-output>",
    "<<ccr:",
    "[ccr:",
    "[Cancelled by user]",
    "[Image removed",
    "[image removed",
];

/// What other tools' placeholders end with, where their beginning is the content's.
const ENDS: &[&str] = &["Retrieve more: hash=", "Retrieve original: hash="];

/// Tells whether a text is what another tool left in place of content; such a text is left alone.
pub fn is_foreign_placeholder(text: &str) -> bool {
    let text = text.trim();
    if text.len() <= LONGEST && BEGINNINGS.iter().any(|start| text.starts_with(start)) {
        // `[File: …` and `[Previous …` also begin ordinary lines: then the bracket closes before the text ends.
        let loose =
            text.starts_with("[File: ") || text.starts_with("[Previous ") || text.starts_with("[Pruned ");
        return !loose || text.ends_with(']');
    }
    let last = text.rsplit('\n').next().unwrap_or_default();
    last.len() < 300 && ENDS.iter().any(|end| last.contains(end))
}
