//! Accounts with round prices, so that every figure can be checked by hand.

use super::*;
use crate::prices::{Prices, find_model};

/// A model that costs 10 dollars a million to read in, 1 from the cache, 12.5 into it (20 for an hour), 50 to write; its cache is kept
/// for five minutes.
fn model() -> Model {
    let prices =
        Prices { input: 10.0, cache_read: 1.0, cache_write: 12.5, cache_write_1h: Some(20.0), output: 50.0 };
    Model { prices, cliff: None, ..find_model("claude-opus-5").expect("a model of the table") }
}

fn request(at: i64, raw: u64, sent: u64) -> AccountedRequest {
    AccountedRequest { at: Millis(at), raw: Tokens(raw), sent: Tokens(sent), edited: false, marked: false }
}

fn edited(at: i64, raw: u64, sent: u64) -> AccountedRequest {
    AccountedRequest { edited: true, ..request(at, raw, sent) }
}

/// Enters requests; compares what was paid, what was banked and how many cost more than untouched.
#[track_caller]
fn check(requests: &[(AccountedRequest, Usage)], paid: f64, banked: f64, dearer: u64) -> SessionAccount {
    let mut account = SessionAccount::default();
    for (request, usage) in requests {
        account.enter_request(Some(&model()), *request, *usage);
    }
    assert!((account.paid_dollars - paid).abs() < 1e-9, "paid: {account:?}");
    assert!((account.balance() - banked).abs() < 1e-9, "banked {}: {account:?}", account.balance());
    assert_eq!(account.requests_dearer, dearer, "{account:?}");
    let entries: f64 = account.levers.values().map(|sum| sum.saved_dollars).sum();
    assert!((entries - account.balance()).abs() < 1e-9, "entries add up to what is banked: {account:?}");
    account
}

#[test]
fn markers_of_ours_are_repaid_by_the_first_read() {
    let marked = |at: i64, raw: u64, sent: u64| AccountedRequest { marked: true, ..request(at, raw, sent) };
    let written = Usage { cache_write: 100_000, ..Usage::default() };
    // Written at 1.25 dollars instead of read in at 1: a quarter is paid ahead.
    let account = check(&[(marked(0, 100_000, 100_000), written)], 1.25, -0.25, 1);
    assert_eq!(account.levers.keys().copied().collect::<Vec<_>>(), [Lever::Markers]);
    // 100,000 tokens read at .1 and 10,000 written at .125, instead of 1.1.
    let read = Usage { cache_read: 100_000, cache_write: 10_000, ..Usage::default() };
    let both = [(marked(0, 100_000, 100_000), written), (marked(1000, 110_000, 110_000), read)];
    check(&both, 1.475, 0.625, 1);
    // What is hidden on top is saved at the plain price.
    let hidden = [(marked(0, 140_000, 100_000), written)];
    let account = check(&hidden, 1.25, 0.15, 0);
    let sums: Vec<f64> = account.levers.values().map(|sum| sum.saved_dollars).collect();
    assert!((sums[0] - 0.4).abs() < 1e-9 && (sums[1] + 0.25).abs() < 1e-9, "{sums:?}");
}

#[test]
fn markers_save_nothing_where_a_provider_caches_by_itself() {
    let usage = Usage { cache_read: 50_000, input: 50_000, ..Usage::default() };
    let marked = AccountedRequest { marked: true, ..request(0, 100_000, 100_000) };
    let mut account = SessionAccount::default();
    account.enter_request(Some(&find_model("gpt-5").expect("a model")), marked, usage);
    assert!(account.levers.is_empty(), "{account:?}");
}

#[test]
fn requests_are_counted_by_whether_the_cache_lived_until_them() {
    let usage = Usage { cache_write: 1000, ..Usage::default() };
    let hour = Usage { cache_write_1h: 1000, ..usage };
    let mut account = SessionAccount::default();
    assert_eq!(account.returns_until(Millis(5)), ReturnCounts::default());
    for (at, usage) in [(0, usage), (299_999, usage), (600_000, hour), (4_199_999, hour)] {
        account.enter_request(Some(&model()), request(at, 1000, 1000), usage);
    }
    assert_eq!(account.returns_until(Millis(4_200_000)), ReturnCounts { in_time: 3, late: 1 });
    assert_eq!(account.returns_until(Millis(9_000_000)), ReturnCounts { in_time: 2, late: 2 });
    account.take_sums();
    assert_eq!(account.returns_until(Millis(4_200_000)), ReturnCounts { in_time: 3, late: 1 });
}

