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
    json::{Array, Object},
    policy::NoteStyle,
    recall::block_handle,
    render::{self, NoteContext, RecallHint, ShownFile, prompt as words},
    units::Tokens,
    verdict::Reason,
};

/// How much of one content is shown, in bytes: 1,500 tokens tell what an output says.
const MOST_BYTES: usize = 6_000;
/// How little is shown at least, where a window is small.
const LEAST_BYTES: usize = 200;
/// About how many words a token makes: prompts give lengths in words.
const WORDS_PER_TOKEN: f64 = 0.7;

/// What an endpoint speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptFormat {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, and the many servers that speak it.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Gemini's generateContent; the model stands in its address.
    Gemini,
}

impl From<Format> for PromptFormat {
    fn from(format: Format) -> PromptFormat {
        match format {
            Format::Anthropic => PromptFormat::Anthropic,
            Format::Chat => PromptFormat::Chat,
            Format::Responses => PromptFormat::Responses,
            Format::Gemini => PromptFormat::Gemini,
        }
    }
}

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
pub fn summary_request(format: PromptFormat, model: &str, prompt: &str, most: Tokens) -> Vec<u8> {
    let message = |role: &str, text: &str| Object::new().text("role", role).text("content", text).end();
    let most = most.0.to_string();
    match format {
        PromptFormat::Anthropic => {
            let messages = Array::new().raw(&message("user", prompt)).end();
            let request = Object::new().text("model", model).raw("max_tokens", most.as_bytes());
            request.text("system", words::SYSTEM).raw("messages", &messages).end()
        }
        PromptFormat::Chat => {
            let messages =
                Array::new().raw(&message("system", words::SYSTEM)).raw(&message("user", prompt)).end();
            let request = Object::new().text("model", model).raw(limit_key(model), most.as_bytes());
            request.raw("messages", &messages).end()
        }
        PromptFormat::Responses => {
            let request = Object::new().text("model", model).text("instructions", words::SYSTEM);
            let request = request.text("input", prompt).raw("max_output_tokens", most.as_bytes());
            request.raw("store", b"false").end()
        }
        PromptFormat::Gemini => {
            let said = |text: &str| Array::new().raw(&Object::new().text("text", text).end()).end();
            let system = Object::new().raw("parts", &said(words::SYSTEM)).end();
            let asked = Object::new().text("role", "user").raw("parts", &said(prompt)).end();
            let limit = Object::new().raw("maxOutputTokens", most.as_bytes()).end();
            let request = Object::new().raw("systemInstruction", &system);
            request.raw("contents", &Array::new().raw(&asked).end()).raw("generationConfig", &limit).end()
        }
    }
}

/// OpenAI's newer models refuse the name that every other server knows.
fn limit_key(model: &str) -> &'static str {
    let newer = ["gpt-5", "gpt-6", "o1", "o3", "o4"];
    if newer.iter().any(|start| model.starts_with(start)) { "max_completion_tokens" } else { "max_tokens" }
}
