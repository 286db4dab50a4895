//! What every request of a segment reads from the cache and writes to it. Takes a track, its views and the rules of a cache;
//! gives one line per request, and one per ping. Never prices anything.
//!
//! A request costs what changed since the one before: the path of pieces is kept up to the first block that is shown
//! otherwise. A request without a time is taken as sent a minute after the one before it, on a warm cache. Another model is
//! another cache.

use std::{collections::HashMap, sync::Arc};

use trimtab_core::{
    BlockId, BlockKind, Millis, Role, Tokens,
    json::{narrow, widen},
    prices::{CacheLanding, CacheRules},
    session::CacheLifetime,
};

use super::{
    ShownBlock, Track, TrackedRequest, ViewChange, Views, VisibleRequest,
    cache::{CacheUse, PiecePosition, PrefixPiece, SimulatedCache},
    track::CacheFinding,
};

/// Whether the log is believed where it shows that the cache had less or more than the rules say, for reasons outside the
/// recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheLosses {
    AsRecorded,
    ByRulesAlone,
}

/// Assumed between two requests where the recording has no times: agents answer their tools within it.
const MINUTE_MS: i64 = 60_000;

/// Most markers that a request may carry where markers are set.
const MAX_MARKERS: usize = 4;

/// What the requests of a segment use of a cache, and the pings between them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CacheLedger {
    pub(crate) requests: Vec<CacheUse>,
    pub(crate) pings: Vec<CacheUse>,
}

/// Follows the requests of a segment through a cache.
pub(crate) fn follow_cache(
    track: &Track<'_>,
    views: &Views,
    rules: &CacheRules,
    keeping: CacheLifetime,
    losses: CacheLosses,
) -> CacheLedger {
    let mut follower = CacheFollower::new(track, *rules, keeping, losses);
    let mut ledger = CacheLedger::default();
    let mut pings = views.pings.iter().peekable();
    for number in 0..track.requests.len() {
        let changes = views.changes.get(number).map_or(&[][..], Vec::as_slice);
        ledger.requests.extend(follower.send_request(number, changes, views.markers.get(&number)));
        while let Some(ping) = pings.next_if(|ping| ping.after == number) {
            ledger.pings.extend(follower.send_ping(ping.at));
        }
    }
    ledger
}

/// A cache that follows the requests of a segment, one after the other.
pub(super) struct CacheFollower<'t, 'a> {
    track: &'t Track<'a>,
    rules: CacheRules,
    lifetime_ms: i64,
    losses: CacheLosses,
    sender: PieceWriter<'t, 'a>,
    caches: Vec<(Option<&'t str>, SimulatedCache)>,
    current: usize,
    at: i64,
    /// The markers of the last request.
    markers: Vec<usize>,
}

impl<'t, 'a> CacheFollower<'t, 'a> {
    pub(super) fn new(
        track: &'t Track<'a>,
        rules: CacheRules,
        keeping: CacheLifetime,
        losses: CacheLosses,
    ) -> CacheFollower<'t, 'a> {
        CacheFollower {
            track,
            rules,
            lifetime_ms: match keeping {
                CacheLifetime::Usual => rules.lifetime_ms,
                CacheLifetime::Hour => CacheRules::HOUR_MS.max(rules.lifetime_ms),
            },
            losses,
            sender: PieceWriter::new(track, &rules),
            caches: Vec::new(),
            current: 0,
            at: 0,
            markers: Vec::new(),
        }
    }

    /// Returns for how long the cache keeps what is in it.
    pub(super) fn lifetime_ms(&self) -> i64 {
        self.lifetime_ms
    }

    /// Returns when the last request was sent.
    pub(super) fn last_request(&self) -> Millis {
        Millis(self.at)
    }

