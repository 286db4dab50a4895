//! `trimtab show`: a conversation, one line per block. Takes a request or a recording; gives a picture for people
//! or JSON for programs.

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use serde::Serialize;
use trimtab_core::{
    Block, BlockId, BlockKind, Counter, Facts, History, Memo, Tokens,
    count::{Counts, Exactness},
    facts,
    facts::{Fact, Outcome, ToolKind},
};
use trimtab_replay::RECENT_STEPS;

use crate::{
    args::Show,
    input::{self, Conversation},
    output::{Output, grouped, on_one_line, padded},
    terminal::escape_name,
};

/// Columns of the tool's name: the longest of the common ones, and room for `mcp__` names to be told apart.
const TOOL_WIDTH: usize = 16;

/// Columns left of the text: number, step, role, kind, tool, tokens.
const TEXT_AT: usize = 5 + 6 + 11 + 12 + TOOL_WIDTH + 1 + 9 + 2;

const DIM: Style = Style::new().dimmed();
const FAILED: Style = AnsiColor::Red.on_default();

pub(crate) fn run(asked: &Show, out: &mut Output) -> Result<()> {
    let conversation = input::conversation(&asked.input)?;
    let history = &conversation.history;
    let model = model_of(asked, &conversation);
    let counter = model.as_deref().map_or_else(|| Counter::for_model(""), Counter::for_model);
    let counts = counter.request(history, &mut Memo::default());
    let exactness = counter.tokenizer().exactness();
    let facts = facts(history);
    if asked.json {
        return out.json(&report(&conversation, model.as_deref(), exactness, &counts, &facts));
    }
    heading(&conversation, model.as_deref(), exactness, &counts, out)?;
    let blocks = history.blocks().iter().zip(facts.rows()).zip(counts.blocks());
    for (number, ((block, fact), tokens)) in blocks.enumerate() {
        line(history, number, block, fact, *tokens, out)?;
    }
    Ok(())
}

/// Returns the model to count for: the one asked for, else the one that the request or recording names.
fn model_of(asked: &Show, conversation: &Conversation) -> Option<String> {
    let recorded = || conversation.segment.points.iter().rev().find_map(|point| point.model.clone());
    let named = || conversation.history.model().map(std::borrow::Cow::into_owned);
    asked.model.clone().or_else(named).or_else(recorded)
}

fn heading(
    conversation: &Conversation,
    model: Option<&str>,
    exactness: Exactness,
    counts: &Counts,
    out: &mut Output,
) -> Result<()> {
    let Conversation { name, agent, segment, number, segments, history, .. } = conversation;
    let whose = if *agent == "request" { "a request".to_owned() } else { format!("recorded by {agent},") };
    let name = escape_name(name);
    out.line(format_args!("{name}: {whose} in the {} format", history.format().title()))?;
    if *segments > 1 {
        let start = segment.start.name();
        out.line(format_args!("segment {number} of {segments} ({start}); --segment N shows another"))?;
    }
    let model =
        model.map_or_else(|| "(no model named)".to_owned(), |model| format!("for {}", escape_name(model)));
    out.line(format_args!(
        "{} tokens {model}: {} in blocks, {} around them",
        grouped(counts.total().0),
        grouped(counts.total().0 - counts.frame().0),
        grouped(counts.frame().0)
    ))?;
    if let Exactness::Estimate { guard } = exactness {
        out.line(format_args!(
            "an estimate: in 95 of 100 cases the real count is at most {guard:.2} times it"
        ))?;
    }
    out.line("")?;
    out.line(format_args!(
        "{DIM}{:>4} {:>5}  {:10} {:11} {:TOOL_WIDTH$} {:>8}  text{DIM:#}",
        "#", "step", "role", "kind", "tool", "tokens"
    ))
}

fn line(
    history: &History,
    number: usize,
    block: &Block,
    fact: &Fact,
    tokens: Tokens,
    out: &mut Output,
) -> Result<()> {
    let (role, step) = (fact.role.name(), fact.step);
    // An action that is written in a text has no tool's name, but a kind.
    let kind = || fact.tool().map_or("", ToolKind::name).into();
    let tool = history.tool_name(block).unwrap_or_else(kind);
    let failed = fact.acts_as == BlockKind::Result && fact.outcome == Outcome::Failed;
    let style = if failed { FAILED } else { Style::new() };
    let marks = marks(block, failed);
    let text = beginning(history, block, marks.as_deref());
    let text = on_one_line(&text, out.width().saturating_sub(TEXT_AT));
    out.line(format_args!(
        "{number:>4} {step:>5}  {role:10} {:11} {} {:>8}  {style}{text}{style:#}",
        fact.acts_as.name(),
        padded(&tool, TOOL_WIDTH),
        grouped(tokens.0)
    ))
}

