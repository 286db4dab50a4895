//! One session as it went: [`SessionContext`] tells for each request what filled it, kind by kind, what was hidden, and whether the
//! provider's cache was cold. The latest request is read and counted once; everything else comes from lists of the store.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result};
use trimtab_core::{
    BlockId, BlockKind, CountMemo, Counter, Facts, History, Model, Role, SessionAccount, count::Counts,
    facts, facts::Fact, parse_as, prices::CacheRules,
};
use trimtab_store::{RequestId, RequestInfo, RequestVerdicts, SessionId, Store, VerdictHistory};

use crate::{accounts::price_requests, prices, scope::StoreScope};

/// Kinds of what fills a window, from the bottom of the picture to its top.
pub(super) const KINDS: [&str; 8] =
    ["tools", "system", "person", "model's words", "reasoning", "calls", "results", "other"];

/// Sessions whose latest request is kept counted.
const CACHED: usize = 4;

/// A session with what each of its requests was made of.
pub(super) struct SessionContext {
    /// All requests, oldest first.
    pub(super) requests: Vec<RequestInfo>,
    pub(super) priced: Vec<SessionAccount>,
    /// What happened at each request.
    pub(super) moments: Vec<RequestMoment>,
    pub(super) latest: Arc<LatestRequest>,
    /// The model of the latest request, where the table knows it.
    pub(super) model: Option<Model>,
}

/// The latest request, read and counted.
pub(super) struct LatestRequest {
    pub(super) history: History,
    pub(super) facts: Facts,
    pub(super) counts: Counts,
    /// Of the requests that the latest one holds: the tokens that were sent, kind by kind.
    pub(super) sent: HashMap<RequestId, [u64; KINDS.len()]>,
}

/// What happened at a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RequestMoment {
    /// How long after the request before it, in milliseconds, where the cache had gone by then.
    pub(super) cold_after: Option<i64>,
    /// Blocks hidden for the first time, or in another way.
    pub(super) newly_hidden: usize,
    /// Whether a summary took the place of the beginning.
    pub(super) folded: bool,
    /// Hidden blocks that are sent whole again.
    pub(super) shown_again: usize,
}

/// Sessions that were looked at last.
#[derive(Default)]
pub(super) struct ConversationCache {
    kept: Mutex<Vec<(SessionId, RequestId, Arc<LatestRequest>)>>,
}

impl ConversationCache {
    /// Reads a session.
    pub(super) fn read(&self, scope: &StoreScope, session: SessionId) -> Result<SessionContext> {
        let store = scope.store();
        let requests = store.requests(session)?;
        let newest = requests.last().context("this session has no requests")?.clone();
        let told = store.verdict_history(session)?;
        let latest = match self.find(session, newest.id) {
            Some(latest) => latest,
            None => {
                let latest = Arc::new(LatestRequest::read(scope, &requests, &newest, &told)?);
                self.keep(session, newest.id, &latest);
                latest
            }
        };
        let moments = request_moments(&requests, &told);
        let model = newest.model.as_deref().and_then(|model| prices::find_model(model).ok());
        Ok(SessionContext { priced: price_requests(&requests), moments, latest, model, requests })
    }

    fn find(&self, session: SessionId, newest: RequestId) -> Option<Arc<LatestRequest>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter()
            .find(|(id, request, _)| (*id, *request) == (session, newest))
            .map(|(.., latest)| Arc::clone(latest))
    }

    fn keep(&self, session: SessionId, newest: RequestId, latest: &Arc<LatestRequest>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(id, ..)| *id != session);
        kept.insert(0, (session, newest, Arc::clone(latest)));
        kept.truncate(CACHED);
    }
}

