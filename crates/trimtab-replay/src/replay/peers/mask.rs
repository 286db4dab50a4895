//! Observation masking. Takes a track and how many of the last steps keep their results; gives views in which every older
//! result is a fixed sentence, at once or in batches. Never touches reasoning or calls.

use std::collections::VecDeque;

use trimtab_core::BlockId;

use super::{
    PeerCase, Rival, RivalRole, knob_as_count,
    schedule::schedule_edits,
    walk::{PeerWalk, text_of},
};
use crate::replay::{Track, Views};

/// How many steps keep their results: the study's default.
const KEPT_STEPS: usize = 10;

pub(super) const MASK: Rival = Rival {
    name: "peer:mask",
    about: "Replaces every tool result older than the last steps by a sentence, at every request.",
    knob: ("steps whose results are kept", &[10.0, 5.0, 20.0]),
    role: RivalRole::Peer,
    views: mask_old,
};

pub(super) const BATCHED: Rival = Rival {
    name: "peer:mask-batched",
    about: "Masks all but the last 10 steps, but only each time so many new results have come.",
    knob: ("results between two flushes", &[10.0, 1.0, 3.0, 15.0, 30.0]),
    role: RivalRole::Peer,
    views: mask_batched,
};

pub(super) const SKI: Rival = Rival {
    name: "peer:mask-ski",
    about: "Masks all but the last 10 steps once waiting has cost as much as rewriting the tail, or when the cache is cold.",
    knob: ("cost of a rewritten token in cached reads, (write - read) / read", &[11.5, 24.0, 49.0]),
    role: RivalRole::Peer,
    views: mask_by_rent,
};

fn mask_old(case: &PeerCase<'_>) -> Views {
    mask_when_due(case.track, knob_as_count(case.knob), |_| true)
}

fn mask_batched(case: &PeerCase<'_>) -> Views {
    let every = knob_as_count(case.knob).max(1);
    let mut flushed = 0;
    mask_when_due(case.track, KEPT_STEPS, |results| {
        let due = results / every > flushed;
        flushed = results / every;
        due
    })
}

fn mask_by_rent(case: &PeerCase<'_>) -> Views {
    schedule_edits(case.track, &mask_when_due(case.track, KEPT_STEPS, |_| true), case.knob)
}

/// Masks what is old enough at the requests that are due; `due` gets how many results have come so far.
fn mask_when_due(track: &Track<'_>, keep: usize, mut due: impl FnMut(usize) -> bool) -> Views {
    let mut walk = PeerWalk::new(track);
    let mut waiting: VecDeque<BlockId> = VecDeque::new();
    let mut results = 0;
    let keep = u32::try_from(keep).unwrap_or(u32::MAX);
    while walk.next().is_some() {
        let new = walk.new_results();
        results += new.len();
        waiting.extend(new);
        if !due(results) {
            continue;
        }
        let oldest_kept = (walk.step() + 1).saturating_sub(keep);
        let step = |block: BlockId| track.facts.row(block).map_or(0, |fact| fact.step);
        while let Some(block) = waiting.front().copied().filter(|block| step(*block) < oldest_kept) {
            waiting.pop_front();
            let lines = text_of(track, block).lines().count();
            walk.show_text(block, format!("[Previous {lines} lines omitted for brevity]"));
        }
    }
    walk.into_views()
}
