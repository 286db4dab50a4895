//! Runs a policy. Takes a request with what is known about it, the memory of what was sent, and the situation; gives a plan.
//! Never looks at the clock: what time it is comes with the situation.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{
    Made, Plan, PlanError,
    candidates::{candidates, leaves, redundancy},
    closing::close,
    cost::{broken, cost, is_same, tokens_anew},
    fold::{FoldNeed, fold, fold_again, protect_loop},
    pays::{CachePrices, Cut, Rates, best_cut},
    pressure::make_room,
    sums::{moments, sums},
    units::{Unit, going_turns, running_loop},
    wishes::Wished,
    work::{NAMES_LEAVE_AT_MOST, NAMES_SAVE_AT_LEAST, Sight, Work, whole},
};
use crate::{
    count::Memo,
    facts::Shows,
    history::{BlockId, BlockKind},
    identity::ChainHash,
    json::{narrow, widen},
    memory::{Cost, Memory, Sent, hidden_anew},
    policy::{Act, Batch, Folding, Markers, Policy, Step, When},
    render::RecallHint,
    units::{Millis, Tokens},
    verdict::{Reason, Verdict},
};

/// What a policy decides in.
pub(crate) struct Situation<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) budget: Option<Tokens>,
    pub(crate) memory: &'a Memory,
    pub(crate) chain: &'a [ChainHash],
    /// What each block was sent as before, by its number.
    pub(crate) sent: Vec<Option<&'a Sent>>,
    /// What blocks were sent as before the client rewrote what stands before them; empty where it did not.
    pub(crate) sent_elsewhere: Vec<Option<&'a Sent>>,
    /// Whether the provider's cache is gone.
    pub(crate) cold: bool,
    /// Whether nothing is known but that the model has answered before: then the cache may hold all of it.
    pub(crate) first_look: bool,
    /// What is paid with every request and does not stand in it.
    pub(crate) unseen: Tokens,
    /// Entries of the cache that were set after this are surely alive: providers do not say that one which is only passed is used.
    pub(crate) alive_after: Millis,
    pub(crate) prices: CachePrices,
    /// The fewest tokens of a request that the provider's cache takes.
    pub(crate) minimum: Tokens,
    /// Whether the model binds its reasoning to everything before it, so that an edit makes all later reasoning invalid.
    pub(crate) bound: bool,
    /// Whether a cache marker may be added where it saves a rewriting.
    pub(crate) markers: Markers,
    /// What becomes of steps that fold.
    pub(crate) folding: Folding,
    /// The blocks that somebody asked for by handle.
    pub(crate) wished: Wished,
    /// How notes say that what is hidden comes back.
    pub(crate) recall: &'a RecallHint,
}

/// How much dearer than the untouched session edits that are to pay may make it while they have not yet paid.
const GUARD: f64 = 1.007;

/// Decides what becomes of every block.
pub(crate) fn plan(
    sight: Sight<'_>,
    memo: &mut Memo,
    made: &mut Made,
    situation: &Situation<'_>,
) -> Result<Plan, PlanError> {
    plan_with(sight, memo, made, situation, Cuts::MayPay)
}

/// Whether a warm cache may be cut.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cuts {
    MayPay,
    /// A cut was tried, and what it hides saves less than it seemed.
    Regretted,
}

