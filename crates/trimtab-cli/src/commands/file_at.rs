//! `trimtab file-at`: a file as the conversation knew it at a step. Takes a request or a recording and a path; gives its
//! lines with their numbers, and says of lines that were never shown that they are unknown.

use std::cmp::Reverse;

use anstyle::Style;
use anyhow::{Result, bail};
use serde::Serialize;
use trimtab::{AccessKind, Existence, Facts, FileState, Files, Run, facts, files};

use crate::{
    args::{FileAt, Input},
    input,
    output::{Output, on_one_line},
};

/// How many paths are named where the one asked for is not known.
const NEAREST: usize = 3;

/// Columns of the line number and the blanks behind it.
const NUMBER_WIDTH: usize = 8;

const DIM: Style = Style::new().dimmed();

#[derive(Serialize)]
struct Report<'a> {
    path: &'a str,
    step: u32,
    exists: Option<bool>,
    /// The whole text, where all of it is known.
    text: Option<String>,
    line_count: Option<usize>,
    known_lines: usize,
    accesses: Vec<Row>,
    lines: Vec<Lines<'a>>,
}

#[derive(Serialize)]
struct Row {
    step: u32,
    kind: &'static str,
}

/// Some lines in a row: known ones with their texts and steps, unknown ones with their count; none for the rest.
#[derive(Serialize)]
struct Lines<'a> {
    first: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<Vec<Known<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<usize>,
}

#[derive(Serialize)]
struct Known<'a> {
    text: &'a str,
    seen_in_step: u32,
}

pub(crate) fn run(asked: &FileAt, out: &mut Output) -> Result<()> {
    let input = Input {
        file: asked.file.clone(),
        store: asked.store.clone(),
        format: None,
        segment: asked.segment,
        step: None,
    };
    let conversation = input::conversation(&input)?;
    let history = &conversation.history;
    let facts = facts(history);
    let files = files(history, &facts);
    let last = facts.current_step();
    let step = asked.step.unwrap_or(last);
    if step > last {
        bail!("{}: has no step {step}: the last is {last}", conversation.name);
    }
    let path = meant(&asked.path, &facts, &files)?;
    let Some(state) = files.file_state_at(path, step) else {
        let first = files.accesses(path).first().map_or(0, |access| access.step);
        bail!("{path} was not touched by step {step}; it first was in step {first}");
    };
    if asked.json {
        return out.json(&report(path, step, &state, &files));
    }
    print(path, step, &state, &files, out)
}

/// Finds the file that is meant: by its name, or by the end of it where only one file fits.
pub(crate) fn meant<'a>(asked: &str, facts: &Facts, files: &'a Files) -> Result<&'a str> {
    let key = facts.file_key(asked.trim_start_matches("./"));
    let ends = |path: &&str| path.strip_suffix(&*key).is_some_and(|head| head.ends_with('/'));
    let exact = files.paths().find(|path| *path == key);
    let fitting: Vec<&str> = files.paths().filter(ends).collect();
    match (exact, fitting.as_slice()) {
        (Some(path), _) => Ok(path),
        (None, [path]) => Ok(path),
        (None, []) if files.paths().next().is_none() => bail!("{asked} is not known: no call touched a file"),
        (None, []) => bail!("{asked} is not known. Nearest: {}", nearest(asked, files).join(", ")),
        (None, several) => bail!("{asked} may be {}: name one of them", several.join(", ")),
    }
}

/// Returns the known paths most like one that is not: those that end alike, then those whose names begin alike.
fn nearest<'a>(asked: &str, files: &'a Files) -> Vec<&'a str> {
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

fn print(path: &str, step: u32, state: &FileState, files: &Files, out: &mut Output) -> Result<()> {
    let count =
        state.line_count().map_or_else(|| "an unknown number of".to_owned(), |count| count.to_string());
    match state.existence() {
        Existence::Absent => {
            return out.line(format_args!("{path} after step {step}: there is no such file"));
        }
        Existence::Present | Existence::Unknown => {
            out.line(format_args!(
                "{path} after step {step}: {count} lines, {} of them known",
                state.known_lines()
            ))?;
        }
    }
    out.line(accesses(path, step, files))?;
    out.line("")?;
    let width = out.width().saturating_sub(NUMBER_WIDTH);
    let runs = state.runs();
    for run in &runs {
        match run {
            Run::Known { first, lines } => {
                // What a text ends with behind its last line break is no line.
                let is_last = state.text().is_some() && lines.last().is_some_and(|line| line.text.is_empty());
                let shown = lines.len() - usize::from(is_last);
                for (number, line) in (*first..).zip(lines.iter().take(shown)) {
                    let text = line.text.replace('\t', "    ");
                    out.line(format_args!("{DIM}{number:>6}{DIM:#}  {}", fitted(&text, width)))?;
                }
            }
            Run::Unknown { first, count: 1 } => {
                out.line(format_args!("{DIM}{first:>6}  [unknown]{DIM:#}"))?;
            }
            Run::Unknown { first, count } => {
                out.line(format_args!("{DIM}{first:>6}  [{count} unknown lines]{DIM:#}"))?;
            }
            Run::Rest { first } => {
                out.line(format_args!(
                    "{DIM}{first:>6}  [unknown from here on; there may be nothing]{DIM:#}"
                ))?;
            }
        }
    }
    Ok(())
}

/// Cuts a line where it is too wide; blanks at its beginning stay.
fn fitted(text: &str, width: usize) -> String {
    let blanks: String = text.chars().take_while(|letter| *letter == ' ').collect();
    let rest = on_one_line(text.trim_start(), width.saturating_sub(blanks.len()));
    blanks + &rest
}

pub(crate) fn accesses(path: &str, step: u32, files: &Files) -> String {
    let of = |kind: AccessKind| {
        let found = files.accesses(path).iter().filter(|access| access.kind == kind && access.step <= step);
        let steps: Vec<String> = found.map(|access| access.step.to_string()).collect();
        let shown = if steps.len() > 6 {
            format!("{} times, last in step {}", steps.len(), steps.last().map_or("", String::as_str))
        } else {
            format!("in step {}", steps.join(", "))
        };
        (!steps.is_empty()).then(|| format!("{} {shown}", past(kind)))
    };
    let kinds = [AccessKind::Read, AccessKind::Create, AccessKind::Edit, AccessKind::Delete];
    kinds.into_iter().filter_map(of).collect::<Vec<_>>().join("; ")
}

fn past(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Read => "read",
        AccessKind::Create => "written",
        AccessKind::Edit => "edited",
        AccessKind::Delete => "deleted",
    }
}

fn report<'a>(path: &'a str, step: u32, state: &'a FileState, files: &Files) -> Report<'a> {
    let lines = state.runs().into_iter().map(|run| match run {
        Run::Known { first, lines } => {
            let known = lines.into_iter().map(|line| Known { text: line.text, seen_in_step: line.seen });
            Lines { first, known: Some(known.collect()), unknown: None }
        }
        Run::Unknown { first, count } => Lines { first, known: None, unknown: Some(count) },
        Run::Rest { first } => Lines { first, known: None, unknown: None },
    });
    let accesses = files.accesses(path).iter().filter(|access| access.step <= step);
    Report {
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
        accesses: accesses.map(|access| Row { step: access.step, kind: access.kind.name() }).collect(),
        lines: lines.collect(),
    }
}
