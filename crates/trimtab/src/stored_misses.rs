//! Why the requests of a stored session read less from the cache than they could have: [`explain_session`] takes the store, a session
//! and a table of models; gives a row for every request whose usage was reported. [`explain_requests`] goes on from an earlier look,
//! [`KnownMisses`]. The store has every request whole, so what a client changed is found byte by byte. Only requests that missed
//! something are read.

use std::collections::HashMap;

use anyhow::{Context, Result};
use trimtab_core::{
    Format, History, Millis, Model, Tokens, Usage, chain,
    json::widen,
    misses::{
        CacheMiss, MarkerPlaces, MissCase, MissReason, OwnEdit, PrefixChange, TracedRequest, explain_miss,
        first_client_change, is_replaced_history, marker_places, reasoning_left_out,
    },
    parse_as,
    prices::{CacheRules, find_model_in},
};
use trimtab_replay::{ExplainedRecording, ExplainedRequest};
use trimtab_store::{RequestId, RequestInfo, SessionId, SessionInfo, Store, StoredRequest};

/// How many sessions are looked through for the one that a conversation began in before its client changed the head.
const PREDECESSORS: usize = 20;

/// Milliseconds after which no request is linked to one of another session: nothing is cached for so long.
const LINKED_WITHIN_MS: i64 = 24 * 60 * 60 * 1000;

/// A request as the later ones see it.
struct LinkedRequest {
    info: RequestInfo,
    /// None where no usage was reported.
    traced: Option<TracedRequest>,
    /// When a request that goes on from it was sent last.
    used: Millis,
}

/// What was found out about the requests of a session: whoever looks again reads only the new ones.
#[derive(Debug, Default)]
pub(crate) struct KnownMisses {
    requests: HashMap<RequestId, KnownRequest>,
}

/// What was found out about one request.
#[derive(Debug, Clone)]
struct KnownRequest {
    traced: TracedRequest,
    miss: Option<CacheMiss>,
}

/// Explains every request of a session whose usage was reported.
///
/// # Errors
/// Says what is wrong with the store, or that there is no such session.
pub(crate) fn explain_session(
    store: &dyn Store,
    session: SessionId,
    table: &[Model],
) -> Result<ExplainedRecording> {
    explain_requests(store, &store.requests(session)?, table, &mut KnownMisses::default(), || false)
}

/// Explains the requests of a session, oldest first: those that are known already, and others while there is time.
///
/// # Errors
/// Says what is wrong with the store.
pub(crate) fn explain_requests(
    store: &dyn Store,
    requests: &[RequestInfo],
    table: &[Model],
    known: &mut KnownMisses,
    is_over: impl Fn() -> bool,
) -> Result<ExplainedRecording> {
    let mut seen: HashMap<RequestId, LinkedRequest> = HashMap::new();
    let mut explained = ExplainedRecording::default();
    // A table is long, and a session has few models.
    let mut models: HashMap<&str, Option<Model>> = HashMap::new();
    for (index, info) in requests.iter().enumerate() {
        let model = info
            .model
            .as_deref()
            .and_then(|name| models.entry(name).or_insert_with(|| find_model_in(name, table).ok()).clone());
        let later = u64::try_from(requests.len() - index - 1)?;
        let found = match info.usage {
            None => None,
            Some(usage) => Some(match known.find(info.id, usage) {
                Some(found) => found.with_later_requests(model.as_ref(), later),
                None if is_over() => break,
                None => {
                    let found = explain_new(store, &seen, info, usage, table, later)?;
                    known.requests.insert(info.id, found.clone());
                    found
                }
            }),
        };
        if let (Some(usage), Some(found)) = (info.usage, &found) {
            explained.summary.add_request(model.as_ref(), usage, found.miss.as_ref());
            explained.requests.push(ExplainedRequest {
                segment: 1,
                request: index + 1,
                at_ms: Some(info.at.0),
                model: info.model.clone(),
                usage,
                miss: found.miss.clone(),
            });
        }
        note_use(info, &mut seen);
        let traced = found.map(|found| found.traced);
        seen.insert(info.id, LinkedRequest { info: info.clone(), traced, used: info.at });
    }
    Ok(explained)
}

