//! What is sent instead of a request. Takes a request and the memory of its session; gives the fitted request in time, or
//! the last good plan applied to it, or the request as it came. Never fails: whatever goes wrong is a [`Fault`] beside what
//! is sent.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use tokio::{sync::Semaphore, task::JoinHandle};
use trimtab_core::{
    ChainHash, Folding, Format, History, Markers, Memory, Millis, Model, Plan, Planned, Policy, RecallHint,
    Resent, Role, SessionState, Settings, Tokens, Verdict, Warm, chain, parse_as, plan_latest, resend,
};

use super::{
    buffers::Buffers,
    clock::WorkClock,
    fold::Wanted,
    headers::ClientHeaders,
    held::{held_by_server, seems_held},
    prepared::{About, Fault, How, Prepared, Stop},
    sessions::{Found, Known, Sending, Sessions},
    store_health::Unkept,
    warmth::Warmth,
};

/// How long a request waits for its plan when it does not fit without one.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a request waits for its plan at most while the machine does other things.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// How long a plan may take as a part of the time in which the provider begins to answer: a tenth is hardly noticed.
const SHARE_OF_ANSWER: u32 = 10;

/// How long to wait at least before the work on a plan is looked at again.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// Bytes per token where nothing was counted: fewer than any text has, so that what is taken to fit does.
const BYTES_PER_TOKEN: u64 = 2;

/// From this share of the window on, a session needs us.
pub(crate) const NEEDED_FROM: f64 = 0.9;

/// How many models are remembered by the names that requests give them.
const NAMES: usize = 256;

/// How many bytes conversations that are kept warm take at most, about.
const WARM_BYTES: usize = 64 * 1024 * 1024;

/// After how long without a request a conversation need not stay warm, and how many bytes of these stay warm anyway: the two
/// latest of an agent whose person thinks before answering.
const IDLE: Duration = Duration::from_secs(20);
const IDLE_BYTES: usize = 16 * 1024 * 1024;

/// What plans are made with.
pub(crate) struct Planner {
    pub(crate) policy: Arc<Policy>,
    pub(crate) budget: Option<Tokens>,
    pub(crate) observe: bool,
    pub(crate) time_limit: Duration,
    pub(crate) sessions: Sessions,
    pub(crate) at_once: Arc<Semaphore>,
    folding: Folding,
    recall: RecallHint,
    warmth: Warmth,
    models: Mutex<HashMap<String, Option<Model>>>,
    /// How long providers took to begin to answer, by the format they speak.
    answer_times: Mutex<BTreeMap<&'static str, Duration>>,
}

/// A request to plan for.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) body: Arc<Vec<u8>>,
    pub(crate) format: Format,
    /// The model, where the path names it.
    pub(crate) model: Option<String>,
    /// Whether the model answers, or only counts.
    pub(crate) counts_only: bool,
    /// What the client says in headers.
    pub(crate) client: Arc<ClientHeaders>,
}

/// Who decides about a request first: its plan, or the clock; and how long it was planned for.
#[derive(Default)]
struct Ticket {
    decided: AtomicU8,
    clock: WorkClock,
}

impl Ticket {
    const PLAN: u8 = 1;
    const CLOCK: u8 = 2;

