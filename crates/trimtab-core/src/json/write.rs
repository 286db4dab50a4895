//! Writes small JSON texts around pieces copied from others. Takes keys, texts and raw values; gives bytes.
//! Never checks that a raw piece is JSON: it is always one that the scanner read.

use super::text::encode;

/// An object under construction.
#[derive(Debug)]
pub struct Object(Vec<u8>);

impl Default for Object {
    fn default() -> Object {
        Object::new()
    }
}

impl Object {
    /// Begins one.
    pub fn new() -> Object {
        Object(vec![b'{'])
    }

    /// Adds a member that is a string.
    #[must_use]
    pub fn text(self, key: &str, text: &str) -> Object {
        let mut value = Vec::with_capacity(text.len() + 2);
        encode(text, &mut value);
        self.raw(key, &value)
    }

    /// Adds a member whose value is JSON already.
    #[must_use]
    pub fn raw(mut self, key: &str, value: &[u8]) -> Object {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        encode(key, &mut self.0);
        self.0.push(b':');
        self.0.extend_from_slice(value);
        self
    }

    /// Returns the object's bytes.
    pub fn end(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

/// An array under construction.
#[derive(Debug, Clone)]
pub struct Array(Vec<u8>);

impl Default for Array {
    fn default() -> Array {
        Array::new()
    }
}

impl Array {
    /// Begins one.
    pub fn new() -> Array {
        Array(vec![b'['])
    }

    /// Adds an item that is JSON already.
    #[must_use]
    pub fn raw(mut self, value: &[u8]) -> Array {
        self.push(value);
        self
    }

    /// Adds such an item in place.
    pub fn push(&mut self, value: &[u8]) {
        if !self.is_empty() {
            self.0.push(b',');
        }
        self.0.extend_from_slice(value);
    }

    /// Tells whether it has no items yet.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 1
    }

    /// Returns the array's bytes.
    pub fn end(mut self) -> Vec<u8> {
        self.0.push(b']');
        self.0
    }
}
