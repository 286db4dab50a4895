//! `trimtab stats`: how much is kept, what providers reported for it, and what was saved or lost. Takes the store; gives a few
//! lines or JSON.

mod reported;

use anyhow::Result;
use serde::Serialize;
use trimtab_store::Store;

use crate::{
    args::Stats,
    output::{Output, counted, grouped},
    store,
};
use reported::Reported;

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
    reported: Reported,
}

pub(crate) fn run(asked: &Stats, out: &mut Output) -> Result<()> {
    let store = store::open_existing(&asked.store)?;
    let disk = store.disk()?;
    let sessions = store.sessions()?;
    let mut reported = Reported::default();
    for session in &sessions {
        reported.add(&store.requests(session.id)?);
    }
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
        reported,
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
        "{}, {} of {}",
        count(report.sessions, "session", "sessions"),
        count(report.requests, "request", "requests"),
        size(report.request_bytes)
    ))?;
    out.line(format_args!(
        "{} of {}",
        count(report.blocks, "different block", "different blocks"),
        size(report.block_bytes)
    ))?;
    out.line(format_args!(
        "{} tokens came, {} were sent: {} % saved",
        grouped(report.tokens_before),
        grouped(report.tokens_after),
        store::saved(report.tokens_before, report.tokens_after)
    ))?;
    words(&report.reported, report.requests).into_iter().try_for_each(|line| out.line(line))
}

fn count(count: u64, one: &str, several: &str) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), one, several)
}

/// Says what providers reported.
fn words(reported: &Reported, requests: u64) -> Vec<String> {
    if reported.requests == 0 {
        return vec!["no provider's usage is known: requests through `trimtab proxy` bring it".to_owned()];
    }
    let mut lines = vec![
        format!(
            "reported for {} of {} requests: {} input tokens ({} uncached, {} written to the cache, {} read from it), {} output",
            grouped(reported.requests),
            grouped(requests),
            grouped(reported.input()),
            grouped(reported.uncached),
            grouped(reported.cache_write),
            grouped(reported.cache_read),
            grouped(reported.output)
        ),
        format!(
            "${:.4} spent, about ${:.4} {}; {} requests cost more than they would have untouched",
            reported.dollars_spent,
            reported.dollars_saved.abs(),
            if reported.dollars_saved < 0.0 { "lost" } else { "saved" },
            grouped(reported.requests_dearer)
        ),
    ];
    if reported.requests_without_price > 0 {
        lines.push(format!(
            "{} requests are of models whose prices are not known, and are not in the dollars",
            grouped(reported.requests_without_price)
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_called_a_loss() {
        let reported = Reported {
            requests: 2,
            requests_without_price: 1,
            uncached: 5,
            cache_read: 1000,
            cache_write: 20,
            output: 7,
            dollars_spent: 0.5,
            dollars_saved: -0.25,
            requests_dearer: 1,
        };
        assert_eq!(
            words(&reported, 3),
            [
                "reported for 2 of 3 requests: 1,025 input tokens (5 uncached, 20 written to the cache, 1,000 read from it), 7 output",
                "$0.5000 spent, about $0.2500 lost; 1 requests cost more than they would have untouched",
                "1 requests are of models whose prices are not known, and are not in the dollars",
            ]
        );
        assert_eq!(words(&Reported::default(), 0).len(), 1);
    }
}
