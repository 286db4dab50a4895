//! One account per session: what its requests cost, what they would have cost untouched, and which [`Lever`] made the difference.
//! [`SessionAccount`] is fed by reported usage and by what was sent ([`AccountedRequest`]); the proxy, `stats` and replay add up in it.
//! Never hides a loss: what was banked falls below zero where a lever cost more than it saved.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    prices::{CacheLanding, CacheRules, Model},
    units::{Millis, Tokens},
    usage::Usage,
};

/// What trimtab does to a bill. Each thing that it does is an entry in the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lever {
    /// Blocks are hidden.
    Hiding,
    /// Cache markers are set for a client that sets none.
    Markers,
    /// The provider's cache is kept alive while nobody speaks.
    KeepAlive,
}

impl Lever {
    /// Returns the lever in a word.
    pub fn word(self) -> &'static str {
        match self {
            Lever::Hiding => "hiding",
            Lever::Markers => "markers",
            Lever::KeepAlive => "keep-alive",
        }
    }
}

/// What one lever did.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LeverSum {
    /// How many requests it changed.
    pub requests: u64,
    /// The dollars that it saved; below zero where it cost more than it saved.
    pub saved_dollars: f64,
}

/// What is known of a request that was sent, beside its usage. Tokens are as counted here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountedRequest {
    /// When it was sent.
    pub at: Millis,
    /// All of it, before anything was hidden.
    pub raw: Tokens,
    /// What was sent instead.
    pub sent: Tokens,
    /// Whether it sent something otherwise than the request before, which broke the prefix that a cache may have.
    pub edited: bool,
    /// Whether it carried cache markers that its client did not set: where a provider needs them, nothing would have been cached.
    pub marked: bool,
}

/// How soon the requests of a session followed each other: while the cache of the one before lived, or later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReturnCounts {
    /// While it lived.
    pub in_time: u64,
    /// Later.
    pub late: u64,
}

/// What a session has cost so far, and what it would have cost untouched.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SessionAccount {
    /// Requests whose usage was reported.
    pub requests: u64,
    /// Of these, how many are of a model whose prices are not known: they count as tokens, not as dollars.
    pub requests_without_price: u64,
    /// Requests that cost more than they would have untouched.
    pub requests_dearer: u64,
    /// What was reported for all requests.
    pub usage: Usage,
    /// What was paid, output included, in US dollars.
    pub paid_dollars: f64,
    /// What the untouched conversation would have cost, in US dollars.
    pub untouched_dollars: f64,
    /// What each lever did.
    pub levers: BTreeMap<Lever, LeverSum>,
    /// Requests of ours that kept the cache alive; they are in none of the sums of requests.
    pub pings: u64,
    /// What they cost, in US dollars: a part of what was paid.
    pub ping_dollars: f64,
    #[serde(skip)]
    last: Option<LastAccounted>,
    /// Whether the cache was kept alive since the last request.
    #[serde(skip)]
    kept_alive: bool,
}

/// What the next request is compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LastAccounted {
    at: Millis,
    raw: Tokens,
    /// What it left in the provider's cache, as reported.
    left: Tokens,
    lifetime_ms: i64,
    returns: ReturnCounts,
}

