//! What was read: files, segments, requests and blocks per agent, and law 1 for every request that was made.

use std::collections::BTreeMap;

use trimtab_core::{BlockKind, parse_as, wire::Edit, write};
use trimtab_replay::{Segment, SegmentStart};

use crate::files::File;

#[derive(Default)]
struct Row {
    files: usize,
    segments: usize,
    compactions: usize,
    branches: usize,
    sub_agents: usize,
    requests: usize,
    with_usage: usize,
    blocks: usize,
    calls: usize,
    results: usize,
    unpaired: usize,
    unknown: usize,
    bytes: usize,
    problems: usize,
    not_identical: usize,
}

/// Prints the table; tells whether every file was read and every request came back as it was.
pub(crate) fn table(files: &[File]) -> bool {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let mut unreadable = 0;
    println!(
        "\nReading: what the recordings hold, and whether every request is written back byte for byte\n"
    );
    for file in files {
        let recording = match &file.recording {
            Ok(recording) => recording,
            Err(error) => {
                unreadable += 1;
                println!("unreadable: {}: {error}", file.path.display());
                continue;
            }
        };
        let formats = recording.segments.first().map_or("-", |segment| segment.history.format().name());
        let row = rows.entry(format!("{} ({formats})", recording.agent)).or_default();
        row.files += 1;
        row.bytes += file.bytes;
        row.problems += recording.problems.len();
        recording.segments.iter().for_each(|segment| row.add(segment));
        for problem in &recording.problems {
            println!("problem: {}: {problem}", file.path.display());
        }
    }
    println!(
        "{:28} {:>5} {:>7} {:>8} {:>7} {:>6} {:>5} {:>8} {:>7} {:>8} {:>7} {:>7} {:>8} {:>8} {:>8} {:>9}",
        "agent (wire format)",
        "files",
        "MB",
        "segments",
        "compact",
        "branch",
        "sub",
        "requests",
        "usage",
        "blocks",
        "calls",
        "results",
        "unpaired",
        "unknown",
        "problems",
        "not ident"
    );
    let mut all = Row::default();
    for (name, row) in &rows {
        row.print(name);
        all.merge(row);
    }
    all.print("all");
    println!("\n{unreadable} of {} files could not be read.", files.len());
    unreadable == 0 && all.not_identical == 0
}

impl Row {
    fn add(&mut self, segment: &Segment) {
        self.segments += 1;
        self.compactions += usize::from(segment.start == SegmentStart::Compaction);
        self.branches += usize::from(segment.start == SegmentStart::Branch);
        self.sub_agents += usize::from(segment.start == SegmentStart::SubAgent);
        self.requests += segment.points.len();
        self.with_usage += segment.points.iter().filter(|point| point.usage.is_some()).count();
        for block in segment.history.blocks() {
            self.blocks += 1;
            self.calls += usize::from(block.kind == BlockKind::Call);
            self.results += usize::from(block.kind == BlockKind::Result);
            self.unknown += usize::from(block.kind == BlockKind::Unknown);
            let pairs = matches!(block.kind, BlockKind::Call | BlockKind::Result) && !block.by_server;
            self.unpaired += usize::from(pairs && block.partner.is_none());
        }
        self.not_identical +=
            segment.points.iter().filter(|point| !identical(&segment.request_at(point), segment)).count();
    }

    fn merge(&mut self, other: &Row) {
        self.files += other.files;
        self.segments += other.segments;
        self.compactions += other.compactions;
        self.branches += other.branches;
        self.sub_agents += other.sub_agents;
        self.requests += other.requests;
        self.with_usage += other.with_usage;
        self.blocks += other.blocks;
        self.calls += other.calls;
        self.results += other.results;
        self.unpaired += other.unpaired;
        self.unknown += other.unknown;
        self.bytes += other.bytes;
        self.problems += other.problems;
        self.not_identical += other.not_identical;
    }

    fn print(&self, name: &str) {
        let megabytes = f64::from(u32::try_from(self.bytes / 1000).unwrap_or(u32::MAX)) / 1e3;
        println!(
            "{name:28} {:>5} {:>7.1} {:>8} {:>7} {:>6} {:>5} {:>8} {:>7} {:>8} {:>7} {:>7} {:>8} {:>8} {:>8} {:>9}",
            self.files,
            megabytes,
            self.segments,
            self.compactions,
            self.branches,
            self.sub_agents,
            self.requests,
            self.with_usage,
            self.blocks,
            self.calls,
            self.results,
            self.unpaired,
            self.unknown,
            self.problems,
            self.not_identical
        );
    }
}

/// Law 1: parsed, taken apart into parts and put together again, the request has the same bytes.
fn identical(request: &[u8], segment: &Segment) -> bool {
    let Ok(history) = parse_as(request.to_vec(), segment.history.format()) else { return false };
    let parts = history.blocks().iter().flat_map(|block| history.parts_of(block));
    let same: Vec<Edit> =
        parts.map(|part| Edit { span: part.span, with: part.span.bytes_in(request).to_vec() }).collect();
    write(&history, &[]) == request && write(&history, &same) == request
}
