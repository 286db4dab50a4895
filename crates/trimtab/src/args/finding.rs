//! Arguments about which sessions of this machine are meant, where no path is named.

use clap::Args as ClapArgs;
use jiff::{civil::Date, tz::TimeZone};
use trimtab_core::Millis;

use super::human::parse_age;
use crate::discovery::{AgentPlaces, agents_named};

/// Which sessions that agents keep on this machine are meant.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "Which sessions, where no path is named")]
pub(crate) struct Finding {
    /// Only sessions of this agent: claude, codex, gemini, copilot, pi, cline …
    #[arg(long = "agent", value_name = "NAME", value_parser = agent_group, conflicts_with = "paths")]
    pub(crate) agents: Vec<AgentGroup>,

    /// Only sessions that were used since: 30d, 12h, 2026-10-01
    #[arg(long, value_name = "AGE|DATE", value_parser = parse_since, conflicts_with = "paths")]
    pub(crate) since: Option<Since>,

    /// Only the newest N sessions [default: 100, or all with --since]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "paths")]
    pub(crate) last: Option<u32>,
}

/// The agents that a name means.
#[derive(Debug, Clone)]
pub(crate) struct AgentGroup(pub(crate) Vec<&'static AgentPlaces>);

/// When the time that is meant begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// So many milliseconds ago.
    Ago(i64),
    At(Millis),
}

fn agent_group(name: &str) -> Result<AgentGroup, String> {
    agents_named(name).map(AgentGroup)
}

fn parse_since(words: &str) -> Result<Since, String> {
    if let Ok(age) = parse_age(words) {
        return Ok(Since::Ago(age));
    }
    let wrong = || format!("{words:?} is neither an age (30d, 12h, 4w) nor a date (2026-10-01)");
    let date: Date = words.trim().parse().map_err(|_| wrong())?;
    let begins = date.to_zoned(TimeZone::UTC).map_err(|_| wrong())?;
    Ok(Since::At(Millis(begins.timestamp().as_millisecond())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_an_age_or_a_date() {
        assert_eq!(parse_since("2d"), Ok(Since::Ago(2 * 24 * 60 * 60 * 1000)));
        assert_eq!(parse_since("1970-01-02"), Ok(Since::At(Millis(24 * 60 * 60 * 1000))));
        assert!(parse_since("yesterday").is_err() && parse_since("2026-13-01").is_err());
    }
}
