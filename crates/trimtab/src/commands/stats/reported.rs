//! What providers reported for the requests that are kept. Takes requests with their usage and times; gives tokens by kind and
//! dollars spent and saved. Never hides a loss: a saving below zero stays below zero.

use serde::Serialize;
use trimtab_core::{Model, Tokens, Usage};
use trimtab_store::RequestInfo;

use crate::{
    prices,
    proxy::money::{self, UntouchedSizes},
};

/// How long a cache lasts that was written for an hour.
const HOUR_MS: i64 = 60 * 60 * 1000;

/// Sums over requests.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub(crate) struct UsageTotals {
    /// Requests whose usage was reported.
    pub(crate) requests: u64,
    /// Of these, how many are of a model whose prices are not known: they count as tokens, not as dollars.
    pub(crate) requests_without_price: u64,
    /// Input that was neither read from nor written to a cache.
    pub(crate) uncached: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    pub(crate) output: u64,
    pub(crate) dollars_spent: f64,
    /// Input dollars saved by estimate; below zero where hiding cost more than it saved.
    pub(crate) dollars_saved: f64,
    /// Requests that cost more than they would have untouched.
    pub(crate) requests_dearer: u64,
}

impl UsageTotals {
    pub(crate) fn total_input(&self) -> u64 {
        self.uncached + self.cache_read + self.cache_write
    }

    /// Adds the requests of one session, in the order in which they were made.
    pub(crate) fn add_session(&mut self, requests: &[RequestInfo]) {
        price_requests(requests).iter().for_each(|priced| self.add_request(priced));
    }

    /// Adds one request.
    pub(crate) fn add_request(&mut self, request: &PricedRequest) {
        let Some(usage) = request.usage else { return };
        self.count_usage(usage);
        let Some(dollars) = request.dollars else {
            self.requests_without_price += 1;
            return;
        };
        self.dollars_spent += dollars.spent;
        self.dollars_saved += dollars.saved;
        self.requests_dearer += u64::from(dollars.saved < 0.0);
    }

    /// Adds other sums.
    pub(crate) fn add_totals(&mut self, other: &UsageTotals) {
        self.requests += other.requests;
        self.requests_without_price += other.requests_without_price;
        self.uncached += other.uncached;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.output += other.output;
        self.dollars_spent += other.dollars_spent;
        self.dollars_saved += other.dollars_saved;
        self.requests_dearer += other.requests_dearer;
    }

    fn count_usage(&mut self, usage: Usage) {
        self.requests += 1;
        self.uncached += usage.input;
        self.cache_read += usage.cache_read;
        self.cache_write += usage.cache_write;
        self.output += usage.output;
    }
}

/// What was reported for a request, and what it cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PricedRequest {
    /// None where the provider reported nothing.
    pub(crate) usage: Option<Usage>,
    /// None where nothing was reported, or the model's prices are not known.
    pub(crate) dollars: Option<RequestDollars>,
}

/// What a request cost, and what it would have cost more untouched: below zero where hiding cost more than it saved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RequestDollars {
    pub(crate) spent: f64,
    pub(crate) saved: f64,
}

/// Prices the requests of one session, in the order in which they were made.
pub(crate) fn price_requests(requests: &[RequestInfo]) -> Vec<PricedRequest> {
    price_with(requests, |name| prices::find_model(name).ok())
}

fn price_with(requests: &[RequestInfo], priced: impl Fn(&str) -> Option<Model>) -> Vec<PricedRequest> {
    // Requests of a session are nearly all of one model: looking it up goes past every row of the table.
    let mut models: Vec<(&str, Option<Model>)> = Vec::new();
    let before = std::iter::once(None).chain(requests.iter().map(Some));
    let mut all = Vec::with_capacity(requests.len());
    for (before, request) in before.zip(requests) {
        let mut dollars = None;
        if let (Some(usage), Some(name)) = (request.usage, request.model.as_deref()) {
            if models.iter().all(|(known, _)| *known != name) {
                models.push((name, priced(name)));
            }
            let model = models.iter().find(|(known, _)| *known == name).and_then(|(_, model)| model.as_ref());
            dollars = model.map(|model| RequestDollars {
                spent: money::dollars_spent(model, usage),
                saved: dollars_saved(model, usage, request, before),
            });
        }
        all.push(PricedRequest { usage: request.usage, dollars });
    }
    all
}

