//! `trimtab replay`: what policies would have cost, saved and missed. Takes recordings or folders of them; gives a table,
//! JSON or a page. Never stops at a file that cannot be replayed: it is named with the reason, and the exit code is 1.

#[cfg(test)]
mod made_up;
mod page;
mod table;
mod work;

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use trimtab_core::Model;
use trimtab_replay::{Contender, Kept, Knobs, Row, SessionScores, Terms, contenders, pool};

use crate::{
    args::{AskedPolicy, Replay},
    input::{ENDINGS, Unreadable, files_of},
    output::{Output, note},
};

/// Models whose prices are paid where none is named: rewriting a cached token costs them 11.5, 24 and 49 times what
/// reading it does.
const MODELS: [&str; 3] = ["claude-opus-5", "claude-opus-5-5", "claude-fable-5-1"];

/// Who took part, as reports name it.
#[derive(Serialize)]
struct Entrant {
    name: String,
    /// Contenders that share it lie on one curve.
    curve: String,
    family: &'static str,
    about: String,
    /// What its number means, and its value.
    knob: Option<(String, f64)>,
}

/// What came of all files.
struct Replayed {
    entrants: Vec<Entrant>,
    models: Vec<Model>,
    sessions: Vec<SessionScores>,
    rows: Vec<Row>,
    /// Files that could not be replayed.
    unusable: usize,
}

pub(crate) fn run(asked: &Replay, out: &mut Output) -> Result<()> {
    let began = Instant::now();
    let contenders = asked_contenders(asked)?;
    let models = asked_models(asked)?;
    let (files, mut unusable) = asked_files(asked);
    let task = work::Task {
        contenders: &contenders,
        models: &models,
        terms: Terms {
            budget: asked.budget,
            clock: since_start,
            kept: if asked.cache_as_recorded { Kept::AsRecorded } else { Kept::Usually },
            ..Terms::default()
        },
        details: if asked.html.is_some() { work::Details::Kept } else { work::Details::Dropped },
    };
    let (sessions, failed, times) = work::replay_all(&files, &task, jobs(asked));
    unusable.extend(failed);
    unusable.iter().for_each(|bad| note(format_args!("{}: {}", bad.path, bad.reason)));
    if sessions.is_empty() {
        bail!(nothing(asked, unusable.len()));
    }
    let rows = pool(&sessions, usize::from(asked.resamples));
    let entrants = contenders.iter().map(Entrant::of).collect();
    let replayed = Replayed { entrants, models, sessions, rows, unusable: unusable.len() };
    write(asked, &replayed, out)?;
    out.flush()?;
    if asked.timing {
        say_timing(began.elapsed(), times, jobs(asked));
    }
    if replayed.unusable > 0 {
        let all = replayed.unusable + replayed.sessions.len();
        bail!("{} of {all} files could not be replayed; the report is of the others", replayed.unusable);
    }
    Ok(())
}

impl Entrant {
    fn of(contender: &Contender) -> Entrant {
        Entrant {
            name: contender.name().to_owned(),
            curve: contender.curve().to_owned(),
            family: contender.family().name(),
            about: contender.about().to_owned(),
            knob: contender.knob().map(|(meaning, value)| (meaning.to_owned(), value)),
        }
    }
}

fn write(asked: &Replay, replayed: &Replayed, out: &mut Output) -> Result<()> {
    if asked.json {
        return out.json(&replayed.rows);
    }
    if let Some(file) = &asked.html {
        let page = page::page(replayed)?;
        fs::write(file, page).with_context(|| format!("{}: cannot be written", file.display()))?;
        return Ok(());
    }
    table::print(replayed, out)
}

fn asked_contenders(asked: &Replay) -> Result<Vec<Contender>> {
    if asked.policies.is_empty() {
        return Ok(contenders(if asked.knobs { Knobs::All } else { Knobs::Default }));
    }
    let mut found: Vec<Contender> = Vec::new();
    for policy in &asked.policies {
        let contender = match policy {
            AskedPolicy::Known(contender) => contender.clone(),
            AskedPolicy::File(words) => {
                let file = words.split('(').next().unwrap_or(words).trim_end();
                let toml =
                    fs::read_to_string(file).with_context(|| format!("{file}: the policy cannot be read"))?;
                Contender::from_toml(words, &toml)?
            }
        };
        // Asked for twice, shown once.
        if found.iter().all(|other| other.name() != contender.name()) {
            found.push(contender);
        }
    }
    Ok(found)
}

fn asked_models(asked: &Replay) -> Result<Vec<Model>> {
    let mut models = asked.models.clone();
    if models.is_empty() {
        for name in MODELS {
            models.push(crate::prices::find_model(name)?);
        }
    }
    let mut names = Vec::new();
    models.retain(|model| {
        let new = !names.contains(&model.name);
        names.push(model.name.clone());
        new
    });
    Ok(models)
}

/// Returns the files to replay, each once, and the folders that cannot be listed.
fn asked_files(asked: &Replay) -> (Vec<PathBuf>, Vec<Unreadable>) {
    let (mut files, mut unusable) = (Vec::new(), Vec::new());
    asked.paths.iter().for_each(|path| files_of(path, &mut files, &mut unusable));
    let wanted = asked.session.as_deref().unwrap_or_default();
    files.retain(|file| file.to_string_lossy().contains(wanted));
    files.sort();
    files.dedup();
    (files, unusable)
}

fn nothing(asked: &Replay, unusable: usize) -> String {
    if unusable > 0 {
        return "nothing could be replayed; the reasons stand above".to_owned();
    }
    let endings = ENDINGS.join(", .");
    match &asked.session {
        Some(text) => format!("no recording whose path contains {text:?} was found (.{endings})"),
        None => format!("no recording found: a folder is searched for names ending in .{endings}"),
    }
}

fn jobs(asked: &Replay) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.jobs.map_or_else(cores, usize::from)
}

/// Returns what a rewritten token costs more than a read one, in reads.
fn rewriting(model: &Model) -> f64 {
    (model.prices.cache_write - model.prices.cache_read) / model.prices.cache_read.max(f64::MIN_POSITIVE)
}

/// Tells the time since some moment before the first replay.
fn since_start() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    START.elapsed()
}

fn say_timing(took: Duration, mut times: Vec<Duration>, jobs: usize) {
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let longest = times.last().copied().unwrap_or_default();
    let memory =
        peak_memory().map_or_else(String::new, |megabytes| format!(", {megabytes} MB of memory at most"));
    note(format_args!(
        "sessions: {}; {:.1} s in all, {jobs} at a time; {:.3} s each (median), {:.3} s the longest{memory}",
        times.len(),
        took.as_secs_f64(),
        median.as_secs_f64(),
        longest.as_secs_f64()
    ));
}

/// Returns the most memory that this process held, in megabytes, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}
