//! A plan as a picture: one line per block, per moment and per pass, on standard error. Takes a fitted request; gives verdict, tokens before and
//! after, and why.

use trimtab_core::{
    BlockId, BlockKind, FittedRequest, Plan, Role,
    plan::{Moment, MomentSum, PassSum},
};

use crate::output::{error_width, group_thousands, on_one_line, pad_text, print_line};

/// Columns of the beginning of each block where no terminal says how many there are.
const TEXT_WIDTH: usize = 48;

/// From so many columns on, role and moment have columns, and a reason precedes its handle.
const WIDE: usize = 110;

/// How the columns before the text are set.
struct PictureLayout {
    is_wide: bool,
    /// Columns of the last column.
    text: Option<usize>,
}

impl PictureLayout {
    fn for_width(width: Option<usize>) -> PictureLayout {
        let is_wide = width.is_none_or(|width| width >= WIDE);
        let before = if is_wide { 68 } else { 46 };
        PictureLayout { is_wide, text: width.map(|width| width.saturating_sub(before)) }
    }

    /// Returns a line.
    fn line(
        &self,
        number: &str,
        step: &str,
        [role, kind, verdict, when]: [&str; 4],
        tokens: [&str; 2],
    ) -> String {
        let (verdict, [before, after]) = (pad_text(verdict, 8), tokens);
        if self.is_wide {
            format!("{number:>4} {step:>5}  {role:10} {kind:9} {verdict} {when:6} {before:>8} {after:>8}  ")
        } else {
            // Who says a text is more than that it is one.
            let kind = if kind == BlockKind::Text.name() { role } else { kind };
            format!("{number:>4} {step:>4}  {kind:9} {verdict} {before:>7} {after:>7} ")
        }
    }

    /// Returns the reason and the handle by which the original comes back, as far as they fit.
    fn reason(&self, reason: &str, handle: &str) -> String {
        match self.text {
            None => format!("{reason}; recall {handle}"),
            Some(width) if self.is_wide => on_one_line(&format!("{reason}; recall {handle}"), width),
            Some(width) => on_one_line(&format!("{handle} {reason}"), width),
        }
    }

    fn beginning(&self, text: &str) -> String {
        on_one_line(text, self.text.unwrap_or(TEXT_WIDTH))
    }
}

pub(super) fn explain_fit(fitted: &FittedRequest) {
    let layout = PictureLayout::for_width(error_width());
    let last = if layout.is_wide { "why, or what it begins with" } else { "handle and reason, or text" };
    let head = layout.line("#", "step", ["role", "kind", "verdict", "when"], ["tokens", "sent"]);
    print_line(format_args!("{head}{last}"));
    for decision in fitted.plan.decisions() {
        let Some(block) = fitted.history.block(decision.block) else { continue };
        let entry = fitted.history.entry_of(block);
        let (before, after) = fitted.plan.tokens_of(decision.block);
        let why = match decision.reason() {
            None => {
                let wish = wish_of(&fitted.plan, decision.block);
                layout.beginning(&format!("{wish}{}", fitted.history.block_text(block).trim_start()))
            }
            Some(reason) => {
                layout.reason(&reason.to_string(), decision.handle.as_deref().unwrap_or_default())
            }
        };
        let columns = layout.line(
            &decision.block.0.to_string(),
            &entry.map_or(0, |entry| entry.step).to_string(),
            [
                entry.map_or(Role::Other, |entry| entry.role).name(),
                block.kind.name(),
                decision.verdict.word(),
                fitted.plan.moment_of(decision.block).map_or("", Moment::word),
            ],
            [&group_thousands(before.0), &group_thousands(after.0)],
        );
        print_line(format_args!("{columns}{why}"));
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
