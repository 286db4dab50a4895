//! `trimtab show`: a conversation, one line per block, or one block whole. Takes a request or a recording; gives a picture for
//! people or JSON for programs.

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result};
use serde::Serialize;
use trimtab_core::{
    Block, BlockId, BlockKind, CountMemo, Counter, Facts, History, Role, Tokens, block_handle,
    block_original,
    count::{Counts, Exactness},
    facts,
    facts::{Fact, Outcome, ToolKind},
};
use trimtab_replay::RECENT_STEPS;

use crate::{
    args::ShowArgs,
    input::{self, Conversation},
    output::{Output, group_thousands, on_one_line, pad_text},
    terminal::escape_name,
};

/// From so many columns on, role and kind have columns each, and tools have room.
const WIDE: usize = 110;

/// How the columns before the text are set.
struct ShowLayout {
    width: usize,
    /// Columns of the tool's name: the longest of the common ones, and room to distinguish `mcp__` names.
    tool: usize,
    shows_role: bool,
}

impl ShowLayout {
    fn for_width(width: usize) -> ShowLayout {
        let is_wide = width >= WIDE;
        ShowLayout { width, tool: if is_wide { 16 } else { 10 }, shows_role: is_wide }
    }

    /// Returns a line's columns before the text.
    fn columns(
        &self,
        number: &str,
        step: &str,
        role: &str,
        kind: &str,
        tool: &str,
        rest: [&str; 2],
    ) -> String {
        let [tokens, handle] = rest;
        let tool = pad_text(tool, self.tool);
        if self.shows_role {
            return format!("{number:>4} {step:>5}  {role:10} {kind:11} {tool} {tokens:>8} {handle:12}  ");
        }
        // Who says a text is more than that it is one.
        let kind = if kind == BlockKind::Text.name() { role } else { kind };
        format!("{number:>4} {step:>4}  {kind:10} {tool} {tokens:>7} {handle:12}  ")
    }
}

const DIM: Style = Style::new().dimmed();
const FAILED: Style = AnsiColor::Red.on_default();
const PERSON: Style = AnsiColor::Cyan.on_default().bold();

pub(crate) fn run(asked: &ShowArgs, out: &mut Output) -> Result<()> {
    let conversation = input::read_conversation(&asked.input)?;
    let history = &conversation.history;
    if let Some(number) = asked.block {
        return one_block(&conversation, number, out);
    }
    let model = model_of(asked, &conversation);
    let counter = model.as_deref().map_or_else(|| Counter::for_model(""), Counter::for_model);
    let counts = counter.count_request(history, &mut CountMemo::default());
    let exactness = counter.tokenizer().exactness();
    let facts = facts(history);
    if asked.json {
        return out.write_json(&build_report(&conversation, model.as_deref(), exactness, &counts, &facts));
    }
    let layout = ShowLayout::for_width(out.width());
    print_heading(&conversation, model.as_deref(), exactness, &counts, out)?;
    let head = layout.columns("#", "step", "role", "kind", "tool", ["tokens", "handle"]);
    out.write_line(format_args!("{DIM}{head}text{DIM:#}"))?;
    let blocks = history.blocks().iter().zip(facts.rows()).zip(counts.blocks());
    for (number, ((block, fact), tokens)) in blocks.enumerate() {
        print_block(history, &layout, number, block, fact, *tokens, out)?;
    }
    Ok(())
}

/// Prints one block as `recall` would, or its row as JSON.
fn one_block(conversation: &Conversation, number: u32, out: &mut Output) -> Result<()> {
    let history = &conversation.history;
    let count = history.blocks().len();
    let block = history.block(BlockId(number)).with_context(|| match count.checked_sub(1) {
        Some(last) => {
            format!("{}: has no block {number}: they are numbered from 0 to {last}", conversation.name)
        }
        None => format!("{}: has no blocks", conversation.name),
    })?;
    let original = block_original(history, block);
    out.write_bytes(&original)?;
    if original.ends_with(b"\n") { Ok(()) } else { out.write_bytes(b"\n") }
}

/// Returns the model to count for: the one asked for, else the one that the request or recording names.
fn model_of(asked: &ShowArgs, conversation: &Conversation) -> Option<String> {
    let recorded = || conversation.segment.points.iter().rev().find_map(|point| point.model.clone());
    let named = || conversation.history.model().map(std::borrow::Cow::into_owned);
    asked.model.clone().or_else(named).or_else(recorded)
}

