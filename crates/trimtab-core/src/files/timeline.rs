//! All files of a session over time. Takes operations with their steps, in order; gives each file's accesses and
//! its state after any step. Applying one more operation costs in proportion to the file it is about, not to the
//! session: states share their lines, and that anything may have changed is noted once and not in every file.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
};

use super::{
    operation::{FileAction, FileOperation},
    replacement,
    state::FileState,
};
use crate::history::BlockId;

/// What an access did to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// Looked into it.
    Read,
    /// Gave all of its content.
    Create,
    /// Changed some of it.
    Edit,
    /// Took it away.
    Delete,
}

impl AccessKind {
    /// Returns the name used in tables.
    pub fn name(self) -> &'static str {
        match self {
            AccessKind::Read => "read",
            AccessKind::Create => "create",
            AccessKind::Edit => "edit",
            AccessKind::Delete => "delete",
        }
    }
}

/// One access to one file.
#[derive(Debug, Clone)]
pub struct Access {
    /// The step that made it.
    pub step: u32,
    /// What it did.
    pub kind: AccessKind,
    /// The result with which it became known.
    pub block: BlockId,
    /// The state after it.
    pub state: FileState,
    /// How many accesses and doubts the session had before it.
    order: u32,
    /// Lines shown, counted from 1, as ranges.
    shown: Vec<Range<usize>>,
    /// The lines that an edit's old text stood on, by their identity.
    replaced: Vec<u32>,
}

impl Access {
    /// Returns the lines that it showed, with their numbers; none where it showed nothing.
    pub fn shown_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let text = |number: usize| Some((number, self.state.line(number)?.text));
        self.shown.iter().cloned().flatten().filter_map(text)
    }
}

/// A moment at which any file may have changed: a checkout, a formatter.
#[derive(Debug, Clone, Copy)]
struct FileDoubt {
    step: u32,
    block: BlockId,
    order: u32,
}

/// What a line shown earlier is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineNow {
    /// The same, under the same number.
    Current,
    /// The same, under this number.
    Moved(usize),
    /// Another one, or gone.
    Stale,
    /// The conversation does not tell.
    Unknown,
}

/// The files of a session, as [`files`](super::files) tells them from its calls.
///
/// ```
/// let request = br#"{"model":"gpt-5","messages":[
///   {"role":"user","content":"Rename a"},
///   {"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"write_file",
///     "arguments":"{\"path\":\"src/lib.rs\",\"content\":\"fn a() {}\\nfn b() {}\\n\"}"}}]},
///   {"role":"tool","tool_call_id":"1","content":"ok"},
///   {"role":"assistant","tool_calls":[{"id":"2","type":"function","function":{"name":"edit_file",
///     "arguments":"{\"path\":\"src/lib.rs\",\"old_string\":\"a()\",\"new_string\":\"first()\"}"}}]},
///   {"role":"tool","tool_call_id":"2","content":"ok"}]}"#;
/// let history = trimtab_core::parse(request.to_vec())?;
/// let files = trimtab_core::files(&history, &trimtab_core::facts(&history));
///
/// let before = files.file_state_at("src/lib.rs", 1).expect("written in step 1");
/// assert_eq!(before.text().as_deref(), Some("fn a() {}\nfn b() {}\n"));
/// let after = files.file_state_at("src/lib.rs", 2).expect("edited in step 2");
/// assert_eq!(after.line(1).map(|line| (line.text, line.seen)), Some(("fn first() {}", 2)));
/// # Ok::<(), trimtab_core::WireError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct FileTimeline {
    files: BTreeMap<String, Vec<Access>>,
    doubts: Vec<FileDoubt>,
    next_order: u32,
    /// How many blocks of a history are taken in, and the root from which paths were seen then.
    pub(super) taken_in: (usize, Option<String>),
}

impl FileTimeline {
    /// Takes in what one call did to one file. Steps must not go back.
    pub(crate) fn apply_operation(&mut self, step: u32, block: BlockId, operation: &FileOperation) {
        let before = self.file_state_at(&operation.path, u32::MAX).unwrap_or_default();
        let state = before.after_operation(step, &operation.action);
        let kind = kind_of(&operation.action);
        let replaced = replaced_lines(&before, &operation.action);
        let shown = match &operation.action {
            FileAction::Read(shown) => to_ranges(shown.lines.iter().map(|(number, _)| *number)),
            _ => Vec::new(),
        };
        let order = self.next_number();
        if let FileAction::Rename { to } = &operation.action {
            let kind = AccessKind::Create;
            let moved = Access { step, kind, block, state: before, order, shown: vec![], replaced: vec![] };
            self.files.entry(to.clone()).or_default().push(moved);
        }
        let access = Access { step, kind, block, state, order, shown, replaced };
        self.files.entry(operation.path.clone()).or_default().push(access);
    }

