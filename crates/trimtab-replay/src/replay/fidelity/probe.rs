//! Figures for the table over recordings. Takes a segment; gives what it used, and what untrimmed views and a plain mask of
//! old results kept of it. Never a promise: the table is its only reader.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use trimtab_core::{
    BlockId, BlockKind, Tokens,
    count::Counter,
    json::{narrow, widen},
    plan::BlockFeatures,
};

use super::{Fidelity, SegmentUses, measure_fidelity};
use crate::{
    recording::Segment,
    replay::{ShownBlock, Track, ViewChange, Views},
};

/// A name and its numbers: of a share, how many were kept of how many.
pub type ProbeFigure = (&'static str, u64, u64);

/// A segment whose uses are looked for.
#[derive(Debug)]
pub struct UseProbe<'a> {
    track: Track<'a>,
    uses: SegmentUses,
}

/// How often blocks with the same features were looked at, and how much they were needed later: edited texts, and names.
pub type NeedSums = BTreeMap<String, (u64, u64, u64)>;

/// Requests before this one are not looked at: they are hardly ever under pressure.
const FIRST_LOOK: usize = 15;

/// Of the others each so-manieth is looked at.
const LOOK_EVERY: usize = 4;

/// Lays a segment out.
pub fn probe_segment(segment: &Segment) -> UseProbe<'_> {
    let model = segment.points.iter().find_map(|point| point.model.clone());
    let track = Track::new(segment, Counter::for_model(&model.unwrap_or_default()));
    UseProbe { track, uses: SegmentUses::default() }
}

impl UseProbe<'_> {
    /// Finds what was used and returns how often, everything first and then what the untrimmed requests showed.
    pub fn find_uses(&mut self) -> Vec<ProbeFigure> {
        self.uses = SegmentUses::find_in(&self.track);
        let uses = &self.uses;
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let references = count(uses.references.len());
        vec![
            ("anchors", count(uses.anchors.len()), uses.anchors_written),
            ("references", references, references + uses.guessed),
            ("copied lines", count(uses.copied.len()), count(uses.copied.len())),
            ("errors", count(uses.errors.len()), count(uses.errors.len())),
            ("instructions", count(uses.instructions.len()), count(uses.instructions.len())),
        ]
    }

    /// Returns how much every kind of block was needed after the requests that showed it. A use counts for the latest block that contained
    /// what was used.
    pub fn needs(&self) -> NeedSums {
        let track = &self.track;
        let described = BlockFeatures::new(track.history, &track.facts, &track.counts);
        let mut used: HashMap<BlockId, Vec<(usize, bool)>> = HashMap::new();
        let anchors = self.uses.anchors.iter().map(|(used, _)| (used, true));
        let names = self.uses.references.iter().map(|(used, _)| (used, false));
        for (found, is_anchor) in anchors.chain(names) {
            let holder = found.holders.last().copied();
            holder.into_iter().for_each(|id| used.entry(id).or_default().push((found.request, is_anchor)));
        }
        let mut sums = NeedSums::new();
        for (number, request) in track.requests.iter().enumerate().skip(FIRST_LOOK).step_by(LOOK_EVERY) {
            let end = BlockId(narrow(request.blocks));
            for id in (0..end.0).map(BlockId) {
                let Some(features) = described.of(id, end, track.tokens(id)) else { continue };
                let sum = sums.entry(features).or_default();
                sum.0 += 1;
                for (_, is_anchor) in used.get(&id).into_iter().flatten().filter(|(at, _)| *at >= number) {
                    *(if *is_anchor { &mut sum.1 } else { &mut sum.2 }) += 1;
                }
            }
        }
        sums
    }

    /// Returns what untrimmed views keep.
    pub fn untrimmed_figures(&self) -> Vec<ProbeFigure> {
        let views = Views::with_client_markers(vec![Vec::new(); self.track.requests.len()]);
        fidelity_figures(&measure_fidelity(&self.track, &self.uses, &views))
    }

    /// Returns how many messages each request carried.
    pub fn message_counts(&self) -> Vec<usize> {
        self.track.requests.iter().map(|request| request.messages).collect()
    }

    /// Returns what is kept where from a request on some blocks are gone, and a text stands in place of the last of them.
    pub fn figures_without(&self, from: usize, gone: &[BlockId], text: Option<&str>) -> Vec<ProbeFigure> {
        let kept = measure_fidelity(&self.track, &self.uses, &self.views_without(from, gone, text));
        let path = |block: BlockId| Some(self.track.facts.row(block)?.subject().path()?.to_owned());
        let files: HashSet<String> = kept.refetches.iter().filter_map(|(block, _)| path(*block)).collect();
        let files = u64::try_from(files.len()).unwrap_or(u64::MAX);
        let mut figures = fidelity_figures(&kept);
        figures.push(("files read again", files, files));
        figures
    }

    /// Returns what is missed there: the name of the figure, the message that said it, and its beginning.
    pub fn missed_without(
        &self,
        from: usize,
        gone: &[BlockId],
        text: Option<&str>,
    ) -> Vec<(&'static str, usize, String)> {
        let views = self.views_without(from, gone, text);
        let entry = |id| self.track.history.block(id).map_or(0, |block| widen(block.entry.0));
        let misses = measure_fidelity(&self.track, &self.uses, &views).misses;
        misses.into_iter().map(|miss| (miss.metric, entry(miss.hidden), miss.what)).collect()
    }

    fn views_without(&self, from: usize, gone: &[BlockId], text: Option<&str>) -> Views {
        let mut changes = vec![Vec::new(); self.track.requests.len()];
        let shown = |block: &BlockId| match text.filter(|_| gone.last() == Some(block)) {
            Some(text) => ShownBlock::Text { text: text.into(), tokens: self.track.counter.count_text(text) },
            None => ShownBlock::Gone,
        };
        if let Some(at) = changes.get_mut(from) {
            *at = gone.iter().map(|block| ViewChange { block: *block, shown: shown(block) }).collect();
        }
        Views::with_client_markers(changes)
    }

    /// Returns what is kept where every request shows only its last `keep` results.
    pub fn figures_masked(&self, keep: usize) -> Vec<ProbeFigure> {
        fidelity_figures(&measure_fidelity(&self.track, &self.uses, &mask_results(&self.track, keep)))
    }
}

