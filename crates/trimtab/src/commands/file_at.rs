//! `trimtab file-at`: a file as the conversation knew it at a step. Takes a request or a recording and a path; gives its
//! lines with their numbers, and says of lines that were never shown that they are unknown.

use anstyle::Style;
use anyhow::{Result, bail};
use trimtab_core::{
    FileTimeline, facts, files,
    files::{AccessKind, Existence, FileState, LineRun},
    report::{file_at, file_report},
};

use crate::{
    args::{FileAtArgs, InputArgs},
    input,
    output::{Output, on_one_line},
};

/// Columns of the line number and the blanks after it.
const NUMBER_WIDTH: usize = 8;

const DIM: Style = Style::new().dimmed();

pub(crate) fn run(asked: &FileAtArgs, out: &mut Output) -> Result<()> {
    let input = InputArgs {
        file: asked.file.clone(),
        view: asked.view.clone(),
        format: None,
        segment: asked.segment,
        step: None,
    };
    let conversation = input::read_conversation(&input)?;
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
        return out.write_json(&file_report(path, step, &state, &files));
    }
    print_file(path, step, &state, &files, out)
}

fn print_file(
    path: &str,
    step: u32,
    state: &FileState,
    files: &FileTimeline,
    out: &mut Output,
) -> Result<()> {
    let count =
        state.line_count().map_or_else(|| "an unknown number of".to_owned(), |count| count.to_string());
    match state.existence() {
        Existence::Absent => {
            return out.write_line(format_args!("{path} after step {step}: there is no such file"));
        }
        Existence::Present | Existence::Unknown => {
            out.write_line(format_args!(
                "{path} after step {step}: {count} lines, {} of them known",
                state.known_lines()
            ))?;
        }
    }
    out.write_line(describe_accesses(path, step, files))?;
    out.write_line("")?;
    let width = out.width().saturating_sub(NUMBER_WIDTH);
    let runs = state.runs();
    for run in &runs {
        match run {
            LineRun::Known { first, lines } => {
                // The text after the last line break is not a line.
                let is_last = state.text().is_some() && lines.last().is_some_and(|line| line.text.is_empty());
                let shown = lines.len() - usize::from(is_last);
                for (number, line) in (*first..).zip(lines.iter().take(shown)) {
                    let text = line.text.replace('\t', "    ");
                    out.write_line(format_args!("{DIM}{number:>6}{DIM:#}  {}", cut_line(&text, width)))?;
                }
            }
            LineRun::Unknown { first, count: 1 } => {
                out.write_line(format_args!("{DIM}{first:>6}  [unknown]{DIM:#}"))?;
            }
            LineRun::Unknown { first, count } => {
                out.write_line(format_args!("{DIM}{first:>6}  [{count} unknown lines]{DIM:#}"))?;
            }
            LineRun::Rest { first } => {
                out.write_line(format_args!(
                    "{DIM}{first:>6}  [unknown from here on; there may be nothing]{DIM:#}"
                ))?;
            }
        }
    }
    Ok(())
}

/// Cuts a line where it is too wide; blanks at its beginning stay.
fn cut_line(text: &str, width: usize) -> String {
    let blanks: String = text.chars().take_while(|letter| *letter == ' ').collect();
    let rest = on_one_line(text.trim_start(), width.saturating_sub(blanks.len()));
    blanks + &rest
}

pub(crate) fn describe_accesses(path: &str, step: u32, files: &FileTimeline) -> String {
    let of = |kind: AccessKind| {
        let found = files.accesses(path).iter().filter(|access| access.kind == kind && access.step <= step);
        let steps: Vec<String> = found.map(|access| access.step.to_string()).collect();
        let shown = if steps.len() > 6 {
            format!("{} times, last in step {}", steps.len(), steps.last().map_or("", String::as_str))
        } else {
            format!("in step {}", steps.join(", "))
        };
        (!steps.is_empty()).then(|| format!("{} {shown}", past_tense(kind)))
    };
    let kinds = [AccessKind::Read, AccessKind::Create, AccessKind::Edit, AccessKind::Delete];
    kinds.into_iter().filter_map(of).collect::<Vec<_>>().join("; ")
}

fn past_tense(kind: AccessKind) -> &'static str {
    match kind {
        AccessKind::Read => "read",
        AccessKind::Create => "written",
        AccessKind::Edit => "edited",
        AccessKind::Delete => "deleted",
    }
}