impl SessionAccount {
    /// Enters a request that was sent, with what the provider reported for it. Returns the dollars that were saved by it; below zero
    /// where it cost more than untouched. The untouched cost is an estimate: our counts, corrected by what the
    /// provider counted for the same request, and a cache that gives back as large a share as it did.
    ///
    /// ```
    /// use trimtab_core::{Millis, Tokens, Usage, account::{AccountedRequest, SessionAccount}, find_model};
    /// let model = find_model("claude-opus-5")?;
    /// let mut account = SessionAccount::default();
    /// let request = AccountedRequest { at: Millis(0), raw: Tokens(100_000), sent: Tokens(60_000), edited: false, marked: false };
    /// let usage = Usage { cache_write: 60_000, ..Usage::default() };
    /// let saved = account.enter_request(Some(&model), request, usage);
    /// assert!((saved - model.prices.cache_write * 0.04).abs() < 1e-9); // 40,000 tokens were not written
    /// assert!((account.balance() - saved).abs() < 1e-9);
    /// # Ok::<(), trimtab_core::prices::UnknownModel>(())
    /// ```
    pub fn enter_request(&mut self, model: Option<&Model>, request: AccountedRequest, usage: Usage) -> f64 {
        let rules = model.map_or(CacheRules::COMMON, |model| model.cache);
        let brought_cache = request.marked && has_markers(&rules);
        let would_expire = self.expired_since(request.at).is_some();
        let untouched = match brought_cache {
            true if request.raw == request.sent => uncached_usage(usage, Tokens(usage.total_input())),
            true => uncached_usage(usage, request.raw.scale(count_correction(request, usage))),
            false => self.untouched_usage(request, usage, &rules),
        };
        self.last = Some(LastAccounted {
            at: request.at,
            raw: request.raw,
            left: left_in_cache(usage, &rules),
            lifetime_ms: lifetime_in_force(rules.lifetime_ms, usage, self.last.map(|last| last.lifetime_ms)),
            returns: self.last.map_or_else(ReturnCounts::default, |last| last.returns_at(request.at)),
        });
        if !brought_cache {
            return self.enter_usages(model, usage, untouched);
        }
        // Without markers all tokens would have been read in at the plain price: hiding saves that price.
        let unmarked = uncached_usage(usage, Tokens(usage.total_input()));
        // And without pings between them, what the request before marked would have been forgotten.
        let hour = usage.cache_write_1h > 0;
        let expired = if would_expire { as_expired(usage, 0, hour, &rules) } else { usage };
        self.kept_alive = false;
        let levers = [(Lever::Hiding, unmarked), (Lever::Markers, expired), (Lever::KeepAlive, usage)];
        self.count_request(model, usage, untouched, &levers)
    }

    /// Returns how soon the session's requests followed each other, up to one that is made now.
    pub fn returns_until(&self, now: Millis) -> ReturnCounts {
        self.last.map_or_else(ReturnCounts::default, |last| last.returns_at(now))
    }

    /// Enters a request of which is known what it would have used untouched, as replay does. Returns the dollars that were saved.
    pub fn enter_usages(&mut self, model: Option<&Model>, usage: Usage, untouched: Usage) -> f64 {
        let kept_alive = std::mem::take(&mut self.kept_alive);
        // What was sent, as it would have been without the pings before it.
        let expired = match model {
            Some(model) if kept_alive && usage.cache_read > untouched.cache_read => {
                let hour = usage.cache_write_1h > 0 || untouched.cache_write_1h > 0;
                as_expired(usage, untouched.cache_read, hour, &model.cache)
            }
            Some(_) | None => usage,
        };
        self.count_request(model, usage, untouched, &[(Lever::Hiding, expired), (Lever::KeepAlive, usage)])
    }

    /// Enters a ping: a request of ours that reads what is cached, so that it lives on.
    pub fn enter_ping(&mut self, model: &Model, usage: Usage) {
        let dollars = model.cost(usage);
        self.pings += 1;
        self.ping_dollars += dollars;
        self.paid_dollars += dollars;
        self.levers.entry(Lever::KeepAlive).or_default().saved_dollars -= dollars;
        self.kept_alive = true;
    }

    /// Counts a request. Each lever comes with the usage that it leads to from that of the lever before, the first from `untouched`.
    fn count_request(
        &mut self,
        model: Option<&Model>,
        usage: Usage,
        untouched: Usage,
        levers: &[(Lever, Usage)],
    ) -> f64 {
        self.requests += 1;
        self.usage = self.usage.plus(usage);
        let Some(model) = model else {
            self.requests_without_price += 1;
            return 0.0;
        };
        let saved = model.input_cost(untouched) - model.input_cost(usage);
        self.paid_dollars += model.cost(usage);
        self.untouched_dollars += model.cost(usage) + saved;
        self.requests_dearer += u64::from(saved < 0.0);
        let mut before = untouched;
        for (lever, after) in levers {
            if before != *after {
                let sum = self.levers.entry(*lever).or_default();
                sum.requests += 1;
                sum.saved_dollars += model.input_cost(before) - model.input_cost(*after);
            }
            before = *after;
        }
        saved
    }

