//! What fills the window of one conversation. Takes a segment of a recording; gives tokens by role, tool, file and priority
//! class, what was read again, what is stale, and what it cost. Never prints.

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use serde::Serialize;
use trimtab_core::{
    BlockId, BlockKind, History, Role, Tokens,
    count::{CountMemo, Counter, Counts, Exactness},
    facts::{Fact, Facts, Priority, Subject, SubjectLines, ToolKind, facts},
    files::{AccessKind, FileTimeline, LineNow, files},
    prices::{Model, UnknownModel, find_model_in},
    report::{FilePart, FileTracker},
    usage::{Point, Usage},
};

use crate::{
    head::{HeadCost, head_cost},
    recording::{Recording, Segment},
};

/// How many of the latest steps count as recent in the priority classes.
pub const RECENT_STEPS: u32 = 10;

/// How many of the biggest blocks are kept.
const BIGGEST: usize = 8;

/// From this share of tokens in calls and results on a conversation is tool-heavy.
const TOOL_HEAVY: f64 = 0.5;

/// A conversation that could not be inspected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The recording has fewer segments.
    #[error("{name}: has no segment {number}: there are {segments}")]
    NoSegment {
        /// The recording's name.
        name: String,
        /// The segment that was asked for, counted from 1.
        number: usize,
        /// How many there are.
        segments: usize,
    },
    /// The model that was asked for is not in the table.
    #[error(transparent)]
    Model(#[from] UnknownModel),
}

/// One conversation's figures.
#[derive(Debug, Clone, Serialize)]
pub struct Inspection {
    /// Its name.
    pub name: String,
    /// The agent whose recording it is; `request` for a plain request.
    pub agent: &'static str,
    /// Number of the segment in its file, counted from 1.
    pub segment: usize,
    /// Why the segment begins.
    pub start: &'static str,
    /// How many segments there are.
    pub segments: usize,
    /// The model that was asked for, or that the conversation names.
    pub model: Option<String>,
    /// The window of the model, where it is known.
    pub window: Option<Tokens>,
    /// Whether counts are exact.
    pub exact: bool,
    /// What an estimate must be multiplied by to be too low in only 5 of 100 cases.
    pub guard: Option<f64>,
    /// How many messages there are.
    pub messages: usize,
    /// How many steps there are.
    pub steps: u32,
    /// What it counts.
    pub tokens: Tokens,
    /// The largest input that the provider reported for one request, where it did.
    pub largest_request: Option<u64>,
    /// By who speaks.
    pub roles: Vec<InspectedPart>,
    /// What every request begins with: system prompt and tools.
    pub head: HeadCost,
    /// By tool, the most first.
    pub tools: Vec<ToolPart>,
    /// By file, the most first.
    pub files: Vec<FilePart>,
    /// By priority class, the highest first.
    pub priorities: Vec<InspectedPart>,
    /// The biggest blocks.
    pub biggest: Vec<LargeBlock>,
    /// What was read of files.
    pub reads: FileReads,
    /// Whether calls and results make half of it or more.
    pub tool_heavy: bool,
    /// How many requests were made.
    pub requests: usize,
    /// What it cost, where the model is known.
    pub cost: Option<ConversationCost>,
    /// What the provider reported, summed over all requests.
    pub usage: Option<UsageSum>,
}

/// Tokens of one kind.
#[derive(Debug, Clone, Serialize)]
pub struct InspectedPart {
    /// Its name.
    pub name: String,
    /// How many blocks.
    pub blocks: usize,
    /// Their tokens.
    pub tokens: Tokens,
}

/// Tokens of one tool, calls and results together.
#[derive(Debug, Clone, Serialize)]
pub struct ToolPart {
    /// What it does.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// How often it was called.
    pub calls: usize,
    /// Tokens of calls and results.
    pub tokens: Tokens,
}

/// One of the biggest blocks.
#[derive(Debug, Clone, Serialize)]
pub struct LargeBlock {
    /// The number of the block.
    pub number: usize,
    /// Its step.
    pub step: u32,
    /// What it is, in a few words.
    pub what: String,
    /// Its tokens.
    pub tokens: Tokens,
}

