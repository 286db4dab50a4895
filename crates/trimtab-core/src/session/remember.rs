//! What [`Memory`] learns from requests that were forwarded: the verdicts of a [`Plan`], or those that were only repeated
//! ([`ResentRequest`]). The proxy, the Python package, the command line and replay all remember here.

use super::ResentRequest;
use crate::{
    account::AccountedRequest,
    history::{Blocks, row_of},
    memory::Memory,
    plan::Plan,
    summary::LastFold,
    units::{Millis, Tokens},
    verdict::{SentVerdict, Verdict},
};

impl Memory {
    /// Remembers a request that was forwarded at `now`. The first verdict for a block stays.
    pub fn remember_sent(&mut self, plan: &Plan, now: Millis) {
        self.ended_with(plan.ends.iter().copied());
        if let Some(broken) = plan.cache_break() {
            self.ends_changed_from(&plan.chain, broken.block);
        }
        self.record(&plan.chain, plan.decisions(), now);
        for block in plan.shown_again() {
            self.verdicts.insert(*row_of(&plan.chain, *block), SentVerdict::WholeAgain);
        }
        self.undos_done(&plan.undone);
        self.remember_hidden(&plan.chain, plan.decisions(), &plan.hidden);
        self.fold_sent(plan);
        self.rewrote = plan.cache_break().is_some();
        self.spent.ours += plan.cost.ours;
        self.spent.raw += plan.cost.raw;
    }

    /// Remembers a request that was forwarded at `now` with earlier verdicts alone.
    pub fn remember_resent(&mut self, resent: &ResentRequest, now: Millis) {
        self.record(&resent.chain, &resent.decisions, now);
        self.rewrote = false;
    }

    /// Tells whether a plan hides something that was not hidden in the same way before, or shows again what was hidden: both
    /// must be kept before the request is sent.
    pub fn hides_anew(&self, plan: &Plan) -> bool {
        let shows_again = !plan.shown_again().is_empty();
        shows_again
            || plan.chain.iter().zip(plan.decisions()).any(|(hash, decision)| {
                let before = self.verdicts.get(hash).map_or(&Verdict::Keep, SentVerdict::verdict);
                decision.verdict != Verdict::Keep && !decision.verdict.sends_same(before)
            })
    }

    /// Remembers what a plan that was sent says about folding.
    fn fold_sent(&mut self, plan: &Plan) {
        if let Some(done) = plan.fold.done {
            self.last_fold = Some(done);
            self.reported = None;
        }
        if plan.fold.cannot_help.is_some() {
            let nothing = LastFold { step: 0, before: Tokens::ZERO, after: Tokens::ZERO, said: true };
            self.last_fold = Some(LastFold { said: true, ..self.last_fold.unwrap_or(nothing) });
        }
    }
}

impl AccountedRequest {
    /// Returns what the account of a session is to know of a plan that was sent at `at`.
    pub fn of_plan(plan: &Plan, at: Millis) -> AccountedRequest {
        let edited = plan.cache_break().is_some();
        AccountedRequest { at, raw: plan.before(), sent: plan.after(), edited, marked: false }
    }
}

impl SentVerdict {
    /// Returns the verdicts of a plan, one per block and in the order of the blocks.
    pub fn of_plan(plan: &Plan) -> Vec<SentVerdict> {
        let sent = plan.decisions().iter().map(|decision| SentVerdict::As(decision.verdict.clone()));
        let mut verdicts: Blocks<SentVerdict> = sent.collect();
        for block in plan.shown_again() {
            verdicts[*block] = SentVerdict::WholeAgain;
        }
        verdicts.into_vec()
    }
}
