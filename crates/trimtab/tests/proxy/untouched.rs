//! Conversations that are forwarded unchanged: switched off, kept at the server, not understood, or without time to plan.

use serde_json::{Value, json};

use crate::{
    GEMINI, TIGHT,
    conversations::{anthropic, bytes, gemini, responses},
    good,
    running::Running,
    said,
};

/// Checks that a request passes byte for byte, with what is said about it.
#[track_caller]
fn check_untouched(flags: &[&str], head: &[&str], body: &[u8], how: &str, reason: Option<&str>) {
    let upstream = good();
    let proxy = Running::before(&upstream, flags);
    let answer = proxy.ask(head, body);
    assert_eq!(upstream.last().body, body);
    assert_eq!((said(&answer), answer.header("x-trimtab-reason")), (how, reason));
}

#[test]
fn the_off_switches_pass_everything() {
    let head = ["POST /v1/messages HTTP/1.1", "x-trimtab: off"];
    check_untouched(&TIGHT, &head, &anthropic(30), "passed", Some("asked"));
    check_untouched(&[&TIGHT[..], &["--off"]].concat(), &head[..1], &anthropic(30), "passed", Some("off"));
    let upstream = good();
    let proxy = Running::with(&upstream, &TIGHT, &[("TRIMTAB_OFF", "1")]);
    assert_eq!(proxy.post("/v1/messages", &anthropic(30)).header("x-trimtab-reason"), Some("off"));
}

#[test]
fn histories_held_by_the_server_pass() {
    let with = |body: Vec<u8>, field: &str, value: Value| {
        let mut request: Value = serde_json::from_slice(&body).unwrap();
        request[field] = value;
        bytes(&request)
    };
    let cases = [
        (
            "/v1/responses",
            with(responses(30), "previous_response_id", json!("resp_1")),
            "previous_response_id",
        ),
        ("/v1/responses", with(responses(30), "conversation", json!("conv_1")), "conversation"),
        (
            "/v1/messages",
            with(
                anthropic(30),
                "context_management",
                json!({"edits": [{"type": "clear_tool_uses_20250919"}]}),
            ),
            "context_management: clear_tool_uses_20250919",
        ),
        (
            "/v1/messages",
            with(anthropic(30), "context_management", json!({"edits": [{"type": "compact_20260112"}]})),
            "context_management: compact_20260112",
        ),
        (GEMINI, with(gemini(30), "cachedContent", json!("cachedContents/1")), "cachedContent"),
    ];
    for (path, body, reason) in cases {
        let head = format!("POST {path} HTTP/1.1");
        check_untouched(&TIGHT, &[&head], &body, "passed", Some(reason));
    }
}

#[test]
fn what_is_no_conversation_passes_and_is_counted() {
    let upstream = good();
    let proxy = Running::before(&upstream, &TIGHT);
    for body in [&b"not json"[..], b"{\"messages\":7}", b"", &[0xff, 0xfe]] {
        let answer = proxy.post("/v1/messages", body);
        assert_eq!((upstream.last().body, said(&answer)), (body.to_vec(), "raw"));
        assert_eq!(answer.header("x-trimtab-reason"), Some("plan"));
    }
    assert!((proxy.figure("trimtab_faults_total") - 4.0).abs() < 0.1);
}

#[test]
fn without_time_to_plan_a_request_that_fits_goes_as_it_came() {
    let flags = ["--policy", "ladder", "--budget", "900000", "--plan-time", "0"];
    check_untouched(&flags, &["POST /v1/messages HTTP/1.1"], &anthropic(30), "raw", Some("late"));
}

#[test]
fn without_time_to_plan_a_request_that_does_not_fit_waits_for_its_plan() {
    let upstream = good();
    let proxy = Running::before(&upstream, &[&TIGHT[..], &["--plan-time", "0"]].concat());
    let answer = proxy.post("/v1/messages", &anthropic(30));
    assert_eq!((said(&answer), answer.header("x-trimtab-reason")), ("fitted", Some("late")));
    assert!(upstream.last().body.len() < anthropic(30).len());
}
