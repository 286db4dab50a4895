//! Prints what the facts stage tells about a folder of recordings: blocks by kind of tool and agent, the share of call
//! bytes whose kind or subject could not be told, the commonest unknowns, and how outcomes agree with recorded flags.
//!
//! `cargo run --release -p trimtab --example facts_table -- FOLDER`

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use trimtab::{BlockId, BlockKind, Facts, History, Outcome, Subject, ToolKind};

#[derive(Default)]
struct Table {
    blocks: BTreeMap<(String, &'static str), u64>,
    bytes: BTreeMap<String, [u64; 3]>,
    unknown: BTreeMap<String, (u64, u64)>,
    runs: BTreeMap<String, (u64, u64)>,
    outcomes: BTreeMap<(String, &'static str, &'static str), u64>,
    disagreements: BTreeMap<String, u64>,
    superseded: BTreeMap<&'static str, (u64, u64)>,
    identical: u64,
    result_bytes: u64,
    rooted: u64,
    histories: u64,
}

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let mut table = Table::default();
    for path in files(Path::new(&folder)) {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let Ok(recording) = trimtab::read(&bytes) else { continue };
        for segment in &recording.segments {
            let facts = trimtab::facts(&segment.history);
            table.add(recording.agent, &segment.history, &facts);
        }
    }
    table.print();
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

impl Table {
    fn add(&mut self, agent: &str, history: &History, facts: &Facts) {
        self.histories += 1;
        self.rooted += u64::from(facts.root().is_some());
        for (index, (block, fact)) in history.blocks().iter().zip(facts.rows()).enumerate() {
            let size = u64::try_from(block.span.len()).unwrap_or(0);
            if fact.acts_as == BlockKind::Result {
                self.result_bytes += size;
                self.identical += if fact.identical_to.is_some() { size } else { 0 };
            }
            if let Some((_, rule)) = fact.superseded_by {
                let entry = self.superseded.entry(rule.name()).or_default();
                entry.0 += 1;
                entry.1 += size;
            }
            if fact.acts_as == BlockKind::Call {
                self.add_call(agent, history, facts, index, size);
            }
            if fact.acts_as == BlockKind::Result && block.kind == BlockKind::Result {
                let flag = if block.failed { "flagged" } else { "not flagged" };
                *self.outcomes.entry((agent.to_owned(), flag, fact.outcome.name())).or_default() += 1;
                if !block.failed && fact.outcome == Outcome::Failed {
                    let text: String = history.block_text(block).chars().take(70).collect();
                    *self
                        .disagreements
                        .entry(format!("{agent} {} {text:?}", fact.tool().map_or("", ToolKind::name)))
                        .or_default() += 1;
                }
            }
        }
    }

    fn add_call(&mut self, agent: &str, history: &History, facts: &Facts, index: usize, size: u64) {
        let Some(fact) = facts.rows().get(index) else { return };
        let kind = fact.tool().unwrap_or(ToolKind::Other);
        *self.blocks.entry((agent.to_owned(), kind.name())).or_default() += 1;
        let result = fact.partner.and_then(|partner| facts.row(partner));
        // The result counts with its call: its size is what a policy decides about.
        let answer = fact.partner.and_then(|partner| history.block(partner));
        let size = size + answer.map_or(0, |block| u64::try_from(block.span.len()).unwrap_or(0));
        let subject = result.map_or(fact.subject(), |result| result.subject());
        let needs_subject =
            !matches!(kind, ToolKind::Todo | ToolKind::Ask | ToolKind::Think | ToolKind::Other);
        let bytes = self.bytes.entry(agent.to_owned()).or_default();
        let id = BlockId(u32::try_from(index).unwrap_or(u32::MAX));
        let block = history.block(id);
        let name = block.and_then(|block| history.tool_name(block)).unwrap_or_default().into_owned();
        let [all, no_kind, no_subject] = bytes;
        *all += size;
        *no_kind += if kind == ToolKind::Other { size } else { 0 };
        *no_subject += if needs_subject && *subject == Subject::Nothing { size } else { 0 };
        if kind == ToolKind::Other || (needs_subject && *subject == Subject::Nothing) {
            let entry = self.unknown.entry(format!("{agent} {name} ({})", kind.name())).or_default();
            entry.0 += 1;
            entry.1 += size;
        }
        if kind == ToolKind::Run {
            let text = subject.to_string();
            let program: String =
                text.trim_start_matches("$ ").split(' ').take(2).collect::<Vec<_>>().join(" ");
            let entry = self.runs.entry(program).or_default();
            entry.0 += 1;
            entry.1 += size;
        }
    }

    fn print(&self) {
        println!("calls by kind and agent");
        let agents: Vec<&String> = self.bytes.keys().collect();
        print!("{:12}", "");
        agents.iter().for_each(|agent| print!("{agent:>15}"));
        println!();
        for kind in ToolKind::ALL {
            print!("{:12}", kind.name());
            for agent in &agents {
                let count = self.blocks.get(&((*agent).clone(), kind.name())).copied().unwrap_or(0);
                print!("{count:>15}");
            }
            println!();
        }
        println!(
            "\nshare of call and result bytes (tokens are about a fourth) without kind, without subject"
        );
        let mut sum = [0_u64; 3];
        for (agent, bytes) in &self.bytes {
            sum.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum += bytes);
            print_share(agent, bytes);
        }
        print_share("all", &sum);
        print_top("unknown", &self.unknown, 25);
        print_top("programs that are run", &self.runs, 40);
        println!("\noutcome by recorded flag");
        for ((agent, flag, outcome), count) in &self.outcomes {
            println!("{agent:15} {flag:12} {outcome:10} {count:>7}");
        }
        println!("\nfailed without a flag");
        let mut all: Vec<(&String, &u64)> = self.disagreements.iter().collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (what, count) in all.into_iter().take(25) {
            println!("{count:>5} {what}");
        }
        println!(
            "\nsuperseded blocks, bytes; {} result bytes, {} in repeated results",
            self.result_bytes, self.identical
        );
        for (rule, (count, bytes)) in &self.superseded {
            println!("{rule:20} {count:>6} {bytes:>10}");
        }
        println!("\nhistories with a known root: {} of {}", self.rooted, self.histories);
    }
}

fn print_share(agent: &str, bytes: &[u64; 3]) {
    let [all, no_kind, no_subject] = bytes;
    let share = |part: &u64| if *all == 0 { 0 } else { part * 10_000 / all };
    let (kind, subject) = (share(no_kind), share(no_subject));
    println!(
        "{agent:15} {all:>11} bytes {:>4}.{:02} % {:>4}.{:02} %",
        kind / 100,
        kind % 100,
        subject / 100,
        subject % 100
    );
}

fn print_top(title: &str, map: &BTreeMap<String, (u64, u64)>, most: usize) {
    println!("\n{title} (calls, bytes)");
    let mut all: Vec<(&String, &(u64, u64))> = map.iter().collect();
    all.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
    for (name, (count, bytes)) in all.into_iter().take(most) {
        println!("{count:>6} {bytes:>10}  {name}");
    }
}
