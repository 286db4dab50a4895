//! What was made for the blocks of earlier requests and need not be made again: shorter texts, what they count, their JSON,
//! handles. Takes what was made; gives the same back. A cache and nothing else: without it every byte is the same.

use std::{collections::HashMap, sync::Arc};

use super::{contradictions::LineFacts, edits::encode_text, seen_lines::SeenLines};
use crate::{
    count::Counter,
    files::FileTimeline,
    history::{BlockId, Blocks},
    json::widen,
    units::Tokens,
};

/// Texts made for blocks before, by what they were made with: making them again would give the same.
#[derive(Debug, Default)]
pub(crate) struct TextCache {
    texts: Blocks<Vec<(u64, ShorterText)>>,
    /// What texts counted that were sent again.
    repeated: Blocks<Option<(Arc<str>, Counter, Tokens)>>,
    /// The handles of blocks that are not text alone: those are hashed as a whole.
    handles: HashMap<BlockId, String>,
    /// Texts that were sent, as JSON.
    sent: Blocks<Option<EncodedText>>,
    /// The names in what blocks say, by hash.
    names: Blocks<Option<Box<[u64]>>>,
    /// The lines of results.
    pub(super) lines: SeenLines,
    /// The files of the history; made where something asks for them.
    pub(super) files: Option<FileTimeline>,
    /// What views tell about lines of files: of each whole, or of what is left where it is sent in part.
    pub(super) told: HashMap<(BlockId, bool), LineFacts>,
}

/// A shorter text and what it counts; nothing where there is none.
pub(super) type ShorterText = Option<(Arc<str>, Tokens)>;

/// A text and its JSON.
type EncodedText = (Arc<str>, Box<[u8]>);

impl TextCache {
    /// Forgets the texts of all but the first blocks.
    pub(crate) fn truncate(&mut self, known: usize) {
        self.texts.truncate(known);
        self.repeated.truncate(known);
        self.handles.retain(|id, _| widen(id.0) < known);
        self.sent.truncate(known);
        self.names.truncate(known);
        self.lines.truncate(known);
        self.told.retain(|(id, _), _| widen(id.0) < known);
        self.files = None;
    }

    /// Returns the handle of a block; the same block is hashed once.
    pub(super) fn handle(&mut self, id: BlockId, hash: impl FnOnce() -> String) -> String {
        self.handles.entry(id).or_insert_with(hash).clone()
    }

    /// Returns a text that a block is sent as, as JSON; the same text is written once.
    pub(super) fn encoded_text(&mut self, id: BlockId, text: &Arc<str>) -> &[u8] {
        let slot = self.sent.grown_to(id);
        if slot.as_ref().is_none_or(|(known, _)| !Arc::ptr_eq(known, text)) {
            *slot = Some((Arc::clone(text), encode_text(text).into()));
        }
        slot.as_ref().map_or(&[], |(_, json)| json)
    }

    /// Returns the names in what a block says; the same block is read once.
    pub(super) fn names(&mut self, id: BlockId, read: impl FnOnce() -> Box<[u64]>) -> &[u64] {
        self.names.grown_to(id).get_or_insert_with(read)
    }

    pub(super) fn repeated_tokens(
        &mut self,
        id: BlockId,
        text: &Arc<str>,
        counter: Counter,
    ) -> Option<Tokens> {
        let (known, by, tokens) = self.repeated.grown_to(id).as_ref()?;
        (Arc::ptr_eq(known, text) && *by == counter).then_some(*tokens)
    }

    pub(super) fn remember_repeated(
        &mut self,
        id: BlockId,
        text: &Arc<str>,
        counter: Counter,
        tokens: Tokens,
    ) {
        *self.repeated.grown_to(id) = Some((Arc::clone(text), counter, tokens));
    }

    pub(super) fn get(&mut self, id: BlockId, key: u64) -> Option<&ShorterText> {
        self.texts.grown_to(id).iter().find(|(known, _)| *known == key).map(|(_, made)| made)
    }

    pub(super) fn put(&mut self, id: BlockId, key: u64, made: &ShorterText) {
        self.texts.grown_to(id).push((key, made.clone()));
    }
}
