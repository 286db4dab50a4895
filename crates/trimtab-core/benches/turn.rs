//! Counting one new turn of 4 KB on histories of growing length, all counted before: the time must not grow with the
//! history. Best of many tries, in turns; run with `cargo bench -p trimtab-core --bench turn`.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark is a program that prints, and stops at the first thing that is wrong"
)]

mod measure;

use std::time::{Duration, Instant};

use trimtab_core::{
    CountMemo, Counter, Format, History,
    count::{Counts, Tokenizer, Vocabulary},
    parse_as,
    wire::{parse_after, request_of},
};

const TRIES: usize = 400;
const COUNTER: Counter = Counter::new(Tokenizer::Exact(Vocabulary::O200k));

struct Turn {
    history: History,
    counted: Counts,
    best: Duration,
}

fn main() {
    let mut turns: Vec<Turn> = [40_000, 400_000, 4_000_000].into_iter().map(turn).collect();
    for _ in 0..TRIES {
        for turn in &mut turns {
            // The history's counts are known and the new turn's are not.
            let mut counts = turn.counted.clone();
            let mut memo = CountMemo::default();
            let start = Instant::now();
            COUNTER.request_after(&mut counts, &turn.history, &mut memo);
            turn.best = turn.best.min(start.elapsed());
        }
    }
    let shortest = turns[0].best.as_secs_f64();
    for turn in &turns {
        let tokens = turn.counted.total();
        let new = turn.history.blocks().len() - turn.history.reused_blocks();
        let micros = turn.best.as_secs_f64() * 1e6;
        println!(
            "{tokens:>9} tokens of history, {new} new blocks: {micros:8.1} us  {:.2}x the shortest",
            turn.best.as_secs_f64() / shortest
        );
    }
}

/// Makes a history of about `bytes` bytes that ends in a turn of 4 KB.
fn turn(bytes: usize) -> Turn {
    let request = measure::request_with_last_turn(Format::Chat, bytes, 4096);
    let whole = parse_as(request, Format::Chat).expect("a request");
    let before = parse_as(request_of(&whole, whole.messages().len() - 2), Format::Chat).expect("a request");
    let counted = COUNTER.count_request(&before, &mut CountMemo::default());
    let history = parse_after(&before, whole.into_bytes()).expect("a request");
    Turn { history, counted, best: Duration::MAX }
}
