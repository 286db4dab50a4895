//! `trimtab search`: blocks by their words. Takes words; gives the blocks of the own project that hold all of them, the best first,
//! each with its best line and the handle that recalls it. Secrets are covered.

use anstyle::Style;
use anyhow::{Result, bail};
use serde::Serialize;

use crate::{
    args::Search,
    output::{Output, on_one_line},
    scope::{Asker, Scope},
    settings::{Files, keeping::secrets},
};

const DIM: Style = Style::new().dimmed();

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
        out.line(format_args!("{handle} {DIM}{session:6} {line:>6}{DIM:#} {}", on_one_line(text, width)))?;
    }
    Ok(())
}
