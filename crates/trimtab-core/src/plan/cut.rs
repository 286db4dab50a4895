//! When an edit of what was sent before pays for itself: the arithmetic of the pass that hides what pays. Takes what could be hidden and what the cache costs; gives the
//! place from which on to hide. All edits after the earliest ride along, so one scan from the end finds the best place.

use super::work::to_whole_number;
use crate::{history::BlockId, units::Tokens};

/// What the provider's cache costs, as multiples of the plain input price.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CachePrices {
    pub(crate) read: f64,
    pub(crate) write: f64,
}

/// What a cut costs and saves, per token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CutRates {
    /// What a token costs that was sent before.
    pub(super) read: f64,
    /// What it costs beyond that when it must be cached again.
    pub(super) rewrite: f64,
    /// How much more a cut may make this request cost.
    pub(super) may_cost: f64,
}

/// Requests still expected per request made, and the least assumed: sessions that lasted last on (a fit over recorded ones).
const EXPECTED_SHARE: f64 = 0.1;
const LEAST_REQUESTS: f64 = 5.0;

/// A cut that pays, and its arithmetic.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PayingCut {
    /// The first of the possible edits that is made.
    pub(super) from: usize,
    /// What it hides, once it is made.
    pub(super) edits: Vec<BlockId>,
    /// How many tokens it saves at every later request.
    pub(super) saved: Tokens,
    /// How many tokens after it are cached again.
    pub(super) rewritten: Tokens,
    /// How many requests it takes until it has paid for itself.
    pub(super) break_even: f64,
    /// How many more are expected.
    pub(super) expected: f64,
}

impl PayingCut {
    /// Returns the cut with what it really saves, and costs beyond what the request would have cost without it; nothing where
    /// that is more than it may cost or does not pay.
    pub(super) fn with_real_saving(self, saved: Tokens, dearer: f64, rates: CutRates) -> Option<PayingCut> {
        let saves = rates.read * saved.to_float();
        if dearer > rates.may_cost || dearer >= self.expected * saves {
            return None;
        }
        let rewritten = to_whole_number((dearer + saves) / rates.rewrite);
        let rewritten = Tokens(u64::try_from(rewritten).unwrap_or(u64::MAX));
        Some(PayingCut { saved, rewritten, break_even: break_even(dearer, saves), ..self })
    }
}

/// Returns how many more requests it takes until what a request costs more now is paid back by what each saves.
pub(super) fn break_even(dearer: f64, saves: f64) -> f64 {
    if dearer <= 0.0 { 0.0 } else { dearer / saves }
}

/// Finds the best place to cut. `pending` are the savings of possible edits with the tokens that survive after each,
/// oldest first; `requests` is the number of requests made so far. A cut that would cost more now than it may is none.
pub(super) fn best_cut(pending: &[(Tokens, Tokens)], requests: u32, rates: CutRates) -> Option<PayingCut> {
    let expected = EXPECTED_SHARE * f64::from(requests).max(LEAST_REQUESTS);
    let mut best: Option<(PayingCut, f64)> = None;
    let mut saved = Tokens::ZERO;
    for (from, (saves, rewritten)) in pending.iter().enumerate().rev() {
        saved += *saves;
        let dearer = rates.rewrite * rewritten.to_float() - rates.read * saved.to_float();
        let gain = expected * rates.read * saved.to_float() - dearer;
        if dearer <= rates.may_cost && gain > 0.0 && best.as_ref().is_none_or(|(_, most)| gain > *most) {
            let break_even = break_even(dearer, rates.read * saved.to_float());
            let edits = Vec::new();
            best =
                Some((PayingCut { from, edits, saved, rewritten: *rewritten, break_even, expected }, gain));
        }
    }
    best.map(|(cut, _)| cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAUDE: CutRates = CutRates { read: 0.1, rewrite: 1.15, may_cost: f64::INFINITY };

    fn check(pending: &[(u64, u64)], requests: u32, cut: Option<usize>) {
        let pending: Vec<(Tokens, Tokens)> = pending.iter().map(|(s, t)| (Tokens(*s), Tokens(*t))).collect();
        assert_eq!(best_cut(&pending, requests, CLAUDE).map(|cut| cut.from), cut);
    }

    #[test]
    fn nothing_is_rewritten_for_little() {
        // 1,000 tokens save 175 over the rest, rewriting 50,000 costs 57,500.
        check(&[(1_000, 50_000)], 5, None);
    }

    #[test]
    fn the_tail_that_pays_is_cut_and_not_more() {
        // 40,000 saved x 0.1 x (0.75 + 1) = 7,000 against 1.15 x 2,000 = 2,300: it pays. The older edit would add 175 and
        // cost 1.15 x 58,000 more.
        check(&[(1_000, 60_000), (40_000, 2_000)], 5, Some(1));
    }

    #[test]
    fn older_edits_ride_along_when_they_pay_together() {
        check(&[(30_000, 3_000), (40_000, 2_000)], 5, Some(0));
    }

    #[test]
    fn a_cut_that_saves_less_than_it_seemed_is_none() {
        let cut = best_cut(&[(Tokens(3_300), Tokens(240))], 8, CLAUDE).unwrap();
        // 2,100 tokens x 0.1 x 0.8 requests = 168.
        let really = |dearer| {
            cut.clone().with_real_saving(Tokens(2_100), dearer, CutRates { may_cost: 1_000.0, ..CLAUDE })
        };
        let good = really(160.0).unwrap();
        assert_eq!((good.saved, good.rewritten), (Tokens(2_100), Tokens(321)));
        assert!(good.break_even < good.expected && really(170.0).is_none());
        assert_eq!(
            cut.clone().with_real_saving(
                Tokens(1_000_000),
                1_001.0,
                CutRates { may_cost: 1_000.0, ..CLAUDE }
            ),
            None
        );
        assert_eq!(cut.with_real_saving(Tokens::ZERO, 0.0, CLAUDE), None, "nothing saved, nothing gained");
    }

    #[test]
    fn where_the_best_cut_would_cost_too_much_now_a_smaller_one_is_made() {
        // From the first on 1.15 x 20,000 - 0.1 x 190,000 = 4,000 more now, from the second on 1,700 less.
        let pending = [(Tokens(150_000), Tokens(20_000)), (Tokens(40_000), Tokens(2_000))];
        let from = |may_cost| best_cut(&pending, 5, CutRates { may_cost, ..CLAUDE }).map(|cut| cut.from);
        assert_eq!([from(5_000.0), from(1_000.0), from(-5_000.0)], [Some(0), Some(1), None]);
    }
}
