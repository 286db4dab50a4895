//! Finds where a replaced text stood and puts the new one there. Takes lines of which some are unknown and a
//! replacement that is known to have succeeded; gives the lines afterwards, unknown wherever the place could
//! have been. Never picks one of several possible places.

use std::ops::Range;

use memchr::memmem;

use super::{
    line_maker::LineMaker,
    lines::{FileLines, LinePiece, LineRecord, LineRow},
    operation::{FileEnd, Occurrences, Replacement},
};

/// Bytes other than white space from which on a text counts as distinct: where a tool takes the first occurrence
/// and the text is found in lines that were shown, nobody is taken to have meant an unseen copy before it.
const DISTINCT_BYTES: usize = 24;

/// Applies one replacement; nothing where it contradicts what is known.
pub(super) fn apply_replacement(
    lines: &FileLines,
    end: FileEnd,
    replacement: &Replacement,
    maker: &mut LineMaker,
) -> Option<(FileLines, FileEnd)> {
    let old: Vec<&str> = replacement.old.split('\n').collect();
    let grown = LineGrowth { removed: old.len(), added: replacement.new.split('\n').count() };
    let certain = certain_places(lines, replacement);
    let possible = possible_places(lines, end, &old, MatchUnit::Text);
    match replacement.which {
        Occurrences::Only => match certain.as_slice() {
            [place] => Some((place_text(lines, place, maker), end)),
            [] => put_somewhere(lines, end, &possible, grown, replacement, maker),
            _ => None,
        },
        Occurrences::First => {
            let Some(first) = certain.first() else {
                return put_somewhere(lines, end, &possible, grown, replacement, maker);
            };
            let before: Vec<Range<usize>> =
                possible.into_iter().filter(|range| range.start <= first.first).collect();
            if before.is_empty() || is_distinct(&replacement.old) {
                return Some((place_text(lines, first, maker), end));
            }
            let also = first.first..first.last + 1;
            Some(blur_ranges(lines, end, &before.into_iter().chain([also]).collect::<Vec<_>>(), grown))
        }
        Occurrences::All => replace_all(lines, end, &certain, &possible, grown, maker),
    }
}

/// Returns the lines on which the old text of a replacement stands for sure, counted from 0.
pub(super) fn touched_lines(lines: &FileLines, replacement: &Replacement) -> Vec<Range<usize>> {
    if replacement.old.is_empty() {
        return Vec::new();
    }
    certain_places(lines, replacement).into_iter().map(|hit| hit.first..hit.last + 1).collect()
}

fn replace_all(
    lines: &FileLines,
    end: FileEnd,
    certain: &[EditPlace],
    possible: &[Range<usize>],
    grown: LineGrowth,
    maker: &mut LineMaker,
) -> Option<(FileLines, FileEnd)> {
    if certain.is_empty() && possible.is_empty() {
        return None;
    }
    if grown.added == grown.removed {
        // Every hit keeps the number of lines, so that those in unseen lines move nothing. One that an unseen hit
        // could overlap may not have happened.
        let overlaps =
            |hit: &&EditPlace| possible.iter().any(|range| range.start <= hit.last && hit.first < range.end);
        let unsure = certain.iter().filter(overlaps).map(|hit| hit.first..hit.last + 1);
        let unsure: Vec<Range<usize>> = unsure.chain(possible.iter().cloned()).collect();
        return Some(blur_ranges(&put_all(lines, certain, maker), end, &unsure, grown));
    }
    let Some(doubtful) = possible.iter().map(|range| range.start).min() else {
        return Some((put_all(lines, certain, maker), end));
    };
    // From the first place on that an unseen hit could have, lines have moved by an unknown number.
    let back =
        |trusted: usize, hit: &EditPlace| if hit.last >= trusted { trusted.min(hit.first) } else { trusted };
    let trusted = certain.iter().rev().fold(doubtful, back);
    let before = certain.iter().take_while(|hit| hit.last < trusted).count();
    let cut = lines.splice(trusted.min(lines.len())..lines.len(), Vec::new());
    Some((put_all(&cut, certain.get(..before).unwrap_or_default(), maker), FileEnd::Open))
}

/// Puts the new text in several places, back to front so that earlier line numbers stay right.
fn put_all(lines: &FileLines, hits: &[EditPlace], maker: &mut LineMaker) -> FileLines {
    hits.iter().rev().fold(lines.clone(), |lines, hit| place_text(&lines, hit, maker))
}

/// How many lines a replacement takes away and puts there.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineGrowth {
    pub(super) removed: usize,
    pub(super) added: usize,
}

/// A place that is certain, or several on the same lines: the lines touched and the text they hold afterwards.
/// Text before or after the place is none where it stands on an unknown line.
#[derive(Debug)]
struct EditPlace {
    first: usize,
    last: usize,
    before: Option<String>,
    after: Option<String>,
    text: String,
}

