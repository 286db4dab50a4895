//! Where cuts are made when it is known what will be needed and how long the session lasts: [`find_cuts`]. Takes the
//! [`HidableResult`]s of a segment and what its requests cost ([`CutCosts`]); gives for each request the block from which on
//! everything that can be hidden is hidden. The oracles that pay for their edits use it.
//!
//! A cut costs the rewriting of what stays visible after it, whatever was cut before; a result saves its tokens from the
//! first cut on that reaches it. The plan is found by search: cuts are added, moved and taken back while that saves
//! something. It is not proven to be the best there is.

use trimtab_core::{BlockId, Tokens};

/// Most changes of a plan: sessions of a thousand requests take about fifty.
const MOST_ROUNDS: usize = 400;

/// A result that nobody needs any more from some request on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct HidableResult {
    pub(super) block: BlockId,
    /// The first request that may hide it.
    pub(super) from: usize,
    /// Tokens that hiding it saves in each request.
    pub(super) saves: f64,
}

/// What requests cost, in any unit.
#[derive(Debug, Clone, Default)]
pub(super) struct CutCosts {
    /// What a token that was sent before costs in each request: the price of a read, or of a write where the cache is cold.
    pub(super) carried: Vec<f64>,
    /// What a token that must be cached again costs more, in each request: nothing where the cache is cold.
    pub(super) rewrite: Vec<f64>,
    /// How many blocks the request before carried.
    pub(super) blocks_before: Vec<usize>,
    /// The tokens of all blocks before each block, untrimmed; one more entry than there are blocks.
    pub(super) tokens_before: Vec<f64>,
}

/// For each request, from which block on everything hidable is hidden.
pub(super) type CutPlan = Vec<Option<BlockId>>;

/// Finds a plan of cuts that saves as much as search can find. `hidable` is in the order of blocks.
pub(super) fn find_cuts(hidable: &[HidableResult], costs: &CutCosts) -> CutPlan {
    let mut search = CutSearch::new(hidable, costs);
    for _ in 0..MOST_ROUNDS {
        if !search.add_best() {
            break;
        }
    }
    for _ in 0..MOST_ROUNDS {
        if !search.improve() {
            break;
        }
    }
    search.cuts
}

/// Returns what a plan saves beyond what it costs.
#[cfg(test)]
pub(super) fn plan_gain(hidable: &[HidableResult], costs: &CutCosts, cuts: &[Option<BlockId>]) -> f64 {
    CutSearch { cuts: cuts.to_vec(), ..CutSearch::new(hidable, costs) }.total_gain()
}

struct CutSearch<'a> {
    hidable: &'a [HidableResult],
    costs: &'a CutCosts,
    cuts: CutPlan,
    /// The requests at which a cut can be worth more than one request earlier: something became hidable, or rewriting costs
    /// less than at the request before, as where the cache is cold.
    worth_a_look: Vec<usize>,
    /// What a token costs in all requests before each, one more entry than there are requests.
    carried_before: Vec<f64>,
}

