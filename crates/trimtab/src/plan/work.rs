//! Verdicts under way. Takes one wish after the other; gives, each time, whether it was granted: a block is hidden only
//! where the protocol allows it and the request gets smaller. Never undoes what was decided before.

use std::{
    borrow::Cow,
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use super::{
    Decision, Index, Made, Reason, Unit, UnitKind, Verdict, arguments, candidates::leaves, disagree::Told,
    edits::shortened, index::Shows, may_shorten, unit_of_block, visible::Visible,
};
use crate::{
    count::{Counter, Counts, Memo, Tokens},
    digest::{self, About, Content, Ended, Inputs, LeafRule, Leaves, Piece, Text},
    facts::{ContentKind, Fact, Facts, Lines, Outcome, Subject, ToolKind, Voice},
    files::intent_of,
    history::{BlockId, BlockKind, History, PartKind},
    json::{narrow, widen},
    policy::{Act, Policy, Step, Style},
    recall::block_handle,
    render::{self, NoteContext, handle_of_hash},
    wire::Format,
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
    made: &'a mut Made,
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
    /// All steps of the policy.
    pub(super) steps: &'a [Step],
    /// What ages are multiplied by.
    pub(super) ages: f64,
    pub(super) visible: Option<Visible>,
    /// The latest note that points at a block, by that block.
    pointed_at: HashMap<BlockId, BlockId>,
    /// How many of the latest steps count as recent in the classes.
    pub(super) recent: u32,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        sight: Sight<'a>,
        memo: &'a mut Memo,
        made: &'a mut Made,
        policy: &'a Policy,
        ages: f64,
    ) -> Work<'a> {
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
            recent: policy.recent_steps,
            steps: &policy.steps,
            ages,
            visible: None,
            pointed_at: HashMap::new(),
        }
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
        match act {
            Act::Pin => {
                self.pin(id);
                self.apply(id, &Act::Hold, reason)
            }
            Act::Hold => {
                self.held.get_mut(widen(id.0)).into_iter().for_each(|held| *held = true);
                true
            }
            Act::Drop => self.drop_unit(id, reason),
            Act::Fold => false,
            Act::Seen => self.hide_seen(id),
            Act::Digest(_)
            | Act::HeadTail { .. }
            | Act::MiddleOut { .. }
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
            if let (Some(block), Some(fact)) = (self.history.block(*id), self.facts.row(*id)) {
                let read = || Told::of(&self.history.block_text(block), fact);
                self.made.told.entry(*id).or_insert_with(read);
            }
        }
    }

    /// Tells whether a view shows that an older one is no longer true. Both must have been read.
    pub(super) fn contradicts(&self, newer: BlockId, older: BlockId) -> bool {
        let (newer, older) = (self.made.told.get(&newer), self.made.told.get(&older));
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
            Reason::Identical { .. } => self.facts.row(id)?.identical_to,
            Reason::Shown { handle, .. } => {
                let hash = render::hash_of(handle)?;
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
        // There what stands beside a folded message is joined to it: how many messages are left cannot be told one by one.
        if gone && self.history.format() == Format::Gemini {
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
        // The facts hold the hash of a block's text: what is only text need not be hashed again.
        if is_text {
            return handle_of_hash(&fact.digest);
        }
        self.made.handle(id, || block_handle(self.history, block))
    }

    /// Returns a block's text shortened as a step says, and what it counts; nothing where that is not smaller.
    fn shortened(&mut self, id: BlockId, act: &Act, reason: &Reason) -> Option<(Arc<str>, Tokens)> {
        let open = if *act == Act::Names { self.may_be_names(id) } else { self.is_open(id) };
        if !open || !may_shorten(self.history, id) {
            return None;
        }
        self.text_for(id, act, reason)
    }

    fn text_for(&mut self, id: BlockId, act: &Act, reason: &Reason) -> Option<(Arc<str>, Tokens)> {
        // Which names stand nowhere else depends on what else is hidden, and which arguments may go on what came since:
        // that is made anew.
        if matches!(act, Act::Names | Act::Inputs(_)) {
            return self.make(id, act, reason, self.style);
        }
        let key = self.key(id, act, reason);
        if let Some(made) = self.made.get(id, key) {
            return made.clone();
        }
        let mut made = self.make(id, act, reason, self.style);
        // What is too short for a sentence about it may still be longer than its size and handle.
        if made.is_none() && *act == Act::Clear {
            made = self.make(id, act, reason, Style::Plain);
        }
        self.made.put(id, key, &made);
        made
    }

    /// Stands for everything but the block itself that a shortened text is made with.
    fn key(&self, id: BlockId, act: &Act, reason: &Reason) -> u64 {
        let mut hasher = DefaultHasher::new();
        act.hash(&mut hasher);
        reason.hash(&mut hasher);
        self.style.hash(&mut hasher);
        self.counter.tokenizer().hash(&mut hasher);
        self.index.is_changed(id).hash(&mut hasher);
        hasher.finish()
    }

    fn make(&mut self, id: BlockId, act: &Act, reason: &Reason, style: Style) -> Option<(Arc<str>, Tokens)> {
        let history = self.history;
        let block = history.block(id)?;
        let fact = self.facts.row(id)?;
        match (block.kind, act) {
            (BlockKind::Call, Act::Inputs(inputs)) => return self.make_arguments(id, *inputs, reason),
            // The arguments of a call are no text to be cut, and no other text has arguments.
            (BlockKind::Call, _) | (_, Act::Inputs(_)) => return None,
            _ => {}
        }
        let text = history.block_text(block);
        let tool = history.tool_name(block);
        let about = about(fact, tool.as_deref());
        let names = if *act == Act::Names { self.names_only_in(id, &text) } else { Vec::new() };
        let shows = self.index.row(id).and_then(|row| row.shows);
        let mut pieces = pieces(history, id, &Text::new(&text, about), (act, names, shows))?;
        if matches!(reason, Reason::EditedOften { .. }) {
            let intent = fact.partner.and_then(|call| intent_of(history, history.block(call)?));
            pieces.extend(intent.map(|intent| Piece::Note(digest::Note::Intent(intent))));
        }
        let (shorter, tokens) = self.written(id, &pieces, reason, style)?;
        let most = if *act == Act::Names {
            let now = self.tokens_now(id);
            now.scaled(NAMES_LEAVE_AT_MOST).min(now - NAMES_SAVE_AT_LEAST)
        } else {
            self.tokens(id) - Tokens(1)
        };
        (tokens <= most).then_some((shorter, tokens))
    }

    /// Writes a block as its pieces and counts it; nothing where its bytes do not shrink.
    fn written(
        &mut self,
        id: BlockId,
        pieces: &[Piece],
        reason: &Reason,
        style: Style,
    ) -> Option<(Arc<str>, Tokens)> {
        let history = self.history;
        let block = history.block(id)?;
        let fact = self.facts.row(id)?;
        let text = history.block_text(block);
        let tool = history.tool_name(block);
        let handle = self.handle(id);
        let context = NoteContext {
            tool: tool.as_deref(),
            subject: subject(fact, self.index.is_changed(id)),
            step: fact.step,
            tokens: Some(self.tokens(id).0),
            reason,
            handle: &handle,
            style: match style {
                Style::Normal => render::Style::Normal,
                Style::Plain => render::Style::Plain,
            },
        };
        let shorter = if text.is_empty() {
            render::render(&text, pieces, &context)
        } else {
            render::shorten(&text, pieces, &context, &|text| self.counter.text(text).0)?
        };
        let tokens = self.count_as(id, &shorter);
        // A content of several parts is replaced as a whole, so its JSON is what must shrink.
        let edit = shortened(history, block, &shorter)?;
        (edit.with.len() < edit.span.len()).then(|| (shorter.into(), tokens))
    }

    /// Returns a call's arguments with notes in the place of long ones, and what the call then counts.
    fn make_arguments(&mut self, id: BlockId, inputs: Inputs, reason: &Reason) -> Option<(Arc<str>, Tokens)> {
        let history = self.history;
        let block = history.block(id)?;
        let part = arguments(history, block)?;
        let text = history.part_text(part);
        let (leaves, _) = leaves(self, id, inputs)?;
        if self.index.row(id).is_none_or(|row| row.leaves.of(leaves) == 0) || render::holds_note(&text) {
            return None;
        }
        let handle = self.handle(id);
        let note = |leaf: &str, class: Leaves| render::argument(leaf, class, reason, &handle);
        let rule = LeafRule { leaves, longest: digest::LONGEST, note: &note };
        let shorter = match part.kind {
            PartKind::Text => digest::shorten_plain(&text, &rule)?,
            _ => String::from_utf8(digest::shorten_arguments(text.as_bytes(), &rule)?).ok()?,
        };
        let tokens = self.count_as(id, &shorter);
        let edit = shortened(history, block, &shorter)?;
        (edit.with.len() < edit.span.len() && tokens < self.tokens(id)).then(|| (shorter.into(), tokens))
    }

    /// Returns the names of a block's text that stand in nothing else that is sent, in order, each once.
    fn names_only_in(&mut self, id: BlockId, text: &str) -> Vec<String> {
        if self.visible.is_none() {
            let mut visible = Visible::default();
            for (decision, block) in self.decisions.iter().zip(self.history.blocks()) {
                match &decision.verdict {
                    Verdict::Keep => visible.add(&self.history.block_text(block)),
                    Verdict::Shorten { text, .. } => visible.add(text),
                    Verdict::Drop => {}
                }
            }
            self.visible = Some(visible);
        }
        let sent = self.text_now(id).unwrap_or_default();
        self.visible.as_ref().map(|visible| visible.only_in(text, &sent)).unwrap_or_default()
    }

    fn count_as(&mut self, id: BlockId, text: &str) -> Tokens {
        let Some(block) = self.history.block(id) else { return Tokens::ZERO };
        self.counter.block_as_text(self.history, block, text, self.memo)
    }
}

/// Tells whether a block is never hidden by a step: system, tools, instructions and the person's words.
fn is_sacred(facts: &Facts, id: BlockId) -> bool {
    let Some(fact) = facts.row(id) else { return true };
    let person = matches!(fact.voice, Some(Voice::Person | Voice::Instructions | Voice::Summary));
    let head = matches!(fact.role, crate::history::Role::System | crate::history::Role::Tools);
    head || fact.instructions || (person && fact.acts_as != BlockKind::Result)
}

fn pieces(
    history: &History,
    id: BlockId,
    text: &Text<'_>,
    (act, names, shows): (&Act, Vec<String>, Option<Shows>),
) -> Option<Vec<Piece>> {
    let block = history.block(id)?;
    let media = history
        .parts_of(block)
        .iter()
        .find(|part| matches!(part.kind, PartKind::Image | PartKind::Document | PartKind::Audio));
    if let Some(part) = media
        && text.whole().is_empty()
    {
        let kind = if part.kind == PartKind::Image { "image" } else { "document" };
        return Some(digest::media(kind, u64::try_from(part.span.len()).unwrap_or(u64::MAX)));
    }
    match act {
        Act::Clear => (digest::find_digest("clear")?.shorten)(text),
        // Of a file the ends say nothing, and what looks like an error is source; not so where reading it failed.
        Act::Names
            if matches!(shows, Some(Shows::File | Shows::ShellFile))
                && text.about().ended != Ended::Failed =>
        {
            digest::named(text, names)
        }
        Act::Names => digest::named_ends(text, names),
        Act::Digest(None) => (digest::choose(text).shorten)(text),
        Act::Digest(Some(name)) => (digest::find_digest(name)?.shorten)(text),
        Act::HeadTail { above, keep } => digest::head_tail(text, whole(*above), whole(*keep)),
        Act::MiddleOut { bytes } => digest::middle_out(text, whole(*bytes)),
        Act::HeadTailLines { head, tail } => digest::head_tail_lines(text, whole(*head), whole(*tail)),
        Act::Matching(patterns) => {
            let patterns: Vec<regex::Regex> =
                patterns.iter().filter_map(|pattern| regex::Regex::new(pattern).ok()).collect();
            digest::lines_matching(text, &patterns)
        }
        Act::Seen | Act::Pin | Act::Hold | Act::Inputs(_) | Act::Drop | Act::Fold => None,
    }
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

fn about<'a>(fact: &'a Fact, tool: Option<&'a str>) -> About<'a> {
    let command = match fact.subject() {
        Subject::Command(command) => Some(&**command),
        _ => None,
    };
    let content = match (fact.content, fact.tool()) {
        _ if command.is_some_and(|command| command.starts_with("git status")) => Content::GitStatus,
        _ if command.is_some_and(|command| command.starts_with("git log")) => Content::GitLog,
        _ if tool == Some("tree") => Content::Tree,
        _ if matches!(tool, Some("get_repo_map" | "repo_map")) => Content::RepoMap,
        _ if tool == Some("code_structure") => Content::Structure,
        (ContentKind::Code, _) | (ContentKind::Prose | ContentKind::Table, Some(ToolKind::Read)) => {
            Content::File
        }
        (ContentKind::TestLog | ContentKind::BuildLog, _) => Content::Log,
        (ContentKind::Log, _) => Content::Shell,
        (ContentKind::Diff, _) => Content::Diff,
        (ContentKind::Listing, _) => Content::Listing,
        (ContentKind::Hits, _) => Content::Hits,
        (ContentKind::Json, _) => Content::Json,
        (ContentKind::Page, _) => Content::Page,
        (ContentKind::Trace, _) => Content::Trace,
        (ContentKind::Image, _) => Content::Media,
        (ContentKind::Receipt, _) => Content::Other,
        (ContentKind::Empty | ContentKind::Prose | ContentKind::Table, _) => Content::Unknown,
    };
    let ended = match fact.outcome {
        Outcome::Succeeded => Ended::Succeeded,
        Outcome::Failed => Ended::Failed,
        Outcome::Unknown => Ended::Unknown,
    };
    let path = match fact.subject() {
        Subject::File { path, .. } | Subject::Directory { path, .. } => Some(&**path),
        Subject::Command(_) | Subject::Query { .. } | Subject::Url(_) | Subject::Nothing => None,
    };
    About { content, tool, command, path, ended }
}

fn subject(fact: &Fact, modified: bool) -> render::Topic<'_> {
    match fact.subject() {
        Subject::File { path, lines } => render::Topic::File {
            path,
            lines: match lines {
                Lines::Range { first, last: Some(last) } => Some((*first, *last)),
                Lines::All | Lines::Part | Lines::Range { last: None, .. } => None,
            },
            last_access: fact.step,
            modified,
        },
        Subject::Directory { path, .. } => render::Topic::Named(path),
        Subject::Command(command) => render::Topic::Command(command),
        Subject::Query { pattern, .. } => render::Topic::Query(pattern),
        Subject::Url(url) => render::Topic::Named(url),
        Subject::Nothing => render::Topic::Nothing,
    }
}

/// Returns whether a unit is one of calls and results.
pub(super) fn is_exchange(unit: &Unit) -> bool {
    unit.kind == UnitKind::Exchange
}
