//! Stands between an agent and its provider. Takes the agent's requests; gives the provider's answers, byte for byte, to
//! requests that fit. Never changes anything but blocks of a conversation, never stores a key, never fails a turn.

mod body;
mod buffers;
mod cache_fields;
mod clock;
mod connect;
mod encoding;
mod envelope;
mod event_stream;
pub(crate) mod fold;
mod forward;
mod forward_threads;
pub(crate) mod guard;
mod headers;
mod intents;
pub(crate) mod keep_alive;
mod ledger;
pub(crate) mod log;
pub(crate) mod metrics;
mod observed_answer;
mod overflow;
mod own_paths;
mod planning;
mod prepared_request;
mod refusal;
mod response_notes;
mod retry;
pub(crate) mod route;
mod send;
mod server_history;
pub(crate) mod sessions;
mod size_limit;
pub(crate) mod store_health;
pub(crate) mod store_writer;
mod tls;
mod tunnel;
mod unanswered;
mod upstream;
mod usage;
mod warm_cache;

use std::{convert::Infallible, future::Future, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{
    Request,
    body::Incoming,
    header::{HOST, HeaderValue},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc, watch},
};
use trimtab_core::{Policy, RecallHint, Tokens, keep_alive::KeepAliveTrial, policy::Markers};

use crate::page::{PageBody, PageOptions, PageServer};

use self::{
    connect::{Connector, TimeLimitedConnector},
    fold::SummarySettings,
    forward_threads::ForwardThreads,
    intents::IntentCache,
    keep_alive::{KeepAlive, KeepAliveSettings},
    log::ProxyLog,
    metrics::Metrics,
    observed_answer::ObservedAnswer,
    planning::Planner,
    sessions::ProxySessions,
    store_health::UnkeptReason,
};

pub(crate) use self::{
    forward_threads::start_runtime,
    planning::TimeSource,
    sessions::SessionStorage,
    tls::ClientTls,
    upstream::{UpstreamEntry, Upstreams},
};

/// The body of a request to a provider.
pub(crate) type RequestBody = Either<Full<Bytes>, Incoming>;

/// The body of an answer to a client.
pub(crate) type AnswerBody = Either<PageBody, ObservedAnswer>;

/// How long the head of a request may take to arrive; also how long a client may keep a connection idle.
const HEAD_ARRIVES: Duration = Duration::from_secs(120);

/// The most that the headers of a request may have, in bytes and in number. Every open connection keeps a buffer of up to as
/// many bytes; servers take 8 to 64 KB.
const HEAD_BYTES: usize = 64 * 1024;
const HEADERS: usize = 200;

/// How long a connection to a provider is kept for the next request.
const IDLE: Duration = Duration::from_secs(90);

/// How often memory is given back that nobody needs just now.
const TIDYING: Duration = Duration::from_secs(10);

/// What is asked of a proxy.
pub(crate) struct ProxyOptions {
    /// Upstreams as flags give them: `NAME=URL`.
    pub(crate) upstream: Vec<String>,
    /// Upstreams as files give them.
    pub(crate) upstream_tables: Vec<UpstreamEntry>,
    pub(crate) policy: Policy,
    pub(crate) budget: Option<Tokens>,
    pub(crate) observe: bool,
    pub(crate) off: bool,
    /// Whether answers carry headers of ours.
    pub(crate) announce: bool,
    pub(crate) token: Option<String>,
    pub(crate) allowed_hosts: Vec<String>,
    /// Origins of web pages that may send requests, beside those of this machine.
    pub(crate) allowed_origins: Vec<String>,
    pub(crate) plan_time: Duration,
    pub(crate) sessions: usize,
    pub(crate) limits: ProxyLimits,
    pub(crate) keeping: SessionStorage,
    /// How notes say that what is hidden comes back.
    pub(crate) recall: RecallHint,
    /// Whether edit tools are offered an argument for what the edit is for.
    pub(crate) intent: bool,
    pub(crate) summaries: SummarySettings,
    pub(crate) keep_alive: KeepAliveSettings,
    /// Whether requests may carry cache markers that their client did not set.
    pub(crate) markers: Markers,
    /// The project of requests that name none.
    pub(crate) project: Option<String>,
    pub(crate) time: TimeSource,
    /// What clients are answered with in TLS; without it they are in plain HTTP.
    pub(crate) tls: Option<ClientTls>,
    /// What browsers are shown; nothing where there is no page.
    pub(crate) page: Option<PageOptions>,
}

