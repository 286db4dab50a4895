//! A segment's messages as chat libraries know them. Takes a track; gives one message per entry after tools and system, what
//! a model says in one go as one message. Never reaches beyond a request: a message ends where a request ends.

use std::ops::Range;

use trimtab_core::{
    BlockId, BlockKind, PartKind, Role,
    json::{narrow, widen},
};

use crate::replay::Track;

/// Who speaks, as chat libraries tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChatSpeaker {
    Human,
    Model,
    /// A tool: also a user's message that answers an action written in text.
    Tool,
    /// The system in mid-conversation, or somebody unknown.
    Other,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChatMessage {
    pub(super) speaker: ChatSpeaker,
    pub(super) blocks: Range<u32>,
}

impl ChatMessage {
    pub(super) fn blocks(&self) -> impl DoubleEndedIterator<Item = BlockId> + use<> {
        self.blocks.clone().map(BlockId)
    }
}

/// Returns the messages of a segment.
pub(super) fn messages_of(track: &Track<'_>) -> Vec<ChatMessage> {
    let mut all: Vec<ChatMessage> = Vec::new();
    let mut ends = track.requests.iter().map(|request| narrow(request.blocks)).peekable();
    for entry in track.history.entries().iter().skip(head_entries(track)) {
        let blocks = entry.first_block..entry.first_block + entry.blocks;
        if blocks.is_empty() {
            continue;
        }
        while ends.next_if(|end| *end < blocks.start).is_some() {}
        let speaker = speaker_of(track, entry.role, &blocks);
        let begins_anew = ends.peek() == Some(&blocks.start);
        match all.last_mut() {
            Some(last)
                if speaker == ChatSpeaker::Model && last.speaker == ChatSpeaker::Model && !begins_anew =>
            {
                last.blocks.end = blocks.end;
            }
            _ => all.push(ChatMessage { speaker, blocks }),
        }
    }
    all
}

/// Returns how many of the messages a request of so many blocks carries.
pub(super) fn carried_messages(messages: &[ChatMessage], blocks: usize) -> usize {
    messages.partition_point(|message| widen(message.blocks.end) <= blocks)
}

/// Returns the tokens of a message as `LangChain` estimates them: a quarter of its characters rounded up, 3 for the message,
/// 85 for an image. Calls count as they are spelt.
pub(super) fn estimate_tokens(track: &Track<'_>, message: &ChatMessage) -> usize {
    let history = track.history;
    let of_block = |id: BlockId| {
        let Some(block) = history.block(id) else { return (0, 0) };
        let parts = history.parts_of(block);
        let images = parts.iter().filter(|part| part.kind == PartKind::Image).count();
        let characters = match block.kind {
            BlockKind::Call => String::from_utf8_lossy(block.span.bytes_in(history.bytes())).chars().count(),
            BlockKind::Definition
            | BlockKind::Text
            | BlockKind::Reasoning
            | BlockKind::Result
            | BlockKind::Media
            | BlockKind::Unknown => history.block_text(block).chars().count(),
        };
        (characters, images)
    };
    let sum = |(characters, images), (more, shown)| (characters + more, images + shown);
    let (characters, images) = message.blocks().map(of_block).fold((0, 0), sum);
    characters.div_ceil(4) + 3 + 85 * images
}

/// Returns the system prompt's tokens by the same estimate; nothing where there is none.
pub(super) fn system_estimate(track: &Track<'_>) -> usize {
    let head = track.history.entries().iter().take(head_entries(track));
    let mut system = head.filter(|entry| entry.role == Role::System && entry.blocks > 0).peekable();
    let Some(start) = system.peek().map(|entry| entry.first_block) else { return 0 };
    let end = system.last().map_or(start, |entry| entry.first_block + entry.blocks);
    estimate_tokens(track, &ChatMessage { speaker: ChatSpeaker::Other, blocks: start..end })
}

/// Returns how many entries precede the conversation: tools and system, which some formats carry among the messages.
fn head_entries(track: &Track<'_>) -> usize {
    let is_head = |role: Role| matches!(role, Role::Tools | Role::System);
    track.history.entries().iter().take_while(|entry| is_head(entry.role)).count()
}

fn speaker_of(track: &Track<'_>, role: Role, blocks: &Range<u32>) -> ChatSpeaker {
    let mut facts = blocks.clone().filter_map(|block| track.facts.row(BlockId(block)));
    match role {
        Role::Assistant => ChatSpeaker::Model,
        Role::Tool => ChatSpeaker::Tool,
        Role::User if facts.any(|fact| fact.acts_as == BlockKind::Result) => ChatSpeaker::Tool,
        Role::User => ChatSpeaker::Human,
        Role::Tools | Role::System | Role::Other => ChatSpeaker::Other,
    }
}
