//! Many streams at once, with providers that fail, wait and break off, and clients that leave: no turn may fail that would
//! have worked without the proxy, and nothing may be left over.
//!
//! The long part (`./scripts/test long load`) runs 200 streams for a minute and prints what it measures.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::as_conversions,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;
#[path = "proxy/conversations.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod conversations;
#[path = "proxy/running.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod running;
#[path = "proxy/upstream.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod upstream;

use std::{
    collections::BTreeMap,
    io::BufReader,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use conversations::chat;
use running::{Running, send};
use upstream::{Came, Script, Upstream, read_chunk, read_head};

/// What a turn is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Good,
    /// The provider takes its time to begin.
    Slow,
    /// The provider refuses to work just now.
    Overloaded,
    Faulty,
    /// The provider breaks off in the middle of its answer.
    BreaksOff,
    /// The client leaves in the middle of an answer without an end.
    Leaves,
}

/// Of ten turns six are good, and each client goes through all kinds.
const TURNS: [Turn; 10] = [
    Turn::Good,
    Turn::Good,
    Turn::Slow,
    Turn::Good,
    Turn::Overloaded,
    Turn::Good,
    Turn::Leaves,
    Turn::Good,
    Turn::BreaksOff,
    Turn::Faulty,
];

const CHUNKS: usize = 20;
const STREAM: &str = "Content-Type: text/event-stream";

/// The longest conversation that a client leads, in results of tools; then it begins another.
const LONGEST: usize = 24;

fn chunk(number: usize) -> Vec<u8> {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"word {number} of an answer\"}}}}]}}\n\n")
        .into_bytes()
}

fn provider() -> Upstream {
    Upstream::keeping(0, |_, came: &Came| {
        let chunks: Vec<Vec<u8>> = (0..CHUNKS).map(chunk).collect();
        let stream = |pause: u64| {
            Script::Chunks(vec![STREAM.to_owned()], chunks.clone(), Duration::from_millis(pause))
        };
        let refuse = |status: &'static str| Script::Whole(status, Vec::new(), status.as_bytes().to_vec());
        let line = &came.head[0];
        match TURNS.iter().find(|turn| line.contains(&format!("{turn:?}"))).expect("a kind of turn") {
            Turn::Good => stream(5),
            Turn::Slow => Script::After(Duration::from_millis(400), Box::new(stream(0))),
            Turn::Overloaded => refuse("529 Overloaded"),
            Turn::Faulty => refuse("500 Internal Server Error"),
            Turn::BreaksOff => Script::BreaksOff(vec![STREAM.to_owned()], chunks[..5].to_vec()),
            Turn::Leaves => Script::Endless(chunk(0)),
        }
    })
}

/// Takes one turn; gives the time to the first byte of the answer, or what went wrong.
fn take(proxy: &Running, turn: Turn, body: &[u8]) -> Result<Duration, String> {
    let started = Instant::now();
    let mut connection = proxy.connect();
    let line = format!("POST /v1/chat/completions?case={turn:?} HTTP/1.1");
    send(&mut connection, &proxy.address, &[&line, "Content-Type: application/json"], body);
    let mut reader = BufReader::new(connection);
    let head = read_head(&mut reader).ok_or("no answer")?;
    let first = started.elapsed();
    let expected = match turn {
        Turn::Good | Turn::Slow | Turn::BreaksOff | Turn::Leaves => "200",
        Turn::Overloaded => "529",
        Turn::Faulty => "500",
    };
    if !head[0].contains(expected) {
        return Err(format!("{turn:?}: {}", head[0]));
    }
    let streams = !matches!(turn, Turn::Overloaded | Turn::Faulty);
    let mut found = Vec::new();
    while streams && let Some(chunk) = read_chunk(&mut reader) {
        found.push(chunk);
        if turn == Turn::Leaves && found.len() == 3 {
            return Ok(first);
        }
    }
    let expected = match turn {
        Turn::Good | Turn::Slow => CHUNKS,
        Turn::BreaksOff => 5,
        Turn::Overloaded | Turn::Faulty | Turn::Leaves => 0,
    };
    // Chunks may arrive in one piece.
    let whole: Vec<u8> = (0..expected).flat_map(chunk).collect();
    if found.concat() == whole { Ok(first) } else { Err(format!("{turn:?}: {} chunks", found.len())) }
}

/// What the clients saw, by kind of turn.
type Seen = BTreeMap<Turn, Vec<Duration>>;

