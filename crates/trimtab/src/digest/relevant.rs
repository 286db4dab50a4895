//! Keeps the lines that say most about what is being done, and error lines. Loses the rest. Takes words besides the text, so it
//! is a function and stands in no list.

use super::{Piece, Text, kept::Kept};
use crate::summary::ranked_lines;

/// Keeps the `most` lines that say most about some words, with the first and the last line.
pub(crate) fn relevant_lines(text: &Text<'_>, terms: &[String], most: usize) -> Option<Vec<Piece>> {
    let mut kept = Kept::none(text);
    kept.ends(1, 1);
    ranked_lines(text.whole(), terms, most).into_iter().for_each(|line| kept.line(line));
    kept.pieces()
}
