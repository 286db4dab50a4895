//! Which lines of a result stand in an earlier one. Takes results in their order; gives, for one of them, the runs of its
//! lines that one earlier visible result shows too. Never keeps a text: a line is known by its hash, without its number.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use super::{contradictions::split_number, visible_names::hash_name};
use crate::{
    digest::{DigestText, Note, Piece, TextContext, is_error_line},
    facts::{Facts, Outcome, ResultSort},
    history::{BlockId, BlockKind, History, ReadableResult},
    json::{narrow, widen},
    notes::holds_note,
};

/// The shortest run that is worth a note (a study of recorded sessions).
const RUN_LINES: usize = 6;
const RUN_BYTES: usize = 150;
/// Lines that stay beside what an edit changed: they are what a next edit anchors on.
const SEAM: usize = 3;
/// Shorter lines stand everywhere: they go on a run and never begin one.
const SEED_BYTES: usize = 8;
/// How many of the places of a line are looked at, how many of the visible ones count, and how many results as sources:
/// the latest.
const LOOKED_AT: usize = 1024;
const PLACES: usize = 16;
const SOURCES: usize = 4;
/// Lines of a harness that may stand around a file which is printed without numbers.
const AROUND: usize = 5;

/// The lines of all results so far.
#[derive(Debug, Default)]
pub(super) struct SeenLines {
    blocks: Vec<Box<[SeenLine]>>,
    places: HashMap<u64, Vec<(u32, u32)>>,
    /// The first line of each text of a result, where a client wrapped several in JSON: lines are counted in each.
    starts: HashMap<u32, Vec<usize>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SeenLine {
    hash: u64,
    bytes: u32,
    number: Option<u32>,
    /// Whether it reports what a failed call failed of: that is said again.
    is_error: bool,
}

/// Lines that stand in the source too, from there on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SeenRun {
    lines: Range<usize>,
    from: usize,
}

impl SeenLines {
    /// Goes on with a history that begins as the one before.
    pub(super) fn extend(&mut self, history: &History, facts: &Facts) {
        for index in self.blocks.len()..history.blocks().len() {
            let id = BlockId(narrow(index));
            let fact = facts.row(id).filter(|fact| fact.acts_as == BlockKind::Result);
            let block = history.block(id).filter(|_| fact.is_some());
            let failed = fact.is_some_and(|fact| fact.outcome == Outcome::Failed);
            let text = block.map(|block| history.block_text(block)).unwrap_or_default();
            // What came shortened is no source, as it was none when it was shortened.
            let text = if holds_note(&text) { Cow::default() } else { text };
            // What a client wrapped in JSON has the lines of its texts.
            let said = ReadableResult::read_result(&text);
            if !said.leaf_starts.is_empty() {
                self.starts.insert(id.0, said.leaf_starts);
            }
            let text = DigestText::new(&said.text, TextContext::default());
            let lines: Box<[SeenLine]> = text.lines().map(|text| seen_line(text, failed)).collect();
            for (number, line) in lines.iter().enumerate().filter(|(_, line)| is_seed(**line)) {
                self.places.entry(line.hash).or_default().push((id.0, narrow(number)));
            }
            self.blocks.push(lines);
        }
    }

    /// Forgets all but the first blocks.
    pub(super) fn truncate(&mut self, known: usize) {
        self.starts.retain(|block, _| widen(*block) < known);
        for lines in self.blocks.drain(known.min(self.blocks.len())..) {
            for line in lines.iter().filter(|line| is_seed(**line)) {
                // Places stand in the order of their blocks.
                let Some(places) = self.places.get_mut(&line.hash) else { continue };
                places.truncate(places.partition_point(|(block, _)| widen(*block) < known));
                if places.is_empty() {
                    self.places.remove(&line.hash);
                }
            }
        }
    }

    /// Returns the visible result that shows most of a block's lines, and the pieces of the block without them; nothing where
    /// they are too few, or where a file is not there as a whole.
    pub(super) fn find_seen(
        &self,
        id: BlockId,
        shows: ResultSort,
        in_sight: impl Fn(BlockId) -> bool,
    ) -> Option<(BlockId, Vec<Piece>)> {
        let lines = self.blocks.get(widen(id.0))?;
        let mut best: Option<(BlockId, Vec<SeenRun>, usize)> = None;
        for source in self.find_sources(id, lines, in_sight) {
            let runs = self.find_runs(lines, source, shows);
            let covered: usize = runs.iter().map(|run| count_bytes(lines, run.lines.clone())).sum();
            if covered > best.as_ref().map_or(0, |(.., most)| *most) {
                best = Some((source, runs, covered));
            }
        }
        let (source, runs, _) = best?;
        let starts = self.starts.get(&source.0).map_or(&[][..], Vec::as_slice);
        Some((source, pieces_without(lines.len(), &runs, starts)))
    }

