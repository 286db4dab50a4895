//! The last step of every policy but `none`: hide in one fixed order until the request fits. Takes what is decided so far;
//! gives the floor where even the end of the order does not suffice. Never touches system, instructions or the current task.

use super::{
    Floor, Reason, Unit, UnitKind, Verdict, units,
    work::{Work, is_exchange},
};
use crate::{
    count::Tokens,
    facts::Priority,
    history::{BlockId, BlockKind},
    policy::{Act, Closing},
};

/// Hides until the request counts at most `budget`.
pub(super) fn close(work: &mut Work<'_>, closing: Closing, budget: Tokens) -> Option<Floor> {
    if closing == Closing::Nothing || work.total <= budget {
        return None;
    }
    for (id, act) in order(work) {
        if work.total <= budget {
            return None;
        }
        work.apply(id, &act, &Reason::OverBudget);
    }
    if closing == Closing::Turns {
        for turn in turns(work) {
            if work.total <= budget {
                return None;
            }
            turn.into_iter().for_each(|id| work.drop_alone(id, &Reason::OverBudget));
        }
    }
    (work.total > budget).then(|| floor(work))
}

/// The order: old results shorter, old exchanges gone, answers shorter, then results of exchanges that are held, and what is
/// left of the latest exchange.
fn order(work: &Work<'_>) -> Vec<(BlockId, Act)> {
    let class = |unit: &Unit| {
        let classes = unit.blocks.iter().filter_map(|id| work.facts.priority(*id, work.recent));
        classes.filter(|class| *class < Priority::CurrentTask).max()
    };
    let latest = work.units.iter().rposition(is_exchange);
    let mut exchanges: Vec<(usize, &Unit)> =
        work.units.iter().enumerate().filter(|(_, unit)| is_exchange(unit)).collect();
    exchanges.sort_by_key(|(index, unit)| (class(unit), *index));
    let results = |unit: &Unit| -> Vec<BlockId> {
        let is_result =
            |id: &BlockId| work.facts.row(*id).is_some_and(|fact| fact.acts_as == BlockKind::Result);
        unit.blocks.iter().copied().filter(is_result).collect()
    };
    let mut order = Vec::new();
    let is_held = |unit: &Unit| unit.blocks.iter().any(|id| work.is_held(*id));
    let (held, free): (Vec<_>, Vec<_>) = exchanges
        .into_iter()
        .filter(|(index, _)| Some(*index) != latest)
        .partition(|(_, unit)| is_held(unit));
    let old = || free.iter();
    for (_, unit) in old() {
        order.extend(results(unit).into_iter().map(|id| (id, Act::Digest(None))));
    }
    for (_, unit) in old() {
        order.extend(unit.blocks.first().map(|id| (*id, Act::Drop)));
    }
    for (_, unit) in old() {
        order.extend(results(unit).into_iter().map(|id| (id, Act::Clear)));
    }
    for unit in work.units.iter().filter(|unit| unit.kind == UnitKind::Answer) {
        order.extend(unit.blocks.first().map(|id| (*id, Act::Drop)));
        order.extend(unit.blocks.iter().map(|id| (*id, Act::Clear)));
    }
    for act in [Act::Digest(None), Act::Clear] {
        for (_, unit) in &held {
            order.extend(results(unit).into_iter().map(|id| (id, act.clone())));
        }
    }
    if let Some(unit) = latest.and_then(|index| work.units.get(index)) {
        order.extend(results(unit).into_iter().map(|id| (id, Act::Digest(None))));
        order.extend(results(unit).into_iter().map(|id| (id, Act::Clear)));
    }
    order
}

/// The blocks of the turns that may go with the person's words in them, the oldest first.
fn turns(work: &Work<'_>) -> Vec<Vec<BlockId>> {
    let held = |unit: &Unit| unit.blocks.iter().any(|id| work.is_held(*id) || work.is_firm(*id));
    let going =
        units::turns(&work.units).filter(|turn| turn.iter().all(|unit| unit.turn_may_go && !held(unit)));
    going.map(|turn| turn.iter().flat_map(|unit| unit.blocks.clone()).collect()).collect()
}

/// Says what is left and what makes it.
fn floor(work: &Work<'_>) -> Floor {
    let mut classes: Vec<(&'static str, Tokens)> = Vec::new();
    for decision in &work.decisions {
        let tokens = match &decision.verdict {
            Verdict::Keep => work.tokens(decision.block),
            Verdict::Shorten { tokens, .. } => *tokens,
            Verdict::Drop => continue,
        };
        if decision.is_folded() {
            classes.push(("summary", tokens));
            continue;
        }
        let name = work.facts.priority(decision.block, work.recent).map_or("other", Priority::name);
        match classes.iter_mut().find(|(class, _)| *class == name) {
            Some((_, sum)) => *sum += tokens,
            None => classes.push((name, tokens)),
        }
    }
    let in_blocks: Tokens = classes.iter().map(|(_, tokens)| *tokens).sum();
    classes.push(("framing", work.total - in_blocks));
    classes.sort_by_key(|(name, tokens)| (std::cmp::Reverse(*tokens), *name));
    Floor { tokens: work.total, made_of: classes }
}
