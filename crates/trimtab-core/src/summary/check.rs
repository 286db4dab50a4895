//! Whether a summary may be used. Takes what a model answered and the ledger of the range; gives the text to use, with the names
//! added that it should have named, or the reason to do without. Never lets a summary speak with another's voice: role marks,
//! our own notes and heads are made harmless.

use std::{collections::HashSet, fmt};

use super::answer::{AnswerEnding, SummaryAnswer};
use crate::{count::Counter, ledger::Ledger, render::ledger as words, units::Tokens};

/// A summary may be this many times as long as was asked for; models count badly, but not that badly.
const LENIENCE: f64 = 2.0;
/// A summary must be at most this share of what it stands for: less would not pay for writing the cache again.
const WORTHWHILE: f64 = 0.5;
/// A refusal is short: a longer text that begins like one has gone on to the matter.
const LONGEST_REFUSAL: usize = 600;
/// How many names are added at most.
const MOST_NAMES: usize = 40;

/// What a check comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SummaryVerdict {
    /// The summary may be used, in these words.
    Accepted(String),
    /// It may not.
    Rejected(Rejection),
}

/// Why a summary is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// It says nothing.
    Empty,
    /// The model refused.
    Refusal,
    /// It breaks off.
    CutOff,
    /// It is much longer than what was asked for.
    Oversized {
        /// What it counts.
        tokens: Tokens,
        /// What it may count.
        allowed: Tokens,
    },
    /// It says the same again and again.
    Repeats,
    /// It is not enough smaller than what it stands for.
    NotSmaller {
        /// What it counts.
        tokens: Tokens,
        /// What it stands for.
        of: Tokens,
    },
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::Empty => f.write_str("the summary is empty"),
            Rejection::Refusal => f.write_str("the model refused to summarize"),
            Rejection::CutOff => f.write_str("the summary breaks off"),
            Rejection::Oversized { tokens, allowed } => {
                write!(f, "the summary has {tokens} tokens where {allowed} are allowed")
            }
            Rejection::Repeats => f.write_str("the summary says the same again and again"),
            Rejection::NotSmaller { tokens, of } => {
                write!(f, "the summary has {tokens} tokens and what it stands for only {of}")
            }
        }
    }
}

/// Judges a summary of a range that counts `of` tokens, asked for in `target` tokens.
pub(super) fn check_summary(
    answer: &SummaryAnswer,
    ledger: &Ledger,
    of: Tokens,
    target: Tokens,
    counter: Counter,
) -> SummaryVerdict {
    let text = answer.text.trim();
    if text.chars().filter(|letter| letter.is_alphanumeric()).count() < 20 {
        return SummaryVerdict::Rejected(Rejection::Empty);
    }
    if answer.ending == AnswerEnding::Refused || is_refusal(text) {
        return SummaryVerdict::Rejected(Rejection::Refusal);
    }
    if breaks_off(answer.ending, text) {
        return SummaryVerdict::Rejected(Rejection::CutOff);
    }
    let tokens = counter.count_text(text);
    let allowed = target.scale(LENIENCE);
    if tokens > allowed {
        return SummaryVerdict::Rejected(Rejection::Oversized { tokens, allowed });
    }
    if repeats_itself(text) {
        return SummaryVerdict::Rejected(Rejection::Repeats);
    }
    if tokens > of.scale(WORTHWHILE) {
        return SummaryVerdict::Rejected(Rejection::NotSmaller { tokens, of });
    }
    let missing = missing_names(text, ledger);
    let mut accepted = neutralize_marks(text);
    if !missing.is_empty() {
        accepted = accepted + "\n\n" + &words::missing_names(&missing);
    }
    SummaryVerdict::Accepted(accepted)
}

/// Beginnings of refusals.
const REFUSALS: &[&str] = &[
    "i can't", "i cannot", "i can not", "i won't", "i'm sorry", "i am sorry", "sorry, ", "i'm unable",
    "i am unable", "i'm not able", "i am not able", "as an ai", "i must decline", "i apologize",
];

fn is_refusal(text: &str) -> bool {
    let lower = text.to_lowercase().replace('’', "'");
    text.len() <= LONGEST_REFUSAL && REFUSALS.iter().any(|start| lower.starts_with(start))
}