    /// Notes that any file may be another one from here on.
    pub(crate) fn add_doubt(&mut self, step: u32, block: BlockId) {
        let order = self.next_number();
        self.doubts.push(FileDoubt { step, block, order });
    }

    /// Forgets what became known with the blocks from `first` on.
    pub(crate) fn forget_from(&mut self, first: BlockId) {
        self.doubts.retain(|doubt| doubt.block < first);
        for accesses in self.files.values_mut() {
            let kept = accesses.partition_point(|access| access.block < first);
            accesses.truncate(kept);
        }
        self.files.retain(|_, accesses| !accesses.is_empty());
    }

    fn next_number(&mut self) -> u32 {
        self.next_order += 1;
        self.next_order
    }

    /// Returns the state of a file after all that happened up to a step; none where it was not touched by then.
    /// The path is seen from the session's root, as [`Facts::file_key`](crate::Facts::file_key) gives it.
    pub fn file_state_at(&self, path: &str, step: u32) -> Option<FileState> {
        let accesses = self.accesses(path);
        let count = accesses.partition_point(|access| access.step <= step);
        let doubts = self.doubts.partition_point(|doubt| doubt.step <= step);
        Some(self.left_of(accesses.get(count.checked_sub(1)?)?, doubts))
    }

    /// Returns the state of a file before one of its accesses: what was predicted of that which the access shows.
    pub fn state_before(&self, path: &str, access: usize) -> Option<FileState> {
        let accesses = self.accesses(path);
        let now = accesses.get(access)?;
        let doubts = self.doubts.partition_point(|doubt| doubt.order < now.order);
        Some(self.left_of(accesses.get(access.checked_sub(1)?)?, doubts))
    }

    /// Returns what is left of the state after an access once the first `doubts` doubts have come.
    fn left_of(&self, access: &Access, doubts: usize) -> FileState {
        let last = doubts.checked_sub(1).and_then(|last| self.doubts.get(last));
        match last.filter(|doubt| doubt.order > access.order) {
            Some(doubt) => access.state.after_operation(doubt.step, &FileAction::Changed),
            None => access.state.clone(),
        }
    }

    /// Returns the moments from which on any file may be another one: the step, and the block that shows it.
    pub fn doubts(&self) -> impl Iterator<Item = (u32, BlockId)> {
        self.doubts.iter().map(|doubt| (doubt.step, doubt.block))
    }

