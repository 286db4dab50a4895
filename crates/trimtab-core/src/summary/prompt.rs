//! The prompt for a summary. Takes history, facts and a range, and the notes so far; gives the prompt, and the whole request for
//! an endpoint. A range that is larger than the summarizer's window is split where it may be cut, and every part updates the
//! notes on the parts before. Never sends a content out of its fence, reasoning, or more of an output than tells what it says.

use super::{
    ledger::task_terms,
    range::{FoldRange, legal_cuts},
};
use crate::{
    count::Counter,
    digest::{DigestText, TextContext, relevant_lines},
    facts::{Facts, Subject, Voice},
    history::{Block, BlockId, BlockKind, Format, History, Role, readable_text},
    policy::NoteStyle,
    recall::block_handle,
    render::{self, NoteContext, RecallHint, ShownFile, prompt as words},
    units::Tokens,
    verdict::Reason,
    wire::Question,
};

/// How much of one content is shown, in bytes: 1,500 tokens tell what an output says.
const MOST_BYTES: usize = 6_000;
/// How little is shown at least, where a window is small.
const LEAST_BYTES: usize = 200;
/// About how many words a token makes: prompts give lengths in words.
const WORDS_PER_TOKEN: f64 = 0.7;

/// Writes the prompt for a summary of a range in `target` tokens that updates the notes so far, where there are any. Contents are
/// shortened until it fits into `window`.
pub(super) fn summary_prompt(
    history: &History,
    facts: &Facts,
    range: &FoldRange,
    earlier: Option<&str>,
    target: Tokens,
    window: Tokens,
    counter: Counter,
) -> String {
    let terms = task_terms(history, facts);
    let mut most = MOST_BYTES;
    loop {
        let text = write_with_limit(history, facts, range, earlier, target, &terms, most);
        if most <= LEAST_BYTES || counter.count_text(&text) <= window {
            return text;
        }
        most = (most / 2).max(LEAST_BYTES);
    }
}

fn write_with_limit(
    history: &History,
    facts: &Facts,
    range: &FoldRange,
    earlier: Option<&str>,
    target: Tokens,
    terms: &[String],
    most: usize,
) -> String {
    let mut prompt = format!("{}\n\n{}\n", words::task_words(target.scale(WORDS_PER_TOKEN).0), words::LAYOUT);
    if let Some(earlier) = earlier {
        prompt = prompt + "\n" + words::EARLIER + "\n\n" + &words::fence_content("NOTES SO FAR:", earlier);
    }
    for id in range.blocks() {
        if let Some(said) = block_content(history, facts, id, terms, most) {
            prompt.push('\n');
            prompt.push_str(&said);
        }
    }
    prompt
}

/// Splits a range where it may be cut into parts whose prompts fit into a window; one that does not by itself is a part alone, and
/// its prompt shows less of its contents.
pub(super) fn split_range(
    history: &History,
    facts: &Facts,
    range: &FoldRange,
    target: Tokens,
    window: Tokens,
    counter: Counter,
) -> Vec<FoldRange> {
    let terms = task_terms(history, facts);
    let frame = counter.count_text(&words::task_words(0))
        + counter.count_text(words::LAYOUT)
        + counter.count_text(words::EARLIER);
    // The notes so far come back with every part but the first.
    let room = window - frame - target.scale(2.0);
    let cuts = legal_cuts(history, facts);
    let begin = range.first_message(history);
    let ends =
        cuts.into_iter().filter(|cut| *cut > begin && *cut < range.messages()).chain([range.messages()]);
    let mut parts: Vec<FoldRange> = Vec::new();
    let mut used = Tokens::ZERO;
    let (mut start, mut last) = (begin, begin);
    for end in ends {
        let piece = range.part_of(history, &(last..end));
        let texts = piece.blocks().filter_map(|id| block_content(history, facts, id, &terms, MOST_BYTES));
        let size: Tokens = texts.map(|text| counter.count_text(&text) + Tokens(1)).sum();
        if last > start && used + size > room {
            parts.push(range.part_of(history, &(start..last)));
            (start, used) = (last, Tokens::ZERO);
        }
        used += size;
        last = end;
    }
    parts.push(range.part_of(history, &(start..last)));
    parts
}

/// Writes one block; nothing for reasoning, and for summaries, which the notes so far carry on.
fn block_content(
    history: &History,
    facts: &Facts,
    id: BlockId,
    terms: &[String],
    most: usize,
) -> Option<String> {
    let (row, block) = (facts.row(id)?, history.block(id)?);
    if row.voice == Some(Voice::Summary) || matches!(row.role, Role::System | Role::Tools) {
        return None;
    }
    let text = shown_text(history, block, row.step, terms, most);
    let tool = history.tool_name(block).unwrap_or_default();
    let (speaker, about) = match (row.acts_as, row.role) {
        (BlockKind::Result, _) => ("TOOL", format!("{tool} answered, {}", row.outcome.name())),
        (BlockKind::Call, _) => ("ASSISTANT", format!("calls {tool}")),
        (BlockKind::Text, Role::User | Role::Tool) if row.voice == Some(Voice::Person) => {
            ("USER", String::new())
        }
        (BlockKind::Text, Role::User | Role::Tool) => ("HARNESS", String::new()),
        (BlockKind::Text, _) => ("ASSISTANT", String::new()),
        (BlockKind::Media, _) => ("USER", "an image or document that is not shown here".to_owned()),
        (BlockKind::Reasoning | BlockKind::Definition | BlockKind::Unknown, _) => return None,
    };
    let text = if block.kind == BlockKind::Media { String::new() } else { text };
    Some(words::fence_content(&words::speaker_title(speaker, row.step, about.trim()), &text))
}

/// Returns a block's text, or the lines of it that say most about the task.
fn shown_text(history: &History, block: &Block, step: u32, terms: &[String], most: usize) -> String {
    let text = history.block_text(block);
    if text.len() <= most {
        return text.into_owned();
    }
    let said = readable_text(&text);
    let lines = DigestText::new(&said, TextContext::default());
    let handle = block_handle(history, block);
    let tool = history.tool_name(block);
    let context = NoteContext {
        tool: tool.as_deref(),
        subject: &Subject::Nothing,
        kind: None,
        file: ShownFile::default(),
        step,
        tokens: None,
        reason: &Reason::TooLong,
        handle: &handle,
        style: NoteStyle::Normal,
        recall: &RecallHint::Nothing,
    };
    // A line has about 60 bytes.
    let pieces = relevant_lines(&lines, terms, most / 60).unwrap_or_default();
    render::render(&text, &pieces, &context)
}

/// Writes the whole request for an endpoint.
pub fn summary_request(format: Format, model: &str, prompt: &str, most: Tokens) -> Vec<u8> {
    (format.layout().question)(&Question { model, system: words::SYSTEM, prompt, most })
}
