//! What a store costs: appending against bare rusqlite and zstd that write the same, recalling a large original, recognizing a
//! long conversation. `cargo bench -p trimtab-store`; prints medians and the 99th percentile of one run.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a program that prints a table and stops at the first fault"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use common::{Said, request, settings, tool, user};
use rusqlite::{Connection, TransactionBehavior, params};
use trimtab_core::{Millis, block_handle, fit, parse};
use trimtab_store::{Append, Appended, Recognized, SessionLabel, Sqlite, Store};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const APPENDS: usize = 300;

/// About 4 KB of build output, different for every number.
fn output(number: usize) -> String {
    (0..80)
        .map(|line| {
            format!(
                "{line}: compiling part {} of module {number}, ok\n",
                (line * 7919 + number * 104_729) % 100_003
            )
        })
        .collect()
}

fn conversation(steps: usize) -> Vec<Said> {
    let mut said = vec![user("Fix the build.")];
    said.extend((0..steps).map(|step| tool(&format!("make {step}"), &output(step))));
    said
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let (ours, bare) = appends(folder.path());
    let (middle, other) = (at(&ours, 50), at(&bare, 50));
    println!("append, one exchange of 4 KB more each time, durable:");
    println!("  store            p50 {middle:?}  p99 {:?}", at(&ours, 99));
    println!("  rusqlite + zstd  p50 {other:?}  p99 {:?}", at(&bare, 99));
    println!("  ratio of p50 {:.2}", middle.as_secs_f64() / other.as_secs_f64());
    recalls(folder.path());
}

/// Appends a growing conversation, turn by turn to both, so that both meet the same disk.
fn appends(folder: &Path) -> (Vec<Duration>, Vec<Duration>) {
    let store = Sqlite::open(&folder.join("ours.db")).expect("a store");
    let mut bare = Bare::open(&folder.join("bare.db"));
    let none = settings("none", 100_000_000);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut recognized = Vec::new();
    for steps in 1..=APPENDS {
        let bytes = request(&conversation(steps));
        let history = parse(bytes.clone()).expect("a request");
        let start = Instant::now();
        let known = store.recognize(&history, SessionLabel::default()).expect("the store");
        recognized.push(start.elapsed());
        let fitted = fit(bytes, &trimtab_core::Memory::default(), &none, Millis(1)).expect("a plan");
        let new = [format!("make {}", steps - 1), output(steps - 1)];
        // Whoever comes first also waits for what others wrote to the disk meanwhile: they take turns.
        if steps.is_multiple_of(2) {
            theirs.push(timed(|| bare.append(&known, &new)));
        }
        ours.push(timed(|| {
            let done = store.append_request(&Append::new(&fitted.history, &fitted.plan, &known, Millis(1)));
            assert!(matches!(done, Ok(Appended::Stored { .. })));
        }));
        if !steps.is_multiple_of(2) {
            theirs.push(timed(|| bare.append(&known, &new)));
        }
    }
    println!(
        "recognize, up to {APPENDS} exchanges: p50 {:?}, the longest {:?}",
        at(&sorted(&recognized), 50),
        recognized[APPENDS - 1]
    );
    (sorted(&ours), sorted(&theirs))
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// The same rows, written by hand: contents, their pack, identities, the request.
struct Bare {
    connection: Connection,
    packer: zstd::bulk::Compressor<'static>,
}

impl Bare {
    fn open(path: &Path) -> Bare {
        let connection = Connection::open(path).expect("a file");
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 CREATE TABLE content (id INTEGER PRIMARY KEY, hash BLOB UNIQUE, pack, start, length);
                 CREATE TABLE pack (id INTEGER PRIMARY KEY, length, data BLOB);
                 CREATE TABLE chain (hash BLOB PRIMARY KEY, session, verdict) WITHOUT ROWID;
                 CREATE TABLE request (id INTEGER PRIMARY KEY, session, at, tip BLOB, parts);
                 CREATE INDEX tip ON request (tip); CREATE INDEX session ON request (session);",
            )
            .expect("a schema");
        Bare { connection, packer: zstd::bulk::Compressor::new(3).expect("a compressor") }
    }

    fn append(&mut self, known: &Recognized, new: &[String]) {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).expect("a transaction");
        let all = new.concat();
        let data = self.packer.compress(all.as_bytes()).expect("zstd");
        transaction
            .prepare_cached("INSERT INTO pack (length, data) VALUES (?, ?)")
            .unwrap()
            .execute(params![all.len(), data])
            .unwrap();
        let pack = transaction.last_insert_rowid();
        for content in new {
            transaction
                .prepare_cached(
                    "INSERT OR IGNORE INTO content (hash, pack, start, length) VALUES (?, ?, 0, ?)",
                )
                .unwrap()
                .execute(params![blake3::hash(content.as_bytes()).as_bytes(), pack, content.len()])
                .unwrap();
        }
        for hash in &known.chain[known.known_blocks..] {
            transaction
                .prepare_cached("INSERT OR IGNORE INTO chain VALUES (?, 1, NULL)")
                .unwrap()
                .execute([hash.0])
                .unwrap();
        }
        transaction
            .prepare_cached("INSERT INTO request (session, at, tip, parts) VALUES (1, 1, ?, ?)")
            .unwrap()
            .execute(params![known.chain.last().unwrap().0, pack])
            .unwrap();
        transaction.commit().expect("a commit");
    }
}

/// Recalls originals of 1 MB among smaller ones.
fn recalls(folder: &Path) {
    let store = Sqlite::open(&folder.join("recall.db")).expect("a store");
    let none = settings("none", 100_000_000);
    let mut handles = Vec::new();
    for number in 0..4 {
        let large: String = (0..320).map(|part| output(number * 1000 + part)).collect();
        let said =
            [user(&format!("task {number}")), tool("make", &large[..1_000_000]), tool("ls", &output(number))];
        let kept = common::fit_and_keep(&store, request(&said), &none, 1, None).expect("the store");
        let history = &kept.fitted.history;
        handles.extend(
            history
                .blocks()
                .iter()
                .filter(|block| block.span.len() > 1_000_000)
                .map(|block| block_handle(history, block)),
        );
    }
    store.tidy().expect("the store");
    let mut times = Vec::new();
    for handle in handles.iter().cycle().take(400) {
        let start = Instant::now();
        assert_eq!(store.recall(handle).expect("it is there").len(), 1_000_000);
        times.push(start.elapsed());
    }
    let times = sorted(&times);
    println!("recall of 1 MB: p50 {:?}  p99 {:?}", at(&times, 50), at(&times, 99));
}

fn sorted(times: &[Duration]) -> Vec<Duration> {
    let mut times = times.to_vec();
    times.sort();
    times
}

fn at(times: &[Duration], percent: usize) -> Duration {
    times[times.len() * percent / 100]
}