    /// Returns the earlier results that hold most of the lines, the latest first among equals.
    fn find_sources(
        &self,
        id: BlockId,
        lines: &[SeenLine],
        in_sight: impl Fn(BlockId) -> bool,
    ) -> Vec<BlockId> {
        let mut votes: BTreeMap<u32, usize> = BTreeMap::new();
        // Only visible results have a voice: what is hidden now may come as a note the next time.
        let mut seen: HashMap<u32, bool> = HashMap::new();
        for line in lines.iter().filter(|line| is_seed(**line)) {
            let mut voted = None;
            let places = self.earlier_places(line.hash, id).rev().take(LOOKED_AT);
            let places =
                places.filter(|(block, _)| *seen.entry(*block).or_insert_with(|| in_sight(BlockId(*block))));
            for (block, _) in places.take(PLACES) {
                if voted != Some(*block) {
                    *votes.entry(*block).or_default() += 1;
                    voted = Some(*block);
                }
            }
        }
        let mut ranked: Vec<(usize, BlockId)> = votes
            .into_iter()
            .map(|(block, votes)| (votes, BlockId(block)))
            .filter(|(votes, _)| *votes >= RUN_LINES / 2)
            .collect();
        ranked.sort_unstable_by(|one, other| other.cmp(one));
        ranked.into_iter().take(SOURCES).map(|(_, source)| source).collect()
    }

    fn earlier_places(&self, hash: u64, id: BlockId) -> std::slice::Iter<'_, (u32, u32)> {
        let places = self.places.get(&hash).map_or(&[][..], Vec::as_slice);
        places.get(..places.partition_point(|(block, _)| *block < id.0)).unwrap_or_default().iter()
    }

    /// Returns the runs of lines that a source shows, as far as what a block shows may be left out.
    fn find_runs(&self, lines: &[SeenLine], source: BlockId, shows: ResultSort) -> Vec<SeenRun> {
        let Some(there) = self.blocks.get(widen(source.0)) else { return Vec::new() };
        let mut runs = Vec::new();
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            let places = self.places.get(&line.hash).map_or(&[][..], Vec::as_slice);
            let first = places.partition_point(|(block, _)| *block < source.0);
            let in_source = places.get(first..).unwrap_or_default();
            let starts = in_source.iter().take_while(|(block, _)| *block == source.0).take(PLACES);
            let longest = starts
                .map(|(_, start)| (same_lines(lines, at, there, widen(*start)), widen(*start)))
                .max_by_key(|(length, _)| *length);
            match longest {
                Some((length, from)) if length >= RUN_LINES => {
                    // Short lines before the first seed belong to the run as well.
                    let back = (1..=at.min(from))
                        .take_while(|back| {
                            let free = runs.last().is_none_or(|run: &SeenRun| run.lines.end <= at - back);
                            let line = lines.get(at - back).filter(|line| !line.is_error);
                            free && line.map(|line| line.hash) == there.get(from - back).map(|line| line.hash)
                        })
                        .count();
                    runs.push(SeenRun { lines: at - back..at + length, from: from - back });
                    at += length;
                }
                Some(_) | None => at += 1,
            }
        }
        match shows {
            ResultSort::File | ResultSort::ShellFile => {
                runs.retain(|run| is_whole(lines, &run.lines) && is_in_place(lines, there, run));
            }
            ResultSort::Edit | ResultSort::Write => {
                runs.iter_mut().for_each(|run| leave_seams(run, lines.len()));
            }
            ResultSort::Search | ResultSort::Report | ResultSort::Other => {}
        }
        runs.retain(|run| run.lines.len() >= RUN_LINES && count_bytes(lines, run.lines.clone()) >= RUN_BYTES);
        runs
    }
}

fn seen_line(text: &str, failed: bool) -> SeenLine {
    let (number, content) =
        split_number(text).map_or((None, text), |(number, content)| (Some(number), content));
    let is_error = failed && is_error_line(text);
    SeenLine { hash: hash_name(content), bytes: narrow(content.len()), number, is_error }
}

