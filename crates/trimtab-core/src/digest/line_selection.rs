//! Turns a choice of lines into pieces. Takes which lines a digest wants and what it counted; gives pieces: error lines
//! added, repetitions folded, gaps named, long lines cut. Never leaves a gap unnamed, never names one that is cheaper to show.

use std::ops::Range;

use super::{Note, Piece, errors, text::DigestText};

/// The longest line that is given whole, in characters: law 9 allows longer ones to be cut.
const LONGEST_LINE: usize = 500;
/// How much of a cut line stays at its beginning and at its end, in bytes.
const CUT_HEAD: usize = 240;
const CUT_TAIL: usize = 160;
/// How often lines must stand in a row to be folded (measured on recordings: three repetitions are often meant).
const FOLD_FROM: usize = 4;
/// How many bytes a fold or gap must save to be worth its note.
const NOTE_BYTES: usize = 32;

/// Lines wanted so far.
#[derive(Debug)]
pub(super) struct LineSelection<'t, 'a> {
    text: &'t DigestText<'a>,
    keep: Vec<bool>,
    facts: Vec<Note>,
    passing: Vec<Range<usize>>,
    context: usize,
    long: LongLineRule,
}

/// What becomes of lines that are too long to be given whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LongLineRule {
    AreCut,
    /// All but progress displays, of which the last state is what a person would have seen.
    Stay,
}

impl<'t, 'a> LineSelection<'t, 'a> {
    /// Begins with no line.
    pub(super) fn none(text: &'t DigestText<'a>) -> LineSelection<'t, 'a> {
        LineSelection {
            text,
            keep: vec![false; text.len()],
            facts: Vec::new(),
            passing: Vec::new(),
            context: 0,
            long: LongLineRule::AreCut,
        }
    }

    /// Begins with all lines.
    pub(super) fn all(text: &'t DigestText<'a>) -> LineSelection<'t, 'a> {
        LineSelection { keep: vec![true; text.len()], ..LineSelection::none(text) }
    }

    pub(super) fn keep_line(&mut self, index: usize) {
        if let Some(keep) = self.keep.get_mut(index) {
            *keep = true;
        }
    }

    pub(super) fn keep_lines(&mut self, lines: Range<usize>) {
        lines.for_each(|index| self.keep_line(index));
    }

    pub(super) fn keeps(&self, index: usize) -> bool {
        self.keep.get(index).copied().unwrap_or_default()
    }

    /// Wants the first and last lines.
    pub(super) fn keep_ends(&mut self, head: usize, tail: usize) {
        let len = self.text.len();
        self.keep_lines(0..head.min(len));
        self.keep_lines(len.saturating_sub(tail)..len);
    }

    /// Wants the first whole lines that make at most `bytes` bytes, and at least one.
    pub(super) fn keep_beginning(&mut self, bytes: usize) {
        let mut left = bytes;
        for index in 0..self.text.len() {
            let length = self.text.line(index).len() + 1;
            if index > 0 && length > left {
                return;
            }
            left = left.saturating_sub(length);
            self.keep_line(index);
        }
    }

    /// Leaves out lines that only say that all is well; a separate note counts them.
    pub(super) fn leave_out_passing(&mut self, lines: Range<usize>) {
        for index in lines.clone() {
            if let Some(keep) = self.keep.get_mut(index) {
                *keep = false;
            }
        }
        self.passing.push(lines);
    }

    /// Wants this many lines around every error line.
    pub(super) fn set_context(&mut self, lines: usize) {
        self.context = lines;
    }

    /// Gives long lines whole.
    pub(super) fn whole_lines(&mut self) {
        self.long = LongLineRule::Stay;
    }

    /// Adds what a digest counted.
    pub(super) fn add_fact(&mut self, note: Note) {
        self.facts.push(note);
    }

    /// Gives the pieces; nothing where nothing would be left out.
    pub(super) fn into_pieces(mut self) -> Option<Vec<Piece>> {
        self.keep_errors();
        let mut pieces = PieceList { text: self.text, long: self.long, list: Vec::new(), less: false };
        let mut at = 0;
        let mut gap = 0;
        while at < self.text.len() {
            if !self.keeps(at) {
                at += 1;
                continue;
            }
            let run = find_repetition(self.text, at);
            if self.should_fill(gap..at) {
                pieces.push_lines(gap..at);
            } else {
                self.note_gap(&mut pieces, gap..at);
            }
            match run {
                None => {
                    pieces.push_lines(at..at + 1);
                    at += 1;
                }
                Some(RepeatedLines { lines, times }) => {
                    pieces.push_lines(at..at + lines);
                    pieces.push_note(Note::Repeated { times, lines });
                    at += lines * times;
                }
            }
            gap = at;
        }
        let shown = !pieces.list.is_empty();
        if shown && self.should_fill(gap..at) {
            pieces.push_lines(gap..at);
        } else if shown {
            self.note_gap(&mut pieces, gap..at);
        } else {
            pieces.less |= !self.text.is_empty();
        }
        let less = pieces.less;
        pieces.list.extend(self.facts.into_iter().map(Piece::Note));
        less.then_some(pieces.list)
    }

