//! Every reason, with figures that can be checked by hand: a model that costs 10 dollars a million to read in, 1 from the cache, 12.5
//! into it, and caches for five minutes from 1,024 tokens on, with markers that look back 20 positions.

use super::*;
use crate::{
    prices::{Prices, find_model},
    wire::parse,
};

const MINUTE: i64 = 60_000;

fn model() -> Model {
    let prices =
        Prices { input: 10.0, cache_read: 1.0, cache_write: 12.5, cache_write_1h: Some(20.0), output: 50.0 };
    let named = find_model("claude-opus-4-8").expect("a model of the table");
    Model { prices, cliff: None, ..named }
}

fn automatic() -> Model {
    find_model("gpt-5").expect("a model of the table")
}

/// A request that reads and writes so many tokens, so many minutes after the first.
fn request(minutes: i64, read: u64, written: u64) -> TracedRequest {
    let usage = Usage { cache_read: read, cache_write: written, ..Usage::default() };
    TracedRequest::new(
        Some(Millis(minutes * MINUTE)),
        Some("claude-opus-4-8".to_owned()),
        usage,
        &model().cache,
        None,
    )
}

fn case<'a>(
    before: &'a TracedRequest,
    now: &'a TracedRequest,
    change: PrefixChange,
    model: &'a Model,
) -> MissCase<'a> {
    MissCase { before, now, change, markers: None, reasoning_left_out: false, model: Some(model) }
}

/// Explains a request that wrote 50,000 tokens and one that reads less; compares tokens paid again, dollars and the reason.
#[track_caller]
fn check(case: &MissCase<'_>, again: u64, dollars: f64, reason: &MissReason, certainty: Certainty) {
    let miss = explain_miss(case).expect("less was read");
    assert_eq!((miss.again, &miss.reason, miss.certainty), (Tokens(again), reason, certainty), "{miss:?}");
    let found = miss.again_dollars.expect("a price");
    assert!((found - dollars).abs() < 1e-9, "{found} instead of {dollars}");
}

/// 50,000 tokens written instead of read: 50,000 times 11.5 dollars a million.
const ALL: f64 = 0.575;

#[test]
fn a_request_that_read_what_was_left_has_no_reason_to_explain() {
    let (before, now) = (request(0, 0, 50_000), request(1, 50_000, 2_000));
    assert_eq!(explain_miss(&case(&before, &now, PrefixChange::Same, &model())), None);
}

#[test]
fn a_pause_longer_than_the_lifetime_expires_the_cache() {
    let (before, now) = (request(0, 0, 50_000), request(5, 0, 51_000));
    let expired = MissReason::Expired { idle_ms: 5 * MINUTE, lifetime_ms: 5 * MINUTE };
    let model = model();
    check(&case(&before, &now, PrefixChange::Same, &model), 50_000, ALL, &expired, Certainty::Known);
    // Also where the recording does not hold everything, and where the head that others use is still there.
    let head = request(5, 10_000, 41_000);
    let as_recorded = PrefixChange::SameAsRecorded { unrecorded: Tokens(10_000), within_turn: false };
    check(&case(&before, &head, as_recorded, &model), 40_000, 0.46, &expired, Certainty::Known);
    assert_eq!(
        MissReason::Expired { idle_ms: 192 * MINUTE + 7_000, lifetime_ms: 60 * MINUTE }.to_string(),
        "expired: 3 h 12 min idle, 2 h 12 min over the 1 h that the cache is kept"
    );
}

#[test]
fn what_was_written_for_an_hour_expires_after_an_hour() {
    let hour = |minutes, read, written| {
        let mut request = request(minutes, read, written);
        request.usage.cache_write_1h = written;
        TracedRequest::new(request.at, request.model, request.usage, &model().cache, None)
    };
    let (before, now, model) = (hour(0, 0, 50_000), hour(59, 0, 51_000), model());
    // 50,000 times 19 dollars a million.
    check(
        &case(&before, &now, PrefixChange::Same, &model),
        50_000,
        0.95,
        &MissReason::LostByProvider,
        Certainty::Known,
    );
    let late = hour(60, 0, 51_000);
    let expired = MissReason::Expired { idle_ms: 60 * MINUTE, lifetime_ms: 60 * MINUTE };
    check(&case(&before, &late, PrefixChange::Same, &model), 50_000, 0.95, &expired, Certainty::Known);
}

#[test]
fn another_model_has_another_cache_and_another_spelling_is_the_same_model() {
    let (before, mut now, model) = (request(0, 0, 50_000), request(1, 0, 51_000), model());
    now.model = Some("claude-haiku-4-5".to_owned());
    let reason =
        MissReason::OtherModel { before: "claude-opus-4-8".to_owned(), now: "claude-haiku-4-5".to_owned() };
    check(&case(&before, &now, PrefixChange::Same, &model), 50_000, ALL, &reason, Certainty::Known);
    now.model = Some("anthropic/claude-opus-4.8".to_owned());
    check(
        &case(&before, &now, PrefixChange::Same, &model),
        50_000,
        ALL,
        &MissReason::LostByProvider,
        Certainty::Known,
    );
}