    /// Tells whether this side was the first.
    fn take(&self, side: u8) -> bool {
        self.decided.compare_exchange(0, side, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Tells whether somebody decided already.
    fn is_taken(&self) -> bool {
        self.decided.load(Ordering::Acquire) != 0
    }
}

impl Planner {
    pub(crate) fn new(
        policy: Policy,
        budget: Option<Tokens>,
        observe: bool,
        time_limit: Duration,
        sessions: Sessions,
    ) -> Planner {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZeroUsize::get);
        let at_once = Arc::new(Semaphore::new(cores));
        Planner {
            policy: Arc::new(policy),
            budget,
            observe,
            time_limit,
            sessions,
            at_once,
            folding: Folding::Off,
            recall: RecallHint::default(),
            warmth: Warmth::new(WARM_BYTES),
            models: Mutex::default(),
            answer_times: Mutex::default(),
        }
    }

    /// Lets steps fold, unless nothing is to be changed.
    pub(crate) fn with_folding(self, folding: Folding) -> Planner {
        Planner { folding: if self.observe { Folding::Off } else { folding }, ..self }
    }

    /// Lets notes name a recall in another way.
    pub(crate) fn with_recall(self, recall: RecallHint) -> Planner {
        Planner { recall, ..self }
    }

    /// Returns the buffers that requests are read into.
    pub(crate) fn buffers(&self) -> &Buffers {
        self.warmth.buffers()
    }

    /// Gives back memory that conversations take which do not go on just now.
    pub(crate) fn release_idle(&self) {
        self.warmth.forget_idle(IDLE, IDLE_BYTES);
    }

    /// Notes in what time a provider began to answer.
    pub(crate) fn answered_in(&self, format: Format, time: Duration) {
        let mut times = self.answer_times.lock().unwrap_or_else(PoisonError::into_inner);
        times.entry(format.name()).and_modify(|known| *known = (*known * 3 + time) / 4).or_insert(time);
    }

    /// Returns how long a plan may be worked on: as long as it is asked to, and longer where the provider takes its time.
    fn limit(&self, format: Format) -> Duration {
        if self.time_limit.is_zero() {
            return Duration::ZERO;
        }
        let times = self.answer_times.lock().unwrap_or_else(PoisonError::into_inner);
        let share = times.get(format.name()).copied().unwrap_or_default() / SHARE_OF_ANSWER;
        self.time_limit.max(share.min(LONGEST_WAIT))
    }

    /// Finds a model once for every name.
    pub(crate) fn model(&self, name: &str) -> Option<Model> {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if models.len() > NAMES {
            models.clear();
        }
        models.entry(name.to_owned()).or_insert_with(|| crate::prices::find_model(name).ok()).clone()
    }
}

/// Prepares a request in time; says why it must pass unchanged, where the server holds or edits its history.
pub(crate) async fn prepare(planner: &Arc<Planner>, job: Job) -> Result<Prepared, Cow<'static, str>> {
    let ticket = Arc::new(Ticket::default());
    let mut planning = match soon(planner, &job) {
        Some(Err(Stop::Held(reason))) => return Err(reason),
        Some(Ok(draft)) if planner.sessions.waits_for_disk(&draft.about.session, &draft.planned.plan) => {
            let (planner, job, ticket) = (Arc::clone(planner), job.clone(), Arc::clone(&ticket));
            tokio::task::spawn_blocking(move || commit(&planner, &job, draft, &ticket).map_err(Stop::Fault))
        }
        // What fails here is planned for once more, where it can be given up.
        Some(Ok(draft)) => match commit(planner, &job, draft, &Ticket::default()) {
            Ok(prepared) => return Ok(prepared),
            Err(_) => start(planner, &job, &ticket),
        },
        Some(Err(Stop::Fault(_))) | None => start(planner, &job, &ticket),
    };
    let fault = match in_time(&mut planning, planner.limit(job.format), &ticket.clock).await {
        Some(Ok(Ok(prepared))) => return Ok(prepared),
        Some(Ok(Err(Stop::Held(reason)))) => return Err(reason),
        Some(Ok(Err(Stop::Fault(fault)))) => fault,
        Some(Err(_)) => Fault::Panicked,
        None => Fault::Late,
    };
    let again = tokio::task::spawn_blocking({
        let (planner, job) = (Arc::clone(planner), job.clone());
        move || again(&planner, &job)
    });
    let again = match again.await {
        Ok(Err(Stop::Held(reason))) => return Err(reason),
        Ok(again) => again.ok(),
        Err(_) => None,
    };
    if fault == Fault::Late {
        // A request that would be refused is worse than one that waits.
        let fits = again.as_ref().is_some_and(|again| again.fits);
        let decided = fits && ticket.take(Ticket::CLOCK);
        if !decided && let Ok(Ok(Ok(prepared))) = tokio::time::timeout(PATIENCE, &mut planning).await {
            return Ok(Prepared { fault: Some(Fault::Late), ..prepared });
        }
        // A plan that comes later still must not count as sent, and one that has not begun would only keep others waiting.
        ticket.take(Ticket::CLOCK);
        planning.abort();
    }
    if !job.counts_only {
        let is_refused = matches!(fault, Fault::NotKept(_));
        planner.sessions.count_unkept(if is_refused { Unkept::StoreFailed } else { Unkept::NoPlan });
    }
    let Some(Again { mut resent, found, chain, .. }) = again else { return Ok(Prepared::raw(fault)) };
    if planner.observe {
        return Ok(Prepared { how: How::Observed, ..Prepared::raw(fault) });
    }
    let how = if resent.keeps_all() { How::Raw } else { How::Resent };
    let request = Bytes::from(std::mem::take(&mut resent.request));
    let request = (how == How::Resent).then_some(request);
    let prepared = Prepared { request, how, ..Prepared::raw(fault) };
    if job.counts_only {
        return Ok(prepared);
    }
    // What was hidden before was kept before: nothing new has to be kept now.
    let resent = Arc::new(resent);
    match planner.sessions.commit(&found.session, &chain, &Sending::Again(&resent), now()) {
        Ok(committed) => Ok(Prepared { awaited: Some(committed.awaited), ..prepared }),
        Err(_) => {
            let fault = Fault::NotKept("the request is not noted".to_owned());
            Ok(Prepared { fault: Some(fault), ..prepared })
        }
    }
}

