//! What could be done if the future were known. Takes a track and what later answers use of earlier results; gives views in
//! which nothing is hidden that is still needed. Never brings a result back.
//!
//! `oracle:floor`, `oracle:block` and `oracle:line` are bounds: their edits are free. `oracle:budget` and
//! `oracle:budget-line` keep a budget with free edits. The paid ones are plans: they pay for their edits like everybody else.

mod cuts;
mod floor;
mod paid;
mod room;

use std::{collections::HashMap, ops::Range};

use trimtab_core::BlockId;

pub(super) use floor::floor_oracle;

use super::{
    Track, Views,
    peers::{
        Rival, RivalRole,
        walk::{PeerWalk, text_of},
    },
};

/// Something in a result that a later answer uses. A use with several providers is a need of the latest of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResultNeed {
    /// What it is.
    pub(crate) kind: NeedKind,
    /// The result that provides it.
    pub(crate) provider: BlockId,
    /// Whether nothing else in the request shows it.
    pub(crate) only_there: bool,
    /// The request whose answer uses it, counted from 0.
    pub(crate) request: usize,
    /// The lines of the result's text that are used, counted from 0; empty where that is not known: then all of them are.
    pub(crate) lines: Vec<Range<usize>>,
}

/// What a later answer uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NeedKind {
    /// A text that an edit replaces.
    Anchor,
    /// A name.
    Name,
    /// A line that is copied.
    Line,
}

impl NeedKind {
    /// Returns what losing it counts, where not all can be kept: an edit fails without its text; a name or a line is often
    /// found elsewhere (the weights of the study that the bounds were first measured in).
    fn weight(self) -> f64 {
        match self {
            NeedKind::Anchor => 1.0,
            NeedKind::Name | NeedKind::Line => 0.25,
        }
    }
}

/// What stands in the place of a result that nobody needs any more. A bound says nothing that costs more.
const HIDDEN: &str = "[hidden]";

pub(super) const FLOOR: Rival = Rival {
    name: "oracle:floor",
    about: "Knows the future: shows of every result from the start only what is edited or copied later; edits are free. A bound for \
            everything that hides results and loses nothing.",
    knob: ("", &[]),
    role: RivalRole::FreeEdits,
    views: |case| floor_oracle(case.track, case.needs),
};

pub(super) const BLOCK: Rival = Rival {
    name: "oracle:block",
    about: "Knows the future: hides every result after its last use; edits are free. A bound, not a policy.",
    knob: ("", &[]),
    role: RivalRole::FreeEdits,
    views: |case| block_oracle(case.track, case.needs),
};

pub(super) const LINE: Rival = Rival {
    name: "oracle:line",
    about: "Knows the future: keeps of every result only the lines around later uses; edits are free. A bound, not a policy.",
    knob: ("", &[]),
    role: RivalRole::FreeEdits,
    views: |case| line_oracle(case.track, case.needs),
};

pub(super) const BLOCK_PAID: Rival = Rival {
    name: "oracle:block-paid",
    about: "Knows the future: hides results after their last use at the moments where that saves most; edits are paid. The best plan \
            that a search finds.",
    knob: ("", &[]),
    role: RivalRole::PaidPlan,
    views: paid::paid_without_budget,
};

pub(super) const BUDGET: Rival = Rival {
    name: "oracle:budget",
    about: "Knows the future and keeps the budget: hides first what is never needed, then what is needed least per token; edits are \
            free. A bound, not a policy.",
    knob: ("", &[]),
    role: RivalRole::FreeWithinBudget,
    views: |case| room::views_within_room(case, room::ShownRest::Whole),
};

pub(super) const BUDGET_LINE: Rival = Rival {
    name: "oracle:budget-line",
    about: "The same, but keeps of every result only the lines around later uses. A bound, not a policy.",
    knob: ("", &[]),
    role: RivalRole::FreeWithinBudget,
    views: |case| room::views_within_room(case, room::ShownRest::NeededLines),
};

