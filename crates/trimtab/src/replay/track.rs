//! A recorded segment laid out for replay. Takes the segment and a counter; gives its whole history with facts, files and
//! counts, and how far each request reached. Never decides anything.
//!
//! Facts and files are those of the end: who plays a policy that cannot know the future looks only at blocks that were
//! there, and asks nothing that a later block can have changed (`superseded_by`).

use crate::{
    count::{Counter, Counts, Memo, Tokens},
    facts::{Facts, facts},
    files::{Files, files},
    history::{BlockId, History},
    json::{narrow, widen},
    recording::{Millis, Segment, Usage},
};

/// One request of the recording.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// How many of the segment's blocks it carried, tools and system included.
    pub(crate) blocks: usize,
    /// How many messages it carried.
    pub(crate) messages: usize,
    pub(crate) at: Option<Millis>,
    pub(crate) model: Option<String>,
    pub(crate) usage: Option<Usage>,
}

/// A segment with everything that is known about it.
#[derive(Debug)]
pub(crate) struct Track<'a> {
    pub(crate) history: &'a History,
    pub(crate) facts: Facts,
    pub(crate) files: Files,
    pub(crate) counter: Counter,
    pub(crate) counts: Counts,
    pub(crate) requests: Vec<Request>,
}

impl<'a> Track<'a> {
    /// Lays a segment out.
    pub(crate) fn new(segment: &'a Segment, counter: Counter) -> Track<'a> {
        let history = &segment.history;
        let facts = facts(history);
        let files = files(history, &facts);
        let counts = counter.request(history, &mut Memo::default());
        let blocks = |messages: usize| {
            let next = history.messages().get(messages);
            next.map_or(history.blocks().len(), |entry| widen(entry.first_block))
        };
        let requests = segment.points.iter().map(|point| Request {
            blocks: blocks(point.messages),
            messages: point.messages,
            at: point.at,
            model: point.model.clone(),
            usage: point.usage,
        });
        Track { history, facts, files, counter, counts, requests: requests.collect() }
    }

    /// Returns what a block counts when it is shown whole.
    pub(crate) fn tokens(&self, block: BlockId) -> Tokens {
        self.counts.blocks().get(widen(block.0)).copied().unwrap_or_default()
    }

    /// Returns the blocks that came in with a request: those that no earlier request carried.
    pub(crate) fn new_in(&self, request: usize) -> impl Iterator<Item = BlockId> + use<> {
        let blocks = |request: usize| self.requests.get(request).map_or(0, |request| request.blocks);
        let first = request.checked_sub(1).map_or(0, blocks);
        (narrow(first)..narrow(blocks(request))).map(BlockId)
    }
}
