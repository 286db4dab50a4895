//! Finds where everything is in a JSON text. Takes bytes; gives a flat tape of nodes that point back
//! into them, and small readers over it. Never copies, re-orders or re-serialises what it read, and
//! never recurses: depth costs memory, not stack.

mod scan;
mod text;
mod value;
mod write;

pub(crate) use scan::scan_after;
pub use scan::{Tape, scan, scan_first};
pub use text::{decode, encode};
pub use value::{JsonKind, Value};
pub use write::{Array, Object};

use std::{fmt, ops::Range};

/// The largest JSON text that is read: 1 GiB, thirty times what any provider accepts.
pub const MAX_JSON_BYTES: usize = 1 << 30;

/// A half-open range of bytes in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(crate) const fn new(start: u32, end: u32) -> Span {
        Span { start, end }
    }

    /// Returns the offset of the first byte.
    pub fn start(self) -> usize {
        widen(self.start)
    }

    /// Returns the offset after the last byte.
    pub fn end(self) -> usize {
        widen(self.end)
    }

    /// Returns the number of bytes covered.
    pub fn len(self) -> usize {
        widen(self.end.saturating_sub(self.start))
    }

    /// Tells whether no byte is covered.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Returns the offsets as a range, for slicing.
    pub fn range(self) -> Range<usize> {
        self.start()..self.end().max(self.start())
    }

    /// Returns the bytes of `text` that the span covers, or nothing where it lies outside.
    pub fn bytes_in(self, text: &[u8]) -> &[u8] {
        text.get(self.range()).unwrap_or_default()
    }

    pub(crate) fn shift_by(self, by: i64) -> Span {
        Span { start: shift_offset(self.start, by), end: shift_offset(self.end, by) }
    }
}

/// A text that is not the JSON it should be, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct JsonError {
    /// Offset of the byte that does not fit.
    pub offset: usize,
    /// Line of that byte, counted from 1.
    pub line: usize,
    /// Column of that byte, counted from 1 in bytes.
    pub column: usize,
    /// What would have fitted there.
    pub expected: &'static str,
    /// What stands there instead; nothing where the text breaks off.
    pub found: Option<String>,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JsonError { line, column, expected, found, .. } = self;
        match found {
            None => write!(f, "line {line}, column {column}: it breaks off where {expected} was expected"),
            Some(found) => write!(f, "line {line}, column {column}: expected {expected}, found {found}"),
        }
    }
}

impl JsonError {
    /// Says what was expected at an offset, and what stands there.
    pub fn from_offset(text: &[u8], offset: usize, expected: &'static str) -> JsonError {
        let before = text.get(..offset).unwrap_or(text);
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let column = offset - memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1) + 1;
        let found = text.get(offset).map(|byte| match byte {
            byte if byte.is_ascii_graphic() => format!("`{}`", char::from(*byte)),
            byte => format!("byte 0x{byte:02x}"),
        });
        JsonError { offset, line, column, expected, found }
    }
}

/// Offsets are kept in 32 bits: texts are at most [`MAX_JSON_BYTES`] long, which the scanner checks.
pub fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// Returns such an offset, or any other index in 32 bits, as the index of a slice.
pub fn widen(offset: u32) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

fn shift_offset(offset: u32, by: i64) -> u32 {
    u32::try_from(i64::from(offset).saturating_add(by)).unwrap_or(u32::MAX)
}
