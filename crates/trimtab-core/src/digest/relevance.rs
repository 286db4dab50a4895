//! Which parts of an output matter for what is being done. Takes texts and the words of the task; scores them by BM25, each line
//! or passage a document. Summaries rank lines with it, the digest `relevant` passages. Never changes a line; time grows with the
//! text, not with its square.

use std::collections::{HashMap, HashSet};

use crate::{
    facts::{Facts, Voice, text_head},
    history::{BlockKind, History},
};

/// How soon more of the same word stops counting, and how much less long lines count: the usual values of BM25.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// Words that tell nothing about what a line is about.
const COMMON: &[&str] = &[
    "the", "and", "for", "that", "this", "with", "from", "are", "was", "not", "you", "your", "have", "has",
    "but", "can", "will", "all", "use", "let", "its", "into", "then", "than", "when", "should", "would",
    "please", "there", "what", "which",
];

/// Returns the words that name what a text is about: lower case, each once, in the order in which they come.
pub fn query_terms(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    words_in(text)
        .filter(|word| !COMMON.contains(&word.as_str()))
        .filter(|word| seen.insert(word.clone()))
        .collect()
}

/// How much of one message is read for words, in bytes.
const MESSAGE: usize = 2000;
/// Messages are added, the latest first, until there are so many words: "go on" names no task.
const ENOUGH_WORDS: usize = 8;
const MOST_MESSAGES: usize = 3;

/// Returns the words of what the user asked for last.
pub(crate) fn task_words(history: &History, facts: &Facts) -> Vec<String> {
    let spoken = facts.rows().iter().zip(history.blocks()).rev();
    let spoken = spoken
        .filter(|(fact, block)| fact.voice == Some(Voice::Person) && block.kind == BlockKind::Text)
        .take(MOST_MESSAGES);
    let mut words = Vec::new();
    for (_, block) in spoken {
        let said = query_terms(text_head(&history.block_text(block), MESSAGE));
        let new: Vec<String> = said.into_iter().filter(|word| !words.contains(word)).collect();
        words.extend(new);
        if words.len() >= ENOUGH_WORDS {
            break;
        }
    }
    words
}

/// Returns the numbers of the `most` lines that say most about some words, counted from 0 and in order; lines that share no word
/// are not among them.
pub fn ranked_lines(text: &str, terms: &[String], most: usize) -> Vec<usize> {
    let mut scored: Vec<(usize, f64)> =
        relevance_scores(text.lines(), terms).into_iter().enumerate().collect();
    scored.retain(|(_, score)| *score > 0.0);
    if most == 0 {
        return Vec::new();
    }
    // The best first; of equals the earlier, so that the choice is always the same.
    let by_score =
        |one: &(usize, f64), other: &(usize, f64)| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0));
    if scored.len() > most {
        scored.select_nth_unstable_by(most - 1, by_score);
        scored.truncate(most);
    }
    let mut lines: Vec<usize> = scored.into_iter().map(|(line, _)| line).collect();
    lines.sort_unstable();
    lines
}

/// Says of each document how much it has to do with some words; nothing where it holds none of them.
pub(crate) fn relevance_scores<'a>(documents: impl Iterator<Item = &'a str>, terms: &[String]) -> Vec<f64> {
    let wanted: HashMap<&str, usize> =
        terms.iter().enumerate().map(|(number, term)| (term.as_str(), number)).collect();
    let mut lengths: Vec<usize> = Vec::new();
    // Of every document, the terms in it and how often.
    let mut found: Vec<Vec<(usize, usize)>> = Vec::new();
    let mut documents_with = vec![0_usize; terms.len()];
    for document in documents {
        let mut length = 0;
        let mut here: Vec<(usize, usize)> = Vec::new();
        for word in words_in(document) {
            length += 1;
            let Some(term) = wanted.get(word.as_str()) else { continue };
            match here.iter_mut().find(|(known, _)| known == term) {
                Some((_, times)) => *times += 1,
                None => here.push((*term, 1)),
            }
        }
        for (term, _) in &here {
            if let Some(count) = documents_with.get_mut(*term) {
                *count += 1;
            }
        }
        lengths.push(length);
        found.push(here);
    }
    let count = to_float(found.len());
    let mean = (to_float(lengths.iter().sum()) / count.max(1.0)).max(1.0);
    let rarity: Vec<f64> = documents_with
        .iter()
        .map(|with| (1.0 + (count - to_float(*with) + 0.5) / (to_float(*with) + 0.5)).ln())
        .collect();
    let score = |(here, length): (&Vec<(usize, usize)>, &usize)| -> f64 {
        let held = SATURATION * (1.0 - LENGTH + LENGTH * to_float(*length) / mean);
        let of_term = |(term, times): &(usize, usize)| {
            let times = to_float(*times);
            rarity.get(*term).copied().unwrap_or_default() * times * (SATURATION + 1.0) / (times + held)
        };
        here.iter().map(of_term).sum()
    };
    found.iter().zip(&lengths).map(score).collect()
}

/// Splits a text into words: letters, digits and underscores, three at least. `camelCase` and `snake_case` are not split, as they
/// are searched for.
fn words_in(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    parts.filter(|word| word.len() >= 3).map(str::to_lowercase)
}

fn to_float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, about: &str, most: usize, lines: &[usize]) {
        assert_eq!(ranked_lines(text, &query_terms(about), most), lines);
    }

    const LOG: &str = "compiling parser\ncompiling lexer\nlexer: token overflow in read_token\ncompiling writer\nread_token returned 3";

    #[test]
    fn rare_words_of_the_task_beat_common_ones() {
        check(LOG, "Fix the overflow in read_token, compiling is fine", 1, &[2]);
        check(LOG, "Fix the overflow in read_token", 2, &[2, 4]);
    }

    #[test]
    fn lines_come_in_their_order_and_strangers_not_at_all() {
        check(LOG, "lexer", 9, &[1, 2]);
        check(LOG, "unrelated words", 9, &[]);
        check(LOG, "lexer", 0, &[]);
        check("", "lexer", 3, &[]);
    }

    #[test]
    fn of_equal_lines_the_earlier_ones_are_taken() {
        check("same word\nsame word\nsame word", "word", 2, &[0, 1]);
    }

    #[test]
    fn time_grows_with_the_text() {
        let text = "some line about the parser and a token\n".repeat(200_000);
        assert_eq!(ranked_lines(&text, &query_terms("parser token"), 3), [0, 1, 2]);
    }
}
