//! What is sent instead of a request. Takes a request and the memory of its session; gives the fitted request in time, or
//! the last good plan applied to it, or the unchanged request. Never fails: a problem is a [`PlanFailure`] beside what
//! is sent.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU8, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use tokio::{sync::Semaphore, task::JoinHandle};
use trimtab_core::{
    ChainHash, Format, History, Memory, Millis, Model, Plan, Policy, RecallHint, ResentRequest, Role,
    SessionState, Settings, Tokens, Verdict, WarmState, chain,
    markers::{AddedFields, CacheFields},
    parse_as,
    policy::{Folding, Markers},
    prices::server_model,
    report::TightWindow,
    resend,
    session::{PlannedFit, plan_latest},
};

use super::{
    buffers::BufferPool,
    cache_fields::{PreparedFields, add_to_planned, add_to_unplanned},
    clock::WorkClock,
    fold::SummaryRequest,
    headers::ClientHeaders,
    prepared_request::{NoPlan, PlanFailure, PlannedRequest, PreparedRequest, Treatment},
    server_history::{held_by_server, seems_held},
    sessions::{KnownSession, MatchedSession, ProxySessions, RequestToSend},
    store_health::UnkeptReason,
    warm_cache::WarmCache,
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
    pub(crate) sessions: ProxySessions,
    pub(crate) at_once: Arc<Semaphore>,
    folding: Folding,
    markers: Markers,
    recall: RecallHint,
    time: TimeSource,
    warm_cache: WarmCache,
    models: Mutex<HashMap<String, Option<Model>>>,
    /// How long providers took to begin to answer, by the format they speak.
    answer_times: Mutex<BTreeMap<&'static str, Duration>>,
}

/// What tells when a request is made: whether a provider's cache has expired depends on it.
#[derive(Debug, Clone, Default)]
pub(crate) enum TimeSource {
    #[default]
    System,
    /// Milliseconds that somebody sets, for a session that is played faster than it was recorded.
    Scripted(Arc<AtomicI64>),
}

/// A request to plan for.
#[derive(Clone)]
pub(crate) struct PlanJob {
    pub(crate) body: Arc<Vec<u8>>,
    pub(crate) format: Format,
    /// The model, where the path names it.
    pub(crate) model: Option<String>,
    /// Whether the model answers, or only counts.
    pub(crate) counts_only: bool,
    /// What the client says in headers.
    pub(crate) client: Arc<ClientHeaders>,
    /// The server that answers, where it is one that is known by name.
    pub(crate) server: &'static str,
    /// What it accepts for the sake of its cache.
    pub(crate) accepts: CacheFields,
}

/// Who decides about a request first: its plan, or the clock; and how long it was planned for.
#[derive(Default)]
struct PlanRace {
    decided: AtomicU8,
    clock: WorkClock,
}

impl PlanRace {
    const PLAN: u8 = 1;
    const CLOCK: u8 = 2;

