//! What a result shows, as far as it matters to how long it is needed. Policies choose results by it, plans count their ages by it.

use super::{Fact, Subject, ToolKind, is_shell};
use crate::history::History;

/// What a result shows, as far as it matters to how long it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Shows {
    /// A file, or lines of one, read by a tool made for it.
    File,
    /// A file, or lines of one, printed by a shell command.
    ShellFile,
    /// What a search found.
    Search,
    /// That a part of a file was changed, with or without a snippet.
    Edit,
    /// That a file was written or removed.
    Write,
    /// What another agent reports.
    Report,
    /// Anything else: it is used for its names only.
    Other,
}

impl Shows {
    /// All, with the names that policies use.
    pub(crate) const ALL: [(&'static str, Shows); 7] = [
        ("file", Shows::File),
        ("shell-file", Shows::ShellFile),
        ("search", Shows::Search),
        ("edit", Shows::Edit),
        ("write", Shows::Write),
        ("report", Shows::Report),
        ("other", Shows::Other),
    ];
}

/// Version control's ways to show files.
const GIT_VIEWS: [&str; 5] = ["git show", "git diff", "git blame", "git grep", "git log -p"];

/// Tells what a result shows.
pub(crate) fn shows(history: &History, fact: &Fact) -> Shows {
    let by_shell = || {
        let call = fact.partner.and_then(|call| history.block(call));
        call.and_then(|call| history.tool_name(call)).is_none_or(|name| is_shell(&name))
    };
    match fact.tool() {
        Some(ToolKind::Read | ToolKind::Search) if by_shell() => Shows::ShellFile,
        Some(ToolKind::Git) => match fact.subject() {
            Subject::Command(command) if GIT_VIEWS.iter().any(|view| command.starts_with(view)) => {
                Shows::ShellFile
            }
            _ => Shows::Other,
        },
        Some(ToolKind::Read) => Shows::File,
        Some(ToolKind::Search) => Shows::Search,
        Some(ToolKind::Edit) => Shows::Edit,
        Some(ToolKind::Write | ToolKind::Delete) => Shows::Write,
        Some(ToolKind::SubAgent) => Shows::Report,
        Some(
            ToolKind::List
            | ToolKind::Test
            | ToolKind::Build
            | ToolKind::Run
            | ToolKind::Web
            | ToolKind::Todo
            | ToolKind::Ask
            | ToolKind::Think
            | ToolKind::Recall
            | ToolKind::Other,
        )
        | None => Shows::Other,
    }
}
