//! What a plan is made from: [`RequestView`], the request with all that is known about it, and [`PlanContext`], everything else that
//! decides: the policy, what was sent before, what the provider's cache holds. Made once for a request; nothing here changes while
//! a plan is made, however many drafts there are of it.

use super::{PlanIndex, Units, cut::CachePrices, wishes::BlockWishes};
use crate::{
    count::{Counter, Counts},
    facts::Facts,
    history::{BlockId, Blocks, History, row_of},
    identity::ChainHash,
    memory::Memory,
    policy::{Folding, Markers, Policy, PolicyStep, StepMoment},
    render::RecallHint,
    units::{Millis, Tokens},
    verdict::SentVerdict,
};

/// A request with everything that is known about it.
#[derive(Clone, Copy)]
pub(crate) struct RequestView<'a> {
    pub(crate) history: &'a History,
    pub(crate) facts: &'a Facts,
    pub(crate) counts: &'a Counts,
    pub(crate) counter: Counter,
    pub(crate) index: &'a PlanIndex,
    pub(crate) units: &'a Units,
}

/// What was sent of the conversation before.
pub(crate) struct SentBefore<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) chain: &'a [ChainHash],
    /// What each block was sent as.
    pub(crate) sent: Blocks<Option<&'a SentVerdict>>,
    /// What blocks were sent as before the client rewrote what precedes them; empty where it did not.
    pub(crate) elsewhere: Vec<Option<&'a SentVerdict>>,
    /// Where earlier requests seem to have ended, for a conversation that memory knows nothing of.
    pub(crate) assumed_ends: Vec<(ChainHash, Millis)>,
}

/// What is known of the provider's cache, and what it asks of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheState {
    /// Whether it holds nothing of the conversation any more.
    pub(crate) cold: bool,
    /// The first block that the client changed or added before what it had sent already: no cache holds what follows.
    pub(crate) cold_from: Option<BlockId>,
    /// Whether nothing was sent for an hour: who comes back later needs less of what was.
    pub(crate) long_pause: bool,
    /// Whether nothing is known but that the model has answered before: then the cache may hold all of it.
    pub(crate) first_look: bool,
    /// What is paid with every request and does not stand in it.
    pub(crate) unseen: Tokens,
    /// Entries of the cache that were set after this are surely alive: providers do not say that one which is only passed is used.
    pub(crate) alive_after: Millis,
    pub(crate) prices: CachePrices,
    /// The fewest tokens of a request that the cache takes.
    pub(crate) minimum: Tokens,
    /// Whether the model has bound reasoning to everything before it, so that an edit makes all later reasoning invalid.
    pub(crate) binds_reasoning: bool,
}

/// What a policy decides in, beside the request.
pub(crate) struct PlanContext<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) budget: Option<Tokens>,
    pub(crate) before: SentBefore<'a>,
    pub(crate) cache: CacheState,
    /// Whether a cache marker may be added where it saves a rewriting.
    pub(crate) markers: Markers,
    /// What becomes of steps that fold.
    pub(crate) folding: Folding,
    /// The blocks that somebody asked for by handle.
    pub(crate) wished: BlockWishes,
    /// How notes say that what is hidden comes back.
    pub(crate) recall: &'a RecallHint,
}

impl<'a> SentBefore<'a> {
    /// Returns what a block was sent as before the client rewrote what precedes it.
    pub(super) fn sent_elsewhere(&self, id: BlockId) -> Option<&'a SentVerdict> {
        if self.elsewhere.is_empty() { None } else { *row_of(&self.elsewhere, id) }
    }
}

impl<'a> PlanContext<'a> {
    /// Returns what a block's ages are multiplied by.
    pub(super) fn age_factor(&self, id: BlockId) -> f64 {
        let is_rewritten = self.cache.cold_from.is_some_and(|first| id >= first);
        if self.cache.cold || is_rewritten { self.policy.cold_ages } else { 1.0 }
    }

    /// Returns what a block was sent as before.
    pub(super) fn sent_before(&self, id: BlockId) -> Option<&'a SentVerdict> {
        self.before.sent[id]
    }

    /// Tells whether a block was sent before, hidden or not.
    pub(super) fn was_sent(&self, id: BlockId) -> bool {
        self.sent_before(id).is_some()
    }

    /// Tells whether a step waits until what it hides pays for itself. Where the cache is cold, or nothing is known of it, a step
    /// that is to be taken at every request is taken at once.
    pub(super) fn waits_to_pay(&self, step: &PolicyStep) -> bool {
        let waits = self.policy.waits_until_it_pays(step);
        waits && (step.when == StepMoment::Pays || !(self.cache.first_look || self.cache.cold))
    }

    /// Tells whether an earlier request ended with a block, and was large enough for the cache to take it.
    pub(super) fn is_end(&self, id: BlockId, up_to_here: Tokens) -> bool {
        let is_end = || self.before.memory.is_end(*row_of(self.before.chain, id), self.cache.alive_after);
        up_to_here + self.cache.unseen >= self.cache.minimum && is_end()
    }
}
