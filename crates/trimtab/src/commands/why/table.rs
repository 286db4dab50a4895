//! What `trimtab why` prints. Takes the report; gives a line for each request that missed something, sums by project and by reason, and
//! one sentence at the end. Never prints a text of a client as it is: the output escapes it.

use anstyle::Style;
use anyhow::Result;
use trimtab_core::{
    Millis,
    misses::{CacheMiss, Certainty, MissReason, MissSummary},
};
use trimtab_replay::{ExplainedRequest, ratio};

use super::{ProjectMisses, SessionMisses, WhyReport};
use crate::{
    output::{
        Output, count_with_noun, end_of, group_thousands, on_one_line, pad_text, wrap_text, wrapped_at,
    },
    store::format_minute,
};

const BOLD: Style = Style::new().bold();

/// Columns of a line where the terminal is wider.
const WIDTH: usize = 110;

/// The fewest columns of a reason beside the figures; where there are fewer, it gets its own lines below them.
const REASON_WIDTH: usize = 40;

/// How far such lines are indented.
const REASON_INDENT: usize = 9;

/// Columns of the names of sessions, projects and reasons.
const NAME_WIDTH: usize = 36;

pub(super) fn print_report(report: &WhyReport, most: usize, out: &mut Output) -> Result<()> {
    for bad in &report.unreadable {
        for line in wrap_text(&format!("unreadable: {}: {}", bad.path, bad.reason), 74) {
            out.write_line(line.trim_start())?;
        }
    }
    if let [session] = report.sessions.as_slice() {
        print_session(session, most, out)?;
    } else {
        print_many(report, most, out)?;
    }
    out.write_sentence(describe_summary(&report.summary))
}

/// Prints every miss of one session, in the order in which they happened.
fn print_session(session: &SessionMisses, most: usize, out: &mut Output) -> Result<()> {
    let rows = largest_misses(std::slice::from_ref(session), most);
    if rows.is_empty() {
        return Ok(());
    }
    print_head(out)?;
    rows.iter().try_for_each(|(_, row)| print_miss(row, out))?;
    print_left_out(session.misses.len(), rows.len(), out)?;
    out.write_line("")
}

/// Prints the largest misses of many sessions, and sums by project and by reason.
fn print_many(report: &WhyReport, most: usize, out: &mut Output) -> Result<()> {
    let rows = largest_misses(&report.sessions, most);
    if !rows.is_empty() {
        print_head(out)?;
        let mut before = "";
        for (session, row) in &rows {
            if session.name != before {
                out.write_line(format_args!(
                    "{BOLD}{}{BOLD:#}",
                    end_of(&session.name, WIDTH.min(out.width()))
                ))?;
            }
            before = &session.name;
            print_miss(row, out)?;
        }
        let all = report.sessions.iter().map(|session| session.misses.len()).sum();
        print_left_out(all, rows.len(), out)?;
        out.write_line("")?;
    }
    print_sum_head("reason", "requests", out)?;
    for (name, sum) in report.summary.reasons_by_tokens() {
        let cells = (sum.requests, sum.again.0, sum.again_dollars);
        print_sum_row(MissReason::title(name), cells, report.summary.again.0, out)?;
    }
    out.write_line("")?;
    print_sum_head("project", "requests", out)?;
    for project in &report.projects {
        let cells =
            (project.summary.requests_with_misses, project.summary.again.0, project.summary.again_dollars);
        print_sum_row(&project_name(project), cells, report.summary.again.0, out)?;
    }
    out.write_line("")
}

fn project_name(project: &ProjectMisses) -> String {
    let name = if project.project.is_empty() { "(no project)" } else { &project.project };
    let sessions = count_with_noun(project.sessions, "session", "sessions");
    format!("{} ({sessions})", end_of(name, NAME_WIDTH.saturating_sub(sessions.len() + 3)))
}

/// Returns the misses that cost the most tokens, those of one session together.
fn largest_misses(sessions: &[SessionMisses], most: usize) -> Vec<(&SessionMisses, &ExplainedRequest)> {
    let again = |row: &ExplainedRequest| row.miss.as_ref().map_or(0, |miss| miss.again.0);
    let mut rows: Vec<(usize, &SessionMisses, &ExplainedRequest)> = sessions
        .iter()
        .enumerate()
        .flat_map(|(index, session)| session.misses.iter().map(move |row| (index, session, row)))
        .collect();
    rows.sort_by_key(|(_, _, row)| std::cmp::Reverse(again(row)));
    rows.truncate(most);
    rows.sort_by_key(|(index, _, row)| (*index, row.segment, row.request));
    rows.into_iter().map(|(_, session, row)| (session, row)).collect()
}

fn print_left_out(all: usize, shown: usize, out: &mut Output) -> Result<()> {
    match all.saturating_sub(shown) {
        0 => Ok(()),
        left => out.write_line(format_args!(
            "and {} with fewer tokens: --limit N shows more",
            count_with_noun(left, "request", "requests")
        )),
    }
}

fn print_head(out: &mut Output) -> Result<()> {
    out.write_line(format_args!(
        "{BOLD}{:>7}  {:16} {:>10} {:>10} {:>8}  why{BOLD:#}",
        "request", "sent (UTC)", "could read", "read", "cost"
    ))
}

