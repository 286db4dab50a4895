//! Sends a request to its provider. Takes head and body; gives the provider's answer, or why there is none. Never retries:
//! a request that was sent may have been paid for.

use http_body_util::Either;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    body::Incoming,
    header::{CONTENT_LENGTH, HeaderValue},
    http::{Extensions, request::Parts},
};

use super::{Proxy, RequestBody, headers, metrics::Metric, route::Route};

/// The head of a request, as it is sent to the provider.
#[derive(Clone)]
pub(super) struct RequestHead {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    /// Whether the provider is asked in HTTP/2.
    http2: bool,
    /// How the client spelt its headers.
    extensions: Extensions,
}

/// Why there is no answer of a provider.
pub(super) struct SendFailure {
    pub(super) status: StatusCode,
    pub(super) reason: String,
}

/// Makes the head of the request to the provider.
pub(super) fn provider_head(route: &Route, parts: &Parts) -> Result<RequestHead, SendFailure> {
    let upstream = &route.upstream;
    let wrong =
        |fault: anyhow::Error| SendFailure { status: StatusCode::BAD_REQUEST, reason: format!("{fault:#}") };
    let mut headers = parts.headers.clone();
    headers::to_upstream(&mut headers, upstream.host().map_err(wrong)?);
    let uri = upstream.uri(&route.path, parts.uri.query()).map_err(wrong)?;
    Ok(RequestHead {
        method: parts.method.clone(),
        uri,
        headers,
        http2: upstream.speaks_http2(),
        extensions: parts.extensions.clone(),
    })
}

impl Proxy {
    /// Sends a request to the provider.
    pub(super) async fn send_to_provider(
        &self,
        head: &RequestHead,
        body: RequestBody,
    ) -> Result<Response<Incoming>, SendFailure> {
        let mut headers = head.headers.clone();
        if let Either::Left(_) = &body
            && let Some(length) = hyper::body::Body::size_hint(&body).exact()
            && (length > 0 || headers.contains_key(CONTENT_LENGTH))
        {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        let client = self.client_http2.as_ref().filter(|_| head.http2).unwrap_or(&self.client);
        let mut request = Request::new(body);
        *request.method_mut() = head.method.clone();
        *request.uri_mut() = head.uri.clone();
        *request.headers_mut() = headers;
        *request.extensions_mut() = head.extensions.clone();
        match tokio::time::timeout(self.config.limits.upstream, client.request(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(fault)) => Err(self.record_unreachable(head, &fault)),
            Err(_) => {
                self.metrics.count(Metric::UpstreamErrors { kind: "timeout".to_owned() });
                let reason = format!(
                    "error of the provider: {} did not answer in {} seconds",
                    origin_of(&head.uri),
                    self.config.limits.upstream.as_secs()
                );
                Err(SendFailure { status: StatusCode::GATEWAY_TIMEOUT, reason })
            }
        }
    }

    pub(super) fn record_unreachable(
        &self,
        head: &RequestHead,
        fault: &dyn std::error::Error,
    ) -> SendFailure {
        self.metrics.count(Metric::UpstreamErrors { kind: "unreachable".to_owned() });
        let mut reason =
            format!("error of the provider: {} cannot be reached: {fault}", origin_of(&head.uri));
        let mut source = fault.source();
        while let Some(cause) = source {
            reason.push_str(": ");
            reason.push_str(&cause.to_string());
            source = cause.source();
        }
        SendFailure { status: StatusCode::BAD_GATEWAY, reason }
    }
}

fn origin_of(uri: &Uri) -> String {
    format!(
        "{}://{}",
        uri.scheme_str().unwrap_or_default(),
        uri.authority().map_or("", hyper::http::uri::Authority::as_str)
    )
}
