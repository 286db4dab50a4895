//! A list of commits. Keeps its first 300 characters in whole lines and how many commits there are; loses the older ones.

use super::{Digest, DigestText, Note, Piece, diff::BEGINNING, line_selection::LineSelection};

pub(super) const DIGEST: Digest = Digest {
    name: "git-log",
    about: "Keeps the first 300 characters of a commit log and counts the commits.",
    shorten,
};

fn shorten(text: &DigestText<'_>) -> Option<Vec<Piece>> {
    let full = text.lines().filter(|line| is_full(line)).count();
    let total = if full > 0 { full } else { text.lines().filter(|line| is_short(line)).count() };
    let mut kept = LineSelection::none(text);
    kept.keep_beginning(BEGINNING);
    kept.add_fact(Note::Commits { total });
    kept.into_pieces()
}

fn is_full(line: &str) -> bool {
    without_graph(line)
        .strip_prefix("commit ")
        .is_some_and(|rest| is_hash(rest.split(' ').next().unwrap_or(rest)))
}

pub(super) fn is_short(line: &str) -> bool {
    without_graph(line).split_once(' ').is_some_and(|(hash, _)| is_hash(hash))
}

/// Leaves out the graph that precedes a commit.
fn without_graph(line: &str) -> &str {
    line.trim_start_matches(['*', '|', '/', '\\', ' ', '_'])
}

fn is_hash(word: &str) -> bool {
    (7..=40).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}
