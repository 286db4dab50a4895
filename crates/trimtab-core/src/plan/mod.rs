//! One verdict per block, each with its reason. Takes what a policy wants; gives a [`Plan`] that the protocol allows, or
//! says what it would break. Never edits history, never calls a model, never looks at the clock.

mod candidates;
mod close;
mod context;
mod contradictions;
mod cost;
mod cut;
mod draft;
mod edits;
mod fold;
mod index;
mod mend;
mod moment_sums;
#[cfg(test)]
mod pass_case;
mod passes;
mod paying_cut;
mod pin;
mod pressure;
mod repeat;
mod run;
mod seen_lines;
mod series;
mod steps;
mod text_cache;
mod unbind;
mod units;
mod visible_names;
mod wishes;
mod work;

use std::sync::Arc;

pub(crate) use context::{CacheState, PlanContext, RequestView, SentBefore};
pub use cost::CacheBreak;
pub(crate) use cut::CachePrices;
pub(crate) use edits::{arguments_part, edits_as_sent, edits_of, plan_edits, replace_content};
pub(crate) use fold::{FoldNeed, sent_fold};
pub(crate) use index::PlanIndex;
pub use moment_sums::{Moment, MomentSum};
pub use passes::{PassName, PassSum};
pub use pressure::BlockFeatures;
pub(crate) use run::plan;
pub(crate) use text_cache::TextCache;
pub(crate) use units::{MessageUnit, UnitKind, Units, group_units, units_by_turn};
pub(crate) use wishes::{BlockWishes, ShowingCost};
use work::Work;

use crate::{
    count::Counts,
    history::{BlockId, BlockKind, Blocks, History, PartKind, Role, row_of},
    identity::{BlockHash, ChainHash},
    json::scan,
    memory::{Handle, InputCosts, hidden_anew},
    policy::Markers,
    summary::FoldRequest,
    units::{Millis, Tokens},
    verdict::{Decision, Verdict},
};

/// What cannot be hidden, where the request does not fit however much is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFloor {
    /// The least that the request can count.
    pub tokens: Tokens,
    /// What makes it, by class, most first.
    pub made_of: Vec<(&'static str, Tokens)>,
}

/// What becomes of every block of one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    decisions: Vec<Decision>,
    /// The identity of every block.
    pub(crate) chain: Arc<[ChainHash]>,
    /// The blocks that are hidden otherwise than before, by themselves.
    pub(crate) hidden: Vec<(u32, BlockHash)>,
    /// Tokens of each block, unchanged.
    blocks: Blocks<Tokens>,
    /// Tokens of each block as it is sent.
    sent_tokens: Blocks<Tokens>,
    before: Tokens,
    after: Tokens,
    /// What came of the steps that fold.
    pub(crate) fold: FoldNeed,
    pub(crate) floor: Option<PlanFloor>,
    pub(crate) cost: InputCosts,
    pub(crate) broken: Option<CacheBreak>,
    /// When each block is hidden.
    moments: Blocks<Option<Moment>>,
    sums: Vec<MomentSum>,
    passes: Vec<PassSum>,
    pub(crate) marker: Option<BlockId>,
    /// Whether steps that wait until it pays were left out, because nothing is known of the cache.
    leaves_cache_alone: bool,
    /// Where earlier requests seem to have ended, for a conversation that memory knows nothing of.
    pub(crate) ends: Vec<(ChainHash, Millis)>,
    shown_again: Vec<BlockId>,
    pinned: Vec<BlockId>,
    /// Undos that wait no longer once this is sent.
    pub(crate) undone: Vec<Handle>,
}

/// A plan that the protocol forbids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A block that must not be touched would be.
    #[error("block {0}: a {1} must not be changed")]
    Untouchable(u32, &'static str),
    /// A part of an exchange would go without the rest.
    #[error("block {0}: it cannot go without block {1}, which belongs to it")]
    Torn(u32, u32),
    /// A shortened block would be larger than before.
    #[error("block {0}: {1} tokens instead of {2} is no shortening")]
    Larger(u32, Tokens, Tokens),
    /// The arguments of a call would be no JSON of the same kind.
    #[error("block {0}: its shortened arguments are not what they were: JSON of the same kind")]
    Shape(u32),
}

