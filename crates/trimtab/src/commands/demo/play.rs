//! Plays the demo's session: [`play_session`]. Starts a provider, a store and the proxy, sends every request of the session and reads
//! from the store what was hidden. Never reads settings: everybody sees the same.

use std::{
    collections::{HashSet, VecDeque},
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request,
    client::conn::http1::{SendRequest, handshake},
    header::{CONTENT_TYPE, HOST, HeaderMap},
};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
};
use trimtab_core::{
    Format, Policy, RecallHint, SentVerdict, Tokens, Usage, block_handle, block_original, parse_as,
    policy::{Folding, Markers},
};
use trimtab_replay::CacheSimulation;
use trimtab_store::{Retention, SessionId, Sqlite, Store};

use super::{
    provider::DemoProvider,
    session::{DemoRequest, DemoSession, DemoTurn, name_of},
};
use crate::{
    proxy::{
        Proxy, ProxyLimits, ProxyOptions, SessionStorage, TimeSource,
        fold::SummarySettings,
        keep_alive::{KeepAliveMode, KeepAliveSettings, PingTiming},
        log::ProxyLog,
        serve,
        store_writer::StoreWriter,
    },
    temporary::TemporaryFolder,
};

/// Long enough that the same plans are made on a slow machine as on a fast one.
const PLENTY: Duration = Duration::from_secs(60);

const LIMITS: ProxyLimits = ProxyLimits {
    request: 64 * 1024 * 1024,
    in_flight: 16,
    arrival: PLENTY,
    upstream: PLENTY,
    grace: Duration::from_secs(2),
};

/// Which policy is shown: the default one.
pub(super) const POLICY: &str = "steady";

/// What came of the session.
#[derive(Serialize)]
pub(super) struct PlayedSession {
    pub(super) policy: &'static str,
    pub(super) model: String,
    pub(super) turns: Vec<PlayedTurn>,
    pub(super) recalled: Option<RecalledBlock>,
    pub(super) totals: Totals,
}

/// What came of one turn.
#[derive(Serialize)]
pub(super) struct PlayedTurn {
    pub(super) prompt: String,
    /// Numbers of its first and its last request, counted from 1.
    pub(super) first_request: usize,
    pub(super) last_request: usize,
    /// Seconds since the request before it.
    pub(super) pause_seconds: i64,
    /// Tokens of its last request as the agent sent it, and as the provider received it.
    pub(super) tokens_before: u64,
    pub(super) tokens_sent: u64,
    pub(super) hidden: Vec<HiddenNow>,
}

/// A block that was hidden in a turn.
#[derive(Serialize, Clone)]
pub(super) struct HiddenNow {
    pub(super) handle: String,
    pub(super) block: u32,
    pub(super) step: u32,
    pub(super) what: String,
    pub(super) verdict: &'static str,
    pub(super) reason: String,
    pub(super) tokens_before: u64,
    pub(super) tokens_sent: u64,
    /// What the model reads in its place.
    pub(super) note: String,
}

impl HiddenNow {
    pub(super) fn tokens_saved(&self) -> u64 {
        self.tokens_before.saturating_sub(self.tokens_sent)
    }
}

/// An original that came back from the store.
#[derive(Serialize)]
pub(super) struct RecalledBlock {
    #[serde(flatten)]
    pub(super) hidden: HiddenNow,
    pub(super) original: String,
}

/// The sums of all requests.
#[derive(Serialize)]
pub(super) struct Totals {
    pub(super) requests: usize,
    pub(super) blocks_hidden: usize,
    pub(super) input_tokens_untrimmed: u64,
    pub(super) input_tokens: u64,
    pub(super) input_dollars_untrimmed: f64,
    pub(super) input_dollars: f64,
}

