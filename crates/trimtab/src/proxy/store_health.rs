//! How keeping goes: whether the store takes what it is given, what was not kept and why, and what the user must know about
//! it. The thread that keeps writes it, requests read it.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Why something was not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UnkeptReason {
    /// More came than could be written.
    QueueFull,
    /// The store could not be written to.
    StoreFailed,
    /// There was no plan in time: nothing new was hidden.
    NoPlan,
    /// The request passed untouched.
    Passed,
    /// Not a request, but what a provider reported for one.
    Report,
}

impl UnkeptReason {
    /// Returns the reason for people.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            UnkeptReason::QueueFull => "more came than could be written",
            UnkeptReason::StoreFailed => "the store could not be written to",
            UnkeptReason::NoPlan => "sent without a new plan",
            UnkeptReason::Passed => "passed untouched",
            UnkeptReason::Report => "reports of usage",
        }
    }
}

/// How keeping goes.
#[derive(Debug, Default)]
pub(crate) struct StoreHealth {
    state: Mutex<HealthState>,
    waiting_bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct HealthState {
    unkept: BTreeMap<UnkeptReason, u64>,
    /// Why the store cannot be written to; nothing while it can.
    trouble: Option<String>,
    news: Vec<String>,
}

impl StoreHealth {
    /// Counts something that was not kept.
    pub(crate) fn count_unkept(&self, why: UnkeptReason) {
        *self.lock_state().unkept.entry(why).or_default() += 1;
    }

    /// Returns what was not kept, by reason.
    pub(crate) fn unkept_counts(&self) -> Vec<(UnkeptReason, u64)> {
        self.lock_state().unkept.iter().map(|(why, count)| (*why, *count)).collect()
    }

    /// Notes that the store took something.
    pub(crate) fn note_success(&self) {
        let mut state = self.lock_state();
        if state.trouble.take().is_some() {
            state
                .news
                .push("the store can be written to again; what is hidden from now on is kept".to_owned());
        }
    }

    /// Notes that the store did not take something.
    pub(crate) fn note_failure(&self, reason: &str) {
        let mut state = self.lock_state();
        if state.trouble.as_deref() != Some(reason) {
            state.news.push(format!(
                "the store cannot be written to: {reason}. Nothing new is hidden until it can; requests are not kept"
            ));
            state.trouble = Some(reason.to_owned());
        }
    }

    /// Notes something that people should know.
    pub(crate) fn add_news(&self, words: String) {
        self.lock_state().news.push(words);
    }

    /// Tells whether the store cannot be written to.
    pub(crate) fn is_in_trouble(&self) -> bool {
        self.lock_state().trouble.is_some()
    }

    /// Returns what has not been reported yet.
    pub(crate) fn take_news(&self) -> Vec<String> {
        std::mem::take(&mut self.lock_state().news)
    }

    /// Makes room for bytes that wait to be written; tells whether there is some. One request always has room.
    pub(crate) fn begin_waiting(&self, bytes: usize, most: usize) -> bool {
        let before = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let has_room = before == 0 || before.saturating_add(bytes) <= most;
        if !has_room {
            self.end_waiting(bytes);
        }
        has_room
    }

    /// Gives the room back.
    pub(crate) fn end_waiting(&self, bytes: usize) {
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn lock_state(&self) -> MutexGuard<'_, HealthState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_once_when_keeping_fails_and_once_when_it_goes_on() {
        let health = StoreHealth::default();
        for _ in 0..3 {
            health.note_failure("the disk is full");
        }
        assert!(health.is_in_trouble());
        health.note_success();
        health.note_success();
        let news = health.take_news();
        assert!(news.len() == 2 && news[0].contains("the disk is full"), "{news:?}");
        assert!(!health.is_in_trouble() && health.take_news().is_empty());
    }

    #[test]
    fn what_waits_is_bounded_by_its_bytes() {
        let health = StoreHealth::default();
        assert!(health.begin_waiting(50, 10), "one always has room");
        assert!(!health.begin_waiting(1, 10));
        health.end_waiting(50);
        assert!(health.begin_waiting(5, 10) && health.begin_waiting(5, 10) && !health.begin_waiting(1, 10));
    }
}
