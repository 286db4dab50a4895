//! A sequence of lines of which some are unknown, shared between versions. Takes splices; gives a new sequence
//! that shares all untouched lines with the old one. Never copies a text.

use std::{ops::Range, sync::Arc};

/// From this number of pieces on, neighbouring ones are copied together: it bounds what one version costs
/// (about 4 KB), and copying pointers once per some thirty edits is cheaper than a tree.
const MAX_PIECES: usize = 64;

/// One known line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: Arc<str>,
    /// Stays with the line while edits move it.
    pub(super) id: u32,
    /// The step that last showed or wrote it.
    pub(super) seen: u32,
}

/// Some lines in a row, all known or all unknown.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Known { source: Arc<[Line]>, range: Range<usize> },
    Unknown(usize),
}

impl Piece {
    pub(super) fn known(lines: Vec<Line>) -> Piece {
        Piece::Known { range: 0..lines.len(), source: lines.into() }
    }

    /// Makes pieces of single lines, of which some are unknown.
    pub(super) fn of(lines: Vec<Option<Line>>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut row = Vec::new();
        for line in lines {
            match line {
                Some(line) => row.push(line),
                None => {
                    if !row.is_empty() {
                        pieces.push(Piece::known(std::mem::take(&mut row)));
                    }
                    pieces.push(Piece::Unknown(1));
                }
            }
        }
        if !row.is_empty() {
            pieces.push(Piece::known(row));
        }
        pieces
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Piece::Known { range, .. } => range.len(),
            Piece::Unknown(count) => *count,
        }
    }

    fn lines(&self) -> &[Line] {
        match self {
            Piece::Known { source, range } => source.get(range.clone()).unwrap_or_default(),
            Piece::Unknown(_) => &[],
        }
    }

    fn part(&self, part: Range<usize>) -> Piece {
        match self {
            Piece::Known { source, range } => Piece::Known {
                source: source.clone(),
                range: range.start + part.start..range.start + part.end,
            },
            Piece::Unknown(_) => Piece::Unknown(part.len()),
        }
    }
}

/// The sequence. Cloning it costs nothing.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    pieces: Arc<[Piece]>,
    count: usize,
}

impl Lines {
    pub(super) fn new(pieces: Vec<Piece>) -> Lines {
        let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
        for piece in pieces.into_iter().filter(|piece| piece.len() > 0) {
            match (joined.last_mut(), &piece) {
                (Some(Piece::Unknown(before)), Piece::Unknown(count)) => *before += count,
                (Some(Piece::Known { source, range }), Piece::Known { source: other, range: next })
                    if Arc::ptr_eq(source, other) && range.end == next.start =>
                {
                    range.end = next.end;
                }
                _ => joined.push(piece),
            }
        }
        if joined.len() > MAX_PIECES {
            joined = copied_together(&joined);
        }
        Lines { count: joined.iter().map(Piece::len).sum(), pieces: joined.into() }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Returns the known line at an index counted from 0.
    pub(super) fn get(&self, index: usize) -> Option<&Line> {
        let mut start = 0;
        for piece in self.pieces.iter() {
            if index < start + piece.len() {
                return piece.lines().get(index - start);
            }
            start += piece.len();
        }
        None
    }

    /// Returns all lines, the unknown ones as nothing.
    pub(super) fn iter(&self) -> impl Iterator<Item = Option<&Line>> {
        self.pieces.iter().flat_map(|piece| {
            let unknown = match piece {
                Piece::Known { .. } => 0,
                Piece::Unknown(count) => *count,
            };
            piece.lines().iter().map(Some).chain(std::iter::repeat_n(None, unknown))
        })
    }

    /// Returns the longest rows of known and of unknown lines, each with the index of its first line.
    pub(super) fn rows(&self) -> Vec<(usize, Row<'_>)> {
        let mut rows: Vec<(usize, Row<'_>)> = Vec::new();
        let mut start = 0;
        for piece in self.pieces.iter() {
            match (rows.last_mut(), piece) {
                (Some((_, Row::Known(lines))), Piece::Known { .. }) => lines.extend(piece.lines()),
                (_, Piece::Known { .. }) => rows.push((start, Row::Known(piece.lines().iter().collect()))),
                (_, Piece::Unknown(count)) => rows.push((start, Row::Unknown(*count))),
            }
            start += piece.len();
        }
        rows
    }

    /// Returns the pieces of a range.
    pub(super) fn slice(&self, range: Range<usize>) -> Vec<Piece> {
        let mut start = 0;
        let mut pieces = Vec::new();
        for piece in self.pieces.iter() {
            let from = range.start.clamp(start, start + piece.len()) - start;
            let to = range.end.clamp(start, start + piece.len()) - start;
            if from < to {
                pieces.push(piece.part(from..to));
            }
            start += piece.len();
        }
        pieces
    }

    /// Returns the sequence with other lines in the place of a range.
    pub(super) fn splice(&self, range: Range<usize>, with: Vec<Piece>) -> Lines {
        let mut pieces = self.slice(0..range.start);
        pieces.extend(with);
        pieces.extend(self.slice(range.end..self.count));
        Lines::new(pieces)
    }

    pub(super) fn all_known(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece, Piece::Known { .. }))
    }
}

/// Some lines in a row, as [`Lines::rows`] gives them.
pub(super) enum Row<'a> {
    Known(Vec<&'a Line>),
    Unknown(usize),
}

fn copied_together(pieces: &[Piece]) -> Vec<Piece> {
    let mut copied = Vec::new();
    let mut row: Vec<Line> = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Known { .. } => row.extend_from_slice(piece.lines()),
            Piece::Unknown(_) => {
                copied.extend((!row.is_empty()).then(|| Piece::known(std::mem::take(&mut row))));
                copied.push(piece.clone());
            }
        }
    }
    copied.extend((!row.is_empty()).then(|| Piece::known(row)));
    copied
}
