//! What a result tells about lines of files, and whether it shows that an older one is no longer true. Takes the text of a
//! result and what its call was about; gives its lines by file and number. Never guesses: a text without numbers, of no hunk
//! of a diff, says nothing about another one.

use std::collections::BTreeMap;

use super::visible_names::hash_name;
use crate::{
    digest::without_number,
    facts::{Fact, Subject},
};

/// By number, the hash of what a line says.
type NumberedLines = BTreeMap<u32, u64>;

/// What a result tells about lines, by file.
#[derive(Debug, Default)]
pub(super) struct LineFacts(Box<[(Box<str>, NumberedLines)]>);

impl LineFacts {
    /// Reads a result: a file or a part of it with numbers, what a search found, the hunks of a diff.
    pub(super) fn from_result(text: &str, fact: &Fact) -> LineFacts {
        let mut paths = fact.actions.iter().filter_map(|action| match &action.subject {
            Subject::File { path, .. } => Some(&**path),
            _ => None,
        });
        // The numbers of several files in one text are nobody's.
        LineFacts::read(text, paths.next().filter(|first| paths.all(|path| path == *first)))
    }

    fn read<'a>(text: &'a str, mut only: Option<&'a str>) -> LineFacts {
        let mut hunk: Option<u32> = None;
        let mut told: BTreeMap<&str, NumberedLines> = BTreeMap::new();
        for line in text.lines() {
            if let Some(path) = line.strip_prefix("+++ ") {
                let path = path.split('\t').next().unwrap_or_default();
                only = Some(path.strip_prefix("b/").unwrap_or(path));
                continue;
            }
            if let Some(header) = line.strip_prefix("@@ -") {
                let start = header.split_once(" +").map(|(_, new)| split_digits(new).0);
                hunk = start.and_then(|start| start.parse().ok());
                continue;
            }
            let found = match &mut hunk {
                Some(number) if line.is_empty() || line.starts_with([' ', '+']) => {
                    let here = *number;
                    *number = number.saturating_add(1);
                    only.map(|path| (path, here, line.get(1..).unwrap_or_default()))
                }
                Some(_) if line.starts_with(['-', '\\']) => None,
                Some(_) | None => {
                    hunk = None;
                    let by_number =
                        || split_number(line).and_then(|(number, says)| Some((only?, number, says)));
                    parse_search_line(line).or_else(by_number)
                }
            };
            if let Some((path, number, says)) = found {
                told.entry(path).or_default().insert(number, hash_name(says.trim_end()));
            }
        }
        LineFacts(told.into_iter().map(|(path, lines)| (path.into(), lines)).collect())
    }

    /// Tells whether an older result shows another line in the place of one that this one shows.
    pub(super) fn contradicts(&self, older: &LineFacts) -> bool {
        let pairs = self.0.iter().flat_map(|new| older.0.iter().map(move |old| (new, old)));
        pairs.filter(|((path, _), (other, _))| is_same(path, other)).any(|((_, new), (_, old))| {
            let differs = |(number, says): (&u32, &u64)| new.get(number).is_some_and(|now| now != says);
            match (new.first_key_value(), new.last_key_value()) {
                (Some((first, _)), Some((last, _))) => old.range(first..=last).any(differs),
                _ => false,
            }
        })
    }
}

/// Tells whether two spellings may be of one file: from where a path is seen is not always known.
fn is_same(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let before = long.strip_suffix(short.trim_start_matches("./"));
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Splits the number that a tool put before a line off.
pub(super) fn split_number(line: &str) -> Option<(u32, &str)> {
    let says = without_number(line);
    let number = line.get(..line.len() - says.len()).unwrap_or_default();
    let number = number.trim_matches(|letter: char| !letter.is_ascii_digit()).parse().ok()?;
    Some((number, says))
}

/// Reads a line that a search found: `path:12:text`.
fn parse_search_line(line: &str) -> Option<(&str, u32, &str)> {
    let (path, rest) = line.split_once(':')?;
    let (number, rest) = split_digits(rest);
    let is_path = !path.is_empty() && !path.contains(char::is_whitespace) && path.contains(['.', '/']);
    let says = rest.strip_prefix(':').filter(|_| is_path)?;
    Some((path, number.parse().ok()?, says))
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says whether a newer text, of one file or of none, contradicts a view of `src/a.rs` with three lines.
    #[track_caller]
    fn check(newer: &str, of: Option<&str>, contradicts: bool) {
        let older = LineFacts::read("    7→let a = 1;\n    8→let b = 2;\n    9→\n", Some("/repo/src/a.rs"));
        assert_eq!(LineFacts::read(newer, of).contradicts(&older), contradicts, "{newer}");
        assert!(!older.contradicts(&older));
    }

    #[test]
    fn a_later_reading_contradicts_where_a_line_is_another_one() {
        check("8\tlet b = 3;", Some("src/a.rs"), true);
        check("8\tlet b = 2;\n9\t\n10\tlet c = 3;", Some("/repo/src/a.rs"), false);
        check("8\tlet b = 3;", Some("src/b.rs"), false);
        check("8\tlet b = 3;", Some("rc/a.rs"), false);
        check("8\tlet b = 3;", None, false);
        check("let b = 3;", Some("src/a.rs"), false);
        check("", Some("src/a.rs"), false);
    }

    #[test]
    fn what_a_search_finds_contradicts_by_path_and_number() {
        check("src/b.rs:8:let b = 3;\nsrc/a.rs:8:let b = 3;", None, true);
        check("src/a.rs:8:let b = 2;\nsrc/a.rs:12:let d = 4;", None, false);
        check("Found 2 files: 8:let b", None, false);
    }

    #[test]
    fn a_diff_contradicts_where_its_new_lines_stand() {
        let head = "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n";
        check(
            &format!("{head}@@ -7,3 +7,3 @@ fn f()\n let a = 1;\n-let b = 2;\n+let b = 3;\n \n"),
            None,
            true,
        );
        check(&format!("{head}@@ -8,2 +8,3 @@\n let b = 2;\n \n+let c = 3;\n"), None, false);
        check(&format!("{head}@@ -7,2 +7,1 @@\n let a = 1;\n-let b = 1;\n"), None, false);
        let other = "--- a/src/b.rs\n+++ b/src/b.rs\n@@ -7,1 +7,1 @@\n-let a = 1;\n+let a = 2;\n";
        check(other, None, false);
    }
}
