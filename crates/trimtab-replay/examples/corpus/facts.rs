//! What calls are about: calls per kind of tool and agent, and the share of their tokens whose kind or subject is
//! unknown, with the commonest of those. A call counts with its result: that is what is decided about.

use std::collections::{BTreeMap, HashSet};

use trimtab_core::{
    BlockId, BlockKind, CountMemo, Counter, Facts, History, Tokens, facts,
    facts::{Fact, Subject, ToolKind},
};
use trimtab_replay::Segment;

use crate::files::File;

/// How many of the commonest unknowns are printed.
const MOST: usize = 15;

/// The share of tokens that may be unknown, tools that are genuinely unknown left out.
const GOAL: f64 = 0.03;

#[derive(Default)]
struct Row {
    calls: BTreeMap<ToolKind, usize>,
    tokens: u64,
    /// Tokens of tools that are known by name or arguments, but whose kind or subject is unknown.
    unknown: u64,
    /// Tokens of tools of which neither the name nor the arguments say what they do.
    foreign: u64,
}

/// Prints the table; tells whether the goal is met.
pub(crate) fn table(files: &[File]) -> bool {
    println!("\nFacts: calls by kind of tool and agent\n");
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut unknown: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    let mut memo = CountMemo::default();
    for recording in files.iter().filter_map(|file| file.recording.as_ref().ok()) {
        let row = rows.entry(recording.agent).or_default();
        let mut judged = HashSet::new();
        for segment in &recording.segments {
            add(recording.agent, segment, &mut judged, &mut memo, row, &mut unknown);
        }
    }
    print_kinds(&rows);
    println!(
        "\n{:15} {:>12} {:>12} {:>9} {:>16} {:>9}",
        "agent", "call tokens", "not told", "share", "unknown tools", "share"
    );
    let mut all = Row::default();
    for (agent, row) in &rows {
        print_share(agent, row);
        all.tokens += row.tokens;
        all.unknown += row.unknown;
        all.foreign += row.foreign;
    }
    print_share("all", &all);
    println!("\nThe commonest calls whose kind or subject could not be told (calls, tokens):");
    let mut list: Vec<(&String, &(usize, u64))> = unknown.iter().collect();
    list.sort_by_key(|(_, (_, tokens))| std::cmp::Reverse(*tokens));
    for (name, (calls, tokens)) in list.into_iter().take(MOST) {
        println!("{calls:>6} {tokens:>10}  {name}");
    }
    (all.unknown as f64) < GOAL * all.tokens as f64
}

fn add(
    agent: &str,
    segment: &Segment,
    judged: &mut HashSet<([u8; 16], Option<[u8; 16]>)>,
    memo: &mut CountMemo,
    row: &mut Row,
    unknown: &mut BTreeMap<String, (usize, u64)>,
) {
    let history = &segment.history;
    let model = segment.points.iter().find_map(|point| point.model.clone());
    let model = model.or_else(|| history.model().map(std::borrow::Cow::into_owned)).unwrap_or_default();
    let counts = Counter::for_model(&model).count_request(history, memo);
    let facts = facts(history);
    for (index, fact) in facts.rows().iter().enumerate() {
        if fact.acts_as != BlockKind::Call {
            continue;
        }
        let result = fact.partner.and_then(|partner| facts.row(partner));
        if !judged.insert((fact.digest, result.map(|result| result.digest))) {
            continue;
        }
        let tokens = |index: usize| counts.blocks().get(index).copied().unwrap_or_default();
        let answer = fact.partner.map_or(Tokens::ZERO, |partner| tokens(partner.0 as usize));
        let Tokens(tokens) = tokens(index) + answer;
        *row.calls.entry(fact.tool().unwrap_or(ToolKind::Other)).or_default() += 1;
        row.tokens += tokens;
        let Some(name) = not_told(history, &facts, index, fact) else { continue };
        match name {
            NotTold::Foreign(_) => row.foreign += tokens,
            NotTold::Subject(_) => row.unknown += tokens,
        }
        let (NotTold::Foreign(name) | NotTold::Subject(name)) = name;
        let found = unknown.entry(format!("{agent}: {name}")).or_default();
        found.0 += 1;
        found.1 += tokens;
    }
}

enum NotTold {
    Foreign(String),
    Subject(String),
}

fn not_told(history: &History, facts: &Facts, index: usize, fact: &Fact) -> Option<NotTold> {
    let kind = fact.tool().unwrap_or(ToolKind::Other);
    let block = history.block(BlockId(u32::try_from(index).ok()?))?;
    let name = history.tool_name(block).unwrap_or_default().into_owned();
    if kind == ToolKind::Other {
        return Some(NotTold::Foreign(format!("{name} (a tool of unknown kind)")));
    }
    let subject = fact.partner.and_then(|partner| facts.row(partner)).unwrap_or(fact).subject();
    let needs_subject = !matches!(kind, ToolKind::Todo | ToolKind::Ask | ToolKind::Think);
    (needs_subject && *subject == Subject::Nothing)
        .then(|| NotTold::Subject(format!("{name} ({} without a subject)", kind.name())))
}

fn print_kinds(rows: &BTreeMap<&str, Row>) {
    print!("{:10}", "kind");
    rows.keys().for_each(|agent| print!(" {agent:>15}"));
    println!();
    for kind in ToolKind::ALL {
        print!("{:10}", kind.name());
        rows.values().for_each(|row| print!(" {:>15}", row.calls.get(&kind).copied().unwrap_or(0)));
        println!();
    }
}

fn print_share(agent: &str, row: &Row) {
    let share = |part: u64| part as f64 / row.tokens.max(1) as f64 * 100.0;
    println!(
        "{agent:15} {:>12} {:>12} {:>7.2} % {:>16} {:>7.2} %",
        row.tokens,
        row.unknown,
        share(row.unknown),
        row.foreign,
        share(row.foreign)
    );
}
