//! Whether bounds are bounds: [`check_bounds`] plays contenders and holds each against the bounds that are named for what it
//! does. Takes a segment, contenders and models; gives one [`BoundCheck`] for each contender and model. Tests and the corpus
//! table use it; it decides nothing.

use trimtab_core::{BlockId, BlockKind, count::Counter, json::widen, prices::Model};

use super::{
    ResultNeed, SegmentUses, ShownBlock, Track, Views, VisibleRequest,
    bill::bill_freely,
    bill_segment,
    contender::Contender,
    measure_fidelity,
    oracle::{block_oracle, floor_oracle},
    peers::walk::acts_as,
    score::{RawCost, views_of},
    terms::ReplayTerms,
};
use crate::recording::Segment;

/// A contender's bill beside the bounds that hold for it.
#[derive(Debug, Clone)]
pub struct BoundCheck {
    /// The contender.
    pub policy: String,
    /// The model whose prices are paid.
    pub model: String,
    /// What it pays.
    pub dollars: f64,
    /// What the untrimmed segment costs.
    pub raw: f64,
    /// `oracle:floor`, where it changes results only, brings nothing back and misses nothing.
    pub floor: Option<f64>,
    /// `oracle:block`, where it also shows everything once and hides nothing that is still needed.
    pub block: Option<f64>,
}

impl BoundCheck {
    /// Returns the largest bound that holds for the contender, and is more than it pays.
    pub fn broken_bound(&self) -> Option<f64> {
        let below = |bound: &f64| self.dollars < bound * (1.0 - COUNTING);
        self.floor.into_iter().chain(self.block).filter(below).max_by(f64::total_cmp)
    }
}

/// Tokens of some lines are counted apart from those around them, which differs by less than a thousandth.
const COUNTING: f64 = 1e-3;

/// Holds every contender against its bounds.
pub fn check_bounds(
    segment: &Segment,
    contenders: &[Contender],
    models: &[Model],
    terms: &ReplayTerms,
) -> Vec<BoundCheck> {
    if segment.points.is_empty() {
        return Vec::new();
    }
    let recorded = segment.points.iter().find_map(|point| point.model.as_deref());
    let track = Track::new(segment, Counter::for_model(recorded.unwrap_or_default()));
    let uses = SegmentUses::find_in(&track);
    let needs = uses.result_needs(&track);
    let untouched = Views::with_client_markers(vec![Vec::new(); track.requests.len()]);
    let (floor, block) = (floor_oracle(&track, &needs), block_oracle(&track, &needs));
    let mut checks = Vec::new();
    for model in models {
        let raw = RawCost::for_model(&track, &untouched, model, terms.budgets.first().copied());
        let of = |views: &Views| bill_freely(&track, views, model).total_dollars();
        let (floor, block) = (of(&floor), of(&block));
        for contender in contenders {
            let views = views_of(&track, &needs, contender, &raw, terms).views;
            let found = measure_fidelity(&track, &uses, &views);
            let lossless = [found.all_anchors, found.strict_references, found.copied_lines];
            let misses_nothing = lossless.iter().all(|share| share.held == share.of);
            let changes = ViewChanges::read(&track, &views, &needs);
            let is_bound = misses_nothing && changes.only_results && !changes.brings_back;
            checks.push(BoundCheck {
                policy: contender.name().to_owned(),
                model: model.name.clone(),
                dollars: bill_segment(&track, &views, model).total_dollars(),
                raw: raw.total_dollars(),
                floor: is_bound.then_some(floor),
                block: (is_bound && changes.seen_once && !changes.still_needed).then_some(block),
            });
        }
    }
    checks
}

/// What sort of changes views make.
struct ViewChanges {
    only_results: bool,
    brings_back: bool,
    seen_once: bool,
    still_needed: bool,
}

impl ViewChanges {
    fn read(track: &Track<'_>, views: &Views, needs: &[ResultNeed]) -> ViewChanges {
        let mut found =
            ViewChanges { only_results: true, brings_back: false, seen_once: true, still_needed: false };
        let mut showing = VisibleRequest::default();
        let tokens = |block: BlockId, shown: &ShownBlock| match shown {
            ShownBlock::Whole => track.tokens(block),
            ShownBlock::Text { tokens, .. } => *tokens,
            ShownBlock::Gone => trimtab_core::Tokens::ZERO,
        };
        let mut carried = 0;
        for (number, (request, changes)) in track.requests.iter().zip(&views.changes).enumerate() {
            showing.advance_to(request.blocks, &[]);
            for change in changes {
                let is_result = acts_as(track, change.block) == Some(BlockKind::Result);
                found.only_results &= is_result && matches!(change.shown, ShownBlock::Text { .. });
                let now = tokens(change.block, showing.shown_block(change.block));
                found.brings_back |= tokens(change.block, &change.shown) > now;
                found.seen_once &= widen(change.block.0) < carried;
                let later = |need: &&ResultNeed| need.provider == change.block && need.request >= number;
                found.still_needed |= needs.iter().any(|need| later(&need));
            }
            showing.advance_to(request.blocks, changes);
            carried = request.blocks;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use trimtab_core::prices::find_model;

    use super::*;
    use crate::{
        recording::read,
        replay::{KnobRange, contenders},
    };

    fn recordings(folder: &Path, found: &mut Vec<Segment>) {
        let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                recordings(&path, found);
            } else if let Ok(recording) = read(&fs::read(&path).unwrap()) {
                found.extend(recording.segments);
            }
        }
    }

    #[test]
    fn nobody_is_cheaper_than_the_bound_named_for_it() {
        let mut segments = Vec::new();
        recordings(
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recordings")),
            &mut segments,
        );
        let contenders = contenders(KnobRange::Default);
        let models = ["claude-opus-5", "gpt-5", "deepseek-v4-pro"].map(|name| find_model(name).unwrap());
        let checks: Vec<BoundCheck> = segments
            .iter()
            .flat_map(|segment| check_bounds(segment, &contenders, &models, &ReplayTerms::default()))
            .collect();
        for check in &checks {
            assert_eq!(check.broken_bound(), None, "{check:?}");
            if check.policy == "oracle:block-paid" {
                assert!(check.dollars <= check.raw * (1.0 + 1e-9), "{check:?}");
            }
        }
        // Not only those that change nothing.
        let cheaper = |check: &&BoundCheck| check.dollars < check.raw * 0.999;
        let held = |of: fn(&BoundCheck) -> Option<f64>| {
            checks.iter().filter(cheaper).filter(|check| of(check).is_some()).count()
        };
        assert!(held(|check| check.floor) > 10, "{}", held(|check| check.floor));
        assert!(held(|check| check.block) > 3, "{}", held(|check| check.block));
    }
}
