//! Very many sessions in one store: what a person runs on it stays quick.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use trimtab_core::{Millis, Policy, Settings, find_model, fit, parse};
use trimtab_store::{Append, SessionLabel, Sqlite, Store};

use crate::{common, originals::request, tally::Tally};

/// How long each command may take.
const MOST: Duration = Duration::from_secs(20);

/// A folder in memory where there is one: how fast a disk forgets is not the question.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Keeps a request of each of many conversations, a minute apart.
fn fill(path: &Path, sessions: usize) {
    let store = Sqlite::open(path).expect("a store");
    let prices = Some(find_model("claude-sonnet-4-5").unwrap());
    let settings = Settings::new(Policy::find_shipped("none").unwrap()).with_prices(prices);
    for number in 0..sessions {
        let (bytes, at) =
            (request(number, 1), Millis(1_700_000_000_000 + i64::try_from(number).unwrap() * 60_000));
        let known = store
            .recognize(&parse(bytes.clone()).unwrap(), SessionLabel::default())
            .expect("the store works");
        let fitted = fit(bytes, &known.memory, &settings, at).unwrap();
        store
            .append_request(&Append::new(&fitted.history, &fitted.plan, &known, at))
            .expect("the store works");
    }
}

fn check(sessions: usize) {
    let folder = folder();
    let path = folder.path().join("kept.db");
    let store = path.to_str().unwrap();
    let mut tally = Tally::new("sessions");
    let started = Instant::now();
    fill(&path, sessions);
    println!(
        "  {sessions} sessions kept in {:.1} s, {} MB",
        started.elapsed().as_secs_f64(),
        std::fs::metadata(&path).unwrap().len() >> 20
    );
    let commands: [(&str, &[&str]); 7] = [
        ("sessions", &["sessions", "--json", "--all"]),
        ("search", &["search", "conversation", "7", "--all"]),
        ("search for nothing", &["search", "absent-word", "--all"]),
        ("stats", &["stats"]),
        ("forget, dry run", &["forget", "--older-than", "1d", "--dry-run"]),
        ("forget half", &["forget", "--larger-than", "1KB", "--dry-run"]),
        ("forget all", &["forget", "--older-than", "1d", "--yes"]),
    ];
    for (name, arguments) in commands {
        let started = Instant::now();
        let run = common::trimtab(&[arguments, &["--store", store]].concat());
        let took = started.elapsed();
        println!("  {name}: {:.2} s", took.as_secs_f64());
        tally.count("commands");
        // Nothing found is said by the code as well.
        let is_good = run.code == Some(0) || name == "search for nothing" && run.code == Some(1);
        tally.expect(is_good, || format!("{name}: {}", run.words));
        tally.expect(took < MOST, || format!("{name} takes {took:?}"));
        if name == "sessions" {
            let listed: Vec<serde_json::Value> = serde_json::from_slice(&run.out).unwrap_or_default();
            tally.expect(listed.len() == sessions, || {
                format!("{} of {sessions} sessions are listed", listed.len())
            });
        }
    }
    let left = common::trimtab(&["sessions", "--json", "--all", "--store", store]);
    tally.expect(left.text().trim() == "[]", || "something is left".to_owned());
    tally.finish();
}

#[test]
fn commands_are_quick_over_many_sessions() {
    check(100);
}

#[test]
#[ignore = "./scripts/test long attack"]
fn long_sessions() {
    check(20_000);
}
