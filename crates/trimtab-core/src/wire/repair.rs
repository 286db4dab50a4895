//! Repairs requests that arrive broken. Takes a history; gives the request with results beside their calls, nothing empty and
//! roles in order, and says what was repaired. Never touches a request that breaks no rule, and never makes up a content: a
//! result that never came is a note, and everything else is copied.

pub(super) mod anthropic;
pub(super) mod chat;
pub(super) mod gemini;
pub(super) mod responses;

use std::{borrow::Cow, fmt};

use super::{Edit, write};
use crate::{
    history::History,
    json::{Object, Span, Value, encode, narrow, scan},
};

/// Something that was repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The message, counted from 1 in the original request.
    pub message: usize,
    /// What was wrong with it and what was done, in a clause.
    pub what: String,
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {}: {}", self.message, self.what)
    }
}

/// Repairs what the protocol forbids: results without call, calls without result, either twice or out of place, empty messages,
/// a first message that is not the user's, arguments that are missing or no JSON, and in Gemini's format roles that do not alternate.
///
/// ```
/// let broken = br#"{"messages":[{"role":"user","content":"Hi"},{"role":"tool","tool_call_id":"x","content":"?"}]}"#;
/// let history = trimtab_core::parse_as(broken.to_vec(), trimtab_core::Format::Chat)?;
/// let (request, mended) = trimtab_core::wire::repair(&history);
/// assert_eq!(request, br#"{"messages":[{"role":"user","content":"Hi"}]}"#);
/// assert_eq!(mended[0].to_string(), "message 2: a result for \"x\" without a call before it, removed");
/// # Ok::<(), trimtab_core::WireError>(())
/// ```
pub fn repair(history: &History) -> (Vec<u8>, Vec<Repair>) {
    let Some(list) = history.message_list() else { return (history.bytes().to_vec(), Vec::new()) };
    let messages: Vec<Value<'_>> = list.items().collect();
    let (messages, mut mended) = (history.format().layout().repair)(&messages);
    if mended.is_empty() {
        return (history.bytes().to_vec(), mended);
    }
    mended.sort_by_key(|mended| mended.message);
    let span = list.span();
    let inside = Span::new(narrow(span.start() + 1), narrow(span.end() - 1));
    (write(history, &[Edit { span: inside, with: messages.join(&b","[..]) }]), mended)
}

/// Messages as the protocol wants them, and what was repaired.
pub(super) type RepairedMessages = (Vec<Vec<u8>>, Vec<Repair>);

/// What was repaired so far.
#[derive(Default)]
struct RepairLog(Vec<Repair>);

impl RepairLog {
    /// Notes something about the message at an index.
    fn say(&mut self, index: usize, what: impl Into<String>) {
        self.0.push(Repair { message: index + 1, what: what.into() });
    }
}

/// Returns an object with a member set to another value, everything else as it was.
fn set_member(object: &[u8], key: &str, value: &[u8]) -> Vec<u8> {
    let found = |tape: &crate::json::Tape| {
        let member = tape.root(object)?.get(key)?;
        Some([object.get(..member.span().start())?, value, object.get(member.span().end()..)?].concat())
    };
    scan(object).ok().and_then(|tape| found(&tape)).unwrap_or_else(|| with_member(object, key, value))
}

/// Returns an object with one member more, before the others.
fn with_member(object: &[u8], key: &str, value: &[u8]) -> Vec<u8> {
    let mut name = Vec::new();
    encode(key, &mut name);
    let inside = object.get(1..).unwrap_or_default();
    let is_empty = inside.trim_ascii_start().first() == Some(&b'}');
    let comma: &[u8] = if is_empty { b"" } else { b"," };
    [b"{", name.as_slice(), b":", value, comma, inside].concat()
}

/// Returns an object without a member.
fn without_member(object: &[u8], key: &str) -> Vec<u8> {
    let Ok(tape) = scan(object) else { return object.to_vec() };
    let members = tape.root(object).into_iter().flat_map(Value::members).filter(|(name, _)| !name.is(key));
    members
        .fold(Object::new(), |object, (name, value)| {
            object.raw(&name.string().unwrap_or_default(), value.raw())
        })
        .end()
}

/// Tells whether a call comes without arguments: they are missing, null, or a text that says nothing or `null`.
fn lacks_arguments(arguments: Option<Value<'_>>) -> bool {
    arguments.is_none_or(|arguments| {
        arguments.is_null() || arguments.string().is_some_and(|text| matches!(text.trim(), "" | "null"))
    })
}

/// Says what is done for a call without arguments.
fn given_none(id: &str) -> String {
    format!("the call {id:?} has no arguments, given an empty object")
}

/// Returns arguments that are no JSON as a JSON object that holds them, as a JSON string.
fn mended_arguments(arguments: Value<'_>) -> Option<Vec<u8>> {
    let text = arguments.string()?;
    if lacks_arguments(Some(arguments)) || scan(text.as_bytes()).is_ok() {
        return None;
    }
    let object = Object::new().text("unreadable", &text).end();
    let mut json = Vec::new();
    encode(&String::from_utf8_lossy(&object), &mut json);
    Some(json)
}

fn json_list(items: &[Vec<u8>]) -> Vec<u8> {
    [b"[", items.join(&b","[..]).as_slice(), b"]"].concat()
}

fn json_text(text: &str) -> Vec<u8> {
    let mut json = Vec::with_capacity(text.len() + 2);
    encode(text, &mut json);
    json
}

fn id_of<'a>(value: Value<'a>, key: &str) -> Cow<'a, str> {
    value.text(key).unwrap_or_default()
}

/// Returns an id that no other call has.
fn fresh_id(id: &str, taken: &[String]) -> String {
    let mut number = 2_u32;
    loop {
        let fresh = format!("{id}_{number}");
        if !taken.contains(&fresh) {
            return fresh;
        }
        number += 1;
    }
}
