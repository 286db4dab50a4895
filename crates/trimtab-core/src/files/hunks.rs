//! Applies the hunks of a patch that is known to have succeeded. Takes lines of which some are unknown; gives the
//! lines afterwards. Places a hunk as the tool that applied it does, with the tolerance of that tool and no more;
//! what could be in several places makes those places unknown.

use std::ops::Range;

use super::{
    line_maker::LineMaker,
    lines::{FileLines, LinePiece, LineRecord},
    operation::FileEnd,
    patch::{Hunk, HunkPlace},
    replacement::{LineGrowth, MatchUnit, blur_ranges, is_distinct, possible_places},
};

/// Applies all hunks in order.
pub(super) fn apply_hunks(
    lines: &FileLines,
    end: FileEnd,
    hunks: &[Hunk],
    maker: &mut LineMaker,
) -> (FileLines, FileEnd) {
    let mut text = PatchedLines { lines: lines.clone(), end, next: 0, grown: 0 };
    let by_codex = hunks.iter().any(|hunk| matches!(hunk.place, HunkPlace::Behind { .. }));
    if by_codex {
        text.without_final_break();
    }
    for hunk in hunks {
        match &hunk.place {
            HunkPlace::Line(number) => text.at_line(*number, hunk, maker),
            HunkPlace::Behind { anchors, at_end } => text.apply_after_anchors(anchors, *at_end, hunk, maker),
        }
    }
    if by_codex {
        text.with_final_break(maker);
    }
    (text.lines, text.end)
}

/// Returns the lines that the old texts of the hunks stand on, counted from 0, where they are known.
pub(super) fn touched_lines(lines: &FileLines, hunks: &[Hunk]) -> Vec<Range<usize>> {
    let all: Vec<Option<&LineRecord>> = lines.iter().collect();
    let mut next = 0;
    let mut found = Vec::new();
    for hunk in hunks {
        let old = hunk.old_lines();
        let place = match hunk.place {
            HunkPlace::Line(number) => {
                number.checked_sub(1).filter(|at| block_matches(&all, *at, &old, &LEVELS))
            }
            HunkPlace::Behind { .. } => None,
        };
        if let Some(at) = place.or_else(|| find_block(&all, next, &old)) {
            next = at + old.len();
            found.push(at..next);
        }
    }
    found
}

struct PatchedLines {
    lines: FileLines,
    end: FileEnd,
    /// Where the next hunk is looked for.
    next: usize,
    /// By how many lines the hunks so far have moved the rest.
    grown: isize,
}

impl PatchedLines {
    fn at_line(&mut self, number: usize, hunk: &Hunk, maker: &mut LineMaker) {
        let (old, new) = (hunk.old_lines(), hunk.new_lines());
        let stated = number.saturating_sub(1).saturating_add_signed(self.grown);
        let all: Vec<Option<&LineRecord>> = self.lines.iter().collect();
        let open = self.end == FileEnd::Open;
        let could_be = |at: usize| {
            let line = |(offset, text): (usize, &&str)| match all.get(at + offset) {
                Some(Some(line)) => *line.text == **text,
                Some(None) => true,
                None => open || text.is_empty(),
            };
            old.iter().enumerate().all(line)
        };
        let near = || {
            let sure =
                (0..all.len()).filter(|at| !old.is_empty() && block_matches(&all, *at, &old, &LEVELS[..1]));
            sure.min_by_key(|at| at.abs_diff(stated))
        };
        let Some(at) = could_be(stated).then_some(stated).or_else(near) else { return self.forget_lines() };
        self.replace_lines(at, &old, &new, maker);
    }

    fn apply_after_anchors(&mut self, anchors: &[String], at_end: bool, hunk: &Hunk, maker: &mut LineMaker) {
        let (old, new) = (hunk.old_lines(), hunk.new_lines());
        let all: Vec<Option<&LineRecord>> = self.lines.iter().collect();
        for anchor in anchors {
            if let Some(at) = find_block(&all, self.next, &[anchor]) {
                self.next = at + 1;
            }
        }
        if old.is_empty() {
            return self.at_the_end(&new, maker);
        }
        // codex tries again without an empty last line, which may stand for the end of the file.
        let shorter = old.split_last().filter(|(last, _)| last.is_empty()).map(|(_, rest)| rest);
        let from = if at_end && self.end != FileEnd::Open {
            all.len().saturating_sub(old.len() + 1)
        } else {
            self.next
        };
        let found = find_block(&all, from, &old).or_else(|| find_block(&all, self.next, &old));
        let next = self.next;
        let could_be = |block: &[&str]| {
            let mut places = possible_places(&self.lines, self.end, block, MatchUnit::WholeLines);
            places.retain(|range| range.end > next);
            places
        };
        let retry =
            shorter.filter(|shorter| !shorter.is_empty() && found.is_none() && could_be(&old).is_empty());
        let rest = new.split_last().filter(|(last, _)| last.is_empty()).map(|(_, rest)| rest);
        let (place, old, new) = match retry {
            None => (found, old.as_slice(), new.as_slice()),
            Some(shorter) => (find_block(&all, next, shorter), shorter, rest.unwrap_or(&new)),
        };
        let mut possible = could_be(old);
        // An exact copy anywhere goes before one that is only alike.
        let exact = place.is_some_and(|at| block_matches(&all, at, old, &LEVELS[..1]));
        possible.retain(|range| place.is_none_or(|at| !exact || range.start <= at));
        match place {
            Some(at) if possible.is_empty() || (exact && is_distinct(&old.join("\n"))) => {
                self.replace_lines(at, old, new, maker);
            }
            Some(at) => self.blur_places(possible, Some(at..at + old.len()), old, new),
            None if possible.is_empty() => self.forget_lines(),
            None => self.blur_places(possible, None, old, new),
        }
    }

