//! The conversation as it was sent: append-only truth. Takes what a wire format found in a request; gives
//! entries (messages) of blocks (the smallest things decided about) of parts (the values inside them).
//! Never edits and never copies: everything points into the request's own bytes.

mod blocks;
mod outline;
mod wrapped;

use std::{borrow::Cow, ops::Index, sync::Arc};

pub(crate) use blocks::{Blocks, row_of};
pub(crate) use outline::HistoryOutline;
pub(crate) use wrapped::{ReadableResult, TextLeaf, WrappedResult, breaks_strings, readable_text};

use crate::{
    json::{Span, Tape, Value, decode},
    units::Tokens,
};

/// The number of an entry in its history, counted from 0 in provider order: tools, system, messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u32);

/// The number of a block in its history, counted from 0 in provider order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// A wire format: how a provider spells a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Gemini generateContent.
    Gemini,
}

/// Who speaks in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Nobody: the definitions of the tools.
    Tools,
    /// The system or developer prompt.
    System,
    /// The human, or the harness in the human's place.
    User,
    /// The model.
    Assistant,
    /// A tool that was called (formats where results are separate messages).
    Tool,
    /// A role this version does not know; carried verbatim.
    Other,
}

impl Role {
    /// Returns the name used in pictures and reports.
    pub fn name(self) -> &'static str {
        match self {
            Role::Tools => "tools",
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::Other => "other",
        }
    }
}

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// The definition of one tool.
    Definition,
    /// Text of the system, the user or the model.
    Text,
    /// The model's reasoning, readable or sealed.
    Reasoning,
    /// A tool call.
    Call,
    /// A tool's result.
    Result,
    /// An image, a document, a sound outside a tool result.
    Media,
    /// Something this version does not understand; carried verbatim and never touched.
    Unknown,
}

impl BlockKind {
    /// Returns the name used in pictures and reports.
    pub fn name(self) -> &'static str {
        match self {
            BlockKind::Definition => "definition",
            BlockKind::Text => "text",
            BlockKind::Reasoning => "reasoning",
            BlockKind::Call => "call",
            BlockKind::Result => "result",
            BlockKind::Media => "media",
            BlockKind::Unknown => "unknown",
        }
    }
}

/// What a part of a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartKind {
    /// A JSON string that is read as text.
    Text,
    /// A JSON string that holds JSON, as the arguments of OpenAI's calls do.
    JsonText,
    /// A JSON value that is read unchanged.
    Json,
    /// An image, with or without its bytes.
    Image,
    /// A document or other file, with or without its bytes.
    Document,
    /// A sound, with or without its bytes.
    Audio,
    /// A signature or sealed content: bytes that only the provider can read.
    Sealed,
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Who speaks.
    pub role: Role,
    /// The message's JSON value.
    pub span: Span,
    /// The step it belongs to: the number of assistant messages up to here, itself included.
    pub step: u32,
    /// The number of its first block.
    pub first_block: u32,
    /// How many blocks it has.
    pub blocks: u32,
}

/// The smallest thing that is decided about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// What it is.
    pub kind: BlockKind,
    /// The entry it stands in.
    pub entry: EntryId,
    /// The block's JSON value.
    pub span: Span,
    /// The other half of a tool call or result, where it is there.
    pub partner: Option<BlockId>,
    /// Whether the protocol says that the tool failed.
    pub failed: bool,
    /// Whether the provider itself ran the tool.
    pub by_server: bool,
    /// Whether it carries a cache marker.
    pub marked: bool,
    /// Whether a part or the block itself is signed or sealed by the provider.
    pub sealed: bool,
    /// The JSON value that holds the content of a call, result or message; empty where there is none.
    pub(crate) body: Span,
    pub(crate) name: Span,
    pub(crate) id: Span,
    pub(crate) first_part: u32,
    pub(crate) parts: u32,
}

/// One value inside a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// What it holds.
    pub kind: PartKind,
    /// The JSON value; for strings with the quotes.
    pub span: Span,
}

/// One conversation, as one request carries it.
#[derive(Debug, Clone)]
pub struct History {
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) format: Format,
    pub(crate) tape: Tape,
    /// Node of the list of messages; none where the conversation is one bare string.
    pub(crate) list: Option<u32>,
    pub(crate) outline: HistoryOutline,
    /// How many entries precede the first message: tools and system.
    pub(crate) head_entries: u32,
    pub(crate) reused_blocks: u32,
}

impl History {
    /// Returns the request's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Gives the request's bytes back.
    pub fn into_bytes(self) -> Vec<u8> {
        Arc::unwrap_or_clone(self.bytes)
    }

    /// Gives the request's bytes back where nobody else holds them.
    pub fn reclaim_bytes(self) -> Option<Vec<u8>> {
        Arc::into_inner(self.bytes)
    }

    /// Returns a field of the request beside the conversation, as JSON.
    pub fn field(&self, key: &str) -> Option<&[u8]> {
        Some(self.root()?.get(key)?.span().bytes_in(&self.bytes))
    }