fn is_seed(line: SeenLine) -> bool {
    widen(line.bytes) >= SEED_BYTES
}

fn same_lines(lines: &[SeenLine], at: usize, there: &[SeenLine], from: usize) -> usize {
    let here = lines.get(at..).unwrap_or_default().iter();
    here.zip(there.get(from..).unwrap_or_default())
        .take_while(|(one, other)| one.hash == other.hash && !one.is_error)
        .count()
}

fn count_bytes(lines: &[SeenLine], range: Range<usize>) -> usize {
    lines.get(range).unwrap_or_default().iter().map(|line| widen(line.bytes) + 1).sum()
}

/// Tells whether a run is all of a file that a result shows: what is around it are words of the harness.
fn is_whole(lines: &[SeenLine], run: &Range<usize>) -> bool {
    let (before, after) =
        (lines.get(..run.start).unwrap_or_default(), lines.get(run.end..).unwrap_or_default());
    if lines.get(run.start).is_some_and(|line| line.number.is_some()) {
        return before.iter().chain(after).all(|line| line.number.is_none());
    }
    before.len() <= AROUND && after.iter().all(|line| line.bytes == 0)
}

/// Tells whether the lines of a file have the numbers that they had: where they moved, the older view is no longer true of them.
fn is_in_place(lines: &[SeenLine], there: &[SeenLine], run: &SeenRun) -> bool {
    let number = |lines: &[SeenLine], index: usize| lines.get(index).and_then(|line| line.number);
    match (number(lines, run.lines.start), number(there, run.from)) {
        (Some(now), Some(then)) => now == then,
        (None, _) | (_, None) => true,
    }
}

/// Leaves the lines of a run that stand beside others.
fn leave_seams(run: &mut SeenRun, lines: usize) {
    let head = if run.lines.start > 0 { SEAM } else { 0 };
    let tail = if run.lines.end < lines { SEAM } else { 0 };
    let end = run.lines.end.saturating_sub(tail);
    let start = (run.lines.start + head).min(end);
    run.from += start - run.lines.start;
    run.lines = start..end;
}

/// Gives the pieces of a result without the runs. Lines of the source are counted from its texts' first lines.
fn pieces_without(lines: usize, runs: &[SeenRun], starts: &[usize]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    for run in runs {
        if at < run.lines.start {
            pieces.push(Piece::Lines(at..run.lines.start));
        }
        pieces.extend(run_notes(run, starts).map(Piece::Note));
        at = run.lines.end;
    }
    if at < lines {
        pieces.push(Piece::Lines(at..lines));
    }
    pieces
}

