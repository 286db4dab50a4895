//! A file as read. Up to 20 lines: whole. Longer: the first and last ten lines, and of source code an outline of its
//! definitions. Loses bodies; the note says to read it again.

use super::{Digest, DigestText, Note, Piece, line_selection::LineSelection, outline};

/// A file up to this many lines is kept whole (seed 001).
const WHOLE: usize = 20;
/// How many lines of a longer one stay at each end (seed 001).
const ENDS: usize = 10;

pub(super) const DIGEST: Digest = Digest {
    name: "file",
    about: "Up to 20 lines whole; longer files keep the first and last 10 lines, source code an outline of definitions too.",
    shorten,
};

fn shorten(text: &DigestText<'_>) -> Option<Vec<Piece>> {
    if text.len() <= WHOLE {
        // Few lines can still be long ones.
        return LineSelection::all(text).into_pieces();
    }
    let mut kept = LineSelection::none(text);
    kept.keep_ends(ENDS, ENDS);
    let outline = outline::find_definitions(text);
    for &line in &outline.shown {
        kept.keep_line(line);
    }
    if outline.total > 0 {
        kept.add_fact(Note::Definitions { total: outline.total, shown: outline.shown.len() });
    }
    kept.into_pieces()
}