/// Hides all results of every request but the last ones.
pub(super) fn mask_results(track: &Track<'_>, keep: usize) -> Views {
    let is_result =
        |block: &BlockId| track.facts.row(*block).is_some_and(|fact| fact.acts_as == BlockKind::Result);
    let results: Vec<BlockId> =
        (0..narrow(track.history.blocks().len())).map(BlockId).filter(is_result).collect();
    let text: Arc<str> = "[masked]".into();
    let mut hidden = 0;
    let changes = track.requests.iter().map(|request| {
        let carried = results.partition_point(|block| widen(block.0) < request.blocks);
        let until = carried.saturating_sub(keep);
        let newly = results.get(hidden..until.max(hidden)).unwrap_or_default();
        hidden = until.max(hidden);
        let shown = ShownBlock::Text { text: Arc::clone(&text), tokens: Tokens(3) };
        newly.iter().map(|block| ViewChange { block: *block, shown: shown.clone() }).collect()
    });
    Views::with_client_markers(changes.collect())
}

fn fidelity_figures(fidelity: &Fidelity) -> Vec<ProbeFigure> {
    let shares = [
        ("edit anchors", fidelity.edit_anchors),
        ("all anchors", fidelity.all_anchors),
        ("anchor lines", fidelity.anchor_lines),
        ("references", fidelity.references),
        ("strict references", fidelity.strict_references),
        ("copied lines", fidelity.copied_lines),
        ("errors", fidelity.errors),
        ("instructions", fidelity.instructions),
    ];
    let mut figures: Vec<ProbeFigure> =
        shares.iter().map(|(name, share)| (*name, share.held, share.of)).collect();
    let refetches = u64::try_from(fidelity.refetches.len()).unwrap_or(u64::MAX);
    figures.push(("refetches", refetches, refetches));
    figures.push(("unmarked stale tokens", fidelity.unmarked_stale.0, fidelity.unmarked_stale.0));
    figures
}
