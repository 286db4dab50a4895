//! A conversation with a part of it folded. Takes a history, the range and the text that replaces it; gives the request, valid
//! in its format. Never re-serialises a message: what stays is copied, and everything outside the range is left alone.

use std::ops::Range;

use super::range::FoldRange;
use crate::{
    history::{BlockId, Entry, Format, History, Role, roles_alternate},
    json::{Object, Span, narrow},
    wire::{Edit, UserMessages, remove_elements, write},
};

/// Returns the request with one message of the user's in place of a range.
pub fn fold_request_bytes(history: &History, range: &FoldRange, text: &str) -> Vec<u8> {
    let goes = |id: BlockId| range.folds(id);
    let edit = fold_edit(history, range.messages(), &goes, text, &[]).map(|(edit, _)| edit);
    write(history, &edit.into_iter().collect::<Vec<Edit>>())
}

/// The messages that are written again where a range is folded: from its first that changes to the last that is joined to what is
/// written after it, and how many messages they become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RewrittenMessages {
    pub(crate) messages: Range<usize>,
    pub(crate) become_messages: usize,
}

/// Says which messages are written again where the first `messages` messages are folded and `goes` tells what of all does; nothing
/// where nothing goes.
pub(crate) fn rewritten_messages(
    history: &History,
    messages: usize,
    goes: &dyn Fn(BlockId) -> bool,
) -> Option<RewrittenMessages> {
    let all = history.messages();
    let touched = |entry: &Entry| entry_blocks(entry).any(goes) || entry.blocks == 0;
    let first = all.get(..messages)?.iter().position(touched)?;
    let joins = joins_user(history, messages);
    let speaks = |entry: &Entry| MessageSpeaker::from_entry(history.format(), entry);
    let is_system = |entry: &Entry| speaks(entry) == MessageSpeaker::System;
    // What is joined to the message before is written there.
    let before = all.get(..first)?.iter().rposition(|entry| !is_system(entry));
    let first = before.filter(|_| joins).unwrap_or(first);
    let left = |entry: &Entry| entry_blocks(entry).any(|id| !goes(id));
    let behind = all.get(messages..)?.iter().position(|entry| left(entry) && !is_system(entry));
    let joined = behind.map(|at| messages + at);
    let joined =
        joined.filter(|at| joins && all.get(*at).is_some_and(|entry| speaks(entry) == MessageSpeaker::User));
    let end = joined.map_or(messages, |at| at + 1);
    let mut before = MessageSpeaker::Other;
    let mut become_messages = 0;
    let kept =
        |range: Range<usize>| all.get(range).into_iter().flatten().filter(|entry| left(entry)).map(speaks);
    for speaker in kept(first..messages).chain([MessageSpeaker::User]).chain(kept(messages..end)) {
        become_messages +=
            usize::from(!(joins && speaker == MessageSpeaker::User && before == MessageSpeaker::User));
        if speaker != MessageSpeaker::System {
            before = speaker;
        }
    }
    Some(RewrittenMessages { messages: first..end, become_messages })
}

/// Tells whether what the user says in a row becomes one message where so many messages are folded: where the messages up to there
/// take turns, they still do. Later messages have no say, so that a folded beginning stays the same.
fn joins_user(history: &History, messages: usize) -> bool {
    match history.format().layout().user_messages {
        UserMessages::Joined => true,
        UserMessages::Separate => false,
        UserMessages::JoinedIfAlternating => {
            let all = history.messages();
            roles_alternate(history.format(), all.get(..=messages).unwrap_or(all))
        }
    }
}

/// Who speaks in a message, as far as taking turns is about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageSpeaker {
    User,
    /// Its words between two messages do not part them.
    System,
    Other,
}

impl MessageSpeaker {
    fn from_entry(format: Format, entry: &Entry) -> MessageSpeaker {
        match entry.role {
            Role::User => MessageSpeaker::User,
            // There results are the user's.
            Role::Tool if format == Format::Gemini => MessageSpeaker::User,
            Role::System => MessageSpeaker::System,
            Role::Tools | Role::Assistant | Role::Tool | Role::Other => MessageSpeaker::Other,
        }
    }
}

/// Returns the edit that puts a message in place of the first `messages` messages, with what stays of them and the edits inside of
/// that; nothing where nothing goes.
pub(crate) fn fold_edit(
    history: &History,
    messages: usize,
    goes: &dyn Fn(BlockId) -> bool,
    text: &str,
    inside: &[Edit],
) -> Option<(Edit, RewrittenMessages)> {
    let rewritten = rewritten_messages(history, messages, goes)?;
    let all = history.messages();
    let joins = joins_user(history, messages);
    let Range { start, end } = rewritten.messages.clone();
    let mut written: Vec<MessageDraft> = Vec::new();
    for entry in all.get(start..messages)? {
        push_message(&mut written, remaining_message(history, goes, inside, entry), joins);
    }
    push_message(&mut written, Some(folded_message(history.format(), text)), joins);
    for entry in all.get(messages..end)? {
        push_message(&mut written, remaining_message(history, goes, inside, entry), joins);
    }
    let from = all.get(start)?.span.start();
    let to = all.get(end.checked_sub(1)?)?.span.end();
    let messages: Vec<Vec<u8>> = written.into_iter().map(MessageDraft::into_bytes).collect();
    let edit = Edit { span: Span::new(narrow(from), narrow(to)), with: messages.join(&b","[..]) };
    Some((edit, rewritten))
}

