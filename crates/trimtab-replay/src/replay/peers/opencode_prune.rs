//! opencode's pruning. Takes a track and how many of the user's turns are out of reach; gives views in which old tool output
//! is cleared, at the end of a turn, when that frees enough. Never touches failed calls or what the `skill` tool gave.

use trimtab_core::{BlockId, facts::Voice, json::narrow};

use super::{
    PeerCase, Rival, RivalRole, knob_as_count,
    walk::{PeerWalk, text_of, tool_of},
};
use crate::replay::{Track, Views};

/// Tokens of the newest tool output that are kept.
const PROTECTED: usize = 40_000;
/// Tokens that must be more than this for anything to be cleared.
const LEAST_FREED: usize = 20_000;

pub(super) const RIVAL: Rival = Rival {
    name: "peer:opencode-prune",
    about: "At the end of a turn clears tool output older than the newest 40,000 tokens of it, if that frees more than 20,000.",
    knob: (
        "turns of the user that are exempt; 0: none, and it runs before every request, as a one-prompt run needs",
        &[2.0, 1.0, 0.0],
    ),
    role: RivalRole::Peer,
    views: prune_outputs,
};

/// A tool output that can be cleared.
struct ToolOutput {
    block: BlockId,
    tokens: usize,
    turn: u32,
}

fn prune_outputs(case: &PeerCase<'_>) -> Views {
    let track = case.track;
    let turns = narrow(knob_as_count(case.knob));
    let mut walk = PeerWalk::new(track);
    // What was cleared is not in the list: the way back ends where it was, and everything older was cleared with it.
    let mut open: Vec<ToolOutput> = Vec::new();
    let mut turn = 0;
    while walk.next().is_some() {
        let begins = walk.turn() > turn;
        turn = walk.turn();
        let new = walk.new_results();
        open.extend(new.into_iter().filter(|block| may_go(track, *block)).map(|block| ToolOutput {
            block,
            tokens: tokens(&text_of(track, block)),
            turn: track.facts.row(block).map_or(0, |fact| fact.turn),
        }));
        // It runs when a turn has ended, before the user's next message is there.
        let reached = match turns {
            0 => Some(turn),
            turns if begins => turn.checked_sub(turns + 1),
            _ => None,
        };
        let Some(reached) = reached else { continue };
        let summary = last_summary(track, walk.block_count());
        let (mut total, mut freed, mut first_kept) = (0, 0, 0);
        let outputs = open.iter().enumerate().rev().filter(|(_, output)| output.turn <= reached);
        for (index, output) in outputs.take_while(|(_, output)| Some(output.block) > summary) {
            total += output.tokens;
            if total <= PROTECTED {
                continue;
            }
            freed += output.tokens;
            first_kept = first_kept.max(index + 1);
        }
        if freed <= LEAST_FREED {
            continue;
        }
        for output in open.drain(..first_kept) {
            if Some(output.block) > summary {
                walk.show_text(output.block, "[Old tool result content cleared]");
            }
        }
    }
    walk.into_views()
}

fn may_go(track: &Track<'_>, block: BlockId) -> bool {
    let failed = track.history.block(block).is_none_or(|block| block.failed);
    !failed && tool_of(track, block) != "skill"
}

/// Estimates as opencode does: a quarter of the characters (of UTF-16, as its language counts them), rounded.
fn tokens(text: &str) -> usize {
    (text.encode_utf16().count() + 2) / 4
}

fn last_summary(track: &Track<'_>, blocks: usize) -> Option<BlockId> {
    let rows = track.facts.rows().get(..blocks)?;
    let found = rows.iter().rposition(|fact| fact.voice == Some(Voice::Summary))?;
    Some(BlockId(narrow(found)))
}
