//! What every shipped policy makes of every segment's last request, at four budgets and with all the room there is: whether
//! it is valid, fits or names its floor, and stays the same when fitted again, and how much of it is kept.

use std::{collections::BTreeMap, path::Path, thread};

use serde_json::Value;
use trimtab_core::{
    BlockKind, CacheHint, CountMemo, Counter, Decision, FittedRequest, Memory, Millis, Policy, Reason, Role,
    Settings, Tokens, WarmState, facts, fit, parse_as, policy::policies, session::fit_warm,
};
use trimtab_replay::Segment;

use crate::{checker, files::File};

/// The budgets, as shares of what the request counts, and what is known of the cache. The first is more than any policy waits for:
/// it shows what a policy hides by itself.
const SHARES: [(f64, CacheHint); 7] = [
    (1_000_000.0, CacheHint::Cold),
    (0.75, CacheHint::Cold),
    (0.5, CacheHint::Cold),
    (0.25, CacheHint::Cold),
    (0.1, CacheHint::Cold),
    (1_000_000.0, CacheHint::Unknown),
    (0.5, CacheHint::Unknown),
];

/// What is shorter than this is not worth a note.
const SHORT: Tokens = Tokens(150);

/// The budget at which every policy fits a second time from nothing, to be compared.
const COMPARED: f64 = 0.5;

/// Sessions by how many tools were called, as the seeds divide them.
const LENGTHS: [(&str, usize); 4] =
    [("under 10 calls", 0), ("10-20 calls", 10), ("21-29 calls", 21), ("30+ calls", 30)];

/// Faults shown in full, where `TRIMTAB_SHOWN` does not say otherwise; more are only counted.
const SHOWN: usize = 20;

#[derive(Default, Clone)]
struct Row {
    fitted: usize,
    failed: usize,
    invalid: usize,
    over: usize,
    floors: usize,
    not_idempotent: usize,
    not_same: usize,
    grown: usize,
    unseen: usize,
    kept: f64,
}

/// What one thread found.
#[derive(Default)]
struct Found {
    requests: usize,
    faults: Vec<String>,
    /// By policy, budget and length of the session.
    rows: BTreeMap<(usize, usize, usize), Row>,
}

/// Prints the table; tells whether every law was kept. `TRIMTAB_EVERY=N` takes every Nth segment only, `TRIMTAB_POLICIES=A,B` only
/// these policies.
pub(crate) fn table(files: &[File]) -> bool {
    let every = std::env::var("TRIMTAB_EVERY").ok().and_then(|every| every.parse().ok()).unwrap_or(1);
    let asked = std::env::var("TRIMTAB_POLICIES").unwrap_or_default();
    let is_asked = |name: &str| asked.is_empty() || asked.split(',').any(|asked| asked == name);
    let policies: Vec<Policy> = policies()
        .filter(|(name, _)| is_asked(name))
        .filter_map(|(name, _)| Policy::find_shipped(name).ok())
        .collect();
    let recordings =
        files.iter().filter_map(|file| Some((file.path.as_path(), file.recording.as_ref().ok()?)));
    let segments: Vec<(&Path, &Segment)> = recordings
        .flat_map(|(path, recording)| recording.segments.iter().map(move |one| (path, one)))
        .step_by(every)
        .collect();
    println!("\nFit: every segment's last request by every policy\n");
    let found = in_threads(&segments, &policies);
    let shown = std::env::var("TRIMTAB_SHOWN").ok().and_then(|shown| shown.parse().ok()).unwrap_or(SHOWN);
    for fault in found.faults.iter().take(shown) {
        println!("{fault}");
    }
    println!("{} requests, {} faults\n", found.requests, found.faults.len());
    print_rows(&policies, &found);
    print_lengths(&policies, &found);
    let bad = |row: &Row| {
        row.failed + row.invalid + row.over + row.not_idempotent + row.not_same + row.grown + row.unseen > 0
    };
    !found.rows.values().any(bad)
}

fn in_threads(segments: &[(&Path, &Segment)], policies: &[Policy]) -> Found {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut whole = Found::default();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|first| {
                scope.spawn(move || {
                    let mut found = Found::default();
                    for (path, segment) in segments.iter().skip(first).step_by(threads) {
                        add(path, segment, policies, &mut found);
                    }
                    found
                })
            })
            .collect();
        for worker in workers {
            match worker.join() {
                Ok(found) => whole.join(found),
                Err(_) => whole.faults.push("a fit panicked".to_owned()),
            }
        }
    });
    whole.faults.sort();
    whole
}

