//! The picture of one conversation. Takes its figures; gives lines of at most 80 columns. Never counts anything.

use anstyle::{AnsiColor, Style};
use anyhow::Result;

use trimtab_core::Tokens;
use trimtab_replay::{FileReads, HeadCost, InspectedPart, Inspection, RECENT_STEPS, ROLES, ratio};

use crate::{
    output::{Output, count_with_noun, end_of, group_thousands, on_one_line, pad_text, wrap_text},
    terminal::escape_name,
};

/// Columns of the picture.
const WIDTH: usize = 80;

/// Columns of the names in the tables.
const NAME_WIDTH: usize = 40;

/// Columns before the words about a big block.
const BEFORE_WHAT: usize = 31;

/// How many rows a table has.
pub(super) const ROWS: usize = 10;

pub(super) const BOLD: Style = Style::new().bold();
const COLORS: [AnsiColor; 6] = [
    AnsiColor::Magenta,
    AnsiColor::Blue,
    AnsiColor::Cyan,
    AnsiColor::Green,
    AnsiColor::Yellow,
    AnsiColor::White,
];

/// What stands for each role in the bar.
const LETTERS: [char; 6] = ['S', 'D', 'U', 'A', 'T', 'o'];

pub(super) fn print_inspection(measured: &Inspection, out: &mut Output) -> Result<()> {
    print_heading(measured, out)?;
    print_window_bar(measured, out)?;
    print_parts("By role", &measured.roles, measured.tokens.0, out)?;
    print_head(measured, out)?;
    print_tools(measured, out)?;
    print_files(measured, out)?;
    print_parts(
        &format!("By priority (the highest is kept longest; recent: the last {RECENT_STEPS} steps)"),
        &measured.priorities,
        measured.tokens.0,
        out,
    )?;
    print_biggest_blocks(measured, out)?;
    print_reads(&measured.reads, measured.tokens.0, out)?;
    print_cost(measured, out)
}

fn print_heading(measured: &Inspection, out: &mut Output) -> Result<()> {
    let Inspection { name, agent, messages, steps, tokens, segment, segments, start, .. } = measured;
    let whose = if *agent == "request" { "a request".to_owned() } else { format!("a recording of {agent}") };
    out.write_line(format_args!("{BOLD}{}{BOLD:#}", escape_name(name)))?;
    out.write_line(whose)?;
    if *segments > 1 {
        out.write_line(format_args!(
            "segment {segment} of {segments} ({start}); --segment N inspects another"
        ))?;
    }
    out.write_line(format_args!("{messages} messages, {steps} steps (a step is one answer of the model)"))?;
    let model = measured
        .model
        .as_deref()
        .map_or_else(|| "(no model is named)".to_owned(), |model| format!("for {}", escape_name(model)));
    out.write_line(format_args!("{} tokens {model}", group_thousands(tokens.0)))?;
    match measured.guard {
        Some(guard) => out.write_line(format_args!(
            "an estimate: 95 % of the time the real count is at most {:.0} % higher",
            (guard - 1.0) * 100.0
        )),
        None => Ok(()),
    }
}

/// Draws the window of the model, one letter per column and role.
fn print_window_bar(measured: &Inspection, out: &mut Output) -> Result<()> {
    let columns = out.width().min(WIDTH) - 2;
    let whole = measured.window.map_or(measured.tokens.0, |window| window.0.max(measured.tokens.0));
    let mut drawn = String::new();
    let mut used = 0;
    let mut sum = 0;
    for part in &measured.roles {
        sum += part.tokens.0;
        let end = usize::try_from(sum * u64::try_from(columns)? / whole.max(1))?.min(columns);
        let place = ROLES.iter().position(|role| *role == part.name).unwrap_or(ROLES.len() - 1);
        let letter = LETTERS.get(place).copied().unwrap_or('o').to_string();
        let style = COLORS.get(place).copied().unwrap_or(AnsiColor::White).on_default();
        drawn += &format!("{style}{}{style:#}", letter.repeat(end.saturating_sub(used)));
        used = end.max(used);
    }
    out.write_line("")?;
    out.write_line(format_args!("[{drawn}{}]", ".".repeat(columns - used)))?;
    match measured.window {
        Some(window) => out.write_line(format_args!(
            "{} % of the window of {} tokens; . is free",
            percent(measured.tokens.0, window.0),
            group_thousands(window.0)
        ))?,
        None => out.write_line("the window of this model is not known: --model NAME names one")?,
    }
    out.write_line("S system  D tool definitions  U user  A assistant  T tool results  o other")?;
    if let Some(largest) = measured.largest_request {
        out.write_line(format_args!(
            "the largest request was reported as {} tokens of input",
            group_thousands(largest)
        ))?;
        if largest > measured.tokens.0 {
            out.write_line("(that is more than was counted: recordings leave out system prompt and tools)")?;
        }
    }
    Ok(())
}

