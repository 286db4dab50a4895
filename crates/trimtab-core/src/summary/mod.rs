//! What takes the place of an old part of a conversation. Takes a history, its facts and files, and perhaps a summary that a
//! model wrote; gives the range that may go, the prompt to ask for a summary, the check of the answer, and the message that
//! is sent instead: summary, the user's words, ledger. Never calls a model: whoever does I/O obtains the summary and hands it in.

mod answer;
mod check;
mod earlier_summaries;
mod edits;
mod failures;
mod folded_text;
mod instructions;
mod ledger;
mod open_items;
mod pace;
mod prompt;
mod range;
mod task;
#[cfg(test)]
mod tests;
mod user_messages;

pub use crate::{
    ledger::{
        CommandLine, FileLine, InstructionExtent, Instructions, Ledger, OpenItem, Unresolved, UserMessage,
    },
    render::ledger::BEGIN as FOLDED_HEAD,
};
pub use answer::{AnswerEnding, AnswerError, SummaryAnswer, read_answer};
pub use check::Rejection;
pub use edits::fold_request_bytes;
pub(crate) use edits::{fold_edit, rewritten_messages};
pub use folded_text::{FoldedText, folded_text};
pub(crate) use folded_text::{folded_of, prose_of, tells_all};
pub use ledger::build_ledger;
pub(crate) use pace::{FoldPace, LEAST_GAIN, LastFold, MayFold, may_fold};
pub use prompt::summary_request;
pub use range::{FoldRange, FoldSizes, fold_range, fold_sizes, legal_cuts};
pub(crate) use range::{choose_range, fold_sizes_for};
pub use task::{FoldRequest, SummaryTask};
