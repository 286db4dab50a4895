//! What every block is about. Takes a history; gives one row per block: what a call does and to what, how it ended, what a
//! result is made of, whose words a text is, which earlier block it repeats or makes redundant. Never looks at the clock,
//! never stores what changes with every step: age and priority are asked for, not kept.
//!
//! Rows of a history that goes on where an earlier one ended cost what is new in it ([`Facts::extend`]).

mod add;
mod call;
mod content;
mod coverage;
mod directories;
mod instructions;
mod mcp_names;
mod names;
mod outcome;
mod patch;
mod priority;
mod protocol;
mod python_text;
mod react;
mod result_sort;
mod shell;
mod subject;
mod supersede;
mod tables;
mod tool;
mod totals;
mod windows;

use std::{borrow::Cow, collections::HashMap, ops::Index, sync::Arc};

pub use content::ContentKind;
pub use coverage::{Coverage, OutputPart};
pub use instructions::{Voice, VoiceSection, find_constraints, split_by_voice};
pub use mcp_names::mcp_server;
pub use outcome::Outcome;
pub use priority::Priority;
pub use subject::{DirectoryReach, Subject, SubjectLines};
pub use supersede::SupersedeRule;
pub use tool::{Action, ToolKind};

pub use add::argument_texts;
pub(crate) use add::{is_cut, with_arguments};
pub(crate) use call::{CONTENTS, CallArguments, DIRECTORIES, call_manner, command_text, path_in_result};
pub(crate) use names::{CallManner, changes_files, is_shell};
pub(crate) use patch::{HunkHeader, file_lines as patched_files};
pub(crate) use result_sort::{ResultSort, sort_of_result};
pub(crate) use shell::{RedirectDirection, SimpleCommand, actions_of, walk_script};
pub(crate) use subject::{is_absolute, join_path};
pub(crate) use tables::find_digest_of_tool;
pub(crate) use totals::{RunTotals, read_totals};
pub(crate) use windows::with_slashes;

use directories::KnownDirectories;
use supersede::KnownSubjects;

use crate::{
    history::{BlockId, BlockKind, EntryId, History, Role, row_of},
    json::widen,
};

/// What is known about one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What the block is in effect: the text of an agent that writes its calls into prose is a call, and the message that
    /// answers it is a result.
    pub acts_as: BlockKind,
    /// The other half of a call or result, written in text or not.
    pub partner: Option<BlockId>,
    /// Who speaks.
    pub role: Role,
    /// The entry it stands in.
    pub entry: EntryId,
    /// What the call does, the action that names it first; empty for blocks that are neither call nor result.
    pub actions: Arc<[Action]>,
    /// How the call ended, in the rows of both call and result.
    pub outcome: Outcome,
    /// What the text is made of.
    pub content: ContentKind,
    /// Whose words a text in a user's or system message is.
    pub voice: Option<Voice>,
    /// Whether instructions for agents (AGENTS.md and its kin) stand in it, alone or within other text.
    pub instructions: bool,
    /// The step it belongs to.
    pub step: u32,
    /// The turn it belongs to: the number of the user's messages up to here.
    pub turn: u32,
    /// The first half of the BLAKE3 of the block's decoded text; of its JSON where it holds no text.
    pub digest: [u8; 16],
    /// The first block of the same kind with the same content.
    pub identical_to: Option<BlockId>,
    /// The earlier blocks that this one makes redundant.
    pub supersedes: Vec<(BlockId, SupersedeRule)>,
    /// The first later block that makes this one redundant.
    pub superseded_by: Option<(BlockId, SupersedeRule)>,
}

impl Fact {
    /// Returns what the call does, where the block is a call or result.
    pub fn tool(&self) -> Option<ToolKind> {
        self.actions.first().map(|action| action.kind)
    }

    /// Returns what the call is about.
    pub fn subject(&self) -> &Subject {
        const NOTHING: &Subject = &Subject::Nothing;
        self.actions.first().map_or(NOTHING, |action| &action.subject)
    }
}

/// The rows of one history.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    rows: Vec<Fact>,
    known: KnownSubjects,
    places: KnownDirectories,
    /// The first block with each content.
    contents: HashMap<(BlockKind, [u8; 16]), BlockId>,
    /// Entries with the user's words, with their first block.
    persons: Vec<(EntryId, BlockId)>,
    summaries: Vec<BlockId>,
    /// Running commands: the session's name and the call that began it.
    sessions: Vec<(String, BlockId)>,
}

/// Tells what every block of a history is about.
pub fn facts(history: &History) -> Facts {
    let mut facts = Facts::default();
    facts.add_from(history, 0);
    facts
}

