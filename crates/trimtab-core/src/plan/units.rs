//! What can leave a conversation only together. Takes a history and the rows about it; gives its messages in units: a
//! person's words, an answer, an exchange (calls, their results, the reasoning bound to them). Never decides which
//! unit goes: it says which may, and which blocks go with it.

use crate::{
    facts::{Facts, Voice},
    history::{Block, BlockId, BlockKind, Blocks, Entry, Format, History, Role, roles_alternate},
    json::widen,
};

/// Messages that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageUnit {
    pub(crate) kind: UnitKind,
    /// The step it belongs to.
    pub(crate) step: u32,
    /// The blocks that go when it goes, in order.
    pub(crate) blocks: Vec<BlockId>,
    /// Whether the protocol allows the conversation without it.
    pub(crate) may_go: bool,
    /// The turn it belongs to: the number of times the user spoke up to here.
    pub(crate) turn: u32,
    /// Whether the protocol allows the conversation without its whole turn.
    pub(crate) turn_may_go: bool,
    /// Whether its turn may go only with the turn before: the first words stand in the message with which that one ends.
    pub(crate) follows_in_message: bool,
    /// Whether it is what a message says beside results: for a provider the tool loop goes on there.
    pub(crate) beside_results: bool,
}

/// What a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitKind {
    /// Tools or system.
    Head,
    /// What was said to the model, tool results apart.
    Said,
    /// Calls with their results and reasoning.
    Exchange,
    /// An answer that calls nothing.
    Answer,
}

/// Groups the blocks of a history into units, in order.
pub(crate) fn group_units(history: &History, facts: &Facts) -> Vec<MessageUnit> {
    let mut units: Vec<MessageUnit> = Vec::new();
    for entry in history.entries() {
        match entry.role {
            Role::Tools | Role::System => units.push(new_unit(UnitKind::Head, entry, entry_blocks(entry))),
            Role::Assistant => add_answer(history, entry, &mut units),
            Role::User | Role::Tool | Role::Other => add_said(history, facts, entry, &mut units),
        }
    }
    let loop_start = running_loop(&units, facts);
    let latest = units.iter().rposition(|unit| unit.kind == UnitKind::Exchange);
    let bounds =
        UnitBounds { loop_start, latest, alternates: roles_alternate(history.format(), history.messages()) };
    for index in 0..units.len() {
        let may_go = may_go(history, facts, &units, index, &bounds);
        if let Some(unit) = units.get_mut(index) {
            unit.may_go = may_go;
        }
    }
    note_turns(history, facts, &bounds, &mut units);
    units
}

/// What limits which units may go.
struct UnitBounds {
    /// The first unit of the running tool loop.
    loop_start: usize,
    /// The latest exchange.
    latest: Option<usize>,
    /// Whether messages must take turns, because those of the request do.
    alternates: bool,
}

/// Returns the units of every turn, those of the system apart: what it says in the middle of a turn stays when the turn goes.
pub(crate) fn units_by_turn(units: &[MessageUnit]) -> impl Iterator<Item = Vec<&MessageUnit>> {
    let turns = units.chunk_by(|one, other| one.turn == other.turn);
    turns.map(|turn| turn.iter().filter(|unit| unit.kind != UnitKind::Head).collect())
}

/// Returns the turns that go as a whole, of those for which `goes` holds. A turn that begins in the message with which the turn
/// before ends goes only with that one: alone it would leave two messages of the user in a row.
pub(crate) fn going_turns(
    units: &[MessageUnit],
    goes: impl Fn(&[&MessageUnit]) -> bool,
) -> Vec<Vec<&MessageUnit>> {
    let mut going = Vec::new();
    let mut before_goes = false;
    for turn in units_by_turn(units) {
        let is_free = before_goes || !turn.iter().any(|unit| unit.follows_in_message);
        before_goes = is_free && turn.iter().all(|unit| unit.turn_may_go) && goes(&turn);
        if before_goes {
            going.push(turn);
        }
    }
    going
}