/// What was read of files.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct FileReads {
    /// How many reads there were.
    pub reads: usize,
    /// Their tokens.
    pub tokens: Tokens,
    /// Reads of lines of a file that were read before.
    pub again: usize,
    /// Their tokens.
    pub again_tokens: Tokens,
    /// What of these was the same as before.
    pub unchanged_tokens: Tokens,
    /// What of all reads shows lines that the file no longer holds.
    pub stale_tokens: Tokens,
}

/// What a conversation cost, in US dollars.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ConversationCost {
    /// In US dollars.
    pub dollars: f64,
    /// Whether it is of reported usage; else it is of counted tokens, none of them cached.
    pub reported: bool,
}

/// Reported usage of many requests.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct UsageSum {
    /// How many requests reported theirs.
    pub requests: usize,
    /// Input that no cache knew.
    pub input: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the cache.
    pub cache_write: u64,
    /// Output.
    pub output: u64,
}

/// Measures a segment of a recording: its number is counted from 1. A model that is asked for is looked up in the table.
///
/// # Errors
/// Says that there is no such segment, or that the model is not known.
pub fn inspect(
    name: &str,
    recording: &Recording,
    number: usize,
    asked: Option<&str>,
    table: &[Model],
    memo: &mut CountMemo,
) -> Result<Inspection, InspectError> {
    let segments = recording.segments.len();
    let Some(segment) = number.checked_sub(1).and_then(|index| recording.segments.get(index)) else {
        return Err(InspectError::NoSegment { name: name.to_owned(), number, segments });
    };
    let history = &segment.history;
    let recorded = || segment.points.iter().rev().find_map(|point| point.model.clone());
    let named = || history.model().map(Cow::into_owned);
    let model = asked.map(str::to_owned).or_else(named).or_else(recorded);
    let known = match (asked, &model) {
        (Some(asked), _) => Some(find_model_in(asked, table)?),
        (None, Some(model)) => find_model_in(model, table).ok(),
        (None, None) => None,
    };
    let counter = Counter::for_model(model.as_deref().unwrap_or_default());
    let counts = counter.count_request(history, memo);
    let facts = facts(history);
    let files = files(history, &facts);
    let view = InspectedHistory { history, facts: &facts, counts: &counts };
    let sums: Vec<Usage> = segment.points.iter().filter_map(|point| point.usage).collect();
    let usage = (!sums.is_empty()).then(|| UsageSum::from_usages(&sums));
    let tool_tokens: u64 =
        view.rows().filter(|(.., fact, _)| is_tool(fact)).map(|(.., tokens)| tokens.0).sum();
    let guard = match counter.tokenizer().exactness() {
        Exactness::Exact => None,
        Exactness::Estimate { guard } => Some(guard),
    };
    Ok(Inspection {
        name: name.to_owned(),
        agent: recording.agent,
        segment: number,
        start: segment.start.name(),
        segments,
        window: known.as_ref().map(|model| model.window),
        exact: guard.is_none(),
        guard,
        messages: history.messages().len(),
        steps: facts.current_step(),
        tokens: counts.total(),
        largest_request: sums.iter().map(|usage| usage.total_input()).max(),
        roles: view.tokens_by_role(),
        head: head_cost(segment, &counts, known.as_ref()),
        tools: view.tokens_by_tool(),
        files: files_by_tokens(&view, &files, &segment.points),
        priorities: view.tokens_by_priority(),
        biggest: view.biggest_blocks(),
        reads: view.file_reads(&files),
        tool_heavy: ratio(tool_tokens, counts.total().0) >= TOOL_HEAVY,
        requests: segment.points.len(),
        cost: known.as_ref().map(|model| conversation_cost(segment, model, &view, &sums)),
        usage,
        model,
    })
}