fn certain_places(lines: &FileLines, replacement: &Replacement) -> Vec<EditPlace> {
    let finder = memmem::Finder::new(&replacement.old);
    let rows = lines.rows();
    let mut hits: Vec<EditPlace> = Vec::new();
    for (index, (start, row)) in rows.iter().enumerate() {
        let LineRow::Known(known) = row else { continue };
        let row = RowText::new(*start, known, index + 1 < rows.len());
        let mut before: Option<usize> = None;
        for at in finder.find_iter(row.text.as_bytes()) {
            let to = at + replacement.old.len();
            let (first, prefix) = row.position_of(at);
            let (last, _) = row.position_of(to);
            let suffix = row.rest_of_line(to);
            match (hits.last_mut(), before) {
                (Some(hit), Some(before)) if replacement.which == Occurrences::All && first <= hit.last => {
                    hit.text += row.text.get(before..at).unwrap_or_default();
                    hit.text += &replacement.new;
                    (hit.last, hit.after) = (last, suffix);
                }
                _ => hits.push(EditPlace {
                    first,
                    last,
                    before: prefix,
                    after: suffix,
                    text: replacement.new.clone(),
                }),
            }
            before = Some(to);
        }
    }
    hits
}

/// A row of known lines as one text, with the line breaks that surely stand at its ends.
struct RowText {
    text: String,
    /// Index of the first line whose start is listed; the unknown line before it has none.
    start: usize,
    starts: Vec<usize>,
    ends_before_unknown: bool,
}

impl RowText {
    fn new(start: usize, lines: &[&LineRecord], ends_before_unknown: bool) -> RowText {
        let mut text = String::new();
        let mut starts = Vec::with_capacity(lines.len() + 1);
        if start > 0 {
            text.push('\n');
        }
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            starts.push(text.len());
            text.push_str(&line.text);
        }
        if ends_before_unknown {
            text.push('\n');
            starts.push(text.len());
        }
        RowText { text, start, starts, ends_before_unknown }
    }

    /// Returns the line of an offset and the text before it on that line.
    fn position_of(&self, offset: usize) -> (usize, Option<String>) {
        let Some(index) = self.starts.partition_point(|start| *start <= offset).checked_sub(1) else {
            return (self.start - 1, None);
        };
        let from = self.starts.get(index).copied().unwrap_or_default();
        let before = self.text.get(from..offset).unwrap_or_default().to_owned();
        (self.start + index, Some(before))
    }

    /// Returns the text after an offset on its line.
    fn rest_of_line(&self, offset: usize) -> Option<String> {
        if self.ends_before_unknown && offset == self.text.len() {
            return None;
        }
        let rest = self.text.get(offset..).unwrap_or_default();
        Some(rest.split('\n').next().unwrap_or_default().to_owned())
    }
}

fn place_text(lines: &FileLines, hit: &EditPlace, maker: &mut LineMaker) -> FileLines {
    let parts: Vec<&str> = hit.text.split('\n').collect();
    let count = parts.len();
    let text = |(index, part): (usize, &&str)| {
        let before = if index == 0 { hit.before.as_deref()? } else { "" };
        let after = if index + 1 == count { hit.after.as_deref()? } else { "" };
        Some([before, part, after].concat())
    };
    let after: Vec<Option<String>> = parts.iter().enumerate().map(text).collect();
    let range = hit.first..(hit.last + 1).min(lines.len());
    let before: Vec<Option<&LineRecord>> = range.clone().map(|index| lines.get(index)).collect();
    let made = maker.make_lines(&before, &after);
    lines.splice(range, LinePiece::from_single_lines(made))
}

/// What a tool compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchUnit {
    /// Text that may begin and end inside a line.
    Text,
    /// Lines from end to end.
    WholeLines,
}

/// Finds the ranges of lines that a text could touch if it were in unknown lines.
pub(super) fn possible_places(
    lines: &FileLines,
    end: FileEnd,
    old: &[&str],
    unit: MatchUnit,
) -> Vec<Range<usize>> {
    let height = old.len();
    let edges = |offset: usize| match unit {
        MatchUnit::Text => (offset == 0, offset + 1 == height),
        MatchUnit::WholeLines => (false, false),
    };
    let fits = |start: usize| {
        let mut doubtful = false;
        for (offset, part) in old.iter().enumerate() {
            match match_line(lines, end, start + offset, part, edges(offset)) {
                LineMatch::No => return false,
                LineMatch::Perhaps => doubtful = true,
                LineMatch::Yes => {}
            }
        }
        doubtful
    };
    let mut unknown: Vec<Range<usize>> = lines
        .rows()
        .iter()
        .filter_map(|(start, row)| match row {
            LineRow::Known(_) => None,
            LineRow::Unknown(count) => Some(*start..start + count),
        })
        .collect();
    match end {
        FileEnd::Open => match unknown.last_mut().filter(|range| range.end == lines.len()) {
            Some(range) => range.end = usize::MAX,
            None => unknown.push(lines.len()..usize::MAX),
        },
        FileEnd::EmptyLines | FileEnd::LineBreak => unknown.push(lines.len()..lines.len() + 1),
        FileEnd::Exact => {}
    }
    let mut found = Vec::new();
    for range in unknown {
        let inside = range.len() >= height && (range.start < lines.len() || end == FileEnd::Open);
        let begins = range.start.saturating_sub(height - 1)..range.start;
        let ends = range.start.max((range.end.saturating_add(1)).saturating_sub(height))..range.end;
        if inside {
            found.push(range.clone());
        }
        if range.end < usize::MAX {
            found.extend(ends.filter(|start| fits(*start)).map(|start| start..start + height));
        }
        found.extend(begins.filter(|start| fits(*start)).map(|start| start..start + height));
    }
    found
}