/// Prints tokens of several kinds with their shares.
pub(super) fn print_parts(title: &str, parts: &[InspectedPart], whole: u64, out: &mut Output) -> Result<()> {
    print_table(title, "blocks", parts, whole, out)
}

/// Prints a table of which the second column counts something else.
pub(super) fn print_table(
    title: &str,
    counted: &str,
    parts: &[InspectedPart],
    whole: u64,
    out: &mut Output,
) -> Result<()> {
    print_table_head(title, counted, out)?;
    for part in parts.iter().filter(|part| part.tokens.0 > 0) {
        let blocks =
            if part.blocks == 0 { String::new() } else { group_thousands(u64::try_from(part.blocks)?) };
        print_row(&part.name, &blocks, part.tokens.0, whole, out)?;
    }
    Ok(())
}

fn print_table_head(title: &str, counted: &str, out: &mut Output) -> Result<()> {
    out.write_line("")?;
    if title.len() > NAME_WIDTH {
        out.write_line(format_args!("{BOLD}{title}{BOLD:#}"))?;
        return out.write_line(format_args!(
            "{} {counted:>12} {:>12} {:>8}",
            " ".repeat(NAME_WIDTH + 2),
            "tokens",
            "share"
        ));
    }
    let title = pad_text(title, NAME_WIDTH + 2);
    out.write_line(format_args!("{BOLD}{title}{BOLD:#} {counted:>12} {:>12} {:>8}", "tokens", "share"))
}

fn print_row(name: &str, counted: &str, tokens: u64, whole: u64, out: &mut Output) -> Result<()> {
    let name = pad_text(name, NAME_WIDTH);
    out.write_line(format_args!(
        "  {name} {counted:>12} {:>12} {:>6} %",
        group_thousands(tokens),
        percent(tokens, whole)
    ))
}

/// Prints what every request begins with, and what of it is never used.
fn print_head(measured: &Inspection, out: &mut Output) -> Result<()> {
    let HeadCost { recorded, tokens, requests, dollars, .. } = &measured.head;
    if *tokens == Tokens::ZERO {
        return Ok(());
    }
    let cost = match dollars {
        Some(dollars) if *requests > 0 => format!("; ${dollars:.2} in {requests} requests"),
        Some(_) | None => String::new(),
    };
    if !recorded {
        out.write_line("")?;
        return out.write_line(format_args!(
            "{BOLD}System prompt and tools{BOLD:#}  about {} tokens, not recorded{cost}",
            group_thousands(tokens.0)
        ));
    }
    print_head_parts(&measured.head, measured.tokens.0, out)?;
    if !cost.is_empty() {
        out.write_line(format_args!("  {} tokens in every request{cost}", group_thousands(tokens.0)))?;
    }
    print_unused_tools(&measured.head, out)
}

fn print_head_parts(head: &HeadCost, whole: u64, out: &mut Output) -> Result<()> {
    print_table_head("System prompt and tools of every request", "calls", out)?;
    let mut rows: Vec<(String, String, Tokens)> = head
        .servers
        .iter()
        .map(|server| {
            (
                format!("MCP {} ({})", server.name, count_with_noun(server.tools, "tool", "tools")),
                group_thousands(server.calls),
                server.tokens,
            )
        })
        .collect();
    let own = head.tools.iter().filter(|tool| tool.server.is_none());
    rows.extend(own.map(|tool| (format!("tool {}", tool.name), group_thousands(tool.calls), tool.tokens)));
    rows.push(("system prompt".to_owned(), String::new(), head.system));
    rows.sort_by_key(|(_, _, tokens)| std::cmp::Reverse(*tokens));
    for (name, calls, tokens) in rows.iter().take(ROWS) {
        print_row(name, calls, tokens.0, whole, out)?;
    }
    match rows.len().saturating_sub(ROWS) {
        0 => Ok(()),
        more => {
            let tokens: Tokens = rows.iter().skip(ROWS).map(|(_, _, tokens)| *tokens).sum();
            print_row(&format!("{more} more"), "", tokens.0, whole, out)
        }
    }
}

