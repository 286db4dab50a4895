//! What a tool is for. Takes the name of a tool as any agent spells it; gives its kind. Never looks at a result: the call
//! says what it does.
//!
//! Names are compared without case, underscores, dashes and the prefix of an MCP server (`mcp__files__read_file`,
//! `ReadFile`, `read-file` are one). A new name is one row in `tools.tsv`.

use CallManner::{Editor, LastingShell, Patch, Plain, Session, Shell};

use super::{
    tables::find_manner,
    tool::ToolKind::{
        self, Ask, Build, Delete, Edit, Git, List, Other, Read, Run, Search, SubAgent, Test, Think, Todo,
        Web, Write,
    },
};

/// How a call of a tool is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallManner {
    /// It always does the same.
    Plain(ToolKind),
    /// It runs a shell command; the next call starts where the session began.
    Shell,
    /// It runs a shell command in a shell that goes on: a `cd` lasts.
    LastingShell,
    /// It goes on with a running command.
    Session,
    /// It takes a command such as `view` or `str_replace`, with a path.
    Editor,
    /// It takes a patch.
    Patch,
}

/// Tells whether a tool of that name runs shell commands.
pub(crate) fn is_shell(name: &str) -> bool {
    matches!(manner_by_name(name), Some(Shell | LastingShell | Session))
}

/// Tells whether a tool of this name changes files.
pub(crate) fn changes_files(name: &str) -> bool {
    match manner_by_name(name) {
        Some(Plain(kind)) => kind.changes_files(),
        Some(Editor | Patch) => true,
        Some(Shell | LastingShell | Session) => false,
        None => guessed_for_file(name).is_some_and(ToolKind::changes_files),
    }
}

/// Finds how calls of a tool are read; none for a name that is not in the table.
pub(crate) fn manner_by_name(name: &str) -> Option<CallManner> {
    // Claude Code's shell keeps its directory; the others of that name start afresh.
    if name == "Bash" {
        return Some(LastingShell);
    }
    let own = fold_name(name.trim_start_matches("functions."));
    find_manner(&own).or_else(|| find_manner(&fold_name(bare_name(name))))
}

/// Tells from its words what a tool of an unknown name is for.
pub(crate) fn guess_tool_kind(name: &str) -> ToolKind {
    let words = words_of(bare_name(name));
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    match () {
        () if has(&[
            "browser", "navigate", "url", "webpage", "website", "web", "http", "crawl", "scrape",
            "screenshot",
        ]) =>
        {
            Web
        }
        () if has(&["git", "commit", "branch", "pull", "pr", "merge"]) => Git,
        () if has(&["test", "tests", "pytest", "jest"]) => Test,
        () if has(&["lint", "build", "compile", "format", "typecheck", "install"]) => Build,
        () if has(&["subagent", "agent", "delegate"]) => SubAgent,
        () if has(&["todo", "todos", "plan", "tasks"]) => Todo,
        () if has(&["think", "thought", "reason", "reflect"]) => Think,
        () if has(&["ask", "question", "confirm", "human", "approval"]) => Ask,
        () if has(&["grep", "search", "query", "lookup", "retrieve"]) => Search,
        () if has(&["ls", "tree", "glob"]) => List,
        () if has(&["shell", "bash", "exec", "execute", "run", "terminal"]) => Run,
        () => Other,
    }
}

/// Tells from its words what a tool does to the file that its arguments name.
pub(crate) fn guessed_for_file(name: &str) -> Option<ToolKind> {
    let words = words_of(bare_name(name));
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    match () {
        () if has(&["delete", "remove", "unlink"]) => Some(Delete),
        () if has(&[
            "edit", "replace", "patch", "modify", "update", "insert", "append", "rename", "move",
        ]) =>
        {
            Some(Edit)
        }
        () if has(&["write", "create", "save", "put"]) => Some(Write),
        () if has(&["grep", "search", "find"]) => Some(Search),
        () if has(&["list", "ls", "dir", "directory", "tree", "glob"]) => Some(List),
        () if has(&["read", "get", "view", "open", "cat", "show", "load", "file"]) => Some(Read),
        () => None,
    }
}

/// Returns a name in lower-case letters and digits alone.
pub(super) fn fold_name(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Returns the tool's own name, without that of its server.
fn bare_name(name: &str) -> &str {
    let name = name.rsplit("__").next().filter(|own| !own.is_empty()).unwrap_or(name);
    name.rsplit(['.', '/', ':']).next().unwrap_or(name)
}

/// Splits a name into lower-case words at underscores, dashes and capitals.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        let starts = !letter.is_ascii_alphanumeric() || (letter.is_ascii_uppercase() && was_lower);
        if starts {
            words.push(String::new());
        }
        was_lower = letter.is_ascii_lowercase();
        if let Some(word) = words.last_mut().filter(|_| letter.is_ascii_alphanumeric()) {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
