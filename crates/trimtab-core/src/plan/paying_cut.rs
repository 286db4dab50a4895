//! The pass that hides what was sent before where that pays: what every later request saves is more than caching again what follows.
//! It works on the draft and puts the earlier one back where what it really saved turns out to be less.

use std::collections::{HashMap, HashSet};

use super::{
    candidates::{find_candidates, leaves_to_hide},
    context::PlanContext,
    cost::{is_same, request_cost, tokens_anew},
    cut::{CutRates, PayingCut, best_cut},
    mend::{pointer_target, repair_pointers},
    steps::is_cacheless,
    work::{NAMES_LEAVE_AT_MOST, NAMES_SAVE_AT_LEAST, Work, to_whole_number},
};
use crate::{
    facts::ResultSort, history::BlockId, json::narrow, memory::InputCosts, policy::StepAction, units::Tokens,
    verdict::Reason,
};

/// How much more than the untouched session edits that are to pay may make it cost while they have not yet paid.
const GUARD: f64 = 1.007;

/// A block that a step may hide.
#[derive(Debug, Clone)]
struct Pending<'a> {
    block: BlockId,
    reason: Reason,
    /// What is done with it.
    act: &'a StepAction,
    /// What the step says: where room is short, less is said of it.
    act_of_step: &'a StepAction,
}

/// Hides what several steps would hide, from the place on where that pays; everything when the cache is cold. Estimates say
/// what pays before anything is hidden; afterwards the real saving does.
pub(super) fn take_what_pays(work: &mut Work<'_>) {
    work.draft.has_paid = true;
    let cache = work.context.cache;
    // What was never decided by us may all be in a cache that nothing is known about.
    if cache.first_look && !cache.cold {
        return;
    }
    let mut pending = what_may_pay(work);
    let cost_before = request_cost(work);
    let rates = cut_rates(work, cost_before);
    // What does not pay before something is spared does not pay afterwards.
    if !cache.cold && best_sum(work, &pending, rates).is_none() {
        return;
    }
    spare_the_young(work, &mut pending);
    spare_sources(work, &mut pending, &HashSet::new());
    if cache.cold {
        return hide_pending(work, &pending);
    }
    let Some(cut) = best_sum(work, &pending, rates) else { return };
    pending.drain(..cut.from);
    // What pays, pays together or not at all.
    let together: Tokens = pending.iter().map(|pending| estimate_saving(work, pending)).sum();
    if is_cacheless(work, together) {
        return;
    }
    let without = work.draft.clone();
    hide_pending(work, &pending);
    // Notes that point at what was hidden are part of the price.
    repair_pointers(work);
    let saved = without.total - work.draft.total;
    let more_expensive = request_cost(work).ours - cost_before.ours;
    match cut.with_real_saving(saved, more_expensive, rates) {
        Some(cut) => {
            let is_edit = |id: &BlockId| work.context.was_sent(*id) && !is_same(work, *id);
            let edits = work.request.history.ids().filter(is_edit).collect();
            work.draft.cut = Some(PayingCut { edits, ..cut });
        }
        // What was hidden does not pay for itself: the draft without it is the better one.
        None => work.draft = without,
    }
}

/// Hides blocks but those that must stay as the newest views of files. Where the cache is cold each edit stands for itself, oldest
/// first: what is left alone now is left alone the next time.
fn hide_pending(work: &mut Work<'_>, pending: &[Pending<'_>]) {
    let mut needed = newest_of_stale(work, pending);
    let mut going = pending.to_vec();
    spare_sources(work, &mut going, &needed);
    let cold = work.context.cache.cold;
    for (at, next) in going.iter().enumerate() {
        let mut next = next.clone();
        // A longer note may leave enough for the cache.
        if cold && is_cacheless(work, estimate_saving(work, &next)) {
            next.act = next.act_of_step;
        }
        if cold && is_cacheless(work, estimate_saving(work, &next)) {
            needed = newest_of_stale(work, going.get(at + 1..).unwrap_or_default());
        } else if !needed.contains(&next.block) {
            work.apply_act(next.block, next.act, &next.reason);
        }
    }
}