impl LatestRequest {
    fn read(
        scope: &StoreScope,
        requests: &[RequestInfo],
        newest: &RequestInfo,
        told: &VerdictHistory,
    ) -> Result<LatestRequest> {
        let stored = scope.store().request(newest.id)?;
        let history = parse_as(stored.bytes, newest.format)?;
        let counter = Counter::for_model(newest.model.as_deref().unwrap_or_default());
        let mut memo = CountMemo::default();
        let counts = counter.count_request(&history, &mut memo);
        let facts = facts(&history);
        let kinds: Vec<usize> = facts.rows().iter().map(kind_of).collect();
        // What all blocks before one take, kind by kind.
        let mut before = vec![[0_u64; KINDS.len()]];
        for (kind, tokens) in kinds.iter().zip(counts.blocks()) {
            let mut sums = before.last().copied().unwrap_or_default();
            if let Some(sum) = sums.get_mut(*kind) {
                *sum += tokens.0;
            }
            before.push(sums);
        }
        let places: HashMap<_, usize> = history.chain().into_iter().zip(1..).collect();
        let mut saved_by: HashMap<(u32, i64), u64> = HashMap::new();
        let mut saved = |block: u32, verdict: i64| {
            *saved_by.entry((block, verdict)).or_insert_with(|| {
                let id = BlockId(block);
                let Some((found, verdict)) = history.block(id).zip(told.verdicts.get(&verdict)) else {
                    return 0;
                };
                let whole = usize::try_from(block)
                    .ok()
                    .and_then(|at| counts.blocks().get(at))
                    .map_or(0, |tokens| tokens.0);
                let text = verdict.verdict().text();
                let rest = text.map_or(0, |text| counter.block_as_text(&history, found, text, &mut memo).0);
                whole.saturating_sub(rest)
            })
        };
        let mut sent = HashMap::new();
        let by_id: HashMap<RequestId, &RequestInfo> =
            requests.iter().map(|request| (request.id, request)).collect();
        follow_verdicts(told, |row, hidden| {
            let Some((request, blocks)) =
                by_id.get(&row.request).and_then(|request| Some((request, places.get(&request.tip)?)))
            else {
                return;
            };
            let mut sums = before.get(*blocks).copied().unwrap_or_default();
            for (block, verdict) in hidden {
                let kind =
                    usize::try_from(*block).ok().and_then(|at| kinds.get(at)).copied().unwrap_or_default();
                if let Some(sum) = sums.get_mut(kind) {
                    *sum = sum.saturating_sub(saved(*block, *verdict));
                }
            }
            sent.insert(row.request, fill_up(sums, request.tokens_after));
        });
        Ok(LatestRequest { history, facts, counts, sent })
    }
}

/// Makes kinds come to what was sent: what surrounds blocks is `other`, and where a correction of counts made the sum smaller, every
/// kind is.
fn fill_up(mut sums: [u64; KINDS.len()], sent: u64) -> [u64; KINDS.len()] {
    let all: u64 = sums.iter().sum();
    if let Some(more) = sent.checked_sub(all) {
        if let Some(other) = sums.last_mut() {
            *other += more;
        }
    } else {
        for sum in &mut sums {
            *sum = sum.saturating_mul(sent) / all.max(1);
        }
    }
    sums
}

/// Goes through the requests of a session with what each hid: blocks with the numbers of their verdicts.
fn follow_verdicts(told: &VerdictHistory, mut visit: impl FnMut(&RequestVerdicts, &BTreeMap<u32, i64>)) {
    // A plan is kept until the last request that builds on it has been visited.
    let mut users: HashMap<RequestId, usize> = HashMap::new();
    told.requests.iter().filter_map(|row| row.base).for_each(|base| *users.entry(base).or_default() += 1);
    let mut plans: HashMap<RequestId, BTreeMap<u32, i64>> = HashMap::new();
    for row in &told.requests {
        let mut plan = match row.base {
            None => BTreeMap::new(),
            Some(base) => {
                let left = users.entry(base).or_default();
                *left = left.saturating_sub(1);
                if *left == 0 { plans.remove(&base) } else { plans.get(&base).cloned() }.unwrap_or_default()
            }
        };
        plan.split_off(&row.same_blocks);
        for (block, verdict) in &row.changes {
            match verdict {
                Some(verdict) => plan.insert(*block, *verdict),
                None => plan.remove(block),
            };
        }
        visit(row, &plan);
        if users.get(&row.request).is_some_and(|left| *left > 0) {
            plans.insert(row.request, plan);
        }
    }
}

fn request_moments(requests: &[RequestInfo], told: &VerdictHistory) -> Vec<RequestMoment> {
    let changes: HashMap<RequestId, &RequestVerdicts> =
        told.requests.iter().map(|row| (row.request, row)).collect();
    let before = std::iter::once(None).chain(requests.iter().map(Some));
    let moment = |(before, request): (Option<&RequestInfo>, &RequestInfo)| {
        let changes = changes.get(&request.id).map_or(&[][..], |row| row.changes.as_slice());
        let is_fold = |verdict: &Option<i64>| {
            verdict.and_then(|id| told.verdicts.get(&id)).is_some_and(|verdict| verdict.verdict().is_fold())
        };
        RequestMoment {
            cold_after: cold_after(before, request),
            newly_hidden: changes.iter().filter(|(_, verdict)| verdict.is_some()).count(),
            folded: changes.iter().any(|(_, verdict)| is_fold(verdict)),
            shown_again: changes.iter().filter(|(_, verdict)| verdict.is_none()).count(),
        }
    };
    before.zip(requests).map(moment).collect()
}

/// Returns how long after the request before it a request was made, where the provider's cache had nothing any more.
fn cold_after(before: Option<&RequestInfo>, request: &RequestInfo) -> Option<i64> {
    let before = before?;
    let model = prices::find_model(request.model.as_deref()?).ok()?;
    let pause = request.at.0 - before.at.0;
    let for_an_hour = before.usage.is_some_and(|usage| usage.cache_write_1h > 0);
    let lifetime_ms = if for_an_hour { CacheRules::HOUR_MS } else { model.cache.lifetime_ms };
    (pause >= lifetime_ms).then_some(pause)
}