/// How much and how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProxyLimits {
    /// Bytes of a request that is read as a whole, decoded.
    pub(crate) request: usize,
    /// Requests under way.
    pub(crate) in_flight: usize,
    /// Time in which a request must have arrived.
    pub(crate) arrival: Duration,
    /// Time in which a provider must begin to answer.
    pub(crate) upstream: Duration,
    /// Time that answers under way get when the proxy is asked to stop.
    pub(crate) grace: Duration,
}

/// What every request is answered with.
pub(crate) struct Proxy {
    config: Arc<ProxyConfig>,
    planner: Arc<Planner>,
    connector: ProviderConnector,
    connector_http2: Option<ProviderConnector>,
    client: Client<ProviderConnector, RequestBody>,
    /// What asks the servers that are to be asked in HTTP/2; nothing where there is none.
    client_http2: Option<Client<ProviderConnector, RequestBody>>,
    in_flight: Arc<Semaphore>,
    page: Option<Arc<PageServer>>,
    pub(crate) keep_alive: Arc<KeepAlive>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) log: Arc<ProxyLog>,
}

struct ProxyConfig {
    upstreams: Upstreams,
    off: bool,
    announce: bool,
    token: Option<String>,
    allowed_hosts: Vec<String>,
    allowed_origins: Vec<String>,
    limits: ProxyLimits,
    summaries: SummarySettings,
    /// What edits are for; none where nobody is asked.
    intents: Option<Arc<IntentCache>>,
    project: Option<String>,
    tls: Option<ClientTls>,
}

impl Proxy {
    /// Makes a proxy that listens at an address.
    ///
    /// # Errors
    /// Says what cannot be used as asked.
    pub(crate) fn new(asked: ProxyOptions, listen: SocketAddr, log: ProxyLog) -> Result<Proxy> {
        if !listen.ip().is_loopback() && asked.token.is_none() {
            bail!(
                "{listen} can be reached from other machines: give --token TOKEN (or TRIMTAB_TOKEN), which /trimtab/ then demands"
            );
        }
        let variable = |name: &str| std::env::var(name).ok();
        let (upstreams, notes) =
            Upstreams::resolve(&asked.upstream, &asked.upstream_tables, variable, listen)?;
        for note in notes {
            log.info(note);
        }
        let sessions = ProxySessions::new(asked.sessions, asked.keeping);
        let planner = Planner::new(asked.policy, asked.budget, asked.observe, asked.plan_time, sessions)
            .with_folding(asked.summaries.folding)
            .with_markers(asked.markers)
            .with_recall(asked.recall)
            .with_time(asked.time);
        let metrics: Arc<Metrics> = Arc::default();
        let shown = asked.page.map(|page| PageOptions {
            token: asked.token.clone(),
            allowed_hosts: asked.allowed_hosts.clone(),
            metrics: Some(Arc::clone(&metrics)),
            ..page
        });
        let connector = make_connector(HttpVersion::One);
        let connector_http2 = upstreams.any_speaks_http2().then(|| make_connector(HttpVersion::Two));
        Ok(Proxy {
            client: http_client(connector.clone()),
            client_http2: connector_http2.clone().map(client_http2),
            connector,
            connector_http2,
            planner: Arc::new(planner),
            in_flight: Arc::new(Semaphore::new(asked.limits.in_flight)),
            page: shown.map(PageServer::new).transpose()?.map(Arc::new),
            keep_alive: Arc::new(KeepAlive::new(asked.keep_alive)),
            metrics,
            log: Arc::new(log),
            config: Arc::new(ProxyConfig {
                upstreams,
                off: asked.off,
                announce: asked.announce,
                token: asked.token,
                allowed_hosts: asked.allowed_hosts,
                allowed_origins: asked.allowed_origins,
                limits: asked.limits,
                summaries: asked.summaries,
                intents: (asked.intent && !asked.observe).then(Arc::default),
                project: asked.project,
                tls: asked.tls,
            }),
        })
    }

