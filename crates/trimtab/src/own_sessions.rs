//! The sessions that are meant where no path is named: [`own_sessions`]. `replay` and `inspect` use it. Takes what was asked for; gives
//! files, the newest first, and says on standard error what was found. Where nothing is, it says where it looked.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::{
    args::{Finding, Since},
    discovery::{AGENTS, AgentPlaces, Discovery, FoundSession, Machine, discover},
    output::{count_with_noun, print_note},
    store::current_time,
};

/// How many sessions are taken where nobody says how many: about a minute's work.
const USUAL: usize = 100;

/// Finds the sessions that are meant.
///
/// # Errors
/// Says where it looked, where there is none.
pub(crate) fn own_sessions(asked: &Finding, command: &str) -> Result<Vec<PathBuf>> {
    let mut agents: Vec<&'static AgentPlaces> =
        asked.agents.iter().flat_map(|group| group.0.iter().copied()).collect();
    if agents.is_empty() {
        agents = AGENTS.iter().collect();
    }
    let found = discover(&Machine::this(), &agents);
    let begins = match asked.since {
        Some(Since::Ago(age)) => current_time().0.saturating_sub(age),
        Some(Since::At(time)) => time.0,
        None => i64::MIN,
    };
    let all: Vec<&FoundSession> =
        found.sessions.iter().filter(|session| session.modified.0 >= begins).collect();
    if all.is_empty() {
        bail!("{}", nothing_words(&found, command));
    }
    let most = match (asked.last, asked.since) {
        (Some(last), _) => usize::try_from(last)?,
        (None, Some(_)) => usize::MAX,
        (None, None) => USUAL,
    };
    let taken: Vec<&FoundSession> = all.iter().take(most).copied().collect();
    print_note(found_words(&all, taken.len()));
    for (elsewhere, file) in &found.elsewhere {
        print_note(format_args!("{}: {}", file.display(), elsewhere.remedy));
    }
    Ok(taken.into_iter().map(|session| session.path.clone()).collect())
}

/// Says how many sessions there are, by agent, and how many are taken.
fn found_words(all: &[&FoundSession], taken: usize) -> String {
    let of = |agent: &AgentPlaces| all.iter().filter(|session| session.agent == agent.name).count();
    let each = AGENTS.iter().map(|agent| (agent.title, of(agent))).filter(|(_, count)| *count > 0);
    let each: Vec<String> = each.map(|(title, count)| format!("{title} {count}")).collect();
    let which = if taken < all.len() {
        format!("; the newest {taken} are taken, --last N takes more")
    } else {
        String::new()
    };
    format!("{} found ({}){which}", count_with_noun(all.len(), "session", "sessions"), each.join(", "))
}

/// Says that nothing was found, and where it looked.
fn nothing_words(found: &Discovery, command: &str) -> String {
    let mut words = match found.sessions.len() {
        0 => "no session of an agent was found on this machine".to_owned(),
        count => format!(
            "none of the {} found was used since then; --since 30d goes further back",
            count_with_noun(count, "session", "sessions")
        ),
    };
    if found.sessions.is_empty() && !found.searched.is_empty() {
        words += "; looked in:";
        for (agent, folder) in &found.searched {
            // Folders of editors that are not there would fill the screen.
            let is_worth_a_line = folder.exists() || !folder.to_string_lossy().contains("globalStorage");
            if is_worth_a_line {
                words += &format!("\n  {:<16} {}", agent.name, folder.display());
            }
        }
    }
    for (elsewhere, file) in &found.elsewhere {
        words += &format!("\n{}: {}", file.display(), elsewhere.remedy);
    }
    words + &format!("\nname a file or folder: `trimtab {command} PATH`")
}
