//! What failed in a range and was not repaired. Takes history and facts; gives the open errors, and the other calls that failed, each
//! with the lines that tell what went wrong. Never takes a word for a failure: the outcome says it, and a later success of
//! the same thing repairs it.

use super::{
    ledger::{is_run, results_in, task_terms},
    range::FoldRange,
};
use crate::{
    digest::{has_place, is_error_line, ranked_lines},
    facts::{Fact, Facts, Outcome, Subject, ToolKind},
    history::{BlockId, History},
    ledger::Unresolved,
    recall::block_handle,
    render::ledger::short_command,
    terminal::as_terminal_shows,
};

/// How many lines of an error are quoted.
const ERROR_LINES: usize = 5;
/// How many lines of another call that failed are quoted: the report and its place.
const OTHER_LINES: usize = 2;
/// How many lines around a report are looked at for its place.
const PLACE_LINES: usize = 4;

/// What failed and was not repaired.
#[derive(Debug, Default)]
pub(super) struct UnresolvedFailures {
    /// Runs of commands, and changes of files: somebody has to repair them.
    pub(super) errors: Vec<Unresolved>,
    /// Readings, searches and everything else: worth knowing so that it is not tried again.
    pub(super) others: Vec<Unresolved>,
}

/// What a failure is about, by which a later success resolves it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FailureSubject {
    /// A run of tests or a build: any success of the same program resolves it.
    Program(ToolKind, String),
    /// A command: the same one resolves it.
    Command(String),
    /// A change of a file: any change of it resolves it.
    File(String),
    /// Anything else: the same call resolves it.
    Other(ToolKind, String),
}

/// Finds what failed in a range; `offset` steps were folded before, with what `earlier` tells.
pub(super) fn find_failures(
    history: &History,
    facts: &Facts,
    range: &FoldRange,
    offset: u32,
    earlier: UnresolvedFailures,
) -> UnresolvedFailures {
    let mut open: Vec<(FailureSubject, BlockId, String)> = Vec::new();
    let mut done: Vec<String> = Vec::new();
    for (id, row) in results_in(facts, range) {
        let Some((about, what)) = failure_subject(history, facts, id, row) else { continue };
        if row.outcome == Outcome::Unknown {
            continue;
        }
        open.retain(|(known, _, _)| *known != about);
        done.push(what.clone());
        if row.outcome == Outcome::Failed {
            open.push((about, id, what));
        }
    }
    let terms = task_terms(history, facts);
    let still = |known: Vec<Unresolved>| -> Vec<Unresolved> {
        known.into_iter().filter(|error| !done.contains(&error.what)).collect()
    };
    let mut failures = UnresolvedFailures { errors: still(earlier.errors), others: still(earlier.others) };
    for (about, id, what) in open {
        let (Some(row), Some(block)) = (facts.row(id), history.block(id)) else { continue };
        let mut lines = error_lines(&history.readable_text(block), &terms);
        let (step, handle) = (row.step + offset, block_handle(history, block));
        if let FailureSubject::Other(..) = about {
            lines.truncate(OTHER_LINES);
            failures.others.push(Unresolved { what, step, handle, lines });
        } else {
            failures.errors.push(Unresolved { what, step, handle, lines });
        }
    }
    failures
}

fn failure_subject(
    history: &History,
    facts: &Facts,
    id: BlockId,
    row: &Fact,
) -> Option<(FailureSubject, String)> {
    let kind = row.tool()?;
    let other = |subject: &str| {
        let tool = history.block(id).and_then(|block| history.tool_name(block)).unwrap_or_default();
        let what = short_command(format!("{tool} {subject}").trim());
        Some((FailureSubject::Other(kind, what.clone()), what))
    };
    match row.subject() {
        Subject::Command(command) if matches!(kind, ToolKind::Test | ToolKind::Build) => {
            let program = command.split_whitespace().next().unwrap_or_default().to_owned();
            Some((FailureSubject::Program(kind, program), short_command(command)))
        }
        Subject::Command(command) if is_run(kind) => {
            Some((FailureSubject::Command(command.to_string()), short_command(command)))
        }
        Subject::File { path, .. } if kind.changes_files() => {
            let path = facts.file_key(path).into_owned();
            Some((FailureSubject::File(path.clone()), short_command(&path)))
        }
        Subject::File { path, .. } => other(&facts.file_key(path)),
        Subject::Nothing => other(""),
        subject @ (Subject::Directory { .. }
        | Subject::Command(_)
        | Subject::Query { .. }
        | Subject::Url(_)) => other(&subject.to_string()),
    }
}