impl Plan {
    /// Makes a plan of a draft. Refuses what would break the protocol.
    fn new(work: Work<'_>, floor: Option<PlanFloor>) -> Result<Plan, PlanError> {
        let (request, context) = (work.request, work.context);
        check_draft(&work)?;
        let broken = cost::first_cache_break(&work);
        let moments = moment_sums::hiding_moments(&work);
        let sums = moment_sums::sum_by_moment(&work, &moments, broken);
        let cost = cost::request_cost(&work);
        let shown_again = context.wished.shown_again(&work);
        // Where nothing may change, a wish waits.
        let undone = if unbind::is_bound_loop(&work) { &[] } else { context.wished.finished_undos() };
        let before = &context.before;
        let passes = passes::pass_sums(&work);
        let draft = work.draft;
        let decisions = draft.decisions.into_vec();
        let in_blocks: Tokens = draft.sent_tokens.iter().copied().sum();
        Ok(Plan {
            chain: before.chain.into(),
            hidden: hidden_anew(request.history, &decisions, before.memory, before.sent.as_slice()),
            before: request.counts.total(),
            after: in_blocks + fold::count_frame(request.history, request.counts, &decisions),
            fold: draft.fold,
            floor,
            cost,
            marker: broken.and_then(|broken| marker_place(context, broken.block)),
            broken,
            moments,
            sums,
            passes,
            leaves_cache_alone: draft.has_paid && context.cache.first_look && !context.cache.cold,
            ends: before.assumed_ends.clone(),
            shown_again,
            pinned: context.wished.pinned_blocks().collect(),
            undone: undone.to_vec(),
            decisions,
            blocks: request.counts.blocks().iter().copied().collect(),
            sent_tokens: draft.sent_tokens,
        })
    }

    /// Returns the decisions, one per block.
    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    /// Returns the identity of every block.
    pub fn chain(&self) -> &[ChainHash] {
        &self.chain
    }

    /// Returns the tokens of the unchanged request.
    pub fn before(&self) -> Tokens {
        self.before
    }

    /// Returns the tokens of the request as it is sent.
    pub fn after(&self) -> Tokens {
        self.after
    }

    /// Returns the tokens of a block, unchanged and as it is sent.
    pub fn tokens_of(&self, block: BlockId) -> (Tokens, Tokens) {
        (self.blocks[block], self.sent_tokens[block])
    }

    /// Returns how many tokens the verdict about a block saves.
    pub fn tokens_saved(&self, block: BlockId) -> Tokens {
        let (before, after) = self.tokens_of(block);
        before - after
    }

    /// Tells whether the policy folds what is old.
    pub fn fold_wanted(&self) -> bool {
        self.fold.now
    }

    /// Returns the summary that the policy asks for, now or for later.
    pub fn fold_request(&self) -> Option<&FoldRequest> {
        self.fold.wanted.as_ref()
    }

    /// Returns the message that stands for what is folded, and the last block that it stands for.
    pub fn fold_message(&self) -> Option<(BlockId, &str)> {
        fold::find_fold(&self.decisions).map(|fold| (fold.block, &**fold.text))
    }

    /// Returns the least that a request could count, where folding cannot help; said once in a session.
    pub fn folding_cannot_help(&self) -> Option<Tokens> {
        self.fold.cannot_help
    }

    /// Returns what cannot be hidden, where that is more than the budget.
    pub fn floor(&self) -> Option<&PlanFloor> {
        self.floor.as_ref()
    }

    /// Returns what the request costs as input, as sent and unchanged.
    pub fn cost(&self) -> InputCosts {
        self.cost
    }

    /// Returns the first block that is sent otherwise than before, with what that costs.
    pub fn cache_break(&self) -> Option<CacheBreak> {
        self.broken
    }

    /// Returns when a block is hidden, which says what that costs; nothing for what is kept.
    pub fn moment_of(&self, block: BlockId) -> Option<Moment> {
        self.moments[block]
    }

    /// Returns what is saved and paid, by the moment at which blocks are hidden.
    pub fn moment_sums(&self) -> &[MomentSum] {
        &self.sums
    }

    /// Returns what each pass hid, in the order of the passes.
    pub fn passes(&self) -> &[PassSum] {
        &self.passes
    }

    /// Returns the block after which a cache marker is added.
    pub fn marker(&self) -> Option<BlockId> {
        self.marker
    }

    /// Tells whether the policy would hide what the model has answered if the cache were cold or known: where nothing is known of a
    /// conversation, all of it may be cached.
    pub fn leaves_cache_alone(&self) -> bool {
        self.leaves_cache_alone
    }

    /// Returns the blocks that were hidden before and are sent whole again, because somebody asked for that.
    pub fn shown_again(&self) -> &[BlockId] {
        &self.shown_again
    }

    /// Returns the blocks that are pinned by handle.
    pub fn pinned_blocks(&self) -> &[BlockId] {
        &self.pinned
    }

    /// Tells whether everything is kept.
    pub fn keeps_all(&self) -> bool {
        self.decisions.iter().all(|decision| decision.verdict == Verdict::Keep)
    }
}