/// Counts turns, and tells which may go as a whole: all before the last that hold nothing but talk, calls and results.
fn note_turns(history: &History, facts: &Facts, bounds: &UnitBounds, units: &mut [MessageUnit]) {
    // The running loop begins with thinking. Without a turn of it, it would begin where the next one speaks beside results.
    let thinks_in_loop = units.iter().skip(bounds.loop_start).any(|unit| begins_with_thinking(history, unit));
    let (mut turn, mut end) = (0, 0);
    for unit in units.iter_mut() {
        turn += u32::from(by_person(unit, facts));
        unit.turn = turn;
    }
    let instructs = |id: &BlockId| {
        let fact = &facts[*id];
        fact.instructions || matches!(fact.voice, Some(Voice::Instructions | Voice::Summary))
    };
    for of_turn in units.chunk_by_mut(|one, other| one.turn == other.turn) {
        end += of_turn.len();
        let number = of_turn.first().map_or(0, |unit| unit.turn);
        let said = || of_turn.iter().filter(|unit| unit.kind != UnitKind::Head);
        let blocks: Vec<BlockId> = said().flat_map(|unit| unit.blocks.clone()).collect();
        let answered = said().next_back().is_some_and(|unit| unit.kind != UnitKind::Said);
        // A message that says nothing has no block that could go.
        let has_empty_message = said().any(|unit| unit.blocks.is_empty());
        // The first turn holds what was asked: it stays as long as the last.
        let goes = number > 1
            && number < turn
            && answered
            && !has_empty_message
            && !(thinks_in_loop && end > bounds.loop_start)
            && are_understood(history, &blocks)
            && are_paired(facts, &blocks)
            && !blocks.iter().any(instructs);
        let follows_in_message = bounds.alternates && begins_inside_a_message(history, &blocks);
        for unit in of_turn.iter_mut().filter(|unit| unit.kind != UnitKind::Head) {
            unit.turn_may_go = goes;
            unit.follows_in_message = follows_in_message;
        }
    }
}

fn new_unit(kind: UnitKind, entry: &Entry, blocks: Vec<BlockId>) -> MessageUnit {
    MessageUnit {
        kind,
        step: entry.step,
        blocks,
        may_go: false,
        turn: 0,
        turn_may_go: false,
        follows_in_message: false,
        beside_results: false,
    }
}

fn entry_blocks(entry: &Entry) -> Vec<BlockId> {
    (entry.first_block..entry.first_block + entry.blocks).map(BlockId).collect()
}

/// Adds a message of the model: to the unit of its step, which several messages may make up.
fn add_answer(history: &History, entry: &Entry, units: &mut Vec<MessageUnit>) {
    let calls =
        history.blocks_of(entry).iter().any(|block| block.kind == BlockKind::Call && !block.by_server);
    let kind = if calls { UnitKind::Exchange } else { UnitKind::Answer };
    let same_step = units
        .last_mut()
        .filter(|unit| unit.step == entry.step && matches!(unit.kind, UnitKind::Exchange | UnitKind::Answer));
    match same_step {
        Some(last) => {
            last.blocks.extend(entry_blocks(entry));
            if calls {
                last.kind = UnitKind::Exchange;
            }
        }
        None => units.push(new_unit(kind, entry, entry_blocks(entry))),
    }
}

/// Adds a message to the model: results to the exchange they answer, everything else as said.
fn add_said(history: &History, facts: &Facts, entry: &Entry, units: &mut Vec<MessageUnit>) {
    let (results, others): (Vec<BlockId>, Vec<BlockId>) =
        entry_blocks(entry).into_iter().partition(|id| facts[*id].acts_as == BlockKind::Result);
    let has_results = !results.is_empty();
    if has_results {
        match units.last_mut().filter(|unit| matches!(unit.kind, UnitKind::Exchange | UnitKind::Answer)) {
            Some(exchange) => {
                exchange.kind = UnitKind::Exchange;
                exchange.blocks.extend(results);
            }
            None => units.push(new_unit(UnitKind::Said, entry, results)),
        }
    }
    if !others.is_empty() || history.blocks_of(entry).is_empty() {
        units.push(MessageUnit { beside_results: has_results, ..new_unit(UnitKind::Said, entry, others) });
    }
}

/// Returns the first unit of the running tool loop: what follows the last message in which the user speaks and no tool answers.
pub(super) fn running_loop(units: &[MessageUnit], facts: &Facts) -> usize {
    let starts_loop = |unit: &MessageUnit| by_person(unit, facts) && !unit.beside_results;
    units.iter().rposition(starts_loop).map_or(0, |index| index + 1)
}

fn by_person(unit: &MessageUnit, facts: &Facts) -> bool {
    let mut voices = unit.blocks.iter().filter_map(|id| facts[*id].voice);
    unit.kind == UnitKind::Said && voices.any(|voice| voice == Voice::Person)
}

fn may_go(
    history: &History,
    facts: &Facts,
    units: &[MessageUnit],
    index: usize,
    bounds: &UnitBounds,
) -> bool {
    let Some(unit) = units.get(index) else { return false };
    match unit.kind {
        UnitKind::Head | UnitKind::Said => false,
        // Without it, what was said before and after it would be two messages of the user in a row.
        UnitKind::Answer => {
            history.format() != Format::Gemini
                && !bounds.alternates
                && index + 1 < units.len()
                && are_understood(history, &unit.blocks)
        }
        UnitKind::Exchange => {
            Some(index) != bounds.latest
                && are_understood(history, &unit.blocks)
                && are_paired(facts, &unit.blocks)
                && whole_messages(history, unit)
                && !(bounds.alternates && precedes_words(units, index))
                && !(index >= bounds.loop_start
                    && follows_words(units, index)
                    && begins_with_thinking(history, unit))
                && !leaves_words_alone(history, units, index)
        }
    }
}

