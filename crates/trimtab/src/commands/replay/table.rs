//! The table for people. Takes the rows; gives one block per model, a line per contender, as many columns as the screen
//! holds, and what the figures do not say. Never rounds a loss away: 0.9996 is shown as .999.

use std::fmt::Write;

use anstyle::Style;
use anyhow::Result;
use trimtab_core::{Model, prices::CostUnit};
use trimtab_replay::ScoreRow;

use super::{RECORDED, ReplayResults, rewrite_cost_in_reads, sentence::format_cost};
use crate::output::{Output, count_with_noun, end_of, group_thousands, pad_text};

const BOLD: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();

/// The widest name that is shown whole, and how narrow it gets before a column goes.
const NAME: usize = 30;
const NARROW_NAME: usize = 20;

/// Worst sessions that are named under each block.
const WORST: usize = 3;

/// A column: its heading, what it means, how early it goes where there is no room (the highest first), when it is shown at all, and
/// its cells.
struct ReportColumn {
    head: &'static str,
    means: &'static str,
    spare: u8,
    shown: ColumnUse,
    cell: fn(&ScoreRow) -> String,
}

/// When a column says something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ColumnUse {
    Always,
    WithBudget,
    /// Where what is paid is time.
    InSeconds,
}

const fn column(
    head: &'static str,
    means: &'static str,
    spare: u8,
    cell: fn(&ScoreRow) -> String,
) -> ReportColumn {
    ReportColumn { head, means, spare, shown: ColumnUse::Always, cell }
}

const fn column_where(
    shown: ColumnUse,
    head: &'static str,
    means: &'static str,
    spare: u8,
    cell: fn(&ScoreRow) -> String,
) -> ReportColumn {
    ReportColumn { head, means, spare, shown, cell }
}

const COLUMNS: &[ReportColumn] = &[
    column("tokens", "change of the input tokens in per cent", 4, |row| percent_change(row.tokens_vs_raw)),
    column("$", "change of the input cost in per cent", 0, |row| percent_change(row.cost_vs_raw)),
    column("95 %", "the interval that holds $ with 95 % confidence", 5, |row| {
        row.cost_vs_raw_95.map_or_else(dash, percent_span)
    }),
    column("net $", "$ with the cost of reading again what was missed", 1, |row| {
        percent_change(row.cost_net_vs_raw)
    }),
    column("rejected", "requests that a provider would reject", 1, |row| {
        group_thousands(row.invalid_requests)
    }),
    column_where(ColumnUse::WithBudget, "over", "requests above the budget", 1, |row| {
        group_thousands(row.over_budget_requests)
    }),
    column("worst", "$ of the session that it suits least", 3, |row| whole_change(row.worst_session_vs_raw)),
    column("worse", "share of the sessions that cost more", 7, |row| {
        format!("{:.0}%", row.sessions_dearer * 100.0)
    }),
    column("breaks", "broken caches per session", 8, |row| format_mean(row.cache_breaks)),
    column_where(
        ColumnUse::WithBudget,
        "cuts",
        "requests per session that hide something sent before",
        3,
        |row| format_mean(row.cuts),
    ),
    column_where(
        ColumnUse::WithBudget,
        "rewr",
        "tokens per session cached again because of that",
        4,
        |row| short_number(row.rewritten_tokens),
    ),
    column_where(ColumnUse::InSeconds, "wait", "seconds of reading per session", 2, |row| {
        row.prefill_seconds.map_or_else(dash, short_number)
    }),
    column("edits", "share of the texts to edit that were visible when needed", 0, |row| {
        recall_share(row.edit_anchor_recall, row.edit_anchors)
    }),
    column_where(
        ColumnUse::WithBudget,
        "bound",
        "edits as a share of what oracle:budget keeps, which knows the future",
        2,
        |row| row.bound_recall_share.map_or_else(dash, |share| recall_share(share, row.edit_anchors)),
    ),
    column("names", "the same for names that cannot be guessed", 1, |row| {
        recall_share(row.strict_reference_recall, row.strict_references)
    }),
    column("lines", "for lines that were copied", 4, |row| {
        recall_share(row.copied_line_recall, row.copied_lines)
    }),
    column("errs", "for errors not solved yet", 4, |row| recall_share(row.error_retention, row.errors)),
    column("rules", "for instructions", 4, |row| recall_share(row.instruction_retention, row.instructions)),
    column("stale", "outdated tokens without a marker, per session", 9, |row| {
        short_number(row.unmarked_stale_tokens)
    }),
    column("again", "blocks to fetch again per session", 6, |row| format_mean(row.forced_refetches)),
    column("µs", "median time of a plan", 10, |row| {
        row.plan_us_p50.map_or_else(dash, |time| short_number(f64::from(time)))
    }),
];

