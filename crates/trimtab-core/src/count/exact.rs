//! Exact counts where the vocabulary is public. Takes text, gives the number of tokens that the
//! provider's own tokenizer gives, with special-token text such as `<|endoftext|>` read as ordinary
//! text. Never loads a vocabulary before the first call that needs it.

use tiktoken::CoreBpe;

use super::tokenizer::Vocabulary;
use crate::units::Tokens;

/// Runs of one repeated character from this many bytes on are counted by arithmetic.
const LONG_RUN_BYTES: usize = 16 * 1024;

/// How much of a long run is really encoded. Merges inside a run settle into one repeated token well
/// within it: the longest token of either vocabulary is 128 bytes.
const KEPT_RUN_BYTES: usize = 2048;

/// Counts `text` in `vocabulary`.
pub(super) fn count(vocabulary: Vocabulary, text: &str) -> Tokens {
    // Every name in `Vocabulary` is switched on in Cargo.toml and a test loads each, so the absent
    // branch is never taken; bytes are the upper bound of any byte-level vocabulary.
    let Some(bpe) = tiktoken::get_encoding(vocabulary.name()) else {
        return Tokens::from_len(text.len());
    };
    if text.len() >= LONG_RUN_BYTES
        && let Some(tokens) = count_around_long_runs(bpe, text)
    {
        return Tokens::from_len(tokens);
    }
    Tokens::from_len(bpe.count(text))
}

/// One repeated character that fills `start..end`.
struct CharacterRun<'a> {
    start: usize,
    end: usize,
    character: &'a str,
}

/// Counts a text that holds long runs of one character, or `None` if it holds none.
///
/// The merge loop's cost per byte is highest on such runs (separators, padding, a stuck key), and
/// they are the one hostile input that needs no merge loop. A sequence of tokens is a byte-pair
/// encoding exactly if each two neighbours are the encoding of the two together. So where the
/// encoding of a shorter run holds the same token twice in a row, one more copy of it is the encoding
/// of a run that is longer by that token: the middle of the run is cut out and counted by division.
/// Splitting into words does not interfere, as all characters of a run are of one class.
fn count_around_long_runs(bpe: &CoreBpe, text: &str) -> Option<usize> {
    let mut shortened = String::new();
    let mut copied = 0;
    let mut cut_tokens = 0;
    for run in long_runs(text) {
        let Some(token_bytes) = repeated_token_bytes(bpe, run.character) else { continue };
        let cut = (run.end - run.start - KEPT_RUN_BYTES) / token_bytes;
        shortened.push_str(text.get(copied..run.end - cut * token_bytes)?);
        copied = run.end;
        cut_tokens += cut;
    }
    if copied == 0 {
        return None;
    }
    shortened.push_str(text.get(copied..)?);
    Some(bpe.count(&shortened) + cut_tokens)
}

/// Returns the length of the token that the middle of a long run of `character` is made of.
fn repeated_token_bytes(bpe: &CoreBpe, character: &str) -> Option<usize> {
    let tokens = bpe.encode(&character.repeat(KEPT_RUN_BYTES / character.len()));
    let middle = tokens.len() / 2;
    let &[before, token, after] = tokens.get(middle.checked_sub(1)?..middle + 2)? else { return None };
    let bytes = bpe.decode(&[token]).len();
    // A token that ends inside a character would shift the cut off the character's boundary.
    (before == token && token == after && bytes.is_multiple_of(character.len())).then_some(bytes)
}

/// Finds the runs of one character that are at least `LONG_RUN_BYTES` long.
///
/// Any such run covers a whole sampling step, so it is enough to look around every sample.
fn long_runs(text: &str) -> Vec<CharacterRun<'_>> {
    let mut runs: Vec<CharacterRun<'_>> = Vec::new();
    let mut sample = 0;
    while sample < text.len() {
        let at = text.floor_char_boundary(sample);
        let run = run_around(text, at);
        sample = run.end.max(sample) + LONG_RUN_BYTES / 2;
        if run.end - run.start >= LONG_RUN_BYTES {
            runs.push(run);
        }
    }
    runs
}

/// Returns the run of one character around the character that starts at `at`.
fn run_around(text: &str, at: usize) -> CharacterRun<'_> {
    let (before, after) = text.split_at(at);
    let character = after.chars().next().and_then(|first| after.get(..first.len_utf8())).unwrap_or("");
    if character.is_empty() {
        return CharacterRun { start: at, end: at, character };
    }
    let same = |chunk: &&[u8]| *chunk == character.as_bytes();
    let left = before.as_bytes().rchunks_exact(character.len()).take_while(same).count();
    let right = after.as_bytes().chunks_exact(character.len()).take_while(same).count();
    CharacterRun { start: at - left * character.len(), end: at + right * character.len(), character }
}
