//! Shell commands. Takes a command line and what it printed; gives what it did to each file and which lines it showed, in
//! order. Never takes an output for a file's where two commands speak.

use super::{
    super::{
        operation::{FileAction, FileOperation, ShownLines},
        shown_lines::{ReadExtent, shown_diff, shown_numbered, shown_plain, shown_tail},
        timeline::FileTimeline,
    },
    AnsweredCall, CallEffect,
    changes::{command_changes, is_pattern, says_rewritten},
    printed, read, tools,
};
use crate::facts::{
    CallArguments, RedirectDirection, SimpleCommand, Subject, SubjectLines, ToolKind, command_text,
    join_path, walk_script,
};

/// Returns what a shell command did.
pub(super) fn shell_effects(
    answer: &AnsweredCall<'_>,
    given: &CallArguments<'_>,
    known: &FileTimeline,
) -> Vec<CallEffect> {
    let Some(script) = command_text(given) else { return Vec::new() };
    if let Some(path) = tools::window_file(answer.text).filter(|_| !answer.failed) {
        return editor_effects(answer, &script, answer.file_key(answer.cwd, &path));
    }
    let directory = answer.directory(given);
    let (commands, _) = walk_script(&script, directory.as_deref());
    let commands: Vec<SimpleCommand> = commands.into_iter().filter(|command| !command.elsewhere).collect();
    let mut done: Vec<CallEffect> = Vec::new();
    for command in &commands {
        done.extend(command_changes(answer, &script, command, known));
    }
    if says_rewritten(answer.text)
        || done.iter().filter(|done| matches!(done, CallEffect::Anything)).count() > 1
    {
        done.retain(|done| !matches!(done, CallEffect::Anything));
        done.push(CallEffect::Anything);
    }
    // A script that failed may have failed anywhere: what it was to write is only known to be in doubt.
    let sure = !answer.failed && !commands.iter().any(|command| command.unsure);
    if !sure {
        done = done.into_iter().flat_map(in_doubt).collect();
    }
    if !answer.failed {
        done.extend(shown_files(answer, &commands, known).into_iter().map(CallEffect::Operation));
    }
    done
}

/// Leaves of what was done only that the files may be others.
fn in_doubt(done: CallEffect) -> Vec<CallEffect> {
    let changed = |path| CallEffect::Operation(FileOperation { path, action: FileAction::Changed });
    match done {
        CallEffect::Operation(FileOperation { path, action: FileAction::Rename { to } }) => {
            vec![changed(path), changed(to)]
        }
        CallEffect::Operation(FileOperation { path, .. }) => vec![changed(path)],
        CallEffect::Anything => vec![CallEffect::Anything],
    }
}

/// Reads SWE-agent's editor, which shows a window of the file it has open.
fn editor_effects(answer: &AnsweredCall<'_>, script: &str, path: String) -> Vec<CallEffect> {
    let script = script.trim_start();
    let action = match script.split_whitespace().next() {
        Some("create") => Some(FileAction::Write { content: "\n".to_owned() }),
        Some("edit") => Some(window_edit(script).unwrap_or(FileAction::Changed)),
        Some("insert" | "append" | "undo_edit") => Some(FileAction::Changed),
        _ => None,
    };
    let changed = action.map(|action| FileOperation { path: path.clone(), action });
    let window = read(path, shown_numbered(answer.text, ReadExtent::Part));
    changed.into_iter().chain(window).map(CallEffect::Operation).collect()
}

/// Reads `edit 4:7` with the new lines after it.
fn window_edit(script: &str) -> Option<FileAction> {
    let (head, text) = script.strip_prefix("edit")?.split_once('\n')?;
    let (first, last) = head.trim().split_once(':')?;
    let text = text.trim_end().strip_suffix("end_of_edit").unwrap_or(text);
    let text = text.strip_suffix('\n').unwrap_or(text).to_owned();
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    Some(FileAction::ReplaceLines { first, last, text: (!text.is_empty()).then_some(text) })
}

/// Reads the lines of files that a command line shows, where one of its commands alone prints them.
fn shown_files(
    answer: &AnsweredCall<'_>,
    commands: &[SimpleCommand],
    known: &FileTimeline,
) -> Vec<FileOperation> {
    let pipelines: Vec<&[SimpleCommand]> = commands.chunk_by(|_, next| next.piped).collect();
    let mut speaking = pipelines.into_iter().filter(|pipeline| prints_output(pipeline));
    let (Some(pipeline), None) = (speaking.next(), speaking.next()) else { return Vec::new() };
    let Some((first, filters)) = pipeline.split_first() else { return Vec::new() };
    let only_selects = |command: &SimpleCommand| {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        matches!(words.as_slice(), ["head" | "tail" | "sed" | "nl" | "cat" | "less" | "more", ..])
            && command.redirects.is_empty()
    };
    if !filters.iter().all(only_selects) {
        return Vec::new();
    }
    let words: Vec<&str> = first.words.iter().map(String::as_str).collect();
    let output = printed::printed_by(answer);
    let cwd = first.cwd.as_deref();
    match words.as_slice() {
        ["git", "diff", rest @ ..] if shows_the_files(rest) => {
            let text = if output.cut { "" } else { output.text };
            let files = shown_diff(text).into_iter();
            files.filter_map(|(path, shown)| read(answer.key_of_shown(None, &path, known), shown)).collect()
        }
        ["grep" | "rg" | "egrep", rest @ ..] if shows_numbers(rest) => {
            let place = search_place(rest);
            let place = place.as_deref().map(|place| join_path(cwd.unwrap_or_default(), place));
            tools::parse_search_hits(answer, output.text, place.as_deref(), cwd, known)
        }
        _ => shown_file(answer, pipeline, &output, known).into_iter().collect(),
    }
}

