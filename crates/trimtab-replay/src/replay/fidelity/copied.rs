//! Copied-line recall. Takes the lines of every call's input; gives how many of those that only results had shown were still
//! visible when the agent copied them. Never counts a line twice: once copied, it stands in the agent's own words.

use std::collections::HashSet;

use trimtab_core::json::widen;

use super::{
    Fidelity,
    input::CallInput,
    normal::{hash, plain_text},
    texts::{is_long, whole_words},
    uses::{SegmentUses, UsePlace},
    visible::VisibleBlocks,
};

/// The lines that calls have contained.
#[derive(Default)]
pub(super) struct UsedLines {
    used: HashSet<u64>,
}

impl UsedLines {
    /// Notes the lines of a call.
    pub(super) fn add_call(&mut self, uses: &mut SegmentUses, place: UsePlace, said: &CallInput) {
        for text in said.anchors.iter().chain(&said.others) {
            let text = plain_text(text);
            for line in text.split('\n').map(str::trim).filter(|line| is_long(line)) {
                if !self.used.insert(hash(line)) {
                    continue;
                }
                let holders = uses.texts.only_results_with_line(line, widen(place.call.0));
                uses.copied.extend(place.make_use(line, holders));
            }
        }
    }
}

/// Counts the lines that were visible.
pub(super) fn judge_copied(uses: &SegmentUses, visible: &VisibleBlocks<'_>, fidelity: &mut Fidelity) {
    for line in &uses.copied {
        let held = line.has_whole_holder(visible) || {
            let words = whole_words(&line.text);
            let mut texts = visible.shown_texts(line.request);
            texts.any(|read| {
                words.iter().all(|word| read.words.contains(word))
                    && read.normal.lines().any(|shown| shown == line.text)
            })
        };
        fidelity.copied_lines.add_use(held);
        if !held {
            fidelity.misses.extend(line.miss_in("copied_lines", visible));
        }
    }
}
