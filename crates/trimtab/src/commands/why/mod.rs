//! `trimtab why`: why requests read less from the provider's cache than they could have, and what that cost. Takes recordings, stored
//! sessions or folders; gives one line for each such request, or sums of many sessions by project. Never says more than what is
//! kept tells: a reason that is inferred is marked, and what is not known is called unknown.

mod table;

pub(crate) use table::{describe_miss, describe_summary};

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde::Serialize;
use trimtab_core::misses::MissSummary;
use trimtab_replay::{ExplainedRecording, ExplainedRequest, explain_recording, read, repository_name};
use trimtab_store::SessionId;

use crate::{
    args::WhyArgs,
    input::{self, ENDINGS, Unreadable, files_of},
    output::{Output, Progress, count_with_noun, print_line, print_note},
    own_sessions::own_sessions,
    prices::models,
    scope::{Asker, LATEST, StoreScope},
    stored_misses::explain_session,
};

/// How many stored sessions are looked at where nobody says how many.
const USUAL_STORED: usize = 20;

/// What came of it.
#[derive(Serialize)]
pub(super) struct WhyReport {
    pub(super) summary: MissSummary,
    pub(super) projects: Vec<ProjectMisses>,
    pub(super) sessions: Vec<SessionMisses>,
    pub(super) unreadable: Vec<Unreadable>,
}

/// The sessions of one project.
#[derive(Serialize)]
pub(super) struct ProjectMisses {
    pub(super) project: String,
    pub(super) sessions: usize,
    pub(super) summary: MissSummary,
}

/// One session.
#[derive(Serialize)]
pub(super) struct SessionMisses {
    pub(super) name: String,
    pub(super) project: String,
    pub(super) summary: MissSummary,
    /// The requests that missed something.
    pub(super) misses: Vec<ExplainedRequest>,
}

pub(crate) fn run(asked: &WhyArgs, out: &mut Output) -> Result<()> {
    let mut found = (Vec::new(), Vec::new());
    if asked.stored {
        explain_stored(asked, &mut found.0)?;
    } else if asked.paths.is_empty() {
        explain_files(&own_sessions(&asked.finding, "why")?, &mut found)?;
    } else {
        explain_named(asked, &mut found)?;
    }
    let (sessions, unreadable) = found;
    let bad = unreadable.len();
    let files = sessions.len() + bad;
    let report = WhyReport {
        summary: sum_of(sessions.iter().map(|session| &session.summary)),
        projects: by_project(&sessions),
        sessions,
        unreadable,
    };
    if asked.json {
        out.write_json(&report)?;
    } else {
        table::print_report(&report, asked.limit, out)?;
    }
    out.flush()?;
    if bad > 0 {
        bail!(
            "{bad} of {} could not be read; the reasons are in the report",
            count_with_noun(files, "file", "files")
        );
    }
    Ok(())
}

type FoundSessions = (Vec<SessionMisses>, Vec<Unreadable>);

/// Explains the stored sessions of the project, the latest first.
fn explain_stored(asked: &WhyArgs, sessions: &mut Vec<SessionMisses>) -> Result<()> {
    let scope = StoreScope::open(&asked.view, Asker::CommandLine)?;
    let (own, others) = scope.sessions()?;
    let most = asked.finding.last.map_or(Ok(USUAL_STORED), usize::try_from)?;
    for session in own.iter().take(most) {
        let project = session.scope().unwrap_or_default().to_owned();
        add_stored(&scope, session.id, project, sessions)?;
    }
    if own.len() > most {
        let left = count_with_noun(own.len() - most, "older session", "older sessions");
        print_line(format_args!("{left} not looked at: --last N takes more"));
    }
    if let Some(about) = scope.about_others(others) {
        print_note(about);
    }
    Ok(())
}

fn add_stored(
    scope: &StoreScope,
    session: SessionId,
    project: String,
    sessions: &mut Vec<SessionMisses>,
) -> Result<()> {
    let explained = explain_session(scope.store(), session, models()?)?;
    sessions.push(SessionMisses::new(session.to_string(), project, explained));
    Ok(())
}

/// Explains what was named: stored sessions, files and folders.
fn explain_named(asked: &WhyArgs, found: &mut FoundSessions) -> Result<()> {
    let (mut files, mut unreadable) = (Vec::new(), Vec::new());
    let is_id = |word: &&str| *word == LATEST || SessionId::parse_name(word).is_some();
    for path in &asked.paths {
        let Some(word) = path.to_str().filter(is_id).filter(|_| !path.exists()) else {
            files_of(path, &mut files, &mut unreadable);
            continue;
        };
        let scope = StoreScope::open(&asked.view, Asker::CommandLine)?;
        let session = scope.session_named(word)?;
        let all = scope.sessions()?.0;
        let info = all.iter().find(|info| info.id == session);
        let project = info.and_then(|info| info.scope()).unwrap_or_default().to_owned();
        add_stored(&scope, session, project, &mut found.0)?;
    }
    if files.is_empty() && unreadable.is_empty() && found.0.is_empty() {
        bail!("no recording found: a folder is searched for names ending in .{}", ENDINGS.join(", ."));
    }
    found.1.append(&mut unreadable);
    explain_files(&files, found)
}

fn explain_files(files: &[PathBuf], found: &mut FoundSessions) -> Result<()> {
    let bar = Progress::begin(files);
    for file in files {
        bar.begin_file(file);
        match explain_file(file) {
            Ok(session) => found.0.push(session),
            Err(error) => {
                let path = file.display().to_string();
                found.1.push(Unreadable { path, reason: format!("{error:#}") });
            }
        }
        bar.finish_file(file);
    }
    bar.finish();
    // A file of prices that cannot be used is everybody's trouble, not one file's.
    models().map(|_| ())
}

fn explain_file(file: &Path) -> Result<SessionMisses> {
    let bytes = input::read_file_or_stdin(file)?;
    let explained = explain_recording(&read(&bytes)?, models()?);
    let project = repository_name(&bytes).unwrap_or_default();
    Ok(SessionMisses::new(file.display().to_string(), project, explained))
}

impl SessionMisses {
    fn new(name: String, project: String, explained: ExplainedRecording) -> SessionMisses {
        let ExplainedRecording { summary, requests } = explained;
        let misses = requests.into_iter().filter(|request| request.miss.is_some()).collect();
        SessionMisses { name, project, summary, misses }
    }
}

fn sum_of<'a>(summaries: impl Iterator<Item = &'a MissSummary>) -> MissSummary {
    let mut sum = MissSummary::default();
    summaries.for_each(|summary| sum.add_summary(summary));
    sum
}

/// Adds sessions up by project, the one that paid the most again first.
fn by_project(sessions: &[SessionMisses]) -> Vec<ProjectMisses> {
    let mut projects: Vec<ProjectMisses> = Vec::new();
    for session in sessions {
        let known = projects.iter().position(|project| project.project == session.project);
        let index = known.unwrap_or(projects.len());
        if known.is_none() {
            let (project, summary) = (session.project.clone(), MissSummary::default());
            projects.push(ProjectMisses { project, sessions: 0, summary });
        }
        if let Some(project) = projects.get_mut(index) {
            project.sessions += 1;
            project.summary.add_summary(&session.summary);
        }
    }
    projects.sort_by(|one, other| other.summary.again_dollars.total_cmp(&one.summary.again_dollars));
    projects
}
