//! Clearing of tool uses above a trigger. Takes a track and the trigger in tokens; gives views in which all results but the
//! last three are a fixed text. Never touches calls: their inputs stay.

use trimtab_core::{BlockId, Tokens};

use super::{
    PeerCase, Rival, RivalRole, knob_as_budget,
    messages::{carried_messages, estimate_tokens, messages_of, system_estimate},
    walk::PeerWalk,
};
use crate::replay::{Track, Views};

/// How many results are kept: the default of both.
const KEPT_RESULTS: usize = 3;

const KNOB: (&str, &[f64]) = (
    "tokens above which it clears; below 1, a share of the segment's largest request",
    &[100_000.0, 50_000.0, 0.5],
);

pub(super) const PROVIDER: Rival = Rival {
    name: "peer:clear-tool-uses",
    about: "Clears all tool results but the last 3 when the request, as it was cleared before, is above a trigger.",
    knob: KNOB,
    role: RivalRole::Peer,
    views: by_provider,
};

pub(super) const LIBRARY: Rival = Rival {
    name: "peer:clear-tool-uses-langchain",
    about: "Clears all tool results but the last 3 whenever the untrimmed history is above a trigger.",
    knob: KNOB,
    role: RivalRole::Peer,
    views: by_library,
};

/// The provider knows its tokens, and what it cleared stays cleared.
fn by_provider(case: &PeerCase<'_>) -> Views {
    let trigger = knob_as_budget(case.track, case.knob);
    clear_when_due(case.track, "[tool result cleared]", |walk| walk.total_tokens() > trigger)
}

/// The library estimates, and looks at the whole history each time: once above, always above.
fn by_library(case: &PeerCase<'_>) -> Views {
    let (track, trigger) = (case.track, knob_as_budget(case.track, case.knob));
    let messages = messages_of(track);
    let mut counted = 0;
    let mut total = system_estimate(track);
    clear_when_due(track, "[cleared]", |walk| {
        let now = carried_messages(&messages, walk.block_count());
        let new = messages.get(counted..now).unwrap_or_default();
        total += new.iter().map(|message| estimate_tokens(track, message)).sum::<usize>();
        counted = now;
        Tokens::from_len(total) > trigger
    })
}

fn clear_when_due(track: &Track<'_>, placeholder: &str, mut due: impl FnMut(&PeerWalk<'_>) -> bool) -> Views {
    let mut walk = PeerWalk::new(track);
    let mut open: Vec<BlockId> = Vec::new();
    while walk.next().is_some() {
        open.extend(walk.new_results());
        if !due(&walk) {
            continue;
        }
        let old = open.len().saturating_sub(KEPT_RESULTS);
        for block in open.drain(..old) {
            walk.show_text(block, placeholder);
        }
    }
    walk.into_views()
}
