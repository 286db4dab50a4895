//! Peers that hide results.

use super::{check, check_text, joined, pictures, reads, segment, track};
use crate::replay::peers::walk::peak_tokens;

fn hidden(pictures: &[String]) -> Vec<usize> {
    pictures.iter().map(|picture| picture.matches('-').count()).collect()
}

#[test]
fn masking_keeps_the_results_of_the_last_steps() {
    let session = ["u go", "c Read a", "r 1", "c Read b + Read c", "r 2 + 3", "c Read d", "r 4"];
    check(&session, "peer:mask(2)", &[], &["u", "ucr", "ucrccrr", "uc-ccrrcr"]);
    check(&session, "peer:mask(1)", &[], &["u", "ucr", "uc-ccrr", "uc-cc--cr"]);
    check(&session, "peer:mask(3)", &[], &["ucrccrrcr"]);
}

#[test]
fn an_answer_without_calls_is_a_step_too() {
    check(&["u go", "c Read a", "r 1", "a done", "u more"], "peer:mask(1)", &[], &["ucr", "uc-au"]);
}

#[test]
fn a_masked_result_says_how_many_lines_it_had() {
    let session = ["u go", "c Read a", "r lines 3", "c Read b", "r 2"];
    check_text(&session, "peer:mask(1)", &[], 2, "[Previous 3 lines omitted for brevity]");
}

#[test]
fn an_agent_that_writes_its_calls_in_text_is_masked_too() {
    let step = ["a Look:\n```bash\nls\n```", "u OBSERVATION:\na.rs"];
    let session = [&["u go"], &step[..], &step, &step].concat();
    check(&session, "peer:mask(2)", &[], &["ucrcr", "uc-crcr"]);
}

#[test]
fn batches_wait_for_so_many_results() {
    let session = reads(15, 8);
    let counts = hidden(&pictures(&joined(&[&session], &["u go"]), "peer:mask-batched(5)", &[]));
    assert_eq!(counts, [vec![0; 15], vec![5]].concat(), "at 10 results none is old, at 15 five are");
    let once = pictures(&joined(&[&session], &["u go"]), "peer:mask-batched(1)", &[]);
    assert_eq!(once, pictures(&joined(&[&session], &["u go"]), "peer:mask(10)", &[]));
}

#[test]
fn rent_decides_when_a_mask_is_worth_its_tail() {
    let (big, small) = (reads(1, 40_000), reads(13, 100));
    let session = joined(&[&big, &small], &["u go"]);
    let first = |asked| hidden(&pictures(&session, asked, &[])).iter().position(|count| *count > 0);
    // The big result is old at request 11 and saves about 9,990 tokens a request; its tail counts about 480.
    assert_eq!(first("peer:mask(10)"), Some(11));
    assert_eq!(first("peer:mask-ski(0)"), Some(11));
    assert_eq!(first("peer:mask-ski(11.5)"), Some(12));
    assert_eq!(first("peer:mask-ski(24)"), Some(13));
    assert_eq!(first("peer:mask-ski(1000)"), None);
}

#[test]
fn a_cold_cache_lets_all_waiting_edits_through() {
    let (before, after) = (reads(12, 400), reads(1, 400));
    for (seconds, expected) in [("wait 299", 0), ("wait 300", 3)] {
        let wait = [seconds.to_owned()];
        let session = joined(&[&before, &wait, &after], &["u go"]);
        let counts = hidden(&pictures(&session, "peer:mask-ski(1000)", &[]));
        // The pause is before the answer to the twelfth result, when two results are old; the last request follows at once.
        assert_eq!(counts[12], expected.min(2), "{seconds}");
    }
}

#[test]
fn tool_uses_are_cleared_above_the_trigger_and_not_at_it() {
    let reads = reads(5, 400);
    let session = joined(&[&reads], &["s be brief", "u go"]);
    let segment = segment(&session);
    let most = peak_tokens(&track(&segment)).0;
    check(&session, &format!("peer:clear-tool-uses({most})"), &[], &["sucrcrcrcrcr"]);
    check(&session, &format!("peer:clear-tool-uses({})", most - 1), &[], &["sucrcrcrcr", "suc-c-crcrcr"]);
    check_text(&session, &format!("peer:clear-tool-uses({})", most - 1), &[], 3, "[tool result cleared]");
}

#[test]
fn what_was_cleared_lowers_the_count_for_the_provider_and_not_for_the_library() {
    let reads = reads(6, 4_000);
    let session = joined(&[&reads], &["u go"]);
    // Each exchange counts about 1,040, and about 45 once it is cleared.
    let provider = ["ucrcrcrcr", "uc-c-crcrcr", "uc-c-crcrcrcr"];
    check(&session, "peer:clear-tool-uses(4500)", &[], &provider);
    let library = ["ucrcrcrcr", "uc-c-crcrcr", "uc-c-c-crcrcr"];
    check(&session, "peer:clear-tool-uses-langchain(4500)", &[], &library);
    check_text(&session, "peer:clear-tool-uses-langchain(4500)", &[], 2, "[cleared]");
}

#[test]
fn opencode_protects_the_newest_40_000_tokens_and_frees_more_than_20_000_or_nothing() {
    let session = |old, new| ["u go".to_owned(), "c Read a".into(), old, "c Read b".into(), new];
    let check_sizes = |old: &str, new: &str, last: &str| {
        let lines = session(format!("r #{old}"), format!("r #{new}"));
        check(&lines.each_ref().map(String::as_str), "peer:opencode-prune(0)", &[], &["ucr", last]);
    };
    check_sizes("80004", "160000", "uc-cr");
    check_sizes("80000", "160000", "ucrcr");
    // Rounded, 80,002 characters are 20,001 tokens and 80,001 are 20,000.
    check_sizes("80002", "160000", "uc-cr");
    check_sizes("80001", "160000", "ucrcr");
    // One character in a quarter more and the newest is no longer protected either.
    check_sizes("8", "160002", "uc-c-");
    check_sizes("8", "160001", "ucrcr");
}