fn plan_with(
    sight: Sight<'_>,
    memo: &mut Memo,
    made: &mut Made,
    situation: &Situation<'_>,
    cuts: Cuts,
) -> Result<Plan, PlanError> {
    let ages = if situation.cold { situation.policy.cold_ages } else { 1.0 };
    let mut work = Work::new(sight, memo, made, situation, ages);
    let bound = situation.bound && has_reasoning(&work);
    let steps = &situation.policy.steps;
    let keeps = |step: &&Step| matches!(step.act, Act::Pin | Act::Hold);
    for step in steps.iter().filter(keeps) {
        for (id, reason) in candidates(&work, step) {
            work.apply(id, &step.act, &reason);
        }
    }
    work.pin_wished(&situation.wished);
    repeat(&mut work, situation);
    if bound {
        pin_running_loop(&mut work, situation);
    }
    let mut need = FoldNeed::default();
    let mut cut = None;
    let mut paid = false;
    for step in steps.iter().filter(|step| !keeps(step)) {
        match step.when {
            When::Cold | When::Pays if bound => {}
            // All steps that wait until it pays are taken together: what they rewrite, they rewrite once.
            _ if waits(step, situation) && (paid || cuts == Cuts::Regretted) => {}
            _ if waits(step, situation) => {
                paid = true;
                cut = match take_what_pays(&mut work, situation) {
                    Ok(cut) => cut,
                    Err(Regret) => return plan_with(sight, memo, made, situation, Cuts::Regretted),
                };
            }
            When::Birth | When::Cold | When::Pays | When::Over { .. } | When::Always => {
                take(&mut work, step, situation, &mut need);
            }
        }
    }
    // What closing hides may be what a note points at, and what the note then says may be longer. Each note changes once.
    let floor = loop {
        let before = work.total;
        let floor = situation.budget.and_then(|budget| close(&mut work, situation, budget));
        let same = mend_pointers(&mut work) == Mended::Nothing;
        if !same && situation.cold {
            // With longer notes, what would have left too little for the cache leaves enough.
            for step in steps.iter().filter(|step| step.when == When::Birth) {
                take(&mut work, step, situation, &mut need);
            }
            if paid {
                // On a cold cache nothing is regretted.
                let _ = take_what_pays(&mut work, situation);
            }
        }
        let closed = work.total != before;
        // With less behind its cut, a fold that could not help before closing may help now.
        if same && !(closed && fold_what_is_left(&mut work, situation, &mut need)) {
            break floor;
        }
    };
    if bound {
        drop_unbound(&mut work, situation);
    }
    let cost = cost(&work, situation);
    let broken = broken(&work, situation);
    let moments = moments(&work, situation, cut.as_ref());
    let sums = sums(&work, situation, &moments, cut.as_ref(), broken);
    let shown_again = situation.wished.shown_again(&work, situation);
    let waits_for_loop = is_bound_loop(&work, situation);
    let mut plan = Plan::new(sight.history, sight.counts, &work.units, work.decisions)?;
    plan.chain = situation.chain.into();
    plan.hidden = hidden_anew(sight.history, plan.decisions(), situation.memory, &situation.sent);
    plan.fold = need;
    plan.floor = floor;
    plan.cost = cost;
    plan.broken = broken;
    plan.moments = moments;
    plan.sums = sums;
    plan.leaves_cache_alone = paid && situation.first_look && !situation.cold;
    plan.shown_again = shown_again;
    plan.pinned = situation.wished.pinned().collect();
    plan.undone = if waits_for_loop { Vec::new() } else { situation.wished.done().to_vec() };
    plan.marker = marker(&plan, situation);
    Ok(plan)
}

/// Takes the steps that fold once more, unless one did or none can fold by itself; tells whether one does now.
fn fold_what_is_left(work: &mut Work<'_>, situation: &Situation<'_>, need: &mut FoldNeed) -> bool {
    let folds = situation.policy.steps.iter().filter(|step| step.act == Act::Fold);
    for step in folds.filter(|_| situation.folding == Folding::Ledger) {
        if need.done.is_some() {
            return false;
        }
        fold(work, step.when, situation, need);
    }
    need.done.is_some()
}

/// Says behind which block a marker lets the provider find the part of the request that is as it was: the end of an earlier
/// request before the first block that differs. Without it a provider that looks only a few blocks back finds nothing.
fn marker(plan: &Plan, situation: &Situation<'_>) -> Option<BlockId> {
    let first = widen(plan.broken?.block.0);
    if situation.cold || situation.markers == Markers::AsTheyCame {
        return None;
    }
    // An end that nobody counts on any more may be in the cache all the same, and a marker costs nothing.
    let ends = |hash: &ChainHash| situation.memory.is_end(*hash, Millis(i64::MIN));
    let end = situation.chain.get(..first)?.iter().rposition(ends)?;
    Some(BlockId(narrow(end)))
}

fn has_reasoning(work: &Work<'_>) -> bool {
    work.history.blocks().iter().any(|block| block.kind == BlockKind::Reasoning)
}

/// Tells whether the model has reasoned in the running tool loop, and bound that to everything before it.
fn is_bound_loop(work: &Work<'_>, situation: &Situation<'_>) -> bool {
    let start = running_loop(&work.units, work.facts);
    let mut blocks = work.units.iter().skip(start).flat_map(|unit| &unit.blocks);
    let is_reasoning =
        |id: &BlockId| work.history.block(*id).is_some_and(|block| block.kind == BlockKind::Reasoning);
    situation.bound && blocks.any(is_reasoning)
}