/// What the table stands for.
pub(super) const CERTIFIES: &str = "Replay shows whether the agent later needed something that was hidden. It cannot show whether the task would \
    still have succeeded, or whether an agent that sees less would have done the same.";

pub(super) fn print_table(replayed: &ReplayResults, out: &mut Output) -> Result<()> {
    let width = out.width();
    for line in table_lines(replayed, width) {
        out.write_line(line)?;
    }
    Ok(())
}

fn table_lines(replayed: &ReplayResults, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let Some(first) = replayed.rows.first() else { return lines };
    let size = format!(
        "{}, {}. The agents later needed {}, {}, {} and {}.",
        count_of(first.sessions, "session", "sessions"),
        count_of(first.requests, "request", "requests"),
        count_of(first.edit_anchors, "text to edit", "texts to edit"),
        count_of(first.strict_references, "name", "names"),
        count_of(first.copied_lines, "line to copy", "lines to copy"),
        count_of(first.errors, "error to solve", "errors to solve")
    );
    lines.extend(break_sentence(&size, width));
    let blocks =
        replayed.models.iter().flat_map(|model| replayed.budgets.iter().map(move |budget| (model, budget)));
    for (model, budget) in blocks {
        let rows: Vec<&ScoreRow> =
            replayed.rows.iter().filter(|row| row.model == model.name && row.budget == *budget).collect();
        lines.push(String::new());
        let bold = format!("{BOLD}{}{BOLD:#}", block_title(model));
        let head = block_head(model, budget.as_deref(), &rows);
        lines.extend(
            break_sentence(&head, width).iter().map(|line| line.replacen(block_title(model), &bold, 1)),
        );
        lines.extend(model_block(replayed, &rows, width));
        lines.extend(worst_sessions(&rows, width));
        lines.extend(group_blocks(replayed, &model.name, budget.as_deref(), width));
    }
    lines.push(String::new());
    let legend = describe_columns(replayed, width);
    for sentence in [legend.as_str(), CERTIFIES] {
        lines.extend(
            break_sentence(sentence, width.min(100))
                .into_iter()
                .map(|line| format!("{FAINT}{line}{FAINT:#}")),
        );
    }
    lines
}

fn count_of(count: u64, one: &str, several: &str) -> String {
    count_with_noun(usize::try_from(count).unwrap_or(usize::MAX), one, several)
}

/// Says what the headings mean that are shown in some block.
fn describe_columns(replayed: &ReplayResults, width: usize) -> String {
    let mut shown: Vec<(String, String)> = Vec::new();
    for model in &replayed.models {
        for budget in &replayed.budgets {
            let rows: Vec<&ScoreRow> =
                replayed.rows.iter().filter(|row| row.model == model.name && row.budget == *budget).collect();
            let (columns, _) = fitting_columns(&rows, width);
            let unit = model.cost_unit();
            let heads =
                columns.iter().map(|(column, _)| (in_unit(column.head, unit), in_unit(column.means, unit)));
            shown.extend(heads.filter(|head| !shown.contains(head)).collect::<Vec<_>>());
        }
    }
    let meanings: Vec<String> = shown.iter().map(|(head, means)| format!("{head}: {means}")).collect();
    format!("Against sending everything. {}.", meanings.join("; "))
}

