//! The message that stands for a range. Takes history, facts and files, and a summary where there is one; gives its text within a
//! budget: summary, the user's words, ledger, always in this order. Never leaves out a sentence in which the user sets a limit, a
//! modified file or an open error while something less weighty has room.

use super::{check::neutralize_marks, earlier_summaries::read_back, ledger::build_ledger, range::FoldRange};
use crate::{
    count::Counter,
    facts::Facts,
    files::FileTimeline,
    history::History,
    ledger::{Ledger, Unresolved, UserMessage},
    render::{RecallHint, ledger as words},
    units::Tokens,
};

/// How many errors, other failures, commands and files read are listed at most: a screen each.
const MOST_ERRORS: usize = 8;
const MOST_FAILURES: usize = 12;
const MOST_COMMANDS: usize = 30;
const MOST_READ: usize = 60;

/// The text that stands for a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldedText {
    /// The text.
    pub text: String,
    /// What it counts.
    pub tokens: Tokens,
    /// Whether a model's summary is in it.
    pub has_summary: bool,
}

/// Writes the text that stands for a range; without a summary, the user's words and the ledger alone.
pub fn folded_text(
    history: &History,
    facts: &Facts,
    files: &FileTimeline,
    range: &FoldRange,
    summary: Option<&str>,
    budget: Tokens,
    counter: Counter,
) -> FoldedText {
    let tokens = folded_tokens(history, range, counter);
    let ledger = build_ledger(history, facts, files, range);
    folded_of(&ledger, range.messages(), tokens, summary, budget, counter, &RecallHint::default())
}

/// Writes the text that stands for a range of so many messages and tokens, of which the ledger is known.
pub(crate) fn folded_of(
    ledger: &Ledger,
    messages: usize,
    tokens: Tokens,
    summary: Option<&str>,
    budget: Tokens,
    counter: Counter,
    recall: &RecallHint,
) -> FoldedText {
    let earlier = ledger.earlier_summary.clone();
    let prose = summary.map(str::to_owned).or(earlier).map(|prose| neutralize_marks(&prose));
    let opening = words::folded_opening(ledger.last_step, messages, tokens.0);
    let mut room = RemainingRoom { left: budget, counter };
    for line in [words::BEGIN, opening.as_str(), words::END] {
        room.spend_on(line);
    }
    let mut sections = admit_sections(ledger, prose.as_deref(), &mut room, recall);
    loop {
        let text = write_sections(&opening, &sections);
        let tokens = counter.count_text(&text);
        // Parts counted alone are nearly never fewer tokens than together; where they are, the least weighty lines go.
        if tokens <= budget || !sections.iter_mut().rev().any(FoldSection::give_up) {
            let has_summary =
                sections.iter().any(|section| section.head == words::SUMMARY && !section.lines.is_empty());
            return FoldedText { text, tokens, has_summary };
        }
    }
}

/// Returns the prose of a folded message.
pub(crate) fn prose_of(text: &str) -> Option<String> {
    read_back(text)?.ledger.earlier_summary
}

/// Tells whether a folded message names everything that must not be lost: every limit and every modified file.
pub(crate) fn tells_all(ledger: &Ledger, text: &str) -> bool {
    let limits = ledger.said.iter().filter_map(UserMessage::only_limits);
    let mut sentences = limits.flat_map(|said| said.text.lines().map(str::to_owned).collect::<Vec<_>>());
    let mut files = ledger.modified.iter();
    sentences.all(|sentence| text.contains(&sentence)) && files.all(|file| text.contains(&file.path))
}

fn folded_tokens(history: &History, range: &FoldRange, counter: Counter) -> Tokens {
    let texts =
        range.folded_blocks().filter_map(|id| history.block(id)).map(|block| history.block_text(block));
    texts.map(|text| counter.count_text(&text)).sum()
}

/// What is left of the budget.
struct RemainingRoom {
    left: Tokens,
    counter: Counter,
}

impl RemainingRoom {
    /// What a line costs; the line break at its end included.
    fn line_cost(&self, line: &str) -> Tokens {
        self.counter.count_text(line) + Tokens(1)
    }

    fn spend_on(&mut self, line: &str) {
        self.left = self.left - self.line_cost(line);
    }

