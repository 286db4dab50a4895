//! Keeps an LLM agent's conversation inside its context window.

mod count;
mod prices;

pub use count::{
    Calibration, ClaudeGeneration, ContentHash, Counter, Detail, Exactness, Framing, ImageRule, MediaBytes,
    Memo, Tokenizer, Tokens, Vocabulary, WireFormat, media,
};
pub use prices::{Cliff, Model, Prices, UnknownModel, find_model, models, prices_date};
