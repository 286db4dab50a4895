//! The proxy between a scripted provider and a client that sees every byte.

#![allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

#[path = "proxy/cache.rs"]
mod cache;
#[path = "../../trimtab-core/tests/checker/mod.rs"]
#[allow(dead_code, reason = "the laws use all of it, this only a part")]
mod checker;
mod common;
#[path = "proxy/conversations.rs"]
mod conversations;
#[path = "proxy/fitted.rs"]
mod fitted;
#[path = "proxy/folds.rs"]
mod folds;
#[path = "proxy/guarded.rs"]
mod guarded;
#[path = "proxy/http2.rs"]
mod http2;
#[path = "proxy/intents.rs"]
mod intents;
#[path = "proxy/markers.rs"]
mod markers;
#[path = "proxy/pinged.rs"]
mod pinged;
#[path = "proxy/recalls.rs"]
mod recalls;
#[path = "proxy/refused.rs"]
mod refused;
#[path = "proxy/routed.rs"]
mod routed;
#[path = "proxy/running.rs"]
mod running;
#[path = "proxy/stored.rs"]
mod stored;
#[path = "proxy/tls.rs"]
mod tls;
#[path = "proxy/told.rs"]
mod told;
#[path = "proxy/transparent.rs"]
mod transparent;
#[path = "proxy/unmarked.rs"]
mod unmarked;
#[path = "proxy/untouched.rs"]
mod untouched;
#[path = "proxy/upstream.rs"]
mod upstream;
#[path = "proxy/wishes.rs"]
mod wishes;
#[path = "proxy/wrapped.rs"]
mod wrapped;

use serde_json::json;
use upstream::{Came, Script, Upstream};

const STREAM: &str = "Content-Type: text/event-stream; charset=utf-8";
const GEMINI: &str = "/v1beta/models/gemini-2.5-pro:generateContent?key=k";
/// A budget that a conversation of thirty results does not fit into.
const TIGHT: [&str; 6] = ["--policy", "ladder", "--budget", "30000", "--fold", "off"];
/// Hides as far as its low-water mark, so that the next request finds room.
const STEADY: [&str; 4] = ["--policy", "steady", "--budget", "40000"];
/// Bytes that may follow the list of messages.
const BEHIND: usize = 400;

fn ok(body: &str) -> Script {
    Script::Whole("200 OK", vec!["Content-Type: application/json".to_owned()], body.as_bytes().to_vec())
}

fn refuse(status: &'static str, message: &str) -> Script {
    let body =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}}).to_string();
    Script::Whole(status, vec!["Content-Type: application/json".to_owned()], body.into_bytes())
}

fn good() -> Upstream {
    Upstream::start(|_, _| {
        ok(r#"{"usage":{"input_tokens":1000,"cache_read_input_tokens":500,"output_tokens":7}}"#)
    })
}

fn said(came: &Came) -> &str {
    came.header("x-trimtab").unwrap_or("nothing")
}
