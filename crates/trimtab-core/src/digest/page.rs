//! A web page or document. Keeps its first lines and its headings; loses the text under them.

use super::{Digest, DigestText, Piece, line_selection::LineSelection};

/// How many lines stay at the beginning and at the end, and how many headings between.
const HEAD: usize = 5;
const TAIL: usize = 2;
const HEADINGS: usize = 12;

pub(super) const DIGEST: Digest = Digest {
    name: "page",
    about: "Web pages and documents: keeps the first 5 and last 2 lines and up to 12 headings.",
    shorten,
};

fn shorten(text: &DigestText<'_>) -> Option<Vec<Piece>> {
    let mut kept = LineSelection::none(text);
    kept.keep_ends(HEAD, TAIL);
    (0..text.len())
        .filter(|&index| is_heading(text, index))
        .take(HEADINGS)
        .for_each(|index| kept.keep_line(index));
    kept.into_pieces()
}

fn is_heading(text: &DigestText<'_>, index: usize) -> bool {
    let line = text.line(index).trim_start();
    let marked = line.trim_start_matches('#');
    let underlined = || {
        let next = text.line(index + 1).trim_end();
        next.len() >= 3 && (next.bytes().all(|byte| byte == b'=') || next.bytes().all(|byte| byte == b'-'))
    };
    (marked.len() < line.len() && marked.starts_with(' '))
        || ["<title", "<h1", "<h2", "<h3"].iter().any(|tag| line.starts_with(tag))
        || (!line.is_empty() && line.len() < 120 && underlined())
}
