//! What the user said in a range. Takes a history and its facts; gives the user's own words, message by message, without what a
//! harness put around them. Never shortens a sentence: a message is quoted whole, or by the sentences in which it sets limits.

use super::range::FoldRange;
use crate::{
    facts::{Facts, Voice, find_constraints, split_by_voice},
    history::{BlockKind, History, Role},
    ledger::UserMessage,
    recall::block_handle,
};

/// Returns the user's words that go with a range, oldest first; `offset` steps were folded before.
pub(super) fn user_messages(
    history: &History,
    facts: &Facts,
    range: &FoldRange,
    offset: u32,
) -> Vec<UserMessage> {
    let mut all: Vec<UserMessage> = Vec::new();
    for id in range.folded_blocks() {
        let (Some(row), Some(block)) = (facts.row(id), history.block(id)) else { continue };
        let speaks = matches!(row.role, Role::User | Role::Tool) && row.voice == Some(Voice::Person);
        if !speaks || row.acts_as == BlockKind::Result {
            continue;
        }
        let text = own_words(&history.block_text(block));
        if text.is_empty() {
            continue;
        }
        let step = row.step + offset;
        all.push(UserMessage { step, text, left_out: 0, handle: Some(block_handle(history, block)) });
    }
    all
}

impl UserMessage {
    /// Returns only the sentences that set limits; nothing where there are none.
    pub(super) fn only_limits(&self) -> Option<UserMessage> {
        if self.left_out > 0 {
            return Some(self.clone());
        }
        let sentences: Vec<&str> =
            find_constraints(&self.text).into_iter().filter_map(|range| self.text.get(range)).collect();
        if sentences.is_empty() {
            return None;
        }
        let left_out = self.text.lines().count().saturating_sub(sentences.len()).max(1);
        Some(UserMessage { text: sentences.join("\n"), left_out, ..self.clone() })
    }
}

/// Returns what the user wrote in a text, without tags of the harness.
fn own_words(text: &str) -> String {
    let own = split_by_voice(text).into_iter().filter(|section| section.voice == Voice::Person);
    let words: Vec<&str> = own.filter_map(|section| text.get(section.range)).map(str::trim).collect();
    words.join("\n")
}
