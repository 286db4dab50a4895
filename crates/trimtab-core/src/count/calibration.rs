//! Corrects estimates by what the provider reports. Takes pairs of (estimated, reported) tokens, one
//! per request of a session; gives one factor. Never needs to see the whole request: system text and
//! tool definitions outside our sight are a constant that cancels.
//!
//! A request's reported tokens are `factor * estimated + hidden`, with `hidden` unknown and constant.
//! Between two requests of a growing conversation the constant cancels, so the factor is learnt from
//! growth: the sum of reported growth over the sum of estimated growth, starting from a belief of 1
//! that weighs as much as `PRIOR_TOKENS`. When the caller knows that nothing is hidden, totals are
//! used in the same sums, and one observation of a long request settles the factor.

use crate::units::Tokens;
use serde::{Deserialize, Serialize};

/// How many tokens of evidence the initial belief in a factor of 1 weighs: about one tool result.
const PRIOR_TOKENS: f64 = 1000.0;

/// Evidence beyond this is halved, so that a factor follows a session whose content changes.
const MEMORY_TOKENS: f64 = 100_000.0;

/// Estimates are never corrected beyond these: whatever asks for more is not an error of counting.
const FACTOR_RANGE: (f64, f64) = (0.5, 2.5);

/// Estimates are trusted this far at most when they turn out too high: a provider that reports too little must not fill the window.
const LEAST_FACTOR: f64 = 0.8;

/// A single growth whose ratio lies outside this is not evidence about counting (a compaction, an edited
/// history, a request by another agent) and is left out.
const CREDIBLE_GROWTH: (f64, f64) = (0.33, 4.0);

/// One factor learnt from a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    estimated: f64,
    reported: f64,
    last: Option<(Tokens, Tokens)>,
}

impl Calibration {
    /// Learns from a request of which parts may be hidden. The first one only marks a start.
    pub fn observe_pair(&mut self, estimated: Tokens, reported: Tokens) {
        if let Some((estimated_before, reported_before)) = self.last
            && estimated > estimated_before
            && reported > reported_before
        {
            self.learn_ratio(estimated - estimated_before, reported - reported_before);
        }
        self.last = Some((estimated, reported));
    }

    /// Learns from a request that is counted whole: system, tools, messages and framing.
    pub fn observe_whole(&mut self, estimated: Tokens, reported: Tokens) {
        self.learn_ratio(estimated, reported);
        self.last = Some((estimated, reported));
    }

    /// Returns the factor learnt so far: 1 before any evidence.
    pub fn factor(&self) -> f64 {
        let factor = (self.reported + PRIOR_TOKENS) / (self.estimated + PRIOR_TOKENS);
        factor.clamp(FACTOR_RANGE.0, FACTOR_RANGE.1)
    }

    /// Corrects an estimate.
    pub fn correct_estimate(&self, estimated: Tokens) -> Tokens {
        estimated.scale(self.factor())
    }

    /// Returns reported tokens as they are counted here, to be compared with what is counted here.
    pub fn in_own_tokens(&self, reported: Tokens) -> Tokens {
        reported.scale(1.0 / self.factor())
    }

    /// Returns the factor as far as it is trusted with a window: an estimate that turns out too high is not believed beyond a limit.
    pub fn trusted_factor(&self) -> f64 {
        self.factor().max(LEAST_FACTOR)
    }

    /// Returns a budget of the provider's tokens as they are counted here.
    pub(crate) fn budget_here(&self, budget: Tokens) -> Tokens {
        budget.scale(1.0 / self.trusted_factor())
    }

    fn learn_ratio(&mut self, estimated: Tokens, reported: Tokens) {
        let (estimated, reported) = (as_float(estimated), as_float(reported));
        if reported < estimated * CREDIBLE_GROWTH.0 || reported > estimated * CREDIBLE_GROWTH.1 {
            return;
        }
        self.estimated += estimated;
        self.reported += reported;
        if self.estimated > MEMORY_TOKENS {
            self.estimated /= 2.0;
            self.reported /= 2.0;
        }
    }
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "no context comes near 2^52 tokens")]
fn as_float(Tokens(tokens): Tokens) -> f64 {
    tokens as f64
}

#[cfg(test)]
mod tests {
    use super::{Calibration, Tokens};

    #[track_caller]
    fn check(requests: &[(u64, u64)], estimate: u64, corrected: u64) {
        let mut calibration = Calibration::default();
        for &(estimated, reported) in requests {
            calibration.observe_pair(Tokens(estimated), Tokens(reported));
        }
        assert_eq!(
            calibration.correct_estimate(Tokens(estimate)),
            Tokens(corrected),
            "factor {}",
            calibration.factor()
        );
    }

    #[test]
    fn nothing_is_corrected_before_there_is_evidence() {
        check(&[], 5000, 5000);
        check(&[(1000, 21_000)], 5000, 5000);
    }

    #[test]
    fn growth_teaches_the_factor_whatever_is_hidden() {
        // Grown by 9,000 estimated and 12,000 reported: (12,000 + 1,000) / (9,000 + 1,000) = 1.3.
        check(&[(1000, 21_000), (10_000, 33_000)], 10_000, 13_000);
    }

    #[test]
    fn growths_add_up() {
        // 4,000 -> 5,000 and 5,000 -> 7,000: (12,000 + 1,000) / (9,000 + 1,000) = 1.3.
        check(&[(1000, 1000), (5000, 6000), (10_000, 13_000)], 100, 130);
    }

    #[test]
    fn a_shrunken_request_only_marks_a_new_start() {
        check(&[(50_000, 70_000), (5000, 7000), (14_000, 19_000)], 10_000, 13_000);
    }

    #[test]
    fn growth_that_no_counting_error_explains_is_left_out() {
        check(&[(1000, 1000), (2000, 90_000), (11_000, 102_000)], 10_000, 13_000);
    }

    #[test]
    fn the_factor_stays_in_a_sane_range() {
        let steps: Vec<_> = (1..60).map(|n| (n * 10_000, n * 39_000)).collect();
        check(&steps, 1000, 2500);
    }

    #[test]
    fn one_whole_request_settles_it() {
        let mut calibration = Calibration::default();
        calibration.observe_whole(Tokens(49_000), Tokens(64_000));
        // (64,000 + 1,000) / (49,000 + 1,000) = 1.3.
        assert_eq!(calibration.correct_estimate(Tokens(10_000)), Tokens(13_000));
    }
}
