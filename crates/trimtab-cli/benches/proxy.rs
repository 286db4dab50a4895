//! What the proxy adds to a request: asked directly, through a minimal pass-through on the same stack, and through trimtab,
//! side by side in one run. `cargo bench -p trimtab-cli --bench proxy [-- SECONDS]`.

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
/// Clients at once where requests per second are measured.
const CLIENTS: usize = 8;

type Body = BoxBody<Bytes, hyper::Error>;

fn main() {
    let seconds: f64 = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(3.0);
    let provider = serve(provide);
    let minimal = serve(move |request| pass(provider, request));
    let trimtab = Trimtab::start(provider);
    let targets = [
        ("direct", provider, ""),
        ("minimal", minimal, ""),
        ("trimtab off", trimtab.address, "off"),
        ("trimtab", trimtab.address, "on"),
    ];
    println!(
        "{:10} {:12} {:>9} {:>9} {:>9} {:>8}",
        "request", "through", "p50 us", "p99 us", "added us", "req/s"
    );
    for kilobytes in [40, 400, 4000] {
        let request = conversation(kilobytes * 1000);
        let runtime = runtime();
        let timed = runtime.block_on(alone(&targets, &request, seconds));
        let direct = percentile(&timed[0], 0.5);
        for (index, (name, address, switch)) in targets.into_iter().enumerate() {
            let rate = runtime.block_on(together(address, switch, &request, seconds / 2.0));
            let (half, most) = (percentile(&timed[index], 0.5), percentile(&timed[index], 0.99));
            println!(
                "{:10} {name:12} {half:>9.0} {most:>9.0} {:>9.0} {rate:>8.0}",
                format!("{kilobytes} KB"),
                half - direct
            );
        }
    }
}

/// One client, every target in turn.
async fn alone(targets: &[(&str, SocketAddr, &str)], request: &Bytes, seconds: f64) -> Vec<Vec<f64>> {
    let mut clients = Vec::new();
    for (_, address, switch) in targets {
        let mut client = connect(*address).await;
        ask(&mut client, switch, request).await;
        clients.push((client, *switch));
    }
    let mut timed = vec![Vec::new(); targets.len()];
    let started = Instant::now();
    while started.elapsed().as_secs_f64() < seconds * targets.len() as f64 {
        for ((client, switch), timed) in clients.iter_mut().zip(&mut timed) {
            let sent = Instant::now();
            ask(client, switch, request).await;
            timed.push(sent.elapsed().as_secs_f64() * 1e6);
        }
    }
    timed
}

/// Several clients, one target: requests per second.
async fn together(address: SocketAddr, switch: &'static str, request: &Bytes, seconds: f64) -> f64 {
    let started = Instant::now();
    let tasks: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let request = request.clone();
            tokio::spawn(async move {
                let mut client = connect(address).await;
                let mut count = 0;
                while started.elapsed().as_secs_f64() < seconds {
                    ask(&mut client, switch, &request).await;
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
    fn start(provider: SocketAddr) -> Trimtab {
        let upstream = format!("openai=http://{provider}/v1");
        let mut child = Command::new(env!("CARGO_BIN_EXE_trimtab"))
            .args([
                "proxy",
                "--no-store",
                "--listen",
                "127.0.0.1:0",
                "--log",
                "quiet",
                "--upstream",
                &upstream,
            ])
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary");
        let mut words = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let address =
            words.by_ref().map_while(Result::ok).find_map(|line| line.split("http://").nth(1)?.parse().ok());
        thread::spawn(move || words.for_each(drop));
        // The vocabulary is loaded beside the first requests.
        thread::sleep(Duration::from_secs(1));
        Trimtab { address: address.expect("an address"), child }
    }
}

impl Drop for Trimtab {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A chat with tool results, of about so many bytes.
fn conversation(bytes: usize) -> Bytes {
    let mut request =
        String::from(r#"{"model":"gpt-5","messages":[{"role":"user","content":"Find the value."}"#);
    let mut number = 0;
    while request.len() < bytes {
        number += 1;
        let lines: String = (0..60)
            .map(|line| {
                format!("src/module_{line}.rs:{}: let value = {};\\n", line * 3, number * 7919 + line)
            })
            .collect();
        request += &format!(
            r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{number}","type":"function","function":{{"name":"grep","arguments":"{{\"pattern\":\"value_{number}\"}}"}}}}]}},{{"role":"tool","tool_call_id":"c{number}","content":"{lines}"}}"#
        );
    }
    request += "]}";
    Bytes::from(request)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn percentile(timed: &[f64], share: f64) -> f64 {
    let mut sorted = timed.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}
