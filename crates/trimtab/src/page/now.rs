//! The first page: what was spent and saved, today, this week and in all, by project and model; then the proxy in
//! this process: its work and its failures. Losses are shown like savings.

use anyhow::Result;
use maud::{Markup, html};
use trimtab_store::SessionPageQuery;

use super::{
    PageServer,
    figures::{RequestTotals, StoreTotals, day_name},
    shell::{self, BarPlace, number, time_of},
};
use crate::{
    look::{
        ChartAxis, ChartLine, FigureTile, LineChart, PointEmphasis, TableColumn, TileTone, dollars,
        line_chart, percent, table, table_below_heading, tiles, tokens_short,
    },
    output::{count_with_noun, group_count, group_thousands},
    proxy::metrics::{ProxySums, float},
    store,
};

/// Sessions that the first page names.
const LATEST: u32 = 5;

impl PageServer {
    pub(super) fn now_page(&self) -> Result<Markup> {
        let mark = self.news_mark();
        let main = match self.scope() {
            Ok(scope) => {
                let totals = self.totals.totals(&scope, store::current_time())?;
                if totals.missing > 0 {
                    self.tell_listeners();
                }
                let latest = scope.session_page(&SessionPageQuery {
                    scope: None,
                    project: None,
                    skip: 0,
                    most: LATEST,
                })?;
                html! {
                    h1 { (headline(&totals.all)) }
                    p.soft.small { "As of " (time_of(store::current_time())) " UTC · " span data-live="" { "load again for newer figures" } }
                    @if totals.missing > 0 {
                        p.frame role="status" { "Still adding up: " (shell::session_count(totals.missing)) " not in these figures yet. "
                            a href="/" { "Go on" } }
                    }
                    (total_tiles(&totals.all))
                    (period_table(&totals))
                    @if totals.days.len() > 1 { (daily_chart(&totals)) }
                    (group_table("By project", "project", &totals.projects))
                    (group_table("By model", "model", &totals.models))
                    p.soft.small { "The agents' names are not stored; models and formats are." }
                    (receipts(&totals.all))
                    @if !latest.sessions.is_empty() {
                        h2 { "Latest sessions" }
                        (self.session_table(&scope, &latest.sessions))
                        p { a href="/trimtab/sessions" { "All sessions (" (number(latest.count)) ")" } }
                    }
                    @if let Some(note) = scope.about_others(usize::try_from(totals.others).unwrap_or(usize::MAX)) { p.soft { (note) } }
                }
            }
            Err(error) => html! {
                h1 { "Nothing to show yet" }
                p { (format!("{error:#}")) }
                p { "Point an agent at the proxy, or start one with " code { "trimtab wrap claude" } ": its sessions appear here." }
                p.soft.small { span data-live="" { "load again for newer figures" } }
            },
        };
        let main = html! { div data-follow=(mark) { (main) (self.proxy_part()) } };
        Ok(shell::whole_page("Now", BarPlace::Now, &main))
    }

    /// Tells what the proxy in this process did; nothing where there is none.
    fn proxy_part(&self) -> Markup {
        let Some(metrics) = &self.options.metrics else {
            return html! { p.soft.small { "This page is of the store alone: a proxy's own page also tells what was late, passed or refused." } };
        };
        let sums = metrics.sums();
        html! {
            h2 { "This proxy, since " (time_of(self.started)) " UTC" }
            (tiles(&proxy_tiles(&sums)))
            (reason_list("Passed untouched, by reason", &sums.passed))
            (reason_list("Requests without a good answer, by kind or status", &sums.upstream_errors))
            (reason_list("Errors of trimtab itself, by kind", &errors_in_words(&sums)))
        }
    }
}

/// Says in one sentence what came of it.
fn headline(all: &RequestTotals) -> String {
    let reported = &all.reported;
    if all.requests == 0 {
        return "No request is stored yet".to_owned();
    }
    let of = count_with_noun(usize::try_from(all.sessions).unwrap_or(usize::MAX), "session", "sessions");
    if reported.requests == 0 {
        let percent = store::percent_saved(all.tokens_before, all.tokens_after);
        return format!(
            "{percent} % of the tokens of {of} were not sent; no provider reported what it charged"
        );
    }
    let untouched = reported.untouched_dollars;
    if reported.balance() < 0.0 {
        format!("trimtab cost about {} more on {of}", dollars(-reported.balance()))
    } else {
        format!("trimtab saved about {} of {} on {of}", dollars(reported.balance()), dollars(untouched))
    }
}

