//! Text from outside on a terminal. Names of models and tools, paths, titles and what tools printed may hold characters that steer a
//! terminal, forge a line of a log or show words in another order: these functions write them as `\u001b`, which JSON reads too.

use std::borrow::Cow;

/// Tells whether a character may be written to a terminal: it is no control character (C0, C1) and does not turn the direction of
/// what follows. Line breaks and tabs are for the caller to allow.
pub(crate) fn is_plain(letter: char) -> bool {
    let turns = matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !letter.is_control() && !turns && !matches!(letter, '\u{2028}' | '\u{2029}')
}

/// Returns a text of several lines as a terminal may show it: line breaks and tabs stay.
pub(crate) fn escape_text(text: &str) -> Cow<'_, str> {
    escape_except(text, |letter| is_plain(letter) || matches!(letter, '\n' | '\t'))
}

/// Returns a name as one line may show it.
pub(crate) fn escape_name(text: &str) -> Cow<'_, str> {
    escape_except(text, is_plain)
}

/// Returns a line of ours: its colours stay, everything else that steers a terminal is escaped.
pub(crate) fn escape_styled(line: &str) -> Cow<'_, str> {
    if line.chars().all(|letter| is_plain(letter) || matches!(letter, '\n' | '\t')) {
        return Cow::Borrowed(line);
    }
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\u{1b}') {
        let (before, from) = rest.split_at(at);
        let length = style_length(from);
        shown += &escape_text(before);
        // What begins no style is a character like any other.
        let (style, behind) = from.split_at_checked(length.max(1)).unwrap_or((from, ""));
        shown += &if length > 0 { Cow::Borrowed(style) } else { escape_text(style) };
        rest = behind;
    }
    shown += &escape_text(rest);
    Cow::Owned(shown)
}

/// Returns how many bytes a style at the beginning of a text has: `ESC [ 1 ; 31 m`. None where there is none.
fn style_length(text: &str) -> usize {
    let Some(inside) = text.strip_prefix("\u{1b}[") else { return 0 };
    let length = inside.find(|letter: char| !letter.is_ascii_digit() && letter != ';');
    match length {
        Some(length) if inside.as_bytes().get(length) == Some(&b'm') => length + 3,
        _ => 0,
    }
}

fn escape_except(text: &str, may_stay: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&may_stay) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if may_stay(letter) {
            shown.push(letter);
        } else {
            shown += &format!("\\u{:04x}", u32::from(letter));
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_written_out() {
        assert_eq!(escape_text("a\u{1b}]52;c;QQ==\u{7}b"), "a\\u001b]52;c;QQ==\\u0007b");
        assert_eq!(escape_text("\u{9b}31m \u{202e}evil\u{2066}"), "\\u009b31m \\u202eevil\\u2066");
        assert_eq!(escape_text("one\n\ttwo\r"), "one\n\ttwo\\u000d");
        assert_eq!(escape_name("m\ntrimtab: forged"), "m\\u000atrimtab: forged");
        assert!(matches!(escape_text("plain é 中 👩‍💻"), Cow::Borrowed(_)));
    }

    #[test]
    fn colours_of_ours_stay_and_nothing_else_does() {
        assert_eq!(escape_styled("\u{1b}[1;31mred\u{1b}[0m"), "\u{1b}[1;31mred\u{1b}[0m");
        assert_eq!(escape_styled("\u{1b}[2J\u{1b}]0;t\u{7}\u{1b}"), "\\u001b[2J\\u001b]0;t\\u0007\\u001b");
        assert_eq!(escape_styled("\u{1b}[31mé\u{85}"), "\u{1b}[31mé\\u0085");
    }
}