pub(super) const BUDGET_PAID: Rival = Rival {
    name: "oracle:budget-paid",
    about: "Knows the future, keeps the budget and pays for its edits: when and how deep it cuts is the best of several plans for each \
            segment.",
    knob: ("", &[]),
    role: RivalRole::PaidPlan,
    views: paid::paid_within_budget,
};

/// Keeps every result from its arrival until its last use.
pub(crate) fn block_oracle(track: &Track<'_>, needs: &[ResultNeed]) -> Views {
    let mut last_use: HashMap<BlockId, usize> = HashMap::new();
    for need in needs {
        let last = last_use.entry(need.provider).or_default();
        *last = need.request.max(*last);
    }
    after_first_sight(track, |block, request| match last_use.get(&block) {
        Some(last) if *last >= request => RemainingResult::Whole { until: *last },
        _ => RemainingResult::Text { text: HIDDEN.to_owned(), until: usize::MAX },
    })
}

/// Keeps of every result, once it was seen, the lines that later answers use, with one line before and after.
pub(crate) fn line_oracle(track: &Track<'_>, needs: &[ResultNeed]) -> Views {
    let mut of_block: HashMap<BlockId, Vec<&ResultNeed>> = HashMap::new();
    for need in needs {
        of_block.entry(need.provider).or_default().push(need);
    }
    after_first_sight(track, |block, request| {
        let needs = of_block.get(&block).into_iter().flatten();
        let later: Vec<&ResultNeed> = needs.copied().filter(|need| need.request >= request).collect();
        let Some(until) = later.iter().map(|need| need.request).min() else {
            return RemainingResult::Text { text: HIDDEN.to_owned(), until: usize::MAX };
        };
        if later.iter().any(|need| need.lines.is_empty()) {
            return RemainingResult::Whole { until };
        }
        RemainingResult::Text { text: needed_lines(&text_of(track, block), &later), until }
    })
}

/// What is left of a result from a request on.
enum RemainingResult {
    /// All of it, up to a request.
    Whole { until: usize },
    /// Another text, up to a request.
    Text { text: String, until: usize },
}

/// Shows every result whole once, and from then on what `left` says; asks it again when that no longer holds.
fn after_first_sight(track: &Track<'_>, mut left: impl FnMut(BlockId, usize) -> RemainingResult) -> Views {
    let mut walk = PeerWalk::new(track);
    // The results to look at before each request.
    let mut due: Vec<Vec<BlockId>> = vec![Vec::new(); track.requests.len() + 1];
    while let Some(request) = walk.next() {
        for block in due.get_mut(request).map(std::mem::take).unwrap_or_default() {
            let until = match left(block, request) {
                RemainingResult::Whole { until } => until,
                RemainingResult::Text { text, until } => {
                    let shown = walk.as_text(block, text);
                    // A short result is cheaper than what would stand in its place.
                    if walk.tokens_as(block, &shown) < walk.tokens_as(block, walk.shown_block(block)) {
                        walk.show_block(block, shown);
                    }
                    until
                }
            };
            if let Some(next) = due.get_mut(until.saturating_add(1)) {
                next.push(block);
            }
        }
        if let Some(next) = due.get_mut(request + 1) {
            next.extend(walk.new_results());
        }
    }
    walk.into_views()
}

/// Joins the lines that are needed and their neighbours. A bound pays for no mark where lines are missing.
fn needed_lines(text: &str, needs: &[&ResultNeed]) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut kept = vec![false; lines.len()];
    for range in needs.iter().flat_map(|need| &need.lines) {
        let around = range.start.saturating_sub(1)..range.end.saturating_add(1).min(lines.len());
        kept.get_mut(around).into_iter().flatten().for_each(|kept| *kept = true);
    }
    let needed = lines.iter().zip(kept).filter(|(_, kept)| *kept).map(|(line, _)| *line);
    needed.collect::<Vec<&str>>().join("\n")
}

#[cfg(test)]
mod tests;
