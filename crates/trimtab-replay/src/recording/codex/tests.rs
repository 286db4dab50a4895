//! Codex rollouts, line by line, and the pictures of what is read in them.

use crate::recording::picture::{check, lines};

const META: &str = r#"{"timestamp":"1970-01-01T00:00:01Z","type":"session_meta","payload":{"id":"s","base_instructions":{"text":"Be brief."}}}"#;
const MODEL: &str = r#"{"type":"turn_context","payload":{"model":"gpt-5"}}"#;
const ASK: &str = r#"{"timestamp":"1970-01-01T00:00:02Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Look."}],"internal_chat_message_metadata_passthrough":{"turn_id":"t"}}}"#;
const DONE: &str = r#"{"timestamp":"1970-01-01T00:00:09Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}}"#;

fn count(total: u32, input: u32, cached: u32, output: u32) -> String {
    format!(
        r#"{{"type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"total_tokens":{total}}},"last_token_usage":{{"input_tokens":{input},"cached_input_tokens":{cached},"output_tokens":{output}}}}}}}}}"#
    )
}

fn item(json: &str) -> String {
    format!(r#"{{"timestamp":"1970-01-01T00:00:05Z","type":"response_item","payload":{json}}}"#)
}

#[test]
fn cached_input_is_counted_once_and_a_repeated_total_is_no_request() {
    check(
        lines(&[META, MODEL, ASK, DONE, &count(13, 10, 4, 3), &count(13, 99, 0, 0)]),
        &[
            "codex", "session, responses", "  system: Be brief.", "  user: Look.", "  assistant: Done.",
            "  @1 2000ms gpt-5 6+4r+0w>3",
        ],
    );
}

#[test]
fn parallel_calls_are_one_answer_and_their_outputs_one_request() {
    let shell = item(r#"{"type":"function_call","name":"shell","arguments":"{}","call_id":"a"}"#);
    let patch = item(r#"{"type":"custom_tool_call","name":"patch","input":"+1","call_id":"b"}"#);
    let ran = item(r#"{"type":"function_call_output","call_id":"a","output":"ok"}"#);
    let patched = item(r#"{"type":"custom_tool_call_output","call_id":"b","output":"fine"}"#);
    let kept = item(r#"{"type":"ghost_snapshot","ghost_commit":{}}"#);
    check(
        lines(&[ASK, &shell, &patch, &kept, &ran, &patched, &count(1, 5, 0, 1), DONE, &count(2, 8, 5, 1)]),
        &[
            "codex", "session, responses", "  user: Look.", "  assistant: shell#a {}",
            "  assistant: patch#b +1", "  tool: shell#a = ok", "  tool: patch#b = fine",
            "  assistant: Done.", "  @1 2000ms 5+0r+0w>1", "  @5 5000ms 3+5r+0w>1",
        ],
    );
}

#[test]
fn an_output_that_comes_between_calls_does_not_end_the_answer() {
    let call = |id: &str| {
        item(&format!(r#"{{"type":"function_call","name":"shell","arguments":"{{}}","call_id":"{id}"}}"#))
    };
    let ran =
        |id: &str| item(&format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"ok"}}"#));
    check(
        lines(&[ASK, &call("a"), &ran("a"), &call("b"), &ran("b"), &count(1, 5, 0, 1)]),
        &[
            "codex", "session, responses", "  user: Look.", "  assistant: shell#a {}",
            "  tool: shell#a = ok", "  assistant: shell#b {}", "  tool: shell#b = ok",
            "  @1 2000ms 5+0r+0w>1",
        ],
    );
}

#[test]
fn a_call_that_was_cut_off_gets_the_output_that_codex_sends() {
    let call = item(r#"{"type":"local_shell_call","call_id":"a","action":{"type":"exec"}}"#);
    let aborted = r#"{"type":"event_msg","payload":{"type":"turn_aborted"}}"#;
    check(
        lines(&[ASK, &call, aborted, ASK, DONE]),
        &[
            "codex",
            "session, responses",
            "  user: Look.",
            r#"  assistant: local_shell_call#a {"type":"exec"}"#,
            "  tool: local_shell_call#a = aborted",
            "  user: Look.",
            "  assistant: Done.",
            "  @1 2000ms",
            "  @4 2000ms",
        ],
    );
}

#[test]
fn a_compaction_begins_with_the_history_that_replaces_the_old_one() {
    let compacted = r#"{"timestamp":"1970-01-01T00:00:20Z","type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"In short."}]}]}}"#;
    check(
        lines(&[
            META,
            MODEL,
            ASK,
            DONE,
            &count(1, 5, 0, 1),
            compacted,
            &count(1, 0, 0, 0),
            DONE,
            &count(2, 3, 0, 1),
        ]),
        &[
            "codex", "session, responses", "  system: Be brief.", "  user: Look.", "  assistant: Done.",
            "  @1 2000ms gpt-5 5+0r+0w>1", "compaction, responses", "  system: Be brief.",
            "  user: In short.", "  assistant: Done.", "  @1 20000ms gpt-5 3+0r+0w>1",
        ],
    );
}

#[test]
fn an_old_compaction_keeps_what_was_told_and_adds_the_summary() {
    let compacted = r#"{"type":"compacted","payload":{"message":"All good."}}"#;
    check(
        lines(&[ASK, DONE, compacted, DONE]),
        &[
            "codex", "session, responses", "  user: Look.", "  assistant: Done.", "  @1 2000ms",
            "compaction, responses", "  user: Look.", "  user: All good.", "  assistant: Done.",
            "  @2 2000ms",
        ],
    );
}

#[test]
fn a_rollback_takes_back_turns_of_the_user() {
    let context = item(
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>"}]}"#,
    );
    let back = r#"{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}"#;
    check(
        lines(&[&context, ASK, DONE, back, ASK, DONE]),
        &[
            "codex",
            "session, responses",
            "  user: <environment_context>",
            "  user: Look.",
            "  assistant: Done.",
            "  @2 2000ms",
            "branch, responses",
            "  user: <environment_context>",
            "  user: Look.",
            "  assistant: Done.",
            "  @2 2000ms",
        ],
    );
}

#[test]
fn a_sub_agent_says_so_in_its_head() {
    let meta = r#"{"type":"session_meta","payload":{"source":{"subagent":{"thread_spawn":{}}},"agent_nickname":"Ada"}}"#;
    check(
        lines(&[meta, ASK, DONE]),
        &["codex", "sub-agent (agent Ada), responses", "  user: Look.", "  assistant: Done.", "  @1 2000ms"],
    );
}

#[test]
fn old_rollouts_have_bare_items() {
    check(
        lines(&[
            r#"{"id":"s","timestamp":"1970-01-01T00:00:01Z","instructions":null}"#,
            r#"{"record_type":"state"}"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}"#,
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello"}]}"#,
        ]),
        &["codex", "session, responses", "  user: Hi", "  assistant: Hello", "  @1"],
    );
}

#[test]
fn a_bad_line_is_listed_and_the_rest_is_read() {
    check(
        lines(&[ASK, r#"{"type":"response_item","payl"#, DONE]),
        &[
            "codex",
            "session, responses",
            "  user: Look.",
            "  assistant: Done.",
            "  @1 2000ms",
            "line 2: not JSON: it breaks off at column 30, where a closing quote was expected",
        ],
    );
}
