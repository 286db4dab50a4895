//! Keeps the provider's caches of idle conversations alive ([`KeepAlive`]). When an answer has ended, the library's rule says when a ping
//! is due; a task waits for that time, sends the conversation's last request once more with the smallest possible output, and enters what
//! it cost in the session's account. That task alone keeps the credentials; they go with it, when the next request of the conversation
//! begins, the rule says stop, the provider says anything but success, or the proxy stops.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::{
    Response,
    body::Incoming,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, HeaderValue},
};
use tokio::{runtime::Handle, task::AbortHandle};
use trimtab_core::{
    Format, Millis, Model, SessionAccount, Usage,
    keep_alive::{
        AgentState, HourlyPings, IdleSession, KeepAliveTrial, PauseEnd, PingPlan, ping_request, plan_ping,
    },
};

use crate::output::group_thousands;

use super::{
    Proxy, forward::full_request_body, metrics::Metric, prepared_request::PlannedRequest, send::RequestHead,
    sessions::ProxySession,
};

/// Whether caches are kept alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum KeepAliveMode {
    /// Never
    Off,
    /// In pauses where it is expected to pay
    Auto,
}

/// When pings are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PingTiming {
    /// When they are due.
    WhenDue,
    /// As soon as they are planned, as if it were the time: so tests need not wait.
    AtOnce,
}

/// How caches are kept alive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeepAliveSettings {
    pub(crate) mode: KeepAliveMode,
    /// The US dollars that pings may cost in an hour.
    pub(crate) hourly_dollars: f64,
    pub(crate) timing: PingTiming,
}

/// The most conversations that are kept alive at once: each holds its last request in memory.
const MOST: usize = 64;

/// How long the answer to a ping may take, and how long it may be.
const ANSWERED_IN: Duration = Duration::from_secs(60);
const ANSWER_BYTES: usize = 1024 * 1024;

/// All conversations that are kept alive, or that could be.
pub(crate) struct KeepAlive {
    settings: KeepAliveSettings,
    pauses: Mutex<OpenPauses>,
}

#[derive(Default)]
struct OpenPauses {
    is_stopped: bool,
    /// What waits to send pings, by session.
    tasks: HashMap<u64, AbortHandle>,
    spent: HourlyPings,
    /// Pauses in which no ping is sent, by session, to tell what pings would have brought.
    without_pings: HashMap<u64, CachedConversation>,
    trial: KeepAliveTrial,
}

/// What the provider has cached of a conversation.
#[derive(Clone)]
struct CachedConversation {
    model: Model,
    account: SessionAccount,
    last_request: Millis,
    last_use: Millis,
    usage: Usage,
    lifetime_ms: i64,
    ping_output: u64,
}

/// What a ping of a conversation is made of: its last request, with the client's credentials.
pub(super) struct PingSource {
    /// Nothing where no pings are sent.
    request: Option<(RequestHead, Bytes)>,
    format: Format,
    turn: u64,
}

impl PingSource {
    /// Holds a request as it was sent, where pings are sent.
    pub(super) fn new(
        keep_alive: &KeepAlive,
        turn: u64,
        format: Format,
        (head, body): (&RequestHead, &Bytes),
    ) -> PingSource {
        let request = match keep_alive.settings.mode {
            KeepAliveMode::Off => None,
            KeepAliveMode::Auto => Some((head.clone(), body.clone())),
        };
        PingSource { request, format, turn }
    }
}

/// A conversation whose cache is kept alive.
struct IdleConversation {
    session: Arc<ProxySession>,
    about: PlannedRequest,
    cached: CachedConversation,
    head: RequestHead,
    format: Format,
    body: Bytes,
}

impl KeepAlive {
    pub(crate) fn new(settings: KeepAliveSettings) -> KeepAlive {
        KeepAlive { settings, pauses: Mutex::default() }
    }

    /// Returns whether caches are kept alive.
    pub(crate) fn mode(&self) -> KeepAliveMode {
        self.settings.mode
    }

    /// Notes that a request of a conversation begins: no more pings, and a ping under way is given up. Returns the number of the request.
    pub(super) fn end_pause(&self, session: &ProxySession, now: Millis) -> u64 {
        let turn = session.begin_turn();
        let mut pauses = self.lock_pauses();
        if let Some(task) = pauses.tasks.remove(&session.key()) {
            task.abort();
        }
        if let Some(cached) = pauses.without_pings.remove(&session.key()) {
            pauses.enter_trial(&cached, PauseEnd::Continued(now), self.settings.hourly_dollars);
        }
        turn
    }

    /// Ends all pauses for good: the proxy stops.
    pub(super) fn stop(&self) {
        let mut pauses = self.lock_pauses();
        pauses.is_stopped = true;
        pauses.tasks.drain().for_each(|(_, task)| task.abort());
    }

