//! `trimtab sessions`: the conversations of the own project that are kept. Takes the store; gives one line for each, the newest
//! first.

use anstyle::Style;
use anyhow::Result;
use serde::Serialize;
use trimtab_store::SessionInfo;

use crate::{
    args::Sessions,
    output::{Output, grouped, padded, say},
    scope::{Asker, Scope},
    store,
    terminal::escape_name,
};

const DIM: Style = Style::new().dimmed();

#[derive(Serialize)]
struct Row<'a> {
    id: String,
    name: Option<&'a str>,
    project: Option<&'a str>,
    format: &'a str,
    model: Option<&'a str>,
    first_ms: i64,
    last_ms: i64,
    requests: u32,
    bytes: u64,
    tokens_before: u64,
    tokens_after: u64,
    input_tokens_reported: u64,
    output_tokens_reported: u64,
}

pub(crate) fn run(asked: &Sessions, out: &mut Output) -> Result<()> {
    let scope = Scope::open(&asked.view, Asker::CommandLine)?;
    let (sessions, others) = scope.sessions()?;
    if asked.json {
        return out.json(&sessions.iter().map(row).collect::<Vec<Row<'_>>>());
    }
    out.line(format_args!(
        "{DIM}{:6} {:16} {:>8} {:>10} {:>14} {:>6}  {:24} {:24} name{DIM:#}",
        "id", "last (UTC)", "requests", "size", "tokens", "saved", "model", "project"
    ))?;
    for session in &sessions {
        line(session, out)?;
    }
    out.flush()?;
    if let Some(about) = scope.about_others(others) {
        say(about);
    }
    Ok(())
}

pub(super) fn line(session: &SessionInfo, out: &mut Output) -> Result<()> {
    out.line(format_args!(
        "{:6} {:16} {:>8} {:>10} {:>14} {:>5}%  {} {} {}",
        session.id.to_string(),
        store::minute(session.last),
        session.requests,
        store::size(session.bytes),
        grouped(session.tokens_before),
        store::saved(session.tokens_before, session.tokens_after),
        padded(session.model.as_deref().unwrap_or("-"), 24),
        padded(&end_of(session.project.as_deref().unwrap_or("-"), 24), 24),
        escape_name(session.name.as_deref().unwrap_or("-")),
    ))
}

/// Returns the end of a path, which says more than its beginning.
fn end_of(path: &str, width: usize) -> String {
    let count = path.chars().count();
    if count <= width {
        return path.to_owned();
    }
    let end: String = path.chars().skip(count - (width - 1)).collect();
    format!("…{end}")
}

fn row(session: &SessionInfo) -> Row<'_> {
    Row {
        id: session.id.to_string(),
        name: session.name.as_deref(),
        project: session.project.as_deref(),
        format: session.format.name(),
        model: session.model.as_deref(),
        first_ms: session.first.0,
        last_ms: session.last.0,
        requests: session.requests,
        bytes: session.bytes,
        tokens_before: session.tokens_before,
        tokens_after: session.tokens_after,
        input_tokens_reported: session.usage.total_input(),
        output_tokens_reported: session.usage.output,
    }
}
