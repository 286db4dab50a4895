//! What the requests of a segment cost as input. Takes a track, its views and a model with its prices and cache rules; gives
//! the charge of every request. Never looks at the content: a cache knows blocks by identity and length alone.

use super::{Track, Views};
use crate::{count::Tokens, prices::Model};

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
pub(crate) fn bill(_track: &Track<'_>, _views: &Views, _model: &Model) -> Bill {
    Bill::default()
}
