//! What a plan costs the provider's cache. Takes the verdicts and what was sent before; gives what this request costs, what
//! it would have cost untouched, and the first block that is sent otherwise than before. Never decides anything.

use super::{run::Situation, work::Work};
use crate::{
    history::BlockId,
    identity::ChainHash,
    json::{narrow, widen},
    memory::Cost,
    units::Tokens,
    verdict::{SentVerdict, Verdict},
};

/// The first block that is sent otherwise than before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Broken {
    /// The block.
    pub block: BlockId,
    /// How many tokens behind it the provider has to read anew.
    pub rewritten: Tokens,
    /// What that costs beyond reading them from the cache, in tokens at the plain input price; nothing when it was cold.
    pub cost: f64,
}

/// Charges a request: what a live cache knows is read, the rest is written.
pub(super) fn cost(work: &Work<'_>, situation: &Situation<'_>) -> Cost {
    let prices = situation.prices;
    let known = if situation.cold { prices.write } else { prices.read };
    let charge =
        |total: Tokens, cached: Tokens| known * cached.float() + prices.write * (total - cached).float();
    // What does not stand in the request comes before all that does.
    let unseen = known * situation.unseen.float();
    let sent_before = work.history.ids().take_while(|id| sent(situation, *id).is_some());
    let mut raw = Tokens::ZERO;
    let mut ours = Tokens::ZERO;
    // What differs somewhere is found up to where an earlier request ended: there a cache has an entry.
    let mut up_to_end = Tokens::ZERO;
    let mut same = true;
    for id in sent_before {
        raw += work.tokens(id);
        same &= is_same(work, situation, id);
        if same {
            ours += work.tokens_now(id);
        }
        if same && is_end(situation, id, ours) {
            up_to_end = ours;
        }
    }
    let ours = if same { ours } else { up_to_end };
    Cost { ours: unseen + charge(work.total, ours), raw: unseen + charge(work.counts.total(), raw) }
}

/// Finds the first block that is sent otherwise than before, and what that costs.
pub(super) fn broken(work: &Work<'_>, situation: &Situation<'_>) -> Option<Broken> {
    let block = first_break(work, situation)?;
    let blocks = block.0..narrow(work.decisions.len());
    let rewritten: Tokens = blocks.map(|number| work.tokens_now(BlockId(number))).sum();
    let prices = situation.prices;
    let cost = if situation.cold { 0.0 } else { (prices.write - prices.read) * rewritten.float() };
    Some(Broken { block, rewritten, cost })
}

/// Returns the first block that is sent otherwise than before; without a memory, otherwise than it came.
pub(super) fn first_change(work: &Work<'_>, situation: &Situation<'_>) -> Option<BlockId> {
    if !situation.memory.is_empty() {
        return first_break(work, situation);
    }
    let changed = work.decisions.iter().find(|decision| decision.verdict != Verdict::Keep);
    changed.map(|decision| decision.block)
}

fn first_break(work: &Work<'_>, situation: &Situation<'_>) -> Option<BlockId> {
    let blocks = work.history.ids();
    blocks.take_while(|id| sent(situation, *id).is_some()).find(|id| !is_same(work, situation, *id))
}

/// Tells whether an earlier request ended with a block, and was large enough for the cache to take it.
fn is_end(situation: &Situation<'_>, id: BlockId, up_to_here: Tokens) -> bool {
    let ended = |hash: &ChainHash| situation.memory.is_end(*hash, situation.alive_after);
    up_to_here + situation.unseen >= situation.minimum && situation.chain.get(widen(id.0)).is_some_and(ended)
}

/// Returns, for each block, the tokens that are written anew when it is sent otherwise: what was sent behind the end of an
/// earlier request that stands before it, itself included.
pub(super) fn tokens_anew(work: &Work<'_>, situation: &Situation<'_>) -> Vec<Tokens> {
    let blocks = narrow(work.decisions.len());
    let now = |id: BlockId| sent(situation, id).map_or(Tokens::ZERO, |_| work.tokens_now(id));
    let all: Tokens = (0..blocks).map(|number| now(BlockId(number))).sum();
    let mut left = all;
    let mut anew = Vec::with_capacity(work.decisions.len());
    let mut from_end = left;
    for id in (0..blocks).map(BlockId) {
        anew.push(from_end);
        left = left - now(id);
        if is_end(situation, id, all - left) {
            from_end = left;
        }
    }
    anew
}

pub(super) fn sent<'a>(situation: &Situation<'a>, id: BlockId) -> Option<&'a SentVerdict> {
    situation.sent.get(widen(id.0)).copied().flatten()
}

/// Tells whether a block is sent as it was before.
pub(super) fn is_same(work: &Work<'_>, situation: &Situation<'_>, id: BlockId) -> bool {
    sent(situation, id).is_some_and(|before| work.verdict(id).sends_same(before.verdict()))
}
