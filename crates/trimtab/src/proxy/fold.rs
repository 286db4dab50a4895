//! Summaries in the background. Takes what a plan wants and the head of the request it was planned for; gives the summary to the
//! session's memory and to the store, so that a later plan can fold. Never makes a turn wait, never asks for a session twice at
//! once, and never says a key.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, anyhow};
use hyper::{
    HeaderMap, Uri,
    header::{
        ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, USER_AGENT,
    },
};
use trimtab_core::{
    Counter, Format, History, Usage,
    policy::Folding,
    summary::{FoldRequest, SummaryTask},
};

use super::{
    Proxy, headers::ClientHeaders, metrics::Metric, prepared_request::PlannedRequest, route::Route,
    send::RequestHead, sessions::ProxySession,
};
use crate::{
    endpoint::SummaryEndpoint,
    summarize::{SummaryAttempt, ask_for_summary, summary_dollars, summary_window},
};

/// Where summaries come from, and what happens if there is none.
#[derive(Debug, Clone)]
pub(crate) struct SummarySettings {
    pub(crate) folding: Folding,
    /// The endpoint to ask; without it, the session's own provider with the session's own credentials.
    pub(crate) endpoint: Option<String>,
    /// The model to ask; without it, the session's own.
    pub(crate) model: Option<String>,
    /// The key for `endpoint`.
    pub(crate) key: Option<String>,
    /// How long asking may take.
    pub(crate) limit: Duration,
}

/// A summary that a plan wants.
#[derive(Clone)]
pub(crate) struct SummaryRequest {
    pub(crate) history: Arc<History>,
    pub(crate) request: FoldRequest,
    pub(crate) counter: Counter,
    pub(crate) client: Arc<ClientHeaders>,
}

/// Asks for the summary that the plan of a request wants, on a separate thread.
pub(super) fn start_summary(
    proxy: &Arc<Proxy>,
    route: &Route,
    head: &RequestHead,
    format: Format,
    about: Option<&PlannedRequest>,
) {
    let Some((about, wanted)) = about.and_then(|about| Some((about, about.wanted.clone()?))) else { return };
    let summaries = &proxy.config.summaries;
    // Folding without a model asks nobody.
    if summaries.folding != Folding::WhenGiven {
        return;
    }
    // Where the session's own provider would not understand what is asked, the ledger stands for what is folded.
    if summaries.endpoint.is_none() && !route.takes_plain_requests() {
        about.session.change_memory(|memory| memory.no_summary(&wanted.request));
        return;
    }
    if !about.session.begin_asking() {
        return;
    }
    let turn = SummaryTurn(Arc::clone(&about.session));
    let model = summaries.model.clone().unwrap_or_else(|| about.model_name.clone());
    let endpoint = match &summaries.endpoint {
        Some(url) => SummaryEndpoint::new(url, summaries.key.clone(), summaries.limit),
        None => own_endpoint(head, format, summaries),
    };
    let proxy = Arc::clone(proxy);
    // A thread that the end of the program does not wait for.
    let started = std::thread::Builder::new().name("summary".to_owned()).spawn({
        let proxy = Arc::clone(&proxy);
        move || obtain_summary(&proxy, &turn.0, &wanted, &endpoint, &model)
    });
    if let Err(fault) = started {
        proxy.log.warn(format_args!("no thread for a summary: {fault}"));
    }
}

/// A session for which a summary is asked; over when it is dropped, however that comes.
struct SummaryTurn(Arc<ProxySession>);

impl Drop for SummaryTurn {
    fn drop(&mut self) {
        self.0.end_asking();
    }
}

