//! Bills of small made-up segments, worked out by hand. A token is up to four characters here; an Anthropic message adds 4, a
//! request 3.

use trimtab_core::{
    BlockId, Millis, Tokens,
    count::{Counter, Tokenizer},
    prices::find_model,
    usage::{Point, Usage},
    wire::parse,
};

use super::{ShownBlock, Track, ViewChange, Views, bill_segment, ledger::CacheLosses, track::CacheFinding};
use crate::recording::{Segment, SegmentStart};

/// A segment of a request of which the first `messages` were sent at each point, some seconds after the start.
pub(super) fn segment(request: &serde_json::Value, points: &[(usize, i64)]) -> Segment {
    let point = |&(messages, seconds): &(usize, i64)| Point {
        messages,
        at: Some(Millis(seconds * 1000)),
        model: None,
        usage: None,
    };
    let history = parse(request.to_string().into_bytes()).unwrap();
    let points = points.iter().map(point).collect();
    Segment { name: None, start: SegmentStart::Session, history, points }
}

/// A text of so many tokens: one is counted for every four characters, and one for the rest.
fn words(tokens: usize) -> String {
    "word".repeat(tokens - 1) + "wor"
}

/// 8,000 tokens of a user, 100 of the model, 50 of the user.
pub(super) fn conversation() -> serde_json::Value {
    serde_json::json!({"model": "m", "max_tokens": 1, "messages": [
        {"role": "user", "content": words(8000)},
        {"role": "assistant", "content": words(100)},
        {"role": "user", "content": words(50)},
    ]})
}

fn nothing_hidden(segment: &Segment) -> Views {
    Views::with_client_markers(vec![Vec::new(); segment.points.len()])
}

/// Checks tokens read, written and in all of every request.
#[track_caller]
fn check(segment: &Segment, views: &Views, model: &str, expected: &[(u64, u64, u64)]) {
    let track = Track::new(segment, Counter::new(Tokenizer::CharsPerFour));
    let bill = bill_segment(&track, views, &find_model(model).unwrap());
    let found: Vec<_> =
        bill.charges.iter().map(|charge| (charge.read.0, charge.written.0, charge.tokens.0)).collect();
    assert_eq!(found, expected, "{model}");
}

#[test]
fn a_second_request_reads_the_first() {
    let segment = segment(&conversation(), &[(1, 0), (3, 60)]);
    let raw = nothing_hidden(&segment);
    // 8,000 and 4 and 3; then 100 and 4 and 50 and 4.
    check(&segment, &raw, "claude-opus-4-6", &[(0, 8007, 8007), (8007, 158, 8165)]);
    check(&segment, &raw, "gpt-5.6-sol", &[(0, 8007, 8007), (8007, 158, 8165)]);
    // The reply's 104 were persisted with it.
    check(&segment, &raw, "deepseek-v4-pro", &[(0, 8007, 8007), (8111, 54, 8165)]);
    // 62 times 128.
    check(&segment, &raw, "gpt-5", &[(0, 8007, 8007), (7936, 229, 8165)]);
}

#[test]
fn the_price_is_that_of_reads_and_of_writes() {
    let segment = segment(&conversation(), &[(1, 0), (3, 60)]);
    let track = Track::new(&segment, Counter::new(Tokenizer::CharsPerFour));
    let bill = bill_segment(&track, &nothing_hidden(&segment), &find_model("claude-opus-4-6").unwrap());
    // 8,007 written at $6.25; 8,007 read at $0.50 and 158 written.
    let expected = (8007.0 * 6.25 + 8007.0 * 0.5 + 158.0 * 6.25) / 1e6;
    assert!((bill.total_dollars() - expected).abs() < 1e-12 && bill.tokens() == Tokens(16_172));
}

#[test]
fn a_block_that_is_gone_takes_its_frame_along_and_breaks_what_follows() {
    let segment = segment(&conversation(), &[(1, 0), (3, 60), (3, 90)]);
    let gone = vec![ViewChange { block: BlockId(0), shown: ShownBlock::Gone }];
    let views = Views::with_client_markers(vec![Vec::new(), gone, Vec::new()]);
    // Three tokens of frame and two messages: below every minimum.
    check(&segment, &views, "claude-sonnet-4-6", &[(0, 8007, 8007), (0, 0, 161), (0, 0, 161)]);
    let track = Track::new(&segment, Counter::new(Tokenizer::CharsPerFour));
    let bill = bill_segment(&track, &views, &find_model("claude-sonnet-4-6").unwrap());
    assert_eq!(bill.charges.iter().map(|charge| charge.broke).collect::<Vec<_>>(), [false, true, false]);
}