    /// Sends the next request, with what it shows otherwise than the one before and the block after which we set a marker. Requests must
    /// come in order.
    pub(super) fn send_request(
        &mut self,
        number: usize,
        changes: &[ViewChange],
        marker: Option<&BlockId>,
    ) -> Option<CacheUse> {
        let request = self.track.requests.get(number)?;
        self.at = request.at.map_or(self.at + MINUTE_MS, |at| at.0);
        let at = self.at;
        let model = request.model.as_deref();
        let known = self.caches.iter().position(|(name, _)| *name == model || model.is_none());
        let index = known.unwrap_or(self.caches.len());
        if known.is_none() {
            self.caches.push((model, SimulatedCache::new(self.rules, self.lifetime_ms)));
        }
        let (_, cache) = self.caches.get_mut(index)?;
        let sender = &mut self.sender;
        if number == 0 {
            sender.warm_up(cache, at);
        }
        if self.losses == CacheLosses::AsRecorded {
            match request.found {
                CacheFinding::AsRuled => {}
                CacheFinding::Alive => sender.said_again(cache, request, at),
                CacheFinding::HeadOnly => cache.forget_beyond(sender.head_marker(cache)),
                CacheFinding::Nothing => cache.forget_beyond(0),
            }
        }
        let earlier_end = if index == self.current { cache.len() } else { 0 };
        let same = sender.advance_to(request, changes);
        cache.keep_pieces(if index == self.current { cache.pieces_before(same) } else { 0 });
        self.current = index;
        sender.send_pieces(cache, request.blocks);
        if self.rules.landing == CacheLanding::UnitEnds {
            sender.record_reply(cache, earlier_end);
        }
        let mut markers = sender.marker_places(cache, number);
        if let Some(block) = marker.filter(|_| markers.len() < MAX_MARKERS) {
            markers.push(cache.pieces_before(block.0 + 1));
        }
        let before = number.checked_sub(1).and_then(|before| self.track.requests.get(before));
        let carried = before.map_or(cache.len(), |before| cache.pieces_before(narrow(before.blocks)));
        let carried = cache.tokens(carried);
        let line = CacheUse { carried, ..cache.send_request(at, &markers) };
        self.markers = markers;
        Some(line)
    }

    /// Sends the last request once more, so that what is cached of it lives on.
    pub(super) fn send_ping(&mut self, at: Millis) -> Option<CacheUse> {
        let (_, cache) = self.caches.get_mut(self.current)?;
        Some(cache.send_request(at.0, &self.markers))
    }
}

/// Turns what is shown into pieces.
struct PieceWriter<'t, 'a> {
    track: &'t Track<'a>,
    showing: VisibleRequest,
    /// Numbers for the texts that blocks are shown as.
    forms: HashMap<Arc<str>, u32>,
    /// The tokens of the head that no block stands for: tools and system, and what begins the first message.
    head: [Tokens; 2],
    /// How many blocks precede the first message.
    head_blocks: usize,
    /// Reasoning before this block is left out by the provider.
    reasoning_from: usize,
    drops_old_reasoning: bool,
}

impl<'t, 'a> PieceWriter<'t, 'a> {
    fn new(track: &'t Track<'a>, rules: &CacheRules) -> PieceWriter<'t, 'a> {
        let history = track.history;
        let counts = &track.counts;
        let spoken = history.entries().iter().filter(|entry| entry.role != Role::Tools).count();
        let fixed = track.as_reported(counts.frame() - counts.per_entry().times(spoken));
        let head = track.unseen_head + fixed;
        let shared = track.shared_head.min(head);
        let first = history.messages().first();
        PieceWriter {
            track,
            showing: VisibleRequest::default(),
            forms: HashMap::new(),
            head: [shared, head - shared],
            head_blocks: first.map_or(history.blocks().len(), |entry| widen(entry.first_block)),
            reasoning_from: 0,
            drops_old_reasoning: rules.drops_old_reasoning,
        }
    }

