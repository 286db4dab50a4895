//! What a test run or a build printed. Keeps failures with two lines around them, totals, the first and last lines; folds
//! runs of passing and of equal lines. Loses what went well.

use super::{
    Digest, Note, Piece, Text,
    kept::Kept,
    totals::{is_passing, read_log_totals},
};
use crate::facts::Outcome;

/// How many passing lines in a row are folded.
const FOLD_FROM: usize = 4;
/// How many lines with totals are shown, the last ones.
const TOTALS_SHOWN: usize = 6;

pub(super) const DIGEST: Digest = Digest {
    name: "log",
    about: "Test and build logs: keeps failures with 2 lines around them, totals, the first 3 and last 5 lines.",
    shorten: |text| shorten(text, &Limits { whole: 12, head: 3, tail: 5, context: 2 }),
};

/// Measured on recordings as harmless before a log is first sent.
pub(super) const LONG: Digest = Digest {
    name: "log-long",
    about: "The same with more around it: the first 8 and last 25 lines.",
    shorten: |text| shorten(text, &Limits { whole: 40, head: 8, tail: 25, context: 2 }),
};

/// How much of a log stays, in lines.
#[derive(Debug)]
pub(super) struct Limits {
    /// A log up to this long stays whole.
    pub(super) whole: usize,
    pub(super) head: usize,
    pub(super) tail: usize,
    /// Around an error line.
    pub(super) context: usize,
}

pub(super) fn shorten(text: &Text<'_>, limits: &Limits) -> Option<Vec<Piece>> {
    if text.len() <= limits.whole {
        return Kept::all(text).pieces();
    }
    let mut kept = Kept::none(text);
    kept.ends(limits.head, limits.tail);
    kept.context(limits.context);
    fold_passing(text, &mut kept);
    if text.line(0).starts_with("$ ") {
        kept.line(0);
    }
    let totals = read_log_totals(text);
    totals.lines.iter().rev().take(TOTALS_SHOWN).for_each(|line| kept.line(*line));
    if text.about().outcome != Outcome::Unknown {
        kept.fact(Note::Status(text.about().outcome));
    }
    totals.by_runner.iter().for_each(|(_, sum)| kept.fact(Note::Totals(*sum)));
    kept.pieces()
}

/// Leaves out runs of lines that only say that all is well.
pub(super) fn fold_passing(text: &Text<'_>, kept: &mut Kept<'_, '_>) {
    let mut at = 0;
    while at < text.len() {
        let run = (at..text.len()).take_while(|&index| is_passing(&text.shown(index))).count();
        if run >= FOLD_FROM {
            kept.passing(at..at + run);
        }
        at += run.max(1);
    }
}
