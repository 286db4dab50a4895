//! The oracles, with needs made by hand.

#![expect(clippy::single_range_in_vec_init, reason = "a need names ranges of lines, often only one")]

use std::ops::Range;

use trimtab_core::{BlockId, Tokens, prices::find_model};

use super::{NeedKind, ResultNeed};
use crate::replay::{
    Views, bill_segment,
    peers::tests::{check, check_text, drawn, joined, reads, segment, track, views, views_in_room},
};

const SESSION: [&str; 7] =
    ["u go", "c Read a", "r lines 40", "c Read b", "r lines 40", "c Read c", "r lines 40"];

fn need(provider: u32, request: usize, lines: &[Range<usize>]) -> ResultNeed {
    ResultNeed {
        kind: NeedKind::Anchor,
        provider: BlockId(provider),
        only_there: true,
        request,
        lines: lines.to_vec(),
    }
}

#[test]
fn a_result_is_seen_once_and_gone_when_nobody_needs_it() {
    check(&SESSION, "oracle:block", &[], &["u", "ucr", "uc-cr", "uc-c-cr"]);
    check_text(&SESSION, "oracle:block", &[], 2, "[hidden]");
}

#[test]
fn a_result_stays_up_to_the_request_of_its_last_use() {
    let needs = [need(2, 1, &[]), need(2, 2, &[])];
    check(&SESSION, "oracle:block", &needs, &["u", "ucr", "ucrcr", "uc-c-cr"]);
    check(&SESSION, "oracle:block", &[need(2, 3, &[])], &["ucr", "ucrcr", "ucrc-cr"]);
    check(&SESSION, "oracle:block", &[need(2, 1, &[])], &["ucr", "uc-cr", "uc-c-cr"]);
}

#[test]
fn a_result_shorter_than_the_note_stays() {
    check(&["u go", "c Read a", "r ok", "c Read b", "r ok"], "oracle:block", &[], &["ucrcr"]);
}

#[test]
fn of_a_result_the_needed_lines_stay_with_their_neighbours() {
    let needs = [need(2, 3, &[4..6, 0..1])];
    check(&SESSION, "oracle:line", &needs, &["ucr", "uc-cr", "uc-c-cr"]);
    let lines = "line 0\nline 1\nline 3\nline 4\nline 5\nline 6";
    check_text(&SESSION, "oracle:line", &needs, 2, lines);
}

#[test]
fn lines_go_when_their_last_use_is_over() {
    let needs = [need(2, 2, &[4..5]), need(2, 3, &[39..40])];
    check_text(&SESSION[..5], "oracle:line", &needs, 2, "line 3\nline 4\nline 5\nline 38\nline 39");
    check_text(&SESSION, "oracle:line", &needs, 2, "line 38\nline 39");
}

#[test]
fn a_need_without_lines_keeps_the_whole_result() {
    check(&SESSION, "oracle:line", &[need(2, 2, &[])], &["ucrcr", "uc-c-cr"]);
}

#[test]
fn only_results_are_hidden_whatever_the_needs_name() {
    check(&SESSION, "oracle:block", &[need(0, 3, &[]), need(99, 3, &[])], &["uc-c-cr"]);
}

#[test]
fn the_floor_shows_from_the_start_only_what_is_edited_or_copied() {
    check(&SESSION, "oracle:floor", &[], &["u", "uc-", "uc-c-", "uc-c-c-"]);
    check_text(&SESSION, "oracle:floor", &[], 2, "");
    let needs = [need(2, 2, &[4..6]), need(2, 3, &[39..40, 20..21])];
    check_text(&SESSION[..5], "oracle:floor", &needs, 2, "line 4\nline 5\nline 39");
    check_text(&SESSION, "oracle:floor", &needs, 2, "line 39");
    let elsewhere = ResultNeed { only_there: false, ..need(2, 3, &[]) };
    let named = ResultNeed { kind: NeedKind::Name, ..need(2, 3, &[0..1]) };
    check_text(&SESSION, "oracle:floor", &[elsewhere, named], 2, "");
}

