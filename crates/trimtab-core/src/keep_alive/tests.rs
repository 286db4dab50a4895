//! The rule with round prices and a small table, so that every figure can be checked by hand.

use super::*;
use crate::prices::{Prices, find_model};

/// 10 dollars a million to read in, 1 from the cache, 12.5 into it; kept for five minutes.
fn model() -> Model {
    let prices =
        Prices { input: 10.0, cache_read: 1.0, cache_write: 12.5, cache_write_1h: Some(20.0), output: 50.0 };
    Model { prices, cliff: None, ..find_model("claude-opus-5").expect("a model of the table") }
}

/// Of pauses that last 280 seconds or longer a fifth is over before 580 seconds, and after that nobody comes back.
const ONE_PING: &str = "4\t1\n5\t1\n9\t0.8\n10\t0.8";

fn usage() -> Usage {
    Usage { cache_read: 900_000, cache_write: 100_000, ..Usage::default() }
}

#[track_caller]
fn check(tsv: &str, change: impl FnOnce(&mut IdleSession<'_>)) -> PingPlan {
    let model = model();
    let mut idle = IdleSession {
        model: &model,
        last_request: Millis(1_000_000),
        last_use: Millis(1_000_000),
        usage: usage(),
        lifetime_ms: 300_000,
        requests: 20,
        paid_dollars: 10.0,
        untouched_dollars: 20.0,
        agent: AgentState::PerhapsRunning,
        ping_output: 1,
        dollars_left: 5.0,
    };
    change(&mut idle);
    plan_ping_with(&idle, &PauseTable::read(tsv).expect("a table"))
}

#[test]
fn a_ping_is_sent_shortly_before_the_cache_expires_where_enough_come_back() {
    // 1 dollar and one token of output; a fifth of 11.5 dollars saved.
    let expected = PingPlan::At { at: Millis(1_280_000), dollars: 1.000_05 };
    assert_eq!(check(ONE_PING, |_| ()), expected);
}

#[test]
fn after_it_the_rest_of_the_pauses_is_too_long() {
    let plan = check(ONE_PING, |idle| idle.last_use = Millis(1_280_000));
    let PingPlan::Stop(reason @ NoPingReason::RarelyContinued { chance, needed }) = plan else {
        panic!("{plan:?}");
    };
    assert!(chance.abs() < 1e-9 && (needed - 1.000_05 / 11.5).abs() < 1e-9, "{chance} {needed}");
    assert_eq!(reason.to_string(), "it is continued in 0.0 % of such pauses, and a ping pays from 8.7 % on");
}

#[test]
fn a_ping_that_does_not_pay_by_itself_is_sent_where_the_next_one_makes_up_for_it() {
    // Nobody comes back in the first interval, and half do in the second: 0.5 x 11.5 - 1 pays for one ping before.
    let late = "4\t1\n10\t1\n14\t0.5";
    assert!(matches!(check(late, |_| ()), PingPlan::At { .. }));
    let rare = "4\t1\n10\t1\n14\t0.85";
    // 0.15 x 11.5 - 1 = 0.7 is less than the ping before costs.
    assert!(matches!(check(rare, |_| ()), PingPlan::Stop(NoPingReason::RarelyContinued { .. })));
    assert!(matches!(check(rare, |idle| idle.last_use = Millis(1_280_000)), PingPlan::At { .. }));
}

#[test]
fn the_bill_stays_within_what_the_session_would_have_cost_untouched() {
    let with =
        |paid: f64| check(ONE_PING, |idle| (idle.paid_dollars, idle.untouched_dollars) = (paid, 100.0));
    // 99.4 + 1.00005 is within 100.5, 99.5 + 1.00005 is not.
    assert!(matches!(with(99.4), PingPlan::At { .. }));
    assert_eq!(with(99.5), PingPlan::Stop(NoPingReason::NoSavingsLeft));
}

#[test]
fn no_ping_for_an_agent_that_ended_or_above_the_cap_or_where_nothing_is_cached() {
    let stops = |reason| PingPlan::Stop(reason);
    assert_eq!(check(ONE_PING, |idle| idle.agent = AgentState::Ended), stops(NoPingReason::AgentEnded));
    assert_eq!(check(ONE_PING, |idle| idle.dollars_left = 1.0), stops(NoPingReason::HourlyCap));
    let uncached = |idle: &mut IdleSession<'_>| idle.usage = Usage { cache_write: 500, ..Usage::default() };
    assert_eq!(check(ONE_PING, uncached), stops(NoPingReason::NothingCached));
    assert_eq!(check(ONE_PING, |idle| idle.requests = 2), stops(NoPingReason::TooShort));
}

#[test]
fn what_is_kept_for_an_hour_is_pinged_a_minute_before_its_end_and_saves_the_price_for_an_hour() {
    let plan = check("4\t1\n60\t1\n119\t0.9", |idle| idle.lifetime_ms = CacheRules::HOUR_MS);
    // A tenth of 19 dollars is more than 1 dollar; of 11.5 dollars it would be too.
    assert_eq!(plan, PingPlan::At { at: Millis(1_000_000 + 59 * 60_000), dollars: 1.000_05 });
    let rarer = "4\t1\n60\t1\n119\t0.93";
    assert!(matches!(check(rarer, |idle| idle.lifetime_ms = CacheRules::HOUR_MS), PingPlan::At { .. }));
}

#[test]
fn what_was_spent_an_hour_ago_counts_no_more() {
    let mut spent = HourlyPings::default();
    spent.enter_ping(Millis(0), 0.5);
    spent.enter_ping(Millis(1000), 0.25);
    let mut left = |now| spent.dollars_left(Millis(now), 1.0);
    assert_eq!([left(2000), left(HOUR_MS), left(HOUR_MS + 1000)], [0.25, 0.75, 1.0]);
}
