//! Counts tokens. Takes text, media and a model's name; gives `Tokens`: exact where the vocabulary is
//! public, else an estimate that says so. Never counts the same bytes twice when given a `CountMemo`, never
//! loads a vocabulary before it is needed, and never loads one for `Tokenizer::CharsPerFour`.

mod calibration;
mod estimate;
mod exact;
mod framing;
mod media;
mod memo;
mod request;
mod tokenizer;

pub use calibration::Calibration;
pub use memo::{ContentHash, CountMemo};
pub use request::Counts;
pub use tokenizer::{ClaudeGeneration, Exactness, Tokenizer, Vocabulary};

use crate::units::Tokens;
use media::ImageRule;

/// Counts the way one model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    tokenizer: Tokenizer,
    images: ImageRule,
}

impl Counter {
    /// Makes a counter with a tokenizer; images are counted as GPT-4o does. Loads nothing.
    pub const fn new(tokenizer: Tokenizer) -> Self {
        Self { tokenizer, images: media::GPT_4O }
    }

    /// Makes the counter of a model. Loads nothing.
    pub fn for_model(model: &str) -> Self {
        Self { tokenizer: Tokenizer::for_model(model), images: ImageRule::for_model(model) }
    }

    /// Returns the tokenizer it counts with.
    pub const fn tokenizer(self) -> Tokenizer {
        self.tokenizer
    }

    /// Counts a text by itself, without the framing of a message around it.
    pub fn count_text(self, text: &str) -> Tokens {
        match self.tokenizer {
            Tokenizer::Exact(vocabulary) => exact::count(vocabulary, text),
            Tokenizer::Claude(ClaudeGeneration::UpToOpus46) => {
                estimate::estimate(&estimate::CLAUDE_UP_TO_OPUS_46, text)
            }
            Tokenizer::Claude(ClaudeGeneration::FromOpus47) => {
                estimate::estimate(&estimate::CLAUDE_FROM_OPUS_47, text)
            }
            Tokenizer::Gemini => estimate::estimate(&estimate::GEMINI, text),
            Tokenizer::Unknown => exact::count(Vocabulary::O200k, text),
            Tokenizer::CharsPerFour => estimate::chars_per_four(text),
        }
    }
}

#[cfg(test)]
mod tests;
