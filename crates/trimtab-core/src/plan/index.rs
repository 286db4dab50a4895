//! What the steps of a policy ask about blocks, looked up once. Takes a history with its facts and counts; gives a row per
//! block: what a result shows, of which files, and how many results came before. Never asks anything of a later block, so
//! that a history that goes on only adds rows; when files were changed is kept apart, by file.

use std::{borrow::Cow, collections::HashMap};

use super::arguments_part;
use crate::{
    count::Counts,
    digest::{LONGEST, LongLeaves, long_leaves, long_plain, names_bytes},
    facts::{Fact, Facts, Outcome, ResultSort, Subject, ToolKind, sort_of_result},
    history::{Block, BlockId, BlockKind, Blocks, History, PartKind},
    json::{narrow, widen},
    notes::{hash_of, hash_of_handle, makes_room, points_at, was_hidden_later},
    recall::block_handle,
    units::Tokens,
};

/// Results of fewer tokens do not make others older: receipts and one-line answers come in any number.
const COUNTED_RESULT: Tokens = Tokens(48);

/// One block.
#[derive(Debug, Clone)]
pub(crate) struct IndexRow {
    /// What it shows; nothing for what is no result.
    pub(crate) shows: Option<ResultSort>,
    /// The files it shows or changes.
    files: Box<[u32]>,
    /// How many results that count came up to here, itself included.
    pub(crate) results: u32,
    pub(crate) is_media: bool,
    /// The beginning of the hash of what its note points at, where it came with such a note.
    pub(crate) points_at: Option<[u8; 6]>,
    /// Whether an earlier fit left it so, to make room or to list a series of edits.
    made_room: bool,
    /// Whether it came as an earlier fit left it that hid what was no longer new.
    was_hidden_later: bool,
    /// How many characters it says, where it is a result.
    pub(crate) chars: u32,
    /// How many bytes its distinct names have.
    pub(crate) names: u32,
    /// What is long in its arguments, where it is a call.
    pub(crate) leaves: LongLeaves,
}

/// A change of a file, as its result tells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangedFile {
    pub(crate) block: BlockId,
    pub(crate) step: u32,
    results: u32,
}

/// When the files that a block shows were changed, before and after it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChangesAround {
    /// Whether one was changed before.
    pub(crate) before: bool,
    /// How many results had come at the last change after it.
    pub(crate) last_after: Option<u32>,
}

/// The rows of one history.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlanIndex {
    rows: Blocks<IndexRow>,
    numbers: HashMap<Box<str>, u32>,
    changes: Vec<Vec<ChangedFile>>,
    /// The results that read or changed each file, with their steps, oldest first.
    accesses: Vec<Vec<(BlockId, u32)>>,
    /// The blocks with a hash that begins so, oldest first.
    named: HashMap<[u8; 6], Vec<BlockId>>,
}

impl PlanIndex {
    /// Goes on with a history of which the first `known` blocks are those of the rows.
    pub(crate) fn extend(&mut self, history: &History, facts: &Facts, counts: &Counts, known: usize) {
        let is_shorter = known < self.rows.len();
        self.rows.truncate(known);
        let first = BlockId(narrow(self.rows.len()));
        if is_shorter {
            self.named.retain(|_, blocks| {
                blocks.truncate(blocks.partition_point(|block| *block < first));
                !blocks.is_empty()
            });
        }
        for changes in &mut self.changes {
            while changes.last().is_some_and(|change| change.block >= first) {
                changes.pop();
            }
        }
        for accesses in &mut self.accesses {
            accesses.truncate(accesses.partition_point(|(block, _)| *block < first));
        }
        for id in history.ids().skip(self.rows.len()) {
            self.add_block(history, facts, id, counts[id]);
        }
    }

