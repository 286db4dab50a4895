//! What a test run or a build printed. Keeps failures with two lines around them, totals, the first and last lines; folds
//! runs of passing and of equal lines. Loses what went well.

use super::{
    Digest, DigestText, Note, Piece,
    line_selection::LineSelection,
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
    shorten: |text| shorten(text, &LogLimits { whole: 12, head: 3, tail: 5, context: 2 }),
};

/// Measured on recordings as harmless before a log is first sent.
pub(super) const LONG: Digest = Digest {
    name: "log-long",
    about: "The same with more around it: the first 8 and last 25 lines.",
    shorten: |text| shorten(text, &LogLimits { whole: 40, head: 8, tail: 25, context: 2 }),
};

/// How much of a log stays, in lines.
#[derive(Debug)]
pub(super) struct LogLimits {
    /// A log up to this long is not shortened.
    pub(super) whole: usize,
    pub(super) head: usize,
    pub(super) tail: usize,
    /// Around an error line.
    pub(super) context: usize,
}

pub(super) fn shorten(text: &DigestText<'_>, limits: &LogLimits) -> Option<Vec<Piece>> {
    if text.len() <= limits.whole {
        return LineSelection::all(text).into_pieces();
    }
    let mut kept = LineSelection::none(text);
    kept.keep_ends(limits.head, limits.tail);
    kept.set_context(limits.context);
    fold_passing(text, &mut kept);
    if text.line(0).starts_with("$ ") {
        kept.keep_line(0);
    }
    let totals = read_log_totals(text);
    totals.lines.iter().rev().take(TOTALS_SHOWN).for_each(|line| kept.keep_line(*line));
    if text.context().outcome != Outcome::Unknown {
        kept.add_fact(Note::Status(text.context().outcome));
    }
    totals.by_runner.iter().for_each(|(_, sum)| kept.add_fact(Note::Totals(*sum)));
    kept.into_pieces()
}

/// Leaves out runs of lines that only say that all is well.
pub(super) fn fold_passing(text: &DigestText<'_>, kept: &mut LineSelection<'_, '_>) {
    let mut at = 0;
    while at < text.len() {
        let run = (at..text.len()).take_while(|&index| is_passing(&text.terminal_line(index))).count();
        if run >= FOLD_FROM {
            kept.leave_out_passing(at..at + run);
        }
        at += run.max(1);
    }
}
