//! Other tools' policies and the bounds that know the future. Takes a track and a knob; gives views, unchecked: a peer may
//! break the protocol, and the report says so. Never plans: these are plain functions for comparison.

use super::{Track, Views};

/// A policy that is not ours.
#[derive(Debug)]
pub(crate) struct Rival {
    /// `peer:mask`, `oracle:block`.
    pub(crate) name: &'static str,
    /// What it does, in a sentence.
    pub(crate) about: &'static str,
    /// What its number means and which values are compared; the first is its own default. Empty: it has no number.
    pub(crate) knob: (&'static str, &'static [f64]),
    pub(crate) views: fn(&Track<'_>, f64) -> Views,
}

/// All rivals.
pub(crate) fn rivals() -> &'static [Rival] {
    &[]
}

/// Finds a rival by `name` or `name(knob)` and returns it with the value of its knob.
pub(crate) fn rival(_asked: &str) -> Option<(&'static Rival, f64)> {
    None
}
