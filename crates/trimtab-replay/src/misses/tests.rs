//! Reasons in transcripts of Claude Code, written line by line so that every figure can be checked by hand.

use trimtab_core::prices::models;

use super::*;
use crate::recording::read;

/// A request and its answer: minutes since the start, tokens read and written.
fn turn(number: usize, minutes: i64, read: u64, written: u64) -> [String; 2] {
    let at = format!("2026-01-01T{:02}:{:02}:00Z", minutes / 60, minutes % 60);
    [
        format!(
            r#"{{"type":"user","uuid":"u{number}","parentUuid":"a{}","timestamp":"{at}","message":{{"role":"user","content":"Go on."}}}}"#,
            number - 1
        ),
        format!(
            r#"{{"type":"assistant","uuid":"a{number}","parentUuid":"u{number}","timestamp":"{at}","message":{{"role":"assistant","id":"r{number}","model":"claude-opus-4-8","content":[{{"type":"text","text":"Done."}}],"usage":{{"input_tokens":0,"cache_read_input_tokens":{read},"cache_creation_input_tokens":{written},"output_tokens":1}}}}}}"#
        ),
    ]
}

/// Reads the lines; compares the number of each request that missed something, the tokens and the reason's name.
#[track_caller]
fn check(lines: &[String], expected: &[(usize, u64, &str)]) -> ExplainedRecording {
    let recording = read(lines.join("\n").as_bytes()).expect("a recording");
    let explained = explain_recording(&recording, &models());
    let found: Vec<(usize, u64, &str)> = explained
        .requests
        .iter()
        .enumerate()
        .filter_map(|(index, row)| {
            Some((index + 1, row.miss.as_ref()?.again.0, row.miss.as_ref()?.reason.name()))
        })
        .collect();
    assert_eq!(found, expected);
    explained
}

#[test]
fn a_pause_is_told_from_what_the_recording_does_not_hold() {
    let lines = [
        turn(1, 0, 0, 30_000),
        turn(2, 1, 30_000, 1_000),
        turn(3, 9, 0, 32_000),
        turn(4, 10, 12_000, 21_000),
    ];
    let explained = check(&lines.concat(), &[(3, 31_000, "expired"), (4, 20_000, "unrecorded-change")]);
    assert_eq!(
        (explained.summary.requests, explained.summary.input),
        (4, Tokens(30_000 + 31_000 + 32_000 + 33_000))
    );
    assert_eq!(explained.summary.again, Tokens(51_000));
}

#[test]
fn a_compaction_begins_a_segment_whose_first_request_is_written_again() {
    let boundary =
        r#"{"type":"system","subtype":"compact_boundary","uuid":"c","timestamp":"2026-01-01T00:02:00Z"}"#;
    let lines = [
        turn(1, 0, 0, 30_000).to_vec(),
        turn(2, 1, 30_000, 20_000).to_vec(),
        vec![boundary.to_owned()],
        turn(3, 2, 12_000, 8_000).to_vec(),
        turn(4, 3, 20_000, 500).to_vec(),
    ];
    // All 20,000 tokens of the new request could have been there: 8,000 were written.
    check(&lines.concat(), &[(3, 8_000, "compaction")]);
}

#[test]
fn a_branch_goes_on_from_the_request_that_both_share() {
    // The third request goes back to the answer of the first, which left 30,000 tokens.
    let mut back = turn(3, 2, 30_000, 700).to_vec();
    back[0] = back[0].replace("\"parentUuid\":\"a2\"", "\"parentUuid\":\"a1\"").replace("Go on.", "Stop.");
    let lines = [turn(1, 0, 0, 30_000).to_vec(), turn(2, 1, 30_000, 20_000).to_vec(), back];
    check(&lines.concat(), &[]);
}
