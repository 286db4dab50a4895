//! A conversation that goes on from request to request. [`Session`] is what a builder of agents holds: it owns what is warm, what was
//! sent and what the provider's answers taught. [`fit`] is the whole line for a single request. The proxy, the Python package, the
//! command line and replay all take their turns here; none of them decides anything by itself. Nothing here does I/O.

mod fit;
mod remember;
mod repeat;
mod state;
mod warm;

use std::{borrow::Cow, sync::Arc};

pub use fit::{
    CacheHint, CacheLifetime, FitError, FittedRequest, PlannedFit, Settings, fit, fit_warm, plan_latest,
};
pub use repeat::{ResentRequest, as_sent, resend};
pub use state::SessionState;
pub use warm::WarmState;

use fit::model_in_force;

use crate::{
    account::{AccountedRequest, SessionAccount},
    memory::Memory,
    prices::Model,
    recall::recall,
    summary::{Rejection, SummaryAnswer, SummaryTask},
    units::Millis,
    usage::Usage,
    wire::WireError,
};

/// One conversation of an agent, kept inside its context window from request to request.
///
/// ```
/// use std::time::SystemTime;
/// use trimtab_core::{Policy, Session, Settings, Tokens, Usage};
///
/// # fn send(_: &[u8]) -> Vec<u8> { br#"{"usage":{"input_tokens":9,"output_tokens":3}}"#.to_vec() }
/// let settings = Settings::new(Policy::find_shipped("steady")?).with_model("claude-opus-5").with_budget(Tokens(150_000));
/// let mut session = Session::new(settings);
/// let request = br#"{"model":"claude-opus-5","max_tokens":100,"messages":[{"role":"user","content":"Hi"}]}"#;
///
/// let fitted = session.fit(request.to_vec(), SystemTime::now())?;
/// assert!(fitted.plan.floor().is_none(), "it fits");
/// let reply = send(&fitted.request);
/// session.sent(&fitted);
/// if let Some(usage) = Usage::of_answer(fitted.history.format(), &reply) {
///     session.answered(usage);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Session {
    settings: Settings,
    state: SessionState,
    warm: WarmState,
    /// The latest request, until its usage is reported.
    last_sent: Option<(AccountedRequest, Option<Model>)>,
    summary_wanted: Option<SummaryTask>,
}

impl Session {
    /// Begins a session of which nothing is known.
    pub fn new(settings: Settings) -> Session {
        Session {
            settings,
            state: SessionState::default(),
            warm: WarmState::default(),
            last_sent: None,
            summary_wanted: None,
        }
    }

    /// Goes on with a session of which this is known: what another process sent of it, as a store keeps it.
    #[must_use]
    pub fn with_memory(mut self, memory: Memory) -> Session {
        self.state.memory = Arc::new(memory);
        self
    }

    /// Fits the next request. Nothing is taken as sent before [`Session::sent`] says so; a request that is not sent is simply forgotten.
    ///
    /// Where [`Plan::floor`](crate::Plan::floor) is there, the request does not fit however much is hidden.
    ///
    /// # Errors
    /// Says what is wrong where the bytes are not a request.
    pub fn fit(
        &mut self,
        request: impl Into<Arc<Vec<u8>>>,
        now: impl Into<Millis>,
    ) -> Result<FittedRequest, FitError> {
        self.settings.calibration = self.state.calibration;
        fit_warm(request, &mut self.warm, &self.state.memory, &self.settings, now.into())
    }

    /// Repeats what was hidden before in the next request, and hides nothing else: what there is to send when there is no time to plan.
    ///
    /// # Errors
    /// Says what is wrong where the bytes are not a request.
    pub fn repeat(&self, request: impl Into<Arc<Vec<u8>>>) -> Result<ResentRequest, WireError> {
        Ok(resend(self.warm.read(request, self.settings.format)?, &self.state.memory))
    }

    /// Remembers that a fitted request was sent.
    pub fn sent(&mut self, fitted: &FittedRequest) {
        Arc::make_mut(&mut self.state.memory).remember_sent(&fitted.plan, fitted.at);
        let model = model_in_force(&self.settings, &fitted.history, &mut self.warm);
        self.last_sent = Some((AccountedRequest::of_plan(&fitted.plan, fitted.at), model));
        self.summary_wanted = fitted.summary_task();
    }

    /// Remembers that a request was sent at `now` in which earlier verdicts were only repeated.
    pub fn repeated(&mut self, resent: &ResentRequest, now: impl Into<Millis>) {
        Arc::make_mut(&mut self.state.memory).remember_resent(resent, now.into());
        self.last_sent = None;
    }

    /// Learns from what the provider reported for the request that was sent last.
    pub fn answered(&mut self, usage: Usage) {
        if let Some((sent, model)) = &self.last_sent {
            self.state.learn_usage(model.as_ref(), *sent, usage);
        }
    }

    /// Returns what the session has cost so far by reported usage, and what it would have cost untouched.
    pub fn account(&self) -> &SessionAccount {
        &self.state.account
    }

    /// Returns what to ask a model for, where the policy wants a summary of the old part of the conversation.
    pub fn summary_wanted(&self) -> Option<&SummaryTask> {
        self.summary_wanted.as_ref()
    }

    /// Takes a model's answer to what was asked for; the next request that needs it is folded with it.
    ///
    /// # Errors
    /// Says why the summary is not to be used.
    pub fn summarized(&mut self, asking: &SummaryTask, answer: &SummaryAnswer) -> Result<(), Rejection> {
        Arc::make_mut(&mut self.state.memory).accept_summary(asking, answer)?;
        self.summary_wanted = None;
        Ok(())
    }

    /// Returns the original that a handle names, from the latest request.
    pub fn recall(&self, handle: &str) -> Option<Cow<'_, [u8]>> {
        recall(self.warm.latest()?, handle)
    }

    /// Returns what is known of the session between its requests; stores keep it.
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// Returns what was sent, to be changed: by what a store says, or by what a person asks for.
    pub fn memory_mut(&mut self) -> &mut Memory {
        Arc::make_mut(&mut self.state.memory)
    }

    /// Returns what requests are fitted with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns what requests are fitted with, to be changed from now on.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }
}
