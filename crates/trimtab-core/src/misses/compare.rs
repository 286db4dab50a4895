//! Two requests side by side. Takes histories; gives the first thing that the client sent otherwise, and where both set cache markers.
//! Never looks at what was reported.

use super::{ChangedPlace, ClientChange};
use crate::{
    history::{Block, BlockKind, Entry, History, Role},
    identity::chain,
    json::widen,
};

/// Members of a request beside tools, system prompt and messages that a provider's cache depends on.
const PARAMETERS: [&str; 3] = ["tool_choice", "thinking", "reasoning"];

/// Letters shown of each side of a difference.
const LETTERS: usize = 60;

/// Letters shown before the first one that differs.
const LETTERS_BEFORE: usize = 16;

/// Where two requests set cache markers, in positions as providers look back: runs of calls and runs of results count once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarkerPlaces {
    /// Of the request before.
    pub before: Vec<usize>,
    /// Of the request.
    pub now: Vec<usize>,
}

/// Returns the first thing that differs up to where the request before ended; nothing where the request goes on from it, or ends
/// before it differs.
pub fn first_client_change(before: &History, now: &History) -> Option<ClientChange> {
    let (chain_before, chain_now) = (chain(before), chain(now));
    let differs = chain_before.iter().zip(&chain_now).position(|(one, other)| one != other);
    let Some(index) = differs else { return changed_parameter(before, now) };
    let (old, new) = (before.blocks().get(index)?, now.blocks().get(index)?);
    // No parameter touches the head.
    let in_head = old.kind == BlockKind::Definition || role_of(before, old) == Role::System;
    if !in_head && let Some(change) = changed_parameter(before, now) {
        return Some(change);
    }
    let name = |history: &History, block: &Block| history.tool_name(block).map(std::borrow::Cow::into_owned);
    let place = match (old.kind, role_of(before, old)) {
        (BlockKind::Definition, _) => {
            ChangedPlace::Tool(name(now, new).or_else(|| name(before, old)).unwrap_or_default())
        }
        (_, Role::System) => ChangedPlace::System,
        (_, _) => ChangedPlace::Message(message_number(before, old)),
    };
    let (before, now) = difference(&raw_text(before, old), &raw_text(now, new));
    Some(ClientChange { place, before, now })
}

/// Tells whether a client replaced its history by a shorter one, as agents do that compact: another beginning, and less than half of the
/// messages.
pub fn is_replaced_history(before: &History, now: &History) -> bool {
    let first = |history: &History| {
        let entry = history.messages().first()?;
        let last = widen(entry.first_block + entry.blocks).checked_sub(1)?;
        Some((chain(history).get(last).copied(), history.messages().len()))
    };
    match (first(before), first(now)) {
        (Some((one, messages_before)), Some((other, messages_now))) => {
            one != other && messages_now.saturating_mul(2) < messages_before
        }
        (Some(_) | None, _) => false,
    }
}

fn changed_parameter(before: &History, now: &History) -> Option<ClientChange> {
    PARAMETERS.iter().find_map(|key| {
        let member = |history: &History| {
            let raw = history.field(key).unwrap_or_default();
            String::from_utf8_lossy(raw).into_owned()
        };
        let (old, new) = (member(before), member(now));
        let (shown_before, shown_now) = difference(&old, &new);
        let place = ChangedPlace::Parameter((*key).to_owned());
        (old != new).then_some(ClientChange { place, before: shown_before, now: shown_now })
    })
}

fn role_of(history: &History, block: &Block) -> Role {
    history.entry_of(block).map_or(Role::Other, |entry| entry.role)
}

/// Returns the number of a block's message, counted from 1.
fn message_number(history: &History, block: &Block) -> usize {
    let head = history.entries().len() - history.messages().len();
    (widen(block.entry.0) + 1).saturating_sub(head)
}

/// Returns a block as it is written, beginning with what tells one from another.
fn raw_text(history: &History, block: &Block) -> String {
    String::from_utf8_lossy(block.span.bytes_in(history.bytes())).into_owned()
}

/// Returns both texts from shortly before the first letter that differs, cut to a few words.
pub fn difference(before: &str, now: &str) -> (String, String) {
    let same = before.chars().zip(now.chars()).take_while(|(one, other)| one == other).count();
    let from = same.saturating_sub(LETTERS_BEFORE);
    let shown = |text: &str| {
        let mut letters = text.chars().skip(from);
        let mut piece: String = letters.by_ref().take(LETTERS).collect();
        if letters.next().is_some() {
            piece.push('…');
        }
        if from > 0 { format!("…{piece}") } else { piece }
    };
    (shown(before), shown(now))
}

/// Returns where a request sets cache markers, the first to the last, in positions as a provider looks back; `added` is a block after
/// which one was added.
pub fn marker_places(history: &History, added: Option<u32>) -> Vec<usize> {
    let mut places = Vec::new();
    let mut position = 0;
    let mut before: Option<&Block> = None;
    for (number, block) in (0_u32..).zip(history.blocks()) {
        let runs = matches!(block.kind, BlockKind::Call | BlockKind::Result);
        if !runs || before.is_none_or(|before| before.kind != block.kind) {
            position += 1;
        }
        if block.marked || added == Some(number) {
            places.push(position);
        }
        before = Some(block);
    }
    // The provider itself marks the end of a request that asks for that.
    if history.field("cache_control").is_some() && places.last() != Some(&position) {
        places.push(position);
    }
    places
}

/// Tells whether the user spoke between two requests of one history.
pub fn turn_began(history: &History, messages_before: usize, messages_now: usize) -> bool {
    let new = history.messages().get(messages_before..messages_now).unwrap_or_default();
    new.iter().any(|entry| is_said_by_user(history, entry))
}

fn is_said_by_user(history: &History, entry: &Entry) -> bool {
    entry.role == Role::User && history.blocks_of(entry).iter().all(|block| block.kind != BlockKind::Result)
}

/// Tells whether a turn of the user began between two requests, with reasoning in the turn before: some providers leave that out then.
pub fn reasoning_left_out(history: &History, messages_before: usize, messages_now: usize) -> bool {
    if !turn_began(history, messages_before, messages_now) {
        return false;
    }
    let old = history.messages().get(..messages_before).unwrap_or_default();
    let turn = old.iter().rposition(|entry| is_said_by_user(history, entry)).unwrap_or_default();
    let reasons =
        |entry: &Entry| history.blocks_of(entry).iter().any(|block| block.kind == BlockKind::Reasoning);
    old.get(turn..).unwrap_or_default().iter().any(reasons)
}
