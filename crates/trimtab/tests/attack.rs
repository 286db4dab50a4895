//! Hostile input from every side, on loopback: forms of HTTP, bodies, providers, kills, disks, files, clocks and very many
//! sessions. The proxy must stay up, forward a request or answer an error that a client understands, lose no body, keep its
//! memory bounded, and say what happened.
//!
//! Each part runs a small share of its inputs with the other tests, and all of them in `./scripts/test long attack`, which
//! prints the counts.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

#[path = "attack/bodies.rs"]
mod bodies;
#[path = "attack/clock.rs"]
mod clock;
mod common;
#[path = "proxy/conversations.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod conversations;
#[path = "attack/disk.rs"]
mod disk;
#[path = "attack/http.rs"]
mod http;
#[path = "attack/kills.rs"]
mod kills;
#[path = "attack/originals.rs"]
mod originals;
#[path = "attack/providers.rs"]
mod providers;
#[path = "proxy/running.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod running;
#[path = "attack/sessions.rs"]
mod sessions;
#[path = "attack/stores.rs"]
mod stores;
#[path = "attack/tally.rs"]
mod tally;
#[path = "proxy/upstream.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod upstream;

use upstream::{Script, Upstream};

/// A budget that makes the proxy hide most of a conversation, without summaries.
const TIGHT: [&str; 6] = ["--policy", "ladder", "--budget", "6000", "--fold", "off"];

fn ok() -> Script {
    let body = br#"{"usage":{"input_tokens":1000,"output_tokens":7}}"#.to_vec();
    Script::Whole("200 OK", vec!["Content-Type: application/json".to_owned()], body)
}

/// A provider that takes everything.
fn good() -> Upstream {
    Upstream::start(|_, _| ok())
}
