//! Conversations for the tests: requests as clients send them, and what a caller does with a store.

#![allow(
    dead_code,
    clippy::expect_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    reason = "each test file uses its own part of this"
)]

use trimtab_core::{FittedRequest, Memory, Millis, Policy, Settings, Tokens, fit, parse};
use trimtab_store::{
    Append, Appended, RequestId, SearchHit, SearchQuery, SearchWithin, Secrets, SessionId, SessionLabel,
    Store, StoreError,
};

/// What is said in a conversation.
#[derive(Debug, Clone)]
pub(crate) enum Said {
    /// The user says something.
    User(String),
    /// The model says something.
    Model(String),
    /// The model calls a tool, which gives this.
    Tool(String, String),
}

pub(crate) fn user(text: &str) -> Said {
    Said::User(text.to_owned())
}

pub(crate) fn model(text: &str) -> Said {
    Said::Model(text.to_owned())
}

pub(crate) fn tool(command: &str, result: &str) -> Said {
    Said::Tool(command.to_owned(), result.to_owned())
}

/// Writes a request in the format of Chat Completions.
pub(crate) fn request(said: &[Said]) -> Vec<u8> {
    let mut messages = vec![serde_json::json!({"role": "system", "content": "You write code."})];
    for (index, one) in said.iter().enumerate() {
        match one {
            Said::User(text) => messages.push(serde_json::json!({"role": "user", "content": text})),
            Said::Model(text) => messages.push(serde_json::json!({"role": "assistant", "content": text})),
            Said::Tool(command, result) => {
                let id = format!("call_{index}");
                let arguments = serde_json::json!({"command": command}).to_string();
                let call = serde_json::json!({"id": id, "type": "function",
                    "function": {"name": "shell", "arguments": arguments}});
                messages
                    .push(serde_json::json!({"role": "assistant", "content": null, "tool_calls": [call]}));
                messages.push(serde_json::json!({"role": "tool", "tool_call_id": id, "content": result}));
            }
        }
    }
    serde_json::json!({"model": "gpt-5", "messages": messages, "stream": true}).to_string().into_bytes()
}

/// What a caller hides with.
pub(crate) fn settings(policy: &str, budget: u64) -> Settings {
    let policy = Policy::find_shipped(policy).expect("a policy");
    Settings::new(policy).with_budget(Tokens(budget))
}

/// A request that is in the store.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) session: SessionId,
    pub(crate) request: RequestId,
    pub(crate) fitted: FittedRequest,
}

/// Does what a proxy does with a request that nothing is hidden of.
pub(crate) fn keep(store: &dyn Store, said: &[Said], at: i64) -> Kept {
    keep_named(store, said, at, None)
}

pub(crate) fn keep_named(store: &dyn Store, said: &[Said], at: i64, name: Option<&str>) -> Kept {
    fit_and_keep(store, request(said), &settings("none", 1_000_000), at, name).expect("the store works")
}

/// Does what a proxy does with a request: looks it up, fits it, keeps it.
pub(crate) fn fit_and_keep(
    store: &dyn Store,
    request: Vec<u8>,
    settings: &Settings,
    at: i64,
    name: Option<&str>,
) -> Result<Kept, StoreError> {
    fit_and_keep_as(store, request, settings, at, SessionLabel::with_name(name))
}

/// The same for a conversation of a project.
pub(crate) fn fit_and_keep_as(
    store: &dyn Store,
    request: Vec<u8>,
    settings: &Settings,
    at: i64,
    label: SessionLabel<'_>,
) -> Result<Kept, StoreError> {
    let history = parse(request.clone()).expect("a request");
    let mut known = store.recognize(&history, label)?;
    loop {
        let fitted = fit(request.clone(), &known.memory, settings, Millis(at)).expect("a plan");
        match store.append_request(&Append::new(&fitted.history, &fitted.plan, &known, Millis(at)))? {
            Appended::Stored { session, request } => return Ok(Kept { session, request, fitted }),
            Appended::SaidBefore { verdicts, seen } => {
                verdicts.into_iter().for_each(|(hash, verdict)| known.memory.remember(hash, verdict));
                known.seen = seen;
            }
        }
    }
}

/// Searches everything, with nothing covered.
pub(crate) fn search(store: &dyn Store, words: &str, most: usize) -> Result<Vec<SearchHit>, StoreError> {
    store.search(&SearchQuery { words, most, within: SearchWithin::Everything, secrets: &Secrets::none() })
}

/// A text that is long enough to be worth hiding, and different for every number.
pub(crate) fn long(number: usize) -> String {
    (0..120)
        .map(|line| format!("{line}: output {number} of the build, module {}\n", line * 7 + number))
        .collect()
}

/// A conversation of one question and several tool calls.
pub(crate) fn working(steps: usize) -> Vec<Said> {
    let mut said = vec![user("Fix the build.")];
    said.extend((0..steps).map(|step| tool(&format!("make {step}"), &long(step))));
    said
}

/// What was remembered of a request's blocks, in the order of their hashes.
pub(crate) fn remembered(memory: &Memory) -> Vec<String> {
    let mut verdicts: Vec<String> =
        memory.verdicts().map(|(hash, verdict)| format!("{hash:?} {verdict:?}")).collect();
    verdicts.sort();
    verdicts
}
