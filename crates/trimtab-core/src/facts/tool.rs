//! What calls do: the kinds of tools, in words people use, and one action. Never looks at a name or an argument.

use super::{coverage::Coverage, subject::Subject};

/// What a tool call does, in words people use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ToolKind {
    /// Shows a file or a part of it.
    Read,
    /// Writes a whole file.
    Write,
    /// Changes a part of a file, or appends to it.
    Edit,
    /// Removes a file or directory.
    Delete,
    /// Looks for text.
    Search,
    /// Lists files, by directory or by name.
    List,
    /// Asks or changes version control and its hosts.
    Git,
    /// Runs tests.
    Test,
    /// Builds, checks, formats or installs.
    Build,
    /// Runs any other program.
    Run,
    /// Fetches a page, searches the web or drives a browser.
    Web,
    /// Hands work to another agent.
    SubAgent,
    /// Keeps a plan or list of tasks.
    Todo,
    /// Speaks to the human: a question, a plan to approve, the final word.
    Ask,
    /// Only thinks.
    Think,
    /// Brings back what trimtab hid, or looks something up in what it keeps.
    Recall,
    /// Anything else.
    Other,
}

impl ToolKind {
    /// All kinds.
    pub const ALL: [ToolKind; 17] = [
        ToolKind::Read,
        ToolKind::Write,
        ToolKind::Edit,
        ToolKind::Delete,
        ToolKind::Search,
        ToolKind::List,
        ToolKind::Git,
        ToolKind::Test,
        ToolKind::Build,
        ToolKind::Run,
        ToolKind::Web,
        ToolKind::SubAgent,
        ToolKind::Todo,
        ToolKind::Ask,
        ToolKind::Think,
        ToolKind::Recall,
        ToolKind::Other,
    ];

    /// Returns the name used in pictures and reports.
    pub fn name(self) -> &'static str {
        match self {
            ToolKind::Read => "read",
            ToolKind::Write => "write",
            ToolKind::Edit => "edit",
            ToolKind::Delete => "delete",
            ToolKind::Search => "search",
            ToolKind::List => "list",
            ToolKind::Git => "git",
            ToolKind::Test => "test",
            ToolKind::Build => "build",
            ToolKind::Run => "run",
            ToolKind::Web => "web",
            ToolKind::SubAgent => "sub-agent",
            ToolKind::Todo => "todo",
            ToolKind::Ask => "ask",
            ToolKind::Think => "think",
            ToolKind::Recall => "recall",
            ToolKind::Other => "other",
        }
    }

    /// Tells whether it changes files.
    pub fn changes_files(self) -> bool {
        matches!(self, ToolKind::Write | ToolKind::Edit | ToolKind::Delete)
    }
}

/// One thing that a call does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Action {
    /// What it does.
    pub kind: ToolKind,
    /// What it does it to.
    pub subject: Subject,
    /// How much of that it shows.
    pub coverage: Coverage,
    /// The directory in which it is done, where that is known.
    pub directory: Option<Box<str>>,
}

impl Action {
    pub(crate) fn new(kind: ToolKind, subject: Subject) -> Action {
        Action { kind, subject, coverage: Coverage::default(), directory: None }
    }
}