/// Says what a block is about: whose prices, which budget, and what sending everything costs.
fn block_head(model: &Model, budget: Option<&str>, rows: &[&ScoreRow]) -> String {
    let raw = rows.first().map_or(0.0, |row| row.raw_cost);
    let name = block_title(model);
    let budget = budget.map_or_else(String::new, |budget| format!(", budget {budget}"));
    match model.cost_unit() {
        CostUnit::Dollars => format!(
            "{name}{budget}: sending everything costs ${raw:.2}; each token cached again costs {:.1} extra cache reads",
            rewrite_cost_in_reads(model)
        ),
        CostUnit::Seconds => format!(
            "{name}{budget}: sending everything takes {} of reading, at {:.0} tokens per second; a kept prefix takes none",
            format_cost(raw, CostUnit::Seconds),
            1e6 / model.prices.input
        ),
    }
}

/// Returns the name of a block: where each session has its recorded model's prices, no model is named.
fn block_title(model: &Model) -> &str {
    if model.name == RECORDED { "recorded models" } else { &model.name }
}

/// Returns a block for each group, headed by its name and how much there is of it.
fn group_blocks(replayed: &ReplayResults, model: &str, budget: Option<&str>, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for group in &replayed.groups {
        let own = group.rows.iter();
        let rows: Vec<&ScoreRow> =
            own.filter(|row| row.model == model && row.budget.as_deref() == budget).collect();
        let Some(first) = rows.first() else { continue };
        let size = format!(
            ": {}, {}",
            count_of(first.sessions, "session", "sessions"),
            count_of(first.edit_anchors, "text to edit", "texts to edit")
        );
        let name = end_of(&group.name, width.saturating_sub(size.chars().count()).max(12));
        lines.extend([String::new(), format!("{BOLD}{name}{BOLD:#}{size}")]);
        lines.extend(model_block(replayed, &rows, width));
    }
    lines
}

fn model_block(replayed: &ReplayResults, rows: &[&ScoreRow], width: usize) -> Vec<String> {
    let (columns, name) = fitting_columns(rows, width);
    let unit = rows.first().map_or(CostUnit::Dollars, |row| row.unit);
    let head = columns.iter().map(|(column, width)| (in_unit(column.head, unit), *width));
    let mut lines = vec![table_line(&pad_text("", name), head)];
    let mut family = None;
    for row in rows {
        let own =
            replayed.entrants.iter().find(|entrant| entrant.name == row.policy).map(|entrant| entrant.family);
        if family.is_some() && family != own {
            lines.push(format!("{FAINT}{}{FAINT:#}", "-".repeat(name + columns_width(&columns))));
        }
        family = own;
        let cells = columns.iter().map(|(column, width)| ((column.cell)(row), *width));
        lines.push(table_line(&pad_text(&middle_cut(&row.policy, name), name), cells));
    }
    lines
}

/// Returns the columns that there is room for, with their widths, and the width of the names.
fn fitting_columns(rows: &[&ScoreRow], width: usize) -> (Vec<(&'static ReportColumn, usize)>, usize) {
    let longest = rows.iter().map(|row| row.policy.chars().count()).max().unwrap_or_default();
    let mut name = longest.clamp(6, NAME);
    let mut columns: Vec<(&ReportColumn, usize)> =
        shown_columns(rows).map(|column| (column, column_width(column, rows))).collect();
    while name + columns_width(&columns) > width && columns.len() > 2 {
        if name > NARROW_NAME {
            name -= 1;
            continue;
        }
        let spare = columns.iter().map(|(column, _)| column.spare).max().unwrap_or_default();
        // The last of equals goes first: what is left of it is read first.
        let last = columns.iter().rposition(|(column, _)| column.spare == spare).unwrap_or_default();
        columns.remove(last);
    }
    // What the columns that went leave free is the name's again.
    name = longest.clamp(6, NAME).min(width.saturating_sub(columns_width(&columns)));
    (columns, name)
}

fn columns_width(columns: &[(&ReportColumn, usize)]) -> usize {
    columns.iter().map(|(_, width)| width + 1).sum()
}

/// Returns the columns that say something about these rows.
fn shown_columns(rows: &[&ScoreRow]) -> impl Iterator<Item = &'static ReportColumn> {
    let with_budget = rows.iter().any(|row| row.budget.is_some());
    let in_seconds = rows.iter().any(|row| row.unit == CostUnit::Seconds);
    COLUMNS.iter().filter(move |column| match column.shown {
        ColumnUse::Always => true,
        ColumnUse::WithBudget => with_budget,
        ColumnUse::InSeconds => in_seconds,
    })
}