/// Returns in brackets what is special about a block.
fn marks(block: &Block, failed: bool) -> Option<String> {
    let marks = [
        (failed, "failed"),
        (block.by_server, "run by the provider"),
        (block.sealed && block.kind == BlockKind::Reasoning, "signed"),
        (block.marked, "cache marker"),
    ];
    let said: Vec<&str> = marks.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark).collect();
    (!said.is_empty()).then(|| format!("[{}] ", said.join(", ")))
}

fn beginning(history: &History, block: &Block, marks: Option<&str>) -> String {
    // More than any terminal shows, and far less than a long result.
    const LOOKED_AT: usize = 2000;
    let text = history.block_text(block);
    let start: String = text.trim_start().chars().take(LOOKED_AT).collect();
    marks.unwrap_or_default().to_owned() + &start
}

#[derive(Serialize)]
struct Report<'a> {
    name: &'a str,
    agent: &'a str,
    format: &'a str,
    model: Option<&'a str>,
    segment: usize,
    segments: usize,
    start: &'a str,
    requests: usize,
    problems: Vec<String>,
    tokens: Tokens,
    frame_tokens: Tokens,
    exact: bool,
    blocks: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    number: usize,
    step: u32,
    role: &'a str,
    kind: &'a str,
    tool: Option<String>,
    call_id: Option<String>,
    partner: Option<u32>,
    tokens: Tokens,
    bytes: usize,
    failed: bool,
    by_server: bool,
    cache_marker: bool,
    /// What the block is in effect: an action written in text is a call.
    acts_as: &'a str,
    tool_kind: Option<&'a str>,
    subject: Option<String>,
    outcome: &'a str,
    content: &'a str,
    turn: u32,
    priority: u8,
    identical_to: Option<u32>,
    superseded_by: Option<u32>,
    text: String,
}

/// Returns the number of a block's priority class, with as many recent steps as `inspect` takes.
fn priority(facts: &Facts, number: usize) -> u8 {
    let block = u32::try_from(number).ok().map(BlockId);
    block.and_then(|block| facts.priority(block, RECENT_STEPS)).map_or(0, facts::Priority::number)
}

fn report<'a>(
    conversation: &'a Conversation,
    model: Option<&'a str>,
    exactness: Exactness,
    counts: &Counts,
    facts: &Facts,
) -> Report<'a> {
    let history = &conversation.history;
    let blocks = history.blocks().iter().zip(facts.rows()).zip(counts.blocks()).enumerate();
    let rows = blocks.map(|(number, ((block, fact), tokens))| Row {
        number,
        step: fact.step,
        role: fact.role.name(),
        kind: block.kind.name(),
        tool: history.tool_name(block).map(std::borrow::Cow::into_owned),
        call_id: history.call_id(block).map(std::borrow::Cow::into_owned),
        partner: block.partner.map(|partner| partner.0),
        tokens: *tokens,
        bytes: block.span.len(),
        failed: block.failed,
        by_server: block.by_server,
        cache_marker: block.marked,
        acts_as: fact.acts_as.name(),
        tool_kind: fact.tool().map(ToolKind::name),
        subject: fact.tool().map(|_| fact.subject().to_string()),
        outcome: fact.outcome.name(),
        content: fact.content.name(),
        turn: fact.turn,
        priority: priority(facts, number),
        identical_to: fact.identical_to.map(|block| block.0),
        superseded_by: fact.superseded_by.map(|(block, _)| block.0),
        text: history.block_text(block).into_owned(),
    });
    Report {
        name: &conversation.name,
        agent: conversation.agent,
        format: history.format().name(),
        model,
        segment: conversation.number,
        segments: conversation.segments,
        start: conversation.segment.start.name(),
        requests: conversation.segment.points.len(),
        problems: conversation.problems.iter().map(ToString::to_string).collect(),
        tokens: counts.total(),
        frame_tokens: counts.frame(),
        exact: exactness == Exactness::Exact,
        blocks: rows.collect(),
    }
}
