//! A segment's messages as chat libraries know them. Takes a track; gives one message per entry behind tools and system, what
//! a model says in one go as one message. Never reaches beyond a request: a message ends where a request ends.

use std::ops::Range;

use trimtab_core::{
    BlockId, BlockKind, PartKind, Role,
    json::{narrow, widen},
};

use crate::replay::Track;

/// Who speaks, as chat libraries tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    Human,
    Model,
    /// A tool: also a user's message that answers an action written in text.
    Tool,
    /// The system in mid-conversation, or somebody unknown.
    Other,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) speaker: Speaker,
    pub(super) blocks: Range<u32>,
}

impl Message {
    pub(super) fn blocks(&self) -> impl DoubleEndedIterator<Item = BlockId> + use<> {
        self.blocks.clone().map(BlockId)
    }
}

/// Returns the messages of a segment.
pub(super) fn messages(track: &Track<'_>) -> Vec<Message> {
    let mut all: Vec<Message> = Vec::new();
    let mut ends = track.requests.iter().map(|request| narrow(request.blocks)).peekable();
    for entry in track.history.entries().iter().skip(head(track)) {
        let blocks = entry.first_block..entry.first_block + entry.blocks;
        if blocks.is_empty() {
            continue;
        }
        while ends.next_if(|end| *end < blocks.start).is_some() {}
        let speaker = speaker(track, entry.role, &blocks);
        let begins_anew = ends.peek() == Some(&blocks.start);
        match all.last_mut() {
            Some(last) if speaker == Speaker::Model && last.speaker == Speaker::Model && !begins_anew => {
                last.blocks.end = blocks.end;
            }
            _ => all.push(Message { speaker, blocks }),
        }
    }
    all
}

/// Returns how many of the messages a request of so many blocks carries.
pub(super) fn carried(messages: &[Message], blocks: usize) -> usize {
    messages.partition_point(|message| widen(message.blocks.end) <= blocks)
}

/// Returns the tokens of a message as `LangChain` estimates them: a quarter of its characters rounded up, 3 for the message,
/// 85 for an image. Calls count as they are spelt.
pub(super) fn estimate(track: &Track<'_>, message: &Message) -> usize {
    let history = track.history;
    let of_block = |id: BlockId| {
        let Some(block) = history.block(id) else { return (0, 0) };
        let parts = history.parts_of(block);
        let images = parts.iter().filter(|part| part.kind == PartKind::Image).count();
        let characters = match block.kind {
            BlockKind::Call => String::from_utf8_lossy(block.span.of(history.bytes())).chars().count(),
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
    let head = track.history.entries().iter().take(head(track));
    let mut system = head.filter(|entry| entry.role == Role::System && entry.blocks > 0).peekable();
    let Some(start) = system.peek().map(|entry| entry.first_block) else { return 0 };
    let end = system.last().map_or(start, |entry| entry.first_block + entry.blocks);
    estimate(track, &Message { speaker: Speaker::Other, blocks: start..end })
}

/// Returns how many entries stand before the conversation: tools and system, which some formats carry among the messages.
fn head(track: &Track<'_>) -> usize {
    let is_head = |role: Role| matches!(role, Role::Tools | Role::System);
    track.history.entries().iter().take_while(|entry| is_head(entry.role)).count()
}

fn speaker(track: &Track<'_>, role: Role, blocks: &Range<u32>) -> Speaker {
    let mut facts = blocks.clone().filter_map(|block| track.facts.row(BlockId(block)));
    match role {
        Role::Assistant => Speaker::Model,
        Role::Tool => Speaker::Tool,
        Role::User if facts.any(|fact| fact.acts_as == BlockKind::Result) => Speaker::Tool,
        Role::User => Speaker::Human,
        Role::Tools | Role::System | Role::Other => Speaker::Other,
    }
}
