//! Times the facts stage: a whole long conversation per megabyte, and one new turn behind a short and a long history.
//!
//! `cargo bench -p trimtab --bench facts [-- RECORDING]`

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::{hint::black_box, time::Instant};

use trimtab::{History, facts, parse, parse_after};

/// How often each thing is timed; the fastest counts, since everything else is the machine's.
const ROUNDS: usize = 7;

fn main() {
    let recording = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    if let Some(path) = recording {
        let Ok(bytes) = std::fs::read(&path) else { return println!("{path} cannot be read") };
        let Ok(recording) = trimtab::read(&bytes) else { return println!("{path} holds no conversation") };
        if let Some(segment) = recording.segments.get(recording.longest_number() - 1) {
            whole("recording", &segment.history);
        }
    }
    if let Ok(history) = parse(conversation(3000)) {
        whole("made, 3000 steps", &history);
    }
    for steps in [30, 300, 3000] {
        one_turn(steps);
    }
}

fn whole(name: &str, history: &History) {
    let micros = fastest(|| {
        black_box(facts(history));
    });
    let bytes = u64::try_from(history.bytes().len()).unwrap_or(1).max(1);
    println!(
        "{name}: {} blocks, {} KB, {micros} µs, {} µs per MB",
        history.blocks().len(),
        bytes / 1000,
        micros * 1_000_000 / bytes
    );
}

fn one_turn(steps: usize) {
    let Ok(before) = parse(conversation(steps)) else { return };
    let Ok(next) = parse_after(&before, conversation(steps + 1)) else { return };
    let Ok(last) = parse_after(&next, conversation(steps + 2)) else { return };
    let known = facts(&before);
    // A copy has no room to grow: one turn that is not timed makes room, as in a session that goes on.
    let grown = (0..ROUNDS).map(|_| {
        let mut copy = known.clone();
        copy.extend(&next);
        copy
    });
    let mut copies: Vec<_> = grown.collect();
    let mut timed = copies.iter_mut();
    let micros = fastest(|| {
        if let Some(copy) = timed.next() {
            copy.extend(&last);
        }
    });
    let new = last.blocks().len() - last.reused_blocks();
    println!("one turn after {steps} steps ({new} of {} blocks new): {micros} µs", last.blocks().len());
}

fn fastest(mut timed: impl FnMut()) -> u64 {
    (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            timed();
            u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
        })
        .min()
        .unwrap_or(0)
}

/// Makes a conversation of that many steps: reads, searches, edits, tests, with texts of a usual size.
fn conversation(steps: usize) -> Vec<u8> {
    let mut messages =
        vec![r#"{"role":"user","content":"Make the parser faster. Never change the tests."}"#.to_owned()];
    for step in 0..steps {
        let file = step % 40;
        let (name, input) = match step % 4 {
            0 => ("Read", format!(r#"{{"file_path":"/srv/app/src/part{file}.rs"}}"#)),
            1 => ("Bash", format!(r#"{{"command":"cd /srv/app && rg -n 'fn part{file}' src | head -20"}}"#)),
            2 => (
                "Edit",
                format!(
                    r#"{{"file_path":"/srv/app/src/part{file}.rs","old_string":"a{step}","new_string":"b{step}"}}"#
                ),
            ),
            _ => ("Bash", r#"{"command":"cargo test -p app 2>&1 | tail -30"}"#.to_owned()),
        };
        messages.push(format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":"Step {step}: looking on."}},{{"type":"tool_use","id":"c{step}","name":"{name}","input":{input}}}]}}"#
        ));
        let line = format!("    let value_{step} = part{file}(input, {step}); // as before\\n");
        let text = line.repeat(80);
        messages.push(format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c{step}","content":"{text}"}}]}}"#
        ));
    }
    format!(r#"{{"model":"claude-opus-5","messages":[{}]}}"#, messages.join(",")).into_bytes()
}
