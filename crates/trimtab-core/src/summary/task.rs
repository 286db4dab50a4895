//! A summary that is asked for. Takes what a plan wants and the history it was planned for; gives the prompts to send one after
//! the other, and the judgement of what comes back. Never calls a model: whoever does I/O sends the prompts and hands the answer
//! to the memory.

use std::sync::Arc;

use super::{
    answer::SummaryAnswer,
    check::{Rejection, SummaryVerdict, check_summary},
    ledger::build_ledger,
    prompt::{split_range, summary_prompt},
    range::FoldRange,
};
use crate::{
    count::Counter,
    facts::{Facts, facts},
    files::files,
    history::History,
    ledger::Ledger,
    units::Tokens,
};

/// What share of the folded message's room a summary is asked to fill; the rest is for the user's words and the ledger.
const SUMMARY_SHARE: f64 = 0.4;

/// What a plan asks for where it would fold: a summary of a range in so many tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldRequest {
    /// What is to be summarized.
    pub range: FoldRange,
    /// What the range counts now.
    pub tokens: Tokens,
    /// How long the summary should be.
    pub target: Tokens,
    /// The summary of a part of the range that was folded before, and the number of messages that it covers.
    pub earlier: Option<(Arc<str>, usize)>,
}

impl FoldRequest {
    /// Asks for a summary of a range whose folded message has so much room.
    pub fn new(range: FoldRange, tokens: Tokens, room: Tokens) -> FoldRequest {
        FoldRequest { range, tokens, target: room.scale(SUMMARY_SHARE), earlier: None }
    }
}

/// A summary that is asked for, with everything that is needed to ask for it and to judge the answer.
#[derive(Debug, Clone)]
pub struct SummaryTask {
    history: Arc<History>,
    facts: Facts,
    ledger: Ledger,
    request: FoldRequest,
    counter: Counter,
}

impl SummaryTask {
    /// Makes ready to ask for what a plan of this history wants.
    pub fn new(history: Arc<History>, request: FoldRequest, counter: Counter) -> SummaryTask {
        let facts = facts(&history);
        let ledger = build_ledger(&history, &facts, &files(&history, &facts), &request.range);
        SummaryTask { history, facts, ledger, request, counter }
    }

    /// Returns what is asked for.
    pub fn request(&self) -> &FoldRequest {
        &self.request
    }

    /// Returns the facts of the range.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the notes to begin with: the summary of what was folded before.
    pub fn notes(&self) -> Option<&str> {
        let earlier = self.request.earlier.as_ref().map(|(text, _)| &**text);
        earlier.or(self.ledger.earlier_summary.as_deref())
    }

    /// Returns the parts to ask about in turn, so that each prompt fits into a window. Blocks that an earlier summary covers are left out.
    pub fn parts(&self, window: Tokens) -> Vec<FoldRange> {
        let SummaryTask { history, facts, request, counter, .. } = self;
        let from = request.earlier.as_ref().map_or(0, |(_, messages)| *messages);
        let new =
            request.range.part_of(history, &(from.min(request.range.messages())..request.range.messages()));
        split_range(history, facts, &new, request.target, window, *counter)
    }

    /// Writes the prompt for a part that updates the notes on what came before it.
    pub fn prompt(&self, part: &FoldRange, notes: Option<&str>, window: Tokens) -> String {
        summary_prompt(&self.history, &self.facts, part, notes, self.request.target, window, self.counter)
    }

    /// Judges the answer to the last part: gives the words to use.
    ///
    /// # Errors
    /// Says why the summary is not to be used.
    pub fn check_answer(&self, answer: &SummaryAnswer) -> Result<String, Rejection> {
        self.check_against(answer, &self.ledger)
    }

    /// Judges the answer to any part but the last, of which not everything can be expected.
    ///
    /// # Errors
    /// Says why the answer cannot be gone on with.
    pub fn check_part(&self, answer: &SummaryAnswer) -> Result<String, Rejection> {
        self.check_against(answer, &Ledger::default())
    }

    fn check_against(&self, answer: &SummaryAnswer, ledger: &Ledger) -> Result<String, Rejection> {
        match check_summary(answer, ledger, self.request.tokens, self.request.target, self.counter) {
            SummaryVerdict::Accepted(text) => Ok(text),
            SummaryVerdict::Rejected(reason) => Err(reason),
        }
    }
}
