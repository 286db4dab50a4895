//! Where the server finds conversations: the store, or one recording. Takes what an agent names; gives originals, histories and
//! found lines. Opens what it reads anew each time, so that it sees what was kept since, and needs nothing to be there at first.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use trimtab::{
    BlockKind, Handle, History, Point, Recording, Segment, block_handle, block_original, query_terms,
    ranked_lines, read,
};
use trimtab_store::{SessionId, Store, StoreError, WishKind};

use crate::{
    args::StorePlace,
    commands::{recall, wish},
    input, store,
};

/// Where originals come from.
pub(crate) enum Source {
    Store(StorePlace),
    File(PathBuf),
}

/// A line that was found.
pub(super) struct Found {
    pub(super) handle: String,
    pub(super) session: String,
    pub(super) line: usize,
    pub(super) text: String,
}

/// A conversation that is asked about, with the name to call it by.
pub(super) struct Named {
    pub(super) name: String,
    pub(super) history: History,
    /// The requests that were recorded.
    pub(super) points: Vec<Point>,
}

impl Source {
    /// Returns the original that a handle names.
    pub(super) fn original(&self, handle: &str) -> Result<Vec<u8>> {
        match self {
            Source::Store(place) => Ok(store::open_existing(place)?.recall(handle)?),
            Source::File(file) => recall::in_file(handle, file),
        }
    }

    /// Finds blocks that hold all words of a text, the best first.
    pub(super) fn search(&self, text: &str, most: usize) -> Result<Vec<Found>> {
        match self {
            Source::Store(place) => {
                let found = store::open_existing(place)?.search(text, most)?;
                let row = |found: trimtab_store::Found| Found {
                    handle: found.handle,
                    session: found.session.to_string(),
                    line: found.line,
                    text: found.text,
                };
                Ok(found.into_iter().map(row).collect())
            }
            Source::File(file) => Ok(search_in(&recording(file)?, text, most)),
        }
    }

    /// Keeps a wish about a block; returns a sentence about what happens now.
    pub(super) fn wish(&self, handle: &str, session: Option<&str>, kind: WishKind) -> Result<String> {
        let Source::Store(place) = self else {
            bail!("a file is only read: pins and undos need a store");
        };
        let handle = Handle::parse(handle).ok_or_else(|| StoreError::NotAHandle(handle.to_owned()))?;
        let store = store::open_existing(place)?;
        let session = session.map(|word| store::session_named(&store, word)).transpose()?;
        wish::wish(&store, session, handle, kind)
    }

    /// Returns the conversation that is meant: the one named, else the one that was used last.
    pub(super) fn conversation(&self, session: Option<&str>) -> Result<Named> {
        match self {
            Source::Store(place) => {
                let id = session_of(place, session)?;
                let segment = store::recording(place, id)?.segments.pop();
                let Segment { history, points, .. } =
                    segment.with_context(|| format!("{id}: has no requests"))?;
                Ok(Named { name: id.to_string(), history, points })
            }
            Source::File(file) => in_recording(recording(file)?, session),
        }
    }
}

fn recording(file: &std::path::Path) -> Result<Recording> {
    let name = || file.display().to_string();
    read(&input::bytes(file).with_context(name)?).with_context(name)
}

/// Finds a session by its ID, or by the name that its client gave it.
fn session_of(place: &StorePlace, asked: Option<&str>) -> Result<SessionId> {
    if let Some(id) = asked.and_then(SessionId::named) {
        return Ok(id);
    }
    let sessions = store::open_existing(place)?.sessions()?;
    let meant = |name: Option<&str>| asked.is_none() || name == asked;
    let found = sessions.iter().find(|session| meant(session.name.as_deref()));
    match (found, asked) {
        (Some(session), _) => Ok(session.id),
        (None, Some(asked)) => {
            let newest: Vec<String> = sessions.iter().take(5).map(|session| session.id.to_string()).collect();
            bail!("there is no session {asked}; the newest are {}", newest.join(", "))
        }
        (None, None) => bail!("no session is kept yet"),
    }
}

fn in_recording(recording: Recording, asked: Option<&str>) -> Result<Named> {
    let all = recording.segments.len();
    let number = match asked {
        None => recording.longest_number(),
        Some(word) => {
            let number = word.trim_start_matches(['s', 'S']).parse().ok();
            number
                .filter(|number| (1..=all).contains(number))
                .with_context(|| format!("{word}: the recording has the segments 1 to {all}"))?
        }
    };
    let segment = recording.segments.into_iter().nth(number - 1).context("the recording is empty")?;
    Ok(Named { name: format!("segment {number}"), history: segment.history, points: segment.points })
}

/// Finds blocks of a recording, those with more occurrences first and of equals the later.
fn search_in(recording: &Recording, text: &str, most: usize) -> Vec<Found> {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let mut scored: Vec<(usize, Found)> = Vec::new();
    for (number, segment) in (1..).zip(&recording.segments) {
        let history = &segment.history;
        for block in history.blocks().iter().filter(|block| block.kind != BlockKind::Media) {
            let original = String::from_utf8_lossy(&block_original(history, block)).into_owned();
            let lower = original.to_lowercase();
            let count: usize = words.iter().map(|word| lower.matches(word.as_str()).count()).sum();
            if words.is_empty() || words.iter().any(|word| !lower.contains(word.as_str())) {
                continue;
            }
            let (line, text) = best_line(&original, text, &words);
            scored.push((
                count,
                Found { handle: block_handle(history, block), session: number.to_string(), line, text },
            ));
        }
    }
    scored.reverse();
    scored.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    // A block that several segments share is one block.
    let mut seen = std::collections::HashSet::new();
    scored.retain(|(_, found)| seen.insert(found.handle.clone()));
    scored.into_iter().take(most).map(|(_, found)| found).collect()
}

/// Returns the line that says most of the words, with its number counted from 1.
fn best_line(original: &str, text: &str, words: &[String]) -> (usize, String) {
    let ranked = ranked_lines(original, &query_terms(text), 1).first().copied();
    let holding = || {
        original.lines().position(|line| words.iter().any(|word| line.to_lowercase().contains(word.as_str())))
    };
    let index = ranked.or_else(holding).unwrap_or(0);
    (index + 1, original.lines().nth(index).unwrap_or_default().trim().to_owned())
}
