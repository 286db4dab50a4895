//! Instructions for agents that tools brought in. Takes history and facts; gives what files like AGENTS.md said where they were last
//! read in a range, and what harnesses put of them into other results. Never reads a file by itself: what stands in the
//! user's place stays there and is no part of this.

use super::{ledger::results_in, range::FoldRange};
use crate::{
    facts::{Facts, Outcome, ToolKind, Voice, find_constraints, split_by_voice},
    history::{BlockId, History},
    ledger::{InstructionExtent, Instructions},
    recall::block_handle,
};

/// Finds the instructions that results in a range brought; `offset` steps were folded before, with what `earlier` tells.
pub(super) fn find_instructions(
    history: &History,
    facts: &Facts,
    range: &FoldRange,
    offset: u32,
    mut found: Vec<Instructions>,
) -> Vec<Instructions> {
    for (id, row) in results_in(facts, range) {
        let path = row.subject().path().map(|path| facts.file_key(path).into_owned()).unwrap_or_default();
        let changes = row.tool().is_some_and(ToolKind::changes_files) && row.outcome != Outcome::Failed;
        for known in found.iter_mut().filter(|known| changes && known.path == path) {
            known.changed = true;
        }
        if !row.instructions || !range.folds(id) {
            continue;
        }
        let Some(text) = instruction_words(history, id, row.voice) else { continue };
        let handle = history.block(id).map(|block| block_handle(history, block)).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
        // The same words under another name are the same instructions.
        found.retain(|known| known.path != path && known.lines != lines);
        let step = row.step + offset;
        found.push(Instructions {
            path,
            step,
            changed: false,
            extent: InstructionExtent::Whole,
            lines,
            handle,
        });
    }
    found
}

/// Returns the instructions in a result: all of it, or what stands in a harness's tags.
fn instruction_words(history: &History, id: BlockId, voice: Option<Voice>) -> Option<String> {
    let text = history.block_text(history.block(id)?);
    if voice == Some(Voice::Instructions) {
        return Some(text.trim_matches('\n').to_owned());
    }
    let tagged = split_by_voice(&text).into_iter().filter(|section| section.voice == Voice::Instructions);
    let words: Vec<&str> = tagged.filter_map(|section| text.get(section.range)).collect();
    // A part of a file, read with its lines: they are instructions too.
    Some(if words.is_empty() { text.trim_matches('\n').to_owned() } else { words.join("\n") })
}

impl Instructions {
    /// Tells less of them: only the sentences that set limits.
    pub(super) fn only_limits(&self) -> Instructions {
        if self.extent != InstructionExtent::Whole {
            return self.clone();
        }
        let text = self.lines.join("\n");
        let limits =
            find_constraints(&text).into_iter().filter_map(|range| text.get(range)).map(str::to_owned);
        Instructions { lines: limits.collect(), extent: InstructionExtent::Limits, ..self.clone() }
    }

    /// Tells only where they stand.
    pub(super) fn only_name(&self) -> Instructions {
        Instructions { lines: Vec::new(), extent: InstructionExtent::Name, ..self.clone() }
    }
}