/// Returns a text about `$` as one about what is paid.
fn in_unit(text: &str, unit: CostUnit) -> String {
    match unit {
        CostUnit::Dollars => text.to_owned(),
        CostUnit::Seconds => text.replace('$', "s"),
    }
}

fn column_width(column: &ReportColumn, rows: &[&ScoreRow]) -> usize {
    let cells = rows.iter().map(|row| (column.cell)(row).chars().count());
    cells.chain([column.head.chars().count()]).max().unwrap_or_default()
}

fn table_line(name: &str, cells: impl Iterator<Item = (String, usize)>) -> String {
    cells.fold(name.to_owned(), |mut line, (cell, width)| {
        let _ = write!(line, " {cell:>width$}");
        line
    })
}

/// Returns a name of at most so many letters that still ends in its setting.
fn middle_cut(name: &str, width: usize) -> String {
    let (head, knob) = name.find('(').map_or((name, ""), |at| name.split_at(at));
    let room = width.saturating_sub(knob.chars().count() + 1);
    if name.chars().count() <= width || room < 6 {
        return name.to_owned();
    }
    head.chars().take(room).chain(['…']).collect::<String>() + knob
}

/// Names the sessions whose cost grew the most.
fn worst_sessions(rows: &[&ScoreRow], width: usize) -> Vec<String> {
    let mut dear: Vec<&&ScoreRow> = rows.iter().filter(|row| row.worst_session_vs_raw > 1.0005).collect();
    dear.sort_by(|one, other| other.worst_session_vs_raw.total_cmp(&one.worst_session_vs_raw));
    let more = dear.len().saturating_sub(WORST);
    let named = dear.iter().take(WORST).map(|row| {
        let head =
            format!("worst session: {} % by {} in ", whole_change(row.worst_session_vs_raw), row.policy);
        let room = width.saturating_sub(head.chars().count()).max(12);
        head + &end_of(&row.worst_session, room)
    });
    let rest =
        format!("and {more} more policies that made a session more expensive; --json names the sessions");
    let rest = if more > 0 { break_sentence(&rest, width) } else { Vec::new() };
    named.chain(rest).collect()
}

/// Returns a ratio as per cent more or less.
fn percent_change(ratio: f64) -> String {
    unsign_zero(format!("{:+.1}", (ratio - 1.0) * 100.0))
}

fn whole_change(ratio: f64) -> String {
    unsign_zero(format!("{:+.0}", (ratio - 1.0) * 100.0))
}

/// Nothing has no sign.
fn unsign_zero(number: String) -> String {
    let nothing = number.chars().all(|letter| matches!(letter, '+' | '-' | '0' | '.'));
    if nothing { number.trim_start_matches(['+', '-']).to_owned() } else { number }
}

fn percent_span([low, high]: [f64; 2]) -> String {
    format!("{}…{}", whole_change(low), whole_change(high))
}

/// Returns a share that is never rounded up: `1` is all.
pub(super) fn recall_share(share: f64, of: u64) -> String {
    if of == 0 {
        return dash();
    }
    if share >= 1.0 {
        return "1".to_owned();
    }
    format!("{:.3}", (share * 1000.0).floor() / 1000.0).trim_start_matches('0').to_owned()
}

fn format_mean(number: f64) -> String {
    if number >= 100.0 { format!("{number:.0}") } else { format!("{number:.1}") }
}

fn short_number(number: f64) -> String {
    match number {
        number if number >= 9.95e5 => format!("{:.1}M", number / 1e6),
        number if number >= 9_950.0 => format!("{:.0}k", number / 1e3),
        number if number >= 999.5 => format!("{:.1}k", number / 1e3),
        number => format!("{number:.0}"),
    }
}

fn dash() -> String {
    "-".to_owned()
}

