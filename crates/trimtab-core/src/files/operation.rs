//! What one call did to one file, as text. Takes nothing; gives the words that readers of tool calls speak in
//! and that [`FileState`](super::FileState) understands. Never says how a call was recognized.

use super::patch::Hunk;

/// What one call did to one file. A call that failed did nothing and is no operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileOperation {
    /// The file, by the one name it has in the session.
    pub(crate) path: String,
    /// What was done.
    pub(crate) action: FileAction,
}

/// What was done to a file. Lines are counted from 1; a line break is `\n`, `\r\n` is read as `\n`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileAction {
    /// Lines of it were shown.
    Read(ShownLines),
    /// It was found not to exist.
    Missing,
    /// All of its content was given.
    Write {
        /// The whole text.
        content: String,
    },
    /// Text was appended.
    Append {
        /// The text, with its line breaks.
        content: String,
    },
    /// Texts in it were replaced by others, one after the other.
    Replace(Vec<Replacement>),
    /// Whole lines were put between two of its lines.
    Insert {
        /// The line they follow; 0 for the beginning.
        after: usize,
        /// The lines, joined by line breaks.
        text: String,
    },
    /// A range of its lines was replaced by others.
    ReplaceLines {
        /// The first line replaced.
        first: usize,
        /// The last line replaced.
        last: usize,
        /// The lines that stand there now, joined by line breaks; nothing where the range was deleted.
        text: Option<String>,
    },
    /// A patch was applied to it.
    Patch(Vec<Hunk>),
    /// It was deleted.
    Delete,
    /// It was moved to another path.
    Rename {
        /// The new path.
        to: String,
    },
    /// It was or may have been changed in a way the conversation does not show: a formatter, `sed -i`.
    Changed,
}

impl FileAction {
    /// Returns the texts that must be in the file for this to be done, where it puts others in their place.
    pub(crate) fn old_texts(&self) -> Vec<String> {
        match self {
            FileAction::Replace(replacements) => {
                replacements.iter().map(|replacement| replacement.old.clone()).collect()
            }
            FileAction::Patch(hunks) => hunks.iter().map(|hunk| hunk.old_lines().join("\n")).collect(),
            FileAction::Read(_)
            | FileAction::Missing
            | FileAction::Write { .. }
            | FileAction::Append { .. }
            | FileAction::Insert { .. }
            | FileAction::ReplaceLines { .. }
            | FileAction::Delete
            | FileAction::Rename { .. }
            | FileAction::Changed => Vec::new(),
        }
    }
}

/// One string replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replacement {
    /// The text that was there.
    pub(crate) old: String,
    /// The text that is there now.
    pub(crate) new: String,
    /// Which of its occurrences were meant.
    pub(crate) which: Occurrences,
}

/// Which occurrences of a text a tool replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Occurrences {
    /// The only one: the tool fails where there are several.
    Only,
    /// The first of possibly several.
    First,
    /// All of them.
    All,
}

/// Lines that a call showed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ShownLines {
    /// Numbers and whole texts, ascending. A line that was cut is not among them.
    pub(crate) lines: Vec<(usize, String)>,
    /// How many lines the file has and what comes after them, if that was shown.
    pub(crate) total: Option<(usize, FileEnd)>,
}

/// What is known about the place after the last line. In this count of lines a text that ends in a line break
/// has an empty last line, as in editors that number it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FileEnd {
    /// Anything may follow.
    Open,
    /// Empty lines may follow and nothing else: the tool trims its output.
    EmptyLines,
    /// One line break may follow: the tool does not show a final one.
    LineBreak,
    /// Nothing follows.
    Exact,
}
