//! What is known about a block that says how much it will be needed: [`Features`]. `make_room` looks their weights up in the policy's
//! table; [`BlockFeatures`]
//! gives them to the instrument, which prints them with what was really needed later: from that `scripts/fit-needs` makes the table.

use super::super::PlanIndex;
use crate::{
    count::Counts,
    facts::{ContentKind, Facts, Outcome, ResultSort, Subject, SubjectLines, ToolKind},
    history::{BlockId, BlockKind, Blocks, History},
    units::Tokens,
    verdict::Decision,
};

/// What is known about a block at one moment: pairs of a factor's name and its level.
pub(crate) type Features = [(&'static str, &'static str); 7];

/// A block at one moment.
#[derive(Clone, Copy)]
pub(crate) struct BlockMoment<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) index: &'a PlanIndex,
    /// The first block that has not come yet.
    pub(crate) end: BlockId,
    /// What is decided so far, where blocks that are gone are to say nothing: whoever fits what is left does not know them.
    pub(crate) decisions: Option<&'a Blocks<Decision>>,
}

impl BlockMoment<'_> {
    /// Describes a result or a call; nothing for other blocks. `seen_at` is the latest block that showed the same.
    pub(crate) fn features(&self, id: BlockId, seen_at: BlockId, tokens: Tokens) -> Option<Features> {
        let fact = self.facts.row(id)?;
        let result = match fact.acts_as {
            BlockKind::Result => id,
            BlockKind::Call => fact.partner?,
            BlockKind::Text
            | BlockKind::Reasoning
            | BlockKind::Media
            | BlockKind::Definition
            | BlockKind::Unknown => return None,
        };
        let is_call = fact.acts_as == BlockKind::Call;
        let kind = self.kind(result, is_call)?;
        let is_known = |id: BlockId| self.decisions.is_none_or(|decisions| !decisions[id].verdict.is_gone());
        let changes = self.index.changes_around(result, self.end, is_known);
        let now = self.index.results_before(self.end);
        let since = |results: u32| now.saturating_sub(results);
        let shown = self.index.row(result.max(seen_at)).results;
        let last_change = changes.last_after;
        let age = since(last_change.map_or(shown, |change| change.max(shown)));
        let edited = match (changes.before, last_change) {
            (false, None) => "no",
            (true, None) => "before",
            (false, Some(_)) => "since",
            (true, Some(_)) => "both",
        };
        let turn = self.facts.row(BlockId(self.end.0.saturating_sub(1))).map_or(0, |last| last.turn);
        let is_superseded = fact.superseded_by.is_some_and(|(by, _)| by < self.end);
        let [size, age_level, edited_at, turned, superseded] = factors_of(kind);
        Some([
            ("kind", kind),
            (size, size_level(tokens)),
            (age_level, age_name(age)),
            (edited_at, edited),
            (turned, if turn > fact.turn { "yes" } else { "no" }),
            (superseded, if is_superseded { "yes" } else { "no" }),
            ("text", self.text_sort(kind, result)),
        ])
    }

    /// Tells what sort of text a view of a file shows: documents and data are edited less than code.
    fn text_sort(&self, kind: &str, result: BlockId) -> &'static str {
        let is_view = matches!(kind, "file" | "file-part" | "shell-file");
        match self.facts.row(result).filter(|_| is_view).map(|fact| fact.content) {
            None => "any",
            Some(ContentKind::Code) => "code",
            Some(ContentKind::Prose) => "prose",
            Some(_) => "other",
        }
    }

    fn kind(&self, result: BlockId, is_call: bool) -> Option<&'static str> {
        let fact = self.facts.row(result)?;
        if is_call {
            return Some(match fact.tool() {
                Some(ToolKind::Edit) => "edit-input",
                Some(ToolKind::Write) => "write-input",
                _ => "other-input",
            });
        }
        let shows = self.index.row(result).shows?;
        if fact.outcome == Outcome::Failed {
            return Some("failed");
        }
        let whole = matches!(fact.subject(), Subject::File { lines: SubjectLines::All, .. });
        Some(match shows {
            ResultSort::File if whole => "file",
            ResultSort::File => "file-part",
            ResultSort::ShellFile => "shell-file",
            ResultSort::Search => "search",
            ResultSort::Edit => "edit",
            ResultSort::Write => "write",
            ResultSort::Report => "report",
            ResultSort::Other => match fact.tool() {
                Some(ToolKind::List) => "list",
                Some(ToolKind::Test | ToolKind::Build | ToolKind::Run) => "run",
                _ => "other",
            },
        })
    }
}

/// Returns the names of the factors for a kind: files, what was written, and everything else each have their own.
fn factors_of(kind: &str) -> [&'static str; 5] {
    match kind {
        "file" | "file-part" | "shell-file" => {
            ["file-size", "file-age", "file-edited", "file-turn", "file-superseded"]
        }
        "edit-input" | "write-input" => {
            ["input-size", "input-age", "input-edited", "input-turn", "input-superseded"]
        }
        _ => ["size", "age", "edited", "turn", "superseded"],
    }
}

fn size_level(tokens: Tokens) -> &'static str {
    match tokens.0 {
        0..300 => "under 300",
        300..800 => "under 800",
        800..2000 => "under 2000",
        2000..5000 => "under 5000",
        5000..12_000 => "under 12000",
        _ => "more",
    }
}

fn age_name(results: u32) -> &'static str {
    match results {
        0..=1 => "0",
        2..=3 => "2",
        4..=6 => "4",
        7..=11 => "7",
        12..=19 => "12",
        20..=34 => "20",
        35..=59 => "35",
        60..=99 => "60",
        100..=149 => "100",
        150..=219 => "150",
        220..=319 => "220",
        _ => "320",
    }
}

/// Describes the blocks of a whole conversation in the words of `needs.tsv`, for whoever measures how much they were needed.
#[derive(Debug)]
pub struct BlockFeatures<'a> {
    facts: &'a Facts,
    index: PlanIndex,
}

impl<'a> BlockFeatures<'a> {
    /// Looks a conversation's blocks over.
    pub fn new(history: &History, facts: &'a Facts, counts: &Counts) -> BlockFeatures<'a> {
        let mut index = PlanIndex::default();
        index.extend(history, facts, counts, 0);
        BlockFeatures { facts, index }
    }

    /// Describes a result or a call as it is known when `end` is the first block that has not come yet: factors and levels as one
    /// line of a table; nothing for other blocks.
    pub fn of(&self, block: BlockId, end: BlockId, tokens: Tokens) -> Option<String> {
        let features = BlockMoment { facts: self.facts, index: &self.index, end, decisions: None }
            .features(block, block, tokens)?;
        let pairs: Vec<String> = features.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
        Some(pairs.join("\t"))
    }
}
