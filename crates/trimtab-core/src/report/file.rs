//! A file as a conversation knew it, for other programs. Takes a path as people write it and a step; gives its lines with the
//! steps that showed them, and says of lines that were never shown that they are unknown. Never guesses which file is meant.

use std::cmp::Reverse;

use serde::Serialize;

use crate::{
    facts::Facts,
    files::{Existence, FileState, FileTimeline, LineRun},
};

/// How many paths are named where the one asked for is not known.
const NEAREST: usize = 3;

/// A file of which nothing is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// No file was touched.
    #[error("{0} is not known: no call touched a file")]
    NoFiles(String),
    /// No file has that name.
    #[error("{0} is not known. Nearest: {1}")]
    Unknown(String, String),
    /// Several files end so.
    #[error("{0} may be {1}: name one of them")]
    Several(String, String),
    /// The file was touched later.
    #[error("{path} was not touched by step {step}; it first was in step {first}")]
    Later {
        /// The file.
        path: String,
        /// The step that was asked for.
        step: u32,
        /// The step that first touched it.
        first: u32,
    },
}

/// A file as a conversation knew it.
#[derive(Debug, Serialize)]
pub struct FileReport<'a> {
    path: &'a str,
    step: u32,
    exists: Option<bool>,
    /// The whole text, where all of it is known.
    text: Option<String>,
    line_count: Option<usize>,
    known_lines: usize,
    accesses: Vec<AccessRow>,
    lines: Vec<ReportedLines<'a>>,
}

#[derive(Debug, Serialize)]
struct AccessRow {
    step: u32,
    kind: &'static str,
}

/// Some lines in a row: known ones with their texts and steps, unknown ones with their count; none for the rest.
#[derive(Debug, Serialize)]
struct ReportedLines<'a> {
    first: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<Vec<ReportedLine<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<usize>,
}

#[derive(Debug, Serialize)]
struct ReportedLine<'a> {
    text: &'a str,
    seen_in_step: u32,
}

/// Finds a file by its path, or by the end of it where only one file fits, and returns its state after a step.
///
/// # Errors
/// Says that it is not known, that it may be several, or when it was first touched.
pub fn file_at<'a>(
    asked: &str,
    step: u32,
    facts: &Facts,
    files: &'a FileTimeline,
) -> Result<(&'a str, FileState), FileError> {
    let path = find_file(asked, facts, files)?;
    let Some(state) = files.file_state_at(path, step) else {
        let first = files.accesses(path).first().map_or(0, |access| access.step);
        return Err(FileError::Later { path: path.to_owned(), step, first });
    };
    Ok((path, state))
}

/// Tells what was known of a file after a step.
pub fn file_report<'a>(
    path: &'a str,
    step: u32,
    state: &'a FileState,
    files: &FileTimeline,
) -> FileReport<'a> {
    let lines = state.runs().into_iter().map(|run| match run {
        LineRun::Known { first, lines } => {
            let known =
                lines.into_iter().map(|line| ReportedLine { text: line.text, seen_in_step: line.seen });
            ReportedLines { first, known: Some(known.collect()), unknown: None }
        }
        LineRun::Unknown { first, count } => ReportedLines { first, known: None, unknown: Some(count) },
        LineRun::Rest { first } => ReportedLines { first, known: None, unknown: None },
    });
    let accesses = files.accesses(path).iter().filter(|access| access.step <= step);
    FileReport {
        path,
        step,
        exists: match state.existence() {
            Existence::Unknown => None,
            Existence::Present => Some(true),
            Existence::Absent => Some(false),
        },
        text: state.text(),
        line_count: state.line_count(),
        known_lines: state.known_lines(),
        accesses: accesses.map(|access| AccessRow { step: access.step, kind: access.kind.name() }).collect(),
        lines: lines.collect(),
    }
}

/// Finds the file that is meant: by its name, or by the end of it where only one file fits.
fn find_file<'a>(asked: &str, facts: &Facts, files: &'a FileTimeline) -> Result<&'a str, FileError> {
    let key = facts.file_key(asked.trim_start_matches("./"));
    let ends = |path: &&str| path.strip_suffix(&*key).is_some_and(|head| head.ends_with('/'));
    let exact = files.paths().find(|path| *path == key);
    let fitting: Vec<&str> = files.paths().filter(ends).collect();
    match (exact, fitting.as_slice()) {
        (Some(path), _) => Ok(path),
        (None, [path]) => Ok(path),
        (None, []) if files.paths().next().is_none() => Err(FileError::NoFiles(asked.to_owned())),
        (None, []) => Err(FileError::Unknown(asked.to_owned(), nearest_paths(asked, files).join(", "))),
        (None, several) => Err(FileError::Several(asked.to_owned(), several.join(", "))),
    }
}

/// Returns the known paths most like one that is not: those that end alike, then those whose names begin alike.
fn nearest_paths<'a>(asked: &str, files: &'a FileTimeline) -> Vec<&'a str> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_lowercase();
    let alike = |path: &str| {
        let ending =
            path.chars().rev().zip(asked.chars().rev()).take_while(|(one, other)| one == other).count();
        let beginning =
            name(path).chars().zip(name(asked).chars()).take_while(|(one, other)| one == other).count();
        ending + beginning * 2
    };
    let mut paths: Vec<&str> = files.paths().collect();
    paths.sort_by_key(|path| Reverse(alike(path)));
    paths.truncate(NEAREST);
    paths
}
