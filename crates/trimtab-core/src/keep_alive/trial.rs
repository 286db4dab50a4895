//! What pings would have brought where none are sent: [`KeepAliveTrial`] plans them by the same rule, pause by pause. The proxy tells at
//! its end what turning them on would have saved.

use super::{IdleSession, PauseTable, PingPlan, PingTerms, plan_ping_with};
use crate::units::Millis;

/// What the pings of a session would have come to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct KeepAliveTrial {
    /// How many there would have been.
    pub pings: u64,
    /// What they would have cost, in US dollars.
    pub ping_dollars: f64,
    /// What requests would have cost less that found the cache expired.
    pub saved_dollars: f64,
}

/// How a pause ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseEnd {
    /// The conversation went on then.
    Continued(Millis),
    /// The agent ended then.
    AgentEnded(Millis),
}

impl KeepAliveTrial {
    /// Enters a pause without pings.
    pub fn enter_pause(&mut self, idle: &IdleSession<'_>, end: PauseEnd) {
        self.enter_pause_with(idle, end, PauseTable::find_shipped());
    }

    fn enter_pause_with(&mut self, idle: &IdleSession<'_>, end: PauseEnd, pauses: &PauseTable) {
        let (PauseEnd::Continued(until) | PauseEnd::AgentEnded(until)) = end;
        let mut paid_dollars = idle.paid_dollars + self.ping_dollars - self.saved_dollars;
        let mut last_use = idle.last_use;
        while let PingPlan::At { at, dollars } =
            plan_ping_with(&IdleSession { paid_dollars, last_use, ..*idle }, pauses)
            && at < until
        {
            self.pings += 1;
            self.ping_dollars += dollars;
            paid_dollars += dollars;
            last_use = at;
        }
        let lived = |since: Millis| until.0.saturating_sub(since.0) < idle.lifetime_ms;
        if matches!(end, PauseEnd::Continued(_)) && !lived(idle.last_use) && lived(last_use) {
            self.saved_dollars += PingTerms::for_session(idle, idle.ping_usage()).saved_dollars;
        }
    }

    /// Adds what another session would have come to.
    pub fn add_trial(&mut self, other: KeepAliveTrial) {
        self.pings += other.pings;
        self.ping_dollars += other.ping_dollars;
        self.saved_dollars += other.saved_dollars;
    }

    /// Returns the dollars that would have been saved in all; below zero where pings would have cost more.
    pub fn net_dollars(&self) -> f64 {
        self.saved_dollars - self.ping_dollars
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        keep_alive::AgentState,
        prices::{Model, Prices, find_model},
        usage::Usage,
    };

    /// A million tokens cost 1 dollar to read and 12.5 to write again; a fifth of the people come back while one ping keeps them.
    fn check(end: PauseEnd) -> (u64, f64, f64) {
        let prices =
            Prices { input: 10.0, cache_read: 1.0, cache_write: 12.5, cache_write_1h: None, output: 0.0 };
        let model = Model { prices, cliff: None, ..find_model("claude-opus-5").expect("a model") };
        let idle = IdleSession {
            model: &model,
            last_request: Millis(0),
            last_use: Millis(0),
            usage: Usage { cache_read: 1_000_000, ..Usage::default() },
            lifetime_ms: 300_000,
            requests: 9,
            paid_dollars: 10.0,
            untouched_dollars: 20.0,
            agent: AgentState::PerhapsRunning,
            ping_output: 1,
            dollars_left: 9.0,
        };
        let mut trial = KeepAliveTrial::default();
        let pauses = PauseTable::read("4\t1\n5\t1\n9\t0.8\n10\t0.8").expect("a table");
        trial.enter_pause_with(&idle, end, &pauses);
        (trial.pings, trial.ping_dollars, trial.saved_dollars)
    }

    #[test]
    fn a_pause_that_a_ping_covers_would_have_saved_what_was_written_again() {
        assert_eq!(check(PauseEnd::Continued(Millis(200_000))), (0, 0.0, 0.0));
        assert_eq!(check(PauseEnd::Continued(Millis(400_000))), (1, 1.0, 11.5));
        assert_eq!(check(PauseEnd::Continued(Millis(900_000))), (1, 1.0, 0.0), "too long for one ping");
        assert_eq!(check(PauseEnd::AgentEnded(Millis(400_000))), (1, 1.0, 0.0));
        assert_eq!(check(PauseEnd::AgentEnded(Millis(1000))), (0, 0.0, 0.0));
    }
}
