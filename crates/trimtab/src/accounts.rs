//! The accounts of sessions that are kept: [`account_of_requests`] for a stored session, [`account_of_points`] for a recording. Both
//! enter every request in the library's [`SessionAccount`], as the proxy does while it runs.

use std::collections::HashMap;

use trimtab_core::{
    Model, SessionAccount, Tokens,
    account::{AccountedRequest, Lever, LeverSum},
    usage::Point,
};
use trimtab_store::RequestInfo;

use crate::{output::group_thousands, prices};

/// Enters the requests of one session and the pings after them, in the order in which they were made.
pub(crate) fn account_of_requests(requests: &[RequestInfo]) -> SessionAccount {
    let mut account = SessionAccount::default();
    price_requests(requests).iter().for_each(|alone| account.add_account(alone));
    account
}

/// Returns what each request of one session comes to alone, in the order in which they were made; an empty account where nothing was
/// reported.
pub(crate) fn price_requests(requests: &[RequestInfo]) -> Vec<SessionAccount> {
    // Requests of a session are nearly all of one model: looking it up goes past every row of the table.
    let mut models: HashMap<&str, Option<Model>> = HashMap::new();
    let mut account = SessionAccount::default();
    let mut all = Vec::with_capacity(requests.len());
    for request in requests {
        let Some(usage) = request.usage else {
            all.push(SessionAccount::default());
            continue;
        };
        let name = request.model.as_deref();
        let model =
            name.and_then(|name| models.entry(name).or_insert_with(|| model_named(Some(name))).as_ref());
        let entered = AccountedRequest {
            at: request.at,
            raw: Tokens(request.tokens_before),
            sent: Tokens(request.tokens_after),
            edited: request.edited.is_some(),
            marked: request.marked,
        };
        account.enter_request(model, entered, usage);
        if let Some(model) = model {
            request.pings.iter().for_each(|ping| account.enter_ping(model, ping.usage));
        }
        all.push(account.take_sums());
    }
    all
}

/// Tells whether dollars are known of what was entered.
pub(crate) fn has_dollars(account: &SessionAccount) -> bool {
    account.requests > account.requests_without_price
}

/// Enters the requests of a recording, which nobody changed.
pub(crate) fn account_of_points(points: &[Point]) -> SessionAccount {
    let mut account = SessionAccount::default();
    for point in points {
        let Some(usage) = point.usage else { continue };
        account.enter_usages(model_named(point.model.as_deref()).as_ref(), usage, usage);
    }
    account
}

/// Says what a session has cost, what it would have cost untouched, and what made the difference; nothing where no usage with a price
/// was reported.
pub(crate) fn describe_account(account: &SessionAccount) -> Option<String> {
    if !has_dollars(account) {
        return None;
    }
    let entry = |(lever, sum): (&Lever, &LeverSum)| format!("{} ${:.4}", lever.word(), sum.saved_dollars);
    let entries: Vec<String> = account.levers.iter().map(entry).collect();
    let pings = match account.pings {
        0 => String::new(),
        1 => format!("; 1 ping for ${:.4}", account.ping_dollars),
        pings => format!("; {} pings for ${:.4}", group_thousands(pings), account.ping_dollars),
    };
    let entries =
        if entries.is_empty() { String::new() } else { format!(" ({}{pings})", entries.join(", ")) };
    Some(format!(
        "${:.4} spent, about ${:.4} untouched: ${:.4} {}{entries}",
        account.paid_dollars,
        account.untouched_dollars,
        account.balance().abs(),
        if account.balance() < 0.0 { "lost" } else { "saved" },
    ))
}

fn model_named(name: Option<&str>) -> Option<Model> {
    prices::find_model(name?).ok()
}

#[cfg(test)]
mod tests {
    use trimtab_core::{ChainHash, Format, Millis, Usage};
    use trimtab_store::{RequestId, SessionId, StoredPing};

    use super::*;

    fn request(at: i64, before: u64, after: u64, edited: Option<u32>, usage: Option<Usage>) -> RequestInfo {
        RequestInfo {
            id: RequestId(1),
            session: SessionId(1),
            at: Millis(at),
            format: Format::Anthropic,
            model: Some("claude-opus-5".to_owned()),
            tokens_before: before,
            tokens_after: after,
            usage,
            pings: Vec::new(),
            tip: ChainHash([0; 16]),
            base: None,
            same_blocks: 0,
            edited,
            marked: false,
        }
    }

    #[test]
    fn a_stored_edit_that_broke_a_warm_cache_is_a_loss_and_what_was_lost_without_one_is_none() {
        let first =
            request(0, 100_000, 60_000, None, Some(Usage { cache_write: 60_000, ..Usage::default() }));
        let lost = Usage { cache_write: 60_000, ..Usage::default() };
        let second = |edited| request(1000, 100_000, 60_000, edited, Some(lost));
        let silent = request(2000, 100_000, 60_000, None, None);
        let account = account_of_requests(&[first.clone(), second(None), silent]);
        assert_eq!((account.requests, account.requests_dearer), (2, 0));
        assert!(account.balance() > 0.0);
        let account = account_of_requests(&[first, second(Some(3))]);
        assert_eq!(account.requests_dearer, 1);
        // 60,000 tokens written twice at 6.25 dollars a million; untouched, 100,000 written once and read once at 0.5.
        assert_eq!(
            describe_account(&account).as_deref(),
            Some("$0.7500 spent, about $0.6750 untouched: $0.0750 lost (hiding $-0.0750)")
        );
        assert_eq!(describe_account(&SessionAccount::default()), None);
    }

    #[test]
    fn stored_pings_are_paid_for_and_what_they_saved_is_theirs() {
        let first =
            request(0, 100_000, 100_000, None, Some(Usage { cache_write: 100_000, ..Usage::default() }));
        let warm = Usage { cache_read: 100_000, ..Usage::default() };
        let ping = StoredPing { at: Millis(280_000), usage: warm };
        let first = RequestInfo { pings: vec![ping], ..first };
        let account = account_of_requests(&[first, request(400_000, 100_000, 100_000, None, Some(warm))]);
        assert_eq!((account.requests, account.pings), (2, 1));
        // Written once at 6.25 dollars a million, pinged and read at 0.5; untouched, written twice.
        assert_eq!(
            describe_account(&account).as_deref(),
            Some(
                "$0.7250 spent, about $1.2500 untouched: $0.5250 saved (keep-alive $0.5250; 1 ping for $0.0500)"
            )
        );
    }

    #[test]
    fn every_edge_asks_the_same_price_beyond_a_cliff_too() {
        let model =
            trimtab_core::prices::models().into_iter().find(|model| model.cliff.is_some()).expect("a cliff");
        let above = model.cliff.map_or(0, |cliff| cliff.above.0);
        let usage = Usage { input: above, cache_read: 7, cache_write: 5, cache_write_1h: 2, output: 1000 };
        let expected = model.cost(usage);
        assert!(expected > model.cost(Usage { input: above - 12, ..usage }) * 1.2, "{expected}");
        let check = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
        };
        let point = Point { messages: 1, at: None, model: Some(model.name.clone()), usage: Some(usage) };
        check(account_of_points(&[point.clone(), point]).paid_dollars, 2.0 * expected);
        check(
            crate::summarize::summary_dollars(&model.name, &[usage, usage]).expect("a price"),
            2.0 * expected,
        );
    }
}
