//! What becomes of a block, and why: [`Verdict`], whose variants say what is sent in a block's place, with the [`Reason`] where a
//! variant does not say it already; [`Decision`], the verdict about one block; [`SentVerdict`], the verdict that a request was sent
//! with. Plans are made of decisions, memory and stores repeat verdicts, notes say their reasons.

use std::{fmt, sync::Arc};

use crate::{history::BlockId, rewrite::RewriteForm};

/// Why a block is not sent as it is.
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
    /// It is reasoning of an earlier turn, and the request would not fit.
    EarlierThought,
    /// A summary replaces it.
    Folded {
        /// How many messages precede the summary.
        messages: u32,
        /// The last step that it stands for.
        through: u32,
        /// The step at which it was folded.
        at: u32,
    },
    /// It says the same in fewer tokens. Nothing of it is hidden.
    Rewritten {
        /// How it is written, in the order in which that was done.
        forms: Vec<RewriteForm>,
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
                write!(f, "one of the {changes} changes listed at step {at}")
            }
            Reason::Unbound { edit } => write!(f, "bound to step {edit}, which is shown otherwise"),
            Reason::EarlierThought => f.write_str("reasoning of an earlier turn"),
            Reason::Folded { through, .. } => write!(f, "in the summary of steps 1-{through}"),
            Reason::Rewritten { forms } => {
                let forms: Vec<&str> = forms.iter().map(|form| form.about()).collect();
                write!(f, "same content: {}", forms.join(", "))
            }
            Reason::Rule(name) => write!(f, "rule {name}"),
        }
    }
}

/// What becomes of a block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Verdict {
    /// It is sent as it is.
    #[default]
    Keep,
    /// It is sent as a shorter text, or as a note.
    Shorten {
        /// The text sent.
        text: Arc<str>,
        /// Why.
        reason: Reason,
    },
    /// It is sent as a note that points at another block, which shows the same.
    Point {
        /// The note.
        text: Arc<str>,
        /// The step of the other block.
        to: u32,
    },
    /// It is sent without lines that an earlier block shows: notes stand in their place.
    Trim {
        /// The text sent.
        text: Arc<str>,
        /// The step of the earlier block.
        at: u32,
        /// The name of the earlier block.
        handle: String,
    },
    /// All of it is sent, written in fewer tokens.
    Rewrite {
        /// The text sent.
        text: Arc<str>,
        /// How it is written, in the order in which that was done.
        forms: Vec<RewriteForm>,
    },
    /// A summary replaces it and others: one message that takes the place of the last of them.
    Fold {
        /// The message; only for the block whose place it takes.
        text: Option<Arc<str>>,
        /// How many messages the summary stands for.
        messages: u32,
        /// The last step that it stands for.
        through: u32,
        /// The step at which it was folded.
        at: u32,
    },
    /// It is not sent, with everything that belongs to it.
    Drop {
        /// Why.
        reason: Reason,
    },
}

impl Verdict {
    /// Returns the verdict that a text, or nothing, is sent in a block's place for a reason. Stores keep verdicts as these two.
    pub fn hiding(text: Option<Arc<str>>, reason: Reason) -> Verdict {
        match (text, reason) {
            (text, Reason::Folded { messages, through, at }) => Verdict::Fold { text, messages, through, at },
            (Some(text), Reason::Identical { to }) => Verdict::Point { text, to },
            (Some(text), Reason::Shown { at, handle }) => Verdict::Trim { text, at, handle },
            (Some(text), Reason::Rewritten { forms }) => Verdict::Rewrite { text, forms },
            (Some(text), reason) => Verdict::Shorten { text, reason },
            (None, reason) => Verdict::Drop { reason },
        }
    }

