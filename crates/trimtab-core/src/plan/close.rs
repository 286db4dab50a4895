//! The pass that closes every policy but `none`: it hides in one fixed order until the request fits, and gives the floor where even
//! the end of the order does not suffice. Never touches system, instructions or the current task.

use std::sync::Arc;

use super::{
    MessageUnit, PlanFloor, UnitKind, may_shorten, units,
    work::{Work, is_exchange},
};
use crate::{
    facts::Priority,
    history::{BlockId, BlockKind},
    policy::{ClosingRule, StepAction},
    units::Tokens,
    verdict::Reason,
};

/// Hides until the request has at most `budget` tokens, and a little less where what is left to hide was seen before: then the next
/// requests need not hide again.
pub(super) fn close_to_budget(work: &mut Work<'_>, budget: Tokens) -> Option<PlanFloor> {
    let (context, policy) = (work.context, work.context.policy);
    if policy.closing == ClosingRule::Nothing || work.draft.total <= budget {
        return None;
    }
    let goal = budget.scale(policy.room);
    let last = hide_seen_first(work, policy.closing, goal);
    for id in last {
        if work.draft.total <= budget {
            return None;
        }
        // What was said in a block's place before stays said.
        if work.is_open(id) || !context.was_sent(id) {
            shorten_to_fit(work, id, budget);
        }
    }
    if work.draft.total > budget {
        // What new results pointed at shows nothing unseen any more, and may go as a whole.
        hide_seen_first(work, policy.closing, goal);
    }
    (work.draft.total > budget).then(|| measure_floor(work))
}

/// Hides what the model has seen until the request has at most `goal` tokens; gives the results that go last.
fn hide_seen_first(work: &mut Work<'_>, closing: ClosingRule, goal: Tokens) -> Vec<BlockId> {
    let (seen, last) = closing_order(work);
    for (id, act) in seen {
        if work.draft.total <= goal {
            return last;
        }
        work.apply_act(id, &act, &Reason::OverBudget);
    }
    if closing == ClosingRule::Turns {
        for turn in droppable_turns(work) {
            if work.draft.total <= goal {
                return last;
            }
            turn.into_iter().for_each(|id| work.drop_alone(id, &Reason::OverBudget));
        }
    }
    last
}

/// Leaves as much of a result as there is room for, where that is more than a note.
fn shorten_to_fit(work: &mut Work<'_>, id: BlockId, budget: Tokens) {
    if work.is_out(id) || work.is_pinned(id) || !may_shorten(work.request.history, id) {
        return;
    }
    let room = work.tokens_now(id) - (work.draft.total - budget);
    let part = StepAction::Cap { share: room.to_float() / budget.to_float().max(1.0) };
    let part = if work.is_open(id) { work.text_for(id, &part, &Reason::OverBudget) } else { None };
    let note = work.text_for(id, &StepAction::Clear, &Reason::OverBudget);
    let part_fits = |part: &(Arc<str>, Tokens)| {
        part.1 <= room && note.as_ref().is_none_or(|(_, tokens)| part.1 >= *tokens)
    };
    if let Some(shorter) = part.filter(part_fits).or(note) {
        work.hide_behind(id, shorter, Reason::OverBudget);
    }
}

