//! Verdicts under way. Takes one wish after the other; gives, each time, whether it was granted: a block is hidden only
//! where the protocol allows it and the request gets smaller. Never undoes what was decided before.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use super::{
    Decision, Index, Reason, Unit, UnitKind, Verdict, edits::shortened, index::Shows, may_shorten,
    unit_of_block, visible::Visible,
};
use crate::{
    count::{Counter, Counts, Memo, Tokens},
    digest::{self, About, Content, Ended, Piece, Text},
    facts::{ContentKind, Fact, Facts, Lines, Outcome, Subject, ToolKind, Voice},
    history::{BlockId, BlockKind, History, PartKind},
    json::{narrow, widen},
    policy::{Act, Policy, Style},
    recall::block_handle,
    render::{self, NoteContext, handle_of_hash},
    wire::Format,
};

/// The largest share of a block that the names in it may leave of it, and the least tokens they must save: beyond that
/// the block itself is worth more (measured on recorded sessions).
const NAMES_LEAVE_AT_MOST: f64 = 0.85;
const NAMES_SAVE_AT_LEAST: Tokens = Tokens(20);

/// A request with everything that is known about it.
#[derive(Clone, Copy)]
pub(crate) struct Sight<'a> {
    pub(crate) history: &'a History,
    pub(crate) facts: &'a Facts,
    pub(crate) counts: &'a Counts,
    pub(crate) counter: Counter,
    pub(crate) index: &'a Index,
}

/// Texts made for blocks before, by what they were made with: making them again would give the same.
#[derive(Debug, Default)]
pub(crate) struct Made {
    blocks: Vec<Vec<(u64, Shorter)>>,
    /// What texts counted that were sent again.
    repeated: Vec<Option<(Arc<str>, Counter, Tokens)>>,
}

/// A shorter text and what it counts; nothing where there is none.
type Shorter = Option<(Arc<str>, Tokens)>;

impl Made {
    /// Forgets the texts of all but the first blocks.
    pub(crate) fn truncate(&mut self, known: usize) {
        self.blocks.truncate(known);
        self.repeated.truncate(known);
    }

    fn repeated(&self, id: BlockId, text: &Arc<str>, counter: Counter) -> Option<Tokens> {
        let (known, by, tokens) = self.repeated.get(widen(id.0))?.as_ref()?;
        (Arc::ptr_eq(known, text) && *by == counter).then_some(*tokens)
    }

    fn repeat(&mut self, id: BlockId, text: &Arc<str>, counter: Counter, tokens: Tokens) {
        let index = widen(id.0);
        if self.repeated.len() <= index {
            self.repeated.resize(index + 1, None);
        }
        let slot = self.repeated.get_mut(index);
        slot.into_iter().for_each(|slot| *slot = Some((Arc::clone(text), counter, tokens)));
    }

    fn get(&self, id: BlockId, key: u64) -> Option<&Shorter> {
        let made = self.blocks.get(widen(id.0))?;
        made.iter().find(|(known, _)| *known == key).map(|(_, made)| made)
    }

