//! What a compaction keeps: every segment folded at the request in its middle, by the ledger alone and with a summary that is made of
//! the model's own words, against keeping the system prompt and the last four messages (seed 004) and against the compactions that
//! were recorded. Texts that the agent went on to use, and no longer saw, are counted over the rest of the session.

use std::collections::BTreeMap;

use serde_json::Value;
use trimtab_core::{
    BlockId, BlockKind, CountMemo, Counter, Facts, Format, History, Role, Tokens, facts,
    facts::{Voice, find_constraints},
    files, parse_as,
    summary::{FoldRange, build_ledger, fold_range, fold_request_bytes, folded_text},
    wire::request_of,
};
use trimtab_replay::{ProbeFigure, Segment, SegmentStart, probe_segment};

use crate::{checker, files::File, recorded::recorded};

/// What a folded message may count.
pub(crate) const BUDGET: Tokens = Tokens(8_000);
/// Requests below this are not worth folding.
const LEAST: Tokens = Tokens(8_000);
/// What is kept after the folded part, as a share of the request.
pub(crate) const TAIL: f64 = 0.25;
/// Faults shown in full, where `TRIMTAB_SHOWN` does not say.
const SHOWN: usize = 20;

/// How much is kept of one kind of thing.
#[derive(Default, Clone, Copy)]
struct Kept {
    of: usize,
    kept: usize,
}

impl Kept {
    fn add(&mut self, there: impl Iterator<Item = bool>) {
        for there in there {
            self.of += 1;
            self.kept += usize::from(there);
        }
    }

    fn share(self) -> String {
        if self.of == 0 { "-".to_owned() } else { format!("{:.3}", self.kept as f64 / self.of as f64) }
    }
}

#[derive(Default)]
pub(crate) struct Row {
    pub(crate) requests: usize,
    pub(crate) before: u64,
    pub(crate) after: u64,
    invalid: usize,
    limits: Kept,
    modified: Kept,
    errors: Kept,
    /// Of what was used or still open later, by the names of the figures.
    later: BTreeMap<&'static str, Kept>,
    /// Blocks that would have had to be fetched again, and files among them that would have had to be read again.
    fetched: u64,
    files: u64,
}

/// What is counted over the rest of a session.
const LATER: [&str; 4] = ["references", "strict references", "errors", "instructions"];

/// Prints the table; tells whether every folded request was valid and kept all limits and modified files.
pub(crate) fn table(files: &[File]) -> bool {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let (every, most) = (number("TRIMTAB_EVERY").unwrap_or(1), number("TRIMTAB_SHOWN").unwrap_or(SHOWN));
    let mut rows: BTreeMap<&'static str, Row> = BTreeMap::new();
    let mut shown = 0;
    let recordings = files.iter().filter_map(|file| Some((&file.path, file.recording.as_ref().ok()?)));
    let recordings: Vec<_> = recordings.collect();
    println!("\nCompact: sessions folded at the request in their middle, and what others keep\n");
    let segments =
        recordings.iter().flat_map(|(path, recording)| recording.segments.iter().map(move |one| (path, one)));
    for (path, segment) in segments.step_by(every) {
        for fault in fold(segment, &mut rows) {
            shown += 1;
            if shown <= most {
                println!("{}: {fault}", path.display());
            }
        }
    }
    for (_, recording) in &recordings {
        for pair in recording.segments.windows(2) {
            if let [before, after] = pair
                && after.start == SegmentStart::Compaction
            {
                recorded(before, after, &mut rows);
            }
        }
    }
    println!(
        "{:28} {:>8} {:>8} {:>7} {:>7} | {:>6} {:>6} {:>8} {:>6} {:>5} | {:>6} {:>6} {:>6} {:>6} {:>7} {:>5}",
        "kept by",
        "requests",
        "k before",
        "k after",
        "invalid",
        "limits",
        "of",
        "modified",
        "errors",
        "of",
        "refs",
        "strict",
        "errors",
        "instr",
        "fetches",
        "files"
    );
    for (name, row) in &rows {
        let count = row.requests.max(1) as f64 * 1000.0;
        let later = LATER.map(|name| row.later.get(name).copied().unwrap_or_default().share());
        let [references, strict, errors, instructions] = later;
        let mean = |count: u64| format!("{:.2}", count as f64 / row.requests.max(1) as f64);
        println!(
            "{:28} {:>8} {:>8.1} {:>7.1} {:>7} | {:>6} {:>6} {:>8} {:>6} {:>5} | {:>6} {:>6} {:>6} {:>6} {:>7} {:>5}",
            name.get(2..).unwrap_or(name),
            row.requests,
            row.before as f64 / count,
            row.after as f64 / count,
            row.invalid,
            row.limits.share(),
            row.limits.of,
            row.modified.share(),
            row.errors.share(),
            row.errors.of,
            references,
            strict,
            errors,
            instructions,
            mean(row.fetched),
            mean(row.files)
        );
    }
    println!(
        "\nleft: what must still be there right after; right: what was used or still held over the rest of the session, and how many \
         blocks per session would have been fetched again, and files read again; the lower half at the compactions that were recorded"
    );
    let ours = rows.get("a ledger alone");
    ours.is_none_or(|row| {
        row.invalid == 0 && row.limits.kept == row.limits.of && row.modified.kept == row.modified.of
    })
}