    /// Tells whether this side was the first.
    fn claim_decision(&self, side: u8) -> bool {
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
        sessions: ProxySessions,
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
            markers: Markers::OneMore,
            recall: RecallHint::default(),
            time: TimeSource::default(),
            warm_cache: WarmCache::new(WARM_BYTES),
            models: Mutex::default(),
            answer_times: Mutex::default(),
        }
    }

    /// Lets steps fold, unless nothing is to be changed.
    pub(crate) fn with_folding(self, folding: Folding) -> Planner {
        Planner { folding: if self.observe { Folding::Off } else { folding }, ..self }
    }

    /// Says whether requests may carry cache markers that their client did not set.
    pub(crate) fn with_markers(self, markers: Markers) -> Planner {
        Planner { markers, ..self }
    }

    /// Returns what may be inserted into a request for the sake of its cache.
    fn fields_to_add(&self, job: &PlanJob) -> CacheFields {
        match self.markers {
            Markers::AsTheyCame => CacheFields::default(),
            Markers::OneMore => job.accepts,
        }
    }

    /// Lets notes name a recall in another way.
    pub(crate) fn with_recall(self, recall: RecallHint) -> Planner {
        Planner { recall, ..self }
    }

    /// Lets another clock tell when requests are made.
    pub(crate) fn with_time(self, time: TimeSource) -> Planner {
        Planner { time, ..self }
    }

    /// Returns the time.
    pub(crate) fn now(&self) -> Millis {
        match &self.time {
            TimeSource::System => current_time(),
            TimeSource::Scripted(time) => Millis(time.load(Ordering::Acquire)),
        }
    }

    /// Returns the buffers that requests are read into.
    pub(crate) fn buffers(&self) -> &BufferPool {
        self.warm_cache.buffers()
    }

    /// Gives back memory that conversations take which do not go on just now.
    pub(crate) fn release_idle(&self) {
        self.warm_cache.forget_idle(IDLE, IDLE_BYTES);
    }

    /// Notes in what time a provider began to answer.
    pub(crate) fn answered_in(&self, format: Format, time: Duration) {
        let mut times = self.answer_times.lock().unwrap_or_else(PoisonError::into_inner);
        times.entry(format.name()).and_modify(|known| *known = (*known * 3 + time) / 4).or_insert(time);
    }

    /// Returns how long a plan may be worked on: as long as it is asked to, and longer where the provider takes its time.
    fn time_limit_for(&self, format: Format) -> Duration {
        if self.time_limit.is_zero() {
            return Duration::ZERO;
        }
        let times = self.answer_times.lock().unwrap_or_else(PoisonError::into_inner);
        let share = times.get(format.name()).copied().unwrap_or_default() / SHARE_OF_ANSWER;
        self.time_limit.max(share.min(LONGEST_WAIT))
    }

    /// Finds a model once for every name.
    pub(crate) fn find_model(&self, name: &str) -> Option<Model> {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if models.len() > NAMES {
            models.clear();
        }
        models.entry(name.to_owned()).or_insert_with(|| crate::prices::find_model(name).ok()).clone()
    }
}

/// Returns what reading costs at the user's own server, for models that no table has. The refusals of the server show how much its
/// window takes.
fn prices_of_server(server: &str) -> Option<Model> {
    let unbounded = Tokens(u64::MAX / 4);
    server_model(server).map(|model| Model { window: unbounded, max_input: unbounded, ..model })
}

