//! Tells how many bytes a folder of recordings takes in the store, and that each request comes back.
//! `cargo run --release -p trimtab-store --example corpus -- PATH`

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a program that prints a table and stops at the first fault"
)]

use std::{env, fs, path::PathBuf, time::Instant};

use trimtab::{Memory, Millis, Policy, Settings, Tokens, fit, parse_as, read};
use trimtab_store::{Append, Appended, Sqlite, Store};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Every so many requests one is read back and compared.
const COMPARED: usize = 10;

fn main() {
    let folder = env::args().nth(1).expect("a folder of recordings");
    let policy = env::args().nth(2).unwrap_or_else(|| "none".to_owned());
    let file = env::temp_dir().join(format!("trimtab-corpus-{}.db", std::process::id()));
    let store = Sqlite::open(&file).expect("a store");
    let policy = Policy::shipped(&policy).expect("a policy");
    let settings = Settings::new(policy).with_budget(Tokens(100_000));
    let (mut recordings, mut requests, mut request_bytes, mut spent) = (0, 0, 0, Vec::new());
    for path in files(PathBuf::from(folder)) {
        let bytes = fs::read(&path).expect("a file");
        let Ok(recording) = read(&bytes) else { continue };
        recordings += bytes.len();
        for segment in &recording.segments {
            for point in &segment.points {
                let bytes = segment.request(point);
                requests += 1;
                request_bytes += bytes.len();
                let at = point.at.unwrap_or(Millis(0));
                let history = parse_as(bytes.clone(), segment.history.format()).expect("a request");
                let known = store.recognize(&history, segment.name.as_deref()).expect("the store");
                let memory = if settings.policy.name == "none" { &Memory::default() } else { &known.memory };
                let fitted = fit(bytes.clone(), memory, &settings, at).expect("a plan");
                let start = Instant::now();
                let done =
                    store.append(&Append::new(&fitted.history, &fitted.plan, &known, at)).expect("the store");
                spent.push(start.elapsed());
                let Appended::Stored { request, .. } = done else { unreachable!("nobody else writes") };
                if let Some(usage) = &point.usage {
                    store.answered(request, usage).expect("the store");
                }
                if requests % COMPARED == 0 {
                    assert!(
                        store.request(request).expect("the request").bytes == bytes,
                        "{}",
                        path.display()
                    );
                }
            }
        }
    }
    store.tidy().expect("the store");
    let disk = store.disk().expect("the store");
    spent.sort();
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a share for people")]
    let share = |bytes: u64| bytes as f64 * 100.0 / recordings as f64;
    println!(
        "recordings {recordings} bytes; {requests} requests of {request_bytes} bytes in {} sessions",
        disk.sessions
    );
    println!("stored {} bytes: {:.1} % of the recordings", disk.bytes, share(disk.bytes));
    println!("append: p50 {:?}, p99 {:?}", at(&spent, 50), at(&spent, 99));
    let start = Instant::now();
    let found = store.search("error", 10).expect("the store").len();
    let first = start.elapsed();
    let start = Instant::now();
    store.search("error", 10).expect("the store");
    let disk = store.disk().expect("the store");
    println!(
        "search: {found} found, the first time {first:?}, then {:?}; index {} bytes ({:.1} %)",
        start.elapsed(),
        disk.index_bytes,
        share(disk.index_bytes)
    );
    drop(store);
    if env::args().nth(3).as_deref() == Some("keep") {
        return println!("kept in {}", file.display());
    }
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", file.display()));
    }
}

fn at(times: &[std::time::Duration], percent: usize) -> std::time::Duration {
    times.get(times.len() * percent / 100).copied().unwrap_or_default()
}

fn files(folder: PathBuf) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder];
    while let Some(path) = folders.pop() {
        match fs::read_dir(&path) {
            Ok(entries) => folders.extend(entries.filter_map(Result::ok).map(|entry| entry.path())),
            Err(_) => files.push(path),
        }
    }
    files.sort();
    files
}