impl Facts {
    /// Goes on with a history that was parsed after the one these rows are of; costs what is new in it.
    ///
    /// The result is the same as that of [`facts`].
    pub fn extend(&mut self, history: &History) {
        let mut kept = history.reused_blocks().min(self.rows.len());
        // A message that goes on, or ends, elsewhere than before is read as a whole again.
        let is_inside = |kept: usize| {
            let entry = |block: usize| history.blocks().get(block).map(|block| block.entry);
            let told = |row: usize| self.rows.get(row).map(|row| row.entry);
            let Some(before) = kept.checked_sub(1) else { return false };
            entry(before) == entry(kept) || told(before) == told(kept)
        };
        while is_inside(kept) {
            kept -= 1;
        }
        self.truncate_to(kept);
        self.add_from(history, self.rows.len());
    }

    /// Returns all rows, by the number of their block.
    pub fn rows(&self) -> &[Fact] {
        &self.rows
    }

    /// Returns the row of a block.
    pub fn row(&self, block: BlockId) -> Option<&Fact> {
        self.rows.get(widen(block.0))
    }

    /// Returns the step at which the conversation stands.
    pub fn current_step(&self) -> u32 {
        self.rows.last().map_or(0, |row| row.step)
    }

    /// Returns how many steps ago a block was said.
    pub fn age(&self, block: BlockId) -> Option<u32> {
        Some(self.current_step().saturating_sub(self.row(block)?.step))
    }

    /// Returns how much a block matters now, where `recent` is the number of latest steps that count as recent.
    pub fn priority(&self, block: BlockId, recent: u32) -> Option<Priority> {
        Some(priority::priority(self, block, self.row(block)?, recent))
    }

    /// Returns the entry with the current task: the user's last message, or a sub-agent's prompt.
    pub fn current_task(&self) -> Option<EntryId> {
        self.persons.last().map(|(entry, _)| *entry)
    }

    /// Returns the files changed in this session, sorted, seen from its root.
    pub fn modified_files(&self) -> Vec<&str> {
        let mut files: Vec<&str> = self.known.changed_files().collect();
        files.sort_unstable();
        files
    }

    /// Tells whether a file was changed in this session.
    pub fn is_modified(&self, path: &str) -> bool {
        self.known.is_changed(&self.places.path_key(path))
    }

    /// Returns the latest block after a call that shows or writes all of every file that the call changed.
    pub(crate) fn shown_since(&self, call: BlockId) -> Option<BlockId> {
        let changes = self.row(call)?.actions.iter().filter(|action| action.kind.changes_files());
        let mut latest = None;
        for action in changes {
            let Subject::File { path, .. } = &action.subject else { return None };
            latest = latest.max(Some(self.known.whole_after(&self.places.path_key(path), call)?));
        }
        latest
    }

    /// Returns the name under which all spellings of a path are one: seen from the session's root.
    pub fn file_key<'a>(&self, path: &'a str) -> Cow<'a, str> {
        self.places.path_key(path)
    }

    /// Returns the directory in which a call was made, where that is known.
    pub(crate) fn cwd_before(&self, call: BlockId) -> Option<&str> {
        self.places.cwd_before(call)
    }

    /// Tells whether the names of later paths depend on what a block says about folders.
    pub(crate) fn names_folder(&self, block: BlockId) -> bool {
        self.places.is_named_by(block)
    }

    /// Returns what decides about the names of files; all of them may be others where it changes.
    pub(crate) fn naming_key(&self) -> String {
        self.places.naming_key()
    }

    /// Returns the directory in which the session works, if something named it.
    pub fn root(&self) -> Option<&str> {
        self.places.root()
    }

    fn is_current_task(&self, entry: EntryId) -> bool {
        self.current_task() == Some(entry)
    }

    fn last_summary(&self) -> Option<BlockId> {
        self.summaries.last().copied()
    }

    fn row_mut(&mut self, block: BlockId) -> Option<&mut Fact> {
        self.rows.get_mut(widen(block.0))
    }
}

/// The row of a block of the history that the rows are of.
impl Index<BlockId> for Facts {
    type Output = Fact;

    #[track_caller]
    fn index(&self, id: BlockId) -> &Fact {
        row_of(&self.rows, id)
    }
}

/// Returns the beginning of a text, at most `bytes` long.
pub(crate) fn text_head(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// Returns the end of a text, at most `bytes` long.
pub(crate) fn text_tail(text: &str, bytes: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(bytes))..).unwrap_or(text)
}

#[cfg(test)]
mod tests;
