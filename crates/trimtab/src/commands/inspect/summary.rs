//! Many conversations in one picture. Takes the figures of each; gives means, shares and sums. Never hides a file that
//! could not be read.

use std::{cmp::Reverse, collections::BTreeMap};

use anyhow::Result;
use serde::Serialize;
use trimtab_core::Tokens;
use trimtab_replay::{
    ConversationCost, FileReads, InspectedPart, Inspection, ROLES, ToolPart, UsageSum, ratio,
};

use super::picture::{self, BOLD, ROWS, percent};
use crate::{
    input::Unreadable,
    output::{Output, count_with_noun, end_of, group_thousands, wrap_text},
};

/// What many conversations have in common.
#[derive(Serialize)]
pub(super) struct InspectionSummary {
    files: usize,
    unreadable: Vec<Unreadable>,
    /// Linear histories: a compaction, branch or sub-agent begins another.
    conversations: usize,
    mean_messages: f64,
    mean_tokens: f64,
    tokens: Tokens,
    exact: bool,
    /// Conversations of which the model's window is known; the shares are of these.
    with_window: usize,
    over_half: f64,
    over_three_quarters: f64,
    tool_heavy: CostGroup,
    others: CostGroup,
    usage: Option<UsageSum>,
    cache_hit_rate: Option<f64>,
    roles: Vec<InspectedPart>,
    tools: Vec<ToolPart>,
    priorities: Vec<InspectedPart>,
    reads: FileReads,
}

/// Conversations of one sort, and what they cost.
#[derive(Serialize, Default)]
struct CostGroup {
    conversations: usize,
    /// By reported usage.
    reported: usize,
    reported_dollars: f64,
    /// By counted tokens, as if nothing was cached.
    counted: usize,
    counted_dollars: f64,
}

impl InspectionSummary {
    pub(super) fn from_inspections(
        all: &[Inspection],
        files: usize,
        unreadable: Vec<Unreadable>,
    ) -> InspectionSummary {
        let count = Tokens::from_len(all.len()).0;
        let filled: Vec<f64> = all.iter().filter_map(Inspection::window_share).collect();
        let over = |share: f64| {
            let over = filled.iter().filter(|filled| **filled > share).count();
            ratio(Tokens::from_len(over).0, Tokens::from_len(filled.len()).0)
        };
        let tokens: Tokens = all.iter().map(|one| one.tokens).sum();
        let usage = all.iter().filter_map(|one| one.usage).reduce(UsageSum::plus);
        InspectionSummary {
            files,
            unreadable,
            conversations: all.len(),
            mean_messages: ratio(Tokens::from_len(all.iter().map(|one| one.messages).sum()).0, count),
            mean_tokens: ratio(tokens.0, count),
            tokens,
            exact: all.iter().all(|one| one.exact),
            with_window: filled.len(),
            over_half: over(0.5),
            over_three_quarters: over(0.75),
            tool_heavy: CostGroup::from_inspections(all.iter().filter(|one| one.tool_heavy)),
            others: CostGroup::from_inspections(all.iter().filter(|one| !one.tool_heavy)),
            usage,
            cache_hit_rate: usage.map(UsageSum::cache_hits),
            roles: sum_parts(all.iter().flat_map(|one| &one.roles), |name| {
                ROLES.iter().position(|role| *role == name).unwrap_or(ROLES.len())
            }),
            tools: sum_tools(all),
            priorities: sum_parts(all.iter().flat_map(|one| &one.priorities), |name| {
                let number: usize =
                    name.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
                usize::MAX - number
            }),
            reads: all.iter().fold(FileReads::default(), |sum, one| add_reads(sum, one.reads)),
        }
    }
}

impl CostGroup {
    fn from_inspections<'a>(all: impl Iterator<Item = &'a Inspection>) -> CostGroup {
        all.fold(CostGroup::default(), |mut group, one| {
            group.conversations += 1;
            match one.cost {
                Some(ConversationCost { dollars, reported: true }) => {
                    group.reported += 1;
                    group.reported_dollars += dollars;
                }
                Some(ConversationCost { dollars, reported: false }) => {
                    group.counted += 1;
                    group.counted_dollars += dollars;
                }
                None => {}
            }
            group
        })
    }
}

fn sum_parts<'a>(
    all: impl Iterator<Item = &'a InspectedPart>,
    place: impl Fn(&str) -> usize,
) -> Vec<InspectedPart> {
    let mut sums: BTreeMap<(usize, &str), (usize, Tokens)> = BTreeMap::new();
    for part in all {
        let sum = sums.entry((place(&part.name), part.name.as_str())).or_default();
        *sum = (sum.0 + part.blocks, sum.1 + part.tokens);
    }
    let named = |((_, name), (blocks, tokens)): ((usize, &str), (usize, Tokens))| InspectedPart {
        name: name.to_owned(),
        blocks,
        tokens,
    };
    sums.into_iter().map(named).collect()
}

fn sum_tools(all: &[Inspection]) -> Vec<ToolPart> {
    let mut sums: BTreeMap<(&str, &str), (usize, Tokens)> = BTreeMap::new();
    for tool in all.iter().flat_map(|one| &one.tools) {
        let sum = sums.entry((tool.kind, tool.name.as_str())).or_default();
        *sum = (sum.0 + tool.calls, sum.1 + tool.tokens);
    }
    let kinds = all.iter().flat_map(|one| &one.tools);
    let kinds: BTreeMap<&str, &'static str> = kinds.map(|tool| (tool.kind, tool.kind)).collect();
    let mut tools: Vec<ToolPart> = sums
        .into_iter()
        .filter_map(|((kind, name), (calls, tokens))| {
            Some(ToolPart { kind: kinds.get(kind)?, name: name.to_owned(), calls, tokens })
        })
        .collect();
    tools.sort_by_key(|tool| Reverse(tool.tokens));
    tools
}

