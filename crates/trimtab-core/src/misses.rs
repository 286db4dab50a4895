//! Why a request read less from the provider's cache than it could have: [`explain_miss`] takes two requests as [`TracedRequest`]s, what
//! differs between them ([`PrefixChange`]) and the rules of the model's cache; gives a [`CacheMiss`] with its [`MissReason`].
//! The store, recordings and pages all ask here. Never guesses past what is known: a reason that is only inferred says so, and
//! what is not known is [`MissReason::Unknown`].

mod compare;
mod sum;
mod words;

use serde::Serialize;

pub use compare::{
    MarkerPlaces, difference, first_client_change, is_replaced_history, marker_places, reasoning_left_out,
    turn_began,
};
pub use sum::{MissSummary, ReasonSum};

use crate::{
    account::{left_in_cache, lifetime_in_force},
    prices::{CacheLanding, CacheRules, Model, bare_model_name},
    units::{Millis, Tokens},
    usage::Usage,
};

/// What is known of a request whose usage was reported.
#[derive(Debug, Clone, PartialEq)]
pub struct TracedRequest {
    /// When it was sent.
    pub at: Option<Millis>,
    /// The model that answered.
    pub model: Option<String>,
    /// What the provider reported.
    pub usage: Usage,
    /// For how long what it used stays in the cache.
    pub lifetime_ms: i64,
}

impl TracedRequest {
    /// Traces a request after the one that it goes on from.
    pub fn new(
        at: Option<Millis>,
        model: Option<String>,
        usage: Usage,
        rules: &CacheRules,
        before: Option<&TracedRequest>,
    ) -> TracedRequest {
        let lifetime_ms =
            lifetime_in_force(rules.lifetime_ms, usage, before.map(|before| before.lifetime_ms));
        TracedRequest { at, model, usage, lifetime_ms }
    }
}

/// How the content of a request differs from that of the request that it goes on from.
#[derive(Debug, Clone, PartialEq)]
pub enum PrefixChange {
    /// Nothing differs up to where that request ended: tools, system prompt and messages are known.
    Same,
    /// Nothing differs in what is recorded. Tools and system prompt, and what a client adds to messages, are not.
    SameAsRecorded {
        /// How many tokens are not recorded; zero where that is not known.
        unrecorded: Tokens,
        /// Whether the user said nothing in between: within a turn, an agent keeps its tools and its system prompt.
        within_turn: bool,
    },
    /// The client sent something otherwise.
    ByClient(ClientChange),
    /// We did.
    ByUs(OwnEdit),
    /// The agent replaced its history by a shorter one.
    Compacted,
}

/// The first thing that a client sent otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClientChange {
    /// Where it is.
    pub place: ChangedPlace,
    /// The beginning of what was there before.
    pub before: String,
    /// The beginning of what is there now.
    pub now: String,
}

/// What a client changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangedPlace {
    /// The definition of this tool, or the list of tools there.
    Tool(String),
    /// The system prompt.
    System,
    /// This message, counted from 1.
    Message(usize),
    /// A member of the request that the provider's cache depends on.
    Parameter(String),
}

/// What we sent otherwise than before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OwnEdit {
    /// The first block that was sent otherwise.
    pub block: u32,
    /// How many tokens fewer every request has since.
    pub saved_per_request: Tokens,
    /// How many requests of the session followed.
    pub requests_since: u64,
    /// What reading these tokens in those requests would have cost, in US dollars.
    pub saved_dollars: f64,
}

/// Why less was read than could have been.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum MissReason {
    /// The entry was not used for longer than the provider keeps it.
    Expired {
        /// Milliseconds since it was used last.
        idle_ms: i64,
        /// Milliseconds that it is kept.
        lifetime_ms: i64,
    },
    /// Another model has another cache.
    OtherModel {
        /// The model before.
        before: String,
        /// The model now.
        now: String,
    },
    /// The agent replaced its history.
    Compaction,
    /// The client changed its tools, its system prompt, a message or a parameter.
    ClientChange(ClientChange),
    /// The client changed something that is not recorded: its tools, its system prompt, or a text that it adds to messages.
    UnrecordedChange {
        /// How many tokens at the beginning were still the same.
        same: Tokens,
    },
    /// We sent something otherwise than before.
    OwnEdit(OwnEdit),
    /// The provider leaves out the reasoning of earlier turns once the user speaks.
    ReasoningLeftOut,
    /// The request has no cache marker, so the provider looks nothing up; or the one before had none, so nothing was written.
    NoMarker,
    /// More markers than the provider takes.
    TooManyMarkers {
        /// How many.
        markers: usize,
    },
    /// Every marker looks back too few positions to find what was written.
    MarkersOutOfReach {
        /// Positions between what was written and the nearest marker after it.
        positions: usize,
        /// Positions that a marker looks back.
        look_back: usize,
    },
    /// What could have been cached is shorter than the provider caches.
    BelowMinimum {
        /// The shortest prefix that is cached.
        minimum: Tokens,
    },
    /// None of the above: the bytes were the same, in time, and within reach.
    LostByProvider,
    /// What is kept of the requests does not tell.
    Unknown(UnknownBecause),
}

