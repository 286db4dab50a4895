//! Reads which lines of a file a tool's output shows. Takes the output and what the call asked for; gives line
//! numbers and texts. Never takes a notice for a line: where an output is cut or goes on in other words, it stops.

use super::{
    operation::{FileAction, FileEnd, FileOperation, ShownLines},
    patch::{HunkLine, HunkPlace, unified_diff},
};
use crate::terminal::split_line_number;

/// From this many characters on a line of a numbered view may have been cut (Claude Code cuts there).
const CUT_CHARACTERS: usize = 2000;

/// From this many characters on a search hit may have been cut (Claude Code's limit of columns).
const CUT_HIT_CHARACTERS: usize = 500;

/// How many lines Claude Code shows where no number is asked for.
const WHOLE_LINES: usize = 2000;

/// How much of a file a call asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ReadExtent {
    /// All of it.
    Whole,
    /// A part of it.
    Part,
}

/// What stands between a line's number and its text. Where two fit equally many lines, the earlier one holds: a
/// blank that follows every single number belongs to the form.
const SEPARATORS: &[&str] = &["→", "\t", " | ", "| ", "|", ": ", ":", ". ", "  "];

/// Beginnings of lines from which on an output no longer shows the file.
const NOTICES: &[&str] = &[
    "<system-reminder>", "<response clipped>", "<NOTE>", "<persisted-output>", "[Showing lines ",
    "[Truncated", "[Output truncated", "[Content truncated", "(Output truncated", "(Open file: ", "... [",
    "[... ", "...[", "... (", "(End of file - ", "(File has more lines", "</content>",
];

/// Words by which an output says inside a line that it was cut there.
const CUTS: &[&str] =
    &["tokens truncated…", "chars truncated…", "lines truncated]", "characters truncated]", "[truncated]"];

/// Reads an output in which every line bears its number, in any of the forms agents use.
pub(crate) fn shown_numbered(text: &str, asked: ReadExtent) -> ShownLines {
    if text.contains("<system-reminder>Warning: the file exists but the contents are empty") {
        return ShownLines { lines: vec![(1, String::new())], total: Some((1, FileEnd::Exact)) };
    }
    let header = text.lines().find_map(window_total);
    let forms = SEPARATORS.iter().filter(|separator| header.is_none() || **separator != ": ");
    let views = forms.map(|separator| (*separator, parse_view(text, separator)));
    // The first of equals: `max_by_key` would give the last.
    let best = views.reduce(|best, next| if next.1.lines.len() > best.1.lines.len() { next } else { best });
    let Some((separator, view)) = best.filter(|(_, view)| !view.lines.is_empty() && !view.skips_empty_lines)
    else {
        return ShownLines::default();
    };
    let last = view.lines.last().map_or(0, |(number, _)| *number);
    let whole = asked == ReadExtent::Whole && view.to_the_end && last < WHOLE_LINES;
    let numbers_final_break = separator == "→" && view.lines.last().is_some_and(|(_, text)| text.is_empty());
    let end = if numbers_final_break { FileEnd::Exact } else { FileEnd::LineBreak };
    let total = header.map(|total| (total, FileEnd::LineBreak)).or(whole.then_some((last, end)));
    let lines = view.lines.into_iter().filter(|(_, text)| !is_cut(text, CUT_CHARACTERS));
    ShownLines { lines: lines.map(|(number, text)| (number, text.to_owned())).collect(), total }
}

struct ShownView<'a> {
    lines: Vec<(usize, &'a str)>,
    /// Whether nothing but a reminder follows the last line.
    to_the_end: bool,
    /// Whether the numbers leave empty lines out, so that they are no line numbers (`nl` without `-ba`).
    skips_empty_lines: bool,
}

fn parse_view<'a>(text: &'a str, separator: &str) -> ShownView<'a> {
    let mut view = ShownView { lines: Vec::new(), to_the_end: true, skips_empty_lines: false };
    let mut between = LineGap::Nothing;
    for line in text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)) {
        if line.trim_start().starts_with("<system-reminder>") {
            break;
        }
        let Some((number, text)) = number_and_text(line, separator) else {
            between = match between {
                _ if view.lines.is_empty() => LineGap::Nothing,
                LineGap::Nothing if line.trim().is_empty() => LineGap::EmptyLine,
                LineGap::Nothing | LineGap::EmptyLine | LineGap::Words if line.trim().is_empty() => between,
                LineGap::Nothing | LineGap::EmptyLine | LineGap::Words => LineGap::Words,
            };
            continue;
        };
        let last = view.lines.last().map(|(number, _)| *number);
        let goes_on = last.is_none_or(|last| match between {
            LineGap::Nothing => number > last,
            LineGap::EmptyLine | LineGap::Words => number == last + 1,
        });
        if !goes_on {
            view.to_the_end = false;
            break;
        }
        view.skips_empty_lines |= between == LineGap::EmptyLine;
        between = LineGap::Nothing;
        view.lines.push((number, text));
    }
    view.to_the_end &=
        between != LineGap::Words && view.lines.first().is_some_and(|(number, _)| *number == 1);
    view
}

