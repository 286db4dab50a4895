//! The page of one session: its context over time with what was hidden, and every request with what it had before, what was sent,
//! read from the cache and written to it, and dollars.

use anyhow::Result;
use maud::{Markup, html};
use trimtab_core::{SessionAccount, Tokens, Usage, misses::CacheMiss};
use trimtab_store::{RequestInfo, SessionId, SessionInfo};

use super::{
    PageServer,
    conversation::{KINDS, RequestMoment, SessionContext},
    misses::{SessionMissReport, is_expired},
    route::PageQuery,
    shell::{
        self, BarPlace, SessionTab, number, page_count, page_links, request_path, session_head, time_of,
    },
};
use crate::{
    accounts::has_dollars,
    commands::why::describe_summary,
    look::{
        ChartMark, FigureTile, LevelLine, MarkShape, StackLayer, StackedChart, TableColumn, TileTone,
        dollars, percent, stacked_chart, table, tiles, tokens_short,
    },
    output::{count_with_noun, group_thousands},
    proxy::metrics::float,
    store,
};

/// Requests of one part of the table.
const EACH: usize = 100;

/// Marks that are drawn: more would cover the picture; the table has them all.
const MARKS: usize = 300;

impl PageServer {
    pub(super) fn session_page(&self, id: SessionId, query: &PageQuery) -> Result<Markup> {
        let mark = self.news_mark();
        let scope = self.scope()?;
        let info = scope.own_session(id)?;
        let context = self.conversations.read(&scope, id)?;
        let misses = self.explain_misses(&scope, id, &context.requests)?;
        let title = self.session_title(&scope, &info);
        let count = context.requests.len();
        let pages = page_count(u64::from(info.requests), u32::try_from(EACH).unwrap_or(u32::MAX));
        // The newest come first, so the first part has the end of the list.
        let skip = usize::try_from(query.page() - 1).unwrap_or_default().saturating_mul(EACH);
        let shown = (0..count).rev().skip(skip).take(EACH);
        let main = html! {
            div data-follow=(mark) {
                (session_head(id, &title, Some(SessionTab::Overview)))
                p.soft.small.line {
                    (about_session(&info)) " · " (time_of(info.first)) " to " (time_of(info.last)) " UTC · "
                    span data-live="" { "load again for newer requests" }
                }
                (session_tiles(&context))
                (self.context_chart(&context))
                h2 #requests { "Requests" }
                (self.request_table(&context, &misses, shown))
                (page_links(&shell::session_path(id), &[], query.page(), pages))
                p.soft { (first_letter_large(&describe_summary(&misses.explained.summary))) "."
                    @if misses.left > 0 { " " (count_with_noun(misses.left, "request is", "requests are")) " still to be looked at." } }
                p.soft.small { "The same at the command line: " code { "trimtab show " (id) } ", " code { "trimtab why " (id) } ", " code { "trimtab inspect " (id) } }
            }
        };
        Ok(shell::whole_page(&title, BarPlace::Sessions, &main))
    }