/// What is missing to know a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "because", rename_all = "kebab-case")]
pub enum UnknownBecause {
    /// The requests have no times.
    NoTimes,
    /// Nothing at all was read when a turn of the user began: the client changed its first tool or its system prompt, which are not
    /// recorded, or the provider lost everything.
    NothingRead,
}

/// Whether a reason is read from what is kept, or inferred because nothing else fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// It is in the bytes, the times or the usage.
    Known,
    /// Nothing that is recorded explains it otherwise.
    Inferred,
}

/// A request that read less than it could have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheMiss {
    /// What it could have read: what the request before left in the cache, no more than its own input.
    pub could_read: Tokens,
    /// What it read.
    pub read: Tokens,
    /// What was paid for again although it had been cached.
    pub again: Tokens,
    /// What that cost beyond reading it, in US dollars; nothing where the model's prices are not known.
    pub again_dollars: Option<f64>,
    /// Milliseconds since the request before.
    pub idle_ms: Option<i64>,
    /// Why.
    pub reason: MissReason,
    /// How the reason is known.
    pub certainty: Certainty,
}

/// Two requests, and what is known of the way from one to the other.
#[derive(Debug, Clone)]
pub struct MissCase<'a> {
    /// The request that this one goes on from.
    pub before: &'a TracedRequest,
    /// The request.
    pub now: &'a TracedRequest,
    /// What differs.
    pub change: PrefixChange,
    /// Where both set cache markers, where that is known.
    pub markers: Option<MarkerPlaces>,
    /// Whether a turn began at which a provider may leave out reasoning of the one before.
    pub reasoning_left_out: bool,
    /// The model of the request, where it is known.
    pub model: Option<&'a Model>,
}

/// Most markers that a request may carry where markers are set.
const MAX_MARKERS: usize = 4;

/// Explains why a request read less from the cache than it could have; nothing where it read all.
///
/// ```
/// use trimtab_core::{Millis, Usage, find_model, misses::{MissCase, MissReason, PrefixChange, TracedRequest, explain_miss}};
/// let model = find_model("claude-opus-5")?;
/// let at = |minutes: i64, read, written| {
///     let usage = Usage { cache_read: read, cache_write: written, ..Usage::default() };
///     TracedRequest::new(Some(Millis(minutes * 60_000)), Some(model.name.clone()), usage, &model.cache, None)
/// };
/// let (before, now) = (at(0, 0, 50_000), at(12, 0, 51_000));
/// let case = MissCase {
///     before: &before, now: &now, change: PrefixChange::Same, markers: None, reasoning_left_out: false, model: Some(&model),
/// };
/// let miss = explain_miss(&case).ok_or("all was read")?;
/// assert_eq!(miss.reason, MissReason::Expired { idle_ms: 720_000, lifetime_ms: 300_000 });
/// assert_eq!(miss.again.0, 50_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn explain_miss(case: &MissCase<'_>) -> Option<CacheMiss> {
    let rules = case.model.map_or(CacheRules::COMMON, |model| model.cache);
    let could_read = readable(case, &rules);
    let read = Tokens(case.now.usage.cache_read);
    let again = could_read - read;
    // Reads come in steps: less than one step says nothing.
    if again.0 < rules.step.0.max(1) || (rules.step.0 > 1 && again <= rules.step) {
        return None;
    }
    let (reason, certainty) = reason_of(case, &rules, could_read);
    Some(CacheMiss {
        could_read,
        read,
        again,
        again_dollars: case.model.map(|model| dollars_again(model, case.now.usage, again)),
        idle_ms: idle_time(case),
        reason,
        certainty,
    })
}

/// Returns what the request before left in the cache, as far as this request has as much input.
fn readable(case: &MissCase<'_>, rules: &CacheRules) -> Tokens {
    let left = match case.change {
        // What a compaction leaves of the history is not known: at most all of the new request was there before.
        PrefixChange::Compacted => Tokens(case.before.usage.total_input()),
        PrefixChange::Same
        | PrefixChange::SameAsRecorded { .. }
        | PrefixChange::ByClient(_)
        | PrefixChange::ByUs(_) => left_in_cache(case.before.usage, rules),
    };
    let most = left.min(Tokens(case.now.usage.total_input()));
    Tokens(most.0 - most.0.checked_rem(rules.step.0).unwrap_or_default())
}

