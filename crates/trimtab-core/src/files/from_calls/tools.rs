//! Calls of tools that read, write, edit and search files. Takes a call's arguments and its result; gives what it did to
//! each file. Never takes a tool's words for lines of a file.

use super::{
    super::{
        operation::{FileAction, FileOperation, Occurrences, Replacement, ShownLines},
        patch::{codex_patch, search_replace_blocks, unified_diff},
        shown_lines::{ReadExtent, shown_hits, shown_numbered, shown_plain},
        timeline::FileTimeline,
    },
    AnsweredCall, ResultWrapping, printed, read,
};
use crate::{
    facts::{Action, CONTENTS, CallArguments, Subject, SubjectLines, ToolKind, path_in_result},
    json::Value,
};

const OLDS: &[&str] = &["old_string", "old_str", "oldString", "oldText", "old_text", "search", "old"];
const NEWS: &[&str] = &[
    "new_string", "new_str", "newString", "newText", "new_text", "replace", "replacement",
    "replacement_text", "new", "text",
];
const PATCHES: &[&str] = &["input", "patch", "patchText", "diff"];

/// Returns what a call did, in order.
pub(super) fn tool_operations(
    answer: &AnsweredCall<'_>,
    name: &str,
    given: &CallArguments<'_>,
    known: &FileTimeline,
) -> Vec<FileOperation> {
    let kind = answer.fact.tool().unwrap_or(ToolKind::Other);
    let is_dropped = answer.text.starts_with("[Old tool result");
    if answer.failed && kind == ToolKind::Read && says_missing(answer.text) {
        return action_paths(answer)
            .map(|path| FileOperation { path, action: FileAction::Missing })
            .collect();
    }
    if answer.failed || is_dropped {
        return Vec::new();
    }
    if let Some(operations) = patch_operations(answer, given).filter(|_| kind.changes_files()) {
        return operations;
    }
    let mut operations = match kind {
        ToolKind::Write => write_operations(answer, given),
        ToolKind::Edit => edit_operations(answer, name, given),
        ToolKind::Delete => {
            action_paths(answer).map(|path| FileOperation { path, action: FileAction::Delete }).collect()
        }
        ToolKind::Read => return read_operations(answer, given),
        ToolKind::Search => return search_operations(answer, given, known),
        ToolKind::List
        | ToolKind::Git
        | ToolKind::Test
        | ToolKind::Build
        | ToolKind::Run
        | ToolKind::Web
        | ToolKind::SubAgent
        | ToolKind::Todo
        | ToolKind::Ask
        | ToolKind::Think
        | ToolKind::Recall
        | ToolKind::Other => return Vec::new(),
    };
    operations.extend(read_echo(answer, operations.first().map(|operation| operation.path.clone())));
    operations
}

/// Tells whether a tool says that there is no such file.
fn says_missing(text: &str) -> bool {
    const LONGEST_REFUSAL: usize = 400;
    let words =
        ["does not exist", "No such file", "no such file", "File not found", "file not found", "ENOENT"];
    text.len() < LONGEST_REFUSAL && words.iter().any(|words| text.contains(words))
}

/// Returns the files of the call's first action and of those like it.
fn action_paths(answer: &AnsweredCall<'_>) -> impl Iterator<Item = String> {
    let kind = answer.fact.tool();
    answer
        .actions()
        .filter(move |action| Some(action.kind) == kind)
        .filter_map(|action| file_of(answer, action))
}

fn file_of(answer: &AnsweredCall<'_>, action: &Action) -> Option<String> {
    match &action.subject {
        Subject::File { path, .. } => Some(answer.facts.file_key(path).into_owned()),
        Subject::Directory { .. }
        | Subject::Command(_)
        | Subject::Query { .. }
        | Subject::Url(_)
        | Subject::Nothing => None,
    }
}

fn write_operations(answer: &AnsweredCall<'_>, given: &CallArguments<'_>) -> Vec<FileOperation> {
    let Some(path) = action_paths(answer).next() else { return Vec::new() };
    let action = match CONTENTS.iter().find_map(|key| given.text(key)) {
        Some(content) => FileAction::Write { content: content.into_owned() },
        // SWE-agent creates a file of one empty line.
        None if window_file(answer.text).is_some() => FileAction::Write { content: "\n".to_owned() },
        None => FileAction::Changed,
    };
    vec![FileOperation { path, action }]
}

fn edit_operations(answer: &AnsweredCall<'_>, name: &str, given: &CallArguments<'_>) -> Vec<FileOperation> {
    let mut files = action_paths(answer);
    let Some(path) = files.next() else { return Vec::new() };
    if files.next().is_some() {
        return edits_of_several(answer, given);
    }
    let action = parse_edit(name, given).unwrap_or(FileAction::Changed);
    vec![FileOperation { path, action }]
}

