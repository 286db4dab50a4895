//! Counting, side by side in one run: ours, the bare crate, the second implementation, and the memo.
//! Best of several interleaved tries; read the ratios. `cargo bench -p trimtab-core --bench count`
//!
//! Repeated tries warm the crate's own cache of words, for all but `bpe-openai` alike. With
//! `-- file PATH` it counts that file alone, in pieces of 4 KB and once, and prints the tokens and the
//! time in microseconds: the half of `scripts/bench-python-count` that is ours.

#![expect(
    clippy::as_conversions,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark is a program that prints, and stops at the first thing that is wrong"
)]

use std::{
    env, fs,
    hint::black_box,
    time::{Duration, Instant},
};

use trimtab_core::{
    CountMemo, Counter, Tokens,
    count::{Tokenizer, Vocabulary},
};

const TRIES: usize = 15;
const TEXT_BYTES: usize = 1_000_000;
const PIECE_BYTES: usize = 4096;
const HOSTILE_BYTES: usize = 300_000;
const COUNTER: Counter = Counter::new(Tokenizer::Exact(Vocabulary::O200k));

fn main() {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [word, path] = arguments.as_slice()
        && word == "file"
    {
        return count_file(path);
    }
    let start = Instant::now();
    COUNTER.count_text("load");
    println!("vocabulary loaded in {:.0} ms", millis(start.elapsed()));
    let start = Instant::now();
    bpe_openai::o200k_base().count("load");
    println!("bpe-openai loaded in {:.0} ms\n", millis(start.elapsed()));
    compare_texts();
    compare_worst_cases();
}

fn compare_texts() {
    let bare = tiktoken::get_encoding("o200k_base").expect("the vocabulary is switched on");
    println!(
        "{:10} {:>9} {:>11} {:>13} {:>13} {:>15}",
        "1 MB of", "ours MB/s", "ours / bare", "memo new/bare", "memo old/bare", "bpe-openai/ours"
    );
    for (name, text) in texts() {
        let pieces = pieces(&text);
        let mut known = CountMemo::default();
        for piece in &pieces {
            known.count_text(COUNTER, piece);
        }
        let [ours, bare, fresh, old, second] = best(
            &pieces,
            [
                &mut |piece| COUNTER.count_text(piece),
                &mut |piece| Tokens::from_len(bare.count(piece)),
                &mut |piece| CountMemo::default().count_text(COUNTER, piece),
                &mut |piece| known.count_text(COUNTER, piece),
                &mut |piece| Tokens::from_len(bpe_openai::o200k_base().count(piece)),
            ],
        );
        println!(
            "{name:10} {:>9.0} {:>11.2} {:>13.2} {:>13.3} {:>15.1}",
            text.len() as f64 / 1e6 / ours.as_secs_f64(),
            ratio(ours, bare),
            ratio(fresh, bare),
            ratio(old, bare),
            ratio(second, ours),
        );
    }
}

fn compare_worst_cases() {
    println!(
        "\n{:16} {:>8} {:>8} {:>13} {:>17}",
        "300 KB unsplit", "ours ms", "bare ms", "bpe-openai ms", "ours / bpe-openai"
    );
    let bare = tiktoken::get_encoding("o200k_base").expect("the vocabulary is switched on");
    for (name, text) in worst_cases() {
        let [ours, bare, second] = best(
            &[&text],
            [
                &mut |text| COUNTER.count_text(text),
                &mut |text| Tokens::from_len(bare.count(text)),
                &mut |text| Tokens::from_len(bpe_openai::o200k_base().count(text)),
            ],
        );
        println!(
            "{name:16} {:>8.2} {:>8.2} {:>13.2} {:>17.2}",
            millis(ours),
            millis(bare),
            millis(second),
            ratio(ours, second)
        );
    }
}

fn count_file(path: &str) {
    let text = fs::read_to_string(path).expect("a readable text file");
    let pieces = pieces(&text);
    COUNTER.count_text("load");
    let start = Instant::now();
    let tokens: Tokens = pieces.iter().map(|piece| COUNTER.count_text(piece)).sum();
    let time = start.elapsed();
    println!("{tokens} {}", time.as_micros());
}

