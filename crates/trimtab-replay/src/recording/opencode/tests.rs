//! Small opencode sessions, each with the picture of what is read from it.

use crate::recording::picture::check;

fn session(messages: &[String]) -> String {
    format!(r#"{{"info":{{"id":"ses_1","title":"Fix"}},"messages":[{}]}}"#, messages.join(","))
}

/// Writes a message with a number for its id and the time in seconds; `more` are fields of its head.
fn said(number: u8, role: &str, more: &str, parts: &str) -> String {
    format!(
        r#"{{"info":{{"id":"{number}","role":"{role}","time":{{"created":170000000{number}000}},"modelID":"m"{more}}},"parts":[{parts}]}}"#
    )
}

fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

fn tool(state: &str) -> String {
    format!(r#"{{"type":"tool","callID":"a","tool":"bash","state":{{{state},"input":{{ "c" : "l s" }}}}}}"#)
}

#[test]
fn a_step_is_a_request_with_its_usage_and_results_follow() {
    let finish = r#"{"type":"step-finish","tokens":{"input":1,"output":2,"reasoning":3,"cache":{"read":4,"write":5}}}"#;
    let thought = r#"{"type":"reasoning","text":"Hm.","metadata":{"anthropic":{"signature":"s"}}}"#;
    let step = format!(
        r#"{{"type":"step-start"}},{thought},{},{finish}"#,
        tool(r#""status":"completed","output":"x.rs""#)
    );
    let next = format!(r#"{{"type":"step-start","time":{{"start":1700000003500}}}},{}"#, text("Done."));
    check(
        session(&[said(1, "user", "", &text("Why?")), said(2, "assistant", "", &format!("{step},{next}"))]),
        &[
            "opencode",
            "session (Fix), chat",
            "  user: Why?",
            r#"  assistant: reasoning(Hm.) +  + bash#a {"c":"l s"}"#,
            "  tool: bash#a = x.rs",
            "  assistant: Done.",
            "  @1 1700000002000ms m 1+4r+5w>5",
            "  @3 1700000003500ms m",
        ],
    );
}

#[test]
fn a_compaction_goes_on_with_the_summary_and_what_it_kept() {
    let compaction = r#"{"type":"compaction","auto":true,"tail_start_id":"2"}"#;
    let summary = r#","parentID":"3","summary":true,"finish":"stop""#;
    check(
        session(&[
            said(1, "user", "", &text("Old.")),
            said(2, "user", "", &text("Kept.")),
            said(3, "user", "", compaction),
            said(4, "assistant", summary, &text("Summary.")),
            said(5, "user", "", &text("New.")),
        ]),
        &[
            "opencode",
            "session (Fix), chat",
            "  user: Old.",
            "  user: Kept.",
            "  @2",
            "compaction (Fix), chat",
            "  user: What did we do so far?",
            "  assistant: Summary.",
            "  user: Kept.",
            "  user: New.",
            "  @1",
            "  @4",
        ],
    );
}

#[test]
fn a_result_that_was_cleared_later_was_first_sent_whole() {
    let long = tool(r#""status":"completed","output":"long","time":{"compacted":1700000003000}"#);
    check(
        session(&[
            said(1, "user", "", &text("Why?")),
            said(2, "assistant", "", &long),
            said(4, "assistant", "", &text("So.")),
        ]),
        &[
            "opencode",
            "session (Fix), chat",
            "  user: Why?",
            r#"  assistant:  + bash#a {"c":"l s"}"#,
            "  tool: bash#a = long",
            "  @1 1700000002000ms m",
            "compaction (Fix), chat",
            "  user: Why?",
            r#"  assistant:  + bash#a {"c":"l s"}"#,
            "  tool: bash#a = [Old tool result content cleared]",
            "  assistant: So.",
            "  @3 1700000004000ms m",
        ],
    );
}

#[test]
fn anthropic_gets_signed_thoughts_and_failed_results_in_its_format() {
    let provider = r#","providerID":"anthropic""#;
    let thoughts = r#"{"type":"reasoning","text":"Unsigned."},{"type":"reasoning","text":"Hm.","metadata":{"anthropic":{"signature":"s"}}}"#;
    let parts = format!("{thoughts},{}", tool(r#""status":"running""#));
    let shown = r#""status":"completed","output":"see","attachments":[{"mime":"image/png","url":"data:image/png;base64,AA=="}]"#;
    check(
        session(&[
            said(1, "user", provider, &text("Why?")),
            said(2, "assistant", provider, &parts),
            said(3, "assistant", provider, &tool(shown)),
        ]),
        &[
            "opencode",
            "session (Fix), anthropic",
            "  user: Why?",
            r#"  assistant: reasoning(Hm.) + bash#a {"c":"l s"}"#,
            "  user: bash#a failed: [Tool execution was interrupted]",
            r#"  assistant: bash#a {"c":"l s"}"#,
            "  user: bash#a = see",
            "  @1 1700000002000ms m",
            "  @3 1700000003000ms m",
        ],
    );
}

#[test]
fn what_a_result_shows_follows_as_the_users_and_failed_answers_are_not_sent_again() {
    let shown = r#""status":"completed","output":"see","attachments":[{"mime":"image/png","url":"data:image/png;base64,AA=="}]"#;
    let failed = r#","error":{"name":"APIError"}"#;
    let stopped = r#","error":{"name":"MessageAbortedError"}"#;
    check(
        session(&[
            said(1, "user", "", &text("Why?")),
            said(2, "assistant", "", &tool(shown)),
            said(3, "assistant", failed, &text("Lost.")),
            said(4, "assistant", stopped, &text("Half.")),
        ]),
        &[
            "opencode",
            "session (Fix), chat",
            "  user: Why?",
            r#"  assistant:  + bash#a {"c":"l s"}"#,
            "  tool: bash#a = see",
            "  user: media()",
            "  assistant: Half.",
            "  @1 1700000002000ms m",
            "  @4 1700000004000ms m",
        ],
    );
}

#[test]
fn a_sub_agents_file_says_whose_it_is_and_a_message_without_parts_is_listed() {
    check(
        r#"{"info":{"id":"ses_1","parentID":"ses_0"},"messages":[
        {"info":{"role":"user"},"parts":[{"type":"text","text":"Hi"}]},{"info":{"role":"user"}}]}"#,
        &[
            "opencode",
            "sub-agent, chat",
            "  user: Hi",
            "  @1",
            "line 1: message 2: expected `info.role` and `parts`",
        ],
    );
}