/// Leaves out results that point at what is old but for them: without them, that would be hidden the next time.
fn spare_the_young(work: &mut Work<'_>, pending: &mut Vec<Pending<'_>>) {
    let due = block_ids(pending);
    let young: HashMap<BlockId, BlockId> = pending
        .iter()
        .map(|pending| pending.block)
        .filter(|id| work.is_trimmed(*id))
        .filter_map(|id| Some((id, pointer_target(work, id)?)))
        .filter(|(_, source)| !due.contains(source))
        .collect();
    if young.is_empty() {
        return;
    }
    let old_anyway = work.without_pointers(|work| block_ids(&what_may_pay(work)));
    pending.retain(|pending| young.get(&pending.block).is_none_or(|source| !old_anyway.contains(source)));
}

/// Returns what the steps that wait until it pays would hide, oldest first.
fn what_may_pay<'a>(work: &Work<'a>) -> Vec<Pending<'a>> {
    let context: &'a PlanContext<'a> = work.context;
    let sources = pointed_at(work);
    let looked_at = looked_at_before(work);
    let mut pending: Vec<Pending<'a>> = Vec::new();
    let is_short = is_short_of_room(work);
    for step in context.policy.steps.iter().filter(|step| context.waits_to_pay(step)) {
        let is_open = |id: &BlockId| !sources.contains(id) && Some(*id) > looked_at;
        let found = find_candidates(work, step).into_iter().filter(|(id, _)| is_open(id));
        pending.extend(found.map(|(block, reason)| Pending {
            block,
            reason,
            act: act_in(work, &step.act, block, is_short),
            act_of_step: &step.act,
        }));
    }
    pending.sort_by_key(|pending| pending.block);
    pending.dedup_by_key(|pending| pending.block);
    pending.retain(|pending| estimate_saving(work, pending) > Tokens::ZERO && is_worth_it(work, pending));
    pending
}

/// Tells whether the whole conversation would not fit. A policy that makes room says as little as it can then.
fn is_short_of_room(work: &Work<'_>) -> bool {
    let makes_room =
        work.context.policy.steps.iter().any(|step| matches!(step.act, StepAction::MakeRoom { .. }));
    makes_room && work.context.budget.is_some_and(|budget| work.request.counts.total() > budget)
}

/// Returns what is done with a block: where room is short, its names are not worth theirs.
fn act_in<'a>(work: &Work<'_>, act: &'a StepAction, id: BlockId, is_short_of_room: bool) -> &'a StepAction {
    if is_short_of_room && *act == StepAction::Names && !work.is_trimmed(id) {
        &StepAction::Clear
    } else {
        act
    }
}