    /// Says what people should know about the store.
    fn log_store_news(&self) {
        for words in self.planner.sessions.store_news() {
            self.log.warn(words);
        }
    }

    /// Returns what keeping caches alive would have brought where that is off, if all agents have ended now.
    pub(crate) fn missed_keep_alive(&self) -> KeepAliveTrial {
        self.keep_alive.trial(self.planner.now())
    }

    /// Returns what was not kept, by reason.
    pub(crate) fn unkept_counts(&self) -> Vec<(UnkeptReason, u64)> {
        self.planner.sessions.unkept_counts()
    }

    /// Returns the same proxy with its own connections to providers.
    fn with_own_connections(&self) -> Proxy {
        Proxy {
            config: Arc::clone(&self.config),
            planner: Arc::clone(&self.planner),
            connector: self.connector.clone(),
            client: http_client(self.connector.clone()),
            client_http2: self.connector_http2.clone().map(client_http2),
            connector_http2: self.connector_http2.clone(),
            in_flight: Arc::clone(&self.in_flight),
            page: self.page.clone(),
            keep_alive: Arc::clone(&self.keep_alive),
            metrics: Arc::clone(&self.metrics),
            log: Arc::clone(&self.log),
        }
    }
}

/// What connects to providers.
type ProviderConnector = TimeLimitedConnector<HttpsConnector<Connector>>;

/// How providers are asked. HTTP/1.1 wherever nothing else is said: in HTTP/2 a server lets only so much of a request come before it
/// has answered that it wants more, which makes large requests slow over long distances.
#[derive(Clone, Copy)]
enum HttpVersion {
    One,
    Two,
}

fn make_connector(version: HttpVersion) -> ProviderConnector {
    // The system's certificates, which may hold a company's own; ours where the system has none.
    let https = match HttpsConnectorBuilder::new().with_native_roots() {
        Ok(builder) => builder,
        Err(_) => HttpsConnectorBuilder::new().with_webpki_roots(),
    };
    let https = https.https_or_http();
    TimeLimitedConnector::new(match version {
        HttpVersion::One => https.enable_http1().wrap_connector(Connector::from_env()),
        HttpVersion::Two => https.enable_http2().wrap_connector(Connector::from_env()),
    })
}

fn client_http2(connector: ProviderConnector) -> Client<ProviderConnector, RequestBody> {
    Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE)
        .pool_timer(TokioTimer::new())
        .http2_only(true)
        .build(connector)
}

fn http_client(connector: ProviderConnector) -> Client<ProviderConnector, RequestBody> {
    Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE)
        .pool_timer(TokioTimer::new())
        .http1_preserve_header_case(true)
        .http1_max_headers(HEADERS)
        .http1_max_buf_size(HEAD_BYTES)
        .build(connector)
}

/// Serves until it is asked to stop, then lets answers under way end.
///
/// # Errors
/// Says why connections can no longer be taken.
pub(crate) async fn serve(
    proxy: Arc<Proxy>,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) -> Result<()> {
    outlive_file_limits();
    // A request that comes sooner waits for what is loaded here, which does not count as time to plan.
    std::thread::Builder::new()
        .name("warm-up".to_owned())
        .spawn(planning::warm_up)
        .context("no thread can be started")?;
    // One channel tells connections to end; they have ended when the other has no sender left.
    let (stopping, stopped) = watch::channel(());
    let (open, mut ended) = mpsc::channel::<Infallible>(1);
    let forward_threads = ForwardThreads::start(&proxy, &stopped)?;
    let mut stop = std::pin::pin!(stop);
    let mut tidying = tokio::time::interval(TIDYING);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = tidying.tick() => {
                proxy.planner.release_idle();
                continue;
            }
            () = &mut stop => break,
        };
        let Ok((connection, _)) = accepted else {
            // Out of files, most likely: those that are open must end first.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        forward_threads.hand_over(connection, open.clone());
    }
    proxy.keep_alive.stop();
    if let Some(page) = &proxy.page {
        page.stop();
    }
    drop((listener, stopping, open));
    let grace = proxy.config.limits.grace;
    if tokio::time::timeout(grace, ended.recv()).await.is_err() {
        proxy
            .log
            .warn(format_args!("answers were still under way after {} seconds and are cut", grace.as_secs()));
    }
    forward_threads.stop_threads();
    proxy.planner.sessions.finish_keeping();
    proxy.log_store_news();
    Ok(())
}

