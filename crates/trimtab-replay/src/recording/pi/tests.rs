//! pi sessions, line by line, and the pictures of what is read in them.

use crate::recording::picture::{check, lines};

const HEAD: &str = r#"{"type":"session","id":"s","cwd":"/w","timestamp":"1970-01-01T00:00:01Z"}"#;
const ASK: &str = r#"{"type":"message","timestamp":"1970-01-01T00:00:02Z","message":{"role":"user","content":[{"type":"text","text":"Look."}],"timestamp":2000}}"#;

/// Writes an answer, stamped when its request was sent.
fn answer(api: &str, reason: &str, content: &str) -> String {
    format!(
        r#"{{"type":"message","timestamp":"1970-01-01T00:00:09Z","message":{{"role":"assistant","content":[{content}],"api":"{api}","model":"m","usage":{{"input":1,"output":2,"cacheRead":3,"cacheWrite":4}},"stopReason":"{reason}","timestamp":1700000000000}}}}"#
    )
}

fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

fn call(id: &str) -> String {
    format!(r#"{{"type":"toolCall","id":"{id}","name":"read","arguments":{{"path":"x"}}}}"#)
}

fn result(id: &str, failed: bool) -> String {
    format!(
        r#"{{"type":"message","message":{{"role":"toolResult","toolCallId":"{id}","toolName":"read","content":[{{"type":"text","text":"ok"}}],"isError":{failed}}}}}"#
    )
}

/// Puts a line of an old file into the tree of a new one.
fn at(id: &str, parent: &str, line: &str) -> String {
    line.replacen('{', &format!(r#"{{"id":"{id}","parentId":{parent},"#), 1)
}

#[test]
fn a_plain_turn_has_thinking_with_its_signature_and_usage_as_it_stands() {
    let thought = r#"{"type":"thinking","thinking":"Hm.","thinkingSignature":"sig"}"#;
    check(
        lines(&[HEAD, ASK, &answer("anthropic-messages", "stop", &format!("{thought},{}", text("Done.")))]),
        &[
            "pi",
            "session, anthropic",
            "  user: Look.",
            "  assistant: reasoning(Hm.) + Done.",
            "  @1 1700000000000ms m 1+3r+4w>2",
        ],
    );
}

#[test]
fn results_of_parallel_calls_share_a_message() {
    let calls = answer("anthropic-messages", "toolUse", &format!("{},{}", call("a"), call("b")));
    let done = answer("anthropic-messages", "stop", &text("Done."));
    check(
        lines(&[HEAD, ASK, &calls, &result("a", false), &result("b", true), &done]),
        &[
            "pi",
            "session, anthropic",
            "  user: Look.",
            r#"  assistant: read#a {"path":"x"} + read#b {"path":"x"}"#,
            "  user: read#a = ok + read#b failed: ok",
            "  assistant: Done.",
            "  @1 1700000000000ms m 1+3r+4w>2",
            "  @3 1700000000000ms m 1+3r+4w>2",
        ],
    );
}

#[test]
fn chat_and_responses_spell_results_as_messages_of_their_own() {
    for (api, format) in [("openai-completions", "chat"), ("openai-responses", "responses")] {
        let calls = answer(api, "toolUse", &call("a|fc_1"));
        let done = answer(api, "stop", &text("Done."));
        check(
            lines(&[HEAD, ASK, &calls, &result("a|fc_1", false), &done]),
            &[
                "pi",
                &format!("session, {format}"),
                "  user: Look.",
                r#"  assistant: read#a {"path":"x"}"#,
                "  tool: read#a = ok",
                "  assistant: Done.",
                "  @1 1700000000000ms m 1+3r+4w>2",
                "  @3 1700000000000ms m 1+3r+4w>2",
            ],
        );
    }
}

#[test]
fn a_broken_off_answer_was_asked_for_but_is_not_sent_again() {
    let cut = answer("anthropic-messages", "aborted", &call("a"));
    let failed =
        cut.replace(r#""input":1,"output":2,"cacheRead":3,"cacheWrite":4"#, r#""input":0,"output":0"#);
    let done = answer("anthropic-messages", "stop", &text("Done."));
    check(
        lines(&[HEAD, ASK, &cut, ASK, &failed, ASK, &done]),
        &[
            "pi",
            "session, anthropic",
            "  user: Look.",
            "  user: Look.",
            "  user: Look.",
            "  assistant: Done.",
            "  @1 1700000000000ms m 1+3r+4w>2",
            "  @3 1700000000000ms m 1+3r+4w>2",
        ],
    );
}

#[test]
fn a_call_without_a_result_gets_the_one_that_pi_sends() {
    let calls = answer("anthropic-messages", "toolUse", &call("a"));
    check(
        lines(&[HEAD, ASK, &calls, ASK]),
        &[
            "pi",
            "session, anthropic",
            "  user: Look.",
            r#"  assistant: read#a {"path":"x"}"#,
            "  user: read#a failed: No result provided",
            "  user: Look.",
            "  @1 1700000000000ms m 1+3r+4w>2",
        ],
    );
}

#[test]
fn a_compaction_begins_with_the_summary_and_what_it_kept() {
    let done = answer("anthropic-messages", "stop", &text("Done."));
    let old = r#"{"type":"compaction","summary":"In short.","firstKeptEntryIndex":3}"#;
    let expected = [
        "pi",
        "session, anthropic",
        "  user: Look.",
        "  assistant: Done.",
        "  user: Look.",
        "  assistant: Done.",
        "  @1 1700000000000ms m 1+3r+4w>2",
        "  @3 1700000000000ms m 1+3r+4w>2",
        "compaction, anthropic",
        "  user: The conversation history before this point was compacted into the following summary://<summary>/In short./</summary>",
        "  user: Look.",
        "  assistant: Done.",
        "  user: Look.",
        "  assistant: Done.",
        "  @4 1700000000000ms m 1+3r+4w>2",
    ];
    check(lines(&[HEAD, ASK, &done, ASK, &done, old, ASK, &done]), &expected);
    let new = old.replace(r#""firstKeptEntryIndex":3"#, r#""firstKeptEntryId":"c""#);
    check(
        lines(&[
            HEAD,
            &at("a", "null", ASK),
            &at("b", r#""a""#, &done),
            &at("c", r#""b""#, ASK),
            &at("d", r#""c""#, &done),
            &at("e", r#""d""#, &new),
            &at("f", r#""e""#, ASK),
            &at("g", r#""f""#, &done),
        ]),
        &expected,
    );
}

#[test]
fn another_way_from_an_earlier_entry_is_a_branch() {
    let done = answer("anthropic-messages", "stop", &text("Done."));
    let summary = r#"{"type":"branch_summary","fromId":"d","summary":"Led nowhere."}"#;
    check(
        lines(&[
            HEAD,
            &at("a", "null", ASK),
            &at("b", r#""a""#, &done),
            &at("c", r#""b""#, ASK),
            &at("d", r#""c""#, &done),
            &at("e", r#""b""#, summary),
            &at("f", r#""e""#, ASK),
            &at("g", r#""f""#, &done),
        ]),
        &[
            "pi",
            "session, anthropic",
            "  user: Look.",
            "  assistant: Done.",
            "  user: Look.",
            "  assistant: Done.",
            "  @1 1700000000000ms m 1+3r+4w>2",
            "  @3 1700000000000ms m 1+3r+4w>2",
            "branch, anthropic",
            "  user: Look.",
            "  assistant: Done.",
            "  user: The following is a summary of a branch that this conversation came back from://<summary>/Led nowhere.</summary>",
            "  user: Look.",
            "  assistant: Done.",
            "  @4 1700000000000ms m 1+3r+4w>2",
        ],
    );
}

#[test]
fn what_the_user_ran_is_told_unless_he_keeps_it_to_himself() {
    let ran = r#"{"type":"message","message":{"role":"bashExecution","command":"ls","output":"","exitCode":2,"cancelled":false,"truncated":false}}"#;
    let kept = ran.replace(r#""command":"ls""#, r#""command":"ls","excludeFromContext":true"#);
    let done = answer("anthropic-messages", "stop", &text("Done."));
    check(
        lines(&[HEAD, ran, &kept, ASK, &done]),
        &[
            "pi",
            "session, anthropic",
            "  user: Ran `ls`/(no output)//Command exited with code 2",
            "  user: Look.",
            "  assistant: Done.",
            "  @2 1700000000000ms m 1+3r+4w>2",
        ],
    );
}

#[test]
fn thoughts_of_another_model_are_text_to_the_one_that_answers_most() {
    let other = answer(
        "openai-responses",
        "stop",
        r#"{"type":"thinking","thinking":"Hm.","thinkingSignature":"{}"},{"type":"text","text":"Done."}"#,
    );
    let other = other.replace(r#""model":"m""#, r#""model":"n""#);
    let done = answer("anthropic-messages", "stop", &text("Done."));
    check(
        lines(&[HEAD, ASK, &other, ASK, &done, ASK, &done]),
        &[
            "pi",
            "session, anthropic",
            "  user: Look.",
            "  assistant: Hm. + Done.",
            "  user: Look.",
            "  assistant: Done.",
            "  user: Look.",
            "  assistant: Done.",
            "  @1 1700000000000ms n 1+3r+4w>2",
            "  @3 1700000000000ms m 1+3r+4w>2",
            "  @5 1700000000000ms m 1+3r+4w>2",
        ],
    );
}

#[test]
fn a_bad_line_is_listed_and_the_rest_is_read() {
    check(
        lines(&[HEAD, ASK, r#"{"type":"mess"#, &answer("anthropic-messages", "stop", &text("Done."))]),
        &[
            "pi",
            "session, anthropic",
            "  user: Look.",
            "  assistant: Done.",
            "  @1 1700000000000ms m 1+3r+4w>2",
            "line 3: not JSON: it breaks off at column 14, where a closing quote was expected",
        ],
    );
}

#[test]
fn behind_a_bad_line_the_tree_goes_on_from_the_line_before() {
    let done = answer("anthropic-messages", "stop", &text("Done."));
    check(
        lines(&[
            HEAD,
            &at("a", "null", ASK),
            r#"{"id":"b"#,
            &at("c", r#""b""#, ASK),
            &at("d", r#""c""#, &done),
        ]),
        &[
            "pi",
            "session, anthropic",
            "  user: Look.",
            "  user: Look.",
            "  assistant: Done.",
            "  @2 1700000000000ms m 1+3r+4w>2",
            "line 3: not JSON: it breaks off at column 9, where a closing quote was expected",
        ],
    );
}

#[test]
fn a_broken_signature_is_left_out_and_said_so() {
    let thought = |signature: &str| {
        format!(r#"{{"type":"thinking","thinking":"Hm.","thinkingSignature":"{signature}"}}"#)
    };
    let whole =
        thought(r#"{\"type\":\"reasoning\",\"id\":\"r\",\"encrypted_content\":\"e\",\"summary\":[]}"#);
    let first = answer("openai-responses", "stop", &format!("{whole},{}", text("One.")));
    let cut = answer(
        "openai-responses",
        "stop",
        &format!("{},{}", thought(r#"{\"type\":\"reasoning\",\"id\":"#), text("Two.")),
    );
    let other =
        answer("openai-responses", "stop", &format!("{},{}", thought(r#"{\"id\":7}"#), text("Three.")));
    check(
        lines(&[HEAD, ASK, &first, ASK, &cut, ASK, &other]),
        &[
            "pi",
            "session, responses",
            "  user: Look.",
            "  assistant: reasoning()",
            "  assistant: One.",
            "  user: Look.",
            "  assistant: reasoning(Hm.)",
            "  assistant: Two.",
            "  user: Look.",
            "  assistant: reasoning(Hm.)",
            "  assistant: Three.",
            "  @1 1700000000000ms m 1+3r+4w>2",
            "  @4 1700000000000ms m 1+3r+4w>2",
            "  @7 1700000000000ms m 1+3r+4w>2",
            "line 5: a `thinkingSignature` is no reasoning item in JSON: left out",
            "line 7: a `thinkingSignature` is no reasoning item in JSON: left out",
        ],
    );
}
