//! A plan as a picture: one line per block, per moment and per pass, on standard error. Takes a fitted request; gives verdict, tokens before and
//! after, and why.

use trimtab_core::{
    BlockId, FittedRequest, Plan, Role,
    plan::{Moment, MomentSum, PassSum},
};

use crate::output::{group_thousands, on_one_line, pad_text, print_line};

/// Columns of the beginning of each block.
const TEXT_WIDTH: usize = 48;

pub(super) fn explain_fit(fitted: &FittedRequest) {
    print_line(format_args!(
        "{:>4} {:>5}  {:10} {:9} {:8} {:6} {:>8} {:>8}  {}",
        "#", "step", "role", "kind", "verdict", "when", "tokens", "sent", "why, or what it begins with"
    ));
    for decision in fitted.plan.decisions() {
        let Some(block) = fitted.history.block(decision.block) else { continue };
        let entry = fitted.history.entry_of(block);
        let (before, after) = fitted.plan.tokens_of(decision.block);
        let why = match decision.reason() {
            None => {
                let text = on_one_line(&fitted.history.block_text(block), TEXT_WIDTH);
                format!("{}{text}", wish_of(&fitted.plan, decision.block))
            }
            Some(reason) => {
                let handle = decision.handle.as_deref().unwrap_or_default();
                format!("{reason}; recall {handle}")
            }
        };
        print_line(format_args!(
            "{:>4} {:>5}  {:10} {:9} {} {:6} {:>8} {:>8}  {why}",
            decision.block.0,
            entry.map_or(0, |entry| entry.step),
            entry.map_or(Role::Other, |entry| entry.role).name(),
            block.kind.name(),
            pad_text(decision.verdict.word(), 8),
            fitted.plan.moment_of(decision.block).map_or("", Moment::word),
            group_thousands(before.0),
            group_thousands(after.0)
        ));
    }
    let (before, after) = (fitted.plan.before(), fitted.plan.after());
    print_line(format_args!(
        "{} tokens before, {} sent",
        group_thousands(before.0),
        group_thousands(after.0)
    ));
    fitted.plan.moment_sums().iter().for_each(say_sum);
    fitted.plan.passes().iter().for_each(say_pass);
}

/// Says what was asked for about a block that is sent whole.
fn wish_of(plan: &Plan, block: BlockId) -> &'static str {
    match (plan.pinned_blocks().contains(&block), plan.shown_again().contains(&block)) {
        (true, true) => "[pinned: shown again] ",
        (true, false) => "[pinned] ",
        (false, true) => "[shown again] ",
        (false, false) => "",
    }
}

/// Says what one pass of the plan hid.
fn say_pass(sum: &PassSum) {
    print_line(format_args!(
        "pass {} {} {}: {} tokens fewer",
        pad_text(sum.pass.word(), 8),
        sum.blocks,
        if sum.blocks == 1 { "block" } else { "blocks" },
        group_thousands(sum.saved.0),
    ));
}

/// Says what is saved and paid by all that is hidden at one moment.
fn say_sum(sum: &MomentSum) {
    let why = match sum.when {
        Moment::Before => "as sent before",
        Moment::New => "sent for the first time",
        Moment::Cold => "the cache is cold",
        Moment::Pays => "it pays",
        Moment::Warm => "the policy or the budget asks for it",
    };
    let paid_back = match (sum.break_even_requests, sum.expected_requests) {
        (requests, _) if sum.written_anew.0 == 0 && requests <= 0.0 => String::new(),
        (requests, _) if requests <= 0.0 => "; paid back at once".to_owned(),
        (requests, _) if !requests.is_finite() => "; never paid back".to_owned(),
        (requests, None) => format!("; paid back after {requests:.1} requests"),
        (requests, Some(expected)) => {
            format!("; paid back after {requests:.1} requests, {expected:.1} more are expected")
        }
    };
    print_line(format_args!(
        "{:6} {} {}, {why}: {} tokens fewer at every request, {} written again now{paid_back}",
        sum.when.word(),
        sum.blocks,
        if sum.blocks == 1 { "block" } else { "blocks" },
        group_thousands(sum.saved_per_request.0),
        group_thousands(sum.written_anew.0),
    ));
}