#[test]
fn a_compaction_and_an_edit_of_ours_are_told_as_such() {
    let (before, now, model) = (request(0, 0, 50_000), request(1, 20_000, 8_000), model());
    // The new request has 28,000 tokens, of which 8,000 are written: 8,000 times 11.5.
    check(
        &case(&before, &now, PrefixChange::Compacted, &model),
        8_000,
        0.092,
        &MissReason::Compaction,
        Certainty::Known,
    );
    let edit =
        OwnEdit { block: 7, saved_per_request: Tokens(3_000), requests_since: 9, saved_dollars: 0.027 };
    check(
        &case(&before, &now, PrefixChange::ByUs(edit), &model),
        8_000,
        0.092,
        &MissReason::OwnEdit(edit),
        Certainty::Known,
    );
    assert_eq!(
        MissReason::OwnEdit(edit).to_string(),
        "trimtab hid more: 3000 tokens fewer in every request, $0.0270 saved in 9 requests since"
    );
}

#[test]
fn what_is_too_short_is_not_cached() {
    let (before, now, model) = (request(0, 0, 0), request(1, 0, 0), model());
    let with_input = |request: &TracedRequest, input| TracedRequest {
        usage: Usage { input, ..request.usage },
        ..request.clone()
    };
    let (before, now) = (with_input(&before, 900), with_input(&now, 1_000));
    // 900 times 9 dollars a million: input, not written.
    let below = MissReason::BelowMinimum { minimum: Tokens(1024) };
    check(&case(&before, &now, PrefixChange::Same, &model), 900, 0.0081, &below, Certainty::Known);
}

#[test]
fn without_a_marker_nothing_is_cached() {
    let input = |minutes, input| {
        let mut request = request(minutes, 0, 0);
        request.usage.input = input;
        request
    };
    let (before, now, model) = (input(0, 50_000), input(1, 51_000), model());
    let mut both = case(&before, &now, PrefixChange::Same, &model);
    check(&both, 50_000, 0.45, &MissReason::NoMarker, Certainty::Inferred);
    both.markers = Some(MarkerPlaces::default());
    check(&both, 50_000, 0.45, &MissReason::NoMarker, Certainty::Known);
}

#[test]
fn a_marker_looks_back_20_positions_its_own_included() {
    let (before, now, model) = (request(0, 0, 50_000), request(1, 0, 51_000), model());
    let with = |places: &[usize]| {
        let markers = Some(MarkerPlaces { before: vec![2, 30], now: places.to_vec() });
        MissCase { markers, ..case(&before, &now, PrefixChange::Same, &model) }
    };
    let far = MissReason::MarkersOutOfReach { positions: 20, look_back: 20 };
    check(&with(&[2, 50]), 50_000, ALL, &far, Certainty::Known);
    check(&with(&[2, 49]), 50_000, ALL, &MissReason::LostByProvider, Certainty::Known);
    check(
        &with(&[1, 2, 30, 40, 49]),
        50_000,
        ALL,
        &MissReason::TooManyMarkers { markers: 5 },
        Certainty::Known,
    );
    check(&with(&[]), 50_000, ALL, &MissReason::NoMarker, Certainty::Known);
}

#[test]
fn what_is_not_recorded_is_only_inferred_and_nothing_read_is_unknown() {
    let (before, model) = (request(0, 0, 50_000), model());
    let unrecorded = || PrefixChange::SameAsRecorded { unrecorded: Tokens(20_000), within_turn: false };
    let now = request(1, 20_000, 31_000);
    let changed = MissReason::UnrecordedChange { same: Tokens(20_000) };
    check(&case(&before, &now, unrecorded(), &model), 30_000, 0.345, &changed, Certainty::Inferred);
    let now = request(1, 0, 51_000);
    let unknown = MissReason::Unknown(UnknownBecause::NothingRead);
    check(&case(&before, &now, unrecorded(), &model), 50_000, ALL, &unknown, Certainty::Known);
    // Between two calls of one turn an agent does not change its head.
    let within = PrefixChange::SameAsRecorded { unrecorded: Tokens(20_000), within_turn: true };
    check(
        &case(&before, &now, within, &model),
        50_000,
        ALL,
        &MissReason::LostByProvider,
        Certainty::Inferred,
    );
    let timeless = TracedRequest { at: None, ..request(1, 20_000, 31_000) };
    let unknown = MissReason::Unknown(UnknownBecause::NoTimes);
    check(&case(&before, &timeless, unrecorded(), &model), 30_000, 0.345, &unknown, Certainty::Known);
}

