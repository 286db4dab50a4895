//! Limits and safety: who is answered, how much is taken, what is said when a provider is not there, and how it stops.

use std::{io::BufReader, time::Duration};

use serde_json::Value;

use crate::{
    GEMINI, STREAM, common,
    conversations::anthropic,
    good,
    running::{Running, send},
    upstream::{Came, Script, Upstream, read_chunk, read_head},
};

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
fn who_opens_the_address_of_the_proxy_reads_what_it_is_and_what_it_saved() {
    let upstream = good();
    let proxy = Running::before(&upstream, &["--policy", "ladder"]);
    proxy.post("/v1/messages", &anthropic(1));
    let came = upstream.came().len();
    let answer = proxy.ask(&["GET / HTTP/1.1"], b"");
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(
        (&answer.head[0][..], upstream.came().len()),
        ("HTTP/1.1 200 OK", came),
        "nobody else is asked"
    );
    for part in ["trimtab ", "policy    ladder", "requests  1", "/trimtab/health"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let guarded = Running::before(&upstream, &["--token", "secret"]);
    let text = String::from_utf8_lossy(&guarded.ask(&["GET / HTTP/1.1"], b"").body).into_owned();
    assert!(text.contains("is running") && !text.contains("policy"), "{text}");
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
fn a_web_page_of_another_site_is_refused_before_anything_is_sent_or_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept.db");
    let upstream = good();
    let flags = ["--store", store.to_str().unwrap(), "--allow-origin", "https://chat.example"];
    let proxy = Running::with(&upstream, &flags, &[("TRIMTAB_NO_STORE", "0")]);
    let page = ["Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "Content-Type: text/plain"];
    for path in ["/v1/messages", "/v1/files", "/trimtab/fit?budget=1000"] {
        let line = format!("POST {path} HTTP/1.1");
        let answer = proxy.ask(&[&[&line[..]], &page[..]].concat(), &anthropic(1));
        assert_eq!(answer.head[0], "HTTP/1.1 403 Forbidden", "{path}");
        assert!(String::from_utf8_lossy(&answer.body).contains("--allow-origin"), "{path}");
    }
    assert!(upstream.came().is_empty());
    let kept = common::trimtab(&["sessions", "--all", "--json", "--store", store.to_str().unwrap()]);
    assert_eq!(String::from_utf8_lossy(&kept.out).trim(), "[]");
    for origin in ["http://localhost:5173", "vscode-webview://1a2b", "https://chat.example"] {
        let answer = proxy.ask(&["POST /v1/messages HTTP/1.1", &format!("Origin: {origin}")], &anthropic(1));
        assert_eq!(answer.head[0], "HTTP/1.1 200 OK", "{origin}");
    }
}

#[test]
fn an_error_that_stalls_reaches_the_client_as_far_as_it_came() {
    let upstream = Upstream::start(|_, _| Script::Stalls("400 Bad Request", b"{\"error\":".to_vec()));
    let proxy = Running::before(&upstream, &[]);
    let mut connection = proxy.connect();
    send(&mut connection, &proxy.address, &["POST /v1/messages HTTP/1.1"], &anthropic(1));
    let mut reader = BufReader::new(connection);
    assert_eq!(read_head(&mut reader).expect("a head")[0], "HTTP/1.1 400 Bad Request");
    assert_eq!(read_chunk(&mut reader).expect("what came"), b"{\"error\":");
}

#[test]
fn an_answer_that_stops_in_the_middle_is_given_up_and_takes_no_place() {
    let upstream = Upstream::start(|_, _| Script::Stalls("200 OK", b"data: {}\n\n".to_vec()));
    let proxy = Running::before(&upstream, &["--upstream-timeout", "1"]);
    let mut connection = proxy.connect();
    send(&mut connection, &proxy.address, &["POST /v1/messages HTTP/1.1"], &anthropic(1));
    let mut reader = BufReader::new(connection);
    assert_eq!(read_head(&mut reader).expect("a head")[0], "HTTP/1.1 200 OK");
    assert_eq!(read_chunk(&mut reader).expect("what came"), b"data: {}\n\n");
    // A second client leaves without a word.
    let mut leaving = proxy.connect();
    send(&mut leaving, &proxy.address, &["POST /v1/messages HTTP/1.1"], &anthropic(1));
    drop(leaving);
    assert!(read_chunk(&mut reader).is_none(), "the answer breaks off");
    let started = std::time::Instant::now();
    while proxy.figure("trimtab_in_flight") > 0.5 {
        assert!(started.elapsed() < Duration::from_secs(30), "a request is under way for ever");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_file_that_may_not_grow_does_not_end_the_proxy() {
    let upstream = good();
    let proxy = Running::before(&upstream, &[]);
    let pid = proxy.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-XFSZ", &pid]).status().unwrap().success());
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(proxy.post("/v1/messages", &anthropic(1)).head[0], "HTTP/1.1 200 OK");
}

#[test]
fn bodies_that_are_only_announced_hold_little_memory() {
    let upstream = good();
    let proxy = Running::before(&upstream, &[]);
    proxy.post("/v1/messages", &anthropic(1));
    let before = resident(proxy.child.id());
    let head = ["POST /v1/messages HTTP/1.1", "Content-Length: 8388608"];
    let mut open = Vec::new();
    for _ in 0..100 {
        let mut connection = proxy.connect();
        send(&mut connection, &proxy.address, &head, b"{");
        open.push(connection);
    }
    std::thread::sleep(Duration::from_millis(500));
    let more = resident(proxy.child.id()).saturating_sub(before);
    assert!(more < 60_000, "{more} kB more for 100 bodies of one byte");
}

/// Returns how much memory a process has, in kB; nothing where the system does not tell.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or_default()
}

#[test]
fn headers_of_more_than_64_kilobytes_are_refused() {
    let upstream = good();
    let proxy = Running::before(&upstream, &[]);
    let with = |kilobytes: usize| {
        let mut connection = proxy.connect();
        let header = format!("X-Long: {}", "x".repeat(kilobytes * 1024));
        send(&mut connection, &proxy.address, &["GET /v1/models HTTP/1.1", &header], b"");
        // Who refuses may close before all has come.
        read_head(&mut BufReader::new(connection)).map(|head| head[0].clone())
    };
    assert_eq!(with(40).as_deref(), Some("HTTP/1.1 200 OK"));
    // The limit is soft: what comes with the last read may exceed it.
    let refused = with(1024);
    assert!(refused.as_ref().is_none_or(|line| line.starts_with("HTTP/1.1 431 ")), "{refused:?}");
    assert_eq!(upstream.came().len(), 1);
}