#[test]
fn a_text_in_the_place_of_a_block_is_another_prefix_and_comes_back_to_life_when_shown_again() {
    let segment = segment(&conversation(), &[(1, 0), (3, 60), (3, 90), (3, 120)]);
    let as_text = |tokens| ShownBlock::Text { text: "short".into(), tokens: Tokens(tokens) };
    let change = |shown| vec![ViewChange { block: BlockId(0), shown }];
    let views = Views::with_client_markers(vec![
        Vec::new(),
        change(as_text(5000)),
        Vec::new(),
        change(ShownBlock::Whole),
    ]);
    let expected = [(0, 8007, 8007), (0, 5165, 5165), (5165, 0, 5165), (8007, 158, 8165)];
    check(&segment, &views, "claude-opus-4-6", &expected);
}

#[test]
fn hiding_at_birth_breaks_nothing() {
    let segment = segment(&conversation(), &[(1, 0), (3, 60)]);
    let views = Views::with_client_markers(vec![
        Vec::new(),
        vec![ViewChange { block: BlockId(2), shown: ShownBlock::Gone }],
    ]);
    check(&segment, &views, "claude-opus-4-6", &[(0, 8007, 8007), (8007, 104, 8111)]);
}

#[test]
fn a_request_without_a_time_comes_a_minute_after_the_one_before() {
    let mut segment = segment(&conversation(), &[(1, 0), (3, 0), (3, 359), (3, 360)]);
    segment.points[1].at = None;
    segment.points.remove(3);
    // From second 60 to second 359 are 299.
    check(
        &segment,
        &nothing_hidden(&segment),
        "claude-opus-4-6",
        &[(0, 8007, 8007), (8007, 158, 8165), (8165, 0, 8165)],
    );
    segment.points[2].at = Some(Millis(360_000));
    check(
        &segment,
        &nothing_hidden(&segment),
        "claude-opus-4-6",
        &[(0, 8007, 8007), (8007, 158, 8165), (0, 8165, 8165)],
    );
}

#[test]
fn another_model_is_another_cache() {
    let mut segment = segment(&conversation(), &[(1, 0), (1, 10), (3, 20)]);
    for (point, model) in segment.points.iter_mut().zip(["a", "b", "a"]) {
        point.model = Some(model.to_owned());
    }
    check(
        &segment,
        &nothing_hidden(&segment),
        "claude-opus-4-6",
        &[(0, 8007, 8007), (0, 8007, 8007), (8007, 158, 8165)],
    );
}

#[test]
fn a_head_that_is_reported_and_not_recorded_is_charged_too() {
    let mut segment = segment(&conversation(), &[(1, 0), (3, 60)]);
    segment.points[0].usage = Some(Usage { cache_write: 20_000, ..Usage::default() });
    check(
        &segment,
        &nothing_hidden(&segment),
        "claude-opus-4-6",
        &[(0, 20_000, 20_000), (20_000, 158, 20_158)],
    );
    // It found 11,000 tokens in the cache: the head that sessions share.
    segment.points[0].usage = Some(Usage { cache_read: 11_000, cache_write: 9000, ..Usage::default() });
    let gone = Views::with_client_markers(vec![
        Vec::new(),
        vec![ViewChange { block: BlockId(0), shown: ShownBlock::Gone }],
    ]);
    check(&segment, &gone, "claude-opus-4-6", &[(11_000, 9000, 20_000), (11_000, 1154, 12_154)]);
}

#[test]
fn prefixes_are_kept_for_an_hour_only_where_that_was_recorded() {
    let mut segment = segment(&conversation(), &[(1, 0), (3, 1800)]);
    check(&segment, &nothing_hidden(&segment), "claude-opus-4-6", &[(0, 8007, 8007), (0, 8165, 8165)]);
    segment.points[0].usage = Some(Usage { cache_write: 8007, cache_write_1h: 8007, ..Usage::default() });
    check(&segment, &nothing_hidden(&segment), "claude-opus-4-6", &[(0, 8007, 8007), (8007, 158, 8165)]);
    let track = Track::new(&segment, Counter::new(Tokenizer::CharsPerFour));
    let bill = bill_segment(&track, &nothing_hidden(&segment), &find_model("claude-opus-4-6").unwrap());
    let expected = (8165.0 * 10.0 + 8007.0 * 0.5) / 1e6;
    assert!((bill.total_dollars() - expected).abs() < 1e-12, "writes for an hour cost twice the input");
    // A model that does not sell it keeps its own lifetime.
    check(&segment, &nothing_hidden(&segment), "gpt-5", &[(0, 8007, 8007), (0, 8165, 8165)]);
}

