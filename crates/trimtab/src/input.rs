//! Files and standard input. Takes what was named on the command line; gives the conversation that is meant.
//! Never guesses past a wrong name: it says what is there and what to do.

use std::{
    fs::{self, File},
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use trimtab_core::{History, Role, SessionAccount, json::MAX_JSON_BYTES, parse_as, wire::request_of};
use trimtab_replay::{Problem, Recording, Segment, ToolCalls, read};

use trimtab_store::{SessionId, Store};

use crate::{
    accounts::account_of_requests,
    args::{InputArgs, StoreViewArgs},
    heads::scope_calls,
    output,
    scope::{Asker, LATEST, StoreScope},
    store,
};

/// How many problems of a recording are said one by one.
const PROBLEMS_SAID: usize = 3;

/// How names of files end that are looked for in a folder.
pub(crate) const ENDINGS: &[&str] = &["json", "jsonl", "traj"];

/// A file that could not be read.
#[derive(Serialize)]
pub(crate) struct Unreadable {
    pub(crate) path: String,
    pub(crate) reason: String,
}

/// The conversation that was asked for.
pub(crate) struct Conversation {
    pub(crate) name: String,
    /// The agent whose recording it is; `request` for a plain request.
    pub(crate) agent: &'static str,
    pub(crate) segment: Segment,
    /// Number of the segment, counted from 1, and how many there are.
    pub(crate) number: usize,
    pub(crate) segments: usize,
    pub(crate) problems: Vec<Problem>,
    /// The request asked for: all that was said, or what was sent before a step.
    pub(crate) history: History,
}

/// Reads the conversation that is meant.
pub(crate) fn read_conversation(input: &InputArgs) -> Result<Conversation> {
    let name = name_of(&input.file);
    if let Some(recording) = stored_session(&input.file, &input.view)? {
        return choose_segment(input, name, recording);
    }
    let recording = read_recording(input).with_context(|| name.clone())?;
    choose_segment(input, name, recording)
}

/// Reads a session that is kept, where its ID is given and no file has that name.
pub(crate) fn stored_session(file: &Path, view: &StoreViewArgs) -> Result<Option<Recording>> {
    let Some((scope, session)) = named_session(file, view)? else { return Ok(None) };
    store::session_as_recording(scope.store(), session).map(Some)
}

/// Returns the account of a session that is kept, where its ID is given and no file has that name.
pub(crate) fn stored_account(file: &Path, view: &StoreViewArgs) -> Result<Option<SessionAccount>> {
    let Some((scope, session)) = named_session(file, view)? else { return Ok(None) };
    Ok(Some(account_of_requests(&scope.store().requests(session)?)))
}

/// Returns the tools that the project's stored sessions called, where the ID of a stored session is given and no file has that name.
pub(crate) fn stored_calls(file: &Path, view: &StoreViewArgs) -> Result<Option<ToolCalls>> {
    let Some((scope, _)) = named_session(file, view)? else { return Ok(None) };
    scope_calls(scope.store(), &scope.sessions()?.0).map(Some)
}

/// Finds the session that is kept and whose ID is given, where no file has that name.
fn named_session(file: &Path, view: &StoreViewArgs) -> Result<Option<(StoreScope, SessionId)>> {
    let is_id = |word: &&str| *word == LATEST || SessionId::parse_name(word).is_some();
    let Some(word) = file.to_str().filter(is_id).filter(|_| !file.exists()) else { return Ok(None) };
    let scope = StoreScope::open(view, Asker::CommandLine)?;
    let session = scope.session_named(word)?;
    Ok(Some((scope, session)))
}

fn choose_segment(input: &InputArgs, name: String, recording: Recording) -> Result<Conversation> {
    say_problems(&name, &recording.problems);
    let number = segment_number(input, &recording).with_context(|| name.clone())?;
    let segments = recording.segments.len();
    let Recording { agent, segments: mut all, problems } = recording;
    let segment = all.swap_remove(number - 1);
    let history = history_at_step(input, &segment).with_context(|| name.clone())?;
    Ok(Conversation { name, agent, segment, number, segments, problems, history })
}

/// Returns the request that is meant: of a recording, the last one that was sent.
pub(crate) fn request_bytes(input: &InputArgs, conversation: &Conversation) -> Vec<u8> {
    let whole = input.step.is_some() || conversation.agent == "request";
    match conversation.segment.points.last() {
        // The last request of a recording does not hold its own answer.
        Some(point) if !whole => conversation.segment.request_at(point),
        _ => conversation.history.bytes().to_vec(),
    }
}

/// Returns the model that a recording names last.
pub(crate) fn recorded_model(conversation: &Conversation) -> Option<String> {
    conversation.segment.points.iter().rev().find_map(|point| point.model.clone())
}

/// Returns the bytes of a file, or of standard input for `-`.
pub(crate) fn read_file_or_stdin(file: &Path) -> Result<Vec<u8>> {
    if file.as_os_str() == "-" {
        if io::stdin().is_terminal() {
            bail!("nothing to read: name a FILE, or pipe a request in");
        }
        return read_limited(io::stdin().lock());
    }
    let opened = File::open(file).context("cannot be opened")?;
    if opened.metadata().is_ok_and(|about| about.is_dir()) {
        bail!("is a folder: name one file in it");
    }
    read_limited(opened)
}

/// Makes sure that a file can be read.
///
/// # Errors
/// Says why not.
pub(crate) fn check_readable(file: &Path) -> Result<()> {
    let opened = File::open(file).with_context(|| format!("{}: cannot be opened", file.display()))?;
    if opened.metadata().is_ok_and(|about| about.is_dir()) {
        bail!("{}: is a folder: name one file in it", file.display());
    }
    Ok(())
}

/// Collects the files of a path: itself, or those below it that may be recordings. Links to folders are not followed.
pub(crate) fn files_of(path: &Path, files: &mut Vec<PathBuf>, unreadable: &mut Vec<Unreadable>) {
    if !path.is_dir() {
        files.push(path.to_owned());
        return;
    }
    let listed = match fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()),
        Err(error) => {
            unreadable.push(Unreadable { path: path.display().to_string(), reason: error.to_string() });
            return;
        }
    };
    let may_be = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if path.is_dir() { !path.is_symlink() } else { ENDINGS.contains(&ending) }
    };
    let mut listed: Vec<PathBuf> = listed.filter(may_be).collect();
    listed.sort();
    listed.iter().for_each(|path| files_of(path, files, unreadable));
}

