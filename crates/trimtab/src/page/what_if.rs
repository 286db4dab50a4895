//! A session under other policies and budgets: replayed on its own thread, one session at a time, while the page shows how far it
//! is. The figures are those of `trimtab replay`.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    thread,
};

use anyhow::{Context as _, Result};
use hyper::StatusCode;
use maud::{Markup, html};
use trimtab_core::{RecallHint, policy::policies};
use trimtab_replay::{Contender, ReplayBudget, ReplayTerms, Score, replay};
use trimtab_store::SessionId;

use super::{
    PageServer,
    conversation::SessionContext,
    route::{PageAnswer, PageQuery},
    shell::{self, BarPlace, SessionTab, number, session_head, session_path},
};
use crate::{
    args::{Amount, tokens_or_share},
    look::{
        ChartAxis, ChartLine, LineChart, PointEmphasis, TableColumn, dollars, line_chart, percent,
        percent_change, table, tokens_short,
    },
    prices,
    proxy::metrics::float,
    scope::StoreScope,
    store,
};

/// What others do that can be compared.
const PEERS: [&str; 4] = ["peer:clear-tool-uses", "peer:mask", "peer:mask-ski", "peer:last-n-polling"];

/// What is replayed where nobody chose.
const USUAL: [&str; 4] = ["none", "steady", "steady.safe", "recent"];

/// The most that is replayed at once: policies times budgets.
const MOST: usize = 24;

/// Sessions whose results are kept.
const KEPT: usize = 8;

/// Replays by session.
#[derive(Default)]
pub(super) struct WhatIfJobs {
    jobs: Mutex<HashMap<SessionId, Arc<Mutex<WhatIfJob>>>>,
    /// Locked while one runs: replays take a whole core.
    running: Arc<Mutex<()>>,
}

/// How far a replay is, and what came of it.
#[derive(Default)]
struct WhatIfJob {
    all: usize,
    rows: Vec<WhatIfRow>,
    fault: Option<String>,
    is_over: bool,
}

struct WhatIfRow {
    budget: String,
    score: Score,
}

/// What is asked for.
struct WhatIfTask {
    contenders: Vec<Contender>,
    budgets: Vec<(String, Option<ReplayBudget>)>,
}

impl PageServer {
    pub(super) fn what_if_page(&self, id: SessionId) -> Result<Markup> {
        let mark = self.news_mark();
        let scope = self.scope()?;
        let info = scope.own_session(id)?;
        let context = self.conversations.read(&scope, id)?;
        let job = self.what_ifs.find(id);
        let main = html! {
            (session_head(id, &self.session_title(&scope, &info), Some(SessionTab::WhatIf)))
            p { "This session replayed under other policies and budgets: what each would have sent, and what it would have cost at the model's "
                "prices. A replay shows what the recorded agent still saw; it does not show what another agent would have done." }
            (self.what_if_form(id))
            @if let Some(job) = job {
                @let job = job.lock().unwrap_or_else(PoisonError::into_inner);
                div data-follow=(mark) data-done=[job.is_over.then_some("")] { (job_part(&job, &context)) }
            }
            p.soft.small { "The same at the command line: " code { "trimtab restore " (id) " --out session.json" } ", then " code { "trimtab replay session.json" } }
        };
        Ok(shell::whole_page("What if", BarPlace::Sessions, &main))
    }

    fn what_if_form(&self, id: SessionId) -> Markup {
        let names = policies().map(|(name, _)| name).chain(PEERS);
        html! {
            form method="post" action={ (session_path(id)) "/what-if" } {
                (self.form_token())
                fieldset {
                    legend { "Policies" }
                    div.controls {
                        @for name in names {
                            label { input type="checkbox" name="policy" value=(name) checked[USUAL.contains(&name)]; " " (name) }
                        }
                    }
                }
                div.controls {
                    label { "Budgets " input type="text" name="budgets" value="" maxlength="200" placeholder="as it was" aria-describedby="budget-help"; }
                    button type="submit" { "Replay" }
                }
                p #budget-help .soft.small { "Tokens (50k) or shares of the largest request (50%), separated by commas; empty for what the model's window leaves." }
            }
        }
    }

