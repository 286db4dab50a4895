//! Folding in a plan. Takes verdicts under way, what memory holds for ranges of this conversation, and how full the window is;
//! gives the range that one message stands for, or the summary that is wanted. The message takes the place of the last block that
//! goes: its verdict carries the text, so that memory and store repeat it as they repeat every other verdict. Never undoes a fold,
//! and never folds where too little would be gained.

use std::sync::Arc;

use super::{
    PlanError,
    edits::{entries_gone, is_dropped, removed_blocks, removed_messages},
    units::running_loop,
    work::{Work, is_exchange},
};
use crate::{
    count::Counts,
    facts::Voice,
    files::files,
    history::{BlockId, BlockKind, Format, History, Role, row_of},
    identity::ChainHash,
    json::{encode, narrow, widen},
    memory::FoldContent,
    policy::{Folding, StepAction, StepMoment},
    summary::{
        self, FoldPace, FoldRange, FoldRequest, LEAST_GAIN, LastFold, MayFold, build_ledger, fold_edit,
        folded_of, may_fold, prose_of, rewritten_messages, tells_all,
    },
    units::Tokens,
    verdict::{Decision, Reason, SentVerdict, Verdict},
    wire::Edit,
};

/// A summary is asked for when the window is filled to this share of what a fold waits for, so that it is there in time: from
/// 0.72 to 0.85 of a window, sessions make about ten requests.
const AHEAD: f64 = 0.85;
/// What a fold leaves of the budget, where it can: half, so that the next one is far.
const LEAVES: f64 = 0.5;
/// The least that a folded message counts: its frame and a few lines.
const LEAST: Tokens = Tokens(200);

/// The bytes that stand around the text in a message of any format, at most.
const AROUND: usize = 100;

/// What came of the steps that fold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FoldNeed {
    /// Whether a step would fold now.
    pub(crate) now: bool,
    /// The summary that is wanted, now or for later.
    pub(crate) wanted: Option<FoldRequest>,
    /// The fold that is new in this plan.
    pub(crate) done: Option<LastFold>,
    /// What would be left, where folding cannot help.
    pub(crate) cannot_help: Option<Tokens>,
}

/// The message that stands for a range.
pub(super) struct FoundFold<'a> {
    /// The block whose place it takes.
    pub(super) block: BlockId,
    pub(super) text: &'a Arc<str>,
    messages: usize,
    at: u32,
}

/// Finds the message that stands for a range.
pub(super) fn find_fold(decisions: &[Decision]) -> Option<FoundFold<'_>> {
    decisions.iter().rev().find_map(|decision| match &decision.verdict {
        Verdict::Fold { text: Some(text), messages, at, .. } => {
            Some(FoundFold { block: decision.block, text, messages: widen(*messages), at: *at })
        }
        _ => None,
    })
}

/// A range that was folded in an earlier request.
pub(crate) struct SentFold<'a> {
    block: BlockId,
    text: &'a Arc<str>,
    verdict: &'a Verdict,
    /// The first block after it.
    pub(crate) end: BlockId,
}

/// Finds the range of a conversation that was folded before, by what its blocks were sent as.
pub(crate) fn sent_fold<'a>(history: &History, sent: &[Option<&'a SentVerdict>]) -> Option<SentFold<'a>> {
    let mut from_end = sent.iter().enumerate().rev();
    let fold = from_end.find_map(|(number, sent)| match sent.map(SentVerdict::verdict) {
        Some(verdict @ Verdict::Fold { text: Some(text), messages, .. }) => {
            let end = end_of(history, widen(*messages));
            Some(SentFold { block: BlockId(narrow(number)), text, verdict, end })
        }
        _ => None,
    })?;
    (fold.end > fold.block).then_some(fold)
}

fn end_of(history: &History, messages: usize) -> BlockId {
    let all = history.messages();
    BlockId(all.get(messages).map_or(narrow(history.blocks().len()), |entry| entry.first_block))
}

