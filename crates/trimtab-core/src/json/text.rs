//! Decodes and encodes the contents of JSON strings. Takes bytes between quotes or plain text; gives the
//! other. Never fails: an escape that is none stands for itself, half a surrogate pair becomes U+FFFD.

use std::borrow::Cow;

use memchr::memchr;

/// Returns the text that a JSON string's contents (without its quotes) stand for.
pub fn decode(contents: &[u8]) -> Cow<'_, str> {
    let Some(first) = memchr(b'\\', contents) else { return String::from_utf8_lossy(contents) };
    let mut text = Vec::with_capacity(contents.len());
    let mut rest = contents;
    let mut next = Some(first);
    while let Some(at) = next {
        let (plain, escape) = rest.split_at(at.min(rest.len()));
        text.extend_from_slice(plain);
        rest = escape.get(unescape(escape, &mut text)..).unwrap_or_default();
        next = memchr(b'\\', rest);
    }
    text.extend_from_slice(rest);
    Cow::Owned(match String::from_utf8(text) {
        Ok(text) => text,
        Err(broken) => String::from_utf8_lossy(broken.as_bytes()).into_owned(),
    })
}

/// Writes what the escape at the start of `escape` stands for; returns how many bytes it took.
fn unescape(escape: &[u8], text: &mut Vec<u8>) -> usize {
    let byte = match escape.get(1) {
        Some(b'n') => b'\n',
        Some(b't') => b'\t',
        Some(b'r') => b'\r',
        Some(b'b') => 0x08,
        Some(b'f') => 0x0c,
        Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
        Some(b'u') => return unescape_unicode(escape, text),
        Some(_) | None => {
            text.push(b'\\');
            return 1;
        }
    };
    text.push(byte);
    2
}

fn unescape_unicode(escape: &[u8], text: &mut Vec<u8>) -> usize {
    let Some(first) = code_unit(escape) else {
        text.push(b'\\');
        return 1;
    };
    let second = escape.get(6..).filter(|rest| rest.starts_with(b"\\u")).and_then(code_unit);
    let pair = second.and_then(|second| char::decode_utf16([first, second]).next());
    let (letter, length) = match (char::from_u32(u32::from(first)), pair) {
        (Some(letter), _) => (letter, 6),
        (None, Some(Ok(letter))) => (letter, 12),
        (None, _) => (char::REPLACEMENT_CHARACTER, 6),
    };
    text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    length
}

fn code_unit(escape: &[u8]) -> Option<u16> {
    let digits = escape.get(2..6)?;
    digits.iter().try_fold(0_u16, |unit, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(digit).ok()?)
    })
}

/// How many bytes are looked at together for one that needs an escape: as many as a register of the machine holds.
const TOGETHER: usize = 16;

/// Appends `text` as a JSON string with its quotes.
pub fn encode(text: &str, json: &mut Vec<u8>) {
    json.reserve(text.len() + text.len() / 16 + 2);
    json.push(b'"');
    let mut rest = text.as_bytes();
    // Runs without an escape are copied at once.
    while let Some(at) = first_escaped(rest) {
        let (plain, escaped) = rest.split_at(at);
        json.extend_from_slice(plain);
        let Some((byte, after)) = escaped.split_first() else { break };
        match byte {
            b'"' | b'\\' => json.extend_from_slice(&[b'\\', *byte]),
            b'\n' => json.extend_from_slice(b"\\n"),
            b'\t' => json.extend_from_slice(b"\\t"),
            b'\r' => json.extend_from_slice(b"\\r"),
            _ => json.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
        rest = after;
    }
    json.extend_from_slice(rest);
    json.push(b'"');
}

/// Finds the first byte that cannot stand in a JSON string as it is.
fn first_escaped(bytes: &[u8]) -> Option<usize> {
    let needs = |byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\');
    let (chunks, rest) = bytes.as_chunks::<TOGETHER>();
    // Without a way out in the middle the compiler looks at a whole chunk at once.
    let found = |chunk: &[u8; TOGETHER]| chunk.iter().fold(false, |found, byte| found | needs(byte));
    match chunks.iter().position(found) {
        Some(at) => chunks.get(at)?.iter().position(needs).map(|within| at * TOGETHER + within),
        None => rest.iter().position(needs).map(|within| chunks.len() * TOGETHER + within),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    fn check(contents: &str, text: &str) {
        assert_eq!(decode(contents.as_bytes()), text);
    }

    #[test]
    fn escapes_stand_for_their_characters() {
        check(r#"a\n\t\r\b\f\"\\\/z"#, "a\n\t\r\u{8}\u{c}\"\\/z");
        check(r"\u00e9\u4e2d\ud83d\ude00", "é中😀");
        check("é中😀", "é中😀");
    }

    #[test]
    fn what_is_no_escape_stands_for_itself() {
        check(r"\x41", r"\x41");
        check(r"\u12", r"\u12");
        check("\\", "\\");
    }

    #[test]
    fn half_a_surrogate_pair_becomes_the_replacement_character() {
        check(r"a\ud83dz", "a\u{fffd}z");
        check(r"\ud83d\u0041", "\u{fffd}A");
        check(r"\ude00\ud83d", "\u{fffd}\u{fffd}");
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding_as_serde_json_does(text in any::<String>()) {
            let mut json = Vec::new();
            encode(&text, &mut json);
            assert_eq!(serde_json::from_slice::<String>(&json).expect("valid JSON"), text);
            assert_eq!(decode(&json[1..json.len() - 1]), text);
            let theirs = serde_json::to_string(&text).expect("a string");
            assert_eq!(decode(&theirs.as_bytes()[1..theirs.len() - 1]), text);
        }
    }
}
