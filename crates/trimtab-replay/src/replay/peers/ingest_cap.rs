//! Truncation when a result comes in. Takes a track and a cap in tokens; gives views in which the middle of every longer result
//! is cut out, from its first request on. Never changes anything that was sent before.

use super::{
    PeerCase, Rival, RivalRole, knob_as_count,
    walk::{PeerWalk, text_of},
};
use crate::replay::Views;

/// How many bytes count as a token.
const BYTES_PER_TOKEN: usize = 4;

pub(super) const RIVAL: Rival = Rival {
    name: "peer:ingest-cap",
    about: "Cuts the middle out of every tool result above a cap when it comes in, and touches nothing later.",
    // 12,000: codex keeps 10,000 tokens, with a fifth more for what surrounds the output.
    knob: ("tokens of a result that are kept, a token being 4 bytes", &[12_000.0, 8_000.0, 2_000.0]),
    role: RivalRole::Peer,
    views: cap_results,
};

fn cap_results(case: &PeerCase<'_>) -> Views {
    let bytes = knob_as_count(case.knob).saturating_mul(BYTES_PER_TOKEN);
    let mut walk = PeerWalk::new(case.track);
    while walk.next().is_some() {
        for block in walk.new_results() {
            if let Some(text) = without_middle(&text_of(case.track, block), bytes) {
                walk.show_text(block, text);
            }
        }
    }
    walk.into_views()
}

/// Keeps the first and the last half of so many bytes; nothing where the text is not longer.
fn without_middle(text: &str, bytes: usize) -> Option<String> {
    if text.len() <= bytes {
        return None;
    }
    let head = text.get(..text.floor_char_boundary(bytes / 2))?;
    let tail = text.get(text.ceil_char_boundary(text.len() - (bytes - bytes / 2))..)?;
    let removed = (text.len() - bytes).div_ceil(BYTES_PER_TOKEN);
    Some(format!("{head}…{removed} tokens truncated…{tail}"))
}
