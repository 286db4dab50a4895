//! Which part of a conversation may be folded. Takes a history and its facts; gives the places where it may be cut and, for one
//! of them, what goes and what stays in place: system, instructions, what was said before the first step, the current task.
//! Never cuts between a call and its result, inside a step, or in front of the latest answer.

use std::ops::Range;

use super::earlier_summaries::read_back;
use crate::{
    count::Counts,
    facts::{Fact, Facts, Voice},
    history::{BlockId, BlockKind, Entry, EntryId, Format, History, Role},
    identity::{ChainHash, chain},
    json::{narrow, widen},
    units::Tokens,
};

/// The longest text before the first step that stays in place besides the first words, in bytes of JSON: about 4,000 tokens. A
/// longer text is a pasted log or file, and is quoted within the budget like everything else that was said.
const LONGEST_HEAD: usize = 16 * 1024;

/// A part of a conversation, from its first message on, that one message can take the place of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldRange {
    messages: usize,
    blocks: Range<u32>,
    kept: Vec<BlockId>,
    covers: ChainHash,
}

impl FoldRange {
    /// Makes the range of the first `messages` messages; nothing where it may not be cut there.
    pub fn new(history: &History, facts: &Facts, messages: usize) -> Option<FoldRange> {
        let cuts = legal_cuts(history, facts);
        cuts.contains(&messages).then(|| FoldRange::cut_at(history, facts, messages, &chain(history)))
    }

    fn cut_at(history: &History, facts: &Facts, messages: usize, chain: &[ChainHash]) -> FoldRange {
        let all = history.messages();
        let first = all.first().map_or(0, |entry| entry.first_block);
        let end = first_block(history, messages);
        let stays = stays_by_block(history, facts);
        let kept = (first..end).map(BlockId).filter(|id| stays.get(widen(id.0)) == Some(&true)).collect();
        let last = widen(end).checked_sub(1).and_then(|last| chain.get(last).copied());
        FoldRange { messages, blocks: first..end, kept, covers: last.unwrap_or(ChainHash([0; 16])) }
    }

    /// Returns how many messages it spans.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Returns the identity of its last block.
    pub fn covers(&self) -> ChainHash {
        self.covers
    }

    /// Returns the blocks in it that stay where they are.
    pub fn kept_blocks(&self) -> &[BlockId] {
        &self.kept
    }

    /// Tells whether a block goes.
    pub fn folds(&self, id: BlockId) -> bool {
        self.blocks.contains(&id.0) && self.kept.binary_search(&id).is_err()
    }

    /// Returns the blocks that go, in order.
    pub fn folded_blocks(&self) -> impl Iterator<Item = BlockId> {
        self.blocks.clone().map(BlockId).filter(|id| self.folds(*id))
    }

    /// Returns how many tokens go.
    pub fn tokens(&self, counts: &Counts) -> Tokens {
        self.folded_blocks().filter_map(|id| counts.blocks().get(widen(id.0))).copied().sum()
    }

    /// Keeps those of the user's messages that are longer than the message that would quote them may be.
    pub fn keeping_long_words(self, facts: &Facts, tokens: &[Tokens], room: Tokens) -> FoldRange {
        let is_long = |id: BlockId| tokens.get(widen(id.0)).is_some_and(|tokens| *tokens >= room);
        let said = |row: &Fact| row.role == Role::User && row.acts_as == BlockKind::Text;
        self.with_kept(|id| {
            is_long(id) && facts.row(id).is_some_and(|row| said(row) && row.voice == Some(Voice::Person))
        })
    }

    /// Lets more blocks stay where they are.
    pub(crate) fn with_kept(mut self, stays: impl Fn(BlockId) -> bool) -> FoldRange {
        let first = self.blocks.start;
        self.kept = (first..self.blocks.end)
            .map(BlockId)
            .filter(|id| self.kept.binary_search(id).is_ok() || stays(*id))
            .collect();
        self
    }

    /// Returns the range that ends with a block; nothing if it may not be cut after it.
    pub(crate) fn ending_with(
        history: &History,
        facts: &Facts,
        last: BlockId,
        chain: &[ChainHash],
    ) -> Option<FoldRange> {
        let behind = |messages: &usize| first_block(history, *messages) == last.0 + 1;
        let cut = legal_cuts(history, facts).into_iter().find(behind)?;
        Some(FoldRange::cut_at(history, facts, cut, chain))
    }

