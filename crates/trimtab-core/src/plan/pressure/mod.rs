//! Making room under a budget: one decision, at the request that would exceed it, about how much to hide, from which place on, and
//! what. `plan` takes it for steps that say `make-room`. [`make_room`] collects what may be hidden as plain values, `choose` picks,
//! and what was picked is hidden here; `need` says how much each block is expected to be needed.

mod choose;
mod need;

pub use need::BlockFeatures;
pub(super) use need::BlockMoment;
use need::Features;

use std::collections::HashMap;

use super::{
    UnitKind,
    cost::{request_cost, tokens_anew},
    may_shorten,
    paying_cut::may_cost,
    units::running_loop,
    work::{Work, is_exchange},
};
use crate::{
    digest::{InputShortening, LONGEST, LeafSet},
    facts::{ResultSort, ToolKind},
    history::{BlockId, BlockKind, Format, Role},
    json::{narrow, widen},
    policy::StepAction,
    units::Tokens,
    verdict::{Reason, Verdict},
};
use choose::{Beginning, Going, HideablePart, Room, Stakes, Take, choose, choose_ahead};

/// What a note that takes the place of a result counts, about.
const NOTE: f64 = 75.0;

/// Hiding that frees less is not worth a note.
const LEAST_FREED: f64 = 40.0;

/// From this share of the budget on, counted untouched, what is hardly needed is hidden ahead.
const NEAR: f64 = 0.5;

/// Requests that are expected to profit from room, as a share of those made so far, and the least (a study over recorded sessions).
const EXPECTED_SHARE: f64 = 0.3;
const LEAST_REQUESTS: f64 = 5.0;

/// What may be hidden, with the blocks that the numbers mean.
struct Hideable {
    room: Room,
    parts: Vec<BlockId>,
    /// The first block of each exchange.
    exchanges: Vec<BlockId>,
}

/// Hides until the request has at most `goal` tokens, where it has more than `budget`; below that, what is hardly needed where it pays.
pub(super) fn make_room(work: &mut Work<'_>, budget: Tokens, goal: Tokens) {
    let knows_cache = !(work.context.cache.cold || work.context.cache.first_look);
    if knows_cache && work.draft.total <= budget {
        return hide_ahead(work, budget);
    }
    let beginnings: &[Beginning] =
        if knows_cache { &[Beginning::Cheapest, Beginning::Anywhere] } else { &[Beginning::Anywhere] };
    let stakes = stakes(work, budget);
    for beginning in beginnings {
        if work.draft.total <= budget {
            return;
        }
        let found = find(work, goal);
        let cut = choose(&found.room, stakes, *beginning);
        for take in cut.takes {
            if work.draft.total <= goal {
                break;
            }
            hide(work, &found, take);
        }
        cut.riding.into_iter().for_each(|take| hide(work, &found, take));
    }
}

fn stakes(work: &Work<'_>, budget: Tokens) -> Stakes {
    Stakes {
        prices: work.context.cache.prices,
        request: (budget + work.context.cache.unseen).to_float(),
        expected: (EXPECTED_SHARE * f64::from(work.context.before.memory.request_count()))
            .max(LEAST_REQUESTS),
        miss: work.context.policy.needs.weight("cost", "miss"),
        ride: work.context.policy.needs.weight("cost", "ride"),
    }
}

/// Hides what is hardly needed before there is need for room, where that pays.
fn hide_ahead(work: &mut Work<'_>, budget: Tokens) {
    if work.request.counts.total() <= budget.scale(NEAR) {
        return;
    }
    let found = find(work, work.draft.total);
    let may_cost = may_cost(work, request_cost(work));
    for take in choose_ahead(&found.room, stakes(work, budget), may_cost) {
        hide(work, &found, take);
    }
}

fn hide(work: &mut Work<'_>, found: &Hideable, take: Take) {
    match take {
        Take::Part(number) => {
            let Some(id) = found.parts.get(number).copied() else { return };
            let reason = reason(work, id);
            match work.request.history[id].kind {
                BlockKind::Call => {
                    work.apply_act(id, &StepAction::Inputs(InputShortening::All), &reason);
                }
                BlockKind::Reasoning => work.drop_alone(id, &Reason::EarlierThought),
                _ => put_note(work, id, &reason),
            }
        }
        Take::Exchange(number) => {
            let first = found.exchanges.get(number).copied();
            first.into_iter().for_each(|id| {
                work.drop_unit(id, &Reason::OverBudget);
            });
        }
    }
}

/// Puts a note in the place of a result, or of what is left of it.
fn put_note(work: &mut Work<'_>, id: BlockId, reason: &Reason) {
    let note =
        work.text_for(id, &StepAction::Clear, reason).filter(|(_, tokens)| *tokens < work.tokens_now(id));
    if let Some(note) = note {
        work.hide_behind(id, note, reason.clone());
    }
}

