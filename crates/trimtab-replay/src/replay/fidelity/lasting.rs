//! What must stay visible for many requests. Takes texts with the requests that need them; gives pairs of text and request
//! that were and were not served. Never looks at a request by itself: what changes nothing is counted as a stretch.

use std::ops::Range;

use trimtab_core::{BlockId, json::widen};

use super::{
    HiddenMiss, NeededShare, clip_text, normal::NormalText, texts::SegmentTexts, texts::whole_words,
    visible::VisibleBlocks,
};

/// Texts that must be visible together, in one block, over some requests.
#[derive(Debug)]
pub(super) struct LastingTexts {
    /// The block that said them.
    said_in: BlockId,
    texts: Vec<String>,
    /// The requests that need them; at least one.
    requests: Range<usize>,
    /// All blocks that hold them, in order.
    holders: Vec<BlockId>,
}

impl LastingTexts {
    /// Notes texts of a block; none where no request needs them or they are empty.
    pub(super) fn from_block(
        said_in: BlockId,
        wanted: Vec<String>,
        requests: Range<usize>,
        texts: &SegmentTexts,
    ) -> Option<LastingTexts> {
        let longest = wanted.iter().max_by_key(|text| text.len()).filter(|text| !text.trim().is_empty())?;
        if requests.is_empty() {
            return None;
        }
        let holds = |block: &BlockId| texts.text_of(*block).is_some_and(|normal| holds_all(normal, &wanted));
        let mut holders: Vec<BlockId> =
            texts.blocks_holding(longest, usize::MAX).into_iter().filter(holds).collect();
        if let Err(at) = holders.binary_search(&said_in) {
            holders.insert(at, said_in);
        }
        Some(LastingTexts { said_in, texts: wanted, requests, holders })
    }
}

fn holds_all(normal: &NormalText, texts: &[String]) -> bool {
    texts.iter().all(|text| normal.contains(text))
}

/// Counts the pairs of text and request in which the text was visible.
pub(super) fn judge_lasting(
    all: &[LastingTexts],
    metric: &'static str,
    visible: &VisibleBlocks<'_>,
    misses: &mut Vec<HiddenMiss>,
) -> NeededShare {
    let mut share = NeededShare::default();
    for lasting in all {
        let needed = lasting.requests.len();
        share.of += to_count(needed);
        if visible.view_spans(lasting.said_in).is_empty() {
            share.held += to_count(needed);
            continue;
        }
        let gaps = unmet_requests(lasting, visible);
        let missing: usize = gaps.iter().map(ExactSizeIterator::len).sum();
        share.held += to_count(needed - missing);
        misses.extend(gaps.first().and_then(|gap| miss_at(lasting, gap.start, metric, visible)));
    }
    share
}

fn miss_at(
    lasting: &LastingTexts,
    request: usize,
    metric: &'static str,
    visible: &VisibleBlocks<'_>,
) -> Option<HiddenMiss> {
    let first = lasting.texts.first()?;
    let used_in = lasting.said_in;
    let carried = visible.carried_blocks(request);
    let before = lasting.holders.iter().rev().find(|block| widen(block.0) < carried);
    let hidden = before.copied().unwrap_or(used_in);
    let recoverable = visible.is_recoverable(hidden, request);
    Some(HiddenMiss { metric, request, used_in, hidden, what: clip_text(first), recoverable })
}

/// Returns the requests that need the texts and do not show them.
fn unmet_requests(lasting: &LastingTexts, visible: &VisibleBlocks<'_>) -> Vec<Range<usize>> {
    let mut shown: Vec<Range<usize>> =
        lasting.holders.iter().flat_map(|block| visible.whole_spans(*block)).collect();
    let words: Vec<u64> = lasting.texts.iter().flat_map(|text| whole_words(text)).collect();
    for span in visible.all_spells() {
        let meets = span.requests.start < lasting.requests.end && lasting.requests.start < span.requests.end;
        let Some(read) = span.read().filter(|_| meets) else { continue };
        if words.iter().all(|word| read.words.contains(word)) && holds_all(&read.normal, &lasting.texts) {
            shown.push(span.requests.clone());
        }
    }
    shown.sort_by_key(|span| span.start);
    let mut gaps = Vec::new();
    let mut from = lasting.requests.start;
    for span in shown {
        let end = span.start.min(lasting.requests.end);
        if end > from {
            gaps.push(from..end);
        }
        from = from.max(span.end);
    }
    if from < lasting.requests.end {
        gaps.push(from..lasting.requests.end);
    }
    gaps
}

fn to_count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
