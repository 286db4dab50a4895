//! Why the requests of a recording read less from the cache than they could have: [`explain_recording`] takes a recording and a table of
//! models; gives a row for every request whose usage was reported. A recording holds the messages alone: what a client changes in
//! its tools, its system prompt or the texts it adds can only be inferred.

use serde::Serialize;
use trimtab_core::{
    ChainHash, Model, Point, Tokens, Usage, chain,
    count::{CountMemo, Counter},
    json::widen,
    misses::{
        CacheMiss, MissCase, MissSummary, PrefixChange, TracedRequest, explain_miss, reasoning_left_out,
        turn_began,
    },
    prices::{CacheRules, find_model_in},
};

use crate::{
    head::unrecorded_tokens,
    recording::{Recording, Segment, SegmentStart},
};

/// A request of a recording, with what it read and why not more.
#[derive(Debug, Clone, Serialize)]
pub struct ExplainedRequest {
    /// The segment, counted from 1.
    pub segment: usize,
    /// The request of that segment, counted from 1.
    pub request: usize,
    /// When it was sent, in milliseconds since 1970.
    pub at_ms: Option<i64>,
    /// The model that answered.
    pub model: Option<String>,
    /// What was reported.
    pub usage: Usage,
    /// Why it read less than it could have; nothing where it read all.
    pub miss: Option<CacheMiss>,
}

/// The requests of a recording, and their sum.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ExplainedRecording {
    /// The sum of all requests.
    pub summary: MissSummary,
    /// The requests whose usage was reported.
    pub requests: Vec<ExplainedRequest>,
}

/// What a segment goes on from.
struct EarlierRequest {
    traced: TracedRequest,
    change: SegmentStart,
    messages: usize,
}

/// Explains every request of a recording whose usage was reported.
pub fn explain_recording(recording: &Recording, table: &[Model]) -> ExplainedRecording {
    let mut explained = ExplainedRecording::default();
    let mut memo = CountMemo::default();
    for (index, segment) in recording.segments.iter().enumerate() {
        let earlier = recording.segments.get(..index).unwrap_or_default();
        explain_segment(index + 1, segment, earlier, table, &mut memo, &mut explained);
    }
    explained
}

fn explain_segment(
    number: usize,
    segment: &Segment,
    earlier: &[Segment],
    table: &[Model],
    memo: &mut CountMemo,
    explained: &mut ExplainedRecording,
) {
    let mut models = ModelLookup { table, known: None };
    let mut before = request_before(segment, earlier, &mut models);
    let mut unrecorded: Option<Tokens> = None;
    for (index, point) in segment.points.iter().enumerate() {
        let Some(usage) = point.usage.filter(|usage| usage.total_input() > 0) else { continue };
        let model = models.find(point.model.as_deref());
        let rules = model.map_or(CacheRules::COMMON, |model| model.cache);
        let last = before.as_ref().map(|before| &before.traced);
        let now = TracedRequest::new(point.at, point.model.clone(), usage, &rules, last);
        let miss = before.as_ref().and_then(|before| {
            let left = usage.cache_read < before.traced.usage.total_input();
            let unrecorded = if left {
                *unrecorded.get_or_insert_with(|| count_unrecorded(segment, memo))
            } else {
                Tokens::ZERO
            };
            let within_turn = !turn_began(&segment.history, before.messages, point.messages);
            explain_miss(&MissCase {
                before: &before.traced,
                now: &now,
                change: match before.change {
                    SegmentStart::Compaction => PrefixChange::Compacted,
                    SegmentStart::Session | SegmentStart::Branch | SegmentStart::SubAgent => {
                        PrefixChange::SameAsRecorded { unrecorded, within_turn }
                    }
                },
                markers: None,
                reasoning_left_out: reasoning_left_out(&segment.history, before.messages, point.messages),
                model,
            })
        });
        explained.summary.add_request(model, usage, miss.as_ref());
        explained.requests.push(ExplainedRequest {
            segment: number,
            request: index + 1,
            at_ms: point.at.map(|at| at.0),
            model: point.model.clone(),
            usage,
            miss,
        });
        before =
            Some(EarlierRequest { traced: now, change: SegmentStart::Session, messages: point.messages });
    }
}

/// Finds the request that the first one of a segment goes on from, where there is one.
fn request_before(
    segment: &Segment,
    earlier: &[Segment],
    models: &mut ModelLookup<'_>,
) -> Option<EarlierRequest> {
    let same_thread = || earlier.iter().rev().filter(|before| before.name == segment.name);
    let (before, most) = match segment.start {
        SegmentStart::Session | SegmentStart::SubAgent => return None,
        SegmentStart::Compaction => (same_thread().next()?, usize::MAX),
        SegmentStart::Branch => {
            let own = chain(&segment.history);
            same_thread()
                .map(|before| (before, shared_messages(before, &own)))
                .max_by_key(|(_, shared)| *shared)?
        }
    };
    let mut traced: Option<(TracedRequest, usize)> = None;
    for point in before.points.iter().filter(|point| point.messages <= most) {
        let Some(usage) = point.usage.filter(|usage| usage.total_input() > 0) else { continue };
        let rules = models.find(point.model.as_deref()).map_or(CacheRules::COMMON, |model| model.cache);
        let last = traced.as_ref().map(|(last, _)| last);
        let next = TracedRequest::new(point.at, point.model.clone(), usage, &rules, last);
        traced = Some((next, point.messages));
    }
    let (mut traced, messages) = traced?;
    // Every later request used it too.
    let used = |point: &Point| point.at.filter(|_| point.messages >= messages);
    traced.at = before.points.iter().filter_map(used).max().or(traced.at);
    Some(EarlierRequest { traced, change: segment.start, messages })
}

/// Returns how many messages of an earlier segment a chain of blocks begins with.
fn shared_messages(before: &Segment, chain_now: &[ChainHash]) -> usize {
    let shared = chain(&before.history).iter().zip(chain_now).take_while(|(one, other)| one == other).count();
    let whole = |entry: &&trimtab_core::Entry| widen(entry.first_block + entry.blocks) <= shared;
    before.history.messages().iter().take_while(whole).count()
}

/// Returns what a recording leaves out of a segment's requests. Counting is worth its time only where something was missed.
fn count_unrecorded(segment: &Segment, memo: &mut CountMemo) -> Tokens {
    let model = segment.points.iter().find_map(|point| point.model.as_deref());
    let counter = Counter::for_model(model.unwrap_or_default());
    unrecorded_tokens(segment, &counter.count_request(&segment.history, memo))
}

/// Models of a table by name; the last one found is kept.
struct ModelLookup<'a> {
    table: &'a [Model],
    known: Option<(String, Option<Model>)>,
}

impl ModelLookup<'_> {
    fn find(&mut self, name: Option<&str>) -> Option<&Model> {
        let name = name?;
        if self.known.as_ref().is_none_or(|(known, _)| known != name) {
            self.known = Some((name.to_owned(), find_model_in(name, self.table).ok()));
        }
        self.known.as_ref().and_then(|(_, model)| model.as_ref())
    }
}

#[cfg(test)]
mod tests;
