//! `trimtab forget`: removes conversations. Takes sessions, an age or a size, or what the settings say; tells what is forgotten and what that frees. Asks
//! before anything is removed.

use std::io::{self, BufRead, IsTerminal};

use anyhow::{Context, Result};
use trimtab_core::Millis;
use trimtab_store::{ForgetOutcome, ForgetSelection as Which, RunMode, SessionId, Sqlite, Store, StoreError};

use super::sessions;
use crate::{
    args::ForgetArgs,
    output::{Output, count_with_noun, print_line},
    settings::{self, SettingsFiles, keeping::resolve_retention},
    store,
};

pub(crate) fn run(asked: &ForgetArgs, out: &mut Output) -> Result<()> {
    let which = match (asked.older_than, asked.larger_than) {
        (Some(age), _) => Which::OlderThan(Millis(store::current_time().0.saturating_sub(age))),
        (None, Some(bytes)) => Which::LargerThan(bytes),
        (None, None) if asked.ids.is_empty() => by_settings(asked)?,
        (None, None) => Which::Sessions(asked.ids.iter().map(|id| parse_session(id)).collect::<Result<_>>()?),
    };
    let mode = if asked.dry_run { RunMode::DryRun } else { RunMode::Do };
    if mode == RunMode::Do && !asked.yes {
        let count = forget_in_store(asked, &which, RunMode::DryRun)?.sessions.len();
        if count > 0 && !is_confirmed(count)? {
            print_line("nothing is deleted");
            return Ok(());
        }
    }
    let forgotten = forget_in_store(asked, &which, mode)?;
    for session in &forgotten.sessions {
        sessions::print_session(session, None, out)?;
    }
    out.flush()?;
    let (count, before, after) = (
        count_with_noun(forgotten.sessions.len(), "session", "sessions"),
        store::format_size(forgotten.before),
        store::format_size(forgotten.after),
    );
    match mode {
        RunMode::Do => {
            print_line(format_args!("{count} deleted: the store had {before}, it has {after} now"));
        }
        RunMode::DryRun => {
            print_line(format_args!(
                "{count} would be deleted: the store has {before}, and would have about {after}"
            ));
        }
    }
    Ok(())
}

/// Forgets. Where there is no space to work beside others, it is done alone, in the file itself.
fn forget_in_store(asked: &ForgetArgs, which: &Which, mode: RunMode) -> Result<ForgetOutcome> {
    let store = match store::open_existing(&asked.store) {
        // Even what readers share needs space, where a process that crashed left a log.
        Err(fault) if is_full(&fault) => None,
        store => Some(store?),
    };
    match store.map(|store| store.forget(which, mode)) {
        // A store that cannot grow is opened to be read alone, where there is no space for what others would share.
        None | Some(Err(StoreError::Full | StoreError::ReadOnly)) => {
            Ok(Sqlite::forget_alone(&store::path(&asked.store)?, which, mode)?)
        }
        Some(done) => Ok(done?),
    }
}

fn is_full(fault: &anyhow::Error) -> bool {
    matches!(fault.downcast_ref(), Some(StoreError::Full))
}

/// Returns what the settings no longer keep.
fn by_settings(asked: &ForgetArgs) -> Result<Which> {
    let (retention, _) = resolve_retention(&asked.keep, &SettingsFiles::read()?)?;
    if retention.keeps_all() {
        return Err(settings::wrong_usage(
            "nothing says what to forget: name sessions, --older-than AGE or --larger-than SIZE, or set keep_for or keep_at_most",
        ));
    }
    Ok(Which::Beyond(retention, store::current_time()))
}

/// Asks whether so many sessions are to be forgotten.
///
/// # Errors
/// Says that there is nobody to ask.
fn is_confirmed(count: usize) -> Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(settings::wrong_usage(format_args!(
            "{} would be deleted for good: --dry-run lists what, --yes deletes it",
            count_with_noun(count, "session", "sessions")
        )));
    }
    let sessions = count_with_noun(count, "session", "sessions");
    print_line(format_args!("Delete {sessions} for good? --dry-run lists what would be deleted. [y/N]"));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn parse_session(word: &str) -> Result<SessionId> {
    SessionId::parse_name(word)
        .with_context(|| format!("{word} is not a session: `trimtab sessions` lists them, as s12"))
}
