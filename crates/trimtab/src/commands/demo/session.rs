//! The session that the demo plays: [`DemoSession`] with its [`DemoTurn`]s and [`DemoRequest`]s. Read from a recording in the binary,
//! which a script of this project made (`fixtures/make/`); `commands/demo` plays it.

use anyhow::{Context, Result};
use serde_json::Value;
use trimtab_core::{
    Block, BlockId, BlockKind, CountMemo, Counter, Facts, History, Millis, Model, Role,
    count::Counts,
    facts,
    facts::{Fact, Subject, ToolKind},
    find_model,
    wire::request_of,
};
use trimtab_replay::{Segment, read};

use crate::output::on_one_line;

/// `fixtures/demo/session.jsonl`, compressed. A test compares both.
pub(super) const RECORDING: &[u8] = include_bytes!("session.jsonl.zst");

/// Whose prices are paid: the model that the recording names.
const MODEL: &str = "claude-opus-5";

/// Columns in which a block is named.
const NAME_WIDTH: usize = 44;

/// A conversation, and what is known about its blocks.
pub(super) struct DemoSession {
    pub(super) model: Model,
    pub(super) history: History,
    pub(super) turns: Vec<DemoTurn>,
    facts: Facts,
    counts: Counts,
    counter: Counter,
}

/// What one message of the user sets off.
pub(super) struct DemoTurn {
    pub(super) prompt: String,
    pub(super) requests: Vec<DemoRequest>,
}

/// A request of the agent, and what the model answered when it was recorded.
pub(super) struct DemoRequest {
    pub(super) body: Vec<u8>,
    pub(super) answer: Value,
    /// When it was made, by the recording.
    pub(super) at: Millis,
}

impl DemoSession {
    /// Reads the recording.
    pub(super) fn load() -> Result<DemoSession> {
        let bytes = zstd::decode_all(RECORDING).context("the demo's recording is damaged")?;
        let recording = read(&bytes)?;
        let longest = recording.longest_number().saturating_sub(1);
        let segment = recording.segments.into_iter().nth(longest).context("the demo's recording is empty")?;
        let model = find_model(MODEL)?;
        let counter = Counter::for_model(MODEL);
        let counts = counter.count_request(&segment.history, &mut CountMemo::default());
        let facts = facts(&segment.history);
        let turns = session_turns(&segment, &facts)?;
        Ok(DemoSession { model, history: segment.history, turns, facts, counts, counter })
    }

    pub(super) fn requests(&self) -> impl Iterator<Item = &DemoRequest> {
        self.turns.iter().flat_map(|turn| &turn.requests)
    }

    /// Returns a block with what is known about it.
    pub(super) fn block(&self, number: u32) -> Option<(&Block, &Fact)> {
        let id = BlockId(number);
        Some((self.history.block(id)?, self.facts.row(id)?))
    }

    /// Returns the tokens of a block, and those of a text in its place.
    pub(super) fn token_counts(&self, number: u32, instead: &str) -> (u64, u64) {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let whole = self.counts.blocks().get(index).map_or(0, |tokens| tokens.0);
        (whole, self.counter.count_text(instead).0)
    }
}

/// Names a block for people: what was called, and about what.
pub(super) fn name_of(fact: &Fact) -> String {
    let what = fact.tool().map_or(fact.acts_as.name(), ToolKind::name);
    let whose = if fact.acts_as == BlockKind::Call { " (the call)" } else { "" };
    let name = match fact.subject() {
        Subject::Nothing => what.to_owned(),
        subject => format!("{what} {subject}"),
    };
    on_one_line(&name, NAME_WIDTH.saturating_sub(whose.len())) + whose
}

fn session_turns(segment: &Segment, facts: &Facts) -> Result<Vec<DemoTurn>> {
    let mut turns: Vec<DemoTurn> = Vec::new();
    let mut number = None;
    for (index, point) in segment.points.iter().enumerate() {
        let next =
            segment.points.get(index + 1).map_or(segment.history.messages().len(), |next| next.messages);
        let request = DemoRequest {
            body: with_model(&request_of(&segment.history, point.messages)),
            answer: answer_content(&segment.history, point.messages, next),
            at: point.at.context("the demo's recording tells no time")?,
        };
        let turn = turn_at(&segment.history, facts, point.messages);
        if number != Some(turn) {
            turns.push(DemoTurn { prompt: turn_prompt(&segment.history, facts, turn), requests: Vec::new() });
            number = Some(turn);
        }
        turns.last_mut().context("a turn was begun")?.requests.push(request);
    }
    Ok(turns)
}

/// Returns the turn that the last of so many messages belongs to.
fn turn_at(history: &History, facts: &Facts, messages: usize) -> u32 {
    let last = messages.checked_sub(1).and_then(|index| history.messages().get(index));
    let rows = last.map_or(&[][..], |entry| {
        let end = history.blocks_before_end(entry);
        facts.rows().get(..end).unwrap_or_default()
    });
    rows.last().map_or(0, |fact| fact.turn)
}

/// Returns the user's words that begin a turn.
fn turn_prompt(history: &History, facts: &Facts, turn: u32) -> String {
    let said =
        history.blocks().iter().zip(facts.rows()).filter(|(_, fact)| {
            fact.turn == turn && fact.role == Role::User && fact.acts_as == BlockKind::Text
        });
    said.map(|(block, _)| history.block_text(block).trim().to_owned())
        .find(|text| !text.is_empty() && !text.starts_with('<'))
        .unwrap_or_default()
}

/// Names the model, which the recording keeps apart from the messages.
fn with_model(request: &[u8]) -> Vec<u8> {
    let rest = request.strip_prefix(b"{").unwrap_or(request);
    [format!("{{\"model\":\"{MODEL}\",\"max_tokens\":8192,").as_bytes(), rest].concat()
}

/// Returns the content of the assistant's messages between two requests.
fn answer_content(history: &History, from: usize, to: usize) -> Value {
    let new = history.messages().get(from..to).unwrap_or_default().iter();
    let answers = new.filter(|entry| entry.role == Role::Assistant);
    let values = answers
        .filter_map(|entry| serde_json::from_slice::<Value>(entry.span.bytes_in(history.bytes())).ok());
    let contents = values.filter_map(|mut message| match message.get_mut("content").map(Value::take) {
        Some(Value::Array(content)) => Some(content),
        Some(_) | None => None,
    });
    Value::Array(contents.flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_in_the_binary_is_the_one_in_the_fixtures() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/demo/session.jsonl");
        let recording = std::fs::read(file).expect("the fixture");
        if std::env::var_os("TRIMTAB_BLESS").is_some() {
            let packed = zstd::encode_all(&recording[..], 19).expect("compressed");
            let place = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands/demo/session.jsonl.zst");
            return std::fs::write(place, packed).expect("written");
        }
        let packed = zstd::decode_all(RECORDING).expect("readable");
        assert!(packed == recording, "run the tests once with TRIMTAB_BLESS=1");
    }

    #[test]
    fn every_turn_begins_with_words_of_the_person_and_every_request_has_an_answer() {
        let session = DemoSession::load().expect("the session");
        assert!(session.turns.len() > 2, "{}", session.turns.len());
        for turn in &session.turns {
            assert!(!turn.prompt.is_empty());
            for request in &turn.requests {
                assert!(request.answer.as_array().is_some_and(|content| !content.is_empty()));
            }
        }
    }
}