    pub(super) fn start_what_if(&self, id: SessionId, form: &PageQuery) -> Result<PageAnswer> {
        let scope = self.scope()?;
        scope.own_session(id)?;
        let task = match WhatIfTask::read(form) {
            Ok(task) => task,
            Err(error) => {
                return Ok(PageAnswer::Error(StatusCode::UNPROCESSABLE_ENTITY, format!("{error:#}")));
            }
        };
        let job = self.what_ifs.begin(id, task.contenders.len() * task.budgets.len());
        if let Some(job) = job {
            let (running, recall) = (Arc::clone(&self.what_ifs.running), self.options.recall.clone());
            let steps = Arc::clone(&self.background_steps);
            let work = move || {
                // One at a time: who waits has a bar that stands at nothing.
                let _alone = running.lock().unwrap_or_else(PoisonError::into_inner);
                let done = run_task(&scope, id, &task, &recall, |scores| {
                    job.lock().unwrap_or_else(PoisonError::into_inner).rows.extend(scores);
                    steps.fetch_add(1, Ordering::Relaxed);
                });
                {
                    let mut job = job.lock().unwrap_or_else(PoisonError::into_inner);
                    job.fault = done.err().map(|error| format!("{error:#}"));
                    job.is_over = true;
                }
                steps.fetch_add(1, Ordering::Relaxed);
            };
            thread::Builder::new()
                .name("what-if".to_owned())
                .spawn(work)
                .context("no thread can be started")?;
        }
        Ok(PageAnswer::SeeOther(format!("{}/what-if", session_path(id))))
    }
}

impl WhatIfJobs {
    fn find(&self, id: SessionId) -> Option<Arc<Mutex<WhatIfJob>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).get(&id).map(Arc::clone)
    }

    /// Makes a place for results; nothing where a replay of the session is under way.
    fn begin(&self, id: SessionId, all: usize) -> Option<Arc<Mutex<WhatIfJob>>> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.get(&id).is_some_and(|job| !is_over(job)) {
            return None;
        }
        jobs.remove(&id);
        if jobs.len() >= KEPT {
            let done = jobs.iter().find(|(_, job)| is_over(job)).map(|(id, _)| *id)?;
            jobs.remove(&done);
        }
        let job = Arc::new(Mutex::new(WhatIfJob { all, ..WhatIfJob::default() }));
        jobs.insert(id, Arc::clone(&job));
        Some(job)
    }
}

fn is_over(job: &Mutex<WhatIfJob>) -> bool {
    job.lock().unwrap_or_else(PoisonError::into_inner).is_over
}

impl WhatIfTask {
    fn read(form: &PageQuery) -> Result<WhatIfTask> {
        let known: Vec<&str> = policies().map(|(name, _)| name).chain(PEERS).collect();
        let mut names: Vec<&str> = form.all("policy").collect();
        if names.is_empty() {
            names = USUAL.to_vec();
        }
        let contender = |name: &&str| {
            anyhow::ensure!(
                known.contains(name),
                "there is no policy {name:?}; there are: {}",
                known.join(", ")
            );
            Ok(Contender::parse(name)?)
        };
        let contenders = names.iter().map(contender).collect::<Result<Vec<_>>>()?;
        let words = form.get("budgets").split(',').map(str::trim).filter(|words| !words.is_empty());
        let budget = |words: &str| {
            let amount = tokens_or_share(words).map_err(anyhow::Error::msg)?;
            let budget = match amount {
                Amount::Tokens(tokens) => ReplayBudget::Tokens(tokens),
                Amount::Share(share) => ReplayBudget::OfPeak(share),
            };
            Ok((words.to_owned(), Some(budget)))
        };
        let mut budgets = words.map(budget).collect::<Result<Vec<_>>>()?;
        if budgets.is_empty() {
            budgets.push(("as it was".to_owned(), None));
        }
        let all = contenders.len() * budgets.len();
        anyhow::ensure!(all <= MOST, "{all} replays are more than {MOST}: choose fewer policies or budgets");
        Ok(WhatIfTask { contenders, budgets })
    }
}

fn run_task(
    scope: &StoreScope,
    id: SessionId,
    task: &WhatIfTask,
    recall: &RecallHint,
    mut add: impl FnMut(Vec<WhatIfRow>),
) -> Result<()> {
    let recording = store::session_as_recording(scope.store(), id)?;
    let longest = recording.longest_number();
    let segment = longest.checked_sub(1).and_then(|index| recording.segments.get(index));
    let segment = segment.context("this session has no requests")?;
    let named = segment.points.iter().rev().find_map(|point| point.model.clone());
    let model =
        prices::find_model(named.as_deref().context("no request names its model, so nothing has a price")?)?;
    let models = [model];
    for (words, budget) in &task.budgets {
        for contender in &task.contenders {
            let terms = ReplayTerms {
                budgets: budget.iter().copied().collect(),
                recall: recall.clone(),
                ..ReplayTerms::default()
            };
            let scores = replay(segment, std::slice::from_ref(contender), &models, &terms);
            add(scores.into_iter().map(|score| WhatIfRow { budget: words.clone(), score }).collect());
        }
    }
    Ok(())
}

