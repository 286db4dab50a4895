//! The proxy's own endpoints below `/trimtab/`: health, metrics, and fitting for programs in any language. Takes a request;
//! gives JSON, text or a fitted request. Never reads a file that a request names.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde_json::json;
use trimtab_core::{Format, Memory, Policy, RecallHint, Settings, Tokens, fit};

use super::{
    Proxy, body, guard,
    keep_alive::KeepAliveMode,
    metrics::{Metric, float},
    planning::current_time,
    refusal::json_answer,
    route::percent_decoded,
};
use crate::output::group_count;

/// Answers a request below `/trimtab/`.
pub(crate) async fn answer_own_path(proxy: &Arc<Proxy>, request: Request<Incoming>) -> Response<Bytes> {
    if !guard::has_token(request.headers(), proxy.config.token.as_deref()) {
        return error_answer(
            StatusCode::UNAUTHORIZED,
            "the token is missing or wrong: send `Authorization: Bearer TOKEN`",
        );
    }
    let path = request.uri().path().trim_start_matches("/trimtab").trim_matches('/').to_owned();
    match (request.method(), path.as_str()) {
        (&Method::GET, "health") => health_answer(proxy),
        (&Method::GET, "metrics") => metrics_answer(proxy),
        (&Method::POST, "fit") => match fit_once(proxy, request).await {
            Ok(response) => response,
            Err((status, reason)) => error_answer(status, &reason),
        },
        (_, "health" | "metrics" | "fit") => error_answer(
            StatusCode::METHOD_NOT_ALLOWED,
            "health and metrics are read with GET, fit takes POST",
        ),
        _ => error_answer(
            StatusCode::NOT_FOUND,
            "there are /trimtab/health, /trimtab/metrics and /trimtab/fit",
        ),
    }
}