    /// Returns the wire format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the model that the request names.
    pub fn model(&self) -> Option<Cow<'_, str>> {
        self.root()?.text("model")
    }

    /// Returns how many tokens of output the request asks for; nothing where it does not say.
    pub fn requested_output(&self) -> Tokens {
        let Some(root) = self.root() else { return Tokens::ZERO };
        let keys = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
        let plain = keys.iter().find_map(|key| root.get(key)?.number());
        let gemini = || root.path(&["generationConfig", "maxOutputTokens"])?.number();
        Tokens(plain.or_else(gemini).unwrap_or_default())
    }

    /// Returns all entries in provider order: tools, system, messages.
    pub fn entries(&self) -> &[Entry] {
        &self.outline.entries
    }

    /// Returns all blocks in provider order.
    pub fn blocks(&self) -> &[Block] {
        &self.outline.blocks
    }

    /// Returns the ids of all blocks, in provider order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = BlockId> + ExactSizeIterator + Clone + use<> {
        blocks::ids(self.outline.blocks.len())
    }

    /// Returns one block.
    pub fn block(&self, id: BlockId) -> Option<&Block> {
        self.outline.blocks.get(crate::json::widen(id.0))
    }

    /// Returns the entry of a block.
    pub fn entry_of(&self, block: &Block) -> Option<&Entry> {
        self.outline.entries.get(crate::json::widen(block.entry.0))
    }

    /// Returns the blocks of an entry.
    pub fn blocks_of(&self, entry: &Entry) -> &[Block] {
        slice_of(&self.outline.blocks, entry.first_block, entry.blocks)
    }

    /// Returns how many blocks there are up to the end of an entry.
    pub fn blocks_before_end(&self, entry: &Entry) -> usize {
        crate::json::widen(entry.first_block + entry.blocks)
    }

    /// Returns the parts of a block.
    pub fn parts_of(&self, block: &Block) -> &[Part] {
        slice_of(&self.outline.parts, block.first_part, block.parts)
    }

    /// Returns the messages: the entries after tools and system.
    pub fn messages(&self) -> &[Entry] {
        self.outline.entries.get(crate::json::widen(self.head_entries)..).unwrap_or_default()
    }

    /// Returns the name of the tool that a definition, call or result is about.
    pub fn tool_name(&self, block: &Block) -> Option<Cow<'_, str>> {
        let own = self.decode_string(block.name);
        own.or_else(|| self.decode_string(self.block(block.partner?)?.name))
    }

    /// Returns the id by which call and result find each other.
    pub fn call_id(&self, block: &Block) -> Option<Cow<'_, str>> {
        self.decode_string(block.id)
    }

    /// Returns a part as text: strings decoded, other values as they stand.
    pub fn part_text(&self, part: &Part) -> Cow<'_, str> {
        match part.kind {
            PartKind::Text | PartKind::JsonText => self.decode_string(part.span).unwrap_or_default(),
            PartKind::Json | PartKind::Image | PartKind::Document | PartKind::Audio | PartKind::Sealed => {
                String::from_utf8_lossy(part.span.bytes_in(&self.bytes))
            }
        }
    }

    /// Returns what can be read in a block: its texts and JSON values, joined by line breaks.
    pub fn block_text(&self, block: &Block) -> Cow<'_, str> {
        let readable =
            |part: &&Part| matches!(part.kind, PartKind::Text | PartKind::JsonText | PartKind::Json);
        let mut parts = self.parts_of(block).iter().filter(readable).map(|part| self.part_text(part));
        let Some(first) = parts.next() else { return Cow::Borrowed("") };
        parts.fold(first, |text, part| Cow::Owned(text.into_owned() + "\n" + &part))
    }

    /// Returns what a block says: its text without the JSON that a client put around a tool's output.
    pub(crate) fn readable_text(&self, block: &Block) -> Cow<'_, str> {
        match self.block_text(block) {
            Cow::Borrowed(text) => readable_text(text),
            Cow::Owned(text) => {
                let inner = match readable_text(&text) {
                    Cow::Owned(inner) => Some(inner),
                    Cow::Borrowed(_) => None,
                };
                Cow::Owned(inner.unwrap_or(text))
            }
        }
    }

    /// Returns how many leading blocks are those of the history this one was parsed after.
    pub fn reused_blocks(&self) -> usize {
        crate::json::widen(self.reused_blocks)
    }

    pub(crate) fn root(&self) -> Option<Value<'_>> {
        self.tape.root(&self.bytes)
    }

    pub(crate) fn message_list(&self) -> Option<Value<'_>> {
        self.tape.value(&self.bytes, self.list?)
    }

    fn decode_string(&self, span: Span) -> Option<Cow<'_, str>> {
        let inner = span.bytes_in(&self.bytes).get(1..)?.split_last()?.1;
        Some(decode(inner))
    }
}

/// A block of this history; a block of another one is a fault of the caller's.
impl Index<BlockId> for History {
    type Output = Block;

    #[track_caller]
    fn index(&self, id: BlockId) -> &Block {
        row_of(&self.outline.blocks, id)
    }
}

fn slice_of<T>(all: &[T], first: u32, count: u32) -> &[T] {
    let first = crate::json::widen(first);
    all.get(first..first + crate::json::widen(count)).unwrap_or_default()
}

/// Tells whether no two of some messages in a row are the user's, the system's apart: some servers refuse a request where they are,
/// so none is made of one where they are not. Items of Responses have no such order.
pub(crate) fn roles_alternate(format: Format, messages: &[Entry]) -> bool {
    if format == Format::Responses {
        return false;
    }
    let mut roles = messages.iter().map(|entry| entry.role).filter(|role| *role != Role::System);
    let Some(mut before) = roles.next() else { return true };
    roles.all(|role| {
        let is_pair = before == Role::User && role == Role::User;
        before = role;
        !is_pair
    })
}