/// Leaves what was sent up to the end of the running tool loop alone: its reasoning can neither stay behind an edit nor go.
fn pin_running_loop(work: &mut Work<'_>, situation: &Situation<'_>) {
    let start = if is_bound_loop(work, situation) { 0 } else { running_loop(&work.units, work.facts) };
    let blocks: Vec<BlockId> = work.units.iter().skip(start).flat_map(|unit| unit.blocks.clone()).collect();
    for id in blocks.into_iter().filter(|id| situation.memory.is_empty() || was_sent(situation, *id)) {
        work.pin(id);
    }
}

/// Lets all reasoning go that stands behind the first edit of what was sent: its signature no longer holds.
fn drop_unbound(work: &mut Work<'_>, situation: &Situation<'_>) {
    let Some(first) = super::cost::first_change(work, situation) else { return };
    let reasoning =
        |id: &BlockId| work.history.block(*id).is_some_and(|block| block.kind == BlockKind::Reasoning);
    let edit = work.facts.row(first).map_or(0, |fact| fact.step);
    let behind: Vec<BlockId> =
        (first.0 + 1..narrow(work.history.blocks().len())).map(BlockId).filter(reasoning).collect();
    for id in behind {
        work.drop_alone(id, &Reason::Unbound { edit });
    }
}

/// Sends again what was sent before as it was sent. What a pointer points at stays in sight while that costs nothing.
fn repeat(work: &mut Work<'_>, situation: &Situation<'_>) {
    let folded = fold_again(work, situation);
    // Where nothing may change, a wish waits.
    let is_bound = is_bound_loop(work, situation);
    let released = if is_bound { BTreeSet::new() } else { situation.wished.released(work, situation) };
    for (index, sent) in situation.sent.iter().enumerate() {
        let id = BlockId(narrow(index));
        // What a summary stood for is whole again where the summary is not in this conversation.
        let in_summary = matches!(
            sent,
            Some(
                Sent::Shortened { reason: Reason::Folded { .. }, .. }
                    | Sent::NotAtAll { reason: Reason::Folded { .. } },
            )
        );
        if in_summary || released.contains(&id) {
            continue;
        }
        match sent {
            Some(Sent::Shortened { text, reason }) => work.repeat(id, text, reason),
            Some(Sent::NotAtAll { reason: reason @ Reason::Unbound { .. } }) => work.drop_alone(id, reason),
            Some(Sent::NotAtAll { reason }) => drop(work.drop_unit(id, reason)),
            Some(Sent::Whole | Sent::WholeAgain) | None => {}
        }
    }
    if situation.bound {
        work.drop_released_reasoning(&released);
    }
    let dropped = |id: &BlockId| {
        let was_dropped =
            |sent: &&Vec<Option<&Sent>>| matches!(sent.get(widen(id.0)), Some(Some(Sent::NotAtAll { .. })));
        !released.contains(id) && [&situation.sent, &situation.sent_elsewhere].iter().any(was_dropped)
    };
    hide_rewritten(work, situation, &released, dropped);
    let gone = |id: &BlockId| !released.contains(id) && (folded.is_some_and(|end| *id < end) || dropped(id));
    let is_gone = |turn: &[&Unit]| turn.iter().all(|unit| unit.blocks.iter().all(gone));
    let whole_turns: Vec<BlockId> = going_turns(&work.units, is_gone)
        .into_iter()
        .flat_map(|turn| turn.into_iter().flat_map(|unit| unit.blocks.clone()))
        .collect();
    for id in whole_turns {
        work.drop_alone(id, &Reason::OverBudget);
    }
    protect_loop(work);
}

/// Tells whether a step waits until what it hides pays for itself. Where the cache is cold, or nothing is known of it, a step that
/// is to be taken at every request is taken at once.
fn waits(step: &Step, situation: &Situation<'_>) -> bool {
    let waits = situation.policy.waits_until_it_pays(step);
    waits && (step.when == When::Pays || !(situation.first_look || situation.cold))
}

