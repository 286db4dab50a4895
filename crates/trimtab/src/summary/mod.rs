//! What takes the place of an old part of a conversation. Takes a history, its facts and files, and perhaps a summary that a
//! model wrote; gives the range that may go, the prompt to ask for a summary, the check of the answer, and the message that
//! is sent instead: summary, the user's words, ledger. Never calls a model: whoever does I/O obtains the summary and hands it in.

mod answer;
mod carried;
mod check;
mod edits;
mod folded;
mod ledger;
mod open_items;
mod pace;
mod prompt;
mod range;
mod relevance;
mod said;
#[cfg(test)]
mod tests;

pub use answer::{Answer, AnswerError, Ending, read_answer};
pub use check::{Checked, Rejection, check};
pub use edits::compacted;
pub use folded::{Folded, folded_text};
pub use ledger::{CommandLine, FileLine, Ledger, Unresolved, ledger};
pub use open_items::OpenItem;
pub use pace::{LastFold, MayFold, Pace, may_fold};
pub use prompt::{PromptFormat, prompt, prompt_request, split};
pub use range::{FoldRange, FoldSizes, fold_range, fold_sizes, legal_cuts};
pub use relevance::{query_terms, ranked_lines};
pub use said::Said;

use crate::{count::Tokens, memory::ChainHash};

/// What a plan asks for where it would fold: a summary of a range in so many tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldRequest {
    /// What is to be summarized.
    pub range: FoldRange,
    /// What the range counts as it stands.
    pub tokens: Tokens,
    /// How long the summary should be.
    pub target: Tokens,
}

/// A summary that a model wrote of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The identity of the range's last block: the summary is of everything up to it.
    pub covers: ChainHash,
    /// The prose.
    pub text: String,
}