impl Found {
    fn join(&mut self, other: Found) {
        self.requests += other.requests;
        self.faults.extend(other.faults);
        for (key, row) in other.rows {
            self.rows.entry(key).or_default().join(&row);
        }
    }

    /// Returns the sum of a policy's rows at a budget, over sessions of some length or of all.
    fn sum(&self, policy: usize, share: usize, length: Option<usize>) -> Row {
        let mut sum = Row::default();
        for ((_, _, of), row) in self.rows.range((policy, share, 0)..(policy, share + 1, 0)) {
            if length.is_none_or(|length| length == *of) {
                sum.join(row);
            }
        }
        sum
    }
}

impl Row {
    fn join(&mut self, other: &Row) {
        self.fitted += other.fitted;
        self.failed += other.failed;
        self.invalid += other.invalid;
        self.over += other.over;
        self.floors += other.floors;
        self.not_idempotent += other.not_idempotent;
        self.not_same += other.not_same;
        self.grown += other.grown;
        self.unseen += other.unseen;
        self.kept += other.kept;
    }

    fn mean_kept(&self) -> f64 {
        100.0 * self.kept / (self.fitted.max(1) as f64)
    }
}

fn label((share, cache): (f64, CacheHint)) -> String {
    let budget = if share > 1.0 { "none".to_owned() } else { format!("{:.0}%", share * 100.0) };
    match cache {
        CacheHint::Cold => budget,
        CacheHint::Unknown => budget + " warm",
    }
}

fn print_rows(policies: &[Policy], found: &Found) {
    println!(
        "{:12} {:>9} {:>7} {:>7} {:>8} {:>6} {:>7} {:>10} {:>9} {:>6} {:>7} {:>7}",
        "policy",
        "budget",
        "fitted",
        "failed",
        "invalid",
        "over",
        "floors",
        "not idemp",
        "not same",
        "grown",
        "unseen",
        "kept"
    );
    for (policy, named) in policies.iter().enumerate() {
        for (share, value) in SHARES.into_iter().enumerate() {
            let row = found.sum(policy, share, None);
            println!(
                "{:12} {:>9} {:>7} {:>7} {:>8} {:>6} {:>7} {:>10} {:>9} {:>6} {:>7} {:>6.1}%",
                named.name,
                label(value),
                row.fitted,
                row.failed,
                row.invalid,
                row.over,
                row.floors,
                row.not_idempotent,
                row.not_same,
                row.grown,
                row.unseen,
                row.mean_kept()
            );
        }
    }
}

fn print_lengths(policies: &[Policy], found: &Found) {
    println!("\nKept by the length of the session\n");
    print!("{:12} {:>9}", "policy", "budget");
    for (length, (name, _)) in LENGTHS.into_iter().enumerate() {
        let sessions = found.sum(0, 0, Some(length)).fitted;
        print!(" {:>22}", format!("{name} ({sessions})"));
    }
    println!();
    for (policy, named) in policies.iter().enumerate() {
        for (share, value) in SHARES.into_iter().enumerate() {
            print!("{:12} {:>9}", named.name, label(value));
            for length in 0..LENGTHS.len() {
                print!(" {:>21.1}%", found.sum(policy, share, Some(length)).mean_kept());
            }
            println!();
        }
    }
}

