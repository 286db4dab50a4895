//! Standard output and standard error. Takes bytes and words; gives them on without a panic when the reader has
//! gone, with colour only for people who want it.

use std::{
    fmt,
    io::{self, BufWriter, IsTerminal, Stdout, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use anstream::{AutoStream, ColorChoice, adapter::strip_str};
use anyhow::{Context, Error};
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use trimtab_core::Tokens;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::{
    args::ColorWhen,
    terminal::{escape_name, escape_styled, escape_text, is_plain},
};

/// Columns that are used where no terminal tells its width.
const DEFAULT_WIDTH: usize = 120;

/// Where data goes.
pub(crate) struct Output {
    // Not locked: a command may speak to standard output by itself.
    stream: BufWriter<Stdout>,
    colored: bool,
    is_terminal: bool,
    width: usize,
}

impl Output {
    pub(crate) fn new(color: ColorWhen) -> Output {
        let colored = match color {
            ColorWhen::Auto => AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            ColorWhen::Always => true,
            ColorWhen::Never => false,
        };
        let terminal = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        let width = terminal.map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0).max(40));
        let is_terminal = io::stdout().is_terminal();
        Output { stream: BufWriter::new(io::stdout()), colored, is_terminal, width }
    }

    /// Returns how many columns a line may have.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Tells whether people read this.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes bytes that no colour rule may touch: a request, JSON, an original. A terminal gets them without what would steer it.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        if !self.is_terminal {
            return self.write_raw_bytes(bytes);
        }
        self.stream.write_all(escape_text(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(())
    }

    /// Writes bytes as they are, whatever they do to a terminal.
    pub(crate) fn write_raw_bytes(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(bytes)?;
        Ok(())
    }

    /// Writes a value as JSON on separate lines.
    pub(crate) fn write_json(&mut self, value: &impl serde::Serialize) -> anyhow::Result<()> {
        let mut json = serde_json::to_vec_pretty(value)?;
        json.push(b'\n');
        self.write_bytes(&json)
    }

    /// Writes a line for people.
    pub(crate) fn write_line(&mut self, line: impl fmt::Display) -> anyhow::Result<()> {
        let line = format!("{line}\n");
        let line = escape_styled(&line);
        if self.colored {
            self.stream.write_all(line.as_bytes())?;
        } else {
            write!(self.stream, "{}", strip_str(&line))?;
        }
        Ok(())
    }

    /// Writes a sentence for people, broken between words where a terminal shows it.
    pub(crate) fn write_sentence(&mut self, sentence: impl fmt::Display) -> anyhow::Result<()> {
        let sentence = sentence.to_string();
        let width = self.is_terminal.then_some(self.width);
        message_lines(&sentence, width).into_iter().try_for_each(|line| self.write_line(line))
    }

    /// Hands on what was written so far, before something else is said on standard error.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        self.stream.flush()?;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        self.stream.flush()?;
        Ok(())
    }
}

/// Writes a file as a whole or not at all: beside it first, then in its place.
pub(crate) fn write_whole(file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let name = file.file_name().with_context(|| format!("{}: is no file's name", file.display()))?;
    let beside = file.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let written = std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, file));
    if written.is_err() {
        // Nothing is left over; that it cannot be removed is not the error to report.
        let _ = std::fs::remove_file(&beside);
    }
    written.with_context(|| format!("{}: cannot be written", file.display()))
}

/// Makes sure that a file can be written, before long work that ends in it.
pub(crate) fn check_writable(file: &Path) -> anyhow::Result<()> {
    if file.is_dir() {
        anyhow::bail!("{}: is a folder: name a file in it", file.display());
    }
    let beside = file.with_file_name(format!(".trimtab-{}", std::process::id()));
    let made = std::fs::File::create(&beside);
    let _ = std::fs::remove_file(&beside);
    made.map(|_| ()).with_context(|| format!("{}: cannot be written", file.display()))
}

