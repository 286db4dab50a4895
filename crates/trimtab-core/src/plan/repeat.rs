//! The second pass: what was sent before is sent again as it was, so that the provider's cache holds it. The target of a pointer stays
//! visible while that costs nothing. Never hides anything that was whole.

use std::collections::BTreeSet;

use super::{
    MessageUnit,
    fold::{fold_again, protect_loop},
    unbind::is_bound_loop,
    units::{going_turns, running_loop},
    work::Work,
};
use crate::{
    history::BlockId,
    verdict::{Reason, SentVerdict, Verdict},
};

/// Sends again what was sent before as it was sent. The target of a pointer stays visible while that costs nothing.
pub(super) fn repeat_sent(work: &mut Work<'_>) {
    let context = work.context;
    let folded = fold_again(work);
    // Where nothing may change, a wish waits.
    let is_bound = is_bound_loop(work);
    let released = if is_bound { BTreeSet::new() } else { context.wished.released_blocks(work) };
    for id in context.before.sent.ids().filter(|id| !released.contains(id)) {
        let Some(sent) = context.sent_before(id) else { continue };
        match sent.verdict() {
            // What a summary stood for is whole again where the summary is not in this conversation.
            Verdict::Keep | Verdict::Fold { .. } => {}
            gone @ Verdict::Drop { reason } if gone.goes_alone() => work.drop_alone(id, reason),
            Verdict::Drop { reason } => {
                work.drop_unit(id, reason);
            }
            verdict @ (Verdict::Shorten { text, .. }
            | Verdict::Point { text, .. }
            | Verdict::Trim { text, .. }
            | Verdict::Rewrite { text, .. }) => {
                work.repeat_text(id, verdict, text);
            }
        }
    }
    if context.cache.binds_reasoning {
        work.drop_released_reasoning(&released);
    }
    let dropped = |id: &BlockId| {
        let sent = [context.sent_before(*id), context.before.sent_elsewhere(*id)];
        let mut verdicts = sent.into_iter().flatten().map(SentVerdict::verdict);
        !released.contains(id) && verdicts.any(Verdict::leaves_nothing)
    };
    hide_rewritten(work, &released, dropped);
    let gone = |id: &BlockId| !released.contains(id) && (folded.is_some_and(|end| *id < end) || dropped(id));
    let is_gone = |turn: &[&MessageUnit]| turn.iter().all(|unit| unit.blocks.iter().all(gone));
    let whole_turns: Vec<BlockId> = going_turns(work.request.units.all_units(), is_gone)
        .into_iter()
        .flat_map(|turn| turn.into_iter().flat_map(|unit| unit.blocks.clone()))
        .collect();
    for id in whole_turns {
        work.drop_alone(id, &Reason::OverBudget);
    }
    protect_loop(work);
    if context.cache.binds_reasoning {
        pin_running_loop(work);
    }
}

/// Hides what was hidden before the client rewrote what precedes it.
fn hide_rewritten(work: &mut Work<'_>, released: &BTreeSet<BlockId>, dropped: impl Fn(&BlockId) -> bool) {
    let context = work.context;
    for id in work.request.history.ids().filter(|id| !released.contains(id)) {
        let Some(sent) = context.before.sent_elsewhere(id) else { continue };
        match sent.verdict() {
            Verdict::Keep => {}
            gone @ Verdict::Drop { reason } if gone.goes_alone() => work.drop_alone(id, reason),
            hidden @ (Verdict::Drop { .. } | Verdict::Fold { text: None, .. }) => {
                let whole = work.unit_of_block(id).is_some_and(|unit| unit.blocks.iter().all(&dropped));
                if let Some(reason) = hidden.reason().filter(|_| whole) {
                    work.drop_unit(id, &reason);
                }
            }
            pointer @ (Verdict::Point { text, .. } | Verdict::Trim { text, .. }) => {
                let source = work.source_block(id, pointer);
                if source.is_some_and(|source| work.verdict_of(source).shows_all()) {
                    work.repeat_text(id, pointer, text);
                }
            }
            shorter @ (Verdict::Shorten { text, .. }
            | Verdict::Rewrite { text, .. }
            | Verdict::Fold { text: Some(text), .. }) => {
                work.repeat_text(id, shorter, text);
            }
        }
    }
}

/// Leaves what was sent up to the end of the running tool loop alone: its reasoning can neither stay after an edit nor go.
fn pin_running_loop(work: &mut Work<'_>) {
    let (context, units) = (work.context, work.request.units.all_units());
    let start = if is_bound_loop(work) { 0 } else { running_loop(units, work.request.facts) };
    for id in units.iter().skip(start).flat_map(|unit| &unit.blocks) {
        if context.before.memory.is_empty() || context.was_sent(*id) {
            work.pin(*id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::pass_case::{PassCase, lines},
        *,
    };

    fn hidden(text: Option<&str>, reason: Reason) -> Verdict {
        Verdict::hiding(text.map(Into::into), reason)
    }

    #[test]
    fn every_verdict_is_repeated_as_it_was_and_what_is_new_is_whole() {
        let text = lines("a", 40);
        let named = Reason::Shown { at: 1, handle: "0123456789ab".to_owned() };
        let sent = [
            (0, hidden(Some("[less]"), Reason::TooOld)),
            (1, hidden(Some("[same]"), Reason::Identical { to: 1 })),
            (2, hidden(Some("[some]"), named)),
            (3, hidden(None, Reason::OverBudget)),
        ];
        let case = PassCase::new("", &[text.as_str(); 6]).sent_up_to(4, &sent);
        assert_eq!(case.try_passes(repeat_sent), ["shorten", "point", "trim", "drop", "keep", "keep"]);
        let texts = |work: &Work<'_>| -> Vec<_> {
            case.results().into_iter().filter_map(|id| work.verdict_of(id).text().cloned()).collect()
        };
        assert_eq!(case.look_after(repeat_sent, texts), ["[less]".into(), "[same]".into(), "[some]".into()]);
    }

    #[test]
    fn what_a_summary_stood_for_is_whole_where_the_summary_is_not_there() {
        let text = lines("a", 40);
        let folded = hidden(None, Reason::Folded { messages: 3, through: 1, at: 4 });
        let case = PassCase::new("", &[text.as_str(); 3]).sent_up_to(1, &[(0, folded)]);
        assert_eq!(case.try_passes(repeat_sent), ["keep", "keep", "keep"]);
    }
}
