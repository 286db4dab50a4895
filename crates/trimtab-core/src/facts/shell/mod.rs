//! What a shell command does. Takes a command line or script and the directory it starts in; gives its actions
//! in order, and the directory it ends in. Never runs anything, and never fails: what is no known program is
//! a program that is run.
//!
//! **Which action names the command line** ([`primary_action`]): a test run or what trimtab was asked for; else a build or check; else a change to a
//! file; else the first action that is more than running a program; else the first. The reason: the output
//! of `sed -i … && pytest` is read for the test, that of `cd a && cat b && ls` for the file.

mod arguments;
mod files;
mod listings;
mod programs;
mod split;
mod walk;
mod wrap;

use std::borrow::Cow;

use crate::notes::without_note;

use super::{
    subject::{Subject, SubjectLines},
    tool::{Action, ToolKind},
};
pub(crate) use split::RedirectDirection;
pub(crate) use walk::{SimpleCommand, walk_script};

/// How many characters of a command line name it.
const COMMAND_CHARS: usize = 400;

/// What a script does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScriptActions {
    /// Its actions in order; at least one.
    pub(crate) actions: Vec<Action>,
    /// The directory in which it ends, where it changes it.
    pub(crate) cwd: Option<String>,
}

/// Reads a script that starts in a directory, where that is known.
pub(crate) fn read(script: &str, cwd: Option<&str>) -> ScriptActions {
    // A note that hides the rest of a script names a command, and is none.
    let script = without_note(script);
    if let Some(action) = editor_command(script) {
        return ScriptActions { actions: vec![action], cwd: cwd.map(str::to_owned) };
    }
    let (commands, cwd) = walk_script(script, cwd);
    let mut actions = Vec::new();
    let mut pipeline = Vec::new();
    for command in &commands {
        if !command.piped {
            actions.append(&mut pipeline);
        }
        add_command(command, &mut pipeline);
    }
    actions.append(&mut pipeline);
    if actions.is_empty() {
        let subject = Subject::Command(one_line(script).into());
        actions.push(Action::new(ToolKind::Run, subject));
    }
    ScriptActions { actions, cwd }
}

/// Returns the number of the action that names a command line.
pub(crate) fn primary_action(actions: &[Action]) -> usize {
    let rank = |action: &Action| match action.kind {
        ToolKind::Recall | ToolKind::Test => 0,
        ToolKind::Build => 1,
        ToolKind::Write | ToolKind::Edit | ToolKind::Delete => 2,
        ToolKind::Read
        | ToolKind::Search
        | ToolKind::List
        | ToolKind::Git
        | ToolKind::Web
        | ToolKind::SubAgent
        | ToolKind::Todo
        | ToolKind::Ask
        | ToolKind::Think => 3,
        ToolKind::Run | ToolKind::Other => 4,
    };
    let ranked = actions.iter().enumerate().min_by_key(|(_, action)| rank(action));
    ranked.map_or(0, |(index, _)| index)
}

/// Adds what one command does to the pipeline it stands in.
fn add_command(command: &SimpleCommand, pipeline: &mut Vec<Action>) {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    let mut actions = if command.piped && !pipeline.is_empty() {
        apply_filter(&words, pipeline)
    } else {
        programs::actions_of(&words, command.input.as_deref()).unwrap_or_default()
    };
    let shows = apply_redirects(command, &mut actions);
    if !shows {
        // What it read or said went into a file: nothing of it is shown.
        let reads = |action: &Action| matches!(action.kind, ToolKind::Read | ToolKind::Recall);
        actions.retain(|action| !reads(action) && !is_program(action, &["echo", "printf"]));
    }
    pipeline.extend(actions.into_iter().map(|action| action.seen_from(command.cwd.as_deref())));
}

/// Reads a command by itself, seen from the directory it runs in.
pub(crate) fn actions_of(command: &SimpleCommand) -> Vec<Action> {
    let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
    let actions = programs::actions_of(&words, command.input.as_deref()).unwrap_or_default();
    actions.into_iter().map(|action| action.seen_from(command.cwd.as_deref())).collect()
}

