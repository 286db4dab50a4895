//! Brings originals back. Takes a history and a handle; gives the text that the handle names. Never looks anywhere but in
//! the history: what a store keeps is the store's to find.

use std::borrow::Cow;

use crate::{
    history::{Block, History, PartKind},
    render::handle_of,
};

/// Returns the name by which a block's original is brought back: of its text, or of its JSON where it is not text alone.
pub fn block_handle(history: &History, block: &Block) -> String {
    handle_of(&block_original(history, block))
}

/// Finds the block that a handle names and returns its original: decoded text, or JSON where it is not text alone.
///
/// ```
/// let request = br#"{"messages":[{"role":"user","content":"Hi"}]}"#.to_vec();
/// let history = trimtab::parse(request)?;
/// let handle = trimtab::block_handle(&history, &history.blocks()[0]);
/// assert_eq!(trimtab::recall(&history, &handle).as_deref(), Some(&b"Hi"[..]));
/// # Ok::<(), trimtab::WireError>(())
/// ```
pub fn recall<'a>(history: &'a History, handle: &str) -> Option<Cow<'a, [u8]>> {
    let blocks = history.blocks().iter();
    blocks.map(|block| block_original(history, block)).find(|original| handle_of(original) == handle)
}

/// Returns what `recall` gives for a block: decoded text, or JSON where it is not text alone.
pub fn block_original<'a>(history: &'a History, block: &Block) -> Cow<'a, [u8]> {
    let parts = history.parts_of(block);
    if parts.is_empty() || parts.iter().any(|part| part.kind != PartKind::Text) {
        return Cow::Borrowed(block.span.of(history.bytes()));
    }
    match history.block_text(block) {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}
