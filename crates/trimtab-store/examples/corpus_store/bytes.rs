//! How many bytes recordings take in the store. Every request of every segment is appended; one in ten is read back and compared.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use trimtab_core::{Memory, Millis, Policy, Settings, fit, parse_as};
use trimtab_store::{Append, Appended, SearchQuery, SearchWithin, Secrets, SessionLabel, Store};

use crate::{Temporary, recording};

/// Every so many requests one is read back and compared.
const COMPARED: usize = 10;

pub(crate) fn table(files: &[PathBuf]) {
    let kept = Temporary::new("bytes");
    let store = &kept.store;
    let settings = Settings::new(Policy::find_shipped("none").expect("a policy"));
    let (mut recordings, mut requests, mut request_bytes, mut spent) = (0, 0, 0, Vec::new());
    for path in files {
        let Some((bytes, recording)) = recording(path) else { continue };
        recordings += bytes;
        for segment in &recording.segments {
            for point in &segment.points {
                let bytes = segment.request_at(point);
                requests += 1;
                request_bytes += bytes.len();
                let at = point.at.unwrap_or(Millis(0));
                let history = parse_as(bytes.clone(), segment.history.format()).expect("a request");
                let label = SessionLabel::with_name(segment.name.as_deref());
                let known = store.recognize(&history, label).expect("the store");
                let fitted = fit(bytes.clone(), &Memory::default(), &settings, at).expect("a plan");
                let start = Instant::now();
                let done = store
                    .append_request(&Append::new(&fitted.history, &fitted.plan, &known, at))
                    .expect("the store");
                spent.push(start.elapsed());
                let Appended::Stored { request, .. } = done else { unreachable!("nobody else writes") };
                if let Some(usage) = &point.usage {
                    store.record_usage(request, usage).expect("the store");
                }
                if requests % COMPARED == 0 {
                    let stored = store.request(request).expect("the request");
                    assert!(stored.bytes == bytes, "{}", path.display());
                }
            }
        }
    }
    let before = store.disk_usage().expect("the store").bytes;
    store.tidy().expect("the store");
    let disk = store.disk_usage().expect("the store");
    spent.sort();
    let share = |bytes: u64| bytes as f64 * 100.0 / recordings as f64;
    println!("store: recordings at rest");
    println!(
        "  recordings {recordings} bytes; {requests} requests of {request_bytes} bytes, {} sessions",
        disk.sessions
    );
    println!(
        "  stored {} bytes: {:.1} % of the recordings ({:.1} % before tidying)",
        disk.bytes,
        share(disk.bytes),
        share(before)
    );
    println!("  append p50 {:?}, p99 {:?}", at(&spent, 50), at(&spent, 99));
    let secrets = Secrets::default();
    let query = SearchQuery { words: "error", most: 10, within: SearchWithin::Everything, secrets: &secrets };
    let start = Instant::now();
    let found = store.search(&query).expect("the store").len();
    let first = start.elapsed();
    let start = Instant::now();
    store.search(&query).expect("the store");
    let index = store.disk_usage().expect("the store").index_bytes;
    println!(
        "  search: {found} found, the first time {first:?}, then {:?}; its index {index} bytes ({:.1} %)",
        start.elapsed(),
        share(index)
    );
}

fn at(times: &[Duration], percent: usize) -> Duration {
    times.get(times.len() * percent / 100).copied().unwrap_or_default()
}
