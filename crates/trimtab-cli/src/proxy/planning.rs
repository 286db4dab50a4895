//! What is sent instead of a request. Takes a request and the memory of its session; gives the fitted request in time, or
//! the last good plan applied to it, or the request as it came. Never fails: whatever goes wrong is a [`Fault`] beside what
//! is sent.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use tokio::sync::Semaphore;
use trimtab::{
    FitError, Fitted, Format, History, Markers, Memory, Millis, Model, Policy, Resent, Role, Settings,
    Tokens, Verdict, fit, parse_as, request_of, resend,
};

use super::sessions::{Found, Sending, Session, Sessions};

/// How long a request waits for its plan when it does not fit without one.
const PATIENCE: Duration = Duration::from_secs(30);

/// Estimates are trusted this far at most when they turn out too high: a provider that reports too little must not fill
/// the window.
const LEAST_FACTOR: f64 = 0.8;

/// Bytes per token where nothing was counted: fewer than any text has, so that what is taken to fit does.
const BYTES_PER_TOKEN: u64 = 2;

/// From this share of the window on, a session needs us.
pub(crate) const NEEDED_FROM: f64 = 0.9;

/// How many models are remembered by the names that requests give them.
const NAMES: usize = 256;

/// What plans are made with.
pub(crate) struct Planner {
    pub(crate) policy: Policy,
    pub(crate) budget: Option<Tokens>,
    pub(crate) observe: bool,
    pub(crate) time_limit: Duration,
    pub(crate) sessions: Sessions,
    pub(crate) at_once: Arc<Semaphore>,
    models: Mutex<HashMap<String, Option<Model>>>,
}

/// A request to plan for.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) body: Bytes,
    pub(crate) format: Format,
    /// The model, where the path names it.
    pub(crate) model: Option<String>,
    /// Whether the model answers, or only counts.
    pub(crate) counts_only: bool,
}

/// What was done with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Nothing was there to hide.
    Kept,
    Fitted,
    /// Planned, and sent as it came.
    Observed,
    /// Earlier verdicts alone, because there was no time or no way to plan.
    Resent,
    /// As it came, because there was no time or no way to plan and nothing to repeat.
    Raw,
}

/// What went wrong in our part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    Late,
    Panicked,
    /// The request could not be read or planned for.
    NotFitted(String),
    NotKept(String),
}

/// What is sent.
pub(crate) struct Prepared {
    /// The bytes; none for the request as it came.
    pub(crate) request: Option<Vec<u8>>,
    pub(crate) how: How,
    pub(crate) fault: Option<Fault>,
    pub(crate) about: Option<About>,
}

/// What is known about a request that was planned for.
#[derive(Clone)]
pub(crate) struct About {
    pub(crate) session: Arc<Session>,
    pub(crate) model: Option<Model>,
    pub(crate) model_name: String,
    /// Tokens as it came, and as it is sent (or would be, while observing).
    pub(crate) raw: Tokens,
    pub(crate) sent: Tokens,
    /// What of the untouched request the provider's cache would hold.
    pub(crate) known: Tokens,
    pub(crate) shortened: usize,
    pub(crate) dropped: usize,
    /// What the request may count, where that is known.
    pub(crate) budget: Option<Tokens>,
    /// Whether the request as it came is within the window.
    pub(crate) raw_fits: bool,
    /// Whether even the fitted request is beyond the budget.
    pub(crate) beyond: bool,
}

impl How {
    pub(crate) fn name(self) -> &'static str {
        match self {
            How::Kept => "kept",
            How::Fitted => "fitted",
            How::Observed => "observed",
            How::Resent => "resent",
            How::Raw => "raw",
        }
    }
}

impl Fault {
    /// Returns the name used in metrics.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Fault::Late => "late",
            Fault::Panicked => "panic",
            Fault::NotFitted(_) => "plan",
            Fault::NotKept(_) => "keep",
        }
    }

    /// Returns what went wrong, for people.
    pub(crate) fn words(&self) -> String {
        match self {
            Fault::Late => "the plan was not ready in time".to_owned(),
            Fault::Panicked => "the planner failed".to_owned(),
            Fault::NotFitted(reason) => format!("the request could not be planned for: {reason}"),
            Fault::NotKept(reason) => format!("what would be hidden could not be kept: {reason}"),
        }
    }
}

impl About {
    /// Returns how full the window would be with the request as it came.
    pub(crate) fn fill(&self) -> Option<f64> {
        let window = self.model.as_ref().map(|model| model.window.0).filter(|window| *window > 0)?;
        Some(super::money::float(self.raw.0) / super::money::float(window))
    }
}

/// Who decides about a request first: its plan, or the clock.
#[derive(Default)]
struct Ticket(AtomicU8);