/// Returns why less was read, from the reason that explains all to the one that is left when nothing else does.
fn reason_of(case: &MissCase<'_>, rules: &CacheRules, could_read: Tokens) -> (MissReason, Certainty) {
    let known = |reason| (reason, Certainty::Known);
    let inferred = |reason| (reason, Certainty::Inferred);
    let read = Tokens(case.now.usage.cache_read);
    if case.change == PrefixChange::Compacted {
        return known(MissReason::Compaction);
    }
    if let Some(reason) = other_model(case) {
        return known(reason);
    }
    if could_read < rules.minimum {
        return known(MissReason::BelowMinimum { minimum: rules.minimum });
    }
    if let Some(found) = nothing_marked(case, rules) {
        return found;
    }
    let idle = idle_time(case).map(|idle_ms| (idle_ms, case.before.lifetime_ms));
    // Where most of it was read, the entry was alive.
    if let Some((idle_ms, lifetime_ms)) = idle.filter(|(idle, lifetime)| idle >= lifetime)
        && read.times(2) < could_read
    {
        return known(MissReason::Expired { idle_ms, lifetime_ms });
    }
    match &case.change {
        PrefixChange::ByClient(change) => return known(MissReason::ClientChange(change.clone())),
        PrefixChange::ByUs(edit) => return known(MissReason::OwnEdit(*edit)),
        PrefixChange::Same | PrefixChange::SameAsRecorded { .. } | PrefixChange::Compacted => {}
    }
    if rules.drops_old_reasoning && case.reasoning_left_out {
        return known(MissReason::ReasoningLeftOut);
    }
    if let Some(reason) = case.markers.as_ref().and_then(|markers| out_of_reach(markers, rules)) {
        return known(reason);
    }
    match (&case.change, idle) {
        (_, None) => known(MissReason::Unknown(UnknownBecause::NoTimes)),
        (PrefixChange::SameAsRecorded { within_turn: true, .. }, _) if read == Tokens::ZERO => {
            inferred(MissReason::LostByProvider)
        }
        (PrefixChange::SameAsRecorded { .. }, _) if read == Tokens::ZERO => {
            known(MissReason::Unknown(UnknownBecause::NothingRead))
        }
        // The head was read, so it was the same, and so are the messages after it, which are recorded.
        (PrefixChange::SameAsRecorded { unrecorded, .. }, _)
            if *unrecorded > Tokens::ZERO && read >= *unrecorded && !has_markers(rules) =>
        {
            inferred(MissReason::LostByProvider)
        }
        (PrefixChange::SameAsRecorded { .. }, _) => inferred(MissReason::UnrecordedChange { same: read }),
        (_, _) => known(MissReason::LostByProvider),
    }
}

fn other_model(case: &MissCase<'_>) -> Option<MissReason> {
    let (before, now) = (case.before.model.as_deref()?, case.now.model.as_deref()?);
    let is_other = bare_model_name(before) != bare_model_name(now);
    is_other.then(|| MissReason::OtherModel { before: before.to_owned(), now: now.to_owned() })
}

/// Where markers are needed: tells whether nothing was looked up or written for want of one.
fn nothing_marked(case: &MissCase<'_>, rules: &CacheRules) -> Option<(MissReason, Certainty)> {
    if !has_markers(rules) {
        return None;
    }
    if let Some(markers) = &case.markers {
        let none = markers.before.is_empty() || markers.now.is_empty();
        return none.then_some((MissReason::NoMarker, Certainty::Known));
    }
    let cached = |usage: Usage| usage.cache_read + usage.cache_write;
    let none = cached(case.before.usage) == 0 || cached(case.now.usage) == 0;
    none.then_some((MissReason::NoMarker, Certainty::Inferred))
}

fn has_markers(rules: &CacheRules) -> bool {
    matches!(rules.landing, CacheLanding::Breakpoints { .. })
}

/// Tells whether no marker of a request looks back as far as the last marker of the one before.
fn out_of_reach(markers: &MarkerPlaces, rules: &CacheRules) -> Option<MissReason> {
    let CacheLanding::Breakpoints { look_back } = rules.landing else { return None };
    let count = markers.now.len();
    if count > MAX_MARKERS {
        return Some(MissReason::TooManyMarkers { markers: count });
    }
    let written = *markers.before.last()?;
    let positions =
        markers.now.iter().filter(|place| **place >= written).map(|place| place - written).min()?;
    (positions >= look_back).then_some(MissReason::MarkersOutOfReach { positions, look_back })
}

fn idle_time(case: &MissCase<'_>) -> Option<i64> {
    Some(case.now.at?.0.saturating_sub(case.before.at?.0))
}

/// Returns what tokens cost beyond reading them: those that were written first, then those that were not cached.
fn dollars_again(model: &Model, usage: Usage, again: Tokens) -> f64 {
    let from_write = again.0.min(usage.cache_write);
    let from_input = (again.0 - from_write).min(usage.input);
    let written = usage.cache_write - from_write;
    let as_read = Usage {
        input: usage.input - from_input,
        cache_read: usage.cache_read + from_write + from_input,
        cache_write: written,
        cache_write_1h: hour_part(usage, written),
        output: 0,
    };
    model.input_cost(usage) - model.input_cost(as_read)
}

/// Returns what of the tokens that are still written is written for an hour: the same share as before.
fn hour_part(usage: Usage, written: u64) -> u64 {
    match usage.cache_write {
        0 => 0,
        all => Tokens(written).scale(Tokens(usage.cache_write_1h).to_float() / Tokens(all).to_float()).0,
    }
}

#[cfg(test)]
mod tests;
