//! Brings originals back. Takes a history and a handle; gives the text that the handle names. Never looks anywhere but in
//! the history: what a store keeps is the store's to find.

use std::borrow::Cow;

use crate::history::{Block, History, PartKind};

/// Returns the name by which a block's original is brought back: of its text, or of its JSON where it is not text alone.
pub fn block_handle(history: &History, block: &Block) -> String {
    handle_of(&block_original(history, block))
}

/// Returns the name by which `recall` brings an original back: the first 12 hex digits of its BLAKE3.
pub(crate) fn handle_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().chars().take(12).collect()
}

/// Returns the same handle from the beginning of the hash.
pub(crate) fn handle_of_hash(hash: &[u8; 16]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |half: u8| DIGITS.get(usize::from(half & 15)).copied().unwrap_or('0');
    let mut handle = String::with_capacity(12);
    for byte in hash.iter().take(6) {
        handle.push(digit(byte >> 4));
        handle.push(digit(*byte));
    }
    handle
}

/// Finds the block that a handle names and returns its original: decoded text, or JSON where it is not text alone.
///
/// ```
/// let request = br#"{"messages":[{"role":"user","content":"Hi"}]}"#.to_vec();
/// let history = trimtab_core::parse(request)?;
/// let handle = trimtab_core::block_handle(&history, &history.blocks()[0]);
/// assert_eq!(trimtab_core::recall(&history, &handle).as_deref(), Some(&b"Hi"[..]));
/// # Ok::<(), trimtab_core::WireError>(())
/// ```
pub fn recall<'a>(history: &'a History, handle: &str) -> Option<Cow<'a, [u8]>> {
    let blocks = history.blocks().iter();
    blocks.map(|block| block_original(history, block)).find(|original| handle_of(original) == handle)
}

/// Returns what `recall` gives for a block: decoded text, or JSON where it is not text alone.
pub fn block_original<'a>(history: &'a History, block: &Block) -> Cow<'a, [u8]> {
    let parts = history.parts_of(block);
    if parts.is_empty() || parts.iter().any(|part| part.kind != PartKind::Text) {
        return Cow::Borrowed(block.span.bytes_in(history.bytes()));
    }
    match history.block_text(block) {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}