impl Ticket {
    const PLAN: u8 = 1;
    const CLOCK: u8 = 2;

    /// Tells whether this side was the first.
    fn take(&self, side: u8) -> bool {
        self.0.compare_exchange(0, side, Ordering::AcqRel, Ordering::Acquire).is_ok()
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
        Planner { policy, budget, observe, time_limit, sessions, at_once, models: Mutex::default() }
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

/// Prepares a request in time.
pub(crate) async fn prepare(planner: &Arc<Planner>, job: Job) -> Prepared {
    let ticket = Arc::new(Ticket::default());
    let mut planning = tokio::spawn({
        let (planner, job, ticket) = (Arc::clone(planner), job.clone(), Arc::clone(&ticket));
        async move {
            let permit = Arc::clone(&planner.at_once).acquire_owned().await;
            let planned = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                plan_and_commit(&planner, &job, &ticket)
            });
            planned.await.unwrap_or(Err(Fault::Panicked))
        }
    });
    let fault = match tokio::time::timeout(planner.time_limit, &mut planning).await {
        Ok(Ok(Ok(prepared))) => return prepared,
        Ok(Ok(Err(fault))) => fault,
        Ok(Err(_)) => Fault::Panicked,
        Err(_) => Fault::Late,
    };
    let again = tokio::task::spawn_blocking({
        let (planner, job) = (Arc::clone(planner), job.clone());
        move || again(&planner, &job)
    });
    let again = again.await.ok().flatten();
    if fault == Fault::Late {
        // A request that would be refused is worse than one that waits.
        let fits = again.as_ref().is_some_and(|again| again.fits);
        let decided = fits && ticket.take(Ticket::CLOCK);
        if !decided && let Ok(Ok(Ok(prepared))) = tokio::time::timeout(PATIENCE, planning).await {
            return Prepared { fault: Some(Fault::Late), ..prepared };
        }
        // A plan that comes later still must not count as sent.
        ticket.take(Ticket::CLOCK);
    }
    let Some(again) = again else {
        return Prepared { request: None, how: How::Raw, fault: Some(fault), about: None };
    };
    if planner.observe {
        return Prepared { request: None, how: How::Observed, fault: Some(fault), about: None };
    }
    let how = if again.resent.keeps_all() { How::Raw } else { How::Resent };
    let noted = tokio::task::spawn_blocking({
        let planner = Arc::clone(planner);
        move || {
            let sending = Sending::Again(&again.resent);
            let noted = job.counts_only || planner.sessions.commit(&again.found, &sending, now()).is_ok();
            (noted, again.resent.request)
        }
    });
    let Ok((noted, request)) = noted.await else {
        return Prepared { request: None, how: How::Raw, fault: Some(Fault::Panicked), about: None };
    };
    // What was hidden before was kept before: it stays hidden even where nothing can be kept now.
    let fault = if noted { fault } else { Fault::NotKept("the request is not noted".to_owned()) };
    Prepared { request: (how == How::Resent).then_some(request), how, fault: Some(fault), about: None }
}

/// Prepares a request again that turned out too long: at most a share of what was sent goes out, however long planning takes.
pub(crate) async fn prepare_shorter(
    planner: &Arc<Planner>,
    job: Job,
    before: Option<&About>,
    share: f64,
) -> Option<Prepared> {
    if let Some(before) = before {
        before.session.too_long(before.sent.scaled(share));
    }
    let planner = Arc::clone(planner);
    let planned = tokio::task::spawn_blocking(move || plan_and_commit(&planner, &job, &Ticket::default()));
    let prepared = tokio::time::timeout(PATIENCE, planned).await.ok()?.ok()?.ok()?;
    let shorter =
        prepared.about.as_ref().is_some_and(|now| before.is_none_or(|before| now.sent < before.sent));
    (shorter && prepared.request.is_some()).then_some(prepared)
}