impl<'a> CutSearch<'a> {
    fn new(hidable: &'a [HidableResult], costs: &'a CutCosts) -> CutSearch<'a> {
        let requests = costs.carried.len();
        let mut worth_a_look: Vec<usize> = hidable.iter().map(|result| result.from).collect();
        let pairs = costs.rewrite.iter().zip(costs.rewrite.iter().skip(1)).zip(1..);
        worth_a_look.extend(pairs.filter(|((before, now), _)| now < before).map(|(_, request)| request));
        worth_a_look.retain(|request| *request < requests);
        worth_a_look.sort_unstable();
        worth_a_look.dedup();
        let mut carried_before = vec![0.0];
        let mut sum = 0.0;
        for cost in &costs.carried {
            sum += cost;
            carried_before.push(sum);
        }
        CutSearch { hidable, costs, cuts: vec![None; requests], worth_a_look, carried_before }
    }

    /// Returns when each result is hidden; the number of requests where it never is.
    fn hidden_at(&self) -> Vec<usize> {
        let cuts = self.cuts.iter().enumerate().filter_map(|(request, cut)| Some((request, (*cut)?)));
        let cuts: Vec<(usize, BlockId)> = cuts.collect();
        let first = |result: &HidableResult| {
            let reached = cuts.iter().find(|(request, cut)| *request >= result.from && *cut <= result.block);
            reached.map(|(request, _)| *request)
        };
        self.hidable.iter().map(|result| first(result).unwrap_or(self.cuts.len())).collect()
    }

    /// Returns what a token costs from one request up to another.
    fn carried_between(&self, from: usize, to: usize) -> f64 {
        let before = |request: usize| self.carried_before.get(request).copied().unwrap_or_default();
        before(to) - before(from)
    }

    /// Returns the tokens from a place on that were sent before, untrimmed.
    fn tokens_from(&self, block: BlockId, request: usize) -> f64 {
        let before = |blocks: usize| self.costs.tokens_before.get(blocks).copied().unwrap_or_default();
        let carried = self.costs.blocks_before.get(request).copied().unwrap_or_default();
        (before(carried) - before(usize::try_from(block.0).unwrap_or(usize::MAX).min(carried))).max(0.0)
    }

    /// Finds the best cut at one request, given when results are hidden without it. One way from the end to the start.
    fn best_at(&self, request: usize, hidden: &[usize]) -> Option<(f64, BlockId)> {
        let rewrite = self.costs.rewrite.get(request).copied().unwrap_or_default();
        let (mut saved, mut gone) = (0.0, 0.0);
        let mut best: Option<(f64, BlockId)> = None;
        for (result, hidden) in
            self.hidable.iter().zip(hidden).rev().filter(|(result, _)| result.from <= request)
        {
            gone += result.saves;
            if *hidden > request {
                saved += result.saves * self.carried_between(request, *hidden);
            }
            let gain = saved - rewrite * (self.tokens_from(result.block, request) - gone);
            if gain > best.map_or(0.0, |(most, _)| most) {
                best = Some((gain, result.block));
            }
        }
        best
    }

    /// Adds the cut that saves the most; tells whether there is one.
    fn add_best(&mut self) -> bool {
        let hidden = self.hidden_at();
        let open = self.worth_a_look.iter().filter(|request| self.cuts.get(**request) == Some(&None));
        let found = open.filter_map(|&request| Some((request, self.best_at(request, &hidden)?)));
        let best = found.max_by(|one, other| one.1.0.total_cmp(&other.1.0));
        let Some((request, (_, block))) = best else { return false };
        self.cuts.get_mut(request).into_iter().for_each(|cut| *cut = Some(block));
        true
    }

    /// Takes one cut back, or puts it elsewhere, if that saves something; tells whether it did.
    fn improve(&mut self) -> bool {
        let now = self.total_gain();
        for request in 0..self.cuts.len() {
            let Some(was) = self.cuts.get_mut(request).and_then(Option::take) else { continue };
            let without = self.cuts.clone();
            self.add_best();
            if self.total_gain() > now * (1.0 + LEAST_GAIN) {
                return true;
            }
            self.cuts = without;
            self.cuts.get_mut(request).into_iter().for_each(|cut| *cut = Some(was));
        }
        false
    }

    fn total_gain(&self) -> f64 {
        let hidden = self.hidden_at();
        let saved = self.hidable.iter().zip(hidden);
        let saved: f64 =
            saved.map(|(result, at)| result.saves * self.carried_between(at, self.cuts.len())).sum();
        let cost = |(request, cut): (usize, &Option<BlockId>)| {
            let cut = (*cut)?;
            let gone = self.hidable.iter().filter(|result| result.block >= cut && result.from <= request);
            let stays = self.tokens_from(cut, request) - gone.map(|result| result.saves).sum::<f64>();
            Some(stays * self.costs.rewrite.get(request).copied().unwrap_or_default())
        };
        saved - self.cuts.iter().enumerate().filter_map(cost).sum::<f64>()
    }
}

/// A change of the plan that gains less than this share is rounding.
const LEAST_GAIN: f64 = 1e-9;