    /// Takes what a line costs, where at least that is left of a share of the room.
    fn take_if_fits(&mut self, line: &str) -> bool {
        let cost = self.line_cost(line);
        let fits = cost <= self.left;
        if fits {
            self.left = self.left - cost;
        }
        fits
    }
}

/// The lines below one head.
struct FoldSection {
    head: &'static str,
    lines: Vec<String>,
    /// Whether lines may go when there is no room after all.
    may_shrink: bool,
}

impl FoldSection {
    fn give_up(&mut self) -> bool {
        self.may_shrink && self.lines.pop().is_some()
    }
}

/// Chooses what there is room for, the weightiest first; gives the sections in their order.
fn admit_sections(
    ledger: &Ledger,
    prose: Option<&str>,
    room: &mut RemainingRoom,
    recall: &RecallHint,
) -> Vec<FoldSection> {
    let unresolved = |error: &Unresolved| words::unresolved_lines(error, recall);
    let limits: Vec<Option<UserMessage>> = admit_limits(ledger, room, recall);
    let modified = admit_modified(ledger, room);
    let errors = admit_newest(ledger.errors.iter().map(unresolved), MOST_ERRORS, words::ERRORS, room);
    let instructions = admit_instructions(ledger, room, recall);
    let open = admit_oldest(ledger.open.iter().map(words::open_item), words::OPEN, room);
    let summary = prose.map(|prose| admit_summary(prose, room)).unwrap_or_default();
    let said = admit_messages(ledger, &limits, room, recall);
    let last_words = last_words(ledger, room);
    let failures =
        admit_newest(ledger.other_failures.iter().map(unresolved), MOST_FAILURES, words::FAILURES, room);
    let commands =
        admit_newest(ledger.commands.iter().map(words::command_line), MOST_COMMANDS, words::COMMANDS, room);
    let read =
        admit_newest(ledger.read.iter().map(|file| words::read(file, recall)), MOST_READ, words::READ, room);
    let section = |head, lines, may_shrink| FoldSection { head, lines, may_shrink };
    vec![
        section(words::SUMMARY, summary, false),
        section(words::SAID, said, false),
        section(words::INSTRUCTIONS, instructions, false),
        section(words::MODIFIED, modified, false),
        section(words::ERRORS, errors, true),
        section(words::OPEN, open, true),
        section(words::LAST_WORDS, last_words, true),
        section(words::FAILURES, failures, true),
        section(words::COMMANDS, commands, true),
        section(words::READ, read, true),
    ]
}

fn write_sections(opening: &str, sections: &[FoldSection]) -> String {
    let mut text = format!("{}\n{opening}\n", words::BEGIN);
    for section in sections.iter().filter(|section| !section.lines.is_empty()) {
        text = text + "\n" + section.head + "\n" + &section.lines.join("\n") + "\n";
    }
    text + "\n" + words::END
}

/// Takes room for the sentences that set limits, the newest message first.
fn admit_limits(ledger: &Ledger, room: &mut RemainingRoom, recall: &RecallHint) -> Vec<Option<UserMessage>> {
    room.spend_on(words::SAID);
    let mut limits: Vec<Option<UserMessage>> = Vec::new();
    for said in ledger.said.iter().rev() {
        limits.push(said.only_limits().filter(|limits| room.take_if_fits(&quote_message(limits, recall))));
    }
    limits.reverse();
    limits
}

/// Takes room for whole messages: the first, then the newest. A message without room stays by its limits.
fn admit_messages(
    ledger: &Ledger,
    limits: &[Option<UserMessage>],
    room: &mut RemainingRoom,
    recall: &RecallHint,
) -> Vec<String> {
    let quoted = |said: &UserMessage| quote_message(said, recall);
    let mut lines: Vec<Option<String>> = limits.iter().map(|limits| limits.as_ref().map(quoted)).collect();
    let newest = (1..ledger.said.len()).rev();
    for index in std::iter::once(0).chain(newest) {
        let Some(whole) = ledger.said.get(index).map(quoted) else { continue };
        let Some(slot) = lines.get_mut(index) else { continue };
        let already = slot.as_ref().map_or(Tokens::ZERO, |line| room.line_cost(line));
        let more = room.line_cost(&whole) - already;
        if more <= room.left {
            room.left = room.left - more;
            *slot = Some(whole);
        }
    }
    let unsaid: Vec<u32> = ledger
        .said
        .iter()
        .zip(&lines)
        .filter(|(_, line)| line.is_none())
        .map(|(said, _)| said.step)
        .collect();
    let mut lines: Vec<String> = lines.into_iter().flatten().collect();
    if !unsaid.is_empty() {
        lines.push(words::unsaid_note(&unsaid));
    }
    lines
}

