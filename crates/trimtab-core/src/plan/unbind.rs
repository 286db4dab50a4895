//! The last pass, for models that bind their reasoning to everything before it: reasoning whose signature no longer holds goes.

use super::{cost::first_change, units::running_loop, work::Work};
use crate::{
    history::{BlockId, BlockKind},
    verdict::Reason,
};

/// Removes all reasoning after the first edit of what was sent: its signature no longer holds.
pub(super) fn drop_bound_reasoning(work: &mut Work<'_>) {
    if !work.context.cache.binds_reasoning {
        return;
    }
    let Some(first) = first_change(work) else { return };
    let edit = work.request.facts[first].step;
    let is_reasoning = |id: &BlockId| *id > first && work.request.history[*id].kind == BlockKind::Reasoning;
    let behind: Vec<BlockId> = work.request.history.ids().filter(is_reasoning).collect();
    for id in behind {
        work.drop_alone(id, &Reason::Unbound { edit });
    }
}

/// Tells whether the model has reasoned in the running tool loop, and bound that to everything before it.
pub(super) fn is_bound_loop(work: &Work<'_>) -> bool {
    let units = work.request.units.all_units();
    let start = running_loop(units, work.request.facts);
    let mut blocks = units.iter().skip(start).flat_map(|unit| &unit.blocks);
    let is_reasoning = |id: &BlockId| work.request.history[*id].kind == BlockKind::Reasoning;
    work.context.cache.binds_reasoning && blocks.any(is_reasoning)
}

#[cfg(test)]
mod tests {
    use super::{
        super::pass_case::{PassCase, lines},
        *,
    };

    #[test]
    fn nothing_goes_where_nothing_is_bound() {
        let text = lines("a", 60);
        let mut case = PassCase::new("", &[text.as_str(); 3]).sent_up_to(2, &[]);
        case.cache.binds_reasoning = true;
        assert_eq!(case.try_passes(drop_bound_reasoning), ["keep"; 3], "there is no reasoning");
        assert!(!case.look_after(|_| {}, is_bound_loop));
    }
}
