//! The ledger as values: what happened in the part of a conversation that is folded, written without a model. `summary` fills it in,
//! `render` writes it.

/// A file that was read or modified.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileLine {
    /// Its path, seen from the session's root.
    pub path: String,
    /// How often it was changed.
    pub changes: usize,
    /// The steps of the first and last change; of a file that was only read, of the last reading.
    pub first: u32,
    /// See `first`.
    pub last: u32,
    /// Lines that were shown, as ranges counted from 1.
    pub lines: Vec<(usize, usize)>,
    /// Why it was changed, in the session's own words.
    pub words: Vec<String>,
    /// How many reasons are left out of these, the older ones.
    pub more_words: usize,
    /// The name by which the last reading is brought back.
    pub handle: Option<String>,
}

/// A command and how its last run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The command.
    pub command: String,
    /// How it ended.
    pub outcome: String,
    /// The step of the last run.
    pub step: u32,
    /// How often it was run.
    pub runs: usize,
}

/// A failure that nothing later resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    /// The command, or the file that was to be changed.
    pub what: String,
    /// The step.
    pub step: u32,
    /// The name by which the whole output is brought back.
    pub handle: String,
    /// Lines of it.
    pub lines: Vec<String>,
}

/// Our own list of facts about a range.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    /// The last step in the range, counted over earlier folds.
    pub last_step: u32,
    /// The user's words that go, oldest first.
    pub said: Vec<UserMessage>,
    /// Files that were modified, in the order in which they were first changed.
    pub modified: Vec<FileLine>,
    /// Files that were only read, the latest last.
    pub read: Vec<FileLine>,
    /// Commands, the latest last.
    pub commands: Vec<CommandLine>,
    /// Failures that nothing resolved, the latest last.
    pub errors: Vec<Unresolved>,
    /// Other calls that failed and were not done since: readings, searches.
    pub other_failures: Vec<Unresolved>,
    /// Instructions for agents that tools brought in.
    pub instructions: Vec<Instructions>,
    /// What is not done.
    pub open: Vec<OpenItem>,
    /// What the model said last.
    pub last_words: Vec<String>,
    /// The prose of an earlier summary in the range.
    pub earlier_summary: Option<String>,
}

/// One message of the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserMessage {
    /// The step before which it was said.
    pub step: u32,
    /// The words.
    pub text: String,
    /// How many lines of it are left out; those that are left set limits.
    pub left_out: usize,
    /// The name by which the whole message is brought back.
    pub handle: Option<String>,
}

/// How much of instructions is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionExtent {
    /// All of them.
    Whole,
    /// The sentences that set limits.
    Limits,
    /// Where they stand.
    Name,
}

/// What instructions a file gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instructions {
    /// The file's path, seen from the session's root; of a reminder in another result, that result's subject.
    pub path: String,
    /// The step at which they were last read.
    pub step: u32,
    /// Whether the file was changed since.
    pub changed: bool,
    /// How much of it `lines` tell.
    pub extent: InstructionExtent,
    /// The words.
    pub lines: Vec<String>,
    /// The name by which the whole is brought back.
    pub handle: String,
}

/// One thing that is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenItem {
    /// Where it stands, in the agent's own word.
    pub state: String,
    /// What it is.
    pub text: String,
}
