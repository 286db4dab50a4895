//! Where the server finds conversations: the store, or one recording. Takes what an agent names; gives originals, histories and
//! found lines of the own project. Opens what it reads again each time, so that it sees what was kept since, and needs nothing to be there at first.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use trimtab_core::{
    BlockKind, Handle, History, Point, block_handle, block_original,
    digest::{query_terms, ranked_lines},
};
use trimtab_replay::{Recording, Segment, read};
use trimtab_store::{Secrets, StoreError, WishKind};

use crate::{
    args::StoreViewArgs,
    commands::{recall, wish},
    input,
    scope::{Asker, LATEST, StoreScope},
    store,
};

/// Where originals come from.
pub(crate) enum ToolSource {
    Store(StoreViewArgs),
    File(PathBuf),
}

/// What agents are answered from, with what is covered in lists.
pub(super) struct ToolLibrary {
    pub(super) source: ToolSource,
    pub(super) secrets: Secrets,
}

/// A line that was found.
pub(super) struct FoundLine {
    pub(super) handle: String,
    pub(super) session: String,
    pub(super) line: usize,
    pub(super) text: String,
}

/// A conversation that is asked about, with the name to call it by.
pub(super) struct NamedConversation {
    pub(super) name: String,
    pub(super) history: History,
    /// The requests that were recorded.
    pub(super) points: Vec<Point>,
}

impl ToolLibrary {
    /// Returns the original that a handle names.
    pub(super) fn original(&self, handle: &str) -> Result<Vec<u8>> {
        match &self.source {
            ToolSource::Store(view) => StoreScope::open(view, Asker::Agent)?.recall(handle),
            ToolSource::File(file) => recall::in_file(handle, file),
        }
    }

    /// Finds blocks that hold all words of a text, the best first; says where else there are some, where none are found.
    pub(super) fn search_blocks(
        &self,
        text: &str,
        most: usize,
        session: Option<&str>,
    ) -> Result<(Vec<FoundLine>, Option<String>)> {
        match &self.source {
            ToolSource::Store(view) => {
                let scope = StoreScope::open(view, Asker::Agent)?;
                let (found, elsewhere) = scope.search_blocks(text, most, session, &self.secrets)?;
                let row = |found: trimtab_store::SearchHit| FoundLine {
                    handle: found.handle,
                    session: found.session.to_string(),
                    line: found.line,
                    text: found.text,
                };
                Ok((found.into_iter().map(row).collect(), elsewhere))
            }
            ToolSource::File(file) => {
                let mut found = search_in(&read_recording(file)?, text, usize::MAX, &self.secrets);
                if let Some(session) = session {
                    found.retain(|found| found.session == session.trim_start_matches(['s', 'S']));
                }
                found.truncate(most);
                Ok((found, None))
            }
        }
    }

    /// Keeps a wish about a block; returns a sentence about what happens now.
    pub(super) fn record_wish(&self, handle: &str, session: Option<&str>, kind: WishKind) -> Result<String> {
        let ToolSource::Store(view) = &self.source else {
            bail!("a file is only read: pins and undos need a store");
        };
        let handle = Handle::parse(handle).ok_or_else(|| StoreError::NotAHandle(handle.to_owned()))?;
        wish::record_wish(&StoreScope::open(view, Asker::Agent)?, session, handle, kind)
    }

    /// Returns the conversation that is meant: the one named, else the one of the own project that was used last.
    pub(super) fn conversation(&self, session: Option<&str>) -> Result<NamedConversation> {
        match &self.source {
            ToolSource::Store(view) => {
                let scope = StoreScope::open(view, Asker::Agent)?;
                let id = scope.session_named(session.unwrap_or(LATEST))?;
                let segment = store::session_as_recording(scope.store(), id)?.segments.pop();
                let Segment { history, points, .. } =
                    segment.with_context(|| format!("{id}: has no requests"))?;
                Ok(NamedConversation { name: id.to_string(), history, points })
            }
            ToolSource::File(file) => in_recording(read_recording(file)?, session),
        }
    }
}

fn read_recording(file: &std::path::Path) -> Result<Recording> {
    let name = || file.display().to_string();
    read(&input::read_file_or_stdin(file).with_context(name)?).with_context(name)
}

fn in_recording(recording: Recording, asked: Option<&str>) -> Result<NamedConversation> {
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
    Ok(NamedConversation {
        name: format!("segment {number}"),
        history: segment.history,
        points: segment.points,
    })
}

/// Finds blocks of a recording, those with more occurrences first and of equals the later.
fn search_in(recording: &Recording, text: &str, most: usize, secrets: &Secrets) -> Vec<FoundLine> {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let mut scored: Vec<(usize, FoundLine)> = Vec::new();
    for (number, segment) in (1..).zip(&recording.segments) {
        let history = &segment.history;
        for block in history.blocks().iter().filter(|block| block.kind != BlockKind::Media) {
            let original = block_original(history, block);
            let original = secrets.cover_secrets(&String::from_utf8_lossy(&original)).into_owned();
            let lower = original.to_lowercase();
            let count: usize = words.iter().map(|word| lower.matches(word.as_str()).count()).sum();
            if words.is_empty() || words.iter().any(|word| !lower.contains(word.as_str())) {
                continue;
            }
            let (line, text) = best_line(&original, text, &words);
            scored.push((
                count,
                FoundLine { handle: block_handle(history, block), session: number.to_string(), line, text },
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
