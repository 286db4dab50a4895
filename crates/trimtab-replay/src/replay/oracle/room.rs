//! A budget that is kept by somebody who knows what will be needed: [`views_within_room`] with free edits, [`RoomPlan`] with
//! edits that wait for a cut. Takes a case with its room; gives views. Never brings anything back, never takes the user's
//! words, and takes what the model has not seen only when nothing else is left.
//!
//! What goes first: results that nobody needs any more; inputs of calls and reasoning, which no figure of results needs;
//! exchanges of which nothing is needed; then results by what is needed of them per token.

use std::{
    collections::{BTreeSet, HashMap},
    mem,
};

use trimtab_core::{BlockId, BlockKind, Tokens, json::narrow};

use super::{HIDDEN, ResultNeed, cuts::CutPlan, needed_lines};
use crate::replay::{
    ShownBlock, Track, Views,
    peers::{
        PeerCase, exchanges_of,
        walk::{PeerWalk, text_of},
    },
};

/// What stands in the place of a call's arguments.
const NO_ARGUMENTS: &str = "{}";

/// Our counts of a request and those that are charged differ by rounding of each block: so much of the room is not used.
const ROUNDING: f64 = 0.998;

/// What is left of a result that is still needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownRest {
    Whole,
    NeededLines,
}

/// Which of the results that are needed goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DropOrder {
    /// That of which the least is needed per token.
    LeastNeeded,
    /// That which is needed last.
    NeededLast,
}

/// How room is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoomPlan<'a> {
    pub(super) room: Tokens,
    /// The share of the room down to which a cut goes.
    pub(super) depth: f64,
    /// The share of the request that a cut leaves alone, at its beginning, where the rest gives enough.
    pub(super) start: f64,
    /// When results are hidden that nobody needs any more; at once, where there is no plan.
    pub(super) cuts: Option<&'a CutPlan>,
}

/// Views, and what they hid although it was needed.
pub(super) struct RoomViews {
    pub(super) views: Views,
    /// Each needed block, with the request at which it was hidden.
    pub(super) lost: Vec<(BlockId, usize)>,
    lost_weight: f64,
}

/// Keeps the room with free edits: of two orders, that by which less is lost.
pub(super) fn views_within_room(case: &PeerCase<'_>, rest: ShownRest) -> Views {
    let plan = RoomPlan { room: case.room, depth: 1.0, start: 0.0, cuts: None };
    let [one, other] = [DropOrder::LeastNeeded, DropOrder::NeededLast]
        .map(|order| RoomKeeper::new(case, plan, order, rest).make_views());
    if other.lost_weight < one.lost_weight { other.views } else { one.views }
}

/// Keeps the room by a plan, with whole results.
pub(super) fn views_by_plan(case: &PeerCase<'_>, plan: RoomPlan<'_>) -> RoomViews {
    RoomKeeper::new(case, plan, DropOrder::LeastNeeded, ShownRest::Whole).make_views()
}

/// What is known between requests.
struct RoomKeeper<'a> {
    track: &'a Track<'a>,
    plan: RoomPlan<'a>,
    order: DropOrder,
    rest: ShownRest,
    walk: PeerWalk<'a>,
    needs: HashMap<BlockId, Vec<&'a ResultNeed>>,
    /// Exchanges, oldest first.
    exchanges: Vec<std::ops::Range<u32>>,
    /// Results that the model has seen and that are not hidden.
    visible: BTreeSet<BlockId>,
    /// Those of them that nobody needs any more.
    idle: BTreeSet<BlockId>,
    /// Results to look at before each request: what they were needed for is over.
    due: Vec<Vec<BlockId>>,
    lost: Vec<(BlockId, usize)>,
    lost_weight: f64,
}

/// Something that can make room.
struct RoomItem {
    /// Which sort goes first.
    tier: u8,
    /// Within a sort, the smallest goes first.
    score: f64,
    what: RoomItemKind,
}

enum RoomItemKind {
    Result(BlockId),
    Input(BlockId),
    Exchange(std::ops::Range<u32>),
}