    /// Returns the first block after it.
    pub(crate) fn end(&self) -> BlockId {
        BlockId(self.blocks.end)
    }

    /// Returns its first message; not the conversation's first for a part of a range.
    pub(super) fn first_message(&self, history: &History) -> usize {
        history.messages().partition_point(|entry| entry.first_block < self.blocks.start)
    }

    /// Returns the blocks in it, removed or not.
    pub(super) fn blocks(&self) -> impl Iterator<Item = BlockId> {
        self.blocks.clone().map(BlockId)
    }

    /// Returns the part of it that spans these messages.
    pub(super) fn part_of(&self, history: &History, messages: &Range<usize>) -> FoldRange {
        let blocks = first_block(history, messages.start)..first_block(history, messages.end);
        let kept = self.kept.iter().copied().filter(|id| blocks.contains(&id.0)).collect();
        FoldRange { messages: messages.end, blocks, kept, covers: self.covers }
    }
}

/// Returns the numbers of messages after which a conversation may be cut, ascending.
pub fn legal_cuts(history: &History, facts: &Facts) -> Vec<usize> {
    let messages = history.messages();
    let stays = stays_by_block(history, facts);
    let kept = |id: BlockId| stays.get(widen(id.0)).copied().unwrap_or_default();
    let barrier = first_barrier(history, facts, &kept);
    let latest = latest_step(history);
    let thinking = ThinkingRule::from_history(history);
    // The furthest block that something before a cut belongs to.
    let mut reach = 0;
    let mut cuts = Vec::new();
    if history.message_list().is_none() {
        return cuts;
    }
    for (index, entry) in messages.iter().enumerate() {
        let first = entry.first_block;
        let begins = index > 0 && begins_unit(history, facts, messages, index);
        if begins && reach < first && first <= barrier && index <= latest && thinking.allows(history, index) {
            cuts.push(index);
        }
        let partners = (first..first + entry.blocks)
            .filter_map(|block| facts.row(BlockId(block))?.partner)
            .map(|id| id.0);
        reach = partners.fold(reach, u32::max);
    }
    cuts
}

/// Chooses the range that leaves at most `tail` tokens after it; the longest possible where none does. Nothing where nothing new
/// would go.
pub fn fold_range(history: &History, facts: &Facts, counts: &Counts, tail: Tokens) -> Option<FoldRange> {
    let range = choose_range(history, facts, counts.blocks(), tail, &chain(history), &|_| true)?;
    let is_new = |id: BlockId| facts.row(id).is_some_and(|row| row.voice != Some(Voice::Summary));
    let worth = range.folded_blocks().any(is_new);
    worth.then_some(range)
}

/// Does the same with what each block counts as it is sent, at the cuts that `allowed` allows.
pub(crate) fn choose_range(
    history: &History,
    facts: &Facts,
    tokens: &[Tokens],
    tail: Tokens,
    chain: &[ChainHash],
    allowed: &dyn Fn(usize) -> bool,
) -> Option<FoldRange> {
    let cuts = legal_cuts(history, facts);
    let behind = |messages: usize| -> Tokens {
        tokens.get(widen(first_block(history, messages))..).unwrap_or_default().iter().copied().sum()
    };
    // The tail only gets shorter from cut to cut.
    let (long, short) = cuts.split_at(cuts.partition_point(|cut| behind(*cut) > tail));
    let chosen = short.iter().chain(long.iter().rev()).find(|cut| allowed(**cut))?;
    Some(FoldRange::cut_at(history, facts, *chosen, chain))
}

/// What a folded message and what follows it may count where no budget says: the figures of a session that is folded at
/// 150,000 tokens and goes on for long enough to pay for it.
const ROOM: Tokens = Tokens(8_000);
const TAIL: Tokens = Tokens(20_000);

/// How much a folded message may count, and what is kept after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldSizes {
    /// What the folded message may count.
    pub room: Tokens,
    /// What is left unchanged after it.
    pub tail: Tokens,
}

