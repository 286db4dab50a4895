//! Session by session: the median one open, with the size of its requests; the others folded.

use maud::{Markup, html};
use trimtab_replay::{Score, SessionScores};

use super::{PageSubject, ReplayResults, format_cost};
use crate::look::{
    ChartAxis, ChartLine, LineChart, PointEmphasis, TableColumn, line_chart, percent_change, table,
    tokens_short,
};

/// Sessions whose curves are drawn, and those that are rows of the table.
const CURVES: usize = 24;
const ROWS: usize = 120;

/// Lines of one picture beside those of our policy and of sending everything.
const OTHER_LINES: usize = 3;

/// Returns the name of a session that people know; its path where it has none.
pub(super) fn title_of(replayed: &ReplayResults, name: &str) -> String {
    let session = replayed.sessions.iter().find(|session| session.name == name);
    session.map_or_else(|| name.to_owned(), |session| shown_title(session).to_owned())
}

fn shown_title(session: &SessionScores) -> &str {
    if session.title.is_empty() { &session.name } else { &session.title }
}

/// A session with its score under the policy of the page.
type ScoredSession<'a> = (&'a SessionScores, &'a Score);

pub(super) fn sessions_section(subject: &PageSubject<'_>) -> Markup {
    let sessions = sorted_sessions(subject);
    let drawn = with_curves(&sessions);
    let median = drawn.get(drawn.len() / 2);
    html! {
        @if let Some(median) = median {
            details open { summary { "The median session: " (shown_title(median.0)) } (curve_of(subject, *median)) }
        }
        @if drawn.len() > 1 {
            details {
                summary { "Other sessions: size of their requests" }
                @for session in drawn.iter().filter(|session| Some(&session.0.name) != median.map(|median| &median.0.name)) {
                    details { summary { (shown_title(session.0)) } (curve_of(subject, *session)) }
                }
            }
        }
        details { summary { "Session by session" } (session_table(subject, &sessions)) }
    }
}

/// Returns the sessions, those that saved most first.
fn sorted_sessions<'a>(subject: &'a PageSubject<'_>) -> Vec<ScoredSession<'a>> {
    let Some(column) = subject.column_of(&subject.ours.policy) else { return Vec::new() };
    let all = subject.replayed.sessions.iter();
    let mut scored: Vec<ScoredSession<'_>> =
        all.filter_map(|session| Some((session, session.scores.get(column)?))).collect();
    scored.sort_by(|one, other| one.1.cost_vs_raw().total_cmp(&other.1.cost_vs_raw()));
    scored
}

/// Returns those whose sizes are known, at even distances.
fn with_curves<'a>(sessions: &[ScoredSession<'a>]) -> Vec<ScoredSession<'a>> {
    let known: Vec<ScoredSession<'a>> =
        sessions.iter().filter(|(_, score)| score.raw_sizes.len() > 1).copied().collect();
    let every = known.len().div_ceil(CURVES).max(1);
    known.into_iter().step_by(every).collect()
}