/// Says where the lines of a run stand: one note for each text of the source that shows some of them.
fn run_notes(run: &SeenRun, starts: &[usize]) -> impl Iterator<Item = Note> {
    let end = run.from + run.lines.len();
    let inner = starts.iter().copied().filter(|start| (run.from + 1..end).contains(start));
    let bounds: Vec<usize> = std::iter::once(run.from).chain(inner).chain(std::iter::once(end)).collect();
    let text_of = |line: usize| starts.iter().copied().take_while(|start| *start <= line).last().unwrap_or(0);
    let notes = bounds.windows(2).filter_map(|pair| match pair {
        [from, to] => {
            let first = run.lines.start + (from - run.from) + 1;
            Some(Note::Shown { first, last: first + (to - from) - 1, from: from - text_of(*from) + 1 })
        }
        _ => None,
    });
    notes.collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{facts::facts, wire::parse};

    fn numbered(lines: Range<usize>) -> String {
        lines.map(|number| format!("{number:>6}\u{2192}let value_{number} = compute({number});\n")).collect()
    }

    fn plain(lines: Range<usize>) -> String {
        lines.map(|number| format!("let value_{number} = compute({number});\n")).collect()
    }

    /// Reads a conversation with these results.
    fn read(results: &[&str]) -> (SeenLines, Vec<BlockId>) {
        let message = |role: &str, content: Value| json!({"role": role, "content": [content]});
        let mut messages = vec![json!({"role": "user", "content": "go"})];
        for (number, text) in results.iter().enumerate() {
            let id = format!("t{number}");
            messages.push(message(
                "assistant",
                json!({"type": "tool_use", "id": id, "name": "Tool", "input": {}}),
            ));
            let failed = text.contains("error: ");
            messages.push(message(
                "user",
                json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}),
            ));
        }
        let request = json!({"model": "m", "max_tokens": 1, "messages": messages});
        let history = parse(request.to_string().into_bytes()).unwrap();
        let mut seen = SeenLines::default();
        seen.extend(&history, &facts(&history));
        let result = |id: &BlockId| history.block(*id).unwrap().kind == BlockKind::Result;
        (seen, (0..narrow(history.blocks().len())).map(BlockId).filter(result).collect())
    }

    /// Gives the pieces of the second result, with the first visible, as words.
    #[track_caller]
    fn check(results: [&str; 2], shows: ResultSort, expected: &[&str]) {
        let (seen, ids) = read(&results);
        let found = seen.find_seen(ids[1], shows, |_| true);
        let said: Vec<String> = found
            .into_iter()
            .flat_map(|(source, pieces)| {
                assert_eq!(source, ids[0]);
                pieces
            })
            .map(|piece| match piece {
                Piece::Lines(lines) => format!("lines {lines:?}"),
                Piece::Note(Note::Shown { first, last, from }) => format!("{first}-{last} from {from}"),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(said, expected);
        assert_eq!(seen.find_seen(ids[1], shows, |_| false), None, "nothing is in sight");
    }

    #[test]
    fn a_part_of_a_file_that_was_read_whole_is_a_pointer_whatever_its_numbers() {
        check([&numbered(1..80), &numbered(20..40)], ResultSort::File, &["1-20 from 20"]);
        check([&plain(1..80), &numbered(20..40)], ResultSort::File, &["1-20 from 20"]);
    }

    #[test]
    fn a_file_of_which_a_line_is_new_stays_whole() {
        let changed = numbered(1..40).replace("compute(20)", "compute(21)");
        check([&numbered(1..80), &changed], ResultSort::File, &[]);
        check([&numbered(1..40), &numbered(1..41)], ResultSort::File, &[]);
    }

    #[test]
    fn a_file_whose_lines_moved_is_shown_anew() {
        let moved: String = (20..40)
            .map(|line| format!("{:>6}\u{2192}let value_{line} = compute({line});\n", line + 3))
            .collect();
        check([&numbered(1..80), &moved], ResultSort::File, &[]);
    }

    #[test]
    fn many_copies_that_are_hidden_do_not_stand_before_one_in_sight() {
        let text = plain(1..20);
        let (seen, ids) = read(&[text.as_str(); 40]);
        let found = seen.find_seen(ids[39], ResultSort::Other, |source| source == ids[0]);
        assert_eq!(found.map(|(source, _)| source), Some(ids[0]));
    }

    #[test]
    fn what_came_shortened_is_no_source() {
        let shortened = plain(1..80)
            + "[Bash `make` at step 1: 90 lines, 4,000 chars, 900 tokens; trimtab recall 0123456789ab]";
        check([&shortened, &plain(1..80)], ResultSort::Other, &[]);
        check([&plain(1..80), &plain(1..80)], ResultSort::Other, &["1-79 from 1"]);
    }

    #[test]
    fn what_a_failed_call_failed_of_is_said_again() {
        let failed = format!("{}error: it does not compile\n{}", plain(1..10), plain(10..20));
        check([&failed, &failed], ResultSort::Other, &["1-9 from 1", "lines 9..10", "11-20 from 11"]);
    }

    #[test]
    fn words_of_the_harness_around_a_file_stay() {
        let reminder = numbered(20..40) + "\n<system-reminder>\nBe careful.\n</system-reminder>\n";
        check([&numbered(1..80), &reminder], ResultSort::File, &["1-20 from 20", "lines 20..24"]);
        let header = format!("Exit code: 0\nOutput:\n{}", plain(20..40));
        check([&plain(1..80), &header], ResultSort::ShellFile, &["lines 0..2", "3-22 from 20"]);
    }

    #[test]
    fn of_other_results_only_long_runs_go() {
        let some = format!("first\n{}middle\n{}last\n", plain(3..8), plain(30..50));
        let expected = ["lines 0..7", "8-27 from 30", "lines 27..28"];
        check([&plain(1..80), &some], ResultSort::Other, &expected);
        check([&plain(1..80), &plain(3..8)], ResultSort::Other, &[]);
    }

    #[test]
    fn beside_what_an_edit_changed_three_lines_stay() {
        let echo = format!("{}let new = 1;\n{}", plain(10..30), plain(30..50));
        let expected = ["1-17 from 10", "lines 17..24", "25-41 from 33"];
        check([&plain(1..80), &echo], ResultSort::Edit, &expected);
    }
}
