//! What decisions save and cost. Takes the verdicts and what was sent before; gives for each block that is hidden the moment
//! it is hidden at, and for each moment what it saves at every request and costs now. Never decides anything.

use serde::Serialize;

use super::{
    cost::{CacheBreak, is_same},
    cut::break_even,
    work::Work,
};
use crate::{
    history::{BlockId, Blocks},
    units::Tokens,
    verdict::{Decision, Verdict},
};

/// The moment at which a block is hidden. It says what that costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Moment {
    /// It is sent as it was sent before: nothing is cached again.
    Before,
    /// It is sent for the first time: nothing after it is cached again.
    New,
    /// The provider's cache is cold: everything is cached again, hidden or not.
    Cold,
    /// The cache is warm, and what is cached again is paid back.
    Pays,
    /// The cache is warm, and the policy or the budget asks for it whatever it costs.
    Warm,
}

impl Moment {
    const ALL: [Moment; 5] = [Moment::Before, Moment::New, Moment::Cold, Moment::Pays, Moment::Warm];

    /// Returns the moment in a word.
    pub fn word(self) -> &'static str {
        match self {
            Moment::Before => "before",
            Moment::New => "new",
            Moment::Cold => "cold",
            Moment::Pays => "pays",
            Moment::Warm => "warm",
        }
    }
}

/// What is saved and paid by all that is hidden at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MomentSum {
    /// The moment.
    pub when: Moment,
    /// How many blocks are hidden at it.
    pub blocks: usize,
    /// How many tokens fewer every request has.
    pub saved_per_request: Tokens,
    /// How many cached tokens are cached again now.
    pub written_anew: Tokens,
    /// How many more requests it takes until that is paid back; infinite where it never is.
    pub break_even_requests: f64,
    /// How many more requests are expected, where that decided.
    pub expected_requests: Option<f64>,
}

/// Says when each block is hidden; nothing for what is not.
pub(super) fn hiding_moments(work: &Work<'_>) -> Blocks<Option<Moment>> {
    let (context, cut) = (work.context, work.draft.cut.as_ref());
    let pays = |id: &BlockId| cut.is_some_and(|cut| cut.edits.contains(id));
    let moment = |decision: &Decision| match decision.block {
        _ if decision.verdict == Verdict::Keep => None,
        id if !context.was_sent(id) => Some(Moment::New),
        id if is_same(work, id) => Some(Moment::Before),
        _ if context.cache.cold => Some(Moment::Cold),
        id if pays(&id) => Some(Moment::Pays),
        _ => Some(Moment::Warm),
    };
    work.draft.decisions.iter().map(moment).collect()
}

/// Adds up what is saved and paid, by moment.
pub(super) fn sum_by_moment(
    work: &Work<'_>,
    moments: &Blocks<Option<Moment>>,
    broken: Option<CacheBreak>,
) -> Vec<MomentSum> {
    let (context, cut) = (work.context, work.draft.cut.as_ref());
    let prices = context.cache.prices;
    let anew = broken.filter(|_| !context.cache.cold).map_or(Tokens::ZERO, |broken| broken.rewritten);
    let sum = |when: Moment| {
        let hidden =
            moments.iter().zip(work.draft.decisions.iter()).filter(|(moment, _)| **moment == Some(when));
        let hidden: Vec<BlockId> = hidden.map(|(_, decision)| decision.block).collect();
        if hidden.is_empty() {
            return None;
        }
        let saved = hidden.iter().map(|id| work.tokens(*id) - work.tokens_now(*id)).sum();
        let free = MomentSum {
            when,
            blocks: hidden.len(),
            saved_per_request: saved,
            written_anew: Tokens::ZERO,
            break_even_requests: 0.0,
            expected_requests: None,
        };
        Some(match (when, cut) {
            (Moment::Pays, Some(cut)) => MomentSum {
                written_anew: cut.rewritten,
                break_even_requests: cut.break_even,
                expected_requests: Some(cut.expected),
                ..free
            },
            (Moment::Warm, _) => {
                let written_anew = anew - cut.map_or(Tokens::ZERO, |cut| cut.rewritten);
                let dearer =
                    (prices.write - prices.read) * written_anew.to_float() - prices.read * saved.to_float();
                MomentSum {
                    written_anew,
                    break_even_requests: break_even(dearer, prices.read * saved.to_float()),
                    ..free
                }
            }
            (Moment::Before | Moment::New | Moment::Cold | Moment::Pays, _) => free,
        })
    };
    Moment::ALL.into_iter().filter_map(sum).collect()
}
