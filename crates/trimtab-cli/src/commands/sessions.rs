//! `trimtab sessions`: the conversations that are kept. Takes the store; gives one line for each, the newest first.

use anstyle::Style;
use anyhow::Result;
use serde::Serialize;
use trimtab_store::{SessionInfo, Store};

use crate::{
    args::Sessions,
    output::{Output, grouped, padded},
    store,
    terminal::escape_name,
};

const DIM: Style = Style::new().dimmed();

#[derive(Serialize)]
struct Row<'a> {
    id: String,
    name: Option<&'a str>,
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
    let sessions = store::open_existing(&asked.store)?.sessions()?;
    if asked.json {
        return out.json(&sessions.iter().map(row).collect::<Vec<Row<'_>>>());
    }
    out.line(format_args!(
        "{DIM}{:6} {:16} {:>8} {:>10} {:>14} {:>6}  {:24} name{DIM:#}",
        "id", "last (UTC)", "requests", "size", "tokens", "saved", "model"
    ))?;
    for session in &sessions {
        line(session, out)?;
    }
    Ok(())
}

pub(super) fn line(session: &SessionInfo, out: &mut Output) -> Result<()> {
    out.line(format_args!(
        "{:6} {:16} {:>8} {:>10} {:>14} {:>5}%  {} {}",
        session.id.to_string(),
        store::minute(session.last),
        session.requests,
        store::size(session.bytes),
        grouped(session.tokens_before),
        store::saved(session.tokens_before, session.tokens_after),
        padded(session.model.as_deref().unwrap_or("-"), 24),
        escape_name(session.name.as_deref().unwrap_or("-")),
    ))
}

fn row(session: &SessionInfo) -> Row<'_> {
    Row {
        id: session.id.to_string(),
        name: session.name.as_deref(),
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
