//! What the proxy tells: headers, metrics, its log, the store, and what it offers to other programs.

use std::{io::Write, time::Duration};

use serde_json::{Value, json};

use crate::{
    STREAM, TIGHT, checker, common,
    conversations::{anthropic, bytes, chat, chat_messages},
    good,
    running::Running,
    said,
    upstream::{Script, Upstream},
};

#[test]
fn observing_changes_nothing_and_says_what_would_be() {
    let upstream = good();
    let proxy = Running::before(&upstream, &[&TIGHT[..], &["--observe"]].concat());
    let answer = proxy.post("/v1/messages", &anthropic(30));
    assert_eq!((upstream.last().body, said(&answer)), (anthropic(30), "observed"));
    proxy.wait_for("trimtab_observed_tokens_total", 1000.0);
}

#[test]
fn usage_is_learnt_from_what_the_provider_reports() {
    let stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1000,\"cache_read_input_tokens\":3000,\"output_tokens\":1}}}\n\nevent: message_delta\ndata: {\"usage\":{\"output_tokens\":50}}\n\n";
    let gzipped = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(stream.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let upstream = Upstream::start(move |number, _| match number {
        0 => Script::Chunks(
            vec![STREAM.to_owned()],
            stream.as_bytes().chunks(30).map(<[u8]>::to_vec).collect(),
            Duration::ZERO,
        ),
        _ => Script::Chunks(
            vec![STREAM.to_owned(), "Content-Encoding: gzip".to_owned()],
            vec![gzipped.clone()],
            Duration::ZERO,
        ),
    });
    let proxy = Running::before(&upstream, &[]);
    proxy.post("/v1/messages", &anthropic(1));
    proxy.wait_for("trimtab_reported_tokens_total{kind=\"output\"}", 50.0);
    assert!((proxy.figure("trimtab_cache_hit_ratio") - 0.75).abs() < 0.01);
    assert!(proxy.figure("trimtab_spent_dollars_total") > 0.0);
    proxy.post("/v1/messages", &anthropic(2));
    proxy.wait_for("trimtab_reported_tokens_total{kind=\"output\"}", 100.0);
}

#[test]
fn a_session_that_fills_its_window_is_told_that_it_needs_us() {
    let upstream = good();
    let proxy = Running::before(&upstream, &["--policy", "ladder"]);
    let request = |lines| bytes(&json!({"model": "gpt-4o", "messages": chat_messages(30, lines)}));
    assert_eq!(proxy.post("/v1/chat/completions", &request(20)).header("x-trimtab-needed"), None);
    let answer = proxy.post("/v1/chat/completions", &request(400));
    assert!(answer.header("x-trimtab-needed").is_some(), "{:?}", answer.head);
    proxy.wait_for_words("it now needs trimtab");
    assert!(!proxy.words().contains("Find the value"), "no word of a conversation is logged");
}

#[test]
fn fitting_is_offered_to_programs_in_any_language() {
    let upstream = good();
    let proxy = Running::before(&upstream, &[]);
    let answer = proxy.post("/trimtab/fit?budget=30000&policy=ladder", &chat(30));
    assert_eq!(answer.head[0], "HTTP/1.1 200 OK");
    assert!(answer.body.len() < chat(30).len());
    assert!(checker::faults("chat", &serde_json::from_slice(&answer.body).unwrap()).is_empty());
    for (query, word) in
        [("budget=1", "cannot be hidden"), ("policy=none.toml", "policy"), ("what=1", "budget, model")]
    {
        let answer = proxy.post(&format!("/trimtab/fit?{query}"), &chat(3));
        let body = String::from_utf8(answer.body).unwrap();
        assert!(answer.head[0].contains(" 4") && body.contains(word), "{} {body}", answer.head[0]);
    }
    assert!(upstream.came().is_empty());
}

#[test]
fn what_providers_report_is_kept_with_its_request() {
    let upstream = good();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept.db");
    let store = store.to_str().unwrap();
    let mut proxy = Running::with(&upstream, &["--store", store], &[("TRIMTAB_NO_STORE", "0")]);
    for results in [3, 4] {
        proxy.post("/v1/messages", &anthropic(results));
    }
    proxy.wait_for("trimtab_reported_tokens_total{kind=\"cache_read\"}", 1000.0);
    assert!((proxy.figure("trimtab_cache_hit_ratio") - 1.0 / 3.0).abs() < 0.001);
    assert!(proxy.figure("trimtab_spent_dollars_total") > 0.0);
    proxy.terminate();
    proxy.child.wait().unwrap();
    let stats = common::trimtab(&["stats", "--store", store, "--json"]).text();
    let stats: Value = serde_json::from_str(&stats).unwrap();
    let reported = &stats["reported"];
    assert_eq!((&reported["requests"], &reported["uncached"]), (&json!(2), &json!(2000)), "{stats:#}");
    assert_eq!((&reported["cache_read"], &reported["output"]), (&json!(1000), &json!(14)), "{stats:#}");
    assert!(reported["dollars_spent"].as_f64().unwrap() > 0.0, "{stats:#}");
    assert!(stats["head"]["sessions"].as_u64() > Some(0), "{stats:#}");
    // The same requests are explained: each read less than the one before left.
    let why = common::trimtab(&["why", "--stored", "--all", "--store", store, "--json"]).text();
    let why: Value = serde_json::from_str(&why).unwrap();
    assert_eq!(why["summary"]["requests"], 2, "{why:#}");
    let explained = common::trimtab(&["fit", "latest", "--all", "--store", store, "--no-store", "--explain"]);
    assert!(explained.words.contains("the session so far: $"), "{}", explained.words);
}

#[test]
fn the_account_of_a_session_is_in_the_headers_of_its_next_answer() {
    let upstream = good();
    let proxy = Running::before(&upstream, &[]);
    let first = proxy.post("/v1/messages", &anthropic(3));
    assert!(first.header("x-trimtab-session-dollars").is_none(), "{:?}", first.head);
    proxy.wait_for("trimtab_reported_tokens_total{kind=\"cache_read\"}", 500.0);
    let next = proxy.post("/v1/messages", &anthropic(4));
    let said = next.header("x-trimtab-session-dollars").expect("the account");
    assert!(said.contains(" paid, ") && said.ends_with(" untouched"), "{said}");
}

#[test]
fn a_model_s_name_forges_no_line_of_the_log() {
    let upstream = good();
    let proxy = Running::before(&upstream, &[]);
    let body = String::from_utf8(anthropic(1)).unwrap();
    let evil = "x\\n\\u001b]52;c;AAAA\\u0007trimtab: all is well\\u202e";
    proxy.post("/v1/messages", body.replace("claude-sonnet-4-5", evil).as_bytes());
    proxy.wait_for_words("session");
    let words = proxy.words();
    assert!(words.contains("x\\u000a\\u001b]52;c;AAAA\\u0007trimtab: all is well\\u202e session"), "{words}");
    assert!(!words.lines().any(|line| line.starts_with("trimtab: all")), "{words}");
}