/// A message on its way into the request.
struct MessageDraft {
    speaker: MessageSpeaker,
    /// The message up to the end of its last part, what follows in it, and its parts.
    head: Vec<u8>,
    tail: Vec<u8>,
    parts: Vec<Vec<u8>>,
}

impl MessageDraft {
    fn into_bytes(self) -> Vec<u8> {
        [self.head, self.tail].concat()
    }

    /// Appends what another message says to this one.
    fn join_message(&mut self, other: MessageDraft) {
        self.become_list();
        for part in other.parts.into_iter().map(as_element) {
            if !self.parts.is_empty() {
                self.head.push(b',');
            }
            self.head.extend_from_slice(&part);
            self.parts.push(part);
        }
    }

    /// Turns a content that is one string into a list with that text.
    fn become_list(&mut self) {
        let [text] = self.parts.as_slice() else { return };
        if !is_string(text) {
            return;
        }
        let element = as_element(text.clone());
        self.head.truncate(self.head.len() - text.len());
        self.head.push(b'[');
        self.head.extend_from_slice(&element);
        self.tail.insert(0, b']');
        self.parts = vec![element];
    }
}

fn is_string(part: &[u8]) -> bool {
    part.first() == Some(&b'"')
}

/// Returns what stands in a list of contents for a part: a string is a text.
fn as_element(part: Vec<u8>) -> Vec<u8> {
    if is_string(&part) { Object::new().text("type", "text").raw("text", &part).end() } else { part }
}

fn push_message(written: &mut Vec<MessageDraft>, message: Option<MessageDraft>, joins: bool) {
    let Some(message) = message else { return };
    let speaks = |message: &MessageDraft| message.speaker == MessageSpeaker::User;
    let before = written.iter_mut().rev().find(|before| before.speaker != MessageSpeaker::System);
    match before.filter(|before| joins && speaks(before) && speaks(&message)) {
        Some(before) => before.join_message(message),
        None => written.push(message),
    }
}

fn entry_blocks(entry: &Entry) -> impl Iterator<Item = BlockId> {
    (entry.first_block..entry.first_block + entry.blocks).map(BlockId)
}

/// Returns what stays of a message; nothing where nothing does.
fn remaining_message(
    history: &History,
    goes: &dyn Fn(BlockId) -> bool,
    inside: &[Edit],
    entry: &Entry,
) -> Option<MessageDraft> {
    let blocks: Vec<(Span, bool)> = history
        .blocks_of(entry)
        .iter()
        .zip(entry_blocks(entry))
        .map(|(block, id)| (block.span, goes(id)))
        .collect();
    let kept: Vec<Span> = blocks.iter().filter(|(_, gone)| !*gone).map(|(span, _)| *span).collect();
    let last = kept.last()?.end();
    let mut edits = if kept.len() == blocks.len() { Vec::new() } else { remove_elements(&blocks) };
    edits.extend(inside.iter().filter(|edit| is_in(edit, entry.span.start(), entry.span.end())).cloned());
    edits.sort_by_key(|edit| edit.span.start());
    let bytes = history.bytes();
    Some(MessageDraft {
        speaker: MessageSpeaker::from_entry(history.format(), entry),
        head: splice_range(bytes, entry.span.start(), last, &edits),
        tail: splice_range(bytes, last, entry.span.end(), &edits),
        parts: kept.iter().map(|span| splice_range(bytes, span.start(), span.end(), &edits)).collect(),
    })
}

fn is_in(edit: &Edit, from: usize, to: usize) -> bool {
    edit.span.start() >= from && edit.span.end() <= to
}

/// Copies bytes from `from` to `to` with the edits in between.
fn splice_range(bytes: &[u8], from: usize, to: usize, edits: &[Edit]) -> Vec<u8> {
    let mut copy = Vec::with_capacity(to.saturating_sub(from));
    let mut at = from;
    for edit in edits.iter().filter(|edit| is_in(edit, from, to)) {
        copy.extend_from_slice(bytes.get(at..edit.span.start()).unwrap_or_default());
        copy.extend_from_slice(&edit.with);
        at = edit.span.end();
    }
    copy.extend_from_slice(bytes.get(at..to).unwrap_or_default());
    copy
}

/// Writes the message that stands for what went.
fn folded_message(format: Format, text: &str) -> MessageDraft {
    let layout = format.layout();
    let [open, close] = layout.user_message;
    let part = (layout.user_text)(&quote_text(text));
    MessageDraft {
        speaker: MessageSpeaker::User,
        head: [open.as_bytes(), part.as_slice()].concat(),
        tail: close.as_bytes().to_vec(),
        parts: vec![part],
    }
}

fn quote_text(text: &str) -> Vec<u8> {
    let mut json = Vec::with_capacity(text.len() + 2);
    crate::json::encode(text, &mut json);
    json
}
