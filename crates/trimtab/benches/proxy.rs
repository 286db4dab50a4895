//! What the proxy adds to a request: asked directly, through a minimal pass-through on the same stack, and through trimtab,
//! side by side in one run; then what a new connection costs, memory over many sessions, and how long the proxy takes to start.
//! `cargo bench -p trimtab --bench proxy [-- SECONDS [KILOBYTES]]`; with a size, of that size alone and nothing else.
//!
//! Timed is the next request of a conversation: it goes on with the one before, which is sent untimed, by a turn of 4 KB. The turn is
//! another one each time, so that nothing of it was read, counted or looked at before.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    missing_docs,
    reason = "a measurement for people, which stops at the first thing that is wrong"
)]

use std::{
    convert::Infallible,
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    client::conn::http1::SendRequest,
    server,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

/// Events of a scripted answer.
const EVENTS: usize = 50;
/// Tells this program to be the minimal pass-through: a separate process, as every proxy is.
const PASS: &str = "pass";
/// Tells it to look at the first bytes of every connection, as trimtab does to recognize HTTP/2.
const LOOK: &str = "look";
/// Proxies that store what they see, without and with a page that somebody looks at.
const PAGE_CLOSED: &str = "with store";
const PAGE_OPEN: &str = "page open";
/// Rounds before anything is timed.
const WARMING: usize = 4;
/// Clients at once where requests per second are measured.
const CLIENTS: usize = 8;
/// New connections that are timed through each target.
const CONNECTIONS: usize = 4_000;
/// Looks at bytes that wait in one socket.
const LOOKS: u32 = 200_000;

type Body = BoxBody<Bytes, hyper::Error>;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, look, provider] = &words[..]
        && first == PASS
    {
        let look = if look == LOOK { FirstLook::Peek } else { FirstLook::None };
        return pass_for(provider.parse().expect("an address"), look);
    }
    let numbers: Vec<f64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let seconds = numbers.first().copied().unwrap_or(3.0);
    let only = numbers.get(1).map(|kilobytes| *kilobytes as usize);
    let provider = serve(provide, FirstLook::None);
    let minimal = Minimal::start(provider, "plain");
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store.db");
    let plain = Trimtab::start(provider, &["--no-store"]);
    let keeping = Trimtab::start(provider, &["--store", store.to_str().expect("a path")]);
    let seen = folder.path().join("seen.db");
    let watched = Trimtab::start(provider, &["--store", seen.to_str().expect("a path")]);
    watch_page(watched.address);
    let targets = [
        Target { name: "direct", address: provider, switch: "" },
        Target { name: "minimal", address: minimal.address, switch: "" },
        Target { name: "trimtab off", address: plain.address, switch: "off" },
        Target { name: "trimtab", address: plain.address, switch: "on" },
        Target { name: PAGE_CLOSED, address: keeping.address, switch: "on" },
        Target { name: PAGE_OPEN, address: watched.address, switch: "on" },
    ];
    println!(
        "{:10} {:12} {:>9} {:>9} {:>12} {:>8} {:>8}",
        "request", "through", "p50 us", "p99 us", "over minimal", "req/s", "share"
    );
    for kilobytes in only.map_or(vec![40, 400, 4000], |only| vec![only]) {
        let runtime = runtime();
        let timed = runtime.block_on(alone(&targets, kilobytes * 1000, seconds));
        let least = percentile(&timed[1], 0.5);
        let mut passed = 0.0;
        for (target, timed) in targets.iter().zip(&timed) {
            let rate = runtime.block_on(together(*target, kilobytes * 1000, seconds / 2.0));
            if target.name == "minimal" {
                passed = rate;
            }
            let (half, most) = (percentile(timed, 0.5), percentile(timed, 0.99));
            let share = if passed > 0.0 { format!("{:.0} %", rate / passed * 100.0) } else { String::new() };
            println!(
                "{:10} {:12} {half:>9.0} {most:>9.0} {:>12.0} {rate:>8.0} {share:>8}",
                format!("{kilobytes} KB"),
                target.name,
                half - least
            );
        }
        let half = |name: &str| {
            let place = targets.iter().position(|target| target.name == name).expect("a target");
            percentile(&timed[place], 0.5)
        };
        let ratio = half(PAGE_OPEN) / half(PAGE_CLOSED);
        println!("{kilobytes} KB: with the page open, the p50 is {ratio:.2} times that with the page closed");
    }
    if only.is_none() {
        connections(provider, &minimal, &plain);
    }
    drop((plain, keeping, watched));
    if only.is_none() {
        sessions(provider);
        starts(provider);
    }
}