/// Folds again what was folded before; gives the first block after it.
pub(super) fn fold_again(work: &mut Work<'_>) -> Option<BlockId> {
    let context = work.context;
    let fold = sent_fold(work.request.history, context.before.sent.as_slice())?;
    let went = |id: &BlockId| {
        *id == fold.block || context.sent_before(*id).is_some_and(|sent| sent.verdict().leaves_nothing())
    };
    let goes: Vec<BlockId> = (0..=fold.block.0).map(BlockId).filter(went).collect();
    // A summary that stands for a block that must be seen is given up: what it stood for is whole again.
    if goes.iter().any(|id| work.is_wanted_whole(*id)) {
        return None;
    }
    let tokens = work.memo.count_text(work.request.counter, fold.text);
    work.fold_away(&goes, tokens, fold.verdict);
    Some(fold.end)
}

/// Keeps the beginning of the running tool loop after a folded message: where the model thinks, it must begin with that.
pub(super) fn protect_loop(work: &mut Work<'_>) {
    let Some(fold) =
        find_fold(work.draft.decisions.as_slice()).map(|fold| end_of(work.request.history, fold.messages))
    else {
        return;
    };
    if work.request.history.format() != Format::Anthropic || !is_in_loop(work, fold) {
        return;
    }
    let first = first_left(work, fold);
    work.draft.kept_units.extend(first.map(narrow));
}

/// Tells whether the running tool loop goes on after a block in it.
fn is_in_loop(work: &Work<'_>, end: BlockId) -> bool {
    let start =
        work.request.units.all_units().get(running_loop(work.request.units.all_units(), work.request.facts));
    start.and_then(|unit| unit.blocks.first()).is_some_and(|first| *first < end)
}

/// Returns the first exchange after a block that is still sent.
fn first_left(work: &Work<'_>, end: BlockId) -> Option<usize> {
    let behind = |unit: &super::MessageUnit| unit.blocks.first().is_some_and(|first| *first >= end);
    work.request
        .units
        .all_units()
        .iter()
        .position(|unit| is_exchange(unit) && behind(unit) && unit.blocks.iter().any(|id| !work.is_out(*id)))
}

/// Takes a step that folds.
pub(super) fn fold_step(work: &mut Work<'_>, when: StepMoment) {
    let context = work.context;
    let full = |share: f64| context.budget.is_some_and(|budget| work.draft.total > budget.scale(share));
    let (now, soon) = match when {
        StepMoment::Over { share, .. } => (full(share), full(share * AHEAD)),
        StepMoment::Cold => (context.cache.cold, context.cache.cold),
        StepMoment::Birth | StepMoment::Pays | StepMoment::Always => (true, true),
    };
    work.draft.fold.now |= now;
    let Some(budget) = context.budget.filter(|_| soon && context.folding != Folding::Off) else { return };
    let tokens: Vec<Tokens> = work.draft.sent_tokens.iter().copied().collect();
    let sizes =
        summary::fold_sizes_for(work.request.history, work.request.facts, &tokens, work.draft.total, budget);
    let fixed = budget - (sizes.room + sizes.tail);
    let asked = FoldLimits {
        budget,
        room: sizes.room,
        tail: budget.scale(LEAVES) - fixed - sizes.room,
        behind: find_fold(work.draft.decisions.as_slice()).map_or(0, |fold| fold.messages),
    };
    let given = remembered_fold(work).filter(|(range, _)| range.messages() > asked.behind);
    let longest = given.as_ref().map_or(asked.behind, |(range, _)| range.messages());
    if now {
        let own = (context.folding == Folding::Ledger).then(|| choose_range(work, &asked, &tokens)).flatten();
        for (range, summary) in given.clone().into_iter().chain(own.map(|range| (range, None))) {
            let whole = in_place(work, &asked, &range, &tokens);
            for range in whole.into_iter().chain([range]) {
                if try_fold(work, &asked, &range, summary.as_deref()) {
                    return;
                }
            }
        }
    }
    // A summary that has no room is not worth asking for.
    if (given.is_some() && !now) || asked.room < LEAST {
        return;
    }
    let Some(range) = choose_range(work, &asked, &tokens).filter(|range| range.messages() > longest) else {
        return;
    };
    let going: Tokens = range.folded_blocks().map(|id| work.tokens_now(id)).sum();
    let stands: Tokens = range.folded_blocks().map(|id| work.tokens(id)).sum();
    let earlier = find_fold(work.draft.decisions.as_slice())
        .and_then(|fold| Some((prose_of(fold.text)?.into(), fold.messages)));
    let wanted = FoldRequest { earlier, ..FoldRequest::new(range, stands, asked.room) };
    // The summary, and a ledger of the least size: what the message comes to is known when it is written.
    let left = work.draft.total - going + wanted.target + LEAST;
    if fold_pace(work, &asked, &wanted.range, left) == MayFold::Fold {
        work.draft.fold.wanted = Some(wanted);
    }
}

