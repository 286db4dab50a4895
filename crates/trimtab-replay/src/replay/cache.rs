//! A provider's prompt cache. Takes requests as rows of pieces with their tokens, and when each was started; gives what
//! each reads and writes under the provider's rules. Never sees content: a piece is known by its block and the form that
//! it is shown in, and a prefix by the pieces of which it consists.
//!
//! Prefixes are nodes of a tree, so that two requests with the same beginning share nodes and nothing is hashed twice. A
//! request is a path from the root; the next one keeps the path up to the first piece that differs.
//!
//! Assumed, where providers say nothing: a request uses every entry on its way up to where it reads or writes, so all of
//! them live on; an entry is there for the next request, however soon that starts.

use std::collections::HashMap;

use trimtab_core::{
    Tokens,
    prices::{CacheLanding, CacheRules},
};

/// What a prefix grows by: a block, or a part of the head that no block stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PrefixPiece {
    /// None: before all blocks.
    pub(super) block: Option<u32>,
    /// Tells the texts apart that a block is shown as; 0 is the whole block.
    pub(super) form: u32,
}

/// What one request takes from the cache and leaves in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CacheUse {
    /// All input tokens.
    pub(crate) tokens: Tokens,
    /// Of these, read from the cache.
    pub(crate) read: Tokens,
    /// Of these, written to the cache.
    pub(crate) written: Tokens,
    /// Whether less was read than the request before left in a live cache, because what it said was changed.
    pub(crate) broke: bool,
    /// Of all input tokens, those of blocks that the request before carried too; of a first request, all. The ledger
    /// fills it in.
    pub(crate) carried: Tokens,
}

impl CacheUse {
    /// Returns the tokens that were neither read nor written.
    pub(crate) fn uncached_tokens(&self) -> Tokens {
        self.tokens - self.read - self.written
    }
}

/// A cache and the request that it saw last.
#[derive(Debug)]
pub(super) struct SimulatedCache {
    rules: CacheRules,
    lifetime_ms: i64,
    nodes: Vec<PrefixNode>,
    children: HashMap<(Option<usize>, PrefixPiece), usize>,
    /// The nodes of the request, from the first piece to the last.
    path: Vec<usize>,
    /// How many nodes of the path the last request had too.
    kept: usize,
    /// How many nodes the last request had, and how many tokens it left.
    left: (usize, Tokens),
    /// When the last request was started.
    last: i64,
}

/// A prefix.
#[derive(Debug)]
struct PrefixNode {
    piece: PrefixPiece,
    /// All tokens up to and including the piece.
    tokens: Tokens,
    /// The place of the piece as look-back counts: runs of calls and runs of results count once.
    place: usize,
    /// When a request that begins so was started last; kept up to date only off the path.
    used: Option<i64>,
    /// Whether a request set an entry here.
    entry: bool,
}

impl SimulatedCache {
    pub(super) fn new(rules: CacheRules, lifetime_ms: i64) -> SimulatedCache {
        SimulatedCache {
            rules,
            lifetime_ms,
            nodes: Vec::new(),
            children: HashMap::new(),
            path: Vec::new(),
            kept: 0,
            left: (0, Tokens::ZERO),
            last: 0,
        }
    }

    /// Returns how many pieces of the request precede a block.
    pub(super) fn pieces_before(&self, block: u32) -> usize {
        self.path
            .partition_point(|&node| self.nodes.get(node).is_some_and(|node| node.piece.block < Some(block)))
    }

    /// Returns the number of pieces of the request so far.
    pub(super) fn len(&self) -> usize {
        self.path.len()
    }

    /// Returns the last block of the request so far.
    pub(super) fn last_block(&self) -> Option<u32> {
        self.node_at(self.path.len().checked_sub(1)?)?.piece.block
    }

    /// Returns the blocks of the request after the first `pieces` pieces.
    pub(super) fn blocks_from(&self, pieces: usize) -> impl Iterator<Item = u32> {
        let nodes = self.path.iter().skip(pieces).filter_map(|&node| self.nodes.get(node));
        nodes.filter_map(|node| node.piece.block)
    }

    /// Returns how many pieces the request shares with the last one.
    pub(super) fn shared_pieces(&self) -> usize {
        self.kept
    }

    /// Returns the tokens of the first `pieces` pieces.
    pub(super) fn tokens(&self, pieces: usize) -> Tokens {
        pieces.checked_sub(1).and_then(|index| self.node_at(index)).map_or(Tokens::ZERO, |node| node.tokens)
    }

    /// Begins the next request with the first `pieces` pieces of the last one.
    pub(super) fn keep_pieces(&mut self, pieces: usize) {
        let last = self.last;
        let kept = self.kept;
        for (index, node) in self.path.drain(pieces.min(self.path.len())..).enumerate() {
            let seen = pieces + index < kept;
            if let Some(node) = self.nodes.get_mut(node).filter(|_| seen) {
                node.used = Some(last);
            }
        }
        self.kept = kept.min(self.path.len());
    }

