//! Lines that are no longer true. Takes a track; gives the lines of files that results show and that have changed since,
//! with the requests in which that is so and the blocks that show what stands there now. Then takes what is visible; gives
//! the tokens of old lines that are visible and that nothing visible contradicts. Never calls a line old that only may be:
//! where the conversation does not tell, a line is not stale, and one that merely moved is current.
//!
//! A newer view of a line is the call that changed it (an edit or a write shows what stands there now), or a later reading
//! of the same place. It counts where it is visible whole, or where a note in its place points at a visible text that holds
//! its lines. A shortened text with a note in it says itself that it is not the whole file.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::Range,
};

use trimtab_core::{
    BlockId, Tokens,
    files::{Access, AccessKind, Existence, LineNow},
    notes::{holds_note, is_foreign_placeholder},
};

use super::visible::{VisibleBlocks, arrival_request};
use crate::replay::{ShownBlock, Track};

/// Old lines of one result, with what shows the new ones.
#[derive(Debug)]
pub(super) struct StaleLines {
    /// The result that shows them.
    shown_in: BlockId,
    /// The requests at which they are no longer true.
    requests: Range<usize>,
    /// The blocks that show what stands there now, in order.
    newer: Vec<BlockId>,
    lines: Vec<(String, Tokens)>,
}

/// Finds the lines that go stale in a segment.
pub(super) fn find_stale(track: &Track<'_>) -> Vec<StaleLines> {
    let paths: Vec<&str> = track.files.paths().collect();
    let mut found = Vec::new();
    for path in paths {
        for (index, access) in track.files.accesses(path).iter().enumerate() {
            if access.kind == AccessKind::Read {
                found.extend(of_access(track, path, index, access));
            }
        }
    }
    found
}

/// A step after which lines may have another fate.
struct FileEvent<'a> {
    step: u32,
    /// The last block that showed it.
    block: BlockId,
    /// The accesses to the file in that step.
    accesses: Vec<&'a Access>,
}

/// A line that is stale, from a request on.
struct OpenStaleLine {
    from: usize,
    newer: Vec<BlockId>,
}

fn of_access(track: &Track<'_>, path: &str, index: usize, read: &Access) -> Vec<StaleLines> {
    let texts: HashMap<usize, &str> = read.shown_lines().collect();
    let events = later_events(track, path, index, read);
    if texts.is_empty() || events.is_empty() {
        return Vec::new();
    }
    let mut open: BTreeMap<usize, OpenStaleLine> = BTreeMap::new();
    let mut closed: BTreeMap<(usize, usize, Vec<BlockId>), Vec<usize>> = BTreeMap::new();
    for event in &events {
        let now = arrival_request(track, event.block);
        let fates = track.files.lines_now(path, index, event.step);
        let newly: HashSet<usize> =
            fates.iter().filter(|(_, fate)| *fate == LineNow::Stale).map(|(number, _)| *number).collect();
        let mended: Vec<usize> = open.keys().filter(|number| !newly.contains(number)).copied().collect();
        for number in mended {
            close_line(&mut open, &mut closed, number, now);
        }
        let views = new_views(track, &event.accesses, &fates);
        for number in newly {
            let mut newer = open.get(&number).map(|line| line.newer.clone()).unwrap_or_default();
            let known = newer.len();
            let is_new = !open.contains_key(&number);
            newer.extend(views.by_change.iter().filter(|_| is_new));
            newer.extend(views.by_reading.get(&number).into_iter().flatten());
            if is_new || newer.len() > known {
                close_line(&mut open, &mut closed, number, now);
                open.insert(number, OpenStaleLine { from: now, newer });
            }
        }
    }
    let left: Vec<usize> = open.keys().copied().collect();
    for number in left {
        close_line(&mut open, &mut closed, number, track.requests.len());
    }
    let stale = |((from, until, newer), numbers): ((usize, usize, Vec<BlockId>), Vec<usize>)| {
        let lines = numbers.iter().filter_map(|number| texts.get(number));
        let lines = lines.map(|line| (line.trim().to_owned(), track.counter.count_text(line))).collect();
        StaleLines { shown_in: read.block, requests: from..until, newer, lines }
    };
    closed.into_iter().map(stale).collect()
}

fn close_line(
    open: &mut BTreeMap<usize, OpenStaleLine>,
    closed: &mut BTreeMap<(usize, usize, Vec<BlockId>), Vec<usize>>,
    number: usize,
    until: usize,
) {
    let Some(line) = open.remove(&number).filter(|line| line.from < until) else { return };
    closed.entry((line.from, until, line.newer)).or_default().push(number);
}

/// Returns what happened to a file after one of its readings, step by step: what calls of one step did is only known together.
fn later_events<'a>(track: &'a Track<'_>, path: &str, index: usize, read: &Access) -> Vec<FileEvent<'a>> {
    let accesses = track.files.accesses(path).iter().skip(index + 1);
    let accesses = accesses.filter(|access| access.block > read.block);
    let mut steps: BTreeMap<u32, FileEvent<'a>> = BTreeMap::new();
    for access in accesses {
        let (step, block) = (access.step, access.block);
        let event = steps.entry(step).or_insert(FileEvent { step, block, accesses: Vec::new() });
        event.block = event.block.max(block);
        event.accesses.push(access);
    }
    if steps.is_empty() {
        return Vec::new();
    }
    for (step, block) in track.files.doubts().filter(|(_, block)| *block > read.block) {
        steps.entry(step).or_insert(FileEvent { step, block, accesses: Vec::new() });
    }
    steps.into_values().collect()
}

