//! Whether folding now helps. Takes what the request counts, what would be left of it, and the last fold; gives go, wait, or say
//! once that it cannot help. Never lets folds follow each other without gain: an agent that forgets, reads again and is folded
//! again costs more than it saves.

use crate::units::Tokens;

/// A fold must take away at least this share of the budget.
pub(crate) const LEAST_GAIN: f64 = 0.15;
/// What is left must be at most this share of the budget: else the next steps would ask for a fold again.
const MOST_LEFT: f64 = 0.80;
/// A fold pays for itself after about this many requests (150,000 tokens folded to 43,000 at a tenth of the price per cached
/// read and 1.25 per write: 8.4), so none follows sooner unless the budget is exceeded.
const PAYS_AFTER: u32 = 8;

/// What is known when a fold is thought about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoldPace {
    /// The most that a request may count.
    pub(crate) budget: Tokens,
    /// What the request counts now.
    pub(crate) now: Tokens,
    /// What the provider reported for the last request, where it did.
    pub(crate) reported: Option<Tokens>,
    /// What the request would count after the fold.
    pub(crate) left: Tokens,
    /// What would be left of it at best: what can be neither folded nor hidden, the folded message, and a short tail.
    pub(crate) floor: Tokens,
    /// The current step.
    pub(crate) step: u32,
    /// The last fold of this session.
    pub(crate) last: Option<LastFold>,
}

/// What is remembered of a fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastFold {
    /// The step at which it was done.
    pub(crate) step: u32,
    /// What the request counted before.
    pub(crate) before: Tokens,
    /// What it counted afterwards, as reported where the provider reported it.
    pub(crate) after: Tokens,
    /// Whether it was said that folding cannot help.
    pub(crate) said: bool,
}

/// What to do about a fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MayFold {
    /// Fold.
    Fold,
    /// Say once that folding cannot help, with what is in the way, and do nothing until something changes.
    SayOnceAndStop,
    /// Wait: the gain is too small yet, or the last fold too near.
    TooSoon,
}

/// Tells whether to fold.
pub(crate) fn may_fold(pace: &FoldPace) -> MayFold {
    let now = pace.reported.map_or(pace.now, |reported| reported.max(pace.now));
    let over = now > pace.budget;
    let stop =
        if pace.last.is_some_and(|last| last.said) { MayFold::TooSoon } else { MayFold::SayOnceAndStop };
    // What cannot be folded fills the window by itself: no fold will ever help.
    if pace.floor > pace.budget.scale(MOST_LEFT) {
        return if over { stop } else { MayFold::TooSoon };
    }
    let gain = now - pace.left;
    if gain < pace.budget.scale(LEAST_GAIN) {
        return if over { stop } else { MayFold::TooSoon };
    }
    match pace.last {
        // The last fold took nothing away, and nothing came since.
        Some(last) if last.after >= last.before.scale(1.0 - LEAST_GAIN) && now <= last.before => stop,
        Some(last) if !over && pace.step.saturating_sub(last.step) < PAYS_AFTER => MayFold::TooSoon,
        Some(_) | None => MayFold::Fold,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: FoldPace = FoldPace {
        budget: Tokens(100),
        now: Tokens(90),
        reported: None,
        left: Tokens(30),
        floor: Tokens(30),
        step: 50,
        last: None,
    };
    const LAST: LastFold = LastFold { step: 20, before: Tokens(95), after: Tokens(30), said: false };

    /// A fold that leaves nothing but what must be left.
    fn check(pace: FoldPace, expected: MayFold) {
        let pace = FoldPace { left: pace.floor, ..pace };
        assert_eq!(may_fold(&pace), expected, "{pace:?}");
    }

    #[test]
    fn a_fold_that_takes_much_away_is_done() {
        check(PACE, MayFold::Fold);
        check(FoldPace { last: Some(LAST), ..PACE }, MayFold::Fold);
    }

    #[test]
    fn a_floor_that_fills_the_window_is_said_once() {
        let full = FoldPace { floor: Tokens(85), now: Tokens(110), ..PACE };
        check(full, MayFold::SayOnceAndStop);
        check(FoldPace { last: Some(LastFold { said: true, ..LAST }), ..full }, MayFold::TooSoon);
        check(FoldPace { now: Tokens(90), ..full }, MayFold::TooSoon);
    }

    #[test]
    fn what_other_steps_can_hide_behind_it_is_not_in_the_way() {
        let full = FoldPace { now: Tokens(200), left: Tokens(120), floor: Tokens(40), ..PACE };
        assert_eq!(may_fold(&full), MayFold::Fold);
        assert_eq!(may_fold(&FoldPace { left: Tokens(190), ..full }), MayFold::SayOnceAndStop);
    }

    #[test]
    fn folds_do_not_follow_each_other_below_the_budget() {
        let near = FoldPace { step: 25, last: Some(LAST), ..PACE };
        check(near, MayFold::TooSoon);
        check(FoldPace { now: Tokens(101), ..near }, MayFold::Fold);
    }

    #[test]
    fn little_to_gain_waits_until_it_is_more() {
        check(FoldPace { floor: Tokens(76), ..PACE }, MayFold::TooSoon);
        check(FoldPace { floor: Tokens(79), now: Tokens(101), ..PACE }, MayFold::Fold);
        check(FoldPace { budget: Tokens(85), floor: Tokens(67), now: Tokens(86), ..PACE }, MayFold::Fold);
    }

    #[test]
    fn what_the_provider_reports_counts_where_it_is_more() {
        check(FoldPace { now: Tokens(40), ..PACE }, MayFold::TooSoon);
        check(FoldPace { now: Tokens(40), reported: Some(Tokens(99)), ..PACE }, MayFold::Fold);
    }

    #[test]
    fn a_fold_that_shrank_nothing_is_not_tried_again() {
        let useless = LastFold { after: Tokens(94), ..LAST };
        check(FoldPace { now: Tokens(94), last: Some(useless), ..PACE }, MayFold::SayOnceAndStop);
        check(FoldPace { now: Tokens(120), last: Some(useless), ..PACE }, MayFold::Fold);
    }

    #[test]
    fn a_hundred_requests_at_a_full_window_fold_never_twice_in_a_row() {
        let mut last = None;
        let mut now = 50;
        let mut folds = Vec::new();
        for step in 0..100 {
            now += 3;
            let pace = FoldPace { now: Tokens(now), left: Tokens(40), floor: Tokens(40), step, last, ..PACE };
            if may_fold(&pace) == MayFold::Fold {
                last = Some(LastFold { step, before: Tokens(now), after: Tokens(40), said: false });
                folds.push(step);
                now = 40;
            }
        }
        assert!(folds.windows(2).all(|pair| pair[1] - pair[0] >= PAYS_AFTER), "{folds:?}");
        assert!(folds.len() > 3, "{folds:?}");
    }
}
