//! How much a provider takes, as its answers prove it: [`SizeLimit`] belongs to a session and holds for one model. Plans stay
//! below it. A refusal teaches it, and a larger request that is accepted later takes it back.

use trimtab_core::Tokens;

/// The most tokens that may be sent, in tokens as they are counted here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SizeLimit {
    model: String,
    most: Option<Tokens>,
    largest_accepted: Tokens,
}

/// What proves that a request was too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverflowProof {
    /// The provider named its limit.
    NamedLimit,
    /// The provider accepted a shorter request in its place.
    ShorterAccepted,
}

impl SizeLimit {
    /// Returns the most tokens that may be sent to a model, where that is known.
    pub(crate) fn most_for(&self, model: &str) -> Option<Tokens> {
        self.most.filter(|_| self.model == model)
    }

    /// Learns from a refusal of `sent` tokens that at most `most` are taken.
    pub(crate) fn learn_refused(&mut self, model: &str, sent: Tokens, most: Tokens, proof: OverflowProof) {
        self.turn_to(model);
        if proof == OverflowProof::NamedLimit && (self.largest_accepted >= sent || self.most.is_some()) {
            // As much was accepted before, or the named limit is kept to already: its figures explain nothing.
            return;
        }
        if self.largest_accepted >= sent {
            self.largest_accepted = Tokens::ZERO;
        }
        let most = most.max(self.largest_accepted);
        self.most = Some(self.most.map_or(most, |before| before.min(most)));
    }

    /// Learns that a request of `sent` tokens was accepted.
    pub(crate) fn learn_accepted(&mut self, model: &str, sent: Tokens) {
        self.turn_to(model);
        self.largest_accepted = self.largest_accepted.max(sent);
        self.most = self.most.filter(|most| sent <= *most);
    }

    fn turn_to(&mut self, model: &str) {
        if self.model != model {
            *self = SizeLimit { model: model.to_owned(), ..SizeLimit::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Answer {
        Accepted(u64),
        Refused(u64, u64, OverflowProof),
    }
    use Answer::{Accepted, Refused};

    fn check(answers: &[Answer], expected: Option<u64>) {
        let mut limit = SizeLimit::default();
        for answer in answers {
            match *answer {
                Accepted(sent) => limit.learn_accepted("m", Tokens(sent)),
                Refused(sent, most, proof) => limit.learn_refused("m", Tokens(sent), Tokens(most), proof),
            }
        }
        assert_eq!(limit.most_for("m"), expected.map(Tokens));
        assert_eq!(limit.most_for("another model"), None);
    }

    #[test]
    fn a_named_limit_is_learnt_once() {
        check(&[Refused(100, 80, OverflowProof::NamedLimit)], Some(80));
        check(
            &[Refused(100, 80, OverflowProof::NamedLimit), Refused(80, 64, OverflowProof::NamedLimit)],
            Some(80),
        );
    }

    #[test]
    fn a_shorter_request_that_is_accepted_proves_a_limit() {
        let refusals =
            [Refused(100, 80, OverflowProof::NamedLimit), Refused(80, 60, OverflowProof::ShorterAccepted)];
        check(&refusals, Some(60));
    }

    #[test]
    fn a_larger_request_that_is_accepted_takes_a_limit_back() {
        check(&[Refused(100, 80, OverflowProof::NamedLimit), Accepted(90)], None);
        check(&[Refused(100, 80, OverflowProof::NamedLimit), Accepted(80)], Some(80));
    }

    #[test]
    fn a_limit_is_never_below_what_was_accepted_before() {
        check(&[Accepted(90), Refused(100, 75, OverflowProof::ShorterAccepted)], Some(90));
        check(&[Accepted(90), Refused(85, 60, OverflowProof::NamedLimit)], None);
        check(&[Accepted(90), Refused(85, 60, OverflowProof::ShorterAccepted)], Some(60));
    }
}