/// Plays the session; tells each turn when it is over.
///
/// # Errors
/// Says what went wrong with a port, the store or a request.
pub(super) async fn play_session(
    session: &DemoSession,
    budget: Option<Tokens>,
    mut turn_over: impl FnMut(usize, &PlayedTurn) -> Result<()>,
) -> Result<PlayedSession> {
    let folder = TemporaryFolder::make("demo")?;
    let path = folder.path().join("demo.db");
    let answers: VecDeque<_> =
        session.requests().map(|request| (request.at, request.answer.clone())).collect();
    let provider = DemoProvider::start(answers, &session.model).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await.context("no port is free")?;
    let address = listener.local_addr()?;
    let keeper = StoreWriter::start(Sqlite::open(&path)?, Retention::default())?;
    let time = Arc::new(AtomicI64::default());
    let asked = proxy_options(provider.address, keeper, budget, Arc::clone(&time))?;
    let proxy = Arc::new(Proxy::new(asked, address, ProxyLog::with_buffer())?);
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(serve(Arc::clone(&proxy), listener, async {
        let _ = stopped.await;
    }));
    let mut client = DemoClient::connect(address, &path, time).await?;
    let mut turns = Vec::new();
    let mut sent = 0;
    for turn in &session.turns {
        let played = client.play_turn(session, turn, sent).await?;
        sent += turn.requests.len();
        turn_over(turns.len() + 1, &played)?;
        turns.push(played);
    }
    let recalled = client.recall_largest(session, &turns)?;
    drop(client);
    let _ = stop.send(());
    serving.await.context("the proxy ended")??;
    if let Some(line) = proxy.log.take_lines().into_iter().next() {
        bail!("the proxy says: {line}");
    }
    let totals = sum_totals(session, &provider.reported_usage(), &turns)?;
    Ok(PlayedSession { policy: POLICY, model: session.model.name.clone(), turns, recalled, totals })
}

fn proxy_options(
    upstream: SocketAddr,
    keeper: StoreWriter,
    budget: Option<Tokens>,
    time: Arc<AtomicI64>,
) -> Result<ProxyOptions> {
    Ok(ProxyOptions {
        upstream: vec![format!("anthropic=http://{upstream}")],
        upstream_tables: Vec::new(),
        policy: Policy::find_shipped(POLICY)?,
        budget,
        observe: false,
        off: false,
        announce: true,
        token: None,
        allowed_hosts: Vec::new(),
        allowed_origins: Vec::new(),
        plan_time: PLENTY,
        sessions: 4,
        limits: LIMITS,
        keeping: SessionStorage::Store(keeper),
        recall: RecallHint::default(),
        intent: false,
        summaries: SummarySettings {
            folding: Folding::Off,
            endpoint: None,
            model: None,
            key: None,
            limit: PLENTY,
        },
        keep_alive: KeepAliveSettings {
            mode: KeepAliveMode::Off,
            hourly_dollars: 0.0,
            timing: PingTiming::WhenDue,
        },
        markers: Markers::OneMore,
        project: Some("demo".to_owned()),
        time: TimeSource::Scripted(time),
        tls: None,
        page: None,
    })
}

/// The agent's side.
struct DemoClient {
    connection: SendRequest<Full<Bytes>>,
    host: String,
    store: Sqlite,
    /// The proxy's clock: pauses of the recording pass at once.
    time: Arc<AtomicI64>,
    /// Blocks that are hidden already.
    hidden: HashSet<u32>,
}

impl DemoClient {
    async fn connect(proxy: SocketAddr, store: &Path, time: Arc<AtomicI64>) -> Result<DemoClient> {
        let stream = TcpStream::connect(proxy).await?;
        let (connection, driver) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        let store = Sqlite::open(store)?;
        Ok(DemoClient { connection, host: proxy.to_string(), store, time, hidden: HashSet::new() })
    }

    async fn play_turn(&mut self, session: &DemoSession, turn: &DemoTurn, sent: usize) -> Result<PlayedTurn> {
        let mut played = PlayedTurn {
            prompt: turn.prompt.clone(),
            first_request: sent + 1,
            last_request: sent + turn.requests.len(),
            pause_seconds: 0,
            tokens_before: 0,
            tokens_sent: 0,
            hidden: Vec::new(),
        };
        let before = self.time.load(Ordering::Acquire);
        let begins = turn.requests.first().map_or(before, |request| request.at.0);
        played.pause_seconds = if before == 0 { 0 } else { (begins - before) / 1000 };
        for request in &turn.requests {
            let headers = self.send_request(request).await?;
            played.tokens_before = header_figure(&headers, "x-trimtab-tokens-before")?;
            played.tokens_sent = header_figure(&headers, "x-trimtab-tokens-sent")?;
            if headers.contains_key("x-trimtab-hidden") {
                played.hidden.extend(self.newly_hidden(session)?);
            }
        }
        Ok(played)
    }

