//! A writer is killed at any moment: what was reported to it as kept is there, whole, and nothing is half-written. This file is run
//! again as the writer. `TRIMTAB_KILLS` says how often it is killed; `./scripts/test long store` kills 200 times.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;

use std::{
    collections::BTreeMap,
    env,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use common::{Said, fit_and_keep, keep, long, request, settings, tool, user};
use trimtab_store::{RequestId, Sqlite, Store};

/// How many threads append at once.
const THREADS: usize = 4;

/// Says where the writer is to write, and which round it is.
const FILE: &str = "TRIMTAB_KILL_FILE";
const ROUND: &str = "TRIMTAB_KILL_ROUND";

/// What one thread of the writer says in one round, after so many steps: known to both sides.
fn conversation(round: usize, thread: usize, steps: usize) -> Vec<Said> {
    let mut said = vec![user(&format!("round {round}, thread {thread}"))];
    said.extend(
        (0..steps).map(|step| tool(&format!("make {step}"), &long(round * 1000 + thread * 100 + step))),
    );
    said
}

/// Appends until it is killed, and says each time what was kept.
#[test]
fn writer() {
    let (Ok(file), Ok(round)) = (env::var(FILE), env::var(ROUND)) else { return };
    let round: usize = round.parse().unwrap();
    let store = Arc::new(Sqlite::open(Path::new(&file)).unwrap());
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                for steps in 1..200 {
                    let hide = settings("recent", 1500);
                    let kept =
                        fit_and_keep(&*store, request(&conversation(round, number, steps)), &hide, 1, None)
                            .unwrap();
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "kept {} {number} {steps}", kept.request.0).unwrap();
                    out.flush().unwrap();
                    drop(out);
                    if steps % 7 == 0 {
                        store.tidy().unwrap();
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Ends the writer when the test ends, however it ends.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_was_acknowledged_survives_any_kill() {
    let kills: usize = env::var("TRIMTAB_KILLS").map_or(10, |kills| kills.parse().expect("a number"));
    let folder = tempfile::tempdir().unwrap();
    let mut path = folder.path().join("trimtab.db");
    let mut acknowledged: BTreeMap<i64, (usize, usize, usize)> = BTreeMap::new();
    let (mut total, mut untold, mut untold_before) = (0, 0, 0);
    let mut chance = 0x2545_f491_u64;
    for round in 0..kills {
        // A new file now and then: making it is a moment as well.
        if round.is_multiple_of(10) {
            path = folder.path().join(format!("trimtab-{round}.db"));
            acknowledged.clear();
            untold_before = 0;
        }
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        for (id, thread, steps) in kill_after(&path, round, Duration::from_micros((chance >> 33) % 400_000)) {
            acknowledged.insert(id, (round, thread, steps));
            total += 1;
        }
        let now = check(&path, &acknowledged);
        untold += now - untold_before;
        // The one that was appended to see that it goes on.
        untold_before = now + 1;
    }
    println!(
        "{kills} kills, {total} acknowledged requests, none lost; {untold} kept but not yet acknowledged"
    );
}

/// Runs the writer and kills it; returns what it said.
fn kill_after(path: &Path, round: usize, time: Duration) -> Vec<(i64, usize, usize)> {
    let mut writer = Killed(
        Command::new(env::current_exe().unwrap())
            .args(["writer", "--exact", "--nocapture"])
            .env(FILE, path)
            .env(ROUND, round.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let lines = BufReader::new(writer.0.stdout.take().unwrap()).lines();
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::new(AtomicUsize::new(0));
    let listener = {
        let (said, heard) = (Arc::clone(&said), Arc::clone(&heard));
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                heard.fetch_add(1, Ordering::Relaxed);
                // The name of the test may precede the first word.
                let Some(at) = line.find("kept ") else { continue };
                let numbers: Vec<i64> =
                    line[at + 5..].split(' ').filter_map(|word| word.parse().ok()).collect();
                if let [id, thread, steps] = numbers[..] {
                    said.lock().unwrap().push((
                        id,
                        usize::try_from(thread).unwrap(),
                        usize::try_from(steps).unwrap(),
                    ));
                }
            }
        })
    };
    // Half of the kills count from the first word on, so that they meet appends; the others may meet the opening.
    let start = Instant::now();
    while round.is_multiple_of(2)
        && heard.load(Ordering::Relaxed) < 3
        && start.elapsed() < Duration::from_secs(20)
    {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(time);
    drop(writer);
    listener.join().unwrap();
    said.lock().unwrap().clone()
}

/// Everything acknowledged is there, everything there is whole. Returns how many requests were kept without being reported.
fn check(path: &Path, acknowledged: &BTreeMap<i64, (usize, usize, usize)>) -> u64 {
    let store = Sqlite::open(path).expect("it opens after a kill");
    for (id, (round, thread, steps)) in acknowledged {
        let stored = store.request(RequestId(*id)).expect("what was acknowledged is there");
        assert!(stored.bytes == request(&conversation(*round, *thread, *steps)), "request {id} is another");
    }
    let checked = store.check_contents().expect("nothing is half-written");
    keep(&store, &[user("And it goes on.")], 2);
    checked.requests.saturating_sub(u64::try_from(acknowledged.len()).unwrap())
}
