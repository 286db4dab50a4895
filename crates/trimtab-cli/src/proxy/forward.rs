//! One request from the client to the provider and its answer back. Takes the request; gives the provider's answer. Never
//! changes anything but blocks of a conversation, and never lets a fault of ours become the client's.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    body::Incoming,
    header::{CONTENT_LENGTH, HeaderValue, RETRY_AFTER},
    http::{Extensions, request::Parts, response},
};
use tokio::sync::OwnedSemaphorePermit;
use trimtab::{Format, Tokens};

use super::{
    Answer, Outgoing, Proxy, body,
    encoding::{Decoder, Encoding, NotDecoded},
    guard, headers, held,
    ledger::{self, Account},
    metrics::Metric,
    overflow, own,
    planning::{self, About, How, Job, NEEDED_FROM, Prepared},
    refusal::refusal,
    route::{Endpoint, Route, route},
    tap::Tap,
    tunnel,
    usage::Reader,
};
use crate::output::grouped;

/// How much of an error is read to see what it says.
const ERROR_BYTES: usize = 256 * 1024;

/// What of a request is sent again where the provider does not say by how much it was too long.
const SHORTER: f64 = 0.75;

/// What of the allowed share is used: the provider's counts and ours do not part blocks alike.
const MARGIN: f64 = 0.95;

/// The head of a request, as it is sent to the provider.
#[derive(Clone)]
pub(super) struct Head {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    /// How the client spelt its headers.
    extensions: Extensions,
}

/// What the client is told in headers beside the answer.
#[derive(Default)]
struct Said {
    how: &'static str,
    reason: Option<String>,
    retried: Option<&'static str>,
    about: Option<About>,
}

/// Answers a request.
pub(crate) async fn answer(proxy: Arc<Proxy>, request: Request<Incoming>) -> Response<Answer> {
    let uri = request.uri();
    let route = route(request.method(), uri.path(), uri.query(), request.headers());
    let refuse = |status: StatusCode, reason: &str| refusal(route.provider, status, reason).map(whole);
    if !guard::names_us(request.headers(), &proxy.config.allowed_hosts) {
        return refuse(StatusCode::FORBIDDEN, "this host name is not allowed; --allow-host allows one");
    }
    if *request.method() == Method::CONNECT {
        return refuse(
            StatusCode::METHOD_NOT_ALLOWED,
            "this is no proxy for other hosts; set the base URL instead",
        );
    }
    if uri.path() == "/trimtab" || uri.path().starts_with("/trimtab/") {
        return own::answer(&proxy, request).await.map(whole);
    }
    let Ok(permit) = Arc::clone(&proxy.in_flight).try_acquire_owned() else {
        let mut response = refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many requests are under way; --max-in-flight raises the limit",
        );
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        return response;
    };
    let answered = if headers::wants_upgrade(request.headers()) {
        proxy
            .metrics
            .count(Metric::Requests, &[("endpoint", route.endpoint.name()), ("outcome", "upgraded")]);
        tunnel::tunnel(&proxy, &route, request, permit).await
    } else {
        converse(&proxy, &route, request, permit).await
    };
    answered.unwrap_or_else(|Failed { status, reason }| {
        if status.is_server_error() {
            proxy.log.warn(&reason);
        }
        refuse(status, &reason)
    })
}

/// Why there is no answer of a provider.
pub(super) struct Failed {
    pub(super) status: StatusCode,
    pub(super) reason: String,
}

