//! pi sessions, line by line, and the pictures of what is read in them.

use crate::recording::picture_lines::check;

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
        &[HEAD, ASK, &answer("anthropic-messages", "stop", &format!("{thought},{}", text("Done.")))],
        &[
            "session anthropic | user: Look. | assistant: reasoning Hm. + Done.",
            "  1 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
        ],
    );
}

#[test]
fn results_of_parallel_calls_share_a_message() {
    let calls = answer("anthropic-messages", "toolUse", &format!("{},{}", call("a"), call("b")));
    let done = answer("anthropic-messages", "stop", &text("Done."));
    check(
        &[HEAD, ASK, &calls, &result("a", false), &result("b", true), &done],
        &[
            "session anthropic | user: Look. | assistant: read({\"path\":\"x\"}) + read({\"path\":\"x\"}) \
             | user: read gave ok + read failed ok | assistant: Done.",
            "  1 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
            "  3 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
        ],
    );
}

#[test]
fn chat_and_responses_spell_results_as_messages_of_their_own() {
    let lines = |api: &str| [answer(api, "toolUse", &call("a|fc_1")), answer(api, "stop", &text("Done."))];
    let [calls, done] = lines("openai-completions");
    check(
        &[HEAD, ASK, &calls, &result("a|fc_1", false), &done],
        &[
            "session chat | user: Look. | assistant: read({\"path\":\"x\"}) | tool: read gave ok | assistant: Done.",
            "  1 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
            "  3 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
        ],
    );
    let [calls, done] = lines("openai-responses");
    check(
        &[HEAD, ASK, &calls, &result("a|fc_1", false), &done],
        &[
            "session responses | user: Look. | assistant: read({\"path\":\"x\"}) | tool: read gave ok | assistant: Done.",
            "  1 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
            "  3 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
        ],
    );
}

#[test]
fn a_broken_off_answer_was_asked_for_but_is_not_sent_again() {
    let cut = answer("anthropic-messages", "aborted", &call("a"));
    let failed =
        cut.replace(r#""input":1,"output":2,"cacheRead":3,"cacheWrite":4"#, r#""input":0,"output":0"#);
    let done = answer("anthropic-messages", "stop", &text("Done."));
    check(
        &[HEAD, ASK, &cut, ASK, &failed, ASK, &done],
        &[
            "session anthropic | user: Look. | user: Look. | user: Look. | assistant: Done.",
            "  1 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
            "  3 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
        ],
    );
}

#[test]
fn a_call_without_a_result_gets_the_one_that_pi_sends() {
    let calls = answer("anthropic-messages", "toolUse", &call("a"));
    check(
        &[HEAD, ASK, &calls, ASK],
        &[
            "session anthropic | user: Look. | assistant: read({\"path\":\"x\"}) | user: read failed No result provided \
             | user: Look.",
            "  1 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
        ],
    );
}

#[test]
fn a_compaction_begins_with_the_summary_and_what_it_kept() {
    let done = answer("anthropic-messages", "stop", &text("Done."));
    let old = r#"{"type":"compaction","summary":"In short.","firstKeptEntryIndex":3}"#;
    let expected = [
        "session anthropic | user: Look. | assistant: Done. | user: Look. | assistant: Done.",
        "  1 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
        "  3 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
        "compaction anthropic | user: The conversation history before this poi | user: Look. | assistant: Done. \
         | user: Look. | assistant: Done.",
        "  4 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
    ];
    check(&[HEAD, ASK, &done, ASK, &done, old, ASK, &done], &expected);
    let new = old.replace(r#""firstKeptEntryIndex":3"#, r#""firstKeptEntryId":"c""#);
    check(
        &[
            HEAD,
            &at("a", "null", ASK),
            &at("b", r#""a""#, &done),
            &at("c", r#""b""#, ASK),
            &at("d", r#""c""#, &done),
            &at("e", r#""d""#, &new),
            &at("f", r#""e""#, ASK),
            &at("g", r#""f""#, &done),
        ],
        &expected,
    );
}

#[test]
fn another_way_from_an_earlier_entry_is_a_branch() {
    let done = answer("anthropic-messages", "stop", &text("Done."));
    let summary = r#"{"type":"branch_summary","fromId":"d","summary":"Led nowhere."}"#;
    check(
        &[
            HEAD,
            &at("a", "null", ASK),
            &at("b", r#""a""#, &done),
            &at("c", r#""b""#, ASK),
            &at("d", r#""c""#, &done),
            &at("e", r#""b""#, summary),
            &at("f", r#""e""#, ASK),
            &at("g", r#""f""#, &done),
        ],
        &[
            "session anthropic | user: Look. | assistant: Done. | user: Look. | assistant: Done.",
            "  1 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
            "  3 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
            "branch anthropic | user: Look. | assistant: Done. | user: The following is a summary of a branch t \
             | user: Look. | assistant: Done.",
            "  4 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
        ],
    );
}

#[test]
fn what_the_user_ran_is_told_unless_he_keeps_it_to_himself() {
    let ran = r#"{"type":"message","message":{"role":"bashExecution","command":"ls","output":"","exitCode":2,"cancelled":false,"truncated":false}}"#;
    let kept = ran.replace(r#""command":"ls""#, r#""command":"ls","excludeFromContext":true"#);
    let done = answer("anthropic-messages", "stop", &text("Done."));
    check(
        &[HEAD, ran, &kept, ASK, &done],
        &[
            "session anthropic | user: Ran `ls`/(no output)//Command exited wit | user: Look. | assistant: Done.",
            "  2 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
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
        &[HEAD, ASK, &other, ASK, &done, ASK, &done],
        &[
            "session anthropic | user: Look. | assistant: Hm. + Done. | user: Look. | assistant: Done. | user: Look. \
             | assistant: Done.",
            "  1 messages at 1700000000000 to n: 1 new, 3 read, 4 written, 2 out",
            "  3 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
            "  5 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
        ],
    );
}

#[test]
fn a_bad_line_is_listed_and_the_rest_is_read() {
    check(
        &[HEAD, ASK, r#"{"type":"mess"#, &answer("anthropic-messages", "stop", &text("Done."))],
        &[
            "session anthropic | user: Look. | assistant: Done.",
            "  1 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
            "line 3: not JSON: column 14: expected a closing quote, found the end of the text",
        ],
    );
}

#[test]
fn behind_a_bad_line_the_tree_goes_on_from_the_line_before() {
    let done = answer("anthropic-messages", "stop", &text("Done."));
    check(
        &[HEAD, &at("a", "null", ASK), r#"{"id":"b"#, &at("c", r#""b""#, ASK), &at("d", r#""c""#, &done)],
        &[
            "session anthropic | user: Look. | user: Look. | assistant: Done.",
            "  2 messages at 1700000000000 to m: 1 new, 3 read, 4 written, 2 out",
            "line 3: not JSON: column 9: expected a closing quote, found the end of the text",
        ],
    );
}
