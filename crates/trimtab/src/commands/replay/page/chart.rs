//! The one chart: what each method costs against the edits that were still possible. Ours are bold, others grey, rejected ones
//! hollow; what hindsight could do is a line.

use maud::{Markup, html};
use trimtab_core::prices::CostUnit;
use trimtab_replay::ScoreRow;

use super::{PageSubject, format_cost};
use crate::{
    look::{
        ChartAxis, PointEmphasis, ScatterChart, ScatterPoint, ScatterZone, percent, percent_change,
        scatter_chart,
    },
    output::group_thousands,
};

/// Methods that cost more than this, in shares of the raw bill, stand at the edge: the chart is about the others.
const WIDEST: f64 = 1.6;

/// The most of the height that may be left empty below the lowest point.
const MARGIN: f64 = 0.05;

pub(super) fn policy_chart(subject: &PageSubject<'_>) -> Markup {
    let rows: Vec<&&ScoreRow> =
        subject.rows.iter().filter(|row| !row.policy.starts_with("oracle:")).collect();
    if subject.ours.edit_anchors == 0 {
        return html! { p.soft { "The agent edited no text that it had read, so methods differ in cost only; see all figures below." } };
    }
    let (raw, unit) = (subject.ours.raw_cost, subject.unit());
    let mut bound: Vec<(f64, f64)> = subject
        .rows
        .iter()
        .filter(|row| row.policy.starts_with("oracle:") && row.policy != "oracle:floor")
        .map(|row| (row.input_cost.min(raw * WIDEST), row.edit_anchor_recall))
        .collect();
    bound.sort_by(|one, other| one.0.total_cmp(&other.0));
    let all = rows.iter().map(|row| (row.input_cost, row.edit_anchor_recall)).chain(bound.iter().copied());
    let (mut cheapest, mut dearest, mut lowest) = (raw * 0.9, raw * 1.05, 0.98_f64);
    for (cost, recall) in all {
        cheapest = cheapest.min(cost - raw * 0.03);
        dearest = dearest.max(cost.min(raw * WIDEST));
        lowest = lowest.min(recall);
    }
    let lowest = (lowest - (1.0 - lowest) * MARGIN - 0.002).max(0.0);
    let top = 1.0 + (1.0 - lowest) * MARGIN;
    let beyond = rows.iter().filter(|row| row.input_cost > raw * WIDEST).count();
    let what = if unit == CostUnit::Dollars { "input bill" } else { "time of reading" };
    let mut x = ChartAxis::new(format!("{what}, all sessions"), cheapest.max(0.0), dearest, |cost| {
        format_cost(cost, unit)
    });
    x.ticks.retain(|(at, _)| *at >= cheapest);
    let mut y = ChartAxis::new("edits still possible", lowest, top, percent);
    y.ticks.retain(|(at, _)| *at <= 1.0);
    let chart = ScatterChart {
        title: "Cost against edits still possible",
        description: format!(
            "{} costs {} and keeps {} of the edits possible; sending everything costs {}.",
            subject.ours.policy,
            format_cost(subject.ours.input_cost, unit),
            percent(subject.ours.edit_anchor_recall),
            format_cost(raw, unit)
        ),
        points: rows.iter().map(|row| point_of(row, raw)).collect(),
        zone: Some(ScatterZone {
            name: "cheaper and safe".to_owned(),
            x: (x.from, raw),
            y: (0.99_f64.max(lowest), 1.0),
        }),
        zero: Some(raw),
        x,
        y,
        bound,
    };
    html! {
        (scatter_chart(&chart))
        p.soft.small {
            "Left is cheaper, up is safer. trimtab's policies are bold; a red ring marks a method of which a provider would reject requests. "
            @if !chart.bound.is_empty() { "The dashed line is what hindsight could do. " }
            @if beyond > 0 { "Methods at the right edge cost more than the chart shows; the table of all figures has them." }
        }
    }
}

fn point_of(row: &ScoreRow, raw: f64) -> ScatterPoint {
    let emphasis = if row.invalid_requests > 0 {
        PointEmphasis::Rejected
    } else if row.policy == "none" {
        PointEmphasis::Reference
    } else if row.policy.starts_with("steady") {
        PointEmphasis::Ours
    } else {
        PointEmphasis::Other
    };
    let name = if row.policy == "none" { "sending everything" } else { row.policy.as_str() };
    let rejected = if row.invalid_requests > 0 {
        format!(
            ", {} of {} requests rejected",
            group_thousands(row.invalid_requests),
            group_thousands(row.requests)
        )
    } else {
        String::new()
    };
    ScatterPoint {
        x: row.input_cost.min(raw * WIDEST),
        y: row.edit_anchor_recall,
        name: name.to_owned(),
        title: format!(
            "{name}: {} ({}), {} of edits still possible{rejected}",
            format_cost(row.input_cost, row.unit),
            percent_change(row.cost_vs_raw - 1.0),
            percent(row.edit_anchor_recall)
        ),
        emphasis,
    }
}
