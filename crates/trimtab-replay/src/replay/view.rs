//! What each request shows of a segment. Takes nothing but what a policy decides; gives, request by request, the blocks
//! that are shown otherwise than before. A block that is not named is shown whole from its first request on.

use std::{collections::HashMap, sync::Arc};

use trimtab_core::{BlockId, Millis, Tokens, json::widen};

/// How a block is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum ShownBlock {
    /// As it is.
    #[default]
    Whole,
    /// As another text that counts so many tokens, framing of the block included.
    Text { text: Arc<str>, tokens: Tokens },
    /// Not at all.
    Gone,
}

/// A block that a request shows otherwise than the request before it; of new blocks, otherwise than whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ViewChange {
    pub(crate) block: BlockId,
    pub(crate) shown: ShownBlock,
}

/// What every request of a segment shows: one list of changes per request, each in the order of blocks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Views {
    pub(crate) changes: Vec<Vec<ViewChange>>,
    /// Requests with the block after which each carries a cache marker that the client did not set.
    pub(crate) markers: HashMap<usize, BlockId>,
    /// The pings between requests, in the order in which they are sent.
    pub(crate) pings: Vec<SentPing>,
}

/// The last request once more, so that what is cached of it lives on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentPing {
    /// The request that was the last.
    pub(crate) after: usize,
    pub(crate) at: Millis,
}

impl Views {
    /// Returns views whose requests carry the client's cache markers and no others.
    pub(crate) fn with_client_markers(changes: Vec<Vec<ViewChange>>) -> Views {
        Views { changes, ..Views::default() }
    }
}

/// The view of one request, made from the one before by its changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct VisibleRequest {
    shown: Vec<ShownBlock>,
}

impl VisibleRequest {
    /// Goes on to a request that carries `blocks` blocks.
    pub(crate) fn advance_to(&mut self, blocks: usize, changes: &[ViewChange]) {
        self.shown.resize_with(blocks, ShownBlock::default);
        for change in changes {
            if let Some(shown) = self.shown.get_mut(widen(change.block.0)) {
                *shown = change.shown.clone();
            }
        }
    }

    /// Returns how a block is shown; a block that is not there is gone.
    pub(crate) fn shown_block(&self, block: BlockId) -> &ShownBlock {
        self.shown.get(widen(block.0)).unwrap_or(&ShownBlock::Gone)
    }

    /// Returns how every block of the request is shown, in order.
    pub(crate) fn shown_blocks(&self) -> &[ShownBlock] {
        &self.shown
    }
}