    fn add_block(&mut self, history: &History, facts: &Facts, id: BlockId, tokens: Tokens) {
        let (block, fact) = (&history[id], &facts[id]);
        let is_result = fact.acts_as == BlockKind::Result;
        let before = self.rows.last().map_or(0, |row| row.results);
        let results = before + u32::from(is_result && tokens > COUNTED_RESULT);
        let mut files = Vec::new();
        for action in fact.actions.iter().filter(|_| is_result) {
            let Subject::File { path, .. } = &action.subject else { continue };
            let number = self.file_number(&facts.file_key(path));
            files.push(number);
            if fact.outcome != Outcome::Failed {
                let accesses = self.accesses.get_mut(widen(number));
                accesses.into_iter().for_each(|accesses| accesses.push((id, fact.step)));
            }
            if action.kind.changes_files() && fact.outcome != Outcome::Failed {
                let change = ChangedFile { block: id, step: fact.step, results };
                self.changes.get_mut(widen(number)).into_iter().for_each(|changes| changes.push(change));
            }
        }
        if let Some(name) = fact.digest.first_chunk::<6>() {
            self.named.entry(*name).or_default().push(id);
        }
        // The handle of a result that is not text alone is of its JSON.
        let is_text = history.parts_of(block).iter().all(|part| part.kind == PartKind::Text);
        if let Some(name) = (is_result && !is_text).then(|| hash_of(&block_handle(history, block))).flatten()
        {
            self.named.entry(name).or_default().push(id);
        }
        let medium = |kind: PartKind| matches!(kind, PartKind::Image | PartKind::Document | PartKind::Audio);
        let text = if is_result { history.readable_text(block) } else { Cow::Borrowed("") };
        self.rows.push(IndexRow {
            shows: is_result
                .then(|| self.shows_recalled(fact).unwrap_or_else(|| sort_of_result(history, fact))),
            files: files.into(),
            results,
            is_media: history.parts_of(block).iter().any(|part| medium(part.kind)),
            points_at: points_at(&text),
            made_room: makes_room(&text),
            was_hidden_later: if is_result {
                was_hidden_later(&text)
            } else {
                arguments_part(history, block).is_some_and(|part| was_hidden_later(&history.part_text(part)))
            },
            chars: narrow(text.chars().count()),
            names: narrow(names_bytes(&text)),
            leaves: measure_leaves(history, block),
        });
    }

    /// Returns what the text shows that a result brings back, where it stood in this conversation.
    fn shows_recalled(&self, fact: &Fact) -> Option<ResultSort> {
        let (Some(ToolKind::Recall), Subject::Command(command)) = (fact.tool(), fact.subject()) else {
            return None;
        };
        let handle = command.split(' ').find_map(hash_of_handle)?;
        self.row(*self.blocks_named(handle).first()?).shows
    }

    fn file_number(&mut self, key: &str) -> u32 {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let number = narrow(self.changes.len());
        self.numbers.insert(key.into(), number);
        self.changes.push(Vec::new());
        self.accesses.push(Vec::new());
        number
    }

    /// Returns the row of a block.
    pub(crate) fn row(&self, id: BlockId) -> &IndexRow {
        &self.rows[id]
    }

    /// Returns the blocks that a handle stands for, by the beginning of their hash, oldest first.
    pub(crate) fn blocks_named(&self, hash: [u8; 6]) -> &[BlockId] {
        self.named.get(&hash).map_or(&[], Vec::as_slice)
    }

    /// Returns the last result that came as an earlier fit left it that made room.
    pub(crate) fn last_fitted(&self) -> Option<BlockId> {
        self.rows.ids().rfind(|id| self.rows[*id].made_room)
    }

    /// Returns the last block that came as an earlier fit left it that hid what was no longer new: it looked at all up to here.
    pub(crate) fn last_looked_at(&self) -> Option<BlockId> {
        self.rows.ids().rfind(|id| self.rows[*id].was_hidden_later)
    }

    /// Returns how many results that count came after a block.
    pub(crate) fn later_results(&self, id: BlockId) -> u32 {
        self.rows.last().map_or(0, |last| last.results) - self.row(id).results
    }

    /// Returns the first and the last change, after a block, of a file that it shows.
    pub(crate) fn changed_since(&self, id: BlockId) -> Option<(ChangedFile, ChangedFile)> {
        let since = self.row(id).files.iter().filter_map(|file| {
            let changes = self.changes.get(widen(*file))?;
            let later = changes.get(changes.partition_point(|change| change.block <= id)..)?;
            Some((*later.first()?, *later.last()?))
        });
        since.reduce(|one, other| {
            let first = if other.0.block < one.0.block { other.0 } else { one.0 };
            let last = if other.1.block > one.1.block { other.1 } else { one.1 };
            (first, last)
        })
    }

