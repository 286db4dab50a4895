//! Where markers stand. Takes the request as it is sent; gives the blocks to mark: the end, from which a provider looks back for what it
//! knows; the end of the request before, where that is out of reach; the end of tools and system, which other sessions share; and the
//! place before the next expected edit. The same conversation, one step longer, has its markers at the same places, but for the last.

use super::{CACHE_CONTROL, MOST_MARKERS, names_member};
use crate::{
    history::{Block, BlockKind, Entry, Format, History, Part, PartKind, Role},
    json::{Span, Value, narrow, scan, widen},
    prices::CacheRules,
    units::Tokens,
};

/// A block that can carry a marker: how it is written decides what is inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkerPlace {
    /// Before the closing brace of its object.
    InObject { block: usize, end: u32 },
    /// Around its text, which becomes the one part of a list.
    AroundText { block: usize, start: u32, end: u32 },
}

impl MarkerPlace {
    fn block(self) -> usize {
        match self {
            MarkerPlace::InObject { block, .. } | MarkerPlace::AroundText { block, .. } => block,
        }
    }
}

/// Returns the places to mark, in the order of what they are worth, as many as there is room for.
pub(super) fn marker_places(
    sent: &History,
    blocks_after_edit: Option<usize>,
    rules: &CacheRules,
    look_back: usize,
) -> Vec<MarkerPlace> {
    let count = sent.blocks().len();
    let in_head = |entry: &&Entry| matches!(entry.role, Role::Tools | Role::System);
    let head = sent.entries().iter().take_while(in_head).last();
    let first = head.map_or(0, |entry| sent.blocks_before_end(entry));
    let Some(end) = last_place(sent, first..count) else { return Vec::new() };
    let before = end_of_request_before(sent).and_then(|blocks| last_place(sent, first..blocks));
    // A marker looks at so many blocks, its own included.
    let is_out_of_reach = |before: &MarkerPlace| end.block() - before.block() >= look_back;
    let edit = blocks_after_edit.and_then(|after| count.checked_sub(after));
    let wanted = [
        Some(end),
        before.filter(is_out_of_reach),
        last_place(sent, 0..first),
        edit.and_then(|blocks| last_place(sent, first..blocks)),
        last_place(sent, 0..tool_count(sent)),
    ];
    let own = sent.blocks().iter().filter(|block| block.marked).count();
    let mut places: Vec<MarkerPlace> = Vec::new();
    for place in wanted.into_iter().flatten().filter(|place| can_be_cached(sent, *place, rules.minimum)) {
        let is_marked = sent.blocks().get(place.block()).is_some_and(|block| block.marked);
        if !is_marked && !places.contains(&place) && places.len() + own < MOST_MARKERS {
            places.push(place);
        }
    }
    places
}

/// Returns the end of the instructions that a conversation of OpenAI's begins with.
pub(super) fn end_of_instructions(sent: &History, minimum: Tokens) -> Option<MarkerPlace> {
    let leading = sent.messages().iter().take_while(|entry| entry.role == Role::System);
    let last = leading.last()?;
    let end = sent.blocks_before_end(last);
    last_place(sent, widen(last.first_block)..end).filter(|place| can_be_cached(sent, *place, minimum))
}

/// Tells whether what precedes a place may be long enough for a cache: a token has a byte at least.
fn can_be_cached(sent: &History, place: MarkerPlace, minimum: Tokens) -> bool {
    let blocks = sent.blocks().get(..=place.block()).unwrap_or_default();
    Tokens::from_len(blocks.iter().map(|block| block.span.len()).sum()) >= minimum
}

fn tool_count(sent: &History) -> usize {
    sent.blocks().iter().take_while(|block| block.kind == BlockKind::Definition).count()
}

