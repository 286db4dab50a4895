//! Remembers counts by content. Takes a text and a counter, gives the count, and counts only what it
//! has not met. Never grows past its bound, and never changes a count: it may be dropped at any time.

use std::{collections::HashMap, mem};

use super::{Counter, tokenizer::Tokenizer};
use crate::units::Tokens;

/// How many counts one generation holds: with two of them about 6 MB at most, and more blocks than
/// the longest recorded session has.
const GENERATION: usize = 1 << 16;

/// The first half of the BLAKE3 hash of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentHash([u8; 16]);

impl ContentHash {
    /// Hashes a text.
    pub fn hash_text(text: &str) -> Self {
        Self::from(&blake3::hash(text.as_bytes()))
    }
}

impl From<&blake3::Hash> for ContentHash {
    fn from(hash: &blake3::Hash) -> Self {
        let mut half = [0; 16];
        half.copy_from_slice(hash.as_bytes().split_at(16).0);
        Self(half)
    }
}

/// Counts already made, in two generations: when the young one is full it becomes the old one, and
/// what was in the old one and not asked for since is forgotten.
#[derive(Debug)]
pub struct CountMemo {
    generation: usize,
    young: HashMap<(ContentHash, Tokenizer), Tokens>,
    old: HashMap<(ContentHash, Tokenizer), Tokens>,
}

impl Default for CountMemo {
    fn default() -> Self {
        Self::with_generation(GENERATION)
    }
}

impl CountMemo {
    /// Makes a memo that holds at most twice `generation` counts.
    pub fn with_generation(generation: usize) -> Self {
        Self { generation: generation.max(1), young: HashMap::new(), old: HashMap::new() }
    }

    /// Counts `text`, or remembers what it counted before.
    pub fn count_text(&mut self, counter: Counter, text: &str) -> Tokens {
        self.count_hashed(counter, ContentHash::hash_text(text), text)
    }

    /// Does the same for a text whose hash is already known.
    pub fn count_hashed(&mut self, counter: Counter, hash: ContentHash, text: &str) -> Tokens {
        let key = (hash, counter.tokenizer());
        if let Some(&tokens) = self.young.get(&key) {
            return tokens;
        }
        let tokens = self.old.get(&key).copied().unwrap_or_else(|| counter.count_text(text));
        if self.young.len() >= self.generation {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, tokens);
        tokens
    }
}

#[cfg(test)]
mod tests {
    use super::{ContentHash, CountMemo};
    use crate::{
        count::{Counter, Tokenizer, Vocabulary},
        units::Tokens,
    };

    const CHARS: Counter = Counter::new(Tokenizer::CharsPerFour);

    /// A memo that is asked with another text under a hash it knows answers from memory alone.
    fn remembers(memo: &mut CountMemo, text: &str) -> bool {
        memo.count_hashed(CHARS, ContentHash::hash_text(text), "") != Tokens::ZERO
    }

    #[test]
    fn a_known_text_is_not_counted_again() {
        let mut memo = CountMemo::default();
        assert_eq!(memo.count_text(CHARS, "four chars and more"), Tokens(5));
        assert!(remembers(&mut memo, "four chars and more"));
    }

    #[test]
    fn tokenizers_do_not_share_counts() {
        let mut memo = CountMemo::default();
        assert_eq!(memo.count_text(CHARS, "hello world"), Tokens(3));
        assert_eq!(
            memo.count_text(Counter::new(Tokenizer::Exact(Vocabulary::O200k)), "hello world"),
            Tokens(2)
        );
    }

    #[test]
    fn it_holds_at_most_two_generations_and_keeps_what_is_asked_for() {
        let mut memo = CountMemo::with_generation(4);
        memo.count_text(CHARS, "kept");
        for n in 0..100 {
            memo.count_text(CHARS, &format!("text {n}"));
            memo.count_text(CHARS, "kept");
            assert!(memo.young.len() + memo.old.len() <= 8);
        }
        assert!(remembers(&mut memo, "kept"));
        assert!(!remembers(&mut memo, "text 0"));
    }
}
