//! The agent's instructions. Takes a track; gives the user's messages, the system's texts, files of instructions and
//! the user's constraints, each with the requests that must show it: all from its first one on. A file of instructions
//! that is read again or changed is replaced by what comes then. Never counts what a harness adds: reminders, echoes, facts
//! about the machine, summaries.

use trimtab_core::{
    BlockId, BlockKind, Role,
    facts::{Fact, Outcome, ToolKind, Voice, VoiceSection, find_constraints, split_by_voice},
    json::narrow,
};

use super::{lasting::LastingTexts, texts::SegmentTexts, visible::arrival_request};
use crate::replay::Track;

/// Finds the instructions of a segment.
pub(super) fn find_instructions(track: &Track<'_>, texts: &SegmentTexts) -> Vec<LastingTexts> {
    let mut found = Vec::new();
    for (index, fact) in track.facts.rows().iter().enumerate() {
        let block = BlockId(narrow(index));
        let is_told = match fact.acts_as {
            BlockKind::Text => {
                fact.role == Role::System || matches!(fact.voice, Some(Voice::Person | Voice::Instructions))
            }
            BlockKind::Result => fact.voice == Some(Voice::Instructions),
            BlockKind::Definition
            | BlockKind::Reasoning
            | BlockKind::Call
            | BlockKind::Media
            | BlockKind::Unknown => false,
        };
        let Some(normal) = texts.text_of(block).filter(|_| is_told) else { continue };
        let requests = arrival_request(track, block)..replaced_at(track, index, fact);
        let text = normal.plain();
        let whole = fact.role == Role::System || fact.acts_as == BlockKind::Result;
        let told = if whole { vec![text] } else { told_sections(text) };
        found.extend(told.into_iter().filter_map(|words| {
            LastingTexts::from_block(block, vec![words.to_owned()], requests.clone(), texts)
        }));
        if fact.voice == Some(Voice::Person) {
            let sentences = find_constraints(text).into_iter().filter_map(|range| text.get(range));
            found.extend(sentences.filter_map(|sentence| {
                LastingTexts::from_block(block, vec![sentence.to_owned()], requests.clone(), texts)
            }));
        }
    }
    found
}

/// Returns what a message tells, without what the harness put around it.
fn told_sections(text: &str) -> Vec<&str> {
    let told = |section: &VoiceSection| matches!(section.voice, Voice::Person | Voice::Instructions);
    split_by_voice(text).into_iter().filter(told).filter_map(|section| text.get(section.range)).collect()
}

/// Returns the request from which on something else stands in the place of a file of instructions.
fn replaced_at(track: &Track<'_>, index: usize, told: &Fact) -> usize {
    let end = track.requests.len();
    let Some(path) = told.subject().path().filter(|_| told.acts_as == BlockKind::Result) else { return end };
    let key = track.facts.file_key(path);
    let later = track.facts.rows().iter().enumerate().skip(index + 1);
    let mut replacing = later.filter(|(_, fact)| {
        let is_same = fact.subject().path().is_some_and(|path| track.facts.file_key(path) == key);
        let changes =
            fact.tool().is_some_and(ToolKind::changes_files) || fact.voice == Some(Voice::Instructions);
        fact.acts_as == BlockKind::Result && fact.outcome != Outcome::Failed && is_same && changes
    });
    replacing.next().map_or(end, |(later, _)| arrival_request(track, BlockId(narrow(later))))
}
