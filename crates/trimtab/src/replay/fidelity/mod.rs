//! What the agent went on to use and no longer saw. Takes a track and its views; gives shares with their counts, and the
//! misses with their places. Never judges the task: it certifies what was removed, not what the agent would have done.

use super::{Track, Views};
use crate::{count::Tokens, history::BlockId};

/// How many of what was needed were there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// How many were there.
    pub held: u64,
    /// How many were needed.
    pub of: u64,
}

/// Something that was hidden and later needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Miss {
    /// The metric that missed it.
    pub(crate) metric: &'static str,
    /// The request, counted from 0, before which it would have been needed.
    pub(crate) request: usize,
    /// The block that used it.
    pub(crate) used_in: BlockId,
    /// The latest block that held it.
    pub(crate) hidden: BlockId,
    /// What was needed, at most 200 characters of it.
    pub(crate) what: String,
    /// Whether the hidden block's handle was shown, so that it could have been recalled.
    pub(crate) recoverable: bool,
}

/// What a policy's views kept of what was needed.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Fidelity {
    pub(crate) edit_anchors: Share,
    /// Anchors line by line: lines of anchors that are visible anywhere.
    pub(crate) anchor_lines: Share,
    pub(crate) references: Share,
    pub(crate) strict_references: Share,
    pub(crate) copied_lines: Share,
    pub(crate) errors: Share,
    pub(crate) instructions: Share,
    /// Tokens of visible lines that are no longer true, with neither a note nor a newer view of the same lines, per request summed.
    pub(crate) unmarked_stale: Tokens,
    /// Distinct hidden blocks that had to be fetched again, with the request of the first miss.
    pub(crate) refetches: Vec<(BlockId, usize)>,
    pub(crate) misses: Vec<Miss>,
}

/// Compares what every request showed with what the agent then used.
pub(crate) fn fidelity(_track: &Track<'_>, _views: &Views) -> Fidelity {
    Fidelity::default()
}
