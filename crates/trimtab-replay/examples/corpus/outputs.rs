//! One line for every segment's last request, policy and budget with a hash of what is sent: two versions of the program send the same
//! bytes where their lines are the same. Compare them with `diff`.

use std::{path::Path, thread};

use trimtab_core::{
    CacheHint, CountMemo, Counter, Memory, Millis, Policy, Settings, WarmState, parse_as, policy::policies,
    session::fit_warm,
};
use trimtab_replay::Segment;

use crate::files::File;

/// The budgets, as shares of what the request counts, and what is known of the cache. The first is more than any policy waits for.
const SHARES: [(f64, CacheHint); 5] = [
    (1_000_000.0, CacheHint::Cold),
    (0.5, CacheHint::Cold),
    (0.25, CacheHint::Cold),
    (1_000_000.0, CacheHint::Unknown),
    (0.5, CacheHint::Unknown),
];

/// Prints the lines. `TRIMTAB_EVERY=N` takes every Nth segment only.
pub(crate) fn table(files: &[File]) -> bool {
    let every = std::env::var("TRIMTAB_EVERY").ok().and_then(|every| every.parse().ok()).unwrap_or(1);
    let policies: Vec<Policy> = policies().filter_map(|(name, _)| Policy::find_shipped(name).ok()).collect();
    let recordings =
        files.iter().filter_map(|file| Some((file.path.as_path(), file.recording.as_ref().ok()?)));
    let segments: Vec<(&Path, usize, &Segment)> = recordings
        .flat_map(|(path, recording)| {
            recording.segments.iter().enumerate().map(move |(number, one)| (path, number, one))
        })
        .step_by(every)
        .collect();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut lines: Vec<String> = Vec::new();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|first| {
                let (segments, policies) = (&segments, &policies);
                scope.spawn(move || {
                    let own = segments.iter().skip(first).step_by(threads);
                    own.flat_map(|(path, number, segment)| lines_of(path, *number, segment, policies))
                        .collect::<Vec<String>>()
                })
            })
            .collect();
        for worker in workers {
            lines.extend(worker.join().unwrap_or_default());
        }
    });
    lines.sort();
    lines.iter().for_each(|line| println!("{line}"));
    !lines.is_empty()
}

fn lines_of(path: &Path, number: usize, segment: &Segment, policies: &[Policy]) -> Vec<String> {
    let name = format!("{} {number}", path.display());
    let Some(request) = segment.points.last().map(|point| segment.request_at(point)) else {
        return Vec::new();
    };
    let format = segment.history.format();
    let Ok(history) = parse_as(request.clone(), format) else { return vec![format!("{name}: unreadable")] };
    let counter = Counter::for_model(&history.model().unwrap_or_default());
    let total = counter.count_request(&history, &mut CountMemo::default()).total();
    let mut warm = WarmState::default();
    let mut lines = Vec::new();
    for policy in policies {
        for (share, cache) in SHARES {
            let budget = Some(total.scale(share * counter.tokenizer().exactness().guard()));
            let settings =
                Settings::new(policy.clone()).with_format(format).with_budget(budget).with_cache(cache);
            let fitted = fit_warm(request.clone(), &mut warm, &Memory::default(), &settings, Millis(0));
            let sent = match fitted {
                Ok(fitted) => {
                    format!("{} bytes, {}", fitted.request.len(), blake3::hash(&fitted.request).to_hex())
                }
                Err(error) => error.to_string(),
            };
            lines.push(format!("{name}, {} at {share} {cache:?}: {sent}", policy.name));
        }
    }
    lines
}
