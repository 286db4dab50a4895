//! Whether a call did what it was to do. Takes the protocol's flag and the result's text; gives an outcome. Never
//! judges by the word "error": only by exit codes where a harness prints them, by flags, and by a runner's totals.
//!
//! **Where they disagree**, the first of these that speaks decides: (1) the protocol says the tool failed; (2) an exit
//! code other than 0; (3) for tests and builds, the runner's totals, since `… | tail` hides the exit code;
//! (4) exit code 0; (5) an answer that is in the form of a refusal (`Error: …` as its first word, `<tool_use_error>`);
//! (6) a protocol that has a flag for failure and does not set it.

use super::{text_head, text_tail, tool::ToolKind, totals};
use crate::history::ReadableResult;

/// Whether a call did what it was to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Outcome {
    /// It did.
    Succeeded,
    /// It did not.
    Failed,
    /// Nothing tells.
    #[default]
    Unknown,
}

impl Outcome {
    /// Returns the name used in pictures and reports.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Succeeded => "succeeded",
            Outcome::Failed => "failed",
            Outcome::Unknown => "unknown",
        }
    }
}

/// What the protocol says about a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureFlag {
    /// That the tool failed.
    Failed,
    /// Nothing, although it could say that the tool failed.
    Unset,
    /// Nothing: it has no flag.
    Absent,
}

/// What a result tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResultEnding {
    pub(crate) outcome: Outcome,
    /// Whether the program ran at all, well or badly.
    pub(crate) ran: bool,
}

/// How much of each end of a result is looked at for exit codes and totals, in bytes. Runners print their totals last,
/// often before a list of slow tests or hints.
const WINDOW: usize = 4000;
/// How many lines at each end may hold an exit code.
const HEAD_LINES: usize = 6;
const TAIL_LINES: usize = 5;

/// Tells how a call ended.
pub(crate) fn result_ending(kind: ToolKind, result: &ReadableResult<'_>, flag: FailureFlag) -> ResultEnding {
    let text = &*result.text;
    let code = result.exit_code.or_else(|| exit_code(text));
    // What a client says beside a result is as good as the protocol's flag.
    let flag = match (flag, result.failed) {
        (FailureFlag::Failed, _) | (FailureFlag::Unset | FailureFlag::Absent, Some(true)) => {
            FailureFlag::Failed
        }
        (FailureFlag::Unset, Some(false) | None) | (FailureFlag::Absent, Some(false)) => FailureFlag::Unset,
        (FailureFlag::Absent, None) => FailureFlag::Absent,
    };
    let is_runner = matches!(kind, ToolKind::Test | ToolKind::Build);
    let totals = if is_runner {
        totals::outcome_of_output(text_head(text, WINDOW), text_tail(text, WINDOW))
    } else {
        Outcome::Unknown
    };
    let refused = code.is_none() && is_refusal(text, flag);
    let outcome = match (flag, code, totals) {
        (FailureFlag::Failed, _, _) => Outcome::Failed,
        (_, Some(code), _) if code != 0 => Outcome::Failed,
        (_, _, Outcome::Failed) => Outcome::Failed,
        (_, _, Outcome::Succeeded) | (_, Some(_), _) => Outcome::Succeeded,
        _ if refused => Outcome::Failed,
        (FailureFlag::Unset, ..) => Outcome::Succeeded,
        (FailureFlag::Absent, ..) => Outcome::Unknown,
    };
    let ran = outcome != Outcome::Failed || code.is_some() || totals != Outcome::Unknown;
    let ran = ran && !(is_runner && totals == Outcome::Unknown && could_not_run(text, code));
    ResultEnding { outcome, ran }
}

/// Exit codes of commands that were not found, could not be run, or were ended from outside.
const NOT_RUN_CODES: &[i64] = &[124, 126, 127, 130, 137, 143, 9009];

/// Tells whether a test or build never ran to its end: not found, ended after a time, or still running.
fn could_not_run(text: &str, code: Option<i64>) -> bool {
    const NOT_FOUND: &[&str] = &[
        "command not found", ": not found", "is not recognized as", "No module named", "Missing script:",
        "no such command:", "no such subcommand:",
    ];
    const UNFINISHED: &[&str] = &[
        "timed out after", "timed out.", "Command timed out", "running in background with",
        "running with session ID",
    ];
    const SHORT: usize = 2000;
    if code.is_some_and(|code| NOT_RUN_CODES.contains(&code)) {
        return true;
    }
    let says = |text: &str, words: &[&str]| words.iter().any(|words| text.contains(words));
    let ends = [text_head(text, 300), text_tail(text, 300)];
    (text.len() < SHORT && says(text, NOT_FOUND)) || ends.iter().any(|end| says(end, UNFINISHED))
}

