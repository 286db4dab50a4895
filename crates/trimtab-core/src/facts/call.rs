//! What a call does. Takes a tool's name and its arguments; gives actions. Never looks at the result, except in
//! [`path_in_result`], for calls that name no file.

use std::borrow::Cow;

use super::{
    coverage::{Coverage, OutputPart},
    names::{self, CallManner},
    patch, shell,
    subject::{Subject, SubjectLines},
    tool::{Action, ToolKind},
    windows,
};
use crate::{
    json::{Value, scan},
    notes::file_in_note,
};

/// The arguments of a call.
pub(crate) enum CallArguments<'a> {
    Json(Value<'a>),
    /// Named texts, as agents with a text protocol write them.
    Named(&'a [(String, String)]),
    Text(&'a str),
    Nothing,
}

/// What was learned from a call.
pub(crate) struct CallFacts {
    /// Its actions, at least one; the one that names it first.
    pub(crate) actions: Vec<Action>,
    /// The directory that a lasting shell is in afterwards.
    pub(crate) cwd: Option<String>,
    /// The directory that the call names as its own.
    pub(crate) own_cwd: Option<String>,
    /// The running command that it goes on with.
    pub(crate) session: Option<String>,
}

const PATHS: &[&str] = &[
    "file_path", "filePath", "path", "absolute_path", "absolutePath", "AbsolutePath", "target_file",
    "targetFile", "TargetFile", "relative_workspace_path", "relative_path", "filename", "file_name",
    "fileName", "file", "notebook_path", "notebookPath", "uri", "filepath", "source", "name",
];
const PLACES: &[&str] = &[
    "path", "location", "dir_path", "dirPath", "dir", "directory", "target_directory", "folder",
    "DirectoryPath", "SearchDirectory", "relative_workspace_path", "repo_path", "file_path", "absolute_path",
    "root", "cwd",
];
const PATTERNS: &[&str] = &[
    "pattern", "query", "regex", "search_term", "searchTerm", "q", "Query", "Pattern", "glob_pattern",
    "globPattern", "glob", "file_name", "search", "symbolName", "name", "keyword", "text",
];
pub(crate) const CONTENTS: &[&str] =
    &["content", "contents", "file_text", "fileText", "new_content", "CodeContent", "text", "code"];
const OLDS: &[&str] = &[
    "old_string", "old_str", "oldString", "oldText", "old_text", "search", "edits", "diff", "replacements",
    "new_string", "replacement_text", "code_edit", "insert_line", "ReplacementChunks", "changes",
];
const COMMANDS: &[&str] = &["command", "cmd", "script", "CommandLine", "bash", "shell_command", "input"];
const URLS: &[&str] = &["url", "urls", "uri", "link", "address"];
pub(crate) const DIRECTORIES: &[&str] =
    &["workdir", "cwd", "working_directory", "workingDirectory", "directory", "dir_path", "Cwd", "dir"];

/// Reads a call that is made in a directory, where that is known.
pub(crate) fn read(name: &str, given: &CallArguments<'_>, cwd: Option<&str>) -> CallFacts {
    let own_cwd = DIRECTORIES.iter().find_map(|key| given.text(key)).map(Cow::into_owned);
    match call_manner(name, given) {
        manner @ (CallManner::Shell | CallManner::LastingShell) => {
            shell_call(name, given, cwd, own_cwd.as_deref(), manner)
        }
        CallManner::Session => {
            let session = ["session_id", "shellId", "shell_id", "bash_id", "task_id", "id"]
                .iter()
                .find_map(|key| given.scalar(key));
            let subject = Subject::Command(format!("session {}", session.as_deref().unwrap_or("?")).into());
            CallFacts {
                actions: vec![Action::new(ToolKind::Run, subject)],
                cwd: None,
                own_cwd: None,
                session,
            }
        }
        CallManner::Editor => call_of_actions(vec![editor_action(given)], cwd),
        CallManner::Patch => {
            let text = ["input", "patch", "patchText", "diff"].iter().find_map(|key| given.text(key));
            call_of_actions(
                patch::patch_actions(&text.or_else(|| given.all_arguments()).unwrap_or_default()),
                cwd,
            )
        }
        CallManner::Plain(kind) => call_of_actions(plain_actions(name, kind, given), cwd),
    }
}

fn call_of_actions(actions: Vec<Action>, cwd: Option<&str>) -> CallFacts {
    let mut actions: Vec<Action> = actions.into_iter().map(|action| action.seen_from(cwd)).collect();
    if actions.is_empty() {
        actions.push(Action::new(ToolKind::Other, Subject::Nothing));
    }
    CallFacts { actions, cwd: None, own_cwd: None, session: None }
}

fn shell_call(
    name: &str,
    given: &CallArguments<'_>,
    cwd: Option<&str>,
    own: Option<&str>,
    manner: CallManner,
) -> CallFacts {
    let Some(command) = command_text(given) else {
        return call_of_actions(plain_actions(name, ToolKind::Run, given), cwd);
    };
    let from = own.map(|own| super::subject::join_path(cwd.unwrap_or_default(), own));
    let script = shell::read(&command, from.as_deref().or(cwd));
    let mut actions = script.actions;
    let first = shell::primary_action(&actions);
    if let Some(front) = actions.get_mut(..=first) {
        front.rotate_right(1);
    }
    let moved = script.cwd.filter(|_| manner == CallManner::LastingShell);
    CallFacts { actions, cwd: moved, own_cwd: from, session: None }
}

/// Returns the command, also where it is a list of words.
pub(crate) fn command_text(given: &CallArguments<'_>) -> Option<String> {
    if let Some(text) = COMMANDS.iter().find_map(|key| given.text(key)) {
        return Some(text.into_owned());
    }
    let CallArguments::Json(value) = given else { return given.all_arguments().map(Cow::into_owned) };
    let list = ["command", "cmd", "args", "argv"]
        .iter()
        .find_map(|key| value.get(key).filter(|list| list.is_array()))?;
    let words: Vec<Cow<'_, str>> = list.items().filter_map(Value::string).collect();
    if let [shell, option, script, ..] = words.as_slice()
        && shell.rsplit('/').next().is_some_and(|name| name.ends_with("sh"))
        && option.starts_with('-')
    {
        return Some(script.clone().into_owned());
    }
    let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''")));
    Some(quoted.collect::<Vec<_>>().join(" "))
}

/// Tells how a call is read.
pub(crate) fn call_manner(name: &str, given: &CallArguments<'_>) -> CallManner {
    names::manner_by_name(name).unwrap_or_else(|| by_shape(name, given))
}

/// Tells how a call of an unknown tool is read: by its arguments, then by the words of its name.
fn by_shape(name: &str, given: &CallArguments<'_>) -> CallManner {
    let has = |keys: &[&str]| keys.iter().any(|key| given.has_argument(key));
    if has(&["command", "cmd", "CommandLine", "shell_command"]) && !has(&["path", "file_path"]) {
        return CallManner::Shell;
    }
    let names_file = has(&[
        "file_path", "filePath", "path", "absolute_path", "target_file", "filename", "file", "notebook_path",
    ]);
    if names_file {
        let by_name = names::guessed_for_file(name);
        let by_arguments = match () {
            () if has(OLDS) => Some(ToolKind::Edit),
            () if has(&["pattern", "regex", "query"]) => Some(ToolKind::Search),
            () if has(&["content", "contents", "file_text"]) => Some(ToolKind::Write),
            () => None,
        };
        if let Some(kind) = by_name.or(by_arguments) {
            return CallManner::Plain(kind);
        }
    }
    let guessed = names::guess_tool_kind(name);
    let by_arguments = match () {
        () if guessed != ToolKind::Other => guessed,
        () if has(&["url", "urls"]) => ToolKind::Web,
        () if has(&["pattern", "regex", "query"]) => ToolKind::Search,
        () => ToolKind::Other,
    };
    CallManner::Plain(by_arguments)
}

fn plain_actions(name: &str, kind: ToolKind, given: &CallArguments<'_>) -> Vec<Action> {
    let subject = match kind {
        ToolKind::Read | ToolKind::Write | ToolKind::Edit | ToolKind::Delete => {
            return file_actions(name, kind, given);
        }
        ToolKind::Search => {
            let place = PLACES.iter().find_map(|key| given.text(key));
            let place = place
                .or_else(|| ["include_pattern", "include", "glob"].iter().find_map(|key| given.text(key)));
            match first_text(given, PATTERNS) {
                Some(pattern) => Subject::query(&pattern, place.as_deref()),
                None => whole_call(name, given),
            }
        }
        ToolKind::List => return vec![listing_action(name, given)],
        ToolKind::Web => match URLS.iter().find_map(|key| given.text(key)) {
            Some(url) => Subject::Url(url.into()),
            None => match first_text(given, &["query", "q", "search_query", "prompt", "queries"]) {
                Some(query) => Subject::query(&query, None),
                None => whole_call(name, given),
            },
        },
        ToolKind::SubAgent => match first_text(
            given,
            &["description", "prompt", "task", "objective", "message", "instructions"],
        ) {
            Some(text) => Subject::Command(shell::one_line(&text).into()),
            None => whole_call(name, given),
        },
        ToolKind::Recall => match given.text("handle") {
            Some(handle) => Subject::Command(shell::one_line(&format!("trimtab recall {handle}")).into()),
            None => match first_text(given, PATTERNS) {
                Some(query) => Subject::query(&query, None),
                None => whole_call(name, given),
            },
        },
        ToolKind::Todo | ToolKind::Ask | ToolKind::Think => Subject::Nothing,
        ToolKind::Git | ToolKind::Test | ToolKind::Build | ToolKind::Run | ToolKind::Other => {
            whole_call(name, given)
        }
    };
    vec![Action::new(kind, subject)]
}

/// Reads a tool that lists files.
fn listing_action(name: &str, given: &CallArguments<'_>) -> Action {
    let is_true = |keys: &[&str]| {
        keys.iter().any(|key| given.text(key).is_some_and(|text| text.eq_ignore_ascii_case("true")))
    };
    let place = PLACES.iter().find_map(|key| given.text(key));
    let place = place.as_deref();
    let pattern = first_text(given, PATTERNS);
    let goes_down =
        name.to_ascii_lowercase().contains("tree") || is_true(&["recursive", "recurse", "Recursive"]);
    let depth = ["depth", "max_depth", "maxDepth", "MaxDepth", "level", "levels"];
    let depth = depth.iter().find_map(|key| given.number(key)).and_then(|depth| depth.try_into().ok());
    let subject = match &pattern {
        Some(pattern) => Subject::query(pattern, place),
        None if goes_down && depth.is_none() => Subject::everything_below(place.unwrap_or(".")),
        None => Subject::directory(place.unwrap_or(".")),
    };
    let respects = ["respect_git_ignore", "respectGitIgnore", "respect_gitignore", "respectGitignore"];
    let limit =
        ["limit", "max_results", "maxResults", "max_entries"].iter().find_map(|key| given.number(key));
    let coverage = Coverage {
        hidden: is_true(&["show_hidden", "showHidden", "include_hidden", "includeHidden", "hidden", "all"]),
        ignored: is_true(&["include_ignored", "includeIgnored", "show_ignored", "no_ignore", "noIgnore"])
            || respects.iter().any(|key| given.is_false(key)),
        details: is_true(&["details", "long", "show_sizes"]) || name.contains("sizes"),
        depth,
        filter: listing_filter(given).into(),
        output: limit.map_or(OutputPart::Whole, OutputPart::First),
    };
    Action { coverage, ..Action::new(ToolKind::List, subject) }
}

/// Returns the arguments of a listing that leave files out, in one order.
fn listing_filter(given: &CallArguments<'_>) -> String {
    const FILTERS: &[&str] = &[
        "filter", "filters", "ignore", "ignores", "ignore_patterns", "exclude", "excludes",
        "exclude_patterns", "excludePatterns", "include", "includes", "include_patterns", "extensions",
        "Extensions", "Excludes", "type", "Type", "offset", "page", "cursor",
    ];
    let mut filters: Vec<String> = Vec::new();
    for key in PATTERNS.iter().chain(FILTERS) {
        let mut texts: Vec<Cow<'_, str>> = match given {
            CallArguments::Json(value) => match value.get(key) {
                Some(list) if list.is_array() => list.items().filter_map(Value::string).collect(),
                Some(value) => value.string().into_iter().collect(),
                None => Vec::new(),
            },
            CallArguments::Named(_) => given.text(key).into_iter().collect(),
            CallArguments::Text(_) | CallArguments::Nothing => Vec::new(),
        };
        texts.retain(|text| !text.is_empty());
        texts.extend(given.number(key).map(|number| Cow::Owned(number.to_string())));
        texts.sort_unstable();
        texts.dedup();
        if !texts.is_empty() {
            filters.push(format!("{key} {}", texts.join(" ")));
        }
    }
    filters.sort_unstable();
    filters.join(" ")
}

fn file_actions(name: &str, kind: ToolKind, given: &CallArguments<'_>) -> Vec<Action> {
    let lines = match kind {
        ToolKind::Read => requested_lines(given),
        ToolKind::Edit => SubjectLines::Part,
        _ => SubjectLines::All,
    };
    let at = |path: &str| Action::new(kind, Subject::lines_of(path, lines));
    if let Some(path) = PATHS.iter().find_map(|key| given.text(key)).filter(|path| !path.trim().is_empty()) {
        let mut actions = vec![at(&path)];
        if let Some(target) =
            ["new_path", "destination", "target_path"].iter().find_map(|key| given.text(key))
        {
            actions.push(Action::new(ToolKind::Write, Subject::file(&target)));
        }
        return actions;
    }
    let listed = ["paths", "files", "file_paths", "edits", "args"].iter().find_map(|key| match given {
        CallArguments::Json(value) => value.get(key).filter(|list| list.is_array()),
        CallArguments::Named(_) | CallArguments::Text(_) | CallArguments::Nothing => None,
    });
    let path_of = |item: Value<'_>| {
        item.string()
            .map(Cow::into_owned)
            .or_else(|| PATHS.iter().find_map(|key| Some(item.text(key)?.into_owned())))
    };
    let actions: Vec<Action> =
        listed.into_iter().flat_map(Value::items).filter_map(path_of).map(|path| at(&path)).collect();
    if !actions.is_empty() {
        return actions;
    }
    if kind == ToolKind::Read && given.has_argument("skill") {
        return vec![Action::new(kind, whole_call(name, given))];
    }
    if kind == ToolKind::Edit {
        let text = ["patch", "diff", "input"].iter().find_map(|key| given.text(key));
        return patch::patch_actions(&text.unwrap_or_default());
    }
    vec![Action::new(kind, Subject::Nothing)]
}

