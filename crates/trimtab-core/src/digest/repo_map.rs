//! Signatures of a repository or of one file. Of a repository: how many files it covers and the first three; of one file the
//! first 500 characters, which hold its outermost definitions. Loses the other signatures.

use super::{Digest, DigestText, Note, Piece, line_selection::LineSelection};

/// How much of a file's structure stays, in bytes (seed 001).
const STRUCTURE_BYTES: usize = 500;

pub(super) const DIGEST: Digest = Digest {
    name: "repo-map",
    about: "Counts the files that a map of a repository covers and names the first three.",
    shorten,
};

pub(super) const STRUCTURE: Digest = Digest {
    name: "structure",
    about: "Keeps the first 500 characters of a file's structure, in whole lines.",
    shorten: |text| {
        let mut kept = LineSelection::none(text);
        kept.keep_beginning(STRUCTURE_BYTES);
        kept.into_pieces()
    },
};

fn shorten(text: &DigestText<'_>) -> Option<Vec<Piece>> {
    let paths: Vec<String> = text.lines().filter_map(heading_path).map(str::to_owned).collect();
    let mut kept = LineSelection::none(text);
    kept.add_fact(Note::RepoMap { files: paths.len(), samples: paths.into_iter().take(3).collect() });
    kept.into_pieces()
}

/// Returns the path that a line names as the heading of what follows.
fn heading_path(line: &str) -> Option<&str> {
    let unmarked = line.trim_start_matches(['#', '*', '📄']).trim_start();
    let unmarked = unmarked.strip_prefix("File: ").unwrap_or(unmarked);
    let at_margin = !line.starts_with([' ', '\t']);
    let path = unmarked.trim_end().trim_end_matches([':', '*']).trim_matches('`');
    let (_, extension) = path.rsplit_once('.')?;
    let is_path = !path.contains([' ', '(', '"']) && (1..=8).contains(&extension.len());
    (at_margin && is_path && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(path)
}
