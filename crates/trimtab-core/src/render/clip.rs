//! Bounds what a note quotes. Takes names, commands and contents from anywhere; gives one short line. Never lets a line end,
//! an escape or an endless name into a note.

/// Returns a text on one line, at most `most` characters long: the middle makes room.
pub(super) fn clip_middle(text: &str, most: usize) -> String {
    let line = one_line(text);
    let length = line.chars().count();
    if length <= most {
        return line;
    }
    let head = most.saturating_sub(1).div_ceil(2);
    let tail = most.saturating_sub(1) - head;
    line.chars().take(head).chain(['…']).chain(line.chars().skip(length - tail)).collect()
}

/// Returns the beginning of a text on one line, at most `most` characters long.
pub(super) fn beginning(text: &str, most: usize) -> String {
    // Four bytes a character at most, and as much again for blanks that fall away.
    let start = text.get(..text.floor_char_boundary(most * 8)).unwrap_or(text);
    let line = one_line(start);
    if line.chars().count() <= most && start.len() == text.len() {
        return line;
    }
    line.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text
        .split(|letter: char| letter.is_whitespace() || letter.is_control())
        .filter(|word| !word.is_empty())
    {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Writes a number with commas between thousands.
pub(super) fn format_number(number: u64) -> String {
    let digits = number.to_string();
    let mut written = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            written.push(',');
        }
        written.push(digit);
    }
    written
}

/// Writes a number and the name of what it counts.
pub(super) fn count_with_name(count: usize, one: &str, many: &str) -> String {
    let name = if count == 1 { one } else { many };
    format!("{} {name}", format_number(u64::try_from(count).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(clip_middle("short", 10), "short");
        assert_eq!(clip_middle("0123456789abcdef", 9), "0123…cdef");
        assert_eq!(clip_middle("日本語のとても長い名前", 5), "日本…名前");
        assert_eq!(clip_middle("a\nb\t c\u{1b}[0m", 20), "a b c [0m");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(format_number), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(count_with_name(1, "line", "lines"), "1 line");
        assert_eq!(count_with_name(2000, "line", "lines"), "2,000 lines");
    }

    #[test]
    fn a_beginning_says_that_it_goes_on() {
        assert_eq!(beginning("use std;\n\nfn main", 100), "use std; fn main");
        assert_eq!(beginning("abcdefgh", 4), "abc…");
    }
}