/// Waits until a plan is made or was worked on for too long. On a busy machine that is later than a clock on the wall says.
async fn in_time<T>(
    mut planning: impl Future<Output = T> + Unpin,
    limit: Duration,
    clock: &WorkClock,
) -> Option<T> {
    let asked = Instant::now();
    let mut started = asked;
    let mut wait = limit;
    loop {
        if let Ok(done) = tokio::time::timeout(wait, &mut planning).await {
            return Some(done);
        }
        if clock.is_paused() && asked.elapsed() < PATIENCE {
            started = Instant::now();
        }
        let work_left = limit.saturating_sub(clock.spent());
        let time_left = LONGEST_WAIT.max(limit).saturating_sub(started.elapsed());
        if work_left.is_zero() || time_left.is_zero() {
            return None;
        }
        wait = work_left.max(BETWEEN_LOOKS).min(time_left);
    }
}

/// Plans here and now where that surely takes no time: handing a request to another thread and back would take longer.
fn soon(planner: &Planner, job: &Job) -> Option<Result<Draft, Stop>> {
    let planned = catch_unwind(AssertUnwindSafe(|| {
        let clock = WorkClock::default();
        planner.warmth.soon(&job.body, job.format, |warm| plan(planner, job, warm, &clock, None))
    }));
    planned.unwrap_or(Some(Err(Stop::Fault(Fault::Panicked))))
}

/// Starts planning on a thread of its own: at once where few plans are being made, else as soon as that is so.
fn start(planner: &Arc<Planner>, job: &Job, ticket: &Arc<Ticket>) -> JoinHandle<Result<Prepared, Stop>> {
    let permit = Arc::clone(&planner.at_once).try_acquire_owned();
    let (planner, job, ticket) = (Arc::clone(planner), job.clone(), Arc::clone(ticket));
    if let Ok(permit) = permit {
        return tokio::task::spawn_blocking(move || {
            let _permit = permit;
            plan_and_commit(&planner, &job, &ticket)
        });
    }
    tokio::spawn(async move {
        let permit = Arc::clone(&planner.at_once).acquire_owned().await;
        let planned = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            plan_and_commit(&planner, &job, &ticket)
        });
        planned.await.unwrap_or(Err(Stop::Fault(Fault::Panicked)))
    })
}

/// A request that was made shorter because the provider refused it, and that the provider may refuse again.
pub(crate) struct Shorter {
    pub(crate) prepared: Prepared,
    /// What is remembered of it once the provider has accepted it; nothing where that is done.
    draft: Option<Draft>,
}

/// Prepares a request again that turned out too long: at most `most` tokens go out, however long planning takes. Nothing of
/// it is remembered before it is accepted, as long as its originals are on disk without that.
pub(crate) async fn prepare_shorter(
    planner: &Arc<Planner>,
    job: Job,
    before: Option<&About>,
    most: Option<Tokens>,
) -> Option<Shorter> {
    let (sent, kept_as) = before.map(|before| (before.sent, before.kept_as)).unzip();
    let planner = Arc::clone(planner);
    let planning = move || -> Result<Shorter, Stop> {
        let clock = WorkClock::default();
        let planned = |warm: &mut Warm| plan(&planner, &job, warm, &clock, most);
        let draft = planner.warmth.with(&job.body, job.format, planned)?;
        if planner.sessions.has_originals(kept_as.flatten()) {
            let about = Some(draft.about.clone());
            let request = draft.request.clone();
            let prepared = Prepared { request, how: How::Fitted, fault: None, about, awaited: None };
            return Ok(Shorter { prepared, draft: Some(draft) });
        }
        Ok(Shorter { prepared: commit(&planner, &job, draft, &Ticket::default())?, draft: None })
    };
    let planned = tokio::task::spawn_blocking(planning);
    let shorter = tokio::time::timeout(PATIENCE, planned).await.ok()?.ok()?.ok()?;
    let now = shorter.prepared.about.as_ref().map(|now| now.sent);
    let is_shorter = now.is_some_and(|now| sent.is_none_or(|sent| now < sent));
    (is_shorter && shorter.prepared.request.is_some()).then_some(shorter)
}

