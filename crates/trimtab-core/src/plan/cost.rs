//! What a plan costs the provider's cache. Takes the verdicts and what was sent before; gives what this request costs, what
//! it would have cost untouched, and the first block that is sent otherwise than before. Never decides anything.

use super::work::Work;
use crate::{
    history::{BlockId, Blocks},
    json::narrow,
    memory::InputCosts,
    units::Tokens,
    verdict::Verdict,
};

/// The first block that is sent otherwise than before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheBreak {
    /// The block.
    pub block: BlockId,
    /// How many tokens after it the provider has to read again.
    pub rewritten: Tokens,
    /// What that costs beyond reading them from the cache, in tokens at the plain input price; nothing when it was cold.
    pub cost: f64,
}

/// Charges a request: what a live cache knows is read, the rest is written.
pub(super) fn request_cost(work: &Work<'_>) -> InputCosts {
    let context = work.context;
    let prices = context.cache.prices;
    let known = if context.cache.cold { prices.write } else { prices.read };
    let charge = |total: Tokens, cached: Tokens| {
        known * cached.to_float() + prices.write * (total - cached).to_float()
    };
    // What does not stand in the request comes before all that does.
    let unseen = known * context.cache.unseen.to_float();
    let sent_before = work.request.history.ids().take_while(|id| context.was_sent(*id));
    let mut raw = Tokens::ZERO;
    let mut ours = Tokens::ZERO;
    // What differs somewhere is found up to where an earlier request ended: there a cache has an entry.
    let mut up_to_end = Tokens::ZERO;
    let mut same = true;
    for id in sent_before {
        raw += work.tokens(id);
        same &= is_same(work, id);
        if same {
            ours += work.tokens_now(id);
        }
        if same && context.is_end(id, ours) {
            up_to_end = ours;
        }
    }
    let ours = if same { ours } else { up_to_end };
    InputCosts {
        ours: unseen + charge(work.draft.total, ours),
        raw: unseen + charge(work.request.counts.total(), raw),
    }
}

/// Finds the first block that is sent otherwise than before, and what that costs.
pub(super) fn first_cache_break(work: &Work<'_>) -> Option<CacheBreak> {
    let (context, block) = (work.context, first_break(work)?);
    let blocks = block.0..narrow(work.draft.decisions.len());
    let rewritten: Tokens = blocks.map(|number| work.tokens_now(BlockId(number))).sum();
    let prices = context.cache.prices;
    let cost = if context.cache.cold { 0.0 } else { (prices.write - prices.read) * rewritten.to_float() };
    Some(CacheBreak { block, rewritten, cost })
}

/// Returns the first block that is sent otherwise than before; without a memory, otherwise than it came.
pub(super) fn first_change(work: &Work<'_>) -> Option<BlockId> {
    if !work.context.before.memory.is_empty() {
        return first_break(work);
    }
    let changed = work.draft.decisions.iter().find(|decision| decision.verdict != Verdict::Keep);
    changed.map(|decision| decision.block)
}

fn first_break(work: &Work<'_>) -> Option<BlockId> {
    let was_sent = |id: &BlockId| work.context.was_sent(*id);
    work.request.history.ids().take_while(was_sent).find(|id| !is_same(work, *id))
}

/// Returns, for each block, the tokens that are cached again when it is sent otherwise: what was sent after the end of an
/// earlier request that precedes it, itself included.
pub(super) fn tokens_anew(work: &Work<'_>) -> Blocks<Tokens> {
    let blocks = work.request.history.ids();
    let now = |id: BlockId| if work.context.was_sent(id) { work.tokens_now(id) } else { Tokens::ZERO };
    let all: Tokens = blocks.clone().map(now).sum();
    let mut left = all;
    let mut from_end = left;
    let anew = blocks.map(|id| {
        let anew = from_end;
        left = left - now(id);
        if work.context.is_end(id, all - left) {
            from_end = left;
        }
        anew
    });
    anew.collect()
}

/// Tells whether a block is sent as it was before.
pub(super) fn is_same(work: &Work<'_>, id: BlockId) -> bool {
    work.context.sent_before(id).is_some_and(|before| work.verdict_of(id).sends_same(before.verdict()))
}
