//! Who a block is. [`ChainHash`] names a block by everything up to and including it, so that equal conversations have equal chains;
//! [`BlockHash`] names it by its own content, wherever it is. Memory, plans and stores know blocks by these and hold no text.

use std::hash::{Hash, Hasher};

use crate::{
    history::{Block, BlockKind, History, PartKind, Role},
    json::scan,
};

/// The identity of a block: the hash of the block before it and of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChainHash(pub [u8; 16]);

impl Hash for ChainHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

/// The identity of a block by itself, whatever precedes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockHash(pub [u8; 16]);

impl History {
    /// Returns the identities of what the model said, by themselves and in order.
    pub fn said_by_model(&self, from_block: usize) -> Vec<BlockHash> {
        let said = |block: &&Block| {
            matches!(block.kind, BlockKind::Text | BlockKind::Call)
                && self.entry_of(block).is_some_and(|entry| entry.role == Role::Assistant)
        };
        self.blocks().iter().skip(from_block).filter(said).map(|block| block_hash(self, block)).collect()
    }
}

/// Returns the identity of a block by itself.
pub(crate) fn block_hash(history: &History, block: &Block) -> BlockHash {
    BlockHash(link_block(history, block, ChainHash([0; 16])).0)
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
        chain.push(link_block(history, block, before));
    }
}

pub(crate) fn link_block(history: &History, block: &Block, before: ChainHash) -> ChainHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&before.0);
    let role = history.entry_of(block).map_or("", |entry| entry.role.name());
    for field in [
        role.as_bytes(),
        block.kind.name().as_bytes(),
        block.name.bytes_in(history.bytes()),
        block.id.bytes_in(history.bytes()),
    ] {
        hash_field(&mut hasher, field);
    }
    for part in history.parts_of(block) {
        let raw = part.span.bytes_in(history.bytes());
        match (block.kind, part.kind) {
            // Cache markers move from request to request without changing what is said.
            (
                BlockKind::Definition | BlockKind::Media | BlockKind::Unknown,
                PartKind::Json | PartKind::Image | PartKind::Document,
            ) => {
                update_without_marker(&mut hasher, raw);
            }
            _ => hash_field(&mut hasher, raw),
        }
    }
    let mut half = [0; 16];
    half.copy_from_slice(hasher.finalize().as_bytes().split_at(16).0);
    ChainHash(half)
}

/// Adds a field with its length, so that fields cannot run into each other.
fn hash_field(hasher: &mut blake3::Hasher, field: &[u8]) {
    hasher.update(&u64::try_from(field.len()).unwrap_or(u64::MAX).to_le_bytes());
    hasher.update(field);
}

fn update_without_marker(hasher: &mut blake3::Hasher, raw: &[u8]) {
    let Ok(tape) = scan(raw) else { return hash_field(hasher, raw) };
    let Some(value) = tape.root(raw).filter(|value| value.is_object()) else {
        return hash_field(hasher, raw);
    };
    for (key, member) in value.members().filter(|(key, _)| !key.is("cache_control")) {
        hash_field(hasher, key.raw());
        hash_field(hasher, member.raw());
    }
}