    /// Returns what pings would have brought where none were sent, if the agents of all conversations ended now.
    pub(crate) fn trial(&self, now: Millis) -> KeepAliveTrial {
        let mut pauses = self.lock_pauses();
        let open: Vec<CachedConversation> = pauses.without_pings.drain().map(|(_, cached)| cached).collect();
        for cached in &open {
            pauses.enter_trial(cached, PauseEnd::AgentEnded(now), self.settings.hourly_dollars);
        }
        pauses.trial
    }

    fn lock_pauses(&self) -> MutexGuard<'_, OpenPauses> {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenPauses {
    fn enter_trial(&mut self, cached: &CachedConversation, end: PauseEnd, hourly_dollars: f64) {
        self.trial.enter_pause(&cached.as_idle(hourly_dollars), end);
    }
}

impl CachedConversation {
    /// Returns what the provider has of a conversation after a request; nothing where no prices are known.
    fn after_request(about: &PlannedRequest, usage: Usage, ping_output: u64) -> Option<CachedConversation> {
        let account = about.session.account();
        Some(CachedConversation {
            model: about.model.clone()?,
            lifetime_ms: account.cache_lifetime_ms()?,
            account,
            last_request: about.at,
            last_use: about.at,
            usage,
            ping_output,
        })
    }

    fn as_idle(&self, dollars_left: f64) -> IdleSession<'_> {
        IdleSession {
            model: &self.model,
            last_request: self.last_request,
            last_use: self.last_use,
            usage: self.usage,
            lifetime_ms: self.lifetime_ms,
            requests: self.account.requests,
            paid_dollars: self.account.paid_dollars,
            untouched_dollars: self.account.untouched_dollars,
            agent: AgentState::PerhapsRunning,
            ping_output: self.ping_output,
            dollars_left,
        }
    }
}

/// Begins the pause after a request that was answered whole.
pub(super) fn begin_pause(proxy: &Arc<Proxy>, about: PlannedRequest, source: PingSource, usage: Usage) {
    let keep_alive = &proxy.keep_alive;
    let key = about.session.key();
    // While another request of the conversation is under way, it is not idle.
    if !about.session.is_latest_turn(source.turn) {
        return;
    }
    let Some((mut head, body)) = source.request else {
        let mut pauses = keep_alive.lock_pauses();
        let cached = CachedConversation::after_request(&about, usage, 1);
        let cached = cached.filter(|_| source.format != Format::Gemini && pauses.without_pings.len() < MOST);
        pauses.without_pings.extend(cached.map(|cached| (key, cached)));
        return;
    };
    let provider = about.model.as_ref().map_or("", |model| model.provider.as_str());
    let Some(ping) = ping_request(&body, source.format, provider) else { return };
    let Some(cached) = CachedConversation::after_request(&about, usage, ping.most_output) else { return };
    let mut pauses = keep_alive.lock_pauses();
    // Without a runtime the proxy is ending.
    let Ok(runtime) = Handle::try_current() else { return };
    pauses.tasks.retain(|_, task| !task.is_finished());
    if pauses.is_stopped || pauses.tasks.len() >= MOST {
        return;
    }
    let session = Arc::clone(&about.session);
    // A summary would be asked for a whole conversation, which need not be kept.
    let about = PlannedRequest { wanted: None, ..about };
    // Its answer is read here, whole.
    head.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    head.headers.remove(CONTENT_LENGTH);
    let idle = IdleConversation {
        session,
        about,
        cached,
        head,
        format: source.format,
        body: Bytes::from(ping.body),
    };
    let task = runtime.spawn(send_pings(Arc::clone(proxy), idle));
    if let Some(before) = pauses.tasks.insert(key, task.abort_handle()) {
        before.abort();
    }
}

/// Sends the pings of one pause.
async fn send_pings(proxy: Arc<Proxy>, mut idle: IdleConversation) {
    let mut sent = 0_u32;
    let reason = loop {
        match send_next_ping(&proxy, &mut idle, sent + 1).await {
            Ok(()) => sent += 1,
            Err(reason) => break reason,
        }
    };
    let name = &idle.session.name;
    proxy.log.detail(format_args!("session {name}: no more pings after {sent}: {reason}"));
}

