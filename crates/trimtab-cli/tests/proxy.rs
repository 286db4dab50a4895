//! The proxy between a scripted provider and a client that sees every byte.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

#[path = "../../trimtab/tests/checker/mod.rs"]
#[allow(dead_code, reason = "the laws use all of it, this only a part")]
mod checker;
mod common;
#[path = "proxy/conversations.rs"]
mod conversations;
#[path = "proxy/folds.rs"]
mod folds;
#[path = "proxy/running.rs"]
mod running;
#[path = "proxy/upstream.rs"]
mod upstream;

use std::{
    io::{BufReader, Read, Write},
    time::{Duration, Instant},
};

use conversations::{anthropic, bytes, chat, chat_messages, gemini, responses};
use running::{Running, send};
use serde_json::{Value, json};
use upstream::{Came, Script, Upstream, read_chunk, read_head, read_message};

const STREAM: &str = "Content-Type: text/event-stream; charset=utf-8";
const GEMINI: &str = "/v1beta/models/gemini-2.5-pro:generateContent?key=k";
/// A budget that a conversation of thirty results does not fit into.
const TIGHT: [&str; 6] = ["--policy", "ladder", "--budget", "30000", "--fold", "off"];
/// Hides as far as its low-water mark, so that the next request finds room.
const STEADY: [&str; 4] = ["--policy", "steady", "--budget", "40000"];
/// Bytes that may stand behind the list of messages.
const BEHIND: usize = 400;

fn ok(body: &str) -> Script {
    Script::Whole("200 OK", vec!["Content-Type: application/json".to_owned()], body.as_bytes().to_vec())
}

fn refuse(status: &'static str, message: &str) -> Script {
    let body =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}}).to_string();
    Script::Whole(status, vec!["Content-Type: application/json".to_owned()], body.into_bytes())
}