/// Three files of about 1,000 tokens each and one of 100, in a room of 2,500. The first is edited in the end, the second only
/// named, the third is new when room is needed.
fn tight_session() -> (Vec<String>, [ResultNeed; 2]) {
    let session = [reads(3, 4_000), reads(1, 400)].concat();
    (session, [need(2, 4, &[]), ResultNeed { kind: NeedKind::Name, ..need(4, 4, &[]) }])
}

fn tight_pictures(asked: &str, needs: &[ResultNeed]) -> Vec<String> {
    let (lines, _) = tight_session();
    let session = segment(&joined(&[&lines], &["u go"]));
    let laid_out = track(&session);
    drawn(&laid_out, &views_in_room(&laid_out, asked, needs, Tokens(2_500)))
}

#[test]
fn under_a_budget_what_is_needed_least_per_token_goes_first() {
    let (_, needs) = tight_session();
    // Two files fit. Room is needed when the third comes: the arguments of the calls that were seen go, which is not enough, and
    // then the file of which only a name is needed. The third is not needed once it was seen.
    let pictures = tight_pictures("oracle:budget", &needs);
    assert_eq!(pictures, ["u", "ucr", "ucrcr", "u-r--cr", "u-r--c-cr"]);
    // With nothing needed, everything goes once it was seen, as without a budget.
    assert_eq!(tight_pictures("oracle:budget", &[]), ["u", "ucr", "uc-cr", "uc-c-cr", "uc-c-c-cr"]);
    // Were it the other way round, the first file would go.
    let swapped = [need(4, 4, &[]), ResultNeed { kind: NeedKind::Name, ..need(2, 4, &[]) }];
    assert_eq!(tight_pictures("oracle:budget", &swapped)[3], "u---rcr");
}

#[test]
fn lines_that_are_needed_fit_where_whole_results_do_not() {
    let session = ["u go", "c Read a", "r lines 400", "c Read b", "r lines 400", "c Read c", "r lines 400"];
    let recorded = segment(&session);
    let track = track(&recorded);
    let needs = [need(2, 3, &[4..6]), need(4, 3, &[9..10])];
    let shown = |asked| drawn(&track, &views_in_room(&track, asked, &needs, Tokens(1_500)));
    // 400 lines are about 950 tokens: beside the new result there is room for neither of the two, but for their lines. Of the
    // first exchange nothing that is needed was left, so its rest goes before the second result.
    assert_eq!(shown("oracle:budget").last().map(String::as_str), Some("u..--cr"));
    check_text(&session, "oracle:budget-line", &needs, 2, "line 3\nline 4\nline 5\nline 6");
    let first = &views_in_room(&track, "oracle:budget-line", &needs, Tokens(1_500)).changes[3];
    let kept: Vec<String> = first.iter().map(|change| format!("{:?}", change.shown)).collect();
    assert!(kept.iter().any(|shown| shown.contains("line 9")), "{kept:?}");
}

#[test]
fn a_plan_that_pays_hides_when_the_rest_of_the_session_is_worth_it() {
    let (big, small) = (reads(1, 40_000), reads(12, 400));
    let session = joined(&[&big, &small], &["u go"]);
    let recorded = segment(&session);
    let laid_out = track(&recorded);
    let model = find_model("claude-opus-5").unwrap();
    let dollars = |views: &Views| bill_segment(&laid_out, views, &model).total_dollars();
    let untouched = Views::with_client_markers(vec![Vec::new(); laid_out.requests.len()]);
    let paid = views(&laid_out, "oracle:block-paid", &[]);
    // The 10,000 tokens go as soon as they were seen: one small result was added after them.
    assert_eq!(drawn(&laid_out, &paid)[2].get(..3), Some("uc-"));
    assert!(dollars(&paid) < 0.8 * dollars(&untouched), "{} {}", dollars(&paid), dollars(&untouched));
    // A session that ends before anything can be saved is left alone.
    let short = segment(&session[..3]);
    let short = track(&short);
    assert!(views(&short, "oracle:block-paid", &[]).changes.iter().all(Vec::is_empty));
}