/// Waits until the next ping is due and sends it; says why there is no other after it.
async fn send_next_ping(proxy: &Arc<Proxy>, idle: &mut IdleConversation, number: u32) -> Result<(), String> {
    let due = plan_next(proxy, idle)?;
    let at = wait_until(proxy, due).await;
    // Other conversations may have used up the hour, and a machine that slept wakes up after the cache has expired.
    plan_next(proxy, idle)?;
    if at.0.saturating_sub(idle.cached.last_use.0) >= idle.cached.lifetime_ms {
        return Err("the cache has expired in the meantime".to_owned());
    }
    let mut under_way = PingUnderWay { proxy, idle: &*idle, at, is_decided: false };
    let asked = ask_provider(proxy, idle).await;
    under_way.is_decided = true;
    drop(under_way);
    let name = &idle.session.name;
    let usage = match asked {
        Ok(usage) => usage,
        Err(reason) => {
            proxy.metrics.count(Metric::Pings { result: "failed" });
            proxy.log.info(format_args!("session {name}: a ping failed, no more follow: {reason}"));
            return Err(reason);
        }
    };
    proxy.metrics.count(Metric::Pings { result: "answered" });
    let (dollars, was_alive) = enter_ping(proxy, idle, at, usage);
    let read = group_thousands(usage.cache_read);
    proxy.log.info(format_args!(
        "session {name}: ping {number} of this pause kept its cache alive: {read} tokens read for ${dollars:.4}"
    ));
    idle.cached.last_use = at;
    idle.cached.usage = usage;
    idle.cached.account = idle.session.account();
    if was_alive { Ok(()) } else { Err("the provider had already lost what was cached".to_owned()) }
}

/// A ping that was sent and whose answer is awaited. One that is given up may have been paid for: it is entered with what it was expected
/// to cost.
struct PingUnderWay<'a> {
    proxy: &'a Proxy,
    idle: &'a IdleConversation,
    at: Millis,
    is_decided: bool,
}

impl Drop for PingUnderWay<'_> {
    fn drop(&mut self) {
        if self.is_decided {
            return;
        }
        self.proxy.metrics.count(Metric::Pings { result: "given up" });
        let expected = self.idle.cached.as_idle(0.0).ping_usage();
        let (dollars, _) = enter_ping(self.proxy, self.idle, self.at, expected);
        let name = &self.idle.session.name;
        self.proxy.log.info(format_args!(
            "session {name}: a ping was given up because the conversation goes on or the proxy stops; it counts as ${dollars:.4}"
        ));
    }
}

/// Enters a ping wherever dollars are added up. Returns what it cost, and whether the cache was still alive.
fn enter_ping(proxy: &Proxy, idle: &IdleConversation, at: Millis, usage: Usage) -> (f64, bool) {
    let model = &idle.cached.model;
    let dollars = model.cost(usage);
    proxy.metrics.add(Metric::PingDollars, dollars);
    proxy.metrics.add(Metric::Spent, dollars);
    proxy.metrics.add(Metric::Saved, -dollars);
    proxy.keep_alive.lock_pauses().spent.enter_ping(at, dollars);
    (dollars, proxy.planner.sessions.record_ping(&idle.about, model, at, usage))
}

/// Returns when the next ping is due; says why there is none.
fn plan_next(proxy: &Proxy, idle: &IdleConversation) -> Result<Millis, String> {
    let cap = proxy.keep_alive.settings.hourly_dollars;
    let mut pauses = proxy.keep_alive.lock_pauses();
    if pauses.is_stopped {
        return Err("the proxy stops".to_owned());
    }
    let left = pauses.spent.dollars_left(idle.cached.last_use, cap);
    match plan_ping(&idle.cached.as_idle(left)) {
        PingPlan::At { at, .. } => Ok(at),
        PingPlan::Stop(reason) => Err(reason.to_string()),
    }
}

/// Waits until a time; returns the time that it is then.
async fn wait_until(proxy: &Proxy, due: Millis) -> Millis {
    if proxy.keep_alive.settings.timing == PingTiming::AtOnce {
        return due;
    }
    let wait = u64::try_from(due.0.saturating_sub(proxy.planner.now().0)).unwrap_or_default();
    tokio::time::sleep(Duration::from_millis(wait)).await;
    proxy.planner.now().max(due)
}

/// Sends a ping; returns what it used, or why nothing is known of that.
async fn ask_provider(proxy: &Proxy, idle: &IdleConversation) -> Result<Usage, String> {
    let asked = proxy.send_to_provider(&idle.head, full_request_body(idle.body.clone()));
    let asked = tokio::time::timeout(ANSWERED_IN, async {
        let response = asked.await.map_err(|failed| failed.reason)?;
        read_usage(response, idle.format).await
    });
    asked.await.unwrap_or_else(|_| Err(format!("no answer in {} seconds", ANSWERED_IN.as_secs())))
}

async fn read_usage(response: Response<Incoming>, format: Format) -> Result<Usage, String> {
    let status = response.status();
    if !status.is_success() {
        return Err(format!("the provider answered {status}"));
    }
    let body = Limited::new(response.into_body(), ANSWER_BYTES).collect().await;
    let body = body.map_err(|fault| format!("its answer cannot be read: {fault}"))?.to_bytes();
    Usage::of_answer(format, &body).ok_or_else(|| "its answer reports no usage".to_owned())
}
