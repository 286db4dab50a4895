//! What a segment used, and which blocks had shown it. Takes a track; gives every use with its holders. Never looks at a
//! view: one value serves every policy.

use trimtab_core::{
    BlockId, BlockKind,
    json::{narrow, widen},
};

use super::{
    Miss, anchors, copied, errors,
    input::input,
    instructions,
    lasting::Lasting,
    references,
    stale::{self, Stale},
    texts::Texts,
    visible::{Visible, asked_by},
    what,
};
use crate::replay::{Need, Track};

/// A text that a call used and that the request it answers showed, untrimmed.
#[derive(Debug)]
pub(super) struct Use {
    /// The request that the call answers.
    pub(super) request: usize,
    /// How many blocks that request carried.
    pub(super) carried: usize,
    /// The call.
    pub(super) used_in: BlockId,
    pub(super) text: String,
    /// The blocks of the request that hold it, in order; at least one.
    pub(super) holders: Vec<BlockId>,
}

/// What a segment used.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    pub(super) texts: Texts,
    /// How many anchors there are, seen before or not.
    pub(super) anchors_written: u64,
    /// Anchors, and whether only results had shown them.
    pub(super) anchors: Vec<(Use, bool)>,
    /// Names, and whether they stand in the input of an edit or a write.
    pub(super) references: Vec<(Use, bool)>,
    /// How many names were used that nothing had shown.
    pub(super) guessed: u64,
    pub(super) copied: Vec<Use>,
    pub(super) errors: Vec<Lasting>,
    pub(super) instructions: Vec<Lasting>,
    pub(super) stale: Vec<Stale>,
}

impl Uses {
    /// Finds everything that a segment used.
    pub(crate) fn of(track: &Track<'_>) -> Uses {
        let mut uses = Uses { texts: Texts::of(track), ..Uses::default() };
        let mut names = references::Names::default();
        let mut lines = copied::Lines::default();
        for (index, fact) in track.facts.rows().iter().enumerate() {
            let call = BlockId(narrow(index));
            let Some((request, carried)) = asked_by(track, call) else { continue };
            if fact.acts_as != BlockKind::Call {
                continue;
            }
            let said = input(track, call);
            let place = Place { request, carried, call };
            anchors::add(&mut uses, place, &said);
            names.add(&mut uses, place, &said, fact.tool());
            lines.add(&mut uses, place, &said);
        }
        uses.errors = errors::errors(track, &uses.texts);
        uses.instructions = instructions::instructions(track, &uses.texts);
        uses.stale = stale::stale(track);
        uses
    }

    /// Returns what later answers need of results: of every anchor, name and copied line, the latest block that holds it.
    pub(crate) fn needs(&self, track: &Track<'_>) -> Vec<Need> {
        let marked = self.anchors.iter().chain(&self.references).map(|(used, _)| used);
        let need = |used: &Use| {
            let provider = *used.holders.last()?;
            let block = track.history.block(provider)?;
            let text = track.history.block_text(block);
            let wanted: Vec<&str> =
                used.text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            let lines = text.lines().enumerate();
            let holds = lines.filter(|(_, line)| wanted.iter().any(|wanted| line.contains(wanted)));
            let lines = holds.map(|(number, _)| number..number + 1).collect();
            Some(Need { provider, request: used.request, lines })
        };
        marked.chain(&self.copied).filter_map(need).collect()
    }
}

/// Where a use is found.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) request: usize,
    pub(super) carried: usize,
    pub(super) call: BlockId,
}

impl Place {
    /// Makes a use of a text; none where the request did not show it even untrimmed.
    pub(super) fn uses(self, text: &str, mut holders: Vec<BlockId>) -> Option<Use> {
        let Place { request, carried, call: used_in } = self;
        holders.retain(|block| widen(block.0) < carried);
        (!holders.is_empty()).then(|| Use { request, carried, used_in, text: text.to_owned(), holders })
    }
}

impl Use {
    /// Tells whether a block that holds it is visible whole.
    pub(super) fn has_whole_holder(&self, visible: &Visible<'_>) -> bool {
        self.holders.iter().any(|block| visible.is_whole(*block, self.request))
    }

    /// Notes that it was not visible.
    pub(super) fn missed(&self, metric: &'static str, visible: &Visible<'_>) -> Option<Miss> {
        let hidden = *self.holders.last()?;
        let recoverable = visible.is_recoverable(hidden, self.request);
        let (request, used_in) = (self.request, self.used_in);
        Some(Miss { metric, request, used_in, hidden, what: what(&self.text), recoverable })
    }
}