/// Names the tools that nobody called, and what leaving them out would have saved.
fn print_unused_tools(head: &HeadCost, out: &mut Output) -> Result<()> {
    if head.never_called == 0 {
        return Ok(());
    }
    let conversations = count_with_noun(head.searched_conversations, "conversation", "conversations");
    let tools = count_with_noun(head.never_called, "tool was", "tools were");
    let saves = match head.deferring_saves {
        Some(dollars) if head.requests > 0 => format!("; leaving them out would have saved ${dollars:.2}"),
        Some(_) | None => String::new(),
    };
    let names: Vec<String> = head
        .tools
        .iter()
        .filter(|tool| tool.calls == 0)
        .take(ROWS)
        .map(|tool| escape_name(&tool.name).into_owned())
        .collect();
    let more = if head.never_called > ROWS { ", …" } else { "" };
    let words = format!(
        "{tools} not called in {conversations}, {} tokens{saves}: {}{more}",
        group_thousands(head.never_called_tokens.0),
        names.join(", ")
    );
    wrap_text(&words, WIDTH - 4).into_iter().try_for_each(|line| out.write_line(line))
}

fn print_tools(measured: &Inspection, out: &mut Output) -> Result<()> {
    if measured.tools.is_empty() {
        return Ok(());
    }
    print_table_head("By what calls do (tool)", "calls", out)?;
    for tool in measured.tools.iter().take(ROWS) {
        let name = format!("{} ({})", tool.kind, tool.name);
        print_row(
            &name,
            &group_thousands(u64::try_from(tool.calls)?),
            tool.tokens.0,
            measured.tokens.0,
            out,
        )?;
    }
    print_remaining_rows(
        measured.tools.len(),
        measured.tools.iter().skip(ROWS).map(|tool| tool.tokens.0).sum(),
        measured,
        out,
    )
}

fn print_files(measured: &Inspection, out: &mut Output) -> Result<()> {
    if measured.files.is_empty() {
        return Ok(());
    }
    print_table_head("By file (last access, step)", "read/changed", out)?;
    for file in measured.files.iter().take(ROWS) {
        let counted = format!("{}/{}", file.reads, file.changes);
        let last = format!(" ({} {})", file.operation, file.last_access_step);
        let path = end_of(&file.path, NAME_WIDTH.saturating_sub(last.len()));
        print_row(&(path + &last), &counted, file.tokens.0, measured.tokens.0, out)?;
    }
    print_remaining_rows(
        measured.files.len(),
        measured.files.iter().skip(ROWS).map(|file| file.tokens.0).sum(),
        measured,
        out,
    )
}

fn print_remaining_rows(count: usize, tokens: u64, measured: &Inspection, out: &mut Output) -> Result<()> {
    if count <= ROWS {
        return Ok(());
    }
    print_row(&format!("{} more", count - ROWS), "", tokens, measured.tokens.0, out)
}

fn print_biggest_blocks(measured: &Inspection, out: &mut Output) -> Result<()> {
    out.write_line("")?;
    out.write_line(format_args!("{BOLD}Biggest blocks{BOLD:#} (# and step as `trimtab show` prints them)"))?;
    let width = out.width().min(WIDTH) - BEFORE_WHAT;
    for big in &measured.biggest {
        let what = on_one_line(&big.what, width);
        out.write_line(format_args!(
            "  #{:<5} step {:<5} {:>9}  {what}",
            big.number,
            big.step,
            group_thousands(big.tokens.0)
        ))?;
    }
    Ok(())
}

/// Says what reads of files hold.
pub(super) fn print_reads(reads: &FileReads, whole: u64, out: &mut Output) -> Result<()> {
    if reads.reads == 0 {
        return Ok(());
    }
    print_table_head("Reads of files", "reads", out)?;
    let count = |count: usize| group_thousands(u64::try_from(count).unwrap_or(u64::MAX));
    print_row("all", &count(reads.reads), reads.tokens.0, whole, out)?;
    print_row("of lines that were read before", &count(reads.again), reads.again_tokens.0, whole, out)?;
    print_row("  and had not changed since", "", reads.unchanged_tokens.0, whole, out)?;
    print_row("stale: the file no longer has the lines", "", reads.stale_tokens.0, whole, out)
}

fn print_cost(measured: &Inspection, out: &mut Output) -> Result<()> {
    let Some(cost) = measured.cost else { return Ok(()) };
    out.write_line("")?;
    let requests = measured.requests;
    if cost.reported {
        out.write_line(format_args!(
            "{requests} requests cost ${:.2}, by the usage that the provider reported",
            cost.dollars
        ))?;
    } else if requests > 0 {
        out.write_line(format_args!(
            "{requests} requests cost ${:.2} by our count, if nothing was cached",
            cost.dollars
        ))?;
    }
    if let Some(usage) = measured.usage {
        out.write_line(format_args!(
            "{:.0} % of their input was read from the cache",
            usage.cache_hits() * 100.0
        ))?;
    }
    out.write_line("`trimtab replay` shows what trimtab would have saved here")
}

/// Returns a share in percent with one decimal.
pub(super) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}", ratio(part, whole) * 100.0)
}
