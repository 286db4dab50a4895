//! `trimtab search`: blocks by their words. Takes words; gives the blocks of the own project that hold all of them, the best first,
//! each with the match in its line and the handle that recalls it. Secrets are covered.

use std::ops::Range;

use anstyle::{AnsiColor, Style};
use anyhow::{Result, bail};
use regex::Regex;
use serde::Serialize;

use crate::{
    args::Search,
    output::{Output, on_one_line},
    scope::{Asker, Scope},
    settings::{Files, keeping::secrets},
};

const DIM: Style = Style::new().dimmed();
const MATCH: Style = AnsiColor::Red.on_default().bold();

/// Columns of handle, session and line number.
const TEXT_AT: usize = 13 + 7 + 7;

#[derive(Serialize)]
struct Row {
    handle: String,
    session: String,
    line: usize,
    text: String,
    score: f64,
}

pub(crate) fn run(asked: &Search, out: &mut Output) -> Result<()> {
    let query = asked.words.join(" ");
    let scope = Scope::open(&asked.view, Asker::CommandLine)?;
    let secrets = secrets(asked.show_secrets, &Files::read()?)?;
    let (found, elsewhere) = scope.search(&query, asked.limit, asked.session.as_deref(), &secrets)?;
    let rows = found.into_iter().map(|found| Row {
        handle: found.handle,
        session: found.session.to_string(),
        line: found.line,
        text: found.text,
        score: found.score,
    });
    let rows: Vec<Row> = rows.collect();
    if asked.json {
        return out.json(&rows);
    }
    if rows.is_empty() {
        match elsewhere {
            Some(note) => bail!("no block of this project holds all of these words: {query}; {note}"),
            None => bail!("no block holds all of these words: {query}"),
        }
    }
    let width = out.width().saturating_sub(TEXT_AT);
    for Row { handle, session, line, text, .. } in &rows {
        let shown = marked(&around(text, &asked.words, width), &asked.words);
        out.line(format_args!("{handle} {DIM}{session:6} {line:>6}{DIM:#} {shown}"))?;
    }
    Ok(())
}

/// Returns the part of a line that holds the first of the words, on one line of so many columns.
fn around(text: &str, words: &[String], width: usize) -> String {
    let text = on_one_line(text, usize::MAX);
    let Some(at) = places(&text, words).first().map(|place| place.start) else {
        return on_one_line(&text, width);
    };
    let before = text.get(..at).map_or(0, |before| before.chars().count());
    // A third of the line is enough to see what comes before.
    if before < width.saturating_mul(2) / 3 {
        return on_one_line(&text, width);
    }
    let rest: String = text.chars().skip(before.saturating_sub(width / 3)).collect();
    on_one_line(&format!("…{rest}"), width)
}

/// Sets the words in bold.
fn marked(line: &str, words: &[String]) -> String {
    let mut shown = String::new();
    let mut from = 0;
    for place in places(line, words) {
        let (Some(before), Some(word)) = (line.get(from..place.start), line.get(place.clone())) else {
            continue;
        };
        shown += &format!("{before}{MATCH}{word}{MATCH:#}");
        from = place.end;
    }
    shown + line.get(from..).unwrap_or_default()
}

/// Finds the words in a line, whatever their case, from left to right.
fn places(line: &str, words: &[String]) -> Vec<Range<usize>> {
    let words: Vec<String> =
        words.iter().flat_map(|words| words.split_whitespace()).map(regex::escape).collect();
    let Ok(pattern) = Regex::new(&format!("(?i)({})", words.join("|"))) else { return Vec::new() };
    pattern.find_iter(line).map(|found| found.range()).filter(|place| !place.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_match_is_seen_wherever_it_is_in_its_line() {
        let words = ["Refused".to_owned()];
        let long = format!("{}connection refused{}", "x".repeat(500), "y".repeat(500));
        let shown = around(&long, &words, 60);
        assert!(
            shown.starts_with('…') && shown.contains("connection refused") && shown.chars().count() <= 60,
            "{shown}"
        );
        assert_eq!(around("refused here", &words, 60), "refused here");
        assert_eq!(around("nothing", &words, 60), "nothing");
    }

    #[test]
    fn every_match_is_marked() {
        let shown = marked("a Bee and a bee", &["bee".to_owned()]);
        assert_eq!(shown, format!("a {MATCH}Bee{MATCH:#} and a {MATCH}bee{MATCH:#}"));
        assert_eq!(marked("a (b", &["(b".to_owned()]), format!("a {MATCH}(b{MATCH:#}"));
    }
}
