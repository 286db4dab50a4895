//! What an output says about what is being done. Keeps the passages that share most with the words of the task and of the call's
//! own query, with the first and the last line and error lines; loses the rest. A text that shares no word is shortened by its kind.

use std::ops::Range;

use super::{Digest, DigestText, Piece, choose_digest, line_selection::LineSelection};
use crate::{
    digest::{ranked_lines, relevance_scores},
    json::scan,
};

/// The share of a text that its passages may have, in percent, and how much they may have at least, in bytes.
const SHARE: usize = 25;
const LEAST: usize = 600;
/// A passage ends at a blank line, after so many lines, or after so many bytes.
const PASSAGE_LINES: usize = 8;
const PASSAGE_BYTES: usize = 800;
/// What a line costs at most, in bytes: longer ones are cut.
const CUT_LINE: usize = 440;
/// Passages with less than this share of the best one's score tell nothing, in percent.
const WORTH: f64 = 0.25;

/// Its name: whoever calls it by that gives it words.
pub(crate) const RELEVANT: &str = "relevant";

pub(super) const DIGEST: Digest = Digest {
    name: RELEVANT,
    about: "Keeps the passages that share most words with the task and the call's query, up to a quarter of the text, and error lines; without a match the digest of its kind.",
    shorten: |text| best_passages(text).unwrap_or_else(|| (choose_digest(text).shorten)(text)),
};

/// Gives the pieces of a text with its best passages; nothing where no passage shares a word with the task, and for JSON, which
/// stays valid.
fn best_passages(text: &DigestText<'_>) -> Option<Option<Vec<Piece>>> {
    let most = (text.whole().len() * SHARE / 100).max(LEAST);
    if text.context().terms.is_empty() || text.whole().len() <= LEAST || is_json(text.whole()) {
        return None;
    }
    let windows = split_passages(text);
    let documents = windows.iter().map(|window| text.raw_lines(window.clone()));
    let mut ranked: Vec<(f64, Range<usize>)> =
        relevance_scores(documents, text.context().terms).into_iter().zip(windows.iter().cloned()).collect();
    // The best first; of equals the earlier, so that the choice is always the same.
    ranked.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.start.cmp(&other.1.start)));
    let best = ranked.first().map(|(score, _)| *score).filter(|best| *best > 0.0)?;
    let mut kept = LineSelection::none(text);
    kept.keep_ends(1, 1);
    let mut left = most;
    let mut any = false;
    for (_, window) in ranked.into_iter().take_while(|(score, _)| *score >= best * WORTH) {
        let Some(less) = left.checked_sub(passage_cost(text, &window)) else { continue };
        (left, any) = (less, true);
        kept.keep_lines(window);
    }
    any.then(|| kept.into_pieces())
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && scan(text.as_bytes()).is_ok()
}

fn passage_cost(text: &DigestText<'_>, lines: &Range<usize>) -> usize {
    lines.clone().map(|line| text.line(line).len().min(CUT_LINE) + 1).sum()
}

/// Splits a text into passages.
fn split_passages(text: &DigestText<'_>) -> Vec<Range<usize>> {
    let mut windows: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    for line in 0..text.len() {
        let is_blank = text.line(line).trim().is_empty();
        let is_full = line - start >= PASSAGE_LINES || text.raw_lines(start..line).len() >= PASSAGE_BYTES;
        if is_blank || is_full {
            windows.push(start..line);
            start = if is_blank { line + 1 } else { line };
        }
    }
    windows.push(start..text.len());
    windows.retain(|window| !window.is_empty());
    windows
}

/// Keeps the `most` lines that say most about some words, with the first and the last line.
pub(crate) fn relevant_lines(text: &DigestText<'_>, terms: &[String], most: usize) -> Option<Vec<Piece>> {
    let mut kept = LineSelection::none(text);
    kept.keep_ends(1, 1);
    ranked_lines(text.whole(), terms, most).into_iter().for_each(|line| kept.keep_line(line));
    kept.into_pieces()
}
