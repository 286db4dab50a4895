//! The first pass: what must stay is pinned, by the steps of the policy that keep blocks and by what somebody asked for by handle.

use super::{candidates::find_candidates, work::Work};
use crate::policy::StepAction;

/// Pins what must stay.
pub(super) fn pin_blocks(work: &mut Work<'_>) {
    let keeps = |act: &StepAction| matches!(act, StepAction::Pin | StepAction::Hold);
    for step in work.context.policy.steps.iter().filter(|step| keeps(&step.act)) {
        for (id, reason) in find_candidates(work, step) {
            work.apply_act(id, &step.act, &reason);
        }
    }
    for id in work.context.wished.pinned_blocks() {
        work.pin(id);
        work.pin_exchange(id);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            pass_case::{PassCase, lines},
            steps::take_steps,
        },
        *,
    };

    #[test]
    fn what_is_pinned_is_hidden_by_no_later_step_and_its_exchange_stays() {
        let steps = "[[step]]\nwhen = \"always\"\nselect = { keep_last = 1 }\ndo = \"drop\"\n\
                     [[step]]\nwhen = \"always\"\nselect = { chars_over = 2000 }\ndo = \"pin\"\n";
        let (long, short) = (lines("a", 100), lines("b", 20));
        let case = PassCase::new(steps, &[&short, &long, &short, &short]);
        let hidden = case.try_passes(|work| {
            pin_blocks(work);
            take_steps(work, &work.context.policy.steps[..1]);
        });
        assert_eq!(hidden, ["drop", "keep", "drop", "keep"]);
    }
}