fn block_ids(blocks: &[Pending<'_>]) -> HashSet<BlockId> {
    blocks.iter().map(|pending| pending.block).collect()
}

/// Leaves out what a result points at that is sent in part and stays: its note says where the other lines stand.
fn spare_sources(work: &Work<'_>, going: &mut Vec<Pending<'_>>, staying: &HashSet<BlockId>) {
    let all = going.iter().map(|pending| pending.block);
    let mut gone: HashSet<BlockId> = all.filter(|id| !staying.contains(id)).collect();
    for id in work.request.history.ids().rev() {
        if work.is_trimmed(id)
            && !gone.contains(&id)
            && let Some(source) = pointer_target(work, id)
        {
            gone.remove(&source);
        }
    }
    going.retain(|pending| gone.contains(&pending.block));
}

/// Returns the views of files, of those about to go, without which an older visible view would pass for the newest: the file
/// was changed between them, or they show other lines in the same place.
fn newest_of_stale(work: &mut Work<'_>, going: &[Pending<'_>]) -> HashSet<BlockId> {
    let is_view = |id: &BlockId| {
        let shows = work.request.index.row(*id).shows;
        let is_view = matches!(shows, Some(ResultSort::File | ResultSort::ShellFile | ResultSort::Search));
        is_view && (work.verdict_of(*id).shows_all() || work.is_trimmed(*id))
    };
    let views: Vec<BlockId> = work.request.history.ids().filter(is_view).collect();
    work.read_views(&views);
    let going = block_ids(going);
    let mut oldest: HashMap<u32, BlockId> = HashMap::new();
    let mut staying: Vec<BlockId> = Vec::new();
    for id in views {
        let files = work.request.index.files(id);
        let is_stale = |file: &u32| {
            oldest.get(file).is_some_and(|older| work.request.index.changed_between(*file, *older, id))
        };
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
fn best_sum(work: &Work<'_>, pending: &[Pending<'_>], rates: CutRates) -> Option<PayingCut> {
    let anew = tokens_anew(work);
    // The tokens cached again are those that are there now less what this and later edits remove.
    let mut taken = Tokens::ZERO;
    let mut survivors: Vec<(Tokens, Tokens)> = Vec::with_capacity(pending.len());
    for next in pending.iter().rev() {
        let saves = estimate_saving(work, next);
        taken += saves;
        survivors.push((saves, anew[next.block] - taken));
    }
    survivors.reverse();
    best_cut(&survivors, work.context.before.memory.request_count(), rates)
}

/// Says what a cut costs and saves per token, and what it may cost where this request costs so much without it.
fn cut_rates(work: &Work<'_>, now: InputCosts) -> CutRates {
    let prices = work.context.cache.prices;
    CutRates { read: prices.read, rewrite: prices.write - prices.read, may_cost: may_cost(work, now) }
}

/// Returns by how much this request may cost more than it does now.
pub(super) fn may_cost(work: &Work<'_>, now: InputCosts) -> f64 {
    let InputCosts { ours, raw } = work.context.before.memory.total_cost();
    // What would not fit untouched has no price to be compared with.
    if is_short_of_room(work) { f64::INFINITY } else { GUARD * (raw + now.raw) - ours - now.ours }
}

/// Returns the blocks that notes point at which the request came with: those notes say what they say.
fn pointed_at(work: &Work<'_>) -> HashSet<BlockId> {
    let blocks = work.request.history.ids();
    let handles = blocks.filter_map(|id| work.request.index.row(id).points_at);
    handles.flat_map(|handle| work.request.index.blocks_named(handle)).copied().collect()
}

/// Returns the last block that an earlier fit looked at, where only its notes tell of it. It did not hide the rest on purpose: what
/// it hid may have said where a command ran or what a call did, so that the rest now seems less needed than it is.
fn looked_at_before(work: &Work<'_>) -> Option<BlockId> {
    work.request.index.last_looked_at().filter(|_| work.is_first_fit())
}

/// Tells whether a block is worth hiding even where all its names stand nowhere else: which do depends on what else is hidden,
/// and the same block must be hidden or not whatever that is.
fn is_worth_it(work: &Work<'_>, pending: &Pending<'_>) -> bool {
    let id = pending.block;
    if *pending.act != StepAction::Names {
        return true;
    }
    let tokens = work.tokens_now(id);
    let names = narrow(work.most_name_bytes(id));
    let names = to_whole_number(f64::from(names) / LEAST_NAME_BYTES);
    let left = LONGEST_NOTE + Tokens(u64::try_from(names).unwrap_or(u64::MAX));
    left <= tokens.scale(NAMES_LEAVE_AT_MOST) && left + NAMES_SAVE_AT_LEAST <= tokens
}

/// A note is hardly ever longer, nor a token of a name shorter.
const LONGEST_NOTE: Tokens = Tokens(120);
const LEAST_NAME_BYTES: f64 = 2.0;

/// Estimates what is left of a block of which only names stay, as a share of its names.
fn named_tokens(work: &Work<'_>, id: BlockId, share: f64) -> Tokens {
    let row = work.request.index.row(id);
    let names = (f64::from(row.names) * share).min(f64::from(narrow(work.most_name_bytes(id))));
    let tokens = to_whole_number(names / NAME_BYTES);
    NOTE_TOKENS + Tokens(u64::try_from(tokens).unwrap_or(u64::MAX))
}

const NOTE_TOKENS: Tokens = Tokens(60);
/// Bytes per token of names; assumed.
const NAME_BYTES: f64 = 3.5;

/// Estimates what hiding a block saves, without making the shorter text.
fn estimate_saving(work: &Work<'_>, pending: &Pending<'_>) -> Tokens {
    /// What a digest leaves; assumed, from a study of recorded sessions.
    const DIGEST_LEAVES: f64 = 0.15;
    /// The share of names that stand nowhere else; assumed.
    const NAMES_ALONE: f64 = 0.5;
    let id = pending.block;
    let tokens = work.tokens_now(id);
    match pending.act {
        StepAction::Names => tokens - named_tokens(work, id, NAMES_ALONE),
        StepAction::Clear | StepAction::Drop => tokens - NOTE_TOKENS,
        StepAction::Inputs(inputs) => {
            let long = leaves_to_hide(work, id, *inputs)
                .map_or(0, |(leaves, _)| work.request.index.row(id).leaves.bytes_of(leaves));
            let all = narrow(work.request.history[id].body.len().max(1));
            tokens.scale((f64::from(long) / f64::from(all)).min(1.0)) - NOTE_TOKENS
        }
        StepAction::Pin
        | StepAction::Hold
        | StepAction::Digest(_)
        | StepAction::HeadTail { .. }
        | StepAction::MiddleOut { .. }
        | StepAction::Cap { .. }
        | StepAction::HeadTailLines { .. }
        | StepAction::Matching(_)
        | StepAction::Seen
        | StepAction::Rewrite(_)
        | StepAction::Fold
        | StepAction::MakeRoom { .. } => tokens - tokens.scale(DIGEST_LEAVES),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::pass_case::{PassCase, lines},
        *,
    };

    const CLEAR_OLD: &str = "[[step]]\nwhen = \"pays\"\nselect = { keep_last = 1 }\ndo = \"clear\"\n";

    #[test]
    fn a_large_old_result_goes_where_little_follows_and_nothing_where_much_does() {
        let (large, small) = (lines("a", 900), lines("b", 12));
        let case = PassCase::new(CLEAR_OLD, &[&large, &small, &small]).sent_up_to(1, &[]);
        assert_eq!(case.try_passes(take_what_pays)[0], "shorten");
        let cut = case.look_after(take_what_pays, |work| work.draft.cut.clone()).expect("a cut");
        assert_eq!(cut.edits.first(), case.results().first());
        assert!(cut.break_even < cut.expected);
        let case = PassCase::new(CLEAR_OLD, &[&small, &large, &large]).sent_up_to(2, &[]);
        assert_eq!(case.try_passes(take_what_pays), ["keep"; 3]);
    }

    #[test]
    fn what_saves_less_than_it_seemed_is_not_hidden_at_all() {
        let act = |bytes: usize| {
            format!(
                "[[step]]\nwhen = \"pays\"\nselect = {{ keep_last = 1 }}\ndo = \"middle-out\"\nbytes = {bytes}\n"
            )
        };
        let (large, small) = (lines("a", 900), lines("b", 12));
        let [little, most] = [large.len() / 10, large.len() - 200].map(|bytes| {
            let case = PassCase::new(&act(bytes), &[&large, &small, &small]).sent_up_to(1, &[]);
            case.look_after(take_what_pays, |work| {
                (work.verdict_of(case.results()[0]).word(), work.draft.has_paid)
            })
        });
        // Both are taken to leave as little, before they are made.
        assert_eq!((little, most), (("shorten", true), ("keep", true)));
    }

    #[test]
    fn on_a_cold_cache_all_that_is_old_goes_and_nothing_is_paid() {
        let text = lines("a", 60);
        let mut case = PassCase::new(CLEAR_OLD, &[text.as_str(); 3]).sent_up_to(2, &[]);
        case.cache.cold = true;
        assert_eq!(case.try_passes(take_what_pays), ["shorten", "shorten", "keep"]);
        assert!(case.look_after(take_what_pays, |work| work.draft.cut.is_none()));
    }

    #[test]
    fn nothing_is_hidden_where_nothing_is_known_of_the_cache() {
        let (large, small) = (lines("a", 900), lines("b", 12));
        let mut case = PassCase::new(CLEAR_OLD, &[&large, &small, &small]).sent_up_to(1, &[]);
        case.cache.first_look = true;
        assert_eq!(case.try_passes(take_what_pays), ["keep"; 3]);
    }
}
