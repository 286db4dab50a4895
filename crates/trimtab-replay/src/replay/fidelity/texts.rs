//! All texts of a segment, and where a text stands in them. Takes a track; gives for any text the blocks that hold it.
//! Never reads through the whole segment for one text where a word of it is rare: words and lines are indexed.

use std::collections::{HashMap, HashSet};

use trimtab_core::{
    BlockId, BlockKind,
    json::{narrow, widen},
};

use super::{
    input,
    normal::{NormalText, hash, words_in},
};
use crate::replay::Track;

/// The shortest line that is looked for as a line, in characters (the copied-line recall's own measure).
pub(super) const SHORTEST_LINE: usize = 16;

/// The texts of a segment, as they are compared.
#[derive(Debug, Default)]
pub(super) struct SegmentTexts {
    blocks: Vec<NormalText>,
    is_result: Vec<bool>,
    /// The blocks that hold a word, ascending, by the word's hash.
    words: HashMap<u64, Vec<u32>>,
    /// The blocks that hold a line of some length, ascending, by the line's hash.
    lines: HashMap<u64, Vec<u32>>,
}

/// Where a name stands.
pub(super) enum NamePlaces {
    /// In no block.
    Nowhere,
    /// In these results and in nothing else.
    OnlyIn(Vec<BlockId>),
    /// In something else than results, too.
    Elsewhere,
}

impl SegmentTexts {
    /// Reads every block of a segment.
    pub(super) fn read_segment(track: &Track<'_>) -> SegmentTexts {
        let mut texts = SegmentTexts::default();
        for (index, block) in track.history.blocks().iter().enumerate() {
            let normal = match block.kind {
                BlockKind::Call => NormalText::of_strings(&input::strings_of(track, BlockId(narrow(index)))),
                BlockKind::Definition
                | BlockKind::Text
                | BlockKind::Reasoning
                | BlockKind::Result
                | BlockKind::Media
                | BlockKind::Unknown => NormalText::from_text(&track.history.block_text(block)),
            };
            texts.push_text(normal, track, index);
        }
        texts
    }

    fn push_text(&mut self, normal: NormalText, track: &Track<'_>, index: usize) {
        let block = narrow(index);
        for word in normal.words() {
            self.words.entry(word).or_default().push(block);
        }
        let lines = normal.lines().filter(|line| is_long(line)).map(hash);
        for line in lines.collect::<HashSet<u64>>() {
            self.lines.entry(line).or_default().push(block);
        }
        let fact = track.facts.rows().get(index);
        self.is_result.push(fact.is_some_and(|fact| fact.acts_as == BlockKind::Result));
        self.blocks.push(normal);
    }

    /// Returns the text of a block.
    pub(super) fn text_of(&self, block: BlockId) -> Option<&NormalText> {
        self.blocks.get(widen(block.0))
    }

    /// Tells whether a block is a tool's result.
    pub(super) fn is_result(&self, block: BlockId) -> bool {
        self.is_result.get(widen(block.0)).copied().unwrap_or(false)
    }

    /// Returns the blocks before `end` that hold a text.
    pub(super) fn blocks_holding(&self, text: &str, end: usize) -> Vec<BlockId> {
        let candidates = self.candidate_blocks(&whole_words(text), end);
        candidates.filter(|block| self.text_of(*block).is_some_and(|normal| normal.contains(text))).collect()
    }

    /// Tells where a name is found before `end`.
    pub(super) fn places_of_name(&self, name: &str, end: usize) -> NamePlaces {
        let parts: Vec<u64> = words_in(name).map(|word| hash(word.text)).collect();
        let (results, others): (Vec<BlockId>, Vec<BlockId>) =
            self.candidate_blocks(&parts, end).partition(|block| self.is_result(*block));
        let has = |block: &BlockId| self.text_of(*block).is_some_and(|normal| normal.contains_name(name));
        if others.iter().any(has) {
            return NamePlaces::Elsewhere;
        }
        let results: Vec<BlockId> = results.into_iter().filter(has).collect();
        if results.is_empty() { NamePlaces::Nowhere } else { NamePlaces::OnlyIn(results) }
    }

    /// Returns the results before `end` that hold a line; none where anything else before `end` holds it too.
    pub(super) fn only_results_with_line(&self, line: &str, end: usize) -> Vec<BlockId> {
        let all = self.lines.get(&hash(line)).map(Vec::as_slice).unwrap_or_default();
        let count = all.partition_point(|block| widen(*block) < end);
        let found: Vec<BlockId> = all.iter().take(count).map(|block| BlockId(*block)).collect();
        if found.iter().all(|block| self.is_result(*block)) { found } else { Vec::new() }
    }

    /// Returns the blocks that hold the rarest of some words; all blocks where there is no word.
    fn candidate_blocks(&self, words: &[u64], end: usize) -> impl Iterator<Item = BlockId> + use<> {
        let postings = words.iter().map(|word| self.words.get(word).map(Vec::as_slice).unwrap_or_default());
        let rarest = postings.min_by_key(|blocks| blocks.len());
        let blocks: Vec<u32> = match rarest {
            Some(blocks) => blocks.iter().copied().take_while(|block| widen(*block) < end).collect(),
            None => (0..narrow(self.blocks.len().min(end))).collect(),
        };
        blocks.into_iter().map(BlockId)
    }
}

/// Tells whether a line is long enough to be looked for as a line.
pub(super) fn is_long(line: &str) -> bool {
    line.len() >= SHORTEST_LINE && line.chars().count() >= SHORTEST_LINE
}

/// Returns the hashes of the words that stand in a text from their first to their last letter, whatever stands around it.
pub(super) fn whole_words(text: &str) -> Vec<u64> {
    let inner = words_in(text).filter(|word| word.start > 0 && word.start + word.text.len() < text.len());
    inner.map(|word| hash(word.text)).collect()
}
