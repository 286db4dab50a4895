//! Which earlier results a newer one makes redundant. Takes the actions of calls as they end, in order; gives pairs of
//! blocks, each with its rule. Never looks at content: a block is superseded because something newer shows the same.
//!
//! Failed calls and appends supersede nothing. A block that shows more than one thing is superseded by nothing, since part
//! of it would be lost. For each subject the newest are looked at first and the search ends at the first that shows all of
//! it: everything older was superseded by that one.

use std::collections::HashMap;

use super::{subject::Lines, tool::ToolKind};
use crate::history::BlockId;

/// Why a block is superseded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// The whole file was read again.
    ReadAgain,
    /// The whole file was written anew.
    WrittenAnew,
    /// The same lines were read again, with others or alone.
    LinesReadAgain,
    /// The same or a wider listing was made.
    ListedAgain,
    /// The same test or build was run again.
    RunAgain,
}

impl Rule {
    /// Returns the name used in pictures and reports.
    pub fn name(self) -> &'static str {
        match self {
            Rule::ReadAgain => "read again",
            Rule::WrittenAnew => "written anew",
            Rule::LinesReadAgain => "lines read again",
            Rule::ListedAgain => "listed again",
            Rule::RunAgain => "run again",
        }
    }
}

/// How far back the operations on one subject are looked through. Only lines read piece by piece, without the whole file
/// ever being shown, come near it.
const MOST_LOOKED_AT: usize = 100;

/// Something that shows a file, a listing or a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown {
    /// The block that holds the content: the result of a read, the call of a write.
    pub(crate) block: BlockId,
    /// The result with which it became known.
    pub(crate) known_at: BlockId,
    pub(crate) lines: Lines,
    pub(crate) rule: Rule,
    /// Whether it is all that its block shows.
    pub(crate) alone: bool,
}

/// What is known of each subject so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    files: HashMap<Box<str>, Vec<Shown>>,
    listings: HashMap<Box<str>, Vec<Shown>>,
    runs: HashMap<Box<str>, Vec<Shown>>,
    /// The first result that tells of a change to each file.
    changed: HashMap<Box<str>, BlockId>,
}

impl Known {
    /// Notes that a file is shown; returns what that supersedes.
    pub(crate) fn file(&mut self, key: &str, shown: Shown) -> Vec<(BlockId, Rule)> {
        note(&mut self.files, key, shown, |newer, older| newer.lines.covers(older.lines))
    }

    /// Notes a listing; returns what it supersedes.
    pub(crate) fn listing(&mut self, key: &str, shown: Shown) -> Vec<(BlockId, Rule)> {
        note(&mut self.listings, key, shown, |newer, older| newer.lines.covers(older.lines))
    }

    /// Notes a run; returns what it supersedes.
    pub(crate) fn run(&mut self, key: &str, shown: Shown) -> Vec<(BlockId, Rule)> {
        note(&mut self.runs, key, shown, |_, _| true)
    }

    /// Returns the latest block after another one that shows or writes all of a file.
    pub(crate) fn whole_after(&self, key: &str, block: BlockId) -> Option<BlockId> {
        let later = self.files.get(key)?.iter().rev().take_while(|shown| shown.known_at > block);
        let mut whole = later.filter(|shown| shown.lines == Lines::All && shown.block > block);
        whole.next().map(|shown| shown.block)
    }

    /// Notes that a file was changed.
    pub(crate) fn change(&mut self, key: &str, known_at: BlockId) {
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
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().chain(self.changed.keys()).map(AsRef::as_ref)
    }

    /// Forgets what became known with the blocks from `from` on, for one subject.
    pub(crate) fn forget(&mut self, kind: ToolKind, key: &str, from: BlockId) {
        let map = match kind {
            ToolKind::List => &mut self.listings,
            ToolKind::Test | ToolKind::Build => &mut self.runs,
            _ => &mut self.files,
        };
        if let Some(all) = map.get_mut(key) {
            while all.last().is_some_and(|shown| shown.known_at >= from) {
                all.pop();
            }
        }
        if self.changed.get(key).is_some_and(|known_at| *known_at >= from) {
            self.changed.remove(key);
        }
    }

    /// Renames every file once the session's root is known.
    pub(crate) fn rename(&mut self, renamed: impl Fn(&str) -> Box<str>) {
        let files = std::mem::take(&mut self.files);
        for (key, mut shown) in sorted(files) {
            let all = self.files.entry(renamed(&key)).or_default();
            all.append(&mut shown);
            all.sort_by_key(|shown| shown.known_at);
        }
        for (key, known_at) in sorted(std::mem::take(&mut self.changed)) {
            let first = self.changed.entry(renamed(&key)).or_insert(known_at);
            *first = (*first).min(known_at);
        }
    }
}

fn sorted<T>(map: HashMap<Box<str>, T>) -> Vec<(Box<str>, T)> {
    let mut all: Vec<(Box<str>, T)> = map.into_iter().collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

fn note(
    map: &mut HashMap<Box<str>, Vec<Shown>>,
    key: &str,
    shown: Shown,
    covers: fn(&Shown, &Shown) -> bool,
) -> Vec<(BlockId, Rule)> {
    if !map.contains_key(key) {
        map.insert(key.into(), Vec::new());
    }
    let Some(all) = map.get_mut(key) else { return Vec::new() };
    let mut superseded = Vec::new();
    for older in all.iter().rev().take(MOST_LOOKED_AT) {
        if older.alone && older.block < shown.block && covers(&shown, older) {
            superseded.push((older.block, shown.rule));
        }
        if older.lines == Lines::All {
            break;
        }
    }
    all.push(shown);
    superseded
}