fn patch_operations(answer: &AnsweredCall<'_>, given: &CallArguments<'_>) -> Option<Vec<FileOperation>> {
    let text = PATCHES.iter().find_map(|key| given.text(key)).or_else(|| match given {
        CallArguments::Text(text) => Some((*text).into()),
        CallArguments::Json(_) | CallArguments::Named(_) | CallArguments::Nothing => None,
    })?;
    let mut operations = codex_patch(&text);
    if operations.is_empty() && text.contains("\n@@ -") {
        operations = unified_diff(&text);
    }
    if operations.is_empty() {
        return None;
    }
    Some(operations.into_iter().map(|operation| with_session_names(answer, answer.cwd, operation)).collect())
}

/// Gives an operation the session's names for its files.
pub(super) fn with_session_names(
    answer: &AnsweredCall<'_>,
    directory: Option<&str>,
    operation: FileOperation,
) -> FileOperation {
    let action = match operation.action {
        FileAction::Rename { to } => FileAction::Rename { to: answer.file_key(directory, &to) },
        action => action,
    };
    FileOperation { path: answer.file_key(directory, &operation.path), action }
}

/// Reads the arguments of an edit of one file.
fn parse_edit(name: &str, given: &CallArguments<'_>) -> Option<FileAction> {
    let text = |keys: &[&str]| keys.iter().find_map(|key| given.text(key)).map(std::borrow::Cow::into_owned);
    let command = given.text("command").unwrap_or_default();
    if command == "undo_edit" || name.contains("undo") {
        return None;
    }
    if let Some(after) = ["insert_line", "insertLine"].iter().find_map(|key| given.number(key)) {
        let after = usize::try_from(after).ok()?;
        return Some(FileAction::Insert { after, text: text(NEWS)? });
    }
    let range = || Some((given.number("start_line")?, given.number("end_line")?));
    if let Some((first, last)) = range() {
        let (first, last) = (usize::try_from(first).ok()?, usize::try_from(last).ok()?);
        return Some(FileAction::ReplaceLines { first, last, text: Some(text(NEWS)?) });
    }
    if let Some(diff) = text(&["diff", "content"]).filter(|diff| diff.contains("SEARCH")) {
        let blocks = search_replace_blocks(&diff);
        return (!blocks.is_empty())
            .then(|| FileAction::Replace(blocks.into_iter().map(|(_, replacement)| replacement).collect()));
    }
    if let CallArguments::Json(value) = given
        && let Some(list) = ["edits", "replacements", "changes"].iter().find_map(|key| value.get(key))
    {
        let all: Option<Vec<Replacement>> =
            list.items().map(|item| parse_replacement(&CallArguments::Json(item))).collect();
        return all.filter(|all| !all.is_empty()).map(FileAction::Replace);
    }
    parse_replacement(given).map(|replacement| FileAction::Replace(vec![replacement]))
}

fn parse_replacement(given: &CallArguments<'_>) -> Option<Replacement> {
    let text = |keys: &[&str]| keys.iter().find_map(|key| given.text(key)).map(std::borrow::Cow::into_owned);
    let is_true = |key: &&str| given.text(key).is_some_and(|text| text == "true");
    let several = given.number("expected_replacements").is_some_and(|count| count > 1)
        || ["replace_all", "replaceAll", "allow_multiple", "replace-all"].iter().any(is_true);
    let which = if several { Occurrences::All } else { Occurrences::Only };
    Some(Replacement { old: text(OLDS)?, new: text(NEWS).unwrap_or_default(), which })
}

/// Reads edits of which each names its file.
fn edits_of_several(answer: &AnsweredCall<'_>, given: &CallArguments<'_>) -> Vec<FileOperation> {
    let changed =
        || action_paths(answer).map(|path| FileOperation { path, action: FileAction::Changed }).collect();
    let CallArguments::Json(value) = given else { return changed() };
    let Some(list) = ["edits", "replacements"].iter().find_map(|key| value.get(key)) else {
        return changed();
    };
    let one = |item: Value<'_>| {
        let path = ["path", "file_path", "filePath"].iter().find_map(|key| item.text(key))?;
        let action = FileAction::Replace(vec![parse_replacement(&CallArguments::Json(item))?]);
        Some(FileOperation { path: answer.file_key(answer.cwd, &path), action })
    };
    list.items().map(one).collect::<Option<Vec<_>>>().unwrap_or_else(changed)
}

/// Reads the lines that a tool shows of a file it has just changed.
fn read_echo(answer: &AnsweredCall<'_>, path: Option<String>) -> Option<FileOperation> {
    if let Some(path) = window_file(answer.text) {
        return read(answer.file_key(answer.cwd, &path), shown_numbered(answer.text, ReadExtent::Part));
    }
    let echoed = answer.text.contains("the result of running `cat -n`");
    read(path.filter(|_| echoed)?, shown_numbered(answer.text, ReadExtent::Part))
}

/// Returns the file of SWE-agent's `[File: a.py (94 lines total)]`; the open file's whole path where the result names it.
pub(super) fn window_file(text: &str) -> Option<String> {
    let header = text
        .lines()
        .find(|line| line.starts_with("[File: ") && line.trim_end().ends_with("lines total)]"))?;
    let open =
        text.lines().rev().take(6).find_map(|line| line.strip_prefix("(Open file: ")?.split(')').next());
    open.map(str::to_owned).or_else(|| path_in_result(header))
}

