//! What was asked for about single blocks, in one request. Takes the wishes of a session and what was sent before; gives
//! [`BlockWishes`]: the blocks that are pinned, those whose hiding is taken back now, and from when the age of a block counts.
//! Never hides anything.

use std::collections::{BTreeMap, BTreeSet};

use super::{TextCache, passes::PassName, work::Work};
use crate::{
    facts::{Facts, Priority},
    history::{BlockId, BlockKind, History, PartKind},
    json::{narrow, widen},
    memory::{Handle, UndoWhen, Wishes},
    policy::{BlockSelection, PolicyStep, StepMoment},
    recall::block_handle,
    verdict::{Reason, SentVerdict, Verdict},
};

/// The blocks of a request that wishes are about.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockWishes {
    pinned: BTreeSet<BlockId>,
    /// Blocks whose hiding is taken back in this request.
    granted: BTreeSet<BlockId>,
    /// Blocks whose age counts from an undo.
    restarted: BTreeMap<BlockId, AgeRestart>,
    /// Undos that wait for a moment that costs nothing, with the blocks that they would show.
    waiting: Vec<(Handle, Vec<BlockId>)>,
    /// Undos that wait no longer.
    done: Vec<Handle>,
}

/// From when a block's age counts.
#[derive(Debug, Clone, Copy)]
struct AgeRestart {
    step: u32,
    /// The last block of that step: in its place the block would be as old.
    stand_in: BlockId,
}

/// Whether showing a block again costs nothing wherever it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShowingCost {
    Free,
    Costs,
}

impl BlockWishes {
    /// Finds the blocks that wishes are about.
    pub(crate) fn find_blocks(
        wishes: &Wishes,
        (history, facts): (&History, &Facts),
        made: &mut TextCache,
        sent: &[Option<&SentVerdict>],
        showing: ShowingCost,
    ) -> BlockWishes {
        let mut wished = BlockWishes::default();
        if wishes.is_empty() {
            return wished;
        }
        let mut named: BTreeMap<Handle, Vec<BlockId>> = BTreeMap::new();
        for id in history.ids() {
            if let Some(handle) = handle_of_block(history, facts, made, id) {
                named.entry(handle).or_default().push(id);
            }
        }
        let blocks = |handle: Handle| named.get(&handle).map_or(&[][..], Vec::as_slice);
        wished.pinned = wishes.pinned_handles().flat_map(|handle| blocks(handle).iter().copied()).collect();
        for (handle, undo) in wishes.undone_handles().filter(|(handle, _)| !blocks(*handle).is_empty()) {
            let stand_in = last_of_step(facts, undo.step);
            let restart = AgeRestart { step: undo.step, stand_in };
            wished.restarted.extend(blocks(handle).iter().map(|id| (*id, restart)));
            let hidden = blocks(handle).iter().copied().filter(|id| is_hidden(sent, *id)).collect();
            wished.take_back(handle, hidden, undo.waits, showing);
        }
        wished
    }

    fn take_back(
        &mut self,
        handle: Handle,
        hidden: Vec<BlockId>,
        waits: Option<UndoWhen>,
        showing: ShowingCost,
    ) {
        match (waits, showing) {
            (None, _) => {}
            // A visible block needs no undo, and what is hidden later is not what was taken back.
            (Some(_), _) if hidden.is_empty() => self.done.push(handle),
            (Some(UndoWhen::Now), _) | (Some(UndoWhen::Free), ShowingCost::Free) => {
                self.granted.extend(hidden);
                self.done.push(handle);
            }
            (Some(UndoWhen::Free), ShowingCost::Costs) => self.waiting.push((handle, hidden)),
        }
    }

    /// Returns the same with the undos done that wait for a request that differs from `first` on anyway; nothing where none does.
    pub(crate) fn freed_from(&self, first: BlockId) -> Option<BlockWishes> {
        let is_behind = |hidden: &[BlockId]| hidden.iter().all(|id| *id > first);
        let mut freed = self.clone();
        let (free, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut freed.waiting).into_iter().partition(|(_, hidden)| is_behind(hidden));
        freed.waiting = waiting;
        for (handle, hidden) in &free {
            freed.granted.extend(hidden);
            freed.done.push(*handle);
        }
        (!free.is_empty()).then_some(freed)
    }

    /// Returns the undos that wait no longer once this request is sent.
    pub(crate) fn finished_undos(&self) -> &[Handle] {
        &self.done
    }

    pub(crate) fn pinned_blocks(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.pinned.iter().copied()
    }

    fn wants_whole(&self, id: BlockId) -> bool {
        self.pinned.contains(&id) || self.granted.contains(&id)
    }

    /// Returns the blocks that were hidden and are not to be hidden again: with a block that was dropped, all that went with it.
    pub(super) fn released_blocks(&self, work: &Work<'_>) -> BTreeSet<BlockId> {
        let mut released = BTreeSet::new();
        for id in self.pinned.iter().chain(&self.granted) {
            let Some(sent) = work.context.sent_before(*id) else { continue };
            // What is only written otherwise is not hidden: a pin leaves it so.
            if !sent.verdict().shows_all() || self.granted.contains(id) {
                released.insert(*id);
            }
            if sent.verdict().leaves_nothing() {
                released
                    .extend(work.unit_of_block(*id).into_iter().flat_map(|unit| unit.blocks.iter().copied()));
            }
        }
        released
    }

