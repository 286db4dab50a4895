//! File state against truth: wherever a recording reads lines that were predicted, do prediction and reading agree?
//! Branches and compactions repeat messages: each reading is judged once.

use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
};

use trimtab_core::{
    Facts, FileTimeline, facts, files,
    files::{AccessKind, FileState},
};
use trimtab_replay::Segment;

use crate::files::File;

/// How many places of each class are printed.
const PLACES: usize = 4;

/// The share of predicted lines that must agree.
const GOAL: f64 = 0.99;

#[derive(Default)]
struct Row {
    reads: usize,
    shown: usize,
    predicted: usize,
    agreeing: usize,
    /// Lines that something outside the conversation changed.
    outside: usize,
    changes: usize,
    classes: BTreeMap<&'static str, Class>,
}

#[derive(Default)]
struct Class {
    lines: usize,
    /// Lines and first line of each read.
    reads: Vec<(usize, String)>,
}

/// Prints the table; tells whether the goal is met for every agent, changes from outside left out.
pub(crate) fn table(files: &[File]) -> bool {
    println!("\nFile state: lines predicted from calls against lines read later\n");
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for file in files {
        let Ok(recording) = &file.recording else { continue };
        let row = rows.entry(recording.agent).or_default();
        let mut judged = HashSet::new();
        for segment in &recording.segments {
            judge(&file.path, segment, &mut judged, row);
        }
    }
    println!(
        "{:15} {:>7} {:>8} {:>8} {:>10} {:>10} {:>9} {:>8} {:>9}",
        "agent", "changes", "reads", "shown", "predicted", "agreeing", "share", "outside", "without"
    );
    let mut good = true;
    for (agent, row) in &rows {
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        let without = share(row.agreeing, row.predicted - row.outside);
        good &= row.predicted == 0 || without >= GOAL;
        let shown =
            |share: f64| if row.predicted == 0 { "-".to_owned() } else { format!("{:.2} %", share * 100.0) };
        println!(
            "{agent:15} {:>7} {:>8} {:>8} {:>10} {:>10} {:>9} {:>8} {:>9}",
            row.changes,
            row.reads,
            row.shown,
            row.predicted,
            row.agreeing,
            shown(share(row.agreeing, row.predicted)),
            row.outside,
            shown(without)
        );
    }
    println!(
        "\nOutside: lines of files that no call touched since the line was seen; without: the share without these."
    );
    for (agent, row) in &rows {
        for (class, found) in &row.classes {
            println!("\n{agent}: {} lines in {} reads: {class}", found.lines, found.reads.len());
            let mut places: Vec<&(usize, String)> = found.reads.iter().collect();
            places.sort_by_key(|(lines, _)| std::cmp::Reverse(*lines));
            places.iter().take(PLACES).for_each(|(lines, place)| println!("  {lines} lines, {place}"));
        }
    }
    good
}

fn judge(file: &Path, segment: &Segment, judged: &mut HashSet<(String, [u8; 16])>, row: &mut Row) {
    let history = &segment.history;
    let facts = facts(history);
    let files = files(history, &facts);
    for path in files.paths() {
        for (index, access) in files.accesses(path).iter().enumerate() {
            let Some(fact) = facts.row(access.block) else { continue };
            let id = history.block(access.block).and_then(|block| history.call_id(block)).unwrap_or_default();
            if !judged.insert((format!("{id} {path} {index}"), fact.digest)) {
                continue;
            }
            if access.kind != AccessKind::Read {
                row.changes += 1;
                continue;
            }
            row.reads += 1;
            row.shown += access.shown_lines().count();
            if let Some(before) = files.state_before(path, index) {
                compare(file, &facts, &files, (path, index), &before, row);
            }
        }
    }
}

fn compare(
    file: &Path,
    facts: &Facts,
    files: &FileTimeline,
    (path, index): (&str, usize),
    before: &FileState,
    row: &mut Row,
) {
    let Some(access) = files.accesses(path).get(index) else { return };
    let mut seen: HashSet<&'static str> = HashSet::new();
    for (number, text) in access.shown_lines() {
        let Some(line) = before.line(number) else { continue };
        row.predicted += 1;
        if line.text == text {
            row.agreeing += 1;
            continue;
        }
        let earlier = files.accesses(path).iter().take(index);
        let edited = earlier.rev().any(|access| access.kind != AccessKind::Read && access.step >= line.seen);
        let class = match () {
            () if text.contains("REDACTED") || line.text.contains("REDACTED") => {
                "redacted where it was recorded"
            }
            () if !edited && turn_of(facts, line.seen) < turn_of(facts, access.step) => {
                "changed outside, a person having spoken since: no call touched the file"
            }
            () if !edited => {
                "changed outside within a turn: no call touched the file since the line was seen"
            }
            () if line.text.split_whitespace().eq(text.split_whitespace()) => {
                "other white space after an edit: a formatter ran"
            }
            () => "other text after an edit",
        };
        row.outside += usize::from(class.starts_with("changed outside"));
        let found = row.classes.entry(class).or_default();
        found.lines += 1;
        if !seen.insert(class) {
            found.reads.last_mut().into_iter().for_each(|(lines, _)| *lines += 1);
            continue;
        }
        let name = file.components().rev().take(4).map(|part| part.as_os_str().to_string_lossy());
        let name = name.collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("/");
        let place = format!(
            "{name} step {} {path}:{number} (seen in step {})\n    predicted {:?}\n    shown     {:?}",
            access.step,
            line.seen,
            short(line.text),
            short(text)
        );
        found.reads.push((1, place));
    }
}

fn turn_of(facts: &Facts, step: u32) -> u32 {
    let last = facts.rows().partition_point(|fact| fact.step <= step);
    last.checked_sub(1).and_then(|last| facts.rows().get(last)).map_or(0, |fact| fact.turn)
}

fn short(text: &str) -> String {
    text.chars().take(100).collect()
}