    /// Returns why the block is not sent as it is; nothing for what is kept.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Verdict::Keep => None,
            Verdict::Rewrite { forms, .. } => Some(Reason::Rewritten { forms: forms.clone() }),
            Verdict::Shorten { reason, .. } | Verdict::Drop { reason } => Some(reason.clone()),
            Verdict::Point { to, .. } => Some(Reason::Identical { to: *to }),
            Verdict::Trim { at, handle, .. } => Some(Reason::Shown { at: *at, handle: handle.clone() }),
            Verdict::Fold { messages, through, at, .. } => {
                Some(Reason::Folded { messages: *messages, through: *through, at: *at })
            }
        }
    }

    /// Returns the text that is sent in the block's place: its own, shorter, or the message that stands for what is folded.
    pub fn text(&self) -> Option<&Arc<str>> {
        match self {
            Verdict::Shorten { text, .. }
            | Verdict::Point { text, .. }
            | Verdict::Trim { text, .. }
            | Verdict::Rewrite { text, .. } => Some(text),
            Verdict::Fold { text, .. } => text.as_ref(),
            Verdict::Keep | Verdict::Drop { .. } => None,
        }
    }

    /// Returns what the block itself is sent as, where that is another text.
    pub fn own_text(&self) -> Option<&Arc<str>> {
        self.text().filter(|_| !self.is_fold())
    }

    /// Tells whether everything that the block says is sent in its place: it is kept, or only written otherwise.
    pub fn shows_all(&self) -> bool {
        matches!(self, Verdict::Keep | Verdict::Rewrite { .. })
    }

    /// Tells whether a summary stands for the block.
    pub fn is_fold(&self) -> bool {
        matches!(self, Verdict::Fold { .. })
    }

    /// Tells whether the block itself is not sent: it is dropped, or a summary replaces it.
    pub fn is_gone(&self) -> bool {
        matches!(self, Verdict::Drop { .. } | Verdict::Fold { .. })
    }

    /// Tells whether it lets reasoning go while the exchange that it belongs to may stay.
    pub fn goes_alone(&self) -> bool {
        matches!(self, Verdict::Drop { reason: Reason::Unbound { .. } | Reason::EarlierThought })
    }

    /// Tells whether nothing at all is sent in the block's place.
    pub fn leaves_nothing(&self) -> bool {
        self.is_gone() && self.text().is_none()
    }

    /// Tells whether two verdicts send the same bytes for a block.
    pub fn sends_same(&self, other: &Verdict) -> bool {
        (*self == Verdict::Keep) == (*other == Verdict::Keep) && self.text() == other.text()
    }

    /// Returns the verdict in a word: keep, shorten, point, trim, rewrite, fold or drop.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Keep => "keep",
            Verdict::Shorten { .. } => "shorten",
            Verdict::Point { .. } => "point",
            Verdict::Trim { .. } => "trim",
            Verdict::Rewrite { .. } => "rewrite",
            Verdict::Fold { .. } => "fold",
            Verdict::Drop { .. } => "drop",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The verdict about a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The block.
    pub block: BlockId,
    /// What becomes of it, and why.
    pub verdict: Verdict,
    /// The name by which the original is brought back.
    pub handle: Option<String>,
}

impl Decision {
    /// Decides that a block is sent as it is.
    pub(crate) fn keep(block: BlockId) -> Decision {
        Decision { block, verdict: Verdict::Keep, handle: None }
    }

    /// Returns why the block is not sent as it is; nothing for what is kept.
    pub fn reason(&self) -> Option<Reason> {
        self.verdict.reason()
    }
}

/// What a block was sent as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentVerdict {
    /// As this verdict says.
    As(Verdict),
    /// Whole, after it was hidden: somebody asked for that.
    WholeAgain,
}

impl SentVerdict {
    /// A block that was sent as it is.
    pub const WHOLE: SentVerdict = SentVerdict::As(Verdict::Keep);

    /// Returns what was sent, whatever was sent before that.
    pub fn verdict(&self) -> &Verdict {
        match self {
            SentVerdict::As(verdict) => verdict,
            SentVerdict::WholeAgain => &Verdict::Keep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_and_a_reason_are_one_verdict_and_back() {
        let reasons = [
            (Reason::TooOld, "shorten", "drop"),
            (Reason::Identical { to: 5 }, "point", "drop"),
            (Reason::Shown { at: 5, handle: "ba9876543210".to_owned() }, "trim", "drop"),
            (Reason::Folded { messages: 7, through: 3, at: 9 }, "fold", "fold"),
            (Reason::Rewritten { forms: vec![RewriteForm::Padding] }, "rewrite", "drop"),
            (Reason::Rule("mine".to_owned()), "shorten", "drop"),
        ];
        for (reason, with_text, without) in reasons {
            for (text, word) in [(Some(Arc::from("less")), with_text), (None, without)] {
                let verdict = Verdict::hiding(text.clone(), reason.clone());
                assert_eq!(
                    (verdict.word(), verdict.reason(), verdict.text()),
                    (word, Some(reason.clone()), text.as_ref())
                );
            }
        }
    }

    #[test]
    fn what_is_sent_is_the_same_whatever_the_reason() {
        let text = |text: &str, reason| Verdict::hiding(Some(text.into()), reason);
        let less = text("less", Reason::TooOld);
        assert!(less.sends_same(&text("less", Reason::Identical { to: 5 })));
        assert!(!less.sends_same(&text("more", Reason::TooOld)));
        let gone = Verdict::hiding(None, Reason::OverBudget);
        assert!(gone.sends_same(&Verdict::hiding(None, Reason::Folded { messages: 1, through: 1, at: 1 })));
        assert!(!gone.sends_same(&Verdict::Keep) && Verdict::Keep.sends_same(&Verdict::Keep));
    }
}