/// Runs all on each piece in turn, `TRIES` times, checks that they agree, and gives the sum of the best
/// times of each: a piece is short enough to be counted without interruption even on a busy machine.
fn best<const N: usize>(pieces: &[&str], mut tasks: [&mut dyn FnMut(&str) -> Tokens; N]) -> [Duration; N] {
    let mut total = [Duration::ZERO; N];
    for piece in pieces {
        let mut best = [Duration::MAX; N];
        for _ in 0..TRIES {
            let mut counted = None;
            for (task, best) in tasks.iter_mut().zip(&mut best) {
                let start = Instant::now();
                let tokens = black_box(task(black_box(piece)));
                *best = start.elapsed().min(*best);
                assert_eq!(*counted.get_or_insert(tokens), tokens, "all count the same");
            }
        }
        for (total, best) in total.iter_mut().zip(best) {
            *total += best;
        }
    }
    total
}

fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE_BYTES));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Texts of the kinds that agents send, made by a fixed rule.
fn texts() -> Vec<(&'static str, String)> {
    let mut random = Random(7);
    let mut fill = |line: &mut dyn FnMut(&mut Random) -> String| {
        let mut text = String::new();
        while text.len() < TEXT_BYTES {
            text.push_str(&line(&mut random));
        }
        text
    };
    let source = include_str!("count.rs");
    vec![
        (
            "code",
            fill(&mut |random| {
                let line = source.lines().nth(random.below(200)).unwrap_or("}");
                format!("{}\n", line.replace("text", random.word()).replace("best", random.word()))
            }),
        ),
        (
            "logs",
            fill(&mut |random| {
                format!(
                    "2026-03-{:02}T{:02}:{:02}:07.{:03}Z INFO {}::{} took {} us id={:08x}\n",
                    random.below(28),
                    random.below(24),
                    random.below(60),
                    random.below(1000),
                    random.word(),
                    random.word(),
                    random.below(99_999),
                    random.below(1 << 31)
                )
            }),
        ),
        (
            "JSON",
            fill(&mut |random| {
                format!(
                    "{{\"id\": {}, \"{}\": \"{} {}\", \"ok\": true, \"values\": [{}, {}.5]}},\n",
                    random.below(99_999),
                    random.word(),
                    random.word(),
                    random.word(),
                    random.below(100),
                    random.below(100)
                )
            }),
        ),
        (
            "base64",
            fill(&mut |random| {
                random.of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 76) + "\n"
            }),
        ),
        (
            "Chinese",
            fill(&mut |random| {
                (0..20)
                    .map(|_| char::from_u32(0x4E00 + random.below(3000) as u32).unwrap_or('。'))
                    .chain(['。'])
                    .collect()
            }),
        ),
    ]
}

fn worst_cases() -> Vec<(&'static str, String)> {
    let mut random = Random(11);
    let repeated = |unit: &str| unit.repeat(HOSTILE_BYTES / unit.len());
    vec![
        ("one letter", repeated("a")),
        ("spaces", repeated(" ")),
        ("newlines", repeated("\n")),
        ("equals signs", repeated("=")),
        ("two letters", repeated("ab")),
        ("random letters", random.of("abcdefghijklmnopqrstuvwxyz", HOSTILE_BYTES)),
        ("punctuation", random.of("!@#$%^&*-=+", HOSTILE_BYTES)),
        (
            "Chinese",
            (0..HOSTILE_BYTES / 3)
                .filter_map(|_| char::from_u32(0x4E00 + random.below(5000) as u32))
                .collect(),
        ),
    ]
}

/// A fixed sequence of numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn word(&mut self) -> &'static str {
        const WORDS: [&str; 16] = [
            "parser", "request", "cache", "session", "Budget", "token_count", "readFile", "retry", "http",
            "error", "config", "index", "worker", "snapshot", "diff", "queue",
        ];
        WORDS[self.below(WORDS.len())]
    }

    fn of(&mut self, alphabet: &str, length: usize) -> String {
        (0..length).map(|_| char::from(alphabet.as_bytes()[self.below(alphabet.len())])).collect()
    }
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
