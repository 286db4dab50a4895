//! Cline's handling of a full window. Takes a track and a window; gives views in which, once the last request came near the
//! window, all but the latest copy of every file are a notice, and, where that saves too little, the oldest messages are gone.
//! Never touches the first two messages.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use trimtab_core::{
    BlockId, BlockKind, Tokens,
    facts::{Subject, ToolKind},
};

use super::{
    PeerCase, Rival, RivalRole,
    messages::{ChatMessage, ChatSpeaker, carried_messages, messages_of},
    walk::{PeerWalk, text_of},
};
use crate::replay::{ShownBlock, Track, Views};

/// Messages at the beginning that are never touched: the task and the first answer.
const PINNED_MESSAGES: usize = 2;
/// The share of characters, in percent, that notices must save for no message to be deleted.
const LEAST_SAVED_PERCENT: usize = 30;
const NOTICE: &str = "[[NOTE] This file read has been removed to save space in the context window. Refer to the latest file read for the most up to date version of this file.]";

pub(super) const RIVAL: Rival = Rival {
    name: "peer:cline-dup-read",
    about: "Near the end of the window replaces all but the latest copy of every file, then deletes the oldest messages.",
    knob: (
        "tokens of the window; 0: it replaces copies at every request and deletes nothing",
        &[200_000.0, 128_000.0, 64_000.0, 0.0],
    ),
    role: RivalRole::Peer,
    views: replace_rereads,
};

/// A copy of a file: a whole block, or a part of its text.
#[derive(Debug, Clone)]
struct FileCopy {
    block: BlockId,
    message: usize,
    inside: Option<Range<usize>>,
}

fn replace_rereads(case: &PeerCase<'_>) -> Views {
    let track = case.track;
    let most = most_used(Tokens(1).scale(case.knob));
    let messages = messages_of(track);
    let mut walk = PeerWalk::new(track);
    // By name, so that files come in the same order every time.
    let mut copies: BTreeMap<String, Vec<FileCopy>> = BTreeMap::new();
    let mut replaced: HashMap<BlockId, Vec<Range<usize>>> = HashMap::new();
    let (mut known, mut start, mut used) = (0, PINNED_MESSAGES, Tokens::ZERO);
    while walk.next().is_some() {
        let now = carried_messages(&messages, walk.block_count());
        let new = messages.iter().enumerate().take(now).skip(known);
        for (index, message) in new {
            if message.speaker == ChatSpeaker::Model {
                used += message.blocks().map(|block| track.tokens(block)).sum();
            } else if index >= PINNED_MESSAGES {
                note_copies(track, index, message, &mut copies);
            }
        }
        known = now;
        let full = most.is_some_and(|most| used >= most);
        if full || most.is_none() {
            let before = if full { characters_shown(&walk, &messages, start, now) } else { 0 };
            let saved = replace_copies(&mut walk, &mut copies, &mut replaced, start);
            if full && saved * 100 < before * LEAST_SAVED_PERCENT {
                let far_over = most.is_some_and(|most| used.scale(0.5) > most);
                start = delete_oldest(&mut walk, messages.get(..now).unwrap_or_default(), start, far_over);
            }
        }
        used = walk.total_tokens();
    }
    walk.into_views()
}

/// Returns the tokens of a request from which on the window counts as full; nothing where every request does.
fn most_used(window: Tokens) -> Option<Tokens> {
    let reserve = match window.0 {
        0 => return None,
        64_000 => 27_000,
        128_000 => 30_000,
        200_000 => 40_000,
        _ => return Some((window - Tokens(40_000)).max(window.scale(0.8))),
    };
    Some(window - Tokens(reserve))
}

/// Finds the copies of files in a message: the result of a read, or what tags hold.
fn note_copies(
    track: &Track<'_>,
    index: usize,
    message: &ChatMessage,
    copies: &mut BTreeMap<String, Vec<FileCopy>>,
) {
    for block in message.blocks() {
        let Some(fact) = track.facts.row(block) else { continue };
        let text = text_of(track, block);
        let tagged = ["final_file_content", "file_content"].map(|tag| in_tags(&text, tag));
        let mut found: Vec<(String, Option<Range<usize>>)> =
            tagged.into_iter().flatten().map(|(path, inside)| (path, Some(inside))).collect();
        let read = fact.acts_as == BlockKind::Result && fact.tool() == Some(ToolKind::Read);
        if let (true, true, Subject::File { path, .. }) = (found.is_empty(), read, fact.subject()) {
            found.push((path.to_string(), None));
        }
        // A result may stand in the block after its header.
        let next = BlockId(block.0 + 1);
        let only_header = result_header(&text).is_some_and(|header| header.len() == text.trim_end().len());
        let block = if only_header && next.0 < message.blocks.end { next } else { block };
        for (path, inside) in found {
            let key = track.facts.file_key(&path).into_owned();
            copies.entry(key).or_default().push(FileCopy { block, message: index, inside });
        }
    }
}

