//! `trimtab stats`: how much is kept, what providers reported for it, and what was saved or lost. Takes the store; gives a few
//! lines or JSON.

pub(crate) mod reported;

use anyhow::Result;
use serde::Serialize;
use trimtab_store::Store;

use crate::{
    args::StatsArgs,
    output::{Output, count_with_noun, group_thousands},
    store,
};
use reported::UsageTotals;

#[derive(Serialize)]
struct StatsReport {
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
    reported: UsageTotals,
}

pub(crate) fn run(asked: &StatsArgs, out: &mut Output) -> Result<()> {
    let store = store::open_existing(&asked.store)?;
    let disk = store.disk_usage()?;
    let sessions = store.sessions()?;
    let mut reported = UsageTotals::default();
    for session in &sessions {
        reported.add_session(&store.requests(session.id)?);
    }
    let report = StatsReport {
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
        return out.write_json(&report);
    }
    let size = store::format_size;
    out.write_line(format_args!(
        "{}: {}, {} of it for searching",
        report.path,
        size(report.bytes),
        size(report.index_bytes)
    ))?;
    out.write_line(format_args!(
        "{}, {} of {}",
        count(report.sessions, "session", "sessions"),
        count(report.requests, "request", "requests"),
        size(report.request_bytes)
    ))?;
    out.write_line(format_args!(
        "{} of {}",
        count(report.blocks, "different block", "different blocks"),
        size(report.block_bytes)
    ))?;
    out.write_line(format_args!(
        "{} tokens came, {} were sent: {} % saved",
        group_thousands(report.tokens_before),
        group_thousands(report.tokens_after),
        store::percent_saved(report.tokens_before, report.tokens_after)
    ))?;
    describe_usage(&report.reported, report.requests).into_iter().try_for_each(|line| out.write_line(line))
}

fn count(count: u64, one: &str, several: &str) -> String {
    count_with_noun(usize::try_from(count).unwrap_or(usize::MAX), one, several)
}

/// Says what providers reported.
fn describe_usage(reported: &UsageTotals, requests: u64) -> Vec<String> {
    if reported.requests == 0 {
        return vec!["no provider's usage is known: requests through `trimtab proxy` bring it".to_owned()];
    }
    let mut lines = vec![
        format!(
            "reported for {} of {} requests: {} input tokens ({} uncached, {} written to the cache, {} read from it), {} output",
            group_thousands(reported.requests),
            group_thousands(requests),
            group_thousands(reported.total_input()),
            group_thousands(reported.uncached),
            group_thousands(reported.cache_write),
            group_thousands(reported.cache_read),
            group_thousands(reported.output)
        ),
        format!(
            "${:.4} spent, about ${:.4} {}; {} requests cost more than they would have untouched",
            reported.dollars_spent,
            reported.dollars_saved.abs(),
            if reported.dollars_saved < 0.0 { "lost" } else { "saved" },
            group_thousands(reported.requests_dearer)
        ),
    ];
    if reported.requests_without_price > 0 {
        lines.push(format!(
            "{} requests are of models whose prices are not known, and are not in the dollars",
            group_thousands(reported.requests_without_price)
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_called_a_loss() {
        let reported = UsageTotals {
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
            describe_usage(&reported, 3),
            [
                "reported for 2 of 3 requests: 1,025 input tokens (5 uncached, 20 written to the cache, 1,000 read from it), 7 output",
                "$0.5000 spent, about $0.2500 lost; 1 requests cost more than they would have untouched",
                "1 requests are of models whose prices are not known, and are not in the dollars",
            ]
        );
        assert_eq!(describe_usage(&UsageTotals::default(), 0).len(), 1);
    }
}
