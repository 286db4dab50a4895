//! What was asked for about single blocks while a session runs: [`Handle`] names a block, [`Wishes`] holds the handles that are
//! pinned and those whose hiding was taken back. [`Memory`] carries them; plans obey them. Never does I/O: whoever keeps
//! wishes hands them to the memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::Memory;
use crate::{notes::hash_of, recall::handle_of_hash};

/// The name of a block's original, as notes give it: the first six bytes of its BLAKE3 hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub [u8; 6]);

impl Handle {
    /// Reads twelve hexadecimal digits; returns nothing for anything else.
    pub fn parse(word: &str) -> Option<Handle> {
        let is_handle = word.len() == 12 && word.bytes().all(|digit| digit.is_ascii_hexdigit());
        if is_handle { hash_of(word).map(Handle) } else { None }
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut hash = [0; 16];
        for (byte, known) in hash.iter_mut().zip(self.0) {
            *byte = known;
        }
        f.write_str(&handle_of_hash(&hash))
    }
}

/// When a block whose hiding was taken back is sent whole again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoWhen {
    /// When that costs nothing: the provider's cache is cold, or the request differs before the block anyway.
    Free,
    /// With the next request, whatever that costs.
    Now,
}

/// A hiding that was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoWish {
    /// The step at which that was asked for: the block's age counts from here.
    pub step: u32,
    /// When the block is sent whole again; nothing once it was.
    pub waits: Option<UndoWhen>,
}

/// What was asked for about single blocks of a conversation, by handle. A handle stands for every block with that content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    pinned: BTreeSet<Handle>,
    undone: BTreeMap<Handle, UndoWish>,
}

impl Wishes {
    /// Pins a block: it is never shortened, replaced or dropped, and sent whole again if it was.
    pub fn pin(&mut self, handle: Handle) {
        self.pinned.insert(handle);
    }

    /// Takes a pin back. The policy decides again what becomes of the block.
    pub fn unpin(&mut self, handle: Handle) {
        self.pinned.remove(&handle);
    }

    /// Takes back that a block is hidden, at a step of the conversation.
    pub fn undo(&mut self, handle: Handle, undo: UndoWish) {
        self.undone.insert(handle, undo);
    }

    /// Returns the handles that are pinned.
    pub fn pinned_handles(&self) -> impl Iterator<Item = Handle> + '_ {
        self.pinned.iter().copied()
    }

    /// Tells whether a handle is pinned.
    pub fn is_pinned(&self, handle: Handle) -> bool {
        self.pinned.contains(&handle)
    }

    /// Returns the handles whose hiding was taken back.
    pub fn undone_handles(&self) -> impl Iterator<Item = (Handle, UndoWish)> + '_ {
        self.undone.iter().map(|(handle, undo)| (*handle, *undo))
    }

    /// Tells whether nothing was asked for.
    pub fn is_empty(&self) -> bool {
        self.pinned.is_empty() && self.undone.is_empty()
    }
}

impl Memory {
    /// Returns what was asked for about single blocks.
    pub fn wishes(&self) -> &Wishes {
        &self.wishes
    }

    /// Replaces what was asked for about single blocks.
    pub fn set_wishes(&mut self, wishes: Wishes) {
        self.wishes = wishes;
    }

    /// Pins a block from the next plan on.
    pub fn pin(&mut self, handle: Handle) {
        self.wishes.pin(handle);
    }

    /// Takes a pin back from the next plan on.
    pub fn unpin(&mut self, handle: Handle) {
        self.wishes.unpin(handle);
    }

    /// Takes back that a block is hidden, at a step of the conversation.
    pub fn undo(&mut self, handle: Handle, step: u32, when: UndoWhen) {
        self.wishes.undo(handle, UndoWish { step, waits: Some(when) });
    }

    /// Remembers that what waited for these handles was done.
    pub(crate) fn undos_done(&mut self, handles: &[Handle]) {
        for handle in handles {
            if let Some(undo) = self.wishes.undone.get_mut(handle) {
                undo.waits = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_twelve_hexadecimal_digits() {
        assert_eq!(
            Handle::parse("6ca415216d72").map(|handle| handle.to_string()).as_deref(),
            Some("6ca415216d72")
        );
        assert_eq!(Handle::parse("6CA415216D72"), Handle::parse("6ca415216d72"));
        for wrong in ["", "6ca415216d7", "6ca415216d722", "6ca415216d7g", "+ca415216d72", "ééé415216d72"] {
            assert_eq!(Handle::parse(wrong), None, "{wrong}");
        }
    }
}
