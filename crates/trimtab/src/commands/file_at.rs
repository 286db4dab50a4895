//! `trimtab file-at`: a file as the conversation knew it at a step. Takes a request or a recording and a path; gives its
//! lines with their numbers, and says of lines that were never shown that they are unknown.

use anstyle::Style;
use anyhow::{Result, bail};
use trimtab_core::{
    Files, facts, files,
    files::{AccessKind, Existence, FileState, Run},
    report::{file_at, file_report},
};

use crate::{
    args::{FileAt, Input},
    input,
    output::{Output, on_one_line},
};

/// Columns of the line number and the blanks behind it.
const NUMBER_WIDTH: usize = 8;

const DIM: Style = Style::new().dimmed();

pub(crate) fn run(asked: &FileAt, out: &mut Output) -> Result<()> {
    let input = Input {
        file: asked.file.clone(),
        view: asked.view.clone(),
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
    let (path, state) = file_at(&asked.path, step, &facts, &files)?;
    if asked.json {
        return out.json(&file_report(path, step, &state, &files));
    }
    print(path, step, &state, &files, out)
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
