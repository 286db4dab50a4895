//! Clocks that jump: years ahead, back before everything, while the proxy runs. Needs libfaketime, which scripts/test installs.

use std::{
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use crate::{
    TIGHT, common, good,
    originals::{Originals, request},
    running::Running,
    tally::{Chance, Tally},
};

/// Where the clock is put, one after the other.
const TIMES: [&str; 10] = [
    "+0", "+2d", "-2d", "+20y", "@1970-01-01 00:00:01", "@2038-01-19 03:14:08", "@2099-12-31 23:59:59",
    "-1h", "+1h", "@2001-02-03 04:05:06",
];

/// Finds the library that moves the clock of a process.
fn library() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let found =
        folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|library| library.exists());
    found.expect("libfaketime is not installed: `apt-get install faketime`")
}

/// Returns the list of sessions as soon as there is one: it is kept after the answer.
fn first_listed(store: &str) -> String {
    let started = Instant::now();
    loop {
        let listed = common::trimtab(&["sessions", "--json", "--all", "--store", store]).text();
        if listed.contains('{') || started.elapsed() > Duration::from_secs(20) {
            return listed;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
#[ignore = "./scripts/test long attack"]
fn long_clock() {
    let folder = tempfile::tempdir().unwrap();
    let (store, clock) = (folder.path().join("kept.db"), folder.path().join("clock"));
    let (store, clock) = (store.to_str().unwrap(), clock.to_str().unwrap());
    let library = library();
    let variables = [
        ("TRIMTAB_NO_STORE", "0"),
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("FAKETIME_TIMESTAMP_FILE", clock),
        ("FAKETIME_NO_CACHE", "1"),
        // A clock that is set does not move the one that timers go by.
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("DONT_FAKE_MONOTONIC", "1"),
    ];
    fs::write(clock, "@2001-02-03 04:05:06").unwrap();
    let upstream = good();
    let flags = [&TIGHT[..], &["--store", store, "--log", "normal"]].concat();
    let mut proxy = Running::with(&upstream, &flags, &variables);
    let mut tally = Tally::new("clock jumps");
    let mut chance = Chance(17);
    for turn in 0..200 {
        if turn > 0 {
            fs::write(clock, TIMES[chance.below(TIMES.len())]).unwrap();
        }
        let answer = proxy.post("/v1/chat/completions", &request(turn / 40, turn % 40));
        tally.count(answer.header("x-trimtab").unwrap_or("refused"));
        tally.expect(answer.head[0] == "HTTP/1.1 200 OK", || format!("{:?}", answer.head));
        if turn == 0 {
            let listed = first_listed(store);
            assert!(listed.contains("2001") || listed.contains("98117"), "the clock does not move: {listed}");
        }
    }
    tally.expect_alive(&proxy, &upstream);
    proxy.terminate();
    tally.expect(proxy.child.wait().unwrap().success(), || "it does not end well".to_owned());
    let mut originals = Originals::default();
    originals.add(&mut tally, &upstream.came());
    originals.compare(&mut tally, store.as_ref());
    println!("  {} handles recalled and compared", originals.handles());
    for arguments in [&["sessions", "--all"][..], &["stats"], &["forget", "--older-than", "1d", "--dry-run"]]
    {
        let run = common::trimtab(&[arguments, &["--store", store]].concat());
        tally.expect(run.code == Some(0), || format!("{arguments:?}: {}", run.words));
    }
    tally.finish();
}
