//! What was sent before, by identity. Takes the plan of a request that was forwarded; gives the verdicts to repeat. Never
//! holds a conversation: a block is known by the hash of everything up to and including it.

use std::collections::HashMap;

use crate::{
    history::{Block, BlockKind, History, PartKind},
    json::scan,
    plan::{Decision, Plan, Reason, Verdict},
    recording::Millis,
    resend::Resent,
};

/// The identity of a block: the hash of the block before it and of its own content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChainHash(pub [u8; 16]);

/// What a block was sent as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sent {
    Whole,
    Shortened { text: String, reason: Reason },
    NotAtAll { reason: Reason },
}

/// What is remembered of a session.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    verdicts: HashMap<ChainHash, Sent>,
    last_request: Option<Millis>,
    requests: u32,
}

impl Memory {
    /// Remembers a request that was forwarded at `now`. The first verdict for a block stays.
    pub fn sent(&mut self, history: &History, plan: &Plan, now: Millis) {
        self.record(history, plan.decisions(), now);
    }

    /// Remembers a request that was forwarded at `now` with earlier verdicts alone.
    pub fn resent(&mut self, resent: &Resent, now: Millis) {
        self.record(&resent.history, &resent.decisions, now);
    }

    fn record(&mut self, history: &History, decisions: &[Decision], now: Millis) {
        for (hash, decision) in chain(history).into_iter().zip(decisions) {
            let reason = decision.reason.clone();
            let sent = match (&decision.verdict, reason) {
                (Verdict::Shorten { text, .. }, Some(reason)) => {
                    Sent::Shortened { text: text.clone(), reason }
                }
                (Verdict::Drop, Some(reason)) => Sent::NotAtAll { reason },
                (Verdict::Keep | Verdict::Shorten { .. } | Verdict::Drop, _) => Sent::Whole,
            };
            // A block that was whole may be hidden later; what was hidden stays as it was said.
            match self.verdicts.get(&hash) {
                None | Some(Sent::Whole) => drop(self.verdicts.insert(hash, sent)),
                Some(Sent::Shortened { .. } | Sent::NotAtAll { .. }) => {}
            }
        }
        self.last_request = Some(now);
        self.requests += 1;
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
    let mut before = ChainHash([0; 16]);
    let blocks = history.blocks().iter();
    blocks
        .map(|block| {
            before = link(history, block, before);
            before
        })
        .collect()
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
