//! A plan as a picture: one line per block, on standard error. Takes a fitted request; gives verdict, tokens before and
//! after, and why.

use trimtab::{Fitted, Role, Verdict};

use crate::output::{grouped, on_one_line, padded, say};

/// Columns of the beginning of each block.
const TEXT_WIDTH: usize = 48;

pub(super) fn explain(fitted: &Fitted) {
    say(format_args!(
        "{:>4} {:>5}  {:10} {:9} {:14} {:>8} {:>8}  {}",
        "#", "step", "role", "kind", "verdict", "tokens", "sent", "why, or what it begins with"
    ));
    for decision in fitted.plan.decisions() {
        let Some(block) = fitted.history.block(decision.block) else { continue };
        let entry = fitted.history.entry_of(block);
        let (before, after) = fitted.plan.tokens_of(decision.block);
        let why = match (&decision.verdict, &decision.reason) {
            (Verdict::Keep, _) | (_, None) => on_one_line(&fitted.history.block_text(block), TEXT_WIDTH),
            (_, Some(reason)) => {
                let handle = decision.handle.as_deref().unwrap_or_default();
                format!("{reason}; recall {handle}")
            }
        };
        say(format_args!(
            "{:>4} {:>5}  {:10} {:9} {} {:>8} {:>8}  {why}",
            decision.block.0,
            entry.map_or(0, |entry| entry.step),
            entry.map_or(Role::Other, |entry| entry.role).name(),
            block.kind.name(),
            padded(decision.word(), 14),
            grouped(before.0),
            grouped(after.0)
        ));
    }
    let (before, after) = (fitted.plan.before(), fitted.plan.after());
    say(format_args!("{} tokens before, {} sent", grouped(before.0), grouped(after.0)));
    if let Some(cut) = fitted.plan.cut() {
        say(format_args!(
            "what was sent before was cut because it pays: {} tokens fewer at every request, {} written anew now; paid back after {:.1} \
             requests, {:.1} more are expected",
            grouped(cut.saved.0),
            grouped(cut.rewritten.0),
            cut.break_even,
            cut.expected
        ));
    }
}
