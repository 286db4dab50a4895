//! JSON without the blanks between its tokens. Keys, their order, numbers and strings stay byte for byte.

use crate::json::scan;

/// Takes the blanks out; nothing where the text is not one JSON object or array.
pub(super) fn strip_blanks(text: &str) -> Option<String> {
    let json = text.trim_matches([' ', '\t', '\r', '\n']);
    let looks =
        (json.starts_with('{') && json.ends_with('}')) || (json.starts_with('[') && json.ends_with(']'));
    if !looks || scan(json.as_bytes()).is_err() {
        return None;
    }
    let mut compact = String::with_capacity(json.len());
    let mut rest = json;
    while !rest.is_empty() {
        if rest.starts_with('"') {
            let (string, behind) = rest.split_at_checked(string_length(rest)?)?;
            compact.push_str(string);
            rest = behind;
            continue;
        }
        let end = rest.find('"').unwrap_or(rest.len());
        let (between, behind) = rest.split_at_checked(end)?;
        compact.extend(between.chars().filter(|letter| !matches!(letter, ' ' | '\t' | '\r' | '\n')));
        rest = behind;
    }
    Some(compact)
}

/// Returns how many bytes the string has with which a text begins, its quotes included.
fn string_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}
