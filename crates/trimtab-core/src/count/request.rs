//! Counts a whole request. Takes a history, a counter and a memo; gives the tokens of every block and of the
//! frame around them. Never counts a block twice: a history that goes on where an earlier one ended costs only
//! what is new in it.

use std::{borrow::Cow, ops::Index};

use super::{
    ClaudeGeneration, CountMemo, Counter, Tokenizer,
    framing::Framing,
    media::{ImageDetail, MediaBytes, count_media},
};
use crate::{
    history::{Block, BlockId, BlockKind, History, Part, PartKind, Role, row_of},
    json::{Value, scan},
    units::Tokens,
};

/// Characters of base64 per token of sealed reasoning. Over recorded sessions of Claude Code, what is reported as output and
/// does not stand in the answer: 4.2 to 5.6 characters of signature per token up to Opus 4.6, 3.0 to 3.9 in later models, whose
/// tokens are shorter. For other providers assumed.
const SEALED_CHARACTERS_PER_TOKEN: f64 = 5.0;
const SEALED_CHARACTERS_PER_SHORT_TOKEN: f64 = 3.5;

/// The tokens of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    blocks: Vec<Tokens>,
    in_blocks: Tokens,
    frame: Tokens,
    per_entry: Tokens,
}

impl Counts {
    /// Returns the tokens of each block, in the order of the history.
    pub fn blocks(&self) -> &[Tokens] {
        &self.blocks
    }

    /// Returns the tokens around the blocks: what the format adds per message and per request.
    pub fn frame(&self) -> Tokens {
        self.frame
    }

    /// Returns the tokens that each message adds to the frame.
    pub fn per_entry(&self) -> Tokens {
        self.per_entry
    }

    /// Returns the tokens of the whole request.
    pub fn total(&self) -> Tokens {
        self.in_blocks + self.frame
    }
}

/// The tokens of a block of the history that was counted.
impl Index<BlockId> for Counts {
    type Output = Tokens;

    #[track_caller]
    fn index(&self, id: BlockId) -> &Tokens {
        row_of(&self.blocks, id)
    }
}

impl Counter {
    /// Counts a request.
    pub fn count_request(self, history: &History, memo: &mut CountMemo) -> Counts {
        let mut counts = Counts::default();
        self.extend_counts(&mut counts, history, memo, 0);
        counts
    }

    /// Counts a request that was parsed after the one that `counts` are of: only its new blocks are counted.
    pub fn request_after(self, counts: &mut Counts, history: &History, memo: &mut CountMemo) {
        self.extend_counts(counts, history, memo, history.reused_blocks());
    }

    fn extend_counts(self, counts: &mut Counts, history: &History, memo: &mut CountMemo, known: usize) {
        for gone in counts.blocks.drain(known.min(counts.blocks.len())..) {
            counts.in_blocks = counts.in_blocks - gone;
        }
        for block in history.blocks().iter().skip(counts.blocks.len()) {
            let tokens = self.count_block(history, block, memo);
            counts.blocks.push(tokens);
            counts.in_blocks += tokens;
        }
        counts.frame = self.count_frame(history);
        counts.per_entry = Framing::for_format(history.format(), self.tokenizer).entry;
    }

    /// Counts a block whose content is another text.
    pub fn block_as_text(self, history: &History, block: &Block, text: &str, memo: &mut CountMemo) -> Tokens {
        let framing = Framing::for_format(history.format(), self.tokenizer);
        let around = match block.kind {
            BlockKind::Result => framing.tool_block,
            BlockKind::Call => {
                memo.count_text(self, &history.tool_name(block).unwrap_or_default()) + framing.tool_block
            }
            BlockKind::Definition
            | BlockKind::Text
            | BlockKind::Reasoning
            | BlockKind::Media
            | BlockKind::Unknown => Tokens::ZERO,
        };
        memo.count_text(self, text) + around
    }

    fn count_block(self, history: &History, block: &Block, memo: &mut CountMemo) -> Tokens {
        let framing = Framing::for_format(history.format(), self.tokenizer);
        let (sealed, readable): (Vec<&Part>, Vec<&Part>) =
            history.parts_of(block).iter().partition(|part| part.kind == PartKind::Sealed);
        let said: Tokens = readable.iter().map(|part| self.count_part(history, part, memo)).sum();
        // The readable part of reasoning is all of it, a summary of it, or nothing; the sealed part is all of it. Elsewhere a
        // signature beside what can be read seals what is counted already.
        let parts = if block.kind == BlockKind::Reasoning || readable.is_empty() {
            said.max(sealed.iter().map(|part| self.estimate_sealed(part)).sum())
        } else {
            said
        };
        match block.kind {
            BlockKind::Definition => parts + framing.tool_definition,
            BlockKind::Call => {
                let name = history.tool_name(block).unwrap_or_default();
                parts + memo.count_text(self, &name) + framing.tool_block
            }
            BlockKind::Result => parts + framing.tool_block,
            BlockKind::Text | BlockKind::Reasoning | BlockKind::Media | BlockKind::Unknown => parts,
        }
    }

    fn count_part(self, history: &History, part: &Part, memo: &mut CountMemo) -> Tokens {
        match part.kind {
            PartKind::Text | PartKind::JsonText | PartKind::Json => {
                memo.count_text(self, &history.part_text(part))
            }
            PartKind::Image | PartKind::Document | PartKind::Audio => {
                let raw = part.span.bytes_in(history.bytes());
                let Ok(tape) = scan(raw) else { return Tokens::ZERO };
                tape.root(raw).map_or(Tokens::ZERO, |value| self.count_medium(value, part.kind, memo))
            }
            PartKind::Sealed => self.estimate_sealed(part),
        }
    }