impl KnownMisses {
    fn find(&self, id: RequestId, usage: Usage) -> Option<KnownRequest> {
        self.requests.get(&id).filter(|found| found.traced.usage == usage).cloned()
    }
}

impl KnownRequest {
    /// Brings up to date what later requests saved.
    fn with_later_requests(mut self, model: Option<&Model>, later: u64) -> KnownRequest {
        if let Some(CacheMiss { reason: MissReason::OwnEdit(edit), .. }) = &mut self.miss {
            *edit = edit_since(*edit, model, later);
        }
        self
    }
}

fn explain_new(
    store: &dyn Store,
    seen: &HashMap<RequestId, LinkedRequest>,
    info: &RequestInfo,
    usage: Usage,
    table: &[Model],
    later: u64,
) -> Result<KnownRequest> {
    let model = info.model.as_deref().and_then(|name| find_model_in(name, table).ok());
    let predecessor = if info.base.is_none() { predecessor(store, info, table)? } else { None };
    let before = reported_base(info, seen).or(predecessor.as_ref());
    let rules = model.as_ref().map_or(CacheRules::COMMON, |model| model.cache);
    let last = before.as_ref().and_then(|before| before.traced.as_ref());
    let traced = TracedRequest::new(Some(info.at), info.model.clone(), usage, &rules, last);
    let miss = match before {
        Some(before) => explain_request(store, before, info, &traced, model.as_ref(), later)?,
        None => None,
    };
    Ok(KnownRequest { traced, miss })
}

/// Returns the latest request that this one goes on from and whose usage was reported.
fn reported_base<'s>(
    info: &RequestInfo,
    seen: &'s HashMap<RequestId, LinkedRequest>,
) -> Option<&'s LinkedRequest> {
    let mut base = seen.get(&info.base?)?;
    while base.traced.is_none() {
        base = seen.get(&base.info.base?)?;
    }
    Some(base)
}

/// Notes when the requests that this one goes on from were used.
fn note_use(info: &RequestInfo, seen: &mut HashMap<RequestId, LinkedRequest>) {
    let mut next = info.base;
    while let Some(base) = next.and_then(|base| seen.get_mut(&base)) {
        base.used = base.used.max(info.at);
        next = base.info.base;
    }
}

/// Finds the request of another session that the first request of this one goes on from: a client that changes its tools or its system
/// prompt, or replaces its history, begins a session in the store, though it is the same conversation.
fn predecessor(store: &dyn Store, info: &RequestInfo, table: &[Model]) -> Result<Option<LinkedRequest>> {
    let sessions = store.sessions()?;
    let Some(own) = sessions.iter().find(|session| session.id == info.session) else { return Ok(None) };
    let is_near = |session: &&SessionInfo| {
        session.id != own.id
            && session.project == own.project
            && session.first < info.at
            && info.at.0 - session.last.0 < LINKED_WITHIN_MS
    };
    let mut history = None;
    for session in sessions.iter().filter(is_near).take(PREDECESSORS) {
        let earlier = store.requests(session.id)?;
        let Some(last) = earlier.iter().rfind(|last| last.at < info.at && last.usage.is_some()) else {
            continue;
        };
        let now = match &history {
            Some(now) => now,
            None => history.insert(history_of(&store.request(info.id)?)?),
        };
        let old = history_of(&store.request(last.id)?)?;
        let is_named = own.name.is_some() && session.name == own.name;
        if continues(&old, now) || is_named && has_same_head(&old, now) && is_replaced_history(&old, now) {
            let model = last.model.as_deref().and_then(|name| find_model_in(name, table).ok());
            let rules = model.map_or(CacheRules::COMMON, |model| model.cache);
            let trace = |usage| TracedRequest::new(Some(last.at), last.model.clone(), usage, &rules, None);
            return Ok(Some(LinkedRequest {
                traced: last.usage.map(trace),
                used: last.at,
                info: last.clone(),
            }));
        }
    }
    Ok(None)
}