async fn converse(
    proxy: &Arc<Proxy>,
    route: &Route,
    request: Request<Incoming>,
    permit: OwnedSemaphorePermit,
) -> Result<Response<Answer>, Failed> {
    let (parts, incoming) = request.into_parts();
    let head = head(proxy, route, &parts)?;
    let (format, counts_only) = match route.endpoint {
        Endpoint::Answer(format) => (format, false),
        Endpoint::Count(format) => (format, true),
        Endpoint::Other => {
            let sent = proxy.send(&head, Either::Right(incoming)).await?;
            proxy.metrics.count(Metric::Requests, &[("endpoint", "other"), ("outcome", "passed")]);
            proxy.log.detail(format_args!("{} {}: {}", head.method, head.uri.path(), sent.status()));
            return Ok(deliver(proxy, sent, Said::default(), Account::unread(permit)));
        }
    };
    let switched_off =
        if proxy.config.off { Some("off") } else { headers::asks_off(&parts.headers).then_some("asked") };
    let encoding = Encoding::of(&parts.headers);
    if let Some(reason) = switched_off.or_else(|| encoding.is_none().then_some("encoding")) {
        let sent = proxy.send(&head, Either::Right(incoming)).await?;
        return Ok(passed(proxy, route, format, sent, reason, permit));
    }
    let limits = &proxy.config.limits;
    let arrived = body::read(incoming, limits)
        .await
        .map_err(|fault| Failed { status: fault.status(), reason: fault.words(limits) })?;
    let started = Instant::now();
    let encoding = encoding.unwrap_or(Encoding::Plain);
    let plain = match decoded(encoding, &arrived, limits.request).await {
        Ok(plain) => plain,
        Err(NotDecoded::TooLarge) => {
            let fault = body::NotRead::TooLarge;
            return Err(Failed { status: fault.status(), reason: fault.words(limits) });
        }
        Err(NotDecoded::Broken) => {
            let sent = proxy.send(&head, full(arrived)).await?;
            return Ok(passed(proxy, route, format, sent, "broken encoding", permit));
        }
    };
    if let Some(field) = held::held_by_server(&plain) {
        let sent = proxy.send(&head, full(arrived)).await?;
        return Ok(passed(proxy, route, format, sent, field, permit));
    }
    let job = Job { body: plain, format, model: route.model.clone(), counts_only };
    let prepared = planning::prepare(&proxy.planner, job.clone()).await;
    let outgoing = encoded(encoding, prepared.request.as_deref()).await.unwrap_or_else(|| arrived.clone());
    proxy.metrics.overhead(started.elapsed());
    note(proxy, route, &prepared, started);
    let sent = proxy.send(&head, full(outgoing)).await?;
    let turn = Turn { proxy, route, head, job, arrived, encoding };
    let (sent, first, rest, prepared, retried) = turn.retry(sent, prepared).await?;
    let said = Said {
        how: prepared.how.name(),
        reason: prepared.fault.as_ref().map(|fault| fault.name().to_owned()),
        retried,
        about: prepared.about.clone(),
    };
    let account = Account::of(proxy, route.endpoint, prepared.about, prepared.how, sent.status, permit);
    let reader = (!counts_only).then(|| Reader::new(format, &sent.headers));
    Ok(delivered(proxy, sent, first, rest, said, reader, account))
}

/// One request that was prepared, with all that is needed to send it again.
struct Turn<'a> {
    proxy: &'a Arc<Proxy>,
    route: &'a Route,
    head: Head,
    job: Job,
    arrived: Bytes,
    encoding: Encoding,
}

/// An answer with what was read of it, what was not, what was sent for it, and whether that was the second try.
type Tried = (response::Parts, Bytes, Option<Incoming>, Prepared, Option<&'static str>);

impl Turn<'_> {
    /// Looks at an answer that refuses the request, and tries once more where that may help.
    async fn retry(&self, sent: Response<Incoming>, prepared: Prepared) -> Result<Tried, Failed> {
        let (parts, incoming) = sent.into_parts();
        if !overflow::may_be(parts.status) || self.job.counts_only {
            return Ok((parts, Bytes::new(), Some(incoming), prepared, None));
        }
        let read = body::collect(incoming, ERROR_BYTES).await;
        let (first, rest) = read.map_err(|fault| self.proxy.unreachable(&self.head, &fault))?;
        let mut text = Vec::new();
        Decoder::of(&parts.headers).feed(&first, |decoded| text.extend_from_slice(decoded));
        let text = String::from_utf8_lossy(&text);
        let again = match overflow::too_long(parts.status, &text) {
            Some(_) if prepared.how == How::Observed => {
                self.overflowed("observed");
                None
            }
            Some(too_long) => self.shorter(&prepared, too_long.allowed).await,
            None => self.as_it_came(&parts, &prepared).await,
        };
        let Some((answer, prepared, retried)) = again else {
            return Ok((parts, first, rest, prepared, None));
        };
        let (parts, incoming) = answer.into_parts();
        Ok((parts, Bytes::new(), Some(incoming), prepared, Some(retried)))
    }

    /// Fits harder after the provider said that the request is too long.
    async fn shorter(
        &self,
        prepared: &Prepared,
        allowed: Option<f64>,
    ) -> Option<(Response<Incoming>, Prepared, &'static str)> {
        let share = allowed.map_or(SHORTER, |share| share * MARGIN);
        let shorter =
            planning::prepare_shorter(&self.proxy.planner, self.job.clone(), prepared.about.as_ref(), share)
                .await;
        let Some(shorter) = shorter else {
            self.overflowed("nothing to hide");
            return None;
        };
        let outgoing = encoded(self.encoding, shorter.request.as_deref()).await?;
        let Ok(answer) = self.proxy.send(&self.head, full(outgoing)).await else {
            self.overflowed("not sent again");
            return None;
        };
        self.overflowed(if overflow::may_be(answer.status()) { "refused again" } else { "sent again" });
        note(self.proxy, self.route, &shorter, Instant::now());
        Some((answer, shorter, "too-long"))
    }

    fn overflowed(&self, result: &str) {
        self.proxy.metrics.count(Metric::Overflows, &[("result", result)]);
        self.proxy.log.warn(format_args!(
            "{}: the provider says that the request is too long: {result}",
            self.route.endpoint.name()
        ));
    }

    /// Sends a request as it came after the provider refused what we made of it.
    async fn as_it_came(
        &self,
        refused: &response::Parts,
        prepared: &Prepared,
    ) -> Option<(Response<Incoming>, Prepared, &'static str)> {
        let about = prepared.about.as_ref().filter(|about| about.raw_fits)?;
        if refused.status != StatusCode::BAD_REQUEST || prepared.request.is_none() {
            return None;
        }
        let answer = self.proxy.send(&self.head, full(self.arrived.clone())).await.ok()?;
        // Where the request is refused untouched too, the fault is not ours.
        if !answer.status().is_success() {
            return None;
        }
        about.session.refused();
        self.proxy.metrics.count(Metric::Faults, &[("kind", "refused")]);
        self.proxy.log.warn(format_args!("session {}: the provider refused the fitted request and took it as it came; it is left alone while it fits", about.session.name));
        let about = About { sent: about.raw, shortened: 0, dropped: 0, ..about.clone() };
        Some((answer, Prepared { request: None, how: How::Raw, fault: None, about: Some(about) }, "refused"))
    }
}