/// Does what an open page does: listens for news, and asks for the first page again when there is some.
fn watch_page(address: SocketAddr) {
    let get = move |path: &str, accept: &str| {
        let mut connection = std::net::TcpStream::connect(address).expect("a connection");
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
        );
        connection.write_all(head.as_bytes()).expect("a request");
        BufReader::new(connection)
    };
    thread::spawn(move || {
        let events = get("/trimtab/events", "text/event-stream");
        for line in events.lines().map_while(Result::ok) {
            if line == "event: news" {
                std::io::copy(&mut get("/", "text/html"), &mut std::io::sink()).expect("a page");
            }
        }
    });
}

/// What a new connection costs: the minimal pass-through without and with a look at the first bytes, and trimtab. Then the look alone.
fn connections(provider: SocketAddr, minimal: &Minimal, plain: &Trimtab) {
    let looking = Minimal::start(provider, LOOK);
    let targets = [
        ("minimal", minimal.address, ""),
        ("minimal, looks", looking.address, ""),
        ("trimtab off", plain.address, "off"),
    ];
    let request = grown(&conversation(100, 1), 0, 0);
    let mut timed = vec![Vec::new(); targets.len()];
    let runtime = runtime();
    runtime.block_on(async {
        for round in 0..CONNECTIONS {
            // In another order each time: what is asked first finds colder caches.
            for place in 0..targets.len() {
                let place = (place + round) % targets.len();
                let (_, address, switch) = targets[place];
                let started = Instant::now();
                let mut client = connect(address).await;
                ask(&mut client, switch, &request).await;
                timed[place].push(started.elapsed().as_secs_f64() * 1e6);
            }
        }
    });
    print!("a new connection with one small request, p50:");
    for ((name, _, _), timed) in targets.iter().zip(&timed) {
        print!(" {name} {:.1} us;", percentile(timed, 0.5));
    }
    println!(" one look at bytes that wait: {:.2} us", runtime.block_on(time_of_look()));
}

/// Returns the mean time of a look at bytes that wait in a socket, in microseconds.
async fn time_of_look() -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("a connection");
    let (server, _) = listener.accept().await.expect("a connection");
    client.writable().await.expect("a socket");
    client.try_write(b"POST / HTTP/1.1\r\n").expect("a socket");
    server.readable().await.expect("a socket");
    let started = Instant::now();
    for _ in 0..LOOKS {
        let mut first = [0; 3];
        server.peek(&mut first).await.expect("bytes");
        std::hint::black_box(first);
    }
    started.elapsed().as_secs_f64() * 1e6 / f64::from(LOOKS)
}

/// Memory of a proxy that meets one new session after the other.
fn sessions(provider: SocketAddr) {
    let trimtab = Trimtab::start(provider, &["--no-store"]);
    let runtime = runtime();
    print!("memory, sessions of 20 KB and two requests:");
    runtime.block_on(async {
        let mut client = connect(trimtab.address).await;
        for number in 1..=10_000 {
            let begun = conversation(20_000, number);
            ask(&mut client, "on", &grown(&begun, 0, 0)).await;
            ask(&mut client, "on", &grown(&begun, 0, 1)).await;
            if matches!(number, 1_000 | 5_000 | 10_000) {
                print!(" {} MB after {number};", trimtab.resident_kilobytes() / 1024);
            }
        }
    });
    println!();
}

