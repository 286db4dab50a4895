//! What a session did to its files, in words. Takes changes with the intent given for them or the words said before
//! them; gives notes grouped by file. Never invents a reason: a change nobody spoke about is only counted.

use std::fmt;

/// How many characters of a sentence a note keeps: two lines of a terminal.
const NOTE_CHARACTERS: usize = 160;

/// More changes than this in one file are told as a series: a screen holds about this many with the other files.
const MAX_NOTES: usize = 12;

/// How many notes a series quotes.
const QUOTED_NOTES: usize = 3;

/// One change to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<'a> {
    /// The file.
    pub path: &'a str,
    /// The step that made it.
    pub step: u32,
    /// What the call's `intent` argument says.
    pub intent: Option<&'a str>,
    /// What the assistant said before the call.
    pub said: Option<&'a str>,
}

/// All changes to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChanges {
    /// The file.
    pub path: String,
    /// What was done, oldest first.
    pub notes: Vec<Note>,
}

/// One or more changes in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// How many changes.
    pub changes: usize,
    /// The step of the first.
    pub first: u32,
    /// The step of the last.
    pub last: u32,
    /// Why, in the session's own words; several where a series has several reasons.
    pub words: Vec<String>,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.changes, self.first == self.last) {
            (1, _) => write!(f, "step {}", self.first),
            (changes, true) => write!(f, "{changes} changes in step {}", self.first),
            (changes, false) => {
                write!(f, "{changes} changes between steps {} and {}", self.first, self.last)
            }
        }?;
        if self.words.is_empty() { Ok(()) } else { write!(f, ": {}", self.words.join("; ")) }
    }
}

/// Groups changes by file, in the order in which the files were first changed.
pub fn changelog<'a>(changes: impl IntoIterator<Item = Change<'a>>) -> Vec<FileChanges> {
    let mut files: Vec<FileChanges> = Vec::new();
    for change in changes {
        let words = change.intent.and_then(first_sentence).or_else(|| change.said.and_then(first_sentence));
        let index = files.iter().position(|file| file.path == change.path).unwrap_or_else(|| {
            files.push(FileChanges { path: change.path.to_owned(), notes: Vec::new() });
            files.len() - 1
        });
        let Some(file) = files.get_mut(index) else { continue };
        let words: Vec<String> = words.into_iter().collect();
        match file.notes.last_mut().filter(|note| words.is_empty() || note.words == words) {
            // The same words, or none: the change goes on with what was begun.
            Some(note) => (note.changes, note.last) = (note.changes + 1, change.step),
            None => file.notes.push(Note { changes: 1, first: change.step, last: change.step, words }),
        }
    }
    files.into_iter().map(shortened).collect()
}

fn shortened(file: FileChanges) -> FileChanges {
    if file.notes.len() <= MAX_NOTES {
        return file;
    }
    let first = file.notes.iter().map(|note| note.first).min().unwrap_or_default();
    let last = file.notes.iter().map(|note| note.last).max().unwrap_or_default();
    let changes = file.notes.iter().map(|note| note.changes).sum();
    let mut words: Vec<String> = Vec::new();
    for said in file.notes.into_iter().flat_map(|note| note.words) {
        if words.len() < QUOTED_NOTES && !words.contains(&said) {
            words.push(said);
        }
    }
    FileChanges { path: file.path, notes: vec![Note { changes, first, last, words }] }
}

/// Returns the first sentence of the first line that has words, without its closing sign.
fn first_sentence(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| line.chars().any(char::is_alphanumeric))?;
    let line = line.trim_start_matches(['#', '*', '-', '>', ' ']).trim_end_matches('*');
    let end = line.match_indices(['.', '!', '?', ':', '。']).find(|(at, sign)| {
        let rest = line.get(at + sign.len()..).unwrap_or_default();
        rest.is_empty() || rest.starts_with(' ') || *sign == "。"
    });
    let sentence = end.map_or(line, |(at, _)| line.get(..at).unwrap_or(line)).trim();
    let mut words: String = sentence.chars().take(NOTE_CHARACTERS).collect();
    if words.len() < sentence.len() {
        words = words.rsplit_once(' ').map_or(words.as_str(), |(whole, _)| whole).to_owned() + "…";
    }
    (!words.is_empty()).then_some(words)
}
