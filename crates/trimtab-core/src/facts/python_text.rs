//! Values as Python prints them. Takes the text of a list or dictionary (`[{'name': 'search', 'arguments': None}]`); gives the
//! same value as JSON. Never runs anything: what is no plain value gives nothing.

use crate::json::encode;

/// Reads the value at the beginning of a text as JSON, up to the bracket that closes it.
pub(super) fn json_of(text: &str) -> Option<String> {
    let mut json: Vec<u8> = Vec::new();
    let mut depth = 0_usize;
    let mut rest = text.trim_start();
    while let Some(letter) = rest.chars().next() {
        let length = match letter {
            '\'' | '"' => push_string(rest, &mut json)?,
            '[' | '{' | '(' => {
                depth += 1;
                push_letter(if letter == '(' { '[' } else { letter }, &mut json);
                1
            }
            ']' | '}' | ')' => {
                push_letter(if letter == ')' { ']' } else { letter }, &mut json);
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return String::from_utf8(json).ok();
                }
                1
            }
            letter if letter.is_ascii_alphabetic() => push_word(rest, &mut json)?,
            letter => push_letter(letter, &mut json),
        };
        if depth == 0 {
            return None;
        }
        rest = rest.get(length..)?;
    }
    None
}

/// Writes a letter as it is; returns its length.
fn push_letter(letter: char, json: &mut Vec<u8>) -> usize {
    json.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    letter.len_utf8()
}

/// Writes a name that stands for a value; returns its length.
fn push_word(text: &str, json: &mut Vec<u8>) -> Option<usize> {
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(text.len());
    json.extend_from_slice(match text.get(..end)? {
        "True" | "true" => b"true",
        "False" | "false" => b"false",
        "None" | "null" => b"null",
        _ => return None,
    });
    Some(end)
}

/// Writes a quoted text; returns its length.
fn push_string(text: &str, json: &mut Vec<u8>) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut value = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            letter if letter == quote => {
                encode(&value, json);
                return Some(at + 1);
            }
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                mark @ ('x' | 'u' | 'U') => {
                    let digits = match mark {
                        'x' => 2,
                        'u' => 4,
                        _ => 8,
                    };
                    let code: String = letters.by_ref().take(digits).map(|(_, digit)| digit).collect();
                    value.push(
                        u32::from_str_radix(&code, 16).ok().and_then(char::from_u32).unwrap_or('\u{fffd}'),
                    );
                }
                other => value.push(other),
            },
            letter => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_values_are_read_as_json() {
        let check =
            |text: &str, expected: Option<&str>| assert_eq!(json_of(text).as_deref(), expected, "{text}");
        check(
            "[{'a': 'it\\'s', \"b\": None, 'c': [1, -2.5, True]}] and more",
            Some(r#"[{"a": "it's", "b": null, "c": [1, -2.5, true]}]"#),
        );
        check("{'a': \"say \\\"hi\\\"\\n\\x41\"}", Some("{\"a\": \"say \\\"hi\\\"\\nA\"}"));
        check("[('x', 'y')]", Some(r#"[["x", "y"]]"#));
        check("[{'a': <object at 0x7f>}]", None);
        check("['open", None);
        check("plain", None);
    }
}
