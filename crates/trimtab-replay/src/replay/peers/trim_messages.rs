//! `LangChain`'s `trim_messages`. Takes a track and a budget; gives views of the system prompt and the longest run of last
//! messages that the library's own estimate puts within the budget. Never shortens a message: it is there or not.

use trimtab_core::Tokens;

use super::{
    PeerCase, Rival, RivalRole, knob_as_budget,
    messages::{ChatMessage, ChatSpeaker, carried_messages, estimate_tokens, messages_of, system_estimate},
    walk::PeerWalk,
};
use crate::replay::{ShownBlock, Views};

const KNOB: (&str, &[f64]) = (
    "tokens of the budget by its own estimate; below 1, a share of the segment's largest request",
    &[0.5, 32_000.0, 100_000.0],
);

pub(super) const FROM_HUMAN: Rival = Rival {
    name: "peer:trim-messages",
    about: "Keeps the last messages that fit, beginning with a person's message; nothing but the system where none fits.",
    knob: KNOB,
    role: RivalRole::Peer,
    views: |case| trim_to_budget(case, RunBegin::Human),
};

pub(super) const ANYWHERE: Rival = Rival {
    name: "peer:trim-messages-raw",
    about: "Keeps the last messages that fit, beginning anywhere: results whose call is gone stay.",
    knob: KNOB,
    role: RivalRole::Peer,
    views: |case| trim_to_budget(case, RunBegin::Anywhere),
};

pub(super) const REPAIRED: Rival = Rival {
    name: "peer:trim-messages-repaired",
    about: "Keeps the last messages that fit, without results whose call is gone.",
    knob: KNOB,
    role: RivalRole::Peer,
    views: |case| trim_to_budget(case, RunBegin::NotWithResults),
};

/// With which message the kept run may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunBegin {
    Human,
    Anywhere,
    NotWithResults,
}

impl RunBegin {
    fn allows(self, message: &ChatMessage) -> bool {
        match self {
            RunBegin::Human => message.speaker == ChatSpeaker::Human,
            RunBegin::Anywhere => true,
            RunBegin::NotWithResults => message.speaker != ChatSpeaker::Tool,
        }
    }
}

fn trim_to_budget(case: &PeerCase<'_>, begin: RunBegin) -> Views {
    let track = case.track;
    let messages = messages_of(track);
    // Tokens of all messages before each, and of all.
    let mut before = vec![Tokens::ZERO];
    let mut sum = Tokens::ZERO;
    for message in &messages {
        sum += Tokens::from_len(estimate_tokens(track, message));
        before.push(sum);
    }
    let room = knob_as_budget(track, case.knob) - Tokens::from_len(system_estimate(track));
    let mut walk = PeerWalk::new(track);
    let (mut start, mut end) = (0, 0);
    while walk.next().is_some() {
        let now = carried_messages(&messages, walk.block_count());
        let sent = messages.get(..now).unwrap_or_default();
        let ends_well =
            |message: &ChatMessage| matches!(message.speaker, ChatSpeaker::Human | ChatSpeaker::Tool);
        let next_end = sent.iter().rposition(ends_well).map_or(0, |last| last + 1);
        let all = before.get(next_end).copied().unwrap_or_default();
        let fits = before.partition_point(|before| all - *before > room).min(next_end);
        let run = sent.get(fits..next_end).unwrap_or_default();
        let next_start =
            run.iter().position(|message| begin.allows(message)).map_or(next_end, |skip| fits + skip);
        let moved = start.min(next_start)..start.max(next_start);
        let reopened = end.min(next_end)..now;
        for index in moved.chain(reopened) {
            let shown =
                if (next_start..next_end).contains(&index) { ShownBlock::Whole } else { ShownBlock::Gone };
            for block in sent.get(index).into_iter().flat_map(ChatMessage::blocks) {
                walk.show_block(block, shown.clone());
            }
        }
        (start, end) = (next_start, next_end);
    }
    walk.into_views()
}
