//! A directory drawn as a tree. Keeps how many files and directories it shows; loses the drawing.

use super::{Digest, Note, Piece, Text, kept::Kept};

pub(super) const DIGEST: Digest =
    Digest { name: "tree", about: "Counts the files and directories of a drawn tree.", shorten };

fn shorten(text: &Text<'_>) -> Option<Vec<Piece>> {
    let lines: Vec<(usize, String)> = (0..text.len()).filter_map(|index| node(&text.shown(index))).collect();
    let mut note = (0, 0);
    for (at, (depth, name)) in lines.iter().enumerate() {
        let opens = lines.get(at + 1).is_some_and(|(next, _)| next > depth);
        if opens || name.ends_with('/') { note.1 += 1 } else { note.0 += 1 }
    }
    let samples =
        lines.iter().filter(|(depth, _)| *depth > 0).take(3).map(|(_, name)| name.clone()).collect();
    let mut kept = Kept::none(text);
    kept.fact(Note::Listing { files: note.0, directories: note.1, samples });
    kept.pieces()
}

/// Returns the depth and name on a line of a tree; nothing for its closing count and blank lines.
fn node(line: &str) -> Option<(usize, String)> {
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