    fn keep_errors(&mut self) {
        for error in errors::surviving_errors(self.text) {
            self.keep_lines(error.saturating_sub(self.context)..error + 1 + self.context);
        }
    }

    /// Tells whether a gap costs less shown than named.
    fn should_fill(&self, gap: Range<usize>) -> bool {
        gap.len() <= 3 && self.text.raw_lines(gap).len() <= NOTE_BYTES
    }

    /// Names what is left out.
    fn note_gap(&self, pieces: &mut PieceList<'_, '_>, gap: Range<usize>) {
        if self.passing.iter().any(|run| run.start <= gap.start && gap.end <= run.end) {
            pieces.push_note(Note::Passing { lines: gap.len() });
        } else {
            pieces.push_omitted(gap);
        }
    }
}

struct PieceList<'t, 'a> {
    text: &'t DigestText<'a>,
    long: LongLineRule,
    list: Vec<Piece>,
    /// Whether something is left out.
    less: bool,
}

impl PieceList<'_, '_> {
    fn push_lines(&mut self, lines: Range<usize>) {
        for index in lines {
            let cut = match self.long {
                LongLineRule::AreCut => cut_long_line(self.text, index),
                LongLineRule::Stay => last_state(self.text, index),
            };
            if let Some(cut) = cut {
                self.list.push(cut);
                self.less = true;
            } else if let Some(Piece::Lines(before)) = self.list.last_mut()
                && before.end == index
            {
                before.end = index + 1;
            } else {
                self.list.push(Piece::Lines(index..index + 1));
            }
        }
    }

    fn push_omitted(&mut self, gap: Range<usize>) {
        if !gap.is_empty() {
            self.push_note(Note::Omitted { first: gap.start + 1, last: gap.end, of: self.text.len() });
        }
    }

    fn push_note(&mut self, note: Note) {
        self.list.push(Piece::Note(note));
        self.less = true;
    }
}

/// Gives the piece for a line that is too long to be given whole.
pub(super) fn cut_long_line(text: &DigestText<'_>, index: usize) -> Option<Piece> {
    let long = is_long(text.line(index));
    last_state(text, index).or_else(|| long.then(|| cut_at(text.line(index), index, CUT_HEAD, CUT_TAIL)))
}

/// Gives the piece for a long progress display: its last state is what a person would have seen.
fn last_state(text: &DigestText<'_>, index: usize) -> Option<Piece> {
    let line = text.line(index);
    let tail = line.rfind('\r').map(|back| line.len() - back - 1).filter(|tail| *tail <= CUT_HEAD)?;
    is_long(line).then(|| cut_at(line, index, 0, tail))
}

fn is_long(line: &str) -> bool {
    line.len() > LONGEST_LINE && line.chars().count() > LONGEST_LINE
}

/// Gives a cut of a line with about that many bytes at both ends.
pub(super) fn cut_at(line: &str, index: usize, head: usize, tail: usize) -> Piece {
    let head = line.floor_char_boundary(head);
    let tail = line.len() - line.ceil_char_boundary(line.len().saturating_sub(tail)).max(head);
    Piece::Cut { line: index, head, tail }
}

/// Lines that stand several times in a row.
struct RepeatedLines {
    lines: usize,
    times: usize,
}

/// Tells whether the lines at a place repeat themselves often enough to be folded.
fn find_repetition(text: &DigestText<'_>, at: usize) -> Option<RepeatedLines> {
    (1..=3).find_map(|lines| {
        let mut end = at + lines;
        while end < text.len() && text.terminal_line(end) == text.terminal_line(end - lines) {
            end += 1;
        }
        let times = (end - at) / lines;
        let saved = text.raw_lines(at + lines..at + lines * times).len();
        (times >= FOLD_FROM && saved > NOTE_BYTES).then_some(RepeatedLines { lines, times })
    })
}