/// Prepares a request in time; says why it must pass unchanged, where the server holds or edits its history.
pub(crate) async fn prepare_in_time(
    planner: &Arc<Planner>,
    job: PlanJob,
) -> Result<PreparedRequest, Cow<'static, str>> {
    let race = Arc::new(PlanRace::default());
    let mut planning = match plan_at_once(planner, &job) {
        Some(Err(NoPlan::Held(reason))) => return Err(reason),
        Some(Ok(draft)) if planner.sessions.waits_for_disk(&draft.about.session, &draft.planned.plan) => {
            let (planner, job, race) = (Arc::clone(planner), job.clone(), Arc::clone(&race));
            tokio::task::spawn_blocking(move || {
                commit_draft(&planner, &job, draft, &race).map_err(NoPlan::Fault)
            })
        }
        // What fails here is planned for once more, where it can be given up.
        Some(Ok(draft)) => match commit_draft(planner, &job, draft, &PlanRace::default()) {
            Ok(prepared) => return Ok(prepared),
            Err(_) => start_planning(planner, &job, &race),
        },
        Some(Err(NoPlan::Fault(_))) | None => start_planning(planner, &job, &race),
    };
    let fault = match in_time(&mut planning, planner.time_limit_for(job.format), &race.clock).await {
        Some(Ok(Ok(prepared))) => return Ok(prepared),
        Some(Ok(Err(NoPlan::Held(reason)))) => return Err(reason),
        Some(Ok(Err(NoPlan::Fault(fault)))) => fault,
        Some(Err(_)) => PlanFailure::Panicked,
        None => PlanFailure::Late,
    };
    let again = tokio::task::spawn_blocking({
        let (planner, job) = (Arc::clone(planner), job.clone());
        move || repeat_request(&planner, &job)
    });
    let again = match again.await {
        Ok(Err(NoPlan::Held(reason))) => return Err(reason),
        Ok(again) => again.ok(),
        Err(_) => None,
    };
    if fault == PlanFailure::Late {
        // A request that would be refused is worse than one that waits.
        let fits = again.as_ref().is_some_and(|again| again.fits);
        let decided = fits && race.claim_decision(PlanRace::CLOCK);
        if !decided && let Ok(Ok(Ok(prepared))) = tokio::time::timeout(PATIENCE, &mut planning).await {
            return Ok(PreparedRequest { fault: Some(PlanFailure::Late), ..prepared });
        }
        // A plan that comes later still must not count as sent, and one that has not begun would only keep others waiting.
        race.claim_decision(PlanRace::CLOCK);
        planning.abort();
    }
    if !job.counts_only {
        let is_refused = matches!(fault, PlanFailure::NotKept(_));
        planner.sessions.count_unkept(if is_refused {
            UnkeptReason::StoreFailed
        } else {
            UnkeptReason::NoPlan
        });
    }
    let Some(RepeatedRequest { mut resent, found, chain, .. }) = again else {
        return Ok(PreparedRequest::unchanged_because(fault));
    };
    if planner.observe {
        return Ok(PreparedRequest { how: Treatment::Observed, ..PreparedRequest::unchanged_because(fault) });
    }
    let how = if resent.keeps_all() { Treatment::Raw } else { Treatment::Resent };
    let request = (how == Treatment::Resent).then(|| std::mem::take(&mut resent.request));
    let model = planner.find_model(&model_name(&job, &resent.history));
    let returns = found.session.known_now().state.account.returns_until(planner.now());
    let accepts = planner.fields_to_add(&job);
    let PreparedFields { request, .. } =
        add_to_unplanned(accepts, model.as_ref(), returns, &resent.history, request);
    let prepared = PreparedRequest { request, how, ..PreparedRequest::unchanged_because(fault) };
    if job.counts_only {
        return Ok(prepared);
    }
    // What was hidden before was kept before: nothing new has to be kept now.
    let resent = Arc::new(resent);
    match planner.sessions.commit_request(
        &found.session,
        &chain,
        &RequestToSend::Again(&resent),
        planner.now(),
    ) {
        Ok(committed) => Ok(PreparedRequest { awaited: Some(committed.awaited), ..prepared }),
        Err(_) => {
            let fault = PlanFailure::NotKept("the request is not noted".to_owned());
            Ok(PreparedRequest { fault: Some(fault), ..prepared })
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
        let work_left = limit.saturating_sub(clock.time_worked());
        let time_left = LONGEST_WAIT.max(limit).saturating_sub(started.elapsed());
        if work_left.is_zero() || time_left.is_zero() {
            return None;
        }
        wait = work_left.max(BETWEEN_LOOKS).min(time_left);
    }
}

/// Plans here and now where that surely takes no time: handing a request to another thread and back would take longer.
fn plan_at_once(planner: &Planner, job: &PlanJob) -> Option<Result<DraftRequest, NoPlan>> {
    let planned = catch_unwind(AssertUnwindSafe(|| {
        let clock = WorkClock::default();
        planner
            .warm_cache
            .with_state_if_free(&job.body, job.format, |warm| plan_request(planner, job, warm, &clock, None))
    }));
    planned.unwrap_or(Some(Err(NoPlan::Fault(PlanFailure::Panicked))))
}

