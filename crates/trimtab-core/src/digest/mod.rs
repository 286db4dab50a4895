//! Says how short a text can be. Takes a block's text and what is known about it; gives pieces: whole lines of the
//! original, whole elements of a JSON value, and notes that are values. Never writes words, never changes the order, and
//! never hides an error line (except `clear`, which hides everything).
//!
//! A digest is one file and one line in [`DIGESTS`]. [`choose_digest`] picks one by content.

mod arguments;
mod choose;
mod clear;
mod diff;
mod errors;
mod file;
mod git_log;
mod git_status;
mod json;
mod line_selection;
mod listing;
mod log;
mod matching;
mod media;
mod names;
mod other;
mod outline;
mod page;
mod relevance;
mod relevant;
mod repeats;
mod repo_map;
mod search;
mod shell;
mod sizes;
mod text;
mod totals;
mod trace;
mod tree;

use std::ops::Range;

use crate::facts::Outcome;

pub(crate) use crate::facts::RunTotals;
pub(crate) use arguments::{
    InputShortening, LONGEST, LeafRule, LeafSet, LongLeaves, long_leaves, long_plain, shorten_arguments,
    shorten_plain,
};
pub(crate) use choose::{choose_digest, may_be_file};
pub use errors::{has_place, is_error_line};
pub(crate) use matching::lines_matching;
pub(crate) use media::media_pieces;
pub(crate) use names::{named_ends, names_bytes, names_in, names_only};
pub(crate) use relevant::{RELEVANT, relevant_lines};
pub(crate) use sizes::{head_tail, head_tail_lines, middle_out};
pub(crate) use text::{DigestText, TextContext};

pub(crate) use json::{JsonRows, json_rows};
pub use relevance::{query_terms, ranked_lines};
pub(crate) use relevance::{relevance_scores, task_words};
pub(crate) use text::without_number;

/// A part of a shortened text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Whole lines of the original, counted from 0.
    Lines(Range<usize>),
    /// A line over 500 characters without its middle: its first `head` and last `tail` bytes stay.
    Cut {
        /// The line, counted from 0.
        line: usize,
        /// How many bytes stay at its beginning.
        head: usize,
        /// How many bytes stay at its end.
        tail: usize,
    },
    /// Whole elements of the JSON array, or members of the JSON object, that makes most of the text.
    Elements(Range<usize>),
    /// Something about what is not shown.
    Note(Note),
}

/// What a note says, as values. Names and samples are copied from the original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Note {
    /// Lines left out here, counted from 1.
    Omitted {
        /// The first one.
        first: usize,
        /// The last one.
        last: usize,
        /// How many lines the original has.
        of: usize,
    },
    /// Lines left out here that all said a test passed or a step of a build went well.
    Passing {
        /// How many.
        lines: usize,
    },
    /// Lines left out here that another result shows, counted from 1.
    Shown {
        /// The first one.
        first: usize,
        /// The last one.
        last: usize,
        /// The line of the other result that is the first one.
        from: usize,
    },
    /// The lines before this stood there several times in a row.
    Repeated {
        /// How often.
        times: usize,
        /// How many lines are repeated together.
        lines: usize,
    },
    /// Elements of a JSON array left out here, counted from 1.
    ElementsOmitted {
        /// The first one.
        first: usize,
        /// The last one.
        last: usize,
        /// How many elements the array has.
        of: usize,
    },
    /// What a listing or tree holds.
    Listing {
        /// How many files.
        files: usize,
        /// How many directories.
        directories: usize,
        /// Up to three names.
        samples: Vec<String>,
    },
    /// What a map of a repository holds.
    RepoMap {
        /// How many files.
        files: usize,
        /// Up to three of them.
        samples: Vec<String>,
    },
    /// What version control says is changed.
    Changes {
        /// The branch.
        branch: Option<String>,
        /// Files staged.
        staged: usize,
        /// Files changed and not staged.
        modified: usize,
        /// Files not tracked.
        untracked: usize,
        /// Files in conflict.
        conflicted: usize,
    },
    /// What a diff holds.
    Diff {
        /// How many files.
        files: usize,
        /// How many lines it adds.
        added: usize,
        /// How many lines it removes.
        removed: usize,
        /// Up to three of the files.
        samples: Vec<String>,
    },
    /// How many commits a log lists.
    Commits {
        /// How many.
        total: usize,
    },
    /// What a search found.
    Matches {
        /// How many hits.
        total: usize,
        /// In how many files.
        files: usize,
        /// How many hits are shown.
        shown: usize,
        /// The files with most hits, with how many.
        most: Vec<(String, usize)>,
    },
    /// How a command ended.
    Status(Outcome),
    /// What a test run or build counted.
    Totals(RunTotals),
    /// What a JSON text is made of.
    Shape {
        /// What its most weighty value is.
        container: Container,
        /// How many elements or members that has.
        elements: usize,
        /// How many are shown.
        shown: usize,
        /// The names of its first members, or of those of its first element.
        keys: Vec<String>,
    },
    /// What a stack trace holds.
    Frames {
        /// How many frames.
        total: usize,
        /// How many are shown.
        shown: usize,
    },
    /// How many definitions a source file has.
    Definitions {
        /// How many.
        total: usize,
        /// How many are shown.
        shown: usize,
    },
    /// Names that stand nowhere else in the conversation.
    Names(Vec<String>),
    /// What a change was for, in the words of its call.
    Intent(String),
    /// What a long series of changes of one file comes to.
    Series(Box<EditSeries>),
    /// What an image or document is.
    Media {
        /// Its type, such as `image/png`.
        kind: String,
        /// How many bytes it has.
        bytes: u64,
    },
}