fn obtain_summary(
    proxy: &Proxy,
    session: &ProxySession,
    wanted: &SummaryRequest,
    endpoint: &SummaryEndpoint,
    model: &str,
) {
    let SummaryRequest { history, request, counter, .. } = wanted;
    let asking = SummaryTask::new(Arc::clone(history), request.clone(), *counter);
    let window = summary_window(&asking, Some(model), None);
    let SummaryAttempt { answer, used } =
        ask_for_summary(&asking, model, endpoint.format, window, |request| endpoint.ask(request));
    record_summary_cost(proxy, model, &used);
    let checked =
        answer.and_then(|answer| asking.check_answer(&answer).map_err(|reason| anyhow!("{reason}")));
    match checked.and_then(|text| keep_summary(proxy, wanted, text)) {
        Ok(text) => {
            session.change_memory(|memory| memory.remember_summary(request.range.covers(), &text));
            proxy.metrics.count(Metric::Summaries { result: "taken" });
            let messages = request.range.messages();
            proxy.log.info(format_args!(
                "session {}: {messages} messages are summarized by {model}",
                session.name
            ));
        }
        Err(fault) => {
            session.change_memory(|memory| memory.no_summary(request));
            proxy.metrics.count(Metric::Summaries { result: "none" });
            proxy.log.info(format_args!(
                "session {}: no summary by {model}: {fault:#}; the ledger will stand for what is folded",
                session.name
            ));
        }
    }
}

/// Keeps a summary before it is used.
fn keep_summary(proxy: &Proxy, wanted: &SummaryRequest, text: String) -> Result<String> {
    proxy.planner.sessions.keep_summary(
        &wanted.history,
        wanted.request.range.covers(),
        &text,
        &wanted.client,
    )?;
    Ok(text)
}

/// What a summary used is paid for like every other answer.
fn record_summary_cost(proxy: &Proxy, model: &str, used: &[Usage]) {
    if used.is_empty() {
        return;
    }
    used.iter().for_each(|usage| proxy.metrics.record_usage(*usage));
    let spent = summary_dollars(model, used).unwrap_or_default();
    proxy.metrics.add(Metric::Spent, spent);
    proxy.metrics.add(Metric::SummaryDollars, spent);
}

/// Returns the place that a session's own requests go to, with what they say about who asks.
fn own_endpoint(head: &RequestHead, format: Format, summaries: &SummarySettings) -> SummaryEndpoint {
    let url = own_url(&head.uri, format, summaries.model.as_deref());
    SummaryEndpoint::with_address(url, format, credential_headers(&head.headers), summaries.limit)
}

/// Returns the address of a session's own requests; Gemini's names the model and whether the answer is streamed.
fn own_url(uri: &Uri, format: Format, model: Option<&str>) -> String {
    if format != Format::Gemini {
        return uri.to_string();
    }
    let origin = uri.authority().map_or("", |authority| authority.as_str());
    let scheme = uri.scheme_str().unwrap_or("https");
    let path = uri.path();
    let path = match path.rsplit_once("/models/").zip(path.rsplit_once(':')) {
        Some(((base, rest), _)) => {
            let own = rest.split(':').next().unwrap_or(rest);
            format!("{base}/models/{}:generateContent", model.unwrap_or(own))
        }
        None => path.to_owned(),
    };
    let kept: Vec<&str> = uri
        .query()
        .into_iter()
        .flat_map(|query| query.split('&'))
        .filter(|pair| !pair.starts_with("alt="))
        .collect();
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    format!("{scheme}://{origin}{path}{query}")
}

/// Returns the headers that belong to who asks and not to what is asked.
fn credential_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let of_the_request: [HeaderName; 7] =
        [ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT];
    let kept = headers.iter().filter(|(name, _)| !of_the_request.contains(name));
    kept.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uri: &str, format: Format, model: Option<&str>, expected: &str) {
        assert_eq!(own_url(&uri.parse().unwrap(), format, model), expected);
    }

    #[test]
    fn a_summary_is_asked_for_where_the_session_asks() {
        check(
            "https://up/v1/messages?beta=true",
            Format::Anthropic,
            Some("small"),
            "https://up/v1/messages?beta=true",
        );
        let gemini = "https://up/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse&key=k";
        check(gemini, Format::Gemini, None, "https://up/v1beta/models/gemini-3-pro:generateContent?key=k");
        check(gemini, Format::Gemini, Some("flash"), "https://up/v1beta/models/flash:generateContent?key=k");
    }

    #[test]
    fn who_asks_is_told_and_nothing_of_what_was_asked() {
        let pairs =
            [("authorization", "Bearer k"), ("content-length", "9"), ("anthropic-beta", "b"), ("host", "h")];
        let headers: HeaderMap = pairs
            .into_iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect();
        let kept = credential_headers(&headers);
        assert_eq!(
            kept,
            [("authorization", "Bearer k"), ("anthropic-beta", "b")]
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
        );
    }
}