/// Says to somebody who opens the proxy's address what it is and what it saved. Without the token where one is demanded, only that
/// it runs.
pub(crate) fn status_page(proxy: &Proxy, headers: &HeaderMap) -> Response<Bytes> {
    let mut text = format!("trimtab {} is running.\n", env!("CARGO_PKG_VERSION"));
    if guard::has_token(headers, proxy.config.token.as_deref()) {
        let mode = match (proxy.config.off, proxy.planner.observe) {
            (true, _) => ", switched off: requests pass unchanged",
            (false, true) => ", only observed: requests pass unchanged",
            (false, false) => "",
        };
        let sums = proxy.metrics.sums();
        let less = if sums.raw > 0.0 { (sums.raw - sums.sent) / sums.raw * 100.0 } else { 0.0 };
        let (what, saved) = if sums.saved < 0.0 { ("lost", -sums.saved) } else { ("saved", sums.saved) };
        let pings = match proxy.keep_alive.mode() {
            KeepAliveMode::Off => String::new(),
            KeepAliveMode::Auto => {
                format!("pings     {} for ${:.2}\n", group_count(sums.pings), sums.ping_dollars)
            }
        };
        text += &format!(
            "\npolicy    {}{mode}\nrequests  {}\ntokens    {} came, {} were sent ({less:.1} % less)\ndollars   ${:.2} spent, about \
             ${saved:.2} {what}\n{pings}\nJSON: /trimtab/health   Prometheus: /trimtab/metrics\n",
            proxy.planner.policy.name,
            group_count(sums.conversations),
            group_count(sums.raw),
            group_count(sums.sent),
            sums.spent,
        );
    }
    let mut response = Response::new(Bytes::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn error_answer(status: StatusCode, reason: &str) -> Response<Bytes> {
    json_answer(status, &json!({"error": {"message": reason}}))
}

fn health_answer(proxy: &Proxy) -> Response<Bytes> {
    let sums = proxy.metrics.sums();
    let body = json!({
        "status": "ok",
        "version": env!("CARGO_PKG_VERSION"),
        "policy": proxy.planner.policy.name,
        "observe": proxy.planner.observe,
        "off": proxy.config.off,
        "sessions": proxy.planner.sessions.len(),
        "keep_alive": proxy.keep_alive.mode() == KeepAliveMode::Auto,
        "pings": sums.pings,
        "ping_dollars": sums.ping_dollars,
    });
    json_answer(StatusCode::OK, &body)
}

fn metrics_answer(proxy: &Proxy) -> Response<Bytes> {
    let sessions = Tokens::from_len(proxy.planner.sessions.len()).0;
    let free = Tokens::from_len(proxy.in_flight.available_permits()).0;
    let busy = Tokens::from_len(proxy.config.limits.in_flight).0.saturating_sub(free);
    let gauges = [
        ("trimtab_sessions", "Sessions that are known", float(sessions)),
        ("trimtab_in_flight", "Requests under way", float(busy)),
        (
            "trimtab_not_kept",
            "Requests and reports that could not be kept",
            float(proxy.unkept_counts().iter().map(|(_, count)| count).sum()),
        ),
    ];
    let mut response = Response::new(Bytes::from(proxy.metrics.prometheus_text(&gauges)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4"));
    response
}

/// Fits one request without memory: the body is the request, the query says how.
async fn fit_once(
    proxy: &Arc<Proxy>,
    request: Request<Incoming>,
) -> Result<Response<Bytes>, (StatusCode, String)> {
    let wrong = |reason: String| (StatusCode::BAD_REQUEST, reason);
    let settings = request_settings(proxy, request.uri().query().unwrap_or_default()).map_err(wrong)?;
    let whole = body::read(request.into_body(), &proxy.config.limits, proxy.planner.buffers())
        .await
        .map_err(|fault| (fault.status(), fault.describe(&proxy.config.limits)))?;
    let fitted =
        tokio::task::spawn_blocking(move || fit(whole, &Memory::default(), &settings, current_time()));
    let fitted =
        fitted.await.map_err(|_| (StatusCode::INTERNAL_SERVER_ERROR, "the planner failed".to_owned()))?;
    let fitted = fitted.map_err(|fault| (StatusCode::UNPROCESSABLE_ENTITY, fault.to_string()))?;
    proxy.metrics.count(Metric::Requests { endpoint: "fit", outcome: "fitted" });
    if fitted.budget.is_none() {
        return Err((
            StatusCode::UNPROCESSABLE_ENTITY,
            "no budget: the model is not known; add ?budget=TOKENS or ?model=NAME".to_owned(),
        ));
    }
    if let (Some(floor), Some(budget)) = (fitted.plan.floor(), fitted.budget) {
        let reason = format!("does not fit into {budget} tokens: {} cannot be hidden", floor.tokens);
        return Err((StatusCode::UNPROCESSABLE_ENTITY, reason));
    }
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert("x-trimtab-tokens-before", HeaderValue::from(fitted.plan.before().0));
    headers.insert("x-trimtab-tokens-sent", HeaderValue::from(fitted.plan.after().0));
    let mut response = Response::new(Bytes::from(fitted.request));
    *response.headers_mut() = headers;
    Ok(response)
}

fn request_settings(proxy: &Proxy, query: &str) -> Result<Settings, String> {
    // Nothing is kept of what is fitted here.
    let mut settings = Settings::new(proxy.planner.policy.clone())
        .with_budget(proxy.planner.budget)
        .with_recall(RecallHint::Nothing);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "budget" => {
                settings.budget = Some(Tokens(
                    value.parse().map_err(|_| format!("budget={value}: expected a number of tokens"))?,
                ));
            }
            "model" => {
                settings.model = Some(percent_decoded(value));
            }
            "policy" => {
                settings.policy = Policy::find_shipped(value).map_err(|fault| fault.to_string())?.into();
            }
            "format" => {
                let known = || Format::ALL.map(Format::name).join(", ");
                settings.format = Some(
                    Format::find_by_name(value)
                        .ok_or_else(|| format!("format={value}: formats are {}", known()))?,
                );
            }
            _ => return Err(format!("{name}: there are budget, model, policy and format")),
        }
    }
    Ok(settings)
}
