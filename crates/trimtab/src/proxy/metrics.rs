//! Figures about the proxy's own work. Takes events; gives the text that Prometheus reads, and the sums that people see at
//! the end. Never leaves the machine by itself.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use trimtab_core::{Tokens, Usage};

/// Something that is counted, with the labels it is counted by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Metric {
    Requests { endpoint: &'static str, outcome: &'static str },
    Passed { reason: String },
    UpstreamErrors { kind: String },
    LatePlans { sent: &'static str },
    Faults { kind: &'static str },
    Overflows { result: &'static str },
    CountedTokens { which: &'static str },
    WouldHide,
    HiddenBlocks { verdict: &'static str },
    ReportedTokens { kind: &'static str },
    Unreported,
    Spent,
    Saved,
    Summaries { result: &'static str },
    SummaryDollars,
    Pings { result: &'static str },
    PingDollars,
    Left,
}

/// Name and help of every metric, in the order in which they are written.
#[rustfmt::skip]
const TABLE: &[(&str, &str)] = &[
    ("trimtab_requests_total", "Requests by endpoint and what was done with them"),
    ("trimtab_passed_total", "Conversations that passed untouched, by reason"),
    ("trimtab_upstream_errors_total", "Requests that a provider did not answer or answered with an error, by kind or status"),
    ("trimtab_late_plans_total", "Plans that were not ready in time, by what was sent"),
    ("trimtab_faults_total", "Errors in trimtab itself, by kind"),
    ("trimtab_overflow_answers_total", "Answers that a request is too long, by what followed"),
    ("trimtab_counted_tokens_total", "Input tokens as counted here: before fitting, and as sent"),
    ("trimtab_observed_tokens_total", "Input tokens that would have been hidden, while observing"),
    ("trimtab_hidden_blocks_total", "Blocks hidden, summed over requests, by verdict"),
    ("trimtab_reported_tokens_total", "Tokens that providers reported, by kind"),
    ("trimtab_answers_without_usage_total", "Good answers that reported no usage"),
    ("trimtab_spent_dollars_total", "Dollars that the reported usage costs"),
    ("trimtab_saved_dollars", "Dollars of input saved by estimate; falls where an edit cost more than it saved"),
    ("trimtab_summaries_total", "Summaries that were asked for in the background, by what came of it"),
    ("trimtab_summary_dollars_total", "Dollars that summaries cost; they are part of what was spent"),
    ("trimtab_pings_total", "Requests that keep a provider's cache alive in pauses, by what came of them"),
    ("trimtab_ping_dollars_total", "Dollars that they cost; they are part of what was spent"),
    ("trimtab_clients_left_total", "Clients that left before the end of an answer"),
];

impl Metric {
    /// Returns the name under which Prometheus reads it, with the names and values of its labels.
    fn series_name(&self) -> (&'static str, Vec<(&'static str, &str)>) {
        match self {
            Metric::Requests { endpoint, outcome } => {
                ("trimtab_requests_total", vec![("endpoint", endpoint), ("outcome", outcome)])
            }
            Metric::Passed { reason } => ("trimtab_passed_total", vec![("reason", reason)]),
            Metric::UpstreamErrors { kind } => ("trimtab_upstream_errors_total", vec![("kind", kind)]),
            Metric::LatePlans { sent } => ("trimtab_late_plans_total", vec![("sent", sent)]),
            Metric::Faults { kind } => ("trimtab_faults_total", vec![("kind", kind)]),
            Metric::Overflows { result } => ("trimtab_overflow_answers_total", vec![("result", result)]),
            Metric::CountedTokens { which } => ("trimtab_counted_tokens_total", vec![("which", which)]),
            Metric::WouldHide => ("trimtab_observed_tokens_total", vec![]),
            Metric::HiddenBlocks { verdict } => ("trimtab_hidden_blocks_total", vec![("verdict", verdict)]),
            Metric::ReportedTokens { kind } => ("trimtab_reported_tokens_total", vec![("kind", kind)]),
            Metric::Unreported => ("trimtab_answers_without_usage_total", vec![]),
            Metric::Spent => ("trimtab_spent_dollars_total", vec![]),
            Metric::Saved => ("trimtab_saved_dollars", vec![]),
            Metric::Summaries { result } => ("trimtab_summaries_total", vec![("result", result)]),
            Metric::SummaryDollars => ("trimtab_summary_dollars_total", vec![]),
            Metric::Pings { result } => ("trimtab_pings_total", vec![("result", result)]),
            Metric::PingDollars => ("trimtab_ping_dollars_total", vec![]),
            Metric::Left => ("trimtab_clients_left_total", vec![]),
        }
    }
}

/// Upper bounds of the overhead's buckets, in seconds.
const BUCKETS: [f64; 9] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 1.0];

/// All figures.
#[derive(Default)]
pub(crate) struct Metrics {
    figures: Mutex<MetricValues>,
}

#[derive(Default, Clone)]
struct MetricValues {
    sums: BTreeMap<Metric, f64>,
    overhead: [u64; BUCKETS.len()],
    overhead_count: u64,
    overhead_seconds: f64,
    largest: Option<LargestRequest>,
}

/// The largest request that was planned for, before it was fitted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LargestRequest {
    pub(crate) model: String,
    pub(crate) tokens: Tokens,
    /// The share of the model's window that it fills, where the window is known.
    pub(crate) fill: Option<f64>,
}

/// What people see at the end.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ProxySums {
    /// Requests for conversations, and all others.
    pub(crate) conversations: f64,
    pub(crate) others: f64,
    /// Requests of conversations in which there was nothing to hide.
    pub(crate) kept: f64,
    pub(crate) raw: f64,
    pub(crate) sent: f64,
    pub(crate) observed: f64,
    pub(crate) reported_input: f64,
    pub(crate) cache_read: f64,
    pub(crate) spent: f64,
    pub(crate) saved: f64,
    pub(crate) overflows: f64,
    /// Requests that kept a cache alive, and what they cost.
    pub(crate) pings: f64,
    pub(crate) ping_dollars: f64,
    /// How many requests had no good answer of a provider, by kind or status.
    pub(crate) upstream_errors: Vec<(String, f64)>,
    pub(crate) late_plans: f64,
    /// How many errors trimtab itself made, by kind.
    pub(crate) faults: Vec<(String, f64)>,
    /// How many conversations passed untouched, by reason.
    pub(crate) passed: Vec<(String, f64)>,
    pub(crate) largest: Option<LargestRequest>,
    /// Mean overhead per request that was looked at, in milliseconds.
    pub(crate) overhead_ms: f64,
}

impl Metrics {
    /// Adds to a figure.
    pub(crate) fn add(&self, metric: Metric, amount: f64) {
        *self.lock_figures().sums.entry(metric).or_default() += amount;
    }

    /// Counts one more.
    pub(crate) fn count(&self, metric: Metric) {
        self.add(metric, 1.0);
    }

    /// Notes how long a request waited here before it was sent on.
    pub(crate) fn record_overhead(&self, time: Duration) {
        let mut figures = self.lock_figures();
        let seconds = time.as_secs_f64();
        figures.overhead_count += 1;
        figures.overhead_seconds += seconds;
        let within = BUCKETS.iter().zip(&mut figures.overhead).filter(|(bound, _)| seconds <= **bound);
        within.for_each(|(_, count)| *count += 1);
    }

    /// Notes the size of a request before it was fitted.
    pub(crate) fn record_size(&self, model: &str, tokens: Tokens, fill: Option<f64>) {
        let largest = &mut self.lock_figures().largest;
        if largest.as_ref().is_none_or(|largest| largest.tokens < tokens) {
            *largest = Some(LargestRequest { model: model.to_owned(), tokens, fill });
        }
    }

    /// Notes what a provider reported.
    pub(crate) fn record_usage(&self, usage: Usage) {
        let kinds = [
            ("input", usage.input),
            ("cache_read", usage.cache_read),
            ("cache_write", usage.cache_write),
            ("output", usage.output),
        ];
        for (kind, tokens) in kinds {
            self.add(Metric::ReportedTokens { kind }, float(tokens));
        }
    }

    /// Returns the sums for people.
    pub(crate) fn sums(&self) -> ProxySums {
        let figures = self.lock_figures().clone();
        let mut sums = ProxySums {
            largest: figures.largest,
            overhead_ms: figures.overhead_seconds * 1000.0 / float(figures.overhead_count.max(1)),
            ..ProxySums::default()
        };
        for (metric, amount) in figures.sums {
            match metric {
                Metric::Requests { endpoint, outcome } => {
                    let other = matches!(endpoint, "other" | "count");
                    *(if other { &mut sums.others } else { &mut sums.conversations }) += amount;
                    sums.kept += if outcome == "kept" { amount } else { 0.0 };
                }
                Metric::Passed { reason } => sums.passed.push((reason, amount)),
                Metric::UpstreamErrors { kind } => sums.upstream_errors.push((kind, amount)),
                Metric::LatePlans { .. } => sums.late_plans += amount,
                Metric::Faults { kind } => sums.faults.push((kind.to_owned(), amount)),
                Metric::Overflows { .. } => sums.overflows += amount,
                Metric::CountedTokens { which: "raw" } => sums.raw += amount,
                Metric::CountedTokens { .. } => sums.sent += amount,
                Metric::WouldHide => sums.observed += amount,
                Metric::ReportedTokens { kind } if kind != "output" => {
                    sums.reported_input += amount;
                    sums.cache_read += if kind == "cache_read" { amount } else { 0.0 };
                }
                Metric::Pings { result } if result != "failed" => sums.pings += amount,
                Metric::PingDollars => sums.ping_dollars += amount,
                Metric::Spent => sums.spent += amount,
                Metric::Saved => sums.saved += amount,
                Metric::ReportedTokens { .. }
                | Metric::HiddenBlocks { .. }
                | Metric::Unreported
                | Metric::Summaries { .. }
                | Metric::SummaryDollars
                | Metric::Pings { .. }
                | Metric::Left => {}
            }
        }
        sums
    }

    /// Returns all figures in Prometheus' text format, with some that are known elsewhere.
    pub(crate) fn prometheus_text(&self, gauges: &[(&str, &str, f64)]) -> String {
        let figures = self.lock_figures().clone();
        let sums = self.sums();
        let mut text = String::new();
        for (name, help) in TABLE {
            let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (metric, amount) in &figures.sums {
                let (own, labels) = metric.series_name();
                if own != *name {
                    continue;
                }
                let labels: Vec<String> = labels
                    .iter()
                    .map(|(label, value)| format!("{label}=\"{}\"", value.replace(['\\', '"', '\n'], "_")))
                    .collect();
                let labels =
                    if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
                let _ = writeln!(text, "{name}{labels} {amount}");
            }
        }
        let hit_rate = if sums.reported_input > 0.0 { sums.cache_read / sums.reported_input } else { 0.0 };
        let computed =
            [("trimtab_cache_hit_ratio", "Share of reported input that was read from the cache", hit_rate)];
        for (name, help, amount) in computed.iter().chain(gauges) {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {amount}");
        }
        let name = "trimtab_overhead_seconds";
        let _ = writeln!(
            text,
            "# HELP {name} Time that a request waited here before it was sent on\n# TYPE {name} histogram"
        );
        for (bound, count) in BUCKETS.iter().zip(figures.overhead) {
            let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {count}");
        }
        let _ = writeln!(
            text,
            "{name}_bucket{{le=\"+Inf\"}} {0}\n{name}_sum {1}\n{name}_count {0}",
            figures.overhead_count, figures.overhead_seconds
        );
        text
    }

    fn lock_figures(&self) -> std::sync::MutexGuard<'_, MetricValues> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "no bill comes near 2^52 tokens")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, line: &str) {
        assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
    }

    #[test]
    fn figures_are_written_as_prometheus_reads_them() {
        let metrics = Metrics::default();
        metrics.count(Metric::Requests { endpoint: "messages", outcome: "fitted" });
        metrics.add(Metric::Saved, -0.25);
        metrics.record_usage(Usage { input: 10, cache_read: 30, ..Usage::default() });
        metrics.record_overhead(Duration::from_millis(3));
        let text = metrics.prometheus_text(&[("trimtab_sessions", "Sessions known", 2.0)]);
        check(&text, "trimtab_requests_total{endpoint=\"messages\",outcome=\"fitted\"} 1");
        check(&text, "trimtab_saved_dollars -0.25");
        check(&text, "trimtab_cache_hit_ratio 0.75");
        check(&text, "trimtab_overhead_seconds_bucket{le=\"0.002\"} 0");
        check(&text, "trimtab_overhead_seconds_bucket{le=\"0.005\"} 1");
        check(&text, "trimtab_sessions 2");
    }

    #[test]
    fn every_metric_has_a_row() {
        let text = "";
        let all = [
            Metric::Requests { endpoint: text, outcome: text },
            Metric::Passed { reason: String::new() },
            Metric::UpstreamErrors { kind: String::new() },
            Metric::LatePlans { sent: text },
            Metric::Faults { kind: text },
            Metric::Overflows { result: text },
            Metric::CountedTokens { which: text },
            Metric::WouldHide,
            Metric::HiddenBlocks { verdict: text },
            Metric::ReportedTokens { kind: text },
            Metric::Unreported,
            Metric::Spent,
            Metric::Saved,
            Metric::Summaries { result: text },
            Metric::SummaryDollars,
            Metric::Pings { result: text },
            Metric::PingDollars,
            Metric::Left,
        ];
        let names: Vec<&str> = TABLE.iter().map(|(name, _)| *name).collect();
        assert_eq!(all.each_ref().map(|metric| metric.series_name().0).as_slice(), names);
    }
}
