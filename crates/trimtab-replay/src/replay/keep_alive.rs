//! Pings in a replay: [`PingPlayer`] follows a session as it is sent, and plans pings by the library's rule and account, as the proxy does.
//! Policies with `+keepalive` are played with it. It looks only at what was known then, and at the end of the recording where
//! somebody would have known that ([`KeepAliveTerms::UntilAgentEnds`]).

use trimtab_core::{
    BlockId, Millis, SessionAccount, Usage,
    keep_alive::{
        AgentState, HOURLY_DOLLARS, HourlyPings, IdleSession, PauseTable, PingPlan, plan_ping_with,
    },
    prices::Model,
    session::CacheLifetime,
};

use super::{
    ReplayTerms, Track, ViewChange,
    bill::{RequestCharge, SegmentBill, cache_lifetime, usage_of},
    cache::CacheUse,
    ledger::{CacheFollower, CacheLosses},
};

/// Whether pings are sent, and what is known of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeepAliveTerms {
    /// Pings are sent, by somebody who does not learn that the agent has ended: also after the last request.
    ByRuleAlone,
    /// Pings are sent until the agent ends: with the last request of the recording.
    UntilAgentEnds,
}

/// Plans and sends the pings of one segment.
pub(super) struct PingPlayer<'t, 'a> {
    model: &'t Model,
    keeping: CacheLifetime,
    raw: &'t SegmentBill,
    pauses: &'t PauseTable,
    follower: CacheFollower<'t, 'a>,
    account: SessionAccount,
    spent: HourlyPings,
    /// What the last request or ping used.
    usage: Usage,
    agent_ends: Option<Millis>,
}

impl<'t, 'a> PingPlayer<'t, 'a> {
    pub(super) fn new(
        track: &'t Track<'a>,
        model: &'t Model,
        raw: &'t SegmentBill,
        known: KeepAliveTerms,
        terms: &'t ReplayTerms,
    ) -> PingPlayer<'t, 'a> {
        let keeping = cache_lifetime(track, model);
        let own = track.requests.iter().filter_map(|request| request.at);
        let last = own.chain(terms.others.iter().flatten().copied()).max();
        PingPlayer {
            model,
            keeping,
            raw,
            pauses: terms.pauses.as_deref().unwrap_or_else(|| PauseTable::find_shipped()),
            follower: CacheFollower::new(track, model.cache, keeping, CacheLosses::AsRecorded),
            account: SessionAccount::default(),
            spent: HourlyPings::default(),
            usage: Usage::default(),
            agent_ends: match known {
                KeepAliveTerms::ByRuleAlone => None,
                // Without times, it ends when it has made its last request.
                KeepAliveTerms::UntilAgentEnds => Some(last.unwrap_or(Millis(0))),
            },
        }
    }

    /// Enters the next request as it was sent.
    pub(super) fn send_request(&mut self, number: usize, changes: &[ViewChange], marker: Option<&BlockId>) {
        let Some(line) = self.follower.send_request(number, changes, marker) else { return };
        let raw = self.raw.charges.get(number).map(|charge| self.usage_of_line(&used_by_charge(charge)));
        self.usage = self.usage_of_line(&line);
        self.account.enter_usages(Some(self.model), self.usage, raw.unwrap_or(self.usage));
    }

    /// Sends the pings that are due before the next request; all that the rule still wants, where none follows. Returns when.
    pub(super) fn send_pings(&mut self, next: Option<Millis>) -> Vec<Millis> {
        let last_request = self.follower.last_request();
        let mut sent = Vec::new();
        let mut last_use = last_request;
        loop {
            let idle = IdleSession {
                model: self.model,
                last_request,
                last_use,
                usage: self.usage,
                lifetime_ms: self.follower.lifetime_ms(),
                requests: self.account.requests,
                paid_dollars: self.account.paid_dollars,
                untouched_dollars: self.account.untouched_dollars,
                agent: AgentState::PerhapsRunning,
                ping_output: 1,
                dollars_left: self.spent.dollars_left(last_use, HOURLY_DOLLARS),
            };
            let PingPlan::At { at, .. } = plan_ping_with(&idle, self.pauses) else { return sent };
            let agent = match self.agent_ends {
                Some(end) if end < at => AgentState::Ended,
                Some(_) | None => AgentState::PerhapsRunning,
            };
            let then = plan_ping_with(&IdleSession { agent, ..idle }, self.pauses);
            if matches!(then, PingPlan::Stop(_)) || next.is_some_and(|next| next <= at) {
                return sent;
            }
            let Some(line) = self.follower.send_ping(at) else { return sent };
            self.usage = Usage { output: 1, ..self.usage_of_line(&line) };
            self.account.enter_ping(self.model, self.usage);
            self.spent.enter_ping(at, self.model.cost(self.usage));
            last_use = at;
            sent.push(at);
        }
    }

