//! What runners count, and lines that only say that all is well. Takes the lines of a log; gives the totals that runners say
//! themselves (`facts::totals` reads them). Never counts verdicts of single tests.

use super::{DigestText, RunTotals};
use crate::facts::read_totals;

/// The totals that a text tells.
#[derive(Debug, Default)]
pub(super) struct LogTotals {
    /// By runner, in the order in which they come. Several summary lines of one runner are summed: it writes one for every
    /// binary or module.
    pub(super) by_runner: Vec<(&'static str, RunTotals)>,
    /// The lines that they stand on.
    pub(super) lines: Vec<usize>,
}

/// Reads the summary lines of a text.
pub(super) fn read_log_totals(text: &DigestText<'_>) -> LogTotals {
    let mut told = LogTotals::default();
    for index in 0..text.len() {
        let Some(summary) = read_totals(text.line(index)) else { continue };
        told.lines.push(index);
        match told.by_runner.iter_mut().find(|(runner, _)| *runner == summary.runner) {
            Some((_, sum)) => sum.add(summary.totals),
            None => told.by_runner.push((summary.runner, summary.totals)),
        }
    }
    told
}

/// Tells a line that only says that a test passed or a step of a build went well.
pub(super) fn is_passing(line: &str) -> bool {
    let inner = line.trim();
    let starts = [
        "✓ ",
        "(pass) ",
        "✔ ",
        "√ ",
        "--- PASS:",
        "=== RUN",
        "PASS ",
        "PASS:",
        "Compiling ",
        "Checking ",
        "Downloaded ",
        "Downloading ",
        "Fresh ",
        "Collecting ",
        "Requirement already satisfied",
        "Using cached ",
        "Installing ",
        "Fetching ",
        "Unpacking ",
    ];
    starts.iter().any(|start| inner.starts_with(start))
        || inner.ends_with("... ok")
        || inner.ends_with("... ignored")
        || (inner.contains("::") && inner.contains(" PASSED"))
        || inner
            .strip_prefix("ok ")
            .is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
        || inner.strip_prefix('[').is_some_and(|rest| rest.contains("%] ") && rest.contains("uil"))
}