#[test]
fn what_the_log_shows_to_be_lost_is_lost_for_every_view() {
    let mut segment = segment(&conversation(), &[(1, 0), (3, 60)]);
    segment.points[0].usage = Some(Usage { cache_write: 8007, ..Usage::default() });
    segment.points[1].usage = Some(Usage { cache_write: 8165, ..Usage::default() });
    check(&segment, &nothing_hidden(&segment), "claude-opus-4-6", &[(0, 8007, 8007), (0, 8165, 8165)]);
    let track = Track::new(&segment, Counter::new(Tokenizer::CharsPerFour));
    assert_eq!(track.requests[1].found, CacheFinding::Nothing);
    let (model, raw) = (find_model("claude-opus-4-6").unwrap(), nothing_hidden(&segment));
    let bill = bill_segment(&track, &raw, &model);
    assert!(!bill.charges[1].broke, "no edit broke it");
    let alone = super::ledger::follow_cache(
        &track,
        &raw,
        &model.cache,
        trimtab_core::session::CacheLifetime::Usual,
        CacheLosses::ByRulesAlone,
    );
    assert_eq!(alone.requests[1].read, Tokens(8007));
}

#[test]
fn what_the_log_shows_to_have_lived_on_is_there() {
    let mut segment = segment(&conversation(), &[(1, 0), (3, 400)]);
    segment.points[0].usage = Some(Usage { cache_write: 8007, ..Usage::default() });
    segment.points[1].usage = Some(Usage { cache_read: 8007, cache_write: 158, ..Usage::default() });
    check(&segment, &nothing_hidden(&segment), "claude-opus-4-6", &[(0, 8007, 8007), (8007, 158, 8165)]);
}

#[test]
fn a_log_of_which_nothing_was_ever_cached_says_nothing_about_pauses() {
    let mut segment = segment(&conversation(), &[(1, 0), (3, 400), (3, 410)]);
    for (point, input) in segment.points.iter_mut().zip([8007, 8165, 8165]) {
        point.usage = Some(Usage { input, ..Usage::default() });
    }
    check(
        &segment,
        &nothing_hidden(&segment),
        "claude-opus-4-6",
        &[(0, 8007, 8007), (0, 8165, 8165), (8165, 0, 8165)],
    );
}

#[test]
fn reasoning_of_an_earlier_turn_is_left_out_by_models_that_drop_it() {
    let request = serde_json::json!({"model": "m", "max_tokens": 1, "messages": [
        {"role": "user", "content": words(5000)},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": words(300), "signature": "s"}, {"type": "text", "text": words(100)}]},
        {"role": "user", "content": words(50)},
    ]});
    let segment = segment(&request, &[(1, 0), (3, 60)]);
    let raw = nothing_hidden(&segment);
    check(&segment, &raw, "claude-opus-4-5", &[(0, 5007, 5007), (5007, 458, 5465)]);
    check(&segment, &raw, "claude-sonnet-4-5", &[(0, 5007, 5007), (5007, 158, 5165)]);
}

#[test]
fn markers_of_the_recording_are_those_of_its_last_request() {
    let marker = serde_json::json!({"type": "ephemeral"});
    let request = serde_json::json!({"model": "m", "max_tokens": 1,
        "system": [{"type": "text", "text": words(2000), "cache_control": marker}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": words(6000), "cache_control": marker}]},
            {"role": "assistant", "content": words(100)},
            {"role": "user", "content": words(50)},
    ]});
    let segment = segment(&request, &[(1, 0), (3, 60)]);
    // The second request marks nothing after the first message: the rest is plain.
    check(&segment, &nothing_hidden(&segment), "claude-opus-4-6", &[(0, 8011, 8011), (8011, 0, 8169)]);
}

#[test]
fn beyond_the_cliff_the_whole_request_is_dearer() {
    let model = find_model("gpt-5.4").unwrap();
    let cost = |cache_read| model.input_cost(Usage { input: 1000, cache_read, ..Usage::default() });
    assert!((cost(271_000) - (1000.0 * 2.5 + 271_000.0 * 0.25) / 1e6).abs() < 1e-12);
    assert!((cost(271_001) - (1000.0 * 2.5 + 271_001.0 * 0.25) / 1e6 * 2.0).abs() < 1e-12);
}