fn add_reads(one: FileReads, other: FileReads) -> FileReads {
    FileReads {
        reads: one.reads + other.reads,
        tokens: one.tokens + other.tokens,
        again: one.again + other.again,
        again_tokens: one.again_tokens + other.again_tokens,
        unchanged_tokens: one.unchanged_tokens + other.unchanged_tokens,
        stale_tokens: one.stale_tokens + other.stale_tokens,
    }
}

pub(super) fn print_summary(summary: &InspectionSummary, all: &[Inspection], out: &mut Output) -> Result<()> {
    for bad in &summary.unreadable {
        for line in wrap_text(&format!("unreadable: {}: {}", bad.path, bad.reason), 74) {
            out.write_line(line.trim_start())?;
        }
    }
    if !summary.unreadable.is_empty() {
        out.write_line("")?;
    }
    let InspectionSummary { files, conversations, .. } = summary;
    out.write_line(format_args!("{BOLD}{conversations} conversations in {files} files{BOLD:#}"))?;
    out.write_line("(a compaction, a branch and a sub-agent each begin another conversation)")?;
    if all.is_empty() {
        return Ok(());
    }
    out.write_line("")?;
    let about = if summary.exact { "" } else { " (partly estimates)" };
    out.write_line(format_args!(
        "mean length    {:.0} messages, {} tokens{about}",
        summary.mean_messages,
        group_thousands(summary.tokens.0 / Tokens::from_len(all.len()).0.max(1))
    ))?;
    print_windows(summary, out)?;
    print_group("tool-heavy", "with half of their tokens in calls and results", &summary.tool_heavy, out)?;
    print_group("others", "", &summary.others, out)?;
    if let Some(usage) = summary.usage {
        let requests = group_thousands(u64::try_from(usage.requests)?);
        let share = usage.cache_hits() * 100.0;
        out.write_line(format_args!("cache hits     {share:.1} % of the input of {requests} requests"))?;
    }
    picture::print_parts("By role", &summary.roles, summary.tokens.0, out)?;
    tool_rows(summary, out)?;
    picture::print_parts("By priority at the end", &summary.priorities, summary.tokens.0, out)?;
    picture::print_reads(&summary.reads, summary.tokens.0, out)?;
    print_longest(all, out)
}

fn print_windows(summary: &InspectionSummary, out: &mut Output) -> Result<()> {
    if summary.with_window == 0 {
        return out.write_line("window         not known for any of these models; --model NAME names one");
    }
    let (half, most) = (summary.over_half * 100.0, summary.over_three_quarters * 100.0);
    out.write_line(format_args!(
        "window         {half:.1} % of conversations fill over 50 % of it, {most:.1} % over 75 %"
    ))?;
    if summary.with_window < summary.conversations {
        let known = summary.with_window;
        out.write_line(format_args!("               (known for {known} of them)"))?;
    }
    Ok(())
}

fn print_group(name: &str, about: &str, group: &CostGroup, out: &mut Output) -> Result<()> {
    if group.conversations == 0 {
        return Ok(());
    }
    let conversations = count_with_noun(group.conversations, "conversation", "conversations");
    out.write_line(format!("{name:14} {conversations} {about}").trim_end())?;
    let mean =
        |dollars: f64, count: usize| dollars / f64::from(u32::try_from(count.max(1)).unwrap_or(u32::MAX));
    if group.reported > 0 {
        let each = mean(group.reported_dollars, group.reported);
        out.write_line(format_args!(
            "               ${each:.2} each, by the reported usage of {}",
            group.reported
        ))?;
    }
    if group.counted > 0 {
        let each = mean(group.counted_dollars, group.counted);
        out.write_line(format_args!(
            "               ${each:.2} each, by our count of {}, if nothing was cached",
            group.counted
        ))?;
    }
    Ok(())
}

fn tool_rows(summary: &InspectionSummary, out: &mut Output) -> Result<()> {
    let tools = summary.tools.iter().take(ROWS);
    let rows: Vec<InspectedPart> = tools
        .map(|tool| InspectedPart {
            name: format!("{} ({})", tool.kind, tool.name),
            blocks: tool.calls,
            tokens: tool.tokens,
        })
        .collect();
    picture::print_table("By what calls do (tool)", "calls", &rows, summary.tokens.0, out)
}

fn print_longest(all: &[Inspection], out: &mut Output) -> Result<()> {
    let mut longest: Vec<&Inspection> = all.iter().collect();
    longest.sort_by_key(|one| Reverse(one.tokens));
    out.write_line("")?;
    out.write_line(format_args!("{BOLD}Longest conversations{BOLD:#}"))?;
    for one in longest.into_iter().take(ROWS) {
        let filled =
            one.window.map_or_else(|| "-".to_owned(), |window| percent(one.tokens.0, window.0) + " %");
        let part = if one.segments > 1 { format!(" segment {}", one.segment) } else { String::new() };
        let name = end_of(&(one.name.clone() + &part), 46);
        out.write_line(format_args!("  {name:46} {:>11} tokens {filled:>8}", group_thousands(one.tokens.0)))?;
    }
    Ok(())
}