/// Returns how many blocks the request before had: it ended where the model answered last.
fn end_of_request_before(sent: &History) -> Option<usize> {
    let messages = sent.messages();
    // What the model is to go on with is no answer yet.
    let answered = messages.split_last().map_or(messages, |(_, before)| before);
    let answer = answered.iter().rposition(|entry| entry.role == Role::Assistant)?;
    // Some formats write an answer as several messages.
    let begins = answered.get(..answer)?.iter().rposition(|entry| entry.role != Role::Assistant)?;
    answered.get(begins).map(|entry| sent.blocks_before_end(entry))
}

/// Returns the last block of a range that can carry a marker.
fn last_place(sent: &History, blocks: std::ops::Range<usize>) -> Option<MarkerPlace> {
    let of_range = sent.blocks().get(blocks.clone())?;
    let numbered = blocks.zip(of_range).rev();
    numbered.into_iter().find_map(|(number, block)| place_in(sent, number, block))
}

/// Returns how a block carries a marker; nothing where it cannot.
fn place_in(sent: &History, number: usize, block: &Block) -> Option<MarkerPlace> {
    if block.by_server {
        return None;
    }
    match (sent.format(), block.kind) {
        (Format::Anthropic, BlockKind::Definition) => {
            let place = object_end(sent, number, block.span)?;
            (!is_deferred(block.span.bytes_in(sent.bytes()))).then_some(place)
        }
        (Format::Anthropic, BlockKind::Call | BlockKind::Result | BlockKind::Media) => {
            object_end(sent, number, block.span)
        }
        (Format::Anthropic, BlockKind::Text) => text_place(sent, number, block),
        (Format::Chat | Format::Responses, BlockKind::Text) => {
            let role = sent.entry_of(block).map(|entry: &Entry| entry.role);
            matches!(role, Some(Role::System | Role::User)).then(|| text_place(sent, number, block))?
        }
        (Format::Chat, BlockKind::Result) => result_of_chat(sent, number, block),
        (_, _) => None,
    }
}

/// Returns the place in a text that is not blank: providers refuse markers on those that are.
fn text_place(sent: &History, number: usize, block: &Block) -> Option<MarkerPlace> {
    let text: &Part = sent.parts_of(block).first()?;
    if text.kind != PartKind::Text || sent.part_text(text).trim().is_empty() {
        return None;
    }
    if block.span.bytes_in(sent.bytes()).starts_with(b"\"") {
        return Some(around_text(number, block.span));
    }
    object_end(sent, number, block.span)
}

/// Returns the place in a result that is a whole message: its content, or the last text of that.
fn result_of_chat(sent: &History, number: usize, block: &Block) -> Option<MarkerPlace> {
    let content = block.body.bytes_in(sent.bytes());
    let text = sent.parts_of(block).last().filter(|part| part.kind == PartKind::Text)?;
    if sent.part_text(text).trim().is_empty() {
        return None;
    }
    if content.starts_with(b"\"") {
        return Some(around_text(number, block.body));
    }
    let tape = scan(content).ok()?;
    let part = tape.root(content)?.items().last().map(Value::span)?;
    let start = block.body.start();
    object_end(sent, number, Span::new(narrow(start + part.start()), narrow(start + part.end())))
}

fn around_text(block: usize, span: Span) -> MarkerPlace {
    MarkerPlace::AroundText { block, start: narrow(span.start()), end: narrow(span.end()) }
}

fn object_end(sent: &History, block: usize, span: Span) -> Option<MarkerPlace> {
    let object = span.bytes_in(sent.bytes());
    let inner = object.strip_prefix(b"{")?.strip_suffix(b"}")?;
    // A marker that is null is a member all the same.
    if inner.trim_ascii().is_empty() || names_member(inner, CACHE_CONTROL) {
        return None;
    }
    Some(MarkerPlace::InObject { block, end: narrow(span.end().checked_sub(1)?) })
}

/// Tells whether a tool is loaded only when it is searched for: such a tool takes no marker.
fn is_deferred(definition: &[u8]) -> bool {
    let tape = scan(definition).ok();
    tape.as_ref().and_then(|tape| tape.root(definition)).is_some_and(|tool| tool.is_flag_set("defer_loading"))
}
