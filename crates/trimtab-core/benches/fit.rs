//! Fitting the next request of a conversation that is still warm: parse, count, facts, plan and render of one new turn of
//! 4 KB after histories of growing length, against one copy of the request's bytes. Best of many tries, in turns.
//!
//! `cargo bench -p trimtab-core --bench fit`; with `-- only NAME` one policy, on the longest history, for a profiler; with `-- file PATH` the longest request is written there, and policy, tokens,
//! budget and milliseconds are printed for `scripts/bench-langchain`.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark is a program that prints, and stops at the first thing that is wrong"
)]

mod measure;

use std::time::{Duration, Instant};

use trimtab_core::{
    CountMemo, Counter, Format, Memory, Millis, Policy, Settings, Tokens, WarmState, parse_as,
    policy::policies, session::fit_warm, wire::request_of,
};

const TRIES: usize = 30;

/// A policy at work on one conversation.
struct Contest {
    name: &'static str,
    settings: Settings,
    warm: WarmState,
    memory: Memory,
    best: Duration,
    sent: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(path) = arguments.iter().skip_while(|argument| *argument != "file").nth(1) {
        return for_others(path);
    }
    if let Some(name) = arguments.iter().skip_while(|argument| *argument != "only").nth(1) {
        return contest(4_000_000, |policy| policy == name, 300);
    }
    for bytes in [40_000, 400_000, 4_000_000] {
        contest(bytes, |_| true, TRIES);
    }
}

/// Times a few policies on a conversation that other programs can read.
fn for_others(path: &str) {
    let (request, contests, _) = race(4_000_000, |_| true, TRIES);
    std::fs::write(path, &request).expect("the file can be written");
    let history = parse_as(request, Format::Chat).expect("a request");
    let tokens = Counter::for_model("gpt-5").count_request(&history, &mut CountMemo::default()).total();
    for contest in contests.iter().filter(|contest| matches!(contest.name, "recent" | "priority" | "steady"))
    {
        let budget = contest.settings.budget.expect("a budget");
        println!("{} {tokens} {budget} {:.4}", contest.name, contest.best.as_secs_f64() * 1e3);
    }
}

fn contest(bytes: usize, takes_part: impl Fn(&str) -> bool, tries: usize) {
    let (next, contests, copy) = race(bytes, takes_part, tries);
    let blocks = parse_as(next.clone(), Format::Chat).expect("a request").blocks().len();
    println!("{} KB, {blocks} blocks; one copy {:.3} ms", next.len() / 1000, copy.as_secs_f64() * 1e3);
    for contest in &contests {
        println!(
            "  {:10} {:8.3} ms  {:6.1}x a copy, {:4.0} KB sent",
            contest.name,
            contest.best.as_secs_f64() * 1e3,
            contest.best.as_secs_f64() / copy.as_secs_f64(),
            contest.sent / 1000,
        );
    }
}

/// Fits the last request of a conversation with every policy that takes part, in turns.
fn race(bytes: usize, takes_part: impl Fn(&str) -> bool, tries: usize) -> (Vec<u8>, Vec<Contest>, Duration) {
    let next = measure::request_with_last_turn(Format::Chat, bytes, 4096);
    let whole = parse_as(next.clone(), Format::Chat).expect("a request");
    let before = request_of(&whole, whole.messages().len() - 2);
    let mut contests: Vec<Contest> = policies()
        .filter(|(name, _)| takes_part(name))
        .map(|(name, _)| {
            let policy = Policy::find_shipped(name).expect("a shipped policy");
            // Half of what it counts, so that every policy has much to hide.
            let budget = Some(Tokens::from_len(bytes / 8));
            let settings =
                Settings::new(policy).with_model("gpt-5").with_format(Format::Chat).with_budget(budget);
            let (mut warm, mut memory) = (WarmState::default(), Memory::default());
            let fitted =
                fit_warm(before.clone(), &mut warm, &memory, &settings, Millis(0)).expect("it can be fitted");
            memory.remember_sent(&fitted.plan, Millis(0));
            Contest { name, settings, warm, memory, best: Duration::MAX, sent: 0 }
        })
        .collect();
    let mut copy = Duration::MAX;
    for _ in 0..tries {
        let start = Instant::now();
        std::hint::black_box(next.clone());
        copy = copy.min(start.elapsed());
        for contest in &mut contests {
            let Contest { settings, warm, memory, .. } = contest;
            let back = fit_warm(before.clone(), warm, memory, settings, Millis(1000));
            back.expect("it can be fitted");
            let request = next.clone();
            let start = Instant::now();
            let fitted = fit_warm(request, warm, memory, settings, Millis(1000)).expect("it can be fitted");
            contest.best = contest.best.min(start.elapsed());
            contest.sent = fitted.request.len();
        }
    }
    (next, contests, copy)
}
