//! Answers that fit. Takes a text and the most letters that an answer may have; gives its beginning in whole lines and where to
//! go on. Never changes what it gives: all pieces in order are the text.

/// Some lines of a text, as they were asked for: counted from 1, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineRange {
    pub(super) first: usize,
    pub(super) last: usize,
}

impl LineRange {
    pub(super) const ALL: LineRange = LineRange { first: 1, last: usize::MAX };

    /// Reads `12-40`, `12-` or `12`.
    pub(super) fn parse(words: &str) -> Option<LineRange> {
        let number = |word: &str| word.trim().parse::<usize>().ok().filter(|number| *number > 0);
        let range = match words.split_once('-') {
            None => LineRange { first: number(words)?, last: number(words)? },
            Some((first, "")) => LineRange { first: number(first)?, last: usize::MAX },
            Some((first, last)) => LineRange { first: number(first)?, last: number(last)? },
        };
        (range.first <= range.last).then_some(range)
    }

    /// Returns these lines of a text, with their line breaks.
    pub(super) fn lines_of(self, text: &str) -> &str {
        let starts = || std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
        let start = starts().nth(self.first - 1).unwrap_or(text.len());
        let end = starts().nth(self.last).unwrap_or(text.len());
        text.get(start..end).unwrap_or_default()
    }
}

/// The beginning of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BoundedText<'a> {
    pub(super) shown: &'a str,
    pub(super) rest: RemainingText,
}

/// What is not in an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RemainingText {
    Nothing,
    /// So many lines are shown; the others are not.
    AfterLines(usize),
    /// The first line is too long by itself: so many letters of it are shown.
    InLine(usize),
}

/// Returns as many whole lines as fit into so many letters; a part of the first line where that alone does not fit.
pub(super) fn bound_text(text: &str, most: usize) -> BoundedText<'_> {
    let Some((limit, _)) = text.char_indices().nth(most) else {
        return BoundedText { shown: text, rest: RemainingText::Nothing };
    };
    let fitting = text.get(..limit).unwrap_or_default();
    match fitting.rfind('\n') {
        Some(end) => {
            let shown = text.get(..=end).unwrap_or_default();
            BoundedText { shown, rest: RemainingText::AfterLines(shown.matches('\n').count()) }
        }
        None => BoundedText { shown: fitting, rest: RemainingText::InLine(most) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, most: usize, shown: &str, rest: RemainingText) {
        assert_eq!(bound_text(text, most), BoundedText { shown, rest }, "{text:?} in {most}");
    }

    #[test]
    fn whole_lines_are_given_as_far_as_they_fit() {
        check("one\ntwo\nthree", 13, "one\ntwo\nthree", RemainingText::Nothing);
        check("one\ntwo\nthree", 12, "one\ntwo\n", RemainingText::AfterLines(2));
        check("one\ntwo\n", 8, "one\ntwo\n", RemainingText::Nothing);
        check("", 0, "", RemainingText::Nothing);
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_between_letters() {
        check("éééé", 3, "ééé", RemainingText::InLine(3));
        check("abcdef\nx", 3, "abc", RemainingText::InLine(3));
    }

    #[test]
    fn lines_are_read_as_people_write_them() {
        let range = |first, last| Some(LineRange { first, last });
        assert_eq!(LineRange::parse("3-5"), range(3, 5));
        assert_eq!(LineRange::parse(" 3 - 5 "), range(3, 5));
        assert_eq!(LineRange::parse("7"), range(7, 7));
        assert_eq!(LineRange::parse("7-"), range(7, usize::MAX));
        for wrong in ["", "0-3", "5-3", "a-b", "-3", "1-2-3"] {
            assert_eq!(LineRange::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lines_are_taken_with_their_breaks() {
        let text = "one\ntwo\nthree";
        let of = |first, last| LineRange { first, last }.lines_of(text);
        assert_eq!((of(1, 1), of(2, 3), of(3, 9), of(4, 9)), ("one\n", "two\nthree", "three", ""));
        assert_eq!(LineRange::ALL.lines_of(text), text);
    }
}
