//! What all sessions that are seen come to: by day, by project, by model. The dollars are those of `trimtab stats`. Sessions are read
//! once; afterwards only those that were used since are read again.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use trimtab_core::{Millis, SessionAccount};
use trimtab_store::{SessionId, SessionInfo, SessionPageQuery, Store};

use crate::{accounts::price_requests, scope::StoreScope, store};

/// Milliseconds of a day.
pub(super) const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Sessions whose last request is older are settled: answers take minutes, and their usage arrives with them.
const SETTLED_MS: i64 = 60 * 60 * 1000;

/// Sessions that are listed at once.
const LISTED: u32 = 200;

/// How long a page waits for sums: what is missing then is added up for the next one.
const TIME_TO_ADD_UP: Duration = Duration::from_millis(400);

/// Sums over requests.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct RequestTotals {
    pub(super) sessions: u64,
    pub(super) requests: u64,
    pub(super) tokens_before: u64,
    pub(super) tokens_after: u64,
    /// Tokens as counted here of the requests whose usage was reported.
    pub(super) tokens_reported_for: u64,
    pub(super) reported: SessionAccount,
}

impl RequestTotals {
    fn add(&mut self, other: &RequestTotals) {
        self.sessions += other.sessions;
        self.requests += other.requests;
        self.tokens_before += other.tokens_before;
        self.tokens_after += other.tokens_after;
        self.tokens_reported_for += other.tokens_reported_for;
        self.reported.add_account(&other.reported);
    }
}

/// What the first page shows.
#[derive(Debug, Default, Clone)]
pub(super) struct StoreTotals {
    pub(super) all: RequestTotals,
    pub(super) today: RequestTotals,
    /// Today and the six days before.
    pub(super) week: RequestTotals,
    /// The last days, oldest first, with what each came to.
    pub(super) days: Vec<(i64, RequestTotals)>,
    pub(super) projects: Vec<(Option<String>, RequestTotals)>,
    pub(super) models: Vec<(Option<String>, RequestTotals)>,
    /// Sessions of other projects.
    pub(super) others: u64,
    /// Sessions that are not added up yet.
    pub(super) missing: u64,
}

/// Totals, kept between pages.
#[derive(Default)]
pub(super) struct TotalsCache {
    state: Mutex<TotalsState>,
}

#[derive(Default)]
struct TotalsState {
    sessions: HashMap<SessionId, SessionTotals>,
    /// How many sessions there are.
    count: u64,
    /// Where in the list to go on, when the time was too short.
    next_skip: u32,
}

/// What one session comes to, by day.
struct SessionTotals {
    last: Millis,
    requests: u32,
    project: Option<String>,
    model: Option<String>,
    days: BTreeMap<i64, RequestTotals>,
}

/// Days that are drawn.
const DRAWN_DAYS: i64 = 30;

impl TotalsCache {
    /// Adds up what is seen, now.
    pub(super) fn totals(&self, scope: &StoreScope, now: Millis) -> Result<StoreTotals> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let others = state.update(scope, now)?;
        Ok(state.sum(now, others))
    }
}

impl TotalsState {
    /// Reads what is new, for so long as there is time.
    fn update(&mut self, scope: &StoreScope, now: Millis) -> Result<u64> {
        let began = Instant::now();
        // What was interrupted goes on where it was; a complete list is looked through from the newest on.
        let mut skip = std::mem::take(&mut self.next_skip);
        loop {
            let page =
                scope.session_page(&SessionPageQuery { scope: None, project: None, skip, most: LISTED })?;
            let mut unchanged = 0;
            for session in &page.sessions {
                let is_same = self.sessions.get(&session.id).is_some_and(|known| {
                    known.last == session.last
                        && known.requests == session.requests
                        && now.0 - session.last.0 > SETTLED_MS
                });
                if is_same {
                    unchanged += 1;
                } else {
                    self.sessions.insert(session.id, SessionTotals::read(scope, session)?);
                }
            }
            let known = u64::try_from(self.sessions.len()).unwrap_or(u64::MAX);
            self.count = page.count;
            if known > page.count {
                // Sessions were forgotten: nobody says which.
                self.sessions.clear();
                skip = 0;
                continue;
            }
            // The list is by time: after one that was not used since, none was.
            let is_last = u32::try_from(page.sessions.len()).unwrap_or(u32::MAX) < LISTED;
            if is_last || unchanged > 0 && known == page.count {
                return Ok(page.others);
            }
            skip += LISTED;
            if began.elapsed() > TIME_TO_ADD_UP {
                self.next_skip = skip;
                return Ok(page.others);
            }
        }
    }

    fn sum(&self, now: Millis, others: u64) -> StoreTotals {
        let today = now.0.div_euclid(DAY_MS);
        let known = u64::try_from(self.sessions.len()).unwrap_or(u64::MAX);
        let missing = if self.next_skip > 0 { self.count.saturating_sub(known) } else { 0 };
        let mut totals = StoreTotals { others, missing, ..StoreTotals::default() };
        let mut projects: BTreeMap<Option<String>, RequestTotals> = BTreeMap::new();
        let mut models: BTreeMap<Option<String>, RequestTotals> = BTreeMap::new();
        let mut days: BTreeMap<i64, RequestTotals> = BTreeMap::new();
        for session in self.sessions.values() {
            let mut whole = RequestTotals::default();
            let [mut in_today, mut in_week] = [RequestTotals::default(), RequestTotals::default()];
            for (day, sums) in &session.days {
                whole.add(sums);
                if *day == today {
                    in_today.add(sums);
                }
                if *day > today - 7 {
                    in_week.add(sums);
                }
                if *day > today - DRAWN_DAYS {
                    days.entry(*day).or_default().add(sums);
                }
            }
            // A session counts once, however many days it lasts.
            for sums in [&mut whole, &mut in_today, &mut in_week] {
                sums.sessions = u64::from(sums.requests > 0);
            }
            projects.entry(session.project.clone()).or_default().add(&whole);
            models.entry(session.model.clone()).or_default().add(&whole);
            totals.all.add(&whole);
            totals.today.add(&in_today);
            totals.week.add(&in_week);
        }
        let by_tokens = |sums: BTreeMap<Option<String>, RequestTotals>| {
            let mut sums: Vec<_> = sums.into_iter().collect();
            sums.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.tokens_before));
            sums
        };
        (totals.projects, totals.models) = (by_tokens(projects), by_tokens(models));
        totals.days = days.into_iter().collect();
        totals
    }
}

impl SessionTotals {
    fn read(scope: &StoreScope, session: &SessionInfo) -> Result<SessionTotals> {
        let requests = scope.store().requests(session.id)?;
        let mut days: BTreeMap<i64, RequestTotals> = BTreeMap::new();
        for (request, priced) in requests.iter().zip(price_requests(&requests)) {
            let day = days.entry(request.at.0.div_euclid(DAY_MS)).or_default();
            day.requests += 1;
            day.tokens_before += request.tokens_before;
            day.tokens_after += request.tokens_after;
            day.tokens_reported_for += if request.usage.is_some() { request.tokens_after } else { 0 };
            day.reported.add_account(&priced);
        }
        Ok(SessionTotals {
            last: session.last,
            requests: session.requests,
            project: session.project.clone(),
            model: session.model.clone(),
            days,
        })
    }
}

/// Returns the day of a time, as people write it.
pub(super) fn day_name(day: i64) -> String {
    store::format_minute(Millis(day * DAY_MS)).chars().take(10).collect()
}
