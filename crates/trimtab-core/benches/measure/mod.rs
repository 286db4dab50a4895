//! What every benchmark needs: a realistic request of any size, and a fair race. Contestants take turns, so that
//! a noisy neighbour slows all of them; the best of many tries counts; it prints ratios.

#![allow(dead_code, reason = "each benchmark uses its own part of this")]

use std::time::{Duration, Instant};

use trimtab_core::Format;

// The binary's allocator: with the system's, returning pages to the kernel decides every race.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Contestants that do comparable work.
pub(crate) struct Contest<'a> {
    yardstick: &'static str,
    contestants: Vec<Contestant<'a>>,
}

type Contestant<'a> = (&'static str, Box<dyn FnMut() -> usize + 'a>, Vec<Duration>);

impl<'a> Contest<'a> {
    /// Starts a contest whose results are given as multiples of the named contestant.
    pub(crate) fn new(yardstick: &'static str) -> Contest<'a> {
        Contest { yardstick, contestants: Vec::new() }
    }

    pub(crate) fn enter(&mut self, name: &'static str, work: impl FnMut() -> usize + 'a) {
        self.contestants.push((name, Box::new(work), Vec::new()));
    }

    pub(crate) fn run(mut self, tries: usize) {
        for _ in 0..tries {
            for (_, work, times) in &mut self.contestants {
                let start = Instant::now();
                std::hint::black_box(work());
                times.push(start.elapsed());
            }
        }
        let best = |times: &[Duration]| times.iter().min().copied().unwrap_or_default().as_secs_f64();
        let yardstick = self.contestants.iter().find(|(name, ..)| *name == self.yardstick);
        let yardstick = yardstick.map_or(1.0, |(_, _, times)| best(times));
        for (name, _, times) in &self.contestants {
            let best = best(times);
            println!("  {name:34} {:10.3} ms  {:8.2}x", best * 1e3, best / yardstick);
        }
    }
}

/// Source code to fill conversations with: this project's own.
fn source_text() -> String {
    [
        include_str!("../../src/json/scan.rs"),
        include_str!("../../src/wire/mod.rs"),
        include_str!("../../../trimtab-replay/src/recording/mod.rs"),
        include_str!("../../src/history/mod.rs"),
        include_str!("../../tests/laws.rs"),
    ]
    .concat()
}

/// An agent's request of about `bytes` bytes: reads of source files, with thoughts in between.
pub(crate) fn request(format: Format, bytes: usize) -> Vec<u8> {
    write(format, &conversation(format, bytes))
}

/// The same, with a last exchange whose result has `last` bytes, equal whatever came before.
pub(crate) fn request_with_last_turn(format: Format, bytes: usize, last: usize) -> Vec<u8> {
    let mut messages = conversation(format, bytes);
    let text: String = include_str!("../../src/wire/warm.rs").chars().take(last).collect();
    messages.extend(exchange(format, 1_000_000, &text));
    write(format, &messages)
}

fn conversation(format: Format, bytes: usize) -> Vec<serde_json::Value> {
    let source = source_text();
    let lines: Vec<&str> = source.lines().collect();
    let mut messages = Vec::new();
    let mut size = 0;
    let mut step = 0;
    while size < bytes {
        let from = (step * 37) % lines.len();
        let length = 20 + (step * 61) % 220;
        let text: Vec<String> = (from..(from + length).min(lines.len()))
            .map(|line| format!("{:6}\u{2192}{}", line + 1, lines[line]))
            .collect();
        let new = exchange(format, step, &text.join("\n"));
        size += new.iter().map(|message| message.to_string().len()).sum::<usize>();
        messages.extend(new);
        step += 1;
    }
    messages
}

fn write(format: Format, messages: &[serde_json::Value]) -> Vec<u8> {
    let request = match format {
        Format::Anthropic => {
            serde_json::json!({"model": "claude-opus-5", "system": "You are an engineer.", "messages": messages})
        }
        Format::Chat | Format::Responses | Format::Gemini => {
            serde_json::json!({"model": "gpt-5", "messages": messages})
        }
    };
    serde_json::to_vec(&request).expect("JSON")
}

fn exchange(format: Format, step: usize, text: &str) -> Vec<serde_json::Value> {
    let path = format!("/home/dev/project/src/module_{}.rs", step % 40);
    let thought = format!("Next I read {path} to see how it is done there.");
    match format {
        Format::Anthropic => vec![
            serde_json::json!({"role": "assistant", "content": [{"type": "text", "text": thought},
                {"type": "tool_use", "id": format!("toolu_{step}"), "name": "Read", "input": {"file_path": path}}]}),
            serde_json::json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("toolu_{step}"),
                "content": text}]}),
        ],
        Format::Chat | Format::Responses | Format::Gemini => vec![
            serde_json::json!({"role": "assistant", "content": thought, "tool_calls": [{"id": format!("call_{step}"),
                "type": "function", "function": {"name": "read", "arguments": format!("{{\"path\":\"{path}\"}}")}}]}),
            serde_json::json!({"role": "tool", "tool_call_id": format!("call_{step}"), "content": text}),
        ],
    }
}
