//! What is known about one file at one moment. Takes operations one by one; gives the lines afterwards, each
//! known with the step that last showed or wrote it, or known to be unknown. Never keeps a line that the
//! conversation has put in doubt: what a later read contradicts takes everything it did not show with it.

use std::ops::Range;

use super::{
    hunks,
    line_maker::LineMaker,
    lines::{FileLines, LinePiece, LineRecord, LineRow},
    operation::{FileAction, FileEnd, Replacement, ShownLines},
    replacement,
};

/// How many characters of a file a preview shows.
const PREVIEW_CHARACTERS: usize = 200;

/// Whether there is such a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Existence {
    /// Nobody has said.
    Unknown,
    /// It is there.
    Present,
    /// It is not there, or no longer.
    Absent,
}

/// A known line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownLine<'a> {
    /// Its text, without the line break.
    pub text: &'a str,
    /// The step that last showed or wrote it.
    pub seen: u32,
}

/// Some lines in a row, all known or all unknown. The first line has the number `first`, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineRun<'a> {
    /// Lines that are known.
    Known {
        /// Number of the first line.
        first: usize,
        /// The lines.
        lines: Vec<KnownLine<'a>>,
    },
    /// Lines that exist, but what they hold is not known.
    Unknown {
        /// Number of the first line.
        first: usize,
        /// How many they are.
        count: usize,
    },
    /// Whatever follows the lines before: possibly nothing.
    Rest {
        /// Number of the line from which on nothing is known.
        first: usize,
    },
}

/// What is known about one file. Cloning it costs nothing.
#[derive(Debug, Clone)]
pub struct FileState {
    pub(super) lines: FileLines,
    end: FileEnd,
    existence: Existence,
    next_id: u32,
}

impl Default for FileState {
    fn default() -> FileState {
        FileState {
            lines: FileLines::new(Vec::new()),
            end: FileEnd::Open,
            existence: Existence::Unknown,
            next_id: 0,
        }
    }
}

