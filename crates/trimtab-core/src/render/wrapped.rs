//! Writes a shortened text back into the JSON that a client wrapped it in. Takes the leaves and pieces of what they say; gives
//! JSON of the same shape: same keys, types and order, only leaves say less. A note about missing lines stands in the leaf that
//! misses them and counts the leaf's own lines; the closing note ends the last leaf. Never touches a leaf that is not shortened.

use std::ops::Range;

use super::{NoteContext, closing_note, count_gaps, note, quote_json, render, write_lines};
use crate::{
    digest::{DigestText, Note, Piece, TextContext},
    history::{TextLeaf, WrappedResult},
};

/// Writes the pieces of what the leaves of a JSON text say, into the leaves.
pub(super) fn render_leaves(
    json: &str,
    wrapped: &WrappedResult,
    pieces: &[Piece],
    context: &NoteContext<'_>,
) -> String {
    let mut written = String::with_capacity(json.len());
    let mut at = 0;
    let said = match wrapped.leaves.as_slice() {
        // What a single leaf says may be wrapped again, or be JSON data.
        [_] => vec![Some(render(&wrapped.text, pieces, context))],
        _ => say_leaves(wrapped, pieces, context),
    };
    for (leaf, said) in wrapped.leaves.iter().zip(said) {
        let Some(said) = said else { continue };
        written.push_str(json.get(at..leaf.span.start).unwrap_or_default());
        written.push_str(&quote_json(&said));
        at = leaf.span.end;
    }
    written.push_str(json.get(at..).unwrap_or_default());
    written
}

/// Returns what every leaf says now; nothing for one that is left unchanged.
fn say_leaves(wrapped: &WrappedResult, pieces: &[Piece], context: &NoteContext<'_>) -> Vec<Option<String>> {
    let gaps = count_gaps(pieces);
    let last = wrapped.leaves.len().saturating_sub(1);
    let by_leaf = pieces_by_leaf(wrapped, pieces, gaps);
    let leaves = wrapped.leaves.iter().zip(by_leaf).enumerate();
    leaves
        .map(|(number, (leaf, own))| {
            let text = wrapped.text.get(leaf.bytes.clone()).unwrap_or_default();
            if number == last {
                return Some(write_lines(text, &own, gaps) + &closing_note(&wrapped.text, pieces, context));
            }
            if own == [Piece::Lines(0..leaf.lines.len())] {
                return None;
            }
            let mut said = write_lines(text, &own, gaps);
            if said.ends_with('\n') && !text.ends_with('\n') {
                said.pop();
            }
            Some(said)
        })
        .collect()
}

/// Gives every leaf its own pieces, with lines counted in it.
fn pieces_by_leaf(wrapped: &WrappedResult, pieces: &[Piece], gaps: usize) -> Vec<Vec<Piece>> {
    let text = DigestText::new(&wrapped.text, TextContext::default());
    let mut by_leaf: Vec<Vec<Piece>> = wrapped.leaves.iter().map(|_| Vec::new()).collect();
    // Notes that only count lines are about those that follow what was said before them.
    let mut next = 0;
    for piece in pieces {
        let lines = match piece {
            Piece::Lines(lines) => lines.clone(),
            Piece::Cut { line, .. } => *line..line + 1,
            Piece::Note(Note::Omitted { first, last, .. } | Note::Shown { first, last, .. }) => {
                first.saturating_sub(1)..*last
            }
            Piece::Note(Note::Passing { lines }) => next..next + lines,
            Piece::Note(Note::Repeated { times, lines }) => next..next + times.saturating_sub(1) * lines,
            // What was counted is said in the closing note.
            Piece::Note(_) | Piece::Elements(_) => continue,
        };
        // Lines that are repeated across leaves are shown: no leaf can speak of the line above in another one.
        let in_one = |leaf: &TextLeaf| leaf.lines.start < next && lines.end <= leaf.lines.end;
        let is_repeated = matches!(piece, Piece::Note(Note::Repeated { .. }));
        let shown = Piece::Lines(lines.clone());
        let piece = if is_repeated && !wrapped.leaves.iter().any(in_one) { &shown } else { piece };
        next = lines.end;
        for (leaf, own) in wrapped.leaves.iter().zip(&mut by_leaf) {
            let here = lines.start.max(leaf.lines.start)..lines.end.min(leaf.lines.end);
            if here.is_empty() {
                continue;
            }
            let inner = here.start - leaf.lines.start..here.end - leaf.lines.start;
            let part = part_of(piece, inner.clone(), here.start - lines.start, leaf.lines.len());
            // A note in place of a short leaf would be longer than the leaf.
            let is_longer = match &part {
                Piece::Note(said) => {
                    here.len() < lines.len()
                        && note::inline_note(said, gaps)
                            .is_some_and(|said| said.len() >= text.raw_lines(here).len())
                }
                Piece::Lines(_) | Piece::Cut { .. } | Piece::Elements(_) => false,
            };
            push_piece(own, if is_longer { Piece::Lines(inner) } else { part });
        }
    }
    by_leaf
}

/// Gives the part of a piece that is about some lines of a leaf, `skipped` lines after the piece's first.
fn part_of(piece: &Piece, inner: Range<usize>, skipped: usize, of: usize) -> Piece {
    match piece {
        Piece::Lines(_) => Piece::Lines(inner),
        Piece::Cut { head, tail, .. } => Piece::Cut { line: inner.start, head: *head, tail: *tail },
        Piece::Note(Note::Omitted { .. }) => {
            Piece::Note(Note::Omitted { first: inner.start + 1, last: inner.end, of })
        }
        Piece::Note(Note::Shown { from, .. }) => {
            Piece::Note(Note::Shown { first: inner.start + 1, last: inner.end, from: from + skipped })
        }
        Piece::Note(Note::Passing { .. }) => Piece::Note(Note::Passing { lines: inner.len() }),
        Piece::Note(_) | Piece::Elements(_) => piece.clone(),
    }
}

/// Adds a piece; lines that follow lines are one piece.
fn push_piece(pieces: &mut Vec<Piece>, piece: Piece) {
    match (pieces.last_mut(), piece) {
        (Some(Piece::Lines(before)), Piece::Lines(lines)) if before.end == lines.start => {
            before.end = lines.end;
        }
        (_, piece) => pieces.push(piece),
    }
}