/// Tells whether the model said all in a request that it said in an earlier one, and something at all.
fn continues(old: &History, now: &History) -> bool {
    let said = old.said_by_model(0);
    !said.is_empty() && now.said_by_model(0).starts_with(&said)
}

fn has_same_head(old: &History, now: &History) -> bool {
    let head = |history: &History| {
        let blocks = history.messages().first().map_or(0, |entry| widen(entry.first_block));
        chain(history).into_iter().take(blocks).collect::<Vec<_>>()
    };
    head(old) == head(now)
}

fn explain_request(
    store: &dyn Store,
    before: &LinkedRequest,
    info: &RequestInfo,
    now: &TracedRequest,
    model: Option<&Model>,
    later: u64,
) -> Result<Option<CacheMiss>> {
    let Some(traced) = before.traced.clone() else { return Ok(None) };
    let earlier = TracedRequest { at: Some(before.used), ..traced };
    let case = |change, markers, reasoning_left_out| MissCase {
        before: &earlier,
        now,
        change,
        markers,
        reasoning_left_out,
        model,
    };
    // Most requests read all: nothing of them has to be read.
    if explain_miss(&case(PrefixChange::Same, None, false)).is_none() {
        return Ok(None);
    }
    let (old, new) = (store.request(before.info.id)?, store.request(info.id)?);
    let (old_history, new_history) = (history_of(&old)?, history_of(&new)?);
    let change = if let Some(block) = info.edited {
        PrefixChange::ByUs(own_edit(block, &before.info, info, model, later))
    } else if is_replaced_history(&old_history, &new_history) {
        PrefixChange::Compacted
    } else {
        first_client_change(&old_history, &new_history).map_or(PrefixChange::Same, PrefixChange::ByClient)
    };
    let markers = (info.format == Format::Anthropic).then(|| -> Result<MarkerPlaces> {
        Ok(MarkerPlaces {
            before: places_as_sent(&old, &old_history)?,
            now: places_as_sent(&new, &new_history)?,
        })
    });
    let markers = markers.transpose()?;
    let messages = (old_history.messages().len(), new_history.messages().len());
    let left_out = reasoning_left_out(&new_history, messages.0, messages.1);
    Ok(explain_miss(&case(change, markers, left_out)))
}

/// Returns where a request set cache markers, those that its client did not set included.
fn places_as_sent(request: &StoredRequest, history: &History) -> Result<Vec<usize>> {
    if request.added.is_empty() {
        return Ok(marker_places(history, request.marker.map(|block| block.0)));
    }
    let what = || format!("request {}", request.info.id.0);
    let sent = parse_as(request.sent_bytes()?, request.info.format).with_context(what)?;
    Ok(marker_places(&sent, None))
}

fn history_of(request: &StoredRequest) -> Result<History> {
    let what = || format!("request {}", request.info.id.0);
    parse_as(request.bytes.clone(), request.info.format).with_context(what)
}

/// Says what an edit saves at every request, and what it has saved since.
fn own_edit(
    block: u32,
    before: &RequestInfo,
    info: &RequestInfo,
    model: Option<&Model>,
    requests_since: u64,
) -> OwnEdit {
    let hidden = |info: &RequestInfo| Tokens(info.tokens_before) - Tokens(info.tokens_after);
    let saved_per_request = hidden(info) - hidden(before);
    edit_since(
        OwnEdit { block, saved_per_request, requests_since: 0, saved_dollars: 0.0 },
        model,
        requests_since,
    )
}

fn edit_since(edit: OwnEdit, model: Option<&Model>, requests_since: u64) -> OwnEdit {
    let read = model.map_or(0.0, |model| model.prices.cache_read);
    let saved = Tokens(edit.saved_per_request.0.saturating_mul(requests_since));
    OwnEdit { requests_since, saved_dollars: saved.to_float() / 1e6 * read, ..edit }
}

#[cfg(test)]
mod tests;
