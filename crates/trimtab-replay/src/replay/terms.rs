//! How segments are replayed: [`ReplayTerms`], with the budgets ([`ReplayBudget`]) and how long caches live ([`CacheRetention`]).
//! Takes what was asked for; decides nothing.

use std::{fmt, sync::Arc, time::Duration};

use trimtab_core::{Millis, RecallHint, Tokens, keep_alive::PauseTable};

/// How a segment is replayed.
#[derive(Debug, Clone)]
pub struct ReplayTerms {
    /// Budgets, one after the other; without one, the model's window is the limit.
    pub budgets: Vec<ReplayBudget>,
    /// Tells the time, for the time that plans take; nothing else depends on it. The library has no clock.
    pub clock: fn() -> Duration,
    /// How long the cache is kept, and at which price.
    pub kept: CacheRetention,
    /// How notes say that what is hidden comes back: long commands cost tokens too.
    pub recall: RecallHint,
    /// When other conversations of the same recording made requests, for each of them: a server with few slots loses a
    /// prefix to them, and the agent runs at least as long.
    pub others: Vec<Vec<Millis>>,
    /// How long pauses last, for pings; the table that ships, where there is none.
    pub pauses: Option<Arc<PauseTable>>,
}

/// How long a provider's cache is kept in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheRetention {
    /// As each provider does by itself, at its usual price: five minutes at Anthropic.
    Usually,
    /// For an hour, at its price, where the model sells that.
    ForAnHour,
    /// As the client of each recording had it, where the log tells; else as usual.
    #[default]
    AsRecorded,
}

/// A clock that stands still.
impl Default for ReplayTerms {
    fn default() -> ReplayTerms {
        ReplayTerms {
            budgets: Vec::new(),
            clock: || Duration::ZERO,
            kept: CacheRetention::default(),
            recall: RecallHint::default(),
            others: Vec::new(),
            pauses: None,
        }
    }
}

/// The most that a request may count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReplayBudget {
    /// So many tokens.
    Tokens(Tokens),
    /// A share of what is recorded of the largest request of the segment.
    OfPeak(f64),
}

/// As people write it: `64k`, `35%`.
impl fmt::Display for ReplayBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayBudget::Tokens(Tokens(tokens)) if tokens.is_multiple_of(1000) && *tokens > 0 => {
                write!(f, "{}k", tokens / 1000)
            }
            ReplayBudget::Tokens(Tokens(tokens)) => write!(f, "{tokens}"),
            ReplayBudget::OfPeak(share) => write!(f, "{}%", (share * 1e6).round() / 1e4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_written_as_people_write_them() {
        let budgets = [
            ReplayBudget::Tokens(Tokens(64_000)),
            ReplayBudget::Tokens(Tokens(1_500)),
            ReplayBudget::OfPeak(0.35),
            ReplayBudget::OfPeak(0.125),
        ];
        assert_eq!(budgets.map(|budget| budget.to_string()), ["64k", "1500", "35%", "12.5%"]);
    }
}
