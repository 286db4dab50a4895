//! Many files on all cores. Takes files and what they are replayed with; gives the sessions in the order of the files,
//! whichever worker was first. Never holds more than one recording per worker.

use std::{
    path::{Path, PathBuf},
    slice,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use trimtab_core::{Millis, Model};
use trimtab_replay::{Contender, ReplayTerms, Score, Segment, SessionScores, read, replay, repository_name};

use super::{RECORDED, title::session_title};
use crate::{
    input::{self, Unreadable},
    output::Progress,
    prices,
};

/// Sessions whose curves are kept for the page.
const CURVES: usize = 24;

/// Points of a curve: more than a screen shows would only make the page heavy.
const POINTS: usize = 120;

/// Misses of one session that are kept for the page, for each contender.
const MISSES: usize = 6;

/// What files are replayed with.
pub(super) struct ReplayTask<'a> {
    pub(super) contenders: &'a [Contender],
    pub(super) prices: ReplayPrices<'a>,
    pub(super) terms: ReplayTerms,
    /// How many scores each contender gets: one for each budget and model.
    pub(super) columns: usize,
    pub(super) details: ReplayDetails,
}

/// Whose prices are paid.
#[derive(Clone, Copy)]
pub(super) enum ReplayPrices<'a> {
    /// Those of each of these models.
    Of(&'a [Model]),
    /// Those of the model that a session was recorded with; of this one where that is not known.
    Recorded(&'a Model),
}

/// A session that was replayed.
pub(super) struct Replayed {
    pub(super) scores: SessionScores,
    /// The models whose prices were paid as recorded, with how many requests.
    pub(super) paid: Vec<PaidModel>,
    pub(super) took: Duration,
}

/// A model whose prices were paid for some requests.
pub(super) struct PaidModel {
    pub(super) model: Model,
    pub(super) requests: usize,
    /// Whether the session names it, and the table has it.
    pub(super) is_recorded: bool,
}

/// Whether curves and misses are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplayDetails {
    Kept,
    Dropped,
}

/// What came of a file.
type ReplayOutcome = Result<Replayed, Unreadable>;

/// Replays all files. Gives the sessions and the files that could not be replayed.
pub(super) fn replay_all(
    files: &[PathBuf],
    task: &ReplayTask<'_>,
    jobs: usize,
) -> (Vec<Replayed>, Vec<Unreadable>) {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, ReplayOutcome)>> = Mutex::new(Vec::with_capacity(files.len()));
    let bar = Progress::begin(files);
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(index) else { return };
            bar.begin_file(file);
            let came = replay_file(file, task, keeps_curve(index, files.len()));
            // A worker that panicked has left the list whole: each adds to it in one step.
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, came));
            bar.finish_file(file);
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, files.len().max(1)) {
            scope.spawn(worker);
        }
    });
    bar.finish();
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, _)| *index);
    let (mut sessions, mut failed) = (Vec::new(), Vec::new());
    for (_, came) in done {
        match came {
            Ok(session) => sessions.push(session),
            Err(bad) => failed.push(bad),
        }
    }
    (sessions, failed)
}

fn replay_file(file: &Path, task: &ReplayTask<'_>, curve: ReplayDetails) -> Result<Replayed, Unreadable> {
    let began = Instant::now();
    let name = file.display().to_string();
    let unusable = |reason: String| Unreadable { path: name.clone(), reason };
    let bytes = input::read_file_or_stdin(file).map_err(|error| unusable(format!("{error:#}")))?;
    let recording = read(&bytes).map_err(|error| unusable(error.to_string()))?;
    let repository = repository_name(&bytes).unwrap_or_default();
    drop(bytes);
    let mut paid = Vec::new();
    let segments = recording.segments.iter().enumerate();
    let scores = segments.map(|(number, segment)| {
        let others = request_times_of_others(&recording.segments, number);
        let terms = ReplayTerms { others, ..task.terms.clone() };
        match task.prices {
            ReplayPrices::Of(models) => replay(segment, task.contenders, models, &terms),
            ReplayPrices::Recorded(other) => replay_as_recorded(segment, (task, &terms), other, &mut paid),
        }
    });
    let mut scores = SessionScores::from_segments(name.clone(), scores)
        .ok_or_else(|| unusable("holds no request: nothing was answered in it".to_owned()))?;
    if task.details == ReplayDetails::Kept {
        scores.title = session_title(&recording, &repository);
    }
    (scores.agent, scores.repository) = (recording.agent.to_owned(), repository);
    keep_details(&mut scores, task, curve);
    Ok(Replayed { scores, paid, took: began.elapsed() })
}

/// Returns when each other segment of a recording made its requests: sub-agents share the server with their parent.
fn request_times_of_others(segments: &[Segment], number: usize) -> Vec<Vec<Millis>> {
    let others = segments.iter().enumerate().filter(|(other, _)| *other != number);
    others.map(|(_, other)| other.points.iter().filter_map(|point| point.at).collect()).collect()
}

/// Replays a segment at its own model's prices.
fn replay_as_recorded(
    segment: &Segment,
    (task, terms): (&ReplayTask<'_>, &ReplayTerms),
    other: &Model,
    paid: &mut Vec<PaidModel>,
) -> Vec<Score> {
    let named = segment.points.iter().rev().find_map(|point| point.model.as_deref());
    let found = named.and_then(|name| prices::find_model(name).ok());
    let (model, is_recorded) = found.map_or_else(|| (other.clone(), false), |model| (model, true));
    let mut scores = replay(segment, task.contenders, slice::from_ref(&model), terms);
    let all: Arc<str> = RECORDED.into();
    scores.iter_mut().for_each(|score| score.model = Arc::clone(&all));
    if !segment.points.is_empty() {
        paid.push(PaidModel { model, requests: segment.points.len(), is_recorded });
    }
    scores
}

/// Drops what no report of this run shows. The page shows single requests for the first model only.
fn keep_details(session: &mut SessionScores, task: &ReplayTask<'_>, curve: ReplayDetails) {
    for (index, score) in session.scores.iter_mut().enumerate() {
        let wanted = task.details == ReplayDetails::Kept && index.is_multiple_of(task.columns);
        if wanted && curve == ReplayDetails::Kept {
            score.sizes = thin_out(&score.sizes).into();
            score.raw_sizes = thin_out(&score.raw_sizes).into();
        } else {
            score.sizes = [].into();
            score.raw_sizes = [].into();
        }
        let kept = if wanted { MISSES } else { 0 };
        if score.misses.len() > kept {
            score.misses = score.misses.iter().take(kept).cloned().collect();
        }
    }
}

/// Takes files at even distances, the first among them.
fn keeps_curve(index: usize, files: usize) -> ReplayDetails {
    if index.is_multiple_of(files.div_ceil(CURVES).max(1)) {
        ReplayDetails::Kept
    } else {
        ReplayDetails::Dropped
    }
}

/// Returns sizes at even distances, the last among them.
fn thin_out(sizes: &[u64]) -> Vec<u64> {
    let every = sizes.len().div_ceil(POINTS).max(1);
    let mut kept: Vec<u64> = sizes.iter().rev().step_by(every).copied().collect();
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_thinned_and_end_where_they_ended() {
        let long: Vec<u64> = (0..1000).collect();
        let thin = thin_out(&long);
        assert!(thin.len() <= POINTS && thin.last() == Some(&999));
        assert_eq!(thin_out(&[1, 2, 3]), [1, 2, 3]);
        let kept = (0..1000).filter(|index| keeps_curve(*index, 1000) == ReplayDetails::Kept).count();
        assert!(kept <= CURVES && kept > CURVES / 2);
    }
}
