//! Keeps the lines that a user's patterns name, and error lines. Loses the rest.

use regex::Regex;

use super::{Piece, Text, kept::Kept};

/// Keeps the lines that match one of the patterns. Lines are matched as a terminal would show them.
pub(crate) fn lines_matching(text: &Text<'_>, patterns: &[Regex]) -> Option<Vec<Piece>> {
    let mut kept = Kept::none(text);
    for index in 0..text.len() {
        let line = text.shown(index);
        if patterns.iter().any(|pattern| pattern.is_match(&line)) {
            kept.line(index);
        }
    }
    kept.pieces()
}