fn curve_of(subject: &PageSubject<'_>, (session, score): ScoredSession<'_>) -> Markup {
    let most = score.raw_sizes.iter().copied().max().unwrap_or_default();
    let line = |name: &str, sizes: &[u64], emphasis: PointEmphasis| ChartLine {
        name: name.to_owned(),
        points: (1_u32..).zip(sizes).map(|(at, size)| (f64::from(at), to_number(*size))).collect(),
        emphasis,
    };
    let mut lines = vec![line("everything", &score.raw_sizes, PointEmphasis::Reference)];
    let others = subject.rows.iter().filter(|row| row.policy != subject.ours.policy && row.policy != "none");
    for row in others.filter(|row| !row.policy.starts_with("oracle:")).take(OTHER_LINES) {
        let other = subject.column_of(&row.policy).and_then(|column| session.scores.get(column));
        lines.extend(other.map(|other| line(&row.policy, &other.sizes, PointEmphasis::Other)));
    }
    lines.push(line(&subject.ours.policy, &score.sizes, PointEmphasis::Ours));
    let count = f64::from(u32::try_from(score.raw_sizes.len()).unwrap_or(u32::MAX));
    let chart = LineChart {
        title: "Size of each request, in tokens",
        description: format!(
            "{} of {} requests; sending everything ends at {} tokens.",
            score.raw_sizes.len(),
            score.requests,
            tokens_short(score.raw_sizes.last().copied().unwrap_or_default())
        ),
        x: ChartAxis::new("request (thinned where there are many)", 1.0, count, |at| format!("{at:.0}")),
        y: ChartAxis::new("tokens", 0.0, to_number(most), |at| {
            tokens_short(trimtab_core::Tokens(1).scale(at).0)
        }),
        lines,
    };
    html! {
        p.soft {
            (format_cost(score.raw_dollars, score.unit)) " → " (format_cost(score.dollars, score.unit)) " ("
            (percent_change(score.cost_vs_raw() - 1.0)) "), " (score.requests) " requests. "
            span.title.small { (session.name) }
        }
        (line_chart(&chart))
    }
}

fn session_table(subject: &PageSubject<'_>, sessions: &[ScoredSession<'_>]) -> Markup {
    let columns = [
        TableColumn::text("session"),
        TableColumn::number("requests"),
        TableColumn::number("sending everything"),
        TableColumn::number(&subject.ours.policy),
        TableColumn::number("change"),
        TableColumn::number("edits still possible"),
    ];
    let every = sessions.len().div_ceil(ROWS).max(1);
    let row = |(session, score): &ScoredSession<'_>| -> Vec<Markup> {
        let anchors = score.edit_anchors;
        vec![
            html! { span.title { (shown_title(session)) } },
            html! { (score.requests) },
            html! { (format_cost(score.raw_dollars, score.unit)) },
            html! { (format_cost(score.dollars, score.unit)) },
            html! { (percent_change(score.cost_vs_raw() - 1.0)) },
            html! { @if anchors.of == 0 { "–" } @else { (anchors.held) " of " (anchors.of) } },
        ]
    };
    // From the end: the worst session is always there.
    let mut rows: Vec<Vec<Markup>> = sessions.iter().rev().step_by(every).map(row).collect();
    rows.reverse();
    table("Sessions, those that saved most first", &columns, &rows)
}

/// Says what a large report leaves out.
pub(super) fn left_out(replayed: &ReplayResults) -> Vec<String> {
    let sessions = replayed.sessions.len();
    let first = replayed
        .sessions
        .iter()
        .filter(|session| session.scores.first().is_some_and(|score| score.raw_sizes.len() > 1));
    let every = first.count();
    let drawn = every.div_ceil(every.div_ceil(CURVES).max(1));
    let mut left_out = vec![
        "Sizes of requests and misses are those at the first model and budget; of a recording with several segments, sizes are of the \
         longest, and long curves are thinned."
            .to_owned(),
    ];
    if drawn < sessions {
        left_out.push(format!(
            "Sizes of requests are of {drawn} of {sessions} sessions, taken at even distances."
        ));
    }
    if sessions > ROWS {
        left_out.push(format!(
            "The table of sessions has at most {ROWS} of {sessions}, at even ranks, the worst among them."
        ));
    }
    let columns = replayed.models.len().max(1) * replayed.budgets.len().max(1);
    let scores = || replayed.sessions.iter().flat_map(|session| session.scores.iter().step_by(columns));
    let known: usize = scores().map(|score| score.misses.len()).sum();
    let missed: u64 = scores().map(|score| score.missed).sum();
    let further = missed.saturating_sub(u64::try_from(known).unwrap_or(u64::MAX));
    if further > 0 || known > 0 {
        left_out.push(format!("{missed} misses of all methods are counted; the tables list some of each, and further misses not."));
    }
    left_out
}

/// Returns tokens as a number to draw.
fn to_number(tokens: u64) -> f64 {
    trimtab_core::Tokens(tokens).to_float()
}