fn good() -> Upstream {
    Upstream::start(|_, _| {
        ok(r#"{"usage":{"input_tokens":1000,"cache_read_input_tokens":500,"output_tokens":7}}"#)
    })
}

fn said(came: &Came) -> &str {
    came.header("x-trimtab").unwrap_or("nothing")
}

/// Checks that a conversation is hidden in part, that what is sent is valid, and that its next request repeats it.
#[track_caller]
fn check_fitted(path: &str, format: &str, make: fn(usize) -> Vec<u8>) {
    let upstream = good();
    let proxy = Running::before(&upstream, &STEADY);
    let mut before: Option<Vec<u8>> = None;
    for results in [30, 31] {
        let answer = proxy.post(path, &make(results));
        assert_eq!(said(&answer), "fitted", "{:?}\n{}", answer.head, proxy.words());
        let sent = upstream.last().body;
        let [input, output]: [Value; 2] =
            [&make(results)[..], &sent].map(|bytes| serde_json::from_slice(bytes).unwrap());
        assert!(sent.len() < make(results).len());
        let faults = checker::new_faults(format, &input, &output);
        assert!(faults.is_empty(), "{faults:#?}");
        if let Some(before) = before {
            let same = before.iter().zip(&sent).take_while(|(one, other)| one == other).count();
            assert!(same + BEHIND > before.len(), "only {same} of {} bytes are sent again", before.len());
        }
        before = Some(sent);
    }
}

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
fn a_request_that_fits_reaches_the_provider_as_it_was_sent() {
    let upstream = good();
    let proxy = Running::before(&upstream, &[]);
    let paths = ["/v1/messages?beta=true", "/v1/chat/completions", "/v1/responses", GEMINI];
    for (path, body) in paths.into_iter().zip([anthropic(2), chat(2), responses(2), gemini(2)]) {
        let head = [
            &format!("POST {path} HTTP/1.1"),
            "X-Api-Key: secret",
            "anthropic-Version: 2023-06-01",
            "content-type: application/json",
            "X-Odd-Case: Yes",
            "Connection: keep-alive",
            "x-trimtab-note: ours",
        ];
        let answer = proxy.ask(&head, &body);
        let came = upstream.last();
        assert_eq!(came.body, body, "{path}");
        assert_eq!(came.head[0], head[0]);
        let kept: Vec<&str> = head[1..5].to_vec();
        let found: Vec<&str> =
            came.head.iter().map(String::as_str).filter(|line| kept.contains(line)).collect();
        assert_eq!(found, kept, "spelling and order: {:?}", came.head);
        assert_eq!(came.header("host"), Some(upstream.url.trim_start_matches("http://")));
        assert_eq!((came.header("x-trimtab-note"), came.header("connection")), (None, None));
        assert_eq!(said(&answer), "kept");
    }
}

#[test]
fn an_answer_reaches_the_client_as_it_was_given() {
    let body = "{\"usage\" : {\"input_tokens\": 3},\n\"unicode\":\"\u{e9}\\ud83d\"}";
    let upstream = Upstream::start(move |_, _| {
        let headers =
            ["X-Request-ID: 1", "anthropic-ratelimit-tokens-remaining: 5", "Content-Type: application/json"];
        Script::Whole("202 Fine", headers.map(str::to_owned).to_vec(), body.as_bytes().to_vec())
    });
    let proxy = Running::before(&upstream, &["--no-headers"]);
    let answer = proxy.post("/v1/messages", &anthropic(1));
    let length = format!("Content-Length: {}", body.len());
    let expected = [
        "HTTP/1.1 202 Fine",
        "X-Request-ID: 1",
        "anthropic-ratelimit-tokens-remaining: 5",
        "Content-Type: application/json",
        &length,
    ];
    assert_eq!(answer.head, expected);
    assert_eq!(answer.body, body.as_bytes());
}

#[test]
fn a_stream_is_handed_on_chunk_by_chunk() {
    let chunks: Vec<Vec<u8>> = (0..4)
        .map(|number| format!("event: delta\r\ndata: {{\"n\":{number}}}\r\n\r\n").into_bytes())
        .collect();
    let (given, pause) = (chunks.clone(), Duration::from_millis(300));
    let upstream = Upstream::start(move |_, _| Script::Chunks(vec![STREAM.to_owned()], given.clone(), pause));
    let proxy = Running::before(&upstream, &[]);
    let mut connection = proxy.connect();
    let started = Instant::now();
    send(&mut connection, &proxy.address, &["POST /v1/messages HTTP/1.1"], &anthropic(1));
    let mut reader = BufReader::new(connection);
    read_head(&mut reader).expect("a head");
    let mut arrived = Vec::new();
    while let Some(chunk) = read_chunk(&mut reader) {
        arrived.push((chunk, started.elapsed()));
    }
    let found: Vec<Vec<u8>> = arrived.iter().map(|(chunk, _)| chunk.clone()).collect();
    assert_eq!(found, chunks);
    let gaps: Vec<Duration> = arrived.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    assert!(gaps.iter().all(|gap| *gap > pause / 2), "held back: {gaps:?}");
}

#[test]
fn a_long_conversation_with_anthropic_is_fitted_and_repeated() {
    check_fitted("/v1/messages", "anthropic", anthropic);
}

#[test]
fn a_long_chat_is_fitted_and_repeated() {
    check_fitted("/v1/chat/completions", "chat", chat);
}

#[test]
fn a_long_conversation_in_responses_is_fitted_and_repeated() {
    check_fitted("/v1/responses", "responses", responses);
}

#[test]
fn a_long_conversation_with_gemini_is_fitted_and_repeated() {
    check_fitted(GEMINI, "gemini", gemini);
}

#[test]
fn a_killed_proxy_says_the_same_again_and_what_it_hid_is_recalled() {
    let upstream = good();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept.db");
    let flags: Vec<&str> = STEADY.iter().copied().chain(["--store", store.to_str().unwrap()]).collect();
    let kept = [("TRIMTAB_NO_STORE", "0")];
    let mut first = Running::with(&upstream, &flags, &kept);
    assert_eq!(said(&first.post("/v1/messages", &anthropic(30))), "fitted");
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let sent = String::from_utf8(upstream.last().body).unwrap();
    let again = Running::with(&upstream, &flags, &kept);
    assert_eq!(said(&again.post("/v1/messages", &anthropic(31))), "fitted");
    let later = String::from_utf8(upstream.last().body).unwrap();
    let same = sent.bytes().zip(later.bytes()).take_while(|(one, other)| one == other).count();
    assert!(same + BEHIND > sent.len(), "only {same} of {} bytes are sent again", sent.len());
    let (_, rest) = sent.split_once("trimtab recall ").expect("a note");
    let handle = rest.get(..12).unwrap();
    let recalled = common::trimtab(&["recall", handle, "--store", store.to_str().unwrap()]);
    let original = recalled.text();
    let first_line = original.lines().next().unwrap();
    assert!(String::from_utf8(anthropic(30)).unwrap().contains(first_line), "{first_line}");
}

#[test]
fn compressed_requests_are_fitted_and_compressed_again() {
    let upstream = good();
    let proxy = Running::before(&upstream, &TIGHT);
    let gzip = |body: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    };
    let gunzip = |body: &[u8]| {
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(body).read_to_end(&mut text).unwrap();
        text
    };
    for (name, packed) in
        [("gzip", gzip(&anthropic(30))), ("zstd", zstd::encode_all(&anthropic(30)[..], 3).unwrap())]
    {
        let answer =
            proxy.ask(&["POST /v1/messages HTTP/1.1", &format!("Content-Encoding: {name}")], &packed);
        assert_eq!(said(&answer), "fitted", "{name}");
        let came = upstream.last();
        assert_eq!(came.header("content-encoding"), Some(name));
        let sent =
            if name == "gzip" { gunzip(&came.body) } else { zstd::decode_all(&came.body[..]).unwrap() };
        let faults = checker::faults("anthropic", &serde_json::from_slice(&sent).unwrap());
        assert!(sent.len() < anthropic(30).len() && faults.is_empty(), "{faults:?}");
    }
    let packed = gzip(&chat(1));
    proxy.ask(&["POST /v1/chat/completions HTTP/1.1", "Content-Encoding: gzip"], &packed);
    assert_eq!(upstream.last().body, packed, "what fits keeps its own compression");
}

