//! What a request costs beyond its texts. Gives the tokens that each wire format adds per entry, tool
//! definition, call and request. Never counts text: these are plain numbers, each with its origin.
//!
//! OpenAI's for Chat Completions are published. The others are measured or assumed and small: a
//! session's `Calibration` absorbs what they miss.

#![expect(clippy::match_same_arms, reason = "one arm per format, each with the origin of its number")]

use super::{
    tokenizer::{ClaudeGeneration, Tokenizer},
    tokens::Tokens,
};
use crate::wire::Format;

/// Returns what every message, turn or item adds.
pub(super) const fn per_entry(format: Format) -> Tokens {
    match format {
        // One message and its frame measure 7 tokens by `ctok` 1.3.0 (6 since Opus 4.8); the frame holds
        // the priming of the reply too, which `per_request` counts.
        Format::Anthropic => Tokens(4),
        // "3 tokens per message" in OpenAI's cookbook on counting with tiktoken; the role is one more.
        Format::Chat => Tokens(4),
        // Assumed to be as in Chat.
        Format::Responses => Tokens(4),
        // Gemma's turn markers: start, role, newline, end, newline.
        Format::Gemini => Tokens(5),
    }
}

/// Returns what every request adds once: the priming of the reply.
pub(super) const fn per_request(format: Format) -> Tokens {
    match format {
        // "Every reply is primed with <|start|>assistant<|message|>" in OpenAI's cookbook.
        Format::Chat | Format::Responses => Tokens(3),
        // The rest of the measured frame of 7.
        Format::Anthropic => Tokens(3),
        Format::Gemini => Tokens(3),
    }
}

/// Returns what a tool call or a tool result adds around its texts.
pub(super) const fn per_tool_block(format: Format) -> Tokens {
    match format {
        // Assumed: Claude sees calls and results as tagged text with an id that the request spells out.
        Format::Anthropic => Tokens(10),
        // Assumed: a recipient and a channel beside the message frame.
        Format::Chat | Format::Responses => Tokens(4),
        Format::Gemini => Tokens(4),
    }
}

/// Returns what each tool definition adds to its name, description and schema.
pub(super) const fn per_tool_definition(format: Format) -> Tokens {
    match format {
        // "func_init 7, func_end 12 once" in OpenAI's cookbook, for models since GPT-4o.
        Format::Chat | Format::Responses => Tokens(7),
        // Assumed: the schema is counted as it is spelt in the request.
        Format::Anthropic => Tokens(8),
        Format::Gemini => Tokens(4),
    }
}

/// Returns what a request with any tool definition adds once.
pub(super) const fn per_tool_list(format: Format, tokenizer: Tokenizer) -> Tokens {
    match format {
        // The tool-use system prompt in Anthropic's pricing table: 346 tokens with tool_choice `auto` for
        // Claude 4 models. For the newer tokenizer the same text is scaled by its factor on prose, 1.38.
        Format::Anthropic => match tokenizer {
            Tokenizer::Claude(ClaudeGeneration::FromOpus47) => Tokens(477),
            Tokenizer::Claude(ClaudeGeneration::UpToOpus46)
            | Tokenizer::Exact(_)
            | Tokenizer::Gemini
            | Tokenizer::Unknown
            | Tokenizer::CharsPerFour => Tokens(346),
        },
        Format::Chat | Format::Responses => Tokens(12),
        Format::Gemini => Tokens::ZERO,
    }
}