#[test]
fn a_provider_that_caches_by_itself_lost_what_lies_behind_a_head_that_was_read() {
    let model = automatic();
    let request = |minutes: i64, read, input| {
        let usage = Usage { cache_read: read, input, ..Usage::default() };
        TracedRequest::new(
            Some(Millis(minutes * MINUTE)),
            Some("gpt-5".to_owned()),
            usage,
            &model.cache,
            None,
        )
    };
    let before = request(0, 0, 51_200);
    let unrecorded = || PrefixChange::SameAsRecorded { unrecorded: Tokens(8_000), within_turn: false };
    let reason = |read| {
        explain_miss(&case(&before, &request(1, read, 52_000 - read), unrecorded(), &model))
            .map(|miss| miss.reason)
    };
    assert_eq!(reason(12_800), Some(MissReason::LostByProvider));
    assert_eq!(reason(4_096), Some(MissReason::UnrecordedChange { same: Tokens(4_096) }));
    // It reads in steps of 128 tokens: one step less says nothing.
    assert_eq!(reason(51_200 - 128), None);
}

#[test]
fn reasoning_that_the_provider_leaves_out_is_no_fault_of_the_client() {
    let (before, now) = (request(0, 0, 50_000), request(1, 30_000, 21_000));
    let drops = find_model("claude-sonnet-4-5").expect("a model");
    let mut both = case(&before, &now, PrefixChange::Same, &drops);
    both.reasoning_left_out = true;
    assert_eq!(explain_miss(&both).map(|miss| miss.reason), Some(MissReason::ReasoningLeftOut));
    both.reasoning_left_out = false;
    assert_eq!(explain_miss(&both).map(|miss| miss.reason), Some(MissReason::LostByProvider));
}

/// Compares two Anthropic requests with these heads and messages; gives place and both sides of the difference.
fn change(before: [&str; 3], now: [&str; 3]) -> Option<(ChangedPlace, String, String)> {
    let history = |[tool, system, said]: [&str; 3]| {
        let request = format!(
            r#"{{"model":"claude-opus-4-8","max_tokens":9,"tools":[{{"name":"Read","description":"{tool}","input_schema":{{}}}}],"system":"{system}","messages":[{{"role":"user","content":"{said}"}}]}}"#
        );
        parse(request.into_bytes()).expect("a request")
    };
    first_client_change(&history(before), &history(now))
        .map(|change| (change.place, change.before, change.now))
}

#[test]
fn the_first_thing_that_a_client_changed_is_shown_short() {
    let same = ["reads", "You are. Today is Monday.", "Hi"];
    assert_eq!(change(same, same), None);
    let (place, before, now) = change(same, ["reads", "You are. Today is Tuesday.", "Hi"]).expect("a change");
    assert_eq!(place, ChangedPlace::System);
    assert!(before.contains("Today is Monday") && now.contains("Today is Tuesday"), "{before} {now}");
    let (place, before, now) =
        change(same, ["writes", "You are. Today is Tuesday.", "Ho"]).expect("a change");
    assert_eq!(place, ChangedPlace::Tool("Read".to_owned()), "tools come first");
    assert!(before.contains("reads") && now.contains("writes"), "{before} {now}");
    let (place, ..) = change(same, ["reads", "You are. Today is Monday.", "Ho"]).expect("a change");
    assert_eq!(place, ChangedPlace::Message(1));
}

#[test]
fn a_difference_begins_shortly_before_what_differs_and_ends_soon() {
    assert_eq!(difference("abc", "abd"), ("abc".to_owned(), "abd".to_owned()));
    let long = "0123456789".repeat(20);
    let (before, now) = difference(&format!("{long}a"), &format!("{long}b{long}"));
    assert_eq!(before, "…4567890123456789a");
    assert_eq!(now.chars().count(), 62, "{now}");
}

#[test]
fn runs_of_results_are_one_position_and_an_added_marker_counts() {
    let request = r#"{"model":"m","max_tokens":9,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[
        {"role":"user","content":"Hi"},
        {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"R","input":{}},{"type":"tool_use","id":"b","name":"R","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":"2","cache_control":{"type":"ephemeral"}}]}]}"#;
    let history = parse(request.as_bytes().to_vec()).expect("a request");
    assert_eq!(marker_places(&history, None), [1, 4]);
    assert_eq!(marker_places(&history, Some(1)), [1, 2, 4]);
}

#[test]
fn sums_hold_what_each_reason_cost() {
    let (before, now, model) = (request(0, 0, 50_000), request(5, 0, 51_000), model());
    let miss = explain_miss(&case(&before, &now, PrefixChange::Same, &model));
    let mut sum = MissSummary::default();
    sum.add_request(Some(&model), before.usage, None);
    sum.add_request(Some(&model), now.usage, miss.as_ref());
    let mut both = MissSummary::default();
    both.add_summary(&sum);
    both.add_summary(&sum);
    assert_eq!((both.requests, both.requests_with_misses, both.again), (4, 2, Tokens(100_000)));
    assert!(
        (both.again_dollars - 2.0 * ALL).abs() < 1e-9 && (both.paid_dollars - 2.525).abs() < 1e-9,
        "{both:?}"
    );
    assert_eq!(
        both.reasons_by_tokens().first().map(|(name, sum)| (*name, sum.requests)),
        Some(("expired", 2))
    );
    assert_eq!(both.unexplained, Tokens::ZERO);
}
