//! Figures about the proxy's own work. Takes events; gives the text that Prometheus reads, and the sums that people see at
//! the end. Never leaves the machine by itself.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use trimtab::{Tokens, Usage};

use super::money::float;

/// Something that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Metric {
    Requests,
    Passed,
    UpstreamErrors,
    LatePlans,
    Faults,
    Overflows,
    CountedTokens,
    WouldHide,
    HiddenBlocks,
    ReportedTokens,
    Unreported,
    Spent,
    Saved,
    Summaries,
    SummaryDollars,
    Left,
}

/// Name, kind and help of every metric.
const TABLE: &[(Metric, &str, &str, &str)] = &[
    (
        Metric::Requests,
        "trimtab_requests_total",
        "counter",
        "Requests by endpoint and what was done with them",
    ),
    (Metric::Passed, "trimtab_passed_total", "counter", "Conversations that passed untouched, by reason"),
    (
        Metric::UpstreamErrors,
        "trimtab_upstream_errors_total",
        "counter",
        "Requests that a provider did not answer or answered with an error, by kind or status",
    ),
    (
        Metric::LatePlans,
        "trimtab_late_plans_total",
        "counter",
        "Plans that were not ready in time, by what was sent",
    ),
    (Metric::Faults, "trimtab_faults_total", "counter", "Errors in trimtab itself, by kind"),
    (
        Metric::Overflows,
        "trimtab_overflow_answers_total",
        "counter",
        "Answers that a request is too long, by what followed",
    ),
    (
        Metric::CountedTokens,
        "trimtab_counted_tokens_total",
        "counter",
        "Input tokens as counted here: as they came, and as sent",
    ),
    (
        Metric::WouldHide,
        "trimtab_observed_tokens_total",
        "counter",
        "Input tokens that would have been hidden, while observing",
    ),
    (
        Metric::HiddenBlocks,
        "trimtab_hidden_blocks_total",
        "counter",
        "Blocks hidden, summed over requests, by verdict",
    ),
    (
        Metric::ReportedTokens,
        "trimtab_reported_tokens_total",
        "counter",
        "Tokens that providers reported, by kind",
    ),
    (
        Metric::Unreported,
        "trimtab_answers_without_usage_total",
        "counter",
        "Good answers that reported no usage",
    ),
    (Metric::Spent, "trimtab_spent_dollars_total", "counter", "Dollars that the reported usage costs"),
    (
        Metric::Saved,
        "trimtab_saved_dollars",
        "gauge",
        "Dollars of input saved by estimate; falls where an edit cost more than it saved",
    ),
    (
        Metric::Summaries,
        "trimtab_summaries_total",
        "counter",
        "Summaries that were asked for in the background, by what came of it",
    ),
    (
        Metric::SummaryDollars,
        "trimtab_summary_dollars_total",
        "counter",
        "Dollars that summaries cost; they are part of what was spent",
    ),
    (Metric::Left, "trimtab_clients_left_total", "counter", "Clients that left before the end of an answer"),
];

/// Upper bounds of the overhead's buckets, in seconds.
const BUCKETS: [f64; 9] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 1.0];

/// All figures.
#[derive(Default)]
pub(crate) struct Metrics {
    figures: Mutex<Figures>,
}

#[derive(Default, Clone)]
struct Figures {
    sums: BTreeMap<(Metric, String), f64>,
    overhead: [u64; BUCKETS.len()],
    overhead_count: u64,
    overhead_seconds: f64,
    largest: Option<LargestRequest>,
}

/// The largest request that was planned for, as it came.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LargestRequest {
    pub(crate) model: String,
    pub(crate) tokens: Tokens,
    /// The share of the model's window that it fills, where the window is known.
    pub(crate) fill: Option<f64>,
}

