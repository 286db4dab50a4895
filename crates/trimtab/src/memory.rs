//! What was sent before, by identity. Takes the plan of a request that was forwarded; gives the verdicts to repeat. Never
//! holds a conversation: a block is known by the hash of everything up to and including it.

mod held;
mod hidden;
mod stored;
mod wishes;

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hash, Hasher},
    sync::Arc,
};

pub(crate) use held::Held;
pub use hidden::BlockHash;
pub(crate) use hidden::hidden_anew;
pub use stored::StoredVerdict;
pub use wishes::{Handle, Undo, UndoWhen, Wishes};

use crate::{
    count::Tokens,
    history::{Block, BlockKind, History, PartKind, Role},
    json::{scan, widen},
    plan::{Cost, Decision, Plan, Reason, Verdict},
    recording::Millis,
    resend::Resent,
    summary::LastFold,
};

/// The identity of a block: the hash of the block before it and of its own content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChainHash(pub [u8; 16]);

impl Hash for ChainHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

/// What a block was sent as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sent {
    Whole,
    /// Whole, after it was hidden: somebody asked for that.
    WholeAgain,
    Shortened {
        text: Arc<str>,
        reason: Reason,
    },
    NotAtAll {
        reason: Reason,
    },
}

impl Sent {
    /// Returns what a block is sent as by a decision.
    fn of(decision: &Decision) -> Sent {
        match (&decision.verdict, decision.reason.clone()) {
            (Verdict::Shorten { text, .. }, Some(reason)) => {
                Sent::Shortened { text: Arc::clone(text), reason }
            }
            (Verdict::Drop, Some(reason)) => Sent::NotAtAll { reason },
            (Verdict::Keep | Verdict::Shorten { .. } | Verdict::Drop, _) => Sent::Whole,
        }
    }
}

/// A chain hash is as good as random: its first half is all the hash that a map needs.
#[derive(Debug, Clone, Default)]
struct ByItself(u64);

impl Hasher for ByItself {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.first_chunk().map_or(0, |half| u64::from_le_bytes(*half));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What is remembered of a session.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    verdicts: HashMap<ChainHash, Sent, BuildHasherDefault<ByItself>>,
    last_request: Option<Millis>,
    /// What was hidden, by its own content.
    hidden: HashMap<BlockHash, Vec<hidden::HiddenBlock>>,
    /// The last block of the latest request.
    tip: Option<ChainHash>,
    /// The last block of each request.
    ends: HashMap<ChainHash, Millis, BuildHasherDefault<ByItself>>,
    requests: u32,
    spent: Cost,
    /// What was handed back for ranges that are to be folded, by their last block.
    held: HashMap<ChainHash, Held, BuildHasherDefault<ByItself>>,
    last_fold: Option<LastFold>,
    /// What the provider reported for the last request.
    reported: Option<Tokens>,
    /// Whether the last request changed what the provider's cache held.
    rewrote: bool,
    /// What was asked for about single blocks.
    wishes: Wishes,
}

impl Memory {
    /// For how many milliseconds after a request the end of it is surely in the provider's cache. Later nobody counts on it, so
    /// that older ends need not be remembered.
    pub const ENDS_LAST_MS: i64 = 5 * 60 * 1000;

    /// Remembers a request that was forwarded at `now`. The first verdict for a block stays.
    pub fn sent(&mut self, plan: &Plan, now: Millis) {
        self.ended_with(plan.ends.iter().copied());
        self.record(&plan.chain, plan.decisions(), now);
        for block in plan.shown_again() {
            if let Some(hash) = plan.chain.get(widen(block.0)) {
                self.verdicts.insert(*hash, Sent::WholeAgain);
            }
        }
        self.undos_done(&plan.undone);
        self.remember_hidden(plan);
        self.fold_sent(plan);
        self.rewrote = plan.broken().is_some();
        self.spent.ours += plan.cost.ours;
        self.spent.raw += plan.cost.raw;
    }

    /// Remembers a request that was forwarded at `now` with earlier verdicts alone.
    pub fn resent(&mut self, resent: &Resent, now: Millis) {
        self.record(&resent.chain, &resent.decisions, now);
        self.rewrote = false;
    }

    fn record(&mut self, chain: &[ChainHash], decisions: &[Decision], now: Millis) {
        for (hash, decision) in chain.iter().zip(decisions) {
            let sent = Sent::of(decision);
            // A block that was whole may be hidden later; what was hidden stays as it was said, unless somebody takes it back.
            match (self.verdicts.get(hash), &sent) {
                (None, _)
                | (Some(Sent::Whole | Sent::WholeAgain), Sent::Shortened { .. } | Sent::NotAtAll { .. }) => {
                    self.verdicts.insert(*hash, sent);
                }
                // A pointer whose copy is hidden says something else; a shortened block may go.
                (Some(before), Sent::Shortened { .. } | Sent::NotAtAll { .. }) if *before != sent => {
                    self.verdicts.insert(*hash, sent);
                }
                (Some(_), _) => {}
            }
        }
        self.ends.extend(chain.last().map(|end| (*end, now)));
        self.tip = chain.last().copied();
        self.last_request = Some(now);
        self.requests += 1;
    }