fn read_operations(answer: &AnsweredCall<'_>, given: &CallArguments<'_>) -> Vec<FileOperation> {
    if let Some(path) = window_file(answer.text) {
        return read(answer.file_key(answer.cwd, &path), shown_numbered(answer.text, ReadExtent::Part))
            .into_iter()
            .collect();
    }
    let answers = printed::search_answers(answer.whole);
    if !answers.is_empty() {
        let one = |(path, text): &(String, String)| {
            read(answer.file_key(answer.cwd, path), parse_numbered_lines(text, SubjectLines::Part)?)
        };
        return answers.iter().filter_map(one).collect();
    }
    let mut files = answer.actions().filter(|action| action.kind == ToolKind::Read);
    let (Some(action), None) = (files.next(), files.next()) else { return Vec::new() };
    let (Some(path), Some(lines)) = (file_of(answer, action), action.subject.lines()) else {
        return Vec::new();
    };
    let lines = if given.has_argument("pages") { SubjectLines::Part } else { lines };
    let shown = match answer.wrapping {
        ResultWrapping::None | ResultWrapping::One => lines_shown(answer.text, lines),
        ResultWrapping::Several => parse_numbered_lines(answer.text, lines).unwrap_or_default(),
    };
    read(path, shown).into_iter().collect()
}

/// Reads the lines of one file that a tool shows, numbered or as they are.
fn lines_shown(text: &str, lines: SubjectLines) -> ShownLines {
    if let Some(shown) = parse_numbered_lines(text, lines) {
        return shown;
    }
    let body = text
        .split_once("] Result:\n")
        .filter(|(head, _)| head.starts_with('['))
        .map_or(text, |(_, body)| body);
    // What begins with a tag or speaks of an error cannot be distinguished from the tool's own words.
    let is_wrapped =
        ["<file", "<path", "<content", "<system-reminder>", "<error", "<tool_", "Error", "File: ", "["]
            .iter()
            .any(|head| body.starts_with(head));
    let (first, asked) = match lines {
        SubjectLines::All => (1, ReadExtent::Whole),
        SubjectLines::Range { first, .. } => (usize::try_from(first).unwrap_or(usize::MAX), ReadExtent::Part),
        SubjectLines::Part => return ShownLines::default(),
    };
    if is_wrapped && !body.starts_with("[\n") {
        ShownLines::default()
    } else {
        shown_plain(body, first, asked)
    }
}

/// How many lines are looked at to tell whether a text is numbered.
const LOOKED_AT: usize = 400;

/// How many lines of words tools put around numbered ones.
const WORDS_AROUND: usize = 8;

/// Reads numbered lines; none where the text is not in that form.
pub(super) fn parse_numbered_lines(text: &str, lines: SubjectLines) -> Option<ShownLines> {
    let asked = if lines == SubjectLines::All { ReadExtent::Whole } else { ReadExtent::Part };
    let shown = shown_numbered(text, asked);
    let first = shown.lines.first()?.0;
    let starts = match lines {
        SubjectLines::All => first == 1,
        SubjectLines::Range { first: wanted, .. } => {
            usize::try_from(wanted).is_ok_and(|wanted| wanted == first)
        }
        SubjectLines::Part => true,
    };
    let rows = text.lines().filter(|line| !line.trim().is_empty()).take(LOOKED_AT).count();
    (starts && shown.lines.len().min(LOOKED_AT) * 2 + WORDS_AROUND >= rows).then_some(shown)
}

fn search_operations(
    answer: &AnsweredCall<'_>,
    given: &CallArguments<'_>,
    known: &FileTimeline,
) -> Vec<FileOperation> {
    let lists_files = given.text("output_mode").is_some_and(|mode| mode != "content")
        || (!given.has_argument("output_mode")
            && answer.text.starts_with("Found ")
            && !answer.text.contains("\nFile: "));
    if lists_files {
        return Vec::new();
    }
    let place = answer.actions().next().and_then(|action| action.subject.path());
    let directory = answer.directory(given);
    parse_search_hits(answer, answer.text, place, directory.as_deref(), known)
}

/// Reads the hits of a search in a place.
pub(super) fn parse_search_hits(
    answer: &AnsweredCall<'_>,
    text: &str,
    place: Option<&str>,
    directory: Option<&str>,
    known: &FileTimeline,
) -> Vec<FileOperation> {
    let file = place
        .map(|place| answer.facts.file_key(place).into_owned())
        .filter(|place| !known.accesses(place).is_empty() || has_extension(place));
    let named = shown_hits(text, None).into_iter();
    let bare = file.as_deref().map(|file| shown_hits(text, Some(file))).unwrap_or_default();
    if !bare.is_empty() {
        return bare.into_iter().filter_map(|(path, shown)| read(path, shown)).collect();
    }
    named.filter_map(|(path, shown)| read(answer.key_of_shown(directory, &path, known), shown)).collect()
}

/// Tells whether a path is spelt as that of a file.
pub(super) fn has_extension(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').is_some_and(|(stem, extension)| !stem.is_empty() && extension.len() < 6)
}