/// Tells whether `git diff` shows the files as they are: without a revision other than the last.
fn shows_the_files(words: &[&str]) -> bool {
    let behind = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let is_file = |word: &str| !word.contains("..") && tools::has_extension(word);
    words.iter().take(behind).all(|word| *word == "HEAD" || (!word.starts_with('-') && is_file(word)))
}

/// Tells whether a pipeline prints something that is passed on.
fn prints_output(pipeline: &[SimpleCommand]) -> bool {
    let Some(last) = pipeline.last() else { return false };
    let to_file = last.redirects.iter().any(|redirect| redirect.to != RedirectDirection::In);
    let words: Vec<&str> = last.words.iter().map(String::as_str).collect();
    let is_silent = matches!(
        words.as_slice(),
        [] | [
            "mkdir"
                | "rm"
                | "cp"
                | "mv"
                | "touch"
                | "chmod"
                | "export"
                | "set"
                | "source"
                | "."
                | "sleep"
                | "true"
                | "unset"
                | "ulimit"
                | "test"
                | "["
                | "[["
                | "trap"
                | "umask"
                | "alias"
                | "local"
                | "popd",
            ..
        ] | ["git", "add" | "config", ..]
            | ["sed", "-i" | "-i.bak", ..]
    ) || words.iter().all(|word| word.contains('='));
    !to_file && !is_silent
}

fn shows_numbers(words: &[&str]) -> bool {
    let letters = |word: &&&str| word.starts_with('-') && !word.starts_with("--");
    let has = |letter: char| words.iter().filter(letters).any(|word| word.contains(letter));
    let is_other = words.iter().any(|word| {
        matches!(
            *word,
            "--count"
                | "--files-with-matches"
                | "--only-matching"
                | "--json"
                | "--replace"
                | "--files"
                | "--max-columns"
        )
    });
    (has('n') || words.contains(&"--line-number"))
        && !has('o')
        && !has('c')
        && !has('l')
        && !has('Z')
        && !is_other
}

/// Returns the one place that a search names after its pattern.
fn search_place(words: &[&str]) -> Option<String> {
    let mut operands = words.iter().filter(|word| !word.starts_with('-')).skip(1);
    let place = operands.next()?;
    operands.next().is_none().then(|| (*place).to_owned())
}

fn shown_file(
    answer: &AnsweredCall<'_>,
    pipeline: &[SimpleCommand],
    output: &printed::PrintedText<'_>,
    known: &FileTimeline,
) -> Option<FileOperation> {
    let mut reads = answer.actions().filter(|action| action.kind == ToolKind::Read);
    let (Some(action), None) = (reads.next(), reads.next()) else { return None };
    let Subject::File { path, lines } = &action.subject else { return None };
    if is_pattern(path) {
        return None;
    }
    let path = answer.facts.file_key(path).into_owned();
    let programs: Vec<&str> =
        pipeline.iter().filter_map(|command| Some(command.words.first()?.as_str())).collect();
    let is_numbered = pipeline.iter().any(|command| {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["nl", ..] => true,
            ["cat", rest @ ..] => rest.contains(&"-n"),
            _ => false,
        }
    });
    // `cat -A` and its kin show other letters than the file has.
    let is_altered = pipeline.iter().any(|command| {
        let options = || command.words.iter().skip(1).filter(|word| word.starts_with('-'));
        command.words.first().is_some_and(|program| program == "cat") && options().any(|word| word != "-n")
    });
    if is_altered {
        return None;
    }
    if is_numbered {
        return read(path, tools::parse_numbered_lines(output.text, SubjectLines::Part)?);
    }
    let shows_plainly = programs
        .iter()
        .all(|name| matches!(*name, "cat" | "sed" | "head" | "tail" | "awk" | "less" | "more"));
    if output.cut || !shows_plainly {
        return None;
    }
    read(path.clone(), plain_lines(output.text, output.exact, *lines, pipeline, known, &path)?)
}

fn plain_lines(
    text: &str,
    exact: bool,
    lines: SubjectLines,
    pipeline: &[SimpleCommand],
    known: &FileTimeline,
    path: &str,
) -> Option<ShownLines> {
    match lines {
        SubjectLines::All => Some(shown_plain(text, 1, ReadExtent::Whole)),
        SubjectLines::Range { first, last } => {
            let first = usize::try_from(first).ok()?;
            let shown = shown_plain(text, first, ReadExtent::Part);
            let wanted =
                last.and_then(|last| usize::try_from(last).ok()).map(|last| (last + 1).saturating_sub(first));
            // A harness that leaves out blank lines at the beginning moves the rest, unless none are missing.
            let is_complete = wanted.is_some_and(|wanted| shown.lines.len() == wanted);
            (exact || first == 1 || is_complete).then_some(shown)
        }
        SubjectLines::Part => {
            let [command] = pipeline else { return None };
            let is_tail = command.words.first().is_some_and(|program| program == "tail");
            let count = known.file_state_at(path, u32::MAX)?.line_count();
            (is_tail && exact).then(|| shown_tail(text, count))
        }
    }
}
