//! A sliding window, first in, first out. Takes a track and a budget; gives views without the oldest exchanges, as many as must
//! go to meet the budget. Never brings one back, never drops the first or the last message of the user, nor the exchange
//! under way.

use std::{collections::BTreeSet, ops::Range};

use trimtab_core::{BlockId, BlockKind, json::widen};

use super::{
    PeerCase, Rival, RivalRole, knob_as_budget,
    messages::{ChatMessage, ChatSpeaker, messages_of},
    walk::{PeerWalk, acts_as},
};
use crate::replay::{ShownBlock, Track, Views};

pub(super) const RIVAL: Rival = Rival {
    name: "peer:sliding-window",
    about: "Drops the oldest exchanges until the budget is met; keeps the system prompt and the user's first and last message.",
    knob: (
        "tokens of the budget; below 1, a share of the segment's largest request",
        &[0.5, 32_000.0, 100_000.0],
    ),
    role: RivalRole::Peer,
    views: slide_window,
};

/// What goes together.
struct WindowAtom {
    kind: AtomKind,
    blocks: Range<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AtomKind {
    Human,
    /// What the model says and the results of its calls.
    Exchange,
    /// What the model says without calling anything.
    Answer,
    /// The system in mid-conversation; never dropped.
    Pinned,
}

fn slide_window(case: &PeerCase<'_>) -> Views {
    let track = case.track;
    let budget = knob_as_budget(track, case.knob);
    let atoms = window_atoms(track);
    let mut walk = PeerWalk::new(track);
    let mut droppable: BTreeSet<usize> = BTreeSet::new();
    let (mut first_human, mut last_human) = (None, None);
    let (mut looked_at, mut settled) = (0, 0);
    while walk.next().is_some() {
        let here = |atom: &WindowAtom| widen(atom.blocks.start) < walk.block_count();
        let sent = atoms.partition_point(here);
        let mut under_way = settled;
        for (index, atom) in atoms.iter().enumerate().take(sent).skip(looked_at) {
            match atom.kind {
                AtomKind::Human => {
                    first_human = first_human.or(Some(index));
                    // The last one so far is no longer the last.
                    droppable.extend(last_human.filter(|last| Some(*last) != first_human && *last < settled));
                    last_human = Some(index);
                }
                AtomKind::Exchange => under_way = index,
                AtomKind::Answer | AtomKind::Pinned => {}
            }
        }
        for (index, atom) in atoms.iter().enumerate().take(under_way).skip(settled) {
            let pinned =
                atom.kind == AtomKind::Pinned || Some(index) == first_human || Some(index) == last_human;
            if !pinned {
                droppable.insert(index);
            }
        }
        (looked_at, settled) = (sent, under_way);
        while walk.total_tokens() > budget {
            let Some(atom) = droppable.pop_first().and_then(|oldest| atoms.get(oldest)) else { break };
            for block in atom.blocks.clone() {
                walk.show_block(BlockId(block), ShownBlock::Gone);
            }
        }
    }
    walk.into_views()
}

/// Returns the exchanges and answers of a segment, each as the blocks that go together.
pub(in crate::replay) fn exchanges_of(track: &Track<'_>) -> Vec<Range<u32>> {
    let atoms = window_atoms(track).into_iter();
    let model = atoms.filter(|atom| matches!(atom.kind, AtomKind::Exchange | AtomKind::Answer));
    model.map(|atom| atom.blocks).collect()
}

fn window_atoms(track: &Track<'_>) -> Vec<WindowAtom> {
    let mut atoms: Vec<WindowAtom> = Vec::new();
    for message in messages_of(track) {
        let kind = atom_kind(track, &message);
        match atoms.last_mut() {
            Some(last) if message.speaker == ChatSpeaker::Tool && last.kind == AtomKind::Exchange => {
                last.blocks.end = message.blocks.end;
            }
            _ => atoms.push(WindowAtom { kind, blocks: message.blocks }),
        }
    }
    atoms
}

fn atom_kind(track: &Track<'_>, message: &ChatMessage) -> AtomKind {
    match message.speaker {
        ChatSpeaker::Human => AtomKind::Human,
        ChatSpeaker::Model
            if message.blocks().any(|block| acts_as(track, block) == Some(BlockKind::Call)) =>
        {
            AtomKind::Exchange
        }
        ChatSpeaker::Model | ChatSpeaker::Tool => AtomKind::Answer,
        ChatSpeaker::Other => AtomKind::Pinned,
    }
}
