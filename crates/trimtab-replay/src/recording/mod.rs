//! Transcript files to histories. Takes the bytes of a recording of any known agent; gives its segments: linear
//! histories in that agent's wire format, with the points at which requests were made.
//! Never fails for one bad line: what can be read is used, and the rest is listed.

mod chat;
mod claude_code;
mod cline;
mod cline_cli;
mod codex;
mod copilot_cli;
mod draft;
mod gemini_cli;
mod mini_swe_agent;
mod openai_chat;
mod opencode;
mod openhands;
mod pi;
#[cfg(test)]
mod picture;
mod plain_messages;
mod repository;
mod source;
mod swe_agent;
use std::fmt;

use trimtab_core::{
    History, Role,
    json::{JsonError, MAX_JSON_BYTES},
    usage::Point,
    wire::{self, WireError},
};

pub use repository::repository_name;

use draft::RecordingDraft;
use source::RecordingSource;

/// How one agent's files are read. A new one is one file and one line in [`READERS`].
struct RecordingReader {
    name: &'static str,
    about: &'static str,
    /// Tells whether the file is one of this agent's.
    fits: fn(&RecordingSource<'_>) -> bool,
    read: fn(&RecordingSource<'_>, &mut RecordingDraft),
}

/// The agents whose recordings are read. The first that fits reads the file.
const READERS: &[&RecordingReader] = &[
    &claude_code::READER,
    &codex::READER,
    &copilot_cli::READER,
    &pi::READER,
    &gemini_cli::READER,
    &opencode::READER,
    &cline_cli::READER,
    &cline::READER,
    &mini_swe_agent::READER,
    &swe_agent::READER,
    &openhands::READER,
    // Last: its files are known by their contents, not by their agent.
    &openai_chat::READER,
];

/// Why a segment begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SegmentStart {
    /// The session began.
    Session,
    /// The agent replaced its history by a shorter one.
    Compaction,
    /// The user went back and took another way.
    Branch,
    /// A sub-agent was started.
    SubAgent,
}

impl SegmentStart {
    /// Returns the name used in tables.
    pub fn name(self) -> &'static str {
        match self {
            SegmentStart::Session => "session",
            SegmentStart::Compaction => "compaction",
            SegmentStart::Branch => "branch",
            SegmentStart::SubAgent => "sub-agent",
        }
    }
}

/// One linear history with its request points.
#[derive(Debug, Clone)]
pub struct Segment {
    /// A name, where the recording gives one.
    pub name: Option<String>,
    /// Why it begins.
    pub start: SegmentStart,
    /// All that was said in it, as the last request and its answer.
    pub history: History,
    /// The requests made in it, in order.
    pub points: Vec<Point>,
}

impl Segment {
    /// Returns the request that was sent at a point.
    pub fn request_at(&self, point: &Point) -> Vec<u8> {
        wire::request_of(&self.history, point.messages)
    }
}

/// A place in a recording that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line in the file, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// What one file holds.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The agent whose file it is; `request` for a plain request.
    pub agent: &'static str,
    /// Its linear histories, in the order in which they begin.
    pub segments: Vec<Segment>,
    /// What could not be used.
    pub problems: Vec<Problem>,
}

impl Recording {
    /// Makes a recording of one request.
    pub fn of_request(history: History) -> Recording {
        let points = points_of(&history);
        let segment = Segment { name: None, start: SegmentStart::Session, history, points };
        Recording { agent: "request", segments: vec![segment], problems: Vec::new() }
    }

    /// Returns the number, counted from 1, of the segment with the most bytes: the one that people mean.
    pub fn longest_number(&self) -> usize {
        let sizes = self.segments.iter().map(|segment| segment.history.bytes().len());
        // The last of equals is given, so that looking from the end finds the first.
        sizes.enumerate().rev().max_by_key(|(_, size)| *size).map_or(1, |(index, _)| index + 1)
    }
}

