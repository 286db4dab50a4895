//! Verdicts under way. Takes one wish after the other; gives, each time, whether it was granted: a block is hidden only
//! where the protocol allows it and the request gets smaller. Never undoes what was decided before.

mod texts;

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use super::{
    Index, Made, Unit, UnitKind, disagree::Told, may_shorten, run::Situation, series::SeriesLog,
    unit_of_block, visible::Visible, wishes::Wished,
};
use crate::{
    count::{Counter, Counts, Memo},
    facts::{Fact, Facts, Shows, ToolKind, Voice},
    history::{BlockId, BlockKind, History, PartKind, Role},
    json::{narrow, widen},
    notes::hash_of,
    policy::{Act, Step, Style},
    recall::{block_handle, handle_of_hash},
    render::RecallHint,
    units::Tokens,
    verdict::{Decision, Reason, Verdict},
};

/// The largest share of a block that the names in it may leave of it, and the least tokens they must save: beyond that
/// the block itself is worth more (measured on recorded sessions).
pub(super) const NAMES_LEAVE_AT_MOST: f64 = 0.85;
pub(super) const NAMES_SAVE_AT_LEAST: Tokens = Tokens(20);

/// A request with everything that is known about it.
#[derive(Clone, Copy)]
pub(crate) struct Sight<'a> {
    pub(crate) history: &'a History,
    pub(crate) facts: &'a Facts,
    pub(crate) counts: &'a Counts,
    pub(crate) counter: Counter,
    pub(crate) index: &'a Index,
}

