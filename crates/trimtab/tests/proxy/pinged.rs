//! Pings: requests of the proxy's own that keep a provider's cache alive while a conversation is idle. They are sent here as soon as they
//! are planned, as if it were the time.

use std::{thread, time::Duration};

use serde_json::{Value, json};

use crate::{
    common,
    conversations::{anthropic, chat},
    ok, refuse,
    running::Running,
    upstream::{Came, Script, Upstream},
};

const AT_ONCE: [&str; 5] = ["--keep-alive", "auto", "--keep-alive-at-once", "--log", "verbose"];
const KEY: &str = "sk-ant-secret-key-of-the-client";

/// 100,000 tokens of a cache that lives cost 3 cents to read; the answer is so long that its price leaves room for pings.
fn expensive() -> Script {
    ok(r#"{"usage":{"input_tokens":10,"cache_read_input_tokens":100000,"output_tokens":10000000}}"#)
}

fn read_again() -> Script {
    ok(r#"{"usage":{"input_tokens":10,"cache_read_input_tokens":100000,"output_tokens":1}}"#)
}

fn body_of(came: &Came) -> Value {
    serde_json::from_slice(&came.body).expect("JSON")
}

fn is_ping(came: &Came) -> bool {
    let body = body_of(came);
    body["max_tokens"] == 1 || body["max_completion_tokens"] == 1
}

fn count_pings(upstream: &Upstream) -> usize {
    upstream.came().iter().filter(|came| is_ping(came)).count()
}

/// A provider that answers pings as a test says.
fn provider(answer_ping: impl Fn() -> Script + Send + Sync + 'static) -> Upstream {
    Upstream::start(move |_, came| if is_ping(came) { answer_ping() } else { expensive() })
}

/// Sends a request of a conversation with the client's key.
fn ask(proxy: &Running, results: usize) {
    let head = ["POST /v1/messages HTTP/1.1", "Content-Type: application/json", &format!("x-api-key: {KEY}")];
    let answer = proxy.ask(&head, &anthropic(results));
    assert!(answer.head[0].contains("200"), "{:?}", answer.head);
}

/// Sends three requests: from the third on, pings may follow.
fn begin(proxy: &Running) {
    for results in 2..5 {
        ask(proxy, results);
        // What an answer reports is learnt after its last byte.
        proxy
            .wait_for("trimtab_reported_tokens_total{kind=\"cache_read\"}", (results - 1) as f64 * 100_000.0);
    }
}

/// Waits for a request of some kind to arrive: nobody else says when.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}: waited in vain");
}

#[test]
fn pings_repeat_the_last_request_with_the_least_output_as_often_as_the_rule_says() {
    let upstream = provider(read_again);
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("trimtab.db");
    let store = store.to_str().expect("a path");
    let proxy =
        Running::with(&upstream, &[&AT_ONCE[..], &["--store", store]].concat(), &[("TRIMTAB_NO_STORE", "0")]);
    begin(&proxy);
    proxy.wait_for_words("no more pings after 2: it is continued in");
    let came = upstream.came();
    assert_eq!(came.len(), 5, "three requests and two pings");
    let (last, ping) = (body_of(&came[2]), body_of(&came[4]));
    assert_eq!((&ping["messages"], &ping["tools"]), (&last["messages"], &last["tools"]));
    assert_eq!((ping["max_tokens"].as_u64(), ping.get("stream")), (Some(1), None));
    assert_eq!(came[4].header("x-api-key"), Some(KEY));
    assert!(
        proxy.words().contains("ping 2 of this pause kept its cache alive: 100,000 tokens read for $0.0300")
    );
    assert!((proxy.figure("trimtab_pings_total{result=\"answered\"}") - 2.0).abs() < 1e-9);
    assert!((proxy.figure("trimtab_ping_dollars_total") - 0.06).abs() < 0.001);
    let health = body_of(&proxy.ask(&["GET /trimtab/health HTTP/1.1"], b""));
    assert_eq!((health["keep_alive"].as_bool(), health["pings"].as_f64()), (Some(true), Some(2.0)));
    let metrics = proxy.ask(&["GET /trimtab/metrics HTTP/1.1"], b"").body;
    proxy.terminate();
    proxy.wait_for_words("kept the provider's cache alive in pauses: 2 pings for $0.06");
    wait_until("the store is closed", || {
        common::trimtab(&["stats", "--store", store, "--json"]).code == Some(0)
    });
    let stats: Value =
        serde_json::from_slice(&common::trimtab(&["stats", "--store", store, "--json"]).out).expect("JSON");
    assert_eq!((stats["requests"].as_u64(), stats["reported"]["pings"].as_u64()), (Some(3), Some(2)));
    // Nobody but the provider ever sees the key.
    let files = std::fs::read_dir(folder.path()).expect("a folder").flatten();
    let kept: Vec<Vec<u8>> = files.map(|file| std::fs::read(file.path()).expect("a file")).collect();
    for bytes in kept.iter().chain([&metrics, &proxy.words().into_bytes()]) {
        assert!(memchr::memmem::find(bytes, KEY.as_bytes()).is_none());
    }
}

#[test]
fn the_next_request_gives_up_a_ping_under_way() {
    let upstream = provider(|| Script::Stalls("200 OK", b"{".to_vec()));
    let proxy = Running::before(&upstream, &[&AT_ONCE[..], &["--no-store"]].concat());
    begin(&proxy);
    wait_until("a ping", || count_pings(&upstream) == 1);
    ask(&proxy, 5);
    proxy.wait_for_words("a ping was given up because the conversation goes on");
    assert!(proxy.figure("trimtab_pings_total{result=\"given up\"}") > 0.5);
    // It may have been paid for, so it counts; the pause after the new request has its own pings.
    assert!(proxy.figure("trimtab_ping_dollars_total") > 0.029);
    wait_until("a ping of the next pause", || count_pings(&upstream) == 2);
}

#[test]
fn an_answer_that_is_no_success_ends_the_pings() {
    let upstream = provider(|| refuse("429 Too Many Requests", "slow down"));
    let proxy = Running::before(&upstream, &[&AT_ONCE[..], &["--no-store"]].concat());
    begin(&proxy);
    proxy.wait_for_words("no more pings after 0: the provider answered 429");
    assert_eq!(count_pings(&upstream), 1);
    assert!(proxy.figure("trimtab_ping_dollars_total") < 1e-9, "an error costs nothing");
}

#[test]
fn a_cache_that_is_lost_already_is_not_kept_alive() {
    let upstream = provider(|| {
        ok(r#"{"usage":{"input_tokens":10,"cache_creation_input_tokens":100000,"output_tokens":1}}"#)
    });
    let proxy = Running::before(&upstream, &[&AT_ONCE[..], &["--no-store"]].concat());
    begin(&proxy);
    proxy.wait_for_words("no more pings after 0: the provider had already lost what was cached");
    assert_eq!(count_pings(&upstream), 1);
}

#[test]
fn pings_stay_within_what_they_may_cost_in_an_hour() {
    let upstream = provider(read_again);
    let flags = [&AT_ONCE[..], &["--no-store", "--keep-alive-dollars", "0.04"]].concat();
    let proxy = Running::before(&upstream, &flags);
    begin(&proxy);
    proxy.wait_for_words("no more pings after 1: pings have cost as much as they may in an hour");
    assert_eq!(count_pings(&upstream), 1);
}

#[test]
fn a_session_that_saved_nothing_pays_for_no_ping() {
    let upstream = Upstream::start(|_, _| read_again());
    let proxy = Running::before(&upstream, &[&AT_ONCE[..], &["--no-store"]].concat());
    begin(&proxy);
    proxy.wait_for_words("no more pings after 0: the session would cost over 0.5 % more than untouched");
    assert_eq!(upstream.came().len(), 3);
}

#[test]
fn a_chat_is_kept_alive_in_its_own_words() {
    let answer = |output: u64| {
        let usage = json!({"prompt_tokens": 100_000, "completion_tokens": output, "prompt_tokens_details": {"cached_tokens": 99_000}});
        ok(&json!({ "usage": usage }).to_string())
    };
    let upstream = Upstream::start(move |_, came| if is_ping(came) { answer(1) } else { answer(10_000_000) });
    let proxy = Running::before(&upstream, &[&AT_ONCE[..], &["--no-store"]].concat());
    for results in 2..5 {
        proxy.post("/v1/chat/completions", &chat(results));
        proxy.wait_for("trimtab_reported_tokens_total{kind=\"cache_read\"}", (results - 1) as f64 * 99_000.0);
    }
    proxy.wait_for_words("no more pings after 1");
    let last = upstream.last();
    assert_eq!(body_of(&last)["max_completion_tokens"], 1);
    assert_eq!(body_of(&last)["messages"], body_of(&upstream.came()[2])["messages"]);
}

#[test]
fn neither_a_proxy_that_stops_nor_one_that_is_killed_leaves_a_ping() {
    let upstream = provider(read_again);
    // The first ping is due in minutes.
    let flags = ["--keep-alive", "auto", "--no-store", "--log", "verbose"];
    let mut proxy = Running::before(&upstream, &flags);
    begin(&proxy);
    proxy.terminate();
    assert!(proxy.child.wait().expect("an end").success());
    assert_eq!(count_pings(&upstream), 0);
    let upstream = provider(|| Script::Stalls("200 OK", b"{".to_vec()));
    let mut proxy = Running::before(&upstream, &[&AT_ONCE[..], &["--no-store"]].concat());
    begin(&proxy);
    wait_until("a ping", || count_pings(&upstream) == 1);
    proxy.child.kill().expect("a process");
    proxy.child.wait().expect("an end");
    assert_eq!(upstream.came().len(), 4, "three requests and the ping under way");
}

#[test]
fn nothing_is_pinged_unless_somebody_turns_it_on() {
    let upstream = provider(read_again);
    let proxy = Running::before(&upstream, &["--keep-alive-at-once", "--no-store", "--log", "verbose"]);
    begin(&proxy);
    proxy.terminate();
    proxy.wait_for_words("$450");
    assert_eq!(upstream.came().len(), 3);
}
