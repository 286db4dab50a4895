//! `trimtab forget`: removes conversations. Takes sessions, an age or a size; tells what is forgotten and what that frees.

use anyhow::{Context, Result};
use trimtab::Millis;
use trimtab_store::{Forget as Which, Mode, SessionId, Store};

use super::sessions;
use crate::{
    args::Forget,
    output::{Output, say},
    store,
};

pub(crate) fn run(asked: &Forget, out: &mut Output) -> Result<()> {
    let which = match (asked.older_than, asked.larger_than) {
        (Some(age), _) => Which::OlderThan(Millis(store::now().0.saturating_sub(age))),
        (None, Some(bytes)) => Which::LargerThan(bytes),
        (None, None) => Which::Sessions(asked.ids.iter().map(|id| session(id)).collect::<Result<_>>()?),
    };
    let mode = if asked.dry_run { Mode::DryRun } else { Mode::Do };
    let forgotten = store::open_existing(&asked.store)?.forget(&which, mode)?;
    for session in &forgotten.sessions {
        sessions::line(session, out)?;
    }
    out.flush()?;
    let (count, before, after) =
        (forgotten.sessions.len(), store::size(forgotten.before), store::size(forgotten.after));
    match mode {
        Mode::Do => say(format_args!("{count} sessions forgotten: {before} before, {after} now")),
        Mode::DryRun => {
            say(format_args!("{count} sessions would be forgotten: {before} now, about {after} then"));
        }
    }
    Ok(())
}

fn session(word: &str) -> Result<SessionId> {
    SessionId::named(word)
        .with_context(|| format!("{word} is no session: `trimtab sessions` lists them, as s12"))
}
