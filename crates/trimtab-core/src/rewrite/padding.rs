//! Line numbers without padding: `    12→use std;` becomes `12→use std;`. The inverse aligns them again, to the width that the mark
//! after the number means, and a text is only rewritten where that gives every byte back. The first line of a text is
//! unchanged: some clients trim the blanks at the beginning of a result, and afterwards nothing would tell whether they did.

/// How a tool writes the numbers of lines.
struct NumberStyle {
    /// The letter that fills a number that is too short.
    fill: char,
    /// How many characters a number has at least, with its filling.
    width: usize,
    /// What stands between the number and the line.
    mark: &'static str,
}

/// Claude Code; `cat -n` and `nl`, with which most other agents number lines; earlier versions of opencode.
const STYLES: &[NumberStyle] = &[
    NumberStyle { fill: ' ', width: 6, mark: "→" },
    NumberStyle { fill: ' ', width: 6, mark: "\t" },
    NumberStyle { fill: '0', width: 5, mark: "| " },
];

/// Takes the padding off; nothing where there is none, or where it could not be put back.
pub(super) fn strip_padding(text: &str) -> Option<String> {
    let is_padded =
        |style: &&NumberStyle| text.split('\n').skip(1).any(|line| style.without_padding(line).is_some());
    let style = STYLES.iter().find(is_padded)?;
    let mut bare = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            bare.push('\n');
        }
        bare.push_str(style.without_padding(line).filter(|_| index > 0).unwrap_or(line));
    }
    style.is_padded_again(&bare, text).then_some(bare)
}

impl NumberStyle {
    /// Returns a line from its number's first digit on; nothing for a line without padding.
    fn without_padding<'a>(&self, line: &'a str) -> Option<&'a str> {
        let first = line.chars().next()?;
        if first != self.fill {
            return None;
        }
        let bare = line.trim_start_matches(self.fill);
        let digits = self.digits_before_mark(bare)?;
        (line.len() - bare.len() + digits == self.width).then_some(bare)
    }

    /// Returns how many digits there are up to the mark, at the beginning of a line; nothing where it does not begin so.
    fn digits_before_mark(&self, line: &str) -> Option<usize> {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let rest = line.get(digits..)?;
        (digits > 0 && rest.starts_with(self.mark)).then_some(digits)
    }

    /// Tells whether a text with its numbers aligned again is the other one: the inverse, without making it.
    fn is_padded_again(&self, bare: &str, padded: &str) -> bool {
        let mut lines = padded.split('\n');
        let all = bare.split('\n').enumerate().all(|(index, line)| {
            let digits = self.digits_before_mark(line).filter(|_| index > 0);
            let missing = digits.map_or(0, |digits| self.width.saturating_sub(digits));
            let before = lines.next();
            let fill = before.and_then(|before| before.get(..missing));
            let rest = before.and_then(|before| before.get(missing..));
            rest == Some(line) && fill.is_some_and(|fill| fill.chars().all(|letter| letter == self.fill))
        });
        all && lines.next().is_none()
    }
}