/// Leads conversations until the time is over.
fn client(proxy: &Running, number: usize, until: Instant, ended: &AtomicUsize) -> Result<Seen, String> {
    let mut seen = Seen::new();
    for turn in 0.. {
        if Instant::now() > until {
            break;
        }
        // Every conversation is another one.
        let results = 1 + turn % LONGEST;
        let name = format!("client {number}, conversation {}", turn / LONGEST);
        let text = String::from_utf8(chat(results)).expect("text");
        let body = text.replacen("\"content\":\"", &format!("\"content\":\"{name}: "), 1);
        let kind = TURNS[(turn + number) % TURNS.len()];
        let first =
            take(proxy, kind, body.as_bytes()).map_err(|fault| format!("{name}, turn {turn}: {fault}"))?;
        seen.entry(kind).or_default().push(first);
        ended.fetch_add(1, Ordering::Relaxed);
    }
    Ok(seen)
}

fn resident_megabytes(proxy: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.child.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() / 1024
}

fn open_files(proxy: &Running) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", proxy.child.id())).map_or(0, Iterator::count)
}

fn check(streams: usize, time: Duration) {
    let upstream = provider();
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("kept.db");
    let flags = ["--store", store.to_str().expect("a path"), "--plan-time", "50", "--log", "quiet"];
    let proxy = Arc::new(Running::with(&upstream, &flags, &[("TRIMTAB_NO_STORE", "0")]));
    let files = open_files(&proxy);
    let ended = Arc::new(AtomicUsize::new(0));
    let started = Instant::now();
    let clients: Vec<_> = (0..streams)
        .map(|number| {
            let (proxy, ended) = (Arc::clone(&proxy), Arc::clone(&ended));
            thread::spawn(move || client(&proxy, number, started + time, &ended))
        })
        .collect();
    thread::sleep(time / 2);
    let halfway = resident_megabytes(&proxy);
    let seen: Vec<Result<Seen, String>> =
        clients.into_iter().map(|client| client.join().expect("no panic")).collect();
    let failed: Vec<&String> = seen.iter().filter_map(|seen| seen.as_ref().err()).collect();
    assert!(failed.is_empty(), "{failed:#?}\n{}", proxy.words());
    // What a client left is noticed when the next chunk cannot be written.
    let patience = Instant::now();
    while proxy.figure("trimtab_in_flight") > 0.0 {
        assert!(
            patience.elapsed() < Duration::from_secs(20),
            "{} under way",
            proxy.figure("trimtab_in_flight")
        );
        thread::sleep(Duration::from_millis(50));
    }
    let at_end = resident_megabytes(&proxy);
    let mut all = Seen::new();
    seen.into_iter().flatten().flatten().for_each(|(kind, times)| all.entry(kind).or_default().extend(times));
    println!("{streams} streams, {} s: {} turns", time.as_secs(), ended.load(Ordering::Relaxed));
    for (kind, times) in &mut all {
        times.sort();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
        println!(
            "  {kind:10?} {:6}, first byte after {:.1} ms (p50), {:.1} ms (p99)",
            times.len(),
            at(0.5),
            at(0.99)
        );
    }
    let faults = |kind: &str| proxy.figure(&format!("trimtab_faults_total{{kind=\"{kind}\"}}")).abs();
    println!(
        "  plans late {}, failed {}, panics {}; not kept {}; memory {halfway} MB halfway, {at_end} MB at the end; files open {files} before, {} after",
        proxy.figure("trimtab_late_plans_total").abs(),
        faults("plan"),
        faults("panic"),
        proxy.figure("trimtab_not_kept"),
        open_files(&proxy)
    );
    assert_eq!((faults("plan"), faults("panic")), (0.0, 0.0));
    // By half of a minute all that is bounded has reached its bounds.
    let leaks = time >= Duration::from_secs(60) && at_end > halfway + halfway / 4;
    assert!(!leaks, "{halfway} MB halfway, {at_end} MB at the end");
    assert!(open_files(&proxy) < files + 2 * streams + 16, "connections are left open");
    assert!(all.len() == 6 || time < Duration::from_secs(3), "not every kind of turn was taken");
}

#[test]
fn twenty_streams_with_every_kind_of_trouble() {
    check(20, Duration::from_secs(4));
}

#[test]
#[ignore = "a minute of load: ./scripts/test long load"]
fn two_hundred_streams_for_a_minute() {
    check(200, Duration::from_secs(60));
}

/// Keeps every processor busy until it is stopped.
fn spin(stop: &Arc<AtomicUsize>, threads: usize) -> Vec<thread::JoinHandle<()>> {
    let spinner = || {
        let stop = Arc::clone(stop);
        thread::spawn(move || {
            while stop.load(Ordering::Relaxed) == 0 {
                std::hint::spin_loop();
            }
        })
    };
    (0..threads).map(|_| spinner()).collect()
}

