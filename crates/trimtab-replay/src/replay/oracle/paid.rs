//! Plans that know what will be needed and pay for their edits: [`paid_without_budget`], [`paid_within_budget`]. Takes a case
//! with a model's prices; gives the views of the plan whose bill is the smallest. The prices are those of `bill`, so no
//! plan costs more than doing nothing where that is one of them.

use trimtab_core::{BlockId, Tokens, json::widen, session::CacheLifetime};

use super::{
    HIDDEN, ResultNeed,
    cuts::{CutCosts, CutPlan, HidableResult, find_cuts, tokens_before},
    room::{RoomPlan, RoomViews, views_by_plan},
};
use crate::replay::{
    Views,
    bill::{bill_segment, cache_lifetime, refetch_dollars},
    peers::{PeerCase, walk::PeerWalk},
};

/// Down to which share of the budget a cut goes, and which share of the request it leaves alone where it can.
const DEPTHS: [f64; 4] = [1.0, 0.93, 0.8, 0.6];
const STARTS: [f64; 3] = [0.0, 0.5, 0.8];

/// What fetching again what was needed counts beside the bill, where plans are compared: recall comes first.
const LOSS_FACTOR: f64 = 10.0;

/// Hides what nobody needs any more where that pays.
pub(super) fn paid_without_budget(case: &PeerCase<'_>) -> Views {
    let room = Tokens(u64::MAX / 4);
    let plans = cut_plans(case);
    let views = plans
        .iter()
        .map(|cuts| views_by_plan(case, RoomPlan { room, depth: 1.0, start: 0.0, cuts: Some(cuts) }));
    cheapest(case, views)
}

/// Keeps the room as well.
pub(super) fn paid_within_budget(case: &PeerCase<'_>) -> Views {
    let cuts = cut_plans(case).pop().unwrap_or_default();
    let depths = DEPTHS.iter().flat_map(|depth| STARTS.iter().map(move |start| (*depth, *start)));
    let views = depths.map(|(depth, start)| {
        views_by_plan(case, RoomPlan { room: case.room, depth, start, cuts: Some(&cuts) })
    });
    cheapest(case, views)
}

/// Returns the views whose bill, with the price of what they lost, is the smallest; the first of equals.
fn cheapest(case: &PeerCase<'_>, views: impl Iterator<Item = RoomViews>) -> Views {
    let price = |plan: &RoomViews| {
        let bill = bill_segment(case.track, &plan.views, case.model);
        let at = |request: usize| bill.charges.get(request).map_or(Tokens::ZERO, |charge| charge.tokens);
        let lost = plan.lost.iter();
        let lost =
            lost.map(|(block, request)| refetch_dollars(case.model, at(*request), case.track.tokens(*block)));
        bill.total_dollars() + LOSS_FACTOR * lost.sum::<f64>()
    };
    let priced = views.map(|plan| (price(&plan), plan.views));
    let best = priced.reduce(|best, next| if next.0 < best.0 { next } else { best });
    best.map(|(_, views)| views).unwrap_or_default()
}

/// Returns the plans to compare: hide nothing, hide where the cache is cold, and what search finds.
fn cut_plans(case: &PeerCase<'_>) -> Vec<CutPlan> {
    let track = case.track;
    let untouched = Views::with_client_markers(vec![Vec::new(); track.requests.len()]);
    let raw = bill_segment(track, &untouched, case.model).charges;
    let carried = |request: usize| request.checked_sub(1).and_then(|before| raw.get(before));
    let is_cold = |request: usize| {
        let read = raw.get(request).map_or(0, |charge| charge.read.0);
        carried(request).is_some_and(|before| read.saturating_mul(2) < before.tokens.0)
    };
    let prices = &case.model.prices;
    let write = match cache_lifetime(track, case.model) {
        CacheLifetime::Usual => prices.cache_write,
        CacheLifetime::Hour => prices.cache_write_1h.unwrap_or(prices.cache_write),
    };
    let requests = 0..track.requests.len();
    let costs = CutCosts {
        carried: requests.clone().map(|at| if is_cold(at) { write } else { prices.cache_read }).collect(),
        rewrite: requests
            .clone()
            .map(|at| if is_cold(at) { 0.0 } else { write - prices.cache_read })
            .collect(),
        blocks_before: requests
            .clone()
            .map(|at| at.checked_sub(1).and_then(|before| track.requests.get(before)).map_or(0, |r| r.blocks))
            .collect(),
        tokens_before: tokens_before(track.counts.blocks()),
    };
    let nothing = vec![None; track.requests.len()];
    let cold = requests.map(|request| is_cold(request).then_some(BlockId(0))).collect();
    vec![nothing, cold, find_cuts(&hidable_results(case), &costs)]
}

/// Returns the results in order, with the request from which on nobody needs each.
fn hidable_results(case: &PeerCase<'_>) -> Vec<HidableResult> {
    let mut walk = PeerWalk::new(case.track);
    let mut last_use = vec![0; case.track.history.blocks().len()];
    for ResultNeed { provider, request, .. } in case.needs {
        if let Some(last) = last_use.get_mut(widen(provider.0)) {
            *last = (*request).max(*last);
        }
    }
    let mut all = Vec::new();
    while let Some(request) = walk.next() {
        for block in walk.new_results() {
            let hidden = walk.as_text(block, HIDDEN);
            let saves = case.track.tokens(block) - walk.tokens_as(block, &hidden);
            if saves > Tokens::ZERO {
                let last = last_use.get(widen(block.0)).copied().unwrap_or_default();
                all.push(HidableResult { block, from: request.max(last) + 1, saves: saves.to_float() });
            }
        }
    }
    all
}