/// Hands on the answer to a conversation that passes as it is.
fn passed(
    proxy: &Arc<Proxy>,
    route: &Route,
    format: Format,
    sent: Response<Incoming>,
    reason: &str,
    permit: OwnedSemaphorePermit,
) -> Response<Answer> {
    proxy.metrics.count(Metric::Requests, &[("endpoint", route.endpoint.name()), ("outcome", "passed")]);
    proxy.metrics.count(Metric::Passed, &[("reason", reason)]);
    proxy.log.detail(format_args!("{}: passed untouched ({reason})", route.endpoint.name()));
    let said = Said { how: "passed", reason: Some(reason.to_owned()), ..Said::default() };
    let (parts, incoming) = sent.into_parts();
    let reader = matches!(route.endpoint, Endpoint::Answer(_)).then(|| Reader::new(format, &parts.headers));
    let account = Account::of(proxy, route.endpoint, None, How::Raw, parts.status, permit);
    delivered(proxy, parts, Bytes::new(), Some(incoming), said, reader, account)
}

fn deliver(proxy: &Arc<Proxy>, sent: Response<Incoming>, said: Said, account: Account) -> Response<Answer> {
    let (parts, incoming) = sent.into_parts();
    delivered(proxy, parts, Bytes::new(), Some(incoming), said, None, account)
}

fn delivered(
    proxy: &Arc<Proxy>,
    mut parts: response::Parts,
    first: Bytes,
    rest: Option<Incoming>,
    said: Said,
    reader: Option<Reader>,
    account: Account,
) -> Response<Answer> {
    headers::to_client(&mut parts.headers);
    if proxy.config.announce {
        announce(&mut parts.headers, said);
    }
    let done = Box::new(move |end, reading| ledger::settle(account, end, reading));
    Response::from_parts(parts, Either::Right(Tap::new(first, rest, reader, done)))
}

/// Says in headers what was done.
fn announce(headers: &mut HeaderMap, said: Said) {
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
    if let Some(fill) = about.fill().filter(|fill| *fill >= NEEDED_FROM) {
        say("x-trimtab-needed", format!("{fill:.2} of the window without trimtab"));
    }
}