/// A long series of changes of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditSeries {
    /// The file.
    pub(crate) path: String,
    /// How many changes.
    pub(crate) changes: usize,
    /// The step of the first.
    pub(crate) first: u32,
    /// The step of the last.
    pub(crate) last: u32,
    /// Why, each once, with how often it was said.
    pub(crate) intents: Vec<(String, usize)>,
    /// How many intents are left out.
    pub(crate) more_intents: usize,
    /// How many lines it added and removed, where that is known.
    pub(crate) lines: Option<LineCount>,
    /// The lines of a diff between the file before and after, where both are known.
    pub(crate) diff: Vec<String>,
    /// How many of these are left out.
    pub(crate) more_diff: usize,
}

/// Lines added and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineCount {
    /// Between the file before and after.
    Net(usize, usize),
    /// The same of the lines that are known.
    NetOfKnown(usize, usize),
    /// Between the file as the first change wrote it, at this step, and after the last.
    NetSince(u32, usize, usize),
    /// By all changes, one after the other.
    Sum(usize, usize),
}

/// What holds the elements of a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Container {
    /// An array.
    Array,
    /// An object.
    Object,
}

/// One way to shorten a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digest {
    /// Its name, as rules spell it.
    pub(crate) name: &'static str,
    /// What it keeps and what it loses, in one line.
    pub(crate) about: &'static str,
    /// Gives the pieces of a text; nothing where the text is best left whole.
    pub(crate) shorten: fn(&DigestText<'_>) -> Option<Vec<Piece>>,
}

/// Every digest, in the order of the reference page.
pub(crate) const DIGESTS: &[Digest] = &[
    file::DIGEST,
    listing::DIGEST,
    tree::DIGEST,
    repo_map::DIGEST,
    repo_map::STRUCTURE,
    git_status::DIGEST,
    diff::DIGEST,
    git_log::DIGEST,
    search::DIGEST,
    shell::DIGEST,
    log::DIGEST,
    log::LONG,
    json::DIGEST,
    trace::DIGEST,
    page::DIGEST,
    media::DIGEST,
    other::DIGEST,
    repeats::DIGEST,
    sizes::HEAD_TAIL,
    sizes::MIDDLE_OUT,
    relevant::DIGEST,
    clear::DIGEST,
];

/// Returns names and descriptions of all digests.
pub fn digests() -> impl Iterator<Item = (&'static str, &'static str)> {
    DIGESTS.iter().map(|digest| (digest.name, digest.about))
}

/// Returns the digest of that name.
pub(crate) fn find_digest(name: &str) -> Option<&'static Digest> {
    DIGESTS.iter().find(|digest| digest.name == name)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use tests::check_file;
