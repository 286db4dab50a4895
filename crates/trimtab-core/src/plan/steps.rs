//! The passes that take steps of the policy one after the other: at a block's birth, on a cold cache, over a share of the budget, always.

use super::{
    candidates::{find_candidates, find_redundancy},
    fold::fold_step,
    pressure::make_room,
    work::Work,
};
use crate::{
    json::widen,
    policy::{BatchSize, Policy, PolicyStep, StepAction, StepMoment},
    units::Tokens,
};

/// Takes steps in their order.
pub(super) fn take_steps(work: &mut Work<'_>, steps: &[PolicyStep]) {
    steps.iter().for_each(|step| take_step(work, step));
}

/// Takes one step.
fn take_step(work: &mut Work<'_>, step: &PolicyStep) {
    if step.act == StepAction::Fold {
        return fold_step(work, step.when);
    }
    if let (StepAction::MakeRoom { cold }, StepMoment::Over { until, .. }, Some(budget)) =
        (&step.act, step.when, work.context.budget)
    {
        let share = if work.context.cache.cold { *cold } else { until.unwrap_or(1.0) };
        return make_room(work, budget, budget.scale(share));
    }
    let until = match (step.when, work.context.budget) {
        (StepMoment::Over { .. }, None) => return,
        (StepMoment::Over { share, until }, Some(budget)) => {
            if work.draft.total <= budget.scale(share) {
                return;
            }
            let room = if until == Some(share) { work.context.policy.room } else { 1.0 };
            until.map(|until| budget.scale(until * room))
        }
        (StepMoment::Cold, _) if !work.context.cache.cold => return,
        (StepMoment::Birth | StepMoment::Cold | StepMoment::Pays | StepMoment::Always, _) => None,
    };
    let chosen = find_candidates(work, step);
    if !is_batch(work.context.policy, step, chosen.len()) {
        return;
    }
    for (id, reason) in chosen {
        if until.is_some_and(|until| work.draft.total <= until) {
            break;
        }
        // What makes a block redundant may itself have been hidden by this step.
        if !step.select.redundant.is_empty() && find_redundancy(work, step, id).is_none() {
            continue;
        }
        if step.when == StepMoment::Birth && work.context.was_sent(id) {
            continue;
        }
        // What is only written otherwise is weighed by what that saves.
        let hides = !matches!(step.act, StepAction::Rewrite(_));
        if step.when == StepMoment::Birth && hides && is_cacheless(work, work.tokens(id)) {
            continue;
        }
        work.apply_act(id, &step.act, &reason);
    }
}

/// Tells whether so many results are enough for a step that moves on in batches.
fn is_batch(policy: &Policy, step: &PolicyStep, results: usize) -> bool {
    match policy.batch {
        BatchSize::Results(least) if step.when == StepMoment::Always && step.moves_on() => {
            results >= widen(least)
        }
        BatchSize::Results(_) | BatchSize::WhatPays => true,
    }
}

/// Tells whether a request that says so much less is too small for the provider's cache, and may then cost more at every turn.
/// Only policies that look at prices ask.
pub(super) fn is_cacheless(work: &Work<'_>, less: Tokens) -> bool {
    let priced = work.context.policy.steps.iter().any(|step| step.when == StepMoment::Pays);
    priced && work.draft.total - less + work.context.cache.unseen < work.context.cache.minimum
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            pass_case::{PassCase, lines},
            repeat::repeat_sent,
        },
        *,
    };
    use crate::verdict::{Reason, Verdict};

    fn take_all(work: &mut Work<'_>) {
        take_steps(work, &work.context.policy.steps);
    }

    #[test]
    fn at_birth_only_what_was_never_sent_is_shortened() {
        let steps = "[[step]]\nwhen = \"birth\"\nselect = { tokens_over = 60 }\ndo = \"clear\"\n";
        let text = lines("a", 40);
        let case = PassCase::new(steps, &[text.as_str(); 3]).sent_up_to(1, &[]);
        assert_eq!(case.try_passes(take_all), ["keep", "keep", "shorten"]);
    }

    #[test]
    fn under_pressure_the_oldest_go_until_it_is_enough() {
        let steps = "[[step]]\nwhen = \"over 1.0 until 0.8\"\nselect = { keep_last = 1 }\ndo = \"clear\"\n";
        let text = lines("a", 60);
        let mut case = PassCase::new(steps, &[text.as_str(); 5]);
        let total = case.look_after(|_| {}, |work| work.draft.total);
        case.budget = Some(total);
        assert_eq!(case.try_passes(take_all), ["keep"; 5], "it fits");
        case.budget = Some(total.scale(0.9));
        let [goal, left] = [total.scale(0.72), case.look_after(take_all, |work| work.draft.total)];
        assert!(left <= goal);
        assert_eq!(case.try_passes(take_all), ["shorten", "shorten", "keep", "keep", "keep"]);
    }

    #[test]
    fn a_copy_of_what_is_sent_whole_is_a_pointer_and_one_of_what_is_hidden_is_not() {
        let steps = "[[step]]\nwhen = \"always\"\nselect = { redundant = [\"identical\"] }\ndo = \"clear\"\n";
        let text = lines("a", 40);
        let case = PassCase::new(steps, &[text.as_str(); 2]);
        assert_eq!(case.try_passes(take_all), ["keep", "point"]);
        let shorter = Verdict::hiding(Some("[less]".into()), Reason::TooOld);
        let case = PassCase::new(steps, &[text.as_str(); 2]).sent_up_to(0, &[(0, shorter)]);
        let passes = |work: &mut Work<'_>| {
            repeat_sent(work);
            take_all(work);
        };
        assert_eq!(case.try_passes(passes), ["shorten", "keep"]);
    }
}
