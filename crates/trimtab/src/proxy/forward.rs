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

use crate::page;

use super::{
    AnswerBody, Proxy, RequestBody, body,
    cache_fields::accepted_fields,
    encoding::{DecodeError, RequestEncoding},
    envelope::{self, Envelope, Wrapping},
    fold, guard,
    headers::{self, ClientHeaders},
    intents::IntentStripper,
    keep_alive::PingSource,
    ledger::{self, UnsettledRequest},
    metrics::Metric,
    observed_answer::{AnswerReaders, ObservedAnswer},
    own_paths,
    planning::{self, PlanJob},
    prepared_request::Treatment,
    refusal::refusal_response,
    response_notes::{ResponseNotes, add_notice_headers, note_answer, record_treatment},
    retry::PreparedTurn,
    route::{Provider, Route, RouteEndpoint, find_route},
    send::{RequestHead, SendFailure, provider_head},
    store_health::UnkeptReason,
    tunnel,
    usage::UsageReader,
};

/// Answers a request.
pub(crate) async fn answer_request(proxy: Arc<Proxy>, request: Request<Incoming>) -> Response<AnswerBody> {
    let uri = request.uri();
    let found =
        find_route(&proxy.config.upstreams, request.method(), uri.path(), uri.query(), request.headers());
    let provider = match &found {
        Ok(route) => route.provider,
        Err(_) => Provider::guess_from_request(uri.path(), uri.query(), request.headers()),
    };
    let refuse =
        |status: StatusCode, reason: &str| refusal_response(provider, status, reason).map(full_answer_body);
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
    let is_page = page::is_page_path(uri.path()) || uri.path() == "/" && page::wants_page(request.headers());
    if let Some(page) = proxy.page.as_ref().filter(|_| is_page) {
        return page.answer(request).await.map(Either::Left);
    }
    if uri.path() == "/" && matches!(*request.method(), Method::GET | Method::HEAD) {
        return own_paths::status_page(&proxy, request.headers()).map(full_answer_body);
    }
    if uri.path() == "/trimtab" || uri.path().starts_with("/trimtab/") {
        return own_paths::answer_own_path(&proxy, request).await.map(full_answer_body);
    }
    let route = match found {
        Ok(route) => route,
        Err(fault) => {
            proxy.metrics.count(Metric::Requests { endpoint: "other", outcome: "refused" });
            let reason = fault.describe();
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
        tunnel::upgrade_and_connect(&proxy, &route, request, permit).await
    } else {
        forward_conversation(&proxy, &route, request, permit).await
    };
    answered.unwrap_or_else(|SendFailure { status, reason }| {
        if status.is_server_error() {
            proxy.log.warn(&reason);
        }
        refuse(status, &reason)
    })
}

async fn forward_conversation(
    proxy: &Arc<Proxy>,
    route: &Route,
    request: Request<Incoming>,
    permit: OwnedSemaphorePermit,
) -> Result<Response<AnswerBody>, SendFailure> {
    let (parts, incoming) = request.into_parts();
    let mut head = provider_head(route, &parts)?;
    let (format, counts_only) = match route.endpoint {
        RouteEndpoint::Answer(format) => (format, false),
        RouteEndpoint::Count(format) => (format, true),
        RouteEndpoint::Unfitted(reason) => {
            note_passed(proxy, route, reason);
            let response = proxy.send_to_provider(&head, Either::Right(incoming)).await?;
            note_answer(proxy, route, response.status());
            let said =
                ResponseNotes { how: "passed", reason: Some(reason.to_owned()), ..ResponseNotes::default() };
            return Ok(deliver_response(proxy, response, said, UnsettledRequest::without_reading(permit)));
        }
        RouteEndpoint::Other => {
            proxy.metrics.count(Metric::Requests { endpoint: "other", outcome: "passed" });
            let response = proxy.send_to_provider(&head, Either::Right(incoming)).await?;
            proxy.log.detail(format_args!("{} {}: {}", head.method, head.uri.path(), response.status()));
            return Ok(deliver_response(
                proxy,
                response,
                ResponseNotes::default(),
                UnsettledRequest::without_reading(permit),
            ));
        }
    };
    let switched_off =
        if proxy.config.off { Some("off") } else { headers::asks_off(&parts.headers).then_some("asked") };
    let encoding = RequestEncoding::from_headers(&parts.headers);
    // Where the model chooses the upstream, the request is read in any case.
    let by_model = route.by_model && proxy.config.upstreams.choose_by_model(route.provider);
    let unread = if by_model && encoding.is_some() { None } else { switched_off };
    if let Some(reason) = unread.or_else(|| encoding.is_none().then_some("encoding")) {
        return forward_unchanged(proxy, route, format, (&head, Either::Right(incoming)), reason, permit)
            .await;
    }
    let limits = &proxy.config.limits;
    let arrived = body::read(incoming, limits, proxy.planner.buffers())
        .await
        .map_err(|fault| SendFailure { status: fault.status(), reason: fault.describe(limits) })?;
    let started = Instant::now();
    let encoding = encoding.unwrap_or(RequestEncoding::Plain);
    let (arrived, plain) = match decode_body(encoding, arrived, limits.request).await {
        (arrived, Ok(plain)) => (arrived, plain),
        (_, Err(DecodeError::TooLarge)) => {
            let fault = body::BodyReadError::TooLarge;
            return Err(SendFailure { status: fault.status(), reason: fault.describe(limits) });
        }
        (arrived, Err(DecodeError::Broken)) => {
            return forward_unchanged(
                proxy,
                route,
                format,
                (&head, full_request_body(arrived)),
                "broken encoding",
                permit,
            )
            .await;
        }
    };
    let chosen;
    let route = if by_model {
        chosen = chosen_by_model(proxy, route, &plain);
        head = provider_head(&chosen, &parts)?;
        &chosen
    } else {
        route
    };
    if let Some(reason) = switched_off {
        return forward_unchanged(proxy, route, format, (&head, full_request_body(arrived)), reason, permit)
            .await;
    }
    let client = Arc::new(ClientHeaders::read(&parts.headers, proxy.config.project.as_deref()));
    let (envelope, plain, model) = match unwrap_body(route.wrapping, encoding, plain) {
        Ok(unwrapped) => unwrapped,
        Err(reason) => {
            return forward_unchanged(
                proxy,
                route,
                format,
                (&head, full_request_body(arrived)),
                reason,
                permit,
            )
            .await;
        }
    };
    let is_plain = envelope.is_empty() && route.takes_plain_requests();
    let intents = proxy.config.intents.as_ref().filter(|_| is_plain);
    let mut offered = intents.and_then(|intents| intents.offer_in_request(&plain, format));
    let (plain, unplanned) = match &mut offered {
        Some(offered) => {
            // Only what is not compressed can be stripped.
            head.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            let body = Arc::new(std::mem::take(&mut offered.body));
            (Arc::clone(&body), Bytes::from_owner(SharedBody(body)))
        }
        None => (plain, arrived.clone()),
    };
    let server = route.upstream.known_name();
    let accepts = accepted_fields(route, format);
    let model = route.model.clone().or(model);
    let job = PlanJob { body: plain, format, model, counts_only, client, server, accepts };
    let mut prepared = match planning::prepare_in_time(&proxy.planner, job.clone()).await {
        Ok(prepared) => prepared,
        Err(reason) => {
            return forward_unchanged(
                proxy,
                route,
                format,
                (&head, full_request_body(arrived)),
                &reason,
                permit,
            )
            .await;
        }
    };
    let asks = prepared.session().filter(|_| !counts_only);
    let turn = asks.map(|session| proxy.keep_alive.end_pause(session, proxy.planner.now()));
    let outgoing = envelope.pack(prepared.request.clone()).await.unwrap_or(unplanned);
    // Subscriptions answer only requests that their agent makes.
    let turn = turn.filter(|_| is_plain && server != "chatgpt");
    let source = turn.map(|turn| PingSource::new(&proxy.keep_alive, turn, format, (&head, &outgoing)));
    proxy.metrics.record_overhead(started.elapsed());
    record_treatment(proxy, route, &prepared, started);
    let asked = Instant::now();
    let response = match proxy.send_to_provider(&head, full_request_body(outgoing)).await {
        Ok(response) => response,
        Err(failed) => {
            prepared.record_refusal(&proxy.planner.sessions);
            return Err(failed);
        }
    };
    // What is refused is forgotten before anything is planned again.
    if response.status().is_success() {
        prepared.record_acceptance();
    } else {
        prepared.record_refusal(&proxy.planner.sessions);
    }
    if !counts_only && response.status().is_success() {
        proxy.planner.answered_in(format, asked.elapsed());
        fold::start_summary(proxy, route, &head, format, prepared.about.as_ref());
    }
    let turn = PreparedTurn { proxy, route, head, job, arrived, envelope };
    let (response, first, rest, prepared, retried) = turn.retry_if_too_long(response, prepared).await?;
    note_answer(proxy, route, response.status);
    let said = ResponseNotes {
        how: prepared.how.name(),
        reason: prepared.fault.as_ref().map(|fault| fault.name().to_owned()),
        retried,
        about: prepared.about.clone(),
        is_store_in_trouble: proxy.planner.sessions.is_store_in_trouble(),
    };
    let account = UnsettledRequest::for_conversation(
        proxy, route.endpoint, prepared.about, prepared.how, response.status, permit,
    )
    .with_pings(source.filter(|_| retried.is_none()));
    let reader = (!counts_only).then(|| UsageReader::new(format, route.wrapping, &response.headers));
    let offered = offered.filter(|_| !counts_only && response.status.is_success());
    let stripper = offered.zip(intents).and_then(|(offered, intents)| {
        IntentStripper::new(Arc::clone(intents), offered, format, &response.headers)
    });
    Ok(deliver_collected(proxy, response, first, rest, said, AnswerReaders { reader, stripper }, account))
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
async fn forward_unchanged(
    proxy: &Arc<Proxy>,
    route: &Route,
    format: Format,
    (head, body): (&RequestHead, RequestBody),
    reason: &str,
    permit: OwnedSemaphorePermit,
) -> Result<Response<AnswerBody>, SendFailure> {
    note_passed(proxy, route, reason);
    let response = proxy.send_to_provider(head, body).await?;
    note_answer(proxy, route, response.status());
    let said = ResponseNotes { how: "passed", reason: Some(reason.to_owned()), ..ResponseNotes::default() };
    let (parts, incoming) = response.into_parts();
    let answers = matches!(route.endpoint, RouteEndpoint::Answer(_));
    let reader = answers.then(|| UsageReader::new(format, route.wrapping, &parts.headers));
    let account =
        UnsettledRequest::for_conversation(proxy, route.endpoint, None, Treatment::Raw, parts.status, permit);
    let looked_at = AnswerReaders { reader, stripper: None };
    Ok(deliver_collected(proxy, parts, Bytes::new(), Some(incoming), said, looked_at, account))
}

/// Counts and logs a conversation that passes as it is.
fn note_passed(proxy: &Proxy, route: &Route, reason: &str) {
    proxy.metrics.count(Metric::Requests { endpoint: route.endpoint.name(), outcome: "passed" });
    proxy.metrics.count(Metric::Passed { reason: reason.to_owned() });
    if matches!(route.endpoint, RouteEndpoint::Answer(_)) {
        proxy.planner.sessions.count_unkept(UnkeptReason::Passed);
    }
    proxy.log.detail(format_args!("{}: passed untouched ({reason})", route.endpoint.name()));
}

fn deliver_response(
    proxy: &Arc<Proxy>,
    response: Response<Incoming>,
    said: ResponseNotes,
    account: UnsettledRequest,
) -> Response<AnswerBody> {
    let (parts, incoming) = response.into_parts();
    deliver_collected(proxy, parts, Bytes::new(), Some(incoming), said, AnswerReaders::default(), account)
}

fn deliver_collected(
    proxy: &Arc<Proxy>,
    mut parts: response::Parts,
    first: Bytes,
    rest: Option<Incoming>,
    said: ResponseNotes,
    looked_at: AnswerReaders,
    account: UnsettledRequest,
) -> Response<AnswerBody> {
    headers::to_client(&mut parts.headers);
    if looked_at.stripper.is_some() {
        parts.headers.remove(CONTENT_LENGTH);
    }
    if proxy.config.announce {
        add_notice_headers(&mut parts.headers, said);
    }
    let done = Box::new(move |end, reading| ledger::settle_request(account, end, reading));
    Response::from_parts(
        parts,
        Either::Right(ObservedAnswer::new(first, rest, looked_at, proxy.config.limits.upstream, done)),
    )
}

/// Decodes a body where it is encoded, away from the threads that forward. Gives it as it arrived, and decoded.
async fn decode_body(
    encoding: RequestEncoding,
    arrived: Vec<u8>,
    limit: usize,
) -> (Bytes, Result<Arc<Vec<u8>>, DecodeError>) {
    if encoding == RequestEncoding::Plain {
        let plain = Arc::new(arrived);
        return (Bytes::from_owner(SharedBody(Arc::clone(&plain))), Ok(plain));
    }
    let arrived = Bytes::from(arrived);
    let body = arrived.clone();
    let decoded = tokio::task::spawn_blocking(move || encoding.decode(&body, limit).map(Arc::new)).await;
    (arrived, decoded.unwrap_or(Err(DecodeError::Broken)))
}

/// A conversation, what was around it, and the model that was named beside it.
type UnwrappedBody = (Envelope, Arc<Vec<u8>>, Option<String>);

/// Takes the conversation out of a body; says why it cannot be.
fn unwrap_body(
    wrapping: Wrapping,
    encoding: RequestEncoding,
    plain: Arc<Vec<u8>>,
) -> Result<UnwrappedBody, &'static str> {
    let envelope = Envelope::with_encoding(encoding);
    let inner = match wrapping {
        Wrapping::None => None,
        Wrapping::Perhaps(key) => envelope::unwrap_conversation(&plain, key),
        Wrapping::Always(key) => {
            Some(envelope::unwrap_conversation(&plain, key).ok_or("no conversation in the body")?)
        }
    };
    let Some(mut inner) = inner else { return Ok((envelope, plain, None)) };
    let model = inner.model.take();
    let (envelope, conversation) = envelope.wrap_inner(inner);
    Ok((envelope, Arc::new(conversation), model))
}

/// A body that is planned for and sent at the same time, in memory once.
struct SharedBody(Arc<Vec<u8>>);

impl AsRef<[u8]> for SharedBody {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

pub(super) fn full_request_body(body: Bytes) -> RequestBody {
    Either::Left(Full::new(body))
}

pub(super) fn full_answer_body(body: Bytes) -> AnswerBody {
    Either::Left(Either::Left(Full::new(body)))
}
