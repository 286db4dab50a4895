//! The pass that repairs pointers: a note that points at what is no longer shown says what became of that instead.

use super::work::Work;
use crate::{history::BlockId, policy::StepAction, verdict::Reason};

/// Repairs what points at what is no longer shown: it is the same content. Tells whether there was anything to repair.
pub(super) fn repair_pointers(work: &mut Work<'_>) -> bool {
    let pointers = work.request.history.ids();
    let broken: Vec<(BlockId, Reason)> = pointers
        .filter_map(|id| {
            let target = work.verdict_of(pointer_target(work, id)?);
            let reason = target.reason().filter(|_| !target.shows_all())?;
            // This block is in no summary itself, and what came before it says nothing about it.
            let step = work.request.facts[id].step;
            let reason = match reason {
                Reason::Folded { .. } => Reason::OverBudget,
                Reason::Stale { edit: at } | Reason::Superseded { by: at } if at <= step => Reason::TooOld,
                reason => reason,
            };
            Some((id, reason))
        })
        .collect();
    let is_broken = !broken.is_empty();
    for (id, reason) in broken {
        work.say_instead(id, &StepAction::Clear, reason);
    }
    is_broken
}

/// Returns what a block points at, where a note stands in its place that says so.
pub(super) fn pointer_target(work: &Work<'_>, id: BlockId) -> Option<BlockId> {
    work.source_block(id, work.verdict_of(id))
}

#[cfg(test)]
mod tests {
    use super::{
        super::pass_case::{PassCase, lines},
        *,
    };
    use crate::{policy::StepAction, verdict::Verdict};

    #[test]
    fn a_pointer_whose_copy_goes_says_why_that_went() {
        let text = lines("a", 60);
        let case = PassCase::new("", &[text.as_str(); 3]);
        let results = case.results();
        let point_at_hidden = |work: &mut Work<'_>| {
            work.apply_act(results[1], &StepAction::Clear, &Reason::Identical { to: 1 });
            assert!(!repair_pointers(work), "the copy is visible");
            work.apply_act(results[0], &StepAction::Clear, &Reason::TooOld);
            assert!(repair_pointers(work) && !repair_pointers(work), "each note changes once");
        };
        assert_eq!(case.try_passes(point_at_hidden), ["shorten", "shorten", "keep"]);
        let reason = case.look_after(point_at_hidden, |work| work.verdict_of(results[1]).reason());
        assert_eq!(reason, Some(Reason::TooOld));
        let trim = Verdict::Trim { text: "x".into(), at: 1, handle: String::new() };
        assert_eq!(
            case.look_after(|_| {}, |work| work.source_block(results[1], &trim)),
            None,
            "no such block"
        );
    }
}
