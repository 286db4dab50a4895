//! A sequence of lines of which some are unknown, shared between versions. Takes splices; gives a new sequence
//! that shares all untouched lines with the old one. Never copies a text.

use std::{ops::Range, sync::Arc};

/// From this number of pieces on, neighbouring ones are copied together: it bounds what one version costs
/// (about 4 KB), and copying pointers once per some thirty edits is cheaper than a tree.
const MAX_PIECES: usize = 64;

/// One known line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineRecord {
    pub(super) text: Arc<str>,
    /// Stays with the line while edits move it.
    pub(super) id: u32,
    /// The step that last showed or wrote it.
    pub(super) seen: u32,
}

/// Some lines in a row, all known or all unknown.
#[derive(Debug, Clone)]
pub(super) enum LinePiece {
    Known { source: Arc<[LineRecord]>, range: Range<usize> },
    Unknown(usize),
}

impl LinePiece {
    pub(super) fn from_lines(lines: Vec<LineRecord>) -> LinePiece {
        LinePiece::Known { range: 0..lines.len(), source: lines.into() }
    }

    /// Makes pieces of single lines, of which some are unknown.
    pub(super) fn from_single_lines(lines: Vec<Option<LineRecord>>) -> Vec<LinePiece> {
        let mut pieces = Vec::new();
        let mut row = Vec::new();
        for line in lines {
            match line {
                Some(line) => row.push(line),
                None => {
                    if !row.is_empty() {
                        pieces.push(LinePiece::from_lines(std::mem::take(&mut row)));
                    }
                    pieces.push(LinePiece::Unknown(1));
                }
            }
        }
        if !row.is_empty() {
            pieces.push(LinePiece::from_lines(row));
        }
        pieces
    }

    pub(super) fn len(&self) -> usize {
        match self {
            LinePiece::Known { range, .. } => range.len(),
            LinePiece::Unknown(count) => *count,
        }
    }

    fn lines(&self) -> &[LineRecord] {
        match self {
            LinePiece::Known { source, range } => source.get(range.clone()).unwrap_or_default(),
            LinePiece::Unknown(_) => &[],
        }
    }

    fn slice(&self, part: Range<usize>) -> LinePiece {
        match self {
            LinePiece::Known { source, range } => LinePiece::Known {
                source: source.clone(),
                range: range.start + part.start..range.start + part.end,
            },
            LinePiece::Unknown(_) => LinePiece::Unknown(part.len()),
        }
    }
}

/// The sequence. Cloning it costs nothing.
#[derive(Debug, Clone)]
pub(super) struct FileLines {
    pieces: Arc<[LinePiece]>,
    count: usize,
}

impl FileLines {
    pub(super) fn new(pieces: Vec<LinePiece>) -> FileLines {
        let mut joined: Vec<LinePiece> = Vec::with_capacity(pieces.len());
        for piece in pieces.into_iter().filter(|piece| piece.len() > 0) {
            match (joined.last_mut(), &piece) {
                (Some(LinePiece::Unknown(before)), LinePiece::Unknown(count)) => *before += count,
                (
                    Some(LinePiece::Known { source, range }),
                    LinePiece::Known { source: other, range: next },
                ) if Arc::ptr_eq(source, other) && range.end == next.start => {
                    range.end = next.end;
                }
                _ => joined.push(piece),
            }
        }
        if joined.len() > MAX_PIECES {
            joined = copied_together(&joined);
        }
        FileLines { count: joined.iter().map(LinePiece::len).sum(), pieces: joined.into() }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Returns the known line at an index counted from 0.
    pub(super) fn get(&self, index: usize) -> Option<&LineRecord> {
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
    pub(super) fn iter(&self) -> impl Iterator<Item = Option<&LineRecord>> {
        self.pieces.iter().flat_map(|piece| {
            let unknown = match piece {
                LinePiece::Known { .. } => 0,
                LinePiece::Unknown(count) => *count,
            };
            piece.lines().iter().map(Some).chain(std::iter::repeat_n(None, unknown))
        })
    }

    /// Returns the longest rows of known and of unknown lines, each with the index of its first line.
    pub(super) fn rows(&self) -> Vec<(usize, LineRow<'_>)> {
        let mut rows: Vec<(usize, LineRow<'_>)> = Vec::new();
        let mut start = 0;
        for piece in self.pieces.iter() {
            match (rows.last_mut(), piece) {
                (Some((_, LineRow::Known(lines))), LinePiece::Known { .. }) => lines.extend(piece.lines()),
                (_, LinePiece::Known { .. }) => {
                    rows.push((start, LineRow::Known(piece.lines().iter().collect())));
                }
                (_, LinePiece::Unknown(count)) => rows.push((start, LineRow::Unknown(*count))),
            }
            start += piece.len();
        }
        rows
    }

    /// Returns the pieces of a range.
    pub(super) fn slice(&self, range: Range<usize>) -> Vec<LinePiece> {
        let mut start = 0;
        let mut pieces = Vec::new();
        for piece in self.pieces.iter() {
            let from = range.start.clamp(start, start + piece.len()) - start;
            let to = range.end.clamp(start, start + piece.len()) - start;
            if from < to {
                pieces.push(piece.slice(from..to));
            }
            start += piece.len();
        }
        pieces
    }

    /// Returns the sequence with other lines in the place of a range.
    pub(super) fn splice(&self, range: Range<usize>, with: Vec<LinePiece>) -> FileLines {
        let mut pieces = self.slice(0..range.start);
        pieces.extend(with);
        pieces.extend(self.slice(range.end..self.count));
        FileLines::new(pieces)
    }

    pub(super) fn all_known(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece, LinePiece::Known { .. }))
    }
}

/// Some lines in a row, as [`FileLines::rows`] gives them.
pub(super) enum LineRow<'a> {
    Known(Vec<&'a LineRecord>),
    Unknown(usize),
}

fn copied_together(pieces: &[LinePiece]) -> Vec<LinePiece> {
    let mut copied = Vec::new();
    let mut row: Vec<LineRecord> = Vec::new();
    for piece in pieces {
        match piece {
            LinePiece::Known { .. } => row.extend_from_slice(piece.lines()),
            LinePiece::Unknown(_) => {
                copied.extend((!row.is_empty()).then(|| LinePiece::from_lines(std::mem::take(&mut row))));
                copied.push(piece.clone());
            }
        }
    }
    copied.extend((!row.is_empty()).then(|| LinePiece::from_lines(row)));
    copied
}
