//! Every statement of the five seed documents that says what comes out, as a test: one file per document. Where a
//! document contradicts itself, a test says which half is followed.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod s000;
mod s001;
mod s002;
mod s003;
mod s004;
mod talk;
