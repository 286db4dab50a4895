//! Claude Code transcripts, line by line, and the pictures of what is read in them.

use crate::recording::picture::{check, lines};

const ASK: &str = r#"{"type":"user","uuid":"u1","parentUuid":null,"timestamp":"1970-01-01T00:00:02Z","message":{"role":"user","content":"Look."}}"#;

/// Writes a line after another one; `fields` are those of a user's or an assistant's line.
fn line(uuid: &str, parent: &str, fields: &str) -> String {
    format!(r#"{{"uuid":"{uuid}","parentUuid":"{parent}","timestamp":"1970-01-01T00:00:09Z",{fields}}}"#)
}

fn user(uuid: &str, parent: &str, content: &str) -> String {
    line(uuid, parent, &format!(r#""type":"user","message":{{"role":"user","content":{content}}}"#))
}

fn result(uuid: &str, parent: &str, call: &str, text: &str) -> String {
    user(uuid, parent, &format!(r#"[{{"type":"tool_result","tool_use_id":"{call}","content":"{text}"}}]"#))
}

/// Writes a piece of an answer; `id` is the answer's.
fn piece(uuid: &str, parent: &str, id: &str, block: &str) -> String {
    line(
        uuid,
        parent,
        &format!(
            r#""type":"assistant","message":{{"role":"assistant","id":"{id}","model":"m","content":[{block}],"usage":{{"input_tokens":1,"cache_read_input_tokens":2,"cache_creation_input_tokens":3,"output_tokens":4}}}}"#
        ),
    )
}

fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

fn call(id: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"Read","input":{{}}}}"#)
}

#[test]
fn a_plain_turn_is_one_request_sent_when_the_user_wrote() {
    check(
        lines(&[ASK, &piece("a1", "u1", "r1", &text("Done."))]),
        &[
            "claude-code", "session, anthropic", "  user: Look.", "  assistant: Done.",
            "  @1 2000ms m 1+2r+3w>4",
        ],
    );
}

#[test]
fn pieces_of_an_answer_are_joined_though_results_stand_between_them() {
    check(
        lines(&[
            ASK,
            &piece("a1", "u1", "r1", r#"{"type":"thinking","thinking":"Hm.","signature":"s"}"#),
            &piece("a2", "a1", "r1", &call("x")),
            &result("u2", "a2", "x", "one"),
            &piece("a3", "a2", "r1", &call("y")),
            &result("u3", "a3", "y", "two"),
            &piece("a4", "u3", "r2", &text("Done.")),
        ]),
        &[
            "claude-code",
            "session, anthropic",
            "  user: Look.",
            "  assistant: reasoning(Hm.) + Read#x {} + Read#y {}",
            "  user: Read#x = one + Read#y = two",
            "  assistant: Done.",
            "  @1 2000ms m 1+2r+3w>4",
            "  @3 9000ms m 1+2r+3w>4",
        ],
    );
}

#[test]
fn results_stand_before_the_text_of_their_message() {
    check(
        lines(&[
            ASK,
            &piece("a1", "u1", "r1", &format!("{},{}", call("x"), call("y"))),
            &user("u2", "a1", r#""Faster!""#),
            &result("u3", "u2", "y", "two"),
            &result("u4", "u3", "x", "one"),
        ]),
        &[
            "claude-code",
            "session, anthropic",
            "  user: Look.",
            "  assistant: Read#x {} + Read#y {}",
            "  user: Read#y = two + Read#x = one + Faster!",
            "  @1 2000ms m 1+2r+3w>4",
        ],
    );
}

#[test]
fn a_compaction_begins_with_its_summary() {
    let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"s1","parentUuid":null,"logicalParentUuid":"a1"}"#;
    check(
        lines(&[
            ASK,
            &piece("a1", "u1", "r1", &text("Done.")),
            boundary,
            &user("u2", "s1", r#""In short.""#),
            &user("u3", "u2", r#""Go on.""#),
            &piece("a2", "u3", "r2", &text("Again.")),
        ]),
        &[
            "claude-code", "session, anthropic", "  user: Look.", "  assistant: Done.",
            "  @1 2000ms m 1+2r+3w>4", "compaction, anthropic", "  user: In short. + Go on.",
            "  assistant: Again.", "  @1 9000ms m 1+2r+3w>4",
        ],
    );
}

#[test]
fn a_microcompaction_goes_on_with_the_named_results_cleared() {
    let boundary = r#"{"type":"system","subtype":"microcompact_boundary","uuid":"s1","parentUuid":"u3","microcompactMetadata":{"compactedToolIds":["x"]}}"#;
    check(
        lines(&[
            ASK,
            &piece("a1", "u1", "r1", &format!("{},{}", call("x"), call("y"))),
            &result("u2", "a1", "x", "one"),
            &result("u3", "u2", "y", "two"),
            boundary,
            &piece("a2", "s1", "r2", &text("Done.")),
        ]),
        &[
            "claude-code",
            "session, anthropic",
            "  user: Look.",
            "  assistant: Read#x {} + Read#y {}",
            "  user: Read#x = one + Read#y = two",
            "  @1 2000ms m 1+2r+3w>4",
            "compaction, anthropic",
            "  user: Look.",
            "  assistant: Read#x {} + Read#y {}",
            "  user: Read#x = [Old tool result content cleared] + Read#y = two",
            "  assistant: Done.",
            "  @3 9000ms m 1+2r+3w>4",
        ],
    );
}

#[test]
fn going_back_to_an_answered_message_is_a_branch() {
    check(
        lines(&[
            ASK,
            &piece("a1", "u1", "r1", &text("Done.")),
            &user("u2", "a1", r#""Left.""#),
            &piece("a2", "u2", "r2", &text("Left it is.")),
            &user("u3", "a1", r#""Right.""#),
            &piece("a3", "u3", "r3", &text("Right it is.")),
        ]),
        &[
            "claude-code", "session, anthropic", "  user: Look.", "  assistant: Done.", "  user: Left.",
            "  assistant: Left it is.", "  @1 2000ms m 1+2r+3w>4", "  @3 9000ms m 1+2r+3w>4",
            "branch, anthropic", "  user: Look.", "  assistant: Done.", "  user: Right.",
            "  assistant: Right it is.", "  @3 9000ms m 1+2r+3w>4",
        ],
    );
}

#[test]
fn side_chains_are_sub_agents_told_apart_by_their_first_line() {
    let side = |line: String| line.replacen('{', r#"{"isSidechain":true,"#, 1);
    let first = side(user("s1", "", r#""Find it.""#)).replace(r#""parentUuid":"""#, r#""parentUuid":null"#);
    let other = side(user("t1", "", r#""Count.""#))
        .replace(r#""parentUuid":"""#, r#""parentUuid":null,"agentId":"c0""#);
    check(
        lines(&[
            ASK,
            &piece("a1", "u1", "r1", &call("x")),
            &first,
            &other,
            &side(piece("s2", "s1", "r2", &text("Found."))),
            &result("u2", "a1", "x", "Found."),
        ]),
        &[
            "claude-code",
            "session, anthropic",
            "  user: Look.",
            "  assistant: Read#x {}",
            "  user: Read#x = Found.",
            "  @1 2000ms m 1+2r+3w>4",
            "sub-agent (agent s1), anthropic",
            "  user: Find it.",
            "  assistant: Found.",
            "  @1 9000ms m 1+2r+3w>4",
            "sub-agent (agent c0), anthropic",
            "  user: Count.",
            "  @1",
        ],
    );
}

#[test]
fn progress_of_an_agent_holds_its_lines() {
    let progress = |line: String| {
        format!(
            r#"{{"type":"progress","uuid":"p","parentUuid":"a1","data":{{"type":"agent_progress","agentId":"c0","message":{line}}}}}"#
        )
    };
    check(
        lines(&[
            ASK,
            &piece("a1", "u1", "r1", &call("x")),
            &progress(user("s1", "", r#""Find it.""#)),
            &progress(piece("s2", "s1", "r2", &text("Found."))),
        ]),
        &[
            "claude-code",
            "session, anthropic",
            "  user: Look.",
            "  assistant: Read#x {}",
            "  @1 2000ms m 1+2r+3w>4",
            "sub-agent (agent c0), anthropic",
            "  user: Find it.",
            "  assistant: Found.",
            "  @1 9000ms m 1+2r+3w>4",
        ],
    );
}

#[test]
fn an_error_shown_as_an_answer_is_neither_sent_nor_asked_for() {
    let shown =
        piece("a1", "u1", "r1", &text("API Error: 529")).replacen('{', r#"{"isApiErrorMessage":true,"#, 1);
    let made_up =
        piece("a2", "a1", "r2", &text("No response.")).replace(r#""model":"m""#, r#""model":"<synthetic>""#);
    check(
        lines(&[ASK, &shown, &made_up, &piece("a3", "a2", "r3", &text("Done."))]),
        &[
            "claude-code", "session, anthropic", "  user: Look.", "  assistant: Done.",
            "  @1 2000ms m 1+2r+3w>4",
        ],
    );
}

#[test]
fn two_values_on_one_line_are_both_read_and_a_last_line_that_breaks_off_is_listed() {
    let answer = piece("a1", "u1", "r1", &text("Done."));
    check(
        lines(&[&format!("{ASK}{answer}"), r#"{"type":"user","mess"#]),
        &[
            "claude-code",
            "session, anthropic",
            "  user: Look.",
            "  assistant: Done.",
            "  @1 2000ms m 1+2r+3w>4",
            "line 2: not JSON: it breaks off at column 21, where a closing quote was expected",
        ],
    );
}

#[test]
fn lines_without_content_are_listed_and_the_rest_is_read() {
    check(
        lines(&[
            ASK,
            r#"{"type":"user","uuid":"u2","parentUuid":"u1","message":{"role":"user"}}"#,
            "7",
            r#"{"type":"assistant","uuid":"a0","parentUuid":"u2","message":{"role":"assistant"}}"#,
            &piece("a1", "u2", "r1", &text("Done.")),
        ]),
        &[
            "claude-code",
            "session, anthropic",
            "  user: Look.",
            "  assistant: Done.",
            "  @1 2000ms m 1+2r+3w>4",
            "line 2: a user line without `message.content`",
            "line 3: expected an object",
            "line 4: an assistant line without `message.content`",
        ],
    );
}
