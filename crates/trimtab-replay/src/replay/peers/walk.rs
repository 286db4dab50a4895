//! A segment's requests one after the other, and how each shows its blocks. Takes what a peer decides at each request; gives
//! the views: only what changed from one request to the next. Never looks at a block before its request.

use std::{borrow::Cow, collections::BTreeMap, mem, sync::Arc};

use trimtab_core::{
    Block, BlockId, BlockKind, PartKind, Role, Tokens,
    count::CountMemo,
    facts::Fact,
    json::{narrow, widen},
};

use crate::replay::{ShownBlock, Track, ViewChange, Views};

/// A peer's way through a segment.
pub(in crate::replay) struct PeerWalk<'a> {
    pub(in crate::replay) track: &'a Track<'a>,
    memo: CountMemo,
    now: Vec<ShownBlock>,
    /// How the request before showed the blocks that were touched in this one.
    before: BTreeMap<BlockId, ShownBlock>,
    in_blocks: Tokens,
    /// What stands around all messages: the frame without what each message adds.
    base: Tokens,
    /// How many blocks of each entry are not gone.
    live: Vec<usize>,
    spoken: usize,
    started: usize,
    changes: Vec<Vec<ViewChange>>,
}

impl<'a> PeerWalk<'a> {
    pub(in crate::replay) fn new(track: &'a Track<'a>) -> PeerWalk<'a> {
        let entries = track.history.entries();
        let spoken = entries.iter().filter(|entry| entry.role != Role::Tools).count();
        PeerWalk {
            track,
            memo: CountMemo::default(),
            now: Vec::new(),
            before: BTreeMap::new(),
            in_blocks: Tokens::ZERO,
            base: track.counts.frame() - track.counts.per_entry().times(spoken),
            live: vec![0; entries.len()],
            spoken: 0,
            started: 0,
            changes: Vec::new(),
        }
    }

    /// Goes on to the next request, whose new blocks are shown whole; returns its number, counted from 0.
    pub(in crate::replay) fn next(&mut self) -> Option<usize> {
        self.close_request();
        let number = self.started;
        self.track.requests.get(number)?;
        self.started += 1;
        let carried = self.now.len();
        for block in self.track.new_in(number).filter(|block| widen(block.0) >= carried) {
            self.now.push(ShownBlock::Whole);
            self.in_blocks += self.track.tokens(block);
            self.comes_to_life(block);
        }
        Some(number)
    }

    /// Gives the views of all requests.
    pub(in crate::replay) fn into_views(mut self) -> Views {
        while self.next().is_some() {}
        Views::with_client_markers(self.changes)
    }

    /// Returns how many blocks the request carries.
    pub(in crate::replay) fn block_count(&self) -> usize {
        self.now.len()
    }

    /// Returns how many blocks the request before carried.
    pub(in crate::replay) fn blocks_before(&self) -> usize {
        let before = self.started.checked_sub(2).and_then(|number| self.track.requests.get(number));
        before.map_or(0, |request| request.blocks)
    }

    /// Returns the results that are new in this request, those of an agent that writes its calls in text included.
    pub(in crate::replay) fn new_results(&self) -> Vec<BlockId> {
        let new = narrow(self.blocks_before())..narrow(self.block_count());
        new.map(BlockId).filter(|block| acts_as(self.track, *block) == Some(BlockKind::Result)).collect()
    }

    /// Returns the step at which the request stands.
    pub(in crate::replay) fn step(&self) -> u32 {
        self.last_fact().map_or(0, |fact| fact.step)
    }

    /// Returns the turn at which the request stands.
    pub(in crate::replay) fn turn(&self) -> u32 {
        self.last_fact().map_or(0, |fact| fact.turn)
    }

    fn last_fact(&self) -> Option<&Fact> {
        self.track.facts.row(BlockId(narrow(self.block_count().checked_sub(1)?)))
    }

    /// Returns what the request counts as it is shown.
    pub(in crate::replay) fn total_tokens(&self) -> Tokens {
        self.in_blocks + self.base + self.track.counts.per_entry().times(self.spoken)
    }

    pub(in crate::replay) fn shown_block(&self, block: BlockId) -> &ShownBlock {
        self.now.get(widen(block.0)).unwrap_or(&ShownBlock::Gone)
    }

    pub(in crate::replay) fn is_whole(&self, block: BlockId) -> bool {
        *self.shown_block(block) == ShownBlock::Whole
    }

    /// Returns what a block counts as it would be shown.
    pub(in crate::replay) fn tokens_as(&self, block: BlockId, shown: &ShownBlock) -> Tokens {
        match shown {
            ShownBlock::Whole => self.track.tokens(block),
            ShownBlock::Text { tokens, .. } => *tokens,
            ShownBlock::Gone => Tokens::ZERO,
        }
    }

    /// Returns a text in the place of a block, counted.
    pub(in crate::replay) fn as_text(&mut self, block: BlockId, text: impl Into<Arc<str>>) -> ShownBlock {
        let text = text.into();
        let found = self.track.history.block(block);
        let tokens = found.map_or(Tokens::ZERO, |found| {
            self.track.counter.block_as_text(self.track.history, found, &text, &mut self.memo)
        });
        ShownBlock::Text { text, tokens }
    }

    /// Shows a text in the place of a block.
    pub(in crate::replay) fn show_text(&mut self, block: BlockId, text: impl Into<Arc<str>>) {
        let shown = self.as_text(block, text);
        self.show_block(block, shown);
    }

    /// Shows a block that this request carries in another way.
    pub(in crate::replay) fn show_block(&mut self, block: BlockId, shown: ShownBlock) {
        let Some(was) = self.now.get(widen(block.0)).filter(|was| **was != shown) else { return };
        let (less, more) = (self.tokens_as(block, was), self.tokens_as(block, &shown));
        let was_gone = *was == ShownBlock::Gone;
        self.in_blocks = self.in_blocks - less + more;
        if shown == ShownBlock::Gone {
            self.drop_block(block);
        } else if was_gone {
            self.comes_to_life(block);
        }
        if let Some(now) = self.now.get_mut(widen(block.0)) {
            let was = mem::replace(now, shown);
            self.before.entry(block).or_insert(was);
        }
    }

    fn comes_to_life(&mut self, block: BlockId) {
        let Some(live) = self.entry_mut(block) else { return };
        *live += 1;
        self.spoken += usize::from(*live == 1);
    }

    fn drop_block(&mut self, block: BlockId) {
        let Some(live) = self.entry_mut(block) else { return };
        *live -= 1;
        self.spoken -= usize::from(*live == 0);
    }

    /// Returns how many blocks of the block's message are live; nothing for the tools, which are no message.
    fn entry_mut(&mut self, block: BlockId) -> Option<&mut usize> {
        let fact = self.track.facts.row(block).filter(|fact| fact.role != Role::Tools)?;
        self.live.get_mut(widen(fact.entry.0))
    }

    /// Closes the request under way.
    fn close_request(&mut self) {
        if self.started == 0 || self.changes.len() == self.started {
            return;
        }
        let touched = mem::take(&mut self.before).into_iter();
        let changed = touched.filter(|(block, was)| self.shown_block(*block) != was);
        let changes =
            changed.map(|(block, _)| ViewChange { block, shown: self.shown_block(block).clone() }).collect();
        self.changes.push(changes);
    }
}

