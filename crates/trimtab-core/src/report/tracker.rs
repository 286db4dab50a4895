//! Every file that a conversation touched, with what is known of it by now: [`FileTracker`] and [`FilePart`]. The command
//! line, the MCP server, Python and `inspect` all tell files from here. Never reads a disk.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::Serialize;

use crate::{
    count::Counts,
    facts::{Facts, Outcome, Subject, ToolKind},
    files::{AccessKind, Existence, FileTimeline},
    history::{BlockKind, History, Role},
    units::Tokens,
    usage::Point,
};

/// One file of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilePart {
    /// Its path, seen from the session's root.
    pub path: String,
    /// The step that last read or changed it.
    pub last_access_step: u32,
    /// When the request was sent that made this step, in milliseconds since 1970, where the recording tells.
    pub last_access_time: Option<i64>,
    /// What that step did: read, create, edit or delete.
    pub operation: &'static str,
    /// Whether the session ever changed it.
    pub modified: bool,
    /// Whether it is there, where that is known.
    pub exists: Option<bool>,
    /// How many lines it has, where that is known.
    pub line_count: Option<usize>,
    /// Its first 200 characters, where they are known. Control characters but line breaks and tabs are `·`.
    pub preview: Option<String>,
    /// How often it was read.
    pub reads: usize,
    /// How often it was changed.
    pub changes: usize,
    /// Tokens of the calls about it and of their results.
    pub tokens: Tokens,
}

/// The files of one conversation, and the step that it has come to.
#[derive(Debug, Clone, Serialize)]
pub struct FileTracker {
    /// The latest step.
    pub step: u32,
    /// The files, by path.
    pub files: Vec<FilePart>,
}

/// Which files are asked for; all conditions that are set must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileQuestion {
    /// Read or changed at most so many steps ago.
    pub recent: Option<u32>,
    /// Neither read nor changed for more than so many steps.
    pub stale: Option<u32>,
    /// Changed by the session.
    pub modified: bool,
}

impl FileTracker {
    /// Collects the files of a conversation. `points` are the requests of the recording that it is of.
    pub fn from_conversation(
        history: &History,
        facts: &Facts,
        files: &FileTimeline,
        counts: &Counts,
        points: &[Point],
    ) -> FileTracker {
        let mut parts: BTreeMap<String, FilePart> = BTreeMap::new();
        let new = |path: &str| FilePart {
            path: path.to_owned(),
            last_access_step: 0,
            last_access_time: None,
            operation: AccessKind::Read.name(),
            modified: false,
            exists: None,
            line_count: None,
            preview: None,
            reads: 0,
            changes: 0,
            tokens: Tokens::ZERO,
        };
        let is_tool = |kind: BlockKind| matches!(kind, BlockKind::Call | BlockKind::Result);
        let rows = facts.rows().iter().zip(counts.blocks());
        for (fact, tokens) in rows.filter(|(fact, _)| is_tool(fact.acts_as)) {
            let Subject::File { path, .. } = fact.subject() else { continue };
            let path = facts.file_key(path);
            let part = parts.entry(path.clone().into_owned()).or_insert_with(|| new(&path));
            part.tokens += *tokens;
            part.last_access_step = fact.step;
            // Results are counted, since some tools name their file only there.
            if fact.acts_as != BlockKind::Result {
                continue;
            }
            let kind = fact.tool();
            part.reads += usize::from(kind == Some(ToolKind::Read));
            part.changes += usize::from(kind.is_some_and(ToolKind::changes_files));
            if let (Some(kind), true) = (kind, fact.outcome != Outcome::Failed) {
                part.operation = operation_of(kind).name();
                part.modified |= kind.changes_files();
            }
        }
        for path in files.paths() {
            let Some(last) = files.accesses(path).last() else { continue };
            let part = parts.entry(path.to_owned()).or_insert_with(|| new(path));
            if last.step >= part.last_access_step {
                (part.last_access_step, part.operation) = (last.step, last.kind.name());
            }
            part.modified |= files.was_modified(path);
            let Some(state) = files.file_state_at(path, u32::MAX) else { continue };
            part.exists = match state.existence() {
                Existence::Unknown => None,
                Existence::Present => Some(true),
                Existence::Absent => Some(false),
            };
            part.line_count = state.line_count();
            part.preview = state.preview().map(|text| text.replace(is_unprintable, "·"));
        }
        let times = times_of_steps(history, points);
        for part in parts.values_mut() {
            part.last_access_time = times.get(&part.last_access_step).copied();
        }
        FileTracker { step: facts.current_step(), files: parts.into_values().collect() }
    }

    /// Returns the files that a question is about: the latest access first, by path where that is the same.
    pub fn find(&self, question: FileQuestion) -> Vec<&FilePart> {
        let age = |file: &FilePart| self.step.saturating_sub(file.last_access_step);
        let is_meant = |file: &&FilePart| {
            question.recent.is_none_or(|most| age(file) <= most)
                && question.stale.is_none_or(|most| age(file) > most)
                && (file.modified || !question.modified)
        };
        let mut found: Vec<&FilePart> = self.files.iter().filter(is_meant).collect();
        found.sort_by_key(|file| Reverse(file.last_access_step));
        found
    }

    /// Tells whether a file's last access is more than `max_age` steps before a step, or there is none.
    pub fn is_stale(&self, path: &str, step: u32, max_age: u32) -> bool {
        let file = self.files.iter().find(|file| file.path == path);
        file.is_none_or(|file| step.saturating_sub(file.last_access_step) > max_age)
    }
}

fn operation_of(kind: ToolKind) -> AccessKind {
    match kind {
        ToolKind::Write => AccessKind::Create,
        ToolKind::Edit => AccessKind::Edit,
        ToolKind::Delete => AccessKind::Delete,
        ToolKind::Read
        | ToolKind::Search
        | ToolKind::List
        | ToolKind::Test
        | ToolKind::Build
        | ToolKind::Git
        | ToolKind::Run
        | ToolKind::Web
        | ToolKind::SubAgent
        | ToolKind::Todo
        | ToolKind::Ask
        | ToolKind::Think
        | ToolKind::Recall
        | ToolKind::Other => AccessKind::Read,
    }
}

fn is_unprintable(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\n' | '\t')
}

/// Returns when the request was sent whose answer is a step, by step.
fn times_of_steps(history: &History, points: &[Point]) -> BTreeMap<u32, i64> {
    let mut times = BTreeMap::new();
    let mut points = points.iter().peekable();
    let mut latest = None;
    for (index, entry) in history.messages().iter().enumerate() {
        while let Some(point) = points.next_if(|point| point.messages <= index) {
            latest = point.at.or(latest);
        }
        if let (Role::Assistant, Some(at)) = (entry.role, latest) {
            times.entry(entry.step).or_insert(at.0);
        }
    }
    times
}
