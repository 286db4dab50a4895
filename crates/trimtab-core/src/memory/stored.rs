//! Memory in a form that a store can keep. Takes plans and stored verdicts; gives verdicts by identity, and memory made of
//! them. Never decides anything: what was hidden first stays as it was said, until somebody takes it back.

use super::{Memory, Sent};
use crate::{
    history::History,
    identity::{ChainHash, chain},
    memory::Cost,
    units::Millis,
    verdict::Reason,
};

/// What a block was sent as, to be kept between processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredVerdict {
    /// As it is.
    Whole,
    /// As it is, after it was hidden: somebody asked for that.
    WholeAgain,
    /// As another text.
    Shortened {
        /// The text sent instead.
        text: String,
        /// Why.
        reason: Reason,
    },
    /// Not at all.
    Dropped {
        /// Why.
        reason: Reason,
    },
}

impl History {
    /// Returns the identity of every block, in order.
    pub fn chain(&self) -> Vec<ChainHash> {
        chain(self)
    }
}

impl Memory {
    /// Remembers what a block was sent as. What was hidden may be hidden more; it is whole again only where somebody asked for
    /// that.
    pub fn remember(&mut self, hash: ChainHash, verdict: StoredVerdict) {
        let sent = match verdict {
            StoredVerdict::Whole => Sent::Whole,
            StoredVerdict::WholeAgain => Sent::WholeAgain,
            StoredVerdict::Shortened { text, reason } => Sent::Shortened { text: text.into(), reason },
            StoredVerdict::Dropped { reason } => Sent::NotAtAll { reason },
        };
        match (self.verdicts.get(&hash), &sent) {
            (Some(_), Sent::Whole) => {}
            // The message that stands for a range takes the place of its last block, whatever became of that before.
            (
                Some(Sent::NotAtAll { .. }),
                Sent::WholeAgain | Sent::Shortened { reason: Reason::Folded { .. }, .. },
            )
            | (None | Some(Sent::Whole | Sent::WholeAgain | Sent::Shortened { .. }), _) => {
                drop(self.verdicts.insert(hash, sent));
            }
            (Some(Sent::NotAtAll { .. }), _) => {}
        }
    }

    /// Remembers that `requests` requests were sent, the last of them at `last`, and what they have cost together.
    pub fn resume(&mut self, last: Millis, requests: u32, spent: Cost) {
        self.last_request = Some(last);
        self.requests = requests;
        self.spent = spent;
    }

    /// Returns what every block was sent as, in no order.
    pub fn verdicts(&self) -> impl Iterator<Item = (ChainHash, StoredVerdict)> + '_ {
        self.verdicts.iter().map(|(hash, sent)| {
            let verdict = match sent {
                Sent::Whole => StoredVerdict::Whole,
                Sent::WholeAgain => StoredVerdict::WholeAgain,
                Sent::Shortened { text, reason } => {
                    StoredVerdict::Shortened { text: text.to_string(), reason: reason.clone() }
                }
                Sent::NotAtAll { reason } => StoredVerdict::Dropped { reason: reason.clone() },
            };
            (*hash, verdict)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(said: &[StoredVerdict], kept: &StoredVerdict) {
        let mut memory = Memory::default();
        said.iter().for_each(|verdict| memory.remember(ChainHash([7; 16]), verdict.clone()));
        assert_eq!(memory.verdicts().collect::<Vec<_>>(), [(ChainHash([7; 16]), kept.clone())]);
    }

    fn short(text: &str) -> StoredVerdict {
        StoredVerdict::Shortened { text: text.to_owned(), reason: Reason::TooOld }
    }

    #[test]
    fn a_block_that_was_whole_may_be_hidden_later() {
        check(&[StoredVerdict::Whole, short("less")], &short("less"));
    }

    #[test]
    fn what_was_hidden_may_be_hidden_more_and_never_less() {
        let dropped = StoredVerdict::Dropped { reason: Reason::OverBudget };
        check(&[short("one"), short("two"), StoredVerdict::Whole], &short("two"));
        check(&[short("one"), dropped.clone(), short("two"), StoredVerdict::Whole], &dropped);
    }

    #[test]
    fn what_was_hidden_is_whole_again_where_somebody_asked_for_it_and_may_be_hidden_once_more() {
        let dropped = StoredVerdict::Dropped { reason: Reason::OverBudget };
        for hidden in [short("one"), dropped] {
            check(&[hidden.clone(), StoredVerdict::WholeAgain], &StoredVerdict::WholeAgain);
            check(
                &[hidden.clone(), StoredVerdict::WholeAgain, StoredVerdict::Whole],
                &StoredVerdict::WholeAgain,
            );
            check(&[StoredVerdict::WholeAgain, hidden.clone()], &hidden);
        }
    }
}
