//! One segment played through a proxy. Takes the segment, a model and when the proxy is killed; gives every request that the
//! provider received, what it found wrong, and what it charged. Never tells the proxy what the provider knows.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use trimtab_core::{Format, Millis, Model, Role, Tokens, Usage, parse_as, wire::request_of};
use trimtab_replay::{CacheSimulation, Segment};

use crate::{
    checker,
    running::Running,
    upstream::{Came, Script, Upstream},
};

/// What is played.
pub(crate) struct Part<'a> {
    pub(crate) segment: &'a Segment,
    pub(crate) model: &'a Model,
    pub(crate) budget: Option<Tokens>,
    /// Where the proxy keeps the conversation. A new one each time, in the same place: notes name it.
    pub(crate) store: &'a Path,
}

/// When the proxy is killed and started again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kill {
    Never,
    /// After so many requests.
    After(usize),
}

/// What came of it.
pub(crate) struct Driven {
    /// The requests as the provider received them.
    pub(crate) sent: Vec<Vec<u8>>,
    /// What the provider refused.
    pub(crate) faults: Vec<String>,
    pub(crate) tokens: f64,
    pub(crate) dollars: f64,
    pub(crate) raw_tokens: f64,
    pub(crate) raw_dollars: f64,
    /// Share of the reported input that was read from the cache, as the proxy's metrics say.
    pub(crate) cache_read: f64,
    /// How long the proxy delayed a request, at the mean.
    pub(crate) overhead_ms: f64,
}

/// The provider's side of the play.
struct Stage {
    format: Format,
    /// Every request as the agent sends it, and the recorded turn that answers it.
    turns: Vec<(Vec<u8>, Value)>,
    cache: CacheSimulation,
    reported: Vec<Usage>,
    faults: Vec<String>,
}

/// Says when a request is made, by the provider's clock: one after the other, as they are here.
pub(crate) fn at(number: usize) -> Millis {
    Millis(100 * i64::try_from(number).unwrap_or(i64::MAX / 100))
}

/// Plays a segment.
pub(crate) fn drive(part: &Part<'_>, kill: Kill) -> Driven {
    let format = part.segment.history.format();
    let turns = turns(part);
    let requests: Vec<Vec<u8>> = turns.iter().map(|(request, _)| request.clone()).collect();
    let cache = CacheSimulation::new(part.model);
    let stage =
        Arc::new(Mutex::new(Stage { format, turns, cache, reported: Vec::new(), faults: Vec::new() }));
    let upstream = Upstream::start({
        let stage = Arc::clone(&stage);
        move |number, came| stage.lock().expect("no panic").answer(number, came)
    });
    let folder = part.store.parent().expect("a folder");
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).expect("a folder");
    let mut flags = vec!["--store".to_owned(), part.store.to_str().expect("a path").to_owned()];
    if let Some(budget) = part.budget {
        flags.extend(["--budget".to_owned(), budget.to_string()]);
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let start = || Running::with(&upstream, &flags, &[("TRIMTAB_NO_STORE", "0")]);
    let mut proxy = start();
    let path = path_of(format, &part.model.name);
    for (number, request) in requests.iter().enumerate() {
        if kill == Kill::After(number) {
            // A kill, not a request to stop: nothing is finished or put in order.
            proxy.child.kill().expect("it runs");
            proxy.child.wait().expect("it ends");
            proxy = start();
        }
        let answer = proxy.post(&path, request);
        assert!(answer.head[0].contains("200"), "request {number}: {:?}\n{}", answer.head, proxy.words());
    }
    let cache_read = proxy.figure("trimtab_cache_hit_ratio");
    let overhead_ms =
        proxy.figure("trimtab_overhead_seconds_sum") / proxy.figure("trimtab_overhead_seconds_count") * 1e3;
    let stage = stage.lock().expect("no panic");
    let mut raw = CacheSimulation::new(part.model);
    let untouched: Vec<Usage> = (0..)
        .zip(&requests)
        .map(|(number, request)| {
            raw.usage_of_request(&parse_as(request.clone(), format).expect("a request"), at(number))
        })
        .collect();
    let tokens =
        |usage: &[Usage]| usage.iter().map(|usage| Tokens(usage.total_input())).sum::<Tokens>().to_float();
    let dollars = |usage: &[Usage]| usage.iter().map(|usage| part.model.input_cost(*usage)).sum();
    Driven {
        sent: upstream.came().into_iter().map(|came| came.body).collect(),
        faults: stage.faults.clone(),
        tokens: tokens(&stage.reported),
        dollars: dollars(&stage.reported),
        raw_tokens: tokens(&untouched),
        raw_dollars: dollars(&untouched),
        cache_read,
        overhead_ms,
    }
}