fn add(path: &Path, segment: &Segment, policies: &[Policy], found: &mut Found) {
    let Some(request) = segment.points.last().map(|point| segment.request_at(point)) else { return };
    found.requests += 1;
    let format = segment.history.format();
    let mut fault = |what: String| found.faults.push(format!("{}: {what}", path.display()));
    let Ok(history) = parse_as(request.clone(), format) else { return fault("unreadable".to_owned()) };
    let Ok(input) = serde_json::from_slice::<Value>(&request) else { return fault("no JSON".to_owned()) };
    let counter = Counter::for_model(&history.model().unwrap_or_default());
    let mut memo = CountMemo::default();
    let total = counter.count_request(&history, &mut memo).total();
    let calls = history.blocks().iter().filter(|block| block.kind == BlockKind::Call).count();
    let length = LENGTHS.iter().rposition(|(_, least)| calls >= *least).unwrap_or_default();
    // The request is read once, and what comes out of it once for each policy: that changes no byte.
    let mut warm = WarmState::default();
    for (number, policy) in policies.iter().enumerate() {
        let mut warm_again = WarmState::default();
        for (column, (share, cache)) in SHARES.into_iter().enumerate() {
            let row = found.rows.entry((number, column, length)).or_default();
            let name = format!("{format}, {} {}", policy.name, label((share, cache)));
            let budget = Some(total.scale(share * counter.tokenizer().exactness().guard()));
            let settings =
                Settings::new(policy.clone()).with_format(format).with_budget(budget).with_cache(cache);
            let memory = Memory::default();
            let fitted = match fit_warm(request.clone(), &mut warm, &memory, &settings, Millis(0)) {
                Ok(fitted) => fitted,
                Err(error) => {
                    row.failed += 1;
                    fault(format!("{name}: {error}"));
                    continue;
                }
            };
            row.fitted += 1;
            row.grown += usize::from(fitted.request.len() > request.len());
            row.floors += usize::from(fitted.plan.floor().is_some());
            row.kept += fitted.plan.after().0 as f64 / total.0.max(1) as f64;
            let Ok(output) = serde_json::from_slice::<Value>(&fitted.request) else {
                row.invalid += 1;
                fault(format!("{name}: the output is no JSON"));
                continue;
            };
            let new = checker::new_faults(format.name(), &input, &output);
            row.invalid += usize::from(!new.is_empty());
            new.first().into_iter().for_each(|new| fault(format!("{name}: {new}")));
            let counted = parse_as(fitted.request.clone(), format).ok();
            let counted = counted.map(|history| counter.count_request(&history, &mut memo).total());
            // Scaling by the guard and back may lose one token.
            let over = counted.is_none_or(|counted| counted.0 > total.scale(share).0 + 1);
            if over && fitted.plan.floor().is_none() && policy.name != "none" {
                row.over += 1;
                fault(format!("{name}: {counted:?} of {}", total.scale(share)));
            }
            if let Some(block) = hidden_unseen(&fitted) {
                row.unseen += 1;
                fault(format!("{name}: block {block} is whole, and something unseen is hidden"));
            }
            let again = fit_warm(fitted.request.clone(), &mut warm_again, &memory, &settings, Millis(0));
            if again.is_ok_and(|again| again.request != fitted.request) {
                row.not_idempotent += 1;
                fault(format!("{name}: fitting again changes it"));
            }
            let from_nothing = || {
                fit(request.clone(), &memory, &settings, Millis(0))
                    .is_ok_and(|cold| cold.request == fitted.request)
            };
            if share == COMPARED && cache == CacheHint::Cold && !from_nothing() {
                row.not_same += 1;
                fault(format!("{name}: from nothing it is fitted otherwise"));
            }
        }
    }
}

/// What a client puts in the place of an output that it keeps in a file: what is shortened already is left alone.
const PLACEHOLDER: &str = "<persisted-output>";

/// Finds a result that the model has seen and that is sent whole, where one that it has not seen is hidden to make room. The latest
/// exchange, short results, instructions and what came shortened may stay.
fn hidden_unseen(fitted: &FittedRequest) -> Option<u32> {
    let history = &fitted.history;
    let facts = facts(history);
    let answered = history.entries().iter().rfind(|entry| entry.role == Role::Assistant)?;
    let seen = history.blocks_before_end(answered);
    let is_result = |decision: &&Decision| {
        let fact = facts.row(decision.block);
        fact.is_some_and(|fact| fact.acts_as == BlockKind::Result && !fact.instructions)
    };
    let results =
        || fitted.plan.decisions().iter().enumerate().filter(move |(_, decision)| is_result(decision));
    let makes_room = |decision: &Decision| {
        let shown_elsewhere = |reason: &Reason| {
            matches!(
                reason,
                Reason::TooLong | Reason::Identical { .. } | Reason::Shown { .. } | Reason::Rewritten { .. }
            )
        };
        decision.reason().is_some_and(|reason| !shown_elsewhere(&reason))
    };
    results().find(|(index, decision)| *index >= seen && makes_room(decision))?;
    let latest = results().rfind(|(index, _)| *index < seen)?.1.block;
    let entry_of = |block| facts.row(block).map(|fact| fact.entry);
    let stays = |decision: &Decision| {
        let (tokens, _) = fitted.plan.tokens_of(decision.block);
        let block = history.block(decision.block);
        let came_shortened = block.is_some_and(|block| history.block_text(block).starts_with(PLACEHOLDER));
        let is_latest = entry_of(decision.block) == entry_of(latest);
        decision.verdict.shows_all() && tokens > SHORT && !is_latest && !came_shortened
    };
    let whole = results().find(|(index, decision)| *index < seen && stays(decision));
    whole.map(|(_, decision)| decision.block.0)
}
