//! A directory drawn as a tree. Keeps how many files and directories it shows; loses the drawing.

use super::{Digest, DigestText, Note, Piece, line_selection::LineSelection};

pub(super) const DIGEST: Digest =
    Digest { name: "tree", about: "Counts the files and directories of a drawn tree.", shorten };

fn shorten(text: &DigestText<'_>) -> Option<Vec<Piece>> {
    let lines: Vec<(usize, String)> =
        (0..text.len()).filter_map(|index| parse_node(&text.terminal_line(index))).collect();
    let is_directory = |at: usize, depth: usize, name: &str| {
        lines.get(at + 1).is_some_and(|(next, _)| *next > depth) || name.ends_with('/')
    };
    let drawn =
        lines.iter().enumerate().filter(|(at, (depth, name))| is_directory(*at, *depth, name)).count();
    // What the tool counted itself is what it knows; whether the root counts differs between versions.
    let told = (0..text.len()).rev().take(3).find_map(|index| parse_counts(&text.terminal_line(index)));
    let (directories, files) = told.unwrap_or((drawn, lines.len() - drawn));
    let samples =
        lines.iter().filter(|(depth, _)| *depth > 0).take(3).map(|(_, name)| name.clone()).collect();
    let mut kept = LineSelection::none(text);
    kept.add_fact(Note::Listing { files, directories, samples });
    kept.into_pieces()
}

/// Reads `2 directories, 11 files`.
fn parse_counts(line: &str) -> Option<(usize, usize)> {
    let (directories, files) = line.trim().split_once(", ")?;
    let (directories, name) = directories.split_once(' ')?;
    let (files, of) = files.split_once(' ')?;
    (name.starts_with("director") && of.starts_with("file")).then_some(())?;
    Some((directories.parse().ok()?, files.parse().ok()?))
}

/// Returns the depth and name on a line of a tree; nothing for its closing count and blank lines.
fn parse_node(line: &str) -> Option<(usize, String)> {
    let name = line.trim_start_matches(|letter: char| letter.is_whitespace() || is_drawn(letter));
    let counts = name.starts_with(|digit: char| digit.is_ascii_digit())
        && (name.contains(" director") || name.ends_with(" files"));
    (!name.is_empty() && !counts && !name.starts_with('[')).then_some(())?;
    let name_at = line.len().saturating_sub(name.len());
    let depth = line.get(..name_at).map_or(0, |drawing| drawing.chars().count());
    Some((depth, name.trim_end().to_owned()))
}

/// Tells the characters that trees are drawn with, in box drawing or in ASCII.
fn is_drawn(letter: char) -> bool {
    matches!(letter, '│' | '├' | '└' | '─' | '┬' | '┌' | '┐' | '|' | '`' | '-' | '+' | '\u{a0}')
}