    /// Returns the paths of all files, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Returns the accesses to a file, oldest first.
    pub fn accesses(&self, path: &str) -> &[Access] {
        self.files.get(path).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the step of the last access to a file.
    pub fn last_access(&self, path: &str) -> Option<u32> {
        self.accesses(path).last().map(|access| access.step)
    }

    /// Tells whether the session ever changed a file; later reads make no difference.
    pub fn was_modified(&self, path: &str) -> bool {
        self.accesses(path).iter().any(|access| access.kind != AccessKind::Read)
    }

    /// Returns the files that the session changed.
    pub fn modified_files(&self) -> impl Iterator<Item = &str> {
        self.paths().filter(|path| self.was_modified(path))
    }

    /// Returns the files accessed at most `max_age` steps before a step, the latest first.
    pub fn recent_files(&self, step: u32, max_age: u32) -> Vec<&str> {
        let mut recent: Vec<(u32, &str)> = self
            .paths()
            .filter(|path| !self.is_stale(path, step, max_age))
            .filter_map(|path| Some((self.access_before(path, step)?, path)))
            .collect();
        recent.sort_by_key(|(last, _)| std::cmp::Reverse(*last));
        recent.into_iter().map(|(_, path)| path).collect()
    }

    /// Tells whether a file's last access is more than `max_age` steps before a step, or there is none.
    pub fn is_stale(&self, path: &str, step: u32, max_age: u32) -> bool {
        self.access_before(path, step).is_none_or(|last| step - last > max_age)
    }

    /// Tells for each line that an earlier access showed what it is after a step. `access` is its index in
    /// [`accesses`](FileTimeline::accesses).
    pub fn lines_now(&self, path: &str, access: usize, step: u32) -> Vec<(usize, LineNow)> {
        let Some(read) = self.accesses(path).get(access) else { return Vec::new() };
        let Some(now) = self.file_state_at(path, step) else { return Vec::new() };
        let places: HashMap<u32, usize> =
            (1..).zip(now.lines.iter()).filter_map(|(number, line)| Some((line?.id, number))).collect();
        let fate = |number: usize| {
            let line = read.state.lines.get(number - 1)?;
            let there = now.line(number);
            let fate = match (there, places.get(&line.id)) {
                (Some(there), _) if *there.text == *line.text => LineNow::Current,
                (_, Some(place)) => LineNow::Moved(*place),
                (None, None) if now.may_hold(number) => LineNow::Unknown,
                (Some(_) | None, None) => LineNow::Stale,
            };
            Some((number, fate))
        };
        read.shown.iter().cloned().flatten().filter_map(fate).collect()
    }

    /// Returns the numbers of the lines that an earlier read showed and that the file no longer holds.
    pub fn stale_lines(&self, path: &str, access: usize, step: u32) -> Vec<usize> {
        let stale = |(number, fate): (usize, LineNow)| (fate == LineNow::Stale).then_some(number);
        self.lines_now(path, access, step).into_iter().filter_map(stale).collect()
    }

    /// Returns the indices of the earlier reads that showed lines which an edit's old text comes from.
    pub fn relied_on(&self, path: &str, edit: usize) -> Vec<usize> {
        let accesses = self.accesses(path);
        let Some(access) = accesses.get(edit) else { return Vec::new() };
        let lines: HashSet<u32> = access.replaced.iter().copied().collect();
        let shows = |read: &Access| {
            let mut numbers = read.shown.iter().cloned().flatten();
            numbers
                .any(|number| read.state.lines.get(number - 1).is_some_and(|line| lines.contains(&line.id)))
        };
        let earlier = accesses.iter().take(edit).enumerate();
        earlier.filter(|(_, access)| shows(access)).map(|(index, _)| index).collect()
    }

    fn access_before(&self, path: &str, step: u32) -> Option<u32> {
        self.accesses(path).iter().rev().map(|access| access.step).find(|last| *last <= step)
    }
}

fn kind_of(action: &FileAction) -> AccessKind {
    match action {
        FileAction::Read(_) | FileAction::Missing => AccessKind::Read,
        FileAction::Write { .. } => AccessKind::Create,
        FileAction::Append { .. }
        | FileAction::Replace(_)
        | FileAction::Insert { .. }
        | FileAction::ReplaceLines { .. }
        | FileAction::Patch(_)
        | FileAction::Changed => AccessKind::Edit,
        FileAction::Delete | FileAction::Rename { .. } => AccessKind::Delete,
    }
}

/// Returns the identities of the known lines that an edit's old text stands on.
fn replaced_lines(before: &FileState, action: &FileAction) -> Vec<u32> {
    let lines = |range: Range<usize>| {
        let known = range.start..range.end.min(before.lines.len());
        known.filter_map(|index| before.lines.get(index)).map(|line| line.id).collect::<Vec<u32>>()
    };
    match action {
        FileAction::Replace(replacements) => {
            let touched = replacements
                .iter()
                .flat_map(|replacement| replacement::touched_lines(&before.lines, replacement));
            touched.flat_map(lines).collect()
        }
        FileAction::Patch(hunks) => {
            super::hunks::touched_lines(&before.lines, hunks).into_iter().flat_map(lines).collect()
        }
        FileAction::ReplaceLines { first, last, .. } => lines(first.saturating_sub(1)..*last),
        FileAction::Insert { after, .. } => lines(after.saturating_sub(1)..*after),
        FileAction::Read(_)
        | FileAction::Missing
        | FileAction::Write { .. }
        | FileAction::Append { .. }
        | FileAction::Delete
        | FileAction::Rename { .. }
        | FileAction::Changed => Vec::new(),
    }
}

fn to_ranges(numbers: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for number in numbers {
        match ranges.last_mut().filter(|range| range.end == number) {
            Some(range) => range.end += 1,
            None => ranges.push(number..number + 1),
        }
    }
    ranges
}