/// Takes the steps that fold once more, unless one did or none can fold by itself; tells whether one does now.
pub(super) fn fold_what_is_left(work: &mut Work<'_>) -> bool {
    let context = work.context;
    let folds = context.policy.steps.iter().filter(|step| step.act == StepAction::Fold);
    for step in folds.filter(|_| context.folding == Folding::Ledger) {
        if work.draft.fold.done.is_some() {
            return false;
        }
        fold_step(work, step.when);
    }
    work.draft.fold.done.is_some()
}

/// How much may be folded, and how much it may become.
struct FoldLimits {
    budget: Tokens,
    room: Tokens,
    tail: Tokens,
    /// How many messages were folded before.
    behind: usize,
}

/// Returns the longest range of this conversation for which memory holds something, and the summary.
fn remembered_fold(work: &Work<'_>) -> Option<(FoldRange, Option<Arc<str>>)> {
    let mut known = work.context.before.chain.iter().enumerate().rev();
    let held = |(number, hash): (usize, &ChainHash)| {
        Some((BlockId(narrow(number)), work.context.before.memory.summary_for(*hash)?))
    };
    let (last, held) = known.find_map(held)?;
    let range =
        FoldRange::ending_with(work.request.history, work.request.facts, last, work.context.before.chain)?;
    let range = is_cut_allowed(work, range.messages()).then(|| keep_pinned(work, range))?;
    Some(match held {
        FoldContent::Summary(text) => (range, Some(Arc::clone(text))),
        FoldContent::LedgerAlone => (range, None),
    })
}

fn choose_range(work: &Work<'_>, asked: &FoldLimits, tokens: &[Tokens]) -> Option<FoldRange> {
    let may = |cut: usize| cut > asked.behind && is_cut_allowed(work, cut);
    let range = summary::choose_range(
        work.request.history, work.request.facts, tokens, asked.tail, work.context.before.chain, &may,
    )?;
    Some(keep_pinned(work, range))
}

/// Returns the range without the messages of the user that are too long to be quoted, where a fold reaches its end with
/// them in their place.
fn in_place(work: &Work<'_>, asked: &FoldLimits, range: &FoldRange, tokens: &[Tokens]) -> Option<FoldRange> {
    let whole = range.clone().keeping_long_words(work.request.facts, tokens, asked.room);
    let going: Tokens = whole.folded_blocks().map(|id| work.tokens_now(id)).sum();
    let left = work.draft.total - going + asked.room;
    (whole != *range && left <= asked.budget.scale(LEAVES)).then_some(whole)
}

/// What a step pinned stays where it is.
fn keep_pinned(work: &Work<'_>, range: FoldRange) -> FoldRange {
    range.with_kept(|id| work.is_firm(id))
}

/// Tells whether a cut leaves alone what was pinned, and a running loop that begins as it must.
fn is_cut_allowed(work: &Work<'_>, cut: usize) -> bool {
    let end = end_of(work.request.history, cut);
    let said = |id: BlockId| {
        let fact = &work.request.facts[id];
        fact.role == Role::User && fact.acts_as == BlockKind::Text
    };
    let first = work.request.history.messages().first().map_or(0, |entry| entry.first_block);
    let pinned = (first..end.0).map(BlockId).any(|id| work.is_firm(id) && !said(id));
    !pinned && begins_well(work, end)
}

