//! The live page: every page of it, whose conversations it shows, who may change something, and that nothing from a conversation is
//! ever markup. The browser's side is in `scripts/clients/page`.

#![cfg(unix)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;
#[path = "proxy/conversations.rs"]
#[allow(dead_code, reason = "the proxy's tests use all of it")]
mod conversations;
#[path = "proxy/running.rs"]
#[allow(dead_code, reason = "the proxy's tests use all of it")]
mod running;
#[path = "proxy/upstream.rs"]
#[allow(dead_code, reason = "the proxy's tests use all of it")]
mod upstream;

#[path = "page/server.rs"]
mod server;

#[path = "page/many.rs"]
mod many;
#[path = "page/pages.rs"]
mod pages;
#[path = "page/proxied.rs"]
mod proxied;
#[path = "page/scoped.rs"]
mod scoped;
