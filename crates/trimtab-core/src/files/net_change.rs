//! What several changes of one file come to. Takes the file's state before and after them; gives the lines of a unified
//! diff, for the note that stands for a long series of edits. Never guesses: where a changed line may be one that nobody
//! has shown, there is no diff.

use super::{
    line_maker::longest_common,
    operation::{FileAction, Replacement},
    patch::HunkLine,
    state::FileState,
};

/// Unchanged lines around a change, as few as tell where it is.
const CONTEXT_LINES: usize = 2;

/// Up to this many pairs of lines are compared (a moment's work).
const MAX_COMPARED: usize = 1 << 18;

/// The difference between two states of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetChange {
    /// How many lines were added.
    pub(crate) added: usize,
    /// How many lines were removed.
    pub(crate) removed: usize,
    /// The lines of the diff, with a head before each hunk.
    pub(crate) diff: Vec<String>,
    /// Whether every line of the file is known before and after.
    pub(crate) is_whole: bool,
}

/// Compares two states of a file; nothing where a line that differs is unknown, or too much differs.
pub(crate) fn net_change(before: &FileState, after: &FileState) -> Option<NetChange> {
    let (old, new) = (lines_of(before), lines_of(after));
    let most = old.len().min(new.len());
    let head = (0..most).take_while(|at| old.get(*at) == new.get(*at)).count();
    let same_from_end = |back: &usize| old.get(old.len() - back) == new.get(new.len() - back);
    let tail = (1..=most - head).take_while(same_from_end).count();
    let (rows, columns) = (old.len() - head - tail, new.len() - head - tail);
    // What follows an end that is open may be what seems to be gone.
    let is_open = before.is_open() || after.is_open();
    if rows * columns > MAX_COMPARED || (is_open && tail == 0 && rows + columns > 0) {
        return None;
    }
    let pairs = longest_common(rows, columns, |row, column| old.get(head + row) == new.get(head + column));
    let mut lines: Vec<DiffLine<'_>> = old.iter().take(head).map(|line| DiffLine::Same(*line)).collect();
    let mut row = 0;
    // Removed lines come before those added in their place.
    let mut added: Vec<DiffLine<'_>> = Vec::new();
    for (column, pair) in pairs.into_iter().enumerate() {
        let line = new.get(head + column).copied().flatten();
        let Some(found) = pair else {
            added.push(DiffLine::Added(line?));
            continue;
        };
        for removed in old.get(head + row..head + found)? {
            lines.push(DiffLine::Removed((*removed)?));
        }
        lines.append(&mut added);
        lines.push(DiffLine::Same(line));
        row = found + 1;
    }
    for removed in old.get(head + row..head + rows)? {
        lines.push(DiffLine::Removed((*removed)?));
    }
    lines.append(&mut added);
    lines.extend(old.iter().skip(head + rows).map(|line| DiffLine::Same(*line)));
    let count = |wanted: fn(&DiffLine<'_>) -> bool| lines.iter().filter(|line| wanted(line)).count();
    Some(NetChange {
        added: count(|line| matches!(line, DiffLine::Added(_))),
        removed: count(|line| matches!(line, DiffLine::Removed(_))),
        diff: unified_diff(&lines),
        is_whole: before.text().is_some() && after.text().is_some(),
    })
}

/// Counts the lines that an action adds and removes, as far as its call tells; nothing where it does not.
pub(crate) fn lines_changed(action: &FileAction) -> Option<(usize, usize)> {
    match action {
        FileAction::Replace(replacements) => Some(
            replacements
                .iter()
                .map(changed_line_counts)
                .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1)),
        ),
        FileAction::Patch(hunks) => {
            let lines = || hunks.iter().flat_map(|hunk| &hunk.lines);
            let added = lines().filter(|line| matches!(line, HunkLine::Add(_))).count();
            Some((added, lines().filter(|line| matches!(line, HunkLine::Remove(_))).count()))
        }
        FileAction::Insert { text, .. } => Some((text.lines().count(), 0)),
        FileAction::ReplaceLines { first, last, text } => {
            let added = text.as_ref().map_or(0, |text| text.lines().count());
            Some((added, (last + 1).saturating_sub(*first)))
        }
        FileAction::Append { content } => Some((content.lines().count(), 0)),
        FileAction::Read(_)
        | FileAction::Missing
        | FileAction::Write { .. }
        | FileAction::Delete
        | FileAction::Rename { .. }
        | FileAction::Changed => None,
    }
}

fn changed_line_counts(replacement: &Replacement) -> (usize, usize) {
    let old: Vec<&str> = replacement.old.lines().collect();
    let new: Vec<&str> = replacement.new.lines().collect();
    let most = old.len().min(new.len());
    let head = (0..most).take_while(|at| old.get(*at) == new.get(*at)).count();
    let same_from_end = |back: &usize| old.get(old.len() - back) == new.get(new.len() - back);
    let same = head + (1..=most - head).take_while(same_from_end).count();
    (new.len() - same, old.len() - same)
}

