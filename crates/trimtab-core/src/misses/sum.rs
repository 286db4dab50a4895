//! Many requests in one sum: [`MissSummary`] says what was paid in all, and of that what was paid again, by reason.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{CacheMiss, MissReason};
use crate::{prices::Model, units::Tokens, usage::Usage};

/// What requests paid, and what of it they paid again.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MissSummary {
    /// Requests whose usage was reported.
    pub requests: u64,
    /// Of these, how many read less than they could have.
    pub requests_with_misses: u64,
    /// Requests of models whose prices are not known: they count as tokens, not as dollars.
    pub requests_without_price: u64,
    /// All input.
    pub input: Tokens,
    /// What was cached before and paid for again.
    pub again: Tokens,
    /// What of it has no reason.
    pub unexplained: Tokens,
    /// The whole bill, output included, in US dollars.
    pub paid_dollars: f64,
    /// What of it was paid for caching again, beyond reading it.
    pub again_dollars: f64,
    /// The same by reason, under the reason's name.
    pub reasons: BTreeMap<&'static str, ReasonSum>,
}

/// What was paid again for one reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ReasonSum {
    /// How many requests.
    pub requests: u64,
    /// How many tokens.
    pub again: Tokens,
    /// How many US dollars.
    pub again_dollars: f64,
}

impl MissSummary {
    /// Adds a request.
    pub fn add_request(&mut self, model: Option<&Model>, usage: Usage, miss: Option<&CacheMiss>) {
        self.requests += 1;
        self.input += Tokens(usage.total_input());
        match model {
            Some(model) => self.paid_dollars += model.cost(usage),
            None => self.requests_without_price += 1,
        }
        let Some(miss) = miss else { return };
        self.requests_with_misses += 1;
        self.again += miss.again;
        let dollars = miss.again_dollars.unwrap_or_default();
        self.again_dollars += dollars;
        if matches!(miss.reason, MissReason::Unknown(_)) {
            self.unexplained += miss.again;
        }
        let sum = self.reasons.entry(miss.reason.name()).or_default();
        *sum = ReasonSum {
            requests: sum.requests + 1,
            again: sum.again + miss.again,
            again_dollars: sum.again_dollars + dollars,
        };
    }

    /// Adds the sum of other requests.
    pub fn add_summary(&mut self, other: &MissSummary) {
        self.requests += other.requests;
        self.requests_with_misses += other.requests_with_misses;
        self.requests_without_price += other.requests_without_price;
        self.input += other.input;
        self.again += other.again;
        self.unexplained += other.unexplained;
        self.paid_dollars += other.paid_dollars;
        self.again_dollars += other.again_dollars;
        for (name, more) in &other.reasons {
            let sum = self.reasons.entry(*name).or_default();
            *sum = ReasonSum {
                requests: sum.requests + more.requests,
                again: sum.again + more.again,
                again_dollars: sum.again_dollars + more.again_dollars,
            };
        }
    }

    /// Returns the reasons, those that cost the most tokens first.
    pub fn reasons_by_tokens(&self) -> Vec<(&'static str, ReasonSum)> {
        let mut reasons: Vec<_> = self.reasons.iter().map(|(name, sum)| (*name, *sum)).collect();
        reasons.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.again));
        reasons
    }
}
