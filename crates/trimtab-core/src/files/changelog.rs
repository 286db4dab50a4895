//! What a session did to its files, in words. Takes a history and its facts; gives the changes grouped by file, each
//! with the intent that its call names or the words said before it. Never invents a reason: a change nobody spoke about
//! is only counted.

use std::{borrow::Cow, collections::HashMap, fmt};

use crate::{
    facts::{CallArguments, Facts, Outcome, Subject, with_arguments},
    history::{Block, BlockId, BlockKind, History, Role},
    json::widen,
};

/// How many characters of a sentence are kept: two lines of a terminal.
const SENTENCE_CHARACTERS: usize = 160;

/// One change to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileChange<'a> {
    pub(super) path: Cow<'a, str>,
    pub(super) step: u32,
    /// What the call's `intent` argument says.
    pub(super) intent: Option<Cow<'a, str>>,
    /// What the assistant said before the call.
    pub(super) said: Option<Cow<'a, str>>,
}

/// All changes to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChanges {
    /// The file.
    pub path: String,
    /// What was done, oldest first.
    pub changes: Vec<ChangeGroup>,
}

/// One or more changes with the same words, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeGroup {
    /// How many.
    pub count: usize,
    /// The step of the first.
    pub first: u32,
    /// The step of the last.
    pub last: u32,
    /// Why, in the session's own words; nothing where nobody said.
    pub words: Vec<String>,
}

impl fmt::Display for ChangeGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.count, self.first == self.last) {
            (1, _) => write!(f, "step {}", self.first),
            (changes, true) => write!(f, "{changes} changes in step {}", self.first),
            (changes, false) => {
                write!(f, "{changes} changes between steps {} and {}", self.first, self.last)
            }
        }?;
        if self.words.is_empty() { Ok(()) } else { write!(f, ": {}", self.words.join("; ")) }
    }
}

/// Tells what a conversation did to its files, in the order in which they were first changed.
pub fn changelog(history: &History, facts: &Facts) -> Vec<FileChanges> {
    changelog_before(history, facts, BlockId(u32::MAX))
}

/// Tells what was done to files before a block.
pub(crate) fn changelog_before(history: &History, facts: &Facts, end: BlockId) -> Vec<FileChanges> {
    let rows = facts.rows().iter().take(widen(end.0));
    let results = rows.filter(|row| row.acts_as == BlockKind::Result);
    let changes = results.filter(|row| row.outcome != Outcome::Failed).flat_map(|row| {
        let call = row.partner.and_then(|id| Some((id, history.block(id)?)));
        let step = call.and_then(|(id, _)| facts.row(id)).map_or(row.step, |call| call.step);
        let intent = call.and_then(|(_, call)| intent_of(history, call));
        let said = call.and_then(|(id, _)| words_before(history, id));
        let mut paths: Vec<Cow<'_, str>> = Vec::new();
        for action in row.actions.iter().filter(|action| action.kind.changes_files()) {
            let Subject::File { path, .. } = &action.subject else { continue };
            let path = facts.file_key(path);
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths.into_iter().map(move |path| FileChange {
            path,
            step,
            intent: intent.clone().map(Cow::Owned),
            said: said.clone(),
        })
    });
    group_by_file(changes)
}

/// Arguments in which agents say what a call is for.
const INTENTS: &[&str] = &["intent", "instruction", "explanation", "description"];

fn edit_intent(given: &CallArguments<'_>) -> Option<String> {
    INTENTS.iter().find_map(|key| given.text(key)).map(Cow::into_owned).filter(|text| !text.trim().is_empty())
}

/// Returns what a call says that it is for.
fn intent_of(history: &History, call: &Block) -> Option<String> {
    with_arguments(history, call, |_, given| edit_intent(given)).flatten()
}

/// Returns what the assistant said last before a call of the same message; of an action written in text, the text.
fn words_before(history: &History, call: BlockId) -> Option<Cow<'_, str>> {
    let own = history.block(call)?;
    let before = history.blocks().get(..=widen(call.0))?.iter().rev();
    let same = |block: &&Block| {
        history.entry_of(block).is_some_and(|entry| entry.role == Role::Assistant)
            && history.entry_of(block).map(|entry| entry.step)
                == history.entry_of(own).map(|entry| entry.step)
    };
    before.take_while(same).find(|block| block.kind == BlockKind::Text).map(|block| history.block_text(block))
}