/// Breaks a sentence into lines.
fn break_sentence(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let full = lines
            .last()
            .is_some_and(|line| !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width);
        if full {
            lines.push(String::new());
        }
        let Some(line) = lines.last_mut() else { continue };
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;
    use crate::commands::replay::invented::make_up_results;

    fn check(width: usize) -> String {
        let lines: Vec<String> =
            table_lines(&make_up_results(60), width).iter().map(|line| strip_str(line).to_string()).collect();
        let widest = lines.iter().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{widest:?} of {width}:\n{}", lines.join("\n"));
        lines.join("\n")
    }

    #[test]
    fn a_wide_screen_shows_every_column() {
        let table = check(120);
        let head = table.lines().find(|line| line.contains(" edits ")).expect("a heading");
        let always = COLUMNS.iter().filter(|column| column.shown == ColumnUse::Always);
        assert!(always.into_iter().all(|column| head.contains(column.head)), "{head}");
        let words: Vec<&str> = table.split_whitespace().collect();
        assert!(words.join(" ").contains("It cannot show whether the task would"), "{table}");
    }

    #[test]
    fn a_narrow_screen_shows_what_matters_most() {
        let table = check(80);
        let head = table.lines().find(|line| line.contains(" edits ")).expect("a heading");
        for kept in ["$", "net $", "rejected", "edits", "names", "worst"] {
            assert!(head.contains(kept), "{kept}: {head}");
        }
        assert!(!head.contains("stale"));
        check(60);
    }

    #[test]
    fn a_budget_and_a_local_model_have_columns_of_their_own() {
        let mut made = make_up_results(20);
        made.models = vec![trimtab_core::prices::server_model("ollama").expect("a server")];
        made.budgets = vec![Some("25%".to_owned()), Some("64k".to_owned())];
        made.rows.retain(|row| row.model == "claude-opus-5");
        let row = |row: &ScoreRow, budget: &str| ScoreRow {
            model: made.models[0].name.clone(),
            budget: Some(budget.to_owned()),
            unit: CostUnit::Seconds,
            prefill_seconds: Some(42.0),
            bound_recall_share: Some(0.75),
            ..row.clone()
        };
        made.rows = ["25%", "64k"]
            .iter()
            .flat_map(|budget| made.rows.iter().map(|one| row(one, budget)).collect::<Vec<_>>())
            .collect();
        let lines: Vec<String> =
            table_lines(&made, 160).iter().map(|line| strip_str(line).to_string()).collect();
        let table = lines.join("\n");
        for words in [
            "budget 25%:", "budget 64k:", " s ", "net s", "wait", "cuts", "rewr", "over", "bound", ".750",
            "500 tokens per second",
        ] {
            assert!(table.contains(words), "{words}:\n{table}");
        }
    }

    #[test]
    fn figures_stand_under_each_other() {
        let table = check(120);
        let block: Vec<&str> = table.lines().skip_while(|line| !line.contains(" edits ")).take(9).collect();
        let end = block[0].find(" edits").expect("a heading") + 6;
        for row in &block[1..] {
            let cell: String = row.chars().take(end).collect::<String>().chars().rev().take(1).collect();
            assert!(cell == "1" || cell.parse::<u8>().is_ok() || cell == "-", "{row}");
        }
    }

    #[test]
    fn no_loss_is_rounded_away() {
        assert_eq!(
            [recall_share(1.0, 9), recall_share(0.9999, 9), recall_share(0.25, 4), recall_share(1.0, 0)],
            ["1", ".999", ".250", "-"]
        );
        assert_eq!(
            [percent_change(1.0), percent_change(0.786), percent_change(3.667)],
            ["0.0", "-21.4", "+266.7"]
        );
        assert_eq!(middle_cut("peer:clear-tool-uses(100000)", 22), "peer:clear-to…(100000)");
        assert_eq!([percent_change(0.99999), whole_change(1.001)], ["0.0", "0"]);
        assert_eq!(
            [short_number(12.4), short_number(1234.0), short_number(52_300.0), short_number(2.5e6)],
            ["12", "1.2k", "52k", "2.5M"]
        );
    }

    #[test]
    fn the_picture_of_a_table_stays_the_same() {
        let expected = include_str!("table.txt");
        let table = check(120) + "\n";
        if std::env::var_os("TRIMTAB_BLESS").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands/replay/table.txt");
            std::fs::write(file, &table).expect("the picture");
            return;
        }
        assert_eq!(table, expected, "run the tests once with TRIMTAB_BLESS=1");
    }
}
