//! What the calls of a conversation did to files. Takes a history and its facts; gives the state of every file over
//! time. Never trusts a call that failed, and never a result of which it cannot tell what it shows: a file that may
//! have been changed by something the conversation does not show is unknown from there on.

mod changes;
mod commands;
mod printed;
mod tools;

use std::borrow::Cow;

use super::{
    operation::{FileAction, FileOperation},
    timeline::FileTimeline,
};
use crate::{
    facts::{
        Action, CallArguments, CallManner, DIRECTORIES, Fact, Facts, Outcome, Voice, call_manner,
        is_absolute, join_path, with_arguments,
    },
    history::{BlockId, BlockKind, History, WrappedResult, readable_text},
    json::narrow,
};

/// Tells the state of every file that a conversation touched.
pub fn files(history: &History, facts: &Facts) -> FileTimeline {
    let mut files = FileTimeline::default();
    files.extend(history, facts);
    files
}

impl FileTimeline {
    /// Goes on with a history that was parsed after the one these files are of; costs what is new in it.
    ///
    /// The result is the same as that of [`files`]. Where something that names paths has become known since, such as the
    /// session's root, all of it is read again: every path has another name then.
    pub fn extend(&mut self, history: &History, facts: &Facts) {
        if self.taken_in.1.as_ref() != Some(&facts.naming_key()) {
            *self = FileTimeline::default();
        }
        let kept = history.reused_blocks().min(self.taken_in.0);
        if kept < self.taken_in.0 {
            self.forget_from(BlockId(narrow(kept)));
        }
        for (index, fact) in facts.rows().iter().enumerate().skip(kept) {
            let id = BlockId(narrow(index));
            if fact.acts_as == BlockKind::Result {
                self.add_result(history, facts, id, fact);
            } else if fact.voice == Some(Voice::Person) && fact.step > 0 && says_changed(history, id) {
                self.add_doubt(fact.step, id);
            }
        }
        self.taken_in = (facts.rows().len(), Some(facts.naming_key()));
    }

    fn add_result(&mut self, history: &History, facts: &Facts, id: BlockId, fact: &Fact) {
        let Some(call) = fact.partner.and_then(|call| history.block(call)) else { return };
        // A heading that only names the tool answers nothing: what it printed follows.
        let answers =
            |call: BlockId| facts.row(call).is_none_or(|call| call.partner.is_none_or(|own| own == id));
        let Some(whole) = history.block(id).map(|block| history.block_text(block)) else { return };
        if !fact.partner.is_none_or(answers) {
            return;
        }
        let (text, wrapping) = unwrap_result(&whole, fact);
        let step = fact.partner.and_then(|call| facts.row(call)).map_or(fact.step, |call| call.step);
        let answer = AnsweredCall {
            facts,
            fact,
            text: &text,
            whole: &whole,
            wrapping,
            cwd: fact.partner.and_then(|call| facts.cwd_before(call)),
            failed: fact.outcome == Outcome::Failed,
        };
        let done = with_arguments(history, call, |name, given| answer.effects(name, given, self))
            .unwrap_or_default();
        for done in done {
            match done {
                CallEffect::Operation(operation) => self.apply_operation(step, id, &operation),
                CallEffect::Anything => self.add_doubt(step, id),
            }
        }
    }
}

/// Returns the texts that a call looks for in files, to put others in their place: the old text of every replacement, and
/// the lines of every hunk that must be there already. Whether the call did it does not matter.
pub fn texts_to_replace(history: &History, facts: &Facts, call: BlockId) -> Vec<String> {
    operations_asked(history, facts, call).flat_map(|operation| operation.action.old_texts()).collect()
}

/// Tells what a call asks of one file, named as [`Facts::file_key`] names it.
pub(crate) fn asked_of(history: &History, facts: &Facts, call: BlockId, path: &str) -> Vec<FileAction> {
    let asked = operations_asked(history, facts, call).filter(|operation| operation.path == path);
    asked.map(|operation| operation.action).collect()
}

fn operations_asked(history: &History, facts: &Facts, call: BlockId) -> impl Iterator<Item = FileOperation> {
    let done = history.block(call).zip(facts.row(call)).and_then(|(block, fact)| {
        let answer = AnsweredCall {
            facts,
            fact,
            text: "",
            whole: "",
            wrapping: ResultWrapping::None,
            cwd: facts.cwd_before(call),
            failed: false,
        };
        with_arguments(history, block, |name, given| answer.effects(name, given, &FileTimeline::default()))
    });
    done.unwrap_or_default().into_iter().filter_map(|done| match done {
        CallEffect::Operation(operation) => Some(operation),
        CallEffect::Anything => None,
    })
}

