//! Many files on all cores. Takes files and what they are replayed with; gives the sessions in the order of the files,
//! whichever worker was first. Never holds more than one recording per worker.

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use trimtab_core::Model;
use trimtab_replay::{Contender, SessionScores, Terms, read, replay};

use crate::{
    input::{self, Unreadable},
    output::progress,
};

/// Sessions whose curves are kept for the page.
const CURVES: usize = 24;

/// Points of a curve: more than a screen shows would only make the page heavy.
const POINTS: usize = 120;

/// Misses of one session that are kept for the page, for each contender.
const MISSES: usize = 6;

/// What files are replayed with.
pub(super) struct Task<'a> {
    pub(super) contenders: &'a [Contender],
    pub(super) models: &'a [Model],
    pub(super) terms: Terms,
    pub(super) details: Details,
}

/// Whether curves and misses are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Details {
    Kept,
    Dropped,
}

/// What came of a file, and how long it took.
type Done = (Result<SessionScores, Unreadable>, Duration);

/// Replays all files. Gives the sessions, the files that could not be replayed, and the time each session took.
pub(super) fn replay_all(
    files: &[PathBuf],
    task: &Task<'_>,
    jobs: usize,
) -> (Vec<SessionScores>, Vec<Unreadable>, Vec<Duration>) {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Done)>> = Mutex::new(Vec::with_capacity(files.len()));
    let bar = progress(files.len());
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(index) else { return };
            let began = Instant::now();
            let came = session(file, task, keeps_curve(index, files.len()));
            let came = (came, began.elapsed());
            // A worker that panicked has left the list whole: each adds to it in one step.
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, came));
            bar.inc(1);
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, files.len().max(1)) {
            scope.spawn(worker);
        }
    });
    bar.finish_and_clear();
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, _)| *index);
    let (mut sessions, mut failed, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for (_, (came, took)) in done {
        match came {
            Ok(session) => {
                sessions.push(session);
                times.push(took);
            }
            Err(bad) => failed.push(bad),
        }
    }
    (sessions, failed, times)
}

fn session(file: &Path, task: &Task<'_>, curve: Details) -> Result<SessionScores, Unreadable> {
    let name = file.display().to_string();
    let unusable = |reason: String| Unreadable { path: name.clone(), reason };
    let bytes = input::bytes(file).map_err(|error| unusable(format!("{error:#}")))?;
    let recording = read(&bytes).map_err(|error| unusable(error.to_string()))?;
    drop(bytes);
    let segments = recording.segments.iter();
    let scores = segments.map(|segment| replay(segment, task.contenders, task.models, &task.terms));
    let mut session = SessionScores::of(name.clone(), scores)
        .ok_or_else(|| unusable("holds no request: nothing was answered in it".to_owned()))?;
    keep_details(&mut session, task, curve);
    Ok(session)
}

/// Drops what no report of this run shows. What the page shows of single requests, it shows for the first model.
fn keep_details(session: &mut SessionScores, task: &Task<'_>, curve: Details) {
    let models = task.models.len().max(1);
    for (index, score) in session.scores.iter_mut().enumerate() {
        let wanted = task.details == Details::Kept && index.is_multiple_of(models);
        if wanted && curve == Details::Kept {
            score.sizes = thinned(&score.sizes).into();
            score.raw_sizes = thinned(&score.raw_sizes).into();
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
fn keeps_curve(index: usize, files: usize) -> Details {
    if index.is_multiple_of(files.div_ceil(CURVES).max(1)) { Details::Kept } else { Details::Dropped }
}

/// Returns sizes at even distances, the last among them.
fn thinned(sizes: &[u64]) -> Vec<u64> {
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
        let thin = thinned(&long);
        assert!(thin.len() <= POINTS && thin.last() == Some(&999));
        assert_eq!(thinned(&[1, 2, 3]), [1, 2, 3]);
        let kept = (0..1000).filter(|index| keeps_curve(*index, 1000) == Details::Kept).count();
        assert!(kept <= CURVES && kept > CURVES / 2);
    }
}
