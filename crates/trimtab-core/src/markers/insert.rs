//! What is inserted, and where. [`AddedFields`] is made by the choice of places and kept with a request; writing it into the bytes that
//! it was made for gives what is sent. Never replaces a byte.

use super::{CACHE_CONTROL, MarkerField, places};
use crate::{
    history::{Format, History},
    json::{encode, narrow, widen},
};

/// A text that is inserted before a byte of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insertion {
    /// The offset of that byte.
    pub at: u32,
    /// The text.
    pub text: String,
}

/// The names of all markers.
const MEMBERS: [&str; 2] = [CACHE_CONTROL, "\"prompt_cache_breakpoint\""];

/// Everything that is inserted into a request, in the order of its places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddedFields {
    insertions: Vec<Insertion>,
    markers: usize,
}

impl From<Vec<Insertion>> for AddedFields {
    fn from(insertions: Vec<Insertion>) -> AddedFields {
        let markers =
            insertions.iter().filter(|insertion| MEMBERS.iter().any(|name| insertion.text.contains(name)));
        AddedFields { markers: markers.count(), insertions }
    }
}

impl AddedFields {
    /// Tells whether nothing is inserted.
    pub fn is_empty(&self) -> bool {
        self.insertions.is_empty()
    }

    /// Returns how many blocks are marked.
    pub fn markers(&self) -> usize {
        self.markers
    }

    /// Tells whether without them nothing of the request would have been cached.
    pub fn has_cache_control(&self) -> bool {
        self.insertions.iter().any(|insertion| insertion.text.contains(CACHE_CONTROL))
    }

    /// Returns what is inserted, the first place first.
    pub fn insertions(&self) -> &[Insertion] {
        &self.insertions
    }

    /// Writes the request with everything inserted.
    pub fn write_into(&self, request: &[u8]) -> Vec<u8> {
        write_insertions(request, &self.insertions)
    }

    /// Marks a block that can carry a marker.
    pub(super) fn mark(&mut self, sent: &History, place: places::MarkerPlace, field: MarkerField) {
        let member = match field {
            MarkerField::CacheControl => r#""cache_control":{"type":"ephemeral"}"#,
            MarkerField::Breakpoint => r#""prompt_cache_breakpoint":{"mode":"explicit"}"#,
        };
        self.markers += 1;
        match place {
            places::MarkerPlace::InObject { end, .. } => self.insert(end, format!(",{member}")),
            places::MarkerPlace::AroundText { start, end, .. } => {
                let kind = if sent.format() == Format::Responses { "input_text" } else { "text" };
                self.insert(start, format!(r#"[{{"type":"{kind}","text":"#));
                self.insert(end, format!(",{member}}}]"));
            }
        }
    }

    /// Adds the key at the end of a request.
    pub(super) fn add_key(&mut self, sent: &History, key: Option<&str>) {
        let (Some(key), Some(root)) = (key, sent.root().filter(|root| root.is_object())) else { return };
        let mut text = br#","prompt_cache_key":"#.to_vec();
        encode(key, &mut text);
        if let (Some(end), Ok(text)) = (root.span().end().checked_sub(1), String::from_utf8(text)) {
            self.insert(narrow(end), text);
        }
    }

    fn insert(&mut self, at: u32, text: String) {
        self.insertions.push(Insertion { at, text });
    }

    pub(super) fn sort(&mut self) {
        self.insertions.sort_by_key(|insertion| insertion.at);
    }
}

/// Writes a request with texts inserted, which come in the order of their places.
pub fn write_insertions(request: &[u8], insertions: &[Insertion]) -> Vec<u8> {
    let grown: usize = insertions.iter().map(|insertion| insertion.text.len()).sum();
    let mut written = Vec::with_capacity(request.len() + grown);
    let mut from = 0;
    for Insertion { at, text } in insertions {
        let Some(before) = request.get(from..widen(*at)) else { continue };
        written.extend_from_slice(before);
        written.extend_from_slice(text.as_bytes());
        from = widen(*at);
    }
    written.extend_from_slice(request.get(from..).unwrap_or_default());
    written
}
