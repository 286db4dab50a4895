//! Which earlier results a newer one makes redundant. Takes the actions of calls as they end, in order; gives pairs of
//! blocks, each with its rule. Never looks at content: a block is superseded because something newer shows the same.
//!
//! Failed calls and appends supersede nothing; a test or build that ran and failed is a newer run. A block that shows more than one thing is superseded by nothing, since part
//! of it would be lost. For each subject the newest are looked at first and the search ends at the first that shows all of
//! it: everything older was superseded by that one.

use std::collections::HashMap;

use super::{coverage::Coverage, subject::SubjectLines, tool::ToolKind};
use crate::history::BlockId;

/// Why a block is superseded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SupersedeRule {
    /// The whole file was read again.
    ReadAgain,
    /// The whole file was written again.
    WrittenAnew,
    /// The same lines were read again, with others or alone.
    LinesReadAgain,
    /// The same or a wider listing was made.
    ListedAgain,
    /// The same test, build or status command was run again.
    RunAgain,
}

impl SupersedeRule {
    /// Returns the name used in pictures and reports.
    pub fn name(self) -> &'static str {
        match self {
            SupersedeRule::ReadAgain => "read again",
            SupersedeRule::WrittenAnew => "written again",
            SupersedeRule::LinesReadAgain => "lines read again",
            SupersedeRule::ListedAgain => "listed again",
            SupersedeRule::RunAgain => "run again",
        }
    }
}

/// How far back the operations on one subject are looked through. Only lines read piece by piece, without the whole file
/// ever being shown, come near it.
const MOST_LOOKED_AT: usize = 100;

/// Something that shows a file, a listing or a run.
#[derive(Debug, Clone)]
pub(crate) struct ShownSubject {
    /// The block that holds the content: the result of a read, the call of a write.
    pub(crate) block: BlockId,
    /// The result with which it became known.
    pub(crate) known_at: BlockId,
    /// Which lines of a file; of a directory, which of its levels.
    pub(crate) lines: SubjectLines,
    pub(crate) coverage: Coverage,
    pub(crate) rule: SupersedeRule,
    /// Whether it is all that its block shows.
    pub(crate) alone: bool,
}

impl ShownSubject {
    fn covers(&self, older: &ShownSubject) -> bool {
        self.lines.covers(older.lines) && self.coverage.covers(&older.coverage)
    }

    /// Tells whether nothing could show more.
    fn is_all(&self, wanted: WholeCriterion) -> bool {
        let shows_all = match wanted {
            WholeCriterion::Content => self.coverage.is_whole(),
            WholeCriterion::Listing => {
                self.coverage.is_whole()
                    && self.coverage.hidden
                    && self.coverage.ignored
                    && self.coverage.details
            }
        };
        self.lines == SubjectLines::All && shows_all
    }
}

/// What makes something shown as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WholeCriterion {
    /// No filters.
    Content,
    /// No filters, and hidden and ignored files with details.
    Listing,
}

/// What is known of each subject so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownSubjects {
    files: HashMap<Box<str>, Vec<ShownSubject>>,
    listings: HashMap<Box<str>, Vec<ShownSubject>>,
    runs: HashMap<Box<str>, Vec<ShownSubject>>,
    /// The first result that tells of a change to each file.
    changed: HashMap<Box<str>, BlockId>,
}

impl KnownSubjects {
    /// Notes that a file is shown; returns what that supersedes.
    pub(crate) fn record_file(&mut self, key: &str, shown: ShownSubject) -> Vec<(BlockId, SupersedeRule)> {
        record_shown(&mut self.files, key, shown, WholeCriterion::Content)
    }

    /// Notes a listing; returns what it supersedes.
    pub(crate) fn record_listing(&mut self, key: &str, shown: ShownSubject) -> Vec<(BlockId, SupersedeRule)> {
        record_shown(&mut self.listings, key, shown, WholeCriterion::Listing)
    }

    /// Notes a run; returns what it supersedes.
    pub(crate) fn record_run(&mut self, key: &str, shown: ShownSubject) -> Vec<(BlockId, SupersedeRule)> {
        record_shown(&mut self.runs, key, shown, WholeCriterion::Content)
    }

    /// Returns the latest block after another one that shows or writes all of a file.
    pub(crate) fn whole_after(&self, key: &str, block: BlockId) -> Option<BlockId> {
        let later = self.files.get(key)?.iter().rev().take_while(|shown| shown.known_at > block);
        let mut whole = later.filter(|shown| shown.lines == SubjectLines::All && shown.block > block);
        whole.next().map(|shown| shown.block)
    }

