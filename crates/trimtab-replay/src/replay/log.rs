//! What a recording's reported usage tells beyond its content. Takes a history, its counts and the requests; gives the size
//! of the head that is not recorded, what was cached at the start, how counts compare with reports, how long prefixes
//! were kept, and where the cache lost something for no reason in the recording. Never changes a count.

use trimtab_core::{
    BlockKind, History, Role, Tokens,
    count::{Calibration, Counts},
    prices::{CacheRules, find_model},
    usage::Usage,
};

use super::{TrackedRequest, track::CacheFinding};

/// A live cache that gives back less than this share of what was left in it has lost something. Smaller differences are a
/// reply that was not sent back as it was said.
const KEPT_SHARE: f64 = 0.9;

/// The shortest lifetime that a provider promises: within it, nothing may be lost.
pub(super) const SHORT_MS: i64 = 300_000;

/// What the log tells.
pub(super) struct UsageLog {
    pub(super) unseen_head: Tokens,
    pub(super) shared_head: Tokens,
    pub(super) warm: Tokens,
    pub(super) scale: f64,
    pub(super) hour: bool,
}

impl UsageLog {
    /// Reads the log, and notes in each request what had been lost before it.
    pub(super) fn read_requests(
        history: &History,
        counts: &Counts,
        requests: &mut [TrackedRequest],
    ) -> UsageLog {
        let counted = counted_tokens(history, counts, requests);
        let reported: Vec<Option<Usage>> =
            requests.iter().map(|request| request.usage.filter(|usage| usage.total_input() > 0)).collect();
        let pairs = || {
            let both = reported.iter().zip(&counted);
            both.filter_map(|(usage, counted)| Some(((*usage)?, *counted)))
        };
        let mut calibration = Calibration::default();
        pairs().for_each(|(usage, counted)| calibration.observe_pair(counted, Tokens(usage.total_input())));
        let scale = calibration.factor();
        let unseen_head = UsageLog::unseen_head(history, counts, requests, scale);
        let warm = reported.first().copied().flatten().map_or(0, |usage| usage.cache_read);
        let written: u64 = pairs().map(|(usage, _)| usage.cache_write).sum();
        let for_an_hour: u64 = pairs().map(|(usage, _)| usage.cache_write_1h).sum();
        let hour = for_an_hour > written / 2;
        note_found(requests, if hour { CacheRules::HOUR_MS } else { SHORT_MS });
        let alone = requests.iter().filter(|request| request.found == CacheFinding::HeadOnly);
        let alone = alone.filter_map(|request| Some(request.usage?.cache_read)).min();
        let shared_head = Tokens(alone.unwrap_or(warm)).min(unseen_head);
        UsageLog { unseen_head, shared_head, warm: Tokens(warm), scale, hour }
    }

    /// Returns what the first report has beyond what is counted for its request.
    pub(super) fn unseen_head(
        history: &History,
        counts: &Counts,
        requests: &[TrackedRequest],
        scale: f64,
    ) -> Tokens {
        let counted = counted_tokens(history, counts, requests);
        let reported = requests.iter().map(|request| request.usage.map_or(0, Usage::total_input));
        let first = reported.zip(counted).find(|(reported, _)| *reported > 0);
        first.map_or(Tokens::ZERO, |(reported, counted)| Tokens(reported) - counted.scale(scale))
    }
}

/// Returns what we count for each request, whole.
fn counted_tokens(history: &History, counts: &Counts, requests: &[TrackedRequest]) -> Vec<Tokens> {
    let spoken = |entries: usize| {
        history.entries().iter().take(entries).filter(|entry| entry.role != Role::Tools).count()
    };
    let messages = history.messages().len();
    let head = history.entries().len() - messages;
    let fixed = counts.frame() - counts.per_entry().times(spoken(history.entries().len()));
    let mut sums = vec![Tokens::ZERO];
    let mut sum = Tokens::ZERO;
    for tokens in counts.blocks() {
        sum += *tokens;
        sums.push(sum);
    }
    let reasoned = reasoning_before(history, counts);
    let total = |request: &TrackedRequest| {
        let blocks = sums.get(request.blocks).copied().unwrap_or(sum);
        let model = request.model.as_deref().and_then(|model| find_model(model).ok());
        let drops = model.is_some_and(|model| model.cache.drops_old_reasoning);
        let dropped = reasoned.get(request.turn).copied().filter(|_| drops).unwrap_or_default();
        blocks - dropped + fixed + counts.per_entry().times(spoken(head + request.messages))
    };
    requests.iter().map(total).collect()
}

/// Returns the tokens of reasoning before each block.
fn reasoning_before(history: &History, counts: &Counts) -> Vec<Tokens> {
    let mut sum = Tokens::ZERO;
    let blocks = history.blocks().iter().zip(counts.blocks());
    let before = blocks.map(|(block, tokens)| {
        let before = sum;
        if block.kind == BlockKind::Reasoning {
            sum += *tokens;
        }
        before
    });
    let mut all: Vec<Tokens> = before.collect();
    all.push(sum);
    all
}

/// Compares what each request read with what the one before it left.
fn note_found(requests: &mut [TrackedRequest], lifetime: i64) {
    let mut earlier: Option<(Option<String>, i64, u64)> = None;
    let mut turn = 0;
    for request in requests {
        let (Some(at), Some(usage)) = (request.at, request.usage) else { continue };
        let cached = usage.cache_read + usage.cache_write;
        // Where nothing is known to be left, what was found says nothing.
        let comparable = |(model, _, left): &(Option<String>, i64, u64)| *model == request.model && *left > 0;
        if let Some((_, last, left)) = earlier.take().filter(comparable) {
            let expired = at.0 - last >= lifetime;
            let spoken = request.turn != turn;
            let whole = Tokens(usage.cache_read) >= Tokens(left).scale(KEPT_SHARE);
            request.found = match (expired, whole, usage.cache_read) {
                // Between two turns some clients ask for suggestions.
                (_, true, _) if expired || spoken => CacheFinding::Alive,
                (_, true, _) | (true, false, _) => CacheFinding::AsRuled,
                (false, false, 0) => CacheFinding::Nothing,
                (false, false, _) => CacheFinding::HeadOnly,
            };
        }
        earlier = Some((request.model.clone(), at.0, cached));
        turn = request.turn;
    }
}
