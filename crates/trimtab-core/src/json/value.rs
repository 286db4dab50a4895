//! Reads one value of a scanned text. Takes a tape and a place on it; gives members, items, decoded strings
//! and raw bytes. Never allocates, except to decode a string that has escapes.

use std::borrow::Cow;

use super::{Span, scan::TapeNode, text::decode, widen};

/// What a JSON value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
    /// Keys and values.
    Object,
    /// Items in a row.
    Array,
    /// A text in quotes.
    String,
    /// A number.
    Number,
    /// `true`.
    True,
    /// `false`.
    False,
    /// `null`.
    Null,
}

/// A value somewhere in a scanned text.
#[derive(Debug, Clone, Copy)]
pub struct Value<'a> {
    text: &'a [u8],
    nodes: &'a [TapeNode],
    index: u32,
    node: TapeNode,
}

impl<'a> Value<'a> {
    pub(super) fn new(text: &'a [u8], nodes: &'a [TapeNode], index: u32) -> Option<Value<'a>> {
        nodes.get(widen(index)).map(|node| Value { text, nodes, index, node: *node })
    }

    /// Returns what it is.
    pub fn kind(self) -> JsonKind {
        self.node.kind
    }

    /// Returns where it stands in the text.
    pub fn span(self) -> Span {
        self.node.span()
    }

    /// Returns the index of the node on its tape.
    pub(crate) fn index(self) -> u32 {
        self.index
    }

    /// Returns its bytes, as they stand in the text.
    pub fn raw(self) -> &'a [u8] {
        self.span().bytes_in(self.text)
    }

    /// Tells whether it is an object.
    pub fn is_object(self) -> bool {
        self.kind() == JsonKind::Object
    }

    /// Tells whether it is an array.
    pub fn is_array(self) -> bool {
        self.kind() == JsonKind::Array
    }

    /// Tells whether it is a string.
    pub fn is_string(self) -> bool {
        self.kind() == JsonKind::String
    }

    /// Tells whether it is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// Returns the member of that name; the last one where a key is repeated, as other readers do.
    pub fn get(self, key: &str) -> Option<Value<'a>> {
        self.members().filter(|(name, _)| name.is(key)).last().map(|(_, value)| value)
    }

    /// Follows several keys down.
    pub fn path(self, keys: &[&str]) -> Option<Value<'a>> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    /// Returns the decoded string member of that name.
    pub fn text(self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.string()
    }

    /// Returns the decoded string member of that name, as an owned text.
    pub fn owned_text(self, key: &str) -> Option<String> {
        self.text(key).map(Cow::into_owned)
    }

    /// Tells whether the member of that name is a string with these contents.
    pub fn member_is(self, key: &str, contents: &str) -> bool {
        self.get(key).is_some_and(|value| value.is(contents))
    }

    /// Tells whether the member of that name is true.
    pub fn is_flag_set(self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value.kind() == JsonKind::True)
    }

    /// Returns the items of the array of that name; nothing where there is none.
    pub fn items_of(self, key: &str) -> impl Iterator<Item = Value<'a>> {
        self.get(key).into_iter().flat_map(Value::items)
    }

    /// Returns keys and values of an object; nothing for other kinds.
    pub fn members(self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> {
        let mut at = if self.is_object() { self.index + 1 } else { self.node.next };
        std::iter::from_fn(move || {
            if at >= self.node.next {
                return None;
            }
            let key = Value::new(self.text, self.nodes, at)?;
            let value = Value::new(self.text, self.nodes, at + 1)?;
            at = value.node.next;
            Some((key, value))
        })
    }

    /// Returns the items of an array; nothing for other kinds.
    pub fn items(self) -> impl Iterator<Item = Value<'a>> {
        let mut at = if self.is_array() { self.index + 1 } else { self.node.next };
        std::iter::from_fn(move || {
            if at >= self.node.next {
                return None;
            }
            let value = Value::new(self.text, self.nodes, at)?;
            at = value.node.next;
            Some(value)
        })
    }

    /// Tells whether this is a string with these contents.
    pub fn is(self, contents: &str) -> bool {
        let Some(inner) = self.inner() else { return false };
        inner == contents.as_bytes() || (inner.contains(&b'\\') && decode(inner) == contents)
    }

    /// Returns the decoded contents of a string.
    pub fn string(self) -> Option<Cow<'a, str>> {
        self.inner().map(decode)
    }

    /// Returns a number that is a whole non-negative one.
    pub fn number(self) -> Option<u64> {
        (self.kind() == JsonKind::Number).then_some(())?;
        std::str::from_utf8(self.raw()).ok()?.parse().ok()
    }

    /// Returns a number with a fraction.
    pub fn float(self) -> Option<f64> {
        (self.kind() == JsonKind::Number).then_some(())?;
        std::str::from_utf8(self.raw()).ok()?.parse().ok()
    }

    /// Tells whether it is `true`.
    pub fn is_true(self) -> bool {
        self.kind() == JsonKind::True
    }

    /// Returns all decoded strings in it, in order and however deep; keys are left out.
    pub fn strings(self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self];
        while let Some(value) = open.pop() {
            if let Some(text) = value.string() {
                found.push(text.into_owned());
            }
            let mut inner: Vec<Value<'_>> = value.items().collect();
            inner.extend(value.members().map(|(_, value)| value));
            open.extend(inner.into_iter().rev());
        }
        found
    }

    fn inner(self) -> Option<&'a [u8]> {
        self.is_string().then(|| self.raw())?.get(1..)?.split_last().map(|(_, inner)| inner)
    }
}
