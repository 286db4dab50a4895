//! What a provider would have reported for the requests of a recording. Takes a segment; gives the usage that the rules of
//! the model's cache lead to, to be compared with the usage that was logged. Never reads the logged reads and writes of the
//! requests it predicts, but for what a [`Prediction`] names.

use trimtab_core::{count::Counter, prices::find_model, usage::Usage};

use super::{
    Track, Views,
    bill::{cache_lifetime, usage_of},
    ledger::{CacheLosses, follow_cache},
};
use crate::recording::Segment;

/// What a prediction may know of the log, beside the size of the unseen head, what the first request found in the cache and
/// for how long prefixes were kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prediction {
    /// Nothing more.
    Counted,
    /// How our counts compare with reported totals.
    Calibrated,
    /// Also where the cache had less or more than the rules say.
    CacheAsLogged,
}

/// Predicts the usage of every request of a segment as it was recorded; none where its model is not known.
pub fn predicted_usage(segment: &Segment, prediction: Prediction) -> Option<Vec<Usage>> {
    let name = segment.points.iter().find_map(|point| point.model.as_deref())?;
    let model = find_model(name).ok()?;
    let mut track = Track::new(segment, Counter::for_model(name));
    let losses = match prediction {
        Prediction::Counted | Prediction::Calibrated => CacheLosses::ByRulesAlone,
        Prediction::CacheAsLogged => CacheLosses::AsRecorded,
    };
    if prediction == Prediction::Counted {
        track.use_own_counts();
    }
    let keeping = cache_lifetime(&track, &model);
    let raw = Views::with_client_markers(vec![Vec::new(); track.requests.len()]);
    let ledger = follow_cache(&track, &raw, &model.cache, keeping, losses);
    Some(ledger.requests.iter().map(|line| usage_of(line, keeping)).collect())
}