const FIRST: Usage = Usage { input: 0, cache_read: 0, cache_write: 95_000, cache_write_1h: 0, output: 0 };

#[test]
fn every_kind_of_token_has_its_price() {
    let usage = Usage {
        input: 100_000,
        cache_read: 1_000_000,
        cache_write: 200_000,
        cache_write_1h: 100_000,
        output: 10_000,
    };
    check(&[(request(0, 7, 7), usage)], 1.0 + 1.0 + 1.25 + 2.0 + 0.5, 0.0, 0);
}

#[test]
fn an_untouched_request_saves_nothing_whatever_it_costs() {
    let usage = Usage { input: 100_000, output: 10_000, ..Usage::default() };
    let account = check(&[(request(0, 100_000, 100_000), usage)], 1.5, 0.0, 0);
    assert!(account.levers.is_empty());
}

#[test]
fn what_is_not_cached_anywhere_is_saved_at_full_price() {
    let usage = Usage { input: 60_000, ..Usage::default() };
    check(&[(request(0, 100_000, 60_000), usage)], 0.6, 0.4, 0);
}

#[test]
fn a_shorter_request_saves_what_would_have_been_written() {
    let usage = Usage { cache_write: 60_000, ..Usage::default() };
    let account = check(&[(request(0, 100_000, 60_000), usage)], 0.75, 0.5, 0);
    assert_eq!(account.levers.get(&Lever::Hiding).map(|sum| sum.requests), Some(1));
    // For an hour, 40,000 tokens cost 0.8.
    let hour = Usage { cache_write_1h: 60_000, ..usage };
    check(&[(request(0, 100_000, 60_000), hour)], 1.2, 0.8, 0);
}

#[test]
fn an_edit_that_broke_the_cache_is_a_loss() {
    let second = Usage { cache_read: 10_000, cache_write: 50_000, ..Usage::default() };
    // Untouched: 95,000 read and 5,000 written, 0.1575; sent: 10,000 read and 50,000 written, 0.635.
    let warm = [(request(0, 95_000, 95_000), FIRST), (edited(1000, 100_000, 60_000), second)];
    check(&warm, 1.1875 + 0.635, 0.1575 - 0.635, 1);
    // After the lifetime nothing would have been in the cache: 100,000 written, 1.25.
    let cold = [warm[0], (edited(300_000, 100_000, 60_000), second)];
    check(&cold, 1.1875 + 0.635, 1.25 - 0.635, 0);
}

#[test]
fn what_was_written_for_an_hour_is_there_after_ten_minutes() {
    let first = Usage { cache_write_1h: 95_000, ..FIRST };
    let second =
        Usage { cache_read: 10_000, cache_write: 50_000, cache_write_1h: 50_000, ..Usage::default() };
    // Untouched: 95,000 read and 5,000 written for an hour, 0.195; sent: 0.01 and 1.
    let requests = [(request(0, 95_000, 95_000), first), (edited(600_000, 100_000, 60_000), second)];
    check(&requests, 1.9 + 1.01, 0.195 - 1.01, 1);
}

#[test]
fn what_a_client_or_a_provider_lost_would_have_been_lost_untouched_too() {
    let hidden = Usage { cache_write: 60_000, ..Usage::default() };
    // Nothing of ours changed, and of the 60,000 tokens left nothing was found: untouched, 100,000 are written again.
    let lost = Usage { cache_write: 60_000, ..Usage::default() };
    let requests = [(request(0, 100_000, 60_000), hidden), (request(1000, 100_000, 60_000), lost)];
    check(&requests, 1.5, 0.5 + 0.5, 0);
    // Half of it was found: untouched, 50,000 are read and 50,000 written, 0.675; sent: 0.405.
    let half = Usage { cache_read: 30_000, cache_write: 30_000, ..Usage::default() };
    let requests = [(request(0, 100_000, 60_000), hidden), (request(1000, 100_000, 60_000), half)];
    check(&requests, 0.75 + 0.405, 0.5 + 0.27, 0);
}

