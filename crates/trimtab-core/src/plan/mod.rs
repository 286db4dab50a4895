//! One verdict per block, each with its reason. Takes what a policy wants; gives a [`Plan`] that the protocol allows, or
//! says what it would break. Never edits history, never calls a model, never looks at the clock.

mod candidates;
mod closing;
mod cost;
mod disagree;
mod edits;
mod fold;
mod index;
mod made;
mod pays;
mod pressure;
mod run;
mod seen;
mod series;
mod sums;
mod units;
mod visible;
mod wishes;
mod work;

use std::sync::Arc;

pub use cost::Broken;
pub(crate) use edits::{arguments, edits, edits_as_sent, edits_of, is_out, shortened};
pub(crate) use fold::{FoldNeed, sent_fold};
pub(crate) use index::Index;
pub(crate) use made::Made;
pub(crate) use pays::CachePrices;
pub(crate) use pressure::{NeedMoment, feature_line};
pub(crate) use run::{Situation, plan};
pub use sums::{Moment, Sum};
pub(crate) use units::{Unit, UnitKind, turns, unit_of_block, units};
pub(crate) use wishes::{Showing, Wished};
pub(crate) use work::Sight;

use crate::{
    count::Counts,
    history::{BlockId, BlockKind, History, PartKind, Role},
    identity::{BlockHash, ChainHash},
    json::{scan, widen},
    memory::{Cost, Handle},
    summary::FoldRequest,
    units::{Millis, Tokens},
    verdict::{Decision, Reason, Verdict},
};

