//! One request from the client to the provider and its answer back. Takes the request; gives the provider's answer. Never
//! changes anything but blocks of a conversation, and never lets a fault of ours become the client's.

use std::{borrow::Cow, sync::Arc, time::Instant};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Incoming},
    header::{ACCEPT_ENCODING, CONTENT_LENGTH, HeaderValue, RETRY_AFTER},
    http::response,
};
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;
use trimtab_core::Format;

use super::{
    Answer, Outgoing, Proxy, body,
    encoding::{Encoding, NotDecoded},
    envelope::{self, Envelope, Wrapping},
    fold, guard,
    headers::{self, ClientHeaders},
    intents::Stripper,
    ledger::{self, Account},
    metrics::Metric,
    own,
    planning::{self, Job},
    prepared::How,
    refusal::refusal,
    retry::Turn,
    route::{Endpoint, Provider, Route, route},
    say::{Said, announce, note, note_answer},
    send::{self, Failed, Head, head},
    store_health::Unkept,
    tap::{LookedAt, Tap},
    tunnel,
    usage::Reader,
};

/// Answers a request.
pub(crate) async fn answer(proxy: Arc<Proxy>, request: Request<Incoming>) -> Response<Answer> {
    let uri = request.uri();
    let found = route(&proxy.config.upstreams, request.method(), uri.path(), uri.query(), request.headers());
    let provider = match &found {
        Ok(route) => route.provider,
        Err(_) => Provider::guess(uri.path(), uri.query(), request.headers()),
    };
    let refuse = |status: StatusCode, reason: &str| refusal(provider, status, reason).map(whole);
    if !guard::names_us(request.headers(), &proxy.config.allowed_hosts) {
        return refuse(StatusCode::FORBIDDEN, "this host name is not allowed; --allow-host allows one");
    }
    if guard::is_cross_site(request.headers(), &proxy.config.allowed_origins) {
        return refuse(
            StatusCode::FORBIDDEN,
            "requests from web pages of other sites are not allowed; --allow-origin allows one origin",
        );
    }
    if *request.method() == Method::CONNECT {
        return refuse(
            StatusCode::METHOD_NOT_ALLOWED,
            "this is no proxy for other hosts; set the base URL instead",
        );
    }
    if uri.path() == "/" && matches!(*request.method(), Method::GET | Method::HEAD) {
        return own::status(&proxy, request.headers()).map(whole);
    }
    if uri.path() == "/trimtab" || uri.path().starts_with("/trimtab/") {
        return own::answer(&proxy, request).await.map(whole);
    }
    let route = match found {
        Ok(route) => route,
        Err(fault) => {
            proxy.metrics.count(Metric::Requests { endpoint: "other", outcome: "refused" });
            let reason = fault.words();
            proxy.log.detail(format_args!("{} {}: {reason}", request.method(), uri.path()));
            return refuse(StatusCode::NOT_FOUND, &reason);
        }
    };
    let Ok(permit) = Arc::clone(&proxy.in_flight).try_acquire_owned() else {
        let mut response = refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many requests are under way; --max-in-flight raises the limit",
        );
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        return response;
    };
    // A request with a body is answered in HTTP whatever it offers: no tunnel would carry the body.
    let answered = if headers::wants_upgrade(request.headers()) && request.body().is_end_stream() {
        proxy.metrics.count(Metric::Requests { endpoint: route.endpoint.name(), outcome: "upgraded" });
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

async fn converse(
    proxy: &Arc<Proxy>,
    route: &Route,
    request: Request<Incoming>,
    permit: OwnedSemaphorePermit,
) -> Result<Response<Answer>, Failed> {
    let (parts, incoming) = request.into_parts();
    let mut head = head(route, &parts)?;
    let (format, counts_only) = match route.endpoint {
        Endpoint::Answer(format) => (format, false),
        Endpoint::Count(format) => (format, true),
        Endpoint::Unfitted(reason) => {
            note_passed(proxy, route, reason);
            let sent = proxy.send(&head, Either::Right(incoming)).await?;
            note_answer(proxy, route, sent.status());
            let said = Said { how: "passed", reason: Some(reason.to_owned()), ..Said::default() };
            return Ok(deliver(proxy, sent, said, Account::unread(permit)));
        }
        Endpoint::Other => {
            proxy.metrics.count(Metric::Requests { endpoint: "other", outcome: "passed" });
            let sent = proxy.send(&head, Either::Right(incoming)).await?;
            proxy.log.detail(format_args!("{} {}: {}", head.method, head.uri.path(), sent.status()));
            return Ok(deliver(proxy, sent, Said::default(), Account::unread(permit)));
        }
    };
    let switched_off =
        if proxy.config.off { Some("off") } else { headers::asks_off(&parts.headers).then_some("asked") };
    let encoding = Encoding::of(&parts.headers);
    // Where the model chooses the upstream, the request is read in any case.
    let by_model = route.by_model && proxy.config.upstreams.choose_by_model(route.provider);
    let unread = if by_model && encoding.is_some() { None } else { switched_off };
    if let Some(reason) = unread.or_else(|| encoding.is_none().then_some("encoding")) {
        return pass(proxy, route, format, (&head, Either::Right(incoming)), reason, permit).await;
    }
    let limits = &proxy.config.limits;
    let arrived = body::read(incoming, limits, proxy.planner.buffers())
        .await
        .map_err(|fault| Failed { status: fault.status(), reason: fault.words(limits) })?;
    let started = Instant::now();
    let encoding = encoding.unwrap_or(Encoding::Plain);
    let (arrived, plain) = match decoded(encoding, arrived, limits.request).await {
        (arrived, Ok(plain)) => (arrived, plain),
        (_, Err(NotDecoded::TooLarge)) => {
            let fault = body::NotRead::TooLarge;
            return Err(Failed { status: fault.status(), reason: fault.words(limits) });
        }
        (arrived, Err(NotDecoded::Broken)) => {
            return pass(proxy, route, format, (&head, full(arrived)), "broken encoding", permit).await;
        }
    };
    let chosen;
    let route = if by_model {
        chosen = chosen_by_model(proxy, route, &plain);
        head = send::head(&chosen, &parts)?;
        &chosen
    } else {
        route
    };
    if let Some(reason) = switched_off {
        return pass(proxy, route, format, (&head, full(arrived)), reason, permit).await;
    }
    let client = Arc::new(ClientHeaders::read(&parts.headers, proxy.config.project.as_deref()));
    let (envelope, plain, model) = match unwrapped(route.wrapping, encoding, plain) {
        Ok(unwrapped) => unwrapped,
        Err(reason) => return pass(proxy, route, format, (&head, full(arrived)), reason, permit).await,
    };
    let is_plain = envelope.is_empty() && route.takes_plain_requests();
    let intents = proxy.config.intents.as_ref().filter(|_| is_plain);
    let mut offered = intents.and_then(|intents| intents.offer(&plain, format));
    let (plain, unplanned) = match &mut offered {
        Some(offered) => {
            // Only what is not compressed can be stripped.
            head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            let body = Arc::new(std::mem::take(&mut offered.body));
            (Arc::clone(&body), Bytes::from_owner(Shared(body)))
        }
        None => (plain, arrived.clone()),
    };
    let job = Job { body: plain, format, model: route.model.clone().or(model), counts_only, client };
    let mut prepared = match planning::prepare(&proxy.planner, job.clone()).await {
        Ok(prepared) => prepared,
        Err(reason) => return pass(proxy, route, format, (&head, full(arrived)), &reason, permit).await,
    };
    let outgoing = envelope.pack(prepared.request.clone()).await.unwrap_or(unplanned);
    proxy.metrics.overhead(started.elapsed());
    note(proxy, route, &prepared, started);
    let asked = Instant::now();
    let sent = match proxy.send(&head, full(outgoing)).await {
        Ok(sent) => sent,
        Err(failed) => {
            prepared.refuse(&proxy.planner.sessions);
            return Err(failed);
        }
    };
    // What is refused is forgotten before anything is planned again.
    if sent.status().is_success() {
        prepared.accept();
    } else {
        prepared.refuse(&proxy.planner.sessions);
    }
    if !counts_only && sent.status().is_success() {
        proxy.planner.answered_in(format, asked.elapsed());
        fold::ask(proxy, route, &head, format, prepared.about.as_ref());
    }
    let turn = Turn { proxy, route, head, job, arrived, envelope };
    let (sent, first, rest, prepared, retried) = turn.retry(sent, prepared).await?;
    note_answer(proxy, route, sent.status);
    let said = Said {
        how: prepared.how.name(),
        reason: prepared.fault.as_ref().map(|fault| fault.name().to_owned()),
        retried,
        about: prepared.about.clone(),
        is_store_in_trouble: proxy.planner.sessions.is_store_in_trouble(),
    };
    let account = Account::of(proxy, route.endpoint, prepared.about, prepared.how, sent.status, permit);
    let reader = (!counts_only).then(|| Reader::new(format, route.wrapping, &sent.headers));
    let offered = offered.filter(|_| !counts_only && sent.status.is_success());
    let stripper = offered
        .zip(intents)
        .and_then(|(offered, intents)| Stripper::new(Arc::clone(intents), offered, format, &sent.headers));
    Ok(delivered(proxy, sent, first, rest, said, LookedAt { reader, stripper }, account))
}

/// Returns the route to the upstream that the model's name chooses.
fn chosen_by_model(proxy: &Proxy, route: &Route, body: &[u8]) -> Route {
    let written = || serde_json::from_slice::<ModelName<'_>>(body).ok()?.model.map(Cow::into_owned);
    let model = route.model.clone().or_else(written).unwrap_or_default();
    let chosen = proxy.config.upstreams.of_model(route.provider, &model);
    Route { upstream: chosen.unwrap_or_else(|| Arc::clone(&route.upstream)), ..route.clone() }
}

/// The model that a request names.
#[derive(Deserialize)]
struct ModelName<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
}