fn editor_action(given: &CallArguments<'_>) -> Action {
    let path = PATHS.iter().find_map(|key| given.text(key)).unwrap_or_default();
    let command = given.text("command").or_else(|| given.text("subcommand")).unwrap_or_default();
    let kind = match command.as_ref() {
        "view" | "read" | "open" => ToolKind::Read,
        "create" | "write" => ToolKind::Write,
        _ if given.has_argument("file_text")
            || (given.has_argument("content") && !OLDS.iter().any(|key| given.has_argument(key))) =>
        {
            ToolKind::Write
        }
        "" if !CONTENTS.iter().chain(OLDS).any(|key| given.has_argument(key)) => ToolKind::Read,
        _ => ToolKind::Edit,
    };
    if path.is_empty() {
        return Action::new(kind, Subject::Nothing);
    }
    let lines = match kind {
        ToolKind::Read => requested_lines(given),
        ToolKind::Edit => SubjectLines::Part,
        _ => SubjectLines::All,
    };
    let name = windows::file_name(&path);
    let is_directory = kind == ToolKind::Read
        && lines == SubjectLines::All
        && (windows::ends_as_directory(&path) || !name.contains('.'));
    if is_directory
        && name.chars().any(|letter| letter.is_ascii_lowercase())
        && name != "Makefile"
        && name != "Dockerfile"
    {
        return Action::new(ToolKind::List, Subject::directory(&path));
    }
    Action::new(kind, Subject::lines_of(&path, lines))
}