/// Divides a budget for a whole request between what is folded and what follows it, once what cannot be folded is paid for.
pub fn fold_sizes(history: &History, facts: &Facts, counts: &Counts, budget: Option<Tokens>) -> FoldSizes {
    let Some(budget) = budget else { return FoldSizes { room: ROOM, tail: TAIL } };
    fold_sizes_for(history, facts, counts.blocks(), counts.total(), budget)
}

/// Does the same with what each block counts as it is sent.
pub(crate) fn fold_sizes_for(
    history: &History,
    facts: &Facts,
    tokens: &[Tokens],
    total: Tokens,
    budget: Tokens,
) -> FoldSizes {
    let stays = stays_by_block(history, facts);
    let first = history.messages().first().map_or(usize::MAX, |entry| widen(entry.first_block));
    let blocks = tokens.iter().zip(&stays).enumerate();
    let foldable: Tokens = blocks
        .filter(|(index, (_, stays))| *index >= first && !**stays)
        .map(|(_, (tokens, _))| *tokens)
        .sum();
    let free = budget - (total - foldable);
    let room = free.scale(0.35).min(ROOM);
    FoldSizes { room, tail: free - room }
}

fn first_block(history: &History, message: usize) -> u32 {
    match history.messages().get(message) {
        Some(entry) => entry.first_block,
        None => narrow(history.blocks().len()),
    }
}

/// A cut precedes a step of the model, or before words that are no tool's.
fn begins_unit(history: &History, facts: &Facts, messages: &[Entry], index: usize) -> bool {
    let (Some(entry), Some(before)) =
        (messages.get(index), index.checked_sub(1).and_then(|at| messages.get(at)))
    else {
        return false;
    };
    match entry.role {
        Role::Assistant => entry.step > before.step,
        Role::User => {
            let ids = entry.first_block..entry.first_block + entry.blocks;
            let answers =
                |id: u32| facts.row(BlockId(id)).is_some_and(|row| row.acts_as == BlockKind::Result);
            !history.blocks_of(entry).is_empty() && !ids.into_iter().any(answers)
        }
        Role::Tools | Role::System | Role::Tool | Role::Other => false,
    }
}

/// Returns the first message of the latest step: it is left unchanged.
fn latest_step(history: &History) -> usize {
    let messages = history.messages();
    let Some(last) = messages.last().map(|entry| entry.step) else { return 0 };
    // Words after the latest answer open a new turn: what comes before them is done.
    if messages.last().is_some_and(|entry| entry.role == Role::User && !holds_result(history, entry)) {
        return messages.len() - 1;
    }
    messages.iter().position(|entry| entry.step == last && entry.role == Role::Assistant).unwrap_or_default()
}

fn holds_result(history: &History, entry: &Entry) -> bool {
    history.blocks_of(entry).iter().any(|block| block.kind == BlockKind::Result)
}

/// Tells for every block whether it stays where it is.
fn stays_by_block(history: &History, facts: &Facts) -> Vec<bool> {
    let task = facts.current_task();
    // In a run without a person everything hangs on the first words, however long they are.
    let person = |row: &&Fact| row.voice == Some(Voice::Person) && row.acts_as != BlockKind::Result;
    let first = facts.rows().iter().find(person).map(|row| row.entry);
    // Where another tool's summary is all that was said, it is the task.
    let only = if first.is_none() { foreign_summary(history, facts) } else { None };
    let mut stays = vec![false; history.blocks().len()];
    for entry in history.messages() {
        let unknown = history.blocks_of(entry).iter().any(|block| block.kind == BlockKind::Unknown);
        let whole = matches!(entry.role, Role::System | Role::Tools | Role::Other)
            || (unknown && matches!(entry.role, Role::Assistant | Role::Tool));
        for (id, block) in (entry.first_block..).map(BlockId).zip(history.blocks_of(entry)) {
            let Some(row) = facts.row(id) else { continue };
            let said =
                entry.role == Role::User || (entry.role == Role::Tool && block.kind == BlockKind::Text);
            let of_task = task == Some(row.entry) || first == Some(row.entry);
            let short = block.kind == BlockKind::Media || block.span.len() <= LONGEST_HEAD;
            let words = said
                && row.acts_as != BlockKind::Result
                && (row.voice != Some(Voice::Summary) || only == Some(row.entry))
                && (of_task
                    || only == Some(row.entry)
                    || row.instructions
                    || row.voice == Some(Voice::Instructions)
                    || (entry.step == 0 && short));
            let stay = whole || words || block.kind == BlockKind::Unknown;
            if let Some(slot) = stays.get_mut(widen(id.0)) {
                *slot |= stay;
            }
        }
        if whole && matches!(entry.role, Role::Assistant | Role::Tool) {
            keep_step(history, entry.step, &mut stays);
        }
    }
    stays
}

