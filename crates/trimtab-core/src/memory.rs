//! What was sent before, by identity. Takes the plan of a request that was forwarded; gives the verdicts to repeat. Never
//! holds a conversation: a block is known by the hash of everything up to and including it.

mod hidden;
mod stored;
mod summaries;
mod wishes;

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use hidden::HiddenBlock;
pub(crate) use hidden::hidden_anew;
pub(crate) use summaries::FoldContent;
pub use wishes::{Handle, UndoWhen, UndoWish, Wishes};

use crate::{
    history::{BlockId, History, Role},
    identity::{BlockHash, ChainHash, chain},
    json::widen,
    summary::LastFold,
    units::{Millis, Tokens},
    verdict::{Decision, SentVerdict, Verdict},
};

/// A chain hash is as good as random: its first half is all the hash that a map needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct FirstBytesHasher(u64);

impl Hasher for FirstBytesHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.first_chunk().map_or(0, |half| u64::from_le_bytes(*half));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Input costs in tokens at the plain input price.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct InputCosts {
    /// As sent.
    pub ours: f64,
    /// Unchanged.
    pub raw: f64,
}

/// What is remembered of a session.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    pub(crate) verdicts: HashMap<ChainHash, SentVerdict, BuildHasherDefault<FirstBytesHasher>>,
    pub(crate) last_request: Option<Millis>,
    /// What was hidden, by its own content.
    pub(crate) hidden: HashMap<BlockHash, Vec<HiddenBlock>>,
    /// The last block of the latest request.
    pub(crate) tip: Option<ChainHash>,
    /// The last block of each request.
    pub(crate) ends: HashMap<ChainHash, Millis, BuildHasherDefault<FirstBytesHasher>>,
    pub(crate) requests: u32,
    pub(crate) spent: InputCosts,
    /// What was handed back for ranges that are to be folded, by their last block.
    pub(crate) summaries: HashMap<ChainHash, FoldContent, BuildHasherDefault<FirstBytesHasher>>,
    pub(crate) last_fold: Option<LastFold>,
    /// What the provider reported for the last request.
    pub(crate) reported: Option<Tokens>,
    /// Whether the last request changed what the provider's cache contained.
    pub(crate) rewrote: bool,
    /// What was asked for about single blocks.
    pub(crate) wishes: Wishes,
}

impl Memory {
    /// For how many milliseconds after a request the end of it can be in the provider's cache: an hour, where the client asks for
    /// that. Later nobody counts on it, so that older ends need not be remembered.
    pub const ENDS_LAST_MS: i64 = 60 * 60 * 1000;

    pub(crate) fn record(&mut self, chain: &[ChainHash], decisions: &[Decision], now: Millis) {
        for (hash, decision) in chain.iter().zip(decisions) {
            let is_known = match (self.verdicts.get(hash), &decision.verdict) {
                (None, _) => false,
                // A block that was hidden keeps its text, unless somebody takes the hiding back.
                (Some(_), Verdict::Keep) => true,
                // A block that was whole may be hidden later, a shortened one may go, and a pointer whose copy is hidden says
                // something else.
                (Some(before), hidden) => before.verdict() == hidden,
            };
            if !is_known {
                self.verdicts.insert(*hash, SentVerdict::As(decision.verdict.clone()));
            }
        }
        self.ends.extend(chain.last().map(|end| (*end, now)));
        self.tip = chain.last().copied();
        self.last_request = Some(now);
        self.requests += 1;
    }

    /// Returns what a conversation takes along that goes on from this one with other words before or after: what its own blocks
    /// were sent as, and what was hidden, by content. Without the rest, conversations that change again and again stay small.
    #[must_use]
    pub fn for_conversation(&self, chain: &[ChainHash]) -> Memory {
        let own = chain.iter().chain(&self.tip);
        Memory {
            verdicts: own.filter_map(|hash| Some((*hash, self.verdicts.get(hash)?.clone()))).collect(),
            hidden: self.hidden.clone(),
            ends: self.ends.clone(),
            summaries: self.summaries.clone(),
            wishes: self.wishes.clone(),
            ..*self
        }
    }

    /// Takes a conversation that is first seen in the middle as already sent whole at `now`, so that a live cache is not
    /// broken in ignorance.
    pub fn adopt_history(&mut self, history: &History, now: Millis) {
        for hash in chain(history) {
            self.verdicts.entry(hash).or_insert(SentVerdict::WHOLE);
        }
        self.last_request = Some(now);
    }

    /// Returns the memory of a conversation that is first seen when the model has answered in it: all up to its last answer was sent
    /// whole, in requests that ended where the model began to answer.
    pub fn of_running_conversation(history: &History, chain: &[ChainHash], now: Millis) -> Memory {
        let mut memory = Memory::default();
        let answered = history.entries().iter().rfind(|entry| entry.role == Role::Assistant);
        let blocks = answered.map_or(0, |entry| history.blocks_before_end(entry));
        memory.taken_as_sent(chain.get(..blocks).unwrap_or_default(), now);
        let turns = history.messages().iter().zip(history.messages().iter().skip(1));
        let asked = turns.filter(|(said, next)| said.role != Role::Assistant && next.role == Role::Assistant);
        let ends = asked.filter_map(|(said, _)| chain.get(history.blocks_before_end(said).checked_sub(1)?));
        memory.ended_with(ends.map(|end| (*end, now)));
        memory
    }

