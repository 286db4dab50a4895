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

/// Returns a line without the sequences that tell a terminal something: colours, places, titles, links.
pub(crate) fn without_escapes(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = memchr(ESCAPE, rest.as_bytes()) {
        let (before, sequence) = rest.split_at_checked(at).unwrap_or((rest, ""));
        plain.push_str(before);
        rest = sequence.get(sequence_length(sequence)..).unwrap_or_default();
    }
    plain.push_str(rest);
    plain
}

const ESCAPE: u8 = 0x1b;

/// Returns how many bytes the sequence has with which a text begins.
fn sequence_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let run = |from: usize, of: std::ops::RangeInclusive<u8>| {
        bytes.iter().skip(from).take_while(|byte| of.contains(byte)).count()
    };
    match bytes.get(1) {
        // A control sequence: parameters, what stands between, and one letter that ends it.
        Some(b'[') => {
            let parameters = 2 + run(2, 0x30..=0x3f);
            let end = parameters + run(parameters, 0x20..=0x2f);
            end + run(end, 0x40..=0x7e).min(1)
        }
        // A command for the terminal, a title or a link: it ends with a bell or with `ESC \`. One without an end is no command.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            let rest = bytes.get(2..).unwrap_or_default();
            let end = memchr2(0x07, ESCAPE, rest);
            end.map_or(2, |end| 2 + end + if rest.get(end) == Some(&ESCAPE) { 2 } else { 1 })
        }
        // A choice of letters and the like: what stands between, and one byte that ends it.
        Some(0x20..=0x2f) => {
            let end = 1 + run(1, 0x20..=0x2f);
            end + run(end, 0x30..=0x7e).min(1)
        }
        Some(0x30..=0x7e) => 2,
        Some(_) | None => 1,
    }
}
