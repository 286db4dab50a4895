//! Providers that fail: silent, broken off, garbled, endless, wrong about their lengths, compressed beyond reason. The client
//! gets what came or an error it understands; the next request goes through.

use std::{
    io::{BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, LazyLock, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use flate2::{Compression, write::GzEncoder};
use serde_json::Value;

use crate::{
    TIGHT,
    conversations::anthropic,
    running::{Running, send},
    tally::Tally,
    upstream::{Upstream, read_message},
};

/// How long the client waits for an answer, and after what time the proxy gives a silent provider up.
const PATIENCE: Duration = Duration::from_secs(60);
const SILENCE: &str = "5";

/// Troubles that take their time.
const SLOW: [&str; 4] = ["silence", "bomb", "64 MB", "without end"];

/// What a provider does with a connection, once it has read a request.
type Trouble = fn(&mut TcpStream) -> std::io::Result<()>;

/// What a client must see of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// An error of the proxy's in the provider's shape.
    BadGateway,
    /// This status, with as much of the body as came.
    Status(&'static str),
    /// An answer, or the end of the connection.
    Anything,
}

use Expected::{Anything, BadGateway, Status};

/// Not to be used for the next request: what follows is no answer to that.
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

fn put(stream: &mut TcpStream, parts: &[&[u8]]) -> std::io::Result<()> {
    parts.iter().try_for_each(|part| stream.write_all(part))
}

fn whole(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    put(stream, &[head.as_bytes(), body])
}

fn chunk(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    put(stream, &[format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"])
}

/// Says nothing until nobody listens any more, or for as long as a test may take.
fn stall(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let _ = stream.read(&mut [0; 64]);
    Err(std::io::ErrorKind::TimedOut.into())
}

/// A gigabyte of nothing, compressed.
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let blank = vec![b' '; 1 << 20];
    (0..1024).for_each(|_| encoder.write_all(&blank).unwrap());
    encoder.finish().unwrap()
});

/// Every trouble, with its name.
fn troubles() -> Vec<(&'static str, Trouble, Expected)> {
    vec![
        ("closes", |_| Err(std::io::ErrorKind::ConnectionReset.into()), BadGateway),
        (
            "half a status line",
            |stream| {
                put(stream, &[b"HTTP/1."])?;
                stream.shutdown(Shutdown::Both)
            },
            BadGateway,
        ),
        (
            "no HTTP",
            |stream| {
                put(stream, &[b"SSH-2.0-OpenSSH_9.2\r\n\r\n"])?;
                stall(stream)
            },
            BadGateway,
        ),
        (
            "random bytes",
            |stream| {
                put(stream, &[&[0xd7; 5000]])?;
                stall(stream)
            },
            BadGateway,
        ),
        (
            "a status that is none",
            |stream| {
                put(stream, &[b"HTTP/1.1 99999 Odd\r\nContent-Length: 0\r\n\r\n"])?;
                stall(stream)
            },
            BadGateway,
        ),
        ("status 999", |stream| whole(stream, "999 Odd", "", b"{}"), Anything),
        (
            "a header without a colon",
            |stream| {
                put(stream, &[b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n"])?;
                stall(stream)
            },
            BadGateway,
        ),
        (
            "headers without end",
            |stream| {
                put(stream, &[b"HTTP/1.1 200 OK\r\n"])?;
                for number in 0..200_000 {
                    put(stream, &[format!("X-{number}: {number}\r\n").as_bytes()])?;
                }
                stall(stream)
            },
            BadGateway,
        ),
        ("silence", stall, Anything),
        (
            "silence in the head",
            |stream| {
                put(stream, &[b"HTTP/1.1 200 OK\r\nContent-"])?;
                stall(stream)
            },
            Anything,
        ),
        (
            "silence in the body",
            |stream| {
                put(stream, &[OK.as_bytes(), b"Content-Length: 100\r\n\r\n{\"half\":"])?;
                stall(stream)
            },
            Status("200"),
        ),
        (
            "silence in a stream",
            |stream| {
                put(stream, &[EVENTS.as_bytes()])?;
                chunk(stream, b"data: {}\n\n")?;
                stall(stream)
            },
            Status("200"),
        ),
        (
            "silence in an error",
            |stream| {
                put(stream, &[b"HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\n{\"error\":"])?;
                stall(stream)
            },
            Status("400"),
        ),
        (
            "silence in a 413",
            |stream| {
                put(stream, &[b"HTTP/1.1 413 Payload Too Large\r\nTransfer-Encoding: chunked\r\n\r\n"])?;
                stall(stream)
            },
            Status("413"),
        ),
        (
            "a body shorter than announced",
            |stream| {
                put(stream, &[OK.as_bytes(), b"Content-Length: 100\r\n\r\n{}"])?;
                Err(std::io::ErrorKind::UnexpectedEof.into())
            },
            Status("200"),
        ),
        (
            "an error shorter than announced",
            |stream| {
                put(stream, &[b"HTTP/1.1 500 Broken\r\nContent-Length: 100\r\n\r\n{}"])?;
                Err(std::io::ErrorKind::UnexpectedEof.into())
            },
            Anything,
        ),
        (
            "a body longer than announced",
            |stream| {
                put(
                    stream,
                    &[OK.as_bytes(), b"Content-Length: 2\r\n\r\n{}and more of it HTTP/1.1 200 OK\r\n\r\n"],
                )?;
                stall(stream)
            },
            Status("200"),
        ),
        (
            "two lengths",
            |stream| {
                put(stream, &[OK.as_bytes(), b"Content-Length: 2\r\nContent-Length: 9\r\n\r\n{}"])?;
                stall(stream)
            },
            Anything,
        ),
        (
            "a negative length",
            |stream| {
                put(stream, &[OK.as_bytes(), b"Content-Length: -2\r\n\r\n{}"])?;
                stall(stream)
            },
            BadGateway,
        ),
        (
            "a length and chunks",
            |stream| {
                put(
                    stream,
                    &[
                        OK.as_bytes(),
                        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
                    ],
                )?;
                stall(stream)
            },
            Anything,
        ),
        (
            "chunks that are none",
            |stream| {
                put(stream, &[EVENTS.as_bytes(), b"zz\r\nnonsense\r\n"])?;
                stall(stream)
            },
            Anything,
        ),
        (
            "no length at all",
            |stream| {
                put(stream, &[OK.as_bytes(), b"\r\n{\"usage\":{}}"])?;
                stream.shutdown(Shutdown::Both)
            },
            Status("200"),
        ),
        (
            "a flood of 1xx",
            |stream| {
                for _ in 0..1000 {
                    put(stream, &[b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"])?;
                }
                whole(stream, "200 OK", "", b"{}")
            },
            Anything,
        ),
        (
            "an answer before the request is read",
            |stream| whole(stream, "200 OK", "Connection: close\r\n", b"{}"),
            Status("200"),
        ),
        (
            "413 as a page",
            |stream| whole(stream, "413 Payload Too Large", "Content-Type: text/html\r\n", b"<h1>413</h1>"),
            Status("413"),
        ),
        ("413 without a body", |stream| whole(stream, "413 Payload Too Large", "", b""), Status("413")),
        (
            "413 with megabytes",
            |stream| whole(stream, "413 Payload Too Large", "", &vec![b'x'; 8 << 20]),
            Status("413"),
        ),
        (
            "too long, always",
            |stream| {
                whole(stream, "400 Bad Request", "", br#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 250000 tokens > 200000 maximum"}}"#)
            },
            Status("400"),
        ),
        (
            "too long by more than all numbers",
            |stream| {
                whole(stream, "400 Bad Request", "", br#"{"error":{"message":"prompt is too long: 99999999999999999999999999 tokens > -1 maximum"}}"#)
            },
            Status("400"),
        ),
        (
            "429 with an odd wait",
            |stream| whole(stream, "429 Too Many", "Retry-After: -1e99\r\n", b"{}"),
            Status("429"),
        ),
        (
            "an error that is deep",
            |stream| whole(stream, "400 Bad Request", "", "[".repeat(200_000).as_bytes()),
            Status("400"),
        ),
        (
            "an error with terminal escapes",
            |stream| {
                whole(stream, "400 Bad Request", "", b"{\"error\":{\"message\":\"\x1b]52;c;x\x07\x1b[31m\"}}")
            },
            Status("400"),
        ),
        (
            "usage beyond all numbers",
            |stream| {
                whole(stream, "200 OK", "Content-Type: application/json\r\n", br#"{"usage":{"input_tokens":99999999999999999999,"output_tokens":-5,"cache_read_input_tokens":1e300}}"#)
            },
            Status("200"),
        ),
        (
            "the largest usage",
            |stream| {
                whole(stream, "200 OK", "Content-Type: application/json\r\n", br#"{"usage":{"input_tokens":18446744073709551615,"output_tokens":18446744073709551615,"cache_read_input_tokens":18446744073709551615,"cache_creation_input_tokens":18446744073709551615}}"#)
            },
            Status("200"),
        ),
        (
            "an answer that is deep",
            |stream| {
                whole(
                    stream,
                    "200 OK",
                    "Content-Type: application/json\r\n",
                    "{\"usage\":".repeat(100_000).as_bytes(),
                )
            },
            Status("200"),
        ),
        (
            "an answer of 64 MB",
            |stream| whole(stream, "200 OK", "Content-Type: application/json\r\n", &vec![b' '; 64 << 20]),
            Status("200"),
        ),
        (
            "an event of 64 MB",
            |stream| {
                put(stream, &[EVENTS.as_bytes()])?;
                chunk(stream, b"data: ")?;
                for _ in 0..64 {
                    chunk(stream, &vec![b'x'; 1 << 20])?;
                }
                put(stream, &[b"0\r\n\r\n"])
            },
            Status("200"),
        ),
        (
            "events of odd bytes",
            |stream| {
                put(stream, &[EVENTS.as_bytes()])?;
                for _ in 0..200 {
                    chunk(
                        stream,
                        b"data: \xff\xfe{\"usage\":\x00}\r\rdata:data:\n\n: \n\nevent: \x1b[31m\n\n",
                    )?;
                }
                put(stream, &[b"0\r\n\r\n"])
            },
            Status("200"),
        ),
        (
            "a gzip bomb",
            |stream| {
                whole(stream, "200 OK", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", &BOMB)
            },
            Status("200"),
        ),
        (
            "a gzip bomb as an error",
            |stream| {
                whole(
                    stream,
                    "400 Bad Request",
                    "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
                    &BOMB,
                )
            },
            Status("400"),
        ),
        (
            "gzip that is none",
            |stream| whole(stream, "200 OK", "Content-Encoding: gzip\r\n", b"not compressed"),
            Status("200"),
        ),
        (
            "brotli that is none",
            |stream| whole(stream, "400 Bad Request", "Content-Encoding: br\r\n", &[0xff; 4000]),
            Status("400"),
        ),
        (
            "a switch that nobody asked for",
            |stream| {
                put(stream, &[b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: evil\r\nConnection: Upgrade\r\n\r\nhello"])?;
                stall(stream)
            },
            Anything,
        ),
    ]
}

/// A provider that makes the trouble that a path names, and serves `/v1/messages`.
fn provider() -> Upstream {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let came = Arc::new(Mutex::new(Vec::new()));
    let (_, left) = mpsc::channel();
    let kept = Arc::clone(&came);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let kept = Arc::clone(&kept);
            thread::spawn(move || {
                let mut writer = stream.try_clone().expect("a stream");
                let mut reader = BufReader::new(stream);
                while let Some(request) = read_message(&mut reader) {
                    let number = request.head[0]
                        .split("trouble=")
                        .nth(1)
                        .and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok());
                    let answered = match number.and_then(|number| troubles().into_iter().nth(number)) {
                        Some((_, trouble, _)) => trouble(&mut writer),
                        None => {
                            kept.lock().unwrap().push(request);
                            whole(&mut writer, "200 OK", "Content-Type: application/json\r\n", b"{}")
                        }
                    };
                    if answered.is_err() {
                        let _ = writer.shutdown(Shutdown::Both);
                        return;
                    }
                }
            });
        }
    });
    Upstream { url, came, left }
}

/// Reads the head of an answer and as much of its body as comes soon.
fn read_some(connection: &mut TcpStream) -> (String, Vec<u8>) {
    let mut answer = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count) = connection.read(&mut buffer) {
        if count == 0 {
            break;
        }
        // Enough to judge by; the rest is read and dropped.
        if answer.len() < 100_000 {
            answer.extend_from_slice(&buffer[..count]);
        }
        // Once something has come, silence is short.
        connection.set_read_timeout(Some(Duration::from_secs(4))).unwrap();
    }
    let end = memchr::memmem::find(&answer, b"\r\n\r\n").map_or(answer.len(), |end| end + 4);
    let body = answer.split_off(end);
    (String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned(), body)
}

fn check_trouble(tally: &mut Tally, proxy: &Running, number: usize, results: usize) {
    let (name, _, expected) = troubles()[number];
    let started = Instant::now();
    let mut connection = proxy.connect();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    let line = format!("POST /v1/messages?trouble={number} HTTP/1.1");
    send(
        &mut connection,
        &proxy.address,
        &[&line, "Content-Type: application/json", "Connection: close"],
        &anthropic(results),
    );
    let (status, body) = read_some(&mut connection);
    let word = status.split(' ').nth(1).unwrap_or("none").to_owned();
    let holds = match expected {
        BadGateway => {
            let error: Value = serde_json::from_slice(&body).unwrap_or_default();
            matches!(word.as_str(), "502" | "504") && error["error"]["message"].is_string()
        }
        Status(expected) => word == expected,
        Anything => started.elapsed() < PATIENCE,
    };
    tally.count(&format!("answered {word}"));
    tally.expect(holds, || {
        let body = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        format!("{name}: expected {expected:?}, was {status:?} {body:?} after {:?}", started.elapsed())
    });
}

/// Each trouble so many times, from several clients at once.
fn check(times: usize, passed_over: &[&str]) {
    const CLIENTS: usize = 4;
    let upstream = provider();
    let flags = [&TIGHT[..], &["--upstream-timeout", SILENCE, "--log", "normal"]].concat();
    let proxy = Running::before(&upstream, &flags);
    let mut tally = Tally::new("providers");
    let tallies = Mutex::new(Vec::new());
    let all = troubles().into_iter().map(|(name, _, _)| name).enumerate();
    let is_wanted = |name: &str| !passed_over.iter().any(|word| name.contains(word));
    let numbers: Vec<usize> = all.filter(|(_, name)| is_wanted(name)).map(|(number, _)| number).collect();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (proxy, tallies, numbers) = (&proxy, &tallies, &numbers);
            scope.spawn(move || {
                let mut tally = Tally::new("providers");
                for (turn, number) in numbers.repeat(times).into_iter().enumerate() {
                    let results = if turn / numbers.len() % 2 == 0 { 2 } else { 14 };
                    if turn % CLIENTS == client {
                        check_trouble(&mut tally, proxy, number, results);
                    }
                }
                tallies.lock().unwrap().push(tally);
            });
        }
    });
    tallies.into_inner().unwrap().into_iter().for_each(|other| tally.add(other));
    tally.expect_alive(&proxy, &upstream);
    let started = Instant::now();
    while proxy.figure("trimtab_in_flight") > 0.0 && started.elapsed() < Duration::from_secs(30) {
        thread::sleep(Duration::from_millis(100));
    }
    let under_way = proxy.figure("trimtab_in_flight");
    tally.expect(under_way < 0.5, || format!("{under_way} requests are under way for ever"));
    let words = proxy.words();
    tally.expect(!words.contains('\u{1b}'), || format!("the log holds escapes: {words:?}"));
    tally.expect(words.contains("answered") || words.contains("provider"), || {
        format!("the log says nothing: {words}")
    });
    tally.finish();
}

#[test]
fn clients_outlive_their_providers() {
    check(1, &SLOW);
}

#[test]
#[ignore = "./scripts/test long attack"]
fn long_providers() {
    check(20, &[]);
}
