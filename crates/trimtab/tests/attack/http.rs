//! Forms of HTTP: what clients send, what they should not send, and what attackers send. Then the same with bytes changed.

use std::{
    collections::VecDeque,
    io::{BufReader, Read, Write},
    net::Shutdown,
    thread,
    time::{Duration, Instant},
};

use crate::{
    conversations::anthropic,
    good,
    running::Running,
    tally::{Chance, Tally},
    upstream::{Came, Upstream, read_head, read_message},
};

/// What must become of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// The provider gets exactly the body, once.
    Forwarded,
    /// The client gets an error; the provider gets nothing.
    Refused,
    /// Either: HTTP allows both.
    Either,
}

use Expected::{Either, Forwarded, Refused};

/// How many of the last inputs a body that reaches the provider may come from.
const RECENT: usize = 8;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

fn body() -> Vec<u8> {
    anthropic(2)
}

/// Writes a request; the lines stand between the request line and the body.
fn request(line: &str, lines: &[&str], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{line}\r\n{}\r\n\r\n", lines.join("\r\n")).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

fn post(lines: &[&str], body: &[u8]) -> Vec<u8> {
    request("POST /v1/messages HTTP/1.1", &[&["Host: 127.0.0.1"], lines].concat(), body)
}

/// A body in chunks, with what may follow the size of each and in place of the last line.
fn chunked(size: usize, extension: &str, end: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in body().chunks(size) {
        bytes.extend_from_slice(format!("{:X}{extension}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(end.as_bytes());
    bytes
}

/// Every form, with its name.
fn forms() -> Vec<(&'static str, Vec<u8>, Expected)> {
    let length = format!("Content-Length: {}", body().len());
    let length = length.as_str();
    let chunks = "Transfer-Encoding: chunked";
    let many: Vec<String> = (0..190).map(|number| format!("X-Header-{number}: {number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).chain([length]).collect();
    let more: Vec<String> = (0..5000).map(|number| format!("X-Header-{number}: {number}")).collect();
    let more: Vec<&str> = more.iter().map(String::as_str).chain([length]).collect();
    let (long, longer) =
        (format!("X-Long: {}", "a".repeat(200_000)), format!("X-Long: {}", "a".repeat(2_000_000)));
    let smuggled =
        [&body()[..], b"POST /v1/smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n"].concat();
    let path = format!("POST /v1/messages?{} HTTP/1.1", "q".repeat(300_000));
    let host = ["Host: 127.0.0.1", length];
    vec![
        ("plain", post(&[length], &body()), Forwarded),
        (
            "h2c",
            post(
                &[
                    length,
                    "Connection: Upgrade, HTTP2-Settings",
                    "Upgrade: h2c",
                    "HTTP2-Settings: AAMAAABkAAQAoAAA",
                ],
                &body(),
            ),
            Forwarded,
        ),
        (
            "upgrade to a websocket",
            post(&[length, "Connection: Upgrade", "Upgrade: websocket"], &body()),
            Forwarded,
        ),
        ("expect, not waiting", post(&[length, "Expect: 100-continue"], &body()), Forwarded),
        ("expect something else", post(&[length, "Expect: 200-maybe"], &body()), Either),
        (
            "trailers",
            post(&[chunks, "Trailer: X-Sum"], &chunked(500, "", "0\r\nX-Sum: 1\r\n\r\n")),
            Forwarded,
        ),
        (
            "forbidden trailers",
            post(&[chunks], &chunked(500, "", "0\r\nContent-Length: 3\r\nHost: evil.example\r\n\r\n")),
            Either,
        ),
        ("chunks of a byte", post(&[chunks], &chunked(1, "", "0\r\n\r\n")), Forwarded),
        ("chunks with extensions", post(&[chunks], &chunked(900, ";a=\"b\";c", "0;last\r\n\r\n")), Forwarded),
        (
            "chunks with long extensions",
            post(&[chunks], &chunked(9, &format!(";a={}", "b".repeat(5000)), "0\r\n\r\n")),
            Either,
        ),
        ("chunk without its end", post(&[chunks], &chunked(900, "", "")), Refused),
        ("chunk size too large", post(&[chunks], b"fffffffffffffffff\r\nx\r\n0\r\n\r\n"), Refused),
        ("chunk size negative", post(&[chunks], b"-5\r\nabcde\r\n0\r\n\r\n"), Refused),
        ("chunk size with sign", post(&[chunks], b"+5\r\nabcde\r\n0\r\n\r\n"), Refused),
        ("chunk size in words", post(&[chunks], b"five\r\nabcde\r\n0\r\n\r\n"), Refused),
        ("chunk longer than announced", post(&[chunks], b"3\r\nabcdef\r\n0\r\n\r\n"), Refused),
        ("chunk with bare newlines", post(&[chunks], b"3\nabc\n0\n\n"), Either),
        (
            "chunked, spelt otherwise",
            post(&["transfer-ENCODING: Chunked"], &chunked(500, "", "0\r\n\r\n")),
            Forwarded,
        ),
        ("many headers", post(&many, &body()), Forwarded),
        ("too many headers", post(&more, &body()), Refused),
        ("a long header", post(&[&long, length], &body()), Either),
        ("a header too long", post(&[&longer, length], &body()), Refused),
        ("a long path", request(&path, &host, &body()), Either),
        ("a length and chunks", post(&[length, chunks], &chunked(500, "", "0\r\n\r\n")), Either),
        (
            "a length, chunks and a second request",
            post(&["Content-Length: 4", chunks], &[&b"0\r\n\r\n"[..], &smuggled].concat()),
            Either,
        ),
        ("two equal lengths", post(&[length, length], &body()), Either),
        ("two lengths", post(&[length, "Content-Length: 3"], &body()), Refused),
        ("a list of lengths", post(&["Content-Length: 3, 3"], b"abc"), Either),
        ("a negative length", post(&["Content-Length: -1"], &body()), Refused),
        ("a length with a sign", post(&["Content-Length: +3"], b"abc"), Refused),
        ("a length in words", post(&["Content-Length: three"], b"abc"), Refused),
        ("a length beyond all numbers", post(&["Content-Length: 99999999999999999999999"], b"abc"), Refused),
        ("a length of many gigabytes", post(&["Content-Length: 99999999999"], b"abc"), Refused),
        ("an empty length", post(&["Content-Length: "], &body()), Either),
        ("an unknown encoding", post(&["Transfer-Encoding: xchunked", length], &body()), Either),
        (
            "an encoding behind chunks",
            post(&["Transfer-Encoding: chunked, identity"], &chunked(500, "", "0\r\n\r\n")),
            Refused,
        ),
        (
            "two encodings",
            post(&[chunks, "Transfer-Encoding: identity"], &chunked(500, "", "0\r\n\r\n")),
            Either,
        ),
        (
            "an encoding with a blank",
            post(&["Transfer-Encoding : chunked"], &chunked(500, "", "0\r\n\r\n")),
            Refused,
        ),
        (
            "an encoding with a tab",
            post(&["Transfer-Encoding:\tchunked"], &chunked(500, "", "0\r\n\r\n")),
            Either,
        ),
        ("a folded header", post(&["X-Folded: one\r\n two", length], &body()), Either),
        ("a header without a colon", post(&["Nonsense", length], &body()), Refused),
        ("a header without a name", post(&[": value", length], &body()), Refused),
        ("a header with a zero byte", post(&["X-Zero: a\0b", length], &body()), Refused),
        ("a header with a carriage return", post(&["X-Return: a\rX-Other: b", length], &body()), Refused),
        ("a header with bytes above ASCII", post(&["X-Bytes: \u{e9}\u{1b}", length], &body()), Either),
        ("no host", request("POST /v1/messages HTTP/1.1", &[length], &body()), Either),
        (
            "two hosts",
            request(
                "POST /v1/messages HTTP/1.1",
                &["Host: 127.0.0.1", "Host: evil.example", length],
                &body(),
            ),
            Refused,
        ),
        (
            "another host",
            request("POST /v1/messages HTTP/1.1", &["Host: evil.example", length], &body()),
            Refused,
        ),
        ("HTTP/1.0", request("POST /v1/messages HTTP/1.0", &host, &body()), Forwarded),
        (
            "HTTP/1.0 in chunks",
            request(
                "POST /v1/messages HTTP/1.0",
                &["Host: 127.0.0.1", chunks],
                &chunked(500, "", "0\r\n\r\n"),
            ),
            Either,
        ),
        ("HTTP/9.9", request("POST /v1/messages HTTP/9.9", &host, &body()), Refused),
        (
            "an absolute address",
            request("POST http://evil.example/v1/messages HTTP/1.1", &host, &body()),
            Either,
        ),
        ("a path that climbs", request("POST /v1/../trimtab/fit HTTP/1.1", &host, &body()), Either),
        (
            "a path with line ends",
            request("POST /v1/messages%0d%0aX-Evil:%201 HTTP/1.1", &host, &body()),
            Either,
        ),
        ("a path with a zero byte", request("POST /v1/mess\0ages HTTP/1.1", &host, &body()), Refused),
        ("another method", request("BREW /v1/messages HTTP/1.1", &host, &body()), Either),
        ("no method", request("/v1/messages", &host, &body()), Refused),
        (
            "a connect",
            request("CONNECT evil.example:443 HTTP/1.1", &["Host: evil.example:443"], b""),
            Refused,
        ),
        ("a trace", request("TRACE /v1/messages HTTP/1.1", &["Host: 127.0.0.1"], b""), Either),
        ("HTTP/2 at once", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec(), Either),
        ("TLS", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03 hello".to_vec(), Refused),
        ("an absent body", post(&[length], b""), Refused),
        ("half a body", post(&[length], &body()[..100]), Refused),
        ("no length", post(&[], &body()), Either),
        ("only a line", b"POST /v1/messages HTTP/1.1\r\n".to_vec(), Refused),
        ("only line ends", b"\r\n\r\n\r\n\r\n".to_vec(), Refused),
        ("nothing", Vec::new(), Refused),
        ("broken gzip", post(&[length, "Content-Encoding: gzip"], &body()), Either),
        ("unknown compression", post(&[length, "Content-Encoding: br, zstd, x"], &body()), Either),
    ]
}

/// Sends bytes, says that no more come, and reads all that comes back; nothing where that does not end.
fn exchange(proxy: &Running, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut connection = proxy.connect();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    // A proxy that refuses early may close before all has been written.
    let _ = connection.write_all(bytes);
    let _ = connection.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match connection.read(&mut buffer) {
            Ok(0) => return Some(answer),
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(fault) if fault.kind() == std::io::ErrorKind::ConnectionReset => return Some(answer),
            Err(_) => return None,
        }
    }
}

/// Checks that a provider can read what came in one way only.
fn check_framing(tally: &mut Tally, came: &Came) {
    let lines =
        |name: &str| came.head.iter().filter(|line| line.to_ascii_lowercase().starts_with(name)).count();
    let framing = lines("content-length:") + lines("transfer-encoding:");
    tally.expect(framing <= 1, || format!("two lengths reach the provider: {:?}", came.head));
    tally
        .expect(framing == 1 || came.body.is_empty(), || format!("a body without a length: {:?}", came.head));
    tally.expect(lines("host:") == 1, || format!("not one host: {:?}", came.head));
    let has_control = came.head.iter().any(|line| line.chars().any(|letter| letter < ' ' && letter != '\t'));
    tally.expect(!has_control, || format!("control characters reach the provider: {:?}", came.head));
    tally.expect(!came.head[0].contains("smuggled") || came.body.is_empty(), || format!("{:?}", came.head));
}

/// Returns the status line of an answer, without the version of HTTP that the client asked for. A request in HTTP/2 is answered
/// in its frames, of which the first has settings: such an answer has no status line.
fn status(answer: &[u8]) -> String {
    if let [0, 0, _, 4, ..] = answer {
        return String::new();
    }
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    String::from_utf8_lossy(line).replacen("HTTP/1.0", "HTTP/1.1", 1)
}

fn check_form(
    tally: &mut Tally,
    proxy: &Running,
    upstream: &Upstream,
    form: &(&'static str, Vec<u8>, Expected),
) {
    let (name, bytes, expected) = form;
    let before = upstream.came().len();
    let Some(answer) = exchange(proxy, bytes) else {
        return tally.expect(false, || format!("{name}: no end of the answer"));
    };
    let came = upstream.came().split_off(before);
    came.iter().for_each(|came| check_framing(tally, came));
    let status = status(&answer);
    let is_refusal =
        status.starts_with("HTTP/1.1 4") || status.starts_with("HTTP/1.1 5") || status.is_empty();
    let is_forwarded = status == "HTTP/1.1 200 OK" || status == "HTTP/1.1 100 Continue";
    tally.count(if came.is_empty() { "refused" } else { "forwarded" });
    let holds = match expected {
        Forwarded => is_forwarded && came.len() == 1 && came[0].body == body(),
        Refused => is_refusal && came.is_empty(),
        Either => is_refusal || !came.is_empty() || status.starts_with("HTTP/1.1 2"),
    };
    tally.expect(holds, || {
        let bodies: Vec<usize> = came.iter().map(|came| came.body.len()).collect();
        format!(
            "{name}: expected {expected:?}, was {status:?}, bodies of {bodies:?} bytes reached the provider"
        )
    });
}

/// Changes some bytes of a request.
fn changed(bytes: &[u8], chance: &mut Chance) -> Vec<u8> {
    const ODD: [u8; 12] = [0, b'\r', b'\n', b' ', b':', b'\t', b'0', b'f', b';', 0x80, 0xff, b'-'];
    let mut bytes = bytes.to_vec();
    // The head is where a change matters.
    let near = bytes.len().min(400);
    for _ in 0..=chance.below(3) {
        let at = chance.below(near.min(bytes.len()));
        match chance.below(5) {
            0 if !bytes.is_empty() => bytes[at] = ODD[chance.below(ODD.len())],
            1 => bytes.insert(at, ODD[chance.below(ODD.len())]),
            2 if !bytes.is_empty() => drop(bytes.remove(at)),
            3 => bytes.truncate(at + chance.below(bytes.len() + 1)),
            _ => {
                let end = (at + chance.below(60)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

fn check_changed(tally: &mut Tally, proxy: &Running, upstream: &Upstream, inputs: usize) {
    let forms: Vec<Vec<u8>> =
        forms().into_iter().map(|(_, bytes, _)| bytes).filter(|bytes| bytes.len() < 50_000).collect();
    let mut chance = Chance(7);
    let mut recent = VecDeque::new();
    upstream.came.lock().unwrap().clear();
    for number in 0..inputs {
        let bytes = changed(&forms[number % forms.len()], &mut chance);
        recent.push_back(bytes.clone());
        if recent.len() > RECENT {
            recent.pop_front();
        }
        let Some(answer) = exchange(proxy, &bytes) else {
            tally.expect(false, || {
                format!(
                    "no end of the answer to {:?}",
                    String::from_utf8_lossy(&bytes[..bytes.len().min(600)])
                )
            });
            continue;
        };
        let status = status(&answer);
        tally.expect(status.is_empty() || status.starts_with("HTTP/1.1 "), || {
            format!("an odd answer: {status:?}")
        });
        let came = std::mem::take(&mut *upstream.came.lock().unwrap());
        tally.count(if came.is_empty() { "changed and refused" } else { "changed and forwarded" });
        for came in &came {
            check_framing(tally, came);
            // A client that went away may be answered after the next one has come.
            let is_part = |sent: &Vec<u8>| {
                memchr::memmem::find(sent, &came.body).is_some()
                    || String::from_utf8_lossy(sent).to_lowercase().contains("chunked")
            };
            tally.expect(recent.iter().any(is_part), || {
                let (head, body) = (&came.head, String::from_utf8_lossy(&came.body));
                let start: String = body.chars().take(200).collect();
                format!(
                    "the provider got a body of {} bytes that nobody sent: {head:?} {start:?}",
                    came.body.len()
                )
            });
        }
    }
}

/// Bodies that come a byte at a time, heads that do, and clients that wait to be asked.
fn check_slow(tally: &mut Tally, proxy: &Running, upstream: &Upstream) {
    let length = format!("Content-Length: {}", body().len());
    let whole = post(&[&length], &body());
    let head = whole.len() - body().len();
    for (pieces, pause) in [(40, 10), (400, 1)] {
        let mut connection = proxy.connect();
        for piece in whole.chunks(whole.len() / pieces) {
            connection.write_all(piece).unwrap();
            thread::sleep(Duration::from_millis(pause));
        }
        let answer = read_message(&mut BufReader::new(connection));
        tally.count("slow and forwarded");
        tally.expect(answer.is_some() && upstream.last().body == body(), || "a slow body is lost".to_owned());
    }
    let mut connection = proxy.connect();
    let asking = post(&[&length, "Expect: 100-continue"], b"");
    connection.write_all(&asking).unwrap();
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let asked = read_head(&mut reader).unwrap_or_default();
    connection.write_all(&body()).unwrap();
    let answer = read_message(&mut reader).unwrap_or_default();
    tally.count("asked for its body and forwarded");
    tally.expect(
        asked == ["HTTP/1.1 100 Continue"] && answer.head.first().is_some_and(|line| line.contains("200")),
        || format!("{asked:?}, {:?}", answer.head),
    );
    let mut connection = proxy.connect();
    connection.write_all(&[&whole[..], &whole].concat()).unwrap();
    let mut reader = BufReader::new(connection);
    let answers = (0..2).filter_map(|_| read_message(&mut reader)).count();
    tally.count("two at once and forwarded");
    tally.expect(answers == 2, || format!("{answers} answers to two requests at once"));
    assert!(head > 0);
}

/// Many clients that announce bodies and never send them: the others are served meanwhile.
fn check_absent(tally: &mut Tally, proxy: &Running, upstream: &Upstream, clients: usize) {
    let heads = [
        post(&["Content-Length: 8388608"], b"{"),
        post(&["Transfer-Encoding: chunked"], b"800000\r\n{"),
        b"POST /v1/messages HTTP/1.1\r\nHost: 127".to_vec(),
    ];
    let mut open = Vec::new();
    for number in 0..clients {
        let mut connection = proxy.connect();
        connection.write_all(&heads[number % heads.len()]).unwrap();
        open.push(connection);
        tally.count("announced and absent");
    }
    thread::sleep(Duration::from_millis(300));
    let started = Instant::now();
    tally.expect_alive(proxy, upstream);
    tally.expect(started.elapsed() < Duration::from_secs(5), || {
        format!("others wait {:?} for bodies that never come", started.elapsed())
    });
    drop(open);
}

fn check(changes: usize, absent: usize) {
    let upstream = good();
    // Nothing is hidden here: every body that arrives must be one that was sent.
    let proxy = Running::before(&upstream, &["--policy", "none", "--log", "verbose"]);
    let mut tally = Tally::new("HTTP forms");
    for form in &forms() {
        check_form(&mut tally, &proxy, &upstream, form);
    }
    check_slow(&mut tally, &proxy, &upstream);
    check_changed(&mut tally, &proxy, &upstream, changes);
    check_absent(&mut tally, &proxy, &upstream, absent);
    tally.expect_alive(&proxy, &upstream);
    tally.finish();
}

#[test]
fn http_is_forwarded_whole_or_refused() {
    check(60, 30);
}

#[test]
#[ignore = "./scripts/test long attack"]
fn long_http() {
    check(10_000, 240);
}
