//! A plan as edits of the request. Takes a history and its plan; gives the spans to replace. Never touches a byte
//! outside the blocks that the plan names.

use std::sync::Arc;

use super::{Plan, TextCache, fold};
use crate::{
    history::{Block, BlockId, BlockKind, Entry, Format, History, Part, PartKind, row_of},
    json::{Span, encode, narrow},
    verdict::Decision,
    wire::{Edit, remove_elements},
};

/// Returns the edits that turn the request into what the plan says. Texts that were sent before are in `made` as JSON.
pub(crate) fn plan_edits(history: &History, plan: &Plan, made: &mut TextCache) -> Vec<Edit> {
    let marker = added_marker(history, plan.decisions(), plan.marker);
    edits_with(history, plan.decisions(), marker, |id, text| made.encoded_text(id, text).to_vec())
}

/// Returns the edits that turned a request into what was sent.
pub(crate) fn edits_as_sent(history: &History, decisions: &[Decision], marker: Option<BlockId>) -> Vec<Edit> {
    let marker = added_marker(history, decisions, marker);
    edits_with(history, decisions, marker, |_, text| encode_text(text))
}

fn added_marker(history: &History, decisions: &[Decision], marker: Option<BlockId>) -> Option<Edit> {
    marker.filter(|id| !is_dropped(id.0, decisions)).and_then(|id| marker_edit(history, id))
}

/// Returns the edits that turn the request into what decisions say, one per block.
pub(crate) fn edits_of(history: &History, decisions: &[Decision]) -> Vec<Edit> {
    edits_with(history, decisions, None, |_, text| encode_text(text))
}

fn edits_with(
    history: &History,
    decisions: &[Decision],
    marker: Option<Edit>,
    mut json: impl FnMut(BlockId, &Arc<str>) -> Vec<u8>,
) -> Vec<Edit> {
    let mut edits: Vec<Edit> = marker.into_iter().collect();
    for decision in decisions {
        if let Some(text) = decision.verdict.own_text() {
            edits.extend(replace_content_with(history, &history[decision.block], text, || {
                json(decision.block, text)
            }));
        }
    }
    match fold::find_fold(decisions) {
        Some(fold) => fold::fold_edits(history, decisions, &fold, edits),
        None => {
            edits.extend(removed_messages(history.messages(), None, decisions));
            edits.extend(removed_blocks(history, history.messages(), decisions));
            edits
        }
    }
}

/// Takes out the blocks that go of messages that stay.
pub(super) fn removed_blocks(history: &History, messages: &[Entry], decisions: &[Decision]) -> Vec<Edit> {
    let mut edits = Vec::new();
    let some_go = |entry: &&Entry| {
        let mut blocks = entry.first_block..entry.first_block + entry.blocks;
        blocks.any(|block| is_dropped(block, decisions)) && !is_gone(entry, decisions)
    };
    for entry in messages.iter().filter(some_go) {
        let elements: Vec<(Span, bool)> = blocks_of(history, entry)
            .map(|(number, block)| (block.span, is_dropped(number, decisions)))
            .collect();
        edits.extend(remove_elements(&elements));
    }
    edits
}

/// The most cache markers that a request may carry (Anthropic).
const MOST_MARKERS: usize = 4;

/// Adds a cache marker to a block, where the format has them, the block can carry one and there are not too many already.
fn marker_edit(history: &History, id: BlockId) -> Option<Edit> {
    let block = history.block(id).filter(|_| history.format() == Format::Anthropic)?;
    let markers = history.blocks().iter().filter(|block| block.marked).count();
    let carries =
        matches!(block.kind, BlockKind::Text | BlockKind::Call | BlockKind::Result | BlockKind::Media);
    let bytes = block.span.bytes_in(history.bytes());
    if block.marked || !carries || markers >= MOST_MARKERS || !bytes.ends_with(b"}") || bytes.len() <= 2 {
        return None;
    }
    let end = narrow(block.span.end() - 1);
    let marker = br#","cache_control":{"type":"ephemeral"}"#.to_vec();
    Some(Edit { span: Span::new(end, end), with: marker })
}

/// Returns how many messages go as a whole.
pub(super) fn entries_gone(messages: &[Entry], decisions: &[Decision]) -> usize {
    messages.iter().filter(|entry| is_gone(entry, decisions)).count()
}

/// Takes out the messages that go as a whole, where something else may precede them.
pub(super) fn removed_messages(
    messages: &[Entry],
    before: Option<Span>,
    decisions: &[Decision],
) -> Vec<Edit> {
    let messages = messages.iter().map(|entry| (entry.span, is_gone(entry, decisions)));
    let elements: Vec<(Span, bool)> = before.map(|span| (span, false)).into_iter().chain(messages).collect();
    remove_elements(&elements)
}

fn blocks_of<'a>(history: &'a History, entry: &'a Entry) -> impl Iterator<Item = (u32, &'a Block)> {
    (entry.first_block..).zip(history.blocks_of(entry))
}

pub(super) fn is_dropped(block: u32, decisions: &[Decision]) -> bool {
    row_of(decisions, BlockId(block)).verdict.is_gone()
}

fn is_gone(entry: &Entry, decisions: &[Decision]) -> bool {
    entry.blocks > 0
        && (entry.first_block..entry.first_block + entry.blocks).all(|block| is_dropped(block, decisions))
}

/// Returns the part that holds a call's arguments, where it holds nothing else: a text, JSON, or JSON in a text.
pub(crate) fn arguments_part<'a>(history: &'a History, block: &Block) -> Option<&'a Part> {
    let mut parts = history.parts_of(block).iter().filter(|part| part.kind != PartKind::Sealed);
    let part = parts.next().filter(|part| part.span == block.body)?;
    let known = match part.kind {
        PartKind::Text | PartKind::JsonText => true,
        // OpenAI may check what it defines for its own tools.
        PartKind::Json => history.format() != Format::Responses,
        PartKind::Image | PartKind::Document | PartKind::Audio | PartKind::Sealed => false,
    };
    (known && parts.next().is_none()).then_some(part)
}

/// Returns a text as JSON.
pub(super) fn encode_text(text: &str) -> Vec<u8> {
    let mut json = Vec::new();
    encode(text, &mut json);
    json
}

/// Puts a text in the place of a block's content, in the shape that the format gives it.
pub(crate) fn replace_content(history: &History, block: &Block, text: &str) -> Option<Edit> {
    replace_content_with(history, block, text, || encode_text(text))
}

/// Puts a text, or its JSON, in the place of a block's content.
fn replace_content_with(
    history: &History,
    block: &Block,
    text: &str,
    json: impl FnOnce() -> Vec<u8>,
) -> Option<Edit> {
    if block.kind == BlockKind::Call {
        let part = arguments_part(history, block)?;
        let with = if part.kind == PartKind::Json { text.as_bytes().to_vec() } else { json() };
        return Some(Edit { span: part.span, with });
    }
    let json = json();
    let parts = history.parts_of(block);
    // A content that is one text stays where it is: only the text is another one.
    if let [part] = parts
        && part.kind == PartKind::Text
    {
        return Some(Edit { span: part.span, with: json });
    }
    let layout = history.format().layout();
    Some(if block.kind == BlockKind::Result {
        Edit { span: block.body, with: (layout.result_body)(text, &json) }
    } else {
        Edit { span: block.span, with: (layout.text_part)(&json) }
    })
}