#[test]
fn opencode_runs_at_the_end_of_a_turn_and_leaves_the_last_turns_alone() {
    let session =
        ["u 1", "c Read a", "r #80004", "c Read b", "r #160000", "a ok", "u 2", "a ok", "u 3", "a ok", "u 4"];
    check(&session, "peer:opencode-prune", &[], &["ucrcrau", "ucrcrauau", "uc-crauauau"]);
    check(&session, "peer:opencode-prune(1)", &[], &["ucrcrau", "uc-crauau", "uc-crauauau"]);
    check(&session[..6], "peer:opencode-prune", &[], &["ucrcr"]);
}

#[test]
fn opencode_stops_at_what_is_cleared_and_does_not_count_failures_or_skills() {
    let session = [
        "u go", "c Read a", "r #80004", "c Read b", "fail #400000", "c skill x", "r #400000", "c Read c",
        "r #160000", "c Read d", "r #79996", "c Read e", "r #8",
    ];
    check(
        &session,
        "peer:opencode-prune(0)",
        &[],
        // With d, c is beyond the newest 40,000 and frees 40,000; with e nothing more is left after d.
        &["ucrcrcr", "uc-crcrcr", "uc-crcrc-cr", "uc-crcrc-crcr"],
    );
    check_text(&session, "peer:opencode-prune(0)", &[], 2, "[Old tool result content cleared]");
}

#[test]
fn gemini_protects_50_000_tokens_and_the_last_message_and_frees_at_least_30_000() {
    let check_size = |old: &str, last: &[&str]| {
        let old = format!("r #{old}");
        let session = ["u go", "c Read a", &old, "c Read b", "r #200000", "c Read c", "r ok"];
        check(&session, "peer:gemini-masking", &[], last);
    };
    check_size("120000", &["ucrcr", "uc-crcr"]);
    check_size("119999", &["ucrcr", "ucrcrcr"]);
}

#[test]
fn gemini_shows_both_ends_and_names_a_file() {
    let lines: String = (0..30).map(|number| format!("{number} {}\n", "y".repeat(5_000))).collect();
    let shell = format!("r {lines}");
    let session = ["u go", "c run_shell_command x", &shell, "c Read b", "r #200000", "c Read c", "r ok"];
    let segment = segment(&session);
    let track = track(&segment);
    let views = super::views(&track, "peer:gemini-masking", &[]);
    let crate::replay::ShownBlock::Text { text, .. } = &views.changes[3][0].shown else {
        panic!("{views:?}")
    };
    assert!(
        text.starts_with("<tool_output_masked>\n0 yyy") && text.contains("\n... [10 lines omitted] ...\n")
    );
    assert!(text.ends_with("available at: tool-outputs/run_shell_command_call_1.txt\n</tool_output_masked>"));
}

#[test]
fn the_first_observation_is_the_task_and_is_never_omitted() {
    let session = reads(7, 8);
    let session = joined(&[&session], &["u go"]);
    check(&session, "peer:last-n-polling(1)", &[], &["ucrcrcrcrcr", "uc-crcrcrcrcr", "uc-c-crcrcrcrcr"]);
    check_text(&session, "peer:last-n-polling(1)", &[], 2, "Old environment output: (1 lines omitted)");
}

#[test]
fn polling_moves_the_border_only_at_its_multiples() {
    let session = reads(14, 8);
    let counts = hidden(&pictures(&joined(&[&session], &["u go"]), "peer:last-n-polling(5)", &[]));
    // With the task there are 10 observations at request 9: the last 5 stay, up to 9 of them at request 13.
    assert_eq!(counts, [vec![0; 9], vec![4; 5], vec![9]].concat());
}

#[test]
fn omitted_images_are_counted() {
    let mut lines = vec!["u go", "c Read a", "r lines 2 &image"];
    lines.extend(["c Read b", "r 1"].repeat(5));
    check_text(
        &lines,
        "peer:last-n-polling(1)",
        &[],
        2,
        "Old environment output: (2 lines omitted) (1 images omitted)",
    );
}

#[test]
fn a_long_result_loses_its_middle_when_it_comes_in() {
    let session = ["u go", "c Read a", "r abcdefghijkl", "c Read b", "r abcdefgh"];
    check(&session, "peer:ingest-cap(2)", &[], &["u", "uc-", "uc-cr"]);
    check_text(&session, "peer:ingest-cap(2)", &[], 2, "abcd…1 tokens truncated…ijkl");
    check_text(&["u go", "c Read a", "r ééééé"], "peer:ingest-cap(2)", &[], 2, "éé…1 tokens truncated…éé");
}

#[test]
fn a_read_goes_when_its_file_was_changed() {
    let session = [
        "u go", "c Read a.rs", "r #80", "c Read b.rs", "r #80", "c Edit a.rs", "r ok", "c Read a.rs", "r #80",
    ];
    check(&session, "peer:drop-read-on-edit", &[], &["ucrcr", "uc-crcr", "uc-crcrcr"]);
    let failed = ["u go", "c Read a.rs", "r #80", "c Edit a.rs", "fail no such text"];
    check(&failed, "peer:drop-read-on-edit", &[], &["ucrcr"]);
}
