//! What each request shows of a segment. Takes nothing but what a policy decides; gives, request by request, the blocks
//! that are shown otherwise than before. A block that is not named is shown whole from its first request on.

use std::{collections::HashMap, sync::Arc};

use trimtab_core::{BlockId, Tokens, json::widen};

/// How a block is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Shown {
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
pub(crate) struct Change {
    pub(crate) block: BlockId,
    pub(crate) shown: Shown,
}

/// What every request of a segment shows: one list of changes per request, each in the order of blocks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Views {
    pub(crate) changes: Vec<Vec<Change>>,
    /// Requests with the block behind which each carries a cache marker that the client did not set.
    pub(crate) markers: HashMap<usize, BlockId>,
}

impl Views {
    /// Returns views whose requests carry the client's cache markers and no others.
    pub(crate) fn of(changes: Vec<Vec<Change>>) -> Views {
        Views { changes, markers: HashMap::new() }
    }
}

/// The view of one request, made from the one before by its changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Showing {
    shown: Vec<Shown>,
}

impl Showing {
    /// Goes on to a request that carries `blocks` blocks.
    pub(crate) fn advance(&mut self, blocks: usize, changes: &[Change]) {
        self.shown.resize_with(blocks, Shown::default);
        for change in changes {
            if let Some(shown) = self.shown.get_mut(widen(change.block.0)) {
                *shown = change.shown.clone();
            }
        }
    }

    /// Returns how a block is shown; a block that is not there is gone.
    pub(crate) fn of(&self, block: BlockId) -> &Shown {
        self.shown.get(widen(block.0)).unwrap_or(&Shown::Gone)
    }

    /// Returns how every block of the request is shown, in order.
    pub(crate) fn all(&self) -> &[Shown] {
        &self.shown
    }
}
