//! A diff. Keeps its first 300 characters in whole lines, how many files and lines it changes and the first three files;
//! loses the other hunks.

use super::{Digest, DigestText, Note, Piece, line_selection::LineSelection};
use crate::facts::HunkHeader;

/// How much of a diff or log stays, in bytes (seed 001).
pub(super) const BEGINNING: usize = 300;

pub(super) const DIGEST: Digest = Digest {
    name: "diff",
    about: "Keeps the first 300 characters of a diff, counts files and changed lines and names the first three files.",
    shorten,
};

fn shorten(text: &DigestText<'_>) -> Option<Vec<Piece>> {
    let (mut files, mut added, mut removed, mut samples) = (0, 0, 0, Vec::new());
    // In a hunk, `--- a` may be a removed line `-- a`; the header says how many lines belong to the hunk.
    let mut left = (0_usize, 0_usize);
    for line in text.lines() {
        let first = line.as_bytes().first();
        if left.0 + left.1 > 0 {
            match first {
                Some(b'+') => (added, left.1) = (added + 1, left.1.saturating_sub(1)),
                Some(b'-') => (removed, left.0) = (removed + 1, left.0.saturating_sub(1)),
                Some(b'\\') => {}
                _ => left = (left.0.saturating_sub(1), left.1.saturating_sub(1)),
            }
        } else if let Some(header) = HunkHeader::parse(line) {
            left = (header.old.1, header.new.1);
        } else if let Some(path) = line.strip_prefix("+++ ") {
            files += 1;
            if samples.len() < 3 {
                samples.push(path.trim_start_matches("b/").split('\t').next().unwrap_or(path).to_owned());
            }
        }
    }
    let mut kept = LineSelection::none(text);
    kept.keep_beginning(BEGINNING);
    kept.add_fact(Note::Diff { files, added, removed, samples });
    kept.into_pieces()
}