/// Tells whether the protocol lets a block's content be another text.
pub(crate) fn may_shorten(history: &History, id: BlockId) -> bool {
    let Some(block) = history.block(id) else { return false };
    let role = history.entry_of(block).map_or(Role::Other, |entry| entry.role);
    let text = history.parts_of(block).iter().any(|part| part.kind == PartKind::Text);
    match block.kind {
        BlockKind::Result => !block.by_server && !block.body.is_empty() && !block.sealed,
        BlockKind::Text => matches!(role, Role::User | Role::Assistant) && text && !block.sealed,
        BlockKind::Media => role == Role::User,
        // A call that waits for its answer is left unchanged; so is one whose arguments nobody understands.
        BlockKind::Call => {
            !block.by_server
                && !block.sealed
                && block.partner.is_some()
                && arguments_part(history, block).is_some()
        }
        BlockKind::Definition | BlockKind::Reasoning | BlockKind::Unknown => false,
    }
}

/// Refuses a draft that would break the protocol.
fn check_draft(work: &Work<'_>) -> Result<(), PlanError> {
    let RequestView { history, counts, units, .. } = work.request;
    let decisions = work.draft.decisions.as_slice();
    for decision in decisions {
        check_block(history, counts, decision, work.draft.sent_tokens[decision.block])?;
    }
    fold::check_fold(history, decisions)?;
    let check_unit = |unit: &MessageUnit| {
        let number = unit.blocks.first().and_then(|id| units.of_block(*id)).map(|(number, _)| number);
        let is_kept = number.is_some_and(|number| work.draft.kept_units.contains(&number));
        check_unit(unit, unit.may_go && !is_kept, decisions)
    };
    units.all_units().iter().filter(|unit| unit.kind == UnitKind::Head).try_for_each(check_unit)?;
    for turn in units_by_turn(units.all_units()) {
        if !is_whole_turn_gone(&turn, decisions) {
            turn.iter().try_for_each(|unit| check_unit(unit))?;
        }
    }
    Ok(())
}

/// Says after which block a marker lets the provider find the part of the request that is as it was: the end of an earlier
/// request before the first block that differs. Without it a provider that looks only a few blocks back finds nothing.
fn marker_place(context: &PlanContext<'_>, first_changed: BlockId) -> Option<BlockId> {
    if context.cache.cold || context.markers == Markers::AsTheyCame {
        return None;
    }
    let (memory, chain) = (context.before.memory, context.before.chain);
    // An end that nobody counts on any more may be in the cache all the same, and a marker costs nothing.
    let is_end = |id: &BlockId| memory.is_end(*row_of(chain, *id), Millis(i64::MIN));
    context.before.sent.ids().take_while(|id| *id < first_changed).filter(is_end).last()
}

fn check_block(
    history: &History,
    counts: &Counts,
    decision: &Decision,
    tokens: Tokens,
) -> Result<(), PlanError> {
    let Some(text) = decision.verdict.own_text() else { return Ok(()) };
    let number = decision.block.0;
    let kind = history[decision.block].kind;
    if !may_shorten(history, decision.block) {
        return Err(PlanError::Untouchable(number, kind.name()));
    }
    if let Some(part) = arguments_part(history, &history[decision.block])
        && kind == BlockKind::Call
        && !is_same_kind(&history.part_text(part), text, part.kind)
    {
        return Err(PlanError::Shape(number));
    }
    let before = counts[decision.block];
    if tokens > before {
        return Err(PlanError::Larger(number, tokens, before));
    }
    Ok(())
}

/// Tells whether shortened arguments are JSON of the kind they were before; a plain text is always one.
fn is_same_kind(before: &str, after: &str, kind: PartKind) -> bool {
    let first = |text: &str| text.trim_start().bytes().next();
    kind == PartKind::Text || (first(before) == first(after) && scan(after.as_bytes()).is_ok())
}

/// Tells whether a turn that may go as a whole did.
fn is_whole_turn_gone(turn: &[&MessageUnit], decisions: &[Decision]) -> bool {
    let dropped = |id: &BlockId| row_of(decisions, *id).verdict.is_gone();
    turn.iter().all(|unit| unit.turn_may_go && unit.blocks.iter().all(dropped))
}

/// A unit goes as a whole or not at all.
fn check_unit(unit: &MessageUnit, may_go: bool, decisions: &[Decision]) -> Result<(), PlanError> {
    // Some reasoning goes alone, and what is folded is checked by itself.
    let verdict = |id: &BlockId| &row_of(decisions, *id).verdict;
    let alone = |verdict: &Verdict| verdict.is_fold() || verdict.goes_alone();
    let dropped = |id: &BlockId| matches!(verdict(id), Verdict::Drop { .. }) && !alone(verdict(id));
    let Some(gone) = unit.blocks.iter().find(|id| dropped(id)) else { return Ok(()) };
    if !may_go {
        return Err(PlanError::Untouchable(gone.0, "block that the protocol needs"));
    }
    match unit.blocks.iter().find(|id| !dropped(id) && !alone(verdict(id))) {
        Some(kept) => Err(PlanError::Torn(gone.0, kept.0)),
        None => Ok(()),
    }
}
