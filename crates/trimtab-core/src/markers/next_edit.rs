//! Where the next edit is expected: what a policy hides next follows what it hid last. Takes a request and its plan; gives the end of the
//! request before that place, so that a marker there is in the cache by then. Never looks at what a policy says.

use crate::{
    history::{BlockKind, History, Role},
    json::widen,
    plan::Plan,
    verdict::Verdict,
};

/// Returns how many blocks of the request, as it is sent, follow the place before the next expected edit; nothing where no result can be
/// hidden next.
pub fn place_of_next_edit(history: &History, plan: &Plan) -> Option<usize> {
    let decisions = plan.decisions();
    let hidden = decisions.iter().rposition(|decision| decision.verdict != Verdict::Keep);
    let from = hidden.map_or(0, |last| last + 1);
    let is_result = |block: &crate::history::Block| block.kind == BlockKind::Result;
    let next = from + history.blocks().iter().skip(from).position(is_result)?;
    let asked_in = widen(history.blocks().get(next)?.entry.0);
    let earlier = history.entries().get(..asked_in)?;
    let answer = earlier.iter().rposition(|entry| entry.role == Role::Assistant)?;
    let before = earlier.get(..answer)?.iter().rfind(|entry| entry.role != Role::Assistant)?;
    let rest = decisions.get(history.blocks_before_end(before)..)?;
    Some(rest.iter().filter(|decision| !decision.verdict.is_gone()).count())
}