#[test]
fn what_has_no_price_is_counted_as_such_and_accounts_add_up() {
    let usage = Usage { input: 5, cache_read: 7, output: 3, ..Usage::default() };
    let mut account = SessionAccount::default();
    assert!(account.enter_request(None, request(0, 12, 8), usage).abs() < f64::EPSILON);
    let other =
        check(&[(request(0, 100_000, 60_000), Usage { input: 60_000, ..Usage::default() })], 0.6, 0.4, 0);
    account.add_account(&other);
    account.add_account(&other);
    assert_eq!((account.requests, account.requests_without_price), (3, 1));
    assert_eq!((account.usage.total_input(), account.usage.output), (120_012, 3));
    assert!((account.balance() - 0.8).abs() < 1e-9 && (account.paid_dollars - 1.2).abs() < 1e-9);
}

#[test]
fn a_ping_is_paid_for_and_what_the_next_request_saved_by_it_is_its_own() {
    let mut account = SessionAccount::default();
    account.enter_request(
        Some(&model()),
        request(0, 100_000, 100_000),
        Usage { cache_write: 100_000, ..FIRST },
    );
    let warm = Usage { cache_read: 100_000, ..Usage::default() };
    account.enter_ping(&model(), warm);
    // Within the lifetime, the cache would have been there anyway: the ping was for nothing.
    let mut soon = account.clone();
    soon.enter_request(Some(&model()), request(299_999, 100_000, 100_000), warm);
    assert!((soon.balance() + 0.1).abs() < 1e-9, "{soon:?}");
    // After it, 100,000 tokens would have been written again: 1.25 instead of 0.1 for reading them, and 0.1 for the ping.
    account.enter_request(Some(&model()), request(300_000, 100_000, 100_000), warm);
    assert!((account.balance() - (1.25 - 0.1 - 0.1)).abs() < 1e-9, "{account:?}");
    let sum = account.levers.get(&Lever::KeepAlive).expect("an entry");
    assert_eq!((sum.requests, account.pings, account.requests, account.levers.len()), (1, 1, 2, 1));
    assert!(
        (sum.saved_dollars - account.balance()).abs() < 1e-9 && (account.ping_dollars - 0.1).abs() < 1e-9
    );
}

#[test]
fn pings_and_hiding_each_have_their_part_of_what_was_saved() {
    let mut account = SessionAccount::default();
    account.enter_request(
        Some(&model()),
        request(0, 100_000, 60_000),
        Usage { cache_write: 60_000, ..Usage::default() },
    );
    account.enter_ping(&model(), Usage { cache_read: 60_000, ..Usage::default() });
    let warm = Usage { cache_read: 60_000, cache_write: 6_000, ..Usage::default() };
    account.enter_request(Some(&model()), request(400_000, 110_000, 66_000), warm);
    // Pings: 60,000 tokens read instead of written, 0.69, less 0.06. Hiding: 40,000 and then 44,000 tokens not written, 0.5 and 0.55.
    let saved = |lever| account.levers.get(&lever).map_or(0.0, |sum| sum.saved_dollars);
    assert!((saved(Lever::KeepAlive) - (0.69 - 0.06)).abs() < 1e-9, "{account:?}");
    assert!((saved(Lever::Hiding) - (0.5 + 0.55)).abs() < 1e-9, "{account:?}");
    assert!((account.balance() - saved(Lever::KeepAlive) - saved(Lever::Hiding)).abs() < 1e-9);
}

#[test]
fn replay_enters_pings_in_the_same_way() {
    let mut account = SessionAccount::default();
    let written = Usage { cache_write: 100_000, ..Usage::default() };
    let warm = Usage { cache_read: 100_000, ..Usage::default() };
    account.enter_usages(Some(&model()), written, written);
    account.enter_ping(&model(), warm);
    account.enter_usages(Some(&model()), warm, written);
    assert!((account.balance() - (1.25 - 0.1 - 0.1)).abs() < 1e-9, "{account:?}");
    assert_eq!(account.levers.keys().collect::<Vec<_>>(), [&Lever::KeepAlive]);
}
