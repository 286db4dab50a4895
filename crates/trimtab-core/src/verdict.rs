//! What becomes of a block, and why: [`Verdict`], [`Reason`] and both together as [`Decision`]. Plans are made of decisions, memory and
//! stores repeat them, notes say their reasons.

use std::{fmt, sync::Arc};

use crate::{history::BlockId, units::Tokens};

/// Why a block is hidden.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It is older than the policy shows.
    TooOld,
    /// A later step shows the newer content.
    Superseded {
        /// That step.
        by: u32,
    },
    /// Another step shows the same content, and is shown.
    Identical {
        /// That step.
        to: u32,
    },
    /// Lines of it are shown by another step.
    Shown {
        /// That step.
        at: u32,
        /// The name of the block that shows them.
        handle: String,
    },
    /// The request would not fit.
    OverBudget,
    /// It was too long from the beginning.
    TooLong,
    /// What it shows was edited since.
    Stale {
        /// The step of the edit.
        edit: u32,
    },
    /// The file was read several times, and other reads are shown.
    ReadOften {
        /// The step of the first read shown.
        first: u32,
        /// The step of the last read.
        last: u32,
    },
    /// The file was changed many times: one block tells all of a series, the others point at it.
    EditedOften {
        /// How many changes.
        changes: u32,
        /// The step of the first.
        first: u32,
        /// The step of the last.
        last: u32,
        /// The step at which another block tells the series.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        told: Option<u32>,
    },
    /// It is reasoning that the model bound to what was edited before it.
    Unbound {
        /// The step of what was edited.
        edit: u32,
    },
    /// A summary stands for it.
    Folded {
        /// How many messages the summary stands behind.
        messages: u32,
        /// The last step that it stands for.
        through: u32,
        /// The step at which it was folded.
        at: u32,
    },
    /// A rule of the user says so.
    Rule(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::TooOld => f.write_str("too old"),
            Reason::Superseded { by } => write!(f, "superseded by step {by}"),
            Reason::Identical { to } => write!(f, "identical to step {to}"),
            Reason::Shown { at, .. } => write!(f, "shown at step {at}"),
            Reason::OverBudget => f.write_str("over budget"),
            Reason::TooLong => f.write_str("too long"),
            Reason::Stale { edit } => write!(f, "stale since the edit at step {edit}"),
            Reason::ReadOften { first, last } => write!(f, "read often: steps {first} and {last} are shown"),
            Reason::EditedOften { changes, first, last, told: None } => {
                write!(f, "one of {changes} changes between steps {first} and {last}")
            }
            Reason::EditedOften { changes, told: Some(at), .. } => {
                write!(f, "one of the {changes} changes told at step {at}")
            }
            Reason::Unbound { edit } => write!(f, "bound to step {edit}, which is shown otherwise"),
            Reason::Folded { through, .. } => write!(f, "in the summary of steps 1-{through}"),
            Reason::Rule(name) => write!(f, "rule {name}"),
        }
    }
}

impl Reason {
    /// Tells whether a note made for this reason says that another block shows the same.
    pub(crate) fn is_pointer(&self) -> bool {
        match self {
            Reason::Identical { .. } | Reason::Shown { .. } => true,
            Reason::TooOld
            | Reason::Superseded { .. }
            | Reason::OverBudget
            | Reason::TooLong
            | Reason::Stale { .. }
            | Reason::ReadOften { .. }
            | Reason::EditedOften { .. }
            | Reason::Unbound { .. }
            | Reason::Folded { .. }
            | Reason::Rule(_) => false,
        }
    }
}

/// What becomes of a block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Verdict {
    /// It is sent as it is.
    #[default]
    Keep,
    /// It is sent as this text instead.
    Shorten {
        /// The text sent.
        text: Arc<str>,
        /// Its tokens, and those the format adds around it.
        tokens: Tokens,
    },
    /// It is not sent, with everything that belongs to it.
    Drop,
}

/// A verdict and why it was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The block.
    pub block: BlockId,
    /// What becomes of it.
    pub verdict: Verdict,
    /// Why; nothing for what is kept.
    pub reason: Option<Reason>,
    /// The name by which the original is brought back.
    pub handle: Option<String>,
}

impl Decision {
    /// Tells whether a summary stands for the block.
    pub fn is_folded(&self) -> bool {
        matches!(self.reason, Some(Reason::Folded { .. }))
    }

    /// Returns the verdict in a word: keep, shorten, fold or drop.
    pub fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::Keep => "keep",
            Verdict::Shorten { .. } | Verdict::Drop if self.is_folded() => "fold",
            Verdict::Shorten { .. } => "shorten",
            Verdict::Drop => "drop",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Keep => "keep",
            Verdict::Shorten { .. } => "shorten",
            Verdict::Drop => "drop",
        })
    }
}
