//! How much a block matters. Takes its row and where the conversation stands; gives one of ten classes. Never stores the
//! answer: it changes with every step.

use super::{Fact, Facts, Outcome, ToolKind, Voice};
use crate::history::{BlockId, BlockKind, Role};

/// How much a block matters, most first; the number is the class's rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Priority {
    /// What a summary already covers: 20.
    Summarized,
    /// Tool results out of the recent steps: 30.
    StaleToolOutput,
    /// Conversation out of the recent steps: 40.
    OldHistory,
    /// Reads of files in the recent steps: 50.
    RecentFileRead,
    /// The recent steps: 60.
    RecentStep,
    /// Reads and changes of files that were changed in this session: 70.
    ModifiedFile,
    /// A summary of what was said before: 75.
    Summary,
    /// The current task: 80.
    CurrentTask,
    /// AGENTS.md and its kin: 90.
    AgentInstructions,
    /// The system prompt and the tools: 100.
    System,
}

impl Priority {
    /// Returns the class's number: 100 for the system prompt down to 20.
    pub fn number(self) -> u8 {
        match self {
            Priority::System => 100,
            Priority::AgentInstructions => 90,
            Priority::CurrentTask => 80,
            Priority::Summary => 75,
            Priority::ModifiedFile => 70,
            Priority::RecentStep => 60,
            Priority::RecentFileRead => 50,
            Priority::OldHistory => 40,
            Priority::StaleToolOutput => 30,
            Priority::Summarized => 20,
        }
    }

    /// Returns the name used in pictures and reports.
    pub fn name(self) -> &'static str {
        match self {
            Priority::System => "system",
            Priority::AgentInstructions => "agent instructions",
            Priority::CurrentTask => "current task",
            Priority::Summary => "summary",
            Priority::ModifiedFile => "modified file",
            Priority::RecentStep => "recent step",
            Priority::RecentFileRead => "recent file read",
            Priority::OldHistory => "old history",
            Priority::StaleToolOutput => "stale tool output",
            Priority::Summarized => "summarized",
        }
    }
}

/// Returns the class of a block; `recent` is the number of latest steps that count as recent.
///
/// A call has the class of its result: both are kept or removed together.
pub(super) fn priority(facts: &Facts, id: BlockId, fact: &Fact, recent: u32) -> Priority {
    if matches!(fact.role, Role::System | Role::Tools) || fact.acts_as == BlockKind::Definition {
        return Priority::System;
    }
    match fact.voice {
        Some(Voice::Instructions) => return Priority::AgentInstructions,
        Some(Voice::Summary) => return Priority::Summary,
        Some(Voice::Person) if facts.is_current_task(fact.entry) => return Priority::CurrentTask,
        Some(Voice::Person | Voice::Environment | Voice::Reminder | Voice::Echo | Voice::Interruption)
        | None => {}
    }
    if facts.last_summary().is_some_and(|summary| id < summary) {
        return Priority::Summarized;
    }
    let is_recent = facts.current_step().saturating_sub(fact.step) <= recent;
    match fact.acts_as {
        BlockKind::Call | BlockKind::Result => of_tool(facts, fact, is_recent),
        BlockKind::Text
        | BlockKind::Reasoning
        | BlockKind::Media
        | BlockKind::Definition
        | BlockKind::Unknown => {
            if is_recent {
                Priority::RecentStep
            } else {
                Priority::OldHistory
            }
        }
    }
}

fn of_tool(facts: &Facts, fact: &Fact, is_recent: bool) -> Priority {
    let on_file = |action: &&super::Action| action.kind == ToolKind::Read || action.kind.changes_files();
    let mut files = fact.actions.iter().filter(on_file).filter_map(|action| action.subject.path()).peekable();
    if files.peek().is_none() {
        return if is_recent { Priority::RecentStep } else { Priority::StaleToolOutput };
    }
    if fact.outcome != Outcome::Failed && files.any(|path| facts.is_modified(path)) {
        return Priority::ModifiedFile;
    }
    if is_recent { Priority::RecentFileRead } else { Priority::StaleToolOutput }
}