/// Tells whether the only thing wrong is that nobody reads any more.
pub(crate) fn is_closed_pipe(error: &Error) -> bool {
    let causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.into_iter().any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Says on standard error what went wrong.
pub(crate) fn print_error(error: &Error) {
    print_note(format_args!("{error:#}"));
}

/// Says something to people beside the data.
pub(crate) fn print_note(words: impl fmt::Display) {
    let message = format!("trimtab: {words}");
    let message = escape_text(&message);
    // Nobody can read a message when standard error is closed as well.
    let _ = writeln!(anstream::stderr(), "{}", message_lines(&message, error_width()).join("\n"));
}

/// Returns the columns of the terminal that shows standard error; nothing where it is a file or a pipe.
pub(crate) fn error_width() -> Option<usize> {
    let error = io::stderr();
    let terminal = error.is_terminal().then(|| terminal_size::terminal_size_of(&error)).flatten();
    terminal.map(|(width, _)| usize::from(width.0).max(40))
}

/// Breaks a message between words where a terminal would break it within them. Lines that are indented are a list: they stay.
fn message_lines(message: &str, width: Option<usize>) -> Vec<String> {
    let lines = message.lines().flat_map(|line| match width {
        Some(width) if line.width() > width && !line.starts_with(' ') => wrapped_at(line, width),
        Some(_) | None => vec![line.to_owned()],
    });
    lines.collect()
}

/// Writes a line of a picture for people beside the data.
pub(crate) fn print_line(line: impl fmt::Display) {
    let _ = writeln!(anstream::stderr(), "{}", escape_styled(&line.to_string()));
}

/// A bar on standard error that says which file is read and how long it all still takes.
pub(crate) struct Progress {
    bar: ProgressBar,
    files: usize,
    begun: AtomicUsize,
}

impl Progress {
    /// Begins a bar for files; one that nobody sees where there is no terminal or little to wait for.
    pub(crate) fn begin(files: &[PathBuf]) -> Progress {
        let (count, begun) = (files.len(), AtomicUsize::new(0));
        if count < 2 || !io::stderr().is_terminal() {
            return Progress { bar: ProgressBar::hidden(), files: count, begun };
        }
        let style = ProgressStyle::with_template("{bar:24} {percent:>3} %{left}  {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .with_key("left", |state: &ProgressState, out: &mut dyn fmt::Write| {
                // Before the first file is done nobody knows.
                if state.pos() > 0 {
                    let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
                }
            });
        // Bytes tell better than files how much is left.
        let bar = ProgressBar::new(files.iter().map(|file| size_of(file)).sum()).with_style(style);
        Progress { bar, files: count, begun }
    }

    /// Says that a file is being read.
    pub(crate) fn begin_file(&self, file: &Path) {
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        self.bar.set_message(format!("{number}/{} {}", self.files, end_of(&file.to_string_lossy(), 40)));
    }

    /// Says that a file is done.
    pub(crate) fn finish_file(&self, file: &Path) {
        self.bar.inc(size_of(file));
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

fn size_of(file: &Path) -> u64 {
    // What is empty or gone takes its moment too.
    std::fs::metadata(file).map_or(1, |about| about.len().max(1))
}

/// Returns a text on one line of at most `width` columns: line breaks as `⏎`, other control characters as `·`.
pub(crate) fn on_one_line(text: &str, width: usize) -> String {
    let mut line = String::new();
    let mut used = 0;
    for letter in text.trim_start().chars() {
        let shown = match letter {
            '\n' => '⏎',
            '\t' => ' ',
            letter if !is_plain(letter) => '·',
            letter => letter,
        };
        used += shown.width().unwrap_or(0);
        if used > width.saturating_sub(1) {
            line.push('…');
            return line;
        }
        line.push(shown);
    }
    line
}

/// Breaks a text into lines of at most `width` columns between words; lines are indented, the later ones further.
pub(crate) fn wrap_text(text: &str, width: usize) -> Vec<String> {
    let indented =
        |(index, line): (usize, String)| if index == 0 { format!("  {line}") } else { format!("    {line}") };
    wrapped_at(text, width).into_iter().enumerate().map(indented).collect()
}

/// Breaks a text into lines of at most `width` columns between words.
pub(crate) fn wrapped_at(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// Returns a count with its noun: `1 session`, `2 sessions`.
pub(crate) fn count_with_noun(count: usize, one: &str, several: &str) -> String {
    let noun = if count == 1 { one } else { several };
    format!("{} {noun}", group_thousands(u64::try_from(count).unwrap_or(u64::MAX)))
}

/// Returns a text padded to `width` columns, cut where it is wider.
pub(crate) fn pad_text(text: &str, width: usize) -> String {
    let is_shown_whole = text.width() <= width && text.chars().all(is_plain);
    let text = if is_shown_whole { text.to_owned() } else { on_one_line(text, width) };
    let missing = width.saturating_sub(text.width());
    text + &" ".repeat(missing)
}

/// Returns the end of a path that is wider than `width` columns.
pub(crate) fn end_of(path: &str, width: usize) -> String {
    let path = &escape_name(path);
    if path.width() <= width {
        return path.to_string();
    }
    let mut used = 1;
    let fits = |letter: &char| {
        used += letter.width().unwrap_or(0);
        used <= width
    };
    let kept: Vec<char> = path.chars().rev().take_while(fits).collect();
    format!("…{}", kept.into_iter().rev().collect::<String>())
}

/// Returns a number in few columns: `987`, `12.3k`, `1.5M`.
pub(crate) fn short_number(number: u64) -> String {
    let tenths = |unit: u64| {
        let tenths = number / (unit / 10);
        if tenths.is_multiple_of(10) || tenths >= 1000 {
            (tenths / 10).to_string()
        } else {
            format!("{}.{}", tenths / 10, tenths % 10)
        }
    };
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => tenths(1_000) + "k",
        1_000_000..1_000_000_000 => tenths(1_000_000) + "M",
        1_000_000_000.. => tenths(1_000_000_000) + "G",
    }
}

/// Returns a number with its thousands apart: `1,234,567`.
pub(crate) fn group_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Returns a count that is kept as a sum, with its thousands apart.
pub(crate) fn group_count(count: f64) -> String {
    group_thousands(Tokens(1).scale(count).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let grouped: Vec<String> = [0, 999, 1000, 1_234_567].into_iter().map(group_thousands).collect();
        assert_eq!(grouped, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_number_is_short_in_every_size() {
        let short: Vec<String> =
            [7, 999, 1000, 12_345, 250_000, 1_500_000, 3_200_000_000].map(short_number).into();
        assert_eq!(short, ["7", "999", "1k", "12.3k", "250k", "1.5M", "3.2G"]);
        assert_eq!(
            [count_with_noun(1, "session", "sessions"), count_with_noun(1234, "session", "sessions")],
            ["1 session", "1,234 sessions"]
        );
    }

    #[test]
    fn long_texts_are_broken_between_words() {
        assert_eq!(wrap_text("one two three", 8), ["  one two", "    three"]);
        assert_eq!(wrap_text("", 8), ["  "]);
    }

    #[test]
    fn a_message_is_broken_between_words_on_a_terminal_and_nowhere_else() {
        let message = "one two three\n  a list stays as wide as it is\nfour";
        let broken = ["one two", "three", "  a list stays as wide as it is", "four"];
        assert_eq!(message_lines(message, Some(8)), broken);
        assert_eq!(message_lines(message, None), message.lines().collect::<Vec<_>>());
    }

    #[test]
    fn a_text_fits_its_columns_whatever_its_letters() {
        assert_eq!(on_one_line("one\ntwo", 20), "one⏎two");
        assert_eq!(on_one_line("中文字符很宽", 7), "中文字…");
        assert_eq!(on_one_line("abcdefgh", 5), "abcd…");
        assert_eq!(pad_text("中", 4), "中  ");
    }
}