fn reason(work: &Work<'_>, id: BlockId) -> Reason {
    let is_read = work
        .request
        .facts
        .row(id)
        .is_some_and(|fact| fact.acts_as == BlockKind::Result && fact.tool() == Some(ToolKind::Read));
    match work.request.index.changed_since(id).filter(|_| is_read) {
        Some((first, _)) => Reason::Stale { edit: first.step },
        None => Reason::OverBudget,
    }
}

/// Finds all that may be hidden: results and arguments of calls that the model has seen, its reasoning in earlier turns, and whole
/// exchanges.
fn find(work: &Work<'_>, goal: Tokens) -> Hideable {
    let mut found = Hideable { room: Room::default(), parts: Vec::new(), exchanges: Vec::new() };
    let end = BlockId(narrow(work.draft.decisions.len()));
    let moment = BlockMoment { facts: work.request.facts, index: work.request.index, end, decisions: None };
    let latest = work.request.units.all_units().iter().rposition(is_exchange);
    let mut part_of: HashMap<BlockId, usize> = HashMap::new();
    let is_thought = |id: BlockId| work.request.history[id].kind == BlockKind::Reasoning;
    let thoughts_end = end_of_earlier_thoughts(work);
    for (number, unit) in work.request.units.all_units().iter().enumerate() {
        for id in unit.blocks.iter().copied().filter(|_| Some(number) != latest) {
            let weighed = if is_thought(id) {
                // Nothing that an agent copies or edits stands in its reasoning alone.
                may_forget(work, id, thoughts_end).then(|| (work.tokens_now(id).to_float(), 0.0))
            } else {
                let need = |features: Features| work.context.policy.needs.product(&features);
                let features = moment.features(id, work.latest_view(id), work.tokens(id));
                frees(work, id).zip(features.map(need))
            };
            let Some((frees, need)) = weighed else { continue };
            part_of.insert(id, found.parts.len());
            found.parts.push(id);
            found.room.parts.push(HideablePart { place: widen(id.0), frees, need, first: Vec::new() });
        }
    }
    let views = views(work);
    for (number, id) in found.parts.iter().enumerate() {
        let is_view = work
            .request
            .index
            .files(*id)
            .iter()
            .any(|file| views.get(file).is_some_and(|of| of.contains(id)));
        let older = older_views(work, &views, *id).filter(|_| is_view);
        let first: Vec<usize> = older.filter_map(|older| part_of.get(&older).copied()).collect();
        found.room.parts.get_mut(number).into_iter().for_each(|part| part.first.clone_from(&first));
    }
    for (number, unit) in work.request.units.all_units().iter().enumerate() {
        let Some(first) = unit.blocks.first().filter(|_| unit.kind == UnitKind::Exchange) else { continue };
        let stays = |id: &BlockId| {
            let is_out = work.is_out(*id) && !work.verdict_of(*id).goes_alone();
            // Without the step that moved to another folder, nobody knows where later commands ran.
            let is_left =
                work.is_pinned(*id) || work.is_held(*id) || is_out || work.request.facts.names_folder(*id);
            is_left || work.shows_unseen(*id) || work.is_fresh_recall(*id) || work.is_wanted_whole(*id)
        };
        if !unit.may_go || Some(number) == latest || unit.blocks.iter().any(stays) {
            continue;
        }
        let tokens: Tokens = unit.blocks.iter().map(|id| tokens_to_weigh(work, *id)).sum();
        let is_recent =
            work.request.facts.age(*first).is_none_or(|age| age <= work.context.policy.recent_steps);
        let older = unit.blocks.iter().flat_map(|id| older_views(work, &views, *id));
        let older = older.filter(|id| !unit.blocks.contains(id));
        found.exchanges.push(*first);
        found.room.exchanges.push(Going {
            place: widen(first.0),
            frees: tokens.to_float(),
            need: work.context.policy.needs.weight("record", if is_recent { "recent" } else { "old" }),
            parts: unit.blocks.iter().filter_map(|id| part_of.get(id).copied()).collect(),
            first: older.filter_map(|id| part_of.get(&id).copied()).collect(),
        });
    }
    found.room.cached_after = tokens_anew(work).iter().map(|tokens| tokens.to_float()).collect();
    let mut before = Tokens::ZERO;
    for number in 0..end.0 {
        found.room.before.push(before.to_float());
        before += work.tokens_now(BlockId(number));
    }
    found.room.excess = (work.draft.total - goal).to_float();
    found
}

/// Tells whether a block was only shortened for its size, and in this request: what was sent so is sent so again.
fn is_capped(work: &Work<'_>, id: BlockId) -> bool {
    let is_too_long = matches!(work.verdict_of(id), Verdict::Shorten { reason: Reason::TooLong, .. });
    is_too_long && !work.is_pinned(id) && !work.context.was_sent(id)
}

