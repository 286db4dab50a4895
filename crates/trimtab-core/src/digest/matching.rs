//! Keeps the lines that a user's patterns name, and error lines. Loses the rest.

use regex::Regex;

use super::{DigestText, Piece, line_selection::LineSelection};

/// Keeps the lines that match one of the patterns. Lines are matched as a terminal would show them.
pub(crate) fn lines_matching(text: &DigestText<'_>, patterns: &[Regex]) -> Option<Vec<Piece>> {
    let mut kept = LineSelection::none(text);
    for index in 0..text.len() {
        let line = text.terminal_line(index);
        if patterns.iter().any(|pattern| pattern.is_match(&line)) {
            kept.keep_line(index);
        }
    }
    kept.into_pieces()
}
