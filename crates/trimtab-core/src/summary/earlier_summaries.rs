//! Reads an earlier folded message back. Takes the summaries in a range; gives the ledger, the user's words and the prose that
//! they carry, so that folding again updates instead of summarizing a summary. Never reads anything but whole messages of the
//! user's place: what a tool printed cannot pose as one.

use super::range::FoldRange;
use crate::{
    facts::{Facts, Voice},
    history::{BlockKind, History, Role},
    ledger::{Ledger, Unresolved, UserMessage},
    render::ledger as words,
};

/// What earlier summaries in a range carry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct EarlierSummaries {
    /// The last step that they cover.
    pub(super) last_step: u32,
    pub(super) said: Vec<UserMessage>,
    pub(super) ledger: Ledger,
}

/// Reads the latest summary in a range; of ours, everything it says, of another tool's, its prose.
pub(super) fn read_earlier_summaries(
    history: &History,
    facts: &Facts,
    range: &FoldRange,
) -> EarlierSummaries {
    let is_summary = |id: &crate::history::BlockId| {
        facts.row(*id).is_some_and(|row| {
            row.role == Role::User && row.voice == Some(Voice::Summary) && row.acts_as != BlockKind::Result
        })
    };
    let summaries: Vec<_> = range.folded_blocks().filter(is_summary).collect();
    let Some(block) = summaries.last().and_then(|id| history.block(*id)) else {
        return EarlierSummaries::default();
    };
    let text = history.block_text(block);
    read_back(&text).unwrap_or_else(|| EarlierSummaries {
        ledger: Ledger { earlier_summary: Some(text.trim().to_owned()), ..Ledger::default() },
        ..EarlierSummaries::default()
    })
}

/// Reads a folded message of ours.
pub(super) fn read_back(text: &str) -> Option<EarlierSummaries> {
    let mut lines = text.trim().lines();
    if lines.next() != Some(words::BEGIN) {
        return None;
    }
    let mut carried =
        EarlierSummaries { last_step: words::last_step_of(lines.next()?)?, ..EarlierSummaries::default() };
    let mut section = "";
    let mut prose: Vec<&str> = Vec::new();
    for line in lines {
        if line == words::END {
            break;
        }
        match section_heads().find(|head| *head == line) {
            Some(head) => section = head,
            None if section == words::SUMMARY => prose.push(line),
            None => read_line(section, line, &mut carried),
        }
    }
    let prose = prose.join("\n").trim().to_owned();
    carried.ledger.earlier_summary = (!prose.is_empty()).then_some(prose);
    carried.said.retain(|said| !said.text.is_empty());
    Some(carried)
}

fn section_heads() -> impl Iterator<Item = &'static str> {
    [
        words::SUMMARY,
        words::SAID,
        words::INSTRUCTIONS,
        words::MODIFIED,
        words::READ,
        words::COMMANDS,
        words::ERRORS,
        words::FAILURES,
        words::OPEN,
        words::LAST_WORDS,
    ]
    .into_iter()
}

fn read_line(section: &str, line: &str, carried: &mut EarlierSummaries) {
    let ledger = &mut carried.ledger;
    match section {
        words::SAID => {
            if let Some((step, left_out, handle)) = words::said_head_of(line) {
                carried.said.push(UserMessage { step, text: String::new(), left_out, handle });
            } else if let (Some(quoted), Some(said)) = (line.strip_prefix('>'), carried.said.last_mut()) {
                add_line(&mut said.text, quoted.strip_prefix(' ').unwrap_or(quoted));
            }
        }
        words::MODIFIED => ledger.modified.extend(words::file_of(line)),
        words::READ => ledger.read.extend(words::file_of(line)),
        words::COMMANDS => ledger.commands.extend(words::command_of(line)),
        words::INSTRUCTIONS => match (line.strip_prefix(':'), ledger.instructions.last_mut()) {
            (Some(quoted), Some(given)) => {
                given.lines.push(quoted.strip_prefix(' ').unwrap_or(quoted).to_owned());
            }
            (None, _) => ledger.instructions.extend(words::instructions_of(line)),
            (Some(_), None) => {}
        },
        words::ERRORS => read_failure(line, &mut ledger.errors),
        words::FAILURES => read_failure(line, &mut ledger.other_failures),
        words::OPEN => ledger.open.extend(words::open_item_of(line)),
        words::LAST_WORDS => {
            let quoted = line.strip_prefix('|');
            ledger.last_words.extend(quoted.map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned()));
        }
        _ => {}
    }
}

fn read_failure(line: &str, known: &mut Vec<Unresolved>) {
    match (line.strip_prefix('|'), known.last_mut()) {
        (Some(quoted), Some(error)) => {
            error.lines.push(quoted.strip_prefix(' ').unwrap_or(quoted).to_owned());
        }
        (None, _) => known.extend(words::unresolved_of(line)),
        (Some(_), None) => {}
    }
}

fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}
