//! Says what was done with a request: to the client in headers, to people in the log, to whoever counts in metrics. Never
//! says what stands in a request.

use std::time::Instant;

use hyper::{HeaderMap, StatusCode, header::HeaderValue};
use trimtab_core::Tokens;

use super::{
    Proxy,
    metrics::Metric,
    planning::NEEDED_FROM,
    prepared_request::{PlanFailure, PlannedRequest, PreparedRequest, Treatment},
    route::Route,
};
use crate::output::group_thousands;

/// What headers beside the answer tell the client.
#[derive(Default)]
pub(super) struct ResponseNotes {
    pub(super) how: &'static str,
    pub(super) reason: Option<String>,
    pub(super) retried: Option<&'static str>,
    pub(super) about: Option<PlannedRequest>,
    /// Whether there is a store that cannot be written to: nothing new is hidden then.
    pub(super) is_store_in_trouble: bool,
}

/// Says in headers what was done.
pub(super) fn add_notice_headers(headers: &mut HeaderMap, said: ResponseNotes) {
    if said.how.is_empty() {
        return;
    }
    let mut say = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    };
    say("x-trimtab", said.how.to_owned());
    if let Some(reason) = said.reason {
        say("x-trimtab-reason", reason);
    }
    if said.is_store_in_trouble {
        say("x-trimtab-store", "unavailable".to_owned());
    }
    if let Some(retried) = said.retried {
        say("x-trimtab-retried", retried.to_owned());
    }
    let Some(about) = said.about else { return };
    say("x-trimtab-session", about.session.name.clone());
    say("x-trimtab-tokens-before", about.raw.to_string());
    say("x-trimtab-tokens-sent", about.sent.to_string());
    if about.shortened + about.dropped > 0 {
        say("x-trimtab-hidden", format!("{} shortened, {} dropped", about.shortened, about.dropped));
    }
    if about.markers > 0 {
        say("x-trimtab-markers", about.markers.to_string());
    }
    let account = about.session.account();
    if account.requests > account.requests_without_price {
        say(
            "x-trimtab-session-dollars",
            format!("{:.4} paid, {:.4} untouched", account.paid_dollars, account.untouched_dollars),
        );
    }
    if let Some(fill) = about.window_share().filter(|fill| *fill >= NEEDED_FROM) {
        say("x-trimtab-needed", format!("{fill:.2} of the window without trimtab"));
    }
}

/// Counts and logs an answer by which a provider refuses a request or says that it failed.
pub(super) fn note_answer(proxy: &Proxy, route: &Route, status: StatusCode) {
    if status.is_success() || status.is_redirection() || status.is_informational() {
        return;
    }
    proxy.metrics.count(Metric::UpstreamErrors { kind: status.as_str().to_owned() });
    proxy.log.info(format_args!("error of the provider: {}: {status}", route.endpoint.name()));
}

/// Counts and logs what was done with a request.
pub(super) fn record_treatment(proxy: &Proxy, route: &Route, prepared: &PreparedRequest, started: Instant) {
    proxy.log_store_news();
    let endpoint = route.endpoint.name();
    let outcome = prepared.how.name();
    proxy.metrics.count(Metric::Requests { endpoint, outcome });
    if let Some(fault) = &prepared.fault {
        let whose = match fault {
            PlanFailure::Late => {
                proxy.metrics.count(Metric::LatePlans { sent: outcome });
                "late plan"
            }
            PlanFailure::Panicked | PlanFailure::NotFitted(_) | PlanFailure::NotKept(_) => {
                proxy.metrics.count(Metric::Faults { kind: fault.name() });
                "error in trimtab"
            }
        };
        proxy.log.warn(format_args!(
            "{whose}: {endpoint}: {}; sent {}",
            fault.describe(),
            match prepared.how {
                Treatment::Resent => "with the session's last plan",
                Treatment::Raw | Treatment::Kept | Treatment::Observed => "unchanged",
                Treatment::Fitted => "late",
            }
        ));
    }
    let Some(about) = &prepared.about else { return };
    proxy.metrics.record_size(&about.model_name, about.raw, about.window_share());
    let hidden = Tokens(about.raw.0.saturating_sub(about.sent.0));
    proxy.log.info(format_args!(
        "{endpoint} {} session {}: {} -> {} tokens ({} shortened, {} dropped), {outcome} in {:.1} ms",
        about.model_name,
        about.session.name,
        group_thousands(about.raw.0),
        group_thousands(about.sent.0),
        about.shortened,
        about.dropped,
        started.elapsed().as_secs_f64() * 1000.0
    ));
    if let Some(tight) = &about.tight {
        proxy.log.warn(format_args!("session {}: {tight}", about.session.name));
    }
    if hidden > Tokens::ZERO && about.beyond {
        let budget = about.budget.unwrap_or_default();
        proxy.log.warn(format_args!(
            "session {}: does not fit into {} tokens however much is hidden",
            about.session.name,
            group_thousands(budget.0)
        ));
    }
    if let Some(fill) = about.window_share().filter(|fill| *fill >= NEEDED_FROM)
        && about.session.tell_needed()
    {
        proxy.log.warn(format_args!(
            "session {}: its history fills {:.0} % of the window: it now needs trimtab; compact it before you go on without",
            about.session.name,
            fill * 100.0
        ));
    }
}
