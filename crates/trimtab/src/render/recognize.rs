//! Tells notes from content: ours, and the placeholders of other tools. Takes a text; gives yes or no. Never looks for a note
//! in the middle of a text: there it may be a quotation.

/// What a closing note says before its handle.
const RECALL: &str = "trimtab recall ";

/// Tells whether a text is one of our notes and nothing else.
#[cfg(test)]
pub(crate) fn is_note(text: &str) -> bool {
    let text = text.trim();
    let gap = text.starts_with("[… ") && text.ends_with(" …]");
    !text.contains('\n') && (gap || is_closing(text))
}

/// Tells whether a text was shortened by us: its last line, or a JSON string in it, is a closing note.
pub(crate) fn holds_note(text: &str) -> bool {
    let last = text.trim_end().rsplit('\n').next().unwrap_or_default();
    is_closing(last)
        || text
            .match_indices(RECALL)
            .any(|(at, _)| ends_string(text.get(at + RECALL.len()..).unwrap_or_default()))
}

fn is_closing(line: &str) -> bool {
    let Some((sentence, end)) = line.rsplit_once(RECALL) else { return false };
    sentence.starts_with('[') && end.strip_suffix(']').is_some_and(is_handle)
}

/// Tells whether a handle, the bracket and the quote that ends a JSON string follow.
fn ends_string(rest: &str) -> bool {
    let handle = rest.get(..12).is_some_and(is_handle);
    handle && rest.get(12..).is_some_and(|rest| rest.starts_with("]\"") || rest.starts_with("]\\\""))
}

/// Returns the beginning of the hash of what a text points at, where it is a note that says that the same is shown elsewhere.
pub(crate) fn points_at(text: &str) -> Option<[u8; 6]> {
    let last = text.trim_end().rsplit('\n').next().filter(|last| is_closing(last))?;
    let (sentence, end) = last.rsplit_once(RECALL)?;
    let same = sentence.starts_with("[Same as at step ") || sentence.contains(", shown there");
    hash_of(if same { end } else { shown_at(sentence)? })
}

/// Returns the handle of what a note says its lines are shown by.
fn shown_at(sentence: &str) -> Option<&str> {
    let starts = sentence.strip_prefix("[Shown at step ");
    let rest = starts.or_else(|| sentence.rsplit_once(": shown at step ").map(|(_, rest)| rest))?;
    let (_, handle) = rest.split_once(" (")?;
    handle.get(..12).filter(|word| is_handle(word))
}

/// Returns the beginning of the hash that a handle is made of.
pub(crate) fn hash_of(handle: &str) -> Option<[u8; 6]> {
    let mut hash = [0; 6];
    for (index, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(handle.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(hash)
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
pub(crate) fn is_foreign_placeholder(text: &str) -> bool {
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
