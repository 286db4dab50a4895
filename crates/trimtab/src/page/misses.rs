//! Why requests of a session read less from the cache than they could have, as `trimtab why` tells it: [`MissCache`] keeps what was found
//! out, and reads for so long as a page may wait. A page that shows only a part asks again.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use maud::{Markup, html};
use trimtab_core::misses::{CacheMiss, MissReason};
use trimtab_replay::ExplainedRecording;
use trimtab_store::{RequestInfo, SessionId};

use super::PageServer;
use crate::{
    commands::why::describe_miss,
    look::dollars,
    output::group_thousands,
    prices::models,
    scope::StoreScope,
    stored_misses::{KnownMisses, explain_requests},
};

/// Sessions whose reasons are kept.
const CACHED: usize = 8;

/// How long a page waits for reasons: each takes two requests to be read and compared.
const TIME_TO_READ: Duration = Duration::from_millis(250);

/// What is known of sessions that were looked at last.
#[derive(Default)]
pub(super) struct MissCache {
    known: Mutex<Vec<(SessionId, KnownMisses)>>,
}

/// What is known of one session.
pub(super) struct SessionMissReport {
    pub(super) explained: ExplainedRecording,
    /// Requests whose usage was reported and that were not looked at yet.
    pub(super) left: usize,
}

impl PageServer {
    /// Explains the requests of a session, as many as there is time for.
    pub(super) fn explain_misses(
        &self,
        scope: &StoreScope,
        session: SessionId,
        requests: &[RequestInfo],
    ) -> Result<SessionMissReport> {
        let mut known = self.misses.take(session);
        let began = Instant::now();
        let is_over = || began.elapsed() > TIME_TO_READ;
        let explained = explain_requests(scope.store(), requests, models()?, &mut known, is_over)?;
        self.misses.keep(session, known);
        let reported = requests.iter().filter(|request| request.usage.is_some()).count();
        let left = reported.saturating_sub(explained.requests.len());
        if left > 0 {
            self.tell_listeners();
        }
        Ok(SessionMissReport { explained, left })
    }

    /// Returns why a request missed something, in words.
    pub(super) fn miss_words(&self, miss: &CacheMiss) -> Markup {
        let cost = miss.again_dollars.map(|cost| format!(" ({})", dollars(cost))).unwrap_or_default();
        html! {
            span.bad { "missed " (group_thousands(miss.again.0)) (cost) ": " }
            bdi { (self.shown_text(&describe_miss(miss))) }
        }
    }
}

impl SessionMissReport {
    /// Returns the misses by the places of their requests in the session.
    pub(super) fn by_place(&self) -> HashMap<usize, &CacheMiss> {
        let rows = self.explained.requests.iter();
        rows.filter_map(|row| Some((row.request.checked_sub(1)?, row.miss.as_ref()?))).collect()
    }
}

/// Tells whether a miss says what a cold cache says.
pub(super) fn is_expired(miss: &CacheMiss) -> bool {
    matches!(miss.reason, MissReason::Expired { .. })
}

impl MissCache {
    fn take(&self, session: SessionId) -> KnownMisses {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let place = known.iter().position(|(id, _)| *id == session);
        place.map_or_else(KnownMisses::default, |place| known.remove(place).1)
    }

    fn keep(&self, session: SessionId, found: KnownMisses) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(id, _)| *id != session);
        known.insert(0, (session, found));
        known.truncate(CACHED);
    }
}