    /// Adds another account: sessions of one project, projects of one machine.
    pub fn add_account(&mut self, other: &SessionAccount) {
        self.requests += other.requests;
        self.requests_without_price += other.requests_without_price;
        self.requests_dearer += other.requests_dearer;
        self.usage = self.usage.plus(other.usage);
        self.paid_dollars += other.paid_dollars;
        self.untouched_dollars += other.untouched_dollars;
        self.pings += other.pings;
        self.ping_dollars += other.ping_dollars;
        for (lever, more) in &other.levers {
            let sum = self.levers.entry(*lever).or_default();
            sum.requests += more.requests;
            sum.saved_dollars += more.saved_dollars;
        }
    }

    /// Returns what was entered so far and goes on from zero, with the last request in mind: what one request comes to, or one day.
    ///
    /// ```
    /// use trimtab_core::{Usage, account::SessionAccount};
    /// let mut account = SessionAccount::default();
    /// let usage = Usage { input: 1000, ..Usage::default() };
    /// account.enter_usages(None, usage, usage);
    /// assert_eq!((account.take_sums().requests, account.requests), (1, 0));
    /// ```
    pub fn take_sums(&mut self) -> SessionAccount {
        let rest =
            SessionAccount { last: self.last, kept_alive: self.kept_alive, ..SessionAccount::default() };
        std::mem::replace(self, rest)
    }

    /// Returns the dollars that the session is ahead of the untouched conversation; below zero where it has paid more.
    pub fn balance(&self) -> f64 {
        self.untouched_dollars - self.paid_dollars
    }

    /// Returns for how long the provider keeps what the last request left in its cache; nothing before the first.
    pub fn cache_lifetime_ms(&self) -> Option<i64> {
        self.last.map(|last| last.lifetime_ms)
    }

    /// Returns the request before, where only pings kept alive until now what it left in the cache.
    fn expired_since(&self, now: Millis) -> Option<LastAccounted> {
        let would_expire = |last: &LastAccounted| now.0.saturating_sub(last.at.0) >= last.lifetime_ms;
        self.last.filter(|last| self.kept_alive && would_expire(last))
    }

    /// Returns what the request would have used untouched.
    fn untouched_usage(&self, request: AccountedRequest, usage: Usage, rules: &CacheRules) -> Usage {
        let expired = self.expired_since(request.at);
        // Where only pings kept the cache alive, an untouched request would have found nothing.
        let usage = expired.map_or(usage, |last| {
            let hour = usage.cache_write_1h > 0 || last.lifetime_ms >= CacheRules::HOUR_MS;
            as_expired(usage, 0, hour, rules)
        });
        if request.raw == request.sent {
            return usage;
        }
        let correction = count_correction(request, usage);
        let raw = request.raw.scale(correction).0;
        // What of the request before an untouched one would have found.
        let share = match expired {
            Some(_) => 0.0,
            None => self.last.map_or(0.0, |last| last.share_found(request, usage)),
        };
        let before = self.last.map_or(Tokens::ZERO, |last| last.raw.scale(correction * share));
        let known = before.0.min(raw);
        match (usage.cache_read, usage.cache_write) {
            (0, 0) => Usage { input: raw, ..usage },
            (_, 0) => Usage { cache_read: known, input: raw - known, ..usage },
            (_, _) => {
                let written = raw - known;
                let hour = Tokens(written).scale(share_for_an_hour(usage)).0;
                Usage { input: 0, cache_read: known, cache_write: written, cache_write_1h: hour, ..usage }
            }
        }
    }
}

