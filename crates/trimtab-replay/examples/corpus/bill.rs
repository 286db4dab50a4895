//! The simulated cache against what providers reported: tokens read, written and in all, and what they cost.
//!
//! Predicted and logged usage are priced alike, with the model that each request was recorded with; tokens that the log
//! reports as written for an hour cost the price for that. A prediction knows from the log the size of the head that recordings leave
//! out (tools, system), what the first request found in the cache, and whether the client pays for an hour. "Counted"
//! uses our own counts; "calibrated" scales them by the growth that the segment reports, which takes counting out of
//! the comparison; "as logged" also knows where the cache had less or more than the rules say.

use std::collections::BTreeMap;

use trimtab_core::{Usage, find_model};
use trimtab_replay::{Prediction, Segment, predicted_usage};

use crate::files::File;

/// Fewer requests say more about the first one than about the cache.
const LEAST_REQUESTS: usize = 5;

const PREDICTIONS: [(&str, Prediction); 3] = [
    ("counted", Prediction::Counted),
    ("calibrated", Prediction::Calibrated),
    ("as logged", Prediction::CacheAsLogged),
];

/// Segments that are listed by name.
const LISTED: usize = 12;

#[derive(Default, Clone, Copy)]
struct Sums {
    total: f64,
    read: f64,
    written: f64,
    dollars: f64,
}

struct Judged {
    name: String,
    requests: usize,
    predicted: Sums,
    logged: Sums,
}

/// Prints the table; there is nothing to fail.
pub(crate) fn table(files: &[File]) -> bool {
    println!("\nBill: what the simulated cache reads and writes, against what was reported\n");
    println!(
        "{:15} {:12} {:>8} {:>8} | {:>8} {:>8} {:>8} {:>8} | {:>8} {:>8} {:>8}",
        "agent",
        "prediction",
        "segments",
        "requests",
        "total %",
        "read %",
        "write %",
        "bill %",
        "|bill| %",
        "p90",
        "worst"
    );
    let mut listed: Vec<Judged> = Vec::new();
    for (name, prediction) in PREDICTIONS {
        let mut rows: BTreeMap<&str, Vec<Judged>> = BTreeMap::new();
        for file in files {
            let Ok(recording) = &file.recording else { continue };
            for (number, segment) in recording.segments.iter().enumerate() {
                let name = format!("{} #{}", file.path.display(), number + 1);
                rows.entry(recording.agent).or_default().extend(judge(name, segment, prediction));
            }
        }
        for (agent, row) in rows {
            print(agent, name, &row);
            if prediction == Prediction::CacheAsLogged {
                listed.extend(row);
            }
        }
    }
    listed.sort_by(|a, b| b.gap().abs().total_cmp(&a.gap().abs()));
    println!("\nLargest differences in dollars, the cache as logged:\n");
    for judged in listed.iter().take(LISTED) {
        let Sums { total, read, written, dollars } = judged.errors();
        println!(
            "{:+8.4} of {:8.4} $ {:+6.1} %, total {total:+6.1}, read {read:+6.1}, write {written:+6.1}: {} requests, {}",
            judged.gap(),
            judged.logged.dollars,
            dollars,
            judged.requests,
            judged.name
        );
    }
    true
}

fn judge(name: String, segment: &Segment, prediction: Prediction) -> Option<Judged> {
    let cached = segment.points.iter().filter_map(|point| point.usage).any(|usage| usage.cache_read > 0);
    if segment.points.len() < LEAST_REQUESTS || !cached {
        return None;
    }
    let predicted = predicted_usage(segment, prediction)?;
    let mut judged = Judged { name, requests: 0, predicted: Sums::default(), logged: Sums::default() };
    for (point, predicted) in segment.points.iter().zip(predicted) {
        let Some(logged) = point.usage.filter(|usage| usage.total_input() > 0) else { continue };
        let Some(model) = point.model.as_deref().and_then(|model| find_model(model).ok()) else { continue };
        judged.requests += 1;
        judged.predicted.add(predicted, model.input_cost(predicted));
        judged.logged.add(logged, model.input_cost(logged));
    }
    (judged.requests >= LEAST_REQUESTS).then_some(judged)
}

fn print(agent: &str, prediction: &str, row: &[Judged]) {
    if row.is_empty() {
        return;
    }
    let pooled = Judged {
        name: String::new(),
        requests: row.iter().map(|judged| judged.requests).sum(),
        predicted: row.iter().fold(Sums::default(), |sums, judged| sums.and(judged.predicted)),
        logged: row.iter().fold(Sums::default(), |sums, judged| sums.and(judged.logged)),
    };
    let Sums { total, read, written, dollars } = pooled.errors();
    let mut bills: Vec<f64> = row.iter().map(|judged| judged.errors().dollars.abs()).collect();
    bills.sort_by(f64::total_cmp);
    let at = |share: usize| {
        bills.get((bills.len() * share / 100).min(bills.len() - 1)).copied().unwrap_or_default()
    };
    println!(
        "{agent:15} {prediction:12} {:>8} {:>8} | {total:>+8.2} {read:>+8.2} {written:>+8.2} {dollars:>+8.2} | {:>8.2} {:>8.2} {:>8.2}",
        row.len(),
        pooled.requests,
        at(50),
        at(90),
        at(100)
    );
}

impl Judged {
    fn gap(&self) -> f64 {
        self.predicted.dollars - self.logged.dollars
    }

    /// Returns the errors in hundredths of what was logged; no number where nothing was.
    fn errors(&self) -> Sums {
        let error = |predicted: f64, logged: f64| {
            if logged > 0.0 { (predicted / logged - 1.0) * 100.0 } else { f64::NAN }
        };
        let (p, l) = (self.predicted, self.logged);
        Sums {
            total: error(p.total, l.total),
            read: error(p.read, l.read),
            written: error(p.written, l.written),
            dollars: error(p.dollars, l.dollars),
        }
    }
}

impl Sums {
    fn add(&mut self, usage: Usage, dollars: f64) {
        *self = self.and(Sums {
            total: usage.total_input() as f64,
            read: usage.cache_read as f64,
            written: usage.cache_write as f64,
            dollars,
        });
    }

    fn and(self, other: Sums) -> Sums {
        Sums {
            total: self.total + other.total,
            read: self.read + other.read,
            written: self.written + other.written,
            dollars: self.dollars + other.dollars,
        }
    }
}