/// Returns a part as a share of a whole; nothing of nothing.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "shares of token counts, far below 2^52"
)]
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Inspection {
    /// Returns how much of the window the largest request filled, where the window is known: by what was reported, else
    /// by what is counted.
    pub fn window_share(&self) -> Option<f64> {
        Some(ratio(self.largest_request.unwrap_or(0).max(self.tokens.0), self.window?.0))
    }
}

impl UsageSum {
    fn from_usages(all: &[Usage]) -> UsageSum {
        all.iter().fold(UsageSum::default(), |sum, usage| UsageSum {
            requests: sum.requests + 1,
            input: sum.input + usage.input,
            cache_read: sum.cache_read + usage.cache_read,
            cache_write: sum.cache_write + usage.cache_write,
            output: sum.output + usage.output,
        })
    }

    /// Returns both together.
    #[must_use]
    pub fn plus(self, other: UsageSum) -> UsageSum {
        UsageSum {
            requests: self.requests + other.requests,
            input: self.input + other.input,
            cache_read: self.cache_read + other.cache_read,
            cache_write: self.cache_write + other.cache_write,
            output: self.output + other.output,
        }
    }

    /// Returns the share of input that was read from the cache.
    pub fn cache_hits(self) -> f64 {
        ratio(self.cache_read, self.input + self.cache_read + self.cache_write)
    }
}

struct InspectedHistory<'a> {
    history: &'a History,
    facts: &'a Facts,
    counts: &'a Counts,
}

fn is_tool(fact: &Fact) -> bool {
    matches!(fact.acts_as, BlockKind::Call | BlockKind::Result)
}