    /// Returns when the files that a block shows were changed, as far as the blocks before `end` tell that `is_known` accepts.
    pub(crate) fn changes_around(
        &self,
        id: BlockId,
        end: BlockId,
        is_known: impl Fn(BlockId) -> bool,
    ) -> ChangesAround {
        let mut around = ChangesAround::default();
        for file in self.files(id) {
            let changes = self.changes_of(*file);
            let known = changes.get(..changes.partition_point(|change| change.block < end));
            let mut known = known.into_iter().flatten().filter(|change| is_known(change.block));
            around.before |= known.clone().next().is_some_and(|change| change.block < id);
            let last = known.rfind(|change| change.block > id);
            around.last_after = around.last_after.max(last.map(|change| change.results));
        }
        around
    }

    /// Returns how many results that count came before a block.
    pub(crate) fn results_before(&self, end: BlockId) -> u32 {
        end.0.checked_sub(1).map_or(0, |last| self.rows[BlockId(last)].results)
    }

    /// Tells whether a file that a block shows was ever changed.
    pub(crate) fn is_changed(&self, id: BlockId) -> bool {
        let changed = |file: &u32| self.changes.get(widen(*file)).is_some_and(|changes| !changes.is_empty());
        self.row(id).files.iter().any(changed)
    }

    /// Returns how many results that count came after a change.
    pub(crate) fn results_since(&self, change: ChangedFile) -> u32 {
        self.rows.last().map_or(0, |row| row.results) - change.results
    }

    /// Tells whether a file that a block shows was changed before it.
    pub(crate) fn changed_before(&self, id: BlockId) -> bool {
        let before = |file: &u32| {
            let first = self.changes.get(widen(*file)).and_then(|changes| changes.first());
            first.is_some_and(|change| change.block < id)
        };
        self.row(id).files.iter().any(before)
    }

    /// Returns the last step that read or changed a file.
    pub(crate) fn last_access(&self, file: u32) -> Option<u32> {
        self.accesses.get(widen(file))?.last().map(|(_, step)| *step)
    }

    /// Returns the results of a step that read or changed a file.
    pub(crate) fn accesses_at(&self, file: u32, step: u32) -> impl Iterator<Item = BlockId> {
        let accesses = self.accesses.get(widen(file)).map_or(&[][..], Vec::as_slice);
        let first = accesses.partition_point(|(_, other)| *other < step);
        let of_step =
            accesses.get(first..).into_iter().flatten().take_while(move |(_, other)| *other == step);
        of_step.map(|(block, _)| *block)
    }

    /// Returns the step of the first change of a file after a block.
    pub(crate) fn first_change_after(&self, file: u32, block: BlockId) -> Option<u32> {
        let changes = self.changes_of(file);
        changes.get(changes.partition_point(|change| change.block <= block)).map(|change| change.step)
    }

    /// Returns the changes of a file, oldest first.
    pub(crate) fn changes_of(&self, file: u32) -> &[ChangedFile] {
        self.changes.get(widen(file)).map_or(&[], Vec::as_slice)
    }

    /// Returns the files that a block shows or changes.
    pub(crate) fn files(&self, id: BlockId) -> &[u32] {
        &self.row(id).files
    }

    /// Tells whether a file was changed between two blocks.
    pub(crate) fn changed_between(&self, file: u32, first: BlockId, second: BlockId) -> bool {
        let changes = self.changes.get(widen(file)).map_or(&[][..], Vec::as_slice);
        let next = changes.get(changes.partition_point(|change| change.block <= first));
        next.is_some_and(|change| change.block < second)
    }

    /// Returns the file that a result is about, by a number that stands for all its spellings.
    pub(crate) fn file(&self, id: BlockId) -> Option<u32> {
        self.row(id).files.first().copied()
    }
}

/// Measures what is long in a call's arguments.
fn measure_leaves(history: &History, block: &Block) -> LongLeaves {
    if block.kind != BlockKind::Call || block.body.len() <= LONGEST {
        return LongLeaves::default();
    }
    match arguments_part(history, block) {
        Some(part) if part.kind == PartKind::Text => long_plain(&history.part_text(part)),
        Some(part) => long_leaves(history.part_text(part).as_bytes()),
        None => LongLeaves::default(),
    }
}