fn job_part(job: &WhatIfJob, context: &SessionContext) -> Markup {
    html! {
        @if let Some(fault) = &job.fault { p.frame.warn role="alert" { (fault) } }
        @if !job.is_over {
            div role="status" {
                p { label for="progress" { "Replaying: " (job.rows.len()) " of " (job.all) " done. " }
                    a href="" { "Load again" } " " span.soft.small data-live="" {} }
                progress #progress max=(job.all) value=(job.rows.len()) {}
            }
        }
        @if !job.rows.is_empty() {
            (result_table(&job.rows))
            (size_chart(&job.rows))
            (actual_part(context))
        }
    }
}

fn result_table(rows: &[WhatIfRow]) -> Markup {
    let columns = [
        TableColumn::text("policy"),
        TableColumn::text("budget"),
        TableColumn::number("input dollars"),
        TableColumn::number("untouched"),
        TableColumn::number("change"),
        TableColumn::number("tokens"),
        TableColumn::number("edits still possible")
            .with_about("Texts to be replaced that the agent still saw whole"),
        TableColumn::number("fetched again").with_about("Hidden blocks that were needed later"),
        TableColumn::number("rejected").with_about("Requests that a provider would refuse"),
        TableColumn::number("over budget"),
    ];
    let cells = |row: &WhatIfRow| {
        let score = &row.score;
        let change = score.dollars / score.raw_dollars.max(f64::MIN_POSITIVE) - 1.0;
        let tokens = float(score.tokens.0) / float(score.raw_tokens.0.max(1)) - 1.0;
        let bad = |count: u64| html! { span.bad[count > 0] { (number(count)) } };
        vec![
            html! { code { (score.policy) } },
            html! { (row.budget) },
            html! { (dollars(score.dollars)) },
            html! { (dollars(score.raw_dollars)) },
            html! { span.bad[change > 0.0005].good[change < -0.0005] { (percent_change(change)) } },
            html! { (percent_change(tokens)) },
            html! { @if score.edit_anchors.of == 0 { span.soft { "–" } } @else { (percent(score.edit_anchors.value())) } },
            bad(score.refetches),
            bad(score.invalid_requests),
            bad(score.over_budget_requests),
        ]
    };
    let rows: Vec<Vec<Markup>> = rows.iter().map(cells).collect();
    table("Replayed, against the session untouched", &columns, &rows)
}

/// Draws how large the requests would have been.
fn size_chart(rows: &[WhatIfRow]) -> Markup {
    /// More lines would cover each other.
    const DRAWN: usize = 8;
    let points = |sizes: &[u64]| -> Vec<(f64, f64)> {
        let every = sizes.len().div_ceil(300).max(1);
        let places = (1_u32..).zip(sizes).step_by(every);
        places.map(|(at, size)| (f64::from(at), float(*size))).collect()
    };
    let mut lines: Vec<ChartLine> = Vec::new();
    if let Some(first) = rows.first() {
        let points = points(&first.score.raw_sizes);
        lines.push(ChartLine { name: "untouched".to_owned(), points, emphasis: PointEmphasis::Reference });
    }
    for row in rows.iter().filter(|row| &*row.score.policy != "none").take(DRAWN) {
        let name = if row.budget == "as it was" {
            row.score.policy.to_string()
        } else {
            format!("{} {}", row.score.policy, row.budget)
        };
        let is_ours = row.score.policy.starts_with("steady");
        let emphasis = match row.score.invalid_requests {
            0 if is_ours => PointEmphasis::Ours,
            0 => PointEmphasis::Other,
            _ => PointEmphasis::Rejected,
        };
        lines.push(ChartLine { name, points: points(&row.score.sizes), emphasis });
    }
    let all = || lines.iter().flat_map(|line| &line.points);
    let highest = all().map(|(_, size)| *size).fold(1.0, f64::max) * 1.05;
    let last = all().map(|(at, _)| *at).fold(2.0, f64::max);
    let count = lines.len();
    let chart = LineChart {
        title: "Tokens of each request",
        description: format!("{count} lines: the requests untouched, and under each policy."),
        x: ChartAxis::new("request", 1.0, last, |at| format!("{at:.0}")),
        y: ChartAxis::new("tokens", 0.0, highest, |size| tokens_short(trimtab_core::Tokens(1).scale(size).0)),
        lines,
    };
    html! { @if last > 2.0 { (line_chart(&chart)) } }
}

/// Says what the session cost in fact.
fn actual_part(context: &SessionContext) -> Markup {
    let spent: f64 = context.priced.iter().map(|account| account.paid_dollars).sum();
    html! {
        @if spent > 0.0 {
            p.soft { "In fact the session cost " (dollars(spent)) ", output included, as the provider reported." }
        }
    }
}
