//! The oracles, with needs made by hand.

#![expect(clippy::single_range_in_vec_init, reason = "a need names ranges of lines, often only one")]

use std::ops::Range;

use trimtab_core::BlockId;

use super::ResultNeed;
use crate::replay::peers::tests::{check, check_text, joined, pictures, reads};

const SESSION: [&str; 7] =
    ["u go", "c Read a", "r lines 40", "c Read b", "r lines 40", "c Read c", "r lines 40"];

fn need(provider: u32, request: usize, lines: &[Range<usize>]) -> ResultNeed {
    ResultNeed { provider: BlockId(provider), request, lines: lines.to_vec() }
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
fn paid_edits_wait_until_they_pay() {
    let (big, small) = (reads(1, 4_000), reads(12, 400));
    let session = joined(&[&big, &small], &["u go"]);
    let free = pictures(&session, "oracle:block", &[]);
    assert_eq!(pictures(&session, "oracle:block-paid(0)", &[]), free);
    assert!(
        pictures(&session, "oracle:block-paid(100000)", &[]).iter().all(|picture| !picture.contains('-'))
    );
    // Behind a result that was sent once there is nothing yet to rewrite but the note, 13 tokens: (2 + 1) x 98 > 11.5 x 13.
    assert_eq!(pictures(&session, "oracle:block-paid(11.5)", &[]), free);
    // At 49 the small ones wait until request 6: (6 + 1) x 98 > 49 x 13.
    let paid = pictures(&session, "oracle:block-paid(49)", &[]);
    assert_eq!((free[5].as_str(), paid[5].as_str()), ("uc-c-c-c-cr", "uc-crcrcrcr"));
    assert_eq!(paid[6].get(..3), Some("uc-"));
    assert!(paid[6].contains("c-cr"), "{}", paid[6]);
}
