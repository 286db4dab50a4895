//! What happened in a range, without a model. Takes history, facts and files; gives the files read and modified, the commands with
//! how they ended, the errors that nothing resolved, what is still open, and handles that bring originals back. An earlier folded
//! message in the range is read back and carried on. Never judges: every line is a fact or a quotation.

use std::collections::HashMap;

use super::{
    earlier_summaries::{EarlierSummaries, read_earlier_summaries},
    failures::{UnresolvedFailures, find_failures},
    instructions::find_instructions,
    open_items::open_items,
    range::FoldRange,
    user_messages::user_messages,
};
use crate::{
    digest::query_terms,
    facts::{Fact, Facts, Subject, ToolKind, text_head},
    files::{Access, AccessKind, FileTimeline, changelog_before},
    history::{BlockId, BlockKind, History, Role},
    ledger::{CommandLine, FileLine, Ledger},
    recall::block_handle,
    render::ledger::short_command,
};

/// How many ranges of lines are named for a file.
const RANGES: usize = 3;
/// How many reasons for changes to a file are listed, the latest.
const REASONS: usize = 3;
/// How many lines of the model's last words are quoted.
const LAST_WORDS: usize = 12;
/// How much of the task tells which error lines matter, in bytes.
const TASK: usize = 4000;

/// Tells what happened in a range.
pub fn build_ledger(history: &History, facts: &Facts, files: &FileTimeline, range: &FoldRange) -> Ledger {
    let before = read_earlier_summaries(history, facts, range);
    let offset = before.last_step;
    let range_step =
        range.blocks().filter_map(|id| facts.row(id)).map(|row| row.step).max().unwrap_or_default();
    let EarlierSummaries { mut said, ledger: earlier, .. } = before;
    said.extend(user_messages(history, facts, range, offset));
    let words = last_words(history, facts, range);
    let failed =
        UnresolvedFailures { errors: earlier.errors.clone(), others: earlier.other_failures.clone() };
    let UnresolvedFailures { errors, others } = find_failures(history, facts, range, offset, failed);
    Ledger {
        last_step: offset + range_step,
        said,
        modified: merged_files(
            earlier.modified.clone(),
            modified_files(history, facts, files, range, offset),
        ),
        read: read_files(history, facts, files, range, offset, &earlier),
        commands: command_lines(facts, range, offset, earlier.commands),
        errors,
        other_failures: others,
        instructions: find_instructions(history, facts, range, offset, earlier.instructions),
        open: open_items(history, facts, range).unwrap_or(earlier.open),
        last_words: if words.is_empty() { earlier.last_words } else { words },
        earlier_summary: earlier.earlier_summary,
    }
}

fn modified_files(
    history: &History,
    facts: &Facts,
    files: &FileTimeline,
    range: &FoldRange,
    offset: u32,
) -> Vec<FileLine> {
    let changed = changelog_before(history, facts, range.end());
    let line = |file: crate::files::FileChanges| {
        let rows = &file.changes;
        // The latest reasons, by when they were last given.
        let mut given: Vec<(u32, &String)> =
            rows.iter().flat_map(|row| row.words.iter().map(|words| (row.last, words))).collect();
        given.sort_by_key(|(last, _)| *last);
        let more_words = given.len().saturating_sub(REASONS);
        let words: Vec<String> = given.into_iter().skip(more_words).map(|(_, words)| words.clone()).collect();
        FileLine {
            lines: shown_ranges(accesses_in(files, &file.path, range)),
            changes: rows.iter().map(|row| row.count).sum(),
            first: rows.iter().map(|row| row.first).min().unwrap_or_default() + offset,
            last: rows.iter().map(|row| row.last).max().unwrap_or_default() + offset,
            path: file.path,
            words,
            more_words,
            handle: None,
        }
    };
    changed.into_iter().map(line).collect()
}

/// Adds later changes of files to earlier ones.
fn merged_files(mut earlier: Vec<FileLine>, later: Vec<FileLine>) -> Vec<FileLine> {
    for file in later {
        match earlier.iter_mut().find(|known| known.path == file.path) {
            Some(known) => {
                known.changes += file.changes;
                known.first = if known.first == 0 { file.first } else { known.first.min(file.first) };
                known.last = file.last;
                known.lines = file.lines;
                known.words.extend(file.words);
                let surplus = known.words.len().saturating_sub(REASONS);
                known.words.drain(..surplus);
                known.more_words += file.more_words + surplus;
            }
            None => earlier.push(file),
        }
    }
    earlier
}

fn accesses_in<'a>(
    files: &'a FileTimeline,
    path: &str,
    range: &FoldRange,
) -> impl Iterator<Item = &'a Access> + Clone {
    let end = range.end();
    files.accesses(path).iter().filter(move |access| access.block < end)
}