/// Exchanges that went before may have stood at the beginning of what is left of the running loop.
fn begins_well(work: &Work<'_>, end: BlockId) -> bool {
    if work.request.history.format() != Format::Anthropic || !is_in_loop(work, end) {
        return true;
    }
    let behind = |unit: &super::MessageUnit| unit.blocks.first().is_some_and(|first| *first >= end);
    let next = work.request.units.all_units().iter().position(|unit| is_exchange(unit) && behind(unit));
    let left = first_left(work, end);
    let thinks = left.and_then(|index| work.request.units.all_units().get(index)?.blocks.first());
    next == left
        || thinks
            .is_some_and(|id| work.request.history[*id].kind == BlockKind::Reasoning && !work.is_out(*id))
}

/// Tells whether to fold a range where the request then counts `left`.
fn fold_pace(work: &Work<'_>, asked: &FoldLimits, range: &FoldRange, left: Tokens) -> MayFold {
    let blocks = range.end().0..narrow(work.draft.decisions.len());
    let behind: Tokens = blocks.map(|number| work.tokens_now(BlockId(number))).sum();
    let told = |at| LastFold { step: at, before: Tokens::ZERO, after: Tokens::ZERO, said: false };
    let before = find_fold(work.draft.decisions.as_slice()).map(|fold| told(fold.at));
    may_fold(&FoldPace {
        budget: asked.budget,
        now: work.draft.total,
        reported: work.context.before.memory.reported_input(),
        left,
        // Blocks after a fold can still be hidden by other steps.
        floor: left - (behind - asked.tail),
        step: current_step(work),
        last: work.context.before.memory.last_fold().or(before),
    })
}

fn current_step(work: &Work<'_>) -> u32 {
    work.request.history.messages().last().map_or(0, |entry| entry.step)
}

/// Folds a range where that helps; tells whether it did.
fn try_fold(work: &mut Work<'_>, asked: &FoldLimits, range: &FoldRange, summary: Option<&str>) -> bool {
    let goes: Vec<BlockId> =
        (0..range.end().0).map(BlockId).filter(|id| range.folds(*id) || work.is_out(*id)).collect();
    // An earlier summary alone is not summarized again.
    let is_new = |id: BlockId| work.request.facts[id].voice != Some(Voice::Summary);
    if !range.folded_blocks().any(is_new) {
        return false;
    }
    let going: Tokens = goes.iter().map(|id| work.tokens_now(*id)).sum();
    let stands: Tokens = goes.iter().map(|id| work.tokens(*id)).sum();
    // What it comes to at best is known before anything is written.
    let best = work.draft.total - going + LEAST;
    match fold_pace(work, asked, range, best) {
        MayFold::Fold => {}
        MayFold::SayOnceAndStop => {
            work.draft.fold.cannot_help = Some(best);
            return false;
        }
        MayFold::TooSoon => return false,
    }
    let ledger = build_ledger(
        work.request.history,
        work.request.facts,
        &files(work.request.history, work.request.facts),
        range,
    );
    let earlier = find_fold(work.draft.decisions.as_slice()).and_then(|fold| prose_of(fold.text));
    let prose = summary.or(earlier.as_deref());
    // What it comes to with all its room may be too much for the fold to pay: then it says less, but nothing that must be said.
    let pays = going - asked.budget.scale(LEAST_GAIN);
    let written = [asked.room, asked.room.min(pays)].into_iter().find_map(|room| {
        let text = folded_of(
            &ledger,
            range.messages(),
            stands,
            prose,
            room,
            work.request.counter,
            work.context.recall,
        )
        .text;
        let tokens = work.memo.count_text(work.request.counter, &text);
        let helps = fold_pace(work, asked, range, work.draft.total - going + tokens) == MayFold::Fold;
        let is_whole = room == asked.room || tells_all(&ledger, &text);
        (helps && is_whole && is_smaller(work, &goes, &text)).then_some((text, tokens))
    });
    let Some((text, tokens)) = written else { return false };
    let at = current_step(work);
    let before = work
        .context
        .before
        .memory
        .reported_input()
        .map_or(work.draft.total, |reported| reported.max(work.draft.total));
    let reason = Reason::Folded { messages: narrow(range.messages()), through: ledger.last_step, at };
    work.fold_away(&goes, tokens, &Verdict::hiding(Some(text.into()), reason));
    protect_loop(work);
    work.draft.fold.done = Some(LastFold { step: at, before, after: work.draft.total, said: false });
    work.draft.fold.cannot_help = None;
    true
}