    /// Returns where requests ended, and when.
    pub(crate) fn request_ends(&self) -> Vec<(ChainHash, Millis)> {
        let mut ends: Vec<_> = self.ends.iter().map(|(end, at)| (*end, *at)).collect();
        ends.sort_unstable_by_key(|(end, _)| *end);
        ends
    }

    /// Takes blocks of which nothing is known as sent whole: who sees the model's answer to them knows that they were sent.
    /// Where nothing at all is known, they were sent at `now`.
    pub fn taken_as_sent(&mut self, chain: &[ChainHash], now: Millis) {
        for hash in chain {
            self.verdicts.entry(*hash).or_insert(SentVerdict::WHOLE);
        }
        if self.last_request.is_none() && !chain.is_empty() {
            self.ends.extend(chain.last().map(|end| (*end, now)));
            self.last_request = Some(now);
            self.requests += 1;
        }
    }

    /// Remembers how much of the latest request the provider found in its cache. Where that is less than half, and the request
    /// began as the ones before, what earlier requests left there is taken for lost: caches let the tail of a conversation go
    /// before its head.
    pub fn cache_gave(&mut self, read: u64, input: u64) {
        if read.saturating_mul(2) < input && !self.rewrote {
            self.cache_was_lost();
        }
    }

    /// Remembers that the provider's cache had lost what earlier requests left there: only the latest has an entry now.
    pub fn cache_was_lost(&mut self) {
        let last = self.last_request;
        self.ends.retain(|_, at| Some(*at) == last);
    }

    /// Remembers that a request besides those recorded here read all that is cached, which keeps it for another lifetime.
    pub fn cache_was_read(&mut self, now: Millis) {
        let last = self.last_request;
        self.ends.values_mut().filter(|at| Some(**at) == last).for_each(|at| *at = now);
        self.last_request = last.map(|last| now.max(last));
    }

    /// Remembers that a request sends a block otherwise than before: what ended after it ended with other bytes before.
    pub(crate) fn ends_changed_from(&mut self, chain: &[ChainHash], block: BlockId) {
        for hash in chain.iter().skip(widen(block.0)) {
            self.ends.remove(hash);
        }
    }

    /// Remembers that requests ended with these blocks, and when they were sent.
    pub fn ended_with(&mut self, ends: impl IntoIterator<Item = (ChainHash, Millis)>) {
        for (end, at) in ends {
            let known = self.ends.entry(end).or_insert(at);
            *known = at.max(*known);
        }
    }

    /// Tells whether a request that was started after a time ended with this block.
    pub(crate) fn is_end(&self, hash: ChainHash, after: Millis) -> bool {
        self.ends.get(&hash).is_some_and(|at| *at > after)
    }

    /// Returns what the requests so far have cost as input.
    pub fn total_cost(&self) -> InputCosts {
        self.spent
    }

    /// Tells whether nothing was ever sent.
    pub fn is_empty(&self) -> bool {
        self.verdicts.is_empty()
    }

    pub(crate) fn verdict(&self, hash: ChainHash) -> Option<&SentVerdict> {
        self.verdicts.get(&hash)
    }

    /// Returns how many requests were sent.
    pub(crate) fn request_count(&self) -> u32 {
        self.requests
    }

    /// Returns the milliseconds since the last request was sent.
    pub(crate) fn idle_time(&self, now: Millis) -> Option<i64> {
        self.last_request.map(|last| now.0.saturating_sub(last.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_ended_after_what_is_changed_has_no_entry_any_more() {
        let chain = [1, 2, 3, 4].map(|number| ChainHash([number; 16]));
        let mut memory = Memory::default();
        memory.ended_with(chain.map(|end| (end, Millis(1))));
        memory.ends_changed_from(&chain, BlockId(2));
        assert_eq!(chain.map(|end| memory.is_end(end, Millis(0))), [true, true, false, false]);
    }

    #[test]
    fn a_cache_that_gave_less_than_half_has_lost_what_earlier_requests_left() {
        let end = |number: u8| ChainHash([number; 16]);
        let of = |read: u64, rewrote: bool| {
            let mut memory = Memory { last_request: Some(Millis(1)), rewrote, ..Memory::default() };
            memory.ended_with([(end(1), Millis(1))]);
            memory.last_request = Some(Millis(2));
            memory.ended_with([(end(2), Millis(2))]);
            memory.cache_gave(read, 100);
            [end(1), end(2)].map(|end| memory.is_end(end, Millis(0)))
        };
        assert_eq!(
            [0, 49, 50, 100].map(|read| of(read, false)),
            [[false, true], [false, true], [true, true], [true, true]]
        );
        assert_eq!(of(0, true), [true, true], "what was written anew is not lost");
    }
}
