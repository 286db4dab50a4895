//! The ladder: what happens at 70, 85 and 95 percent of the window, and the largest single output.

use crate::talk::{ROOM, Talk, output, source};

fn results(count: usize) -> Talk {
    (0..count).fold(Talk::new(), |talk, number| talk.runs(&format!("make {number}"), &output(60)))
}

/// Returns the budget of which the conversation is that share, in percent.
fn budget(talk: &Talk, percent: u64) -> u64 {
    talk.tokens() * 100 / percent
}

/// Up to 70 % nothing happens; above it all results but the last five are cleared.
#[test]
fn above_seventy_percent_the_last_five_results_stay() {
    let talk = results(12);
    assert!(talk.fit("ladder", &[], budget(&talk, 69)).fitted.plan.keeps_all());
    assert_eq!(talk.whole("ladder", &[], budget(&talk, 72)), [8, 9, 10, 11, 12]);
    assert_eq!(talk.whole("ladder", &[("keep_last", 3.0)], budget(&talk, 72)), [10, 11, 12]);
    assert!(talk.fit("ladder", &[("prune_threshold", 0.80)], budget(&talk, 72)).fitted.plan.keeps_all());
}

/// A cleared result keeps its call's id and says why it went. The document writes "[output pruned - context limit]"; the
/// note says what it was and how it comes back, too.
#[test]
fn a_cleared_result_says_why() {
    let talk = results(12);
    let note = talk.fit("ladder", &[], budget(&talk, 72)).shown(1);
    assert!(note.contains("to fit the context window") && note.contains("trimtab recall "), "{note}");
}

/// Where that is not enough and more than 85 % are still full, the last two stay, and a summary is wanted only where even
/// that is not enough.
#[test]
fn above_eighty_five_percent_the_last_two_stay_and_then_a_summary_is_wanted() {
    // Most of the conversation is in the last five results.
    let talk = (0..5).fold(results(5), |talk, number| talk.runs(&format!("cat {number}"), &output(400)));
    let sent = talk.fit("ladder", &[], budget(&talk, 99));
    assert_eq!(talk.whole("ladder", &[], budget(&talk, 99)), [9, 10]);
    assert!(!sent.fitted.plan.fold_wanted(), "two results are under 85 %");
    assert_eq!(talk.whole("ladder", &[("keep_last_hard", 1.0)], budget(&talk, 99)), [10]);
    // Most of it is what the user said: clearing does not help.
    let talk = results(5).says("user", &source(1, 3_000));
    assert!(talk.fit("ladder", &[], budget(&talk, 99)).fitted.plan.fold_wanted());
    assert!(!talk.fit("ladder", &[("compact_threshold", 1.0)], budget(&talk, 99)).fitted.plan.fold_wanted());
}

/// Above 95 %, which the document calls critical without saying what to do, exchanges go, the least valuable first.
#[test]
fn above_ninety_five_percent_exchanges_go() {
    // What is said in calls cannot be cleared.
    let talk = (0..40).fold(Talk::new(), |talk, number| {
        talk.runs(&format!("echo {number} {}", "and so on ".repeat(30)), "ok")
    });
    let sent = talk.fit("ladder", &[], budget(&talk, 110));
    assert!(sent.result(1).is_none(), "the oldest exchange is still there");
    assert!(sent.fitted.plan.after().0 <= budget(&talk, 105) * 95 / 100);
    let later = talk.fit("ladder", &[("critical_threshold", 1.0)], budget(&talk, 110));
    assert!(later.fitted.plan.after() > sent.fitted.plan.after());
}

/// The document's code keeps all results where none is to be kept: here nought means none but what the model has not seen.
#[test]
fn keep_last_nought_means_none_but_what_is_unseen() {
    let talk = results(6);
    assert_eq!(talk.whole("ladder", &[("keep_last", 0.0)], budget(&talk, 72)), [6]);
}

/// The last four messages cut at any place would tear calls from results; exchanges go as a whole.
#[test]
fn calls_and_results_go_together() {
    let talk = results(20);
    for percent in [100, 150, 300, 600] {
        let sent = talk.fit("ladder", &[], budget(&talk, percent));
        let messages = sent.request["messages"].as_array().expect("messages");
        let calls: Vec<String> = messages
            .iter()
            .flat_map(|message| message["tool_calls"].as_array().into_iter().flatten())
            .map(|call| call["id"].to_string())
            .collect();
        let results: Vec<String> = messages
            .iter()
            .filter(|message| message["role"] == "tool")
            .map(|message| message["tool_call_id"].to_string())
            .collect();
        assert_eq!(calls, results, "{percent} %");
    }
}

/// A single output over 50,000 bytes keeps its beginning and end and has at most 50,000 bytes; bytes are bytes, also where
/// letters have several.
#[test]
fn a_huge_output_is_cut_in_its_middle_to_fifty_thousand_bytes() {
    let wide: String = (0..2_000).map(|line| format!("{line} 日本語のとても長い行です。\n")).collect();
    for text in [output(2_000), wide] {
        assert!(text.len() > 50_000);
        let shown = Talk::new().reads("x", &text).fit("ladder", &[], ROOM).shown(1);
        assert!(shown.len() <= 50_000 && shown.len() > 45_000, "{}", shown.len());
        assert!(shown.lines().take(100).eq(text.lines().take(100)), "its beginning");
        let end = |text: &str, skip: usize| {
            text.lines().rev().skip(skip).take(100).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(end(&shown, 1), end(&text, 0));
        assert!(shown.contains(" omitted …]"));
    }
    let just = &output(2_000)[..50_000];
    assert_eq!(Talk::new().reads("x", just).whole("ladder", &[], ROOM), [1]);
    assert_eq!(
        Talk::new().reads("x", just).whole("ladder", &[("max_bytes", 10_000.0)], ROOM),
        Vec::<usize>::new()
    );
}

/// The document's code makes 533 bytes of 500 where at most 100 are asked for: nothing ever grows.
#[test]
fn a_tiny_limit_never_makes_an_output_longer() {
    let text = &output(20)[..500];
    for limit in [0.0, 1.0, 50.0, 100.0, 400.0] {
        let shown = Talk::new().reads("x", text).fit("ladder", &[("max_bytes", limit)], ROOM).shown(1);
        assert!(shown.len() <= 500, "{limit}: {shown}");
    }
}
