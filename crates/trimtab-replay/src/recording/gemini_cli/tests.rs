//! Small Gemini CLI sessions, each with the picture of what is read from it.

use crate::recording::picture::{check, lines};

const HEAD: &str =
    r#"{"sessionId":"s-1","projectHash":"abc","startTime":"1970-01-01T00:00:01Z","kind":"main"}"#;

fn session(messages: &[String]) -> String {
    format!(
        r#"{{"sessionId":"s-1","projectHash":"abc","startTime":"x","messages":[{}]}}"#,
        messages.join(",")
    )
}

/// Writes a record with its number as id and as the second it was written in.
fn said(number: u8, kind: &str, content: &str, more: &str) -> String {
    format!(
        r#"{{"id":"{number}","timestamp":"1970-01-01T00:00:0{number}Z","type":"{kind}","content":{content}{more}}}"#
    )
}

fn user(number: u8, text: &str) -> String {
    said(number, "user", &format!(r#"[{{"text":"{text}"}}]"#), "")
}

fn answer(number: u8, text: &str, more: &str) -> String {
    said(number, "gemini", &format!("\"{text}\""), &format!(r#","model":"gemini-3-pro-preview"{more}"#))
}

/// Writes the calls of an answer; the result is what the tool gave, as the model reads it.
fn call(id: &str, second: u8, response: &str) -> String {
    format!(
        r#"{{"id":"{id}","name":"read_file","args":{{"file_path":"a.rs"}},"status":"success","timestamp":"1970-01-01T00:00:0{second}Z",
        "result":[{{"functionResponse":{{"id":"{id}","name":"read_file","response":{response}}}}}],"resultDisplay":"a.rs"}}"#
    )
}

#[test]
fn an_answer_is_a_request_with_its_usage_and_its_results_follow() {
    let thoughts = r#","thoughts":[{"subject":"Looking","description":"I look."}]"#;
    let tokens = r#","tokens":{"input":100,"output":7,"cached":60,"thoughts":20,"tool":3,"total":130}"#;
    let calls =
        [call("c1", 4, r#"{"output":"fn a"}"#), call("c2", 5, r#"{"error":"no such file"}"#)].join(",");
    check(
        session(&[
            said(1, "info", "\"An update is there.\"", ""),
            user(2, "Fix it."),
            answer(3, "I look.", &format!(r#"{thoughts}{tokens},"toolCalls":[{calls}]"#)),
            answer(6, "Done.", ""),
        ]),
        &[
            "gemini-cli",
            "session (s-1), gemini",
            "  user: Fix it.",
            r#"  assistant: I look. + read_file#c1 {"file_path":"a.rs"} + read_file#c2 {"file_path":"a.rs"}"#,
            "  tool: read_file#c1 = fn a + read_file#c2 failed: no such file",
            "  assistant: Done.",
            "  @1 2000ms gemini-3-pro-preview 43+60r+0w>27",
            "  @3 5000ms gemini-3-pro-preview",
        ],
    );
}

#[test]
fn a_cancelled_call_belongs_to_the_answer_before_it() {
    let tokens = r#","tokens":{"input":10,"output":2,"cached":0,"thoughts":0,"tool":0,"total":12}"#;
    let cancelled = call("c1", 3, r#"{"error":"cancelled"}"#);
    check(
        session(&[
            user(1, "Go."),
            answer(2, "I run it.", tokens),
            said(3, "info", "\"Request cancelled.\"", ""),
            answer(3, "", &format!(r#","toolCalls":[{cancelled}]"#)),
            user(4, "Wait."),
        ]),
        &[
            "gemini-cli",
            "session (s-1), gemini",
            "  user: Go.",
            "  assistant: I run it.",
            r#"  assistant: read_file#c1 {"file_path":"a.rs"}"#,
            "  tool: read_file#c1 failed: cancelled",
            "  user: Wait.",
            "  @1 1000ms gemini-3-pro-preview 10+0r+0w>2",
        ],
    );
}

#[test]
fn commands_for_the_program_are_not_sent() {
    check(
        session(&[user(1, "/about"), user(2, "?"), user(3, "/review"), answer(4, "Good.", "")]),
        &[
            "gemini-cli",
            "session (s-1), gemini",
            "  user: /review",
            "  assistant: Good.",
            "  @1 3000ms gemini-3-pro-preview",
        ],
    );
}

#[test]
fn a_line_replaces_the_earlier_one_of_its_message() {
    let tokens = r#","tokens":{"input":10,"output":2,"cached":4,"thoughts":0,"tool":0,"total":12}"#;
    let called =
        format!(r#"{tokens},"toolCalls":[{}]"#, call("c1", 3, r#"{"output":"x"}"#).replace('\n', ""));
    check(
        lines(&[
            HEAD,
            &user(1, "Go."),
            r#"{"$set":{"lastUpdated":"1970-01-01T00:00:02Z"}}"#,
            &answer(2, "Yes.", ""),
            &answer(2, "Yes.", tokens),
            &answer(2, "Yes.", &called),
            r#"{"$set":{"summary":"Going"}}"#,
            &answer(4, "Done.", ""),
            "7",
        ]),
        &[
            "gemini-cli",
            "session (Going), gemini",
            "  user: Go.",
            r#"  assistant: Yes. + read_file#c1 {"file_path":"a.rs"}"#,
            "  tool: read_file#c1 = x",
            "  assistant: Done.",
            "  @1 1000ms gemini-3-pro-preview 6+4r+0w>2",
            "  @3 3000ms gemini-3-pro-preview",
            "line 9: expected a message with a `type` (user, gemini), `$set` or `$rewindTo`",
        ],
    );
}

#[test]
fn a_rewind_takes_back_a_message_and_all_after_it() {
    check(
        lines(&[
            HEAD,
            &user(1, "Go."),
            &answer(2, "Yes.", ""),
            &user(3, "Wrong."),
            &answer(4, "No.", ""),
            r#"{"$rewindTo":"3"}"#,
            &user(5, "Right."),
            &answer(6, "Yes.", ""),
        ]),
        &[
            "gemini-cli",
            "session (s-1), gemini",
            "  user: Go.",
            "  assistant: Yes.",
            "  user: Wrong.",
            "  assistant: No.",
            "  @1 1000ms gemini-3-pro-preview",
            "  @3 3000ms gemini-3-pro-preview",
            "branch (s-1), gemini",
            "  user: Go.",
            "  assistant: Yes.",
            "  user: Right.",
            "  assistant: Yes.",
            "  @3 5000ms gemini-3-pro-preview",
        ],
    );
}

#[test]
fn a_compression_goes_on_with_what_replaces_the_messages() {
    let summary = user(7, "Summary.");
    let understood = said(8, "gemini", r#"[{"text":"Got it."}]"#, "");
    let asks = said(
        9,
        "gemini",
        r#"[{"functionCall":{"id":"c1","name":"read_file","args":{}}}]"#,
        &format!(r#","toolCalls":[{}]"#, call("c1", 9, r#"{"output":"x"}"#).replace('\n', "")),
    );
    let told = said(
        9,
        "user",
        r#"[{"functionResponse":{"id":"c1","name":"read_file","response":{"output":"x"}}}]"#,
        "",
    )
    .replace(r#""id":"9""#, r#""id":"10""#);
    check(
        lines(&[
            HEAD,
            &user(1, "Go."),
            &answer(2, "Yes.", ""),
            &format!(r#"{{"$set":{{"messages":[{summary},{understood},{asks},{told}]}}}}"#),
            &answer(3, "On.", ""),
        ]),
        &[
            "gemini-cli",
            "session (s-1), gemini",
            "  user: Go.",
            "  assistant: Yes.",
            "  @1 1000ms gemini-3-pro-preview",
            "compaction (s-1), gemini",
            "  user: Summary.",
            "  assistant: Got it.",
            "  assistant: read_file#c1 {}",
            "  tool: read_file#c1 = x",
            "  assistant: On.",
            "  @4 9000ms gemini-3-pro-preview",
        ],
    );
}

#[test]
fn what_is_odd_in_a_record_costs_no_other() {
    let odd = r#","toolCalls":[7,{"id":null,"name":3,"args":"x","result":"text"},{"id":"c2","name":"glob","result":null}],"tokens":"many""#;
    check(
        session(&[user(1, "Go."), r#"{"content":"?"}"#.to_owned(), answer(2, "Yes.", odd), user(3, "So?")]),
        &[
            "gemini-cli",
            "session (s-1), gemini",
            "  user: Go.",
            "  assistant: Yes. + # {} + # {} + glob#c2 {}",
            "  tool: # = text",
            "  user: So?",
            "  @1 1000ms gemini-3-pro-preview",
            "line 1: message 2: expected a `type` (user, gemini)",
        ],
    );
}
