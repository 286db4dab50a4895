//! What every shipped policy makes of every segment's last request, at four budgets: whether it is valid, fits or names
//! its floor, and stays the same when fitted again, and how much of it is kept.

use serde_json::Value;
use trimtab::{Counter, Memo, Memory, Millis, Policy, Segment, Settings, fit, parse_as, policies};

use crate::{checker, files::File};

/// The budgets, as shares of what the request counts.
const SHARES: [f64; 4] = [0.75, 0.5, 0.25, 0.1];

/// Faults shown in full; more of the same kind are only counted.
const SHOWN: usize = 20;

#[derive(Default)]
struct Row {
    fitted: usize,
    failed: usize,
    invalid: usize,
    over: usize,
    floors: usize,
    not_idempotent: usize,
    grown: usize,
    kept: f64,
}

/// Prints the table; tells whether every law held. `TRIMTAB_EVERY=N` takes every Nth segment only.
pub(crate) fn table(files: &[File]) -> bool {
    let every = std::env::var("TRIMTAB_EVERY").ok().and_then(|every| every.parse().ok()).unwrap_or(1);
    let policies: Vec<Policy> = policies().filter_map(|(name, _)| Policy::shipped(name).ok()).collect();
    let mut rows: Vec<Row> = (0..policies.len() * SHARES.len()).map(|_| Row::default()).collect();
    let recordings = files.iter().filter_map(|file| Some((&file.path, file.recording.as_ref().ok()?)));
    let segments =
        recordings.flat_map(|(path, recording)| recording.segments.iter().map(move |one| (path, one)));
    let mut shown = 0;
    let mut requests = 0;
    println!("\nFit: every segment's last request by every policy\n");
    for (path, segment) in segments.step_by(every) {
        let Some(request) = segment.points.last().map(|point| segment.request(point)) else { continue };
        requests += 1;
        let faults = add(&request, segment, &policies, &mut rows);
        for fault in faults {
            shown += 1;
            if shown <= SHOWN {
                println!("{}: {fault}", path.display());
            }
        }
    }
    println!("{requests} requests, {shown} faults\n");
    println!(
        "{:12} {:>7} {:>7} {:>7} {:>8} {:>6} {:>7} {:>10} {:>6} {:>7}",
        "policy", "budget", "fitted", "failed", "invalid", "over", "floors", "not idemp", "grown", "kept"
    );
    for (index, row) in rows.iter().enumerate() {
        let policy = policies.get(index / SHARES.len()).map_or("", |policy| policy.name.as_str());
        let share = SHARES.get(index % SHARES.len()).copied().unwrap_or_default();
        let kept = row.kept / (row.fitted.max(1) as f64);
        println!(
            "{policy:12} {:>6.0}% {:>7} {:>7} {:>8} {:>6} {:>7} {:>10} {:>6} {:>6.1}%",
            share * 100.0,
            row.fitted,
            row.failed,
            row.invalid,
            row.over,
            row.floors,
            row.not_idempotent,
            row.grown,
            kept * 100.0
        );
    }
    rows.iter().all(|row| row.failed + row.invalid + row.over + row.not_idempotent + row.grown == 0)
}

fn add(request: &[u8], segment: &Segment, policies: &[Policy], rows: &mut [Row]) -> Vec<String> {
    let format = segment.history.format();
    let Ok(history) = parse_as(request.to_vec(), format) else { return vec!["unreadable".to_owned()] };
    let Ok(input) = serde_json::from_slice::<Value>(request) else { return vec!["no JSON".to_owned()] };
    let counter = Counter::for_model(&history.model().unwrap_or_default());
    let mut memo = Memo::default();
    let total = counter.request(&history, &mut memo).total();
    let mut faults = Vec::new();
    let mut rows = rows.iter_mut();
    for policy in policies {
        for share in SHARES {
            let Some(row) = rows.next() else { continue };
            let name = format!("{format}, {} {share}", policy.name);
            let budget = Some(total.scaled(share * counter.tokenizer().exactness().guard()));
            let settings = Settings { budget, ..Settings::new(policy.clone()).with_format(format) };
            let fitted = match fit(request.to_vec(), &Memory::default(), &settings, Millis(0)) {
                Ok(fitted) => fitted,
                Err(error) => {
                    row.failed += 1;
                    faults.push(format!("{name}: {error}"));
                    continue;
                }
            };
            row.fitted += 1;
            row.grown += usize::from(fitted.request.len() > request.len());
            row.floors += usize::from(fitted.plan.floor().is_some());
            row.kept += fitted.plan.after().0 as f64 / total.0.max(1) as f64;
            let Ok(output) = serde_json::from_slice::<Value>(&fitted.request) else {
                row.invalid += 1;
                faults.push(format!("{name}: the output is no JSON"));
                continue;
            };
            let new = checker::new_faults(format.name(), &input, &output);
            row.invalid += usize::from(!new.is_empty());
            faults.extend(new.first().map(|fault| format!("{name}: {fault}")));
            let counted = parse_as(fitted.request.clone(), format).ok();
            let counted = counted.map(|history| counter.request(&history, &mut memo).total());
            // Scaling by the guard and back may lose one token.
            let over = counted.is_none_or(|counted| counted.0 > total.scaled(share).0 + 1);
            if over && fitted.plan.floor().is_none() && policy.name != "none" {
                row.over += 1;
                faults.push(format!("{name}: {counted:?} of {}", total.scaled(share)));
            }
            let again = fit(fitted.request.clone(), &Memory::default(), &settings, Millis(0));
            if again.is_ok_and(|again| again.request != fitted.request) {
                row.not_idempotent += 1;
                faults.push(format!("{name}: fitting again changes it"));
            }
        }
    }
    faults
}