fn breaks_off(ending: AnswerEnding, text: &str) -> bool {
    let open_fence = text.lines().filter(|line| line.trim_start().starts_with("```")).count() % 2 == 1;
    let ends = text.ends_with(['.', '!', '?', ':', ')', ']', '`', '*', '|', '"', '。', '>']);
    let listed = text.lines().last().is_some_and(|line| line.trim_start().starts_with(['-', '*', '#', '|']));
    match ending {
        AnswerEnding::CutOff => true,
        AnswerEnding::Refused => false,
        AnswerEnding::Finished => open_fence,
        // Nobody says how it ended: a last line that is neither a sentence nor an item of a list breaks off.
        AnswerEnding::Unknown => open_fence || !(ends || listed),
    }
}

/// Small models fall into loops: most of what they say then was said before.
fn repeats_itself(text: &str) -> bool {
    let mut seen = HashSet::new();
    let pieces = text.split(['\n', '.', '!', '?']).map(str::trim);
    let telling = |piece: &&str| piece.chars().filter(|letter| letter.is_alphanumeric()).count() >= 4;
    let new: Vec<bool> = pieces.filter(telling).map(|piece| seen.insert(piece)).collect();
    let again = new.iter().filter(|new| !**new).count();
    again > 3 && again * 2 > new.len()
}

/// Returns the names of the ledger that a summary does not name: modified files, and the errors that are open.
fn missing_names(text: &str, ledger: &Ledger) -> Vec<String> {
    let files = ledger.modified.iter().map(|file| file.path.as_str());
    let files = files.filter(|path| !text.contains(path)).map(str::to_owned);
    let errors = ledger.errors.iter().filter_map(|error| {
        let first = error.lines.first().map_or(error.what.as_str(), |line| line.trim());
        let named = text.contains(first) || identifiers(first).any(|name| text.contains(name));
        (!named).then(|| first.to_owned())
    });
    files.chain(errors).take(MOST_NAMES).collect()
}

/// Returns the words of an error line that name something: codes, paths, names with a mark inside.
fn identifiers(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split([' ', '\t', '`', '\'', '"', '(', ')', ',', ';']);
    let telling = |word: &&str| {
        word.len() > 4
            && word.chars().any(char::is_alphabetic)
            && (word.contains(['/', '_', '.', ':', '['])
                || word.chars().any(|letter| letter.is_ascii_digit()))
    };
    words.filter(telling).map(|word| word.trim_end_matches([':', '.']))
}

/// Marks at the beginning of a line with which formats and harnesses name a speaker.
const SPEAKERS: &[&str] = &[
    "human:", "user:", "assistant:", "system:", "developer:", "tool:", "### system", "### user",
    "### instruction",
];
/// Tags with which formats and harnesses name a speaker or carry instructions.
const TAGS: &[&str] = &[
    "<|", "<system", "</system", "<user", "</user", "<assistant", "</assistant", "<instructions",
    "</instructions", "<environment_context", "</environment_context", "[inst]", "[/inst]", "<<sys>>",
];

/// Returns a text in which no line can pose as a speaker, a note of ours or a head of the folded message.
pub(super) fn neutralize_marks(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let inner = line.trim_start();
        let lower = inner.to_lowercase();
        let mut line = match inner.chars().next() {
            // Brackets are ours, and so are the marks of quotations.
            Some('[') => line.replacen('[', "(", 1).replacen(']', ")", 1),
            Some('>') => line.replacen('>', "»", 1),
            Some('|') => line.replacen('|', "¦", 1),
            _ => line.to_owned(),
        };
        if let Some(speaker) = SPEAKERS.iter().find(|speaker| lower.starts_with(**speaker)) {
            let at = line.len() - line.trim_start().len();
            line.insert_str(at, if speaker.starts_with('#') { "\\" } else { "- " });
        }
        if line.contains("trimtab recall ") {
            line = line.replace("trimtab recall ", "trimtab-recall ");
        }
        harmless_tags(&line)
    });
    lines.collect::<Vec<String>>().join("\n").trim().to_owned()
}

/// Opens no tag that a harness or a format would take for its own.
fn harmless_tags(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    if lower.len() != line.len() || !TAGS.iter().any(|tag| lower.contains(tag)) {
        return line.to_owned();
    }
    let mut harmless = String::with_capacity(line.len() + 8);
    let mut at = 0;
    while let Some(rest) = lower.get(at..) {
        let Some(found) = TAGS.iter().filter_map(|tag| rest.find(tag)).min() else { break };
        harmless.push_str(line.get(at..at + found).unwrap_or_default());
        harmless.push_str(if line.get(at + found..).is_some_and(|tag| tag.starts_with('[')) {
            "("
        } else {
            "‹"
        });
        at += found + 1;
    }
    harmless + line.get(at..).unwrap_or_default()
}
