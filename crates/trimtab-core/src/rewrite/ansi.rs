//! Lines as a terminal shows them. Colours, titles and links go, and of a line that was written over again and again its last state
//! stays. An overwritten error line stays too. The ends of lines and trailing blanks stay.

use memchr::memchr2;

use crate::{digest::is_error_line, terminal::without_escapes};

/// Takes the codes out; nothing where there are none.
pub(super) fn strip_codes(text: &str) -> Option<String> {
    memchr2(0x1b, b'\r', text.as_bytes())?;
    let mut plain = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            plain.push('\n');
        }
        push_line(line, &mut plain);
    }
    (plain.len() < text.len()).then_some(plain)
}

fn push_line(line: &str, plain: &mut String) {
    // Codes first: what follows a carriage return may be nothing but codes, and then nothing was written over.
    let line = without_escapes(line);
    let body = line.trim_end_matches('\r');
    let mut states = body.rsplit('\r');
    let last = states.next().unwrap_or_default();
    plain.push_str(if states.any(is_error_line) { body } else { last });
    // One carriage return belongs to the line's end, as some systems write it.
    if body.len() < line.len() {
        plain.push('\r');
    }
}
