//! Search hits with each path once, as `rg --heading` prints them: `src/a.rs:12:text` becomes `12:text` under the line `src/a.rs`.
//! Context lines (`src/a.rs-13-text`) and the `--` between groups are read as grep writes them. The inverse writes the path before
//! every line again, and a text is only rewritten where that gives every byte back.

use std::collections::HashSet;

/// The longest path that is read as one, in bytes.
const LONGEST_PATH: usize = 300;

/// Groups the hits by file; nothing where there are none, or where the form would not say how to undo it.
pub(super) fn group_hits(text: &str) -> Option<String> {
    let paths: HashSet<&str> =
        text.split('\n').filter_map(|line| split_hit(line).map(|(path, _)| path)).collect();
    if paths.is_empty() {
        return None;
    }
    let mut grouped = String::with_capacity(text.len());
    let mut under: Option<&str> = None;
    let mut before = Before::Nothing;
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            grouped.push('\n');
        }
        let Some((path, rest)) = split_hit(line).or_else(|| split_context(line, under, &paths)) else {
            grouped.push_str(line);
            before = if line.is_empty() || line == SEPARATOR { Before::Gap } else { Before::Words };
            if line != SEPARATOR {
                under = None;
            }
            continue;
        };
        if under != Some(path) {
            if matches!(before, Before::Hit | Before::Words) {
                grouped.push('\n');
            }
            grouped.push_str(path);
            grouped.push('\n');
            under = Some(path);
        }
        grouped.push_str(rest);
        before = Before::Hit;
    }
    (grouped.len() < text.len() && ungroup_hits(&grouped) == text).then_some(grouped)
}

/// What stands above a line.
enum Before {
    Nothing,
    Hit,
    /// An empty line, or the line between two groups.
    Gap,
    Words,
}

/// What grep prints between groups of lines.
const SEPARATOR: &str = "--";

/// Writes the path before every hit again.
fn ungroup_hits(grouped: &str) -> String {
    let lines: Vec<&str> = grouped.split('\n').collect();
    let is_heading = |index: usize| {
        let is_name = lines.get(index).is_some_and(|line| is_path(line) && number_mark(line).is_none());
        is_name && lines.get(index + 1).is_some_and(|next| number_mark(next).is_some())
    };
    let mut text: Vec<String> = Vec::with_capacity(lines.len());
    let mut under: Option<&str> = None;
    for (index, line) in lines.iter().enumerate() {
        let is_gap = line.is_empty() && is_heading(index + 1);
        let follows_words =
            index > 0 && lines.get(index - 1).is_some_and(|above| !above.is_empty() && *above != SEPARATOR);
        match (number_mark(line), under) {
            _ if is_gap && follows_words => {}
            _ if is_heading(index) => under = Some(line),
            (Some(mark), Some(path)) => text.push(format!("{path}{mark}{line}")),
            (Some(_), None) => text.push((*line).to_owned()),
            (None, _) => {
                if *line != SEPARATOR {
                    under = None;
                }
                text.push((*line).to_owned());
            }
        }
    }
    text.join("\n")
}

/// Splits `path:12:text` into the path and `12:text`.
fn split_hit(line: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    loop {
        let at = from + line.get(from..)?.find(':')?;
        let (path, rest) = (line.get(..at)?, line.get(at + 1..)?);
        if number_mark(rest) == Some(':') && is_path(path) {
            return Some((path, rest));
        }
        // Only the colon of a drive letter may precede the one that ends a path.
        if at != 1 {
            return None;
        }
        from = at + 1;
    }
}

/// Splits `path-12-text` of a file that has hits into the path and `12-text`.
fn split_context<'a>(
    line: &'a str,
    under: Option<&'a str>,
    paths: &HashSet<&'a str>,
) -> Option<(&'a str, &'a str)> {
    let of_path = |path: &'a str| {
        let rest = line.strip_prefix(path)?.strip_prefix('-')?;
        (number_mark(rest) == Some('-')).then_some((path, rest))
    };
    let dashes = || line.match_indices('-').filter_map(|(at, _)| line.get(..at));
    under
        .and_then(of_path)
        .or_else(|| dashes().filter_map(|path| paths.get(path)).find_map(|path| of_path(path)))
}

/// Returns the mark after the number with which a line begins.
fn number_mark(line: &str) -> Option<char> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let mark = line.get(digits..)?.chars().next().filter(|_| (1..8).contains(&digits))?;
    matches!(mark, ':' | '-').then_some(mark)
}

/// Tells whether a text may be the path of a file.
fn is_path(text: &str) -> bool {
    let is_written_plainly = !text.contains(['\t', '"', '(', '\r']) && text.trim() == text;
    text.contains(['.', '/', '\\'])
        && text.len() <= LONGEST_PATH
        && is_written_plainly
        && number_mark(text).is_none()
}