/// The blocks by which a step shows what now stands in the place of old lines.
#[derive(Default)]
struct NewViews {
    /// For the lines that went stale in it.
    by_change: Vec<BlockId>,
    /// For the lines whose place it shows.
    by_reading: HashMap<usize, Vec<BlockId>>,
}

fn new_views(track: &Track<'_>, accesses: &[&Access], fates: &[(usize, LineNow)]) -> NewViews {
    let mut views = NewViews::default();
    for access in accesses {
        if access.kind == AccessKind::Read {
            for number in seen_in(access, fates) {
                views.by_reading.entry(number).or_default().push(access.block);
            }
        } else {
            let call = track.facts.row(access.block).and_then(|fact| fact.partner);
            views.by_change.push(call.unwrap_or(access.block));
        }
    }
    views
}

/// Returns the old lines whose place a reading shows: the same number, or what stands between those neighbours that are left.
fn seen_in(read: &Access, fates: &[(usize, LineNow)]) -> Vec<usize> {
    let shown: BTreeSet<usize> = read.shown_lines().map(|(number, _)| number).collect();
    let end = read.state.line_count();
    let is_absent = read.state.existence() == Existence::Absent;
    let place = |(number, fate): &(usize, LineNow)| match fate {
        LineNow::Current => Some(*number),
        LineNow::Moved(to) => Some(*to),
        LineNow::Stale | LineNow::Unknown => None,
    };
    let carry = |left: &mut Option<usize>, line: &(usize, LineNow)| {
        *left = place(line).or(*left);
        Some(*left)
    };
    let before: Vec<Option<usize>> = fates.iter().scan(None, carry).collect();
    let mut behind: Vec<Option<usize>> = fates.iter().rev().scan(None, carry).collect();
    behind.reverse();
    let is_seen = |number: usize, before: Option<usize>, behind: Option<usize>| {
        let first = before.map_or(number, |before| before + 1);
        let last = behind.map_or(first, |behind| behind.saturating_sub(1));
        // Where nothing stands between the neighbours any more, or the file ends before, seeing what is left shows that.
        let gone = last < first && shown.contains(&last) && shown.contains(&first);
        let ended = end.is_some_and(|end| first > end && shown.contains(&end));
        let between = first <= last && shown.range(first..=last).next().is_some();
        is_absent || gone || ended || between || shown.contains(&number)
    };
    let lines = fates.iter().zip(before.into_iter().zip(behind));
    let stale = lines.filter(|((_, fate), _)| *fate == LineNow::Stale);
    stale
        .filter(|((number, _), (before, behind))| is_seen(*number, *before, *behind))
        .map(|((number, _), _)| *number)
        .collect()
}

/// Counts the tokens of old lines that are visible and that nothing visible contradicts, summed over requests.
pub(super) fn count_unmarked(all: &[StaleLines], visible: &VisibleBlocks<'_>) -> Tokens {
    let mut total = Tokens::ZERO;
    for stale in all {
        let blocks = std::iter::once(stale.shown_in).chain(stale.newer.iter().copied());
        let mut bounds: Vec<usize> = blocks
            .flat_map(|block| visible.view_spans(block).iter().map(|span| span.requests.start))
            .filter(|start| stale.requests.contains(start))
            .collect();
        bounds.extend([stale.requests.start, stale.requests.end]);
        bounds.sort_unstable();
        bounds.dedup();
        for stretch in bounds.windows(2) {
            let [from, until] = stretch else { continue };
            total += unmarked_at(stale, *from, visible).times(until - from);
        }
    }
    total
}

fn unmarked_at(stale: &StaleLines, request: usize, visible: &VisibleBlocks<'_>) -> Tokens {
    let tells =
        |block: &BlockId| visible.shows_all(*block, request) || visible.is_pointed_at(*block, request);
    if stale.newer.iter().any(tells) {
        return Tokens::ZERO;
    }
    match visible.shown_block(stale.shown_in, request) {
        ShownBlock::Gone => Tokens::ZERO,
        ShownBlock::Whole => stale.lines.iter().map(|(_, tokens)| *tokens).sum(),
        ShownBlock::Text { text, .. } if holds_note(text) || is_foreign_placeholder(text) => Tokens::ZERO,
        ShownBlock::Text { .. } => {
            let spans = visible.view_spans(stale.shown_in);
            let span = spans.iter().find(|span| span.requests.contains(&request));
            let Some(read) = span.and_then(|span| span.read()) else { return Tokens::ZERO };
            let lines: HashSet<&str> = read.normal.lines().collect();
            let seen = stale.lines.iter().filter(|(line, _)| lines.contains(line.as_str()));
            seen.map(|(_, tokens)| *tokens).sum()
        }
    }
}