    async fn send_request(&mut self, request: &DemoRequest) -> Result<HeaderMap> {
        self.time.store(request.at.0, Ordering::Release);
        let request = Request::post("/v1/messages")
            .header(HOST, &self.host)
            .header(CONTENT_TYPE, "application/json")
            .header("x-api-key", "no key is needed here")
            .header("anthropic-version", "2023-06-01")
            .body(Full::new(Bytes::from(request.body.clone())))?;
        self.connection.ready().await?;
        let response = self.connection.send_request(request).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        ensure!(head.status.is_success(), "{}: {}", head.status, String::from_utf8_lossy(&body));
        Ok(head.headers)
    }

    /// Reads from the store what the latest request hides that no request before it did.
    fn newly_hidden(&mut self, session: &DemoSession) -> Result<Vec<HiddenNow>> {
        let newest: Option<SessionId> = self.store.sessions()?.first().map(|session| session.id);
        let requests = newest.map(|newest| self.store.requests(newest)).transpose()?.unwrap_or_default();
        let Some(latest) = requests.last() else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for (number, verdict) in self.store.request(latest.id)?.hidden {
            let SentVerdict::As(verdict) = verdict else { continue };
            let Some(reason) = verdict.reason().filter(|_| !verdict.shows_all()) else { continue };
            let note = verdict.text().map(ToString::to_string).unwrap_or_default();
            let Some((block, fact)) = session.block(number) else { continue };
            if !self.hidden.insert(number) {
                continue;
            }
            let (tokens_before, tokens_sent) = session.token_counts(number, &note);
            found.push(HiddenNow {
                handle: block_handle(&session.history, block),
                block: number,
                step: fact.step,
                what: name_of(fact),
                verdict: verdict.word(),
                reason: reason.to_string(),
                tokens_before,
                tokens_sent,
                note,
            });
        }
        Ok(found)
    }

    /// Brings the largest original back and compares it with what the agent sent.
    fn recall_largest(&self, session: &DemoSession, turns: &[PlayedTurn]) -> Result<Option<RecalledBlock>> {
        let hidden = turns.iter().flat_map(|turn| &turn.hidden).filter(|hidden| !hidden.note.is_empty());
        let Some(hidden) = hidden.max_by_key(|hidden| (hidden.tokens_saved(), hidden.block)) else {
            return Ok(None);
        };
        let original = self.store.recall(&hidden.handle)?;
        let (block, _) = session.block(hidden.block).context("a block of the session")?;
        ensure!(
            original == block_original(&session.history, block).as_ref(),
            "{}: what came back is not what was sent",
            hidden.handle
        );
        let original = String::from_utf8_lossy(&original).into_owned();
        Ok(Some(RecalledBlock { hidden: hidden.clone(), original }))
    }
}

fn header_figure(headers: &HeaderMap, name: &str) -> Result<u64> {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value
        .and_then(|value| value.parse().ok())
        .with_context(|| format!("the proxy's answer has no header {name}"))
}

fn sum_totals(session: &DemoSession, reported: &[Usage], turns: &[PlayedTurn]) -> Result<Totals> {
    let mut cache = CacheSimulation::new(&session.model);
    let mut untrimmed = Vec::new();
    for request in session.requests() {
        let history = parse_as(request.body.clone(), Format::Anthropic)?;
        untrimmed.push(cache.usage_of_request(&history, request.at));
    }
    let tokens = |usage: &[Usage]| usage.iter().map(|usage| usage.total_input()).sum();
    let dollars = |usage: &[Usage]| usage.iter().map(|usage| session.model.input_cost(*usage)).sum();
    Ok(Totals {
        requests: reported.len(),
        blocks_hidden: turns.iter().map(|turn| turn.hidden.len()).sum(),
        input_tokens_untrimmed: tokens(&untrimmed),
        input_tokens: tokens(reported),
        input_dollars_untrimmed: dollars(&untrimmed),
        input_dollars: dollars(reported),
    })
}