/// Time from the start of the process to its first answer.
fn starts(provider: SocketAddr) {
    let mut timed: Vec<f64> = (0..10)
        .map(|_| {
            let started = Instant::now();
            let trimtab = Trimtab::spawn(provider, &["--no-store"]);
            runtime().block_on(async {
                let mut client = connect(trimtab.address).await;
                ask(&mut client, "on", &grown(&conversation(4_000, 1), 0, 0)).await;
            });
            started.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    timed.sort_by(f64::total_cmp);
    println!("start to first answer: {:.0} ms at the median, {:.0} ms at most", timed[5], timed[9]);
}

/// Somebody to ask.
#[derive(Clone, Copy)]
struct Target {
    name: &'static str,
    address: SocketAddr,
    switch: &'static str,
}

/// One client, every target in turn.
async fn alone(targets: &[Target], bytes: usize, seconds: f64) -> Vec<Vec<f64>> {
    let mut clients = Vec::new();
    for target in targets {
        clients.push((connect(target.address).await, target.switch));
    }
    let begun = conversation(bytes, 0);
    let mut timed = vec![Vec::new(); targets.len()];
    let mut started = Instant::now();
    for round in 0.. {
        if round == WARMING {
            started = Instant::now();
        }
        if round > WARMING && started.elapsed().as_secs_f64() > seconds * targets.len() as f64 {
            break;
        }
        let (before, next) = (grown(&begun, round, 0), grown(&begun, round, 1));
        for ((client, switch), timed) in clients.iter_mut().zip(&mut timed) {
            ask(client, switch, &before).await;
            let sent = Instant::now();
            ask(client, switch, &next).await;
            if round >= WARMING {
                timed.push(sent.elapsed().as_secs_f64() * 1e6);
            }
        }
    }
    timed
}

/// Several clients with a conversation each, one target: requests per second.
async fn together(target: Target, bytes: usize, seconds: f64) -> f64 {
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|number| {
            tokio::spawn(async move {
                let mut client = connect(target.address).await;
                let begun = conversation(bytes, number);
                for count in 0..2 * WARMING {
                    ask(&mut client, target.switch, &grown(&begun, count, count % 2)).await;
                }
                (client, begun)
            })
        })
        .collect();
    let mut ready = Vec::new();
    for client in clients {
        ready.push(client.await.expect("a client"));
    }
    let started = Instant::now();
    let tasks: Vec<_> = ready
        .into_iter()
        .map(|(mut client, begun)| {
            tokio::spawn(async move {
                let mut count = 0;
                while started.elapsed().as_secs_f64() < seconds {
                    let request = grown(&begun, 2 * WARMING + count, count % 2);
                    ask(&mut client, target.switch, &request).await;
                    count += 1;
                }
                count
            })
        })
        .collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await.expect("a client");
    }
    sum as f64 / started.elapsed().as_secs_f64()
}

async fn connect(address: SocketAddr) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    let (client, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("a connection");
    tokio::spawn(connection);
    client
}

async fn ask(client: &mut SendRequest<Full<Bytes>>, switch: &str, request: &Bytes) {
    let request = Request::post("/v1/chat/completions")
        .header("host", "127.0.0.1")
        .header("content-type", "application/json")
        .header("x-trimtab", switch)
        .body(Full::new(request.clone()))
        .expect("a request");
    client.ready().await.expect("a connection");
    let answer = client.send_request(request).await.expect("an answer");
    assert!(answer.status().is_success(), "{}", answer.status());
    answer.into_body().collect().await.expect("a whole answer");
}

/// Reads a request and streams events.
async fn provide(request: Request<Incoming>) -> Response<Body> {
    request.into_body().collect().await.expect("a request");
    let event = Bytes::from_static(
        b"data: {\"choices\":[{\"delta\":{\"content\":\"some words of an answer\"}}]}\n\n",
    );
    let frames = (0..EVENTS).map(move |_| Ok(Frame::data(event.clone())));
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(Events(frames))));
    response.headers_mut().insert("content-type", "text/event-stream".parse().expect("a value"));
    response
}

/// An iterator as a stream.
struct Events<I>(I);

impl<I: Iterator + Unpin> futures_core::Stream for Events<I> {
    type Item = I::Item;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<I::Item>> {
        std::task::Poll::Ready(self.0.next())
    }
}

thread_local! {
    static POOL: std::cell::RefCell<Vec<SendRequest<Full<Bytes>>>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// The least a proxy that reads whole requests does.
async fn pass(provider: SocketAddr, request: Request<Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.expect("a request").to_bytes();
    let pooled = POOL.with(|pool| pool.borrow_mut().pop());
    let mut client = match pooled {
        Some(client) if client.is_ready() => client,
        _ => connect(provider).await,
    };
    client.ready().await.expect("a connection");
    let answer = client.send_request(Request::from_parts(parts, Full::new(body))).await.expect("an answer");
    POOL.with(|pool| pool.borrow_mut().push(client));
    answer.map(BodyExt::boxed)
}

/// Whether a server looks at the first bytes of a connection before it serves it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FirstLook {
    None,
    Peek,
}