/// Sends a conversation as it is, and hands on the answer.
async fn pass(
    proxy: &Arc<Proxy>,
    route: &Route,
    format: Format,
    (head, body): (&Head, Outgoing),
    reason: &str,
    permit: OwnedSemaphorePermit,
) -> Result<Response<Answer>, Failed> {
    note_passed(proxy, route, reason);
    let sent = proxy.send(head, body).await?;
    note_answer(proxy, route, sent.status());
    let said = Said { how: "passed", reason: Some(reason.to_owned()), ..Said::default() };
    let (parts, incoming) = sent.into_parts();
    let answers = matches!(route.endpoint, Endpoint::Answer(_));
    let reader = answers.then(|| Reader::new(format, route.wrapping, &parts.headers));
    let account = Account::of(proxy, route.endpoint, None, How::Raw, parts.status, permit);
    let looked_at = LookedAt { reader, stripper: None };
    Ok(delivered(proxy, parts, Bytes::new(), Some(incoming), said, looked_at, account))
}

/// Counts and logs a conversation that passes as it is.
fn note_passed(proxy: &Proxy, route: &Route, reason: &str) {
    proxy.metrics.count(Metric::Requests { endpoint: route.endpoint.name(), outcome: "passed" });
    proxy.metrics.count(Metric::Passed { reason: reason.to_owned() });
    if matches!(route.endpoint, Endpoint::Answer(_)) {
        proxy.planner.sessions.count_unkept(Unkept::Passed);
    }
    proxy.log.detail(format_args!("{}: passed untouched ({reason})", route.endpoint.name()));
}