/// Reads which lines of a file a call asks for.
fn requested_lines(given: &CallArguments<'_>) -> SubjectLines {
    let number = |keys: &[&str]| keys.iter().find_map(|key| given.number(key));
    if let CallArguments::Json(value) = given
        && let Some(range) = ["view_range", "lines", "range"]
            .iter()
            .find_map(|key| value.get(key).filter(|list| list.is_array()))
    {
        let mut ends = range.items();
        let first = ends.next().and_then(Value::number).unwrap_or(1);
        // A last line of -1 is the end of the file.
        return SubjectLines::from_bounds(first, ends.next().and_then(Value::number));
    }
    let whole = ["should_read_entire_file", "shouldReadEntireFile"];
    if whole.iter().any(|key| given.text(key).as_deref() == Some("true")) {
        return SubjectLines::All;
    }
    let first = number(&[
        "start_line", "startLine", "StartLine", "start_line_one_indexed", "line_start", "line_number",
        "from", "first_line",
    ]);
    let last = number(&[
        "end_line",
        "endLine",
        "EndLine",
        "end_line_one_indexed_inclusive",
        "line_end",
        "to",
        "last_line",
    ]);
    if first.is_some() || last.is_some() {
        return SubjectLines::from_bounds(first.unwrap_or(1), last);
    }
    if let Some(head) = number(&["head"]) {
        return SubjectLines::All.first_lines(head);
    }
    if given.has_argument("tail") || given.has_argument("pages") {
        return SubjectLines::Part;
    }
    let offset = number(&["offset"]);
    // opencode, whose arguments are in camel case, counts offsets from 0.
    let offset = if given.has_argument("filePath") { offset.map(|offset| offset + 1) } else { offset };
    SubjectLines::from_offset(offset, number(&["limit", "max_lines"]))
}