    /// Draws what filled the requests, with the limits and with what happened.
    fn context_chart(&self, context: &SessionContext) -> Markup {
        // Requests of ways that were left are not in the latest one: the picture is of the way that was taken.
        let on_the_way: Vec<(usize, &[u64; KINDS.len()])> = context
            .requests
            .iter()
            .enumerate()
            .filter_map(|(index, request)| Some((index, context.latest.sent.get(&request.id)?)))
            .collect();
        let layers = KINDS.iter().enumerate().map(|(kind, name)| StackLayer {
            name: (*name).to_owned(),
            values: on_the_way
                .iter()
                .map(|(_, sums)| float(sums.get(kind).copied().unwrap_or_default()))
                .collect(),
        });
        let marks = (0..).zip(&on_the_way).flat_map(|(at, (index, _))| {
            let moment = context.moments.get(*index).copied().unwrap_or_default();
            marks_of(at, &moment)
        });
        let mut levels = Vec::new();
        if let Some(model) = &context.model {
            let budget = self.options.budget.unwrap_or_else(|| model.request_budget(Tokens::ZERO));
            levels.push(LevelLine { name: "budget".to_owned(), at: float(budget.0) });
            levels.push(LevelLine { name: "window".to_owned(), at: float(model.window.0) });
        }
        let left = context.requests.len() - on_the_way.len();
        let last = context.requests.last().map_or(0, |last| last.tokens_after);
        let chart = StackedChart {
            title: "Tokens sent with each request, by kind",
            description: format!(
                "{}; the last was sent with {} tokens.",
                count_with_noun(on_the_way.len(), "request", "requests"),
                group_thousands(last)
            ),
            layers: layers.collect(),
            x_label: "request",
            y_label: "tokens",
            write: |tokens| tokens_short(Tokens(1).scale(tokens).0),
            levels,
            marks: marks.take(MARKS).collect(),
        };
        html! {
            (stacked_chart(&chart))
            @if left > 0 {
                p.soft.small {
                    (count_with_noun(left, "request is", "requests are")) " not drawn: the conversation went another way since, or was compacted by the agent."
                }
            }
        }
    }
}

fn marks_of(at: usize, moment: &RequestMoment) -> Vec<ChartMark> {
    let mut marks = Vec::new();
    let request = at + 1;
    if let Some(pause) = moment.cold_after {
        let title = format!("request {request}: the cache was cold after {}", pause_words(pause));
        marks.push(ChartMark { at, shape: MarkShape::Line, title });
    }
    if moment.folded {
        let title = format!("request {request}: the beginning was folded");
        marks.push(ChartMark { at, shape: MarkShape::Diamond, title });
    } else if moment.newly_hidden > 0 {
        let title =
            format!("request {request}: {} hidden", count_with_noun(moment.newly_hidden, "block", "blocks"));
        marks.push(ChartMark { at, shape: MarkShape::Triangle, title });
    }
    marks
}

fn pause_words(ms: i64) -> String {
    match ms / 60_000 {
        0 => format!("{} s", ms / 1000),
        minutes @ 1..120 => format!("{minutes} min"),
        minutes => format!("{} h", minutes / 60),
    }
}

fn about_session(info: &SessionInfo) -> Markup {
    html! {
        @if let Some(project) = &info.project { span.title dir="auto" { (crate::terminal::escape_name(project)) } " · " }
        @if let Some(model) = &info.model { (crate::terminal::escape_name(model)) " · " }
        (info.format.title())
    }
}

fn session_tiles(context: &SessionContext) -> Markup {
    let mut totals = SessionAccount::default();
    context.priced.iter().for_each(|priced| totals.add_account(priced));
    let last = context.requests.last();
    let size = last.map_or(0, |last| last.tokens_after);
    let window = context.model.as_ref().map(|model| float(size) / float(model.window.0.max(1)));
    let before: u64 = context.requests.iter().map(|request| request.tokens_before).sum();
    let after: u64 = context.requests.iter().map(|request| request.tokens_after).sum();
    let tone = match totals.balance() {
        saved if saved < 0.0 => TileTone::Bad,
        saved if saved > 0.0 => TileTone::Good,
        _ => TileTone::Plain,
    };
    let hits = float(totals.usage.cache_read) / float(totals.usage.total_input().max(1));
    tiles(&[
        FigureTile::new(
            group_thousands(u64::try_from(context.requests.len()).unwrap_or(u64::MAX)),
            "requests",
        )
        .with_name("requests"),
        FigureTile::new(tokens_short(size), "tokens were sent last")
            .with_note(window.map_or_else(
                || "the model's window is not known".to_owned(),
                |share| format!("{} of the window", percent(share)),
            ))
            .with_name("last_size"),
        FigureTile::new(format!("{} %", store::percent_saved(before, after)), "of all tokens were not sent")
            .with_name("not_sent"),
        FigureTile::new(dollars(totals.paid_dollars), "spent")
            .with_note(format!(
                "{} requests cost more than untouched",
                group_thousands(totals.requests_dearer)
            ))
            .with_name("session_spent"),
        FigureTile::new(dollars(totals.balance()), "saved, by estimate")
            .with_tone(tone)
            .with_name("session_saved"),
        FigureTile::new(
            if totals.usage.total_input() == 0 { "–".to_owned() } else { percent(hits) },
            "read from the cache",
        )
        .with_name("session_hits"),
    ])
}

