//! Answers that the proxy gives itself. Takes what is wrong and whose interface was spoken; gives an error in that
//! provider's shape, so that every client shows the reason. Never quotes the request.

use bytes::Bytes;
use hyper::{Response, StatusCode, header::CONTENT_TYPE};
use serde_json::json;

use super::route::Provider;

/// Returns an error in a provider's shape.
pub(crate) fn refusal_response(provider: Provider, status: StatusCode, reason: &str) -> Response<Bytes> {
    let message = format!("trimtab: {reason}");
    let body = match provider {
        Provider::Anthropic => {
            let kind = match status {
                StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
                StatusCode::FORBIDDEN => "permission_error",
                StatusCode::NOT_FOUND => "not_found_error",
                StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
                status if status.is_server_error() => "api_error",
                _ => "invalid_request_error",
            };
            json!({"type": "error", "error": {"type": kind, "message": message}})
        }
        Provider::OpenAi => {
            let kind = if status.is_server_error() { "server_error" } else { "invalid_request_error" };
            json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
        }
        Provider::Gemini => {
            let name = match status {
                StatusCode::FORBIDDEN => "PERMISSION_DENIED",
                StatusCode::NOT_FOUND => "NOT_FOUND",
                status if status.is_server_error() => "UNAVAILABLE",
                _ => "INVALID_ARGUMENT",
            };
            json!({"error": {"code": status.as_u16(), "message": message, "status": name}})
        }
    };
    json_answer(status, &body)
}

/// Returns an answer that is JSON.
pub(crate) fn json_answer(status: StatusCode, body: &serde_json::Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
    response
}
