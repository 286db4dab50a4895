//! Lines as a terminal would show them: without colours, and of a progress display its last state. And the number that a tool puts
//! before a line that it shows: `digest` and `files` take it off, each with the marks it knows.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memrchr};

/// Returns a line as a terminal would show it.
pub fn as_terminal_shows(line: &str) -> Cow<'_, str> {
    if memchr2(b'\r', 0x1b, line.as_bytes()).is_none() {
        return Cow::Borrowed(line);
    }
    let line = line.trim_end_matches('\r');
    let line = memrchr(b'\r', line.as_bytes()).and_then(|back| line.get(back + 1..)).unwrap_or(line);
    if memchr(0x1b, line.as_bytes()).is_none() {
        Cow::Borrowed(line)
    } else {
        Cow::Owned(without_escapes(line))
    }
}

/// Splits a line after the digits that it begins with, blanks before them taken off; none where it begins with no digit.
pub(crate) fn split_line_number(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches(' ');
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 { None } else { line.split_at_checked(digits) }
}

fn without_escapes(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            plain.push(letter);
            continue;
        }
        match letters.next() {
            // A control sequence ends with its first letter, an operating system command with a bell.
            Some('[') => while letters.next().is_some_and(|letter| !('@'..='~').contains(&letter)) {},
            Some(']') => while letters.next().is_some_and(|letter| letter != '\u{7}') {},
            Some(_) | None => {}
        }
    }
    plain
}
