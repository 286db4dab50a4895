//! Outcomes against what the recordings themselves say: exit codes in the text, read once more by the plainest rule, and
//! the protocol's error flags. A flag decides by itself, so flags are also hidden: then the text alone must tell, and
//! where it does not, silence counts as success.

use std::collections::BTreeMap;

use trimtab_core::{
    BlockKind, History, facts,
    facts::{Fact, Outcome, ToolKind},
    parse_as,
};

use crate::files::File;

/// How many of the commonest disagreements are printed.
const MOST: usize = 12;

#[derive(Default)]
struct Row {
    told: BTreeMap<(&'static str, Outcome), usize>,
}

/// Prints the table; tells whether every flagged failure is a failure.
pub(crate) fn table(files: &[File]) -> bool {
    println!("\nOutcome: what is told of each call against recorded flags and exit codes\n");
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut disagreements: BTreeMap<String, usize> = BTreeMap::new();
    for recording in files.iter().filter_map(|file| file.recording.as_ref().ok()) {
        let row = rows.entry(recording.agent).or_default();
        for segment in &recording.segments {
            let history = &segment.history;
            let facts = facts(history);
            hidden_flags(history, row);
            for (block, fact) in history.blocks().iter().zip(facts.rows()) {
                if fact.acts_as != BlockKind::Result {
                    continue;
                }
                let text = history.block_text(block);
                let recorded = recorded(block.failed, &text);
                *row.told.entry((recorded, fact.outcome)).or_default() += 1;
                if disagrees(recorded, fact) {
                    *disagreements.entry(place(recording.agent, recorded, fact, &text)).or_default() += 1;
                }
            }
        }
    }
    println!(
        "{:15} {:20} {:>10} {:>8} {:>8} {:>10}",
        "agent", "recorded", "succeeded", "failed", "unknown", "agreement"
    );
    let mut good = true;
    for (agent, row) in &rows {
        for recorded in ["failure flag", HIDDEN, "exit code not 0", "exit code 0", "nothing"] {
            let count = |outcome| row.told.get(&(recorded, outcome)).copied().unwrap_or(0);
            let (succeeded, failed, unknown) =
                (count(Outcome::Succeeded), count(Outcome::Failed), count(Outcome::Unknown));
            let all = succeeded + failed + unknown;
            if all == 0 {
                continue;
            }
            let agreeing = match recorded {
                "failure flag" | HIDDEN | "exit code not 0" => Some(failed),
                "exit code 0" => Some(succeeded),
                _ => None,
            };
            good &=
                matches!(recorded, "exit code 0" | HIDDEN) || agreeing.is_none_or(|agreeing| agreeing == all);
            let share = agreeing.map_or_else(
                || "-".to_owned(),
                |agreeing| format!("{:.2} %", agreeing as f64 / all as f64 * 100.0),
            );
            println!("{agent:15} {recorded:20} {succeeded:>10} {failed:>8} {unknown:>8} {share:>10}");
        }
    }
    println!(
        "\nCommonest disagreements; what a runner's totals say is meant to be stronger than exit code 0:"
    );
    let mut all: Vec<(&String, &usize)> = disagreements.iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    all.into_iter().take(MOST).for_each(|(what, count)| println!("{count:>5} {what}"));
    good
}

/// A failure flag that the facts are not shown.
const HIDDEN: &str = "flag, hidden";

/// Tells the outcomes of flagged results once more, from the text alone.
fn hidden_flags(history: &History, row: &mut Row) {
    let text = String::from_utf8_lossy(history.bytes());
    let hidden = text
        .replace("\"is_error\":true", "\"is_error\":null")
        .replace("\"is_error\": true", "\"is_error\": null");
    let Ok(blind) = parse_as(hidden.into_bytes(), history.format()) else { return };
    let facts = facts(&blind);
    let seen = history.blocks().iter().zip(blind.blocks()).zip(facts.rows());
    for ((_, _), fact) in seen.filter(|((block, blind), _)| block.failed && !blind.failed) {
        *row.told.entry((HIDDEN, fact.outcome)).or_default() += 1;
    }
}

/// Says what a recording tells by itself.
fn recorded(flagged: bool, text: &str) -> &'static str {
    match code(text) {
        _ if flagged => "failure flag",
        Some(0) => "exit code 0",
        Some(_) => "exit code not 0",
        None => "nothing",
    }
}

/// Reads an exit code by the plainest rule there is: a number after words that name it, on a short line at either end.
fn code(text: &str) -> Option<i64> {
    let marks = [
        "<returncode>", "Process exited with code ", "Exit code: ", "Exit code ", "exit code ",
        "\"exit_code\":",
    ];
    let head = text.lines().take(6);
    let tail = text.lines().rev().take(5);
    let behind = |line: &str| {
        let mark = marks.iter().find(|mark| line.contains(**mark))?;
        let (_, rest) = line.split_once(mark)?;
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '-').unwrap_or(rest.len());
        rest.get(..end)?.parse().ok()
    };
    head.chain(tail).filter(|line| line.len() < 80).find_map(behind)
}

fn disagrees(recorded: &str, fact: &Fact) -> bool {
    match recorded {
        "failure flag" | "exit code not 0" => fact.outcome != Outcome::Failed,
        "exit code 0" => fact.outcome != Outcome::Succeeded,
        _ => false,
    }
}

fn place(agent: &str, recorded: &str, fact: &Fact, text: &str) -> String {
    let kind = fact.tool().map_or("", ToolKind::name);
    let text: String = text.trim().chars().take(60).collect();
    format!("{agent}, {recorded}, {kind} told as {}: {text:?}", fact.outcome.name())
}