#[test]
fn a_request_that_is_too_long_is_sent_once_more_and_shorter() {
    let upstream = Upstream::start(|number, _| match number {
        0 => refuse("400 Bad Request", "prompt is too long: 250000 tokens > 200000 maximum"),
        _ => ok(r#"{"usage":{"input_tokens":9}}"#),
    });
    let proxy = Running::before(&upstream, &TIGHT);
    let answer = proxy.post("/v1/messages", &anthropic(30));
    assert_eq!(
        (&answer.head[0][..], answer.header("x-trimtab-retried")),
        ("HTTP/1.1 200 OK", Some("too-long"))
    );
    let sizes: Vec<usize> = upstream.came().iter().map(|came| came.body.len()).collect();
    assert!(sizes.len() == 2 && sizes[1] < sizes[0], "{sizes:?}");
    proxy.post("/v1/messages", &anthropic(31));
    let third = upstream.last().body.len();
    assert!(third < sizes[0], "what the refusal taught is kept in mind: {third} of {}", sizes[0]);
    assert!((proxy.figure("trimtab_overflow_answers_total") - 1.0).abs() < 0.1);
}

#[test]
fn a_request_that_stays_too_long_gets_the_provider_s_answer() {
    let upstream = Upstream::start(|_, _| {
        refuse("400 Bad Request", "prompt is too long: 250000 tokens > 200000 maximum")
    });
    let proxy = Running::before(&upstream, &TIGHT);
    let answer = proxy.post("/v1/messages", &anthropic(30));
    assert!(String::from_utf8_lossy(&answer.body).contains("prompt is too long"));
    assert_eq!(upstream.came().len(), 2, "once more, not for ever");
}

#[test]
fn a_fitted_request_that_is_refused_is_sent_as_it_came() {
    let whole = anthropic(30).len();
    let upstream = Upstream::start(move |_, came| {
        if came.body.len() < whole {
            refuse("400 Bad Request", "messages.3: something is wrong")
        } else {
            ok("{}")
        }
    });
    let proxy = Running::before(&upstream, &TIGHT);
    let answer = proxy.post("/v1/messages", &anthropic(30));
    assert_eq!(
        (&answer.head[0][..], answer.header("x-trimtab-retried")),
        ("HTTP/1.1 200 OK", Some("refused"))
    );
    proxy.post("/v1/messages", &anthropic(31));
    assert_eq!(upstream.came().len(), 3, "the session is left alone from there on");
    assert_eq!(upstream.last().body, anthropic(31));
}

#[test]
fn a_request_that_is_wrong_anyway_gets_the_first_answer() {
    let upstream = Upstream::start(|_, _| refuse("400 Bad Request", "model: unknown"));
    let proxy = Running::before(&upstream, &TIGHT);
    let answer = proxy.post("/v1/messages", &anthropic(30));
    assert!(String::from_utf8_lossy(&answer.body).contains("model: unknown"));
    assert_eq!(said(&answer), "fitted");
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
            with(anthropic(30), "context_management", json!({"edits": []})),
            "context_management",
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

#[test]
fn counting_is_asked_for_what_would_be_sent_and_leaves_no_trace() {
    let upstream = good();
    let proxy = Running::before(&upstream, &TIGHT);
    assert_eq!(said(&proxy.post("/v1/messages/count_tokens", &anthropic(30))), "fitted");
    let counted = upstream.last().body;
    proxy.post("/v1/messages", &anthropic(30));
    assert_eq!(upstream.last().body, counted);
}

#[test]
fn other_requests_pass_both_ways() {
    let upstream = Upstream::start(|_, came| ok(&format!("{} bytes", came.body.len())));
    let proxy = Running::before(&upstream, &[]);
    let answer = proxy.ask(
        &["POST /v1/files?purpose=x HTTP/1.1", "Transfer-Encoding: chunked"],
        b"5\r\nabcde\r\n3\r\nfgh\r\n0\r\n\r\n",
    );
    assert_eq!((&answer.body[..], answer.header("x-trimtab")), (&b"8 bytes"[..], None));
    assert_eq!(
        (&upstream.last().head[0][..], upstream.last().body),
        ("POST /v1/files?purpose=x HTTP/1.1", b"abcdefgh".to_vec())
    );
    assert_eq!(proxy.ask(&["GET /v1/models HTTP/1.1"], b"").body, b"0 bytes");
}

#[test]
fn a_connection_that_leaves_http_is_carried_both_ways() {
    let upstream = Upstream::start(|_, _| Script::Upgrade);
    let proxy = Running::before(&upstream, &[]);
    let mut connection = proxy.connect();
    send(
        &mut connection,
        &proxy.address,
        &["GET /v1/responses HTTP/1.1", "Connection: Upgrade", "Upgrade: shout"],
        b"",
    );
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    assert_eq!(read_head(&mut reader).unwrap()[0], "HTTP/1.1 101 Switching Protocols");
    connection.write_all(b"hello").unwrap();
    let mut heard = [0; 5];
    reader.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"HELLO");
}

#[test]
fn a_client_that_leaves_ends_the_request_upstream() {
    let upstream = Upstream::start(|_, _| Script::Endless(b"data: {}\n\n".to_vec()));
    let proxy = Running::before(&upstream, &[]);
    let mut connection = proxy.connect();
    send(&mut connection, &proxy.address, &["POST /v1/messages HTTP/1.1"], &anthropic(1));
    let mut reader = BufReader::new(connection);
    read_head(&mut reader).expect("a head");
    read_chunk(&mut reader).expect("a chunk");
    drop(reader);
    upstream.left.recv_timeout(Duration::from_secs(20)).expect("the provider notices");
    proxy.wait_for("trimtab_clients_left_total", 1.0);
}

#[test]
fn only_requests_that_name_this_machine_are_answered() {
    let upstream = good();
    let proxy = Running::before(&upstream, &["--allow-host", "box.lan"]);
    for path in ["/v1/messages", "/trimtab/health"] {
        let answer = proxy.ask(&[&format!("GET {path} HTTP/1.1"), "Host: evil.example"], b"");
        assert_eq!(answer.head[0], "HTTP/1.1 403 Forbidden");
    }
    assert!(upstream.came().is_empty());
    assert_eq!(
        proxy.ask(&["GET /trimtab/health HTTP/1.1", "Host: box.lan:8790"], b"").head[0],
        "HTTP/1.1 200 OK"
    );
    let elsewhere = proxy.ask(&["GET http://127.0.0.1:1/v1/models HTTP/1.1"], b"");
    assert_eq!(
        (&elsewhere.head[0][..], upstream.came().len()),
        ("HTTP/1.1 200 OK", 1),
        "a request chooses no host"
    );
}

#[test]
fn other_machines_need_a_token_for_what_is_ours() {
    let refused = common::trimtab(&["proxy", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.words.contains("--token"), "{}", refused.words);
    let upstream = good();
    let proxy = Running::before(&upstream, &["--token", "secret"]);
    assert_eq!(proxy.ask(&["GET /trimtab/health HTTP/1.1"], b"").head[0], "HTTP/1.1 401 Unauthorized");
    let head = ["GET /trimtab/health HTTP/1.1", "Authorization: Bearer secret"];
    assert_eq!(proxy.ask(&head, b"").head[0], "HTTP/1.1 200 OK");
    assert_eq!(
        proxy.post("/v1/messages", &anthropic(1)).head[0],
        "HTTP/1.1 200 OK",
        "the provider's key is the provider's"
    );
}

#[test]
fn a_request_over_the_limit_is_refused_in_the_provider_s_words() {
    let upstream = good();
    let proxy = Running::before(&upstream, &["--max-request", "1"]);
    let body = vec![b' '; 1024 * 1024 + 1];
    let packed = zstd::encode_all(&body[..], 3).unwrap();
    let answers = [
        ("request_too_large", proxy.post("/v1/messages", &body)),
        ("invalid_request_error", proxy.post("/v1/chat/completions", &body)),
        ("INVALID_ARGUMENT", proxy.post(GEMINI, &body)),
        ("request_too_large", proxy.ask(&["POST /v1/messages HTTP/1.1", "Content-Encoding: zstd"], &packed)),
    ];
    for (word, answer) in answers {
        assert_eq!(answer.head[0], "HTTP/1.1 413 Payload Too Large");
        let body = String::from_utf8(answer.body).unwrap();
        assert!(body.contains(word) && body.contains("--max-request"), "{body}");
    }
    assert!(upstream.came().is_empty());
}

#[test]
fn too_many_requests_at_once_are_told_to_come_again() {
    let upstream = Upstream::start(|_, _| Script::Endless(b"data: {}\n\n".to_vec()));
    let proxy = Running::before(&upstream, &["--max-in-flight", "1"]);
    let mut busy = proxy.connect();
    send(&mut busy, &proxy.address, &["POST /v1/messages HTTP/1.1"], &anthropic(1));
    read_head(&mut BufReader::new(busy.try_clone().unwrap())).expect("a head");
    let answer = proxy.post("/v1/messages", &anthropic(1));
    assert_eq!(
        (&answer.head[0][..], answer.header("retry-after")),
        ("HTTP/1.1 503 Service Unavailable", Some("1"))
    );
}

#[test]
fn a_provider_that_is_not_there_is_an_error_in_its_own_shape() {
    let upstream = good();
    let proxy = Running::before(&upstream, &["--upstream", "anthropic=http://127.0.0.1:1"]);
    let answer = proxy.post("/v1/messages", &anthropic(1));
    assert_eq!(answer.head[0], "HTTP/1.1 502 Bad Gateway");
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body["error"]["type"], "api_error");
    assert!(
        body["error"]["message"].as_str().unwrap().contains("http://127.0.0.1:1 cannot be reached"),
        "{body}"
    );
}

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
fn a_proxy_that_is_asked_to_stop_ends_its_answers_first() {
    let chunks: Vec<Vec<u8>> = (0..5).map(|number| format!("data: {number}\n\n").into_bytes()).collect();
    let given = chunks.clone();
    let upstream = Upstream::start(move |_, _| {
        Script::Chunks(vec![STREAM.to_owned()], given.clone(), Duration::from_millis(200))
    });
    let mut proxy = Running::before(&upstream, &[]);
    let mut connection = proxy.connect();
    send(&mut connection, &proxy.address, &["POST /v1/messages HTTP/1.1"], &anthropic(1));
    let mut reader = BufReader::new(connection);
    read_head(&mut reader).expect("a head");
    let mut arrived = vec![read_chunk(&mut reader).expect("a chunk")];
    proxy.terminate();
    arrived.extend(std::iter::from_fn(|| read_chunk(&mut reader)));
    assert_eq!(arrived, chunks);
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
    assert!(std::net::TcpStream::connect(&proxy.address).is_err());
}

#[test]
fn connections_are_used_again() {
    let upstream = good();
    let proxy = Running::before(&upstream, &[]);
    let mut connection = proxy.connect();
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    for number in 1..4 {
        send(&mut connection, &proxy.address, &["POST /v1/messages HTTP/1.1"], &anthropic(number));
        assert!(read_message(&mut reader).is_some());
        assert_eq!(upstream.last().body, anthropic(number));
    }
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
}

/// Asks a provider that does not exist through the proxy for the web that the environment names; gives what that saw.
fn asked_of_web_proxy(upstream: &str, spared: &str) -> Vec<Came> {
    let web = Upstream::start(|_, _| Script::Whole("502 Bad Gateway", Vec::new(), Vec::new()));
    let variables = [("HTTPS_PROXY", web.url.as_str()), ("NO_PROXY", spared)];
    let flag = format!("anthropic={upstream}");
    let proxy = Running::with(&web, &["--upstream", &flag], &variables);
    let answer = proxy.post("/v1/messages", &anthropic(1));
    assert!(answer.head[0].contains("502"), "{:?}", answer.head);
    web.came()
}

#[test]
fn a_provider_is_reached_through_the_proxy_that_the_environment_names() {
    let came = asked_of_web_proxy("https://provider.invalid", "other.invalid");
    assert_eq!(came[0].head[0], "CONNECT provider.invalid:443 HTTP/1.1");
    assert!(asked_of_web_proxy("https://provider.invalid", "provider.invalid").is_empty());
    assert!(asked_of_web_proxy("http://provider.invalid", "").is_empty(), "without TLS");
}

/// A conversation whose client sets so many cache markers: at the end, behind tools and system, and one answer earlier.
fn marked(results: usize, markers: usize) -> Value {
    let marker = json!({"type": "ephemeral"});
    let mut request: Value = serde_json::from_slice(&anthropic(results)).unwrap();
    request["system"] = json!([{"type": "text", "text": "Be brief."}]);
    let last = request["messages"].as_array().unwrap().len() - 1;
    let places = [
        format!("/messages/{last}/content/0"),
        "/system/0".to_owned(),
        "/tools/0".to_owned(),
        format!("/messages/{}/content/0", last - 2),
    ];
    for place in places.iter().take(markers) {
        request.pointer_mut(place).unwrap()["cache_control"] = marker.clone();
    }
    request
}

fn count_markers(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.iter().map(count_markers).sum(),
        Value::Object(fields) => {
            usize::from(fields.contains_key("cache_control"))
                + fields.values().map(count_markers).sum::<usize>()
        }
        _ => 0,
    }
}

