//! What is learnt from an answer. Takes what was sent and what the provider reports; gives figures to the metrics and the
//! count's correction to the session. Never waits: it runs when the last byte has gone to the client.

use std::sync::Arc;

use hyper::StatusCode;
use tokio::sync::OwnedSemaphorePermit;
use trimtab_core::{Tokens, account::AccountedRequest};

use super::{
    Proxy,
    keep_alive::{self, PingSource},
    metrics::{Metric, float},
    observed_answer::AnswerEnd,
    prepared_request::{PlannedRequest, Treatment},
    route::RouteEndpoint,
    usage::UsageReading,
};

/// A request that was sent and not yet settled.
pub(crate) struct UnsettledRequest {
    sent: Option<SentRequest>,
    /// The request counts as under way until its answer has ended.
    _permit: OwnedSemaphorePermit,
}

struct SentRequest {
    proxy: Arc<Proxy>,
    about: Option<PlannedRequest>,
    how: Treatment,
    good: bool,
    /// What pings would be made of, where the conversation may be kept alive.
    pinging: Option<PingSource>,
}

impl UnsettledRequest {
    /// Opens the account of a conversation's request.
    pub(crate) fn for_conversation(
        proxy: &Arc<Proxy>,
        endpoint: RouteEndpoint,
        about: Option<PlannedRequest>,
        how: Treatment,
        status: StatusCode,
        permit: OwnedSemaphorePermit,
    ) -> UnsettledRequest {
        let answered = matches!(endpoint, RouteEndpoint::Answer(_));
        let good = status.is_success();
        let sent =
            answered.then(|| SentRequest { proxy: Arc::clone(proxy), about, how, good, pinging: None });
        UnsettledRequest { sent, _permit: permit }
    }

    /// Lets pings follow the request.
    pub(super) fn with_pings(mut self, source: Option<PingSource>) -> UnsettledRequest {
        if let Some(sent) = &mut self.sent {
            sent.pinging = source;
        }
        self
    }

    /// Opens the account of a request about whose answer nothing is asked.
    pub(crate) fn without_reading(permit: OwnedSemaphorePermit) -> UnsettledRequest {
        UnsettledRequest { sent: None, _permit: permit }
    }
}

/// Settles an account when the answer has ended.
pub(crate) fn settle_request(account: UnsettledRequest, end: AnswerEnd, reading: Option<UsageReading>) {
    let Some(SentRequest { proxy, about, how, good, pinging }) = account.sent else { return };
    let metrics = &proxy.metrics;
    if end == AnswerEnd::Broken {
        metrics.count(Metric::Left);
    }
    let reading = reading.unwrap_or_default();
    if reading.too_long && good {
        metrics.count(Metric::Overflows { result: "in the answer" });
    }
    if let Some(about) = about.as_ref().filter(|_| good) {
        count_tokens(&proxy, about, how);
        if !reading.too_long {
            about.session.learn_accepted(&about.model_name, really_sent(about, how));
        }
    }
    let Some(usage) = reading.usage else {
        if good && end == AnswerEnd::Whole {
            metrics.count(Metric::Unreported);
        }
        return;
    };
    metrics.record_usage(usage);
    let Some(about) = about else { return };
    let request = accounted_request(&about, how, end);
    let saved = proxy.planner.sessions.record_usage(&about, request, usage);
    let Some(model) = &about.model else { return };
    metrics.add(Metric::Spent, model.cost(usage));
    if how != Treatment::Observed && end == AnswerEnd::Whole {
        metrics.add(Metric::Saved, saved);
    }
    let changes_nothing = matches!(how, Treatment::Observed | Treatment::Raw);
    if let Some(source) = pinging.filter(|_| good && end == AnswerEnd::Whole && !changes_nothing) {
        keep_alive::begin_pause(&proxy, about, source, usage);
    }
}

/// Returns the request as the session's account enters it. An answer that broke off may report only a part of what was used, so its
/// request counts as unchanged.
fn accounted_request(about: &PlannedRequest, how: Treatment, end: AnswerEnd) -> AccountedRequest {
    let sent = really_sent(about, how);
    let raw = if end == AnswerEnd::Whole { about.raw } else { sent };
    let edited = about.edited && how != Treatment::Observed;
    AccountedRequest { at: about.at, raw, sent, edited, marked: about.marked }
}

fn really_sent(about: &PlannedRequest, how: Treatment) -> Tokens {
    if how == Treatment::Observed { about.raw } else { about.sent }
}

fn count_tokens(proxy: &Proxy, about: &PlannedRequest, how: Treatment) {
    let metrics = &proxy.metrics;
    let hidden = float(about.raw.0) - float(about.sent.0);
    metrics.add(Metric::CountedTokens { which: "raw" }, float(about.raw.0));
    if how == Treatment::Observed {
        metrics.add(Metric::CountedTokens { which: "sent" }, float(about.raw.0));
        metrics.add(Metric::WouldHide, hidden);
        return;
    }
    metrics.add(Metric::CountedTokens { which: "sent" }, float(about.sent.0));
    let blocks = |count: usize| float(u64::try_from(count).unwrap_or(u64::MAX));
    metrics.add(Metric::HiddenBlocks { verdict: "shorten" }, blocks(about.shortened));
    metrics.add(Metric::HiddenBlocks { verdict: "drop" }, blocks(about.dropped));
}
