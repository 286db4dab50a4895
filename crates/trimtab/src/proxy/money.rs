//! What requests cost. Takes the usage that a provider reported, prices, and what the request would have been untouched;
//! gives dollars spent and dollars saved. Never hides a loss: a saving below zero stays below zero.

use trimtab_core::{Model, Tokens, Usage};

/// What a request would have been without us.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct UntouchedSizes {
    /// All of it, as counted here.
    pub(crate) raw: Tokens,
    /// What was sent instead, as counted here.
    pub(crate) sent: Tokens,
    /// What the provider's cache would have contained of it: the request before, if that was not long ago.
    pub(crate) known: Tokens,
}

/// Returns the dollars that the reported usage costs.
pub(crate) fn dollars_spent(model: &Model, usage: Usage) -> f64 {
    model.cost(usage)
}

/// Returns the dollars of input that were saved, or lost where the figure is below zero.
///
/// Our counts are corrected by what the provider counted for the same request. An untouched request would have been read
/// from the cache as far as the request before it went, where the provider reports that it caches at all.
pub(crate) fn dollars_saved(model: &Model, usage: Usage, untouched: UntouchedSizes) -> f64 {
    let correction =
        if untouched.sent.0 == 0 { 1.0 } else { float(usage.total_input()) / float(untouched.sent.0) };
    let raw = untouched.raw.scale(correction).0;
    let known = untouched.known.scale(correction).0.min(raw);
    let written = usage.cache_write > 0;
    let supposed = if usage.cache_read == 0 && !written {
        Usage { input: raw, ..Usage::default() }
    } else if written {
        Usage { cache_read: known, cache_write: raw - known, ..Usage::default() }
    } else {
        Usage { cache_read: known, input: raw - known, ..Usage::default() }
    };
    model.input_cost(supposed) - model.input_cost(usage)
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "no bill comes near 2^52 tokens")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

/// Returns a count that is kept as a sum, with its thousands apart.
pub(crate) fn group_count(count: f64) -> String {
    crate::output::group_thousands(Tokens(1).scale(count).0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_core::prices::Prices;

    fn model() -> Model {
        let prices = Prices {
            input: 10.0,
            cache_read: 1.0,
            cache_write: 12.5,
            cache_write_1h: Some(20.0),
            output: 50.0,
        };
        Model {
            name: "m".to_owned(),
            provider: "p".to_owned(),
            window: Tokens(200_000),
            max_input: Tokens(200_000),
            max_output: None,
            prices,
            cache: trimtab_core::prices::CacheRules::for_model("", ""),
            cliff: None,
        }
    }

    fn check(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        let usage = Usage {
            input: 100_000,
            cache_read: 1_000_000,
            cache_write: 200_000,
            cache_write_1h: 100_000,
            output: 10_000,
        };
        check(dollars_spent(&model(), usage), 1.0 + 1.0 + 1.25 + 2.0 + 0.5);
    }

    #[test]
    fn every_edge_asks_the_same_price_beyond_a_cliff_too() {
        let model =
            trimtab_core::prices::models().into_iter().find(|model| model.cliff.is_some()).expect("a cliff");
        let above = model.cliff.map_or(0, |cliff| cliff.above.0);
        let usage = Usage { input: above, cache_read: 7, cache_write: 5, cache_write_1h: 2, output: 1000 };
        let expected = model.cost(usage);
        assert!(expected > model.cost(Usage { input: above - 12, ..usage }) * 1.2, "{expected}");
        let point = trimtab_core::Point {
            messages: 1,
            at: None,
            model: Some(model.name.clone()),
            usage: Some(usage),
        };
        check(dollars_spent(&model, usage), expected);
        check(crate::settings::dollars_spent(&[point.clone(), point]), 2.0 * expected);
        check(
            crate::summarize::summary_dollars(&model.name, &[usage, usage]).expect("a price"),
            2.0 * expected,
        );
    }

    #[test]
    fn what_is_not_cached_anywhere_is_saved_at_full_price() {
        let usage = Usage { input: 60_000, ..Usage::default() };
        let untouched = UntouchedSizes { raw: Tokens(100_000), sent: Tokens(60_000), known: Tokens(90_000) };
        check(dollars_saved(&model(), usage, untouched), 0.4);
    }

    #[test]
    fn an_edit_that_breaks_the_cache_shows_as_a_loss() {
        let usage = Usage { cache_read: 10_000, cache_write: 50_000, ..Usage::default() };
        let untouched = UntouchedSizes { raw: Tokens(100_000), sent: Tokens(60_000), known: Tokens(95_000) };
        // Untouched: 95,000 read and 5,000 written, 0.1575; sent: 10,000 read and 50,000 written, 0.635.
        check(dollars_saved(&model(), usage, untouched), 0.1575 - 0.635);
    }
}
