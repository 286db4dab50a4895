//! Reads a request that goes on where an earlier one ended. Takes the earlier history and the new bytes; gives
//! the history of the new request, having looked only at what is new. Never gives anything else than
//! [`parse_as`](super::parse_as) would: when in doubt it reads everything.

use std::sync::Arc;

use super::{WireError, check_utf8, interpret, parse_as, read_entry};
use crate::{
    history::{Entry, History, HistoryOutline},
    json::{Tape, narrow, scan_after, widen},
};

/// How many bytes are compared at once when looking for the common beginning of two requests.
const COMPARED_AT_ONCE: usize = 4096;

/// Reads a request, reusing what is known of an earlier one that began with the same bytes.
///
/// # Errors
/// As [`parse_as`](super::parse_as) in the earlier request's format.
pub fn parse_after(earlier: &History, request: impl Into<Arc<Vec<u8>>>) -> Result<History, WireError> {
    let request = request.into();
    let common = common_prefix(earlier.bytes(), &request);
    let known = earlier.messages().partition_point(|entry| entry.span.end() <= common);
    let last_known = known.checked_sub(1).and_then(|index| earlier.messages().get(index)).copied();
    let (Some(list), Some(last_known)) = (earlier.list, last_known) else {
        return parse_as(request, earlier.format());
    };
    let from = last_known.span.end();
    check_utf8(&request, from)?;
    let tape = scan_rest(earlier, &request, list, from)?;
    if !same_frame(earlier, &tape, &request, list) {
        return interpret(request, tape, earlier.format());
    }
    let outline = continue_outline(earlier, &tape, &request, list, known);
    let head_entries = earlier.head_entries;
    let reused_blocks = last_known.first_block + last_known.blocks;
    Ok(History {
        bytes: request,
        format: earlier.format(),
        tape,
        list: Some(list),
        outline,
        head_entries,
        reused_blocks,
    })
}

fn scan_rest(earlier: &History, request: &[u8], list: u32, from: usize) -> Result<Tape, WireError> {
    let open: &[u32] = if list == 0 { &[0] } else { &[0, list] };
    let kept = earlier.tape.nodes_before(from);
    Ok(scan_after(request, &earlier.tape, open, kept, from)?)
}

/// Tells whether all that follows the list of messages is the same: tools and system may stand there.
fn same_frame(earlier: &History, tape: &Tape, request: &[u8], list: u32) -> bool {
    let old = earlier.message_list().map(|list| earlier.bytes().get(list.span().end()..));
    let new = tape.value(request, list).map(|list| request.get(list.span().end()..));
    old == new
}

fn continue_outline(
    earlier: &History,
    tape: &Tape,
    request: &[u8],
    list: u32,
    known: usize,
) -> HistoryOutline {
    let entries = widen(earlier.head_entries) + known;
    let mut outline = leading(&earlier.outline, entries);
    shift_head(earlier, &mut outline, request.len());
    let first_new = outline.blocks.len();
    if let Some(list) = tape.value(request, list) {
        let layout = earlier.format().layout();
        list.items().skip(known).for_each(|message| read_entry(layout, message, &mut outline));
    }
    outline.pair_calls(request, first_new);
    outline
}

/// Copies the first entries with their blocks and parts; forgets partners that are not among them.
fn leading(outline: &HistoryOutline, entries: usize) -> HistoryOutline {
    let kept: &[Entry] = outline.entries.get(..entries).unwrap_or(&outline.entries);
    let blocks = kept.last().map_or(0, |entry| widen(entry.first_block + entry.blocks));
    let mut blocks = outline.blocks.get(..blocks).unwrap_or_default().to_vec();
    let parts = blocks.last().map_or(0, |block| widen(block.first_part + block.parts));
    let count = narrow(blocks.len());
    for block in &mut blocks {
        block.partner = block.partner.filter(|partner| partner.0 < count);
    }
    HistoryOutline {
        entries: kept.to_vec(),
        blocks,
        parts: outline.parts.get(..parts).unwrap_or_default().to_vec(),
    }
}

/// Moves the spans of tools and system if these follow the list of messages.
fn shift_head(earlier: &History, outline: &mut HistoryOutline, new_length: usize) {
    let Some(list) = earlier.message_list() else { return };
    let behind = list.span().end();
    let by = i64::from(narrow(new_length)) - i64::from(narrow(earlier.bytes().len()));
    for entry in outline.entries.iter_mut().take(widen(earlier.head_entries)) {
        if entry.span.start() < behind {
            continue;
        }
        entry.span = entry.span.shift_by(by);
        let blocks = widen(entry.first_block)..widen(entry.first_block + entry.blocks);
        for block in outline.blocks.get_mut(blocks).unwrap_or_default() {
            block.span = block.span.shift_by(by);
            if !block.name.is_empty() {
                block.name = block.name.shift_by(by);
            }
            let parts = widen(block.first_part)..widen(block.first_part + block.parts);
            for part in outline.parts.get_mut(parts).unwrap_or_default() {
                part.span = part.span.shift_by(by);
            }
        }
    }
}

fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let chunks = one.chunks(COMPARED_AT_ONCE).zip(other.chunks(COMPARED_AT_ONCE));
    let same = chunks.take_while(|(one, other)| one == other).count() * COMPARED_AT_ONCE;
    let same = same.min(one.len()).min(other.len());
    let rest = one.iter().skip(same).zip(other.iter().skip(same));
    same + rest.take_while(|(one, other)| one == other).count()
}