impl InspectedHistory<'_> {
    /// Returns every block with its number, row and tokens.
    fn rows(&self) -> impl Iterator<Item = (usize, BlockId, &Fact, Tokens)> {
        let rows = self.facts.rows().iter().zip(self.counts.blocks()).enumerate();
        rows.filter_map(|(number, (fact, tokens))| {
            Some((number, BlockId(u32::try_from(number).ok()?), fact, *tokens))
        })
    }

    fn tokens_by_role(&self) -> Vec<InspectedPart> {
        let mut parts: BTreeMap<usize, (usize, Tokens)> = BTreeMap::new();
        for (_, _, fact, tokens) in self.rows() {
            let part = parts.entry(role_number(fact)).or_default();
            *part = (part.0 + 1, part.1 + tokens);
        }
        let named = |(place, (blocks, tokens)): (usize, (usize, Tokens))| InspectedPart {
            name: ROLES.get(place).copied().unwrap_or_default().to_owned(),
            blocks,
            tokens,
        };
        let mut parts: Vec<InspectedPart> = parts.into_iter().map(named).collect();
        parts.push(InspectedPart {
            name: "message overhead".to_owned(),
            blocks: 0,
            tokens: self.counts.frame(),
        });
        parts
    }

    fn tokens_by_tool(&self) -> Vec<ToolPart> {
        let mut tools: HashMap<(ToolKind, String), (usize, Tokens)> = HashMap::new();
        for (_, id, fact, tokens) in self.rows().filter(|(.., fact, _)| is_tool(fact)) {
            let call = if fact.acts_as == BlockKind::Result { fact.partner.unwrap_or(id) } else { id };
            let kind = self.facts.row(call).and_then(Fact::tool).or(fact.tool()).unwrap_or(ToolKind::Other);
            let name = self.history.block(call).and_then(|call| self.history.tool_name(call));
            // An action written in an assistant's text has no name.
            let name = name.map_or_else(|| "in text".to_owned(), Cow::into_owned);
            let tool = tools.entry((kind, name)).or_default();
            *tool = (tool.0 + usize::from(fact.acts_as == BlockKind::Call), tool.1 + tokens);
        }
        let named = |((kind, name), (calls, tokens)): ((ToolKind, String), (usize, Tokens))| ToolPart {
            kind: kind.name(),
            name,
            calls,
            tokens,
        };
        let mut tools: Vec<ToolPart> = tools.into_iter().map(named).collect();
        tools.sort_by(|one, other| {
            (Reverse(one.tokens), one.kind, &one.name).cmp(&(Reverse(other.tokens), other.kind, &other.name))
        });
        tools
    }

    fn tokens_by_priority(&self) -> Vec<InspectedPart> {
        let mut parts = BTreeMap::new();
        for (_, id, _, tokens) in self.rows() {
            let Some(priority) = self.facts.priority(id, RECENT_STEPS) else { continue };
            let part: &mut (usize, Tokens) = parts.entry(Reverse(priority)).or_default();
            *part = (part.0 + 1, part.1 + tokens);
        }
        let named = |(Reverse(priority), (blocks, tokens)): (Reverse<Priority>, (usize, Tokens))| {
            InspectedPart { name: format!("{} {}", priority.number(), priority.name()), blocks, tokens }
        };
        parts.into_iter().map(named).collect()
    }

    fn biggest_blocks(&self) -> Vec<LargeBlock> {
        let mut rows: Vec<(usize, BlockId, &Fact, Tokens)> = self.rows().collect();
        rows.sort_by_key(|(number, .., tokens)| (Reverse(*tokens), *number));
        let big = |(number, id, fact, tokens): (usize, BlockId, &Fact, Tokens)| LargeBlock {
            number,
            step: fact.step,
            what: self.describe_block(id, fact),
            tokens,
        };
        rows.into_iter().take(BIGGEST).map(big).collect()
    }

    /// Says in a few words what a block is.
    fn describe_block(&self, id: BlockId, fact: &Fact) -> String {
        let name = self.history.block(id).and_then(|block| self.history.tool_name(block));
        match (fact.acts_as, fact.tool(), fact.subject()) {
            (BlockKind::Call | BlockKind::Result, Some(kind), subject) => {
                let tool = kind.name();
                let subject =
                    if *subject == Subject::Nothing { String::new() } else { format!(" {subject}") };
                format!("{} of {tool}{subject}", fact.acts_as.name())
            }
            (BlockKind::Definition, ..) => format!("definition of {}", name.unwrap_or_default()),
            (kind, ..) => format!("{} of the {}", kind.name(), fact.role.name()),
        }
    }

    fn file_reads(&self, files: &FileTimeline) -> FileReads {
        let mut sum = FileReads::default();
        let shown = self.repeated_shares(files);
        let mut before: HashMap<String, Vec<SubjectLines>> = HashMap::new();
        for (_, id, fact, tokens) in self.rows() {
            let is_read = fact.acts_as == BlockKind::Result && fact.tool() == Some(ToolKind::Read);
            let (true, Subject::File { path, lines }) = (is_read, fact.subject()) else { continue };
            sum.reads += 1;
            sum.tokens += tokens;
            let seen = shown.get(&id);
            if let Some(seen) = seen {
                sum.stale_tokens += tokens.scale(seen.stale);
            }
            let known = before.entry(self.facts.file_key(path).into_owned()).or_default();
            if known.iter().any(|known| known.covers(*lines)) {
                sum.again += 1;
                sum.again_tokens += tokens;
                let same =
                    if fact.identical_to.is_some() { 1.0 } else { seen.map_or(0.0, |seen| seen.unchanged) };
                sum.unchanged_tokens += tokens.scale(same);
            }
            known.push(*lines);
        }
        sum
    }

    /// Returns for each result that showed lines which share of them was the same before, and which is gone by now.
    fn repeated_shares(&self, files: &FileTimeline) -> HashMap<BlockId, RereadShares> {
        let mut found = HashMap::new();
        for path in files.paths() {
            for (index, access) in files.accesses(path).iter().enumerate() {
                let count = access.shown_lines().count();
                if access.kind != AccessKind::Read || count == 0 {
                    continue;
                }
                let before = files.state_before(path, index);
                let same = |(number, text): &(usize, &str)| {
                    before
                        .as_ref()
                        .and_then(|state| state.line(*number))
                        .is_some_and(|line| line.text == *text)
                };
                let now = files.lines_now(path, index, u32::MAX);
                let stale = now.iter().filter(|(_, now)| *now == LineNow::Stale).count();
                let share = |part: usize| ratio(Tokens::from_len(part).0, Tokens::from_len(count).0);
                let seen = RereadShares {
                    unchanged: share(access.shown_lines().filter(same).count()),
                    stale: share(stale),
                };
                found.insert(access.block, seen);
            }
        }
        found
    }
}

