//! Keeps the names of a text. Takes a text; gives the identifiers, paths, hashes and addresses in it, as they stand there.
//! Never gives a word that anyone could guess: a name is at least six characters long and written as no word is.

use std::collections::HashSet;

use super::{DigestText, Note, Piece, line_selection::LineSelection};
use crate::facts::Outcome;

/// The shortest name, in bytes: shorter ones are guessed or seen everywhere.
const SHORTEST: usize = 6;
/// The longest name: beyond it stand encoded data and search debris.
const LONGEST: usize = 90;
/// How far from an error its place stands.
const PLACE_LINES: usize = 4;

/// Returns the names of a text in order, repetitions included.
pub(crate) fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !is_of_name(character)).map(trim_marks).filter(|word| is_name(word))
}

/// Returns a word without the marks around it; the slash of an absolute path is none.
fn trim_marks(word: &str) -> &str {
    let marks = ['.', '/', '-', '@', '+', '~', '#', '='];
    let word = word.trim_end_matches(marks);
    let inner = word.trim_start_matches(marks);
    let from_root = word.len() == inner.len() + 1 && word.starts_with('/');
    if from_root { word } else { inner }
}

/// Returns how many bytes the distinct names of a text have, with one more for each.
pub(crate) fn names_bytes(text: &str) -> usize {
    let mut seen = HashSet::new();
    names_in(text).filter(|name| seen.insert(*name)).map(|name| name.len() + 1).sum()
}

/// Gives the pieces of a text of which only names are kept: its first, last and error lines, and the names given.
pub(crate) fn named_ends(text: &DigestText<'_>, names: Vec<String>) -> Option<Vec<Piece>> {
    let mut kept = LineSelection::none(text);
    if text.context().outcome == Outcome::Failed {
        // A harness's line with the exit code comes first; what failed, and where, stands near the error.
        kept.keep_ends(3, 1);
        kept.set_context(PLACE_LINES);
    } else {
        kept.keep_ends(1, 1);
    }
    if !names.is_empty() {
        kept.add_fact(Note::Names(names));
    }
    kept.into_pieces()
}

/// Gives the pieces of a text of which nothing but the names given is kept.
pub(crate) fn names_only(text: &DigestText<'_>, names: Vec<String>) -> Option<Vec<Piece>> {
    let note = (!names.is_empty()).then_some(Piece::Note(Note::Names(names)));
    (!text.is_empty()).then(|| note.into_iter().collect())
}

fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(character, '_' | '.' | '/' | '-' | '@' | '+' | '~' | '#' | '=')
        || (!character.is_ascii() && character.is_alphanumeric())
}

fn is_name(word: &str) -> bool {
    if !(SHORTEST..=LONGEST).contains(&word.len()) {
        return false;
    }
    let bytes = word.as_bytes();
    let has = |wanted: &[u8]| bytes.iter().any(|byte| wanted.contains(byte));
    let letters = bytes.iter().any(u8::is_ascii_alphabetic);
    if letters && (has(b"/_") || has_extension(word) || is_camel(bytes)) {
        return true;
    }
    is_hash(bytes)
}

/// A dot between letters or digits, as in `lib.rs` or `os.path`.
fn has_extension(word: &str) -> bool {
    word.rsplit_once('.').is_some_and(|(stem, end)| {
        !stem.is_empty() && !end.is_empty() && end.bytes().any(|byte| byte.is_ascii_alphabetic())
    })
}

/// A small letter before a capital, as in `readFile`.
fn is_camel(bytes: &[u8]) -> bool {
    bytes.windows(2).any(
        |pair| matches!(pair, [before, after] if before.is_ascii_lowercase() && after.is_ascii_uppercase()),
    )
}

fn is_hash(bytes: &[u8]) -> bool {
    bytes.len() >= 7
        && bytes.iter().all(u8::is_ascii_hexdigit)
        && bytes.iter().any(u8::is_ascii_digit)
        && bytes.iter().any(u8::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paths_identifiers_hashes_and_addresses() {
        let text = "warning: unused `read_file` in src/wire/mod.rs:12, see https://docs.rs/serde, HttpServer, \
                    commit 3fa9c1d of the branch main; version 1.2.3 took 100 seconds";
        let found: Vec<&str> = names_in(text).collect();
        assert_eq!(found, ["read_file", "src/wire/mod.rs", "docs.rs/serde", "HttpServer", "3fa9c1d"]);
    }

    #[test]
    fn an_absolute_path_is_one_with_its_first_slash() {
        let found: Vec<&str> =
            names_in("in /home/dev/lib.rs/, //host.name/page, ./src/main.rs and -/opt/x_y").collect();
        assert_eq!(found, ["/home/dev/lib.rs", "host.name/page", "src/main.rs", "opt/x_y"]);
    }

    #[test]
    fn distinct_names_count_once() {
        assert_eq!(names_bytes("a_long_name a_long_name other_name"), 12 + 11);
    }
}
