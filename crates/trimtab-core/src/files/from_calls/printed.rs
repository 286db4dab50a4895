//! What a command printed. Takes the text of a result; gives it without what harnesses put around it. Never leaves a
//! line of the output itself out: where the harness cut it, it says so.

use super::{AnsweredCall, ResultWrapping};
use crate::{
    facts::is_cut,
    json::{Value, scan},
};

/// What a command printed.
pub(super) struct PrintedText<'a> {
    pub(super) text: &'a str,
    /// Whether the harness is known to pass on blank lines at both ends.
    pub(super) exact: bool,
    /// Whether the harness left some of it out.
    pub(super) cut: bool,
}

/// Returns what the command of an answer printed.
pub(super) fn printed_by<'a>(answer: &AnsweredCall<'a>) -> PrintedText<'a> {
    let found = unwrap_output(answer.text);
    let is_all = found.text.len() == answer.text.len();
    match answer.wrapping {
        ResultWrapping::None => found,
        ResultWrapping::One => PrintedText { exact: found.exact || is_all, ..found },
        // Which lines were printed where is not known.
        ResultWrapping::Several => PrintedText { cut: true, ..found },
    }
}

/// Takes off what a harness puts around the output of a command.
fn unwrap_output(text: &str) -> PrintedText<'_> {
    if ["Chunk ID:", "Exit code:", "Wall time:"].iter().any(|head| text.starts_with(head)) {
        // The head is taken off where lines are read: it says what was cut.
        let cut = text.contains("\nOutput:\nWarning: truncated output")
            || text.contains("\nOutput:\nTotal output lines: ");
        return PrintedText { text, exact: true, cut };
    }
    if let Some((_, rest)) = text.split_once("<output>\n").filter(|(head, _)| head.len() < 200) {
        let body = rest.rsplit_once("</output>").map_or(rest, |(body, _)| body);
        return PrintedText { text: body, exact: false, cut: is_cut(text) };
    }
    let elided = text.contains("<output_head>") || text.contains("<elided_chars>");
    let body = text
        .split_once("] Result:\n")
        .filter(|(head, _)| head.starts_with('['))
        .map_or(text, |(_, body)| body);
    let body = ["Command executed.\nOutput:\n", "Output: ", "OBSERVATION:\n"]
        .iter()
        .find_map(|head| body.strip_prefix(head))
        .unwrap_or(body);
    let body = without_tail(body);
    PrintedText { cut: elided || is_cut(text), text: body, exact: false }
}

/// Words with which harnesses go on after an output, at the beginning of a line.
const TAILS: &[&str] = &[
    "\n(Open file: ",
    "\n[The command completed with exit code",
    "\n[Python Interpreter: ",
    "\n[python: ",
    "\n[Current working directory: ",
    "\n[Jupyter current working directory: ",
    "\n[Command finished with exit code",
    "\n<exited with exit code",
    "\n<shellId: ",
    "\n<bash_metadata>",
    "\n\nCommand exited with code",
    "\nBackground PIDs: ",
    "\nProcess Group PGID: ",
    "\nExit Code: ",
    "\n<system-reminder>",
];

fn without_tail(text: &str) -> &str {
    let ends = TAILS.iter().filter_map(|tail| text.rfind(tail));
    let end = ends.min().unwrap_or(text.len());
    text.get(..end).unwrap_or(text)
}

/// Reads Cline's `[{"query": …, "result": …, "success": true}]`: what was asked and what was answered.
pub(super) fn search_answers(text: &str) -> Vec<(String, String)> {
    let trimmed = text.trim();
    if !trimmed.starts_with("[{\"query\"") {
        return Vec::new();
    }
    let Ok(tape) = scan(trimmed.as_bytes()) else { return Vec::new() };
    let answer = |item: Value<'_>| {
        let good = item.get("success").is_none_or(Value::is_true);
        let (query, result) = (item.text("query")?, item.text("result")?);
        good.then(|| (query.into_owned(), result.into_owned()))
    };
    tape.root(trimmed.as_bytes()).into_iter().flat_map(Value::items).filter_map(answer).collect()
}
