//! Whether to keep the provider's cache of an idle conversation alive. [`plan_ping`] takes an [`IdleSession`]; gives the time of the next
//! ping or why there is none ([`PingPlan`]). A ping is a request that reads what is cached with the smallest possible output
//! ([`ping_request`]). The proxy and replay ask here. How likely a person comes back is a table ([`PauseTable`]) that `scripts/fit-pauses` makes.

mod pauses;
mod request;
mod trial;

use std::{collections::VecDeque, fmt};

pub use pauses::PauseTable;
pub use request::{PingRequest, ping_request};
pub use trial::{KeepAliveTrial, PauseEnd};

use crate::{
    account::{as_expired, left_in_cache},
    prices::{CacheRules, Model},
    units::Millis,
    usage::Usage,
};

/// How much sooner than a cache expires it is pinged: a fifteenth of its lifetime, 20 seconds of five minutes, but no more than a minute.
/// A request takes seconds to arrive, and clocks differ.
const MARGIN: i64 = 15;
const MOST_MARGIN_MS: i64 = 60_000;

/// With fewer requests a conversation is often a question on the side, like that for a title, which nobody goes on with. Recordings leave
/// those out; from here on, the number of requests says nothing about how pauses end.
const LEAST_REQUESTS: u64 = 3;

/// How many pings in a row are looked ahead. No pause in the table is worth more.
const MOST_PINGS: u32 = 24;

const HOUR_MS: i64 = 60 * 60 * 1000;

/// The bill with a ping stays within this share of what the session would have cost untouched.
pub const MOST_OF_UNTOUCHED: f64 = 1.005;

/// The US dollars that the pings of all conversations may cost in an hour, where nothing else is said.
pub const HOURLY_DOLLARS: f64 = 1.0;

/// A conversation that nobody has continued since its last request.
#[derive(Debug, Clone, Copy)]
pub struct IdleSession<'a> {
    /// The model that answers.
    pub model: &'a Model,
    /// When the last request was sent.
    pub last_request: Millis,
    /// When the cache was used last: by that request, or by a ping since.
    pub last_use: Millis,
    /// What the provider reported for that use.
    pub usage: Usage,
    /// For how long the provider keeps it.
    pub lifetime_ms: i64,
    /// How many requests the conversation has.
    pub requests: u64,
    /// What it has cost so far by its account, in US dollars.
    pub paid_dollars: f64,
    /// What it would have cost untouched.
    pub untouched_dollars: f64,
    /// Whether anybody can still continue it.
    pub agent: AgentState,
    /// The most tokens that a ping lets the model write: one, where its format allows that.
    pub ping_output: u64,
    /// The US dollars that pings may still cost in this hour.
    pub dollars_left: f64,
}

impl IdleSession<'_> {
    /// Returns what a ping is expected to use.
    pub fn ping_usage(&self) -> Usage {
        let cached = left_in_cache(self.usage, &self.model.cache);
        let rest = self.usage.total_input() - cached.0;
        Usage { input: rest, cache_read: cached.0, output: self.ping_output, ..Usage::default() }
    }
}

/// What is known about the agent whose conversation it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentState {
    /// Nothing, or that it runs. An agent that runs may be left open overnight: that says nothing about its person.
    PerhapsRunning,
    /// It has ended.
    Ended,
}

/// What is done next for an idle conversation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PingPlan {
    /// A ping is sent then.
    At {
        /// When.
        at: Millis,
        /// What it costs, in US dollars.
        dollars: f64,
    },
    /// No more pings.
    Stop(NoPingReason),
}

/// Why no ping is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoPingReason {
    /// The agent has ended.
    AgentEnded,
    /// Nothing of it is in a cache.
    NothingCached,
    /// It is on the user's own server, which keeps what it can by itself.
    OwnServer,
    /// It has too few requests to be one that is continued.
    TooShort,
    /// It will hardly be continued before the cache would expire again.
    RarelyContinued {
        /// How likely it is continued while a ping keeps the cache alive and nothing else would.
        chance: f64,
        /// How likely that must be for the ping to pay.
        needed: f64,
    },
    /// The session's bill would exceed what its savings allow.
    NoSavingsLeft,
    /// Pings have cost as much as they may in an hour.
    HourlyCap,
}

impl fmt::Display for NoPingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoPingReason::AgentEnded => write!(f, "the agent has ended"),
            NoPingReason::NothingCached => write!(f, "nothing of it is cached"),
            NoPingReason::OwnServer => write!(f, "its server is the user's own"),
            NoPingReason::TooShort => write!(f, "it has fewer than {LEAST_REQUESTS} requests"),
            NoPingReason::RarelyContinued { chance, needed } => {
                let (chance, needed) = (chance * 100.0, needed * 100.0);
                write!(
                    f,
                    "it is continued in {chance:.1} % of such pauses, and a ping pays from {needed:.1} % on"
                )
            }
            NoPingReason::NoSavingsLeft => {
                let share = (MOST_OF_UNTOUCHED - 1.0) * 100.0;
                write!(f, "the session would cost over {share:.1} % more than untouched")
            }
            NoPingReason::HourlyCap => write!(f, "pings have cost as much as they may in an hour"),
        }
    }
}

