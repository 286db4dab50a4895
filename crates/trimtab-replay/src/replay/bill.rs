//! What the requests of a segment cost as input. Takes a track, its views and a model with its prices and cache rules; gives
//! the charge of every request. Never looks at the content: a cache knows blocks by identity and length alone.
//!
//! The ledger of tokens depends on the cache rules only; two models with the same rules share one.

use trimtab_core::{Tokens, prices::Model, session::Keeping, usage::Usage};

use super::{
    Track, Views,
    cache::Line,
    ledger::{Losses, ledger},
};

/// What one request costs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Charge {
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
pub(crate) struct Bill {
    pub(crate) charges: Vec<Charge>,
}

impl Bill {
    /// Returns the input dollars of all requests.
    pub(crate) fn dollars(&self) -> f64 {
        self.charges.iter().map(|charge| charge.dollars).sum()
    }

    /// Returns the tokens of all requests.
    pub(crate) fn tokens(&self) -> Tokens {
        self.charges.iter().map(|charge| charge.tokens).sum()
    }
}

/// Charges every request of a segment.
pub(crate) fn bill(track: &Track<'_>, views: &Views, model: &Model) -> Bill {
    let keeping = keeping(track, model);
    priced(&ledger(track, views, &model.cache, keeping, Losses::AsRecorded), model, keeping)
}

/// Prices a ledger that was made with the rules of the model's cache.
pub(crate) fn priced(ledger: &[Line], model: &Model, keeping: Keeping) -> Bill {
    let charge = |line: &Line| Charge {
        tokens: line.tokens,
        read: line.read,
        written: line.written,
        dollars: model.input_cost(usage(line, keeping)),
        broke: line.broke,
    };
    Bill { charges: ledger.iter().map(charge).collect() }
}

/// Returns how long the client has its prefixes kept: for an hour if it was recorded so and the model sells that.
pub(crate) fn keeping(track: &Track<'_>, model: &Model) -> Keeping {
    match (track.hour, model.prices.cache_write_1h) {
        (true, Some(_)) => Keeping::Hour,
        (true | false, _) => Keeping::Usual,
    }
}

/// Returns a line as a provider reports it.
pub(crate) fn usage(line: &Line, keeping: Keeping) -> Usage {
    Usage {
        input: line.plain().0,
        cache_read: line.read.0,
        cache_write: line.written.0,
        cache_write_1h: match keeping {
            Keeping::Hour => line.written.0,
            Keeping::Usual => 0,
        },
        output: 0,
    }
}