/// Returns by how much the provider's counts differ from ours, by what it reported for what was sent.
fn count_correction(request: AccountedRequest, usage: Usage) -> f64 {
    match request.sent {
        Tokens::ZERO => 1.0,
        sent => Tokens(usage.total_input()).to_float() / sent.to_float(),
    }
}

/// Returns the usage of a request that is read in at the plain price.
fn uncached_usage(usage: Usage, input: Tokens) -> Usage {
    Usage { input: input.0, output: usage.output, ..Usage::default() }
}

/// Tells whether nothing is cached at a provider without a marker.
fn has_markers(rules: &CacheRules) -> bool {
    matches!(rules.landing, CacheLanding::Breakpoints { .. })
}

impl LastAccounted {
    /// Counts a request that follows now.
    fn returns_at(self, now: Millis) -> ReturnCounts {
        let is_in_time = now.0.saturating_sub(self.at.0) < self.lifetime_ms;
        let ReturnCounts { in_time, late } = self.returns;
        ReturnCounts { in_time: in_time + u64::from(is_in_time), late: late + u64::from(!is_in_time) }
    }

    /// Returns which share of the request before an untouched request would have found in the cache. Where nothing of ours broke the
    /// prefix, what the provider gave back tells: it would have given as much of an untouched one.
    fn share_found(self, request: AccountedRequest, usage: Usage) -> f64 {
        let most = self.left.min(Tokens(usage.total_input()));
        match (request.edited, most) {
            (false, Tokens(1..)) => (Tokens(usage.cache_read).to_float() / most.to_float()).min(1.0),
            (true | false, _) if request.at.0.saturating_sub(self.at.0) < self.lifetime_ms => 1.0,
            (true | false, _) => 0.0,
        }
    }
}

/// Returns what a request would have used if of what it read in the cache only so much had been left: the rest is written again, or read
/// in at the plain price where writing is not reported.
pub(crate) fn as_expired(usage: Usage, left: u64, for_an_hour: bool, rules: &CacheRules) -> Usage {
    let lost = usage.cache_read.saturating_sub(left);
    let is_written = usage.cache_write > 0 || matches!(rules.landing, CacheLanding::Breakpoints { .. });
    let kept = Usage { cache_read: usage.cache_read - lost, ..usage };
    if !is_written {
        return Usage { input: kept.input + lost, ..kept };
    }
    let hour = if for_an_hour { lost } else { 0 };
    Usage { cache_write: kept.cache_write + lost, cache_write_1h: kept.cache_write_1h + hour, ..kept }
}

/// Returns what a request left in the provider's cache. Where markers are needed, that is what it read and wrote; a provider that caches
/// by itself and reports no writes keeps all of it. A request without any of both tells what it could have left.
pub(crate) fn left_in_cache(usage: Usage, rules: &CacheRules) -> Tokens {
    let by_itself = !has_markers(rules);
    match (usage.cache_read, usage.cache_write) {
        (0, 0) => Tokens(usage.total_input()),
        (_, 0) if by_itself => Tokens(usage.total_input()),
        (read, written) => Tokens(read + written),
    }
}

/// Returns for how long what a request used is kept: an hour if it was written so. A request that wrote nothing keeps what was in force.
pub(crate) fn lifetime_in_force(rules_ms: i64, usage: Usage, before: Option<i64>) -> i64 {
    match (usage.cache_write_1h, usage.cache_write) {
        (1.., _) => CacheRules::HOUR_MS.max(rules_ms),
        (0, 0) => before.unwrap_or(rules_ms),
        (0, _) => rules_ms,
    }
}

fn share_for_an_hour(usage: Usage) -> f64 {
    let hour = usage.cache_write_1h.min(usage.cache_write);
    if hour == 0 { 0.0 } else { Tokens(hour).to_float() / Tokens(usage.cache_write).to_float() }
}

#[cfg(test)]
mod tests;