/// Hides what was hidden before the client rewrote what stands before it.
fn hide_rewritten(
    work: &mut Work<'_>,
    situation: &Situation<'_>,
    released: &BTreeSet<BlockId>,
    dropped: impl Fn(&BlockId) -> bool,
) {
    for (index, sent) in situation.sent_elsewhere.iter().enumerate() {
        let id = BlockId(narrow(index));
        let in_sight = |work: &Work<'_>, reason: &Reason| {
            let source = work.source(id, reason);
            source.is_some_and(|source| *work.verdict(source) == Verdict::Keep)
        };
        match sent {
            _ if released.contains(&id) => {}
            Some(Sent::Shortened { reason, .. }) if reason.is_pointer() && !in_sight(work, reason) => {}
            Some(Sent::Shortened { text, reason }) => work.repeat(id, text, reason),
            Some(Sent::NotAtAll { reason: reason @ Reason::Unbound { .. } }) => work.drop_alone(id, reason),
            Some(Sent::NotAtAll { reason }) => {
                let whole = work.unit(id).is_some_and(|unit| unit.blocks.iter().all(&dropped));
                if whole {
                    work.drop_unit(id, reason);
                }
            }
            Some(Sent::Whole | Sent::WholeAgain) | None => {}
        }
    }
}

/// Takes one step.
fn take(work: &mut Work<'_>, step: &Step, situation: &Situation<'_>, need: &mut FoldNeed) {
    if step.act == Act::Fold {
        return fold(work, step.when, situation, need);
    }
    if let (Act::MakeRoom { cold }, When::Over { until, .. }, Some(budget)) =
        (&step.act, step.when, situation.budget)
    {
        let share = if situation.cold { *cold } else { until.unwrap_or(1.0) };
        return make_room(work, situation, budget, budget.scaled(share));
    }
    let until = match (step.when, situation.budget) {
        (When::Over { .. }, None) => return,
        (When::Over { share, until }, Some(budget)) => {
            if work.total <= budget.scaled(share) {
                return;
            }
            let room = if until == Some(share) { situation.policy.room } else { 1.0 };
            until.map(|until| budget.scaled(until * room))
        }
        (When::Cold, _) if !situation.cold => return,
        (When::Birth | When::Cold | When::Pays | When::Always, _) => None,
    };
    let chosen = candidates(work, step);
    if !is_batch(situation.policy, step, chosen.len()) {
        return;
    }
    for (id, reason) in chosen {
        if until.is_some_and(|until| work.total <= until) {
            break;
        }
        // What makes a block redundant may itself have been hidden by this step.
        if !step.select.redundant.is_empty() && redundancy(work, step, id).is_none() {
            continue;
        }
        if step.when == When::Birth && was_sent(situation, id) {
            continue;
        }
        if step.when == When::Birth && is_cacheless(work, situation, work.tokens(id)) {
            continue;
        }
        work.apply(id, &step.act, &reason);
    }
}

/// Tells whether so many results are enough for a step that moves on in batches.
fn is_batch(policy: &Policy, step: &Step, results: usize) -> bool {
    match policy.batch {
        Batch::Results(least) if step.when == When::Always && step.moves_on() => results >= widen(least),
        Batch::Results(_) | Batch::WhatPays => true,
    }
}

/// Tells whether a request that says so much less is too small for the provider's cache, and may then cost more at every turn.
/// Only policies that look at prices ask.
fn is_cacheless(work: &Work<'_>, situation: &Situation<'_>, less: Tokens) -> bool {
    let priced = situation.policy.steps.iter().any(|step| step.when == When::Pays);
    priced && work.total - less + situation.unseen < situation.minimum
}

pub(super) fn was_sent(situation: &Situation<'_>, id: BlockId) -> bool {
    situation.sent.get(widen(id.0)).is_some_and(Option::is_some)
}

/// What was hidden does not pay for itself.
struct Regret;

