//! The passes that make a plan, in order: [`PassName`] says which there are, [`pipeline`] which of them a policy takes and with which
//! steps, [`PassSum`] what came of each. Each pass is a function over a [`Work`], in its own file with its own tests.

use serde::Serialize;

use super::{
    context::PlanContext, paying_cut::take_what_pays, pin::pin_blocks, repeat::repeat_sent,
    steps::take_steps, unbind::is_bound_loop, work::Work,
};
use crate::{
    policy::{PolicyStep, StepAction, StepMoment},
    units::Tokens,
    verdict::Verdict,
};

/// A pass over the draft of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PassName {
    /// What must stay is pinned.
    Pin,
    /// What was sent before is sent again as it was.
    Repeat,
    /// What is sent for the first time is shortened before it is.
    Birth,
    /// Steps that are taken when the provider's cache is gone anyway.
    Cold,
    /// Steps that are taken at every request.
    Always,
    /// What was sent before is hidden where that pays for caching again what follows.
    Pays,
    /// Steps that are taken over a share of the budget.
    Pressure,
    /// One message takes the place of the beginning.
    Fold,
    /// What is still too much is hidden in one fixed order.
    Close,
    /// Notes that point at what is no longer shown say something else.
    Mend,
    /// Reasoning goes that the model bound to what is sent otherwise now.
    Unbind,
}

impl PassName {
    const ALL: [PassName; 11] = [
        PassName::Pin,
        PassName::Repeat,
        PassName::Birth,
        PassName::Cold,
        PassName::Always,
        PassName::Pays,
        PassName::Pressure,
        PassName::Fold,
        PassName::Close,
        PassName::Mend,
        PassName::Unbind,
    ];

    /// Returns the pass in a word.
    pub fn word(self) -> &'static str {
        match self {
            PassName::Pin => "pin",
            PassName::Repeat => "repeat",
            PassName::Birth => "birth",
            PassName::Cold => "cold",
            PassName::Always => "always",
            PassName::Pays => "pays",
            PassName::Pressure => "pressure",
            PassName::Fold => "fold",
            PassName::Close => "close",
            PassName::Mend => "mend",
            PassName::Unbind => "unbind",
        }
    }
}

/// What a pass did. A block counts for the pass that said last what it is sent as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PassSum {
    /// The pass.
    pub pass: PassName,
    /// How many blocks it hid.
    pub blocks: usize,
    /// How many tokens fewer they count.
    pub saved: Tokens,
}

/// A pass with the steps of the policy that it takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) name: PassName,
    steps: &'a [PolicyStep],
}

impl Pass<'_> {
    /// Takes the pass.
    pub(super) fn run(self, work: &mut Work<'_>) {
        work.draft.pass = self.name;
        match self.name {
            PassName::Pin => pin_blocks(work),
            PassName::Repeat => repeat_sent(work),
            PassName::Birth | PassName::Cold | PassName::Always | PassName::Pressure | PassName::Fold => {
                take_steps(work, self.steps);
            }
            // All steps that wait are taken the first time.
            PassName::Pays if work.draft.has_paid => {}
            PassName::Pays => take_what_pays(work),
            // These come after the steps of any policy, as often as it takes.
            PassName::Close | PassName::Mend | PassName::Unbind => {}
        }
    }
}

/// Returns the passes up to closing: what stays, what was, then the steps of the policy in its order.
pub(super) fn pipeline<'a>(work: &Work<'a>) -> Vec<Pass<'a>> {
    let context: &'a PlanContext<'a> = work.context;
    let steps: &'a [PolicyStep] = &context.policy.steps;
    let is_bound = is_bound_loop(work);
    let pass_of = |step: &PolicyStep| pass_of(context, step, is_bound);
    let of_policy = steps.chunk_by(|one, next| pass_of(one) == pass_of(next));
    let first = [PassName::Pin, PassName::Repeat].map(|name| Pass { name, steps: &[] });
    let of_policy = of_policy.filter_map(|steps| Some(Pass { name: pass_of(steps.first()?)?, steps }));
    first.into_iter().chain(of_policy).collect()
}

/// Returns the pass that takes a step; none where no pass does now.
fn pass_of(context: &PlanContext<'_>, step: &PolicyStep, is_bound: bool) -> Option<PassName> {
    match (step.when, &step.act) {
        // Steps that keep blocks were taken first.
        (_, StepAction::Pin | StepAction::Hold) => None,
        // While a tool loop runs whose reasoning is bound to what precedes it, nothing that was sent changes but under pressure.
        (StepMoment::Cold | StepMoment::Pays, _) if is_bound => None,
        // All steps that wait until it pays are taken together: what they rewrite, they rewrite once.
        _ if context.waits_to_pay(step) => Some(PassName::Pays),
        (_, StepAction::Fold) => Some(PassName::Fold),
        (StepMoment::Birth, _) => Some(PassName::Birth),
        (StepMoment::Cold, _) => Some(PassName::Cold),
        (StepMoment::Always | StepMoment::Pays, _) => Some(PassName::Always),
        (StepMoment::Over { .. }, _) => Some(PassName::Pressure),
    }
}

/// Adds up what each pass did, in the order of the passes; nothing for those that hid nothing.
pub(super) fn pass_sums(work: &Work<'_>) -> Vec<PassSum> {
    let empty = |pass| PassSum { pass, blocks: 0, saved: Tokens::ZERO };
    let mut sums: Vec<PassSum> = PassName::ALL.into_iter().map(empty).collect();
    let hidden = work.draft.decisions.iter().filter(|decision| decision.verdict != Verdict::Keep);
    for id in hidden.map(|decision| decision.block) {
        let decided_by = work.draft.decided_by[id];
        if let Some(sum) = sums.iter_mut().find(|sum| Some(sum.pass) == decided_by) {
            sum.blocks += 1;
            sum.saved += work.tokens(id) - work.tokens_now(id);
        }
    }
    sums.retain(|sum| sum.blocks > 0);
    sums
}

#[cfg(test)]
mod tests {
    use super::{
        super::pass_case::PassCase,
        PassName::{Birth, Cold, Pays, Pin, Pressure, Repeat},
        *,
    };

    #[track_caller]
    fn check(is_cold: bool, binds_reasoning: bool, expected: &[PassName]) {
        let step = |when: &str, act: &str| format!("[[step]]\nwhen = \"{when}\"\ndo = \"{act}\"\n");
        let steps = [
            ("birth", "clear"),
            ("birth", "seen"),
            ("always", "pin"),
            ("pays", "names"),
            ("over 1.0", "clear"),
        ];
        let steps: String = steps.iter().map(|(when, act)| step(when, act)).collect();
        let mut case = PassCase::new(&steps, &["x"]);
        (case.cache.cold, case.cache.binds_reasoning) = (is_cold, binds_reasoning);
        let names =
            case.look_after(|_| {}, |work| pipeline(work).iter().map(|pass| pass.name).collect::<Vec<_>>());
        assert_eq!(names, expected);
    }

    #[test]
    fn the_steps_of_a_policy_are_taken_in_its_order_after_what_stays_and_what_was() {
        // No tool loop runs here in which the model has reasoned.
        check(false, false, &[Pin, Repeat, Birth, Pays, Pressure, Cold]);
        check(true, true, &[Pin, Repeat, Birth, Pays, Pressure, Cold]);
    }
}
