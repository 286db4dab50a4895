//! What a policy would have cost, saved and lost in a recorded segment. Takes a segment laid out as a [`Track`] and the
//! [`Views`] that a policy, a peer or an oracle gives of it; gives the bill and what was missed. Never calls a model, never
//! looks at the clock: times are those of the recording.

mod bill;
#[cfg(test)]
mod bill_tests;
mod cache;
#[cfg(test)]
mod cache_tests;
mod contender;
mod fidelity;
#[cfg(test)]
mod guard_tests;
mod ledger;
mod log;
mod oracle;
mod peers;
mod played;
mod predicted;
mod report;
mod score;
mod simulated;
mod track;
mod valid;
mod view;

pub use contender::{Contender, ContenderError, Family, Knobs, contenders};
pub use fidelity::Share;
pub use report::{Row, SessionScores, pool};
pub use score::{Budget, Kept, Missed, Score, Terms, replay};
pub use simulated::CacheSimulation;

pub(crate) use bill::{Bill, Charge, bill};
pub(crate) use fidelity::{Fidelity, Miss, Uses, fidelity};
#[doc(hidden)]
pub use fidelity::{Figure, NeedSums, Probe, probe};
pub(crate) use oracle::Need;
pub(crate) use peers::Case;
pub use predicted::{Prediction, predicted_usage};
pub(crate) use track::{Request, Track};
pub(crate) use view::{Change, Showing, Shown, Views};
