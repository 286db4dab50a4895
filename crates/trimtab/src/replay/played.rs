//! What one of our policies would have shown. Takes a track, a policy and a model; gives its views: every request fitted
//! with the memory of those before it. Never re-plans a request: what is known of one goes on to the next.

use super::{Change, Shown, Track, Views};
use crate::{
    fit::{Settings, fit_warm},
    memory::Memory,
    plan::Verdict,
    recording::Millis,
    warm::Warm,
    wire,
};

/// How much later a request is taken to be sent than the one before, where the recording does not tell: a minute.
const UNTOLD_GAP: i64 = 60 * 1000;

/// Fits every request of a segment, one after the other.
pub(crate) fn played(track: &Track<'_>, settings: &Settings) -> Views {
    let mut warm = Warm::default();
    let mut memory = Memory::default();
    let mut shown: Vec<Shown> = Vec::new();
    let mut now = Millis(0);
    let mut changes = Vec::with_capacity(track.requests.len());
    for request in &track.requests {
        now = request.at.map_or(Millis(now.0 + UNTOLD_GAP), |at| Millis(at.0.max(now.0)));
        let bytes = wire::request_of(track.history, request.messages);
        let Ok(fitted) = fit_warm(bytes, &mut warm, &memory, settings, now) else {
            changes.push(Vec::new());
            continue;
        };
        shown.resize_with(request.blocks, Shown::default);
        let mut changed = Vec::new();
        for (decision, before) in fitted.plan.decisions().iter().zip(&mut shown) {
            let differs = match (&decision.verdict, &*before) {
                (Verdict::Keep, Shown::Whole) | (Verdict::Drop, Shown::Gone) => false,
                (Verdict::Shorten { text, .. }, Shown::Text { text: before, .. }) => text != before,
                (Verdict::Keep | Verdict::Drop | Verdict::Shorten { .. }, _) => true,
            };
            if differs {
                let now = match &decision.verdict {
                    Verdict::Keep => Shown::Whole,
                    Verdict::Shorten { text, tokens } => Shown::Text { text: text.clone(), tokens: *tokens },
                    Verdict::Drop => Shown::Gone,
                };
                *before = now.clone();
                changed.push(Change { block: decision.block, shown: now });
            }
        }
        memory.sent(&fitted.plan, now);
        changes.push(changed);
    }
    Views { changes }
}
