//! Why the requests of a stored session read less from the cache than they could have: [`explain_session`] takes the store, a session and a
//! table of models; gives a row for every request whose usage was reported. The store has every request whole, so what a client
//! changed is found byte by byte. Only requests that missed something are read.

use std::collections::HashMap;

use anyhow::{Context, Result};
use trimtab_core::{
    Format, History, Millis, Model, Tokens,
    misses::{
        CacheMiss, MarkerPlaces, MissCase, OwnEdit, PrefixChange, TracedRequest, explain_miss,
        first_client_change, is_replaced_history, marker_places, reasoning_left_out,
    },
    parse_as,
    prices::{CacheRules, find_model_in},
};
use trimtab_replay::{ExplainedRecording, ExplainedRequest};
use trimtab_store::{RequestId, RequestInfo, SessionId, Store, StoredRequest};

/// A request as the later ones see it.
struct SeenRequest<'a> {
    info: &'a RequestInfo,
    /// None where no usage was reported.
    traced: Option<TracedRequest>,
    /// When a request that goes on from it was sent last.
    used: Millis,
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
    let requests = store.requests(session)?;
    let mut seen: HashMap<RequestId, SeenRequest<'_>> = HashMap::new();
    let mut explained = ExplainedRecording::default();
    for (index, info) in requests.iter().enumerate() {
        let model = info.model.as_deref().and_then(|name| find_model_in(name, table).ok());
        let before = reported_base(info, &seen);
        let rules = model.as_ref().map_or(CacheRules::COMMON, |model| model.cache);
        let traced = info.usage.map(|usage| {
            let last = before.as_ref().and_then(|before| before.traced.as_ref());
            TracedRequest::new(Some(info.at), info.model.clone(), usage, &rules, last)
        });
        if let (Some(usage), Some(now)) = (info.usage, &traced) {
            let later = u64::try_from(requests.len() - index - 1)?;
            let miss = match before {
                Some(before) => explain_request(store, before, info, now, model.as_ref(), later)?,
                None => None,
            };
            explained.summary.add_request(model.as_ref(), usage, miss.as_ref());
            explained.requests.push(ExplainedRequest {
                segment: 1,
                request: index + 1,
                at_ms: Some(info.at.0),
                model: info.model.clone(),
                usage,
                miss,
            });
        }
        note_use(info, &mut seen);
        seen.insert(info.id, SeenRequest { info, traced, used: info.at });
    }
    Ok(explained)
}

/// Returns the latest request that this one goes on from and whose usage was reported.
fn reported_base<'s, 'a>(
    info: &RequestInfo,
    seen: &'s HashMap<RequestId, SeenRequest<'a>>,
) -> Option<&'s SeenRequest<'a>> {
    let mut base = seen.get(&info.base?)?;
    while base.traced.is_none() {
        base = seen.get(&base.info.base?)?;
    }
    Some(base)
}

/// Notes when the requests that this one goes on from were used.
fn note_use(info: &RequestInfo, seen: &mut HashMap<RequestId, SeenRequest<'_>>) {
    let mut next = info.base;
    while let Some(base) = next.and_then(|base| seen.get_mut(&base)) {
        base.used = base.used.max(info.at);
        next = base.info.base;
    }
}

fn explain_request(
    store: &dyn Store,
    before: &SeenRequest<'_>,
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
        PrefixChange::ByUs(own_edit(block, before.info, info, model, later))
    } else if is_replaced_history(&old_history, &new_history) {
        PrefixChange::Compacted
    } else {
        first_client_change(&old_history, &new_history).map_or(PrefixChange::Same, PrefixChange::ByClient)
    };
    let markers = (info.format == Format::Anthropic).then(|| MarkerPlaces {
        before: marker_places(&old_history, old.marker.map(|block| block.0)),
        now: marker_places(&new_history, new.marker.map(|block| block.0)),
    });
    let messages = (old_history.messages().len(), new_history.messages().len());
    let left_out = reasoning_left_out(&new_history, messages.0, messages.1);
    Ok(explain_miss(&case(change, markers, left_out)))
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
    let read = model.map_or(0.0, |model| model.prices.cache_read);
    let saved = Tokens(saved_per_request.0.saturating_mul(requests_since));
    OwnEdit { block, saved_per_request, requests_since, saved_dollars: saved.to_float() / 1e6 * read }
}

#[cfg(test)]
mod tests;