/// Returns how long a provider's cache holds what a request left there.
pub(crate) fn cache_lifetime_ms(model: &Model, usage: Option<Usage>) -> i64 {
    if usage.is_some_and(|usage| usage.cache_write_1h > 0) { HOUR_MS } else { model.cache.lifetime_ms }
}

/// Returns the dollars saved by a request. Untouched, it would have found the request before it in the cache.
fn dollars_saved(model: &Model, usage: Usage, request: &RequestInfo, before: Option<&RequestInfo>) -> f64 {
    if request.tokens_before == request.tokens_after {
        return 0.0;
    }
    let lifetime_ms = cache_lifetime_ms(model, Some(usage));
    let recent = before.filter(|before| request.at.0 - before.at.0 < lifetime_ms);
    let known = recent.map_or(0, |before| before.tokens_before).min(request.tokens_before);
    let untouched = UntouchedSizes {
        raw: Tokens(request.tokens_before),
        sent: Tokens(request.tokens_after),
        known: Tokens(known),
    };
    money::dollars_saved(model, usage, untouched)
}

#[cfg(test)]
mod tests {
    use trimtab_core::{
        ChainHash, Format, Millis,
        prices::{CacheRules, Prices},
    };
    use trimtab_store::{RequestId, SessionId};

    use super::*;

    /// A request of a model that costs 10 dollars a million to read in, 1 from the cache, 12.5 into it, 50 to write.
    fn request(at: i64, before: u64, after: u64, usage: Option<Usage>) -> RequestInfo {
        RequestInfo {
            id: RequestId(1),
            session: SessionId(1),
            at: Millis(at),
            format: Format::Anthropic,
            model: Some("m".to_owned()),
            tokens_before: before,
            tokens_after: after,
            usage,
            tip: ChainHash([0; 16]),
        }
    }

    fn model(name: &str) -> Option<Model> {
        let prices =
            Prices { input: 10.0, cache_read: 1.0, cache_write: 12.5, cache_write_1h: None, output: 50.0 };
        (name == "m").then(|| Model {
            name: name.to_owned(),
            provider: "p".to_owned(),
            window: Tokens(200_000),
            max_input: Tokens(200_000),
            max_output: None,
            prices,
            cache: CacheRules { lifetime_ms: 300_000, ..CacheRules::for_model("", "") },
            cliff: None,
        })
    }

    fn check(requests: &[RequestInfo], spent: f64, saved: f64, dearer: u64) -> UsageTotals {
        let mut reported = UsageTotals::default();
        price_with(requests, model).iter().for_each(|priced| reported.add_request(priced));
        assert!((reported.dollars_spent - spent).abs() < 1e-9, "{reported:?}");
        assert!((reported.dollars_saved - saved).abs() < 1e-9, "{reported:?}");
        assert_eq!(reported.requests_dearer, dearer, "{reported:?}");
        reported
    }

    #[test]
    fn an_untouched_request_saves_nothing_whatever_it_costs() {
        let usage = Usage { input: 100_000, output: 10_000, ..Usage::default() };
        check(&[request(0, 100_000, 100_000, Some(usage))], 1.5, 0.0, 0);
    }

    #[test]
    fn a_shorter_request_saves_what_would_have_been_read_in() {
        let usage = Usage { cache_write: 60_000, ..Usage::default() };
        check(&[request(0, 100_000, 60_000, Some(usage))], 0.75, 0.5, 0);
    }

    #[test]
    fn an_edit_that_broke_the_cache_is_a_loss() {
        let first = Usage { cache_write: 95_000, ..Usage::default() };
        let second = Usage { cache_read: 10_000, cache_write: 50_000, ..Usage::default() };
        let requests =
            [request(0, 95_000, 95_000, Some(first)), request(1000, 100_000, 60_000, Some(second))];
        check(&requests, 1.1875 + 0.635, 0.1575 - 0.635, 1);
        // After a long pause nothing would have been in the cache.
        let later = [requests[0].clone(), request(400_000, 100_000, 60_000, Some(second))];
        check(&later, 1.1875 + 0.635, 1.25 - 0.635, 0);
    }

    #[test]
    fn what_has_no_price_or_no_report_is_counted_as_such() {
        let usage = Usage { input: 5, cache_read: 7, output: 3, ..Usage::default() };
        let unknown = RequestInfo { model: None, ..request(0, 12, 12, Some(usage)) };
        let reported = check(&[unknown, request(1, 12, 12, None)], 0.0, 0.0, 0);
        assert_eq!((reported.requests, reported.requests_without_price), (1, 1));
        assert_eq!((reported.total_input(), reported.output), (12, 3));
    }
}
