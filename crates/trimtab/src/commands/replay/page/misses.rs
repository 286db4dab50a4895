//! What was hidden and needed later: where, and how it would have come back.

use maud::{Markup, html};
use trimtab_replay::{MissReport, SessionScores};

use super::{PageSubject, sessions::title_of};
use crate::{
    look::{TableColumn, table},
    output::group_thousands,
};

/// Misses of our policy, and of each other one, that are listed.
const LISTED: usize = 40;
const LISTED_OF_OTHERS: usize = 12;

/// Lists what the policy of the page missed.
pub(super) fn misses_of_ours(subject: &PageSubject<'_>) -> Markup {
    let ours = subject.ours;
    let needed = ours.edit_anchors + ours.strict_references + ours.copied_lines;
    html! {
        h2 { "What was missed" }
        @if ours.missed == 0 {
            p { "Nothing: everything that the agent used later was still visible." }
        } @else {
            p {
                (group_thousands(ours.missed)) " of " (group_thousands(needed.max(ours.missed)))
                " later uses (edits, names, copied lines) found their text hidden. What a note names comes back with one call; the rest must \
                 be read again."
            }
            (miss_table(subject, &ours.policy, LISTED))
        }
    }
}

/// Lists what the others missed, folded.
pub(super) fn misses_of_others(subject: &PageSubject<'_>) -> Markup {
    let others = subject.rows.iter().filter(|row| row.policy != subject.ours.policy && row.missed > 0);
    html! {
        @for row in others {
            details {
                summary { "Missed by " (row.policy) ": " (group_thousands(row.missed)) }
                (miss_table(subject, &row.policy, LISTED_OF_OTHERS))
            }
        }
    }
}

fn miss_table(subject: &PageSubject<'_>, policy: &str, most: usize) -> Markup {
    let listed = select_misses(subject, policy, most);
    let columns = [
        TableColumn::text("needed"),
        TableColumn::text("was in"),
        TableColumn::text("session"),
        TableColumn::number("read at step"),
        TableColumn::number("needed at step"),
        TableColumn::text("how it comes back"),
    ];
    let rows: Vec<Vec<Markup>> = listed
        .iter()
        .map(|(session, miss)| {
            vec![
                html! { (kind_of(miss)) ": " code.title { (first_line(&miss.what)) } },
                html! { span.title { (miss.about) } },
                html! { span.title { (title_of(subject.replayed, &session.name)) } },
                html! { (miss.step) },
                html! { (miss.used_at_step) },
                html! { @if miss.recoverable { "its note names it: one recall" } @else { "it must be read again" } },
            ]
        })
        .collect();
    let caption =
        format!("{} of what {policy} missed", group_thousands(u64::try_from(rows.len()).unwrap_or(u64::MAX)));
    table(&caption, &columns, &rows)
}

/// Takes one miss of each session in turn.
fn select_misses<'a>(
    subject: &'a PageSubject<'_>,
    policy: &str,
    most: usize,
) -> Vec<(&'a SessionScores, &'a MissReport)> {
    let Some(column) = subject.column_of(policy) else { return Vec::new() };
    let scores = || {
        subject.replayed.sessions.iter().filter_map(|session| Some((session, session.scores.get(column)?)))
    };
    let deepest = scores().map(|(_, score)| score.misses.len()).max().unwrap_or_default();
    let in_turn = (0..deepest).flat_map(|depth| {
        scores().filter_map(move |(session, score)| Some((session, score.misses.get(depth)?)))
    });
    in_turn.take(most).collect()
}

fn kind_of(miss: &MissReport) -> &'static str {
    match miss.metric {
        "edit_anchors" | "all_anchors" => "text to edit",
        "references" | "strict_references" => "name",
        "copied_lines" => "copied line",
        "errors" => "open error",
        "instructions" => "instruction",
        _ => "use",
    }
}

/// Returns the first line that says something.
fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}