/// Tells whether something is said to the model right after a unit: where messages take turns, the unit stays, so that what was
/// said before it and after it never meet.
fn precedes_words(units: &[MessageUnit], index: usize) -> bool {
    let mut after = units.iter().skip(index + 1).filter(|unit| unit.kind != UnitKind::Head);
    after.next().is_none_or(|next| next.kind == UnitKind::Said)
}

/// Tells whether the first of some blocks follows others in a message, as words do that come with results.
fn begins_inside_a_message(history: &History, blocks: &[BlockId]) -> bool {
    let Some(first) = blocks.first() else { return false };
    history.entry_of(&history[*first]).is_some_and(|entry| entry.first_block != first.0)
}

/// Tells whether every block is understood: others are left unchanged.
fn are_understood(history: &History, blocks: &[BlockId]) -> bool {
    blocks.iter().all(|id| history[*id].kind != BlockKind::Unknown)
}

/// Tells whether calls and results find their other half among these blocks.
fn are_paired(facts: &Facts, blocks: &[BlockId]) -> bool {
    let partners = blocks.iter().filter_map(|id| facts[*id].partner);
    partners.into_iter().all(|partner| blocks.contains(&partner))
}

/// Gemini wants messages to take turns: there results may go only where nothing else stands in their message.
fn whole_messages(history: &History, unit: &MessageUnit) -> bool {
    let alone = |block: &Block| {
        let entry = history.entry_of(block);
        entry.is_none_or(|entry| entry_blocks(entry).iter().all(|id| unit.blocks.contains(id)))
    };
    history.format() != Format::Gemini || unit.blocks.iter().map(|id| &history[*id]).all(alone)
}

/// With thinking switched on, the running tool loop must begin with the model's thinking.
/// A loop that began without it stays free to lose its beginning, however much is thought later: what went stays gone.
fn begins_with_thinking(history: &History, unit: &MessageUnit) -> bool {
    let is_reasoning = |id: &BlockId| history[*id].kind == BlockKind::Reasoning;
    history.format() == Format::Anthropic && unit.blocks.iter().any(is_reasoning)
}

/// Tells whether words that share a message with a unit's results would be left alone in it: a provider then counts the tool loop from
/// there, and what follows must begin with thinking once the model has thought.
fn leaves_words_alone(history: &History, units: &[MessageUnit], index: usize) -> bool {
    let Some(unit) = units.get(index).filter(|_| history.format() == Format::Anthropic) else { return false };
    let shares_message = |id: &BlockId| {
        let entry = history.entry_of(&history[*id]);
        entry.is_some_and(|entry| entry_blocks(entry).iter().any(|other| !unit.blocks.contains(other)))
    };
    let is_reasoning = |id: &BlockId| history[*id].kind == BlockKind::Reasoning;
    let next = units.iter().skip(index + 1).find(|next| next.kind == UnitKind::Exchange);
    let begins_with_thinking = next.is_none_or(|next| next.blocks.first().is_some_and(is_reasoning));
    let end = unit.blocks.last().map_or(0, |last| last.0);
    let has_thought = || (0..end).map(BlockId).any(|id| is_reasoning(&id));
    !begins_with_thinking && unit.blocks.iter().any(shares_message) && has_thought()
}

/// Tells whether a unit comes right after something said to the model: whoever said it, a provider may count the tool loop
/// from there.
fn follows_words(units: &[MessageUnit], index: usize) -> bool {
    let before = index.checked_sub(1).and_then(|before| units.get(before));
    before.is_none_or(|before| matches!(before.kind, UnitKind::Head | UnitKind::Said))
}

/// The units of a request, each found by its blocks.
#[derive(Debug)]
pub(crate) struct Units {
    all: Vec<MessageUnit>,
    /// The number of each block's unit; none for what belongs to no unit.
    of_block: Blocks<Option<u32>>,
}

impl Units {
    /// Groups the blocks of a history into units.
    pub(crate) fn from_history(history: &History, facts: &Facts) -> Units {
        let all = group_units(history, facts);
        let mut of_block = Blocks::with_rows(history.blocks().len(), None);
        for (number, unit) in (0..).zip(&all) {
            for id in &unit.blocks {
                of_block[*id] = Some(number);
            }
        }
        Units { all, of_block }
    }

    /// Returns all units, in order.
    pub(crate) fn all_units(&self) -> &[MessageUnit] {
        &self.all
    }

    /// Returns the unit of a block, with its number.
    pub(super) fn of_block(&self, id: BlockId) -> Option<(u32, &MessageUnit)> {
        let number = self.of_block[id]?;
        Some((number, self.all.get(widen(number))?))
    }
}