/// Returns what a block is in effect.
pub(in crate::replay) fn acts_as(track: &Track<'_>, block: BlockId) -> Option<BlockKind> {
    track.facts.row(block).map(|fact| fact.acts_as)
}

/// Returns the text of a block.
pub(in crate::replay) fn text_of<'a>(track: &Track<'a>, block: BlockId) -> Cow<'a, str> {
    let history = track.history;
    history.block(block).map(|found| history.block_text(found)).unwrap_or_default()
}

/// Returns how many images a block holds.
pub(in crate::replay) fn images_in(track: &Track<'_>, block: BlockId) -> usize {
    let images = |found: &Block| {
        track.history.parts_of(found).iter().filter(|part| part.kind == PartKind::Image).count()
    };
    track.history.block(block).map_or(0, images)
}

/// Returns the name of the tool that a call or result is about, in small letters.
pub(in crate::replay) fn tool_of(track: &Track<'_>, block: BlockId) -> String {
    let name = track.history.block(block).and_then(|found| track.history.tool_name(found));
    name.map(|name| name.to_lowercase()).unwrap_or_default()
}

/// Returns what the largest request of a segment counts when nothing is hidden.
pub(in crate::replay) fn peak_tokens(track: &Track<'_>) -> Tokens {
    let mut walk = PeerWalk::new(track);
    let mut most = Tokens::ZERO;
    while walk.next().is_some() {
        most = most.max(walk.total_tokens());
    }
    most
}