    /// Puts into the cache what the log shows to have been there when the segment began: a prefix of its first request.
    fn warm_up(&mut self, cache: &mut SimulatedCache, at: i64) {
        let blocks = self.track.requests.first().map_or(0, |request| request.blocks);
        if self.track.warm == Tokens::ZERO {
            return;
        }
        self.showing.advance_to(blocks, &[]);
        self.send_pieces(cache, blocks);
        // Counts are estimates: the last block may end a little after what was reported.
        let reported = self.track.warm.scale(WITHIN_ERROR);
        let found = (0..=cache.len()).rev().find(|&pieces| cache.tokens(pieces) <= reported);
        cache.keep_pieces(found.unwrap_or_default());
        let head = self.head_marker(cache);
        cache.send_request(at, &[head, cache.len()]);
        self.showing = VisibleRequest::default();
    }

    /// Sends what the last request said once more, in the turn of `request`: some clients do so between two turns, and
    /// record only its traces in the cache.
    fn said_again(&mut self, cache: &mut SimulatedCache, request: &TrackedRequest, at: i64) {
        let blocks = self.showing.shown_blocks().len();
        let first = self.turn_to(request.turn.min(blocks));
        cache.keep_pieces(first.map_or(cache.len(), |block| cache.pieces_before(block)));
        self.send_pieces(cache, blocks);
        let head = self.head_marker(cache);
        cache.send_request(at, &[head, cache.len()]);
    }

    /// Goes on to the next request; returns the first block that is shown otherwise than before.
    fn advance_to(&mut self, request: &TrackedRequest, changes: &[ViewChange]) -> u32 {
        let known = narrow(self.showing.shown_blocks().len().min(request.blocks));
        let moved = changes.iter().filter(|change| change.block.0 < known);
        let first = moved.filter(|change| *self.showing.shown_block(change.block) != change.shown);
        let first = first.map(|change| change.block.0).min().unwrap_or(known);
        self.showing.advance_to(request.blocks, changes);
        self.turn_to(request.turn).map_or(first, |block| first.min(block))
    }

    /// Goes on to another turn; returns the first block that the provider leaves out from now on.
    fn turn_to(&mut self, turn: usize) -> Option<u32> {
        if !self.drops_old_reasoning {
            return None;
        }
        let mut between = self.reasoning_from.min(turn)..self.reasoning_from.max(turn);
        self.reasoning_from = turn;
        between.find(|&block| self.is_reasoning(narrow(block))).map(narrow)
    }

    fn is_reasoning(&self, block: u32) -> bool {
        self.track.history.block(BlockId(block)).is_some_and(|block| block.kind == BlockKind::Reasoning)
    }

    /// Adds the pieces that the request has after those it kept.
    fn send_pieces(&mut self, cache: &mut SimulatedCache, blocks: usize) {
        let last = cache.last_block();
        if last.is_none() {
            let parts = (0_u32..).zip(self.head).filter(|(_, tokens)| *tokens > Tokens::ZERO);
            for (form, tokens) in parts.skip(cache.len()) {
                cache.push_piece(PrefixPiece { block: None, form }, tokens, PiecePosition::Begins);
            }
        }
        let mut before = last.and_then(|block| self.track.history.block(BlockId(block)));
        for id in last.map_or(0, |block| block + 1)..narrow(blocks) {
            let (form, tokens) = match self.showing.shown_block(BlockId(id)) {
                ShownBlock::Gone => continue,
                ShownBlock::Whole | ShownBlock::Text { .. } if self.is_dropped(id) => continue,
                ShownBlock::Whole => (0, self.track.tokens(BlockId(id))),
                ShownBlock::Text { text, tokens } => {
                    let next = narrow(self.forms.len() + 1);
                    (*self.forms.entry(Arc::clone(text)).or_insert(next), *tokens)
                }
            };
            let Some(block) = self.track.history.block(BlockId(id)) else { continue };
            let spoken = block.kind != BlockKind::Definition;
            let begins = before.is_none_or(|before| before.entry != block.entry);
            let frame = if spoken && begins { self.track.counts.per_entry() } else { Tokens::ZERO };
            let runs = matches!(block.kind, BlockKind::Call | BlockKind::Result);
            let goes_on = runs && before.is_some_and(|before| before.kind == block.kind);
            let run = if goes_on { PiecePosition::GoesOn } else { PiecePosition::Begins };
            cache.push_piece(
                PrefixPiece { block: Some(id), form },
                self.track.as_reported(tokens + frame),
                run,
            );
            before = Some(block);
        }
    }