/// Returns the tokens by which a block is weighed: of one that was shortened for its size, those that it came with. How far it was
/// shortened depends on the budget, and what is hidden first must not.
fn tokens_to_weigh(work: &Work<'_>, id: BlockId) -> Tokens {
    if is_capped(work, id) { work.tokens(id) } else { work.tokens_now(id) }
}

/// Returns the first block after the reasoning that may go alone: a running tool loop keeps its reasoning, and so does the latest answer.
fn end_of_earlier_thoughts(work: &Work<'_>) -> BlockId {
    let units = work.request.units.all_units();
    let in_loop = units.iter().skip(running_loop(units, work.request.facts));
    let first = in_loop.flat_map(|unit| unit.blocks.first()).min().copied();
    let latest = work.request.history.messages().iter().rfind(|entry| entry.role == Role::Assistant);
    let ends = [first, latest.map(|entry| entry.first_block).map(BlockId)];
    ends.into_iter().flatten().min().unwrap_or(BlockId(0))
}

/// Tells whether reasoning of an earlier turn may go while what it led to stays. Only Anthropic's format allows that, and only models
/// that bind no reasoning to what precedes it.
fn may_forget(work: &Work<'_>, id: BlockId, end: BlockId) -> bool {
    let history = work.request.history;
    let stays = history.format() != Format::Anthropic || work.context.cache.binds_reasoning || id >= end;
    if stays || work.is_out(id) || work.is_pinned(id) || work.is_held(id) {
        return false;
    }
    let entry = history.entry_of(&history[id]);
    let others = entry.map(|entry| entry.first_block..entry.first_block + entry.blocks);
    let is_left = |other: BlockId| history[other].kind != BlockKind::Reasoning && !work.is_out(other);
    others.into_iter().flatten().map(BlockId).any(is_left)
}

/// Returns how many tokens hiding a block frees, about; nothing for what may not be hidden or is not worth it.
fn frees(work: &Work<'_>, id: BlockId) -> Option<f64> {
    let now = tokens_to_weigh(work, id);
    let block = work.request.history.block(id)?;
    let fact = work.request.facts.row(id)?;
    let is_open = (work.may_be_names(id) || is_capped(work, id)) && may_shorten(work.request.history, id);
    if !is_open || work.shows_unseen(id) || work.is_fresh_recall(id) || work.is_wanted_whole(id) {
        return None;
    }
    match (block.kind, fact.acts_as) {
        (BlockKind::Call, _) => {
            let is_recent =
                work.request.facts.age(id).is_none_or(|age| age <= work.context.policy.recent_steps);
            if is_recent || work.request.facts.names_folder(id) || !work.context.policy.inputs_under_pressure
            {
                return None;
            }
            let long = work.request.index.row(id).leaves.bytes_of(LeafSet::All);
            let bytes = narrow(block.body.len().max(1));
            let notes = f64::from(long) / f64::from(bytes) * now.to_float();
            let most = f64::from(long) / f64::from(narrow(LONGEST));
            Some(notes - NOTE * most.clamp(1.0, 2.0)).filter(|frees| *frees >= LEAST_FREED)
        }
        (_, BlockKind::Result) => Some(now.to_float() - NOTE).filter(|frees| *frees >= LEAST_FREED),
        _ => None,
    }
}

/// Returns the views of each file that are shown, oldest first.
fn views(work: &Work<'_>) -> HashMap<u32, Vec<BlockId>> {
    let mut views: HashMap<u32, Vec<BlockId>> = HashMap::new();
    for id in (0..narrow(work.draft.decisions.len())).map(BlockId) {
        let is_view =
            matches!(work.request.index.row(id).shows, Some(ResultSort::File | ResultSort::ShellFile));
        if is_view && (work.verdict_of(id).shows_all() || work.is_trimmed(id)) {
            work.request.index.files(id).iter().for_each(|file| views.entry(*file).or_default().push(id));
        }
    }
    views
}

/// Returns the shown views of a file that would pass for the newest without a block: the file was changed between them.
fn older_views<'a>(
    work: &'a Work<'_>,
    views: &'a HashMap<u32, Vec<BlockId>>,
    id: BlockId,
) -> impl Iterator<Item = BlockId> + 'a {
    work.request.index.files(id).iter().flat_map(move |file| {
        let older = views.get(file).into_iter().flatten().take_while(move |older| **older < id);
        // What a block changed itself, it changed after the older views.
        let is_stale =
            move |older: &&BlockId| work.request.index.changed_between(*file, **older, BlockId(id.0 + 1));
        older.filter(is_stale).copied()
    })
}
