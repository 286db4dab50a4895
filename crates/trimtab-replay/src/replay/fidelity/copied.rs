//! Copied-line recall. Takes the lines of every call's input; gives how many of those that only results had shown were still
//! visible when the agent copied them. Never counts a line twice: once copied, it stands in the agent's own words.

use std::collections::HashSet;

use trimtab_core::json::widen;

use super::{
    Fidelity,
    input::Input,
    normal::{hash, plain},
    texts::{is_long, whole_words},
    uses::{Place, Uses},
    visible::Visible,
};

/// The lines that calls have held.
#[derive(Default)]
pub(super) struct Lines {
    used: HashSet<u64>,
}

impl Lines {
    /// Notes the lines of a call.
    pub(super) fn add(&mut self, uses: &mut Uses, place: Place, said: &Input) {
        for text in said.anchors.iter().chain(&said.others) {
            let text = plain(text);
            for line in text.split('\n').map(str::trim).filter(|line| is_long(line)) {
                if !self.used.insert(hash(line)) {
                    continue;
                }
                let holders = uses.texts.only_results_with_line(line, widen(place.call.0));
                uses.copied.extend(place.uses(line, holders));
            }
        }
    }
}

/// Counts the lines that were visible.
pub(super) fn judge(uses: &Uses, visible: &Visible<'_>, fidelity: &mut Fidelity) {
    for line in &uses.copied {
        let held = line.has_whole_holder(visible) || {
            let words = whole_words(&line.text);
            let mut texts = visible.texts(line.request);
            texts.any(|read| {
                words.iter().all(|word| read.words.contains(word))
                    && read.normal.lines().any(|shown| shown == line.text)
            })
        };
        fidelity.copied_lines.add(held);
        if !held {
            fidelity.misses.extend(line.missed("copied_lines", visible));
        }
    }
}