    /// Estimates what a signature or sealed content stands for.
    fn estimate_sealed(self, part: &Part) -> Tokens {
        let characters_per_token = match self.tokenizer {
            Tokenizer::Claude(ClaudeGeneration::FromOpus47) => SEALED_CHARACTERS_PER_SHORT_TOKEN,
            Tokenizer::Claude(ClaudeGeneration::UpToOpus46)
            | Tokenizer::Exact(_)
            | Tokenizer::Gemini
            | Tokenizer::Unknown
            | Tokenizer::CharsPerFour => SEALED_CHARACTERS_PER_TOKEN,
        };
        Tokens::from_len(part.span.len()).scale(1.0 / characters_per_token)
    }

    fn count_medium(self, value: Value<'_>, kind: PartKind, memo: &mut CountMemo) -> Tokens {
        let found = MediumInfo::find_in(value);
        if let Some(text) = found.text {
            return memo.count_text(self, &text);
        }
        let assumed = match kind {
            PartKind::Image => "image/png",
            PartKind::Audio => "audio/mpeg",
            _ => "application/pdf",
        };
        let mime = found.mime.unwrap_or(Cow::Borrowed(assumed));
        let bytes = found.base64.as_deref().map_or(MediaBytes::Length(0), MediaBytes::Base64);
        count_media(self.images, &mime, bytes, found.detail)
    }

    /// Counts what the format adds around the blocks.
    fn count_frame(self, history: &History) -> Tokens {
        let framing = Framing::for_format(history.format(), self.tokenizer);
        let entries = history.entries();
        // Tools stand first; what follows is spoken.
        let lists = entries.iter().take_while(|entry| entry.role == Role::Tools).count();
        let defined = entries.iter().take(lists).any(|entry| !history.blocks_of(entry).is_empty());
        let list = if defined { framing.tool_list } else { Tokens::ZERO };
        framing.entry.times(entries.len() - lists) + framing.request + list
    }
}

/// What a medium's JSON tells about it.
#[derive(Default)]
struct MediumInfo<'a> {
    mime: Option<Cow<'a, str>>,
    base64: Option<Cow<'a, str>>,
    /// The text of a document that is given as text.
    text: Option<Cow<'a, str>>,
    detail: ImageDetail,
}

impl<'a> MediumInfo<'a> {
    /// Looks for media type and bytes in all the shapes that the four formats have.
    fn find_in(value: Value<'a>) -> MediumInfo<'a> {
        let inner = ["source", "image_url", "input_audio", "file", "inlineData", "inline_data"];
        let body =
            inner.iter().find_map(|key| value.get(key)).filter(|body| body.is_object()).unwrap_or(value);
        let mime = ["media_type", "mimeType", "mime_type"].iter().find_map(|key| body.text(key));
        let url = ["url", "image_url", "file_data"].iter().find_map(|key| body.text(key));
        let data = body.text("data");
        let detail = match body.text("detail").or(value.text("detail")).as_deref() {
            Some("low") => ImageDetail::Low,
            Some("high") => ImageDetail::High,
            _ => ImageDetail::Auto,
        };
        let as_text = body.get("type").is_some_and(|kind| kind.is("text"));
        match (data, url.as_deref().and_then(data_url)) {
            (Some(text), _) if as_text => MediumInfo { text: Some(text), ..MediumInfo::default() },
            (Some(base64), _) => MediumInfo { mime, base64: Some(base64), text: None, detail },
            (None, Some((mime, base64))) => {
                MediumInfo { mime: Some(mime.into()), base64: Some(base64.into()), text: None, detail }
            }
            (None, None) => MediumInfo { mime, base64: None, text: None, detail },
        }
    }
}

/// Takes a `data:` URL apart: media type and base64.
fn data_url(url: &str) -> Option<(String, String)> {
    let (head, base64) = url.strip_prefix("data:")?.split_once(',')?;
    let mime = head.split(';').next().unwrap_or_default();
    Some((mime.to_owned(), base64.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{history::Format, wire::parse_as};

    /// Counts the reasoning of one answer.
    fn check(model: &str, thinking: &str, signature: usize, tokens: u64) {
        let signature = "A".repeat(signature);
        let request = format!(
            r#"{{"messages":[{{"role":"user","content":"Go on"}},{{"role":"assistant","content":[
                {{"type":"thinking","thinking":"{thinking}","signature":"{signature}"}}]}}]}}"#
        );
        let history = parse_as(request.into_bytes(), Format::Anthropic).unwrap();
        let counts = Counter::for_model(model).count_request(&history, &mut CountMemo::default());
        assert_eq!(counts.blocks().last(), Some(&Tokens(tokens)));
    }

    #[test]
    fn reasoning_that_is_not_shown_counts_by_what_is_sealed() {
        check("claude-opus-4-6", "", 1000, 200);
        check("claude-opus-5", "", 1000, 286);
    }

    #[test]
    fn a_summary_of_reasoning_counts_as_the_reasoning_behind_it() {
        check("claude-opus-5", "I look at the tests first.", 1000, 286);
        let shown = "word ".repeat(100);
        let counter = Counter::for_model("claude-opus-4-6");
        check("claude-opus-4-6", &shown, 100, counter.count_text(&shown).0);
    }
}
