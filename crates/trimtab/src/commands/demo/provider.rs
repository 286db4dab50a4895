//! [`DemoProvider`]: the provider of the demo, on a port of this machine. Takes the requests that the proxy forwards; answers each with
//! what the model said when the session was recorded, and with the usage that a provider's cache would report. Calls no model.

use std::{
    collections::VecDeque,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, StatusCode, body::Incoming, header::CONTENT_TYPE, server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use trimtab_core::{Format, Millis, Model, Usage, parse_as};
use trimtab_replay::CacheSimulation;

/// A provider that is running.
pub(super) struct DemoProvider {
    pub(super) address: SocketAddr,
    state: Arc<Mutex<ProviderState>>,
}

struct ProviderState {
    /// What it still has to say, and when it is asked for it.
    answers: VecDeque<(Millis, Value)>,
    cache: CacheSimulation,
    reported: Vec<Usage>,
}

impl DemoProvider {
    /// Starts a provider that gives these answers, one after the other, at these times.
    ///
    /// # Errors
    /// Says that no port is free.
    pub(super) async fn start(answers: VecDeque<(Millis, Value)>, model: &Model) -> Result<DemoProvider> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let cache = CacheSimulation::new(model);
        let state = Arc::new(Mutex::new(ProviderState { answers, cache, reported: Vec::new() }));
        tokio::spawn(serve(listener, Arc::clone(&state)));
        Ok(DemoProvider { address, state })
    }

    /// Returns what was reported for every request.
    pub(super) fn reported_usage(&self) -> Vec<Usage> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).reported.clone()
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<ProviderState>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer_request(Arc::clone(&state), request));
            // A proxy that has ended its connections is no fault.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer_request(
    state: Arc<Mutex<ProviderState>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.map(|body| body.to_bytes().to_vec());
    let said = body.ok().and_then(|body| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.next_answer(body)
    });
    let (status, body) = match said {
        Some(body) => (StatusCode::OK, body),
        None => (
            StatusCode::BAD_REQUEST,
            json!({"type": "error", "error": {"message": "not a request of the demo"}}),
        ),
    };
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
    Ok(response)
}

impl ProviderState {
    fn next_answer(&mut self, body: Vec<u8>) -> Option<Value> {
        let history = parse_as(body, Format::Anthropic).ok()?;
        let (at, content) = self.answers.pop_front()?;
        let usage = self.cache.usage_of_request(&history, at);
        self.reported.push(usage);
        Some(json!({"type": "message", "role": "assistant", "content": content, "usage": {
            "input_tokens": usage.input,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write,
            "output_tokens": 1,
        }}))
    }
}