    fn put(&mut self, id: BlockId, key: u64, made: &Shorter) {
        let index = widen(id.0);
        if self.blocks.len() <= index {
            self.blocks.resize_with(index + 1, Vec::new);
        }
        self.blocks.get_mut(index).into_iter().for_each(|of_block| of_block.push((key, made.clone())));
    }
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
    /// Blocks that were pinned by a step: nothing overrides that.
    firm: Vec<bool>,
    pub(super) total: Tokens,
    /// How many blocks of each entry are still sent.
    pub(super) left: Vec<u32>,
    style: Style,
    /// What ages are multiplied by.
    pub(super) ages: f64,
    pub(super) visible: Option<Visible>,
    /// How many of the latest steps count as recent in the classes.
    pub(super) recent: u32,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        sight: Sight<'a>,
        memo: &'a mut Memo,
        made: &'a mut Made,
        policy: &Policy,
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
            firm,
            total,
            left,
            style: policy.style,
            recent: policy.recent_steps,
            ages,
            visible: None,
        }
    }

    pub(super) fn verdict(&self, id: BlockId) -> &Verdict {
        self.decisions.get(widen(id.0)).map_or(&Verdict::Drop, |decision| &decision.verdict)
    }

    /// Tells whether a block may still be hidden.
    pub(super) fn is_open(&self, id: BlockId) -> bool {
        *self.verdict(id) == Verdict::Keep && !self.is_pinned(id)
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
                true
            }
            Act::Drop => self.drop_unit(id, reason),
            Act::Fold => false,
            Act::Digest(_)
            | Act::HeadTail { .. }
            | Act::MiddleOut { .. }
            | Act::HeadTailLines { .. }
            | Act::Matching(_)
            | Act::Names
            | Act::Clear => match self.shortened(id, act, reason) {
                Some((text, tokens)) => {
                    self.hide(id, Verdict::Shorten { text, tokens }, reason);
                    true
                }
                None => false,
            },
        }
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
        let pinned = |id: &BlockId| self.is_pinned(*id) || self.is_out(*id);
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
        let gone = verdict == Verdict::Drop;
        if let Some(visible) = &mut self.visible {
            let block = self.history.block(id);
            let text = block.map(|block| self.history.block_text(block)).unwrap_or_default();
            visible.forget(&text);
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

    pub(super) fn tokens_now(&self, id: BlockId) -> Tokens {
        match self.verdict(id) {
            Verdict::Keep => self.tokens(id),
            Verdict::Shorten { tokens, .. } => *tokens,
            Verdict::Drop => Tokens::ZERO,
        }
    }

    pub(super) fn handle(&self, id: BlockId) -> String {
        let (Some(block), Some(fact)) = (self.history.block(id), self.facts.row(id)) else {
            return String::new();
        };
        let parts = self.history.parts_of(block);
        let is_text = !parts.is_empty() && parts.iter().all(|part| part.kind == PartKind::Text);
        // The facts hold the hash of a block's text: what is only text need not be hashed again.
        if is_text {
            return handle_of_hash(&fact.digest);
        }
        block_handle(self.history, block)
    }

    /// Returns a block's text shortened as a step says, and what it counts; nothing where that is not smaller.
    fn shortened(&mut self, id: BlockId, act: &Act, reason: &Reason) -> Option<(Arc<str>, Tokens)> {
        if !self.is_open(id) || !may_shorten(self.history, id) {
            return None;
        }
        self.text_for(id, act, reason)
    }

    fn text_for(&mut self, id: BlockId, act: &Act, reason: &Reason) -> Option<(Arc<str>, Tokens)> {
        // Which names stand nowhere else depends on what else is hidden: that is made anew.
        if *act == Act::Names {
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
        let text = history.block_text(block);
        let tool = history.tool_name(block);
        let about = about(fact, tool.as_deref());
        let names = if *act == Act::Names { self.names_only_in(&text) } else { Vec::new() };
        let shows = self.index.row(id).and_then(|row| row.shows);
        let pieces = pieces(history, id, &Text::new(&text, about), (act, names, shows))?;
        let handle = self.handle(id);
        let context = NoteContext {
            tool: tool.as_deref(),
            subject: subject(fact, self.index.is_changed(id)),
            step: fact.step,
            tokens: Some(self.tokens(id).0),
            reason: reason.words(),
            handle: &handle,
            style: match style {
                Style::Normal => render::Style::Normal,
                Style::Plain => render::Style::Plain,
            },
        };
        let shorter = if text.is_empty() {
            render::render(&text, &pieces, &context)
        } else {
            render::shorten(&text, &pieces, &context, &|text| self.counter.text(text).0)?
        };
        let tokens = self.count_as(id, &shorter);
        // A content of several parts is replaced as a whole, so its JSON is what must shrink.
        let edit = shortened(history, block, &shorter)?;
        let most = if *act == Act::Names {
            self.tokens(id).scaled(NAMES_LEAVE_AT_MOST).min(self.tokens(id) - NAMES_SAVE_AT_LEAST)
        } else {
            self.tokens(id) - Tokens(1)
        };
        (edit.with.len() < edit.span.len() && tokens <= most).then(|| (shorter.into(), tokens))
    }

    /// Returns the names of a text that stand in nothing else that is sent, in order, each once.
    fn names_only_in(&mut self, text: &str) -> Vec<String> {
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
        self.visible.as_ref().map(|visible| visible.only_in(text)).unwrap_or_default()
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
        // Of a file the ends say nothing, and what looks like an error is source.
        Act::Names if matches!(shows, Some(Shows::File | Shows::ShellFile)) => digest::named(text, names),
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
        Act::Pin | Act::Drop | Act::Fold => None,
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
