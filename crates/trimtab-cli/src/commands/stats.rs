//! `trimtab stats`: how much is kept, and what it saved. Takes the store; gives a few lines or JSON.

use anyhow::Result;
use serde::Serialize;
use trimtab_store::Store;

use crate::{
    args::Stats,
    output::{Output, grouped},
    store,
};

#[derive(Serialize)]
struct Report {
    path: String,
    bytes: u64,
    index_bytes: u64,
    sessions: u64,
    requests: u64,
    request_bytes: u64,
    blocks: u64,
    block_bytes: u64,
    tokens_before: u64,
    tokens_after: u64,
}

pub(crate) fn run(asked: &Stats, out: &mut Output) -> Result<()> {
    let store = store::open_existing(&asked.store)?;
    let disk = store.disk()?;
    let sessions = store.sessions()?;
    let report = Report {
        path: store.path().display().to_string(),
        bytes: disk.bytes,
        index_bytes: disk.index_bytes,
        sessions: disk.sessions,
        requests: disk.requests,
        request_bytes: disk.request_bytes,
        blocks: disk.blocks,
        block_bytes: disk.block_bytes,
        tokens_before: sessions.iter().map(|session| session.tokens_before).sum(),
        tokens_after: sessions.iter().map(|session| session.tokens_after).sum(),
    };
    if asked.json {
        return out.json(&report);
    }
    let size = store::size;
    out.line(format_args!(
        "{}: {}, {} of it for searching",
        report.path,
        size(report.bytes),
        size(report.index_bytes)
    ))?;
    out.line(format_args!(
        "{} sessions, {} requests of {}",
        grouped(report.sessions),
        grouped(report.requests),
        size(report.request_bytes)
    ))?;
    out.line(format_args!("{} different blocks of {}", grouped(report.blocks), size(report.block_bytes)))?;
    out.line(format_args!(
        "{} tokens came, {} were sent: {} % saved",
        grouped(report.tokens_before),
        grouped(report.tokens_after),
        store::saved(report.tokens_before, report.tokens_after)
    ))
}
