//! Choices of `trimtab replay`: how long caches live ([`CacheChoice`]), and what gets a separate row ([`ReplayGroups`]).

use clap::ValueEnum;
use trimtab_replay::CacheRetention;

/// How long the provider's cache is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum CacheChoice {
    /// As the log of each session shows it
    #[default]
    Recorded,
    /// As providers keep it by default: five minutes at Anthropic
    #[value(name = "5m")]
    FiveMinutes,
    /// For an hour, at its price, where the model sells that
    #[value(name = "1h")]
    Hour,
}

impl From<CacheChoice> for CacheRetention {
    fn from(choice: CacheChoice) -> CacheRetention {
        match choice {
            CacheChoice::Recorded => CacheRetention::AsRecorded,
            CacheChoice::FiveMinutes => CacheRetention::Usually,
            CacheChoice::Hour => CacheRetention::ForAnHour,
        }
    }
}

/// What gets separate rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayGroups {
    /// The folder in which the agent worked
    Repository,
    /// The agent that recorded the session
    Agent,
    /// Each session
    Session,
}
