//! What was hidden, by its own content. Takes plans that were sent; gives what a block was sent as whose conversation was
//! rewritten before it, so that what was hidden stays hidden. Never speaks of a block that the model has not seen.

use std::collections::HashSet;

use super::{Memory, Sent};
use crate::{
    history::{History, Role},
    identity::{BlockHash, ChainHash, block_hash},
    verdict::{Decision, Verdict},
};

/// A block that was hidden: where it stood, and what was sent instead.
#[derive(Debug, Clone)]
pub(crate) struct HiddenBlock {
    pub(crate) place: ChainHash,
    pub(crate) sent: Sent,
}

/// Returns the identities of the blocks that a plan hides otherwise than they were hidden before, by themselves.
pub(crate) fn hidden_anew(
    history: &History,
    decisions: &[Decision],
    memory: &Memory,
    sent: &[Option<&Sent>],
) -> Vec<(u32, BlockHash)> {
    let none_known = memory.hidden.is_empty();
    let blocks = decisions.iter().zip(sent).zip(history.blocks());
    let anew = blocks.filter(|((decision, before), _)| {
        let same = match (&decision.verdict, before) {
            (Verdict::Keep, _) => true,
            (Verdict::Drop, Some(Sent::NotAtAll { .. })) => !none_known,
            (Verdict::Shorten { text, .. }, Some(Sent::Shortened { text: before, .. })) => {
                !none_known && text == before
            }
            (Verdict::Drop | Verdict::Shorten { .. }, _) => false,
        };
        // A summary stands for the beginning of one conversation and for no other.
        !same && !decision.is_folded()
    });
    anew.map(|((decision, _), block)| (decision.block.0, block_hash(history, block))).collect()
}

impl Memory {
    /// Returns, for each block that was not sent in its place before, what it was sent as in a conversation that the client has
    /// rewritten since; nothing at all where the conversation only went on.
    pub(crate) fn hidden_elsewhere<'a>(
        &'a self,
        history: &History,
        chain: &[ChainHash],
        sent: &[Option<&Sent>],
    ) -> Vec<Option<&'a Sent>> {
        let goes_on = self.tip.is_none_or(|tip| chain.iter().rev().any(|hash| *hash == tip));
        if goes_on || self.hidden.is_empty() {
            return Vec::new();
        }
        let places: HashSet<ChainHash> = chain.iter().copied().collect();
        let mut used: HashSet<ChainHash> = HashSet::new();
        // What came behind the model's last words is new, however much it looks like something old.
        let answered = history.entries().iter().rfind(|entry| entry.role == Role::Assistant);
        let seen = answered.map_or(0, |entry| history.blocks_before_end(entry));
        let mut found = Vec::with_capacity(history.blocks().len());
        for (number, (block, before)) in history.blocks().iter().zip(sent).enumerate() {
            if before.is_some() || number >= seen {
                found.push(None);
                continue;
            }
            let known = self.hidden.get(&block_hash(history, block)).map(Vec::as_slice).unwrap_or_default();
            let free = |known: &&HiddenBlock| !places.contains(&known.place) && !used.contains(&known.place);
            let hidden = known.iter().find(free);
            used.extend(hidden.map(|hidden| hidden.place));
            found.push(hidden.map(|hidden| &hidden.sent));
        }
        found
    }
}