/// Tells whether a text has fewer bytes than what it stands for.
fn is_smaller(work: &Work<'_>, goes: &[BlockId], text: &str) -> bool {
    let mut json = Vec::with_capacity(text.len() + 2);
    encode(text, &mut json);
    let sent = goes.iter().filter(|id| !work.is_out(**id)).map(|id| &work.request.history[*id]);
    json.len() + AROUND < sent.map(|block| block.span.len()).sum()
}

impl Work<'_> {
    /// Puts a message in place of blocks, at the last of them.
    fn fold_away(&mut self, goes: &[BlockId], tokens: Tokens, fold: &Verdict) {
        let (Some(last), Some(text), Some(reason)) = (goes.last(), fold.text(), fold.reason()) else {
            return;
        };
        let inside = Verdict::hiding(None, reason);
        for id in goes {
            if !self.is_out(*id) {
                self.hide_block(*id, inside.clone(), Tokens::ZERO);
            }
            // What went before, or stood for an earlier fold, is in this one now.
            self.draft.decisions[*id].verdict = inside.clone();
            self.draft.decided_by[*id] = Some(self.draft.pass);
            self.draft.sent_tokens[*id] = Tokens::ZERO;
        }
        self.draft.decisions[*last].verdict = fold.clone();
        self.draft.sent_tokens[*last] = tokens;
        if let Some(visible) = &mut self.draft.visible {
            visible.add_text(text);
        }
        self.draft.is_folded = true;
        self.recount_folded();
    }

    /// Counts again what is sent, where a part of it is folded.
    pub(super) fn recount_folded(&mut self) {
        if find_fold(self.draft.decisions.as_slice()).is_none() {
            return;
        }
        let in_blocks: Tokens = self.draft.sent_tokens.iter().copied().sum();
        self.draft.total = in_blocks
            + count_frame(self.request.history, self.request.counts, self.draft.decisions.as_slice());
    }
}

/// Counts what the format adds around what is sent.
pub(super) fn count_frame(history: &History, counts: &Counts, decisions: &[Decision]) -> Tokens {
    let per_entry = counts.per_entry();
    let goes = |id: BlockId| is_dropped(id.0, decisions);
    let anew = find_fold(decisions).and_then(|fold| rewritten_messages(history, fold.messages, &goes));
    let Some(anew) = anew else {
        return counts.frame() - per_entry.times(entries_gone(history.messages(), decisions));
    };
    let behind = history.messages().get(anew.messages.end..).unwrap_or_default();
    counts.frame() + per_entry.times(anew.become_messages)
        - per_entry.times(anew.messages.len() + entries_gone(behind, decisions))
}

/// Returns the edits that turn the request into what decisions say, where a part of it is folded. `inside` are the edits of the
/// blocks that are shown as another text.
pub(super) fn fold_edits(
    history: &History,
    decisions: &[Decision],
    fold: &FoundFold<'_>,
    inside: Vec<Edit>,
) -> Vec<Edit> {
    let goes = |id: BlockId| is_dropped(id.0, decisions);
    let Some((edit, anew)) = fold_edit(history, fold.messages, &goes, fold.text, &inside) else {
        return inside;
    };
    let is_outside =
        |other: &Edit| other.span.end() <= edit.span.start() || other.span.start() >= edit.span.end();
    let mut edits: Vec<Edit> = inside.into_iter().filter(is_outside).collect();
    let behind = history.messages().get(anew.messages.end..).unwrap_or_default();
    edits.extend(removed_messages(behind, Some(edit.span), decisions));
    edits.extend(removed_blocks(history, behind, decisions));
    edits.push(edit);
    edits
}

/// A call is folded with its result.
pub(super) fn check_fold(history: &History, decisions: &[Decision]) -> Result<(), PlanError> {
    for decision in decisions.iter().filter(|decision| decision.verdict.is_fold()) {
        let partner = history[decision.block].partner;
        let left = partner.filter(|id| !row_of(decisions, *id).verdict.is_gone());
        if let Some(partner) = left {
            return Err(PlanError::Torn(decision.block.0, partner.0));
        }
    }
    Ok(())
}
