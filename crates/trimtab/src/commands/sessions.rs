//! `trimtab sessions`: the conversations of the own project that are kept. Takes the store; gives one line for each, the newest
//! first.

use anstyle::Style;
use anyhow::Result;
use serde::Serialize;
use trimtab_core::{BlockKind, Role, facts, parse_as};
use trimtab_store::{Secrets, SessionInfo, Store};

use crate::{
    args::SessionsArgs,
    output::{Output, group_thousands, on_one_line, pad_text, print_line, print_note, short_number},
    scope::{Asker, StoreScope},
    settings::{SettingsFiles, keeping::resolve_secrets},
    store,
    terminal::escape_name,
};

const DIM: Style = Style::new().dimmed();

/// Letters of a title in JSON.
const TITLE_LETTERS: usize = 200;

/// Columns of the project's folder.
const PROJECT_WIDTH: usize = 18;

#[derive(Serialize)]
struct SessionListRow<'a> {
    id: String,
    /// The user's first words.
    title: Option<String>,
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

pub(crate) fn run(asked: &SessionsArgs, out: &mut Output) -> Result<()> {
    let scope = StoreScope::open(&asked.view, Asker::CommandLine)?;
    let (sessions, others) = scope.sessions()?;
    let secrets = resolve_secrets(false, &SettingsFiles::read()?)?;
    let title = |session: &SessionInfo| title_of(scope.store(), session, &secrets);
    if asked.json {
        let rows = sessions.iter().map(|session| session_row(session, title(session)));
        return out.write_json(&rows.collect::<Vec<SessionListRow<'_>>>());
    }
    if sessions.is_empty() {
        print_line("no session of this project is stored yet");
    } else {
        head(out)?;
    }
    for session in sessions.iter().take(asked.limit) {
        print_session(session, title(session).as_deref(), out)?;
    }
    out.flush()?;
    if let Some(more @ 1..) = sessions.len().checked_sub(asked.limit) {
        print_line(format_args!("and {more} more: --limit N lists them"));
    }
    if let Some(about) = scope.about_others(others) {
        print_note(about);
    }
    Ok(())
}

/// Prints what the columns are.
pub(super) fn head(out: &mut Output) -> Result<()> {
    out.write_line(format_args!(
        "{DIM}{:6} {:>7} {:>8} {:>7} {:>5}  {} title{DIM:#}",
        "id",
        "used",
        "requests",
        "tokens",
        "saved",
        pad_text("project", PROJECT_WIDTH)
    ))
}

/// Prints a session; without a title, by the client's name for it.
pub(super) fn print_session(session: &SessionInfo, title: Option<&str>, out: &mut Output) -> Result<()> {
    let columns = format!(
        "{:6} {:>7} {:>8} {:>7} {:>4}%  {} ",
        session.id.to_string(),
        ago(store::current_time().0.saturating_sub(session.last.0)),
        group_thousands(u64::from(session.requests)),
        short_number(session.tokens_before),
        store::percent_saved(session.tokens_before, session.tokens_after),
        pad_text(&end_of(session.project.as_deref().unwrap_or("-"), PROJECT_WIDTH), PROJECT_WIDTH),
    );
    let title = title.or(session.name.as_deref()).unwrap_or("-");
    let title = on_one_line(title, out.width().saturating_sub(columns.chars().count()));
    out.write_line(format_args!("{columns}{}", escape_name(&title)))
}

/// Says how long ago something was, in milliseconds: `5m ago`.
pub(crate) fn ago(ms: i64) -> String {
    let minutes = ms / 60_000;
    match minutes {
        ..=0 => "now".to_owned(),
        1..60 => format!("{minutes}m ago"),
        60..2_880 => format!("{}h ago", minutes / 60),
        2_880.. => format!("{}d ago", minutes / 1_440),
    }
}

/// Returns the first words of the user in a session, without secrets.
pub(crate) fn title_of(store: &impl Store, session: &SessionInfo, secrets: &Secrets) -> Option<String> {
    let (first, _) = store.first_and_last(session.id).ok()?;
    let request = store.request(first.id).ok()?;
    let history = parse_as(request.bytes, request.info.format).ok()?;
    let facts = facts(&history);
    let said = history.blocks().iter().zip(facts.rows());
    let mut said = said
        .filter(|(_, fact)| fact.role == Role::User && fact.acts_as == BlockKind::Text && !fact.instructions);
    said.find_map(|(block, _)| {
        let text = history.block_text(block).trim().to_owned();
        // Clients put their own reminders in tags before the user's words.
        let is_said = !text.is_empty() && !text.starts_with('<');
        is_said.then(|| secrets.cover_secrets(&text).into_owned())
    })
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

fn session_row(session: &SessionInfo, title: Option<String>) -> SessionListRow<'_> {
    SessionListRow {
        id: session.id.to_string(),
        title: title.map(|title| title.chars().take(TITLE_LETTERS).collect()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_ago_is_told_in_one_unit() {
        const MINUTE: i64 = 60_000;
        let told = [-5, 59_999, MINUTE, 90 * MINUTE, 47 * 60 * MINUTE, 72 * 60 * MINUTE].map(ago);
        assert_eq!(told, ["now", "now", "1m ago", "1h ago", "47h ago", "3d ago"]);
    }
}
