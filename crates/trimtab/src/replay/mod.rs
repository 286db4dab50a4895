//! What a policy would have cost, saved and lost in a recorded segment. Takes a segment laid out as a [`Track`] and the
//! [`Views`] that a policy, a peer or an oracle gives of it; gives the bill and what was missed. Never calls a model, never
//! looks at the clock: times are those of the recording.

#![allow(dead_code, unused_imports)]

mod bill;
mod fidelity;
mod peers;
mod played;
mod track;
mod view;

pub(crate) use bill::{Bill, Charge, bill};
pub(crate) use fidelity::{Fidelity, Miss, Share, Uses, fidelity};
#[doc(hidden)]
pub use fidelity::{Figure, Probe, probe};
pub(crate) use peers::{Rival, rival, rivals};
pub(crate) use played::played;
pub(crate) use track::{Request, Track};
pub(crate) use view::{Change, Showing, Shown, Views};