/// Finds `<tag path="…">…</tag>` in a text: the path and where the content stands.
fn in_tags(text: &str, tag: &str) -> Vec<(String, Range<usize>)> {
    let (open, close) = (format!("<{tag} path=\""), format!("</{tag}>"));
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(&open)) {
        let path_start = from + at + open.len();
        let Some(path) = text.get(path_start..).and_then(|rest| rest.split_once("\">")) else { break };
        let start = path_start + path.0.len() + 2;
        let Some(length) = path.1.find(&close) else { break };
        found.push((path.0.to_owned(), start..start + length));
        from = start + length;
    }
    found
}

/// Replaces all but the latest copy of every file; returns how many characters that saves.
fn replace_copies(
    walk: &mut PeerWalk<'_>,
    copies: &mut BTreeMap<String, Vec<FileCopy>>,
    replaced: &mut HashMap<BlockId, Vec<Range<usize>>>,
    start: usize,
) -> usize {
    let mut saved = 0;
    for of_file in copies.values_mut() {
        let latest = of_file.len().saturating_sub(1);
        for copy in of_file.drain(..latest).filter(|copy| copy.message >= start) {
            let before = shown_characters(walk, copy.block);
            let text = text_of(walk.track, copy.block);
            let shorter = match copy.inside {
                None => match result_header(&text) {
                    Some(header) => format!("{header}\n{NOTICE}"),
                    None => NOTICE.to_owned(),
                },
                Some(inside) => {
                    let parts = replaced.entry(copy.block).or_default();
                    parts.push(inside);
                    parts.sort_by_key(|part| part.start);
                    with_notices(&text, parts)
                }
            };
            walk.show_text(copy.block, shorter);
            saved += before.saturating_sub(shown_characters(walk, copy.block));
        }
    }
    saved
}

/// Returns the line with which Cline heads a result.
fn result_header(text: &str) -> Option<&str> {
    let first = text.lines().next()?;
    (first.starts_with('[') && first.ends_with("Result:")).then_some(first)
}

fn with_notices(text: &str, parts: &[Range<usize>]) -> String {
    let mut whole = String::new();
    let mut from = 0;
    for part in parts {
        whole.push_str(text.get(from..part.start).unwrap_or_default());
        whole.push_str(NOTICE);
        from = part.end;
    }
    whole + text.get(from..).unwrap_or_default()
}

/// Counts the characters of the pinned messages and of those that are not deleted.
fn characters_shown(walk: &PeerWalk<'_>, messages: &[ChatMessage], start: usize, now: usize) -> usize {
    let pinned = 0..PINNED_MESSAGES.min(now);
    let shown = pinned.chain(start..now).filter_map(|index| messages.get(index));
    shown.flat_map(ChatMessage::blocks).map(|block| shown_characters(walk, block)).sum()
}

fn shown_characters(walk: &PeerWalk<'_>, block: BlockId) -> usize {
    match walk.shown_block(block) {
        ShownBlock::Whole => text_of(walk.track, block).chars().count(),
        ShownBlock::Text { text, .. } => text.chars().count(),
        ShownBlock::Gone => 0,
    }
}

/// Deletes a half of the messages that are left, or three quarters where the request is far over; returns where the rest begins.
fn delete_oldest(walk: &mut PeerWalk<'_>, sent: &[ChatMessage], start: usize, far_over: bool) -> usize {
    let rest = sent.len().saturating_sub(start);
    let count = if far_over { rest * 3 / 4 / 2 * 2 } else { rest / 4 * 2 };
    // What is left begins with a message that is not the model's, so what is deleted ends with one that is.
    let ends_well = |end: &usize| {
        end.checked_sub(1)
            .and_then(|last| sent.get(last))
            .is_some_and(|last| last.speaker == ChatSpeaker::Model)
    };
    let whole = start + count;
    let end = if count == 0 || ends_well(&whole) { whole } else { whole - 1 };
    for block in sent.get(start..end).unwrap_or_default().iter().flat_map(ChatMessage::blocks) {
        walk.show_block(block, ShownBlock::Gone);
    }
    end.max(start)
}
