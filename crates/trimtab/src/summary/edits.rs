//! A conversation with a part of it folded. Takes a history, the range and the text that stands for it; gives the request, valid
//! in its format. Never re-serialises a message: what stays is copied, and everything outside the range is left alone.

use super::range::FoldRange;
use crate::{
    history::{BlockId, Entry, History, Role},
    json::{Object, Span, narrow},
    plan::removed,
    wire::{Edit, Format, write},
};

/// Returns the request with one message of the user's in place of a range.
pub fn compacted(history: &History, range: &FoldRange, text: &str) -> Vec<u8> {
    write(history, &fold_edit(history, range, text).into_iter().collect::<Vec<Edit>>())
}

/// Returns the edit that puts a message in place of a range; nothing where the range is empty.
pub(crate) fn fold_edit(history: &History, range: &FoldRange, text: &str) -> Option<Edit> {
    let all = history.messages();
    let touched = |entry: &&Entry| ids(entry).any(|id| range.folds(id)) || entry.blocks == 0;
    let inside = all.get(..range.messages())?;
    let first = inside.iter().position(|entry| touched(&entry))?;
    // Gemini joins what the user says in a row, so its neighbours are written anew with it.
    let joins = history.format() == Format::Gemini;
    let first = if joins { first.saturating_sub(1) } else { first };
    let behind = all.get(range.messages()).filter(|entry| joins && entry.role == Role::User);
    let end = range.messages() + usize::from(behind.is_some());
    let mut written: Vec<Written> = Vec::new();
    for entry in all.get(first..range.messages())? {
        push(&mut written, message(history, range, entry), joins);
    }
    push(&mut written, Some(folded(history.format(), text)), joins);
    push(&mut written, behind.and_then(|entry| message(history, range, entry)), joins);
    let from = all.get(first)?.span.start();
    let to = all.get(end.checked_sub(1)?)?.span.end();
    let messages: Vec<Vec<u8>> = written.into_iter().map(Written::bytes).collect();
    Some(Edit { span: Span::new(narrow(from), narrow(to)), with: messages.join(&b","[..]) })
}

/// A message on its way into the request.
struct Written {
    by_user: bool,
    /// The message up to the end of its last part, what follows in it, and its parts.
    head: Vec<u8>,
    tail: Vec<u8>,
    parts: Vec<Vec<u8>>,
}

impl Written {
    fn bytes(self) -> Vec<u8> {
        [self.head, self.tail].concat()
    }
}

fn push(written: &mut Vec<Written>, message: Option<Written>, joins: bool) {
    let Some(message) = message else { return };
    match written.last_mut().filter(|last| joins && last.by_user && message.by_user) {
        Some(last) => {
            for part in &message.parts {
                if !last.parts.is_empty() {
                    last.head.push(b',');
                }
                last.head.extend_from_slice(part);
                last.parts.push(part.clone());
            }
        }
        None => written.push(message),
    }
}

fn ids(entry: &Entry) -> impl Iterator<Item = BlockId> {
    (entry.first_block..entry.first_block + entry.blocks).map(BlockId)
}

/// Returns what stays of a message.
fn message(history: &History, range: &FoldRange, entry: &Entry) -> Option<Written> {
    let blocks: Vec<(Span, bool)> = history
        .blocks_of(entry)
        .iter()
        .zip(ids(entry))
        .map(|(block, id)| (block.span, range.folds(id)))
        .collect();
    // A message without content says nothing; one outside the range is none of ours.
    let inside = ids(entry).next().is_none_or(|id| id < range.end());
    if blocks.iter().all(|(_, gone)| *gone) && inside {
        return None;
    }
    let kept: Vec<Span> = blocks.iter().filter(|(_, gone)| !*gone).map(|(span, _)| *span).collect();
    let edits = if kept.len() == blocks.len() { Vec::new() } else { removed(&blocks) };
    let last = kept.last().map_or(entry.span.end(), |span| span.end());
    Some(Written {
        by_user: matches!(entry.role, Role::User | Role::Tool),
        head: spliced(history.bytes(), entry.span.start(), last, &edits),
        tail: spliced(history.bytes(), last, entry.span.end(), &edits),
        parts: kept.iter().map(|span| span.of(history.bytes()).to_vec()).collect(),
    })
}

/// Copies bytes from `from` to `to` without what the edits take out.
fn spliced(bytes: &[u8], from: usize, to: usize, edits: &[Edit]) -> Vec<u8> {
    let mut copy = Vec::with_capacity(to.saturating_sub(from));
    let mut at = from;
    for edit in edits.iter().filter(|edit| edit.span.start() >= from && edit.span.end() <= to) {
        copy.extend_from_slice(bytes.get(at..edit.span.start()).unwrap_or_default());
        at = edit.span.end();
    }
    copy.extend_from_slice(bytes.get(at..to).unwrap_or_default());
    copy
}

/// Writes the message that stands for what went.
fn folded(format: Format, text: &str) -> Written {
    let (part, open, close): (Vec<u8>, &[u8], &[u8]) = match format {
        Format::Anthropic => (
            Object::new().text("type", "text").text("text", text).end(),
            br#"{"role":"user","content":["#,
            b"]}",
        ),
        Format::Chat => (quoted(text), br#"{"role":"user","content":"#, b"}"),
        Format::Responses => (
            Object::new().text("type", "input_text").text("text", text).end(),
            br#"{"type":"message","role":"user","content":["#,
            b"]}",
        ),
        Format::Gemini => (Object::new().text("text", text).end(), br#"{"role":"user","parts":["#, b"]}"),
    };
    Written { by_user: true, head: [open, part.as_slice()].concat(), tail: close.to_vec(), parts: vec![part] }
}

fn quoted(text: &str) -> Vec<u8> {
    let mut json = Vec::with_capacity(text.len() + 2);
    crate::json::encode(text, &mut json);
    json
}
