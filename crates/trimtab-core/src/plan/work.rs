//! What the passes work on: [`Work`] holds the request, the context, the texts made before and the [`Draft`]. A pass asks for one change
//! after the other, and learns each time whether it was made: a block is hidden only where the protocol allows it and the request gets
//! smaller.

mod forms;
mod texts;
mod views;

use std::{borrow::Cow, sync::Arc};

use super::{MessageUnit, RequestView, TextCache, UnitKind, context::PlanContext, draft::Draft, may_shorten};
use crate::{
    count::CountMemo,
    facts::{Fact, ToolKind},
    history::{BlockId, BlockKind, PartKind, Role},
    json::{narrow, widen},
    notes::hash_of,
    policy::StepAction,
    recall::{block_handle, handle_of_hash},
    units::Tokens,
    verdict::{Decision, Reason, Verdict},
};

/// The largest share of a block that the names in it may leave of it, and the least tokens they must save: beyond that
/// the block itself is worth more (measured on recorded sessions).
pub(super) const NAMES_LEAVE_AT_MOST: f64 = 0.85;
pub(super) const NAMES_SAVE_AT_LEAST: Tokens = Tokens(20);

/// The largest share of a text that may be named in the note that hides it: more costs more than it is looked up (measured on recorded
/// sessions), and a note that is known to be short is known to pay.
const NAMES_SHARE: f64 = 0.1;

/// A draft under way, with everything that it is made from.
pub(super) struct Work<'a> {
    pub(super) request: RequestView<'a>,
    pub(super) context: &'a PlanContext<'a>,
    pub(super) memo: &'a mut CountMemo,
    pub(super) made: &'a mut TextCache,
    pub(super) draft: Draft,
    /// The words of the task, where a digest asked for them.
    task_words: Option<Vec<String>>,
}

