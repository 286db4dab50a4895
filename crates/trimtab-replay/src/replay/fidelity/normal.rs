//! Texts as they are compared. Takes a text as a block holds it or as a view shows it; gives it without what a tool or a
//! terminal put around the words: line numbers, colours, carriage returns, trailing blanks, JSON escapes. Never takes a
//! number off for good: a file may hold lines that begin with one, so the text with its numbers is kept beside.

use std::collections::HashSet;

use memchr::memmem;
use trimtab_core::{json::scan, summary::FOLDED_HEAD as FOLDED, terminal::as_terminal_shows};

/// A text in every way in which it may be read.
#[derive(Debug, Clone, Default)]
pub(super) struct NormalText {
    /// Unchanged; without line numbers, where it has any; with its path before every search hit, where a heading names it; what its
    /// JSON says, where it is JSON.
    ways: Vec<String>,
}

impl NormalText {
    /// Reads a text.
    pub(super) fn from_text(text: &str) -> NormalText {
        let mut ways = Vec::new();
        push_way(&mut ways, text);
        if let Some(words) = unquote_folded(text) {
            push_way(&mut ways, &words);
        }
        if let Some(strings) = json_strings(text) {
            push_way(&mut ways, &strings.join("\n"));
        }
        NormalText { ways }
    }

    /// Reads what a call says: the strings of its arguments, each as its own lines.
    pub(super) fn of_strings(strings: &[String]) -> NormalText {
        let mut ways = Vec::new();
        push_way(&mut ways, &strings.join("\n"));
        NormalText { ways }
    }

    /// Tells whether a text stands in it, wherever.
    pub(super) fn contains(&self, text: &str) -> bool {
        let finder = memmem::Finder::new(text);
        self.ways.iter().any(|way| finder.find(way.as_bytes()).is_some())
    }

    /// Tells whether a name stands in it, not as a part of a longer one.
    pub(super) fn contains_name(&self, name: &str) -> bool {
        self.ways.iter().any(|way| contains_name(way, name))
    }

    /// Returns the lines that hold a name.
    pub(super) fn lines_naming<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.lines().filter(move |line| contains_name(line, name))
    }

    /// Returns all lines in every way of reading them, without the blanks around them; empty ones are left out.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.ways.iter().flat_map(|way| way.split('\n')).map(str::trim).filter(|line| !line.is_empty())
    }

    /// Tells whether every line is among these, in one way of reading it.
    pub(super) fn has_only(&self, lines: &HashSet<&str>) -> bool {
        let all =
            |way: &String| way.split('\n').map(str::trim).all(|line| line.is_empty() || lines.contains(line));
        self.ways.iter().any(all)
    }

    /// Returns the text as a person would read it: what JSON says, where it is JSON.
    pub(super) fn readable(&self) -> &str {
        let is_json = self.ways.first().is_some_and(|way| way.trim_start().starts_with(['{', '[']));
        let way = if is_json { self.ways.last() } else { self.ways.first() };
        way.map(String::as_str).unwrap_or_default()
    }

    /// Returns the text unchanged.
    pub(super) fn plain(&self) -> &str {
        self.ways.first().map(String::as_str).unwrap_or_default()
    }

    /// Returns the hashes of its words.
    pub(super) fn words(&self) -> HashSet<u64> {
        self.ways.iter().flat_map(|way| words_in(way)).map(|word| hash(word.text)).collect()
    }
}

/// Returns a folded message without the marks after which it quotes: what is quoted line by line is there word by word.
fn unquote_folded(text: &str) -> Option<String> {
    let folded = text.trim_start().starts_with(FOLDED);
    let lines = text.lines().map(|line| {
        let rest = line.strip_prefix(['>', '|', ':']).unwrap_or(line);
        rest.strip_prefix(' ').filter(|_| rest.len() < line.len()).unwrap_or(rest)
    });
    folded.then(|| lines.collect::<Vec<_>>().join("\n"))
}

fn push_way(ways: &mut Vec<String>, text: &str) {
    let plain = plain_text(text);
    let (bare, with_paths) = (without_numbers(&plain), with_paths(&plain));
    ways.push(plain);
    ways.extend(bare);
    ways.extend(with_paths);
}

/// Returns a text without colours, carriage returns and trailing blanks.
pub(super) fn plain_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            plain.push('\n');
        }
        plain.push_str(as_terminal_shows(line).trim_end());
    }
    plain
}

/// What stands between a line's number and the line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineMark {
    /// An arrow, a tabulator: nothing of the line is lost with it.
    Sure,
    /// `:` or `|`, after which some tools write a blank that is not the line's.
    MayBeFollowedByBlank,
    /// `path:12:` or `12-` of a search.
    Search,
}

/// Takes the numbers off; nothing where no line has one.
fn without_numbers(text: &str) -> Option<String> {
    let is_window = text.contains(" lines total)]");
    let mut any = false;
    let mut blank_follows = !is_window;
    for (mark, rest) in text.split('\n').filter_map(split_line_number) {
        any = true;
        let follows = mark != LineMark::MayBeFollowedByBlank || rest.is_empty() || rest.starts_with(' ');
        blank_follows &= follows;
    }
    if !any {
        return None;
    }
    let mut bare = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            bare.push('\n');
        }
        bare.push_str(match split_line_number(line) {
            Some((LineMark::MayBeFollowedByBlank, rest)) if blank_follows => {
                rest.strip_prefix(' ').unwrap_or(rest)
            }
            Some((_, rest)) => rest,
            None => line,
        });
    }
    Some(bare)
}