/// Plans the next ping of an idle conversation by the table that ships.
///
/// ```
/// use trimtab_core::{Millis, Usage, find_model, keep_alive::{AgentState, IdleSession, PingPlan, plan_ping}};
/// let model = find_model("claude-opus-5")?;
/// let idle = IdleSession {
///     model: &model, last_request: Millis(0), last_use: Millis(0), lifetime_ms: 300_000, requests: 20,
///     paid_dollars: 1.0, untouched_dollars: 2.0,
///     usage: Usage { cache_read: 90_000, cache_write: 10_000, ..Usage::default() },
///     agent: AgentState::PerhapsRunning, ping_output: 1, dollars_left: 1.0,
/// };
/// let PingPlan::At { at, dollars } = plan_ping(&idle) else { panic!("a ping") };
/// assert_eq!(at, Millis(280_000)); // 20 seconds before the cache expires
/// assert!((dollars - 0.050_025).abs() < 1e-9); // 100,000 tokens at 0.5 dollars a million, and one of output
/// assert!(matches!(plan_ping(&IdleSession { agent: AgentState::Ended, ..idle }), PingPlan::Stop(_)));
/// # Ok::<(), trimtab_core::prices::UnknownModel>(())
/// ```
pub fn plan_ping(idle: &IdleSession<'_>) -> PingPlan {
    plan_ping_with(idle, PauseTable::find_shipped())
}

/// Plans the next ping by another table.
pub fn plan_ping_with(idle: &IdleSession<'_>, pauses: &PauseTable) -> PingPlan {
    let stop = PingPlan::Stop;
    if idle.agent == AgentState::Ended {
        return stop(NoPingReason::AgentEnded);
    }
    if idle.requests < LEAST_REQUESTS {
        return stop(NoPingReason::TooShort);
    }
    let rules = idle.model.cache;
    if rules.slots.is_some() {
        return stop(NoPingReason::OwnServer);
    }
    let ping = idle.ping_usage();
    if ping.cache_read < rules.minimum.0.max(1) {
        return stop(NoPingReason::NothingCached);
    }
    let terms = PingTerms::for_session(idle, ping);
    let used = idle.last_use.0.saturating_sub(idle.last_request.0);
    if terms.expected_gain(pauses, used, MOST_PINGS) <= 0.0 {
        let chance = terms.return_chances(pauses, used).in_time;
        let needed = terms.dollars / terms.saved_dollars.max(f64::MIN_POSITIVE);
        return stop(NoPingReason::RarelyContinued { chance, needed });
    }
    let most = idle.untouched_dollars * MOST_OF_UNTOUCHED;
    if idle.paid_dollars + terms.dollars > most {
        return stop(NoPingReason::NoSavingsLeft);
    }
    if terms.dollars > idle.dollars_left {
        return stop(NoPingReason::HourlyCap);
    }
    PingPlan::At { at: Millis(idle.last_use.0.saturating_add(terms.interval_ms())), dollars: terms.dollars }
}

/// What pings have cost in the last hour.
#[derive(Debug, Clone, Default)]
pub struct HourlyPings {
    pings: VecDeque<(Millis, f64)>,
}

impl HourlyPings {
    /// Enters a ping.
    pub fn enter_ping(&mut self, at: Millis, dollars: f64) {
        self.pings.push_back((at, dollars));
    }

    /// Returns the US dollars that pings may still cost if they may cost `cap` in an hour.
    pub fn dollars_left(&mut self, now: Millis, cap: f64) -> f64 {
        while self.pings.front().is_some_and(|(at, _)| now.0.saturating_sub(at.0) >= HOUR_MS) {
            self.pings.pop_front();
        }
        cap - self.pings.iter().map(|(_, dollars)| dollars).sum::<f64>()
    }
}

/// What a ping costs and brings.
#[derive(Debug, Clone, Copy)]
struct PingTerms {
    lifetime_ms: i64,
    dollars: f64,
    /// What the next request costs more if the cache has expired.
    saved_dollars: f64,
}

/// How likely a conversation goes on after a ping.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ReturnChances {
    /// While that ping keeps the cache alive, and nothing else would.
    in_time: f64,
    /// Not before the next ping.
    later: f64,
}

impl PingTerms {
    fn for_session(idle: &IdleSession<'_>, ping: Usage) -> PingTerms {
        let for_an_hour = idle.lifetime_ms >= CacheRules::HOUR_MS;
        let expired = as_expired(ping, 0, for_an_hour, &idle.model.cache);
        PingTerms {
            lifetime_ms: idle.lifetime_ms,
            dollars: idle.model.cost(ping),
            saved_dollars: idle.model.input_cost(expired) - idle.model.input_cost(ping),
        }
    }

    /// Returns how long after a use the next ping is sent.
    fn interval_ms(&self) -> i64 {
        self.lifetime_ms - (self.lifetime_ms / MARGIN).min(MOST_MARGIN_MS)
    }

    /// Returns the chances at the ping after a use so many milliseconds into the pause.
    fn return_chances(&self, pauses: &PauseTable, used: i64) -> ReturnChances {
        let ping = used + self.interval_ms();
        let lasting = |idle: i64| pauses.share_lasting(idle);
        let still = lasting(ping);
        if still <= 0.0 {
            return ReturnChances { in_time: 0.0, later: 0.0 };
        }
        ReturnChances {
            in_time: (lasting(used + self.lifetime_ms) - lasting(ping + self.lifetime_ms)) / still,
            later: lasting(ping + self.interval_ms()) / still,
        }
    }

    /// Returns the dollars that the next ping is expected to bring, with those that may follow it; below zero where it costs more.
    fn expected_gain(&self, pauses: &PauseTable, used: i64, pings: u32) -> f64 {
        if pings == 0 {
            return 0.0;
        }
        let chances = self.return_chances(pauses, used);
        let next = self.expected_gain(pauses, used + self.interval_ms(), pings - 1);
        chances.in_time * self.saved_dollars - self.dollars + chances.later * next.max(0.0)
    }
}

#[cfg(test)]
mod tests;
