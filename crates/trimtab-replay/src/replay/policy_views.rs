//! What one of our policies would have shown. Takes a track, a policy and what it may count; gives its views: every request
//! fitted with the memory of those before it. Never re-plans a request: what is known of one goes on to the next.

use std::time::Duration;

use trimtab_core::{
    Millis, Plan, Session, Settings, Tokens, Verdict,
    policy::{Markers, Policy},
    wire,
};

use super::{
    ReplayTerms, SentPing, ShownBlock, Track, ViewChange, Views,
    bill::cache_lifetime,
    keep_alive::{KeepAliveTerms, PingPlayer},
    score::RawCost,
    track::CacheFinding,
};

/// How much later a request is taken to be sent than the one before, where the recording does not tell: a minute.
const UNTOLD_GAP: i64 = 60 * 1000;

/// What a policy showed, and how long each of its plans took.
pub(crate) struct PolicyViews {
    pub(crate) views: Views,
    pub(crate) times: Vec<Duration>,
}

/// Returns what a budget leaves for what is recorded, in our own counts: what the recording leaves out of the head counts all
/// the same.
pub(super) fn room_for(track: &Track<'_>, budget: Tokens) -> Tokens {
    (budget - track.unseen_head).scale(1.0 / track.scale)
}

/// Fits every request of a segment, one after the other.
pub(super) fn play_policy(
    track: &Track<'_>,
    policy: &Policy,
    keep_alive: Option<KeepAliveTerms>,
    raw: &RawCost,
    terms: &ReplayTerms,
) -> PolicyViews {
    let mut pinging = keep_alive.map(|known| PingPlayer::new(track, &raw.model, &raw.bill, known, terms));
    let recorded = track.requests.iter().find_map(|request| request.model.clone());
    // Where the log says what our counts are off by, room for their error is needless.
    let reported = track.requests.iter().any(|request| request.usage.is_some());
    let needless = if reported { track.counter.tokenizer().exactness().guard() } else { 1.0 };
    let budget = room_for(track, raw.budget).scale(needless);
    let mut settings = Settings::new(policy.clone())
        .with_format(track.history.format())
        .with_budget(budget)
        .with_model(recorded.unwrap_or_default())
        .with_prices(raw.model.clone())
        .with_markers(Markers::OneMore)
        .with_recall(terms.recall.clone());
    settings.keeping = Some(cache_lifetime(track, &raw.model));
    settings.unseen = track.unseen_head.scale(1.0 / track.scale);
    let mut session = Session::new(settings);
    let mut shown: Vec<ShownBlock> = Vec::new();
    let mut now = Millis(0);
    let mut played = PolicyViews { views: Views::default(), times: Vec::with_capacity(track.requests.len()) };
    for (number, request) in track.requests.iter().enumerate() {
        now = request.at.map_or(Millis(now.0 + UNTOLD_GAP), |at| Millis(at.0.max(now.0)));
        let bytes = wire::request_of(track.history, request.messages);
        // A request that is not recorded was answered before: whoever stands between client and provider saw it.
        if request.found == CacheFinding::Alive {
            session.memory_mut().cache_was_read(now);
        }
        let began = (terms.clock)();
        let fitted = session.fit(bytes, now);
        played.times.push((terms.clock)().saturating_sub(began));
        shown.resize_with(request.blocks, ShownBlock::default);
        let mut changes = Vec::new();
        if let Ok(fitted) = &fitted {
            changes = shown_otherwise(&fitted.plan, &mut shown);
            session.sent(fitted);
            played.views.markers.extend(fitted.plan.marker().map(|block| (number, block)));
        }
        // The usage that a provider reports tells that; a recording's does.
        if matches!(request.found, CacheFinding::Nothing | CacheFinding::HeadOnly) {
            session.memory_mut().cache_was_lost();
        }
        if let Some(pinging) = &mut pinging {
            pinging.send_request(number, &changes, played.views.markers.get(&number));
            let next = track.requests.get(number + 1);
            let next = next.map(|next| next.at.unwrap_or(Millis(now.0 + UNTOLD_GAP)));
            for at in pinging.send_pings(next) {
                session.memory_mut().cache_was_read(at);
                played.views.pings.push(SentPing { after: number, at });
            }
        }
        played.views.changes.push(changes);
    }
    played
}

/// Returns what a plan shows otherwise than was shown before, and notes it.
fn shown_otherwise(plan: &Plan, shown: &mut [ShownBlock]) -> Vec<ViewChange> {
    let mut changes = Vec::new();
    for (decision, before) in plan.decisions().iter().zip(shown) {
        let text = decision.verdict.text();
        let differs = match &*before {
            ShownBlock::Whole => decision.verdict != Verdict::Keep,
            ShownBlock::Gone => !decision.verdict.leaves_nothing(),
            ShownBlock::Text { text: before, .. } => text != Some(before),
        };
        if differs {
            let tokens = plan.tokens_of(decision.block).1;
            *before = match (&decision.verdict, text) {
                (Verdict::Keep, _) => ShownBlock::Whole,
                (_, Some(text)) => ShownBlock::Text { text: text.clone(), tokens },
                (_, None) => ShownBlock::Gone,
            };
            changes.push(ViewChange { block: decision.block, shown: before.clone() });
        }
    }
    changes
}