/// Folds a session at the request in its middle, and says what is wrong with that.
fn fold(segment: &Segment, rows: &mut BTreeMap<&'static str, Row>) -> Vec<String> {
    let format = segment.history.format();
    let mut probe = probe_segment(segment);
    let requests = probe.message_counts();
    let from = requests.len() / 2;
    let Some(messages) = requests.get(from).copied() else { return Vec::new() };
    let Ok(history) = parse_as(request_of(&segment.history, messages), format) else {
        return vec!["unreadable".to_owned()];
    };
    let counter = Counter::for_model(&history.model().unwrap_or_default());
    let counts = counter.count_request(&history, &mut CountMemo::default());
    let before = counts.total();
    let facts = facts(&history);
    let range = fold_range(&history, &facts, &counts, before.scale(TAIL));
    let Some(range) = range.filter(|_| before >= LEAST) else { return Vec::new() };
    let range = range.keeping_long_words(&facts, counts.blocks(), BUDGET);
    probe.find_uses();
    let files = files(&history, &facts);
    let errors: Vec<String> = build_ledger(&history, &facts, &files, &range)
        .errors
        .into_iter()
        .filter_map(|error| error.lines.first().cloned())
        .collect();
    let mut wanted = Wanted::of(&history, &facts, errors);
    // What was modified later is in the calls that stay, in whatever spelling.
    // The whole request may tell the session's root where its beginning does not: then paths are seen from there.
    let modified = modified(&request_of(&history, range.messages()), format);
    wanted.modified = modified.iter().map(|path| facts.file_key(path).into_owned()).collect();
    let (first, dropped) = last_four(&history);
    let folded: Vec<BlockId> = range.folded_blocks().collect();
    let either: Vec<BlockId> = {
        let mut both = [dropped.clone(), folded.clone()].concat();
        both.sort_unstable();
        both.dedup();
        both
    };
    let nothing = probe.figures_without(from, &either, None);
    let mut faults = Vec::new();
    let prose = in_its_own_words(&history, &range);
    for (name, summary) in [("a ledger alone", None), ("b ledger and own words", Some(prose.as_str()))] {
        let text = folded_text(&history, &facts, &files, &range, summary, BUDGET, counter).text;
        let output = fold_request_bytes(&history, &range, &text);
        let Ok(after) = parse_as(output.clone(), format) else {
            return vec!["the output is unreadable".to_owned()];
        };
        let row = rows.entry(name).or_default();
        let broken = self::faults(format, history.bytes(), &output);
        row.invalid += usize::from(!broken.is_empty());
        row.requests += 1;
        row.before += before.0;
        row.after += counter.count_request(&after, &mut CountMemo::default()).total().0;
        faults.extend(broken);
        faults.extend(wanted.judge(&texts(&after, 0), row));
        row.later(&nothing, &probe.figures_without(from, &folded, Some(&text)));
        if summary.is_none() {
            let missed = probe.missed_without(from, &folded, Some(&text)).into_iter();
            let lasting = missed.filter(|(figure, ..)| matches!(*figure, "errors" | "instructions"));
            faults.extend(lasting.map(|(figure, entry, what)| {
                format!("{figure}, message {entry}: {}", what.chars().take(120).collect::<String>())
            }));
        }
    }
    let row = rows.entry("c system and last 4 messages").or_default();
    row.requests += 1;
    row.before += before.0;
    row.after += tail_tokens(&history, counter, first);
    let _ = wanted.judge(&texts(&history, first), row);
    row.later(&nothing, &probe.figures_without(from, &dropped, None));
    faults
}

/// Seed 004 keeps the system prompt and the last four messages; the words of a model's summary are not known here. Gives the first
/// message that stays, and the blocks that go.
pub(crate) fn last_four(history: &History) -> (usize, Vec<BlockId>) {
    let first = history.messages().len().saturating_sub(4);
    (first, blocks_before(history, first))
}

/// Returns the blocks of the first messages.
pub(crate) fn blocks_before(history: &History, messages: usize) -> Vec<BlockId> {
    let head = history.entries().len() - history.messages().len();
    let goes = |entry: u32| (head..head + messages).contains(&usize::try_from(entry).unwrap_or_default());
    let blocks = (0..).map(BlockId).zip(history.blocks());
    blocks.filter(|(_, block)| goes(block.entry.0)).map(|(id, _)| id).collect()
}