/// Writes the path that is the heading of search hits (`rg --heading`) before each of them; nothing where no line is such a heading.
fn with_paths(text: &str) -> Option<String> {
    let number_mark = |line: &str| {
        skip_digits(line).and_then(|rest| rest.chars().next()).filter(|mark| ":-".contains(*mark))
    };
    let mut expanded = String::with_capacity(text.len());
    let (mut heading, mut any): (Option<&str>, bool) = (None, false);
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        let is_above_hit = lines.peek().is_some_and(|next| number_mark(next).is_some());
        match (number_mark(line), heading) {
            (Some(mark), Some(path)) => {
                expanded.push_str(path);
                expanded.push(mark);
                expanded.extend([line, "\n"]);
            }
            (None, _)
                if is_above_hit && line.contains(['.', '/']) && !line.contains([' ', '\t', '"', '(']) =>
            {
                (heading, any) = (Some(line), true);
            }
            _ => {
                heading = heading.filter(|_| line == "--");
                expanded.extend([line, "\n"]);
            }
        }
    }
    any.then_some(expanded)
}

/// Splits a line's number off, in any of the forms tools write: `12→`, `12->`, a tabulator, `12:`, `12|`, `12-`,
/// `path:12:`, `path-12-`.
fn split_line_number(line: &str) -> Option<(LineMark, &str)> {
    let inner = line.trim_start_matches(' ');
    if let Some(rest) = skip_digits(inner) {
        let sure = ["→", "->", "\t"].iter().find_map(|mark| rest.strip_prefix(mark));
        let sure = sure.map(|rest| (LineMark::Sure, rest));
        let colon = || rest.strip_prefix([':', '|']).map(|rest| (LineMark::MayBeFollowedByBlank, rest));
        let dash = || {
            (inner.len() == line.len())
                .then(|| rest.strip_prefix('-'))
                .flatten()
                .map(|rest| (LineMark::Search, rest))
        };
        return sure.or_else(colon).or_else(dash);
    }
    let is_path = |path: &str| !path.is_empty() && path.len() < 300 && !path.contains([' ', '\t', '(', '"']);
    if let Some((path, rest)) = line.split_once(':')
        && is_path(path)
        && let Some(rest) = skip_digits(rest).and_then(|rest| rest.strip_prefix(':'))
    {
        return Some((LineMark::Search, rest));
    }
    let dashes = line.match_indices('-').take(12);
    let mut behind = dashes.filter_map(|(at, _)| {
        let (path, rest) = (line.get(..at)?, line.get(at + 1..)?);
        let named = is_path(path) && path.contains(['.', '/']);
        skip_digits(rest).and_then(|rest| rest.strip_prefix('-')).filter(|_| named)
    });
    behind.next().map(|rest| (LineMark::Search, rest))
}

/// Returns what follows a number of at most seven digits.
fn skip_digits(text: &str) -> Option<&str> {
    let count = text.bytes().take(8).take_while(u8::is_ascii_digit).count();
    (1..8).contains(&count).then(|| text.get(count..)).flatten()
}

/// Returns the strings of a text that is a JSON object or array; nothing where it is none.
pub(super) fn json_strings(text: &str) -> Option<Vec<String>> {
    let trimmed = text.trim();
    let looks = (trimmed.starts_with('{') && trimmed.ends_with('}'))
        || (trimmed.starts_with('[') && trimmed.ends_with(']'));
    let tape = looks.then(|| scan(trimmed.as_bytes()).ok()).flatten()?;
    Some(tape.root(trimmed.as_bytes())?.strings())
}

/// A word and where it stands.
pub(super) struct WordAt<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
}

/// The shortest words that are looked up by their hash, in bytes: shorter ones are everywhere.
const SHORTEST_WORD: usize = 3;

/// Returns the words of a text: letters, digits and underscores in a row.
pub(super) fn words_in(text: &str) -> impl Iterator<Item = WordAt<'_>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = bytes.get(at..)?;
            let start = at + rest.iter().position(|byte| is_word(*byte))?;
            let length = bytes.get(start..)?.iter().take_while(|byte| is_word(**byte)).count();
            at = start + length;
            if length >= SHORTEST_WORD {
                return text.get(start..at).map(|text| WordAt { text, start });
            }
        }
    })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Tells whether a name stands in a text with no letter of a longer name beside it.
fn contains_name(text: &str, name: &str) -> bool {
    let bytes = text.as_bytes();
    let word_at = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(|byte| is_word(*byte));
    let begins = name.bytes().next().is_some_and(is_word);
    let ends = name.bytes().next_back().is_some_and(is_word);
    memmem::find_iter(bytes, name)
        .any(|at| !(begins && word_at(at.checked_sub(1)) || ends && word_at(Some(at + name.len()))))
}

/// Returns the hash by which words and lines are looked up (FNV-1a). Its finds are compared as text.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
