//! Long series of changes of one file, listed once. Takes the changes and what was listed of them before; gives the reason to
//! hide each result or call of a series, and what the one that lists all of it says. Never lists a change twice: a series
//! that goes on is listed again only for what came since.

use std::collections::HashMap;

use super::{index::ChangedFile, work::Work};
use crate::{
    digest::{EditSeries, LineCount},
    facts::Subject,
    files::{AccessKind, asked_of, lines_changed, net_change, reason_of_change},
    history::{BlockId, BlockKind},
    json::narrow,
    notes::tells_series,
    units::Tokens,
    verdict::{Reason, Verdict},
};

/// How much of a series is listed, from the most down: how many intents and how many lines of the net diff. The first that is
/// smaller than what it stands for is taken.
pub(super) const EXTENTS: [(usize, usize); 5] = [(8, 40), (8, 12), (8, 0), (3, 0), (0, 0)];

/// What a result must count to tell a series, its path apart: more than the shortest of the texts above, whatever is known of the
/// file. How much is known changes with what else is hidden; whether a result tells a series must not.
pub(super) const LEAST_TELLER: Tokens = Tokens(90);

/// How many bytes an argument must have to tell a series, its path apart, for the same reason.
pub(super) const LEAST_TELLING_BYTES: usize = 400;

/// A series that a block of the request tells.
#[derive(Debug, Clone, Copy)]
struct ToldSeries {
    changes: u32,
    first: u32,
    last: u32,
    /// The result that tells it, or whose call does, and its step.
    teller: BlockId,
    at: u32,
}

/// The series that are listed, by file.
#[derive(Debug, Clone, Default)]
pub(super) struct SeriesLog(HashMap<u32, Vec<ToldSeries>>);

/// The changes of one file.
struct FileSeries {
    changes: Vec<ChangedFile>,
    /// How many of them a listed series covers.
    covered: usize,
}

