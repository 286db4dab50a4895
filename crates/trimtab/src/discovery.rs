//! Finds the sessions of agents on this machine: [`discover`]. `replay`, `inspect` and `doctor` use it. Takes a [`Machine`], so that tests
//! need none of the real one; gives files, the newest first, and where it looked. Reads names and dates, never a session.

mod places;

use std::{
    collections::HashSet,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use trimtab_core::Millis;

pub(crate) use self::places::{AGENTS, AgentPlaces};
use self::places::{EDITORS, Elsewhere};

/// How deep folders are searched: agents sort their sessions by project, year, month and day.
const DEPTH: usize = 8;

/// An operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    Linux,
    MacOs,
    Windows,
}

/// What tells where the folders of this machine are.
pub(crate) struct Machine {
    pub(crate) system: System,
    /// Reads an environment variable.
    pub(crate) variable: fn(&str) -> Option<OsString>,
    /// The folder of whoever runs this.
    pub(crate) home: Option<PathBuf>,
}

impl Machine {
    /// Returns the one that this program runs on.
    pub(crate) fn this() -> Machine {
        let system = match std::env::consts::OS {
            "windows" => System::Windows,
            "macos" => System::MacOs,
            _ => System::Linux,
        };
        Machine { system, variable: |name| std::env::var_os(name), home: std::env::home_dir() }
    }

    /// Returns the folder in which programs keep the user's settings.
    pub(crate) fn settings_folder(&self) -> Option<PathBuf> {
        let folder =
            |name: &str| (self.variable)(name).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        folder("XDG_CONFIG_HOME").or_else(|| match self.system {
            System::Windows => folder("APPDATA"),
            System::Linux | System::MacOs => Some(folder("HOME")?.join(".config")),
        })
    }

    /// Returns the folders that a place stands for: none where a variable is not set.
    fn folders(&self, place: &str) -> Vec<PathBuf> {
        let mut parts = place.split('/');
        let base = match parts.next() {
            Some("~") => self.home.clone(),
            Some(word) => word
                .strip_prefix('$')
                .and_then(|name| (self.variable)(name))
                .filter(|value| !value.is_empty())
                .map(PathBuf::from),
            None => None,
        };
        let Some(base) = base else { return Vec::new() };
        parts.fold(vec![base], |folders, part| {
            let names: &[&str] = if part == "{editor}" { EDITORS } else { std::slice::from_ref(&part) };
            folders.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name))).collect()
        })
    }
}

/// A session's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundSession {
    /// The agent, as recordings name it.
    pub(crate) agent: &'static str,
    pub(crate) path: PathBuf,
    /// When it was last written.
    pub(crate) modified: Millis,
    pub(crate) bytes: u64,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    /// The newest first.
    pub(crate) sessions: Vec<FoundSession>,
    /// Folders that were searched, with their agent, whether they are there or not.
    pub(crate) searched: Vec<(&'static AgentPlaces, PathBuf)>,
    /// Places that hold sessions which only the agent itself can write as a file, with what to do.
    pub(crate) elsewhere: Vec<(&'static Elsewhere, PathBuf)>,
}

/// Finds the sessions of these agents.
pub(crate) fn discover(machine: &Machine, agents: &[&'static AgentPlaces]) -> Discovery {
    let mut found = Discovery::default();
    let mut seen = HashSet::new();
    for agent in agents {
        let places = agent.places.iter().filter(|place| place.on.contains(&machine.system));
        for folder in places.flat_map(|place| machine.folders(place.at)) {
            // A variable may name the usual place.
            if found.searched.iter().any(|(other, place)| other.name == agent.name && *place == folder) {
                continue;
            }
            collect_files(agent, &folder, DEPTH, &mut seen, &mut found.sessions);
            found.searched.push((agent, folder));
        }
        for elsewhere in agent.elsewhere {
            let files = elsewhere.places.iter().filter(|place| place.on.contains(&machine.system));
            let there = files.flat_map(|place| machine.folders(place.at)).find(|file| file.exists());
            found.elsewhere.extend(there.map(|file| (elsewhere, file)));
        }
    }
    found
        .sessions
        .sort_by(|one, other| other.modified.0.cmp(&one.modified.0).then_with(|| one.path.cmp(&other.path)));
    found
}

/// Collects the session files below a folder. Links to folders are not followed.
fn collect_files(
    agent: &AgentPlaces,
    folder: &Path,
    depth: usize,
    seen: &mut HashSet<PathBuf>,
    sessions: &mut Vec<FoundSession>,
) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() && depth > 0 {
            collect_files(agent, &path, depth - 1, seen, sessions);
        }
        let is_session =
            kind.is_file() && entry.file_name().to_str().is_some_and(|name| agent.file.fits(name));
        let Ok(about) = entry.metadata() else { continue };
        if is_session && about.len() > 0 && seen.insert(path.clone()) {
            let since = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let modified = since.and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or(0);
            sessions.push(FoundSession {
                agent: agent.name,
                path,
                modified: Millis(modified),
                bytes: about.len(),
            });
        }
    }
}

/// Finds the agents that people mean by a name.
///
/// # Errors
/// Says which agents there are, and the nearest.
pub(crate) fn agents_named(name: &str) -> Result<Vec<&'static AgentPlaces>, String> {
    let wanted = name.trim().to_lowercase();
    let is_meant = |agent: &&AgentPlaces| {
        agent.name == wanted
            || agent.name.starts_with(&format!("{wanted}-"))
            || agent.title.to_lowercase() == wanted
    };
    let known: Vec<_> = AGENTS.iter().filter(is_meant).collect();
    if !known.is_empty() && !wanted.is_empty() {
        return Ok(known);
    }
    let names: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
    Err(format!(
        "there is no agent {name:?}{}: there are {}",
        crate::near::did_you_mean(name, &names),
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests;