/// What cannot be hidden, where the request does not fit however much is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Floor {
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
    /// Tokens of each block as it came.
    blocks: Vec<Tokens>,
    before: Tokens,
    after: Tokens,
    /// What came of the steps that fold.
    pub(crate) fold: FoldNeed,
    pub(crate) floor: Option<Floor>,
    pub(crate) cost: Cost,
    pub(crate) broken: Option<Broken>,
    /// When each block is hidden.
    moments: Vec<Option<Moment>>,
    sums: Vec<Sum>,
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
pub enum PlanError {
    /// A block that must not be touched would be.
    #[error("block {0}: a {1} must stay as it is")]
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
    /// Makes a plan of verdicts, one per block. Refuses what would break the protocol.
    pub(crate) fn new(
        history: &History,
        counts: &Counts,
        units: &[Unit],
        decisions: Vec<Decision>,
    ) -> Result<Plan, PlanError> {
        for decision in &decisions {
            check_block(history, counts, decision)?;
        }
        fold::check(history, &decisions)?;
        let mut heads = units.iter().filter(|unit| unit.kind == UnitKind::Head);
        heads.try_for_each(|unit| check_unit(unit, &decisions))?;
        for turn in turns(units) {
            if !is_whole_turn_gone(&turn, &decisions) {
                turn.iter().try_for_each(|unit| check_unit(unit, &decisions))?;
            }
        }
        let after = tokens_after(history, counts, &decisions);
        let blocks = counts.blocks().to_vec();
        Ok(Plan {
            decisions,
            chain: Arc::default(),
            hidden: Vec::new(),
            blocks,
            before: counts.total(),
            after,
            fold: FoldNeed::default(),
            floor: None,
            cost: Cost::default(),
            broken: None,
            moments: Vec::new(),
            sums: Vec::new(),
            marker: None,
            leaves_cache_alone: false,
            ends: Vec::new(),
            shown_again: Vec::new(),
            pinned: Vec::new(),
            undone: Vec::new(),
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

    /// Returns the tokens of the request as it came.
    pub fn before(&self) -> Tokens {
        self.before
    }

    /// Returns the tokens of the request as it is sent.
    pub fn after(&self) -> Tokens {
        self.after
    }

    /// Returns the tokens of a block as it came and as it is sent.
    pub fn tokens_of(&self, block: BlockId) -> (Tokens, Tokens) {
        let before = self.blocks.get(widen(block.0)).copied().unwrap_or_default();
        match self.decisions.get(widen(block.0)).map(|decision| &decision.verdict) {
            Some(Verdict::Keep) | None => (before, before),
            Some(Verdict::Shorten { tokens, .. }) => (before, *tokens),
            Some(Verdict::Drop) => (before, Tokens::ZERO),
        }
    }

    /// Returns how many tokens the verdict about a block saves.
    pub fn saved(&self, block: BlockId) -> Tokens {
        let (before, after) = self.tokens_of(block);
        before - after
    }

    /// Tells whether the policy folds what is old.
    pub fn fold_wanted(&self) -> bool {
        self.fold.now
    }

    /// Returns the summary that the policy asks for, now or for later.
    pub fn wanted(&self) -> Option<&FoldRequest> {
        self.fold.wanted.as_ref()
    }

    /// Returns the message that stands for what is folded, and the last block that it stands for.
    pub fn folded(&self) -> Option<(BlockId, &str)> {
        fold::found(&self.decisions).map(|fold| (fold.block, &**fold.text))
    }

    /// Returns the least that a request could count, where folding cannot help; said once in a session.
    pub fn folding_cannot_help(&self) -> Option<Tokens> {
        self.fold.cannot_help
    }

    /// Returns what cannot be hidden, where that is more than the budget.
    pub fn floor(&self) -> Option<&Floor> {
        self.floor.as_ref()
    }

    /// Returns what the request costs as input, as sent and as it came.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Returns the first block that is sent otherwise than before, with what that costs.
    pub fn broken(&self) -> Option<Broken> {
        self.broken
    }

    /// Returns when a block is hidden, which says what that costs; nothing for what is kept.
    pub fn moment_of(&self, block: BlockId) -> Option<Moment> {
        self.moments.get(widen(block.0)).copied().flatten()
    }

    /// Returns what is saved and paid, by the moment at which blocks are hidden.
    pub fn sums(&self) -> &[Sum] {
        &self.sums
    }

    /// Returns the block behind which a cache marker is added.
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
    pub fn pinned(&self) -> &[BlockId] {
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
        // A call that waits for its answer stays as it is; so does one whose arguments nobody understands.
        BlockKind::Call => {
            !block.by_server
                && !block.sealed
                && block.partner.is_some()
                && arguments(history, block).is_some()
        }
        BlockKind::Definition | BlockKind::Reasoning | BlockKind::Unknown => false,
    }
}

fn check_block(history: &History, counts: &Counts, decision: &Decision) -> Result<(), PlanError> {
    let Verdict::Shorten { text, tokens } = &decision.verdict else { return Ok(()) };
    // The message that stands for a range is none of this block's.
    if decision.is_folded() {
        return Ok(());
    }
    let number = decision.block.0;
    let kind = history.block(decision.block).map_or(BlockKind::Unknown, |block| block.kind);
    if !may_shorten(history, decision.block) {
        return Err(PlanError::Untouchable(number, kind.name()));
    }
    if let Some(part) = history.block(decision.block).and_then(|block| arguments(history, block))
        && kind == BlockKind::Call
        && !is_same_kind(&history.part_text(part), text, part.kind)
    {
        return Err(PlanError::Shape(number));
    }
    let before = counts.blocks().get(widen(number)).copied().unwrap_or_default();
    if *tokens > before {
        return Err(PlanError::Larger(number, *tokens, before));
    }
    Ok(())
}

/// Tells whether shortened arguments are JSON of the kind they were before; a plain text is always one.
fn is_same_kind(before: &str, after: &str, kind: PartKind) -> bool {
    let first = |text: &str| text.trim_start().bytes().next();
    kind == PartKind::Text || (first(before) == first(after) && scan(after.as_bytes()).is_ok())
}

/// Tells whether a turn that may go as a whole did.
fn is_whole_turn_gone(turn: &[&Unit], decisions: &[Decision]) -> bool {
    let dropped = |id: &BlockId| decisions.get(widen(id.0)).is_some_and(is_out);
    turn.iter().all(|unit| unit.turn_may_go && unit.blocks.iter().all(dropped))
}

/// A unit goes as a whole or not at all.
fn check_unit(unit: &Unit, decisions: &[Decision]) -> Result<(), PlanError> {
    // Reasoning whose signature no longer holds goes alone, and what is folded is checked by itself.
    let unbound =
        |decision: &Decision| matches!(decision.reason, Some(Reason::Unbound { .. })) || decision.is_folded();
    let dropped = |id: &BlockId| {
        let decision = decisions.get(widen(id.0));
        decision.is_some_and(|decision| decision.verdict == Verdict::Drop && !unbound(decision))
    };
    let Some(gone) = unit.blocks.iter().find(|id| dropped(id)) else { return Ok(()) };
    if !unit.may_go {
        return Err(PlanError::Untouchable(gone.0, "block that the protocol needs"));
    }
    let alone = |id: &&BlockId| decisions.get(widen(id.0)).is_some_and(unbound);
    match unit.blocks.iter().find(|id| !dropped(id) && !alone(id)) {
        Some(kept) => Err(PlanError::Torn(gone.0, kept.0)),
        None => Ok(()),
    }
}

fn tokens_after(history: &History, counts: &Counts, decisions: &[Decision]) -> Tokens {
    let blocks = counts.blocks().iter().zip(decisions);
    let in_blocks: Tokens = blocks
        .map(|(before, decision)| match &decision.verdict {
            Verdict::Keep => *before,
            Verdict::Shorten { tokens, .. } => *tokens,
            Verdict::Drop => Tokens::ZERO,
        })
        .sum();
    in_blocks + fold::frame(history, counts, decisions)
}
