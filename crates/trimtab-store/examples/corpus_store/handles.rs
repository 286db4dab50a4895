//! Whether every handle in every note brings the original back. Plays requests of every segment through fitting with a store, as
//! a proxy does, collects handles from the bytes that would be sent, and compares what the store recalls with what came.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use trimtab_core::{Memory, Millis, Policy, Settings, Tokens, fit, parse_as, recall};
use trimtab_replay::Segment;
use trimtab_store::{Append, Appended, SessionLabel, Store};

use crate::{Temporary, recording};

const POLICIES: [&str; 3] = ["steady", "ladder", "per-tool"];

/// Requests of a segment that are played at most, evenly over it and the last among them.
const MOST_POINTS: usize = 8;

/// What a request may count, as a share of the segment's last: little enough that things must be hidden.
const BUDGET_PERCENT: u64 = 40;

/// What every note says before a handle.
const RECALL: &[u8] = b"trimtab recall ";

#[derive(Default)]
struct Counts {
    segments: usize,
    requests: usize,
    of_requests: usize,
    notes: usize,
    handles: usize,
    bytes: usize,
    wrong: usize,
}

pub(crate) fn table(files: &[PathBuf]) -> bool {
    println!(
        "store: handles in notes (at most {MOST_POINTS} requests of a segment, budget {BUDGET_PERCENT} % of its last)"
    );
    println!(
        "  policy       segments  requests (of)      notes   different handles   bytes recalled   not as they were"
    );
    let mut good = true;
    for policy in POLICIES {
        let kept = Temporary::new(policy);
        let policy_read = Policy::find_shipped(policy).expect("a policy");
        let mut counts = Counts::default();
        for path in files {
            let Some((_, recording)) = recording(path) else { continue };
            for segment in &recording.segments {
                play(&kept, &policy_read, segment, path, &mut counts);
            }
        }
        let Counts { segments, requests, of_requests, notes, handles, bytes, wrong } = counts;
        println!(
            "  {policy:12} {segments:8}  {requests:8} ({of_requests})  {notes:9}   {handles:17}   {bytes:14}   {wrong:16}"
        );
        good &= wrong == 0 && notes > 0;
    }
    good
}

fn play(kept: &Temporary, policy: &Policy, segment: &Segment, path: &Path, counts: &mut Counts) {
    let store = &kept.store;
    let Some(last) = segment.points.last() else { return };
    let format = segment.history.format();
    let plain = Settings::new(Policy::find_shipped("none").expect("a policy")).with_format(format);
    let all =
        fit(segment.request_at(last), &Memory::default(), &plain, Millis(0)).expect("a plan").plan.before();
    let budget = Tokens((all.0 * BUDGET_PERCENT / 100).max(1));
    let settings = Settings::new(policy.clone()).with_format(format).with_budget(budget);
    counts.segments += 1;
    counts.of_requests += segment.points.len();
    let stride = segment.points.len().div_ceil(MOST_POINTS);
    let chosen = segment.points.iter().rev().step_by(stride).collect::<Vec<_>>().into_iter().rev();
    let mut seen = BTreeSet::new();
    for point in chosen {
        counts.requests += 1;
        let bytes = segment.request_at(point);
        let at = point.at.unwrap_or(Millis(0));
        let history = parse_as(bytes.clone(), format).expect("a request");
        let label = SessionLabel::with_name(segment.name.as_deref());
        let known = store.recognize(&history, label).expect("the store");
        let fitted = fit(bytes.clone(), &known.memory, &settings, at).expect("a plan");
        let done =
            store.append_request(&Append::new(&fitted.history, &fitted.plan, &known, at)).expect("the store");
        assert!(matches!(done, Appended::Stored { .. }), "nobody else writes");
        let came: BTreeSet<String> = handles(&bytes).into_iter().collect();
        // Handles in the client's own request are not ours to answer for.
        for handle in handles(&fitted.request).into_iter().filter(|handle| !came.contains(handle)) {
            counts.notes += 1;
            if !seen.insert(handle.clone()) {
                continue;
            }
            counts.handles += 1;
            let original = recall(&fitted.history, &handle);
            match (original, store.recall(&handle)) {
                (Some(original), Ok(recalled)) if *original == recalled => counts.bytes += recalled.len(),
                (original, recalled) => {
                    counts.wrong += 1;
                    let fault = recalled.err().map(|fault| fault.to_string()).unwrap_or_default();
                    println!(
                        "  {}: {handle}: in the request: {}; {fault}",
                        path.display(),
                        original.is_some()
                    );
                }
            }
        }
    }
}

/// Returns the handles that a request's notes name, each as often as it is named.
fn handles(request: &[u8]) -> Vec<String> {
    let mut handles = Vec::new();
    let mut rest = request;
    while let Some(at) = rest.windows(RECALL.len()).position(|window| window == RECALL) {
        rest = rest.get(at + RECALL.len()..).unwrap_or_default();
        let handle: String = rest.iter().take(12).map(|byte| char::from(*byte)).collect();
        if handle.len() == 12 && handle.chars().all(|letter| matches!(letter, '0'..='9' | 'a'..='f')) {
            handles.push(handle);
        }
    }
    handles
}
