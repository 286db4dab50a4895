//! Figures and facts about conversations. Takes files or messages; gives the values that the command line writes with `--json`.
//! Never changes anything.
#![allow(unsafe_code, reason = "PyO3's macros write it; there is none of ours")]

use std::{
    borrow::Cow,
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
    time::{Duration, Instant},
};

use pyo3::{prelude::*, types::PyList};
use serde::Serialize;
use trimtab_core::{
    CountMemo, Counter, History, Policy, Tokens, Usage, facts,
    facts::ToolKind,
    files::{ChangeGroup, FileChanges},
    find_model, parse_as,
    prices::models,
    report::{FilePart, FileQuestion, FileTracker},
};
use trimtab_replay::{
    Contender, KnobRange, Recording, ReplayBudget, ReplayTerms, Segment, SessionScores, contenders,
    pool_sessions, read,
};

use crate::{
    errors::{ErrorKind, new_exception},
    fitted::to_python,
    request::{RequestFields, json_of, read_messages},
    settings::format_named,
    turn::told_format,
};

/// Models whose prices are paid where none is named, as the command line does.
const MODELS: [&str; 3] = ["claude-opus-5", "claude-opus-5-5", "claude-fable-5-1"];

/// How names of files end that are looked for in a folder.
const ENDINGS: &[&str] = &["json", "jsonl", "traj"];

/// A conversation that is read.
#[pyclass(frozen, module = "trimtab._engine", name = "Conversation")]
pub(crate) struct PyConversation {
    name: String,
    recording: Recording,
    /// The segment that is meant, counted from 1.
    number: usize,
}

#[derive(Serialize)]
struct PolicyRow {
    name: String,
    about: String,
    settings: Vec<(String, f64)>,
}

#[derive(Serialize)]
struct ChangedFileRow<'a> {
    path: &'a str,
    changes: Vec<ChangesRow<'a>>,
}

#[derive(Serialize)]
struct ChangesRow<'a> {
    count: usize,
    first_step: u32,
    last_step: u32,
    words: &'a [String],
}

#[derive(Serialize)]
struct TouchedFilesRow<'a> {
    step: u32,
    files: Vec<&'a FilePart>,
}

#[pymethods]
impl PyConversation {
    /// Reads a file: a request or a recording.
    #[staticmethod]
    #[pyo3(signature = (path, *, segment=None))]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands a path over by value")]
    fn of_file(py: Python<'_>, path: PathBuf, segment: Option<usize>) -> PyResult<PyConversation> {
        let name = path.display().to_string();
        let bytes = py.detach(|| fs::read(&path))?;
        let recording = py.detach(|| read(&bytes));
        let recording = recording
            .map_err(|fault| new_exception(py, ErrorKind::Request, format_args!("{name}: {fault}")))?;
        PyConversation::new(py, name, recording, segment)
    }

    /// Reads messages.
    #[staticmethod]
    #[pyo3(signature = (messages, *, model=None, system=None, tools=None, format=None))]
    fn of_messages(
        messages: &Bound<'_, PyList>,
        model: Option<String>,
        system: Option<&Bound<'_, PyAny>>,
        tools: Option<&Bound<'_, PyAny>>,
        format: Option<&str>,
    ) -> PyResult<PyConversation> {
        let py = messages.py();
        let history = history(messages, model, system, tools, format)?;
        PyConversation::new(py, "messages".to_owned(), Recording::of_request(history), None)
    }

    /// Tells what fills the window.
    #[pyo3(signature = (*, model=None))]
    fn inspect<'py>(&self, py: Python<'py>, model: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let measured = py.detach(|| {
            trimtab_replay::inspect(
                &self.name,
                &self.recording,
                self.number,
                model,
                &models(),
                &mut CountMemo::default(),
            )
        });
        to_python(py, &measured.map_err(|fault| new_exception(py, ErrorKind::Settings, fault))?)
    }

    /// Tells what was known of a file after a step.
    #[pyo3(signature = (path, *, step=None))]
    fn file_state_at<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        step: Option<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let missing = |words: String| new_exception(py, ErrorKind::NotFound, words);
        let history = &self.find_segment(py)?.history;
        let (facts, files) = py.detach(|| {
            let facts = facts(history);
            let files = trimtab_core::files(history, &facts);
            (facts, files)
        });
        let last = facts.current_step();
        let step = step.unwrap_or(last);
        if step > last {
            return Err(missing(format!("{}: has no step {step}: the last is {last}", self.name)));
        }
        let found = trimtab_core::report::file_at(path, step, &facts, &files);
        let (path, state) = found.map_err(|fault| missing(fault.to_string()))?;
        to_python(py, &trimtab_core::report::file_report(path, step, &state, &files))
    }

    /// Lists the files that were touched, the latest first.
    #[pyo3(signature = (*, recent=None, stale=None, modified=false))]
    fn files<'py>(
        &self,
        py: Python<'py>,
        recent: Option<u32>,
        stale: Option<u32>,
        modified: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let segment = self.find_segment(py)?;
        let tracker = py.detach(|| track_files(segment));
        let files = tracker.find(FileQuestion { recent, stale, modified });
        to_python(py, &TouchedFilesRow { step: tracker.step, files })
    }

    /// Tells what was done to which file, and why.
    fn changelog<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let history = &self.find_segment(py)?.history;
        let files = py.detach(|| trimtab_core::files::changelog(history, &facts(history)));
        to_python(py, &files.iter().map(changed_file).collect::<Vec<_>>())
    }

    /// Counts the tokens of the whole request.
    #[pyo3(signature = (*, model=None))]
    fn count(&self, py: Python<'_>, model: Option<&str>) -> PyResult<u64> {
        let history = &self.find_segment(py)?.history;
        let named = history.model();
        let model = model.or(named.as_deref()).unwrap_or_default();
        let counter = Counter::for_model(model);
        Ok(py.detach(|| counter.count_request(history, &mut CountMemo::default())).total().0)
    }
}