    /// Notes that a file was changed.
    pub(crate) fn record_change(&mut self, key: &str, known_at: BlockId) {
        if !self.changed.contains_key(key) {
            self.changed.insert(key.into(), known_at);
        }
    }

    pub(crate) fn is_changed(&self, key: &str) -> bool {
        self.changed.contains_key(key)
    }

    pub(crate) fn changed_files(&self) -> impl Iterator<Item = &str> {
        self.changed.keys().map(AsRef::as_ref)
    }

    /// Tells whether a file of that key was shown or changed.
    pub(crate) fn knows_file(&self, key: &str) -> bool {
        self.files.contains_key(key) || self.changed.contains_key(key)
    }

    /// Returns the keys of the files that were shown or changed.
    pub(crate) fn known_files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().chain(self.changed.keys()).map(AsRef::as_ref)
    }

    /// Forgets what became known with the blocks from `from` on, for one file or directory.
    pub(crate) fn forget_from(&mut self, kind: ToolKind, key: &str, from: BlockId) {
        forget_from(if kind == ToolKind::List { &mut self.listings } else { &mut self.files }, key, from);
        if self.changed.get(key).is_some_and(|known_at| *known_at >= from) {
            self.changed.remove(key);
        }
    }

    /// Forgets the runs of a key that became known with the blocks from `from` on.
    pub(crate) fn forget_run(&mut self, key: &str, from: BlockId) {
        forget_from(&mut self.runs, key, from);
    }

    /// Renames everything once the names of paths have changed.
    pub(crate) fn rename_all(&mut self, renamed: impl Fn(&str) -> Box<str>) {
        rename_keys(&mut self.files, &renamed);
        rename_keys(&mut self.listings, &renamed);
        rename_keys(&mut self.runs, |key| run_key_renamed(key, &renamed));
        for (key, known_at) in sort_by_key(std::mem::take(&mut self.changed)) {
            let first = self.changed.entry(renamed(&key)).or_insert(known_at);
            *first = (*first).min(known_at);
        }
    }
}

/// Returns the key of commands run one after the other, each in a place.
pub(crate) fn run_key<'a>(commands: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    commands.map(|(place, command)| format!("{place}\n{command}")).collect::<Vec<_>>().join("\n")
}

/// Gives the places in a key of [`run_key`] other names.
fn run_key_renamed(key: &str, renamed: &impl Fn(&str) -> Box<str>) -> Box<str> {
    let is_place = |at: usize| at.is_multiple_of(2);
    let lines = key.split('\n').enumerate();
    let lines = lines.map(|(at, line)| if is_place(at) { renamed(line) } else { line.into() });
    lines.collect::<Vec<_>>().join("\n").into()
}

fn forget_from(map: &mut HashMap<Box<str>, Vec<ShownSubject>>, key: &str, from: BlockId) {
    let Some(all) = map.get_mut(key) else { return };
    while all.last().is_some_and(|shown| shown.known_at >= from) {
        all.pop();
    }
}

fn rename_keys(map: &mut HashMap<Box<str>, Vec<ShownSubject>>, renamed: impl Fn(&str) -> Box<str>) {
    for (key, mut shown) in sort_by_key(std::mem::take(map)) {
        let all = map.entry(renamed(&key)).or_default();
        all.append(&mut shown);
        all.sort_by_key(|shown| shown.known_at);
    }
}

fn sort_by_key<T>(map: HashMap<Box<str>, T>) -> Vec<(Box<str>, T)> {
    let mut all: Vec<(Box<str>, T)> = map.into_iter().collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

fn record_shown(
    map: &mut HashMap<Box<str>, Vec<ShownSubject>>,
    key: &str,
    shown: ShownSubject,
    wanted: WholeCriterion,
) -> Vec<(BlockId, SupersedeRule)> {
    if !map.contains_key(key) {
        map.insert(key.into(), Vec::new());
    }
    let Some(all) = map.get_mut(key) else { return Vec::new() };
    let mut superseded = Vec::new();
    for older in all.iter().rev().take(MOST_LOOKED_AT) {
        if older.alone && older.block < shown.block && shown.covers(older) {
            superseded.push((older.block, shown.rule));
        }
        if older.is_all(wanted) {
            break;
        }
    }
    all.push(shown);
    superseded
}
