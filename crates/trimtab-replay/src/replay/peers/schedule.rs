//! When edits are made that could be made at once. Takes the views of a rule that edits at once, and what a rewritten token
//! costs in cached reads (kappa); gives views with the same edits made when they pay, or when the cache is cold.
//! Never makes an edit that saves nothing, and never one that the rule did not ask for.

use std::collections::BTreeMap;

use trimtab_core::{BlockId, Millis, Tokens, json::narrow};

use super::walk::PeerWalk;
use crate::replay::{ShownBlock, Track, Views};

/// How long a cache lives without being read, in milliseconds: the shortest lifetime that providers promise (five minutes).
const LIFETIME: i64 = 5 * 60 * 1000;

/// An edit that could be made.
struct WaitingEdit {
    shown: ShownBlock,
    saves: f64,
    since: usize,
}

/// Makes the edits of a rule when they pay, as ski rental tells it: the reads of what could be gone have cost as much as
/// rewriting what follows.
pub(in crate::replay) fn schedule_edits(track: &Track<'_>, at_once: &Views, kappa: f64) -> Views {
    let mut walk = PeerWalk::new(track);
    let mut waiting: BTreeMap<BlockId, WaitingEdit> = BTreeMap::new();
    while let Some(request) = walk.next() {
        for change in at_once.changes.get(request).into_iter().flatten() {
            let (now, then) = (walk.shown_block(change.block), walk.tokens_as(change.block, &change.shown));
            let saves = to_number(walk.tokens_as(change.block, now)) - to_number(then);
            if saves > 0.0 {
                let shown = change.shown.clone();
                waiting.insert(change.block, WaitingEdit { shown, saves, since: request });
            }
        }
        let cut = if is_cold(track, request) {
            Some(BlockId(0))
        } else {
            earliest_paid_cut(&walk, &waiting, request, kappa)
        };
        // What no request has carried yet is in no cache: editing it costs nothing.
        let cut = cut.unwrap_or(BlockId(narrow(walk.blocks_before())));
        for (block, edit) in waiting.split_off(&cut) {
            walk.show_block(block, edit.shown);
        }
    }
    walk.into_views()
}

/// Finds the block from which on all waiting edits are made: whatever has paid its rent goes, however far back. All edits
/// after the first ride along, so one way from the end to the first finds it.
fn earliest_paid_cut(
    walk: &PeerWalk<'_>,
    waiting: &BTreeMap<BlockId, WaitingEdit>,
    request: usize,
    kappa: f64,
) -> Option<BlockId> {
    let (first, cached) = (*waiting.keys().next()?, walk.blocks_before());
    let (mut survives, mut rent) = (0.0, 0.0);
    let mut cut = None;
    for block in (first.0..narrow(cached)).rev().map(BlockId) {
        let Some(edit) = waiting.get(&block) else {
            survives += to_number(walk.tokens_as(block, walk.shown_block(block)));
            continue;
        };
        survives += to_number(walk.tokens_as(block, &edit.shown));
        rent += edit.saves * to_number(Tokens::from_len(request - edit.since));
        if rent >= kappa * survives {
            cut = Some(block);
        }
    }
    cut
}

/// Tells whether the cache has expired since the request before.
fn is_cold(track: &Track<'_>, request: usize) -> bool {
    let at = |request: usize| track.requests.get(request)?.at;
    let before = request.checked_sub(1).and_then(at);
    matches!((before, at(request)), (Some(Millis(before)), Some(Millis(now))) if now - before >= LIFETIME)
}

/// Returns tokens as a number that can be negative; no context has more than 2^32 of them.
fn to_number(Tokens(tokens): Tokens) -> f64 {
    u32::try_from(tokens).map_or(f64::INFINITY, f64::from)
}