    fn replace_lines(&mut self, at: usize, old: &[&str], new: &[&str], maker: &mut LineMaker) {
        let count = self.lines.len();
        if at + old.len() > count {
            self.lines = self.lines.splice(count..count, vec![LinePiece::Unknown(at + old.len() - count)]);
        }
        let range = at..at + old.len();
        let before: Vec<Option<&LineRecord>> = range.clone().map(|index| self.lines.get(index)).collect();
        let after: Vec<Option<String>> = new.iter().map(|text| Some((*text).to_owned())).collect();
        let made = maker.make_lines(&before, &after);
        self.lines = self.lines.splice(range, LinePiece::from_single_lines(made));
        self.next = at + new.len();
        self.grown = self.grown.saturating_add_unsigned(new.len()).saturating_sub_unsigned(old.len());
    }

    fn blur_places(
        &mut self,
        mut places: Vec<Range<usize>>,
        also: Option<Range<usize>>,
        old: &[&str],
        new: &[&str],
    ) {
        places.extend(also);
        self.next = places.iter().map(|range| range.start).min().unwrap_or(self.next);
        let grown = LineGrowth { removed: old.len(), added: new.len() };
        (self.lines, self.end) = blur_ranges(&self.lines, self.end, &places, grown);
    }

    fn at_the_end(&mut self, new: &[&str], maker: &mut LineMaker) {
        let count = self.lines.len();
        let last_is_empty = count
            .checked_sub(1)
            .is_some_and(|last| self.lines.get(last).is_some_and(|line| line.text.is_empty()));
        match self.end {
            FileEnd::Open | FileEnd::EmptyLines => self.end = FileEnd::Open,
            FileEnd::LineBreak => self.replace_lines(count, &[], new, maker),
            FileEnd::Exact => self.replace_lines(count - usize::from(last_is_empty), &[], new, maker),
        }
    }

    /// codex leaves out what a final line break begins while it works. Where it is not known what that is, the end
    /// is not known afterwards.
    fn without_final_break(&mut self) {
        let Some(last) = self.lines.len().checked_sub(1) else { return };
        let is_empty = self.lines.get(last).map(|line| line.text.is_empty());
        match (self.end, is_empty) {
            (FileEnd::Exact, Some(false)) | (FileEnd::Open | FileEnd::EmptyLines, Some(false) | None) => {}
            (FileEnd::LineBreak, Some(false)) => self.end = FileEnd::Exact,
            (FileEnd::LineBreak, None) => self.end = FileEnd::Open,
            (FileEnd::Exact, Some(true)) => self.lines = self.lines.splice(last..last + 1, Vec::new()),
            (FileEnd::Exact, None)
            | (FileEnd::Open | FileEnd::EmptyLines | FileEnd::LineBreak, Some(true)) => {
                self.lines = self.lines.splice(last..last + 1, Vec::new());
                self.end = FileEnd::Open;
            }
        }
    }

    /// codex then puts a line break after a last line that has text: a file that ends in an empty line loses it.
    fn with_final_break(&mut self, maker: &mut LineMaker) {
        if self.end != FileEnd::Exact {
            return;
        }
        let count = self.lines.len();
        let last = count.checked_sub(1).map(|last| self.lines.get(last));
        match last {
            Some(Some(line)) if line.text.is_empty() => {}
            Some(None) => self.end = FileEnd::LineBreak,
            Some(Some(_)) | None => {
                self.lines =
                    self.lines.splice(count..count, vec![LinePiece::from_lines(vec![maker.make_line("")])]);
            }
        }
    }

    fn forget_lines(&mut self) {
        self.lines = FileLines::new(Vec::new());
        self.end = FileEnd::Open;
        self.next = 0;
    }
}

/// How alike lines must be, strictest first: what codex tries in this order over the whole file.
const LEVELS: [fn(&str, &str) -> bool; 4] = [
    |line, text| line == text,
    |line, text| line.trim_end() == text.trim_end(),
    |line, text| line.trim() == text.trim(),
    |line, text| plain_signs(line.trim()) == plain_signs(text.trim()),
];

fn find_block(all: &[Option<&LineRecord>], from: usize, block: &[&str]) -> Option<usize> {
    if block.is_empty() {
        return None;
    }
    LEVELS.iter().find_map(|level| {
        (from..all.len()).find(|at| block_matches(all, *at, block, std::slice::from_ref(level)))
    })
}

fn block_matches(
    all: &[Option<&LineRecord>],
    at: usize,
    block: &[&str],
    levels: &[fn(&str, &str) -> bool],
) -> bool {
    let row = all.get(at..at + block.len());
    let alike = |level: &fn(&str, &str) -> bool, row: &[Option<&LineRecord>]| {
        row.iter().zip(block).all(|(line, text)| line.is_some_and(|line| level(&line.text, text)))
    };
    row.is_some_and(|row| levels.iter().any(|level| alike(level, row)))
}

/// Dashes, quotes and blanks that look alike, as the plain ones.
fn plain_signs(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            '\u{2018}'..='\u{201b}' => '\'',
            '\u{201c}'..='\u{201f}' => '"',
            '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
            other => other,
        })
        .collect()
}