/// Hides what several steps would hide, from the place on where that pays; everything when the cache is cold. What pays is told
/// by estimates before anything is hidden, and by what was really saved afterwards.
fn take_what_pays(work: &mut Work<'_>, situation: &Situation<'_>) -> Result<Option<Cut>, Regret> {
    // What was never decided by us may all be in a cache that nothing is known about.
    if situation.first_look && !situation.cold {
        return Ok(None);
    }
    let mut pending = what_may_pay(work, situation);
    let before = (work.total, cost(work, situation));
    let rates = rates(work, before.1, situation);
    let cut = |work: &Work<'_>, pending: &[_]| best_sum(work, pending, situation, rates);
    // What does not pay before something is spared does not pay afterwards.
    if !situation.cold && cut(work, &pending).is_none() {
        return Ok(None);
    }
    let due = ids(&pending);
    let young: HashMap<BlockId, BlockId> = pending
        .iter()
        .filter(|(id, ..)| work.is_trimmed(*id))
        .filter_map(|(id, ..)| Some((*id, pointer(work, *id)?)))
        .filter(|(_, source)| !due.contains(source))
        .collect();
    if !young.is_empty() {
        // What is old but for a result that points at it is as young as that one: without it, it would be hidden the next time.
        let of_itself = work.without_pointers(|work| ids(&what_may_pay(work, situation)));
        pending.retain(|(id, ..)| young.get(id).is_none_or(|source| !of_itself.contains(source)));
    }
    spare_sources(work, &mut pending, &HashSet::new());
    let cut = if situation.cold { None } else { cut(work, &pending) };
    match &cut {
        Some(cut) => drop(pending.drain(..cut.from)),
        None if situation.cold => {}
        None => return Ok(None),
    }
    // What pays, pays together or not at all.
    let together: Tokens = pending.iter().map(|(id, _, act)| saving(work, *id, act)).sum();
    if cut.is_some() && is_cacheless(work, situation, together) {
        return Ok(None);
    }
    let mut needed = newest_of_stale(work, &pending);
    spare_sources(work, &mut pending, &needed);
    for (at, (id, reason, act)) in pending.iter().enumerate() {
        // Where the cache is cold each edit stands for itself, oldest first: what is left alone now is left alone the next time.
        let stays = situation.cold && is_cacheless(work, situation, saving(work, *id, act));
        if stays {
            needed = newest_of_stale(work, pending.get(at + 1..).unwrap_or_default());
        } else if !needed.contains(id) {
            work.apply(*id, act, reason);
        }
    }
    let Some(mut cut) = cut else { return Ok(None) };
    // Notes that point at what was hidden are part of the price.
    mend_pointers(work);
    let blocks = (0..narrow(work.decisions.len())).map(BlockId);
    cut.edits = blocks.filter(|id| was_sent(situation, *id) && !is_same(work, situation, *id)).collect();
    let (saved, dearer) = (before.0 - work.total, cost(work, situation).ours - before.1.ours);
    cut.really(saved, dearer, rates).map(Some).ok_or(Regret)
}

/// Returns what the steps that wait until it pays would hide, oldest first.
fn what_may_pay<'a>(work: &Work<'_>, situation: &Situation<'a>) -> Vec<(BlockId, Reason, &'a Act)> {
    let sources = pointed_at(work);
    let is_short = is_short_of_room(work, situation);
    let mut pending: Vec<(BlockId, Reason, &Act)> = Vec::new();
    for step in situation.policy.steps.iter().filter(|step| waits(step, situation)) {
        let found = candidates(work, step).into_iter().filter(|(id, _)| !sources.contains(id));
        pending.extend(found.map(|(id, reason)| (id, reason, act_in(work, &step.act, id, is_short))));
    }
    pending.sort_by_key(|(id, ..)| *id);
    pending.dedup_by_key(|(id, ..)| *id);
    pending.retain(|(id, _, act)| saving(work, *id, act) > Tokens::ZERO && is_worth_it(work, *id, act));
    pending
}

/// Tells whether the whole conversation would not fit. A policy that makes room says as little as it can then.
fn is_short_of_room(work: &Work<'_>, situation: &Situation<'_>) -> bool {
    let makes_room = situation.policy.steps.iter().any(|step| matches!(step.act, Act::MakeRoom { .. }));
    makes_room && situation.budget.is_some_and(|budget| work.counts.total() > budget)
}

/// Returns what is done with a block: where room is short, its names are not worth theirs.
fn act_in<'a>(work: &Work<'_>, act: &'a Act, id: BlockId, is_short_of_room: bool) -> &'a Act {
    if is_short_of_room && *act == Act::Names && !work.is_trimmed(id) { &Act::Clear } else { act }
}

fn ids(blocks: &[(BlockId, Reason, &Act)]) -> HashSet<BlockId> {
    blocks.iter().map(|(id, ..)| *id).collect()
}

