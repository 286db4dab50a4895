//! What the agent went on to use and no longer saw. Takes a track and its views; gives shares with their counts, and the
//! misses with their places. Never judges the task: it measures what was removed, not what the agent would have done.
//!
//! The uses and the blocks that contained what was used do not depend on a policy: [`SegmentUses`] is made once per segment. Everything is
//! counted given that the untrimmed request showed it, so that untrimmed views score 1 in every share. A text that stands in
//! place of a block counts for what it says: a name in a note is a visible name, a note's handle is not the content that it names.

mod anchors;
mod copied;
mod errors;
mod input;
mod instructions;
mod lasting;
mod normal;
mod probe;
mod references;
mod stale;
#[cfg(test)]
mod tests;
mod texts;
mod uses;
mod visible;

use std::collections::HashSet;

pub use probe::{NeedSums, ProbeFigure, UseProbe, probe_segment};
pub(crate) use uses::SegmentUses;

use super::{Track, Views};
use trimtab_core::{BlockId, Tokens};
use visible::VisibleBlocks;

/// How many of what was needed were there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NeededShare {
    /// How many were there.
    pub held: u64,
    /// How many were needed.
    pub of: u64,
}

impl NeededShare {
    fn add_use(&mut self, held: bool) {
        self.held += u64::from(held);
        self.of += 1;
    }
}

/// Something that was hidden and later needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HiddenMiss {
    /// The metric that missed it, by the name of its field in [`Fidelity`].
    pub(crate) metric: &'static str,
    /// The request, counted from 0, before which it would have been needed.
    pub(crate) request: usize,
    /// The block that used it; of errors and instructions, the block that said it.
    pub(crate) used_in: BlockId,
    /// The latest block that contained it.
    pub(crate) hidden: BlockId,
    /// What was needed, at most 200 characters of it.
    pub(crate) what: String,
    /// Whether the hidden block's handle was shown in its place, so that it could have been recalled.
    pub(crate) recoverable: bool,
}

/// What a policy's views kept of what was needed.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Fidelity {
    /// Anchors of edits that only results had shown: each whole in one visible block.
    pub(crate) edit_anchors: NeededShare,
    /// Anchors of edits, whatever had shown them: also the agent's own earlier calls and a person's words.
    pub(crate) all_anchors: NeededShare,
    /// Lines of 8 characters or more of those in `edit_anchors`: each visible anywhere, indentation apart.
    pub(crate) anchor_lines: NeededShare,
    /// Names that a call uses for the first time and that only results had shown: each visible anywhere.
    pub(crate) references: NeededShare,
    /// The same, but for what an edit or a write puts into a file a line that contained the name must be visible, not the name alone.
    pub(crate) strict_references: NeededShare,
    /// Lines of 16 characters or more in a call that only results had shown: each visible anywhere, indentation apart.
    pub(crate) copied_lines: NeededShare,
    /// Errors that are not solved yet, once per request: each with its signature visible.
    pub(crate) errors: NeededShare,
    /// The user's messages, system texts, instruction files and the user's constraints, once per request: each verbatim.
    pub(crate) instructions: NeededShare,
    /// Tokens of visible lines that are no longer true, with neither a note nor a newer view of the same lines, per request summed.
    pub(crate) unmarked_stale: Tokens,
    /// Distinct hidden blocks that had to be fetched again for an anchor or a name, with the request of the first miss.
    pub(crate) refetches: Vec<(BlockId, usize)>,
    /// Everything that was missed, in the order of requests; of errors and instructions, the first request of each.
    pub(crate) misses: Vec<HiddenMiss>,
}

/// Compares what every request showed with what the agent then used.
pub(crate) fn measure_fidelity(track: &Track<'_>, uses: &SegmentUses, views: &Views) -> Fidelity {
    let visible = VisibleBlocks::from_views(track, views);
    let mut fidelity = Fidelity::default();
    anchors::judge_anchors(uses, &visible, &mut fidelity);
    references::judge_references(uses, &visible, &mut fidelity);
    copied::judge_copied(uses, &visible, &mut fidelity);
    (fidelity.errors, fidelity.instructions) = (
        lasting::judge_lasting(&uses.errors, "errors", &visible, &mut fidelity.misses),
        lasting::judge_lasting(&uses.instructions, "instructions", &visible, &mut fidelity.misses),
    );
    fidelity.unmarked_stale = stale::count_unmarked(&uses.stale, &visible);
    fidelity.misses.sort_by_key(|miss| (miss.request, miss.used_in, miss.metric));
    fidelity.refetches = blocks_to_refetch(&fidelity.misses);
    fidelity
}

/// Returns the blocks that an agent would have had to fetch again: it cannot make an anchor or a name up.
fn blocks_to_refetch(misses: &[HiddenMiss]) -> Vec<(BlockId, usize)> {
    let mut known = HashSet::new();
    let fetched =
        misses.iter().filter(|miss| matches!(miss.metric, "edit_anchors" | "all_anchors" | "references"));
    fetched.filter(|miss| known.insert(miss.hidden)).map(|miss| (miss.hidden, miss.request)).collect()
}

/// The most characters of a miss that are kept.
const WHAT_CHARACTERS: usize = 200;

fn clip_text(text: &str) -> String {
    text.chars().take(WHAT_CHARACTERS).collect()
}
