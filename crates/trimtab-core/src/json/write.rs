//! Writes small JSON texts around pieces copied from others. Takes keys, texts and raw values; gives bytes.
//! Never checks that a raw piece is JSON: it is always one that the scanner read.

use super::text::encode;

/// An object under construction.
#[derive(Debug)]
pub(crate) struct Object(Vec<u8>);

impl Object {
    pub(crate) fn new() -> Object {
        Object(vec![b'{'])
    }

    pub(crate) fn text(self, key: &str, text: &str) -> Object {
        let mut value = Vec::with_capacity(text.len() + 2);
        encode(text, &mut value);
        self.raw(key, &value)
    }

    pub(crate) fn raw(mut self, key: &str, value: &[u8]) -> Object {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        encode(key, &mut self.0);
        self.0.push(b':');
        self.0.extend_from_slice(value);
        self
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

/// An array under construction.
#[derive(Debug, Clone)]
pub(crate) struct Array(Vec<u8>);

impl Array {
    pub(crate) fn new() -> Array {
        Array(vec![b'['])
    }

    pub(crate) fn raw(mut self, value: &[u8]) -> Array {
        self.push(value);
        self
    }

    pub(crate) fn push(&mut self, value: &[u8]) {
        if !self.is_empty() {
            self.0.push(b',');
        }
        self.0.extend_from_slice(value);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.len() == 1
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.push(b']');
        self.0
    }
}
