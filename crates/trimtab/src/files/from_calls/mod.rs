//! What the calls of a conversation did to files. Takes a history and its facts; gives the state of every file over
//! time. Never trusts a call that failed, and never a result of which it cannot tell what it shows: a file that may
//! have been changed by something the conversation does not show is unknown from there on.

mod changes;
mod commands;
mod printed;
mod tools;

use std::borrow::Cow;

use super::{
    operation::{FileAction, Operation},
    timeline::Files,
};
use crate::{
    facts::{
        Action, DIRECTORIES, Fact, Facts, Given, Manner, Outcome, Voice, joined, manner, with_arguments,
    },
    history::{BlockId, BlockKind, History},
    json::{narrow, widen},
};

/// Tells the state of every file that a conversation touched.
pub fn files(history: &History, facts: &Facts) -> Files {
    let mut files = Files::default();
    files.extend(history, facts);
    files
}

impl Files {
    /// Goes on with a history that was parsed after the one these files are of; costs what is new in it.
    ///
    /// The result is the same as that of [`files`]. Where the session's root has become known since, all of it is
    /// told anew: every path has another name then.
    pub fn extend(&mut self, history: &History, facts: &Facts) {
        if self.taken_in.1.as_deref() != facts.root() {
            *self = Files::default();
        }
        let kept = history.reused_blocks().min(self.taken_in.0);
        if kept < self.taken_in.0 {
            self.forget(BlockId(narrow(kept)));
        }
        for (index, fact) in facts.rows().iter().enumerate().skip(kept) {
            let id = BlockId(narrow(index));
            if fact.acts_as == BlockKind::Result {
                self.add_result(history, facts, id, fact);
            } else if fact.voice == Some(Voice::Person) && fact.step > 0 && says_changed(history, id) {
                self.doubt(fact.step, id);
            }
        }
        self.taken_in = (facts.rows().len(), facts.root().map(str::to_owned));
    }

    fn add_result(&mut self, history: &History, facts: &Facts, id: BlockId, fact: &Fact) {
        let Some(call) = fact.partner.and_then(|call| history.block(call)) else { return };
        let text = result_text(history, id, fact);
        let step = fact.partner.and_then(|call| facts.row(call)).map_or(fact.step, |call| call.step);
        let answer = Answer {
            facts,
            fact,
            text: &text,
            cwd: fact.partner.and_then(|call| facts.cwd_before(call)),
            failed: fact.outcome == Outcome::Failed,
        };
        let done =
            with_arguments(history, call, |name, given| answer.done(name, given, self)).unwrap_or_default();
        for done in done {
            match done {
                Done::Operation(operation) => self.apply(step, id, &operation),
                Done::Anything => self.doubt(step, id),
            }
        }
    }
}

/// Tells what a call asks of files, whether or not it did it. What only a result could tell is left out.
pub(crate) fn asked(history: &History, facts: &Facts, call: BlockId) -> Vec<FileAction> {
    let (Some(block), Some(fact)) = (history.block(call), facts.row(call)) else { return Vec::new() };
    let answer = Answer { facts, fact, text: "", cwd: facts.cwd_before(call), failed: false };
    let done = with_arguments(history, block, |name, given| answer.done(name, given, &Files::default()));
    let action = |done| match done {
        Done::Operation(operation) => Some(operation.action),
        Done::Anything => None,
    };
    done.unwrap_or_default().into_iter().filter_map(action).collect()
}

/// What a call did.
enum Done {
    Operation(Operation),
    /// Something after which any file may be another one.
    Anything,
}

/// A call that was answered.
struct Answer<'a> {
    facts: &'a Facts,
    fact: &'a Fact,
    text: &'a str,
    /// The directory in which the call was made.
    cwd: Option<&'a str>,
    /// Whether it did not do what it was to do.
    failed: bool,
}

impl Answer<'_> {
    fn done(&self, name: &str, given: &Given<'_>, known: &Files) -> Vec<Done> {
        let tools = |done: Vec<Operation>| done.into_iter().map(Done::Operation).collect();
        match manner(name, given) {
            Manner::Shell | Manner::LastingShell => commands::done(self, given, known),
            Manner::Session => Vec::new(),
            Manner::Editor | Manner::Patch | Manner::Plain(_) => {
                tools(tools::operations(self, name, given, known))
            }
        }
    }

    /// Returns the directory from which the call's own paths are seen.
    fn directory(&self, given: &Given<'_>) -> Option<String> {
        let own = DIRECTORIES.iter().find_map(|key| given.text(key));
        own.map(|own| joined(self.cwd.unwrap_or_default(), &own)).or_else(|| self.cwd.map(str::to_owned))
    }

    /// Returns the one name of a path that is seen from a directory.
    fn key(&self, directory: Option<&str>, path: &str) -> String {
        self.facts.file_key(&joined(directory.unwrap_or_default(), path)).into_owned()
    }

    /// Returns the one name of a path that a result shows: where no file of that name is known, but exactly one whose
    /// path ends in it, that one is meant.
    fn key_of_shown(&self, directory: Option<&str>, path: &str, known: &Files) -> String {
        let key = self.key(directory, path);
        let plain = self.key(None, path);
        let is_known = |key: &str| !known.accesses(key).is_empty();
        if is_known(&key) || path.starts_with('/') {
            return key;
        }
        if is_known(&plain) {
            return plain;
        }
        let mut fitting =
            known.paths().filter(|file| file.strip_suffix(path).is_some_and(|head| head.ends_with('/')));
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
    "i undid",
    "i reverted",
    "i've reverted",
    "i have reverted",
    "i rolled back",
    "i changed",
    "i've changed",
    "i edited",
    "i've edited",
    "i modified",
    "i've modified",
    "i rebased",
    "i merged",
    "i pulled",
    "i switched",
    "i checked out",
];

fn says_changed(history: &History, id: BlockId) -> bool {
    let Some(block) = history.block(id) else { return false };
    let text = history.block_text(block).to_lowercase();
    CHANGED_BY_HAND.iter().any(|words| text.contains(words))
}

fn read(path: String, shown: super::operation::Shown) -> Option<Operation> {
    let is_empty = shown.lines.is_empty() && shown.total.is_none();
    (!is_empty).then_some(Operation { path, action: FileAction::Read(shown) })
}

/// Returns a result's text. Cline puts `[read_file for 'a.ts'] Result:` into one block and the text into the next.
fn result_text<'a>(history: &'a History, id: BlockId, fact: &Fact) -> Cow<'a, str> {
    let Some(block) = history.block(id) else { return Cow::Borrowed("") };
    let text = history.block_text(block);
    let next = history.blocks().get(widen(id.0) + 1).filter(|next| next.entry == fact.entry);
    match next.filter(|next| next.kind == BlockKind::Text && text.trim_end().ends_with("] Result:")) {
        Some(next) => Cow::Owned(text.into_owned() + "\n" + &history.block_text(next)),
        None => text,
    }
}

#[cfg(test)]
mod tests;
