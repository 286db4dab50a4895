//! Replays made-up sessions of growing length under a few contenders: what a request of them costs must grow slowly, since the
//! past is planned once and only looked at again. Best of a few tries.
//!
//! `cargo bench -p trimtab-core --bench replay`

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark is a program that prints, and stops at the first thing that is wrong"
)]

#[path = "../../trimtab-core/benches/measure/mod.rs"]
mod measure;

use std::time::{Duration, Instant};

use trimtab_core::{Format, find_model, parse_as};
use trimtab_replay::{Contender, Recording, ReplayTerms, replay};

const TRIES: usize = 3;

fn main() {
    let contenders: Vec<Contender> = ["none", "steady", "ladder", "peer:mask", "oracle:block"]
        .iter()
        .map(|name| Contender::parse(name).expect("a contender"))
        .collect();
    let models = [find_model("claude-opus-5").expect("a model")];
    let mut shortest = None;
    for bytes in [100_000, 400_000, 1_600_000] {
        let request = measure::request(Format::Anthropic, bytes);
        let recording = Recording::of_request(parse_as(request, Format::Anthropic).expect("a request"));
        let segment = &recording.segments[0];
        let requests = segment.points.len();
        let mut best = Duration::MAX;
        for _ in 0..TRIES {
            let start = Instant::now();
            std::hint::black_box(replay(segment, &contenders, &models, &ReplayTerms::default()));
            best = best.min(start.elapsed());
        }
        let each = best.as_secs_f64() / f64::from(u32::try_from(requests).expect("few requests"));
        let first = *shortest.get_or_insert(each);
        println!(
            "{:5} KB, {requests:4} requests, {} contenders: {:8.1} ms, {:6.3} ms a request, {:.2}x the shortest",
            bytes / 1000,
            contenders.len(),
            best.as_secs_f64() * 1e3,
            each * 1e3,
            each / first
        );
    }
    // Where the system tells it.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or(" not told here");
    println!("most memory: {}", most.trim());
}