/// Stands for a model's summary: the first line of everything the model said in the range, the latest as far as there is room.
fn in_its_own_words(history: &History, range: &FoldRange) -> String {
    let said = range.folded_blocks().filter_map(|id| {
        let block = history.block(id)?;
        let speaks = history.entry_of(block).is_some_and(|entry| entry.role == Role::Assistant);
        let text = (speaks && block.kind == BlockKind::Text).then(|| history.block_text(block))?;
        let line = text.lines().find(|line| !line.trim().is_empty())?;
        Some(line.chars().take(200).collect::<String>())
    });
    let all: Vec<String> = said.collect();
    let from = all.len().saturating_sub(60);
    all.get(from..).unwrap_or_default().join("\n")
}

impl Row {
    /// Counts what is kept of what hiding everything would take away.
    pub(crate) fn later(&mut self, nothing: &[ProbeFigure], kept: &[ProbeFigure]) {
        for name in LATER {
            let find = |figures: &[ProbeFigure]| figures.iter().find(|(known, ..)| *known == name).copied();
            let (Some((_, least, _)), Some((_, held, _))) = (find(nothing), find(kept)) else { continue };
            let Some((_, _, of)) = find(nothing) else { continue };
            let share = self.later.entry(name).or_default();
            share.of += usize::try_from(of - least).unwrap_or_default();
            share.kept += usize::try_from(held.saturating_sub(least)).unwrap_or_default();
        }
        let count = |name| kept.iter().find(|(known, ..)| *known == name).map_or(0, |(_, count, _)| *count);
        self.fetched += count("refetches");
        self.files += count("files read again");
    }
}

fn faults(format: Format, input: &[u8], output: &[u8]) -> Vec<String> {
    match (serde_json::from_slice::<Value>(input), serde_json::from_slice::<Value>(output)) {
        (Ok(input), Ok(output)) => checker::new_faults(format.name(), &input, &output),
        _ => vec!["no JSON".to_owned()],
    }
}

/// What must still be there.
pub(crate) struct Wanted {
    limits: Vec<String>,
    pub(crate) modified: Vec<String>,
    errors: Vec<String>,
}

impl Wanted {
    pub(crate) fn of(history: &History, facts: &Facts, errors: Vec<String>) -> Wanted {
        let persons = history.blocks().iter().zip(facts.rows()).filter(|(_, row)| {
            row.voice == Some(Voice::Person) && row.role == Role::User && row.acts_as == BlockKind::Text
        });
        let limits = persons.flat_map(|(block, _)| {
            let text = history.block_text(block).into_owned();
            find_constraints(&text)
                .into_iter()
                .filter_map(|range| text.get(range).map(str::to_owned))
                .collect::<Vec<_>>()
        });
        Wanted { limits: limits.collect(), modified: Vec::new(), errors }
    }

    pub(crate) fn judge(&self, told: &str, row: &mut Row) -> Vec<String> {
        row.limits.add(self.limits.iter().map(|limit| told.contains(limit.trim_end())));
        row.modified.add(self.modified.iter().map(|path| names(told, path)));
        row.errors.add(self.errors.iter().map(|line| told.contains(line.as_str())));
        let lost = self.limits.iter().filter(|limit| !told.contains(limit.trim_end()));
        let unnamed = self.modified.iter().filter(|path| !names(told, path));
        let unsaid = self.errors.iter().filter(|line| !told.contains(line.as_str()));
        let begin = |text: &String| text.chars().take(80).collect::<String>();
        lost.map(|limit| format!("lost: {}", begin(limit)))
            .chain(unnamed.map(|path| format!("not named: {path}")))
            .chain(unsaid.map(|line| format!("open error not told: {}", begin(line))))
            .collect()
    }
}

pub(crate) fn modified(request: &[u8], format: Format) -> Vec<String> {
    let Ok(history) = parse_as(request.to_vec(), format) else { return Vec::new() };
    facts(&history).modified_files().into_iter().map(str::to_owned).collect()
}

/// A file is named by its path from the session's root, or by the path with which a call spells it.
fn names(told: &str, path: &str) -> bool {
    told.contains(path) || told.contains(&path.replace('/', "\\\\"))
}

/// Returns all that is said from a message on, with system.
pub(crate) fn texts(history: &History, first: usize) -> String {
    let head = history.entries().len() - history.messages().len();
    let mut all = String::new();
    for (index, entry) in history.entries().iter().enumerate() {
        if index >= head + first || (index < head && entry.role == Role::System) {
            history
                .blocks_of(entry)
                .iter()
                .for_each(|block| all = std::mem::take(&mut all) + &history.block_text(block) + "\n");
        }
    }
    all
}

pub(crate) fn tail_tokens(history: &History, counter: Counter, first: usize) -> u64 {
    let counts = counter.count_request(history, &mut CountMemo::default());
    let messages = history.messages();
    let behind: usize = messages.iter().skip(first).map(|entry| history.blocks_of(entry).len()).sum();
    let all = counts.blocks().len();
    let said: usize = messages.iter().map(|entry| history.blocks_of(entry).len()).sum();
    let head: Tokens = counts.blocks().iter().take(all - said).copied().sum();
    let tail: Tokens = counts.blocks().iter().skip(all - behind).copied().sum();
    (head + tail + counts.frame()).0
}