impl<'a> RoomKeeper<'a> {
    fn new(case: &PeerCase<'a>, plan: RoomPlan<'a>, order: DropOrder, rest: ShownRest) -> RoomKeeper<'a> {
        let track = case.track;
        let mut needs: HashMap<BlockId, Vec<&ResultNeed>> = HashMap::new();
        for need in case.needs {
            needs.entry(need.provider).or_default().push(need);
        }
        RoomKeeper {
            track,
            plan: RoomPlan { room: plan.room.scale(ROUNDING), ..plan },
            order,
            rest,
            walk: PeerWalk::new(track),
            needs,
            exchanges: exchanges_of(track),
            visible: BTreeSet::new(),
            idle: BTreeSet::new(),
            due: vec![Vec::new(); track.requests.len() + 1],
            lost: Vec::new(),
            lost_weight: 0.0,
        }
    }

    fn make_views(mut self) -> RoomViews {
        while let Some(request) = self.walk.next() {
            for block in self.due.get_mut(request).map(mem::take).unwrap_or_default() {
                self.look_again(block, request);
            }
            let cut = self.plan.cuts.map_or(Some(BlockId(0)), |cuts| cuts.get(request).copied().flatten());
            self.hide_idle(cut);
            if self.walk.total_tokens() > self.plan.room {
                let first = self.make_room(request);
                self.hide_idle(first);
            }
            if let Some(next) = self.due.get_mut(request + 1) {
                next.extend(self.walk.new_results());
            }
        }
        let mut views = self.walk.into_views();
        if self.plan.cuts.is_some() {
            add_markers(self.track, &mut views);
        }
        RoomViews { views, lost: self.lost, lost_weight: self.lost_weight }
    }

    /// Takes a result that was seen, or whose use is over, for what it is now.
    fn look_again(&mut self, block: BlockId, request: usize) {
        let later: Vec<&ResultNeed> = self.later_needs(block, request).collect();
        let Some(next) = later.iter().map(|need| need.request).min() else {
            self.visible.insert(block);
            self.idle.insert(block);
            return;
        };
        if self.visible.contains(&block) || !self.lost.iter().any(|(lost, _)| *lost == block) {
            self.visible.insert(block);
            if self.rest == ShownRest::NeededLines && later.iter().all(|need| !need.lines.is_empty()) {
                let text = needed_lines(&text_of(self.track, block), &later);
                self.show_if_smaller(block, text);
            }
        }
        if let Some(due) = self.due.get_mut(next + 1) {
            due.push(block);
        }
    }

    fn later_needs(&self, block: BlockId, request: usize) -> impl Iterator<Item = &'a ResultNeed> + use<'a> {
        let needs: Vec<&'a ResultNeed> = self.needs.get(&block).cloned().unwrap_or_default();
        needs.into_iter().filter(move |need| need.request >= request)
    }

    fn show_if_smaller(&mut self, block: BlockId, text: String) {
        let shown = self.walk.as_text(block, text);
        if self.walk.tokens_as(block, &shown) < self.tokens_now(block) {
            self.walk.show_block(block, shown);
        }
    }

    fn tokens_now(&self, block: BlockId) -> Tokens {
        self.walk.tokens_as(block, self.walk.shown_block(block))
    }

    /// Hides from a block on what nobody needs any more.
    fn hide_idle(&mut self, from: Option<BlockId>) {
        let Some(from) = from else { return };
        for block in self.idle.split_off(&from) {
            self.visible.remove(&block);
            if *self.walk.shown_block(block) != ShownBlock::Gone {
                self.show_if_smaller(block, HIDDEN.to_owned());
            }
        }
    }

    /// Hides until the request is as small as a cut makes it; returns the first block that changed.
    fn make_room(&mut self, request: usize) -> Option<BlockId> {
        let goal = self.plan.room.scale(self.plan.depth);
        let start = self.start_of_cut();
        let mut items = self.items(request);
        items.sort_by(|one, other| one.tier.cmp(&other.tier).then_with(|| one.score.total_cmp(&other.score)));
        let freed = |item: &RoomItem| self.tokens_of(item);
        let behind = items.iter().filter(|item| item.first_block() >= start && item.tier < NEEDED);
        let enough = self.walk.total_tokens() - behind.map(freed).sum::<Tokens>() <= goal;
        let mut first: Option<BlockId> = None;
        for item in &items {
            if self.walk.total_tokens() <= goal {
                break;
            }
            let within = self.walk.total_tokens() <= self.plan.room;
            // Deeper than it must, only for what nobody needs.
            if (enough && item.first_block() < start) || (within && item.tier >= NEEDED) {
                continue;
            }
            if self.take_item(item, request) {
                first = Some(first.map_or(item.first_block(), |first| first.min(item.first_block())));
            }
        }
        if self.walk.total_tokens() > self.plan.room {
            let mut unseen = self.walk.new_results();
            unseen.sort_by_key(|block| std::cmp::Reverse(self.tokens_now(*block)));
            for block in unseen {
                if self.walk.total_tokens() <= self.plan.room {
                    break;
                }
                self.take_item(
                    &RoomItem { tier: NEEDED, score: 0.0, what: RoomItemKind::Result(block) },
                    request,
                );
            }
        }
        first
    }

    /// Returns the block before which a cut leaves everything alone where it can.
    fn start_of_cut(&self) -> BlockId {
        let goal = self.walk.total_tokens().scale(self.plan.start);
        let mut sum = Tokens::ZERO;
        let blocks = (0..narrow(self.walk.block_count())).map(BlockId);
        let mut after = blocks.skip_while(|block| {
            sum += self.tokens_now(*block);
            sum < goal
        });
        after.next().filter(|_| self.plan.start > 0.0).unwrap_or(BlockId(0))
    }

    fn tokens_of(&self, item: &RoomItem) -> Tokens {
        match &item.what {
            RoomItemKind::Result(block) | RoomItemKind::Input(block) => self.tokens_now(*block),
            // Its results and inputs are counted as such.
            RoomItemKind::Exchange(_) => Tokens::ZERO,
        }
    }

    fn items(&self, request: usize) -> Vec<RoomItem> {
        let mut items: Vec<RoomItem> = Vec::new();
        for block in &self.visible {
            let needed: Vec<&ResultNeed> = self.later_needs(*block, request).collect();
            let weight: f64 = needed.iter().map(|need| need.kind.weight()).sum();
            let score = match self.order {
                _ if needed.is_empty() => -self.tokens_now(*block).to_float(),
                DropOrder::LeastNeeded => weight / self.tokens_now(*block).to_float().max(1.0),
                DropOrder::NeededLast => {
                    let next = needed.iter().map(|need| need.request).min().unwrap_or(request);
                    -Tokens::from_len(next - request).to_float()
                }
            };
            let tier = if needed.is_empty() { IDLE } else { NEEDED };
            items.push(RoomItem { tier, score, what: RoomItemKind::Result(*block) });
        }
        let seen = narrow(self.walk.blocks_before());
        for block in (0..seen).map(BlockId) {
            let kind = self.track.history.block(block).map(|found| found.kind);
            if matches!(kind, Some(BlockKind::Call | BlockKind::Reasoning)) && self.walk.is_whole(block) {
                let score = f64::from(block.0);
                items.push(RoomItem { tier: INPUT, score, what: RoomItemKind::Input(block) });
            }
        }
        let gone = |block: u32| *self.walk.shown_block(BlockId(block)) == ShownBlock::Gone;
        let seen_exchanges = self.exchanges.iter().filter(|exchange| exchange.end <= seen);
        for exchange in seen_exchanges.filter(|exchange| !(*exchange).clone().all(gone)) {
            let needed = exchange.clone().map(BlockId).any(|block| {
                self.visible.contains(&block) && self.later_needs(block, request).next().is_some()
            });
            // What is needed goes as a result first, and takes the rest along only when nothing else is left.
            let (tier, score) =
                if needed { (NEEDED, f64::INFINITY) } else { (EXCHANGE, f64::from(exchange.start)) };
            items.push(RoomItem { tier, score, what: RoomItemKind::Exchange(exchange.clone()) });
        }
        items
    }

    /// Hides something; tells whether that changed anything.
    fn take_item(&mut self, item: &RoomItem, request: usize) -> bool {
        let before = self.walk.total_tokens();
        match &item.what {
            RoomItemKind::Result(block) => {
                self.lose(*block, request);
                self.show_if_smaller(*block, HIDDEN.to_owned());
            }
            RoomItemKind::Input(block) => {
                let is_call =
                    self.track.history.block(*block).is_some_and(|found| found.kind == BlockKind::Call);
                if is_call {
                    self.show_if_smaller(*block, NO_ARGUMENTS.to_owned());
                } else {
                    self.walk.show_block(*block, ShownBlock::Gone);
                }
            }
            RoomItemKind::Exchange(blocks) => {
                for block in blocks.clone().map(BlockId) {
                    self.lose(block, request);
                    self.walk.show_block(block, ShownBlock::Gone);
                }
            }
        }
        self.walk.total_tokens() != before
    }

    /// Notes that a result is not visible any more.
    fn lose(&mut self, block: BlockId, request: usize) {
        let was_visible = self.visible.remove(&block);
        self.idle.remove(&block);
        let needed: f64 = self.later_needs(block, request).map(|need| need.kind.weight()).sum();
        if needed > 0.0 && (was_visible || !self.lost.iter().any(|(lost, _)| *lost == block)) {
            self.lost.push((block, request));
            self.lost_weight += needed;
        }
    }
}

/// What goes first.
const IDLE: u8 = 0;
const INPUT: u8 = 1;
const EXCHANGE: u8 = 2;
const NEEDED: u8 = 3;

impl RoomItem {
    fn first_block(&self) -> BlockId {
        match &self.what {
            RoomItemKind::Result(block) | RoomItemKind::Input(block) => *block,
            RoomItemKind::Exchange(blocks) => BlockId(blocks.start),
        }
    }
}

/// Sets a cache marker before the first block of each request that is shown otherwise than before.
fn add_markers(track: &Track<'_>, views: &mut Views) {
    for (request, changes) in views.changes.iter().enumerate() {
        let carried = request.checked_sub(1).and_then(|before| track.requests.get(before));
        let carried = narrow(carried.map_or(0, |before| before.blocks));
        let first = changes.iter().map(|change| change.block.0).filter(|block| *block < carried).min();
        if let Some(before) = first.and_then(|first| first.checked_sub(1)) {
            views.markers.insert(request, BlockId(before));
        }
    }
}