/// Returns the files that the conversation touched, the most tokens first.
fn files_by_tokens(view: &InspectedHistory<'_>, files: &FileTimeline, points: &[Point]) -> Vec<FilePart> {
    let mut parts =
        FileTracker::from_conversation(view.history, view.facts, files, view.counts, points).files;
    parts.sort_by_key(|file| Reverse(file.tokens));
    parts
}

struct RereadShares {
    unchanged: f64,
    stale: f64,
}

/// Who speaks, as people ask for it.
pub const ROLES: [&str; 6] = ["system", "tool definitions", "user", "assistant", "tool results", "other"];

fn role_number(fact: &Fact) -> usize {
    match (fact.acts_as, fact.role) {
        (BlockKind::Result, _) | (_, Role::Tool) => 4,
        (BlockKind::Definition, _) | (_, Role::Tools) => 1,
        (_, Role::System) => 0,
        (_, Role::User) => 2,
        (_, Role::Assistant) => 3,
        (_, Role::Other) => 5,
    }
}

/// Prices what was reported; where nothing was, every request as counted, without a cache.
fn conversation_cost(
    segment: &Segment,
    model: &Model,
    view: &InspectedHistory<'_>,
    reported: &[Usage],
) -> ConversationCost {
    if !reported.is_empty() {
        let dollars = reported.iter().map(|usage| model.cost(*usage)).sum();
        return ConversationCost { dollars, reported: true };
    }
    let dollars = segment.points.iter().map(|point| {
        let carried = segment.history.messages().get(..point.messages).and_then(<[_]>::last);
        let last = carried.map_or(0, |entry| entry.step);
        // What the request carries is known by its steps: its answer is the step after them.
        let input = view.rows().filter(|(.., fact, _)| fact.step <= last).map(|(.., tokens)| tokens.0).sum();
        let output = view
            .rows()
            .filter(|(.., fact, _)| fact.step == last + 1 && fact.role == Role::Assistant)
            .map(|(.., tokens)| tokens.0)
            .sum();
        model.cost(Usage { input, output, ..Usage::default() })
    });
    ConversationCost { dollars: dollars.sum(), reported: false }
}

#[cfg(test)]
mod tests {
    use super::inspect;
    use crate::recording::read;
    use trimtab_core::{
        Tokens,
        count::CountMemo,
        prices::{PriceCliff, find_model},
    };

    #[test]
    fn a_request_beyond_the_cliff_is_priced_as_the_table_says() {
        let cliff = Some(PriceCliff { above: Tokens(100_000), input_factor: 5.0, output_factor: 4.0 });
        let mut model = find_model("claude-opus-4-6").expect("a model");
        model.cliff = cliff;
        let line = |kind: &str, content: &str, more: &str| {
            format!(
                r#"{{"type":"{kind}","uuid":"{kind}","message":{{"role":"{kind}","content":"{content}","model":"claude-opus-4-6"{more}}}}}"#
            )
        };
        let usage = r#","usage":{"input_tokens":200000,"output_tokens":1000}"#;
        let file = [line("user", "Hi", ""), line("assistant", "Yes?", usage)].join("\n");
        let recording = read(file.as_bytes()).expect("a recording");
        let table = [model.clone()];
        let found =
            inspect("file", &recording, 1, None, &table, &mut CountMemo::default()).expect("a segment");
        let dollars = found.cost.expect("a price").dollars;
        let expected = 5.0 * 0.2 * model.prices.input + 4.0 * 0.001 * model.prices.output;
        assert!((dollars - expected).abs() < 1e-9, "{dollars} instead of {expected}");
    }
}
