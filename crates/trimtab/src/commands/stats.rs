//! `trimtab stats`: how much is kept, what providers reported for it, and what was saved or lost. Takes the store; gives a few
//! lines or JSON.

pub(crate) mod reported;

use anyhow::Result;
use serde::Serialize;
use trimtab_core::SessionAccount;
use trimtab_store::Store;

use crate::{
    accounts::{account_of_requests, describe_account},
    args::StatsArgs,
    heads::HeadTotals,
    output::{Output, count_with_noun, group_thousands, pad_text},
    store,
};
use reported::UsageTotals;

/// How many parts of the head are listed.
const HEAD_PARTS: usize = 10;

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
    head: HeadTotals,
}

pub(crate) fn run(asked: &StatsArgs, out: &mut Output) -> Result<()> {
    let store = store::open_existing(&asked.store)?;
    let disk = store.disk_usage()?;
    let sessions = store.sessions()?;
    let mut account = SessionAccount::default();
    for session in &sessions {
        account.add_account(&account_of_requests(&store.requests(session.id)?));
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
        reported: UsageTotals::from(&account),
        head: HeadTotals::measure(&store, &sessions)?,
    };
    if asked.json {
        return out.write_json(&report);
    }
    let size = store::format_size;
    out.write_line(format_args!(
        "{}: {}, of which {} for the search index",
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
        "{} tokens received, {} sent: {} % less",
        group_thousands(report.tokens_before),
        group_thousands(report.tokens_after),
        store::percent_saved(report.tokens_before, report.tokens_after)
    ))?;
    describe_usage(&account, report.requests).into_iter().try_for_each(|line| out.write_sentence(line))?;
    describe_heads(&report.head).into_iter().try_for_each(|line| out.write_line(line))
}

fn count(count: u64, one: &str, several: &str) -> String {
    count_with_noun(usize::try_from(count).unwrap_or(usize::MAX), one, several)
}

/// Says what the beginning of every request takes and costs.
fn describe_heads(head: &HeadTotals) -> Vec<String> {
    if head.sessions == 0 {
        return Vec::new();
    }
    let sessions = count_with_noun(head.sessions, "session", "sessions");
    let cost = |dollars: f64| if dollars > 0.0 { format!(", ${dollars:.4}") } else { String::new() };
    let paid = if head.dollars > 0.0 { format!(" cost ${:.4}", head.dollars) } else { String::new() };
    let mut lines = vec![format!("tools and system prompt of the newest {sessions}{paid}:")];
    for (name, part) in head.parts_by_tokens().into_iter().take(HEAD_PARTS) {
        let calls = count(part.calls, "call", "calls");
        let tokens = group_thousands(part.tokens.0);
        let calls = if name == "system prompt" { String::new() } else { format!(", {calls}") };
        lines.push(format!(
            "  {} {tokens:>8} tokens in a request{}{calls}",
            pad_text(name, 32),
            cost(part.dollars)
        ));
    }
    if head.deferring_saves > 0.0 {
        lines.push(format!(
            "  leaving out tools that no session of their project called would have saved ${:.4}",
            head.deferring_saves
        ));
    }
    lines
}

/// Says what providers reported.
fn describe_usage(account: &SessionAccount, requests: u64) -> Vec<String> {
    let usage = account.usage;
    if account.requests == 0 {
        return vec![
            "no provider reported usage: that comes with requests through `trimtab wrap` or `trimtab proxy`"
                .to_owned(),
        ];
    }
    let mut lines = vec![format!(
        "reported for {} of {} requests: {} input tokens ({} uncached, {} written to the cache, {} read from it), {} output",
        group_thousands(account.requests),
        group_thousands(requests),
        group_thousands(usage.total_input()),
        group_thousands(usage.input),
        group_thousands(usage.cache_write),
        group_thousands(usage.cache_read),
        group_thousands(usage.output)
    )];
    lines.extend(describe_account(account).map(|words| {
        format!("{words}; {} cost more than untouched", count(account.requests_dearer, "request", "requests"))
    }));
    if account.requests_without_price > 0 {
        lines.push(format!(
            "{} of a model without a known price: the dollars leave that out",
            count(account.requests_without_price, "request is", "requests are")
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use trimtab_core::{Usage, find_model};

    use super::*;

    #[test]
    fn a_loss_is_called_a_loss() {
        let mut account = SessionAccount::default();
        let model = find_model("claude-opus-5").expect("a model");
        // 10,000 tokens written at 6.25 dollars a million; untouched, they would have been read at 0.5.
        let usage = Usage { cache_write: 10_000, output: 7, ..Usage::default() };
        account.enter_usages(
            Some(&model),
            usage,
            Usage { cache_read: 10_000, output: 7, ..Usage::default() },
        );
        account.enter_usages(None, Usage { input: 5, ..Usage::default() }, Usage::default());
        assert_eq!(
            describe_usage(&account, 3),
            [
                "reported for 2 of 3 requests: 10,005 input tokens (5 uncached, 10,000 written to the cache, 0 read from it), 7 output",
                "$0.0627 spent, about $0.0052 untouched: $0.0575 lost (hiding $-0.0575); 1 request cost more than untouched",
                "1 request is of a model without a known price: the dollars leave that out",
            ]
        );
        assert_eq!(describe_usage(&SessionAccount::default(), 0).len(), 1);
    }
}
