//! Names of files and directories. Keeps how many there are and the first three; loses the other names.

use std::collections::BTreeSet;

use super::{Digest, DigestText, Note, Piece, line_selection::LineSelection};

/// How many names are quoted (law 9).
const SAMPLES: usize = 3;

pub(super) const DIGEST: Digest =
    Digest { name: "listing", about: "Counts files and directories and names the first three.", shorten };

fn shorten(text: &DigestText<'_>) -> Option<Vec<Piece>> {
    let mut files = 0;
    let mut directories = BTreeSet::new();
    let mut samples = Vec::new();
    for index in 0..text.len() {
        let line = text.terminal_line(index);
        match parse_entry(&line) {
            ListingEntry::None => continue,
            ListingEntry::Directory(name) => {
                directories.insert(name.trim_end_matches('/').to_owned());
            }
            ListingEntry::File(name) => {
                files += 1;
                parent_directories(name).for_each(|parent| {
                    directories.insert(parent.to_owned());
                });
                if samples.len() < SAMPLES {
                    samples.push(name.to_owned());
                }
            }
        }
    }
    let mut kept = LineSelection::none(text);
    kept.add_fact(Note::Listing { files, directories: directories.len(), samples });
    kept.into_pieces()
}

/// What a line of a listing names.
enum ListingEntry<'a> {
    None,
    File(&'a str),
    Directory(&'a str),
}

fn parse_entry(line: &str) -> ListingEntry<'_> {
    let line = line.trim();
    let line = line.strip_prefix("- ").unwrap_or(line);
    let heading =
        line.is_empty() || line.starts_with(['[', '(', '#']) || matches!(line, "." | ".." | "./" | "../");
    if heading
        || (line.starts_with("total ")
            && line.get(6..).is_some_and(|size| size.starts_with(|digit: char| digit.is_ascii_digit())))
    {
        return ListingEntry::None;
    }
    if let Some(long) = long_entry(line) {
        return long;
    }
    match line.strip_suffix(':') {
        // `ls -R` writes a directory's name before what is in it.
        Some(directory) if !directory.contains(' ') => ListingEntry::Directory(directory),
        _ if line.ends_with('/') => ListingEntry::Directory(line),
        // A sentence of the tool, such as `Found 12 files`.
        _ if line.split(' ').count() > 6 || (line.starts_with("Found ") && line.contains(" file")) => {
            ListingEntry::None
        }
        _ => ListingEntry::File(line),
    }
}

/// Reads a line of `ls -l`: permissions first, the name after eight columns.
fn long_entry(line: &str) -> Option<ListingEntry<'_>> {
    let mut columns = line.split_ascii_whitespace();
    let permissions = columns.next()?;
    let is_long = permissions.len() >= 10
        && permissions
            .bytes()
            .skip(1)
            .take(9)
            .all(|byte| matches!(byte, b'r' | b'w' | b'x' | b'-' | b's' | b't' | b'S' | b'T'));
    is_long.then_some(())?;
    let name = columns.nth(7)?;
    Some(match (permissions.starts_with('d'), name) {
        (_, "." | "..") => ListingEntry::None,
        (true, name) => ListingEntry::Directory(name),
        (false, name) => ListingEntry::File(name),
    })
}

/// Returns every directory above a path that the path names.
fn parent_directories(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/')
        .filter_map(|(at, _)| path.get(..at))
        .filter(|parent| !parent.is_empty() && *parent != ".")
}
