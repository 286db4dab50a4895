//! A block's text as digests see it: its lines, and what is known about it. Takes a text and an [`TextContext`]; gives lines with
//! and without what a terminal would not show. Never copies the text, never looks at what produced it.

use std::{borrow::Cow, ops::Range};

use crate::{
    facts::{ContentKind, Fact, Outcome, Subject, ToolKind},
    terminal::{as_terminal_shows, split_line_number},
};

/// What is known about a text besides the text.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TextContext<'a> {
    /// What it is made of; names and the text itself decide where it is empty.
    pub(crate) content: ContentKind,
    /// What the call did that gave it.
    pub(crate) kind: Option<ToolKind>,
    /// The tool that gave it.
    pub(crate) tool: Option<&'a str>,
    /// The command that printed it.
    pub(crate) command: Option<&'a str>,
    /// The file or directory it shows.
    pub(crate) path: Option<&'a str>,
    /// How the call ended.
    pub(crate) outcome: Outcome,
    /// The words of what is being done: of the task and of the call's own query. Given where a digest asks for them.
    pub(crate) terms: &'a [String],
}

impl<'a> TextContext<'a> {
    /// Returns what the facts of a block say, with the name of the tool.
    pub(crate) fn new(fact: &'a Fact, tool: Option<&'a str>) -> TextContext<'a> {
        let (command, path) = match fact.subject() {
            Subject::Command(command) => (Some(&**command), None),
            Subject::File { path, .. } | Subject::Directory { path, .. } => (None, Some(&**path)),
            Subject::Query { .. } | Subject::Url(_) | Subject::Nothing => (None, None),
        };
        let Fact { content, outcome, .. } = *fact;
        TextContext { content, kind: fact.tool(), tool, command, path, outcome, terms: &[] }
    }
}

/// A block's text, split into lines.
#[derive(Debug)]
pub(crate) struct DigestText<'a> {
    whole: &'a str,
    about: TextContext<'a>,
    /// Where each line begins; one more entry than lines, the last being the end of the text.
    starts: Vec<usize>,
}

impl<'a> DigestText<'a> {
    /// Splits a text into lines.
    pub(crate) fn new(whole: &'a str, about: TextContext<'a>) -> DigestText<'a> {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', whole.as_bytes()).map(|newline| newline + 1));
        if starts.last() != Some(&whole.len()) {
            starts.push(whole.len());
        }
        DigestText { whole, about, starts }
    }

    /// Returns the whole text.
    pub(crate) fn whole(&self) -> &'a str {
        self.whole
    }

    /// Returns what is known about it.
    pub(crate) fn context(&self) -> &TextContext<'a> {
        &self.about
    }

    /// Returns how many lines there are; a last line needs no line end.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Tells whether there is no line.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a line without its end; nothing where there is no such line.
    pub(crate) fn line(&self, index: usize) -> &'a str {
        let line = self.raw_lines(index..index + 1);
        let line = line.strip_suffix('\n').unwrap_or(line);
        line.strip_suffix('\r').unwrap_or(line)
    }

    /// Returns a line as a terminal would show it: without colours, and of a progress display its last state.
    pub(crate) fn terminal_line(&self, index: usize) -> Cow<'a, str> {
        as_terminal_shows(self.line(index))
    }

    /// Returns all lines without their ends.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &'a str> {
        (0..self.len()).map(|index| self.line(index))
    }

    /// Returns lines as they stand in the text, with their ends.
    pub(crate) fn raw_lines(&self, lines: Range<usize>) -> &'a str {
        let start = self.starts.get(lines.start).copied().unwrap_or(self.whole.len());
        let end = self.starts.get(lines.end).copied().unwrap_or(self.whole.len());
        self.whole.get(start..end).unwrap_or_default()
    }
}

/// Returns a line of a file as the file has it, where a tool put the line's number before it.
pub(crate) fn without_number(line: &str) -> &str {
    let Some((_, rest)) = split_line_number(line) else { return line };
    ["→", "\t", "|", ": ", ":"].iter().find_map(|mark| rest.strip_prefix(mark)).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, lines: &[&str]) {
        let split = DigestText::new(text, TextContext::default());
        assert_eq!(split.lines().collect::<Vec<_>>(), lines);
        assert_eq!(split.raw_lines(0..split.len()), text);
    }

    #[test]
    fn lines_are_what_stands_between_line_ends() {
        check("", &[]);
        check("\n", &[""]);
        check("a", &["a"]);
        check("a\nb\n", &["a", "b"]);
        check("a\r\nb\r\n\r\n", &["a", "b", ""]);
    }

    #[test]
    fn a_terminal_shows_no_escapes_and_the_last_state_of_progress() {
        assert_eq!(as_terminal_shows("\u{1b}[31merror\u{1b}[0m: no"), "error: no");
        assert_eq!(as_terminal_shows("10%\r50%\r100%"), "100%");
        assert_eq!(as_terminal_shows("\u{1b}]0;title\u{7}plain"), "plain");
        assert_eq!(as_terminal_shows("done\r"), "done");
    }

    #[test]
    fn a_line_number_is_not_part_of_the_line() {
        assert_eq!(without_number("    12→fn main() {"), "fn main() {");
        assert_eq!(without_number("12\tfn main() {"), "fn main() {");
        assert_eq!(without_number("  7: let x"), "let x");
        assert_eq!(without_number("    fn main() {"), "    fn main() {");
        assert_eq!(without_number("12 monkeys"), "12 monkeys");
    }
}