    /// Takes a conversation that is first seen in mid-flight as already sent whole at `now`, so that a live cache is not
    /// broken in ignorance.
    pub fn seen(&mut self, history: &History, now: Millis) {
        for hash in chain(history) {
            self.verdicts.entry(hash).or_insert(Sent::Whole);
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
    pub(crate) fn ends(&self) -> Vec<(ChainHash, Millis)> {
        let mut ends: Vec<_> = self.ends.iter().map(|(end, at)| (*end, *at)).collect();
        ends.sort_unstable_by_key(|(end, _)| *end);
        ends
    }

    /// Takes blocks of which nothing is known as sent whole: who sees the model's answer to them knows that they were sent.
    /// Where nothing at all is known, they were sent at `now`.
    pub fn taken_as_sent(&mut self, chain: &[ChainHash], now: Millis) {
        for hash in chain {
            self.verdicts.entry(*hash).or_insert(Sent::Whole);
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
    pub(crate) fn cache_was_lost(&mut self) {
        let last = self.last_request;
        self.ends.retain(|_, at| Some(*at) == last);
    }

    /// Remembers that requests ended with these blocks, and when they were sent.
    pub fn ended_with(&mut self, ends: impl IntoIterator<Item = (ChainHash, Millis)>) {
        for (end, at) in ends {
            let known = self.ends.entry(end).or_insert(at);
            *known = at.max(*known);
        }
    }

    /// Tells whether a plan hides something that was not hidden in the same way before, or shows again what was hidden: both
    /// must be kept before the request is sent.
    pub fn hides_anew(&self, plan: &Plan) -> bool {
        let shows_again = !plan.shown_again().is_empty();
        shows_again
            || plan.chain.iter().zip(plan.decisions()).any(|(hash, decision)| {
                match (&decision.verdict, self.verdicts.get(hash)) {
                    (Verdict::Keep, _) | (Verdict::Drop, Some(Sent::NotAtAll { .. })) => false,
                    (Verdict::Shorten { text, .. }, Some(Sent::Shortened { text: before, .. })) => {
                        text != before
                    }
                    (Verdict::Shorten { .. } | Verdict::Drop, _) => true,
                }
            })
    }

    /// Tells whether a request that was started after a time ended with this block.
    pub(crate) fn is_end(&self, hash: ChainHash, after: Millis) -> bool {
        self.ends.get(&hash).is_some_and(|at| *at > after)
    }

    /// Returns what the requests so far have cost as input.
    pub fn spent(&self) -> Cost {
        self.spent
    }

    /// Tells whether nothing was ever sent.
    pub fn is_empty(&self) -> bool {
        self.verdicts.is_empty()
    }

    pub(crate) fn verdict(&self, hash: ChainHash) -> Option<&Sent> {
        self.verdicts.get(&hash)
    }

    /// Returns how many requests were sent.
    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// Returns the milliseconds since the last request was sent.
    pub(crate) fn idle(&self, now: Millis) -> Option<i64> {
        self.last_request.map(|last| now.0.saturating_sub(last.0))
    }
}

/// Returns the identity of every block of a history, in order.
pub fn chain(history: &History) -> Vec<ChainHash> {
    let mut chain = Vec::new();
    chain_after(&mut chain, history, 0);
    chain
}

/// Goes on with a history of which the first `known` blocks are those of the chain.
pub(crate) fn chain_after(chain: &mut Vec<ChainHash>, history: &History, known: usize) {
    chain.truncate(known);
    for block in history.blocks().iter().skip(chain.len()) {
        let before = chain.last().copied().unwrap_or(ChainHash([0; 16]));
        chain.push(link(history, block, before));
    }
}

fn link(history: &History, block: &Block, before: ChainHash) -> ChainHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&before.0);
    let role = history.entry_of(block).map_or("", |entry| entry.role.name());
    for field in [
        role.as_bytes(),
        block.kind.name().as_bytes(),
        block.name.of(history.bytes()),
        block.id.of(history.bytes()),
    ] {
        update(&mut hasher, field);
    }
    for part in history.parts_of(block) {
        let raw = part.span.of(history.bytes());
        match (block.kind, part.kind) {
            // Cache markers move from request to request without changing what is said.
            (
                BlockKind::Definition | BlockKind::Media | BlockKind::Unknown,
                PartKind::Json | PartKind::Image | PartKind::Document,
            ) => {
                update_without_marker(&mut hasher, raw);
            }
            _ => update(&mut hasher, raw),
        }
    }
    let mut half = [0; 16];
    half.copy_from_slice(hasher.finalize().as_bytes().split_at(16).0);
    ChainHash(half)
}

/// Adds a field with its length, so that fields cannot run into each other.
fn update(hasher: &mut blake3::Hasher, field: &[u8]) {
    hasher.update(&u64::try_from(field.len()).unwrap_or(u64::MAX).to_le_bytes());
    hasher.update(field);
}

fn update_without_marker(hasher: &mut blake3::Hasher, raw: &[u8]) {
    let Ok(tape) = scan(raw) else { return update(hasher, raw) };
    let Some(value) = tape.root(raw).filter(|value| value.is_object()) else { return update(hasher, raw) };
    for (key, member) in value.members().filter(|(key, _)| !key.is("cache_control")) {
        update(hasher, key.raw());
        update(hasher, member.raw());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