fn quote_message(said: &UserMessage, recall: &RecallHint) -> String {
    format!("{}\n{}", words::said_head(said, recall), words::quote_user(&said.text))
}

/// Takes room for the files modified: with what is known about them, or else by their names.
fn admit_modified(ledger: &Ledger, room: &mut RemainingRoom) -> Vec<String> {
    if ledger.modified.is_empty() {
        return Vec::new();
    }
    room.spend_on(words::MODIFIED);
    let full: Vec<String> = ledger.modified.iter().map(words::modified_line).collect();
    let cost: Tokens = full.iter().map(|line| room.line_cost(line)).sum();
    if cost <= room.left.scale(0.5) {
        room.left = room.left - cost;
        return full;
    }
    let short: Vec<String> = ledger.modified.iter().rev().map(words::modified_shortly).collect();
    let mut lines: Vec<String> = short.into_iter().filter(|line| room.take_if_fits(line)).collect();
    lines.reverse();
    let left_out = ledger.modified.len() - lines.len();
    if left_out > 0 {
        lines.push(words::more_note(left_out));
    }
    lines
}

/// Takes room for instructions that tools brought in, the newest first: whole within half of what is left, or else by the
/// sentences in which they set limits, or else by name.
fn admit_instructions(ledger: &Ledger, room: &mut RemainingRoom, recall: &RecallHint) -> Vec<String> {
    if ledger.instructions.is_empty() {
        return Vec::new();
    }
    room.spend_on(words::INSTRUCTIONS);
    let most = room.left.scale(0.5);
    let floor = room.left - most;
    let mut lines = Vec::new();
    for given in ledger.instructions.iter().rev() {
        let ways = [given.clone(), given.only_limits(), given.only_name()]
            .map(|given| words::instruction_lines(&given, recall));
        lines.extend(
            ways.into_iter().find(|way| room.left >= floor + room.line_cost(way) && room.take_if_fits(way)),
        );
    }
    lines.reverse();
    lines
}

/// Takes room for the newest lines; gives them oldest first.
fn admit_newest(
    all: impl DoubleEndedIterator<Item = String> + ExactSizeIterator,
    most: usize,
    head: &str,
    room: &mut RemainingRoom,
) -> Vec<String> {
    let count = all.len();
    if count == 0 {
        return Vec::new();
    }
    room.spend_on(head);
    let mut lines: Vec<String> = all.rev().take(most).take_while(|line| room.take_if_fits(line)).collect();
    let left_out = count - lines.len();
    if left_out > 0 && !lines.is_empty() {
        lines.push(words::more_note(left_out));
    }
    lines.reverse();
    lines
}

fn admit_oldest(all: impl Iterator<Item = String>, head: &str, room: &mut RemainingRoom) -> Vec<String> {
    let mut lines = Vec::new();
    for line in all {
        if lines.is_empty() {
            room.spend_on(head);
        }
        if room.take_if_fits(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Takes room for the summary: whole, or as many of its first lines as there is room for.
fn admit_summary(prose: &str, room: &mut RemainingRoom) -> Vec<String> {
    room.spend_on(words::SUMMARY);
    let all: Vec<&str> = prose.lines().collect();
    let mut lines: Vec<String> =
        all.iter().take_while(|line| room.take_if_fits(line)).map(|&line| line.to_owned()).collect();
    let left_out = all.len() - lines.len();
    if left_out > 0 && !lines.is_empty() {
        lines.push(words::summary_cut(left_out));
    }
    lines
}

fn last_words(ledger: &Ledger, room: &mut RemainingRoom) -> Vec<String> {
    if ledger.last_words.is_empty() {
        return Vec::new();
    }
    let quoted = words::quote_data(&ledger.last_words.join("\n"));
    room.spend_on(words::LAST_WORDS);
    if room.take_if_fits(&quoted) { vec![quoted] } else { Vec::new() }
}