enum LineMatch {
    Yes,
    Perhaps,
    No,
}

/// Tells whether a line could hold its part of a text, of which it may be the first or the last line. An empty part
/// at the edge of an unknown line fits for sure.
fn match_line(
    lines: &FileLines,
    end: FileEnd,
    index: usize,
    part: &str,
    (first, last): (bool, bool),
) -> LineMatch {
    let perhaps = |fits: bool| if fits { LineMatch::Perhaps } else { LineMatch::No };
    if index >= lines.len() {
        return match end {
            FileEnd::Open => LineMatch::Perhaps,
            FileEnd::EmptyLines => perhaps(part.is_empty()),
            FileEnd::LineBreak => perhaps(part.is_empty() && index == lines.len()),
            FileEnd::Exact => LineMatch::No,
        };
    }
    let Some(line) = lines.get(index) else {
        let sure = part.is_empty() && (first != last);
        return if sure { LineMatch::Yes } else { LineMatch::Perhaps };
    };
    let fits = match (first, last) {
        (true, true) => line.text.contains(part),
        (true, false) => line.text.ends_with(part),
        (false, true) => line.text.starts_with(part),
        (false, false) => &*line.text == part,
    };
    if fits { LineMatch::Yes } else { LineMatch::No }
}

/// Applies a replacement whose place is not certain.
fn put_somewhere(
    lines: &FileLines,
    end: FileEnd,
    possible: &[Range<usize>],
    grown: LineGrowth,
    replacement: &Replacement,
    maker: &mut LineMaker,
) -> Option<(FileLines, FileEnd)> {
    match possible {
        [] => None,
        [only] if only.len() == grown.removed && only.end <= lines.len() + 1 => {
            let old: Vec<&str> = replacement.old.split('\n').collect();
            let behind = only.end > lines.len();
            let first = lines.get(only.start).and_then(|line| line.text.strip_suffix(*old.first()?));
            let last = lines.get(only.end - 1).and_then(|line| line.text.strip_prefix(*old.last()?));
            let last = if behind && end == FileEnd::LineBreak { Some("") } else { last };
            let one_line = grown.removed == 1;
            let hit = EditPlace {
                first: only.start,
                last: only.end - 1,
                before: first.filter(|_| !one_line).map(str::to_owned),
                after: last.filter(|_| !one_line).map(str::to_owned),
                text: replacement.new.clone(),
            };
            let end = if behind && end == FileEnd::LineBreak { FileEnd::Exact } else { end };
            Some((place_text(lines, &hit, maker), end))
        }
        _ => Some(blur_ranges(lines, end, possible, grown)),
    }
}

/// Makes unknown what a replacement touched that happened somewhere in these ranges.
pub(super) fn blur_ranges(
    lines: &FileLines,
    end: FileEnd,
    ranges: &[Range<usize>],
    grown: LineGrowth,
) -> (FileLines, FileEnd) {
    let Some(first) = ranges.iter().map(|range| range.start).min() else { return (lines.clone(), end) };
    let last = ranges.iter().map(|range| range.end).max().unwrap_or(first);
    let behind = last > lines.len();
    if grown.removed == grown.added {
        let known = |range: &Range<usize>| range.start.min(lines.len())..range.end.min(lines.len());
        let hide = |lines: FileLines, range: Range<usize>| {
            let count = range.len();
            lines.splice(range, vec![LinePiece::Unknown(count)])
        };
        let lines = ranges.iter().map(known).fold(lines.clone(), hide);
        return (lines, if behind { FileEnd::Open } else { end });
    }
    if behind {
        return (lines.splice(first.min(lines.len())..lines.len(), Vec::new()), FileEnd::Open);
    }
    let count = (last - first + grown.added).saturating_sub(grown.removed);
    (lines.splice(first..last, vec![LinePiece::Unknown(count)]), end)
}

pub(super) fn is_distinct(old: &str) -> bool {
    old.bytes().filter(|byte| !byte.is_ascii_whitespace()).count() >= DISTINCT_BYTES
}