fn read_files(
    history: &History,
    facts: &Facts,
    files: &FileTimeline,
    range: &FoldRange,
    offset: u32,
    earlier: &Ledger,
) -> Vec<FileLine> {
    let changed: Vec<String> =
        changelog_before(history, facts, range.end()).into_iter().map(|file| file.path).collect();
    let modified = |path: &str| {
        changed.iter().any(|known| known == path) || earlier.modified.iter().any(|known| known.path == path)
    };
    let mut read: Vec<FileLine> = earlier.read.iter().filter(|file| !modified(&file.path)).cloned().collect();
    for path in files.paths().filter(|path| !modified(path)) {
        let Some(last) =
            accesses_in(files, path, range).last().filter(|access| access.kind == AccessKind::Read)
        else {
            continue;
        };
        read.retain(|known| known.path != path);
        read.push(FileLine {
            path: path.to_owned(),
            first: last.step + offset,
            last: last.step + offset,
            lines: shown_ranges(accesses_in(files, path, range)),
            handle: history.block(last.block).map(|block| block_handle(history, block)),
            ..FileLine::default()
        });
    }
    read.sort_by_key(|file| file.last);
    read
}

/// Returns the lines that readings showed, as few ranges; of many, the first and last line.
fn shown_ranges<'a>(accesses: impl Iterator<Item = &'a Access>) -> Vec<(usize, usize)> {
    let mut numbers: Vec<usize> = accesses
        .flat_map(|access| access.shown_lines().map(|(number, _)| number).collect::<Vec<usize>>())
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut().filter(|(_, last)| *last + 1 == number) {
            Some((_, last)) => *last = number,
            None => ranges.push((number, number)),
        }
    }
    match (ranges.first(), ranges.last()) {
        (Some((first, _)), Some((_, last))) if ranges.len() > RANGES => vec![(*first, *last)],
        _ => ranges,
    }
}

/// Kinds of calls that are listed by their command.
pub(super) fn is_run(kind: ToolKind) -> bool {
    matches!(kind, ToolKind::Test | ToolKind::Build | ToolKind::Run | ToolKind::Git)
}

pub(super) fn results_in<'a>(
    facts: &'a Facts,
    range: &FoldRange,
) -> impl Iterator<Item = (BlockId, &'a Fact)> {
    let rows = range.blocks().filter_map(|id| Some((id, facts.row(id)?)));
    rows.filter(|(_, row)| row.acts_as == BlockKind::Result)
}

fn command_lines(
    facts: &Facts,
    range: &FoldRange,
    offset: u32,
    mut earlier: Vec<CommandLine>,
) -> Vec<CommandLine> {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (index, run) in earlier.iter().enumerate() {
        places.insert(run.command.clone(), index);
    }
    for (_, row) in results_in(facts, range).filter(|(_, row)| row.tool().is_some_and(is_run)) {
        let Subject::Command(command) = row.subject() else { continue };
        let command = short_command(command);
        let index = *places.entry(command.clone()).or_insert(earlier.len());
        let outcome = row.outcome.name().to_owned();
        match earlier.get_mut(index) {
            Some(known) => {
                (known.outcome, known.step, known.runs) = (outcome, row.step + offset, known.runs + 1);
            }
            None => earlier.push(CommandLine { command, outcome, step: row.step + offset, runs: 1 }),
        }
    }
    earlier.sort_by_key(|run| run.step);
    earlier
}

/// Returns the words of the current task.
pub(super) fn task_terms(history: &History, facts: &Facts) -> Vec<String> {
    let entry = facts.current_task().and_then(|id| history.entries().get(crate::json::widen(id.0)));
    let blocks = entry.map(|entry| history.blocks_of(entry)).unwrap_or_default();
    let words: Vec<String> = blocks
        .iter()
        .filter(|block| block.kind == BlockKind::Text)
        .map(|block| text_head(&history.block_text(block), TASK).to_owned())
        .collect();
    query_terms(&words.join("\n"))
}

fn last_words(history: &History, facts: &Facts, range: &FoldRange) -> Vec<String> {
    let speaks = |id: &BlockId| {
        let kind = history.block(*id).map(|block| block.kind);
        facts.row(*id).is_some_and(|row| row.role == Role::Assistant && row.acts_as == BlockKind::Text)
            && kind == Some(BlockKind::Text)
    };
    let all: Vec<BlockId> = range.folded_blocks().filter(speaks).collect();
    let text = all.last().and_then(|id| history.block(*id)).map(|block| history.block_text(block));
    let lines: Vec<&str> =
        text.as_deref().unwrap_or_default().lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(LAST_WORDS);
    lines.get(from..).unwrap_or_default().iter().map(|&line| line.to_owned()).collect()
}
