//! What a policy would have cost, saved and lost in a recorded segment. Takes a segment laid out as a [`Track`] and the
//! [`Views`] that a policy, a peer or an oracle gives of it; gives the bill and what was missed. Never calls a model, never
//! looks at the clock: times are those of the recording.

mod bill;
#[cfg(test)]
mod bill_tests;
mod bounds;
mod cache;
#[cfg(test)]
mod cache_tests;
mod contender;
mod fidelity;
#[cfg(test)]
mod guard_tests;
mod keep_alive;
mod ledger;
mod log;
mod oracle;
mod peers;
mod policy_views;
mod prediction;
mod report;
mod score;
mod simulated;
mod terms;
mod track;
mod valid;
mod view;

#[doc(hidden)]
pub use bounds::{BoundCheck, check_bounds};
pub use contender::{Contender, ContenderError, ContenderFamily, KnobRange, contenders, policy_words};
pub use fidelity::NeededShare;
pub use report::{ScoreRow, SessionScores, pool_sessions};
pub use score::{MissReport, Score, replay};
pub use simulated::CacheSimulation;
pub use terms::{CacheRetention, ReplayBudget, ReplayTerms};

pub(crate) use bill::{SegmentBill, bill_segment};
pub(crate) use fidelity::{Fidelity, HiddenMiss, SegmentUses, measure_fidelity};
#[doc(hidden)]
pub use fidelity::{NeedSums, ProbeFigure, UseProbe, probe_segment};
pub(crate) use oracle::{NeedKind, ResultNeed};
pub(crate) use peers::PeerCase;
pub use prediction::{Prediction, predicted_usage};
pub(crate) use track::{Track, TrackedRequest};
pub(crate) use view::{SentPing, ShownBlock, ViewChange, Views, VisibleRequest};
