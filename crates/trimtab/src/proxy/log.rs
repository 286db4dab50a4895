//! What the proxy says to people. Takes lines; gives them on standard error at once, or holds them back while an agent has
//! the terminal. Never says what stands in a request, or a key.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use crate::{output, terminal::escape_name};

/// The most lines that are kept back.
const HELD: usize = 50;

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum LogLevel {
    /// Only what went wrong
    Quiet,
    /// And a line for every request that was looked at
    Normal,
    /// And a line for every request that passed
    Verbose,
}

/// Where lines go.
pub(crate) struct ProxyLog {
    level: LogLevel,
    held: Option<Mutex<VecDeque<String>>>,
}

impl ProxyLog {
    /// A log that speaks at once.
    pub(crate) fn to_terminal(level: LogLevel) -> ProxyLog {
        ProxyLog { level, held: None }
    }

    /// A log that waits until it is asked.
    pub(crate) fn with_buffer() -> ProxyLog {
        ProxyLog { level: LogLevel::Quiet, held: Some(Mutex::default()) }
    }

    /// Says that something went wrong, or that people should do something.
    pub(crate) fn warn(&self, words: impl std::fmt::Display) {
        self.write_line(LogLevel::Quiet, words);
    }

    /// Says what was done.
    pub(crate) fn info(&self, words: impl std::fmt::Display) {
        self.write_line(LogLevel::Normal, words);
    }

    /// Says what passed by.
    pub(crate) fn detail(&self, words: impl std::fmt::Display) {
        self.write_line(LogLevel::Verbose, words);
    }

    /// Returns the lines that were kept back.
    pub(crate) fn take_lines(&self) -> Vec<String> {
        let Some(held) = &self.held else { return Vec::new() };
        held.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    fn write_line(&self, level: LogLevel, words: impl std::fmt::Display) {
        if level > self.level {
            return;
        }
        // One line whatever stands in it: a name from a request must not forge another.
        let words = words.to_string();
        let words = escape_name(&words);
        let Some(held) = &self.held else { return output::print_note(words) };
        let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() == HELD {
            held.pop_front();
        }
        held.push_back(words.into_owned());
    }
}
