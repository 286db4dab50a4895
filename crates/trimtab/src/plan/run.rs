//! Runs a policy. Takes a history, what is known about it, the memory of what was sent, and the situation; gives a plan.
//! Never looks at the clock: what time it is comes with the situation.

use super::{
    Plan, PlanError, Reason, Verdict,
    candidates::candidates,
    closing::close,
    pays::{CachePrices, best_cut},
    work::Work,
};
use crate::{
    count::{Counter, Counts, Memo, Tokens},
    facts::Facts,
    history::{BlockId, History},
    json::{narrow, widen},
    memory::{ChainHash, Memory, Sent},
    policy::{Act, Policy, Step, When},
};

/// What a policy decides in.
pub(crate) struct Situation<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) budget: Option<Tokens>,
    pub(crate) memory: &'a Memory,
    pub(crate) chain: &'a [ChainHash],
    /// Whether the provider's cache is gone.
    pub(crate) cold: bool,
    pub(crate) prices: CachePrices,
}

/// Decides what becomes of every block.
pub(crate) fn plan(
    history: &History,
    facts: &Facts,
    counts: &Counts,
    counter: Counter,
    memo: &mut Memo,
    situation: &Situation<'_>,
) -> Result<Plan, PlanError> {
    let mut work = Work::new(history, facts, counts, counter, memo, situation.policy);
    let steps = &situation.policy.steps;
    for step in steps.iter().filter(|step| step.act == Act::Pin) {
        for (id, reason) in candidates(&work, step) {
            work.apply(id, &Act::Pin, &reason);
        }
    }
    repeat(&mut work, situation);
    let mut fold_wanted = false;
    let mut pending: Vec<&Step> = Vec::new();
    for step in steps.iter().filter(|step| step.act != Act::Pin) {
        match step.when {
            When::Pays => pending.push(step),
            When::Birth | When::Cold | When::Over { .. } | When::Always => {
                fold_wanted |= take(&mut work, step, situation);
            }
        }
    }
    if !pending.is_empty() {
        take_what_pays(&mut work, &pending, situation);
    }
    let floor = situation.budget.and_then(|budget| close(&mut work, situation.policy.closing, budget));
    let mut plan = Plan::new(history, counts, &work.units, work.decisions)?;
    plan.fold_wanted = fold_wanted;
    plan.floor = floor;
    Ok(plan)
}

/// Sends again what was sent before as it was sent.
fn repeat(work: &mut Work<'_>, situation: &Situation<'_>) {
    for (index, hash) in situation.chain.iter().enumerate() {
        let id = BlockId(narrow(index));
        match situation.memory.verdict(*hash) {
            Some(Sent::Shortened { text, reason }) => work.repeat(id, text, reason),
            Some(Sent::NotAtAll { reason }) => drop(work.drop_unit(id, reason)),
            Some(Sent::Whole) | None => {}
        }
    }
}

/// Takes one step; tells whether it asks for a summary.
fn take(work: &mut Work<'_>, step: &Step, situation: &Situation<'_>) -> bool {
    let until = match (step.when, situation.budget) {
        (When::Over { .. }, None) => return false,
        (When::Over { share, until }, Some(budget)) => {
            if work.total <= budget.scaled(share) {
                return false;
            }
            until.map(|until| budget.scaled(until))
        }
        (When::Cold, _) if !situation.cold => return false,
        (When::Birth | When::Cold | When::Pays | When::Always, _) => None,
    };
    if step.act == Act::Fold {
        return true;
    }
    for (id, reason) in candidates(work, step) {
        if until.is_some_and(|until| work.total <= until) {
            break;
        }
        if step.when == When::Birth && was_sent(situation, id) {
            continue;
        }
        work.apply(id, &step.act, &reason);
    }
    false
}

fn was_sent(situation: &Situation<'_>, id: BlockId) -> bool {
    let hash = situation.chain.get(widen(id.0));
    hash.is_some_and(|hash| situation.memory.verdict(*hash).is_some())
}

/// Hides what several steps would hide, from the place on where that pays.
fn take_what_pays(work: &mut Work<'_>, steps: &[&Step], situation: &Situation<'_>) {
    let mut pending: Vec<(BlockId, Reason, &Act)> = Vec::new();
    for step in steps {
        let found = candidates(work, step).into_iter();
        pending.extend(found.map(|(id, reason)| (id, reason, &step.act)));
    }
    pending.sort_by_key(|(id, ..)| *id);
    pending.dedup_by_key(|(id, ..)| *id);
    let from = if situation.cold {
        Some(0)
    } else {
        let sums: Vec<(Tokens, Tokens)> =
            pending.iter().map(|(id, _, act)| (saving(work, *id, act), behind(work, *id))).collect();
        best_cut(&sums, situation.memory.requests(), situation.prices)
    };
    let Some(from) = from else { return };
    for (id, reason, act) in pending.into_iter().skip(from) {
        work.apply(id, act, &reason);
    }
}

/// Estimates what hiding a block saves, without making the shorter text: a digest leaves about a seventh.
fn saving(work: &Work<'_>, id: BlockId, act: &Act) -> Tokens {
    const DIGEST_LEAVES: f64 = 0.15;
    const NOTE_TOKENS: u64 = 60;
    let tokens = work.tokens(id);
    match act {
        Act::Clear | Act::Drop => tokens - Tokens(NOTE_TOKENS),
        _ => tokens - tokens.scaled(DIGEST_LEAVES),
    }
}

/// Counts what is sent behind a block.
fn behind(work: &Work<'_>, id: BlockId) -> Tokens {
    let later = work.decisions.iter().skip(widen(id.0) + 1);
    later
        .map(|decision| match &decision.verdict {
            Verdict::Keep => work.tokens(decision.block),
            Verdict::Shorten { tokens, .. } => *tokens,
            Verdict::Drop => Tokens::ZERO,
        })
        .sum()
}