impl Stage {
    fn answer(&mut self, number: usize, came: &Came) -> Script {
        let (input, said) = &self.turns[number];
        let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).expect("JSON");
        let faults = checker::new_faults(self.format.name(), &json(input), &json(&came.body));
        let headers = vec!["Content-Type: application/json".to_owned()];
        if !faults.is_empty() {
            let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": faults.join("; ")}});
            self.faults.extend(faults);
            return Script::Whole("400 Bad Request", headers, error.to_string().into_bytes());
        }
        let history = parse_as(came.body.clone(), self.format).expect("a request");
        let usage = self.cache.usage_of_request(&history, at(number));
        self.reported.push(usage);
        Script::Whole("200 OK", headers, reported(self.format, said, usage).to_string().into_bytes())
    }
}

/// Returns the requests of a segment with the recorded turns that follow them.
fn turns(part: &Part<'_>) -> Vec<(Vec<u8>, Value)> {
    let history = &part.segment.history;
    let points = &part.segment.points;
    let said = |number: usize| {
        let from = points[number].messages;
        let to = points.get(number + 1).map_or(history.messages().len(), |next| next.messages);
        let new = history.messages().get(from..to).unwrap_or_default().iter();
        let answers = new.filter(|entry| entry.role == Role::Assistant);
        let values =
            answers.filter_map(|entry| serde_json::from_slice(entry.span.bytes_in(history.bytes())).ok());
        Value::Array(values.collect())
    };
    (0..points.len())
        .map(|number| (with_model(request_of(history, points[number].messages), part), said(number)))
        .collect()
}

/// Names the model where the recording does not.
fn with_model(request: Vec<u8>, part: &Part<'_>) -> Vec<u8> {
    let mut value: serde_json::Map<String, Value> = serde_json::from_slice(&request).expect("an object");
    if part.segment.history.format() == Format::Gemini {
        return request;
    }
    if value.remove("model").is_none() {
        let head = format!("{{\"model\":{},", Value::from(part.model.name.clone()));
        return [head.as_bytes(), &request[1..]].concat();
    }
    let model = part.segment.history.field("model").expect("a model");
    let text = String::from_utf8(request).expect("text");
    let model = String::from_utf8_lossy(model).into_owned();
    text.replacen(&model, &Value::from(part.model.name.clone()).to_string(), 1).into_bytes()
}

fn path_of(format: Format, model: &str) -> String {
    match format {
        Format::Anthropic => "/v1/messages".to_owned(),
        Format::Chat => "/v1/chat/completions".to_owned(),
        Format::Responses => "/v1/responses".to_owned(),
        Format::Gemini => format!("/v1beta/models/{model}:generateContent"),
    }
}

/// Returns an answer as the provider spells it, with what it charges.
fn reported(format: Format, said: &Value, usage: Usage) -> Value {
    let all = usage.total_input();
    match format {
        Format::Anthropic => json!({"type": "message", "role": "assistant", "content": said, "usage": {
            "input_tokens": usage.input, "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write, "output_tokens": 1}}),
        Format::Chat => json!({"choices": said, "usage": {"prompt_tokens": all, "completion_tokens": 1,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read}}}),
        Format::Responses => json!({"output": said, "usage": {"input_tokens": all, "output_tokens": 1,
            "input_tokens_details": {"cached_tokens": usage.cache_read}}}),
        Format::Gemini => json!({"candidates": said, "usageMetadata": {"promptTokenCount": all,
            "cachedContentTokenCount": usage.cache_read, "candidatesTokenCount": 1}}),
    }
}