fn print_heading(
    conversation: &Conversation,
    model: Option<&str>,
    exactness: Exactness,
    counts: &Counts,
    out: &mut Output,
) -> Result<()> {
    let Conversation { name, agent, segment, number, segments, history, .. } = conversation;
    let whose = if *agent == "request" { "a request".to_owned() } else { format!("recorded by {agent},") };
    let name = escape_name(name);
    out.write_sentence(format_args!("{name}: {whose} in the {} format", history.format().title()))?;
    if *segments > 1 {
        let start = segment.start.name();
        out.write_line(format_args!("segment {number} of {segments} ({start}); --segment N shows another"))?;
    }
    let model =
        model.map_or_else(|| "(no model named)".to_owned(), |model| format!("for {}", escape_name(model)));
    out.write_line(format_args!(
        "{} tokens {model}: {} in blocks, {} around them",
        group_thousands(counts.total().0),
        group_thousands(counts.total().0 - counts.frame().0),
        group_thousands(counts.frame().0)
    ))?;
    if let Exactness::Estimate { guard } = exactness {
        out.write_line(format_args!(
            "an estimate: 95 % of the time the real count is at most {:.0} % higher",
            (guard - 1.0) * 100.0
        ))?;
    }
    out.write_line("")
}

fn print_block(
    history: &History,
    layout: &ShowLayout,
    number: usize,
    block: &Block,
    fact: &Fact,
    tokens: Tokens,
    out: &mut Output,
) -> Result<()> {
    // An action that is written in a text has no tool's name, but a kind.
    let kind = || fact.tool().map_or("", ToolKind::name).into();
    let tool = history.tool_name(block).unwrap_or_else(kind);
    let failed = fact.acts_as == BlockKind::Result && fact.outcome == Outcome::Failed;
    let style = match (failed, fact.role) {
        (true, _) => FAILED,
        (false, Role::User) if fact.acts_as == BlockKind::Text => PERSON,
        (false, Role::Assistant) if fact.acts_as == BlockKind::Text => Style::new(),
        (false, _) => DIM,
    };
    let columns = layout.columns(
        &number.to_string(),
        &fact.step.to_string(),
        fact.role.name(),
        fact.acts_as.name(),
        &tool,
        [&group_thousands(tokens.0), &block_handle(history, block)],
    );
    let text = beginning_of_block(history, block, block_marks(block, failed).as_deref());
    let text = on_one_line(&text, layout.width.saturating_sub(columns.chars().count()));
    out.write_line(format_args!("{columns}{style}{text}{style:#}"))
}

/// Returns in brackets what is special about a block.
fn block_marks(block: &Block, failed: bool) -> Option<String> {
    let marks = [
        (failed, "failed"),
        (block.by_server, "run by the provider"),
        (block.sealed && block.kind == BlockKind::Reasoning, "signed"),
        (block.marked, "cache marker"),
    ];
    let said: Vec<&str> = marks.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark).collect();
    (!said.is_empty()).then(|| format!("[{}] ", said.join(", ")))
}

fn beginning_of_block(history: &History, block: &Block, marks: Option<&str>) -> String {
    // More than any terminal shows, and far less than a long result.
    const LOOKED_AT: usize = 2000;
    let text = history.block_text(block);
    let start: String = text.trim_start().chars().take(LOOKED_AT).collect();
    marks.unwrap_or_default().to_owned() + &start
}

#[derive(Serialize)]
struct ShowReport<'a> {
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
    blocks: Vec<BlockRow<'a>>,
}

#[derive(Serialize)]
struct BlockRow<'a> {
    number: usize,
    handle: String,
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
fn priority_number(facts: &Facts, number: usize) -> u8 {
    let block = u32::try_from(number).ok().map(BlockId);
    block.and_then(|block| facts.priority(block, RECENT_STEPS)).map_or(0, facts::Priority::number)
}

fn build_report<'a>(
    conversation: &'a Conversation,
    model: Option<&'a str>,
    exactness: Exactness,
    counts: &Counts,
    facts: &Facts,
) -> ShowReport<'a> {
    let history = &conversation.history;
    let blocks = history.blocks().iter().zip(facts.rows()).zip(counts.blocks()).enumerate();
    let rows = blocks.map(|(number, ((block, fact), tokens))| BlockRow {
        number,
        handle: block_handle(history, block),
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
        priority: priority_number(facts, number),
        identical_to: fact.identical_to.map(|block| block.0),
        superseded_by: fact.superseded_by.map(|(block, _)| block.0),
        text: history.block_text(block).into_owned(),
    });
    ShowReport {
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