/// Returns the lines of an output that tell what went wrong: error lines with the place of the first, of many those that the task is
/// about; without any, the first and the last lines.
fn error_lines(text: &str, terms: &[String]) -> Vec<String> {
    let shown: Vec<String> = text.lines().map(|line| as_terminal_shows(line).trim_end().to_owned()).collect();
    let reports = |line: &str| is_error_line(line) && !line.trim_start().starts_with("Traceback ");
    let errors: Vec<usize> =
        shown.iter().enumerate().filter(|(_, line)| reports(line)).map(|(index, _)| index).collect();
    let Some(first) = errors.first().copied() else { return first_and_last(&shown) };
    let texts: Vec<&str> = errors.iter().filter_map(|index| shown.get(*index)).map(String::as_str).collect();
    // The first report is the cause of the rest; the others are those that the task is about, or else the next ones.
    let mut chosen = vec![first];
    let ranked = if errors.len() > ERROR_LINES {
        ranked_lines(&texts.join("\n"), terms, ERROR_LINES)
    } else {
        Vec::new()
    };
    let next = ranked.into_iter().chain(0..errors.len()).filter_map(|rank| errors.get(rank)).copied();
    for index in next {
        if chosen.len() < ERROR_LINES && !chosen.contains(&index) {
            chosen.push(index);
        }
    }
    chosen.sort_unstable();
    let place = place_line(&shown, first).filter(|place| !chosen.contains(place));
    let at = chosen.iter().position(|index| *index == first).unwrap_or_default();
    chosen.splice(at + 1..at + 1, place);
    chosen.into_iter().filter_map(|index| shown.get(index)).cloned().collect()
}

/// Returns the nearest line that says where a report's fault is, where the report does not.
fn place_line(lines: &[String], report: usize) -> Option<usize> {
    if lines.get(report).is_some_and(|line| has_place(line)) {
        return None;
    }
    let near =
        (1..=PLACE_LINES).flat_map(|away| [report.checked_sub(away), report.checked_add(away)]).flatten();
    near.into_iter().find(|index| lines.get(*index).is_some_and(|line| has_place(line)))
}

/// Returns the first two lines and the last two that say anything.
fn first_and_last(lines: &[String]) -> Vec<String> {
    let spoken: Vec<&String> = lines.iter().filter(|line| !line.trim().is_empty()).collect();
    let last = spoken.len().saturating_sub(2);
    let kept = |index: &usize| *index < 2 || *index >= last;
    (0..spoken.len()).filter(kept).filter_map(|index| spoken.get(index)).map(|&line| line.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(error_lines(text, &["parser".to_owned()]), expected);
    }

    #[test]
    fn a_failure_is_told_by_its_reports_and_the_place_of_the_first() {
        check(
            "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    x()\nNameError: name 'x' is not defined",
            &["NameError: name 'x' is not defined", "  File \"a.py\", line 3, in <module>"],
        );
        check(
            "error[E0308]: mismatched types\n --> src/a.rs:3:5\n  |\nerror: aborting",
            &["error[E0308]: mismatched types", " --> src/a.rs:3:5", "error: aborting"],
        );
    }

    #[test]
    fn a_line_that_was_written_over_is_told_as_a_terminal_shows_it() {
        check(
            "Rebasing (1/7)\rRebasing (2/7)\rerror: could not apply 2dd8eff6",
            &["error: could not apply 2dd8eff6"],
        );
    }

    #[test]
    fn without_a_report_the_ends_are_told() {
        check("Exit code 2\nnothing\nto be\ndone here", &["Exit code 2", "nothing", "to be", "done here"]);
        check("one\ntwo\nthree\n\nfour\nfive\n", &["one", "two", "four", "five"]);
    }

    #[test]
    fn of_many_reports_the_first_stays_and_then_those_that_the_task_is_about() {
        let text: String = (0..9)
            .map(|number| format!("error: {} {number}\n", if number > 6 { "the parser" } else { "a test" }))
            .collect();
        check(
            &text,
            &[
                "error: a test 0", "error: a test 1", "error: a test 2", "error: the parser 7",
                "error: the parser 8",
            ],
        );
    }
}
