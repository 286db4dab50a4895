//! When an edit of what was sent before pays for itself. Takes what could be hidden and what the cache costs; gives the
//! place from which on to hide. All edits behind the earliest ride along, so one scan from the end finds the best place.

use crate::count::Tokens;

/// What the provider's cache costs, as multiples of the plain input price.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CachePrices {
    pub(crate) read: f64,
    pub(crate) write: f64,
}

/// Requests still expected per request made, and the least assumed: sessions that lasted last on (a fit over recorded ones).
const EXPECTED_SHARE: f64 = 0.15;
const LEAST_REQUESTS: f64 = 5.0;

/// A cut that pays, and the sum behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cut {
    /// The first of the possible edits that is made.
    pub(crate) from: usize,
    /// How many tokens it saves at every later request.
    pub saved: Tokens,
    /// How many tokens behind it are written anew.
    pub rewritten: Tokens,
    /// How many requests it takes until it has paid for itself.
    pub break_even: f64,
    /// How many more are expected.
    pub expected: f64,
}

/// Finds the best place to cut. `pending` are the savings of possible edits with the tokens that survive behind each,
/// oldest first; `requests` is the number of requests made so far.
pub(super) fn best_cut(pending: &[(Tokens, Tokens)], requests: u32, prices: CachePrices) -> Option<Cut> {
    let expected = EXPECTED_SHARE * f64::from(requests).max(LEAST_REQUESTS);
    let mut best: Option<(Cut, f64)> = None;
    let mut saved = Tokens::ZERO;
    for (from, (saves, rewritten)) in pending.iter().enumerate().rev() {
        saved += *saves;
        let penalty = (prices.write - prices.read) * rewritten.float();
        let gain = (expected + 1.0) * prices.read * saved.float() - penalty;
        if gain > 0.0 && best.is_none_or(|(_, most)| gain > most) {
            let break_even = penalty / (prices.read * saved.float()) - 1.0;
            best = Some((Cut { from, saved, rewritten: *rewritten, break_even, expected }, gain));
        }
    }
    best.map(|(cut, _)| cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAUDE: CachePrices = CachePrices { read: 0.1, write: 1.25 };

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
}