    /// Adds a piece to the request.
    pub(super) fn push_piece(&mut self, piece: PrefixPiece, tokens: Tokens, run: PiecePosition) {
        let parent = self.path.last().copied();
        let node = self.children.get(&(parent, piece)).copied().unwrap_or_else(|| {
            let (before, place) = parent
                .and_then(|node| self.nodes.get(node))
                .map_or((Tokens::ZERO, 0), |node| (node.tokens, node.place));
            let place = match run {
                PiecePosition::Begins => place + 1,
                PiecePosition::GoesOn => place.max(1),
            };
            self.nodes.push(PrefixNode { piece, tokens: before + tokens, place, used: None, entry: false });
            self.children.insert((parent, piece), self.nodes.len() - 1);
            self.nodes.len() - 1
        });
        self.path.push(node);
    }

    /// Notes that the last request left an entry at the end of the first `pieces` pieces of this one: the end of its reply.
    pub(super) fn record_reply(&mut self, pieces: usize) {
        let last = self.last;
        if let Some(node) = pieces.checked_sub(1).and_then(|index| self.node_mut(index)) {
            node.entry = true;
            node.used = Some(last);
        }
    }

    /// Forgets all but what begins with the first `pieces` pieces of the request and ends there.
    pub(super) fn forget_beyond(&mut self, pieces: usize) {
        let spared: Vec<usize> = self.path.iter().take(pieces.min(self.kept)).copied().collect();
        let last = self.last;
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let spared = spared.contains(&index);
            node.entry &= spared;
            node.used = spared.then_some(last);
        }
        self.kept = spared.len();
        self.left = (spared.len(), self.tokens(spared.len()));
    }

    /// Sends the request, started at `at`, with markers at the ends of so many pieces each.
    pub(super) fn send_request(&mut self, at: i64, markers: &[usize]) -> CacheUse {
        let tokens = self.tokens(self.path.len());
        let found = self.readable_pieces(at, markers);
        let read = self.tokens(found);
        let read = Tokens(read.0 - read.0.checked_rem(self.rules.step.0).unwrap_or_default());
        let read = if read < self.rules.minimum { Tokens::ZERO } else { read };
        let ends = [self.path.len()];
        let entries = match self.rules.landing {
            CacheLanding::Breakpoints { .. } => markers,
            CacheLanding::RequestEnds { .. } | CacheLanding::UnitEnds | CacheLanding::AnyPrefix => {
                ends.as_slice()
            }
        };
        let reaching = entries.iter().map(|&pieces| self.tokens(pieces)).max().unwrap_or_default();
        let reaching = if reaching < self.rules.minimum { Tokens::ZERO } else { reaching };
        let changed = self.kept < self.left.0;
        let broke = changed && self.is_live(Some(self.last), at) && read < self.left.1;
        // What has expired is written again, but an entry stands only where this request sets one.
        for index in found..self.path.len() {
            let live = self.is_live(self.last_use(index), at);
            if let Some(node) = self.node_mut(index).filter(|_| !live) {
                node.entry = false;
            }
        }
        for &pieces in entries {
            let cached = self.tokens(pieces) >= self.rules.minimum;
            if let Some(node) =
                pieces.checked_sub(1).filter(|_| cached).and_then(|index| self.node_mut(index))
            {
                node.entry = true;
            }
        }
        self.kept = self.path.len();
        self.left = (self.path.len(), read.max(reaching));
        self.last = at;
        CacheUse { tokens, read, written: reaching - read, broke, carried: Tokens::ZERO }
    }

    /// Returns how many pieces can be read from the cache.
    fn readable_pieces(&self, at: i64, markers: &[usize]) -> usize {
        let live = |index: usize| self.is_live(self.last_use(index), at);
        let entry = |index: usize| self.node_at(index).is_some_and(|node| node.entry);
        let backwards = || (0..self.path.len()).rev();
        let index = match self.rules.landing {
            CacheLanding::AnyPrefix => backwards().find(|&index| live(index)),
            CacheLanding::UnitEnds => backwards().find(|&index| entry(index) && live(index)),
            CacheLanding::RequestEnds { latest } => {
                backwards().filter(|&index| entry(index)).take(latest).find(|&index| live(index))
            }
            CacheLanding::Breakpoints { look_back } => {
                let place = |index: usize| self.node_at(index).map_or(0, |node| node.place);
                let from = |marker: usize| {
                    let marked = marker.checked_sub(1)?;
                    let near = |index: &usize| place(marked) - place(*index) < look_back;
                    (0..=marked).rev().take_while(near).find(|&index| entry(index) && live(index))
                };
                markers.iter().filter_map(|&marker| from(marker)).max()
            }
        };
        index.map_or(0, |index| index + 1)
    }

    fn is_live(&self, used: Option<i64>, at: i64) -> bool {
        used.is_some_and(|used| at.saturating_sub(used) < self.lifetime_ms)
    }

    /// Returns when a node of the path was used last, this request apart.
    fn last_use(&self, index: usize) -> Option<i64> {
        if index < self.kept { Some(self.last) } else { self.node_at(index).and_then(|node| node.used) }
    }

    fn node_at(&self, index: usize) -> Option<&PrefixNode> {
        self.nodes.get(*self.path.get(index)?)
    }

    fn node_mut(&mut self, index: usize) -> Option<&mut PrefixNode> {
        self.nodes.get_mut(*self.path.get(index)?)
    }
}

/// Whether a piece is a separate position for a provider that looks back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PiecePosition {
    Begins,
    /// It goes on a run of calls or of results.
    GoesOn,
}