/// Returns the time.
pub(crate) fn now() -> Millis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Plans for a request and notes what will be sent, unless the clock was first.
fn plan_and_commit(planner: &Planner, job: &Job, ticket: &Ticket) -> Result<Prepared, Fault> {
    let now = now();
    let history =
        parse_as(job.body.to_vec(), job.format).map_err(|fault| Fault::NotFitted(fault.to_string()))?;
    let found = planner.sessions.find(&history);
    let state = found.session.state();
    let model_name =
        job.model.clone().or_else(|| history.model().map(std::borrow::Cow::into_owned)).unwrap_or_default();
    let model = planner.model(&model_name);
    let factor = state.calibration.factor().max(LEAST_FACTOR);
    let window = model.as_ref().map(|model| model.budget(history.requested_output()));
    let allowed = planner.budget.or(window).map(|budget| budget.scaled(1.0 / factor));
    let budget = [allowed, state.cap].into_iter().flatten().min();
    let settings = Settings {
        prices: model.clone(),
        budget,
        markers: Markers::OneMore,
        ..Settings::new(planner.policy.clone()).with_model(model_name.clone()).with_format(job.format)
    };
    let memory = if found.new && state.memory.is_empty() {
        // What cannot be read of the past is taken as sent whole: then nothing of it is hidden that may still be cached.
        let kept = planner.sessions.known_before(&history).unwrap_or_default();
        let memory = if kept.is_empty() {
            already_sent(&history, &settings, now).map_err(|fault| not_fitted(&fault))?
        } else {
            kept
        };
        found.session.begin(memory)
    } else {
        state.memory
    };
    let fitted = fit(history.into_bytes(), &memory, &settings, now).map_err(|fault| not_fitted(&fault))?;
    let about = about(&fitted, &found, model, model_name, window, factor, now);
    if !ticket.take(Ticket::PLAN) {
        return Err(Fault::Late);
    }
    let as_it_came = planner.observe || (state.refused && about.raw_fits) || fitted.plan.keeps_all();
    let how = match (planner.observe, as_it_came) {
        (true, _) => How::Observed,
        (false, true) => How::Kept,
        (false, false) => How::Fitted,
    };
    let passive = state.refused && about.raw_fits;
    if !job.counts_only && !passive {
        let sending = Sending::Planned(&fitted);
        planner
            .sessions
            .commit(&found, &sending, now)
            .map_err(|fault| Fault::NotKept(format!("{fault:#}")))?;
    }
    let about = if passive { About { sent: about.raw, shortened: 0, dropped: 0, ..about } } else { about };
    let request = (!as_it_came).then_some(fitted.request);
    Ok(Prepared { request, how, fault: None, about: Some(about) })
}

fn not_fitted(fault: &FitError) -> Fault {
    Fault::NotFitted(fault.to_string())
}

fn about(
    fitted: &Fitted,
    found: &Found,
    model: Option<Model>,
    model_name: String,
    window: Option<Tokens>,
    factor: f64,
    now: Millis,
) -> About {
    let plan = &fitted.plan;
    let of = |wanted: fn(&Verdict) -> bool| {
        plan.decisions().iter().filter(|decision| wanted(&decision.verdict)).count()
    };
    let surely = plan.before().scaled(factor * fitted.exactness.guard());
    About {
        session: Arc::clone(&found.session),
        model,
        model_name,
        raw: plan.before(),
        sent: plan.after(),
        known: found.session.grown_to(plan.before(), now),
        shortened: of(|verdict| matches!(verdict, Verdict::Shorten { .. })),
        dropped: of(|verdict| *verdict == Verdict::Drop),
        budget: fitted.budget,
        raw_fits: window.is_none_or(|window| surely <= window),
        beyond: plan.floor().is_some(),
    }
}

/// Returns the memory of a conversation that began without us: all up to the model's last answer was sent as it is, just now.
fn already_sent(history: &History, settings: &Settings, now: Millis) -> Result<Memory, FitError> {
    let mut memory = Memory::default();
    let answered = history.messages().iter().rposition(|entry| entry.role == Role::Assistant);
    let Some(answered) = answered else { return Ok(memory) };
    let resent = resend(request_of(history, answered + 1), &memory, settings.format)?;
    memory.resent(&resent, now);
    Ok(memory)
}

/// A request in which earlier verdicts are repeated.
struct Again {
    resent: Resent,
    found: Found,
    fits: bool,
}

fn again(planner: &Planner, job: &Job) -> Option<Again> {
    let history = parse_as(job.body.to_vec(), job.format).ok()?;
    let found = planner.sessions.find(&history);
    let name =
        job.model.clone().or_else(|| history.model().map(std::borrow::Cow::into_owned)).unwrap_or_default();
    let window = planner.model(&name).map(|model| model.budget(history.requested_output()));
    let resent = resend(history.into_bytes(), &found.session.state().memory, Some(job.format)).ok()?;
    let at_most = Tokens(Tokens::from_len(resent.request.len()).0 / BYTES_PER_TOKEN);
    let limit = [window, planner.budget].into_iter().flatten().min();
    Some(Again { resent, found, fits: limit.is_none_or(|limit| at_most <= limit) })
}

/// Loads what counting needs, so that no request waits for it.
pub(crate) fn warm_up() -> Duration {
    let started = Instant::now();
    let _ = trimtab::Counter::for_model("gpt-5").text("warm");
    started.elapsed()
}

#[cfg(test)]
mod tests;