/// Remembers a shorter request that the provider accepted.
///
/// # Errors
/// Says why it is not kept.
pub(crate) async fn remember(planner: &Arc<Planner>, job: Job, shorter: Shorter) -> Result<Prepared, Fault> {
    let Shorter { prepared, draft } = shorter;
    let Some(draft) = draft else { return Ok(prepared) };
    let planner = Arc::clone(planner);
    let done = tokio::task::spawn_blocking(move || commit(&planner, &job, draft, &Ticket::default()));
    done.await.unwrap_or(Err(Fault::Panicked))
}

/// Returns the time.
pub(crate) fn now() -> Millis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Plans for a request and notes what will be sent, unless the clock was first.
fn plan_and_commit(planner: &Planner, job: &Job, ticket: &Ticket) -> Result<Prepared, Stop> {
    if ticket.is_taken() {
        return Err(Stop::Fault(Fault::Late));
    }
    ticket.clock.begin();
    let planned = |warm: &mut Warm| plan(planner, job, warm, &ticket.clock, None);
    let draft = planner.warmth.with(&job.body, job.format, planned)?;
    Ok(commit(planner, job, draft, ticket)?)
}

/// Notes what will be sent, unless the clock was first.
fn commit(planner: &Planner, job: &Job, draft: Draft, ticket: &Ticket) -> Result<Prepared, Fault> {
    let Draft { planned, request, about, chain, passive, now } = draft;
    if !ticket.take(Ticket::PLAN) {
        return Err(Fault::Late);
    }
    let how = match (planner.observe, &request) {
        (true, _) => How::Observed,
        (false, None) => How::Kept,
        (false, Some(_)) => How::Fitted,
    };
    let mut about = if passive { about.untouched() } else { about };
    let mut awaited = None;
    if !job.counts_only && !passive {
        let plan = Arc::new(planned.plan);
        let sending = Sending::Planned { history: &planned.history, plan: &plan, client: &job.client };
        let committed = planner.sessions.commit(&about.session, &chain, &sending, now);
        let committed = committed.map_err(|fault| Fault::NotKept(format!("{fault:#}")))?;
        about.kept_as = committed.kept_as;
        awaited = Some(committed.awaited);
    }
    Ok(Prepared { request, how, fault: None, about: Some(about), awaited })
}

/// What is planned and not yet sent.
struct Draft {
    planned: Planned,
    /// The bytes to send; none where the request goes as it came.
    request: Option<Bytes>,
    about: About,
    chain: Vec<ChainHash>,
    /// Whether the request is left alone because the provider refused what was changed of its session.
    passive: bool,
    now: Millis,
}

/// Plans for a request; where `most` is given, for no more tokens than that.
fn plan(
    planner: &Planner,
    job: &Job,
    warm: &mut Warm,
    clock: &WorkClock,
    most: Option<Tokens>,
) -> Result<Draft, Stop> {
    let now = now();
    let history = warm.read(Arc::clone(&job.body), Some(job.format)).map_err(|fault| unread(job, &fault))?;
    if let Some(reason) = held_by_server(&history) {
        return Err(Stop::Held(reason));
    }
    let model_name = model_name(job, &history);
    // The first request for a model waits until its vocabulary is loaded.
    clock.pause(|| load_vocabulary(&model_name));
    warm.follow(&history, &model_name);
    let found = planner.sessions.find(&history, warm.chain());
    let Known { state: SessionState { memory, calibration }, size_limit, refused } = found.session.known();
    let model = planner.model(&model_name);
    let window = model.as_ref().map(|model| model.budget(history.requested_output()));
    let settings = Settings {
        prices: model.clone(),
        budget: planner.budget,
        at_most: [size_limit.most_for(&model_name), most].into_iter().flatten().min(),
        calibration,
        markers: Markers::OneMore,
        folding: planner.folding,
        recall: planner.recall.clone(),
        ..Settings::new(Arc::clone(&planner.policy)).with_model(model_name.clone()).with_format(job.format)
    };
    let memory = known_or_begun(planner, job, &found, memory, &history, warm.chain(), now);
    let memory = planner.sessions.obey(&found.session, memory, &history, warm.chain(), &job.client);
    let planned =
        plan_latest(warm, &memory, &settings, now).map_err(|fault| Fault::NotFitted(fault.to_string()))?;
    let known = found.session.grown_to(planned.plan.before(), now);
    let surely = planned.plan.before().scaled(calibration.trusted_factor() * planned.exactness.guard());
    let raw_fits = window.is_none_or(|window| surely <= window);
    let about = About { raw_fits, known, ..about(&planned, job, &found, model, model_name) };
    let passive = refused && about.raw_fits;
    let request = if planner.observe || passive { None } else { planned.write_warm(warm).map(Bytes::from) };
    Ok(Draft { planned, request, about, chain: warm.chain().to_vec(), passive, now })
}

