//! How long a plan was worked on. Takes the thread that plans; gives the processor time it used for the plan, so that a plan is
//! not late because other programs keep the processors busy. Where the system does not tell, the time since it began.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// The work on one plan.
#[derive(Debug, Default)]
pub(crate) struct WorkClock {
    began: Mutex<Option<RunningPeriod>>,
    /// Whether something is done that is no part of the plan.
    paused: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct RunningPeriod {
    at: Instant,
    #[cfg(target_os = "linux")]
    thread: rustix::thread::Pid,
    /// What the thread had used before the plan, and for other things since.
    before: Duration,
}

impl WorkClock {
    /// Notes that the thread that calls this begins to plan.
    pub(crate) fn start_work(&self) {
        let began = RunningPeriod {
            at: Instant::now(),
            #[cfg(target_os = "linux")]
            thread: rustix::thread::gettid(),
            before: used_here(),
        };
        *self.began.lock().unwrap_or_else(PoisonError::into_inner) = Some(began);
    }

    /// Does something that is no part of the plan, on the thread that plans.
    pub(crate) fn pause_during<T>(&self, work: impl FnOnce() -> T) -> T {
        let (at, used) = (Instant::now(), used_here());
        self.paused.store(true, Ordering::Release);
        let done = work();
        if let Some(began) = &mut *self.began.lock().unwrap_or_else(PoisonError::into_inner) {
            began.before += used_here().saturating_sub(used);
            began.at += at.elapsed();
        }
        self.paused.store(false, Ordering::Release);
        done
    }

    /// Tells whether something is done that is no part of the plan.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    /// Returns how long the plan was worked on; nothing while it waits for its turn.
    pub(crate) fn time_worked(&self) -> Duration {
        if self.is_paused() {
            return Duration::ZERO;
        }
        let began = *self.began.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(began) = began else { return Duration::ZERO };
        used_by(&began).map_or_else(|| began.at.elapsed(), |used| used.saturating_sub(began.before))
    }
}

/// Returns the processor time that the thread which asks has used.
#[cfg(target_os = "linux")]
fn used_here() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
fn used_here() -> Duration {
    Duration::ZERO
}

/// Returns the processor time that a thread has used, where the system tells.
#[cfg(target_os = "linux")]
fn used_by(began: &RunningPeriod) -> Option<Duration> {
    let path = format!("/proc/self/task/{}/schedstat", began.thread.as_raw_nonzero());
    let text = std::fs::read_to_string(path).ok()?;
    let nanoseconds = text.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

#[cfg(not(target_os = "linux"))]
fn used_by(_: &RunningPeriod) -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn only_work_counts() {
        let clock = WorkClock::default();
        assert_eq!(clock.time_worked(), Duration::ZERO, "it has not begun");
        clock.start_work();
        let work = |least: Duration| {
            let before = used_here();
            while used_here().saturating_sub(before) < least {
                std::hint::black_box(0);
            }
        };
        clock.pause_during(|| work(Duration::from_millis(60)));
        std::thread::sleep(Duration::from_millis(60));
        // The system adds up a thread's time when it is interrupted, every few milliseconds.
        assert!(clock.time_worked() < Duration::from_millis(40), "{:?}", clock.time_worked());
        work(Duration::from_millis(120));
        assert!(clock.time_worked() > Duration::from_millis(60), "{:?}", clock.time_worked());
    }

    #[test]
    fn what_is_no_part_of_the_plan_does_not_count_while_it_is_done() {
        let clock = WorkClock::default();
        clock.start_work();
        let inside = clock.pause_during(|| {
            std::thread::sleep(Duration::from_millis(20));
            clock.time_worked()
        });
        assert_eq!(inside, Duration::ZERO);
    }
}