impl FileState {
    /// Returns a line by its number, counted from 1, where it is known.
    pub fn line(&self, number: usize) -> Option<KnownLine<'_>> {
        self.lines.get(number.checked_sub(1)?).map(known_line)
    }

    /// Returns the text of the whole file, where all of it is known to the last line break.
    pub fn text(&self) -> Option<String> {
        let whole =
            self.existence == Existence::Present && self.end == FileEnd::Exact && self.lines.all_known();
        whole.then(|| join_lines(self.lines.iter().flatten()))
    }

    /// Returns how many lines the file has, where that is known; an empty text after the last line break is no
    /// line.
    pub fn line_count(&self) -> Option<usize> {
        let count = self.lines.len();
        let last_is_empty = self.lines.get(count.checked_sub(1)?)?.text.is_empty();
        match self.end {
            FileEnd::Open | FileEnd::EmptyLines => None,
            FileEnd::LineBreak => (!last_is_empty).then_some(count),
            FileEnd::Exact => Some(count - usize::from(last_is_empty)),
        }
    }

    /// Returns how many lines are known; an empty text after the last line break is no line.
    pub fn known_lines(&self) -> usize {
        let known = self.lines.iter().flatten().count();
        self.line_count().map_or(known, |count| known.min(count))
    }

    /// Tells whether the file is there.
    pub fn existence(&self) -> Existence {
        self.existence
    }

    /// Tells whether anything may follow the last line spoken of by [`runs`](FileState::runs).
    pub(super) fn is_open(&self) -> bool {
        self.end == FileEnd::Open && self.existence != Existence::Absent
    }

    /// Returns what comes after the last line spoken of by [`runs`](FileState::runs).
    #[cfg(test)]
    pub(crate) fn end(&self) -> FileEnd {
        self.end
    }

    /// Returns the first 200 characters, where the file is known from its first line on.
    pub fn preview(&self) -> Option<String> {
        let mut text = String::new();
        for (index, line) in self.lines.iter().map_while(|line| line).enumerate() {
            text.extend((index > 0).then_some('\n'));
            text.push_str(&line.text);
            if text.len() > PREVIEW_CHARACTERS * 4 {
                break;
            }
        }
        (!text.is_empty()).then(|| text.chars().take(PREVIEW_CHARACTERS).collect())
    }

    /// Returns all lines as rows of known and of unknown ones.
    pub fn runs(&self) -> Vec<LineRun<'_>> {
        let rows = self.lines.rows();
        let mut runs: Vec<LineRun<'_>> = rows
            .into_iter()
            .map(|(index, row)| match row {
                LineRow::Known(lines) => {
                    LineRun::Known { first: index + 1, lines: lines.into_iter().map(known_line).collect() }
                }
                LineRow::Unknown(count) => LineRun::Unknown { first: index + 1, count },
            })
            .collect();
        if self.end == FileEnd::Open && self.existence != Existence::Absent {
            runs.push(LineRun::Rest { first: self.lines.len() + 1 });
        }
        runs
    }

    /// Returns the state after one more operation that succeeded at a step.
    pub(crate) fn after_operation(&self, step: u32, action: &FileAction) -> FileState {
        let mut maker = LineMaker { next_id: self.next_id, step };
        let (lines, end) = match action {
            FileAction::Delete | FileAction::Rename { .. } | FileAction::Missing => {
                return FileState {
                    existence: Existence::Absent,
                    end: FileEnd::Exact,
                    ..self.forget_lines()
                };
            }
            FileAction::Changed => return FileState { existence: self.existence, ..self.forget_lines() },
            FileAction::Read(shown) => self.show_lines(shown, &mut maker),
            FileAction::Write { content } => self.write_content(content, &mut maker),
            FileAction::Append { content } => self.append_content(content, &mut maker),
            FileAction::Insert { after, text } => self.splice_lines(*after..*after, Some(text), &mut maker),
            FileAction::ReplaceLines { first, last, text } => {
                self.splice_lines(first.saturating_sub(1)..*last, text.as_deref(), &mut maker)
            }
            FileAction::Replace(replacements) => {
                let mut state = self.clone();
                for replacement in replacements {
                    let (lines, end) = state.apply_replacement(replacement, &mut maker);
                    state = FileState { lines, end, ..state };
                }
                (state.lines, state.end)
            }
            FileAction::Patch(hunks) => {
                hunks::apply_hunks(&self.lines, self.end_for_edit(), hunks, &mut maker)
            }
        };
        FileState { lines, end, existence: Existence::Present, next_id: maker.next_id }
    }

    /// Tells whether a line of this number may exist that is not known.
    pub(super) fn may_hold(&self, number: usize) -> bool {
        let count = self.lines.len();
        let behind = match self.end {
            FileEnd::Open | FileEnd::EmptyLines => true,
            FileEnd::LineBreak => number == count + 1,
            FileEnd::Exact => false,
        };
        self.existence != Existence::Absent && (number <= count || behind)
    }

    /// Everything unknown, but no identity given twice.
    fn forget_lines(&self) -> FileState {
        FileState { next_id: self.next_id, ..FileState::default() }
    }

    /// A file that is not there yet is edited as an empty one.
    fn end_for_edit(&self) -> FileEnd {
        if self.existence == Existence::Absent { FileEnd::Exact } else { self.end }
    }

    fn write_content(&self, content: &str, maker: &mut LineMaker) -> (FileLines, FileEnd) {
        let before: Vec<Option<&LineRecord>> = self.lines.iter().collect();
        let after: Vec<Option<String>> = split_lines(content).map(Some).collect();
        (FileLines::new(LinePiece::from_single_lines(maker.make_lines(&before, &after))), FileEnd::Exact)
    }

    fn append_content(&self, content: &str, maker: &mut LineMaker) -> (FileLines, FileEnd) {
        let count = self.lines.len();
        if self.existence == Existence::Absent || (count == 0 && self.end == FileEnd::Exact) {
            return self.write_content(content, maker);
        }
        let keep = count.saturating_sub(1);
        match self.end {
            // Whether the text began a new line or went on with the last one is not known.
            FileEnd::Open | FileEnd::EmptyLines | FileEnd::LineBreak => {
                (self.lines.splice(keep..count, Vec::new()), FileEnd::Open)
            }
            FileEnd::Exact => {
                let last = self.lines.get(keep);
                let mut after: Vec<Option<String>> = split_lines(content).map(Some).collect();
                if let Some(first) = after.first_mut() {
                    *first = last.zip(first.as_ref()).map(|(last, text)| format!("{}{text}", last.text));
                }
                let made = maker.make_lines(&[last], &after);
                (self.lines.splice(keep..count, LinePiece::from_single_lines(made)), FileEnd::Exact)
            }
        }
    }

    fn splice_lines(
        &self,
        range: Range<usize>,
        text: Option<&str>,
        maker: &mut LineMaker,
    ) -> (FileLines, FileEnd) {
        let count = self.lines.len();
        let beyond = range.end.saturating_sub(count);
        let (lines, end) = match self.end {
            _ if beyond == 0 => (self.lines.clone(), self.end),
            FileEnd::Open => {
                (self.lines.splice(count..count, vec![LinePiece::Unknown(beyond)]), FileEnd::Open)
            }
            // The tool took the line, so it is there: an empty one.
            FileEnd::EmptyLines | FileEnd::LineBreak => {
                let empty = (0..beyond).map(|_| maker.make_line("")).collect();
                let end = if self.end == FileEnd::LineBreak { FileEnd::Exact } else { FileEnd::EmptyLines };
                (self.lines.splice(count..count, vec![LinePiece::from_lines(empty)]), end)
            }
            FileEnd::Exact => (self.lines.clone(), FileEnd::Exact),
        };
        let range = range.start.min(lines.len())..range.end.min(lines.len());
        let before: Vec<Option<&LineRecord>> = range.clone().map(|index| lines.get(index)).collect();
        let after: Vec<Option<String>> = text.into_iter().flat_map(split_lines).map(Some).collect();
        let made = maker.make_lines(&before, &after);
        (lines.splice(range, LinePiece::from_single_lines(made)), end)
    }

    fn apply_replacement(&self, replacement: &Replacement, maker: &mut LineMaker) -> (FileLines, FileEnd) {
        let end = self.end_for_edit();
        if replacement.old.is_empty() {
            // Tools take an empty old text for a new file or an empty one.
            return self.write_content(&replacement.new, maker);
        }
        let plain = Replacement {
            old: without_returns(&replacement.old),
            new: without_returns(&replacement.new),
            which: replacement.which,
        };
        // It succeeded, so what is known must be wrong: nothing of it is kept.
        replacement::apply_replacement(&self.lines, end, &plain, maker)
            .unwrap_or_else(|| (FileLines::new(Vec::new()), FileEnd::Open))
    }

    fn show_lines(&self, shown: &ShownLines, maker: &mut LineMaker) -> (FileLines, FileEnd) {
        let base = if self.agrees_with(shown) { self.clone() } else { self.forget_lines() };
        let mut lines = base.lines;
        let mut end = base.end;
        let most = shown.lines.last().map_or(0, |(number, _)| *number);
        let most = most.max(shown.total.map_or(0, |(count, _)| count));
        if most > lines.len() {
            let count = lines.len();
            lines = lines.splice(count..count, vec![LinePiece::Unknown(most - count)]);
            end = match end {
                FileEnd::LineBreak => FileEnd::Exact,
                FileEnd::Open | FileEnd::EmptyLines | FileEnd::Exact => end,
            };
        }
        if let Some((count, behind)) = shown.total
            && count == lines.len()
        {
            end = end.max(behind);
        }
        for row in shown.lines.chunk_by(|(number, _), (next, _)| number + 1 == *next) {
            let Some(start) = row.first().and_then(|(number, _)| number.checked_sub(1)) else { continue };
            let line = |(offset, (_, text)): (usize, &(usize, String))| match lines.get(start + offset) {
                Some(line) => LineRecord { seen: maker.step, ..line.clone() },
                None => maker.make_line(text),
            };
            let made: Vec<LineRecord> = row.iter().enumerate().map(line).collect();
            lines = lines.splice(start..start + row.len(), vec![LinePiece::from_lines(made)]);
        }
        (lines, end)
    }

    /// Tells whether lines shown now can be lines of the file as it is known.
    pub(crate) fn agrees_with(&self, shown: &ShownLines) -> bool {
        if self.existence == Existence::Absent {
            return false;
        }
        let count = self.lines.len();
        // An empty line at the end that this tool numbers and another one does not is no difference.
        let may_follow = |number: usize, text: &str| match self.end {
            FileEnd::Open => true,
            FileEnd::EmptyLines => text.is_empty(),
            FileEnd::LineBreak => number == count + 1 && text.is_empty(),
            FileEnd::Exact => false,
        };
        let agrees = |(number, text): &(usize, String)| {
            let line = number.checked_sub(1).and_then(|index| self.lines.get(index));
            match line {
                Some(line) => *line.text == **text,
                None => *number <= count || may_follow(*number, text),
            }
        };
        shown.lines.iter().all(agrees) && shown.total.is_none_or(|total| self.agrees_on_end(total))
    }

    fn agrees_on_end(&self, (total, behind): (usize, FileEnd)) -> bool {
        let count = self.lines.len();
        if total > count {
            return match self.end {
                FileEnd::Open | FileEnd::EmptyLines => true,
                FileEnd::LineBreak => total == count + 1,
                FileEnd::Exact => false,
            };
        }
        let mut beyond = (total..count).map(|index| self.lines.get(index));
        let most = match behind {
            FileEnd::Open => return true,
            FileEnd::EmptyLines => usize::MAX,
            FileEnd::LineBreak => 1,
            FileEnd::Exact => 0,
        };
        count - total <= most && beyond.all(|line| line.is_none_or(|line| line.text.is_empty()))
    }
}

fn known_line(line: &LineRecord) -> KnownLine<'_> {
    KnownLine { text: &line.text, seen: line.seen }
}

fn join_lines<'a>(lines: impl Iterator<Item = &'a LineRecord>) -> String {
    let texts: Vec<&str> = lines.map(|line| &*line.text).collect();
    texts.join("\n")
}

fn split_lines(text: &str) -> impl Iterator<Item = String> {
    text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line).to_owned())
}

fn without_returns(text: &str) -> String {
    text.replace("\r\n", "\n")
}
