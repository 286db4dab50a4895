//! Entries, blocks and parts under construction. Takes what a wire format recognizes, in order; gives the
//! three flat lists of a [`History`](super::History), with steps counted and calls paired with results.
//! Never decides what something is: that is the format's business.

use std::collections::HashMap;

use super::{Block, BlockId, BlockKind, Entry, EntryId, Part, PartKind, Role};
use crate::json::{Span, Value, narrow, widen};

/// How many blocks back a result's call is looked for one by one, before an index of all calls is made.
/// Calls stand in the message before their results; the number covers 32 parallel calls with reasoning.
const NEAR_BLOCKS: usize = 100;

/// The three lists.
#[derive(Debug, Clone, Default)]
pub(crate) struct HistoryOutline {
    pub(crate) entries: Vec<Entry>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) parts: Vec<Part>,
}

impl HistoryOutline {
    /// Starts an entry; the blocks that follow are its own.
    pub(crate) fn add_entry(&mut self, role: Role, span: Span) {
        let before = self.entries.last();
        let step = before.map_or(0, |entry| entry.step);
        let starts_step = role == Role::Assistant && before.is_none_or(|entry| entry.role != Role::Assistant);
        self.entries.push(Entry {
            role,
            span,
            step: step + u32::from(starts_step),
            first_block: narrow(self.blocks.len()),
            blocks: 0,
        });
    }

    /// Adds a block to the last entry; the parts that follow are its own.
    pub(crate) fn add_block(&mut self, kind: BlockKind, span: Span) -> &mut Block {
        let entry = EntryId(narrow(self.entries.len().saturating_sub(1)));
        if let Some(entry) = self.entries.last_mut() {
            entry.blocks += 1;
        }
        let block = Block {
            kind,
            entry,
            span,
            partner: None,
            failed: false,
            by_server: false,
            marked: false,
            sealed: false,
            body: Span::default(),
            name: Span::default(),
            id: Span::default(),
            first_part: narrow(self.parts.len()),
            parts: 0,
        };
        self.blocks.push(block);
        let last = self.blocks.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "the block was pushed just now")]
        &mut self.blocks[last]
    }

    /// Adds a part to the last block, where the value is there.
    pub(crate) fn add_part(&mut self, kind: PartKind, value: Option<Value<'_>>) {
        let Some(value) = value.filter(|value| !value.is_null()) else { return };
        self.parts.push(Part { kind, span: value.span() });
        if let Some(block) = self.blocks.last_mut() {
            block.parts += 1;
            block.sealed |= kind == PartKind::Sealed;
        }
    }

    /// Pairs the calls and results of the blocks from `first` on with each other and with earlier ones.
    pub(crate) fn pair_calls(&mut self, text: &[u8], first: usize) {
        let mut calls: Option<HashMap<&[u8], usize>> = None;
        for index in first..self.blocks.len() {
            let Some(result) = self.blocks.get(index).filter(|block| block.kind == BlockKind::Result) else {
                continue;
            };
            let found = if result.id.is_empty() {
                self.unnamed_call(text, index)
            } else {
                self.near_call(text, index).or_else(|| {
                    let calls = calls.get_or_insert_with(|| all_calls(text, &self.blocks));
                    calls.get(result.id.bytes_in(text)).copied().filter(|call| *call < index)
                })
            };
            let Some(call) = found else { continue };
            self.link_pair(call, index);
        }
    }

    fn link_pair(&mut self, call: usize, result: usize) {
        if let Some(block) = self.blocks.get_mut(call) {
            block.partner = Some(BlockId(narrow(result)));
        }
        if let Some(block) = self.blocks.get_mut(result) {
            block.partner = Some(BlockId(narrow(call)));
        }
    }

    fn near_call(&self, text: &[u8], result: usize) -> Option<usize> {
        let id = self.blocks.get(result)?.id.bytes_in(text);
        let from = result.saturating_sub(NEAR_BLOCKS);
        let is_call = |block: &Block| block.kind == BlockKind::Call && block.id.bytes_in(text) == id;
        self.blocks.get(from..result)?.iter().rposition(is_call).map(|found| from + found)
    }

    /// Finds the call of a result without id: the first unanswered one of that name in the entry before.
    fn unnamed_call(&self, text: &[u8], result: usize) -> Option<usize> {
        let block = self.blocks.get(result)?;
        let before = self.entries.get(..widen(block.entry.0))?.iter().rev();
        let asked = before.clone().find(|entry| entry.role == Role::Assistant)?;
        let range = widen(asked.first_block)..widen(asked.first_block) + widen(asked.blocks);
        let open = |index: &usize| {
            self.blocks.get(*index).is_some_and(|call| {
                call.kind == BlockKind::Call
                    && call.partner.is_none()
                    && (block.name.is_empty() || call.name.bytes_in(text) == block.name.bytes_in(text))
            })
        };
        range.into_iter().find(open)
    }
}

fn all_calls<'a>(text: &'a [u8], blocks: &[Block]) -> HashMap<&'a [u8], usize> {
    let calls = blocks.iter().enumerate().filter(|(_, block)| block.kind == BlockKind::Call);
    calls.map(|(index, block)| (block.id.bytes_in(text), index)).collect()
}