impl PyConversation {
    fn new(
        py: Python<'_>,
        name: String,
        recording: Recording,
        segment: Option<usize>,
    ) -> PyResult<PyConversation> {
        let number = segment.unwrap_or_else(|| recording.longest_number());
        let made = PyConversation { name, recording, number };
        made.find_segment(py)?;
        Ok(made)
    }

    fn find_segment(&self, py: Python<'_>) -> PyResult<&Segment> {
        let found = self.number.checked_sub(1).and_then(|index| self.recording.segments.get(index));
        let (name, number, segments) = (&self.name, self.number, self.recording.segments.len());
        found.ok_or_else(|| {
            new_exception(
                py,
                ErrorKind::NotFound,
                format_args!("{name}: has no segment {number}: there are {segments}"),
            )
        })
    }
}

fn history(
    messages: &Bound<'_, PyList>,
    model: Option<String>,
    system: Option<&Bound<'_, PyAny>>,
    tools: Option<&Bound<'_, PyAny>>,
    format: Option<&str>,
) -> PyResult<History> {
    let py = messages.py();
    let wrong = |fault: trimtab_core::WireError| new_exception(py, ErrorKind::Request, fault);
    let mut known = Vec::new();
    let looked = read_messages(messages, &mut known)?;
    let beside = RequestFields {
        model,
        system: system.map(|system| json_of(system, "system")).transpose()?,
        tools: tools.map(|tools| json_of(tools, "tools")).transpose()?,
        max_output: None,
    };
    let format = match format {
        Some(name) => format_named(py, name)?,
        None => {
            let format = told_format(py, &looked, &beside)?;
            looked.check_format(py, format)?;
            format
        }
    };
    py.detach(|| parse_as(looked.build_request(format, &beside, &known, None).bytes, format)).map_err(wrong)
}

fn track_files(segment: &Segment) -> FileTracker {
    let history = &segment.history;
    let recorded = || segment.points.iter().rev().find_map(|point| point.model.clone());
    let model = history.model().map(Cow::into_owned).or_else(recorded).unwrap_or_default();
    let counts = Counter::for_model(&model).count_request(history, &mut CountMemo::default());
    let facts = facts(history);
    let files = trimtab_core::files(history, &facts);
    FileTracker::from_conversation(history, &facts, &files, &counts, &segment.points)
}

fn changed_file(file: &FileChanges) -> ChangedFileRow<'_> {
    let rows = file.changes.iter().map(|ChangeGroup { count, first, last, words }| ChangesRow {
        count: *count,
        first_step: *first,
        last_step: *last,
        words,
    });
    ChangedFileRow { path: &file.path, changes: rows.collect() }
}

/// Counts the tokens of a text.
#[pyfunction]
#[pyo3(signature = (text, *, model=None))]
pub(crate) fn count_text(py: Python<'_>, text: &str, model: Option<&str>) -> u64 {
    let counter = Counter::for_model(model.unwrap_or_default());
    py.detach(|| counter.count_text(text)).0
}

/// Reads what a provider reports to have used, in JSON: input, cache read, cache write, the part of it for an hour, and
/// output; nothing where it reports no input.
#[pyfunction]
pub(crate) fn read_usage(report: &str) -> Option<(u64, u64, u64, u64, u64)> {
    let Usage { input, cache_read, cache_write, cache_write_1h, output } =
        Usage::of_report(report.as_bytes())?;
    Some((input, cache_read, cache_write, cache_write_1h, output))
}

