//! Runs a policy: takes its passes in order over one draft, closes until the request fits, and makes the [`Plan`] of what is left.
//! Never looks at the clock: what time it is comes with the context.

use super::{
    Plan, PlanError, TextCache,
    close::close_to_budget,
    context::{PlanContext, RequestView},
    fold::fold_what_is_left,
    mend::repair_pointers,
    passes::{PassName, pipeline},
    paying_cut::take_what_pays,
    steps::take_steps,
    unbind::drop_bound_reasoning,
    work::Work,
};
use crate::{count::CountMemo, policy::StepMoment};

/// Decides what becomes of every block.
pub(crate) fn plan(
    request: RequestView<'_>,
    context: &PlanContext<'_>,
    memo: &mut CountMemo,
    made: &mut TextCache,
) -> Result<Plan, PlanError> {
    let mut work = Work::new(request, context, memo, made);
    for pass in pipeline(&work) {
        pass.run(&mut work);
    }
    take_what_is_free_now(&mut work);
    // What closing hides may be what a note points at, and what the note then says may be longer. Each note changes once.
    let floor = loop {
        let before = work.draft.total;
        work.draft.pass = PassName::Close;
        let floor = context.budget.and_then(|budget| close_to_budget(&mut work, budget));
        work.draft.pass = PassName::Mend;
        let has_mended = repair_pointers(&mut work);
        if has_mended && context.cache.cold {
            take_again_what_is_longer(&mut work);
        }
        let has_closed = work.draft.total != before;
        work.draft.pass = PassName::Fold;
        // With less after its cut, a fold that could not help before closing may help now.
        let goes_on = has_mended || (has_closed && fold_what_is_left(&mut work));
        if !goes_on {
            break floor;
        }
    };
    work.draft.pass = PassName::Unbind;
    drop_bound_reasoning(&mut work);
    Plan::new(work, floor)
}

/// Hides on a cold cache what nothing needs any more since room was made: where a note points at a result that made room, its
/// source has no reason to stay.
fn take_what_is_free_now(work: &mut Work<'_>) {
    if !work.context.cache.cold || !work.draft.has_paid {
        return;
    }
    work.draft.pass = PassName::Pays;
    loop {
        let before = work.draft.total;
        take_what_pays(work);
        // What is only said otherwise frees nothing.
        if work.draft.total >= before {
            return;
        }
    }
}

/// Takes the steps again that leave alone what would make the request too small for the cache: with longer notes it may be large
/// enough.
fn take_again_what_is_longer(work: &mut Work<'_>) {
    work.draft.pass = PassName::Birth;
    for step in work.context.policy.steps.iter().filter(|step| step.when == StepMoment::Birth) {
        take_steps(work, std::slice::from_ref(step));
    }
    if work.draft.has_paid {
        work.draft.pass = PassName::Pays;
        take_what_pays(work);
    }
}