/// Starts planning on a separate thread: at once if few plans are being made, else as soon as that is so.
fn start_planning(
    planner: &Arc<Planner>,
    job: &PlanJob,
    race: &Arc<PlanRace>,
) -> JoinHandle<Result<PreparedRequest, NoPlan>> {
    let permit = Arc::clone(&planner.at_once).try_acquire_owned();
    let (planner, job, race) = (Arc::clone(planner), job.clone(), Arc::clone(race));
    if let Ok(permit) = permit {
        return tokio::task::spawn_blocking(move || {
            let _permit = permit;
            plan_and_commit(&planner, &job, &race)
        });
    }
    tokio::spawn(async move {
        let permit = Arc::clone(&planner.at_once).acquire_owned().await;
        let planned = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            plan_and_commit(&planner, &job, &race)
        });
        planned.await.unwrap_or(Err(NoPlan::Fault(PlanFailure::Panicked)))
    })
}

/// A request that was made shorter because the provider refused it, and that the provider may refuse again.
pub(crate) struct ShorterRequest {
    pub(crate) prepared: PreparedRequest,
    /// What is remembered of it once the provider has accepted it; nothing where that is done.
    draft: Option<DraftRequest>,
}

/// Prepares a request again that turned out too long: at most `most` tokens go out, however long planning takes. Nothing of
/// it is remembered before it is accepted, as long as its originals are on disk without that.
pub(crate) async fn prepare_shorter(
    planner: &Arc<Planner>,
    job: PlanJob,
    before: Option<&PlannedRequest>,
    most: Option<Tokens>,
) -> Option<ShorterRequest> {
    let (sent, kept_as) = before.map(|before| (before.sent, before.kept_as)).unzip();
    let planner = Arc::clone(planner);
    let planning = move || -> Result<ShorterRequest, NoPlan> {
        let clock = WorkClock::default();
        let planned = |warm: &mut WarmState| plan_request(&planner, &job, warm, &clock, most);
        let draft = planner.warm_cache.with_state(&job.body, job.format, planned)?;
        if planner.sessions.has_originals(kept_as.flatten()) {
            let about = Some(draft.about.clone());
            let request = draft.request.clone();
            let prepared =
                PreparedRequest { request, how: Treatment::Fitted, fault: None, about, awaited: None };
            return Ok(ShorterRequest { prepared, draft: Some(draft) });
        }
        Ok(ShorterRequest {
            prepared: commit_draft(&planner, &job, draft, &PlanRace::default())?,
            draft: None,
        })
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
pub(crate) async fn remember_shorter(
    planner: &Arc<Planner>,
    job: PlanJob,
    shorter: ShorterRequest,
) -> Result<PreparedRequest, PlanFailure> {
    let ShorterRequest { prepared, draft } = shorter;
    let Some(draft) = draft else { return Ok(prepared) };
    let planner = Arc::clone(planner);
    let done = tokio::task::spawn_blocking(move || commit_draft(&planner, &job, draft, &PlanRace::default()));
    done.await.unwrap_or(Err(PlanFailure::Panicked))
}

/// Returns the time.
pub(crate) fn current_time() -> Millis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Plans for a request and notes what will be sent, unless the clock was first.
fn plan_and_commit(planner: &Planner, job: &PlanJob, race: &PlanRace) -> Result<PreparedRequest, NoPlan> {
    if race.is_taken() {
        return Err(NoPlan::Fault(PlanFailure::Late));
    }
    race.clock.start_work();
    let planned = |warm: &mut WarmState| plan_request(planner, job, warm, &race.clock, None);
    let draft = planner.warm_cache.with_state(&job.body, job.format, planned)?;
    Ok(commit_draft(planner, job, draft, race)?)
}

/// Notes what will be sent, unless the clock was first.
fn commit_draft(
    planner: &Planner,
    job: &PlanJob,
    draft: DraftRequest,
    race: &PlanRace,
) -> Result<PreparedRequest, PlanFailure> {
    let DraftRequest { planned, is_fitted, request, added, about, chain, passive, now } = draft;
    if !race.claim_decision(PlanRace::PLAN) {
        return Err(PlanFailure::Late);
    }
    let how = match (planner.observe, is_fitted) {
        (true, _) => Treatment::Observed,
        (false, false) => Treatment::Kept,
        (false, true) => Treatment::Fitted,
    };
    let mut about = if passive { about.as_sent_unchanged() } else { about };
    let mut awaited = None;
    if !job.counts_only && !passive {
        let plan = Arc::new(planned.plan);
        let sending = RequestToSend::Planned {
            history: &planned.history,
            plan: &plan,
            added: &added,
            client: &job.client,
        };
        let committed = planner.sessions.commit_request(&about.session, &chain, &sending, now);
        let committed = committed.map_err(|fault| PlanFailure::NotKept(format!("{fault:#}")))?;
        about.kept_as = committed.kept_as;
        awaited = Some(committed.awaited);
    }
    Ok(PreparedRequest { request, how, fault: None, about: Some(about), awaited })
}

/// What is planned and not yet sent.
struct DraftRequest {
    planned: PlannedFit,
    /// Whether something is hidden.
    is_fitted: bool,
    /// The bytes to send; none if the request is sent unchanged.
    request: Option<Bytes>,
    /// What is inserted for the sake of the cache.
    added: Arc<AddedFields>,
    about: PlannedRequest,
    chain: Vec<ChainHash>,
    /// Whether the request is left alone because the provider refused what was changed of its session.
    passive: bool,
    now: Millis,
}

/// Plans for a request; where `most` is given, for no more tokens than that.
fn plan_request(
    planner: &Planner,
    job: &PlanJob,
    warm: &mut WarmState,
    clock: &WorkClock,
    most: Option<Tokens>,
) -> Result<DraftRequest, NoPlan> {
    let now = planner.now();
    let history =
        warm.read(Arc::clone(&job.body), Some(job.format)).map_err(|fault| explain_unread(job, &fault))?;
    if let Some(reason) = held_by_server(&history) {
        return Err(NoPlan::Held(reason));
    }
    let model_name = model_name(job, &history);
    // The first request for a model waits until its vocabulary is loaded.
    clock.pause_during(|| load_vocabulary(&model_name));
    warm.follow_request(&history, &model_name);
    let found = planner.sessions.find_session(&history, warm.chain());
    let KnownSession { state: SessionState { memory, calibration, account }, size_limit, refused } =
        found.session.known_now();
    let model = planner.find_model(&model_name);
    let window = model.as_ref().map(|model| model.request_budget(history.requested_output()));
    let mut settings = Settings::new(Arc::clone(&planner.policy))
        .with_model(model_name.clone())
        .with_format(job.format)
        .with_prices(model.clone().or_else(|| prices_of_server(job.server)))
        .with_budget(planner.budget)
        .with_markers(planner.markers)
        .with_folding(planner.folding)
        .with_recall(planner.recall.clone());
    settings.at_most = [size_limit.most_for(&model_name), most].into_iter().flatten().min();
    settings.calibration = calibration;
    let memory = known_or_begun(planner, job, &found, memory, &history, warm.chain(), now);
    let memory = planner.sessions.apply_wishes(&found.session, memory, &history, warm.chain(), &job.client);
    let planned = plan_latest(warm, &memory, &settings, now)
        .map_err(|fault| PlanFailure::NotFitted(fault.to_string()))?;
    let surely = planned.plan.before().scale(calibration.trusted_factor() * planned.exactness.guard());
    let raw_fits = window.is_none_or(|window| surely <= window);
    let passive = refused && raw_fits;
    let fitted = if planner.observe || passive { None } else { planned.write_warm(warm) };
    let is_fitted = fitted.is_some();
    let accepts =
        if planner.observe || passive { CacheFields::default() } else { planner.fields_to_add(job) };
    let returns = account.returns_until(now);
    let PreparedFields { request, added } =
        add_to_planned(accepts, model.as_ref(), returns, &planned.history, &planned.plan, fitted);
    let about = PlannedRequest {
        raw_fits,
        at: now,
        markers: added.markers(),
        marked: added.has_cache_control(),
        ..planned_request(&planned, job, &found, model, model_name)
    };
    let chain = warm.chain().to_vec();
    Ok(DraftRequest { planned, is_fitted, request, added, about, chain, passive, now })
}

fn explain_unread(job: &PlanJob, fault: &trimtab_core::WireError) -> NoPlan {
    seems_held(&job.body).map_or_else(|| PlanFailure::NotFitted(fault.to_string()).into(), NoPlan::Held)
}

fn model_name(job: &PlanJob, history: &History) -> String {
    job.model.clone().or_else(|| history.model().map(Cow::into_owned)).unwrap_or_default()
}

fn planned_request(
    planned: &PlannedFit,
    job: &PlanJob,
    found: &MatchedSession,
    model: Option<Model>,
    model_name: String,
) -> PlannedRequest {
    let plan: &Plan = &planned.plan;
    let of = |wanted: fn(&Verdict) -> bool| {
        plan.decisions().iter().filter(|decision| wanted(&decision.verdict)).count()
    };
    let is_first = found.new && !planned.history.entries().iter().any(|entry| entry.role == Role::Assistant);
    PlannedRequest {
        session: Arc::clone(&found.session),
        model,
        model_name,
        raw: plan.before(),
        sent: plan.after(),
        at: Millis(0),
        edited: plan.cache_break().is_some(),
        markers: 0,
        marked: false,
        shortened: of(|verdict| verdict.text().is_some()),
        dropped: of(Verdict::leaves_nothing),
        budget: planned.budget,
        raw_fits: false,
        beyond: plan.floor().is_some(),
        tight: TightWindow::find(&planned.history, plan, planned.budget.filter(|_| is_first)),
        kept_as: None,
        wanted: plan.fold_request().cloned().map(|request| SummaryRequest {
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
    job: &PlanJob,
    found: &MatchedSession,
    memory: Arc<Memory>,
    history: &History,
    chain: &[ChainHash],
    now: Millis,
) -> Arc<Memory> {
    if !found.new || !memory.is_empty() {
        return memory;
    }
    found.session.begin_with(begun_before(planner, job, history, chain, now))
}

/// Returns the memory of a conversation that began without this process: what is kept of it, and all else up to the model's
/// last answer as sent whole. Only requests that hide nothing new are kept late, so what a crash took was sent whole too. Where
/// nothing is kept, the library takes the conversation as it does for everybody.
fn begun_before(
    planner: &Planner,
    job: &PlanJob,
    history: &History,
    chain: &[ChainHash],
    now: Millis,
) -> Memory {
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
struct RepeatedRequest {
    resent: ResentRequest,
    found: MatchedSession,
    chain: Vec<ChainHash>,
    fits: bool,
}

fn repeat_request(planner: &Planner, job: &PlanJob) -> Result<RepeatedRequest, NoPlan> {
    let read = parse_as(Arc::clone(&job.body), job.format);
    let history = Arc::new(read.map_err(|fault| explain_unread(job, &fault))?);
    if let Some(reason) = held_by_server(&history) {
        return Err(NoPlan::Held(reason));
    }
    let chain = chain(&history);
    let found = planner.sessions.find_session(&history, &chain);
    let window = planner
        .find_model(&model_name(job, &history))
        .map(|model| model.request_budget(history.requested_output()));
    let memory = known_or_begun(
        planner,
        job,
        &found,
        found.session.known_now().state.memory,
        &history,
        &chain,
        planner.now(),
    );
    let resent = resend(Arc::clone(&history), &memory);
    let at_most = Tokens(Tokens::from_len(resent.request.len()).0 / BYTES_PER_TOKEN);
    let limit = [window, planner.budget].into_iter().flatten().min();
    Ok(RepeatedRequest { resent, found, chain, fits: limit.is_none_or(|limit| at_most <= limit) })
}

/// Loads what counting needs for most models, so that hardly a request waits for it.
pub(crate) fn warm_up() {
    load_vocabulary("gpt-5");
}

/// Loads what counting for a model needs, unless it is there.
fn load_vocabulary(model: &str) {
    let _ = trimtab_core::Counter::for_model(model).count_text("warm");
}

#[cfg(test)]
mod tests;
