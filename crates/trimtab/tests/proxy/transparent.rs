//! What passes is what came: bytes, headers, streams, connections, in both directions.

use std::{
    io::{BufReader, Read, Write},
    time::{Duration, Instant},
};

use crate::{
    GEMINI, STREAM,
    conversations::{anthropic, chat, gemini, responses},
    good, ok,
    running::{Running, send},
    said,
    upstream::{Script, Upstream, read_chunk, read_head, read_message},
};

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
fn what_a_provider_said_before_it_broke_off_reaches_the_client() {
    let chunks: Vec<Vec<u8>> = (0..5).map(|number| format!("data: {number}\n\n").into_bytes()).collect();
    let given = chunks.clone();
    let upstream = Upstream::start(move |_, _| Script::BreaksOff(vec![STREAM.to_owned()], given.clone()));
    let proxy = Running::before(&upstream, &[]);
    // Whether all of it arrives together with its end is a matter of luck.
    for _ in 0..40 {
        let mut connection = proxy.connect();
        send(&mut connection, &proxy.address, &["POST /v1/messages HTTP/1.1"], &anthropic(1));
        let mut answer = Vec::new();
        let _ = connection.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
        let mut reader = BufReader::new(body.as_bytes());
        let arrived: Vec<Vec<u8>> = std::iter::from_fn(|| read_chunk(&mut reader)).collect();
        assert_eq!(arrived.concat(), chunks.concat());
        assert!(!body.ends_with("0\r\n\r\n"), "the client sees that it broke off");
    }
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
fn a_body_survives_an_offer_of_http_2() {
    let upstream = good();
    let proxy = Running::before(&upstream, &[]);
    let offer = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAA"];
    for path in ["/v1/messages", "/v1/files"] {
        let line = format!("POST {path} HTTP/1.1");
        let answer = proxy.ask(&[&[&line[..]], &offer[..]].concat(), &anthropic(2));
        assert_eq!((&answer.head[0][..], upstream.last().body), ("HTTP/1.1 200 OK", anthropic(2)), "{path}");
        let came = upstream.last();
        assert_eq!((came.header("upgrade"), came.header("http2-settings")), (None, None));
    }
    proxy.ask(&["POST /v1/messages HTTP/1.1", "Connection: Upgrade", "Upgrade: shout"], &anthropic(2));
    assert_eq!(upstream.last().body, anthropic(2), "nor is a body lost to another offer");
}

#[test]
fn a_client_that_waits_to_be_asked_for_its_body_is_asked() {
    let upstream = good();
    let proxy = Running::before(&upstream, &[]);
    let mut connection = proxy.connect();
    let length = format!("Content-Length: {}", anthropic(2).len());
    let head = ["POST /v1/messages HTTP/1.1", "Expect: 100-continue", &length];
    send(&mut connection, &proxy.address, &head, b"");
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    assert_eq!(read_head(&mut reader).unwrap()[0], "HTTP/1.1 100 Continue");
    connection.write_all(&anthropic(2)).unwrap();
    assert_eq!(read_message(&mut reader).unwrap().head[0], "HTTP/1.1 200 OK");
    assert_eq!((upstream.last().body, upstream.last().header("expect")), (anthropic(2), None));
}

#[test]
fn a_client_that_has_nothing_more_to_send_still_gets_its_answer() {
    let upstream = Upstream::start(|_, _| Script::After(Duration::from_millis(300), Box::new(ok("late"))));
    let proxy = Running::before(&upstream, &[]);
    for path in ["/v1/messages", "/v1/files"] {
        let mut connection = proxy.connect();
        send(&mut connection, &proxy.address, &[&format!("POST {path} HTTP/1.1")], &anthropic(2));
        connection.shutdown(std::net::Shutdown::Write).unwrap();
        let answer = read_message(&mut BufReader::new(connection)).expect("an answer");
        assert_eq!((&answer.body[..], upstream.last().body), (&b"late"[..], anthropic(2)), "{path}");
    }
}

#[test]
fn a_body_with_trailers_arrives_whole() {
    let upstream = good();
    let proxy = Running::before(&upstream, &[]);
    for path in ["/v1/messages", "/v1/files"] {
        let body = anthropic(2);
        let mut chunked = format!("{:x}\r\n", body.len()).into_bytes();
        chunked.extend_from_slice(&body);
        chunked.extend_from_slice(b"\r\n0\r\nX-Sum: 1\r\n\r\n");
        let line = format!("POST {path} HTTP/1.1");
        proxy.ask(&[&line, "Transfer-Encoding: chunked", "Trailer: X-Sum"], &chunked);
        assert_eq!(upstream.last().body, body, "{path}");
    }
}
