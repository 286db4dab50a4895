//! Estimates against what the provider reported, for recordings whose tokenizer is not public.
//!
//! Recordings leave out the system prompt and the tools, so a request's reported input is what we can see plus
//! something constant. Two errors are given: of growth (what was reported for the messages that came since the first
//! request of the segment, against what we count for them) and of the whole request, the constant taken from the first.
//! "Calibrated" applies the factor learnt from the requests before, never from the one that is judged.

use std::collections::BTreeMap;

use trimtab_core::{
    CountMemo, Counter, Tokens,
    count::{Calibration, Counts, Exactness},
    parse_as,
    wire::parse_after,
};
use trimtab_replay::Segment;

use crate::files::File;

/// Growth below this says more about rounding and reminders that are not recorded than about counting.
const LEAST_GROWTH: u64 = 2000;

/// Stands for all models of an agent.
const ALL: &str = "all models";

#[derive(Default)]
struct Errors {
    requests: usize,
    reported: f64,
    raw: f64,
    calibrated: f64,
    growth_raw: Vec<f64>,
    growth_calibrated: Vec<f64>,
    whole_raw: Vec<f64>,
    whole_calibrated: Vec<f64>,
}

/// Prints the table; there is nothing to fail.
pub(crate) fn table(files: &[File]) -> bool {
    println!(
        "\nEstimates: input tokens as reported by the provider against our count, before and after calibration\n"
    );
    let mut rows: BTreeMap<(String, String), Errors> = BTreeMap::new();
    for recording in files.iter().filter_map(|file| file.recording.as_ref().ok()) {
        for segment in &recording.segments {
            let Some(model) = segment.points.iter().find_map(|point| point.model.clone()) else { continue };
            if segment.points.iter().all(|point| point.usage.is_none()) {
                continue;
            }
            let row = rows.entry((recording.agent.to_owned(), model.clone())).or_default();
            judge(segment, &model, row);
        }
    }
    println!(
        "{:15} {:28} {:9} {:>8} | {:>18} | {:>18} | {:>18}",
        "", "", "", "", "growth, pooled %", "growth, p90 of |%|", "request, p90 of |%|"
    );
    println!(
        "{:15} {:28} {:9} {:>8} | {:>8} {:>9} | {:>8} {:>9} | {:>8} {:>9}",
        "agent", "model", "count", "requests", "before", "after", "before", "after", "before", "after"
    );
    let mut pooled: BTreeMap<String, Errors> = BTreeMap::new();
    for ((agent, model), row) in &rows {
        row.print(agent, model);
        pooled.entry(agent.clone()).or_default().merge(row);
    }
    for (agent, row) in &pooled {
        row.print(agent, ALL);
    }
    true
}

fn judge(segment: &Segment, model: &str, row: &mut Errors) {
    let counter = Counter::for_model(model);
    let mut memo = CountMemo::default();
    let mut calibration = Calibration::default();
    let mut counts = Counts::default();
    let mut first: Option<(Tokens, Tokens)> = None;
    let mut history = None;
    for point in segment.points.iter().filter(|point| point.model.as_deref() == Some(model)) {
        let Some(usage) = point.usage.filter(|usage| usage.total_input() > 0) else { continue };
        let request = segment.request_at(point);
        let read = match &history {
            Some(earlier) => parse_after(earlier, request),
            None => parse_as(request, segment.history.format()),
        };
        let Ok(read) = read else { continue };
        counter.request_after(&mut counts, &read, &mut memo);
        history = Some(read);
        let (estimated, reported) = (counts.total(), Tokens(usage.total_input()));
        if let Some((first_estimated, first_reported)) = first {
            let (seen, real) = (float(estimated - first_estimated), float(reported) - float(first_reported));
            let corrected = seen * calibration.factor();
            if seen > LEAST_GROWTH as f64 && real > 0.0 {
                row.requests += 1;
                row.reported += real;
                row.raw += seen;
                row.calibrated += corrected;
                row.growth_raw.push((seen / real - 1.0).abs());
                row.growth_calibrated.push((corrected / real - 1.0).abs());
                row.whole_raw.push(((seen - real) / float(reported)).abs());
                row.whole_calibrated.push(((corrected - real) / float(reported)).abs());
            }
        } else {
            first = Some((estimated, reported));
        }
        calibration.observe_pair(estimated, reported);
    }
}

impl Errors {
    fn merge(&mut self, other: &Errors) {
        self.requests += other.requests;
        self.reported += other.reported;
        self.raw += other.raw;
        self.calibrated += other.calibrated;
        self.growth_raw.extend(&other.growth_raw);
        self.growth_calibrated.extend(&other.growth_calibrated);
        self.whole_raw.extend(&other.whole_raw);
        self.whole_calibrated.extend(&other.whole_calibrated);
    }

    fn print(&self, agent: &str, model: &str) {
        if self.requests == 0 {
            return;
        }
        let kind = match Counter::for_model(model).tokenizer().exactness() {
            _ if model == ALL => "",
            Exactness::Exact => "exact",
            Exactness::Estimate { .. } => "estimate",
        };
        let pooled = |sum: f64| (sum / self.reported - 1.0) * 100.0;
        println!(
            "{agent:15} {model:28} {:9} {:>8} | {:>+8.1} {:>+9.1} | {:>8.1} {:>9.1} | {:>8.1} {:>9.1}",
            kind,
            self.requests,
            pooled(self.raw),
            pooled(self.calibrated),
            p90(&self.growth_raw),
            p90(&self.growth_calibrated),
            p90(&self.whole_raw),
            p90(&self.whole_calibrated),
        );
    }
}

fn p90(errors: &[f64]) -> f64 {
    let mut sorted = errors.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() * 9 / 10).or(sorted.last()).copied().unwrap_or_default() * 100.0
}

fn float(Tokens(tokens): Tokens) -> f64 {
    tokens as f64
}