/// Lets a write beyond the limit for files fail like any other, instead of ending the process: without the store, requests are
/// still forwarded.
#[cfg(unix)]
pub(crate) fn outlive_file_limits() {
    let signal = tokio::signal::unix::SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    // Once it is listened to, it ends nothing any more.
    let _ = tokio::signal::unix::signal(signal);
}

#[cfg(not(unix))]
pub(crate) fn outlive_file_limits() {}

/// Answers the requests of one connection, until it ends or the proxy stops.
async fn serve_connection(proxy: Arc<Proxy>, stream: TcpStream, mut stopped: watch::Receiver<()>) {
    // Without this a small write may wait 40 ms for the other side.
    let _ = stream.set_nodelay(true);
    let Some(tls) = &proxy.config.tls else {
        let protocol = tokio::select! {
            protocol = protocol_of(&stream) => protocol,
            _ = stopped.changed() => return,
        };
        return converse_in(protocol, proxy, stream, stopped).await;
    };
    let secured = tokio::select! {
        secured = tls.accept(stream) => secured,
        _ = stopped.changed() => return,
    };
    // A client that does not agree on TLS cannot read why.
    if let Some((stream, protocol)) = secured {
        converse_in(protocol, proxy, stream, stopped).await;
    }
}

/// Answers the requests of one connection, one after the other in HTTP/1.1, together in HTTP/2.
async fn converse_in(
    protocol: ClientProtocol,
    proxy: Arc<Proxy>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    mut stopped: watch::Receiver<()>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let proxy = Arc::clone(&proxy);
        async move { Ok::<_, Infallible>(forward::answer_request(proxy, named_by_host(request)).await) }
    });
    if protocol == ClientProtocol::Http2 {
        let connection = http2::Builder::new(TokioExecutor::new())
            .auto_date_header(false)
            .timer(TokioTimer::new())
            // A client that has gone is noticed.
            .keep_alive_interval(HEAD_ARRIVES)
            .max_header_list_size(u32::try_from(HEAD_BYTES).unwrap_or(u32::MAX))
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
        return;
    }
    let connection = http1::Builder::new()
        .preserve_header_case(true)
        .auto_date_header(false)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_ARRIVES)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS)
        // A client may say that it has nothing more to send and still wait for the answer.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    // A client that breaks off is no fault of ours.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// What a client speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientProtocol {
    Http1,
    Http2,
}

/// What a client with prior knowledge of HTTP/2 begins with; no method of HTTP/1.1 begins like it.
const HTTP2_BEGINS: &[u8] = b"PRI";

/// How long to wait for more where only a part of these letters has come.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Looks at the first bytes of a connection without taking them. A client that sends nothing for too long gets HTTP/1.1, which
/// then ends the connection.
async fn protocol_of(stream: &TcpStream) -> ClientProtocol {
    let look = async {
        let mut first = [0; HTTP2_BEGINS.len()];
        loop {
            let count = stream.peek(&mut first).await.unwrap_or(0);
            let came = first.get(..count).unwrap_or_default();
            if count == 0 || !HTTP2_BEGINS.starts_with(came) {
                return ClientProtocol::Http1;
            }
            if count == HTTP2_BEGINS.len() {
                return ClientProtocol::Http2;
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    };
    tokio::time::timeout(HEAD_ARRIVES, look).await.unwrap_or(ClientProtocol::Http1)
}

/// Writes the host that a request names in HTTP/2 where all others have it: in the header.
fn named_by_host(mut request: Request<Incoming>) -> Request<Incoming> {
    let is_http2 = request.version() == hyper::Version::HTTP_2;
    let authority = request.uri().authority().filter(|_| is_http2);
    // A client that says both means the authority: what is checked is what it connected to.
    if let Some(host) = authority.and_then(|authority| HeaderValue::from_str(authority.as_str()).ok()) {
        request.headers_mut().insert(HOST, host);
    }
    request
}
