//! What became of a request before it is sent, as values: the bytes, what was done, what went wrong, what is known. Never
//! decides anything.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use trimtab_core::{Millis, Model, Tokens, report::TightWindow};

use super::{
    fold::SummaryRequest,
    metrics::float,
    sessions::{KeptRequestId, ProxySession, ProxySessions},
    unanswered::AwaitedAnswer,
};

/// What was done with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// Nothing was there to hide.
    Kept,
    Fitted,
    /// Planned, and sent unchanged.
    Observed,
    /// Earlier verdicts alone, because there was no time or no way to plan.
    Resent,
    /// Sent unchanged, because there was no time or no way to plan and nothing to repeat.
    Raw,
}

/// What went wrong in our part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PlanFailure {
    Late,
    Panicked,
    /// The request could not be read or planned for.
    NotFitted(String),
    NotKept(String),
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoPlan {
    /// The server holds the history or edits it, for this reason: the request passes.
    Held(Cow<'static, str>),
    Fault(PlanFailure),
}

/// What is sent.
pub(crate) struct PreparedRequest {
    /// The bytes; none for the unchanged request.
    pub(crate) request: Option<Bytes>,
    pub(crate) how: Treatment,
    pub(crate) fault: Option<PlanFailure>,
    pub(crate) about: Option<PlannedRequest>,
    /// Who wants to know whether the provider took it; nobody where nothing of it is remembered.
    pub(crate) awaited: Option<AwaitedAnswer>,
}

/// What is known about a request that was planned for.
#[derive(Clone)]
pub(crate) struct PlannedRequest {
    pub(crate) session: Arc<ProxySession>,
    pub(crate) model: Option<Model>,
    pub(crate) model_name: String,
    /// Tokens of the client's request, and of what is sent (or would be, while observing).
    pub(crate) raw: Tokens,
    pub(crate) sent: Tokens,
    /// When it is sent.
    pub(crate) at: Millis,
    /// Whether it sends something otherwise than the request before.
    pub(crate) edited: bool,
    /// How many cache markers are set that its client did not set.
    pub(crate) markers: usize,
    /// Whether nothing would be cached without them.
    pub(crate) marked: bool,
    pub(crate) shortened: usize,
    pub(crate) dropped: usize,
    /// What the request may count, where that is known.
    pub(crate) budget: Option<Tokens>,
    /// Whether the unchanged request is within the window.
    pub(crate) raw_fits: bool,
    /// Whether even the fitted request is beyond the budget.
    pub(crate) beyond: bool,
    /// How tight the window is for what every request carries, at the first request of a conversation.
    pub(crate) tight: Option<TightWindow>,
    /// The name under which the request is kept.
    pub(crate) kept_as: Option<KeptRequestId>,
    /// The summary that the plan wants.
    pub(crate) wanted: Option<SummaryRequest>,
}

impl Treatment {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Treatment::Kept => "kept",
            Treatment::Fitted => "fitted",
            Treatment::Observed => "observed",
            Treatment::Resent => "resent",
            Treatment::Raw => "raw",
        }
    }
}

impl PlanFailure {
    /// Returns the name used in metrics.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            PlanFailure::Late => "late",
            PlanFailure::Panicked => "panic",
            PlanFailure::NotFitted(_) => "plan",
            PlanFailure::NotKept(_) => "keep",
        }
    }

    /// Returns what went wrong, for people.
    pub(crate) fn describe(&self) -> String {
        match self {
            PlanFailure::Late => "the plan was not ready in time".to_owned(),
            PlanFailure::Panicked => "the planner failed".to_owned(),
            PlanFailure::NotFitted(reason) => format!("the request could not be planned for: {reason}"),
            PlanFailure::NotKept(reason) => format!("what would be hidden could not be kept: {reason}"),
        }
    }
}

impl PreparedRequest {
    /// A request that is sent unchanged because of a fault.
    pub(crate) fn unchanged_because(fault: PlanFailure) -> PreparedRequest {
        PreparedRequest { request: None, how: Treatment::Raw, fault: Some(fault), about: None, awaited: None }
    }

    /// Returns the session that the request belongs to, where it is known.
    pub(crate) fn session(&self) -> Option<&ProxySession> {
        let planned = self.about.as_ref().map(|about| about.session.as_ref());
        planned.or_else(|| self.awaited.as_ref().map(AwaitedAnswer::session))
    }

    /// Notes that the provider took the request.
    pub(crate) fn record_acceptance(&mut self) {
        self.awaited = None;
    }

    /// Notes that the provider did not take the request: nothing of it is remembered, here and in the store.
    pub(crate) fn record_refusal(&mut self, sessions: &ProxySessions) {
        if let Some(awaited) = self.awaited.take() {
            awaited.refuse();
            sessions.record_refusal(self.about.as_ref().and_then(|about| about.kept_as));
        }
    }
}

impl PlannedRequest {
    /// Returns how full the window would be with the unchanged request.
    pub(crate) fn window_share(&self) -> Option<f64> {
        let window = self.model.as_ref().map(|model| model.window.0).filter(|window| *window > 0)?;
        Some(float(self.raw.0) / float(window))
    }

    /// Returns the same for a request that is sent unchanged after all.
    pub(crate) fn as_sent_unchanged(&self) -> PlannedRequest {
        PlannedRequest {
            sent: self.raw,
            markers: 0,
            marked: false,
            shortened: 0,
            dropped: 0,
            wanted: None,
            ..self.clone()
        }
    }
}

impl From<PlanFailure> for NoPlan {
    fn from(fault: PlanFailure) -> NoPlan {
        NoPlan::Fault(fault)
    }
}