/// Everything a policy decides with, and what it has decided.
pub(super) struct Work<'a> {
    pub(super) history: &'a History,
    pub(super) facts: &'a Facts,
    pub(super) counts: &'a Counts,
    pub(super) index: &'a Index,
    pub(super) counter: Counter,
    pub(super) memo: &'a mut Memo,
    pub(super) made: &'a mut Made,
    pub(super) units: Vec<Unit>,
    unit_of: Vec<u32>,
    pub(super) decisions: Vec<Decision>,
    pinned: Vec<bool>,
    /// Blocks whose exchange never goes.
    held: Vec<bool>,
    /// Blocks that were pinned by a step: nothing overrides that.
    firm: Vec<bool>,
    pub(super) total: Tokens,
    /// How many blocks of each entry are still sent.
    pub(super) left: Vec<u32>,
    style: Style,
    /// How notes say that what is hidden comes back.
    pub(super) recall: &'a RecallHint,
    /// All steps of the policy.
    pub(super) steps: &'a [Step],
    /// What ages are multiplied by.
    pub(super) ages: f64,
    pub(super) visible: Option<Visible>,
    /// The latest note that points at a block, by that block.
    pointed_at: HashMap<BlockId, BlockId>,
    /// The series of edits that are told.
    pub(super) series: SeriesLog,
    /// Whether one message stands for the beginning of the conversation.
    pub(super) is_folded: bool,
    /// How many of the latest steps count as recent in the classes.
    pub(super) recent: u32,
    pub(super) budget: Option<Tokens>,
    /// The blocks that somebody asked for by handle.
    pub(super) wished: Wished,
    /// The words of the task, where a digest asked for them.
    task_words: Option<Vec<String>>,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        sight: Sight<'a>,
        memo: &'a mut Memo,
        made: &'a mut Made,
        situation: &Situation<'a>,
        ages: f64,
    ) -> Work<'a> {
        let policy = situation.policy;
        let Sight { history, facts, counts, counter, index } = sight;
        let blocks = history.blocks().len();
        let units = super::units(history, facts);
        let unit_of = unit_of_block(&units, blocks);
        let keep =
            |number| Decision { block: BlockId(number), verdict: Verdict::Keep, reason: None, handle: None };
        let decisions = (0..narrow(blocks)).map(keep).collect();
        let firm = vec![false; blocks];
        let pinned = (0..narrow(blocks)).map(|number| is_sacred(facts, BlockId(number))).collect();
        let left = history.entries().iter().map(|entry| entry.blocks).collect();
        let total = counts.total();
        Work {
            history,
            facts,
            counts,
            index,
            counter,
            memo,
            made,
            units,
            unit_of,
            decisions,
            pinned,
            held: vec![false; blocks],
            firm,
            total,
            left,
            style: policy.style,
            recall: situation.recall,
            recent: policy.recent_steps,
            steps: &policy.steps,
            ages,
            visible: None,
            pointed_at: HashMap::new(),
            budget: situation.budget,
            series: SeriesLog::default(),
            is_folded: false,
            wished: Wished::default(),
            task_words: None,
        }
    }

    /// Tells whether the model has said nothing since a block came: results that came together are seen together.
    pub(super) fn is_unseen(&self, id: BlockId) -> bool {
        let is_said = |fact: &Fact| fact.acts_as != BlockKind::Call && fact.role != Role::Assistant;
        self.facts.row(id).is_some_and(is_said) && self.facts.age(id) == Some(0)
    }

    /// Tells whether the model has not seen what a block shows: it is new, or a new one points at it instead of showing the same.
    pub(super) fn shows_unseen(&self, id: BlockId) -> bool {
        self.is_unseen(id) || (*self.verdict(id) == Verdict::Keep && self.is_unseen(self.latest_view(id)))
    }

    /// Tells whether a block holds what the model asked back a few steps ago.
    pub(super) fn is_fresh_recall(&self, id: BlockId) -> bool {
        let is_recall =
            |fact: &Fact| fact.acts_as == BlockKind::Result && fact.tool() == Some(ToolKind::Recall);
        self.facts.row(id).is_some_and(is_recall) && self.facts.age(id).is_some_and(|age| age <= self.recent)
    }

    pub(super) fn verdict(&self, id: BlockId) -> &Verdict {
        self.decisions.get(widen(id.0)).map_or(&Verdict::Drop, |decision| &decision.verdict)
    }

    /// Tells whether a block may still be hidden.
    pub(super) fn is_open(&self, id: BlockId) -> bool {
        *self.verdict(id) == Verdict::Keep && !self.is_pinned(id)
    }

    /// Tells whether lines of a block are not sent because another one shows them; the others are.
    pub(super) fn is_trimmed(&self, id: BlockId) -> bool {
        self.decisions.get(widen(id.0)).is_some_and(|decision| {
            matches!(decision.verdict, Verdict::Shorten { .. })
                && matches!(decision.reason, Some(Reason::Shown { .. }))
        })
    }

    /// Tells whether a block, or what is left of it, may still be hidden but for its names.
    pub(super) fn may_be_names(&self, id: BlockId) -> bool {
        self.is_open(id) || (self.is_trimmed(id) && !self.is_pinned(id))
    }

    /// Tells whether a block may still go with its unit.
    pub(super) fn may_drop(&self, id: BlockId) -> bool {
        !self.is_out(id) && self.unit(id).is_some_and(|unit| unit.may_go)
    }

    pub(super) fn is_pinned(&self, id: BlockId) -> bool {
        self.pinned.get(widen(id.0)).copied().unwrap_or(true)
    }

    pub(super) fn pin(&mut self, id: BlockId) {
        if let Some(pinned) = self.pinned.get_mut(widen(id.0)) {
            *pinned = true;
        }
        if let Some(firm) = self.firm.get_mut(widen(id.0)) {
            *firm = true;
        }
    }

    /// Keeps the exchange of a block.
    pub(super) fn hold(&mut self, id: BlockId) {
        self.held.get_mut(widen(id.0)).into_iter().for_each(|held| *held = true);
    }

    /// Tells whether a step pinned a block.
    pub(super) fn is_firm(&self, id: BlockId) -> bool {
        self.firm.get(widen(id.0)).copied().unwrap_or(true)
    }

    /// Tells whether the exchange of a block never goes.
    pub(super) fn is_held(&self, id: BlockId) -> bool {
        self.held.get(widen(id.0)).copied().unwrap_or_default()
    }

    pub(super) fn tokens(&self, id: BlockId) -> Tokens {
        self.counts.blocks().get(widen(id.0)).copied().unwrap_or_default()
    }

    pub(super) fn unit(&self, id: BlockId) -> Option<&Unit> {
        self.units.get(widen(self.unit_of.get(widen(id.0)).copied()?))
    }

    /// Does what a step says with a block; tells whether anything came of it.
    pub(super) fn apply(&mut self, id: BlockId, act: &Act, reason: &Reason) -> bool {
        let reason = &self.placed_in_series(id, reason);
        match act {
            Act::Pin => {
                self.pin(id);
                self.apply(id, &Act::Hold, reason)
            }
            Act::Hold => {
                self.hold(id);
                true
            }
            Act::Drop => self.drop_unit(id, reason),
            Act::Fold | Act::MakeRoom { .. } => false,
            Act::Seen => self.hide_seen(id),
            Act::Digest(_)
            | Act::HeadTail { .. }
            | Act::MiddleOut { .. }
            | Act::Cap { .. }
            | Act::HeadTailLines { .. }
            | Act::Matching(_)
            | Act::Names
            | Act::Inputs(_)
            | Act::Clear => match self.shortened(id, act, reason) {
                Some((text, tokens)) => {
                    self.hide(id, Verdict::Shorten { text, tokens }, reason);
                    true
                }
                None => false,
            },
        }
    }

    /// Puts notes in the place of lines that an earlier result in sight shows.
    fn hide_seen(&mut self, id: BlockId) -> bool {
        if !self.is_open(id) || !may_shorten(self.history, id) {
            return false;
        }
        let Some(shows) = self.index.row(id).and_then(|row| row.shows) else { return false };
        self.made.lines.extend(self.history, self.facts);
        let is_view = matches!(shows, Shows::File | Shows::ShellFile);
        let in_sight = |source: BlockId| {
            *self.verdict(source) == Verdict::Keep && (!is_view || self.is_newest_but(source, id))
        };
        let Some((source, pieces)) = self.made.lines.pieces(id, shows, in_sight) else { return false };
        let at = self.facts.row(source).map_or(0, |fact| fact.step);
        let reason = Reason::Shown { at, handle: self.handle(source) };
        match self.written(id, &pieces, &reason, self.style) {
            Some((text, tokens)) if tokens < self.tokens(id) => {
                self.hide(id, Verdict::Shorten { text, tokens }, &reason);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Reads what views tell about lines of files, those that were not read before.
    pub(super) fn read_views(&mut self, views: &[BlockId]) {
        for id in views {
            let key = self.view_key(*id);
            if let (Some(block), Some(fact)) = (self.history.block(*id), self.facts.row(*id))
                && !self.made.told.contains_key(&key)
            {
                // Of a view that is sent in part, the other lines stand elsewhere.
                let sent_in_part = self.text_now(*id).filter(|_| self.is_trimmed(*id));
                let text = sent_in_part.unwrap_or_else(|| self.history.readable_text(block));
                self.made.told.insert(key, Told::of(&text, fact));
            }
        }
    }

    /// Names what is read of a view: all of it, or what is left where it is sent in part.
    fn view_key(&self, id: BlockId) -> (BlockId, bool) {
        (id, self.is_trimmed(id))
    }

    /// Tells whether a view shows that an older one is no longer true. Both must have been read.
    pub(super) fn contradicts(&self, newer: BlockId, older: BlockId) -> bool {
        let [newer, older] = [newer, older].map(|id| self.made.told.get(&self.view_key(id)));
        newer.zip(older).is_some_and(|(newer, older)| newer.contradicts(older))
    }

    /// Tells whether a view of a file may point at an older one of it: without it no other one in sight passes for the newest.
    fn is_newest_but(&self, source: BlockId, id: BlockId) -> bool {
        let Some(file) = self.index.file(id) else { return false };
        let is_of_file = |other: BlockId| {
            let shows = self.index.row(other).and_then(|row| row.shows);
            matches!(shows, Some(Shows::File | Shows::ShellFile)) && self.index.files(other).contains(&file)
        };
        let mut others = (0..id.0).map(BlockId).filter(|other| *other != source && is_of_file(*other));
        is_of_file(source)
            && !others.any(|other| {
                *self.verdict(other) == Verdict::Keep && self.index.changed_between(file, other, id)
            })
    }

    /// Returns the block that a note made for this reason points at, one in sight where there are several.
    pub(super) fn source(&self, id: BlockId, reason: &Reason) -> Option<BlockId> {
        match reason {
            Reason::Identical { to } => {
                let at_step = |copy: &BlockId| self.facts.row(*copy).is_some_and(|fact| fact.step == *to);
                self.copies(id).find(at_step).or(self.facts.row(id)?.identical_to)
            }
            Reason::Shown { handle, .. } => {
                let hash = hash_of(handle)?;
                let blocks = || self.index.named(hash).iter().copied().take_while(|other| *other < id);
                blocks().find(|other| *self.verdict(*other) == Verdict::Keep).or_else(|| blocks().next())
            }
            Reason::TooOld
            | Reason::Superseded { .. }
            | Reason::OverBudget
            | Reason::TooLong
            | Reason::Stale { .. }
            | Reason::ReadOften { .. }
            | Reason::EditedOften { .. }
            | Reason::Unbound { .. }
            | Reason::Folded { .. }
            | Reason::Rule(_) => None,
        }
    }

    /// Returns the earlier blocks of the same kind and content that are sent whole, the oldest first.
    pub(super) fn copies(&self, id: BlockId) -> impl Iterator<Item = BlockId> + '_ {
        let fact = self.facts.row(id).filter(|fact| fact.identical_to.is_some());
        let name = fact.and_then(|fact| fact.digest.first_chunk()).copied();
        let same_name = name.map_or(&[][..], |name| self.index.named(name));
        let is_copy = move |other: &BlockId| {
            let same =
                self.facts.row(*other).zip(fact).is_some_and(|(other, fact)| {
                    other.digest == fact.digest && other.acts_as == fact.acts_as
                });
            same && *self.verdict(*other) == Verdict::Keep
        };
        same_name.iter().copied().take_while(move |other| *other < id).filter(is_copy)
    }

    /// Returns the latest block that showed what a block shows: itself, or a later one that points at it.
    pub(super) fn latest_view(&self, id: BlockId) -> BlockId {
        self.pointed_at.get(&id).copied().unwrap_or(id)
    }

    /// Looks at the blocks as if nothing pointed at another.
    pub(super) fn without_pointers<T>(&mut self, look: impl FnOnce(&Work<'_>) -> T) -> T {
        let pointed_at = std::mem::take(&mut self.pointed_at);
        let seen = look(self);
        self.pointed_at = pointed_at;
        seen
    }

    /// Repeats a text that a block was sent as before.
    pub(super) fn repeat(&mut self, id: BlockId, text: &Arc<str>, reason: &Reason) {
        if !self.is_open(id) || !may_shorten(self.history, id) {
            return;
        }
        let tokens = self.made.repeated(id, text, self.counter).unwrap_or_else(|| self.count_as(id, text));
        self.made.repeat(id, text, self.counter, tokens);
        if tokens <= self.tokens(id) {
            self.hide(id, Verdict::Shorten { text: Arc::clone(text), tokens }, reason);
        }
    }

    /// Says something else of a block that is hidden already.
    pub(super) fn say_instead(&mut self, id: BlockId, act: &Act, reason: &Reason) {
        if let Some((text, tokens)) = self.text_for(id, act, reason) {
            self.hide(id, Verdict::Shorten { text, tokens }, reason);
        }
    }

    /// Lets a whole unit go; blocks of it that were shortened before go as well.
    pub(super) fn drop_unit(&mut self, id: BlockId, reason: &Reason) -> bool {
        let Some(unit) = self.unit(id).filter(|unit| unit.may_go) else { return false };
        let blocks = unit.blocks.clone();
        let pinned = |id: &BlockId| self.is_pinned(*id) || self.is_held(*id) || self.is_out(*id);
        if blocks.iter().any(pinned) {
            return false;
        }
        for id in blocks {
            self.hide(id, Verdict::Drop, reason);
        }
        true
    }

    /// Lets one block go, whatever it belongs to.
    pub(super) fn drop_alone(&mut self, id: BlockId, reason: &Reason) {
        if !self.is_out(id) {
            self.hide(id, Verdict::Drop, reason);
        }
    }

    /// Tells whether a block is not sent: it was dropped, or a summary stands for it.
    pub(super) fn is_out(&self, id: BlockId) -> bool {
        self.decisions.get(widen(id.0)).is_none_or(super::edits::is_out)
    }

    pub(super) fn hide(&mut self, id: BlockId, verdict: Verdict, reason: &Reason) {
        let handle = self.handle(id);
        let before = self.tokens_now(id);
        if let Some(source) = self.source(id, reason).filter(|_| verdict != Verdict::Drop) {
            let latest = self.pointed_at.entry(source).or_insert(id);
            *latest = id.max(*latest);
        }
        self.note_series(id, &verdict, reason);
        let gone = verdict == Verdict::Drop;
        let text_before = self.visible.is_some().then(|| self.text_now(id)).flatten();
        if let Some(visible) = &mut self.visible {
            visible.forget(&text_before.unwrap_or_default());
            if let Verdict::Shorten { text, .. } = &verdict {
                visible.add(text);
            }
        }
        if let Some(decision) = self.decisions.get_mut(widen(id.0)) {
            decision.verdict = verdict;
            decision.reason = Some(reason.clone());
            decision.handle = Some(handle);
        }
        self.total = self.total - before + self.tokens_now(id);
        let entry = self.history.block(id).map(|block| widen(block.entry.0));
        if gone && let Some(left) = entry.and_then(|entry| self.left.get_mut(entry)) {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.total = self.total - self.counts.per_entry();
            }
        }
        // What stands beside a folded message is joined to it: how many messages are left cannot be told one by one.
        if gone && self.is_folded {
            self.recount_folded();
        }
    }

    /// Returns the text that a block is sent as; nothing where it is not sent.
    fn text_now(&self, id: BlockId) -> Option<Cow<'a, str>> {
        match self.verdict(id) {
            Verdict::Keep => self.history.block(id).map(|block| self.history.block_text(block)),
            Verdict::Shorten { text, .. } => Some(Cow::Owned(text.to_string())),
            Verdict::Drop => None,
        }
    }

    pub(super) fn tokens_now(&self, id: BlockId) -> Tokens {
        match self.verdict(id) {
            Verdict::Keep => self.tokens(id),
            Verdict::Shorten { tokens, .. } => *tokens,
            Verdict::Drop => Tokens::ZERO,
        }
    }

    pub(super) fn handle(&mut self, id: BlockId) -> String {
        let (Some(block), Some(fact)) = (self.history.block(id), self.facts.row(id)) else {
            return String::new();
        };
        let parts = self.history.parts_of(block);
        let is_text = !parts.is_empty() && parts.iter().all(|part| part.kind == PartKind::Text);
        // Of an empty text the facts hold the hash of its JSON.
        let is_text = is_text && !self.history.block_text(block).is_empty();
        // The facts hold the hash of a block's text: what is only text need not be hashed again.
        if is_text {
            return handle_of_hash(&fact.digest);
        }
        self.made.handle(id, || block_handle(self.history, block))
    }
}

/// Tells whether a block is never hidden by a step: system, tools, instructions and the person's words.
fn is_sacred(facts: &Facts, id: BlockId) -> bool {
    let Some(fact) = facts.row(id) else { return true };
    let person = matches!(fact.voice, Some(Voice::Person | Voice::Instructions | Voice::Summary));
    let head = matches!(fact.role, Role::System | Role::Tools);
    head || fact.instructions || (person && fact.acts_as != BlockKind::Result)
}

/// Returns a setting as a whole number.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "settings are small and not negative; a float beyond them saturates"
)]
pub(super) fn whole(number: f64) -> usize {
    number.max(0.0) as usize
}

/// Returns whether a unit is one of calls and results.
pub(super) fn is_exchange(unit: &Unit) -> bool {
    unit.kind == UnitKind::Exchange
}
