//! What the requests of a segment cost as input. Takes a track, its views and a model with its prices and cache rules; gives
//! the charge of every request. Never looks at the content: a cache knows blocks by identity and length alone.
//!
//! The ledger of tokens depends on the cache rules only; two models with the same rules share one.

use trimtab_core::{
    Tokens,
    prices::{CacheLanding, CacheRules, Model},
    session::CacheLifetime,
    usage::Usage,
};

use super::{
    Track, Views,
    cache::CacheUse,
    ledger::{CacheLedger, CacheLosses, follow_cache},
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
    /// Tokens that the request before carried too and that were cached again because of that.
    pub(crate) rewritten: Tokens,
}

/// What all requests of a segment cost.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct SegmentBill {
    pub(crate) charges: Vec<RequestCharge>,
    /// The pings between requests: they are paid for and are no requests.
    pub(crate) pings: Vec<RequestCharge>,
}

impl SegmentBill {
    /// Returns the input dollars of all requests and pings.
    pub(crate) fn total_dollars(&self) -> f64 {
        self.charges.iter().map(|charge| charge.dollars).sum::<f64>() + self.ping_dollars()
    }

    /// Returns the input dollars of all pings.
    pub(crate) fn ping_dollars(&self) -> f64 {
        self.pings.iter().map(|charge| charge.dollars).sum()
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

/// Charges what is shown as if edits cost nothing: whatever the request before carried is read, as far as any cache of that
/// lifetime could still hold it, wherever reads may end and however short they are. Where a provider caches its answers, those
/// are read too.
///
/// Nobody who shows at least as much pays less: what is new must be written, and more than this cannot be read.
pub(crate) fn bill_freely(track: &Track<'_>, views: &Views, model: &Model) -> SegmentBill {
    let keeping = cache_lifetime(track, model);
    let ideal = CacheRules {
        landing: CacheLanding::AnyPrefix,
        minimum: Tokens::ZERO,
        step: Tokens(1),
        ..model.cache
    };
    let untouched = Views::with_client_markers(vec![Vec::new(); track.requests.len()]);
    let follow = |views, rules| follow_cache(track, views, rules, keeping, CacheLosses::AsRecorded).requests;
    let raw = follow(&untouched, &ideal);
    let shown = follow(views, &ideal);
    let answers = match model.cache.landing {
        CacheLanding::UnitEnds => {
            let kept = CacheRules { landing: CacheLanding::UnitEnds, ..ideal };
            let kept = follow(&untouched, &kept);
            kept.iter().zip(&raw).map(|(kept, raw)| kept.read - raw.read).collect()
        }
        _ => vec![Tokens::ZERO; raw.len()],
    };
    let charges = raw.iter().zip(&shown).zip(answers).map(|((raw, shown), answer)| {
        let read = (raw.read.min(shown.carried) + answer).min(shown.tokens);
        let line = CacheUse { read, written: shown.tokens - read, ..*shown };
        let cached = model.input_cost(usage_of(&line, keeping));
        // What is too short for the cache costs the plain price, which may be less than writing.
        let plain = CacheUse { read: Tokens::ZERO, written: Tokens::ZERO, ..line };
        let plain = model.input_cost(usage_of(&plain, keeping));
        let dollars = if shown.tokens < model.cache.minimum { cached.min(plain) } else { cached };
        let CacheUse { tokens, written, .. } = line;
        RequestCharge { tokens, read, written, dollars, broke: false, rewritten: Tokens::ZERO }
    });
    SegmentBill { charges: charges.collect(), pings: Vec::new() }
}

/// Returns the dollars of one more request that brings a block back: its whole input is read, the block is written and
/// then read by the requests that follow, and the call is written by the model.
pub(crate) fn refetch_dollars(model: &Model, input: Tokens, block: Tokens) -> f64 {
    let prices = &model.prices;
    let dear = model.cliff.filter(|cliff| input > cliff.above);
    let factor = dear.map_or(1.0, |cliff| cliff.input_factor);
    let (input, block) = (input.to_float(), block.to_float());
    let read = prices.cache_read * (input + REQUESTS_THAT_READ_IT * block);
    (factor * (read + prices.cache_write * block) + prices.output * TOKENS_OF_A_CALL) / 1e6
}

/// What bringing something back takes beside its tokens, of output: a call with its arguments.
const TOKENS_OF_A_CALL: f64 = 150.0;

/// How many further requests read what was brought back.
const REQUESTS_THAT_READ_IT: f64 = 10.0;

/// Prices a ledger that was made with the rules of the model's cache.
pub(crate) fn price_ledger(ledger: &CacheLedger, model: &Model, keeping: CacheLifetime) -> SegmentBill {
    let charge = |line: &CacheUse| RequestCharge {
        tokens: line.tokens,
        read: line.read,
        written: line.written,
        dollars: model.input_cost(usage_of(line, keeping)),
        broke: line.broke,
        rewritten: if line.broke { line.carried - line.read } else { Tokens::ZERO },
    };
    let charges = |lines: &[CacheUse]| lines.iter().map(charge).collect();
    SegmentBill { charges: charges(&ledger.requests), pings: charges(&ledger.pings) }
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