fn read_limited(reader: impl Read) -> Result<Vec<u8>> {
    let limit = u64::try_from(MAX_JSON_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    reader.take(limit + 1).read_to_end(&mut bytes).context("cannot be read")?;
    if bytes.len() > MAX_JSON_BYTES {
        bail!("has more than {MAX_JSON_BYTES} bytes, the most that is read");
    }
    Ok(bytes)
}

fn read_recording(input: &InputArgs) -> Result<Recording> {
    let bytes = read_file_or_stdin(&input.file)?;
    let Some(format) = input.format else { return Ok(read(&bytes)?) };
    Ok(Recording::of_request(parse_as(bytes, format)?))
}

fn segment_number(input: &InputArgs, recording: &Recording) -> Result<usize> {
    let Some(number) = input.segment else { return Ok(recording.longest_number()) };
    let number = usize::try_from(number)?;
    if number > recording.segments.len() {
        bail!("has no segment {number}: there are {}", recording.segments.len());
    }
    Ok(number)
}

fn history_at_step(input: &InputArgs, segment: &Segment) -> Result<History> {
    let Some(step) = input.step else { return Ok(segment.history.clone()) };
    let messages = segment.history.messages();
    let answer = messages.iter().position(|entry| entry.step == step && entry.role == Role::Assistant);
    let Some(before) = answer else {
        let last = messages.last().map_or(0, |entry| entry.step);
        bail!("has no step {step}: the last is {last}");
    };
    Ok(parse_as(request_of(&segment.history, before), segment.history.format())?)
}

fn say_problems(name: &str, problems: &[Problem]) {
    problems
        .iter()
        .take(PROBLEMS_SAID)
        .for_each(|problem| output::print_note(format_args!("{name}: {problem}")));
    if problems.len() > PROBLEMS_SAID {
        output::print_note(format_args!(
            "{name}: {} more lines could not be used",
            problems.len() - PROBLEMS_SAID
        ));
    }
}

fn name_of(file: &Path) -> String {
    if file.as_os_str() == "-" { "standard input".to_owned() } else { file.display().to_string() }
}
