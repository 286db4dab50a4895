//! How the code reads, as far as a program can tell.

#![allow(clippy::expect_used, reason = "a test stops where a file cannot be read")]

mod common;

use common::{files_below, root};

/// The most lines a source file may have.
const MOST_LINES: usize = 800;

fn sources() -> Vec<(String, String)> {
    let files =
        files_below("crates").into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "rs"));
    let named = |path: std::path::PathBuf| {
        let name = path.strip_prefix(root()).expect("a path in the project").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(&path).expect("a source file"))
    };
    files.map(named).collect()
}

#[test]
fn every_file_is_short_enough_to_hold_one_idea() {
    let long: Vec<String> = sources()
        .into_iter()
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(name, lines)| format!("{name}: {lines} lines"))
        .collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn every_file_begins_by_saying_what_it_is() {
    let mute: Vec<String> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//!")).map(|(name, _)| name).collect();
    assert!(mute.is_empty(), "no module head: {mute:#?}");
}

#[test]
fn comments_are_about_now() {
    // Spelt in halves, so that this file does not find itself.
    let diary = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["for n", "ow"], ["work in pro", "gress"]]
        .map(|halves| halves.concat());
    let found: Vec<String> = sources()
        .iter()
        .flat_map(|(name, text)| text.lines().enumerate().map(move |(number, line)| (name, number, line)))
        .filter(|(_, _, line)| line.contains("//") && diary.iter().any(|word| line.contains(word.as_str())))
        .map(|(name, number, line)| format!("{name}:{}: {}", number + 1, line.trim()))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}
