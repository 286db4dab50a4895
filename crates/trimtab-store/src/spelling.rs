//! How a client writes a text as a JSON string. Takes a text and the string that stood in a request; gives the way of
//! writing that makes exactly this string of it, so that the text alone needs to be kept.

use std::fmt::Write;

/// A way of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonSpelling {
    /// The bytes themselves: what is not a string.
    Raw,
    /// Only what must be escaped is: JavaScript, serde, Go without HTML escapes.
    Plain,
    /// Letters outside ASCII are escaped: Python's default.
    Ascii,
    /// `<`, `>` and `&` are escaped too: Go's default.
    Html,
}

impl JsonSpelling {
    pub(crate) fn number(self) -> u8 {
        match self {
            JsonSpelling::Raw => 0,
            JsonSpelling::Plain => 1,
            JsonSpelling::Ascii => 2,
            JsonSpelling::Html => 3,
        }
    }

    pub(crate) fn of_number(number: u8) -> Option<JsonSpelling> {
        let all = [JsonSpelling::Raw, JsonSpelling::Plain, JsonSpelling::Ascii, JsonSpelling::Html];
        all.into_iter().find(|spelling| spelling.number() == number)
    }

    /// Finds the way of writing that makes `string` of `text`.
    pub(crate) fn find_spelling(text: &str, string: &[u8]) -> Option<JsonSpelling> {
        let makes = |spelling: &JsonSpelling| {
            let mut written = Vec::with_capacity(string.len());
            spelling.write_text(text.as_bytes(), &mut written);
            written == string
        };
        [JsonSpelling::Plain, JsonSpelling::Ascii, JsonSpelling::Html].into_iter().find(makes)
    }

    /// Writes a text this way, with its quotes.
    pub(crate) fn write_text(self, text: &[u8], out: &mut Vec<u8>) {
        if self == JsonSpelling::Raw {
            return out.extend_from_slice(text);
        }
        out.push(b'"');
        for letters in text.utf8_chunks() {
            self.write_letters(letters.valid(), out);
        }
        out.push(b'"');
    }

    fn write_letters(self, text: &str, out: &mut Vec<u8>) {
        let mut plain = 0;
        for (at, letter) in text.char_indices() {
            if !self.must_escape(letter) {
                continue;
            }
            out.extend_from_slice(text.get(plain..at).unwrap_or_default().as_bytes());
            plain = at + letter.len_utf8();
            escape_letter(letter, out);
        }
        out.extend_from_slice(text.get(plain..).unwrap_or_default().as_bytes());
    }

    fn must_escape(self, letter: char) -> bool {
        match letter {
            '"' | '\\' | '\0'..='\x1f' => true,
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if self == JsonSpelling::Html => true,
            '\u{80}'.. => self == JsonSpelling::Ascii,
            _ => false,
        }
    }
}

fn escape_letter(letter: char, out: &mut Vec<u8>) {
    let short = match letter {
        '"' => b'"',
        '\\' => b'\\',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        '\x08' => b'b',
        '\x0c' => b'f',
        _ => {
            let mut escaped = String::with_capacity(12);
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
            return out.extend_from_slice(escaped.as_bytes());
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, string: &str, expected: Option<JsonSpelling>) {
        assert_eq!(JsonSpelling::find_spelling(text, string.as_bytes()), expected, "{string}");
    }

    #[test]
    fn each_client_s_way_of_writing_is_told() {
        check("a \"b\"\n\u{1}é", r#""a \"b\"\n\u0001é""#, Some(JsonSpelling::Plain));
        check("é😀", r#""\u00e9\ud83d\ude00""#, Some(JsonSpelling::Ascii));
        check("<b> & c", r#""\u003cb\u003e \u0026 c""#, Some(JsonSpelling::Html));
    }

    #[test]
    fn a_string_that_nobody_writes_like_this_is_kept_as_it_stands() {
        check("a/b", r#""a\/b""#, None);
        check("é", r#""\u00E9""#, None);
    }
}
