//! What providers reported for the requests that are kept, as `stats` writes it. Takes the account of all sessions; gives the row of
//! the report. Never hides a loss: a saving below zero stays below zero.

use std::collections::BTreeMap;

use serde::Serialize;
use trimtab_core::{
    SessionAccount,
    account::{Lever, LeverSum},
};

/// Sums over requests.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct UsageTotals {
    /// Requests whose usage was reported.
    pub(super) requests: u64,
    /// Of these, how many are of a model whose prices are not known: they count as tokens, not as dollars.
    pub(super) requests_without_price: u64,
    /// Input that was neither read from nor written to a cache.
    pub(super) uncached: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
    pub(super) output: u64,
    pub(super) dollars_spent: f64,
    /// What the untouched conversations would have cost, by estimate.
    pub(super) dollars_untouched: f64,
    /// Input dollars saved by estimate; below zero where hiding cost more than it saved.
    pub(super) dollars_saved: f64,
    /// What each thing that trimtab does has saved.
    pub(super) levers: BTreeMap<Lever, LeverSum>,
    /// Requests of ours that kept a provider's cache alive in pauses, and what they cost: a part of what was spent.
    pub(super) pings: u64,
    pub(super) ping_dollars: f64,
    /// Requests that cost more than they would have untouched.
    pub(super) requests_dearer: u64,
}

impl From<&SessionAccount> for UsageTotals {
    fn from(account: &SessionAccount) -> UsageTotals {
        UsageTotals {
            requests: account.requests,
            requests_without_price: account.requests_without_price,
            uncached: account.usage.input,
            cache_read: account.usage.cache_read,
            cache_write: account.usage.cache_write,
            output: account.usage.output,
            dollars_spent: account.paid_dollars,
            dollars_untouched: account.untouched_dollars,
            dollars_saved: account.balance(),
            levers: account.levers.clone(),
            pings: account.pings,
            ping_dollars: account.ping_dollars,
            requests_dearer: account.requests_dearer,
        }
    }
}