/// The order: old results shorter, old exchanges gone, answers shorter, then results of exchanges that cannot be dropped; and, apart, the
/// results that go last, each as far as it must: what was asked back a few steps ago, those of the latest exchange, and those
/// that the model has not seen, the largest first.
fn closing_order(work: &Work<'_>) -> (Vec<(BlockId, StepAction)>, Vec<BlockId>) {
    let class = |unit: &MessageUnit| {
        let classes = unit.blocks.iter().filter_map(|id| work.priority(*id));
        classes.filter(|class| *class < Priority::CurrentTask).max()
    };
    let latest = work.request.units.all_units().iter().rposition(is_exchange);
    let results = |unit: &MessageUnit| -> Vec<BlockId> {
        let is_result = |id: &BlockId| work.request.facts[*id].acts_as == BlockKind::Result;
        unit.blocks.iter().copied().filter(is_result).collect()
    };
    // Where a client says something between a call and its results, these make no exchange, and are results all the same.
    let has_results = |(_, unit): &(usize, &MessageUnit)| is_exchange(unit) || !results(unit).is_empty();
    let mut exchanges: Vec<(usize, &MessageUnit)> =
        work.request.units.all_units().iter().enumerate().filter(has_results).collect();
    exchanges.sort_by_key(|(index, unit)| (class(unit), *index));
    let goes_last = |(index, unit): &(usize, &MessageUnit)| {
        let last = |id: &BlockId| work.shows_unseen(*id) || work.is_fresh_recall(*id);
        Some(*index) == latest || results(unit).iter().any(last)
    };
    let mut order = Vec::new();
    let is_held = |unit: &MessageUnit| unit.blocks.iter().any(|id| work.is_held(*id));
    let (last, others): (Vec<_>, Vec<_>) = exchanges.into_iter().partition(goes_last);
    let (held, free): (Vec<_>, Vec<_>) = others.into_iter().partition(|(_, unit)| is_held(unit));
    let old = || free.iter();
    for (_, unit) in old() {
        order.extend(results(unit).into_iter().map(|id| (id, StepAction::Digest(None))));
    }
    for (_, unit) in old() {
        order.extend(unit.blocks.first().map(|id| (*id, StepAction::Drop)));
    }
    for (_, unit) in old() {
        order.extend(results(unit).into_iter().map(|id| (id, StepAction::Clear)));
    }
    for unit in work.request.units.all_units().iter().filter(|unit| unit.kind == UnitKind::Answer) {
        order.extend(unit.blocks.first().map(|id| (*id, StepAction::Drop)));
        order.extend(unit.blocks.iter().map(|id| (*id, StepAction::Clear)));
    }
    for act in [StepAction::Digest(None), StepAction::Clear] {
        for (_, unit) in &held {
            order.extend(results(unit).into_iter().map(|id| (id, act.clone())));
        }
    }
    let mut last: Vec<BlockId> = last.into_iter().flat_map(|(_, unit)| results(unit)).collect();
    // What new results point at goes before these themselves.
    last.sort_by_key(|id| {
        (work.is_unseen(*id), work.shows_unseen(*id), std::cmp::Reverse(work.tokens(*id)), *id)
    });
    (order, last)
}

/// The blocks of the turns that may go with the user's words in them, the oldest first.
fn droppable_turns(work: &Work<'_>) -> Vec<Vec<BlockId>> {
    let held = |unit: &MessageUnit| {
        unit.blocks.iter().any(|id| work.is_held(*id) || work.is_firm(*id) || work.shows_unseen(*id))
    };
    let going =
        units::going_turns(work.request.units.all_units(), |turn| !turn.iter().any(|unit| held(unit)));
    going.into_iter().map(|turn| turn.iter().flat_map(|unit| unit.blocks.clone()).collect()).collect()
}

/// Says what is left and what makes it.
fn measure_floor(work: &Work<'_>) -> PlanFloor {
    let mut classes: Vec<(&'static str, Tokens)> = Vec::new();
    for decision in work.draft.decisions.iter().filter(|decision| !decision.verdict.leaves_nothing()) {
        let tokens = work.tokens_now(decision.block);
        if decision.verdict.is_fold() {
            classes.push(("summary", tokens));
            continue;
        }
        let class = || work.priority(decision.block).map_or("other", Priority::name);
        let name = if work.is_pinned_by_handle(decision.block) { "pinned" } else { class() };
        match classes.iter_mut().find(|(class, _)| *class == name) {
            Some((_, sum)) => *sum += tokens,
            None => classes.push((name, tokens)),
        }
    }
    let in_blocks: Tokens = classes.iter().map(|(_, tokens)| *tokens).sum();
    classes.push(("framing", work.draft.total - in_blocks));
    classes.sort_by_key(|(name, tokens)| (std::cmp::Reverse(*tokens), *name));
    PlanFloor { tokens: work.draft.total, made_of: classes }
}

#[cfg(test)]
mod tests {
    use super::{
        super::pass_case::{PassCase, lines},
        *,
    };

    #[test]
    fn the_oldest_go_first_and_what_cannot_go_is_named() {
        let text = lines("a", 60);
        let case = PassCase::new("", &[text.as_str(); 5]);
        let total = case.look_after(|_| {}, |work| work.draft.total);
        let to = |share: f64| {
            case.look_after(
                |work| drop(close_to_budget(work, total.scale(share))),
                |work| case.results().into_iter().map(|id| work.verdict_of(id).word()).collect::<Vec<_>>(),
            )
        };
        assert_eq!(to(1.0), ["keep"; 5]);
        let some = to(0.7);
        assert!(some[0] != "keep" && some[4] == "keep", "{some:?}");
        let mut floor = None;
        case.try_passes(|work| floor = close_to_budget(work, Tokens(10)));
        let floor = floor.expect("a person's words stay");
        assert!(
            floor.made_of.iter().any(|(class, _)| *class == "current-task" || class.contains("task")),
            "{floor:?}"
        );
    }
}
