//! Peers that let whole messages go.

use super::{check, check_text};

#[test]
fn messages_are_counted_with_the_system_up_to_the_last_token() {
    // Each message counts 40 / 4 + 3 = 13.
    let session = ["s #40", "u #40", "a #40", "u #40"];
    check(&session, "peer:trim-messages(52)", &[], &["su", "suau"]);
    check(&session, "peer:trim-messages(51)", &[], &["su", "s..u"]);
    check(&session, "peer:trim-messages-raw(51)", &[], &["su", "s.au"]);
    check(&["s #40", "u #41"], "peer:trim-messages(26)", &[], &["s."]);
    check(&["s #40", "u #40"], "peer:trim-messages(26)", &[], &["su"]);
}

#[test]
fn nothing_but_the_system_is_left_when_the_one_human_message_does_not_fit() {
    let session = ["s #40", "u #400", "c Read a", "r #40", "c Read b", "r #40"];
    check(&session, "peer:trim-messages(100)", &[], &["s.", "s...", "s....."]);
}

#[test]
fn without_a_rule_for_the_start_results_lose_their_calls() {
    let session = ["s #40", "u #400", "c Read a", "r #40", "c Read b", "r #40"];
    check(&session, "peer:trim-messages-raw(30)", &[], &["s..r", "s....r"]);
    check(&session, "peer:trim-messages-repaired(30)", &[], &["s...", "s....."]);
    check(&session, "peer:trim-messages-repaired(80)", &[], &["s.cr", "s...cr"]);
}

#[test]
fn a_budget_below_one_is_a_share_of_the_largest_request() {
    let session = ["u #4000", "a #4000", "u #4000", "a #4000", "u #4000"];
    check(&session, "peer:trim-messages(0.5)", &[], &["u", "..u", "....u"]);
    check(&session, "peer:trim-messages(0.65)", &[], &["u", "uau", "..uau"]);
}

#[test]
fn the_window_keeps_the_first_and_last_words_of_the_person_and_the_exchange_under_way() {
    let session = [
        "s x", "u a", "c Read a", "r 1", "u b", "c Read b + Read c", "r 2 + 3", "u c", "c Read d", "r 4",
        "a ok", "u d",
    ];
    check(
        &session,
        "peer:sliding-window(0)",
        &[],
        &["su", "sucru", "su...ccrru", "su.......ucr", "su........crau"],
    );
}

#[test]
fn the_window_drops_the_oldest_exchanges_and_no_more_than_needed() {
    let session =
        ["u go", "c Read a", "r #4000", "c Read b", "r #4000", "c Read c", "r #4000", "c Read d", "r #4000"];
    check(&session, "peer:sliding-window(3500)", &[], &["ucrcr", "ucrcrcr", "u..crcrcr"]);
    check(&session, "peer:sliding-window(2500)", &[], &["ucrcr", "u..crcr", "u....crcr"]);
}

#[test]
fn an_earlier_copy_of_a_file_becomes_a_notice() {
    let session =
        ["u go", "a hm", "u look", "c Read a.rs", "r #800", "c Read b.rs", "r #800", "c Read a.rs", "r #800"];
    check(&session, "peer:cline-dup-read(0)", &[], &["uaucrcr", "uauc-crcr"]);
    let tagged = [
        "u go",
        "a hm",
        "u see <file_content path=\"a.rs\">fn old() {}</file_content> please",
        "a ok",
        "u <file_content path=\"a.rs\">fn new() {}</file_content>",
    ];
    let notice = "[[NOTE] This file read has been removed to save space in the context window. Refer to the latest file read for the most up to date version of this file.]";
    let expected = format!("see <file_content path=\"a.rs\">{notice}</file_content> please");
    check_text(&tagged, "peer:cline-dup-read(0)", &[], 2, &expected);
}

#[test]
fn cline_acts_when_the_last_request_came_near_the_window() {
    // Another window counts as full at 80 %: 800 tokens here.
    let session = [
        "u go", "c Read a.rs", "r #1600", "c Read b.rs", "r #40", "c Read a.rs", "r #1600", "c Read c.rs",
        "r #8",
    ];
    check(&session, "peer:cline-dup-read(1000)", &[], &["ucrcr", "ucrcrcr", "uc-crcrcr"]);
    check(&session, "peer:cline-dup-read(10000)", &[], &["ucrcrcrcr"]);
}

#[test]
fn cline_deletes_half_of_the_messages_when_notices_save_too_little() {
    let session = [
        "u go", "c Read a.rs", "r #1200", "c Read b.rs", "r #1200", "c Read c.rs", "r #1200", "c Read d.rs",
        "r #8",
    ];
    // Seven messages after the first two: two of them go, the last of them the model's, and its result is left.
    check(&session, "peer:cline-dup-read(1000)", &[], &["ucrcr", "ucrcrcr", "uc..rcrcr"]);
}