/// Serves on a separate thread.
fn serve<F, A>(answer: F, look: FirstLook) -> SocketAddr
where
    F: Fn(Request<Incoming>) -> A + Copy + Send + 'static,
    A: Future<Output = Response<Body>> + 'static,
{
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime(), async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            tell.send(listener.local_addr().expect("an address")).expect("somebody waits");
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).expect("a socket");
                let service =
                    service_fn(move |request| async move { Ok::<_, Infallible>(answer(request).await) });
                tokio::task::spawn_local(async move {
                    if look == FirstLook::Peek {
                        let _ = stream.peek(&mut [0; 3]).await;
                    }
                    server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
                });
            }
        });
    });
    told.recv().expect("an address")
}

/// Passes requests on until it is killed.
fn pass_for(provider: SocketAddr, look: FirstLook) {
    println!("{}", serve(move |request| pass(provider, request), look));
    loop {
        thread::park();
    }
}

/// The minimal pass-through.
struct Minimal {
    address: SocketAddr,
    child: Child,
}

impl Minimal {
    fn start(provider: SocketAddr, look: &str) -> Minimal {
        let mut child = Command::new(std::env::current_exe().expect("a program"))
            .args([PASS, look, &provider.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program");
        let mut word = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut word).expect("an address");
        Minimal { address: word.trim().parse().expect("an address"), child }
    }
}

impl Drop for Minimal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program, as a separate process.
struct Trimtab {
    address: SocketAddr,
    child: Child,
}

impl Trimtab {
    fn start(provider: SocketAddr, flags: &[&str]) -> Trimtab {
        let trimtab = Trimtab::spawn(provider, flags);
        // The vocabulary is loaded beside the first requests.
        thread::sleep(Duration::from_secs(1));
        trimtab
    }

    fn spawn(provider: SocketAddr, flags: &[&str]) -> Trimtab {
        let upstream = format!("openai=http://{provider}/v1");
        let mut child = Command::new(env!("CARGO_BIN_EXE_trimtab"))
            .args(["proxy", "--listen", "127.0.0.1:0", "--log", "quiet", "--upstream", &upstream])
            .args(flags)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary");
        let mut words = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let address =
            words.by_ref().map_while(Result::ok).find_map(|line| line.split("http://").nth(1)?.parse().ok());
        thread::spawn(move || words.for_each(drop));
        Trimtab { address: address.expect("an address"), child }
    }

    /// Memory that the process has, as the system counts it.
    fn resident_kilobytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
    }
}

impl Drop for Trimtab {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The beginning of a chat with tool results, of about so many bytes.
fn conversation(bytes: usize, number: usize) -> String {
    let mut request =
        format!(r#"{{"model":"gpt-5","messages":[{{"role":"user","content":"Find the value of {number}."}}"#);
    let mut turns = 0;
    while request.len() < bytes {
        turns += 1;
        request += &turn(turns, number * 1_000_003 + turns * 7919);
    }
    request
}

/// The request of a conversation that has gone on by so many turns; they are others in every round.
fn grown(begun: &str, round: usize, turns: usize) -> Bytes {
    let mut request = begun.to_owned();
    for number in 1..=turns {
        let name = (round + 1) * 1000 + number;
        request += &turn(name, name * 7919);
    }
    Bytes::from(request + "]}")
}

fn turn(name: usize, value: usize) -> String {
    let lines: String = (0..60)
        .map(|line| format!("src/module_{line}.rs:{}: let value = {};\\n", line * 3, value + line))
        .collect();
    format!(
        r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{name}","type":"function","function":{{"name":"grep","arguments":"{{\"pattern\":\"value_{name}\"}}"}}}}]}},{{"role":"tool","tool_call_id":"c{name}","content":"{lines}"}}"#
    )
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn percentile(timed: &[f64], share: f64) -> f64 {
    let mut sorted = timed.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}