/// Finds the exit code that a harness printed at either end of a result.
pub(crate) fn exit_code(text: &str) -> Option<i64> {
    let head = text_head(text, WINDOW).lines().take(HEAD_LINES);
    let tail = text_tail(text, WINDOW).lines().rev().take(TAIL_LINES);
    head.chain(tail).find_map(code_in_line)
}

/// The ways in which harnesses begin the line with the exit code, in lower case and without brackets.
const CODE_MARKS: &[&str] = &[
    "returncode>",
    "return code",
    "exit code",
    "exit_code",
    "exitcode",
    "exit status",
    "exited with code",
    "exited with exit code",
    "process exited with code",
    "command exited with code",
    "command failed with exit code",
    "command failed with code",
    "command finished with exit code",
    "command completed with exit code",
    "the command completed with exit code",
    "the command finished with exit code",
    "command terminated with exit code",
    "process finished with exit code",
    "error: command failed with exit code",
    "error: exit code",
    "command executed with exit code",
    "///process-done",
];

fn code_in_line(line: &str) -> Option<i64> {
    let line = line.trim().trim_start_matches(['[', '(', '<', '*']).trim_start();
    // Copilot's shells print their number first: `<shellId: 3 completed with exit code 0>`.
    let line = match line.strip_prefix("shellId:") {
        Some(rest) => rest
            .split_once(" completed with ")
            .or_else(|| rest.split_once(" exited with "))
            .map_or(rest, |(_, rest)| rest),
        None => line,
    };
    // OpenHands numbers its commands: `[Command -1 finished with exit code 0]`.
    let line = match line.strip_prefix("Command ").and_then(|rest| rest.split_once(" finished with ")) {
        Some((number, rest)) if number.parse::<i64>().is_ok() => rest,
        _ => line,
    };
    let lower = text_head(line, 80).to_ascii_lowercase();
    let mark = CODE_MARKS.iter().filter(|mark| lower.starts_with(**mark)).max_by_key(|mark| mark.len())?;
    let rest = lower.get(mark.len()..)?.trim_start_matches([' ', ':', '=', '"', '>', '*']);
    let end =
        rest.char_indices().find(|(at, letter)| !(letter.is_ascii_digit() || (*at == 0 && *letter == '-')));
    let (code, behind) = rest.split_at(end.map_or(rest.len(), |(end, _)| end));
    // A sentence that goes on is prose about exit codes.
    let ends = behind.trim_start_matches(['.', ')', ']', '>', '<', ',', ':', ';', '"', '*']);
    let ends = ends.is_empty()
        || ends.starts_with(['/', '\n', 'p', 'o'])
        || behind.starts_with(['.', ')', ']', '>', '<', '\n']);
    ends.then(|| code.parse().ok())?
}

/// Tells whether a result is a tool's refusal: it begins as one. Long answers are content, whatever their first word.
fn is_refusal(text: &str, flag: FailureFlag) -> bool {
    const LONGEST_REFUSAL: usize = 2000;
    const BEGINNINGS: &[&str] = &[
        "error:",
        "error reading",
        "error executing",
        "error while",
        "error -",
        "error \n",
        "<tool_use_error>",
        "<error>",
        "enoent",
        "eacces",
        "tool error:",
        "toolerror",
        "invalid ",
        "permission denied",
        "no such file or directory",
        "file not found",
        "file does not exist",
        "path does not exist",
        "string to replace not found",
        "no replacement was performed",
        "failed to ",
        "the user doesn't want to proceed",
        "the user denied",
        "the tool execution failed",
        "the tool call was",
        "could not ",
        "user rejected",
        "tool not found",
        "unknown tool",
        "apply_patch verification failed",
        "execution failed",
        "[error",
        "{\"error\"",
        "execution timed out",
    ];
    const REFUSED_EDIT: &str = "your proposed edit has introduced new syntax error";
    let head = text_head(text.trim_start(), 80).to_ascii_lowercase();
    if head.starts_with(REFUSED_EDIT) {
        // SWE-agent shows both texts after it.
        return true;
    }
    if text.len() > LONGEST_REFUSAL {
        return false;
    }
    if flag == FailureFlag::Unset {
        // Where a flag could have been set, only a harness's own tag says more than the flag.
        return head.starts_with("<tool_use_error>");
    }
    BEGINNINGS.iter().any(|beginning| head.starts_with(beginning))
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