fn deliver(proxy: &Arc<Proxy>, sent: Response<Incoming>, said: Said, account: Account) -> Response<Answer> {
    let (parts, incoming) = sent.into_parts();
    delivered(proxy, parts, Bytes::new(), Some(incoming), said, LookedAt::default(), account)
}

fn delivered(
    proxy: &Arc<Proxy>,
    mut parts: response::Parts,
    first: Bytes,
    rest: Option<Incoming>,
    said: Said,
    looked_at: LookedAt,
    account: Account,
) -> Response<Answer> {
    headers::to_client(&mut parts.headers);
    if looked_at.stripper.is_some() {
        parts.headers.remove(CONTENT_LENGTH);
    }
    if proxy.config.announce {
        announce(&mut parts.headers, said);
    }
    let done = Box::new(move |end, reading| ledger::settle(account, end, reading));
    Response::from_parts(parts, Either::Right(Tap::new(first, rest, looked_at, done)))
}

/// Decodes a body where it is encoded, away from the threads that forward. Gives it as it arrived, and decoded.
async fn decoded(
    encoding: Encoding,
    arrived: Vec<u8>,
    limit: usize,
) -> (Bytes, Result<Arc<Vec<u8>>, NotDecoded>) {
    if encoding == Encoding::Plain {
        let plain = Arc::new(arrived);
        return (Bytes::from_owner(Shared(Arc::clone(&plain))), Ok(plain));
    }
    let arrived = Bytes::from(arrived);
    let body = arrived.clone();
    let decoded = tokio::task::spawn_blocking(move || encoding.decode(&body, limit).map(Arc::new)).await;
    (arrived, decoded.unwrap_or(Err(NotDecoded::Broken)))
}

/// A conversation, what was around it, and the model that was named beside it.
type Unwrapped = (Envelope, Arc<Vec<u8>>, Option<String>);

/// Takes the conversation out of a body; says why it cannot be.
fn unwrapped(wrapping: Wrapping, encoding: Encoding, plain: Arc<Vec<u8>>) -> Result<Unwrapped, &'static str> {
    let envelope = Envelope::encoded(encoding);
    let inner = match wrapping {
        Wrapping::None => None,
        Wrapping::Perhaps(key) => envelope::unwrap(&plain, key),
        Wrapping::Always(key) => Some(envelope::unwrap(&plain, key).ok_or("no conversation in the body")?),
    };
    let Some(mut inner) = inner else { return Ok((envelope, plain, None)) };
    let model = inner.model.take();
    let (envelope, conversation) = envelope.around(inner);
    Ok((envelope, Arc::new(conversation), model))
}

/// A body that is planned for and sent at the same time, in memory once.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

pub(super) fn full(body: Bytes) -> Outgoing {
    Either::Left(Full::new(body))
}

pub(super) fn whole(body: Bytes) -> Answer {
    Either::Left(Full::new(body))
}