/// A file that holds no conversation that could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file has no content.
    #[error("the file is empty: expected a request or a recording")]
    Empty,
    /// The file is larger than what is read.
    #[error("the file has {0} bytes; at most {MAX_JSON_BYTES} (1 GiB) are read")]
    TooLarge(usize),
    /// The file is neither a JSON document nor are its lines.
    #[error("{}", not_json(.0))]
    NotJson(JsonError),
    /// It is JSON, but no request that could be read.
    #[error("{0}")]
    NotARequest(WireError),
    /// It is JSON, but neither a request nor a known recording.
    #[error("{}. Recordings of these agents are read: {}", WireError::NotAConversation, known_agents())]
    Foreign,
    /// It is a recording of a known agent without a single message in it.
    #[error("{}", no_messages(agent, problems))]
    NoMessages {
        /// The agent.
        agent: &'static str,
        /// What could not be used.
        problems: Vec<Problem>,
    },
}

/// Names and descriptions of the agents whose recordings are read.
pub fn agents() -> impl Iterator<Item = (&'static str, &'static str)> {
    READERS.iter().map(|reader| (reader.name, reader.about))
}

/// Reads a recording or a plain request, telling by itself whose it is.
///
/// # Errors
/// Says what was expected, where the bytes hold no conversation at all.
pub fn read(file: &[u8]) -> Result<Recording, ReadError> {
    check_size(file.len())?;
    let source = RecordingSource::read_file(file)?;
    let Some(reader) = READERS.iter().find(|reader| (reader.fits)(&source)) else {
        return plain_request(file, &source);
    };
    let mut draft = RecordingDraft::new();
    (reader.read)(&source, &mut draft);
    let (segments, mut problems) = draft.finish();
    problems.extend(source.problems);
    problems.sort_by_key(|problem| problem.line);
    if segments.is_empty() {
        return Err(ReadError::NoMessages { agent: reader.name, problems });
    }
    Ok(Recording { agent: reader.name, segments, problems })
}

fn plain_request(file: &[u8], source: &RecordingSource<'_>) -> Result<Recording, ReadError> {
    if source.document().is_none() {
        return Err(ReadError::Foreign);
    }
    match wire::parse(file.to_vec()) {
        Ok(history) => Ok(Recording::of_request(history)),
        Err(WireError::NotAConversation) => Err(ReadError::Foreign),
        Err(fault) => Err(ReadError::NotARequest(fault)),
    }
}

fn check_size(bytes: usize) -> Result<(), ReadError> {
    if bytes > MAX_JSON_BYTES { Err(ReadError::TooLarge(bytes)) } else { Ok(()) }
}

/// Tells the requests that must have been made: one before each answer of the model, and one for what is open.
fn points_of(history: &History) -> Vec<Point> {
    let messages = history.messages();
    let said = |index: usize| messages.get(index).map(|entry| entry.role);
    let answered = (0..messages.len())
        .filter(|index| said(*index) == Some(Role::Assistant))
        .filter(|index| index.checked_sub(1).and_then(said) != Some(Role::Assistant));
    let open = (messages.last().map(|entry| entry.role) != Some(Role::Assistant)).then_some(messages.len());
    let model = history.model().map(std::borrow::Cow::into_owned);
    let point = |messages| Point { messages, at: None, model: model.clone(), usage: None };
    answered.chain(open).map(point).collect()
}

fn known_agents() -> String {
    agents().map(|(name, _)| name).collect::<Vec<_>>().join(", ")
}

fn not_json(fault: &JsonError) -> String {
    let JsonError { line, column, expected, .. } = fault;
    match fault.found {
        None => format!(
            "the JSON breaks off at line {line}, column {column}, where {expected} was expected: was the file cut?"
        ),
        Some(_) => format!("neither JSON nor JSON lines: {fault}"),
    }
}

fn no_messages(agent: &str, problems: &[Problem]) -> String {
    match problems {
        [] => format!("this {agent} recording holds no messages"),
        [first, ..] => format!("no message of this {agent} recording could be read: {first}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: usize, expected: Result<(), &str>) {
        assert_eq!(check_size(bytes).map_err(|fault| fault.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn a_file_over_the_limit_is_refused_with_the_limit_named() {
        check(MAX_JSON_BYTES, Ok(()));
        check(MAX_JSON_BYTES + 1, Err("the file has 1073741825 bytes; at most 1073741824 (1 GiB) are read"));
    }
}