/// Counts and logs what was done with a request.
fn note(proxy: &Proxy, route: &Route, prepared: &Prepared, started: Instant) {
    let endpoint = route.endpoint.name();
    let outcome = prepared.how.name();
    proxy.metrics.count(Metric::Requests, &[("endpoint", endpoint), ("outcome", outcome)]);
    if let Some(fault) = &prepared.fault {
        proxy.metrics.count(Metric::Faults, &[("kind", fault.name())]);
        proxy.log.warn(format_args!(
            "{endpoint}: {}; sent {}",
            fault.words(),
            match prepared.how {
                How::Resent => "with the session's last plan",
                How::Raw | How::Kept | How::Observed => "as it came",
                How::Fitted => "late",
            }
        ));
    }
    let Some(about) = &prepared.about else { return };
    let hidden = Tokens(about.raw.0.saturating_sub(about.sent.0));
    proxy.log.info(format_args!(
        "{endpoint} {} session {}: {} -> {} tokens ({} shortened, {} dropped), {outcome} in {:.1} ms",
        about.model_name,
        about.session.name,
        grouped(about.raw.0),
        grouped(about.sent.0),
        about.shortened,
        about.dropped,
        started.elapsed().as_secs_f64() * 1000.0
    ));
    if hidden > Tokens::ZERO && about.beyond {
        let budget = about.budget.unwrap_or_default();
        proxy.log.warn(format_args!(
            "session {}: does not fit into {} tokens however much is hidden",
            about.session.name,
            grouped(budget.0)
        ));
    }
    if let Some(fill) = about.fill().filter(|fill| *fill >= NEEDED_FROM)
        && about.session.tell_needed()
    {
        proxy.log.warn(format_args!(
            "session {}: its history fills {:.0} % of the window: it now needs trimtab; compact it before you go on without",
            about.session.name,
            fill * 100.0
        ));
    }
}

/// Makes the head of the request to the provider.
pub(super) fn head(proxy: &Proxy, route: &Route, parts: &Parts) -> Result<Head, Failed> {
    let upstream = proxy.config.upstreams.of(route.provider);
    let wrong =
        |fault: anyhow::Error| Failed { status: StatusCode::BAD_REQUEST, reason: format!("{fault:#}") };
    let mut headers = parts.headers.clone();
    headers::to_upstream(&mut headers, upstream.host().map_err(wrong)?);
    let uri = upstream.uri(route.provider, &parts.uri).map_err(wrong)?;
    Ok(Head { method: parts.method.clone(), uri, headers, extensions: parts.extensions.clone() })
}

impl Proxy {
    /// Sends a request to the provider.
    pub(super) async fn send(&self, head: &Head, body: Outgoing) -> Result<Response<Incoming>, Failed> {
        let mut headers = head.headers.clone();
        if let Either::Left(_) = &body
            && let Some(length) = hyper::body::Body::size_hint(&body).exact()
            && (length > 0 || headers.contains_key(CONTENT_LENGTH))
        {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        let mut request = Request::new(body);
        *request.method_mut() = head.method.clone();
        *request.uri_mut() = head.uri.clone();
        *request.headers_mut() = headers;
        *request.extensions_mut() = head.extensions.clone();
        match tokio::time::timeout(self.config.limits.upstream, self.client.request(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(fault)) => Err(self.unreachable(head, &fault)),
            Err(_) => {
                self.metrics.count(Metric::Faults, &[("kind", "upstream timeout")]);
                let reason = format!(
                    "{} did not answer in {} seconds",
                    origin(&head.uri),
                    self.config.limits.upstream.as_secs()
                );
                Err(Failed { status: StatusCode::GATEWAY_TIMEOUT, reason })
            }
        }
    }

    pub(super) fn unreachable(&self, head: &Head, fault: &dyn std::error::Error) -> Failed {
        self.metrics.count(Metric::Faults, &[("kind", "upstream")]);
        let mut reason = format!("{} cannot be reached: {fault}", origin(&head.uri));
        let mut source = fault.source();
        while let Some(cause) = source {
            reason.push_str(": ");
            reason.push_str(&cause.to_string());
            source = cause.source();
        }
        Failed { status: StatusCode::BAD_GATEWAY, reason }
    }
}

fn origin(uri: &Uri) -> String {
    format!(
        "{}://{}",
        uri.scheme_str().unwrap_or_default(),
        uri.authority().map_or("", hyper::http::uri::Authority::as_str)
    )
}

/// Decodes a body where it is encoded, away from the threads that forward.
async fn decoded(encoding: Encoding, body: &Bytes, limit: usize) -> Result<Bytes, NotDecoded> {
    if encoding == Encoding::Plain {
        return Ok(body.clone());
    }
    let body = body.clone();
    let decoded = tokio::task::spawn_blocking(move || encoding.decode(&body, limit).map(Bytes::from)).await;
    decoded.unwrap_or(Err(NotDecoded::Broken))
}

/// Encodes what is sent instead of a request; nothing where the request goes as it came.
async fn encoded(encoding: Encoding, request: Option<&[u8]>) -> Option<Bytes> {
    let request = request?.to_vec();
    if encoding == Encoding::Plain {
        return Some(Bytes::from(request));
    }
    let encoded = tokio::task::spawn_blocking(move || encoding.encode(request)).await;
    encoded.ok()?.ok().map(Bytes::from)
}

fn full(body: Bytes) -> Outgoing {
    Either::Left(Full::new(body))
}

pub(super) fn whole(body: Bytes) -> Answer {
    Either::Left(Full::new(body))
}
