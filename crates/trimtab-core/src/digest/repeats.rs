//! Folds what repeats itself: equal lines or blocks of two or three lines, four times or more in a row, and as many lines that
//! only say that all is well. Keeps everything else; loses nothing that is not said once.

use super::{Digest, line_selection::LineSelection, log::fold_passing};

pub(super) const DIGEST: Digest = Digest {
    name: "repeats",
    about: "Folds lines that repeat 4 times or more and runs of passing lines; keeps everything else.",
    shorten: |text| {
        let mut kept = LineSelection::all(text);
        kept.whole_lines();
        fold_passing(text, &mut kept);
        kept.into_pieces()
    },
};
