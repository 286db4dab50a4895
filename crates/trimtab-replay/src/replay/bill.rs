//! What the requests of a segment cost as input. Takes a track, its views and a model with its prices and cache rules; gives
//! the charge of every request. Never looks at the content: a cache knows blocks by identity and length alone.
//!
//! The ledger of tokens depends on the cache rules only; two models with the same rules share one.

use trimtab_core::{Tokens, prices::Model, session::CacheLifetime, usage::Usage};

use super::{
    Track, Views,
    cache::CacheUse,
    ledger::{CacheLosses, follow_cache},
};

/// What one request costs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct RequestCharge {
    /// All input tokens.
    pub(crate) tokens: Tokens,
    /// Of these, read from the cache.
    pub(crate) read: Tokens,
    /// Of these, written to the cache.
    pub(crate) written: Tokens,
    /// Input dollars.
    pub(crate) dollars: f64,
    /// Whether less was read than the request before left in a live cache: an edit broke the prefix.
    pub(crate) broke: bool,
}

/// What all requests of a segment cost.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct SegmentBill {
    pub(crate) charges: Vec<RequestCharge>,
}

impl SegmentBill {
    /// Returns the input dollars of all requests.
    pub(crate) fn total_dollars(&self) -> f64 {
        self.charges.iter().map(|charge| charge.dollars).sum()
    }

    /// Returns the tokens of all requests.
    pub(crate) fn tokens(&self) -> Tokens {
        self.charges.iter().map(|charge| charge.tokens).sum()
    }
}

/// Charges every request of a segment.
pub(crate) fn bill_segment(track: &Track<'_>, views: &Views, model: &Model) -> SegmentBill {
    let keeping = cache_lifetime(track, model);
    price_ledger(&follow_cache(track, views, &model.cache, keeping, CacheLosses::AsRecorded), model, keeping)
}

/// Prices a ledger that was made with the rules of the model's cache.
pub(crate) fn price_ledger(ledger: &[CacheUse], model: &Model, keeping: CacheLifetime) -> SegmentBill {
    let charge = |line: &CacheUse| RequestCharge {
        tokens: line.tokens,
        read: line.read,
        written: line.written,
        dollars: model.input_cost(usage_of(line, keeping)),
        broke: line.broke,
    };
    SegmentBill { charges: ledger.iter().map(charge).collect() }
}

/// Returns how long the client has its prefixes kept: for an hour if it was recorded so and the model sells that.
pub(crate) fn cache_lifetime(track: &Track<'_>, model: &Model) -> CacheLifetime {
    match (track.hour, model.prices.cache_write_1h) {
        (true, Some(_)) => CacheLifetime::Hour,
        (true | false, _) => CacheLifetime::Usual,
    }
}

/// Returns a line as a provider reports it.
pub(crate) fn usage_of(line: &CacheUse, keeping: CacheLifetime) -> Usage {
    Usage {
        input: line.uncached_tokens().0,
        cache_read: line.read.0,
        cache_write: line.written.0,
        cache_write_1h: match keeping {
            CacheLifetime::Hour => line.written.0,
            CacheLifetime::Usual => 0,
        },
        output: 0,
    }
}
