//! Any text: its first and last ten lines. Keeps error lines; loses the middle.

use super::{Digest, DigestText, Piece, sizes};

/// How many lines stay at each end, as for files.
const ENDS: usize = 10;

pub(super) const DIGEST: Digest =
    Digest { name: "other", about: "Keeps the first and last 10 lines of any text.", shorten };

pub(super) fn shorten(text: &DigestText<'_>) -> Option<Vec<Piece>> {
    sizes::head_tail_lines(text, ENDS, ENDS)
}