    /// Tells whether the provider leaves a block out by itself.
    fn is_dropped(&self, block: u32) -> bool {
        self.drops_old_reasoning && widen(block) < self.reasoning_from && self.is_reasoning(block)
    }

    /// Tells the cache where the reply to the last request ends, if it is shown as it was said.
    fn record_reply(&self, cache: &mut SimulatedCache, earlier_end: usize) {
        if cache.shared_pieces() < earlier_end {
            return;
        }
        let said = |block: u32| {
            let id = BlockId(block);
            let entry = self.track.history.block(id).and_then(|block| self.track.history.entry_of(block));
            entry.is_some_and(|entry| entry.role == Role::Assistant)
                && *self.showing.shown_block(id) == ShownBlock::Whole
        };
        let blocks = cache.blocks_from(earlier_end).take_while(|&block| said(block)).count();
        if blocks > 0 {
            cache.record_reply(earlier_end + blocks);
        }
    }

    /// Returns how many pieces precede the marker that clients set after tools and system. Where the recording has
    /// neither, the log may tell how long they are.
    fn head_marker(&self, cache: &SimulatedCache) -> usize {
        let [shared, rest] = self.head;
        let within = shared > Tokens::ZERO && rest > Tokens::ZERO && self.head_blocks == 0;
        if within { 1.min(cache.len()) } else { cache.pieces_before(narrow(self.head_blocks)) }
    }

    /// Returns where the client sets its markers, as numbers of pieces before them: where the recording has them, else as
    /// clients do: after tools and system, at the end, and where the request before ended in a loop of tools.
    fn marker_places(&self, cache: &SimulatedCache, number: usize) -> Vec<usize> {
        let history = self.track.history;
        let Some(request) = self.track.requests.get(number) else { return Vec::new() };
        let marked = |blocks: std::ops::Range<usize>| -> Vec<usize> {
            let all = history.blocks().iter().enumerate().take(blocks.end).skip(blocks.start);
            all.filter(|(_, block)| block.marked).map(|(id, _)| cache.pieces_before(narrow(id + 1))).collect()
        };
        let mut markers = marked(0..self.head_blocks);
        if markers.is_empty() {
            markers.push(self.head_marker(cache));
        }
        // Markers move with every request; a recording has those of its last one.
        let last = number + 1 == self.track.requests.len();
        let recorded = if last { marked(self.head_blocks..request.blocks) } else { Vec::new() };
        if recorded.is_empty() {
            markers.extend(self.end_before_last_answer(cache, request.messages));
            markers.push(cache.len());
        } else {
            markers.extend(recorded);
        }
        // The latest are worth the most.
        markers.drain(..markers.len().saturating_sub(MAX_MARKERS));
        markers
    }

    /// Returns where the messages end that the model answered last.
    fn end_before_last_answer(&self, cache: &SimulatedCache, messages: usize) -> Option<usize> {
        let messages = self.track.history.messages().get(..messages)?;
        let answer = messages.iter().rposition(|entry| entry.role == Role::Assistant)?;
        let before = messages.get(..answer)?.iter().rposition(|entry| entry.role != Role::Assistant)?;
        let next = messages.get(before + 1)?;
        Some(cache.pieces_before(next.first_block))
    }
}

/// What counting misses by in a long prefix: an estimate that is calibrated is within a hundredth or two.
const WITHIN_ERROR: f64 = 1.02;
