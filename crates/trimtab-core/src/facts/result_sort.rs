//! What a result shows, as far as it matters to how long it is needed. Policies choose results by it, plans count their ages by it.

use super::{Fact, Subject, ToolKind, is_shell};
use crate::history::History;

/// What a result shows, as far as it matters to how long it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ResultSort {
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

impl ResultSort {
    /// All, with the names that policies use.
    pub(crate) const ALL: [(&'static str, ResultSort); 7] = [
        ("file", ResultSort::File),
        ("shell-file", ResultSort::ShellFile),
        ("search", ResultSort::Search),
        ("edit", ResultSort::Edit),
        ("write", ResultSort::Write),
        ("report", ResultSort::Report),
        ("other", ResultSort::Other),
    ];
}

/// Version control's ways to show files.
const GIT_VIEWS: [&str; 5] = ["git show", "git diff", "git blame", "git grep", "git log -p"];

/// Tells what a result shows.
pub(crate) fn sort_of_result(history: &History, fact: &Fact) -> ResultSort {
    let by_shell = || {
        let call = fact.partner.and_then(|call| history.block(call));
        call.and_then(|call| history.tool_name(call)).is_none_or(|name| is_shell(&name))
    };
    match fact.tool() {
        Some(ToolKind::Read | ToolKind::Search) if by_shell() => ResultSort::ShellFile,
        Some(ToolKind::Git) => match fact.subject() {
            Subject::Command(command) if GIT_VIEWS.iter().any(|view| command.starts_with(view)) => {
                ResultSort::ShellFile
            }
            _ => ResultSort::Other,
        },
        Some(ToolKind::Read) => ResultSort::File,
        Some(ToolKind::Search) => ResultSort::Search,
        Some(ToolKind::Edit) => ResultSort::Edit,
        Some(ToolKind::Write | ToolKind::Delete) => ResultSort::Write,
        Some(ToolKind::SubAgent) => ResultSort::Report,
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
        | None => ResultSort::Other,
    }
}