    /// Returns the blocks that were hidden before and are whole in this request because somebody asked for that.
    pub(super) fn shown_again(&self, work: &Work<'_>) -> Vec<BlockId> {
        let was_hidden =
            |id: BlockId| work.context.sent_before(id).is_some_and(|sent| *sent.verdict() != Verdict::Keep);
        if !self.pinned.iter().chain(&self.granted).any(|id| was_hidden(*id)) {
            return Vec::new();
        }
        let blocks = work.request.history.ids();
        blocks.filter(|id| was_hidden(*id) && *work.verdict_of(*id) == Verdict::Keep).collect()
    }
}

/// Tells whether a block is hidden by itself or with its exchange. A summary is not taken back for one of its blocks.
fn is_hidden(sent: &[Option<&SentVerdict>], id: BlockId) -> bool {
    match sent.get(widen(id.0)).copied().flatten().map(SentVerdict::verdict) {
        None
        | Some(Verdict::Keep | Verdict::Fold { .. } | Verdict::Drop { reason: Reason::Unbound { .. } }) => {
            false
        }
        Some(
            Verdict::Shorten { .. }
            | Verdict::Point { .. }
            | Verdict::Trim { .. }
            | Verdict::Rewrite { .. }
            | Verdict::Drop { .. },
        ) => true,
    }
}

/// Returns the last block that belongs to a step or to one before it.
fn last_of_step(facts: &Facts, step: u32) -> BlockId {
    let last = facts.rows().iter().rposition(|row| row.step <= step).unwrap_or_default();
    BlockId(narrow(last))
}

fn handle_of_block(history: &History, facts: &Facts, made: &mut TextCache, id: BlockId) -> Option<Handle> {
    let (block, fact) = (&history[id], &facts[id]);
    let parts = history.parts_of(block);
    let is_text = !parts.is_empty() && parts.iter().all(|part| part.kind == PartKind::Text);
    // The facts hold the hash of a block's text, or of its JSON where that is empty: what is only text need not be hashed again.
    if is_text && !history.block_text(block).is_empty() {
        return fact.digest.first_chunk().copied().map(Handle);
    }
    Handle::parse(&made.handle(id, || block_handle(history, block)))
}

impl Work<'_> {
    /// Tells whether a block was pinned by handle.
    pub(super) fn is_pinned_by_handle(&self, id: BlockId) -> bool {
        self.context.wished.pinned.contains(&id)
    }

    /// Tells whether a block was asked to be whole in this request.
    pub(super) fn is_wanted_whole(&self, id: BlockId) -> bool {
        self.context.wished.wants_whole(id)
    }

    /// Lets the reasoning of an exchange that is shown again stay away, where the model bound it to what was sent then.
    pub(super) fn drop_released_reasoning(&mut self, released: &BTreeSet<BlockId>) {
        let is_reasoning = |id: &BlockId| self.request.history[*id].kind == BlockKind::Reasoning;
        let reasoning: Vec<BlockId> = released.iter().copied().filter(is_reasoning).collect();
        for id in reasoning {
            let edit = self.request.facts[id].step;
            self.drop_alone(id, &Reason::Unbound { edit });
        }
    }

    /// Tells whether a step leaves a block alone because its hiding was taken back: all do that ask neither how old it is nor
    /// how full the window is.
    pub(super) fn is_left_alone(&self, step: &PolicyStep, id: BlockId) -> bool {
        let BlockSelection {
            older_than, keep_last, protect, results_after, turn_since, class_at_most, ..
        } = &step.select;
        let limits = [older_than, keep_last, protect, results_after, class_at_most];
        let is_by_age = *turn_since || limits.into_iter().any(Option::is_some);
        self.restart(id).is_some() && !is_by_age && !matches!(step.when, StepMoment::Over { .. })
    }

    /// Returns from when the age of a block counts whose hiding was taken back. Steps that keep blocks ask how old it really is.
    fn restart(&self, id: BlockId) -> Option<AgeRestart> {
        let is_pinning = self.draft.pass == PassName::Pin;
        self.context.wished.restarted.get(&id).copied().filter(|_| !is_pinning)
    }

    /// Returns the block in whose place a block whose hiding was taken back would be as old as it counts.
    pub(super) fn stand_in(&self, id: BlockId) -> Option<BlockId> {
        self.restart(id).map(|restart| restart.stand_in)
    }

    /// Returns how many steps ago a block was said, or its hiding taken back.
    pub(super) fn age(&self, id: BlockId) -> Option<u32> {
        let age = self.request.facts.age(id);
        match self.restart(id) {
            Some(restart) => {
                age.map(|age| age.min(self.request.facts.current_step().saturating_sub(restart.step)))
            }
            None => age,
        }
    }

    /// Returns the class of a block; one whose hiding was taken back is as recent as that.
    pub(super) fn priority(&self, id: BlockId) -> Option<Priority> {
        let recent_steps = self.context.policy.recent_steps;
        let class = self.request.facts.priority(id, recent_steps);
        let is_recent = self.restart(id).is_some() && self.age(id).is_some_and(|age| age <= recent_steps);
        if is_recent { class.max(Some(Priority::RecentStep)) } else { class }
    }
}
