//! What the compactions in recordings kept, by the same measure: the conversation before one and what was said after it are put
//! together again, and what the agent then used is looked for in what its own compaction showed, in the ledger made at the same
//! place, and in the last four messages.

use std::collections::BTreeMap;

use serde_json::Value;
use trimtab_core::{
    BlockId, CountMemo, Counter, Format, History, Point, Tokens, facts, files, parse_as,
    summary::{
        FoldRange, FoldSizes, build_ledger, fold_range, fold_request_bytes, fold_sizes, folded_text,
        legal_cuts,
    },
    wire::request_of,
};
use trimtab_replay::{Segment, SegmentStart, probe_segment};

use crate::compact::{BUDGET, Row, TAIL, Wanted, blocks_before, last_four, modified, tail_tokens, texts};

/// Counts what was kept across one compaction.
pub(crate) fn recorded(before: &Segment, after: &Segment, rows: &mut BTreeMap<&'static str, Row>) {
    let history = &before.history;
    let Some(begun) = begun(after) else { return };
    let counter = Counter::for_model(&history.model().unwrap_or_default());
    let counts = counter.count_request(history, &mut CountMemo::default());
    let (facts, total) = (facts(history), counts.total());
    let files = files(history, &facts);
    let cuts = legal_cuts(history, &facts);
    let whole = cuts.last().and_then(|cut| FoldRange::new(history, &facts, *cut));
    let errors = whole.map(|range| build_ledger(history, &facts, &files, &range).errors).unwrap_or_default();
    let errors = errors.into_iter().filter_map(|error| error.lines.first().cloned()).collect();
    let mut wanted = Wanted::of(history, &facts, errors);
    let modified = modified(history.bytes(), history.format());
    wanted.modified = modified.iter().map(|path| facts.file_key(path).into_owned()).collect();
    let joined = joined(before, after, &begun);
    let mut probe = joined.as_ref().map(probe_segment);
    if let Some(probe) = &mut probe {
        probe.find_uses();
    }
    let from = before.points.len();
    let said = blocks_before(history, history.messages().len());
    let nothing = probe.as_ref().map(|probe| probe.figures_without(from, &said, None));
    let mut note = |name, after: u64, told: &str, gone: &[BlockId], text: Option<&str>| {
        let row: &mut Row = rows.entry(name).or_default();
        row.requests += 1;
        row.before += total.0;
        row.after += after;
        let _ = wanted.judge(told, row);
        if let (Some(probe), Some(nothing)) = (&probe, &nothing) {
            row.later(nothing, &probe.figures_without(from, gone, text));
        }
    };
    let told = texts(&begun, 0);
    let size = counter.count_request(&begun, &mut CountMemo::default()).total().0;
    note("d recorded compactions", size, &told, &said, Some(&told));
    // In as many tokens as the agent's own compaction left, and in those that a fold takes where it may.
    let same = fold_sizes(history, &facts, &counts, Some(Tokens(size)));
    let own = FoldSizes { room: BUDGET, tail: total.scale(TAIL) };
    for (name, sizes) in [("e ledger, as many tokens", same), ("f ledger, as large as above", own)] {
        let Some(range) = fold_range(history, &facts, &counts, sizes.tail) else { continue };
        let range = range.keeping_long_words(&facts, counts.blocks(), sizes.room);
        let text = folded_text(history, &facts, &files, &range, None, sizes.room, counter).text;
        let Ok(folded) = parse_as(fold_request_bytes(history, &range, &text), history.format()) else {
            continue;
        };
        let size = counter.count_request(&folded, &mut CountMemo::default()).total().0;
        let gone: Vec<BlockId> = range.folded_blocks().collect();
        note(name, size, &texts(&folded, 0), &gone, Some(&text));
    }
    let (first, dropped) = last_four(history);
    let size = tail_tokens(history, counter, first);
    note("g last 4 messages", size, &texts(history, first), &dropped, None);
}

/// Returns the first request after a compaction.
fn begun(after: &Segment) -> Option<History> {
    let first = after.points.first().map_or(after.history.messages().len(), |point| point.messages);
    parse_as(request_of(&after.history, first), after.history.format()).ok()
}

/// Puts what was said before a compaction and what was said after it into one segment, as if nothing had been compacted.
fn joined(before: &Segment, after: &Segment, begun: &History) -> Option<Segment> {
    let format = before.history.format();
    if format != after.history.format() {
        return None;
    }
    let list = match format {
        Format::Anthropic | Format::Chat => "messages",
        Format::Responses => "input",
        Format::Gemini => "contents",
    };
    let read = |history: &History| serde_json::from_slice::<Value>(history.bytes()).ok();
    let (mut whole, later, begun) = (read(&before.history)?, read(&after.history)?, read(begun)?);
    let shown = begun.get(list)?.as_array()?.len();
    let rest = later.get(list)?.as_array()?.get(shown..)?.to_vec();
    whole.get_mut(list)?.as_array_mut()?.extend(rest);
    let history = parse_as(whole.to_string().into_bytes(), format).ok()?;
    let shift = history.messages().len().checked_sub(after.history.messages().len());
    let points = after.points.iter().filter_map(|point| {
        let messages = match shift {
            Some(shift) => point.messages + shift,
            None => point.messages.checked_sub(after.history.messages().len() - history.messages().len())?,
        };
        Some(Point { messages, ..point.clone() })
    });
    let points = before.points.iter().cloned().chain(points).collect();
    Some(Segment { name: None, start: SegmentStart::Session, history, points })
}
