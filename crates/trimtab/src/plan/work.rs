//! Verdicts under way. Takes one wish after the other; gives, each time, whether it was granted: a block is hidden only
//! where the protocol allows it and the request gets smaller. Never undoes what was decided before.

use super::{Decision, Reason, Unit, UnitKind, Verdict, edits::shortened, may_shorten, unit_of_block};
use crate::{
    count::{Counter, Counts, Memo, Tokens},
    digest::{self, About, Content, Ended, Piece, Text},
    facts::{ContentKind, Fact, Facts, Lines, Outcome, Subject, ToolKind, Voice},
    history::{BlockId, BlockKind, History, PartKind},
    json::widen,
    policy::{Act, Policy, Style},
    recall::block_handle,
    render::{self, NoteContext},
};

/// Everything a policy decides with, and what it has decided.
pub(super) struct Work<'a> {
    pub(super) history: &'a History,
    pub(super) facts: &'a Facts,
    pub(super) counts: &'a Counts,
    pub(super) counter: Counter,
    pub(super) memo: &'a mut Memo,
    pub(super) units: Vec<Unit>,
    unit_of: Vec<u32>,
    pub(super) decisions: Vec<Decision>,
    pinned: Vec<bool>,
    pub(super) total: Tokens,
    style: Style,
    /// How many of the latest steps count as recent in the classes.
    pub(super) recent: u32,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        history: &'a History,
        facts: &'a Facts,
        counts: &'a Counts,
        counter: Counter,
        memo: &'a mut Memo,
        policy: &Policy,
    ) -> Work<'a> {
        let blocks = history.blocks().len();
        let units = super::units(history, facts);
        let unit_of = unit_of_block(&units, blocks);
        let keep =
            |number| Decision { block: BlockId(number), verdict: Verdict::Keep, reason: None, handle: None };
        let decisions = (0..crate::json::narrow(blocks)).map(keep).collect();
        let pinned =
            (0..crate::json::narrow(blocks)).map(|number| is_sacred(facts, BlockId(number))).collect();
        Work {
            history,
            facts,
            counts,
            counter,
            memo,
            units,
            unit_of,
            decisions,
            pinned,
            total: counts.total(),
            style: policy.style,
            recent: policy.recent_steps,
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
        *self.verdict(id) != Verdict::Drop && self.unit(id).is_some_and(|unit| unit.may_go)
    }

    pub(super) fn is_pinned(&self, id: BlockId) -> bool {
        self.pinned.get(widen(id.0)).copied().unwrap_or(true)
    }

    pub(super) fn pin(&mut self, id: BlockId) {
        if let Some(pinned) = self.pinned.get_mut(widen(id.0)) {
            *pinned = true;
        }
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
    pub(super) fn repeat(&mut self, id: BlockId, text: &str, reason: &Reason) {
        if !self.is_open(id) || !may_shorten(self.history, id) {
            return;
        }
        let tokens = self.count_as(id, text);
        if tokens <= self.tokens(id) {
            self.hide(id, Verdict::Shorten { text: text.to_owned(), tokens }, reason);
        }
    }

    /// Lets a whole unit go; blocks of it that were shortened before go as well.
    pub(super) fn drop_unit(&mut self, id: BlockId, reason: &Reason) -> bool {
        let Some(unit) = self.unit(id).filter(|unit| unit.may_go) else { return false };
        let blocks = unit.blocks.clone();
        let pinned = |id: &BlockId| self.is_pinned(*id) || *self.verdict(*id) == Verdict::Drop;
        if blocks.iter().any(pinned) {
            return false;
        }
        for id in blocks {
            self.hide(id, Verdict::Drop, reason);
        }
        true
    }

    fn hide(&mut self, id: BlockId, verdict: Verdict, reason: &Reason) {
        let handle = self.handle(id);
        let before = self.tokens_now(id);
        if let Some(decision) = self.decisions.get_mut(widen(id.0)) {
            decision.verdict = verdict;
            decision.reason = Some(reason.clone());
            decision.handle = Some(handle);
        }
        self.total = self.total - before + self.tokens_now(id);
        if *self.verdict(id) == Verdict::Drop {
            self.total = super::tokens_after(self.history, self.counts, &self.decisions);
        }
    }

    fn tokens_now(&self, id: BlockId) -> Tokens {
        match self.verdict(id) {
            Verdict::Keep => self.tokens(id),
            Verdict::Shorten { tokens, .. } => *tokens,
            Verdict::Drop => Tokens::ZERO,
        }
    }

    fn handle(&self, id: BlockId) -> String {
        self.history.block(id).map(|block| block_handle(self.history, block)).unwrap_or_default()
    }

    /// Returns a block's text shortened as a step says, and what it counts; nothing where that is not smaller.
    fn shortened(&mut self, id: BlockId, act: &Act, reason: &Reason) -> Option<(String, Tokens)> {
        if !self.is_open(id) || !may_shorten(self.history, id) {
            return None;
        }
        let block = self.history.block(id)?;
        let fact = self.facts.row(id)?;
        let text = self.history.block_text(block);
        let tool = self.history.tool_name(block);
        let about = about(fact, tool.as_deref());
        let pieces = pieces(self.history, id, &Text::new(&text, about), act)?;
        let handle = self.handle(id);
        let context = NoteContext {
            tool: tool.as_deref(),
            subject: subject(self.facts, fact),
            step: fact.step,
            tokens: Some(self.tokens(id).0),
            reason: reason.words(),
            handle: &handle,
            style: match self.style {
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
        let edit = shortened(self.history, block, &shorter)?;
        let smaller = edit.with.len() < edit.span.len() && tokens < self.tokens(id);
        smaller.then_some((shorter, tokens))
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

fn pieces(history: &History, id: BlockId, text: &Text<'_>, act: &Act) -> Option<Vec<Piece>> {
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

fn subject<'a>(facts: &Facts, fact: &'a Fact) -> render::Topic<'a> {
    match fact.subject() {
        Subject::File { path, lines } => render::Topic::File {
            path,
            lines: match lines {
                Lines::Range { first, last: Some(last) } => Some((*first, *last)),
                Lines::All | Lines::Part | Lines::Range { last: None, .. } => None,
            },
            last_access: fact.step,
            modified: facts.is_modified(path),
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
