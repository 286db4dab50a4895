//! What takes the place of an old part of a conversation. Takes a history, its facts and files, and perhaps a summary that a
//! model wrote; gives the range that may go, the prompt to ask for a summary, the check of the answer, and the message that
//! is sent instead: summary, the user's words, ledger. Never calls a model: whoever does I/O obtains the summary and hands it in.

mod answer;
mod asking;
mod carried;
mod check;
mod edits;
mod failures;
mod folded;
mod instructions;
mod ledger;
mod open_items;
mod pace;
mod prompt;
mod range;
mod said;
#[cfg(test)]
mod tests;

pub use crate::{
    ledger::{CommandLine, Extent, FileLine, Instructions, Ledger, OpenItem, Said, Unresolved},
    render::ledger::BEGIN as FOLDED_HEAD,
};
pub use answer::{Answer, AnswerError, Ending, read_answer};
pub use asking::{Asking, FoldRequest};
pub use check::Rejection;
pub use edits::compacted;
pub(crate) use edits::{fold_edit, rewritten};
pub use folded::{Folded, folded_text};
pub(crate) use folded::{folded_of, prose_of, tells_all};
pub use ledger::ledger;
pub(crate) use pace::{LEAST_GAIN, LastFold, MayFold, Pace, may_fold};
pub use prompt::{PromptFormat, summary_request};
pub use range::{FoldRange, FoldSizes, fold_range, fold_sizes, legal_cuts};
pub(crate) use range::{choose, sizes};