#[test]
#[ignore = "minutes of load: ./scripts/test long load"]
fn on_a_busy_machine_hardly_a_plan_is_late() {
    /// Requests, results in the longest conversation, and busy threads for each processor.
    const REQUESTS: usize = 3000;
    const RESULTS: usize = 60;
    const BUSY: usize = 2;
    let wanted = |name: &str, usual: usize| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
    };
    let requests = wanted("BUSY_REQUESTS", REQUESTS);
    let plan_time = wanted("BUSY_PLAN_TIME", 50).to_string();
    let upstream = Upstream::keeping(0, |_, _| {
        Script::Whole("200 OK", vec!["Content-Type: application/json".to_owned()], b"{}".to_vec())
    });
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("kept.db");
    let store = store.to_str().expect("a path");
    let flags = [
        "--policy", "steady", "--budget", "40000", "--store", store, "--plan-time", &plan_time, "--log",
        "quiet",
    ];
    let stop = Arc::new(AtomicUsize::new(0));
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let spinners = spin(&stop, cores * BUSY);
    let proxy = Running::with(&upstream, &flags, &[("TRIMTAB_NO_STORE", "0")]);
    let started = Instant::now();
    for number in 0..requests {
        let name = format!("conversation {}", number / RESULTS);
        let text = String::from_utf8(chat(number % RESULTS)).expect("text");
        let body = text.replacen("\"content\":\"", &format!("\"content\":\"{name}: "), 1);
        proxy.post("/v1/chat/completions", body.as_bytes());
    }
    stop.store(1, Ordering::Relaxed);
    spinners.into_iter().for_each(|spinner| spinner.join().expect("no panic"));
    let late = proxy.figure("trimtab_late_plans_total").abs();
    println!(
        "{requests} requests with {} busy threads on {cores} processors: {late} plans late, {:.1} ms a request",
        cores * BUSY,
        started.elapsed().as_secs_f64() * 1e3 / requests as f64
    );
    assert!(late * 1000.0 <= requests as f64, "{late} of {requests} plans were late");
}

/// Memory that 200 streams of 400 KB may take, and what may be left of it when nothing is under way, in megabytes.
const MOST_UNDER_LOAD: u64 = 250;
const MOST_WHEN_IDLE: u64 = 120;

/// Leads a conversation of about 400 KB for two turns; gives what went wrong.
fn large_turns(proxy: &Running, number: usize) -> Result<(), String> {
    for results in [72, 73] {
        let text = String::from_utf8(chat(results)).expect("text");
        let body = text.replacen("\"content\":\"", &format!("\"content\":\"client {number}: "), 1);
        take(proxy, Turn::Good, body.as_bytes())?;
    }
    Ok(())
}

#[test]
#[ignore = "minutes of load: ./scripts/test long load"]
fn two_hundred_streams_of_400_kilobytes_take_little_memory_and_give_it_back() {
    const STREAMS: usize = 200;
    let chunks: Vec<Vec<u8>> = (0..CHUNKS).map(chunk).collect();
    let upstream = Upstream::keeping(0, move |_, _| {
        Script::Chunks(vec![STREAM.to_owned()], chunks.clone(), Duration::from_millis(500))
    });
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("kept.db");
    let flags = ["--store", store.to_str().expect("a path"), "--log", "quiet"];
    let proxy = Arc::new(Running::with(&upstream, &flags, &[("TRIMTAB_NO_STORE", "0")]));
    let at_start = resident_megabytes(&proxy);
    let clients: Vec<_> = (0..STREAMS)
        .map(|number| {
            let proxy = Arc::clone(&proxy);
            thread::spawn(move || large_turns(&proxy, number))
        })
        .collect();
    let (mut peak, mut under_way) = (0, 0);
    while !clients.iter().all(thread::JoinHandle::is_finished) {
        peak = peak.max(resident_megabytes(&proxy));
        under_way = under_way.max(proxy.figure("trimtab_in_flight") as usize);
        thread::sleep(Duration::from_millis(100));
    }
    let failed: Vec<String> =
        clients.into_iter().filter_map(|client| client.join().expect("no panic").err()).collect();
    assert!(failed.is_empty(), "{failed:#?}\n{}", proxy.words());
    let ended = Instant::now();
    let mut idle = resident_megabytes(&proxy);
    println!(
        "{STREAMS} streams of {} KB, {under_way} at once: {at_start} MB at the start, {peak} MB at most, {idle} MB at the end",
        chat(73).len() / 1000
    );
    while idle >= MOST_WHEN_IDLE && ended.elapsed() < Duration::from_secs(90) {
        thread::sleep(Duration::from_secs(1));
        idle = resident_megabytes(&proxy);
    }
    println!("  {idle} MB after {:.0} s without requests", ended.elapsed().as_secs_f64());
    assert!(under_way >= STREAMS * 9 / 10, "only {under_way} were under way at once");
    assert!(peak < MOST_UNDER_LOAD && idle < MOST_WHEN_IDLE, "{peak} MB under load, {idle} MB when idle");
}