fn total_tiles(all: &RequestTotals) -> Markup {
    let reported = &all.reported;
    let saved_tone = match reported.balance() {
        saved if saved < 0.0 => TileTone::Bad,
        saved if saved > 0.0 => TileTone::Good,
        _ => TileTone::Plain,
    };
    let dearer = if reported.requests_dearer > 0 { TileTone::Bad } else { TileTone::Plain };
    let mut all_tiles = vec![
        FigureTile::new(dollars(reported.paid_dollars), "spent, as providers reported")
            .with_name("dollars_spent"),
        FigureTile::new(dollars(reported.balance()), "saved, by estimate; below zero is a loss")
            .with_tone(saved_tone)
            .with_name("dollars_saved"),
        FigureTile::new(hit_rate(all), "of the input was read from the provider's cache")
            .with_name("hit_rate"),
        FigureTile::new(
            format!("{} %", store::percent_saved(all.tokens_before, all.tokens_after)),
            "of all tokens were not sent",
        )
        .with_note(format!(
            "{} before, {} sent",
            tokens_short(all.tokens_before),
            tokens_short(all.tokens_after)
        ))
        .with_name("tokens"),
        FigureTile::new(
            group_thousands(reported.requests_dearer),
            "requests cost more than they would have untouched",
        )
        .with_note(format!("of {}", group_thousands(reported.requests)))
        .with_tone(dearer)
        .with_name("requests_dearer"),
    ];
    if reported.requests_without_price > 0 {
        all_tiles.push(
            FigureTile::new(
                group_thousands(reported.requests_without_price),
                "requests of models without a price, which no dollars contain",
            )
            .with_name("requests_without_price"),
        );
    }
    tiles(&all_tiles)
}

fn hit_rate(totals: &RequestTotals) -> String {
    let input = totals.reported.usage.total_input();
    if input == 0 {
        "–".to_owned()
    } else {
        percent(float(totals.reported.usage.cache_read) / float(input))
    }
}

fn period_table(totals: &StoreTotals) -> Markup {
    let rows = [("today (UTC)", &totals.today), ("the last 7 days", &totals.week), ("in all", &totals.all)];
    let rows: Vec<Vec<Markup>> = rows.iter().map(|(name, sums)| row_of(html! { (name) }, sums)).collect();
    table("Today, this week, in all", &sum_columns("period"), &rows)
}

fn group_table(title: &str, column: &str, groups: &[(Option<String>, RequestTotals)]) -> Markup {
    /// More would be a list that nobody reads.
    const SHOWN: usize = 20;
    let name = |name: &Option<String>| {
        let is_project = column == "project";
        html! {
            @match name {
                Some(name) if is_project => span.title dir="auto" {
                    a href={ "/trimtab/sessions?project=" (shell::percent_encoded(name)) } { (shell::project_name(name)) }
                    span.soft.small.below { (crate::terminal::escape_name(name)) }
                },
                Some(name) => span.title dir="auto" { (crate::terminal::escape_name(name)) },
                None => span.soft { "not known" },
            }
        }
    };
    let rows: Vec<Vec<Markup>> =
        groups.iter().take(SHOWN).map(|(group, sums)| row_of(name(group), sums)).collect();
    html! {
        @if groups.len() > 1 || groups.iter().any(|(name, _)| name.is_some()) {
            h2 { (title) }
            (table_below_heading(title, &sum_columns(column), &rows))
            @if groups.len() > SHOWN { p.soft { "and " (groups.len() - SHOWN) " more" } }
        }
    }
}

fn sum_columns(first: &str) -> Vec<TableColumn<'_>> {
    vec![
        TableColumn::text(first),
        TableColumn::number("sessions"),
        TableColumn::number("requests"),
        TableColumn::number("tokens before").with_about("As agents sent them"),
        TableColumn::number("tokens sent"),
        TableColumn::number("cache hits")
            .with_about("The share of the reported input that was read from the cache"),
        TableColumn::number("spent"),
        TableColumn::number("saved").with_about("By estimate; below zero is a loss"),
    ]
}

fn row_of(name: Markup, sums: &RequestTotals) -> Vec<Markup> {
    let saved = sums.reported.balance();
    vec![
        name,
        number(sums.sessions),
        number(sums.requests),
        html! { (tokens_short(sums.tokens_before)) },
        html! { (tokens_short(sums.tokens_after)) },
        html! { (hit_rate(sums)) },
        html! { (dollars(sums.reported.paid_dollars)) },
        html! { span.bad[saved < 0.0].good[saved > 0.0] { (dollars(saved)) } },
    ]
}

/// Draws what was spent each day, and what would have been.
fn daily_chart(totals: &StoreTotals) -> Markup {
    let place = |day: i64| f64::from(i32::try_from(day).unwrap_or_default());
    let line = |name: &str, emphasis, figure: fn(&RequestTotals) -> f64| ChartLine {
        name: name.to_owned(),
        points: totals.days.iter().map(|(day, sums)| (place(*day), figure(sums))).collect(),
        emphasis,
    };
    let untouched = |sums: &RequestTotals| sums.reported.untouched_dollars;
    let highest = totals.days.iter().map(|(_, sums)| untouched(sums).max(sums.reported.paid_dollars));
    let highest = highest.fold(0.01, f64::max) * 1.1;
    let ends = [totals.days.first(), totals.days.last()].map(|day| day.map_or(0, |(day, _)| *day));
    let every = (totals.days.len() / 5).max(1);
    let ticks = totals.days.iter().step_by(every).map(|(day, _)| (place(*day), day_name(*day))).collect();
    let x = ChartAxis::new("day (UTC)", place(ends[0]), place(ends[1]), |_| String::new());
    let chart = LineChart {
        title: "Dollars by day",
        description: format!(
            "From {} to {}: what was spent each day, and what it would have been untouched, by estimate.",
            day_name(ends[0]),
            day_name(ends[1])
        ),
        x: ChartAxis { ticks, ..x },
        y: ChartAxis::new("dollars", 0.0, highest, dollars),
        lines: vec![
            line("spent", PointEmphasis::Ours, |sums| sums.reported.paid_dollars),
            line("untouched, by estimate", PointEmphasis::Other, |sums| sums.reported.untouched_dollars),
        ],
    };
    line_chart(&chart)
}

