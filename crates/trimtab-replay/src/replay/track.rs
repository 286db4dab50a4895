//! A recorded segment laid out for replay. Takes the segment and a counter; gives its whole history with facts, files and
//! counts, and how far each request reached. Never decides anything.
//!
//! Facts and files are those of the end: who plays a policy that cannot know the future looks only at blocks that were
//! there, and asks nothing that a later block can have changed (`superseded_by`).

use trimtab_core::{
    BlockId, BlockKind, History, Millis, Role, Tokens,
    count::{CountMemo, Counter, Counts},
    facts::{Facts, facts},
    files::{FileTimeline, files},
    json::{narrow, widen},
    prices::find_model,
    usage::Usage,
};

use super::log::{SHORT_MS, UsageLog};
use crate::recording::Segment;

/// One request of the recording.
#[derive(Debug, Clone)]
pub(crate) struct TrackedRequest {
    /// How many of the segment's blocks it carried, tools and system included.
    pub(crate) blocks: usize,
    /// How many messages it carried.
    pub(crate) messages: usize,
    pub(crate) at: Option<Millis>,
    pub(crate) model: Option<String>,
    pub(crate) usage: Option<Usage>,
    /// The first block of the message with which its turn began.
    pub(crate) turn: usize,
    /// What the log says about the cache.
    pub(crate) found: CacheFinding,
}

/// What the log shows that a request found in the cache, where no rule explains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CacheFinding {
    /// What the rules say.
    #[default]
    AsRuled,
    /// All, although it had expired or another turn began: a request that is not recorded had used it since.
    Alive,
    /// The head of tools and system only: the client changed something that is not recorded, or the provider needed room.
    HeadOnly,
    /// Nothing.
    Nothing,
}

/// A segment with everything that is known about it.
#[derive(Debug)]
pub(crate) struct Track<'a> {
    pub(crate) history: &'a History,
    pub(crate) facts: Facts,
    pub(crate) files: FileTimeline,
    pub(crate) counter: Counter,
    pub(crate) counts: Counts,
    pub(crate) requests: Vec<TrackedRequest>,
    /// Tokens of the head that are reported and not recorded: tools and system that the recording leaves out.
    pub(crate) unseen_head: Tokens,
    /// Of these, what the log shows to be cached by itself: tools and system without what begins the first message.
    pub(crate) shared_head: Tokens,
    /// Tokens that the first request found in the cache: of the head that sessions share, or of the segment before.
    pub(crate) warm: Tokens,
    /// What counts are multiplied by to be those that the provider reported: 1 where nothing is reported.
    pub(crate) scale: f64,
    /// Whether the client had its prefixes kept for an hour.
    pub(crate) hour: bool,
}

impl<'a> Track<'a> {
    /// Lays a segment out.
    pub(crate) fn new(segment: &'a Segment, counter: Counter) -> Track<'a> {
        let history = &segment.history;
        let facts = facts(history);
        let files = files(history, &facts);
        let counts = counter.count_request(history, &mut CountMemo::default());
        let blocks = |messages: usize| {
            let next = history.messages().get(messages);
            next.map_or(history.blocks().len(), |entry| widen(entry.first_block))
        };
        let requests = segment.points.iter().map(|point| TrackedRequest {
            blocks: blocks(point.messages),
            messages: point.messages,
            at: point.at,
            model: point.model.clone(),
            usage: point.usage,
            turn: 0,
            found: CacheFinding::AsRuled,
        });
        let mut requests: Vec<TrackedRequest> = requests.collect();
        note_turns(history, &mut requests);
        let log = UsageLog::read_requests(history, &counts, &mut requests);
        let UsageLog { unseen_head, shared_head, warm, scale, hour } = log;
        Track {
            history,
            facts,
            files,
            counter,
            counts,
            requests,
            unseen_head,
            shared_head,
            warm,
            scale,
            hour,
        }
    }

    /// Returns a count as the provider would have reported it.
    pub(crate) fn as_reported(&self, tokens: Tokens) -> Tokens {
        tokens.scale(self.scale)
    }

    /// Goes back to our own counts; the unseen head takes up what the first request then lacks.
    pub(crate) fn use_own_counts(&mut self) {
        self.unseen_head = UsageLog::unseen_head(self.history, &self.counts, &self.requests, 1.0);
        self.scale = 1.0;
    }

    /// Takes prefixes to be kept for the shortest lifetime that a provider promises. A hit on a prefix that was kept for an hour,
    /// or at a provider that keeps it longer, says nothing about that.
    pub(crate) fn keep_as_usual(&mut self) {
        let recorded = self.requests.iter().find_map(|request| find_model(request.model.as_deref()?).ok());
        let is_short = recorded.is_some_and(|model| model.provider == "anthropic");
        if !std::mem::take(&mut self.hour) && is_short {
            return;
        }
        let mut last = None;
        for request in &mut self.requests {
            let paused =
                request.at.zip(last).is_some_and(|(at, last): (Millis, Millis)| at.0 - last.0 >= SHORT_MS);
            if paused && request.found == CacheFinding::Alive {
                request.found = CacheFinding::AsRuled;
            }
            last = request.at.or(last);
        }
    }

    /// Takes prefixes to be kept for an hour.
    pub(crate) fn keep_for_an_hour(&mut self) {
        self.hour = true;
    }

    /// Takes requests to be sent to a local server, which keeps the prefixes of so many conversations: what the log tells of a
    /// provider's cache says nothing about it, and a slot is lost when as many others have made requests since.
    pub(crate) fn serve_locally(&mut self, slots: usize, others: &[Vec<Millis>]) {
        (self.hour, self.warm) = (false, Tokens::ZERO);
        let mut last = None;
        for request in &mut self.requests {
            request.found = CacheFinding::AsRuled;
            let Some(at) = request.at else { continue };
            let between =
                |times: &&Vec<Millis>| times.iter().any(|time| last < Some(time.0) && time.0 < at.0);
            if last.is_some() && slots > 0 && others.iter().filter(between).count() >= slots {
                request.found = CacheFinding::Nothing;
            }
            last = Some(at.0);
        }
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

/// Notes where the turn of each request began: with the last message of a person, which carries no results.
fn note_turns(history: &History, requests: &mut [TrackedRequest]) {
    let (mut turn, mut seen) = (0, 0);
    for request in requests {
        for entry in history.messages().get(seen..request.messages).unwrap_or_default() {
            let answers = history.blocks_of(entry).iter().any(|block| block.kind == BlockKind::Result);
            if entry.role == Role::User && !answers {
                turn = widen(entry.first_block);
            }
        }
        seen = request.messages;
        request.turn = turn.min(request.blocks);
    }
}