/// Returns the tokens of all blocks before each of them.
pub(super) fn tokens_before(blocks: &[Tokens]) -> Vec<f64> {
    let mut sum = Tokens::ZERO;
    let mut before = vec![0.0];
    for tokens in blocks {
        sum += *tokens;
        before.push(sum.to_float());
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(block: u32, from: usize, saves: f64) -> HidableResult {
        HidableResult { block: BlockId(block), from, saves }
    }

    /// Requests that each add one block of `tokens`; a read costs 1, rewriting 10 more; `cold` requests write everything.
    fn costs(requests: usize, tokens: u64, cold: &[usize]) -> CutCosts {
        CutCosts {
            carried: (0..requests).map(|request| if cold.contains(&request) { 11.0 } else { 1.0 }).collect(),
            rewrite: (0..requests).map(|request| if cold.contains(&request) { 0.0 } else { 10.0 }).collect(),
            blocks_before: (0..requests).collect(),
            tokens_before: tokens_before(&vec![Tokens(tokens); requests]),
        }
    }

    /// Tries every plan.
    fn best_gain(hidable: &[HidableResult], costs: &CutCosts) -> f64 {
        let places: Vec<Option<BlockId>> =
            std::iter::once(None).chain(hidable.iter().map(|result| Some(result.block))).collect();
        let requests = costs.carried.len();
        let plans = places.len().pow(u32::try_from(requests).unwrap());
        let plan = |mut number: usize| -> CutPlan {
            let mut digits = Vec::new();
            for _ in 0..requests {
                digits.push(places[number % places.len()]);
                number /= places.len();
            }
            digits
        };
        (0..plans).map(|number| plan_gain(hidable, costs, &plan(number))).fold(0.0, f64::max)
    }

    #[test]
    fn a_result_is_hidden_when_the_rest_of_the_session_pays_for_it() {
        // From request 2 on, 90 tokens are not read 8 times: 720.
        let costs = costs(10, 100, &[]);
        let plan = find_cuts(&[result(0, 2, 90.0)], &costs);
        assert_eq!(plan.iter().position(Option::is_some), None, "10 x 110 to rewrite is more than 8 x 90");
        let plan = find_cuts(&[result(1, 2, 90.0)], &costs);
        assert_eq!(plan[2], Some(BlockId(1)), "10 x 10 to rewrite is less than 8 x 90: {plan:?}");
        assert_eq!(plan.iter().flatten().count(), 1);
    }

    #[test]
    fn a_cold_cache_is_waited_for_where_that_saves_more() {
        let costs = costs(10, 100, &[4]);
        let plan = find_cuts(&[result(0, 2, 90.0)], &costs);
        assert_eq!(plan[4], Some(BlockId(0)), "{plan:?}");
        assert_eq!(plan.iter().flatten().count(), 1);
    }

    #[test]
    fn the_search_comes_near_the_best_of_all_plans() {
        let mut state = 7_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut found, mut best, mut worst) = (0.0, 0.0, f64::INFINITY);
        for _ in 0..300 {
            let requests = 6;
            let mut costs = costs(requests, 100, &[usize::try_from(draw(12)).unwrap()]);
            costs
                .rewrite
                .iter_mut()
                .filter(|cost| **cost > 0.0)
                .for_each(|cost| *cost = [0.5, 2.0, 5.0][usize::try_from(draw(3)).unwrap()]);
            let hidable: Vec<HidableResult> = (0..3)
                .map(|block| {
                    let from = usize::try_from(draw(5)).unwrap().max(block + 1);
                    result(u32::try_from(block).unwrap(), from, f64::from(u32::try_from(draw(95)).unwrap()))
                })
                .collect();
            let ours = plan_gain(&hidable, &costs, &find_cuts(&hidable, &costs));
            let all = best_gain(&hidable, &costs);
            assert!(ours <= all + 1e-9 && ours >= 0.0);
            (found, best) = (found + ours, best + all);
            worst = if all > 0.0 { f64::min(worst, ours / all) } else { worst };
        }
        assert!(found / best > 0.995 && worst > 0.75, "{} {worst}", found / best);
    }
}
