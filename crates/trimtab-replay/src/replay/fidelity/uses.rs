//! What a segment used, and which blocks had shown it. Takes a track; gives every use with its holders. Never looks at a
//! view: one value serves every policy.

use std::{iter, ops::Range};

use trimtab_core::{
    BlockId, BlockKind,
    json::{narrow, widen},
};

use super::{
    HiddenMiss, anchors, clip_text, copied, errors,
    input::read_input,
    instructions,
    lasting::LastingTexts,
    references,
    stale::{self, StaleLines},
    texts::SegmentTexts,
    visible::{VisibleBlocks, asked_by},
};
use crate::replay::{NeedKind, ResultNeed, Track};

/// A text that a call used and that the request it answers showed, untrimmed.
#[derive(Debug)]
pub(super) struct TextUse {
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
pub(crate) struct SegmentUses {
    pub(super) texts: SegmentTexts,
    /// How many anchors there are, seen before or not.
    pub(super) anchors_written: u64,
    /// Anchors, and whether only results had shown them.
    pub(super) anchors: Vec<(TextUse, bool)>,
    /// Names, and whether they stand in the input of an edit or a write.
    pub(super) references: Vec<(TextUse, bool)>,
    /// How many names were used that nothing had shown.
    pub(super) guessed: u64,
    pub(super) copied: Vec<TextUse>,
    pub(super) errors: Vec<LastingTexts>,
    pub(super) instructions: Vec<LastingTexts>,
    pub(super) stale: Vec<StaleLines>,
}

impl SegmentUses {
    /// Finds everything that a segment used.
    pub(crate) fn find_in(track: &Track<'_>) -> SegmentUses {
        let mut uses = SegmentUses { texts: SegmentTexts::read_segment(track), ..SegmentUses::default() };
        let mut names = references::UsedNames::default();
        let mut lines = copied::UsedLines::default();
        for (index, fact) in track.facts.rows().iter().enumerate() {
            let call = BlockId(narrow(index));
            let Some((request, carried)) = asked_by(track, call) else { continue };
            if fact.acts_as != BlockKind::Call {
                continue;
            }
            let said = read_input(track, call);
            let place = UsePlace { request, carried, call };
            anchors::add_anchors(&mut uses, place, &said);
            names.add_call(&mut uses, place, &said, fact.tool());
            lines.add_call(&mut uses, place, &said);
        }
        uses.errors = errors::find_errors(track, &uses.texts);
        uses.instructions = instructions::find_instructions(track, &uses.texts);
        uses.stale = stale::find_stale(track);
        uses
    }

    /// Returns what later answers need of results: of every anchor, name and copied line, the latest block that holds it.
    pub(crate) fn result_needs(&self, track: &Track<'_>) -> Vec<ResultNeed> {
        let need = |(kind, used): (NeedKind, &TextUse)| {
            let provider = *used.holders.last()?;
            let block = track.history.block(provider)?;
            let lines = lines_holding(&track.history.block_text(block), &used.text);
            let only_there = used.holders.len() == 1;
            Some(ResultNeed { kind, provider, only_there, request: used.request, lines })
        };
        let anchors = self.anchors.iter().map(|(used, _)| (NeedKind::Anchor, used));
        let names = self.references.iter().map(|(used, _)| (NeedKind::Name, used));
        let copied = self.copied.iter().map(|used| (NeedKind::Line, used));
        anchors.chain(names).chain(copied).filter_map(need).collect()
    }
}

/// Returns the lines of a text that hold another text: those in which it stands as a whole; where it stands nowhere as a whole,
/// all that hold a line of it.
fn lines_holding(text: &str, wanted: &str) -> Vec<Range<usize>> {
    let wanted: Vec<&str> = wanted.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let lines: Vec<&str> = text.lines().collect();
    if wanted.len() > 1 {
        let stands_at =
            |window: &[&str]| window.iter().zip(&wanted).all(|(line, wanted)| line.contains(wanted));
        if let Some(first) = lines.windows(wanted.len()).position(stands_at) {
            return iter::once(first..first + wanted.len()).collect();
        }
    }
    let holds =
        lines.iter().enumerate().filter(|(_, line)| wanted.iter().any(|wanted| line.contains(wanted)));
    holds.map(|(number, _)| number..number + 1).collect()
}

/// Where a use is found.
#[derive(Clone, Copy)]
pub(super) struct UsePlace {
    pub(super) request: usize,
    pub(super) carried: usize,
    pub(super) call: BlockId,
}

impl UsePlace {
    /// Makes a use of a text; none where the request did not show it even untrimmed.
    pub(super) fn make_use(self, text: &str, mut holders: Vec<BlockId>) -> Option<TextUse> {
        let UsePlace { request, carried, call: used_in } = self;
        holders.retain(|block| widen(block.0) < carried);
        (!holders.is_empty()).then(|| TextUse { request, carried, used_in, text: text.to_owned(), holders })
    }
}

impl TextUse {
    /// Tells whether a block that holds it is visible whole.
    pub(super) fn has_whole_holder(&self, visible: &VisibleBlocks<'_>) -> bool {
        self.holders.iter().any(|block| visible.is_whole(*block, self.request))
    }

    /// Notes that it was not visible.
    pub(super) fn miss_in(&self, metric: &'static str, visible: &VisibleBlocks<'_>) -> Option<HiddenMiss> {
        let hidden = *self.holders.last()?;
        let recoverable = visible.is_recoverable(hidden, self.request);
        let (request, used_in) = (self.request, self.used_in);
        Some(HiddenMiss { metric, request, used_in, hidden, what: clip_text(&self.text), recoverable })
    }
}
