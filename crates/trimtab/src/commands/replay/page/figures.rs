//! All figures: a table for each model and budget, folded.

use maud::{Markup, html};
use trimtab_replay::ScoreRow;

use super::{super::table::recall_share, ReplayResults, format_cost};
use crate::{
    look::{TableColumn, percent, percent_change, table, tokens_short},
    output::group_thousands,
};

/// A column of the table: its name, what it means, its cell.
type FigureColumn = (&'static str, &'static str, fn(&ScoreRow) -> String);

const FIGURES: &[FigureColumn] = &[
    ("cost", "input cost of all sessions", |row| format_cost(row.input_cost, row.unit)),
    ("change", "against sending everything", |row| percent_change(row.cost_vs_raw - 1.0)),
    ("with re-reading", "the same, and what it costs to fetch missed content again", |row| {
        percent_change(row.cost_net_vs_raw - 1.0)
    }),
    ("rejected", "requests that a provider would reject", |row| group_thousands(row.invalid_requests)),
    ("edits", "share of edits whose text was still visible", |row| {
        recall_share(row.edit_anchor_recall, row.edit_anchors)
    }),
    ("names", "share of names that were still visible where they came from", |row| {
        recall_share(row.strict_reference_recall, row.strict_references)
    }),
    ("lines", "share of copied lines", |row| recall_share(row.copied_line_recall, row.copied_lines)),
    ("errors", "share of open errors", |row| recall_share(row.error_retention, row.errors)),
    ("rules", "share of instructions", |row| recall_share(row.instruction_retention, row.instructions)),
    ("tokens", "input tokens against sending everything", |row| percent_change(row.tokens_vs_raw - 1.0)),
    ("worst", "the session that became most expensive", |row| percent_change(row.worst_session_vs_raw - 1.0)),
    ("worse", "share of sessions that cost more", |row| percent(row.sessions_dearer)),
    ("cuts", "requests that hide something sent before, per session", |row| format!("{:.1}", row.cuts)),
    ("rewritten", "tokens cached again because of that, per session", |row| {
        tokens_short(whole(row.rewritten_tokens))
    }),
    ("over budget", "requests above the budget", |row| group_thousands(row.over_budget_requests)),
    ("fetched again", "hidden blocks that the agent would have to read again, per session", |row| {
        format!("{:.1}", row.forced_refetches)
    }),
];

pub(super) fn all_figures(replayed: &ReplayResults) -> Markup {
    let blocks =
        replayed.models.iter().flat_map(|model| replayed.budgets.iter().map(move |budget| (model, budget)));
    html! {
        @for (model, budget) in blocks {
            @let caption = budget.as_ref().map_or_else(|| model.name.clone(), |budget| format!("{}, budget {budget}", model.name));
            details {
                summary { "All figures: " (caption) }
                (figure_table(replayed, &caption, &rows_of(replayed, &model.name, budget.as_deref())))
            }
        }
        @for group in &replayed.groups {
            details {
                summary { "All figures of " (group.name) }
                (figure_table(replayed, &group.name, &group.rows.iter().collect::<Vec<_>>()))
            }
        }
    }
}

fn rows_of<'a>(replayed: &'a ReplayResults, model: &str, budget: Option<&str>) -> Vec<&'a ScoreRow> {
    replayed.rows.iter().filter(|row| row.model == model && row.budget.as_deref() == budget).collect()
}

fn figure_table(replayed: &ReplayResults, caption: &str, rows: &[&ScoreRow]) -> Markup {
    let named = FIGURES.iter().map(|(name, about, _)| TableColumn::number(name).with_about(about));
    let columns: Vec<TableColumn<'_>> = std::iter::once(TableColumn::text("method")).chain(named).collect();
    let cells = |row: &&ScoreRow| -> Vec<Markup> {
        let figures = FIGURES.iter().map(|(.., cell)| html! { (cell(row)) });
        let entrant = replayed.entrants.iter().find(|entrant| entrant.name == row.policy);
        let about = entrant.map(|entrant| entrant.about.as_str());
        std::iter::once(html! { code title=[about] { (row.policy) } }).chain(figures).collect()
    };
    table(caption, &columns, &rows.iter().map(cells).collect::<Vec<_>>())
}

/// Returns a mean as a whole number.
fn whole(mean: f64) -> u64 {
    trimtab_core::Tokens(1).scale(mean).0
}
