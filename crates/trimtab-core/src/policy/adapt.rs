//! Thresholds that follow the model's window and what the session has cost. Takes a setting's default and the
//! circumstances; gives the value in force. Never changes what a user has set.

use crate::units::Tokens;

/// What thresholds adapt to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Circumstances {
    /// The model's window, where it is known.
    pub window: Option<Tokens>,
    /// What the session has cost so far, in US dollars; 0 where nothing is known.
    pub spent: f64,
}

/// The window that the defaults were chosen for (seed 000 and 001).
const USUAL_WINDOW: f64 = 200_000.0;
/// Windows beyond these change nothing more: below a tenth nothing useful would be protected, above five times the usual
/// window models use what stands far back less and less.
const LEAST: f64 = 0.1;
const MOST: f64 = 5.0;
/// After this many dollars a threshold is half its default.
const HALVED_BY: f64 = 20.0;
/// The least that the cost leaves of a threshold.
const LEAST_BY_COST: f64 = 0.25;

/// The switch that lets thresholds adapt; off, they are those of the documents on every window.
pub(super) const ADAPTIVE: &str = "adaptive";

/// The settings that adapt.
pub(super) const ADAPTING: [&str; 2] = ["prune_protect", "prune_minimum"];

/// Returns the value of a setting in the circumstances:
///
/// `default × clamp(window / 200,000, 0.1, 5) × max(0.25, 1 / (1 + dollars / 20))`
///
/// rounded to whole tokens. A window that is not known and a session that has cost nothing leave the default.
pub(super) fn adapt_setting(setting: &str, default: f64, circumstances: &Circumstances) -> f64 {
    if !ADAPTING.contains(&setting) {
        return default;
    }
    let window = circumstances.window.map_or(1.0, |window| share_of_usual(window).clamp(LEAST, MOST));
    let spent = if circumstances.spent.is_finite() { circumstances.spent.max(0.0) } else { 0.0 };
    let cost = (1.0 / (1.0 + spent / HALVED_BY)).max(LEAST_BY_COST);
    (default * window * cost).round()
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "no window comes near 2^52 tokens")]
fn share_of_usual(Tokens(window): Tokens) -> f64 {
    window as f64 / USUAL_WINDOW
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(window: Option<u64>, spent: f64, protect: f64) {
        let circumstances = Circumstances { window: window.map(Tokens), spent };
        assert_eq!(adapt_setting("prune_protect", 40_000.0, &circumstances), protect, "{window:?} {spent}");
        assert_eq!(
            adapt_setting("prune_minimum", 20_000.0, &circumstances),
            protect / 2.0,
            "{window:?} {spent}"
        );
        assert_eq!(adapt_setting("keep_last", 5.0, &circumstances), 5.0);
    }

    #[test]
    fn the_usual_window_and_an_unknown_one_leave_the_defaults() {
        check(Some(200_000), 0.0, 40_000.0);
        check(None, 0.0, 40_000.0);
        check(None, f64::NAN, 40_000.0);
        check(None, -3.0, 40_000.0);
    }

    #[test]
    fn thresholds_scale_with_the_window_within_bounds() {
        check(Some(100_000), 0.0, 20_000.0);
        check(Some(400_000), 0.0, 80_000.0);
        check(Some(1_000_000), 0.0, 200_000.0);
        check(Some(10_000_000), 0.0, 200_000.0);
        check(Some(8_000), 0.0, 4_000.0);
        check(Some(0), 0.0, 4_000.0);
    }

    #[test]
    fn a_dear_session_is_shortened_earlier_down_to_a_quarter() {
        check(Some(200_000), 5.0, 32_000.0);
        check(Some(200_000), 20.0, 20_000.0);
        check(Some(200_000), 60.0, 10_000.0);
        check(Some(200_000), 1_000.0, 10_000.0);
        check(Some(100_000), 20.0, 10_000.0);
    }
}