/// Names a call by its tool and arguments.
fn whole_call(name: &str, given: &CallArguments<'_>) -> Subject {
    let text = given.all_arguments().unwrap_or_default();
    let head: String = text.chars().take(200).collect();
    Subject::Command(shell::one_line(&format!("{name} {head}")).into())
}

fn first_text<'a>(given: &CallArguments<'a>, keys: &[&str]) -> Option<Cow<'a, str>> {
    keys.iter().find_map(|key| given.text(key))
}

impl<'a> CallArguments<'a> {
    /// Returns a text argument; the first of a list of texts.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        match self {
            CallArguments::Json(value) => {
                let value = value.get(key)?;
                if value.is_true() {
                    return Some(Cow::Borrowed("true"));
                }
                value.string().or_else(|| value.items().next()?.string())
            }
            CallArguments::Named(pairs) => {
                pairs.iter().find(|(name, _)| name == key).map(|(_, text)| Cow::Borrowed(text.as_str()))
            }
            CallArguments::Text(_) | CallArguments::Nothing => None,
        }
    }

    /// Tells whether an argument says no.
    fn is_false(&self, key: &str) -> bool {
        match self {
            CallArguments::Json(value) => value.get(key).is_some_and(|value| value.raw() == b"false"),
            CallArguments::Named(_) => self.text(key).is_some_and(|text| text.eq_ignore_ascii_case("false")),
            CallArguments::Text(_) | CallArguments::Nothing => false,
        }
    }

    /// Returns an argument that is a number, also where it is written as text.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        match self {
            CallArguments::Json(value) => {
                let value = value.get(key)?;
                value.number().or_else(|| value.string()?.trim().parse().ok())
            }
            CallArguments::Named(_) => self.text(key)?.trim().parse().ok(),
            CallArguments::Text(_) | CallArguments::Nothing => None,
        }
    }

    /// Returns an argument that is a text or a number.
    fn scalar(&self, key: &str) -> Option<String> {
        self.text(key).map(Cow::into_owned).or_else(|| self.number(key).map(|number| number.to_string()))
    }

    /// Tells whether an argument is there.
    pub(crate) fn has_argument(&self, key: &str) -> bool {
        match self {
            CallArguments::Json(value) => value.get(key).is_some_and(|value| !value.is_null()),
            CallArguments::Named(pairs) => pairs.iter().any(|(name, _)| name == key),
            CallArguments::Text(_) | CallArguments::Nothing => false,
        }
    }

    /// Returns all arguments as one text.
    pub(crate) fn all_arguments(&self) -> Option<Cow<'a, str>> {
        match self {
            CallArguments::Json(value) => Some(String::from_utf8_lossy(value.raw())),
            CallArguments::Named(pairs) => {
                let shown = pairs.iter().map(|(name, text)| format!("{name}={text}"));
                Some(Cow::Owned(shown.collect::<Vec<_>>().join(" ")))
            }
            CallArguments::Text(text) => Some(Cow::Borrowed(text)),
            CallArguments::Nothing => None,
        }
    }
}