/// Adds what redirections write and read; tells whether the output is still shown.
fn apply_redirects(command: &SimpleCommand, actions: &mut Vec<Action>) -> bool {
    let mut shows = true;
    for redirect in &command.redirects {
        let target = redirect.target.as_str();
        match redirect.to {
            RedirectDirection::Out => actions.push(Action::write_file(target)),
            RedirectDirection::Append => actions.push(Action::edit_file(target)),
            RedirectDirection::In if actions.is_empty() => actions.push(Action::read_part(target)),
            RedirectDirection::In => {}
        }
        shows &= redirect.to == RedirectDirection::In;
    }
    shows
}

/// Reads a command that works on what the pipeline gave so far; changes that in place.
fn apply_filter(words: &[&str], pipeline: &mut Vec<Action>) -> Vec<Action> {
    if let ["xargs" | "parallel", rest @ ..] = words {
        return for_each(rest, pipeline);
    }
    let Some(last) = pipeline.last_mut() else { return Vec::new() };
    let said = is_program(last, &["echo", "printf", "yes"]);
    if said || matches!(words, ["tee", ..]) {
        let actions = programs::actions_of(words, None).unwrap_or_default();
        if said && !actions.is_empty() {
            pipeline.pop();
        }
        return actions;
    }
    match last.kind {
        ToolKind::Read => files::narrow_read(last, words),
        _ => files::narrow_coverage(&mut last.coverage, words),
    }
    if last.kind == ToolKind::Web && matches!(words, ["sh" | "bash" | "zsh" | "python" | "python3", ..]) {
        return programs::actions_of(words, None).unwrap_or_default();
    }
    Vec::new()
}

/// Reads `… | xargs program`: the program works on what was listed.
fn for_each(words: &[&str], pipeline: &mut Vec<Action>) -> Vec<Action> {
    let inner = wrap::skip_options(words, &["-n", "-I", "-P", "-L", "-d", "-E", "-s", "-J", "--max-args"]);
    let actions = programs::actions_of(inner, None).unwrap_or_default();
    let place = pipeline.last().and_then(|action| action.subject.path().map(str::to_owned));
    let meant = actions.into_iter().map(|action| action.with_place(place.as_deref())).collect::<Vec<_>>();
    if meant.iter().any(|action| action.kind != ToolKind::Run) {
        pipeline.pop();
    }
    meant
}

/// Reads the commands of SWE-agent's editor whose argument is a text over several lines.
fn editor_command(script: &str) -> Option<Action> {
    let script = script.trim_start();
    let rest = script.strip_prefix("edit")?;
    let (head, _) = rest.split_once('\n')?;
    let is_range = head.trim().chars().all(|letter| letter.is_ascii_digit() || letter == ':');
    is_range.then_some(Action::new(ToolKind::Edit, Subject::Nothing))
}

fn is_program(action: &Action, names: &[&str]) -> bool {
    let Subject::Command(text) = &action.subject else { return false };
    names.contains(&text.split(' ').next().unwrap_or_default())
}

/// Returns words as the one line that names a command.
fn command_subject(words: &[&str]) -> Subject {
    Subject::Command(one_line(&words.join(" ")).into())
}

/// Returns a text on one line, cut at [`COMMAND_CHARS`].
pub(crate) fn one_line(text: &str) -> String {
    let head = match text.char_indices().nth(COMMAND_CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    };
    head.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Action {
    fn write_file(path: &str) -> Action {
        Action::new(ToolKind::Write, Subject::file(path))
    }

    fn edit_file(path: &str) -> Action {
        Action::new(ToolKind::Edit, Subject::lines_of(path, SubjectLines::Part))
    }

    fn read_part(path: &str) -> Action {
        Action::new(ToolKind::Read, Subject::lines_of(path, SubjectLines::Part))
    }

    /// Gives the action with its paths seen from a working directory.
    pub(super) fn seen_from(self, cwd: Option<&str>) -> Action {
        let directory = self.directory.or_else(|| cwd.map(Into::into));
        Action { subject: self.subject.seen_from(cwd), directory, ..self }
    }

    /// Gives an action on what was listed the place of the listing.
    fn with_place(self, place: Option<&str>) -> Action {
        let subject = match (self.subject, place) {
            (Subject::Query { pattern, place: None }, place) => Subject::query(&pattern, place),
            (Subject::Nothing | Subject::Command(_), Some(place)) if self.kind != ToolKind::Run => {
                Subject::directory(place)
            }
            (subject, _) => subject,
        };
        Action { subject, ..self }
    }
}

#[cfg(test)]
mod tests;
