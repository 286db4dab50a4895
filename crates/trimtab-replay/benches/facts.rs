//! Times facts and files: a whole long conversation per megabyte, and one new turn after histories of growing length,
//! which must not cost more than after a short one. A folder stands for its largest recording.
//!
//! `cargo bench -p trimtab-core --bench facts [-- RECORDING|FOLDER]`

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::{
    hint::black_box,
    path::{Path, PathBuf},
    time::Instant,
};

use trimtab_core::{History, facts, files, parse, wire::parse_after};

/// How often each thing is timed; the fastest counts, since everything else is the machine's.
const ROUNDS: usize = 15;

fn main() {
    let recording = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    if let Some(path) = recording.and_then(|path| largest(Path::new(&path))) {
        let name = path.display().to_string();
        let Ok(bytes) = std::fs::read(&path) else { return println!("{name} cannot be read") };
        let Ok(recording) = trimtab_replay::read(&bytes) else {
            return println!("{name} holds no conversation");
        };
        if let Some(segment) = recording.segments.get(recording.longest_number() - 1) {
            whole(&name, &segment.history);
        }
    }
    if let Ok(history) = parse(conversation(3000)) {
        whole("made, 3000 steps", &history);
    }
    // Multiples of four, so that each new turn does the same.
    let turns: Vec<(usize, [u64; 2])> =
        [28, 300, 3000].into_iter().filter_map(|steps| Some((steps, one_turn(steps)?))).collect();
    let Some((_, shortest)) = turns.first() else { return };
    for (steps, [facts, files]) in &turns {
        let ratio = |time: u64, least: u64| {
            format!("{}.{:02}x", time / least.max(1), time * 100 / least.max(1) % 100)
        };
        println!(
            "one turn behind {steps:>4} steps: facts {facts:>3} us ({} the shortest), files {files:>3} us ({})",
            ratio(*facts, shortest[0]),
            ratio(*files, shortest[1])
        );
    }
}

/// Returns the file itself, or the largest one below a folder.
fn largest(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_owned());
    }
    let below = std::fs::read_dir(path).ok()?.flatten().filter_map(|entry| largest(&entry.path()));
    below.max_by_key(|file| file.metadata().map_or(0, |about| about.len()))
}

fn whole(name: &str, history: &History) {
    let bytes = u64::try_from(history.bytes().len()).unwrap_or(1).max(1);
    let known = facts(history);
    let of_facts = fastest(|| {
        black_box(facts(history));
    });
    let of_files = fastest(|| {
        black_box(files(history, &known));
    });
    println!("{name}: {} blocks, {} KB", history.blocks().len(), bytes / 1000);
    for (what, micros) in [("facts", of_facts), ("files", of_files)] {
        let per_megabyte = micros * 1_000_000 / bytes;
        println!("  {what}: {micros} us, {}.{:02} ms per MB", per_megabyte / 1000, per_megabyte % 1000 / 10);
    }
}

/// Times one new turn: its facts, and what it did to files.
fn one_turn(steps: usize) -> Option<[u64; 2]> {
    let before = parse(conversation(steps)).ok()?;
    let next = parse_after(&before, conversation(steps + 1)).ok()?;
    let last = parse_after(&next, conversation(steps + 2)).ok()?;
    let known = facts(&before);
    let touched = files(&before, &known);
    // A copy has no room to grow: one turn that is not timed makes room, as in a session that goes on.
    let grown = (0..ROUNDS).map(|_| {
        let (mut facts, mut files) = (known.clone(), touched.clone());
        facts.extend(&next);
        files.extend(&next, &facts);
        (facts, files)
    });
    let mut copies: Vec<_> = grown.collect();
    let mut timed = copies.iter_mut();
    let of_facts = fastest(|| {
        if let Some((facts, _)) = timed.next() {
            facts.extend(&last);
        }
    });
    let mut timed = copies.iter_mut();
    let of_files = fastest(|| {
        if let Some((facts, files)) = timed.next() {
            files.extend(&last, facts);
        }
    });
    Some([of_facts, of_files])
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