/// How much of a result is looked at for a path, in bytes.
const PATH_WINDOW: usize = 2000;

/// Finds the file that a result says it is about: `File: …`, `Path: …`, `[File: … (N lines total)]`, `<path>…</path>`,
/// `(Open file: …)`, the keys `path`, `file`, `filePath` of a JSON object, or the note that stands in its place.
pub(crate) fn path_in_result(text: &str) -> Option<String> {
    if let Some(path) = file_in_note(text) {
        return Some(path.to_owned());
    }
    let head = super::text_head(text, PATH_WINDOW).trim_start();
    if head.starts_with('{')
        && let Ok(tape) = scan(text.trim().as_bytes())
        && let Some(root) = tape.root(text.trim().as_bytes())
    {
        let found = ["path", "file", "filePath", "file_path"].iter().find_map(|key| root.text(key));
        return found.filter(|path| is_path(path)).map(Cow::into_owned);
    }
    let tail = super::text_tail(text, PATH_WINDOW);
    let lines = head.lines().take(20).chain(tail.lines().rev().take(4));
    lines.map(str::trim).find_map(path_in_line)
}

fn path_in_line(line: &str) -> Option<String> {
    let line = line.trim_start_matches(['[', '(']);
    let marks =
        ["File: ", "Path: ", "File Path: ", "Open file: ", "<path>", "<file path=\"", "patching file "];
    let rest = marks.iter().find_map(|mark| line.strip_prefix(mark))?;
    let end = rest.find([')', ']', '<', '"', '\t']).unwrap_or(rest.len());
    let path = rest.get(..end)?.split(" (").next()?.trim();
    is_path(path).then(|| path.to_owned())
}

fn is_path(path: &str) -> bool {
    !path.is_empty() && path != "n/a" && path.len() < 500 && !path.contains('\n')
}
