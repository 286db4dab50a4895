//! A plan in the making: [`Draft`], what is decided about every block so far and the sums over it. A draft is a value: a pass that may
//! turn out to be a loss works on one and puts the earlier one back.

use std::collections::{BTreeSet, HashMap};

use super::{
    RequestView, cut::PayingCut, fold::FoldNeed, passes::PassName, series::SeriesLog,
    visible_names::VisibleNames,
};
use crate::{
    facts::{Fact, Voice},
    history::{BlockId, BlockKind, Blocks, Role},
    units::Tokens,
    verdict::{Decision, Verdict},
};

/// What is decided so far.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) decisions: Blocks<Decision>,
    /// What each block counts as it is sent.
    pub(super) sent_tokens: Blocks<Tokens>,
    /// The pass that said what each hidden block is sent as.
    pub(super) decided_by: Blocks<Option<PassName>>,
    pub(super) pins: Blocks<Pins>,
    /// What the request counts.
    pub(super) total: Tokens,
    /// How many blocks of each entry are still sent.
    pub(super) left: Vec<u32>,
    /// The names in what is sent, once something asked for them.
    pub(super) visible: Option<VisibleNames>,
    /// The latest note that points at a block, by that block.
    pub(super) pointed_at: HashMap<BlockId, BlockId>,
    /// The series of edits that are listed once.
    pub(super) series: SeriesLog,
    /// Units that may not go, by number: what is left of a running loop begins with them.
    pub(super) kept_units: BTreeSet<u32>,
    /// Whether one message stands for the beginning of the conversation.
    pub(super) is_folded: bool,
    /// The pass at work.
    pub(super) pass: PassName,
    /// What came of the steps that fold.
    pub(super) fold: FoldNeed,
    /// Whether the steps that wait until it pays were taken.
    pub(super) has_paid: bool,
    /// What they hide, where that pays.
    pub(super) cut: Option<PayingCut>,
}

/// What keeps a block from being hidden.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pins {
    /// Nothing hides it.
    pub(super) block: bool,
    /// A step pinned it: no fold takes it either.
    pub(super) by_step: bool,
    /// Its exchange never goes.
    pub(super) exchange: bool,
}

impl Draft {
    /// Begins with everything unchanged. System, tools, instructions and the user's words are never hidden by a step.
    pub(super) fn new(request: RequestView<'_>) -> Draft {
        let RequestView { history, facts, counts, .. } = request;
        let blocks = history.blocks().len();
        Draft {
            decisions: Blocks::from_fn(blocks, Decision::keep),
            sent_tokens: Blocks::from_fn(blocks, |id| counts[id]),
            decided_by: Blocks::with_rows(blocks, None),
            pins: Blocks::from_fn(blocks, |id| Pins { block: is_sacred(&facts[id]), ..Pins::default() }),
            total: counts.total(),
            left: history.entries().iter().map(|entry| entry.blocks).collect(),
            visible: None,
            pointed_at: HashMap::new(),
            series: SeriesLog::default(),
            kept_units: BTreeSet::new(),
            is_folded: false,
            pass: PassName::Pin,
            fold: FoldNeed::default(),
            has_paid: false,
            cut: None,
        }
    }

    pub(super) fn verdict(&self, id: BlockId) -> &Verdict {
        &self.decisions[id].verdict
    }
}

/// Tells whether a block is never hidden by a step.
fn is_sacred(fact: &Fact) -> bool {
    let person = matches!(fact.voice, Some(Voice::Person | Voice::Instructions | Voice::Summary));
    let head = matches!(fact.role, Role::System | Role::Tools);
    head || fact.instructions || (person && fact.acts_as != BlockKind::Result)
}