impl Work<'_> {
    /// Says of each result or call among `blocks` to which series of more than `most` changes it belongs: one that is listed
    /// already, or one that the first of them that can will list. The first and the latest change are left unchanged.
    pub(super) fn find_series(&self, blocks: &[BlockId], most: usize) -> HashMap<BlockId, Reason> {
        let mut files: HashMap<u32, FileSeries> = HashMap::new();
        let mut found = HashMap::new();
        // An earlier fit looked at all changes up to here. A dropped block may have said where a command ran, so that now they seem
        // to be of other files; they are left as they are.
        let fitted_up_to = self.request.index.last_fitted();
        for id in blocks {
            let Some((result, file)) = self.changed_file(*id) else { continue };
            let series = files.entry(file).or_insert_with(|| {
                let series = self.series_of_file(file);
                let looked_at = series.changes.partition_point(|change| Some(change.block) <= fitted_up_to);
                FileSeries { covered: series.covered.max(looked_at), ..series }
            });
            let Ok(place) = series.changes.binary_search_by_key(&result, |change| change.block) else {
                continue;
            };
            let (Some(change), true) =
                (series.changes.get(place), place > 0 && place + 1 < series.changes.len())
            else {
                continue;
            };
            let reason = if place < series.covered {
                self.draft.series.covering_reason(file, change)
            } else {
                series.uncovered_changes().filter(|untold| untold.len() > most).and_then(told_by_first)
            };
            found.extend(reason.map(|reason| (*id, reason)));
        }
        found
    }

    /// Returns the reason with the step at which the series is listed, once something lists it.
    pub(super) fn placed_in_series(&self, id: BlockId, reason: &Reason) -> Reason {
        let Reason::EditedOften { changes, first, last, told: None } = reason else { return reason.clone() };
        let told =
            self.changed_file(id).and_then(|(_, file)| self.draft.series.find_series(file, *first, *last));
        Reason::EditedOften { changes: *changes, first: *first, last: *last, told: told.map(|told| told.at) }
    }

    /// Notes that a block tells a series.
    pub(super) fn note_series(&mut self, id: BlockId, verdict: &Verdict) {
        let Verdict::Shorten { text, reason: Reason::EditedOften { changes, first, last, told: None } } =
            verdict
        else {
            return;
        };
        let Some((teller, file)) = self.changed_file(id) else { return };
        if self.draft.series.find_series(file, *first, *last).is_none() && tells_series(text) {
            let at = self.request.facts[teller].step;
            let told = ToldSeries { changes: *changes, first: *first, last: *last, teller, at };
            self.draft.series.0.entry(file).or_default().push(told);
        }
    }

    /// Collects what is to be listed of the series from one step to another to which a block belongs.
    pub(super) fn describe_series(&mut self, id: BlockId, (first, last): (u32, u32)) -> Option<EditSeries> {
        let (result, file) = self.changed_file(id)?;
        let series = self.series_of_file(file);
        let told = |change: &&ChangedFile| (first..=last).contains(&change.step);
        let blocks: Vec<BlockId> = series.changes.iter().filter(told).map(|change| change.block).collect();
        let call = |id: &BlockId| self.request.facts[*id].partner;
        let calls: Vec<BlockId> = blocks.iter().filter_map(call).collect();
        let mut intents: Vec<(String, usize)> = Vec::new();
        for intent in calls.iter().filter_map(|call| reason_of_change(self.request.history, *call)) {
            match intents.iter_mut().find(|(known, _)| *known == intent) {
                Some((_, times)) => *times += 1,
                None => intents.push((intent, 1)),
            }
        }
        let path = self.request.facts[result].actions.iter().find_map(|action| match &action.subject {
            Subject::File { path, .. } => Some(self.request.facts.file_key(path).into_owned()),
            Subject::Directory { .. }
            | Subject::Command(_)
            | Subject::Query { .. }
            | Subject::Url(_)
            | Subject::Nothing => None,
        })?;
        let (lines, diff) = self.net_of(&path, &blocks, first).unwrap_or_else(|| {
            (self.sum_of(&path, &calls).map(|(added, removed)| LineCount::Sum(added, removed)), Vec::new())
        });
        Some(EditSeries {
            path,
            changes: blocks.len(),
            first,
            last,
            intents,
            more_intents: 0,
            lines,
            diff,
            more_diff: 0,
        })
    }

    /// Compares a file before the first of some changes with the file after the last, where both are known; where the first
    /// wrote all of the file, the file as it was written.
    fn net_of(
        &mut self,
        path: &str,
        blocks: &[BlockId],
        step: u32,
    ) -> Option<(Option<LineCount>, Vec<String>)> {
        let (first, last) = (blocks.first()?, blocks.last()?);
        let files = self
            .made
            .files
            .get_or_insert_with(|| crate::files::files(self.request.history, self.request.facts));
        let accesses = files.accesses(path);
        let begins = accesses.iter().position(|access| access.block == *first)?;
        let after = &accesses.iter().rfind(|access| access.block == *last)?.state;
        let before = files.state_before(path, begins);
        if let Some(net) = before.and_then(|before| net_change(&before, after)) {
            let count = if net.is_whole { LineCount::Net } else { LineCount::NetOfKnown };
            return Some((Some(count(net.added, net.removed)), net.diff));
        }
        let written = accesses.get(begins).filter(|access| access.kind == AccessKind::Create)?;
        let net = net_change(&written.state, after)?;
        Some((Some(LineCount::NetSince(step, net.added, net.removed)), net.diff))
    }

    /// Adds up what calls say that they add to a file and remove from it; nothing where one does not say.
    fn sum_of(&self, path: &str, calls: &[BlockId]) -> Option<(usize, usize)> {
        let mut sum = (0, 0);
        for call in calls {
            let actions = asked_of(self.request.history, self.request.facts, *call, path);
            if actions.is_empty() {
                return None;
            }
            for action in &actions {
                let (added, removed) = lines_changed(action)?;
                sum = (sum.0 + added, sum.1 + removed);
            }
        }
        Some(sum)
    }

    /// Returns the result that a block is, or that answers it, with the file that it is about.
    fn changed_file(&self, id: BlockId) -> Option<(BlockId, u32)> {
        let fact = &self.request.facts[id];
        let result = if fact.acts_as == BlockKind::Call { fact.partner? } else { id };
        Some((result, self.request.index.file(result)?))
    }

    fn series_of_file(&self, file: u32) -> FileSeries {
        let mut changes = self.request.index.changes_of(file).to_vec();
        // A call that changes a file in several places changes it once.
        changes.dedup_by_key(|change| change.block);
        let until = self.draft.series.0.get(&file).into_iter().flatten().map(|told| told.last).max();
        let covered = changes.partition_point(|change| until.is_some_and(|until| change.step <= until));
        FileSeries { changes, covered }
    }
}

impl FileSeries {
    fn uncovered_changes(&self) -> Option<&[ChangedFile]> {
        self.changes.get(self.covered..)
    }
}

fn told_by_first(changes: &[ChangedFile]) -> Option<Reason> {
    let (first, last) = (changes.first()?.step, changes.last()?.step);
    Some(Reason::EditedOften { changes: narrow(changes.len()), first, last, told: None })
}

impl SeriesLog {
    fn find_series(&self, file: u32, first: u32, last: u32) -> Option<&ToldSeries> {
        self.0.get(&file)?.iter().find(|told| (told.first, told.last) == (first, last))
    }

    /// Returns the reason of a change that a series lists. No block before the one that lists it could do so:
    /// they are too short to be worth a note.
    fn covering_reason(&self, file: u32, change: &ChangedFile) -> Option<Reason> {
        let covers = |told: &&ToldSeries| (told.first..=told.last).contains(&change.step);
        let told = self.0.get(&file)?.iter().find(covers).filter(|told| told.teller <= change.block)?;
        let ToldSeries { changes, first, last, at, .. } = *told;
        Some(Reason::EditedOften { changes, first, last, told: Some(at) })
    }
}

impl EditSeries {
    /// Returns the same with at most so many intents and lines of the diff, and how many more there are.
    pub(super) fn with_limits(&self, (intents, lines): (usize, usize)) -> EditSeries {
        let mut bounded = self.clone();
        bounded.intents.truncate(intents);
        bounded.more_intents = self.intents.len() - bounded.intents.len();
        bounded.diff.truncate(lines);
        bounded.more_diff = self.diff.len() - bounded.diff.len();
        bounded
    }
}
