//! The stream that Bedrock answers with. Takes bytes as they arrive; gives the JSON event of every message in them. Used by
//! `usage`, which only looks: sums of bytes are not checked.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;

/// Bytes of a message before its headers: its length, that of its headers, and a sum.
const PRELUDE: usize = 12;
/// Bytes after the payload of a message: a checksum.
const END: usize = 4;

/// The messages of one answer.
#[derive(Debug, Default)]
pub(crate) struct EventStream {
    /// What has come of a message.
    open: Vec<u8>,
    /// Whether something came that is no message: where the next one begins is not known then.
    is_broken: bool,
}

/// What a message carries: an event, written in base64.
#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(borrow)]
    bytes: &'a str,
}

impl EventStream {
    /// Takes the next bytes; hands on the events in messages of at most `longest` bytes that have come whole.
    pub(crate) fn feed(&mut self, bytes: &[u8], longest: usize, mut event: impl FnMut(&[u8])) {
        if self.is_broken {
            return;
        }
        self.open.extend_from_slice(bytes);
        let mut left = self.open.as_slice();
        while let Some(length) = length_at(left, 0) {
            let Some(headers) = length_at(left, 4) else { break };
            if length > longest || length < headers.saturating_add(PRELUDE + END) {
                self.is_broken = true;
                break;
            }
            let Some((message, rest)) = left.split_at_checked(length) else { break };
            left = rest;
            let carried = message.get(PRELUDE + headers..length - END).unwrap_or_default();
            let payload = serde_json::from_slice::<Payload<'_>>(carried).ok();
            if let Some(decoded) = payload.and_then(|payload| STANDARD.decode(payload.bytes).ok()) {
                event(&decoded);
            }
        }
        let read = self.open.len() - left.len();
        self.open.drain(..read);
        if self.is_broken {
            self.open = Vec::new();
        }
    }
}

/// Reads a length of four bytes, the first of which counts most.
fn length_at(bytes: &[u8], at: usize) -> Option<usize> {
    let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(four)).ok()
}

/// Writes a message as Bedrock does, with sums of zero.
#[cfg(test)]
pub(crate) fn write_message(event: &str) -> Vec<u8> {
    // `:event-type` is `chunk`: a name with its length, the kind of its value, the value with its length.
    let headers = b"\x0b:event-type\x07\x00\x05chunk";
    let carried = format!(r#"{{"bytes":"{}","p":"abc"}}"#, STANDARD.encode(event));
    let length = PRELUDE + headers.len() + carried.len() + END;
    let four = |number: usize| u32::try_from(number).unwrap().to_be_bytes();
    [&four(length)[..], &four(headers.len()), &[0; 4], headers, carried.as_bytes(), &[0; 4]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stream: &[u8], expected: &[&str]) {
        for size in [1, 5, 1000] {
            let (mut found, mut reader) = (Vec::new(), EventStream::default());
            for bytes in stream.chunks(size) {
                reader.feed(bytes, 200, |event| found.push(String::from_utf8(event.to_vec()).unwrap()));
            }
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn events_are_found_however_they_arrive() {
        check(&[write_message("one"), write_message(r#"{"two":2}"#)].concat(), &["one", r#"{"two":2}"#]);
        check(&write_message("one")[..20], &[]);
        check(b"", &[]);
    }

    #[test]
    fn what_is_no_message_ends_the_reading() {
        check(&[&write_message("one")[..], &[0; 16], &write_message("two")].concat(), &["one"]);
        check(&[write_message("one"), write_message(&"long".repeat(200))].concat(), &["one"]);
        check(b"data: this is another kind of stream", &[]);
    }
}
