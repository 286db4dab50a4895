//! `trimtab search`: blocks by their words. Takes words; gives the blocks of the own project that hold all of them, the best first,
//! each with the match in its line and the handle that recalls it. Secrets are covered.

use std::ops::Range;

use anstyle::{AnsiColor, Style};
use anyhow::{Result, bail};
use regex::Regex;
use serde::Serialize;

use crate::{
    args::SearchArgs,
    output::{Output, on_one_line},
    scope::{Asker, StoreScope},
    settings::{SettingsFiles, keeping::resolve_secrets},
};

const DIM: Style = Style::new().dimmed();
const MATCH: Style = AnsiColor::Red.on_default().bold();

/// Columns of handle, session and line number.
const TEXT_AT: usize = 13 + 7 + 7;

#[derive(Serialize)]
struct SearchRow {
    handle: String,
    session: String,
    line: usize,
    text: String,
    score: f64,
}

pub(crate) fn run(asked: &SearchArgs, out: &mut Output) -> Result<()> {
    let query = asked.words.join(" ");
    let scope = StoreScope::open(&asked.view, Asker::CommandLine)?;
    let secrets = resolve_secrets(asked.show_secrets, &SettingsFiles::read()?)?;
    let (found, elsewhere) = scope.search_blocks(&query, asked.limit, asked.session.as_deref(), &secrets)?;
    let rows = found.into_iter().map(|found| SearchRow {
        handle: found.handle,
        session: found.session.to_string(),
        line: found.line,
        text: found.text,
        score: found.score,
    });
    let rows: Vec<SearchRow> = rows.collect();
    if asked.json {
        return out.write_json(&rows);
    }
    if rows.is_empty() {
        match elsewhere {
            Some(note) => bail!("no block of this project holds all of these words: {query}; {note}"),
            None => bail!("no block holds all of these words: {query}"),
        }
    }
    let width = out.width().saturating_sub(TEXT_AT);
    if out.is_terminal() {
        out.write_line(format_args!("{DIM}{:12} {:7} {:>5} text{DIM:#}", "handle", "session", "line"))?;
    }
    for SearchRow { handle, session, line, text, .. } in &rows {
        let shown = mark_words(&line_around_match(text, &asked.words, width), &asked.words);
        out.write_line(format_args!("{handle} {DIM}{session:7} {line:>5}{DIM:#} {shown}"))?;
    }
    Ok(())
}

/// Returns the part of a line that holds the first of the words, on one line of so many columns.
fn line_around_match(text: &str, words: &[String], width: usize) -> String {
    let text = on_one_line(text, usize::MAX);
    let Some(at) = find_words(&text, words).first().map(|place| place.start) else {
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
fn mark_words(line: &str, words: &[String]) -> String {
    let mut shown = String::new();
    let mut from = 0;
    for place in find_words(line, words) {
        let (Some(before), Some(word)) = (line.get(from..place.start), line.get(place.clone())) else {
            continue;
        };
        shown += &format!("{before}{MATCH}{word}{MATCH:#}");
        from = place.end;
    }
    shown + line.get(from..).unwrap_or_default()
}

/// Finds the words in a line, whatever their case, from left to right.
fn find_words(line: &str, words: &[String]) -> Vec<Range<usize>> {
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
        let shown = line_around_match(&long, &words, 60);
        assert!(
            shown.starts_with('…') && shown.contains("connection refused") && shown.chars().count() <= 60,
            "{shown}"
        );
        assert_eq!(line_around_match("refused here", &words, 60), "refused here");
        assert_eq!(line_around_match("nothing", &words, 60), "nothing");
    }

    #[test]
    fn every_match_is_marked() {
        let shown = mark_words("a Bee and a bee", &["bee".to_owned()]);
        assert_eq!(shown, format!("a {MATCH}Bee{MATCH:#} and a {MATCH}bee{MATCH:#}"));
        assert_eq!(mark_words("a (b", &["(b".to_owned()]), format!("a {MATCH}(b{MATCH:#}"));
    }
}
