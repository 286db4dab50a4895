//! What was hidden, by its own content. Takes plans that were sent; gives what a block was sent as whose conversation was
//! rewritten before it, so that what was hidden stays hidden. Never speaks of a block that the model has not seen.

use std::collections::{HashMap, HashSet};

use super::Memory;
use crate::{
    history::{BlockId, History, Role},
    identity::{BlockHash, ChainHash, block_hash},
    json::{narrow, widen},
    verdict::{Decision, SentVerdict, Verdict},
};

/// A block that was hidden: where it stood, and what was sent instead.
#[derive(Debug, Clone)]
pub(crate) struct HiddenBlock {
    pub(crate) place: ChainHash,
    pub(crate) sent: SentVerdict,
}

/// Returns the identities of the blocks that a plan hides otherwise than they were hidden before, by themselves.
pub(crate) fn hidden_anew(
    history: &History,
    decisions: &[Decision],
    memory: &Memory,
    sent: &[Option<&SentVerdict>],
) -> Vec<(u32, BlockHash)> {
    let none_known = memory.hidden.is_empty();
    let blocks = decisions.iter().zip(sent).zip(history.blocks());
    let anew = blocks.filter(|((decision, before), _)| match &decision.verdict {
        // A summary stands for the beginning of one conversation and for no other.
        Verdict::Keep | Verdict::Fold { .. } => false,
        verdict => none_known || !before.is_some_and(|before| verdict.sends_same(before.verdict())),
    });
    anew.map(|((decision, _), block)| (decision.block.0, block_hash(history, block))).collect()
}

/// Returns how many blocks the model has answered to, its last words included.
fn answered_blocks(history: &History) -> usize {
    let answered = history.entries().iter().rfind(|entry| entry.role == Role::Assistant);
    answered.map_or(0, |entry| history.blocks_before_end(entry))
}

/// Finds places among blocks of one content, each looked at once however many there are.
struct PlaceSearch {
    by_place: HashMap<ChainHash, usize>,
    /// All before this one stand in the conversation.
    next_gone: usize,
}

impl PlaceSearch {
    fn search_in(known: &[HiddenBlock]) -> PlaceSearch {
        let by_place = known.iter().enumerate().rev().map(|(index, block)| (block.place, index)).collect();
        PlaceSearch { by_place, next_gone: 0 }
    }

    /// Returns the first block that stood in this place or whose place is gone; the end where there is none. The block there
    /// counts as one of this place from now on.
    fn find(
        &mut self,
        known: &[HiddenBlock],
        place: ChainHash,
        mut is_gone: impl FnMut(&HiddenBlock) -> bool,
    ) -> usize {
        while known.get(self.next_gone).is_some_and(|block| !is_gone(block)) {
            self.next_gone += 1;
        }
        let index = self.by_place.get(&place).map_or(self.next_gone, |own| self.next_gone.min(*own));
        self.by_place.insert(place, index);
        index
    }
}

impl Memory {
    /// Remembers what a plan hides by its content.
    pub(crate) fn remember_hidden(
        &mut self,
        chain: &[ChainHash],
        decisions: &[Decision],
        hidden: &[(u32, BlockHash)],
    ) {
        let mut places: Option<HashSet<ChainHash>> = None;
        let mut searches: HashMap<BlockHash, PlaceSearch> = HashMap::new();
        for (number, hash) in hidden {
            let number = widen(*number);
            let (Some(place), Some(decision)) = (chain.get(number), decisions.get(number)) else {
                continue;
            };
            let known = self.hidden.entry(*hash).or_default();
            let search = searches.entry(*hash).or_insert_with(|| PlaceSearch::search_in(known));
            // The block that stood elsewhere in a conversation that is no more is this one.
            let is_gone = |other: &HiddenBlock| {
                let places = places.get_or_insert_with(|| chain.iter().copied().collect());
                !places.contains(&other.place)
            };
            let index = search.find(known, *place, is_gone);
            let hidden = HiddenBlock { place: *place, sent: SentVerdict::As(decision.verdict.clone()) };
            match known.get_mut(index) {
                Some(known) => *known = hidden,
                None => known.push(hidden),
            }
        }
    }

    /// Tells whether a conversation only went on since the latest request: that stands in it as it was.
    fn goes_on(&self, chain: &[ChainHash]) -> bool {
        self.tip.is_none_or(|tip| chain.iter().rev().any(|hash| *hash == tip))
    }

    /// Returns the first block that the model has answered to and that was not sent in its place before, where the client has
    /// rewritten the conversation; nothing where it only went on.
    pub(crate) fn rewritten_from(&self, history: &History, chain: &[ChainHash]) -> Option<BlockId> {
        if self.goes_on(chain) {
            return None;
        }
        let sent = chain.iter().take_while(|hash| self.verdict(**hash).is_some()).count();
        (sent < answered_blocks(history)).then(|| BlockId(narrow(sent)))
    }

    /// Returns, for each block that was not sent in its place before, what it was sent as in a conversation that the client has
    /// rewritten since; nothing at all where the conversation only went on.
    pub(crate) fn hidden_elsewhere<'a>(
        &'a self,
        history: &History,
        chain: &[ChainHash],
        sent: &[Option<&SentVerdict>],
    ) -> Vec<Option<&'a SentVerdict>> {
        if self.goes_on(chain) || self.hidden.is_empty() {
            return Vec::new();
        }
        let places: HashSet<ChainHash> = chain.iter().copied().collect();
        let mut used: HashSet<ChainHash> = HashSet::new();
        let mut next_free: HashMap<BlockHash, usize> = HashMap::new();
        // What came after the model's last words is new, however much it looks like something old.
        let seen = answered_blocks(history);
        let mut found = Vec::with_capacity(history.blocks().len());
        for (number, (block, before)) in history.blocks().iter().zip(sent).enumerate() {
            if before.is_some() || number >= seen {
                found.push(None);
                continue;
            }
            let hash = block_hash(history, block);
            let known = self.hidden.get(&hash).map(Vec::as_slice).unwrap_or_default();
            // Those before stand in the conversation or were used: they are not looked at again.
            let next = next_free.entry(hash).or_default();
            let is_taken = |known: &HiddenBlock| places.contains(&known.place) || used.contains(&known.place);
            while known.get(*next).is_some_and(is_taken) {
                *next += 1;
            }
            let hidden = known.get(*next);
            used.extend(hidden.map(|hidden| hidden.place));
            found.push(hidden.map(|hidden| &hidden.sent));
        }
        found
    }
}