/// Leaves out what a result points at that is sent in part and stays: its note says where the other lines stand.
fn spare_sources(work: &Work<'_>, going: &mut Vec<(BlockId, Reason, &Act)>, staying: &HashSet<BlockId>) {
    let all = going.iter().map(|(id, ..)| *id);
    let mut gone: HashSet<BlockId> = all.filter(|id| !staying.contains(id)).collect();
    for id in (0..narrow(work.decisions.len())).rev().map(BlockId) {
        if work.is_trimmed(id)
            && !gone.contains(&id)
            && let Some(source) = pointer(work, id)
        {
            gone.remove(&source);
        }
    }
    going.retain(|(id, ..)| gone.contains(id));
}

/// Returns the views of files, of those about to go, without which an older view in sight would pass for the newest: the file
/// was changed between them, or they show other lines in the same place.
fn newest_of_stale(work: &mut Work<'_>, going: &[(BlockId, Reason, &Act)]) -> HashSet<BlockId> {
    let is_view = |id: &BlockId| {
        let shows = work.index.row(*id).and_then(|row| row.shows);
        let is_view = matches!(shows, Some(Shows::File | Shows::ShellFile | Shows::Search));
        is_view && (*work.verdict(*id) == Verdict::Keep || work.is_trimmed(*id))
    };
    let views: Vec<BlockId> = (0..narrow(work.decisions.len())).map(BlockId).filter(is_view).collect();
    work.read_views(&views);
    let going: HashSet<BlockId> = going.iter().map(|(id, ..)| *id).collect();
    let mut oldest: HashMap<u32, BlockId> = HashMap::new();
    let mut staying: Vec<BlockId> = Vec::new();
    for id in views {
        let files = work.index.files(id);
        let is_stale =
            |file: &u32| oldest.get(file).is_some_and(|older| work.index.changed_between(*file, *older, id));
        let is_needed =
            || files.iter().any(is_stale) || staying.iter().any(|older| work.contradicts(id, *older));
        if !going.contains(&id) || is_needed() {
            staying.push(id);
            for file in files {
                oldest.entry(*file).or_insert(id);
            }
        }
    }
    staying.retain(|id| going.contains(id));
    staying.into_iter().collect()
}

/// Finds the best cut that the guard allows.
fn best_sum(
    work: &Work<'_>,
    pending: &[(BlockId, Reason, &Act)],
    situation: &Situation<'_>,
    rates: Rates,
) -> Option<Cut> {
    let anew = tokens_anew(work, situation);
    // What is written anew is what stands there now less what this and later edits take away.
    let mut taken = Tokens::ZERO;
    let mut survivors: Vec<(Tokens, Tokens)> = Vec::with_capacity(pending.len());
    for (id, _, act) in pending.iter().rev() {
        let saves = saving(work, *id, act);
        taken += saves;
        survivors.push((saves, anew.get(widen(id.0)).copied().unwrap_or_default() - taken));
    }
    survivors.reverse();
    best_cut(&survivors, situation.memory.requests(), rates)
}

/// Says what a cut costs and saves per token, and what it may cost where this request costs so much without it.
fn rates(work: &Work<'_>, now: Cost, situation: &Situation<'_>) -> Rates {
    Rates {
        read: situation.prices.read,
        rewrite: situation.prices.write - situation.prices.read,
        may_cost: may_cost(work, situation, now),
    }
}

/// Returns by how much this request may cost more than it does now.
pub(super) fn may_cost(work: &Work<'_>, situation: &Situation<'_>, now: Cost) -> f64 {
    let Cost { ours, raw } = situation.memory.spent();
    // What would not fit untouched has no price to be compared with.
    if is_short_of_room(work, situation) { f64::INFINITY } else { GUARD * (raw + now.raw) - ours - now.ours }
}

/// Returns the blocks that notes point at which the request came with: those notes say what they say.
fn pointed_at(work: &Work<'_>) -> HashSet<BlockId> {
    let blocks = (0..narrow(work.decisions.len())).map(BlockId);
    let handles = blocks.filter_map(|id| work.index.row(id)?.points_at);
    handles.flat_map(|handle| work.index.named(handle)).copied().collect()
}