/// What people see at the end.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Sums {
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
    /// Adds to a figure; labels are pairs of name and value.
    pub(crate) fn add(&self, metric: Metric, labels: &[(&str, &str)], amount: f64) {
        let mut words = String::new();
        for (name, value) in labels {
            let comma = if words.is_empty() { "" } else { "," };
            let _ = write!(words, "{comma}{name}=\"{}\"", value.replace(['\\', '"', '\n'], "_"));
        }
        *self.figures().sums.entry((metric, words)).or_default() += amount;
    }

    /// Counts one more.
    pub(crate) fn count(&self, metric: Metric, labels: &[(&str, &str)]) {
        self.add(metric, labels, 1.0);
    }

    /// Notes how long a request was held here before it was sent on.
    pub(crate) fn overhead(&self, time: Duration) {
        let mut figures = self.figures();
        let seconds = time.as_secs_f64();
        figures.overhead_count += 1;
        figures.overhead_seconds += seconds;
        let within = BUCKETS.iter().zip(&mut figures.overhead).filter(|(bound, _)| seconds <= **bound);
        within.for_each(|(_, count)| *count += 1);
    }

    /// Notes the size of a request as it came.
    pub(crate) fn size(&self, model: &str, tokens: Tokens, fill: Option<f64>) {
        let largest = &mut self.figures().largest;
        if largest.as_ref().is_none_or(|largest| largest.tokens < tokens) {
            *largest = Some(LargestRequest { model: model.to_owned(), tokens, fill });
        }
    }

    /// Notes what a provider reported.
    pub(crate) fn usage(&self, usage: Usage) {
        let kinds = [
            ("input", usage.input),
            ("cache_read", usage.cache_read),
            ("cache_write", usage.cache_write),
            ("output", usage.output),
        ];
        for (kind, tokens) in kinds {
            self.add(Metric::ReportedTokens, &[("kind", kind)], float(tokens));
        }
    }

    /// Returns the sums for people.
    pub(crate) fn sums(&self) -> Sums {
        let figures = self.figures().clone();
        let sum = |metric: Metric, label: &str| {
            let of =
                figures.sums.iter().filter(|((known, words), _)| *known == metric && words.contains(label));
            of.map(|(_, amount)| *amount).sum::<f64>()
        };
        let reported = |kind: &str| sum(Metric::ReportedTokens, &format!("kind=\"{kind}\""));
        let by_label = |metric: Metric| {
            let of = figures.sums.iter().filter(|((known, _), _)| *known == metric);
            let value = |words: &str| {
                words.split_once('=').map_or(words, |(_, value)| value).trim_matches('"').to_owned()
            };
            of.map(|((_, words), count)| (value(words), *count)).collect()
        };
        let others =
            sum(Metric::Requests, "endpoint=\"other\"") + sum(Metric::Requests, "endpoint=\"count\"");
        Sums {
            conversations: sum(Metric::Requests, "") - others,
            others,
            kept: sum(Metric::Requests, "outcome=\"kept\""),
            raw: sum(Metric::CountedTokens, "raw"),
            sent: sum(Metric::CountedTokens, "sent"),
            observed: sum(Metric::WouldHide, ""),
            reported_input: reported("input") + reported("cache_read") + reported("cache_write"),
            cache_read: reported("cache_read"),
            spent: sum(Metric::Spent, ""),
            saved: sum(Metric::Saved, ""),
            overflows: sum(Metric::Overflows, ""),
            upstream_errors: by_label(Metric::UpstreamErrors),
            late_plans: sum(Metric::LatePlans, ""),
            faults: by_label(Metric::Faults),
            passed: by_label(Metric::Passed),
            largest: figures.largest.clone(),
            overhead_ms: if figures.overhead_count == 0 {
                0.0
            } else {
                figures.overhead_seconds * 1000.0 / float(figures.overhead_count)
            },
        }
    }

    /// Returns all figures in Prometheus' text format, with some that are known elsewhere.
    pub(crate) fn text(&self, gauges: &[(&str, &str, f64)]) -> String {
        let figures = self.figures().clone();
        let sums = self.sums();
        let mut text = String::new();
        for (metric, name, kind, help) in TABLE {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for ((_, labels), amount) in figures.sums.iter().filter(|((known, _), _)| known == metric) {
                let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
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
            "# HELP {name} Time that a request was held here before it was sent on\n# TYPE {name} histogram"
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

    fn figures(&self) -> std::sync::MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        metrics.count(Metric::Requests, &[("endpoint", "messages"), ("outcome", "fitted")]);
        metrics.add(Metric::Saved, &[], -0.25);
        metrics.usage(Usage { input: 10, cache_read: 30, ..Usage::default() });
        metrics.overhead(Duration::from_millis(3));
        let text = metrics.text(&[("trimtab_sessions", "Sessions known", 2.0)]);
        check(&text, "trimtab_requests_total{endpoint=\"messages\",outcome=\"fitted\"} 1");
        check(&text, "trimtab_saved_dollars -0.25");
        check(&text, "trimtab_cache_hit_ratio 0.75");
        check(&text, "trimtab_overhead_seconds_bucket{le=\"0.002\"} 0");
        check(&text, "trimtab_overhead_seconds_bucket{le=\"0.005\"} 1");
        check(&text, "trimtab_sessions 2");
    }

    #[test]
    fn every_metric_has_a_row() {
        assert!(TABLE.windows(2).all(|rows| rows[0].0 < rows[1].0));
        assert_eq!(TABLE.last().map(|row| row.0), Some(Metric::Left));
    }
}