fn unread(job: &Job, fault: &trimtab_core::WireError) -> Stop {
    seems_held(&job.body).map_or_else(|| Fault::NotFitted(fault.to_string()).into(), Stop::Held)
}

fn model_name(job: &Job, history: &History) -> String {
    job.model.clone().or_else(|| history.model().map(Cow::into_owned)).unwrap_or_default()
}

fn about(planned: &Planned, job: &Job, found: &Found, model: Option<Model>, model_name: String) -> About {
    let plan: &Plan = &planned.plan;
    let of = |wanted: fn(&Verdict) -> bool| {
        plan.decisions().iter().filter(|decision| wanted(&decision.verdict)).count()
    };
    About {
        session: Arc::clone(&found.session),
        model,
        model_name,
        raw: plan.before(),
        sent: plan.after(),
        known: Tokens::ZERO,
        shortened: of(|verdict| verdict.text().is_some()),
        dropped: of(Verdict::leaves_nothing),
        budget: planned.budget,
        raw_fits: false,
        beyond: plan.floor().is_some(),
        kept_as: None,
        wanted: plan.wanted().cloned().map(|request| Wanted {
            history: Arc::clone(&planned.history),
            request,
            counter: planned.counter(),
            client: Arc::clone(&job.client),
        }),
    }
}

/// Returns the memory of a session; of one that is new here, what is known of it from before.
fn known_or_begun(
    planner: &Planner,
    job: &Job,
    found: &Found,
    memory: Arc<Memory>,
    history: &History,
    chain: &[ChainHash],
    now: Millis,
) -> Arc<Memory> {
    if !found.new || !memory.is_empty() {
        return memory;
    }
    found.session.begin(begun_before(planner, job, history, chain, now))
}

/// Returns the memory of a conversation that began without this process: what is kept of it, and all else up to the model's
/// last answer as sent whole. Only requests that hide nothing new are kept late, so what a crash took was sent whole too. Where
/// nothing is kept, the library takes the conversation as it does for everybody.
fn begun_before(planner: &Planner, job: &Job, history: &History, chain: &[ChainHash], now: Millis) -> Memory {
    // What cannot be read of the past is taken as sent whole: then nothing of it is hidden that may still be cached.
    let mut memory = planner.sessions.known_before(history, &job.client).unwrap_or_default();
    if !memory.is_empty() {
        let answered = history.entries().iter().rfind(|entry| entry.role == Role::Assistant);
        let blocks = answered.map_or(0, |entry| history.blocks_before_end(entry));
        memory.taken_as_sent(chain.get(..blocks).unwrap_or_default(), now);
    }
    memory
}

/// A request in which earlier verdicts are repeated.
struct Again {
    resent: Resent,
    found: Found,
    chain: Vec<ChainHash>,
    fits: bool,
}

fn again(planner: &Planner, job: &Job) -> Result<Again, Stop> {
    let read = parse_as(Arc::clone(&job.body), job.format);
    let history = Arc::new(read.map_err(|fault| unread(job, &fault))?);
    if let Some(reason) = held_by_server(&history) {
        return Err(Stop::Held(reason));
    }
    let chain = chain(&history);
    let found = planner.sessions.find(&history, &chain);
    let window =
        planner.model(&model_name(job, &history)).map(|model| model.budget(history.requested_output()));
    let memory =
        known_or_begun(planner, job, &found, found.session.known().state.memory, &history, &chain, now());
    let resent = resend(Arc::clone(&history), &memory);
    let at_most = Tokens(Tokens::from_len(resent.request.len()).0 / BYTES_PER_TOKEN);
    let limit = [window, planner.budget].into_iter().flatten().min();
    Ok(Again { resent, found, chain, fits: limit.is_none_or(|limit| at_most <= limit) })
}

/// Loads what counting needs for most models, so that hardly a request waits for it.
pub(crate) fn warm_up() {
    load_vocabulary("gpt-5");
}

/// Loads what counting for a model needs, unless it is there.
fn load_vocabulary(model: &str) {
    let _ = trimtab_core::Counter::for_model(model).text("warm");
}

#[cfg(test)]
mod tests;
