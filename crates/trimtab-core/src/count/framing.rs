//! What a request costs beyond its texts. Takes a wire format and a tokenizer, gives the tokens that
//! are added per entry, call, tool definition and request. Never counts text: these are plain numbers.
//!
//! Those of `OpenAI` are published for Chat Completions; the others are measured on the frame of one
//! message or assumed, and small: a session's `Calibration` absorbs what they miss.

use super::tokenizer::{ClaudeGeneration, Tokenizer};
use crate::{history::Format, units::Tokens};

/// Tokens that a wire format adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Framing {
    /// Around every message, turn or item, its role included.
    pub(super) entry: Tokens,
    /// Around the texts of a tool call or a tool result.
    pub(super) tool_block: Tokens,
    /// Around the name, description and schema of a tool.
    pub(super) tool_definition: Tokens,
    /// Once, if any tool is defined.
    pub(super) tool_list: Tokens,
    /// Once: the priming of the reply.
    pub(super) request: Tokens,
}

impl Framing {
    /// Returns what `format` adds for a model that counts with `tokenizer`.
    pub(super) const fn for_format(format: Format, tokenizer: Tokenizer) -> Self {
        match (format, tokenizer) {
            (Format::Anthropic, Tokenizer::Claude(ClaudeGeneration::FromOpus47)) => ANTHROPIC_FROM_OPUS_47,
            (Format::Anthropic, _) => ANTHROPIC,
            (Format::Gemini, _) => GEMINI,
            // A format without figures is assumed to cost what Chat does; calibration absorbs the difference.
            (_, _) => OPENAI,
        }
    }
}

/// `entry` and `request` are those of the cookbook's page on counting with tiktoken: 3 per
/// message and 1 for the role, 3 for the reply; so are `tool_definition` (`func_init`, 7) and
/// `tool_list` (`func_end`, 12) for models since GPT-4o. `tool_block` is assumed: a recipient and a
/// channel. Responses is assumed to cost what Chat does.
const OPENAI: Framing = Framing {
    entry: Tokens(4),
    tool_block: Tokens(4),
    tool_definition: Tokens(7),
    tool_list: Tokens(12),
    request: Tokens(3),
};

/// A single message has a frame of 7 tokens by `ctok` 1.3.0, here shared out between `entry` and
/// `request`. `tool_list` is the tool-use system prompt of the pricing page for Claude 4 models with
/// `tool_choice` `auto`: 346. The tags around calls, results and definitions are assumed.
const ANTHROPIC: Framing = Framing {
    entry: Tokens(4),
    tool_block: Tokens(10),
    tool_definition: Tokens(8),
    tool_list: Tokens(346),
    request: Tokens(3),
};

/// The frame of a single message is 6 tokens since Opus 4.8 (11 for Opus 4.7) by `ctok`. The system
/// prompt for tools is assumed to be the same text, which the newer tokenizer counts 1.38 times.
const ANTHROPIC_FROM_OPUS_47: Framing = Framing { entry: Tokens(3), tool_list: Tokens(477), ..ANTHROPIC };

/// Gemma's turn markers: start, role, line feed, end, line feed. The rest is assumed.
const GEMINI: Framing = Framing {
    entry: Tokens(5),
    tool_block: Tokens(4),
    tool_definition: Tokens(4),
    tool_list: Tokens::ZERO,
    request: Tokens(3),
};

#[cfg(test)]
mod tests {
    use super::{Format, Framing};
    use crate::{
        count::{Tokenizer, Vocabulary},
        units::Tokens,
    };

    #[test]
    fn one_short_chat_message_costs_its_text_and_seven() {
        let framing = Framing::for_format(Format::Chat, Tokenizer::Exact(Vocabulary::O200k));
        assert_eq!(framing.entry + framing.request, Tokens(7));
    }

    #[test]
    fn the_tool_prompt_of_claude_grows_with_its_tokenizer() {
        let of = |model| Framing::for_format(Format::Anthropic, Tokenizer::for_model(model)).tool_list;
        assert_eq!((of("claude-opus-4-6"), of("claude-opus-4-7")), (Tokens(346), Tokens(477)));
    }
}
