//! Memory in a form that a store can keep. Takes plans and stored verdicts; gives verdicts by identity, and memory made of
//! them. Never decides anything: the first text in place of a block is kept until somebody takes it back.

use super::Memory;
use crate::{
    history::History,
    identity::{ChainHash, chain},
    memory::InputCosts,
    units::Millis,
    verdict::{SentVerdict, Verdict},
};

impl History {
    /// Returns the identity of every block, in order.
    pub fn chain(&self) -> Vec<ChainHash> {
        chain(self)
    }
}

impl Memory {
    /// Remembers what a block was sent as. A hidden block may be hidden further; it is whole again only if somebody asked for
    /// that.
    pub fn remember(&mut self, hash: ChainHash, sent: SentVerdict) {
        let is_news = match (self.verdicts.get(&hash), &sent) {
            (Some(_), SentVerdict::As(Verdict::Keep)) => false,
            // The message that stands for a range takes the place of its last block, whatever became of that before.
            (_, SentVerdict::WholeAgain | SentVerdict::As(Verdict::Fold { text: Some(_), .. })) => true,
            (before, SentVerdict::As(_)) => !before.is_some_and(|before| before.verdict().leaves_nothing()),
        };
        if is_news {
            self.verdicts.insert(hash, sent);
        }
    }

    /// Remembers that `requests` requests were sent, the last of them at `last`, and what they have cost together.
    pub fn resume(&mut self, last: Millis, requests: u32, spent: InputCosts) {
        self.last_request = Some(last);
        self.requests = requests;
        self.spent = spent;
    }

    /// Returns what every block was sent as, in no order.
    pub fn verdicts(&self) -> impl Iterator<Item = (ChainHash, &SentVerdict)> + '_ {
        self.verdicts.iter().map(|(hash, sent)| (*hash, sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Reason;

    fn check(said: &[SentVerdict], kept: &SentVerdict) {
        let mut memory = Memory::default();
        said.iter().for_each(|verdict| memory.remember(ChainHash([7; 16]), verdict.clone()));
        assert_eq!(memory.verdicts().collect::<Vec<_>>(), [(ChainHash([7; 16]), kept)]);
    }

    fn short(text: &str) -> SentVerdict {
        SentVerdict::As(Verdict::hiding(Some(text.into()), Reason::TooOld))
    }

    fn dropped() -> SentVerdict {
        SentVerdict::As(Verdict::Drop { reason: Reason::OverBudget })
    }

    #[test]
    fn the_message_that_stands_for_a_range_takes_the_place_of_a_block_that_went() {
        let reason = Reason::Folded { messages: 3, through: 1, at: 2 };
        let folded =
            |text: Option<&str>| SentVerdict::As(Verdict::hiding(text.map(Into::into), reason.clone()));
        check(&[dropped(), folded(Some("summary"))], &folded(Some("summary")));
        check(&[dropped(), folded(None)], &dropped());
    }

    #[test]
    fn a_block_that_was_whole_may_be_hidden_later() {
        check(&[SentVerdict::WHOLE, short("less")], &short("less"));
    }

    #[test]
    fn what_was_hidden_may_be_hidden_more_and_never_less() {
        check(&[short("one"), short("two"), SentVerdict::WHOLE], &short("two"));
        check(&[short("one"), dropped(), short("two"), SentVerdict::WHOLE], &dropped());
    }

    #[test]
    fn what_was_hidden_is_whole_again_where_somebody_asked_for_it_and_may_be_hidden_once_more() {
        for hidden in [short("one"), dropped()] {
            check(&[hidden.clone(), SentVerdict::WholeAgain], &SentVerdict::WholeAgain);
            check(&[hidden.clone(), SentVerdict::WholeAgain, SentVerdict::WHOLE], &SentVerdict::WholeAgain);
            check(&[SentVerdict::WholeAgain, hidden.clone()], &hidden);
        }
    }
}
