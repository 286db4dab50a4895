//! Lines as a terminal shows them. Colours, titles and links go, and of a line that was written over again and again its last state
//! stays. An overwritten error line stays too. The ends of lines and trailing blanks stay.

use memchr::{memchr, memchr2};

use crate::{
    digest::is_error_line,
    terminal::{as_terminal_shows, without_escapes},
};

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
    let body = line.trim_end_matches('\r');
    // One carriage return belongs to the line's end, as some systems write it.
    let end = if body.len() < line.len() { "\r" } else { "" };
    if memchr(b'\r', body.as_bytes()).is_some() && body.split('\r').any(is_error_line) {
        plain.push_str(&without_escapes(body));
    } else {
        plain.push_str(&as_terminal_shows(body));
    }
    plain.push_str(end);
}
