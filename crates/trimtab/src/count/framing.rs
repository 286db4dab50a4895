//! What a request costs beyond its texts. Gives the tokens that each wire format adds per entry, tool
//! definition, call and request. Never counts text: these are plain numbers, each with its origin.
//!
//! OpenAI's for Chat Completions are published. The others are measured or assumed and small: a
//! session's `Calibration` absorbs what they miss.

use super::{
    tokenizer::{ClaudeGeneration, Tokenizer},
    tokens::Tokens,
};

/// The shape of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WireFormat {
    /// Anthropic Messages.
    Anthropic,
    /// `OpenAI` Chat Completions.
    Chat,
    /// `OpenAI` Responses.
    Responses,
    /// Gemini `generateContent`.
    Gemini,
}

/// Returns what every message, turn or item adds.
pub const fn per_entry(format: WireFormat) -> Tokens {
    match format {
        // One message and its frame measure 7 tokens by `ctok` 1.3.0 (6 since Opus 4.8); the frame holds
        // the priming of the reply too, which `per_request` counts.
        WireFormat::Anthropic => Tokens(4),
        // "3 tokens per message" in OpenAI's cookbook on counting with tiktoken; the role is one more.
        WireFormat::Chat => Tokens(4),
        // Assumed to be as in Chat.
        WireFormat::Responses => Tokens(4),
        // Gemma's turn markers: start, role, newline, end, newline.
        WireFormat::Gemini => Tokens(5),
    }
}

/// Returns what a `name` beside the role adds, its own text apart.
pub const fn per_name(format: WireFormat) -> Tokens {
    match format {
        // "1 token per name" in OpenAI's cookbook.
        WireFormat::Chat => Tokens(1),
        WireFormat::Anthropic | WireFormat::Responses | WireFormat::Gemini => Tokens::ZERO,
    }
}

/// Returns what every request adds once: the priming of the reply.
pub const fn per_request(format: WireFormat) -> Tokens {
    match format {
        // "Every reply is primed with <|start|>assistant<|message|>" in OpenAI's cookbook.
        WireFormat::Chat | WireFormat::Responses => Tokens(3),
        // The rest of the measured frame of 7.
        WireFormat::Anthropic => Tokens(3),
        WireFormat::Gemini => Tokens(3),
    }
}

/// Returns what a tool call or a tool result adds around its texts.
pub const fn per_tool_block(format: WireFormat) -> Tokens {
    match format {
        // Assumed: Claude sees calls and results as tagged text with an id that the request spells out.
        WireFormat::Anthropic => Tokens(10),
        // Assumed: a recipient and a channel beside the message frame.
        WireFormat::Chat | WireFormat::Responses => Tokens(4),
        WireFormat::Gemini => Tokens(4),
    }
}

/// Returns what each tool definition adds to its name, description and schema.
pub const fn per_tool_definition(format: WireFormat) -> Tokens {
    match format {
        // "func_init 7, func_end 12 once" in OpenAI's cookbook, for models since GPT-4o.
        WireFormat::Chat | WireFormat::Responses => Tokens(7),
        // Assumed: the schema is counted as it is spelt in the request.
        WireFormat::Anthropic => Tokens(8),
        WireFormat::Gemini => Tokens(4),
    }
}

/// Returns what a request with any tool definition adds once.
pub const fn per_tool_list(format: WireFormat, tokenizer: Tokenizer) -> Tokens {
    match format {
        // The tool-use system prompt in Anthropic's pricing table: 346 tokens with tool_choice `auto` for
        // Claude 4 models. For the newer tokenizer the same text is scaled by its factor on prose, 1.38.
        WireFormat::Anthropic => match tokenizer {
            Tokenizer::Claude(ClaudeGeneration::FromOpus47) => Tokens(477),
            Tokenizer::Claude(ClaudeGeneration::UpToOpus46)
            | Tokenizer::Exact(_)
            | Tokenizer::Gemini
            | Tokenizer::Unknown
            | Tokenizer::CharsPerFour => Tokens(346),
        },
        WireFormat::Chat | WireFormat::Responses => Tokens(12),
        WireFormat::Gemini => Tokens::ZERO,
    }
}