enum DiffLine<'a> {
    /// A line that stays; nothing where it is unknown.
    Same(Option<&'a str>),
    Removed(&'a str),
    Added(&'a str),
}

/// Returns the lines, the unknown ones as nothing, without the empty text after the last line break.
fn lines_of(state: &FileState) -> Vec<Option<&str>> {
    let mut lines: Vec<Option<&str>> =
        state.lines.iter().map(|line| line.map(|line| line.text.as_ref())).collect();
    if !state.is_open() && lines.last() == Some(&Some("")) {
        lines.pop();
    }
    lines
}

/// Writes the changed lines with a few around them, and a head before each run of them.
fn unified_diff(lines: &[DiffLine<'_>]) -> Vec<String> {
    let changed = |line: &DiffLine<'_>| !matches!(line, DiffLine::Same(_));
    // Whether each line is shown: it is changed, or stands near one that is.
    let mut shown = vec![false; lines.len()];
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| changed(line)) {
        let near = at.saturating_sub(CONTEXT_LINES)..(at + CONTEXT_LINES + 1).min(lines.len());
        shown.get_mut(near).into_iter().flatten().for_each(|shown| *shown = true);
    }
    let (mut old, mut new) = (1, 1);
    let mut diff = Vec::new();
    let mut hunk: Vec<String> = Vec::new();
    let mut start = (1, 1);
    for (line, shown) in lines.iter().zip(shown) {
        let is_known = !matches!(line, DiffLine::Same(None));
        if !(shown && is_known) {
            close_hunk(&mut diff, &mut hunk, start, (old, new));
        } else if hunk.is_empty() {
            start = (old, new);
        }
        match line {
            DiffLine::Same(text) => {
                hunk.extend(text.filter(|_| shown).map(|text| format!(" {text}")));
                (old, new) = (old + 1, new + 1);
            }
            DiffLine::Removed(text) => {
                hunk.push(format!("-{text}"));
                old += 1;
            }
            DiffLine::Added(text) => {
                hunk.push(format!("+{text}"));
                new += 1;
            }
        }
    }
    close_hunk(&mut diff, &mut hunk, start, (old, new));
    diff
}

fn close_hunk(diff: &mut Vec<String>, hunk: &mut Vec<String>, start: (usize, usize), end: (usize, usize)) {
    if hunk.is_empty() {
        return;
    }
    let side = |start: usize, end: usize| match end - start {
        // A side without lines names the line before it.
        0 => format!("{},0", start - 1),
        count => format!("{start},{count}"),
    };
    diff.push(format!("@@ -{} +{} @@", side(start.0, end.0), side(start.1, end.1)));
    diff.append(hunk);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::operation::{FileEnd, ShownLines};

    fn whole(text: &str) -> FileState {
        FileState::default().after_operation(1, &FileAction::Write { content: text.to_owned() })
    }

    /// Lines 1 to `count` of a file that goes on.
    fn beginning(count: usize) -> FileState {
        let lines = (1..=count).map(|number| (number, format!("line {number}"))).collect();
        FileState::default().after_operation(1, &FileAction::Read(ShownLines { lines, total: None }))
    }

    fn numbered(count: usize) -> String {
        (1..=count).map(|number| format!("line {number}\n")).collect()
    }

    #[test]
    fn the_difference_of_two_known_texts_is_a_unified_diff() {
        let after = numbered(20).replace("line 3\n", "line three\nand a half\n").replace("line 15\n", "");
        let net = net_change(&whole(&numbered(20)), &whole(&after)).expect("both are known");
        assert_eq!((net.added, net.removed, net.is_whole), (2, 2, true));
        let expected = [
            "@@ -1,5 +1,6 @@", " line 1", " line 2", "-line 3", "+line three", "+and a half", " line 4",
            " line 5", "@@ -13,5 +14,4 @@", " line 13", " line 14", "-line 15", " line 16", " line 17",
        ];
        assert_eq!(net.diff, expected);
        let none = net_change(&whole("a\n"), &whole("a\n")).expect("both are known");
        assert_eq!((none.added, none.removed, none.diff.len()), (0, 0, 0));
    }

    #[test]
    fn a_new_file_is_all_additions() {
        let absent = FileState::default().after_operation(1, &FileAction::Missing);
        let net = net_change(&absent, &whole("a\nb\n")).expect("both are known");
        assert_eq!(net.diff, ["@@ -0,0 +1,2 @@", "+a", "+b"]);
    }

    #[test]
    fn known_lines_of_a_file_that_is_partly_known_are_compared() {
        let before = beginning(10);
        let edit = Replacement {
            old: "line 4".to_owned(),
            new: "line four".to_owned(),
            which: crate::files::operation::Occurrences::Only,
        };
        let after = before.after_operation(2, &FileAction::Replace(vec![edit]));
        let net = net_change(&before, &after).expect("the changed line is known");
        assert_eq!((net.added, net.removed, net.is_whole), (1, 1, false));
    }

    #[test]
    fn what_may_be_unknown_is_not_said_to_be_gone() {
        let forgotten = beginning(10).after_operation(2, &FileAction::Changed);
        assert_eq!(net_change(&beginning(10), &forgotten), None);
        let seen = ShownLines { lines: vec![(2, "x".to_owned())], total: Some((3, FileEnd::Exact)) };
        let partly = FileState::default().after_operation(2, &FileAction::Read(seen));
        assert_eq!(net_change(&whole("a\nb\nc\n"), &partly), None);
    }
}
