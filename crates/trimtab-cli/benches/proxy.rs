//! What the proxy adds to a request: asked directly, through a minimal pass-through on the same stack, and through trimtab,
//! side by side in one run; then its memory over many sessions, and how long it takes to start.
//! `cargo bench -p trimtab-cli --bench proxy [-- SECONDS]`.
//!
//! Timed is the next request of a conversation: the one before it, sent untimed, is a turn of 4 KB shorter.

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
    io::{BufRead, BufReader},
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
/// Rounds before anything is timed: the first requests of a conversation are cold.
const WARMING: usize = 4;
/// Clients at once where requests per second are measured.
const CLIENTS: usize = 8;

type Body = BoxBody<Bytes, hyper::Error>;

fn main() {
    let seconds: f64 = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(3.0);
    let provider = serve(provide);
    let minimal = serve(move |request| pass(provider, request));
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store.db");
    let plain = Trimtab::start(provider, &["--no-store"]);
    let keeping = Trimtab::start(provider, &["--store", store.to_str().expect("a path")]);
    let targets = [
        Target { name: "direct", address: provider, switch: "" },
        Target { name: "minimal", address: minimal, switch: "" },
        Target { name: "trimtab off", address: plain.address, switch: "off" },
        Target { name: "trimtab", address: plain.address, switch: "on" },
        Target { name: "with store", address: keeping.address, switch: "on" },
    ];
    println!(
        "{:10} {:12} {:>9} {:>9} {:>12} {:>8} {:>8}",
        "request", "through", "p50 us", "p99 us", "over minimal", "req/s", "share"
    );
    for kilobytes in [40, 400, 4000] {
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
    }
    drop((plain, keeping));
    sessions(provider);
    starts(provider);
}

/// Memory of a proxy that meets one new session after the other.
fn sessions(provider: SocketAddr) {
    let trimtab = Trimtab::start(provider, &["--no-store"]);
    let runtime = runtime();
    print!("memory, sessions of 20 KB and two requests:");
    runtime.block_on(async {
        let mut client = connect(trimtab.address).await;
        for number in 1..=10_000 {
            let (before, next) = conversation(20_000, number);
            ask(&mut client, "on", &before).await;
            ask(&mut client, "on", &next).await;
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
                ask(&mut client, "on", &conversation(4_000, 1).0).await;
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
    let (before, next) = conversation(bytes, 0);
    let mut clients = Vec::new();
    for target in targets {
        let mut client = connect(target.address).await;
        warm(&mut client, target.switch, &before, &next).await;
        clients.push((client, target.switch));
    }
    let mut timed = vec![Vec::new(); targets.len()];
    let started = Instant::now();
    while started.elapsed().as_secs_f64() < seconds * targets.len() as f64 {
        for ((client, switch), timed) in clients.iter_mut().zip(&mut timed) {
            ask(client, switch, &before).await;
            let sent = Instant::now();
            ask(client, switch, &next).await;
            timed.push(sent.elapsed().as_secs_f64() * 1e6);
        }
    }
    timed
}

/// Several clients with a conversation each, one target: requests per second.
async fn together(target: Target, bytes: usize, seconds: f64) -> f64 {
    let clients: Vec<_> = (1..=CLIENTS)
        .map(|number| {
            tokio::spawn(async move {
                let (before, next) = conversation(bytes, number);
                let mut client = connect(target.address).await;
                warm(&mut client, target.switch, &before, &next).await;
                (client, before, next)
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
        .map(|(mut client, before, next)| {
            tokio::spawn(async move {
                let mut count = 0;
                while started.elapsed().as_secs_f64() < seconds {
                    ask(&mut client, target.switch, if count % 2 == 0 { &next } else { &before }).await;
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
    f64::from(sum) / started.elapsed().as_secs_f64()
}

async fn warm(client: &mut SendRequest<Full<Bytes>>, switch: &str, before: &Bytes, next: &Bytes) {
    for _ in 0..WARMING {
        ask(client, switch, before).await;
        ask(client, switch, next).await;
    }
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

/// Serves on a thread of its own.
fn serve<F, A>(answer: F) -> SocketAddr
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
                tokio::task::spawn_local(
                    server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
    });
    told.recv().expect("an address")
}

/// The program, as a process of its own.
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

/// A chat with tool results, of about so many bytes: without its last turn, and with it.
fn conversation(bytes: usize, number: usize) -> (Bytes, Bytes) {
    let mut request =
        format!(r#"{{"model":"gpt-5","messages":[{{"role":"user","content":"Find the value of {number}."}}"#);
    let mut turn = 0;
    let mut before = 0;
    while request.len() < bytes {
        before = request.len();
        turn += 1;
        let value = number * 1_000_003 + turn * 7919;
        let lines: String = (0..60)
            .map(|line| format!("src/module_{line}.rs:{}: let value = {};\\n", line * 3, value + line))
            .collect();
        request += &format!(
            r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{turn}","type":"function","function":{{"name":"grep","arguments":"{{\"pattern\":\"value_{turn}\"}}"}}}}]}},{{"role":"tool","tool_call_id":"c{turn}","content":"{lines}"}}"#
        );
    }
    let shorter = format!("{}]}}", &request[..before]);
    request += "]}";
    (Bytes::from(shorter), Bytes::from(request))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn percentile(timed: &[f64], share: f64) -> f64 {
    let mut sorted = timed.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}
