//! What is visible when. Takes a track and a policy's views; gives for any block and request how it is shown, and the
//! texts that stand in place of others. Never reads a shown text before somebody asks for it, and then once.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashSet},
    ops::Range,
};

use trimtab_core::{
    BlockId, block_handle,
    json::widen,
    notes::{hash_of, points_at},
};

use super::normal::NormalText;
use crate::replay::{ShownBlock, Track, Views};

/// How blocks are shown over the requests of a segment.
pub(super) struct VisibleBlocks<'a> {
    track: &'a Track<'a>,
    /// The blocks that are ever shown otherwise than whole.
    changed: BTreeMap<BlockId, Vec<ViewSpan<'a>>>,
}

/// Some requests in a row that show a block in one way.
pub(super) struct ViewSpan<'a> {
    pub(super) requests: Range<usize>,
    pub(super) shown: &'a ShownBlock,
    read: OnceCell<ReadText>,
    /// Whether the text says all that the block says.
    says_all: OnceCell<bool>,
}

/// A shown text that was read.
pub(super) struct ReadText {
    pub(super) normal: NormalText,
    pub(super) words: HashSet<u64>,
}

impl ViewSpan<'_> {
    /// Returns the text that is shown instead of the block, where there is one.
    pub(super) fn read(&self) -> Option<&ReadText> {
        let ShownBlock::Text { text, .. } = self.shown else { return None };
        Some(self.read.get_or_init(|| {
            let normal = NormalText::from_text(text);
            ReadText { words: normal.words(), normal }
        }))
    }
}

impl<'a> VisibleBlocks<'a> {
    /// Lays a policy's views out by block.
    pub(super) fn from_views(track: &'a Track<'a>, views: &'a Views) -> VisibleBlocks<'a> {
        let mut changed: BTreeMap<BlockId, Vec<ViewSpan<'a>>> = BTreeMap::new();
        let end = track.requests.len();
        let each = views.changes.iter().zip(&track.requests).enumerate();
        for (request, (changes, carried)) in each {
            for change in changes.iter().filter(|change| widen(change.block.0) < carried.blocks) {
                let spans = changed.entry(change.block).or_default();
                if let Some(last) = spans.last_mut() {
                    last.requests.end = request;
                }
                spans.push(ViewSpan {
                    requests: request..end,
                    shown: &change.shown,
                    read: OnceCell::new(),
                    says_all: OnceCell::new(),
                });
            }
        }
        VisibleBlocks { track, changed }
    }

    /// Returns how a request shows a block.
    pub(super) fn shown_block(&self, block: BlockId, request: usize) -> &'a ShownBlock {
        if request < arrival_request(self.track, block) {
            return &ShownBlock::Gone;
        }
        self.span_at(block, request).map_or(&ShownBlock::Whole, |span| span.shown)
    }

    fn span_at(&self, block: BlockId, request: usize) -> Option<&ViewSpan<'a>> {
        self.view_spans(block).iter().rev().find(|span| span.requests.contains(&request))
    }

    /// Tells whether a request shows a block whole.
    pub(super) fn is_whole(&self, block: BlockId, request: usize) -> bool {
        match self.changed.contains_key(&block) {
            true => *self.shown_block(block, request) == ShownBlock::Whole,
            false => request >= arrival_request(self.track, block),
        }
    }

    /// Tells whether a request shows every line of a block: the block, or a text in its place that was only written otherwise. The
    /// text is looked at.
    pub(super) fn shows_all(&self, block: BlockId, request: usize) -> bool {
        if self.is_whole(block, request) {
            return true;
        }
        let Some(span) = self.span_at(block, request) else { return false };
        let (Some(read), Some(found)) = (span.read(), self.track.history.block(block)) else { return false };
        *span.says_all.get_or_init(|| {
            let lines: HashSet<&str> = read.normal.lines().collect();
            NormalText::from_text(&self.track.history.block_text(found)).has_only(&lines)
        })
    }

    /// Tells whether a request shows, in the place of a block, a note that points at another one of which it shows all and which
    /// holds the lines that are missing. The lines that the note names are looked up, not believed.
    pub(super) fn is_pointed_at(&self, block: BlockId, request: usize) -> bool {
        let history = self.track.history;
        let ShownBlock::Text { text, .. } = self.shown_block(block, request) else { return false };
        let (Some(hash), Some(missing)) = (points_at(text), history.block(block)) else { return false };
        let is_source = |id: &BlockId| {
            let source = history.block(*id).filter(|_| self.shows_all(*id, request));
            source.is_some_and(|source| hash_of(&block_handle(history, source)) == Some(hash))
        };
        let Some(source) = (0..block.0).map(BlockId).find(is_source).and_then(|id| history.block(id)) else {
            return false;
        };
        let (there, here) = (NormalText::from_text(&history.block_text(source)), NormalText::from_text(text));
        let lines: HashSet<&str> = there.lines().chain(here.lines()).collect();
        NormalText::from_text(&history.block_text(missing)).has_only(&lines)
    }

    /// Returns the stretches of requests that show a block in another way than before; none for one that is always whole.
    pub(super) fn view_spans(&self, block: BlockId) -> &[ViewSpan<'a>] {
        self.changed.get(&block).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns all spells of all blocks.
    pub(super) fn all_spells(&self) -> impl Iterator<Item = &ViewSpan<'a>> {
        self.changed.values().flatten()
    }

    /// Returns the texts that a request shows in place of blocks.
    pub(super) fn shown_texts(&self, request: usize) -> impl Iterator<Item = &ReadText> {
        let at = move |spans: &'_ Vec<ViewSpan<'a>>| {
            spans.iter().rposition(|span| span.requests.contains(&request))
        };
        self.changed.values().filter_map(move |spans| spans.get(at(spans)?)?.read())
    }

    /// Returns the requests that show a block whole, from its first one on.
    pub(super) fn whole_spans(&self, block: BlockId) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        let mut from = arrival_request(self.track, block);
        for span in self.view_spans(block) {
            spans.push(from..span.requests.start);
            from = if *span.shown == ShownBlock::Whole { span.requests.start } else { span.requests.end };
        }
        spans.push(from..self.track.requests.len());
        spans.retain(|span| !span.is_empty());
        spans
    }

    /// Returns how many blocks a request carried.
    pub(super) fn carried_blocks(&self, request: usize) -> usize {
        self.track.requests.get(request).map_or(0, |carried| carried.blocks)
    }

    /// Tells whether a request shows the handle of a hidden block in its place.
    pub(super) fn is_recoverable(&self, block: BlockId, request: usize) -> bool {
        let ShownBlock::Text { text, .. } = self.shown_block(block, request) else { return false };
        let Some(found) = self.track.history.block(block) else { return false };
        text.contains(&block_handle(self.track.history, found))
    }
}

/// Returns the first request that carried a block.
pub(super) fn arrival_request(track: &Track<'_>, block: BlockId) -> usize {
    track.requests.partition_point(|request| request.blocks <= widen(block.0))
}

/// Returns the request that a block answers, with the number of blocks that it carried; none where it came with the first.
pub(super) fn asked_by(track: &Track<'_>, block: BlockId) -> Option<(usize, usize)> {
    let request = arrival_request(track, block).checked_sub(1)?;
    track.requests.get(request).map(|carried| (request, carried.blocks))
}
