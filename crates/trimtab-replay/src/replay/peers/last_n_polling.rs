//! The last observations of a text agent. Takes a track and a polling interval; gives views that omit all observations but the
//! first and the last five, moving on only each time so many new ones have come. Never omits the first: it is the task.

use trimtab_core::{BlockId, BlockKind, Role, json::narrow};

use super::{
    PeerCase, Rival, RivalRole, knob_as_count,
    walk::{PeerWalk, acts_as, images_in, text_of},
};
use crate::replay::{Track, Views};

/// How many observations are kept: the default of the shipped configurations.
const KEPT: usize = 5;

pub(super) const RIVAL: Rival = Rival {
    name: "peer:last-n-polling",
    about: "Keeps the task and the last 5 observations, moving the border only each time so many new ones have come.",
    knob: ("observations between two moves of the border", &[1.0, 5.0, 10.0]),
    role: RivalRole::Peer,
    views: last_n,
};

fn last_n(case: &PeerCase<'_>) -> Views {
    let track = case.track;
    let polling = knob_as_count(case.knob).max(1);
    let mut walk = PeerWalk::new(track);
    let mut observations: Vec<BlockId> = Vec::new();
    let mut omitted = 1;
    while walk.next().is_some() {
        for block in (narrow(walk.blocks_before())..narrow(walk.block_count())).map(BlockId) {
            let is_task =
                observations.is_empty() && track.facts.row(block).is_some_and(|fact| fact.role == Role::User);
            if is_task || acts_as(track, block) == Some(BlockKind::Result) {
                observations.push(block);
            }
        }
        let border = (observations.len() / polling * polling).saturating_sub(KEPT);
        for block in observations.get(omitted..border).unwrap_or_default() {
            walk.show_text(*block, placeholder_text(track, *block));
        }
        omitted = omitted.max(border);
    }
    walk.into_views()
}

fn placeholder_text(track: &Track<'_>, block: BlockId) -> String {
    let lines = text_of(track, block).lines().count();
    let text = format!("Old environment output: ({lines} lines omitted)");
    match images_in(track, block) {
        0 => text,
        images => format!("{text} ({images} images omitted)"),
    }
}
