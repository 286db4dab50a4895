//! What a command printed. Keeps the line with the command, the first and last lines, totals and errors, and how it ended;
//! loses what lies between.

use super::{Digest, DigestText, Piece, log};

/// Output up to this many lines is kept whole.
const WHOLE: usize = 10;
/// How many lines stay at the beginning and at the end.
const HEAD: usize = 2;
const TAIL: usize = 3;

pub(super) const DIGEST: Digest = Digest {
    name: "shell",
    about: "Keeps the `$ command` line, the first 2 and last 3 lines, error lines, totals and the exit status.",
    shorten: |text: &DigestText<'_>| -> Option<Vec<Piece>> {
        log::shorten(text, &log::LogLimits { whole: WHOLE, head: HEAD, tail: TAIL, context: 0 })
    },
};