/// A hidden block of a request: since when, and at which moment that was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HiddenSince {
    /// The request that hid it first.
    pub(super) request: RequestId,
    /// Requests since, that one included.
    pub(super) requests: usize,
    pub(super) moment: HidingMoment,
}

/// What hiding a block cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HidingMoment {
    /// It was never sent whole.
    New,
    /// The provider's cache was cold.
    Cold,
    /// What follows had to be cached again.
    Warm,
}

impl HidingMoment {
    pub(super) fn words(self) -> &'static str {
        match self {
            HidingMoment::New => "new: it was never sent whole, so nothing had to be cached again",
            HidingMoment::Cold => {
                "cold: the provider's cache had gone, so everything had to be cached again anyway"
            }
            HidingMoment::Warm => {
                "warm: what follows it had to be cached again, to be paid back by later requests"
            }
        }
    }
}

/// Tells of every hidden block of a request since when it is hidden.
pub(super) fn hidden_since(
    requests: &[RequestInfo],
    told: &VerdictHistory,
    asked: RequestId,
) -> BTreeMap<u32, HiddenSince> {
    let rows: HashMap<RequestId, &RequestVerdicts> =
        told.requests.iter().map(|row| (row.request, row)).collect();
    // The requests that this one builds on, oldest first.
    let mut way = Vec::new();
    let mut next = Some(asked);
    while let Some(row) = next.and_then(|id| rows.get(&id)) {
        way.push(*row);
        next = row.base;
    }
    way.reverse();
    let moments: HashMap<RequestId, RequestMoment> =
        requests.iter().map(|request| request.id).zip(request_moments(requests, told)).collect();
    let mut since: BTreeMap<u32, HiddenSince> = BTreeMap::new();
    for row in way {
        since.split_off(&row.same_blocks);
        for hidden in since.values_mut() {
            hidden.requests += 1;
        }
        for (block, verdict) in &row.changes {
            if verdict.is_none() {
                since.remove(block);
                continue;
            }
            let is_cold = moments.get(&row.request).is_some_and(|moment| moment.cold_after.is_some());
            let moment = match (*block >= row.same_blocks, is_cold) {
                (true, _) => HidingMoment::New,
                (false, true) => HidingMoment::Cold,
                (false, false) => HidingMoment::Warm,
            };
            since.entry(*block).or_insert(HiddenSince { request: row.request, requests: 1, moment });
        }
    }
    since
}

/// Returns the place of a block's kind in [`KINDS`].
pub(super) fn kind_of(fact: &Fact) -> usize {
    match (fact.role, fact.acts_as) {
        (Role::Tools, _) | (_, BlockKind::Definition) => 0,
        (Role::System, _) => 1,
        (_, BlockKind::Reasoning) => 4,
        (_, BlockKind::Call) => 5,
        (_, BlockKind::Result) => 6,
        (Role::User, BlockKind::Text) => 2,
        (Role::Assistant, BlockKind::Text) => 3,
        (Role::User | Role::Assistant | Role::Tool | Role::Other, _) => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(
        request: i64,
        base: Option<i64>,
        same_blocks: u32,
        changes: &[(u32, Option<i64>)],
    ) -> RequestVerdicts {
        RequestVerdicts {
            request: RequestId(request),
            base: base.map(RequestId),
            same_blocks,
            changes: changes.to_vec(),
        }
    }

    #[test]
    fn plans_are_followed_over_branches() {
        let told = VerdictHistory {
            requests: vec![
                row(1, None, 0, &[(2, Some(7))]),
                row(2, Some(1), 5, &[(4, Some(8))]),
                row(3, Some(1), 3, &[(3, Some(9))]),
                row(4, Some(2), 6, &[(2, None)]),
            ],
            ..VerdictHistory::default()
        };
        let mut plans = Vec::new();
        follow_verdicts(&told, |row, plan| {
            plans.push((row.request.0, plan.clone().into_iter().collect::<Vec<_>>()));
        });
        assert_eq!(
            plans,
            [(1, vec![(2, 7)]), (2, vec![(2, 7), (4, 8)]), (3, vec![(2, 7), (3, 9)]), (4, vec![(4, 8)])]
        );
        let since = hidden_since(&[], &told, RequestId(4));
        assert_eq!(since.keys().copied().collect::<Vec<_>>(), [4]);
        assert_eq!((since[&4].request.0, since[&4].requests, since[&4].moment), (2, 2, HidingMoment::Warm));
    }

    #[test]
    fn kinds_come_to_what_was_sent() {
        assert_eq!(fill_up([1, 2, 3, 0, 0, 0, 4, 0], 20).iter().sum::<u64>(), 20);
        assert!(fill_up([100, 200, 0, 0, 0, 0, 0, 0], 30).iter().sum::<u64>() <= 30);
    }
}
