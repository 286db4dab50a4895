//! What is known of a conversation's latest request. Takes one request after the other; gives their parse, counts, facts and
//! identities at the cost of what is new in each. A cache and nothing else: it may vanish at any time, and never changes an
//! output byte.

use std::sync::Arc;

use crate::{
    count::{CountMemo, Counter, Counts},
    facts::Facts,
    history::{Format, History},
    identity::{ChainHash, chain_after},
    plan::{PlanIndex, TextCache},
    prices::{Model, find_model},
    wire::{WireError, parse, parse_after, parse_as},
};

/// The state of one conversation that makes its next request cheap to fit.
#[derive(Debug, Default)]
pub struct WarmState {
    pub(crate) latest: Option<Arc<History>>,
    pub(crate) facts: Facts,
    pub(crate) counts: Counts,
    pub(crate) counter: Option<Counter>,
    pub(crate) chain: Vec<ChainHash>,
    pub(crate) index: PlanIndex,
    pub(crate) memo: CountMemo,
    pub(crate) made: TextCache,
    /// What the table of models says about the latest one asked for.
    model: Option<(String, Option<Model>)>,
}

impl WarmState {
    /// Reads a request, going on from the latest where it begins as that did.
    ///
    /// # Errors
    /// Says what is wrong where the bytes are not a request.
    pub fn read(
        &self,
        request: impl Into<Arc<Vec<u8>>>,
        format: Option<Format>,
    ) -> Result<Arc<History>, WireError> {
        let history = match (&self.latest, format) {
            (Some(latest), None) => parse_after(latest, request)?,
            (Some(latest), Some(format)) if latest.format() == format => parse_after(latest, request)?,
            (_, Some(format)) => parse_as(request, format)?,
            (None, None) => parse(request)?,
        };
        Ok(Arc::new(history))
    }

    /// Looks a model up; the same one is looked up once.
    pub(crate) fn find_model(&mut self, name: &str) -> Option<Model> {
        if self.model.as_ref().is_none_or(|(known, _)| known != name) {
            self.model = Some((name.to_owned(), find_model(name).ok()));
        }
        self.model.as_ref().and_then(|(_, model)| model.clone())
    }

    /// Goes on with a request that was [read](WarmState::read) here, and is counted as `model` counts: it is the latest now.
    pub fn follow_request(&mut self, history: &Arc<History>, model: &str) {
        let counter = Counter::for_model(model);
        let known = if self.latest.is_some() { history.reused_blocks() } else { 0 };
        if self.counter == Some(counter) && known > 0 {
            counter.request_after(&mut self.counts, history, &mut self.memo);
        } else {
            self.counts = counter.count_request(history, &mut self.memo);
        }
        self.counter = Some(counter);
        let naming = self.facts.naming_key();
        if known > 0 {
            self.facts.extend(history);
        } else {
            self.facts = crate::facts::facts(history);
        }
        chain_after(&mut self.chain, history, known);
        // Where files have other names than before, all rows are made again.
        let indexed = if self.facts.naming_key() == naming { known } else { 0 };
        self.index.extend(history, &self.facts, &self.counts, indexed);
        self.made.truncate(known);
        self.latest = Some(Arc::clone(history));
    }

    /// Returns the latest request.
    pub fn latest(&self) -> Option<&Arc<History>> {
        self.latest.as_ref()
    }

    /// Returns the identity of every block of the latest request.
    pub fn chain(&self) -> &[ChainHash] {
        &self.chain
    }
}