impl<'a> Work<'a> {
    /// Begins with a draft in which everything is kept.
    pub(super) fn new(
        request: RequestView<'a>,
        context: &'a PlanContext<'a>,
        memo: &'a mut CountMemo,
        made: &'a mut TextCache,
    ) -> Work<'a> {
        Work { request, context, memo, made, draft: Draft::new(request), task_words: None }
    }

    /// Returns how many bytes the names in a note about a block may have: a share of what it says as it is sent.
    pub(super) fn most_name_bytes(&self, id: BlockId) -> usize {
        let row = self.request.index.row(id);
        let rewritten = self.verdict_of(id).text().filter(|_| self.verdict_of(id).shows_all());
        let chars = rewritten.map_or(row.chars, |text| narrow(text.chars().count()));
        widen(row.names).min(to_whole_number(f64::from(chars) * NAMES_SHARE))
    }

    /// Tells whether nothing is known but the request itself: what it came with says what an earlier fit did.
    pub(super) fn is_first_fit(&self) -> bool {
        self.context.before.memory.request_count() == 0
    }

    /// Tells whether the model has said nothing since a block came: results that came together are seen together.
    pub(super) fn is_unseen(&self, id: BlockId) -> bool {
        let is_said = |fact: &Fact| fact.acts_as != BlockKind::Call && fact.role != Role::Assistant;
        is_said(&self.request.facts[id]) && self.request.facts.age(id) == Some(0)
    }

    /// Tells whether the model has not seen what a block shows: it is new, or a new one points at it instead of showing the same.
    pub(super) fn shows_unseen(&self, id: BlockId) -> bool {
        self.is_unseen(id) || (self.verdict_of(id).shows_all() && self.is_unseen(self.latest_view(id)))
    }

    /// Tells whether a block holds what the model asked back a few steps ago.
    pub(super) fn is_fresh_recall(&self, id: BlockId) -> bool {
        let fact = &self.request.facts[id];
        let is_recall = fact.acts_as == BlockKind::Result && fact.tool() == Some(ToolKind::Recall);
        is_recall && self.request.facts.age(id).is_some_and(|age| age <= self.context.policy.recent_steps)
    }

    pub(super) fn verdict_of(&self, id: BlockId) -> &Verdict {
        self.draft.verdict(id)
    }

    /// Tells whether a block may still be hidden.
    pub(super) fn is_open(&self, id: BlockId) -> bool {
        self.verdict_of(id).shows_all() && !self.is_pinned(id)
    }

    /// Tells whether lines of a block are not sent because another one shows them; the others are.
    pub(super) fn is_trimmed(&self, id: BlockId) -> bool {
        matches!(self.verdict_of(id), Verdict::Trim { .. })
    }

    /// Tells whether a block, or what is left of it, may still be hidden but for its names.
    pub(super) fn may_be_names(&self, id: BlockId) -> bool {
        self.is_open(id) || (self.is_trimmed(id) && !self.is_pinned(id))
    }

    /// Tells whether a block may still go with its unit.
    pub(super) fn may_drop(&self, id: BlockId) -> bool {
        !self.is_out(id) && self.unit_that_may_go(id).is_some()
    }

    pub(super) fn is_pinned(&self, id: BlockId) -> bool {
        self.draft.pins[id].block
    }

    pub(super) fn pin(&mut self, id: BlockId) {
        self.draft.pins[id].block = true;
        self.draft.pins[id].by_step = true;
    }

    /// Keeps the exchange of a block.
    pub(super) fn pin_exchange(&mut self, id: BlockId) {
        self.draft.pins[id].exchange = true;
    }

    /// Tells whether a step pinned a block.
    pub(super) fn is_firm(&self, id: BlockId) -> bool {
        self.draft.pins[id].by_step
    }

    /// Tells whether the exchange of a block never goes.
    pub(super) fn is_held(&self, id: BlockId) -> bool {
        self.draft.pins[id].exchange
    }

    pub(super) fn tokens(&self, id: BlockId) -> Tokens {
        self.request.counts[id]
    }

    pub(super) fn unit_of_block(&self, id: BlockId) -> Option<&'a MessageUnit> {
        self.request.units.of_block(id).map(|(_, unit)| unit)
    }

    fn unit_that_may_go(&self, id: BlockId) -> Option<&'a MessageUnit> {
        let (number, unit) = self.request.units.of_block(id)?;
        (unit.may_go && !self.draft.kept_units.contains(&number)).then_some(unit)
    }

    /// Does what a step says with a block; tells whether anything came of it.
    pub(super) fn apply_act(&mut self, id: BlockId, act: &StepAction, reason: &Reason) -> bool {
        let reason = &self.placed_in_series(id, reason);
        match act {
            StepAction::Pin => {
                self.pin(id);
                self.apply_act(id, &StepAction::Hold, reason)
            }
            StepAction::Hold => {
                self.pin_exchange(id);
                true
            }
            StepAction::Drop => self.drop_unit(id, reason),
            StepAction::Fold | StepAction::MakeRoom { .. } => false,
            StepAction::Seen => self.hide_seen(id),
            StepAction::Rewrite(form) => self.rewrite_block(id, *form),
            StepAction::Digest(_)
            | StepAction::HeadTail { .. }
            | StepAction::MiddleOut { .. }
            | StepAction::Cap { .. }
            | StepAction::HeadTailLines { .. }
            | StepAction::Matching(_)
            | StepAction::Names
            | StepAction::Inputs(_)
            | StepAction::Clear => match self.shorten_block(id, act, reason) {
                Some(shorter) => {
                    self.hide_behind(id, shorter, reason.clone());
                    true
                }
                None => false,
            },
        }
    }

    /// Returns the block that a verdict points at, a visible one where there are several.
    pub(super) fn source_block(&self, id: BlockId, verdict: &Verdict) -> Option<BlockId> {
        match verdict {
            Verdict::Point { to, .. } => self.copy_at(id, *to),
            Verdict::Trim { handle, .. } => self.named_before(id, handle),
            Verdict::Keep
            | Verdict::Shorten { .. }
            | Verdict::Rewrite { .. }
            | Verdict::Fold { .. }
            | Verdict::Drop { .. } => None,
        }
    }

    /// Returns the copy of a block at a step, one that is sent whole where there are several.
    pub(super) fn copy_at(&self, id: BlockId, step: u32) -> Option<BlockId> {
        let at_step = |copy: &BlockId| self.request.facts[*copy].step == step;
        self.whole_copies(id).find(at_step).or(self.request.facts[id].identical_to)
    }

    /// Returns the block before another one that a handle names, one that is sent whole where there are several.
    pub(super) fn named_before(&self, id: BlockId, handle: &str) -> Option<BlockId> {
        let hash = hash_of(handle)?;
        let blocks = || self.request.index.blocks_named(hash).iter().copied().take_while(|other| *other < id);
        blocks().find(|other| self.verdict_of(*other).shows_all()).or_else(|| blocks().next())
    }

    /// Returns the earlier blocks of the same kind and content that are sent whole, the oldest first.
    pub(super) fn whole_copies(&self, id: BlockId) -> impl Iterator<Item = BlockId> + '_ {
        let fact = &self.request.facts[id];
        let name = fact.identical_to.and_then(|_| fact.digest.first_chunk()).copied();
        let same_name = name.map_or(&[][..], |name| self.request.index.blocks_named(name));
        let is_copy = move |other: &BlockId| {
            let copy = &self.request.facts[*other];
            let is_same = copy.digest == fact.digest && copy.acts_as == fact.acts_as;
            is_same && self.verdict_of(*other).shows_all()
        };
        same_name.iter().copied().take_while(move |other| *other < id).filter(is_copy)
    }

    /// Returns the latest block that showed what a block shows: itself, or a later one that points at it.
    pub(super) fn latest_view(&self, id: BlockId) -> BlockId {
        self.draft.pointed_at.get(&id).copied().unwrap_or(id)
    }

    /// Looks at the blocks as if nothing pointed at another.
    pub(super) fn without_pointers<T>(&mut self, look: impl FnOnce(&Work<'_>) -> T) -> T {
        let pointed_at = std::mem::take(&mut self.draft.pointed_at);
        let seen = look(self);
        self.draft.pointed_at = pointed_at;
        seen
    }

    /// Sends a block as the text that it was sent as before.
    pub(super) fn repeat_text(&mut self, id: BlockId, verdict: &Verdict, text: &Arc<str>) {
        // A pin forbids to hide: what was only written otherwise stays so.
        let may_repeat = self.is_open(id) || (verdict.shows_all() && self.verdict_of(id).shows_all());
        if !may_repeat || !may_shorten(self.request.history, id) {
            return;
        }
        let tokens = self
            .made
            .repeated_tokens(id, text, self.request.counter)
            .unwrap_or_else(|| self.count_as(id, text));
        self.made.remember_repeated(id, text, self.request.counter, tokens);
        if tokens <= self.tokens(id) {
            self.hide_block(id, verdict.clone(), tokens);
        }
    }

    /// Says something else of a block that is hidden already.
    pub(super) fn say_instead(&mut self, id: BlockId, act: &StepAction, reason: Reason) {
        if let Some(shorter) = self.text_for(id, act, &reason) {
            self.hide_behind(id, shorter, reason);
        }
    }

    /// Lets a whole unit go; blocks of it that were shortened before go as well.
    pub(super) fn drop_unit(&mut self, id: BlockId, reason: &Reason) -> bool {
        let Some(unit) = self.unit_that_may_go(id) else { return false };
        let left = |id: &&BlockId| !self.verdict_of(**id).goes_alone();
        let left: Vec<BlockId> = unit.blocks.iter().filter(left).copied().collect();
        let stays = |id: &BlockId| self.is_pinned(*id) || self.is_held(*id) || self.is_out(*id);
        if left.iter().any(stays) {
            return false;
        }
        for id in left {
            self.hide_block(id, Verdict::hiding(None, reason.clone()), Tokens::ZERO);
        }
        true
    }

    /// Lets one block go, whatever it belongs to.
    pub(super) fn drop_alone(&mut self, id: BlockId, reason: &Reason) {
        if !self.is_out(id) {
            self.hide_block(id, Verdict::hiding(None, reason.clone()), Tokens::ZERO);
        }
    }

    /// Tells whether a block is not sent: it was dropped, or a summary replaces it.
    pub(super) fn is_out(&self, id: BlockId) -> bool {
        self.verdict_of(id).is_gone()
    }

    /// Replaces a block by a text.
    pub(super) fn hide_behind(&mut self, id: BlockId, (text, tokens): (Arc<str>, Tokens), reason: Reason) {
        self.hide_block(id, Verdict::hiding(Some(text), reason), tokens);
    }

    /// Hides a block, which then counts `tokens`.
    pub(super) fn hide_block(&mut self, id: BlockId, verdict: Verdict, tokens: Tokens) {
        let handle = self.handle_of_block(id);
        if let Some(source) = self.source_block(id, &verdict) {
            let latest = self.draft.pointed_at.entry(source).or_insert(id);
            *latest = id.max(*latest);
        }
        self.note_series(id, &verdict);
        let gone = verdict.is_gone();
        let changes_names = self.draft.visible.is_some() && !verdict.shows_all();
        let text_before = changes_names.then(|| self.text_now(id)).flatten();
        if let Some(visible) = self.draft.visible.as_mut().filter(|_| changes_names) {
            visible.remove_text(&text_before.unwrap_or_default());
            if let Some(text) = verdict.text() {
                visible.add_text(text);
            }
        }
        self.draft.total = self.draft.total - self.draft.sent_tokens[id] + tokens;
        self.draft.sent_tokens[id] = tokens;
        self.draft.decisions[id] = Decision { block: id, verdict, handle: Some(handle) };
        self.draft.decided_by[id] = Some(self.draft.pass);
        let entry = widen(self.request.history[id].entry.0);
        if gone && let Some(left) = self.draft.left.get_mut(entry) {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.draft.total = self.draft.total - self.request.counts.per_entry();
            }
        }
        // What stands beside a folded message is joined to it: how many messages are left cannot be said one by one.
        if gone && self.draft.is_folded {
            self.recount_folded();
        }
    }

    /// Returns what is said in a block's place; nothing where it is not sent. A rewritten block says what it said.
    fn text_now(&self, id: BlockId) -> Option<Cow<'a, str>> {
        match self.verdict_of(id) {
            Verdict::Keep | Verdict::Rewrite { .. } => {
                Some(self.request.history.block_text(&self.request.history[id]))
            }
            hidden => hidden.text().map(|text| Cow::Owned(text.to_string())),
        }
    }

    pub(super) fn tokens_now(&self, id: BlockId) -> Tokens {
        self.draft.sent_tokens[id]
    }

    pub(super) fn handle_of_block(&mut self, id: BlockId) -> String {
        let (block, fact) = (&self.request.history[id], &self.request.facts[id]);
        let parts = self.request.history.parts_of(block);
        let is_text = !parts.is_empty() && parts.iter().all(|part| part.kind == PartKind::Text);
        // Of an empty text the facts hold the hash of its JSON.
        let is_text = is_text && !self.request.history.block_text(block).is_empty();
        // The facts hold the hash of a block's text: what is only text need not be hashed again.
        if is_text {
            return handle_of_hash(&fact.digest);
        }
        self.made.handle(id, || block_handle(self.request.history, block))
    }
}

/// Returns a setting as a whole number.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "settings are small and not negative; a float beyond them saturates"
)]
pub(super) fn to_whole_number(number: f64) -> usize {
    number.max(0.0) as usize
}

/// Returns whether a unit is one of calls and results.
pub(super) fn is_exchange(unit: &MessageUnit) -> bool {
    unit.kind == UnitKind::Exchange
}