/// Puts the provider's receipts beside our counts.
fn receipts(all: &RequestTotals) -> Markup {
    let reported = &all.reported;
    let difference = float(reported.usage.total_input()) / float(all.tokens_reported_for.max(1)) - 1.0;
    html! {
        @if reported.requests > 0 {
            h2 { "Receipts" }
            p {
                "Providers reported " b data-figure="reported_input" { (number(reported.usage.total_input())) } " input tokens for "
                (number(reported.requests)) " of " (number(all.requests)) " requests: "
                (number(reported.usage.input)) " uncached, " (number(reported.usage.cache_write)) " written to the cache, "
                (number(reported.usage.cache_read)) " read from it; " (number(reported.usage.output)) " of output. trimtab had counted "
                (number(all.tokens_reported_for)) " for the same requests (" (crate::look::percent_change(difference)) "). "
                "What was spent is computed from the reports and the table of prices; what was saved is an estimate."
            }
        }
    }
}

/// The name under which the proxy counts a trimmed request that a provider refused and then took unchanged.
const REFUSED: &str = "refused";

/// Returns how many trimmed requests providers rejected, and how often trimtab itself failed.
fn rejections_and_errors(sums: &ProxySums) -> [f64; 2] {
    let count = |is_counted: fn(&str) -> bool| {
        sums.faults.iter().filter(|(kind, _)| is_counted(kind)).map(|(_, count)| count).sum::<f64>()
    };
    [count(|kind| kind == REFUSED), count(|kind| kind != REFUSED)]
}

/// Returns the errors of trimtab itself with what became of the requests.
fn errors_in_words(sums: &ProxySums) -> Vec<(String, f64)> {
    let words = |kind: &str| match kind {
        "panic" => "the planner failed; the request was sent unchanged".to_owned(),
        "plan" => "no plan could be made; the request was sent unchanged".to_owned(),
        "keep" => "originals could not be stored, so nothing new was hidden".to_owned(),
        other => other.to_owned(),
    };
    let errors = sums.faults.iter().filter(|(kind, _)| kind != REFUSED);
    errors.map(|(kind, count)| (words(kind), *count)).collect()
}

fn proxy_tiles(sums: &ProxySums) -> Vec<FigureTile> {
    let tone = |count: f64| if count > 0.0 { TileTone::Bad } else { TileTone::Plain };
    let total = |list: &[(String, f64)]| list.iter().map(|(_, count)| count).sum::<f64>();
    let [rejected, errors] = rejections_and_errors(sums);
    let mut tiles = vec![
        FigureTile::new(group_count(sums.conversations), "requests of conversations")
            .with_note(format!("{} with nothing to hide", group_count(sums.kept)))
            .with_name("conversations"),
        FigureTile::new(group_count(sums.late_plans), "plans were late")
            .with_note("sent with the session's last plan, or unchanged")
            .with_tone(tone(sums.late_plans))
            .with_name("late"),
        FigureTile::new(group_count(total(&sums.passed)), "conversations passed untouched")
            .with_name("passed"),
        FigureTile::new(group_count(sums.overflows), "times a provider said: too long")
            .with_note("each was retried once with a shorter request")
            .with_tone(tone(sums.overflows))
            .with_name("overflows"),
        FigureTile::new(group_count(rejected), "trimmed requests that a provider rejected")
            .with_note("each was sent again unchanged")
            .with_tone(tone(rejected))
            .with_name("rejected"),
        FigureTile::new(group_count(total(&sums.upstream_errors)), "requests without a good answer")
            .with_tone(tone(total(&sums.upstream_errors)))
            .with_name("upstream_errors"),
        FigureTile::new(group_count(errors), "errors of trimtab itself")
            .with_tone(tone(errors))
            .with_name("faults"),
        FigureTile::new(format!("{:.1} ms", sums.overhead_ms), "on average from arrival to sending")
            .with_name("overhead"),
    ];
    if sums.observed > 0.0 {
        tiles.push(FigureTile::new(group_count(sums.observed), "tokens would have been hidden (--observe)"));
    }
    tiles
}

fn reason_list(title: &str, reasons: &[(String, f64)]) -> Markup {
    html! {
        @if !reasons.is_empty() {
            h3 { (title) }
            ul { @for (reason, count) in reasons { li { (crate::terminal::escape_name(reason)) ": " (group_count(*count)) } } }
        }
    }
}
