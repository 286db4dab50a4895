//! Other tools' policies and the bounds that know the future. Takes a track and a parameter; gives views, unchecked: a peer may
//! break the protocol, and the report says so. Never plans: these are plain functions for comparison.
//!
//! Each has its own file with the words its product shows and the way its product estimates tokens.

mod clear_tool_uses;
mod cline_dup_read;
mod drop_read_on_edit;
mod gemini_masking;
mod ingest_cap;
mod last_n_polling;
mod mask;
mod messages;
mod opencode_prune;
pub(in crate::replay) mod schedule;
mod sliding_window;
#[cfg(test)]
pub(in crate::replay) mod tests;
mod trim_messages;
pub(in crate::replay) mod walk;

use trimtab_core::{Tokens, prices::Model};

pub(in crate::replay) use sliding_window::exchanges_of;

use super::{
    Track, Views,
    oracle::{self, ResultNeed},
};

/// What a rival is asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerCase<'a> {
    pub(crate) track: &'a Track<'a>,
    pub(crate) knob: f64,
    /// What later answers use of earlier blocks. Only the oracles look at it.
    pub(crate) needs: &'a [ResultNeed],
    /// What of the budget is left for what is recorded, in our own counts. Only the oracles that keep it look at it.
    pub(crate) room: Tokens,
    /// Whose prices are paid. Only the oracles that pay for their edits look at it.
    pub(crate) model: &'a Model,
}

/// What a rival looks at beside the recording, and how its edits are charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RivalRole {
    /// Another tool's method: it looks at the recording alone and pays for its edits.
    Peer,
    /// A bound: it looks at the recording alone, and its edits cost nothing.
    FreeEdits,
    /// A bound that keeps the budget, and whose edits cost nothing.
    FreeWithinBudget,
    /// A plan made with hindsight: it looks at budget and prices, and pays for its edits.
    PaidPlan,
}

impl RivalRole {
    /// Tells whether edits are charged nothing.
    pub(crate) fn has_free_edits(self) -> bool {
        matches!(self, RivalRole::FreeEdits | RivalRole::FreeWithinBudget)
    }
}

/// A policy that is not ours.
#[derive(Debug)]
pub(crate) struct Rival {
    /// `peer:mask`, `oracle:block`.
    pub(crate) name: &'static str,
    /// What it does, in a sentence.
    pub(crate) about: &'static str,
    /// What its number means and which values are compared; the first is its own default. Empty: it has no number.
    pub(crate) knob: (&'static str, &'static [f64]),
    pub(crate) role: RivalRole,
    pub(crate) views: fn(&PeerCase<'_>) -> Views,
}

/// All rivals. A new one is one file and one line.
const RIVALS: &[Rival] = &[
    clear_tool_uses::PROVIDER,
    clear_tool_uses::LIBRARY,
    mask::MASK,
    mask::BATCHED,
    mask::SKI,
    opencode_prune::RIVAL,
    gemini_masking::RIVAL,
    cline_dup_read::RIVAL,
    last_n_polling::RIVAL,
    trim_messages::FROM_HUMAN,
    trim_messages::ANYWHERE,
    trim_messages::REPAIRED,
    sliding_window::RIVAL,
    ingest_cap::RIVAL,
    drop_read_on_edit::RIVAL,
    oracle::FLOOR,
    oracle::BLOCK,
    oracle::LINE,
    oracle::BLOCK_PAID,
    oracle::BUDGET,
    oracle::BUDGET_LINE,
    oracle::BUDGET_PAID,
];

/// Returns all rivals.
pub(crate) fn rivals() -> &'static [Rival] {
    RIVALS
}

/// Finds a rival by `name` or `name(value)` and returns it with the value of its parameter: its default where none is given, 0 where
/// it has none.
#[cfg(test)]
pub(crate) fn find_rival(asked: &str) -> Option<(&'static Rival, f64)> {
    let (name, given) = match asked.strip_suffix(')') {
        Some(open) => {
            let (name, knob) = open.split_once('(')?;
            (name, Some(knob.trim().parse::<f64>().ok().filter(|knob| knob.is_finite() && *knob >= 0.0)?))
        }
        None => (asked, None),
    };
    let found = RIVALS.iter().find(|rival| rival.name == name)?;
    match (found.knob.1.first(), given) {
        (Some(default), given) => Some((found, given.unwrap_or(*default))),
        (None, None) => Some((found, 0.0)),
        (None, Some(_)) => None,
    }
}

/// Reads a parameter as a whole number.
fn knob_as_count(knob: f64) -> usize {
    usize::try_from(Tokens(1).scale(knob).0).unwrap_or(usize::MAX)
}

/// Reads a parameter as tokens; below 1 it is a share of the segment's largest request.
fn knob_as_budget(track: &Track<'_>, knob: f64) -> Tokens {
    if knob < 1.0 { walk::peak_tokens(track).scale(knob) } else { Tokens(1).scale(knob) }
}