/// Returns the first message with a summary that is none of ours.
fn foreign_summary(history: &History, facts: &Facts) -> Option<EntryId> {
    let is_foreign = |(id, row): &(BlockId, &Fact)| {
        let block = history.block(*id).filter(|_| {
            row.role == Role::User && row.voice == Some(Voice::Summary) && row.acts_as == BlockKind::Text
        });
        block.is_some_and(|block| read_back(&history.block_text(block)).is_none())
    };
    let rows = (0..).map(BlockId).zip(facts.rows());
    rows.into_iter().find(is_foreign).map(|(_, row)| row.entry)
}

/// Keeps a whole step, calls and results: nothing in it can go alone.
fn keep_step(history: &History, step: u32, stays: &mut [bool]) {
    let of_step =
        |entry: &&Entry| entry.step == step && (entry.role != Role::User || holds_result(history, entry));
    for entry in history.messages().iter().filter(of_step) {
        for block in entry.first_block..entry.first_block + entry.blocks {
            if let Some(slot) = stays.get_mut(widen(block)) {
                *slot = true;
            }
        }
    }
}

/// Returns the first block that no cut may follow: one that stays although its other half goes, or a step of the model
/// that stays where the format wants messages to alternate or the user to begin.
fn first_barrier(history: &History, facts: &Facts, kept: &impl Fn(BlockId) -> bool) -> u32 {
    let strict = matches!(history.format(), Format::Anthropic | Format::Gemini);
    let mut spoken = false;
    for entry in history.messages() {
        for id in (entry.first_block..entry.first_block + entry.blocks).map(BlockId) {
            let torn =
                facts.row(id).and_then(|row| row.partner).is_some_and(|partner| kept(partner) != kept(id));
            let alone = entry.role == Role::Assistant
                && kept(id)
                && strict
                && (!spoken || history.format() == Format::Gemini);
            if torn || alone {
                return id.0;
            }
            spoken |= kept(id) && entry.role == Role::User;
        }
    }
    u32::MAX
}

/// With thinking switched on, a running tool loop must begin with the model's thinking; after a folded part it begins with
/// the first call that is left.
struct ThinkingRule {
    /// The messages after the last words that are no tool's, where that rule counts.
    loop_start: Option<usize>,
}

impl ThinkingRule {
    fn from_history(history: &History) -> ThinkingRule {
        let messages = history.messages();
        let human =
            messages.iter().rposition(|entry| entry.role == Role::User && !holds_result(history, entry));
        let start = human.map_or(0, |at| at + 1);
        let thinks = first_call(history, start).is_some_and(|entry| begins_thinking(history, entry));
        ThinkingRule { loop_start: (history.format() == Format::Anthropic && thinks).then_some(start) }
    }

    fn allows(&self, history: &History, cut: usize) -> bool {
        let inside = self.loop_start.is_some_and(|start| cut >= start);
        !inside || first_call(history, cut).is_none_or(|entry| begins_thinking(history, entry))
    }
}

fn first_call(history: &History, from: usize) -> Option<&Entry> {
    let calls = |entry: &&Entry| {
        entry.role == Role::Assistant
            && history.blocks_of(entry).iter().any(|block| block.kind == BlockKind::Call && !block.by_server)
    };
    history.messages().get(from..)?.iter().find(calls)
}

fn begins_thinking(history: &History, entry: &Entry) -> bool {
    history.blocks_of(entry).first().is_some_and(|block| block.kind == BlockKind::Reasoning)
}