/// Lists the policies that ship.
#[pyfunction]
pub(crate) fn policies(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let rows = trimtab_core::policy::policies().filter_map(|(name, _)| {
        let Policy { name, about, settings, .. } = Policy::find_shipped(name).ok()?;
        Some(PolicyRow { name, about, settings })
    });
    to_python(py, &rows.collect::<Vec<_>>())
}

/// Tells whether a tool of this name changes files.
#[pyfunction]
pub(crate) fn changes_files(name: &str) -> bool {
    let name = serde_json::to_string(name).unwrap_or_default();
    let request = format!(
        r#"{{"messages":[{{"role":"assistant","content":[{{"type":"tool_use","id":"1","name":{name},"input":{{}}}}]}}]}}"#
    );
    let Ok(history) = trimtab_core::parse(request.into_bytes()) else { return false };
    facts(&history).rows().iter().any(|row| row.tool().is_some_and(ToolKind::changes_files))
}

/// Tells what policies would have cost, saved and missed in recordings.
#[pyfunction]
#[pyo3(signature = (paths, *, policies=None, models=None, budget=None, resamples=1000))]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 hands paths over by value")]
pub(crate) fn replay<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    policies: Option<Vec<String>>,
    models: Option<Vec<String>>,
    budget: Option<u64>,
    resamples: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let wrong = |fault: String| new_exception(py, ErrorKind::Settings, fault);
    let policies = policies.unwrap_or_default();
    let asked: Vec<Contender> = if policies.is_empty() {
        contenders(KnobRange::Default)
    } else {
        policies.iter().map(|words| parse_contender(words)).collect::<Result<_, _>>().map_err(wrong)?
    };
    let names = models.unwrap_or_else(|| MODELS.iter().map(|name| (*name).to_owned()).collect());
    let found: Result<Vec<_>, _> = names.iter().map(|name| find_model(name)).collect();
    let found = found.map_err(|fault| wrong(fault.to_string()))?;
    let budget = budget.map(|tokens| ReplayBudget::Tokens(Tokens(tokens)));
    let terms =
        ReplayTerms { budgets: budget.into_iter().collect(), clock: since_start, ..ReplayTerms::default() };
    let sessions = py.detach(|| {
        let mut files = Vec::new();
        paths.iter().for_each(|path| files_of(path, &mut files));
        files.sort();
        files.dedup();
        files.iter().map(|file| replay_file(file, &asked, &found, &terms)).collect::<Result<Vec<_>, _>>()
    });
    let sessions = sessions.map_err(|fault| new_exception(py, ErrorKind::Request, fault))?;
    if sessions.is_empty() {
        let endings = ENDINGS.join(", .");
        let words = format!("no recording found: a folder is searched for names ending in .{endings}");
        return Err(new_exception(py, ErrorKind::NotFound, words));
    }
    let rows = py.detach(|| pool_sessions(&sessions, resamples));
    to_python(py, &rows)
}

fn parse_contender(words: &str) -> Result<Contender, String> {
    let file = words.split('(').next().unwrap_or(words).trim_end();
    if Path::new(file).extension().is_none_or(|kind| kind != "toml") {
        return Contender::parse(words).map_err(|fault| fault.to_string());
    }
    let toml =
        fs::read_to_string(file).map_err(|fault| format!("{file}: the policy cannot be read: {fault}"))?;
    Contender::from_toml(words, &toml).map_err(|fault| fault.to_string())
}

fn replay_file(
    file: &Path,
    contenders: &[Contender],
    models: &[trimtab_core::Model],
    terms: &ReplayTerms,
) -> Result<SessionScores, String> {
    let name = file.display().to_string();
    let bytes = fs::read(file).map_err(|fault| format!("{name}: {fault}"))?;
    let recording = read(&bytes).map_err(|fault| format!("{name}: {fault}"))?;
    let segments = recording.segments.iter();
    let scores = segments.map(|segment| trimtab_replay::replay(segment, contenders, models, terms));
    SessionScores::from_segments(name.clone(), scores)
        .ok_or_else(|| format!("{name}: holds no request: nothing was answered in it"))
}

/// Collects the files of a path: itself, or those below it that may be recordings. Links to folders are not followed.
fn files_of(path: &Path, files: &mut Vec<PathBuf>) {
    if !path.is_dir() {
        files.push(path.to_owned());
        return;
    }
    let listed = fs::read_dir(path).map(|entries| entries.flatten().map(|entry| entry.path()));
    let may_be = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if path.is_dir() { !path.is_symlink() } else { ENDINGS.contains(&ending) }
    };
    listed.into_iter().flatten().filter(may_be).for_each(|path| files_of(&path, files));
}

/// Tells the time since some moment before the first replay.
fn since_start() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}