/// What a call did.
enum CallEffect {
    Operation(FileOperation),
    /// Something after which any file may be another one.
    Anything,
}

/// What a client put around a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultWrapping {
    /// Nothing.
    None,
    /// JSON with one text in it.
    One,
    /// JSON with several: the lines of one are not those of the next.
    Several,
}

/// A call that was answered.
struct AnsweredCall<'a> {
    facts: &'a Facts,
    fact: &'a Fact,
    /// What the result says.
    text: &'a str,
    /// The result with the JSON that a client put around it.
    whole: &'a str,
    wrapping: ResultWrapping,
    /// The directory in which the call was made.
    cwd: Option<&'a str>,
    /// Whether it did not do what it was to do.
    failed: bool,
}

impl AnsweredCall<'_> {
    fn effects(&self, name: &str, given: &CallArguments<'_>, known: &FileTimeline) -> Vec<CallEffect> {
        let tools = |done: Vec<FileOperation>| done.into_iter().map(CallEffect::Operation).collect();
        match call_manner(name, given) {
            CallManner::Shell | CallManner::LastingShell => commands::shell_effects(self, given, known),
            CallManner::Session => Vec::new(),
            CallManner::Editor | CallManner::Patch | CallManner::Plain(_) => {
                tools(tools::tool_operations(self, name, given, known))
            }
        }
    }

    /// Returns the directory from which the call's own paths are seen.
    fn directory(&self, given: &CallArguments<'_>) -> Option<String> {
        let own = DIRECTORIES.iter().find_map(|key| given.text(key));
        own.map(|own| join_path(self.cwd.unwrap_or_default(), &own)).or_else(|| self.cwd.map(str::to_owned))
    }

    /// Returns the one name of a path that is seen from a directory.
    fn file_key(&self, directory: Option<&str>, path: &str) -> String {
        self.facts.file_key(&join_path(directory.unwrap_or_default(), path)).into_owned()
    }

    /// Returns the one name of a path that a result shows: where no file of that name is known, but exactly one whose
    /// path ends in it, that one is meant.
    fn key_of_shown(&self, directory: Option<&str>, path: &str, known: &FileTimeline) -> String {
        let key = self.file_key(directory, path);
        let plain = self.file_key(None, path);
        let is_known = |key: &str| !known.accesses(key).is_empty();
        if is_known(&key) || is_absolute(path) {
            return key;
        }
        if is_known(&plain) {
            return plain;
        }
        let mut fitting =
            known.paths().filter(|file| file.strip_suffix(&*plain).is_some_and(|head| head.ends_with('/')));
        match (fitting.next(), fitting.next()) {
            (Some(found), None) => found.to_owned(),
            _ => key,
        }
    }

    /// Returns the files that the call works on, as the facts tell them.
    fn actions(&self) -> impl Iterator<Item = &Action> {
        self.fact.actions.iter()
    }
}

/// Words by which a person says to have changed files by hand.
const CHANGED_BY_HAND: &[&str] = &[
    "i undid", "i reverted", "i've reverted", "i have reverted", "i rolled back", "i changed",
    "i've changed", "i edited", "i've edited", "i modified", "i've modified", "i rebased", "i merged",
    "i pulled", "i switched", "i checked out",
];

fn says_changed(history: &History, id: BlockId) -> bool {
    let Some(block) = history.block(id) else { return false };
    let text = history.block_text(block).to_lowercase();
    CHANGED_BY_HAND.iter().any(|words| text.contains(words))
}

fn read(path: String, shown: super::operation::ShownLines) -> Option<FileOperation> {
    let is_empty = shown.lines.is_empty() && shown.total.is_none();
    (!is_empty).then_some(FileOperation { path, action: FileAction::Read(shown) })
}

/// Returns what a result says, and what was around it. A file of JSON is not taken for a result in JSON.
fn unwrap_result<'a>(whole: &'a str, fact: &Fact) -> (Cow<'a, str>, ResultWrapping) {
    let Some(wrapped) = WrappedResult::find_leaves(whole) else {
        return (Cow::Borrowed(whole), ResultWrapping::None);
    };
    let text = readable_text(whole);
    let is_json_file = fact.subject().path().is_some_and(|path| path.ends_with(".json"));
    if is_json_file && !text.trim_start().starts_with(['{', '[']) {
        return (Cow::Borrowed(whole), ResultWrapping::None);
    }
    (text, if wrapped.leaves.len() == 1 { ResultWrapping::One } else { ResultWrapping::Several })
}

#[cfg(test)]
mod tests;
