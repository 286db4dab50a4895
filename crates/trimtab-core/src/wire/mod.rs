//! Request bytes to history, and back by splicing. Takes what an agent sends, in any of four formats; gives a
//! [`History`], or the same bytes with edits put in. Kept parts are copied, never re-serialised, so a
//! field that is not understood cannot be dropped.

mod anthropic;
mod chat;
mod detect;
mod gemini;
mod repair;
mod responses;
mod splice;
mod warm;

use std::{fmt, sync::Arc};

pub use repair::{Repair, repair};
pub(crate) use splice::remove_elements;
pub use splice::{Edit, request_of, write};
pub use warm::parse_after;

use crate::{
    history::{BlockKind, Format, History, HistoryOutline, Role},
    json::{JsonError, Object, Tape, Value, scan},
    units::Tokens,
};
use repair::RepairedMessages;

/// Everything in which formats differ: how each is read, written and repaired, and what its protocol asks for. A new format is one
/// file with this table, one line in [`LAYOUTS`] and one variant of [`Format`].
pub(crate) struct Layout {
    format: Format,
    name: &'static str,
    title: &'static str,
    /// Key of the list of messages.
    list: &'static str,
    /// Tells whether a request that is an object is of this format. The first of [`LAYOUTS`] that says so is it.
    fits: fn(Value<'_>) -> bool,
    /// Tells the same of a list of messages without a request around it.
    fits_list: fn(Value<'_>) -> bool,
    /// Reads tools and system from the outermost object.
    head: fn(Value<'_>, &mut HistoryOutline),
    /// Reads one message.
    entry: fn(Value<'_>, &mut HistoryOutline),
    /// What every message has, for errors.
    message_has: &'static str,
    /// Tells whether an item of the list is a message.
    is_message: fn(Value<'_>) -> bool,
    /// Tells whether an item is certainly one: where every list has a list of that name, one of them must be.
    is_known: fn(Value<'_>) -> bool,
    /// Writes messages as the protocol wants them, and says what was repaired.
    repair: fn(&[Value<'_>]) -> RepairedMessages,
    /// Whether results have a field that says that the call failed.
    pub(crate) flags_failures: bool,
    /// Whether messages of the user in a row become one.
    pub(crate) user_messages: UserMessages,
    /// What precedes and follows the content of a message of the user that trimtab writes.
    pub(crate) user_message: [&'static str; 2],
    /// Writes a text, given as JSON, as the content of such a message.
    pub(crate) user_text: fn(&[u8]) -> Vec<u8>,
    /// Writes a text, given as JSON, as one part of a message.
    pub(crate) text_part: fn(&[u8]) -> Vec<u8>,
    /// Writes a whole request.
    pub(crate) question: fn(&Question<'_>) -> Vec<u8>,
    /// Writes the body of a result that says a text, given plain and as JSON.
    pub(crate) result_body: fn(&str, &[u8]) -> Vec<u8>,
}

/// Whether messages of the user in a row become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserMessages {
    /// Always: the protocol wants roles to alternate.
    Joined,
    /// If the request's roles alternate.
    JoinedIfAlternating,
    /// Never.
    Separate,
}

/// A question to a model, without a conversation.
pub(crate) struct Question<'a> {
    pub(crate) model: &'a str,
    pub(crate) system: &'a str,
    pub(crate) prompt: &'a str,
    /// How many tokens the answer may have.
    pub(crate) most: Tokens,
}

/// In the order in which requests are compared with them: Chat is what is left.
const LAYOUTS: [&Layout; 4] = [&gemini::LAYOUT, &responses::LAYOUT, &anthropic::LAYOUT, &chat::LAYOUT];

/// How many messages are looked at to tell a format: enough to reach past a system prompt and a first exchange.
const MESSAGES_LOOKED_AT: usize = 40;

/// Tells whether an item has a role: a message of most formats.
fn has_role(item: Value<'_>) -> bool {
    item.get("role").is_some_and(Value::is_string)
}

/// Tells whether a list without a request around it begins as lists of most formats do.
fn begins_with_role(list: Value<'_>) -> bool {
    list.items().next().is_some_and(has_role)
}

/// Writes a message of a role that says a text.
fn plain_message(role: &str, text: &str) -> Vec<u8> {
    Object::new().text("role", role).text("content", text).end()
}

/// Writes a text, given as JSON, as a part of the type `text`.
fn typed_text(json: &[u8]) -> Vec<u8> {
    Object::new().text("type", "text").raw("text", json).end()
}

/// Writes the body of a result that is a text.
fn plain_result(_: &str, json: &[u8]) -> Vec<u8> {
    json.to_vec()
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 4] = [Format::Anthropic, Format::Chat, Format::Responses, Format::Gemini];

    /// Returns the name used on the command line.
    pub fn name(self) -> &'static str {
        self.layout().name
    }

    /// Returns the name its provider gives it.
    pub fn title(self) -> &'static str {
        self.layout().title
    }

    /// Finds a format by its name.
    pub fn find_by_name(name: &str) -> Option<Format> {
        LAYOUTS.iter().find(|layout| layout.name == name).map(|layout| layout.format)
    }

    /// Returns the key of the list of messages.
    pub fn list_key(self) -> &'static str {
        self.layout().list
    }

    pub(crate) fn layout(self) -> &'static Layout {
        match self {
            Format::Anthropic => &anthropic::LAYOUT,
            Format::Chat => &chat::LAYOUT,
            Format::Responses => &responses::LAYOUT,
            Format::Gemini => &gemini::LAYOUT,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that could not be read as a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The text is not JSON.
    #[error("the request is not JSON: {0}")]
    Json(#[from] JsonError),
    /// The text is not UTF-8.
    #[error("the request is not UTF-8 text: the byte at offset {offset} (line {line}) does not fit")]
    Utf8 {
        /// Offset of the first byte that does not fit.
        offset: usize,
        /// Its line, counted from 1.
        line: usize,
    },
    /// The text is JSON, but no conversation.
    #[error(
        "not a conversation: expected an object with a list `messages` (Anthropic, OpenAI Chat), `input` (OpenAI \
         Responses) or `contents` (Gemini), or a bare list of messages"
    )]
    NotAConversation,
    /// Most items of the list are no messages.
    #[error("not a conversation: {strange} of {all} messages have no {expected}")]
    NotMessages {
        /// How many items are no messages.
        strange: usize,
        /// How many items there are.
        all: usize,
        /// What they lack.
        expected: &'static str,
    },
    /// The list of messages is not a list.
    #[error("`{key}` should be a list of messages (the request was read as {format})")]
    NotAList {
        /// The format read.
        format: &'static str,
        /// The key of its messages.
        key: &'static str,
    },
}

/// Reads a request, telling its format by itself.
///
/// ```
/// let request = br#"{"model":"claude-opus-5","system":"Be brief.","messages":[{"role":"user","content":"Hi"}]}"#;
/// let history = trimtab_core::parse(request.to_vec())?;
/// assert_eq!(history.format(), trimtab_core::Format::Anthropic);
/// assert_eq!(history.messages().len(), 1);
/// assert_eq!(trimtab_core::write(&history, &[]), request);
/// # Ok::<(), trimtab_core::WireError>(())
/// ```
///
/// # Errors
/// Says what was expected where, when the bytes are not a request.
pub fn parse(request: impl Into<Arc<Vec<u8>>>) -> Result<History, WireError> {
    let request = request.into();
    let tape = scan_text(&request)?;
    let format = detect::detect(tape.root(&request).ok_or(WireError::NotAConversation)?)?;
    interpret(request, tape, format)
}

/// Reads a request in a given format.
///
/// # Errors
/// Says what was expected where, when the bytes are not a request of that format.
pub fn parse_as(request: impl Into<Arc<Vec<u8>>>, format: Format) -> Result<History, WireError> {
    let request = request.into();
    let tape = scan_text(&request)?;
    interpret(request, tape, format)
}

fn scan_text(request: &[u8]) -> Result<Tape, WireError> {
    check_utf8(request, 0)?;
    Ok(scan(request)?)
}

fn check_utf8(request: &[u8], from: usize) -> Result<(), WireError> {
    let text = request.get(from..).unwrap_or_default();
    let Err(fault) = simdutf8::compat::from_utf8(text) else { return Ok(()) };
    let offset = from + fault.valid_up_to();
    let line = memchr::memchr_iter(b'\n', request.get(..offset).unwrap_or(request)).count() + 1;
    Err(WireError::Utf8 { offset, line })
}

/// Reads a whole scanned request.
fn interpret(bytes: Arc<Vec<u8>>, tape: Tape, format: Format) -> Result<History, WireError> {
    let layout = format.layout();
    let root = tape.root(&bytes).ok_or(WireError::NotAConversation)?;
    let mut outline = HistoryOutline::default();
    let messages = if root.is_array() { Some(root) } else { root.get(layout.list) };
    let messages = messages.ok_or(WireError::NotAConversation)?;
    (layout.head)(root, &mut outline);
    let head_entries = crate::json::narrow(outline.entries.len());
    let list = if messages.is_array() {
        messages.items().for_each(|message| read_entry(layout, message, &mut outline));
        Some(messages.index())
    } else if messages.is_string() && format == Format::Responses {
        responses::bare_input(messages, &mut outline);
        None
    } else {
        return Err(WireError::NotAList { format: layout.title, key: layout.list });
    };
    outline.pair_calls(&bytes, 0);
    Ok(History { bytes, format, tape, list, outline, head_entries, reused_blocks: 0 })
}

/// Reads one message; each item of the list is one entry, whatever it holds.
fn read_entry(layout: &Layout, message: Value<'_>, outline: &mut HistoryOutline) {
    let before = outline.entries.len();
    if message.is_object() {
        (layout.entry)(message, outline);
    }
    if outline.entries.len() == before {
        outline.add_entry(Role::Other, message.span());
        unknown(message, outline);
    }
}

/// Adds a block that is carried verbatim.
fn unknown(value: Value<'_>, outline: &mut HistoryOutline) {
    outline.add_block(BlockKind::Unknown, value.span());
    outline.add_part(crate::history::PartKind::Json, Some(value));
}