/// Returns why a call changes files, in the session's own words.
pub(crate) fn reason_of_change(history: &History, call: BlockId) -> Option<String> {
    let intent = history.block(call).and_then(|block| intent_of(history, block));
    let intent = intent.as_deref().and_then(telling_sentence);
    intent.or_else(|| words_before(history, call).as_deref().and_then(telling_sentence))
}

/// Groups changes by file: every reason once, in the order in which they were first given, with how often and when.
pub(super) fn group_by_file<'a>(changes: impl IntoIterator<Item = FileChange<'a>>) -> Vec<FileChanges> {
    let mut files: Vec<FileChanges> = Vec::new();
    // The places of files by path, and of rows by file and words: a session may change one file thousands of times.
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut rows: HashMap<(usize, Vec<String>), usize> = HashMap::new();
    let mut latest: HashMap<usize, usize> = HashMap::new();
    for change in changes {
        let words = change.intent.as_deref().and_then(telling_sentence);
        let words = words.or_else(|| change.said.as_deref().and_then(telling_sentence));
        let words: Vec<String> = words.into_iter().collect();
        let index = *places.entry(change.path.to_string()).or_insert_with(|| {
            files.push(FileChanges { path: change.path.to_string(), changes: Vec::new() });
            files.len() - 1
        });
        let Some(file) = files.get_mut(index) else { continue };
        // Without words a change goes on with what was begun.
        let begun = if words.is_empty() { latest.get(&index) } else { rows.get(&(index, words.clone())) };
        let row = begun.copied().unwrap_or_else(|| {
            let empty = ChangeGroup { count: 0, first: change.step, last: change.step, words: words.clone() };
            file.changes.push(empty);
            file.changes.len() - 1
        });
        if let Some(changes) = file.changes.get_mut(row) {
            (changes.count, changes.last) = (changes.count + 1, change.step);
        }
        rows.insert((index, words), row);
        latest.insert(index, row);
    }
    files
}

/// A sentence of fewer words says nothing about a change: "Perfect!", "You're right."
const LEAST_WORDS: usize = 3;

/// Returns the sentence that tells most about what follows: the first one of the last line that has words, without its
/// closing sign. The text after a fence is code.
fn telling_sentence(text: &str) -> Option<String> {
    let heads = ["THOUGHT:", "Thought:", "DISCUSSION"];
    let text = heads.iter().find_map(|head| text.trim_start().strip_prefix(head)).unwrap_or(text);
    let prose = text.split("```").next().unwrap_or(text);
    let lines =
        || prose.lines().rev().filter(|line| line.chars().any(char::is_alphanumeric)).map(sentences_of);
    let tells = |sentence: &&str| sentence.split_whitespace().count() >= LEAST_WORDS;
    let told = lines().find_map(|sentences| sentences.into_iter().find(tells));
    let sentence = told.or_else(|| lines().next()?.first().copied())?;
    let mut words: String = sentence.chars().take(SENTENCE_CHARACTERS).collect();
    if words.len() < sentence.len() {
        words = words.rsplit_once(' ').map_or(words.as_str(), |(whole, _)| whole).to_owned() + "…";
    }
    (!words.is_empty()).then_some(words)
}

fn sentences_of(line: &str) -> Vec<&str> {
    let line = line.trim().trim_start_matches(['#', '*', '-', '>', ' ']).trim_end_matches('*');
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, sign) in line.match_indices(['.', '!', '?', ':', '。']) {
        let rest = line.get(at + sign.len()..).unwrap_or_default();
        if rest.is_empty() || rest.starts_with(' ') || sign == "。" {
            sentences.push(line.get(start..at).unwrap_or_default().trim());
            start = at + sign.len();
        }
    }
    sentences.push(line.get(start..).unwrap_or_default().trim());
    sentences.retain(|sentence| sentence.chars().any(char::is_alphanumeric));
    sentences
}