/// What stands between two numbered lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineGap {
    Nothing,
    EmptyLine,
    Words,
}

fn number_and_text<'a>(line: &'a str, separator: &str) -> Option<(usize, &'a str)> {
    let (number, rest) = split_line_number(line)?;
    let number = number.parse().ok().filter(|number| *number > 0)?;
    match rest.strip_prefix(separator) {
        Some(text) => Some((number, text)),
        // Output that was trimmed lost the blank after the number of an empty line.
        None => (separator.ends_with(' ') && rest == separator.trim_end()).then_some((number, "")),
    }
}

/// Reads SWE-agent's `[File: a.py (94 lines total)]`.
fn window_total(line: &str) -> Option<usize> {
    let (_, rest) = line.strip_prefix("[File: ")?.rsplit_once('(')?;
    rest.strip_suffix(" lines total)]")?.parse().ok()
}

fn is_cut(text: &str, limit: usize) -> bool {
    (text.len() >= limit && text.chars().count() >= limit) || CUTS.iter().any(|cut| text.contains(cut))
}

/// Reads an output that shows lines as they are, from a known first line on.
///
/// A tool that trims blank lines at the beginning of its output moves the rest: such an output must be passed only
/// where it has as many lines as were asked for.
pub(crate) fn shown_plain(text: &str, first: usize, asked: ReadExtent) -> ShownLines {
    let text = command_output(text);
    let (text, first, total) = match truncated_file(text) {
        Some((content, first, count)) => (content, first, Some((count, FileEnd::LineBreak))),
        None => (text, first, None),
    };
    let mut lines = Vec::new();
    let mut whole = true;
    let broken = text.strip_suffix('\n');
    let rows = broken.unwrap_or(text).split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    for (number, line) in (first..).zip(rows) {
        if is_notice(line.trim_start()) {
            whole = false;
            // The blank line above a notice belongs to the notice.
            if lines.last().is_some_and(|(_, text): &(usize, String)| text.is_empty()) {
                lines.pop();
            }
            break;
        }
        if CUTS.iter().any(|cut| line.contains(cut)) {
            whole = false;
            // Gemini's mark ends a single line that is too long; other marks stand for any number of lines.
            if line.ends_with("... [truncated]") {
                continue;
            }
            break;
        }
        lines.push((number, line.to_owned()));
    }
    if text.is_empty() {
        return ShownLines { lines: Vec::new(), total: None };
    }
    let end = if broken.is_some() { FileEnd::LineBreak } else { FileEnd::EmptyLines };
    let count = lines.last().map_or(0, |(number, _)| *number);
    let total = total.or((whole && asked == ReadExtent::Whole && first == 1).then_some((count, end)));
    ShownLines { lines, total }
}

/// Tells a line in which a tool speaks of what it shows.
fn is_notice(line: &str) -> bool {
    let counts = |rest: &str| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && rest.get(digits..).is_some_and(|rest| rest.starts_with(" more lines "))
    };
    NOTICES.iter().any(|notice| line.starts_with(notice)) || line.strip_prefix('[').is_some_and(counts)
}

/// Leaves out the head that codex puts before a command's output.
fn command_output(text: &str) -> &str {
    let heads = ["Chunk ID:", "Exit code:", "Wall time:"];
    if !heads.iter().any(|head| text.starts_with(head)) {
        return text;
    }
    let output = text.split_once("\nOutput:\n").map_or(text, |(_, output)| output);
    if !output.starts_with("Warning: truncated output") && !output.starts_with("Total output lines: ") {
        return output;
    }
    output.split_once("\n\n").map_or("", |(_, output)| output)
}

/// Reads Gemini CLI's head of a file of which it shows a part: the text, its first line, the file's lines.
fn truncated_file(text: &str) -> Option<(&str, usize, usize)> {
    let head = text.trim_start().strip_prefix("IMPORTANT: The file content has been truncated.")?;
    let (head, content) = head.split_once("--- FILE CONTENT (truncated) ---\n")?;
    let (_, status) = head.split_once("Status: Showing lines ")?;
    let (first, status) = status.split_once('-')?;
    let (_, status) = status.split_once(" of ")?;
    let total = status.split(' ').next()?.parse().ok()?;
    Some((content, first.parse().ok()?, total))
}

/// Reads the last lines of a file, where it is known how many lines it has.
pub(crate) fn shown_tail(text: &str, line_count: Option<usize>) -> ShownLines {
    let text = command_output(text);
    let text = text.strip_suffix('\n').unwrap_or(text);
    let shown = text.split('\n').count();
    match line_count.and_then(|count| (count + 1).checked_sub(shown)) {
        Some(first) if first > 0 && !text.is_empty() => {
            ShownLines { total: None, ..shown_plain(text, first, ReadExtent::Part) }
        }
        Some(_) | None => ShownLines::default(),
    }
}