/// Returns what a block points at, where a note stands in its place that says so.
fn pointer(work: &Work<'_>, id: BlockId) -> Option<BlockId> {
    let decision = work.decisions.get(widen(id.0))?;
    match (&decision.verdict, &decision.reason) {
        (Verdict::Shorten { .. }, Some(reason)) => work.source(id, reason),
        _ => None,
    }
}

#[derive(PartialEq, Eq)]
enum Mended {
    Nothing,
    Something,
}

/// Notes that point at what is no longer shown say what became of that instead: it is the same content.
fn mend_pointers(work: &mut Work<'_>) -> Mended {
    let broken: Vec<(BlockId, Reason)> = (0..narrow(work.decisions.len()))
        .map(BlockId)
        .filter_map(|id| {
            let copy = work.decisions.get(widen(pointer(work, id)?.0))?;
            let reason = copy.reason.clone().filter(|_| copy.verdict != Verdict::Keep)?;
            // This block is in no summary itself, and what came before it says nothing about it.
            let step = work.facts.row(id).map_or(0, |fact| fact.step);
            let reason = match reason {
                _ if copy.is_folded() => Reason::OverBudget,
                Reason::Stale { edit: at } | Reason::Superseded { by: at } if at <= step => Reason::TooOld,
                reason => reason,
            };
            Some((id, reason))
        })
        .collect();
    if broken.is_empty() {
        return Mended::Nothing;
    }
    for (id, reason) in broken {
        work.say_instead(id, &Act::Clear, &reason);
    }
    Mended::Something
}

/// Tells whether a block is worth hiding even where all its names stand nowhere else: which do depends on what else is hidden,
/// and the same block must be hidden or not whatever that is.
fn is_worth_it(work: &Work<'_>, id: BlockId, act: &Act) -> bool {
    if *act != Act::Names {
        return true;
    }
    let tokens = work.tokens_now(id);
    let names = whole(f64::from(work.index.row(id).map_or(0, |row| row.names)) / LEAST_NAME_BYTES);
    let left = LONGEST_NOTE + Tokens(u64::try_from(names).unwrap_or(u64::MAX));
    left <= tokens.scaled(NAMES_LEAVE_AT_MOST) && left + NAMES_SAVE_AT_LEAST <= tokens
}

/// A note is hardly ever longer, nor a token of a name shorter.
const LONGEST_NOTE: Tokens = Tokens(180);
const LEAST_NAME_BYTES: f64 = 2.0;

/// Estimates what is left of a block of which only names stay, as a share of its names.
fn named_tokens(work: &Work<'_>, id: BlockId, share: f64) -> Tokens {
    let names = work.index.row(id).map_or(0, |row| row.names);
    let tokens = whole(f64::from(names) * share / NAME_BYTES);
    NOTE_TOKENS + Tokens(u64::try_from(tokens).unwrap_or(u64::MAX))
}

const NOTE_TOKENS: Tokens = Tokens(60);
/// Bytes per token of names; assumed.
const NAME_BYTES: f64 = 3.5;

/// Estimates what hiding a block saves, without making the shorter text.
fn saving(work: &Work<'_>, id: BlockId, act: &Act) -> Tokens {
    /// What a digest leaves; assumed, from a study of recorded sessions.
    const DIGEST_LEAVES: f64 = 0.15;
    /// The share of names that stand nowhere else; assumed.
    const NAMES_ALONE: f64 = 0.5;
    let tokens = work.tokens_now(id);
    match act {
        Act::Names => tokens - named_tokens(work, id, NAMES_ALONE),
        Act::Clear | Act::Drop => tokens - NOTE_TOKENS,
        Act::Inputs(inputs) => {
            let long = leaves(work, id, *inputs)
                .and_then(|(leaves, _)| Some(work.index.row(id)?.leaves.of(leaves)))
                .unwrap_or_default();
            let all = work.history.block(id).map_or(1, |block| narrow(block.body.len().max(1)));
            tokens.scaled((f64::from(long) / f64::from(all)).min(1.0)) - NOTE_TOKENS
        }
        Act::Pin
        | Act::Hold
        | Act::Digest(_)
        | Act::HeadTail { .. }
        | Act::MiddleOut { .. }
        | Act::Cap { .. }
        | Act::HeadTailLines { .. }
        | Act::Matching(_)
        | Act::Seen
        | Act::Fold
        | Act::MakeRoom { .. } => tokens - tokens.scaled(DIGEST_LEAVES),
    }
}