    fn usage_of_line(&self, line: &CacheUse) -> Usage {
        usage_of(line, self.keeping)
    }
}

fn used_by_charge(charge: &RequestCharge) -> CacheUse {
    CacheUse { tokens: charge.tokens, read: charge.read, written: charge.written, ..CacheUse::default() }
}

#[cfg(test)]
mod tests {
    use trimtab_core::{
        count::{Counter, Tokenizer},
        policy::Policy,
        prices::find_model,
    };

    use super::*;
    use crate::replay::{
        SentPing, Views,
        bill::bill_segment,
        bill_tests::{conversation, segment},
        policy_views::play_policy,
        score::RawCost,
    };

    /// A model whose cache costs 0.5 dollars a million to read and 6.25 to write, for five minutes.
    fn model() -> Model {
        find_model("claude-opus-4-6").unwrap()
    }

    /// 8,007 tokens sent 400 times, a second apart; after a pause of 400 seconds 158 more; then nothing.
    fn points() -> Vec<(usize, i64)> {
        (0..400).map(|second| (1, second)).chain([(3, 799)]).collect()
    }

    /// Returns the seconds of all pings, and what the session costs with them.
    fn check(points: &[(usize, i64)], known: KeepAliveTerms) -> (Vec<i64>, f64) {
        let segment = segment(&conversation(), points);
        let track = Track::new(&segment, Counter::new(Tokenizer::CharsPerFour));
        let untouched = Views::with_client_markers(vec![Vec::new(); points.len()]);
        let raw = RawCost::for_model(&track, &untouched, &model(), None);
        let none = Policy::find_shipped("none").unwrap();
        let views = play_policy(&track, &none, Some(known), &raw, &ReplayTerms::default()).views;
        let bill = bill_segment(&track, &views, &model());
        assert_eq!(bill.pings.len(), views.pings.len());
        (views.pings.iter().map(|ping| ping.at.0 / 1000).collect(), bill.total_dollars())
    }

    #[test]
    fn a_ping_reads_what_is_cached_and_the_next_request_finds_it() {
        let segment = segment(&conversation(), &[(1, 0), (3, 400)]);
        let track = Track::new(&segment, Counter::new(Tokenizer::CharsPerFour));
        let mut views = Views::with_client_markers(vec![Vec::new(); 2]);
        let dollars = |views: &Views| bill_segment(&track, views, &model()).total_dollars() * 1e6;
        let cold = 8007.0 * 6.25 + 8165.0 * 6.25;
        assert!((dollars(&views) - cold).abs() < 1e-6);
        views.pings = vec![SentPing { after: 0, at: Millis(280_000) }];
        let warm = 8007.0 * 6.25 + 8007.0 * 0.5 + 8007.0 * 0.5 + 158.0 * 6.25;
        assert!((dollars(&views) - warm).abs() < 1e-6);
        // One that comes too late writes all of it again.
        views.pings = vec![SentPing { after: 0, at: Millis(310_000) }];
        let late = 8007.0 * 6.25 + 8007.0 * 6.25 + 8007.0 * 0.5 + 158.0 * 6.25;
        assert!((dollars(&views) - late).abs() < 1e-6);
    }

    #[test]
    fn pings_follow_the_last_request_too_unless_the_end_of_the_agent_is_known() {
        // A two-hundredth of the bill pays for the first ping, and what it saves for the others.
        let until_799 = 8007.0 * 6.25 + 399.0 * 8007.0 * 0.5 + 8007.0 * 0.5 + 8007.0 * 0.5 + 158.0 * 6.25;
        let (pings, dollars) = check(&points(), KeepAliveTerms::UntilAgentEnds);
        assert_eq!(pings, [399 + 280]);
        assert!((dollars * 1e6 - until_799).abs() < 1e-6, "{dollars}");
        let (pings, dollars) = check(&points(), KeepAliveTerms::ByRuleAlone);
        assert_eq!(pings, [399 + 280, 799 + 280, 799 + 560]);
        assert!((dollars * 1e6 - until_799 - 2.0 * 8165.0 * 0.5).abs() < 1e-6, "{dollars}");
    }

    #[test]
    fn a_session_whose_bill_has_no_room_is_left_alone() {
        let short: Vec<(usize, i64)> = (0..20).map(|second| (1, second)).chain([(3, 420)]).collect();
        assert_eq!(check(&short, KeepAliveTerms::ByRuleAlone).0, [0; 0]);
    }
}
