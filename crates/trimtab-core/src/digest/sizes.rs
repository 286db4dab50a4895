//! Shortens by size alone. Takes limits in characters, bytes or lines; gives the beginning and the end, in whole lines. Never
//! cuts a line of up to 500 characters, and never looks at what the text is about (error lines apart).

use super::{
    Digest, DigestText, Piece, errors,
    line_selection::{LineSelection, cut_at},
};

/// A command's output over this many characters is shortened (seed 000).
const LIMIT_CHARACTERS: usize = 10_000;
/// How many characters of it stay at each end (seed 000).
const KEEP_CHARACTERS: usize = 2_000;
/// The largest single output, in bytes (seed 004).
const LIMIT_BYTES: usize = 50_000;
/// What the notes of a text shortened to a number of bytes may take.
const NOTES_BYTES: usize = 1_200;

pub(super) const HEAD_TAIL: Digest = Digest {
    name: "head-tail",
    about: "Over 10,000 characters: keeps about the first and last 2,000, in whole lines.",
    shorten: |text| head_tail(text, LIMIT_CHARACTERS, KEEP_CHARACTERS),
};

pub(super) const MIDDLE_OUT: Digest = Digest {
    name: "middle-out",
    about: "Over 50,000 bytes: keeps the beginning and the end, so that the whole stays within 50,000.",
    shorten: |text| middle_out(text, LIMIT_BYTES),
};

/// Keeps about the first and last `keep` characters of a text over `limit` characters, in whole lines.
pub(crate) fn head_tail(text: &DigestText<'_>, limit: usize, keep: usize) -> Option<Vec<Piece>> {
    let characters = text.whole().chars().count();
    (characters > limit && characters > keep.saturating_mul(2)).then_some(())?;
    Some(keep_ends(text, keep, |line| line.chars().count()))
}

/// Keeps the beginning and the end of a text over `bytes` bytes, so that the whole, notes included, has at most that many.
pub(crate) fn middle_out(text: &DigestText<'_>, bytes: usize) -> Option<Vec<Piece>> {
    (text.whole().len() > bytes).then_some(())?;
    let errors: usize =
        errors::surviving_errors(text).iter().map(|&error| text.line(error).len().min(600) + 60).sum();
    let keep = bytes.saturating_sub(NOTES_BYTES).saturating_sub(errors) / 2;
    Some(keep_ends(text, keep, str::len))
}

/// Keeps the first `head` and last `tail` lines.
pub(crate) fn head_tail_lines(text: &DigestText<'_>, head: usize, tail: usize) -> Option<Vec<Piece>> {
    let mut kept = LineSelection::none(text);
    kept.keep_ends(head, tail);
    kept.into_pieces()
}

/// Keeps whole lines from both ends while they fit; a line over 500 characters that does not is cut.
fn keep_ends(text: &DigestText<'_>, keep: usize, size: impl Fn(&str) -> usize) -> Vec<Piece> {
    let mut kept = LineSelection::none(text);
    let (head, head_cut) = lines_that_fit(text, 0..text.len(), keep, &size);
    let (tail, tail_cut) = lines_that_fit(text, (head..text.len()).rev(), keep, &size);
    kept.keep_lines(0..head);
    kept.keep_lines(text.len() - tail..text.len());
    let cuts = [head_cut.map(|room| (head, room, 0)), tail_cut.map(|room| (text.len() - tail - 1, 0, room))];
    whole_but_cut(text, kept, cuts)
}

/// Returns how many lines fit, and how many bytes of the next one may stay where that is a long one.
fn lines_that_fit(
    text: &DigestText<'_>,
    lines: impl Iterator<Item = usize>,
    keep: usize,
    size: &impl Fn(&str) -> usize,
) -> (usize, Option<usize>) {
    let mut left = keep;
    let mut fits = 0;
    for index in lines {
        let length = size(text.line(index)) + 1;
        if length > left {
            let long = text.line(index).chars().count() > 500;
            return (fits, (long && left > 0).then_some(left));
        }
        left -= length;
        fits += 1;
    }
    (fits, None)
}

/// Gives the pieces of whole lines, with the cut lines put in where they belong.
fn whole_but_cut(
    text: &DigestText<'_>,
    mut kept: LineSelection<'_, '_>,
    cuts: [Option<(usize, usize, usize)>; 2],
) -> Vec<Piece> {
    let mut rooms: Vec<(usize, usize, usize)> = Vec::new();
    for (line, head, tail) in cuts.into_iter().flatten() {
        kept.keep_line(line);
        match rooms.last_mut() {
            Some(before) if before.0 == line => (before.1, before.2) = (before.1 + head, before.2 + tail),
            _ => rooms.push((line, head, tail)),
        }
    }
    let Some(mut pieces) = kept.into_pieces() else { return vec![Piece::Lines(0..text.len())] };
    for piece in &mut pieces {
        let Piece::Cut { line, .. } = piece else { continue };
        if let Some((line, head, tail)) = rooms.iter().find(|room| room.0 == *line) {
            *piece = cut_at(text.line(*line), *line, *head, *tail);
        }
    }
    pieces
}