fn print_miss(row: &ExplainedRequest, out: &mut Output) -> Result<()> {
    let Some(miss) = &row.miss else { return Ok(()) };
    let number =
        if row.segment > 1 { format!("{}.{}", row.segment, row.request) } else { row.request.to_string() };
    let columns = format!(
        "{number:>7}  {:16} {:>10} {:>10} {:>8}  ",
        row.at_ms.map(|at| format_minute(Millis(at))).unwrap_or_default(),
        group_thousands(miss.could_read.0),
        group_thousands(miss.read.0),
        miss.again_dollars.map_or_else(|| "?".to_owned(), |dollars| format!("${dollars:.3}")),
    );
    let width = out.width().min(WIDTH);
    let beside = width.saturating_sub(columns.len());
    if beside < REASON_WIDTH {
        out.write_line(columns.trim_end())?;
        let mut lines = wrapped_at(&describe_miss(miss), width.saturating_sub(REASON_INDENT)).into_iter();
        return lines.try_for_each(|line| out.write_line(format_args!("{:REASON_INDENT$}{line}", "")));
    }
    let mut lines = wrapped_at(&describe_miss(miss), beside).into_iter();
    out.write_line(format_args!("{columns}{}", lines.next().unwrap_or_default()))?;
    let indent = " ".repeat(columns.len());
    lines.try_for_each(|line| out.write_line(format_args!("{indent}{line}")))
}

/// Says why, on one line, and whether that is inferred.
pub(crate) fn describe_miss(miss: &CacheMiss) -> String {
    let words = on_one_line(&miss.reason.to_string(), usize::MAX);
    match miss.certainty {
        Certainty::Known => words,
        Certainty::Inferred => format!("{words} (inferred)"),
    }
}

fn print_sum_head(title: &str, counted: &str, out: &mut Output) -> Result<()> {
    let title = pad_text(title, NAME_WIDTH);
    out.write_line(format_args!(
        "{BOLD}{title} {counted:>9} {:>13} {:>8} {:>9}{BOLD:#}",
        "tokens again", "share", "cost"
    ))
}

fn print_sum_row(
    name: &str,
    (requests, tokens, dollars): (u64, u64, f64),
    whole: u64,
    out: &mut Output,
) -> Result<()> {
    let name = pad_text(name, NAME_WIDTH);
    out.write_line(format_args!(
        "{name} {:>9} {:>13} {:>6.1} % {:>9}",
        group_thousands(requests),
        group_thousands(tokens),
        ratio(tokens, whole) * 100.0,
        format!("${dollars:.2}")
    ))
}

/// Says in one sentence what was paid again, and for what.
pub(crate) fn describe_summary(summary: &MissSummary) -> String {
    if summary.requests == 0 {
        return "no usage was reported: what was read from the cache is not known".to_owned();
    }
    let requests =
        count_with_noun(usize::try_from(summary.requests).unwrap_or(usize::MAX), "request", "requests");
    if summary.again.0 == 0 {
        return format!("nothing was paid again: {requests} read all that was cached");
    }
    let parts: Vec<String> = summary
        .reasons_by_tokens()
        .iter()
        .map(|(name, sum)| format!("{} ${:.2}", MissReason::title(name), sum.again_dollars))
        .collect();
    let unpriced = match summary.requests_without_price {
        0 => String::new(),
        count => format!("; {} of models without a known price", group_thousands(count)),
    };
    format!(
        "${:.2} of ${:.2} was paid for caching again what had been cached, {} of {} input tokens in {requests}: {}{unpriced}",
        summary.again_dollars,
        summary.paid_dollars,
        group_thousands(summary.again.0),
        group_thousands(summary.input.0),
        parts.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use trimtab_core::{Tokens, Usage, find_model};

    use super::*;

    #[test]
    fn the_sentence_says_what_was_paid_again_and_for_what() {
        assert_eq!(
            describe_summary(&MissSummary::default()),
            "no usage was reported: what was read from the cache is not known"
        );
        let model = find_model("claude-opus-5").expect("a model");
        let usage = Usage { cache_write: 100_000, ..Usage::default() };
        let mut summary = MissSummary::default();
        summary.add_request(Some(&model), usage, None);
        assert_eq!(describe_summary(&summary), "nothing was paid again: 1 request read all that was cached");
        let miss = CacheMiss {
            could_read: Tokens(100_000),
            read: Tokens::ZERO,
            again: Tokens(100_000),
            again_dollars: Some(0.575),
            idle_ms: Some(1),
            reason: MissReason::Expired { idle_ms: 1, lifetime_ms: 1 },
            certainty: Certainty::Known,
        };
        summary.add_request(Some(&model), usage, Some(&miss));
        // 100,000 tokens written at 6.25 dollars a million, twice.
        assert_eq!(
            describe_summary(&summary),
            "$0.57 of $1.25 was paid for caching again what had been cached, 100,000 of 200,000 input tokens in 2 requests: \
             expired in a pause $0.57"
        );
    }

    #[test]
    fn a_reason_with_a_text_of_a_client_stays_on_one_line() {
        let miss = CacheMiss {
            could_read: Tokens(1),
            read: Tokens::ZERO,
            again: Tokens(1),
            again_dollars: None,
            idle_ms: None,
            reason: MissReason::ClientChange(trimtab_core::misses::ClientChange {
                place: trimtab_core::misses::ChangedPlace::System,
                before: "a\u{1b}[2J\nb".to_owned(),
                now: "c".to_owned(),
            }),
            certainty: Certainty::Known,
        };
        assert_eq!(describe_miss(&miss), "the client changed its system prompt: \"a·[2J⏎b\" is now \"c\"");
    }
}
