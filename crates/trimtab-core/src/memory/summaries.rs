//! Summaries that were handed back. Takes what a plan asked for and what a model answered; gives, for the last block of a range,
//! the words to fold it with. Never keeps an answer that fails its checks.

use std::sync::Arc;

use super::Memory;
use crate::{
    identity::ChainHash,
    summary::{FoldRequest, LastFold, Rejection, SummaryAnswer, SummaryTask},
    units::Tokens,
};

/// What a range is to be folded with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FoldContent {
    /// A summary that passed its checks.
    Summary(Arc<str>),
    /// None could be had: the ledger alone.
    LedgerAlone,
}

impl Memory {
    /// Takes a summary for what a plan asked for. The first one stays.
    ///
    /// # Errors
    /// Says why the summary is not to be used.
    pub fn accept_summary(&mut self, asking: &SummaryTask, answer: &SummaryAnswer) -> Result<(), Rejection> {
        let text = asking.check_answer(answer)?;
        self.remember_summary(asking.request().range.covers(), &text);
        Ok(())
    }

    /// Remembers that no summary could be had for what a plan asked for: it is folded by the ledger alone.
    pub fn no_summary(&mut self, asked: &FoldRequest) {
        self.summaries.entry(asked.range.covers()).or_insert(FoldContent::LedgerAlone);
    }

    /// Remembers a summary that passed its checks, by the last block that it covers.
    pub fn remember_summary(&mut self, covers: ChainHash, text: &str) {
        let held = self.summaries.entry(covers).or_insert(FoldContent::LedgerAlone);
        if *held == FoldContent::LedgerAlone {
            *held = FoldContent::Summary(text.into());
        }
    }

    /// Returns the summaries that are kept, by the last block that each covers, in no order.
    pub fn summaries(&self) -> impl Iterator<Item = (ChainHash, &str)> {
        self.summaries.iter().filter_map(|(covers, held)| match held {
            FoldContent::Summary(text) => Some((*covers, &**text)),
            FoldContent::LedgerAlone => None,
        })
    }

    /// Learns what the provider counted in the last request.
    pub fn learn_input(&mut self, input: Tokens) {
        // What a fold is worth is judged by the first request that it is in.
        if let Some(fold) = self.last_fold.as_mut().filter(|_| self.reported.is_none()) {
            fold.after = input;
        }
        self.reported = Some(input);
    }

    pub(crate) fn summary_for(&self, covers: ChainHash) -> Option<&FoldContent> {
        self.summaries.get(&covers)
    }

    pub(crate) fn last_fold(&self) -> Option<LastFold> {
        self.last_fold
    }

    pub(crate) fn reported_input(&self) -> Option<Tokens> {
        self.reported
    }
}