impl PageServer {
    fn request_table(
        &self,
        context: &SessionContext,
        misses: &SessionMissReport,
        shown: impl Iterator<Item = usize>,
    ) -> Markup {
        let columns = [
            TableColumn::number("request"),
            TableColumn::text("time (UTC)"),
            TableColumn::number("before").with_about("Tokens as the agent sent it"),
            TableColumn::number("sent").with_about("Tokens as trimtab sent it"),
            TableColumn::number("read").with_about("Tokens that the provider read from its cache"),
            TableColumn::number("written").with_about("Tokens that the provider wrote to its cache"),
            TableColumn::number("uncached").with_about("Tokens that were neither"),
            TableColumn::number("dollars"),
            TableColumn::number("saved").with_about("By estimate; below zero is a loss"),
            TableColumn::text("what happened"),
        ];
        let reasons = misses.by_place();
        let row = |index: usize| {
            let (request, priced) = (context.requests.get(index)?, context.priced.get(index)?);
            let moment = context.moments.get(index).copied().unwrap_or_default();
            let mut row = request_row(index, request, priced);
            row.push(self.what_happened(&moment, reasons.get(&index).copied()));
            Some(row)
        };
        let rows: Vec<Vec<Markup>> = shown.filter_map(row).collect();
        table("Newest first; figures are tokens", &columns, &rows)
    }

    /// Says what happened at a request, and why its cache missed.
    fn what_happened(&self, moment: &RequestMoment, miss: Option<&CacheMiss>) -> Markup {
        let mut words = Vec::new();
        // A miss that expired says the same with its figures.
        let cold = moment.cold_after.filter(|_| !miss.is_some_and(is_expired));
        words.extend(cold.map(|pause| format!("cold cache after {}", pause_words(pause))));
        if moment.folded {
            words.push("folded".to_owned());
        } else if moment.newly_hidden > 0 {
            words.push(format!("{} hidden", count_with_noun(moment.newly_hidden, "block", "blocks")));
        }
        if moment.shown_again > 0 {
            words.push(format!("{} shown again", moment.shown_again));
        }
        html! {
            (words.join("; "))
            @if let Some(miss) = miss { @if !words.is_empty() { "; " } (self.miss_words(miss)) }
        }
    }
}

fn request_row(index: usize, request: &RequestInfo, priced: &SessionAccount) -> Vec<Markup> {
    let missing = || html! { span.soft { "–" } };
    let reported = |figure: fn(&Usage) -> u64| match &request.usage {
        Some(usage) => number(figure(usage)),
        None => missing(),
    };
    vec![
        html! { a href=(request_path(request.session, request.id)) { (index + 1) } },
        time_of(request.at),
        number(request.tokens_before),
        number(request.tokens_after),
        reported(|usage| usage.cache_read),
        reported(|usage| usage.cache_write),
        reported(|usage| usage.input),
        if has_dollars(priced) {
            html! { (dollars(priced.paid_dollars)) }
        } else {
            missing()
        },
        if has_dollars(priced) {
            html! { span.bad[priced.balance() < 0.0].good[priced.balance() > 0.0] { (dollars(priced.balance())) } }
        } else {
            missing()
        },
    ]
}

/// Returns a sentence that begins as sentences do.
fn first_letter_large(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
