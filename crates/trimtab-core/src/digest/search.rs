//! Lines found by a search. Keeps the first three hits, how many there are and in which files most of them are; loses the
//! other hits.

use std::collections::BTreeMap;

use super::{Digest, DigestText, Note, Piece, line_selection::LineSelection};

/// How many hits are shown (seed 001).
const SHOWN: usize = 3;
/// How many files are named with their number of hits.
const FILES: usize = 3;

pub(super) const DIGEST: Digest = Digest {
    name: "search",
    about: "Keeps the first 3 hits, counts all of them, and names the files with most.",
    shorten,
};

fn shorten(text: &DigestText<'_>) -> Option<Vec<Piece>> {
    let mut kept = LineSelection::none(text);
    let mut hits = SearchHits::default();
    let mut heading = None;
    let mut shown = 0;
    for index in 0..text.len() {
        let line = text.line(index);
        let path = match read(line) {
            SearchLine::Blank => {
                heading = None;
                continue;
            }
            SearchLine::Separator => continue,
            SearchLine::Hit(path) => path,
            SearchLine::Numbered => heading.map_or("", |at| text.line(at)),
            SearchLine::Plain if is_heading(text, index) => {
                heading = Some(index);
                continue;
            }
            SearchLine::Plain => {
                hits.plain += 1;
                if hits.plain <= SHOWN {
                    hits.plain_lines.push(index);
                }
                continue;
            }
        };
        *hits.files.entry(path).or_default() += 1;
        hits.total += 1;
        if shown < SHOWN {
            kept.keep_line(index);
            heading.into_iter().for_each(|at| kept.keep_line(at));
            shown += 1;
        }
    }
    // A search that prints names only has no other lines; in any other, such lines belong to the tool.
    if hits.total == 0 {
        hits.plain_lines.iter().for_each(|&line| kept.keep_line(line));
        (hits.total, shown) = (hits.plain, hits.plain_lines.len());
    }
    kept.add_fact(hits.hits_note(shown));
    kept.into_pieces()
}

#[derive(Default)]
struct SearchHits<'a> {
    files: BTreeMap<&'a str, usize>,
    total: usize,
    plain: usize,
    plain_lines: Vec<usize>,
}

impl SearchHits<'_> {
    fn hits_note(&self, shown: usize) -> Note {
        let mut most: Vec<(String, usize)> = self
            .files
            .iter()
            .filter(|(path, _)| !path.is_empty())
            .map(|(path, hits)| ((*path).to_owned(), *hits))
            .collect();
        let files = most.len();
        // Stable: files with equally many hits stay in the order of their names.
        most.sort_by_key(|(_, hits)| std::cmp::Reverse(*hits));
        most.truncate(FILES);
        Note::Matches { total: self.total, files, shown, most }
    }
}

/// What a line of a search's output is.
enum SearchLine<'a> {
    Blank,
    /// Between groups of hits.
    Separator,
    /// A path and what was found there.
    Hit(&'a str),
    /// A line number and what was found; the path stands above.
    Numbered,
    Plain,
}

fn read(line: &str) -> SearchLine<'_> {
    let trimmed = line.trim();
    if trimmed.is_empty() {
        return SearchLine::Blank;
    }
    if trimmed == "--" {
        return SearchLine::Separator;
    }
    // A drive letter's colon does not end a path.
    let from = if line.get(1..3) == Some(":\\") { 2 } else { 0 };
    let Some(colon) = line.get(from..).and_then(|rest| rest.find(':')).map(|at| at + from) else {
        return SearchLine::Plain;
    };
    let (path, rest) = line.split_at(colon);
    if path.trim().bytes().all(|byte| byte.is_ascii_digit()) && !path.trim().is_empty() {
        return SearchLine::Numbered;
    }
    let numbered = rest.get(1..).is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
    let is_path =
        !path.contains([' ', '"', '(']) && (numbered || path.contains(['.', '/'])) && rest.len() > 1;
    if is_path || (numbered && path.len() < 200 && path.contains(['.', '/'])) {
        SearchLine::Hit(path)
    } else {
        SearchLine::Plain
    }
}

/// Tells a path that stands above the hits found in it.
fn is_heading(text: &DigestText<'_>, index: usize) -> bool {
    index + 1 < text.len() && matches!(read(text.line(index + 1)), SearchLine::Numbered)
}
