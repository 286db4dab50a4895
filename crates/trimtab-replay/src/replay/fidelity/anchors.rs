//! Edit-anchor recall. Takes the texts that edits look for; gives how many were whole in one visible block. Never counts an
//! anchor that no single block had shown: it was put together from several, or made up.

use trimtab_core::json::widen;

use super::{
    Fidelity,
    input::CallInput,
    texts::whole_words,
    uses::{SegmentUses, TextUse, UsePlace},
    visible::VisibleBlocks,
};

/// The shortest anchor, and the shortest line of one, in characters: shorter ones stand everywhere.
const SHORTEST: usize = 8;

/// Notes the anchors of a call.
pub(super) fn add_anchors(uses: &mut SegmentUses, place: UsePlace, said: &CallInput) {
    for anchor in said.anchors.iter().filter(|anchor| anchor.chars().count() >= SHORTEST) {
        uses.anchors_written += 1;
        let holders = uses.texts.blocks_holding(anchor, widen(place.call.0));
        let only_results = holders.iter().all(|block| uses.texts.is_result(*block));
        uses.anchors.extend(place.make_use(anchor, holders).map(|found| (found, only_results)));
    }
}

/// Counts the anchors that were visible.
pub(super) fn judge_anchors(uses: &SegmentUses, visible: &VisibleBlocks<'_>, fidelity: &mut Fidelity) {
    for (anchor, only_results) in &uses.anchors {
        let held = anchor.has_whole_holder(visible) || stands_in_text(&anchor.text, anchor.request, visible);
        fidelity.all_anchors.add_use(held);
        if *only_results {
            fidelity.edit_anchors.add_use(held);
            judge_lines(anchor, held, uses, visible, fidelity);
        }
        if !held {
            let metric = if *only_results { "edit_anchors" } else { "all_anchors" };
            fidelity.misses.extend(anchor.miss_in(metric, visible));
        }
    }
}

fn judge_lines(
    anchor: &TextUse,
    held: bool,
    uses: &SegmentUses,
    visible: &VisibleBlocks<'_>,
    fidelity: &mut Fidelity,
) {
    let lines = anchor.text.split('\n').map(str::trim);
    for line in lines.filter(|line| line.chars().count() >= SHORTEST) {
        let in_block = || {
            let holders = uses.texts.blocks_holding(line, anchor.carried);
            holders.iter().any(|block| visible.is_whole(*block, anchor.request))
        };
        fidelity.anchor_lines.add_use(held || in_block() || stands_in_text(line, anchor.request, visible));
    }
}

/// Tells whether a text stands in one of the texts that a request shows in place of blocks.
fn stands_in_text(text: &str, request: usize, visible: &VisibleBlocks<'_>) -> bool {
    let words = whole_words(text);
    let mut texts = visible.shown_texts(request);
    texts.any(|read| words.iter().all(|word| read.words.contains(word)) && read.normal.contains(text))
}