/// Checks that a client's markers stay, and that one more is set at most, where an edit makes it pay.
#[track_caller]
fn check_markers(own: usize, most: usize) {
    let upstream = good();
    let proxy = Running::before(&upstream, &STEADY);
    let mut found = Vec::new();
    for results in (8..40).step_by(2) {
        let input = marked(results, own);
        proxy.post("/v1/messages", &bytes(&input));
        let sent: Value = serde_json::from_slice(&upstream.last().body).unwrap();
        let end = sent["messages"].as_array().unwrap().len() - 1;
        let kept = [&sent["messages"][end]["content"][0], &sent["system"][0], &sent["tools"][0]];
        assert!(kept.iter().take(own).all(|block| block["cache_control"].is_object()), "{results} results");
        let faults = checker::new_faults("anthropic", &input, &sent);
        assert!(faults.is_empty(), "{faults:#?}");
        found.push(count_markers(&sent));
    }
    assert_eq!((found.iter().min(), found.iter().max()), (Some(&own), Some(&most)), "{found:?}");
}

#[test]
fn one_cache_marker_is_added_where_an_edit_makes_it_pay() {
    check_markers(2, 3);
    check_markers(3, 4);
}

#[test]
fn a_request_never_has_more_cache_markers_than_its_provider_allows() {
    check_markers(4, 4);
}

#[test]
fn formats_without_cache_markers_get_none() {
    let upstream = good();
    let proxy = Running::before(&upstream, &STEADY);
    let paths = ["/v1/chat/completions", "/v1/responses", GEMINI];
    for (path, make) in paths.into_iter().zip([chat, responses, gemini]) {
        for results in (20..36).step_by(4) {
            proxy.post(path, &make(results));
            let sent: Value = serde_json::from_slice(&upstream.last().body).unwrap();
            assert_eq!(count_markers(&sent), 0, "{path}, {results} results");
        }
    }
}