/// Reads the hits of a search with line numbers (`grep -n`, `rg -n`, Gemini CLI): lines per file, in order of
/// appearance. `path` is the file that was searched, where it was one.
pub(crate) fn shown_hits(text: &str, path: Option<&str>) -> Vec<(String, ShownLines)> {
    let text = command_output(text);
    let mut hits: Vec<(String, ShownLines)> = Vec::new();
    let mut heading: Option<&str> = None;
    let named: Vec<&str> = text.lines().filter_map(|line| named_hit(line).map(|(path, ..)| path)).collect();
    for line in text.lines() {
        if is_notice(line) {
            break;
        }
        if let Some(file) = line.strip_prefix("File: ") {
            heading = Some(file);
            continue;
        }
        let found = match (path, heading) {
            (Some(path), _) => bare_hit(line).map(|(number, text)| (path, number, text)),
            (None, Some(file)) => gemini_hit(line).map(|(number, text)| (file, number, text)),
            (None, None) => named_hit(line).or_else(|| named_context(line, &named)),
        };
        let Some((file, number, text)) = found.filter(|(.., text)| !is_cut(text, CUT_HIT_CHARACTERS)) else {
            continue;
        };
        let text = text.strip_suffix('\r').unwrap_or(text).to_owned();
        match hits.iter_mut().find(|(known, _)| known == file) {
            Some((_, shown)) => shown.lines.push((number, text)),
            None => hits.push((file.to_owned(), ShownLines { lines: vec![(number, text)], total: None })),
        }
    }
    for (_, shown) in &mut hits {
        shown.lines.sort();
        shown.lines.dedup_by_key(|(number, _)| *number);
    }
    hits
}

/// Reads `path:12:text`.
fn named_hit(line: &str) -> Option<(&str, usize, &str)> {
    let mut from = 0;
    while let Some(at) = line.get(from..)?.find(':').map(|at| from + at) {
        let (path, rest) = (line.get(..at)?, line.get(at + 1..)?);
        if let Some((number, text)) = split_at_mark(rest, ':')
            && !path.is_empty()
        {
            return Some((path, number, text));
        }
        // Only a drive letter may precede the colon that ends a path.
        if at != 1 {
            return None;
        }
        from = at + 1;
    }
    None
}

/// Reads `path-12-text` of a file that has hits.
fn named_context<'a>(line: &'a str, named: &[&'a str]) -> Option<(&'a str, usize, &'a str)> {
    named.iter().find_map(|path| {
        let (number, text) = split_at_mark(line.strip_prefix(path)?.strip_prefix('-')?, '-')?;
        Some((*path, number, shown_verbatim(text)?))
    })
}

/// Reads `12:text` or `12-text`.
fn bare_hit(line: &str) -> Option<(usize, &str)> {
    let context =
        || split_at_mark(line, '-').and_then(|(number, text)| Some((number, shown_verbatim(text)?)));
    split_at_mark(line, ':').or_else(context)
}

/// Claude Code takes the text before the first colon of a context line for a path and tidies it, so that `//` is
/// shown as `/`: such a line is not shown as it is.
fn shown_verbatim(text: &str) -> Option<&str> {
    let tidied = text.split_once(':').is_some_and(|(path, _)| path.contains(['/', '\\']));
    (!tidied).then_some(text)
}

/// Reads `L12: text` or `L12- text`.
fn gemini_hit(line: &str) -> Option<(usize, &str)> {
    let (number, text) = bare_hit(line.strip_prefix('L')?)?;
    Some((number, text.strip_prefix(' ').unwrap_or(text)))
}

fn split_at_mark(text: &str, mark: char) -> Option<(usize, &str)> {
    let (number, text) = text.split_once(mark)?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| number.parse().ok())??;
    (number > 0).then_some((number, text))
}

/// Reads the lines that a unified diff shows of the files as they are after it.
pub(crate) fn shown_diff(text: &str) -> Vec<(String, ShownLines)> {
    let shown = |operation: FileOperation| match operation.action {
        FileAction::Patch(hunks) => {
            let mut grown: isize = 0;
            let mut lines = Vec::new();
            for hunk in &hunks {
                let HunkPlace::Line(start) = hunk.place else { continue };
                let first = start.saturating_add_signed(grown);
                lines.extend((first..).zip(hunk.new_lines().into_iter().map(str::to_owned)));
                let added = hunk.lines.iter().filter(|line| matches!(line, HunkLine::Add(_))).count();
                let removed = hunk.lines.iter().filter(|line| matches!(line, HunkLine::Remove(_))).count();
                grown = grown.saturating_add_unsigned(added).saturating_sub_unsigned(removed);
            }
            Some((operation.path, ShownLines { lines, total: None }))
        }
        FileAction::Write { content } => Some((operation.path, shown_plain(&content, 1, ReadExtent::Whole))),
        FileAction::Read(_)
        | FileAction::Missing
        | FileAction::Append { .. }
        | FileAction::Replace(_)
        | FileAction::Insert { .. }
        | FileAction::ReplaceLines { .. }
        | FileAction::Delete
        | FileAction::Rename { .. }
        | FileAction::Changed => None,
    };
    unified_diff(text).into_iter().filter_map(shown).collect()
}
