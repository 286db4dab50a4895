//! A replay in a few sentences, with dollars: [`summary_sentences`]. Takes the rows; gives what was spent, what was saved, and what was hidden too
//! early. Printed at the end, whatever else is written.

use trimtab_core::{Tokens, prices::CostUnit};
use trimtab_replay::ScoreRow;

use super::ReplayResults;
use crate::output::{count_with_noun, group_thousands};

/// Policies that get a sentence; the first other one where none of them takes part.
pub(super) const TOLD: &[&str] = &["steady", "steady.safe"];

/// Returns the sentences.
pub(super) fn summary_sentences(replayed: &ReplayResults) -> Vec<String> {
    let Some(model) = replayed.models.first() else { return Vec::new() };
    let at = |budget: &Option<String>| -> Vec<&ScoreRow> {
        replayed.rows.iter().filter(|row| row.model == model.name && row.budget == *budget).collect()
    };
    let Some(first) = replayed.budgets.first().and_then(|budget| at(budget).first().copied()) else {
        return Vec::new();
    };
    let sessions =
        count_with_noun(usize::try_from(first.sessions).unwrap_or(usize::MAX), "session", "sessions");
    let requests =
        count_with_noun(usize::try_from(first.requests).unwrap_or(usize::MAX), "request", "requests");
    let mut sentences = vec![format!(
        "{sessions} with {requests}: sending everything {} {}, at {}. {}",
        if first.unit == CostUnit::Dollars { "costs" } else { "takes" },
        format_cost(first.raw_cost, first.unit)
            + if first.unit == CostUnit::Dollars { " of input" } else { " of reading" },
        replayed.prices,
        cache_sentence(first, model.cache.slots)
    )];
    for budget in &replayed.budgets {
        let rows = at(budget);
        let mut told: Vec<&&ScoreRow> =
            rows.iter().filter(|row| TOLD.contains(&row.policy.as_str())).collect();
        if told.is_empty() {
            told.extend(rows.iter().find(|row| row.policy != "none"));
        }
        let at = budget.as_ref().map_or_else(String::new, |budget| format!("At a budget of {budget}, "));
        sentences.extend(told.into_iter().map(|row| at.clone() + &policy_sentence(row)));
    }
    sentences
}

/// Says how long caches lived.
fn cache_sentence(row: &ScoreRow, slots: Option<usize>) -> String {
    match slots {
        Some(0) => return "The server keeps prefixes until its memory is full.".to_owned(),
        Some(slots) => {
            let others = count_with_noun(slots, "other conversation", "other conversations");
            return format!("The server keeps a prefix until {others} asked in between.");
        }
        None => {}
    }
    match (row.hour_requests, row.requests) {
        (0, _) => "Caches live as long as the provider keeps them by default.".to_owned(),
        (hour, all) if hour == all => "Caches live for an hour.".to_owned(),
        (hour, all) => format!(
            "As recorded, caches live for an hour in {:.0} % of the requests, and as long as the provider keeps them by default in \
             the others.",
            Tokens(hour).to_float() / Tokens(all).to_float() * 100.0
        ),
    }
}

fn policy_sentence(row: &ScoreRow) -> String {
    let saved = row.raw_cost - row.input_cost;
    let share = (1.0 - row.cost_vs_raw) * 100.0;
    let money = if share.abs() < 0.05 {
        "would have cost the same".to_owned()
    } else if saved > 0.0 {
        format!("would have saved {} ({share:.1} %)", format_cost(saved, row.unit))
    } else {
        format!("would have cost {} more ({:.1} %)", format_cost(-saved, row.unit), -share)
    };
    let missed = missed_count(row.edit_anchor_recall, row.edit_anchors);
    let early = match (row.edit_anchors, missed) {
        (0, _) => "the agent edited no text that it had read".to_owned(),
        (1, 0) => "the one text that the agent edited was still visible then".to_owned(),
        (all, 0) => {
            format!("all {} texts that the agent edited were still visible then", group_thousands(all))
        }
        (all, missed) => {
            format!(
                "hidden {} of the {} texts that the agent edited later",
                group_thousands(missed),
                group_thousands(all)
            )
        }
    };
    let early = if missed > 0 {
        format!(" and would have {early}: it must read these again")
    } else {
        format!("; {early}")
    };
    let rejected = match row.invalid_requests {
        0 => "No request would have been rejected.".to_owned(),
        count => format!(
            "{} would have been rejected.",
            count_with_noun(usize::try_from(count).unwrap_or(0), "request", "requests")
        ),
    };
    let over = match row.over_budget_requests {
        0 => String::new(),
        count => format!(
            " {} above the budget.",
            count_with_noun(usize::try_from(count).unwrap_or(0), "request stays", "requests stay")
        ),
    };
    format!("{} {money}{early}. {rejected}{over}", row.policy)
}

/// Returns how many of so many were missed.
pub(super) fn missed_count(recall: f64, of: u64) -> u64 {
    let held = Tokens(of).scale(recall).0;
    of.saturating_sub(held)
}

/// Returns dollars, or a time.
pub(super) fn format_cost(amount: f64, unit: CostUnit) -> String {
    match unit {
        CostUnit::Dollars => format_dollars(amount),
        CostUnit::Seconds if amount < 100.0 => format!("{amount:.1} s"),
        CostUnit::Seconds if amount < 7200.0 => format!("{:.0} min", amount / 60.0),
        CostUnit::Seconds => format!("{:.1} h", amount / 3600.0),
    }
}

fn format_dollars(amount: f64) -> String {
    // Cents say nothing about less than ten of them.
    if (0.000_05..0.095).contains(&amount) { format!("${amount:.3}") } else { format!("${amount:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::replay::invented::make_up_results;

    fn check(cost_vs_raw: f64, edits: u64, recall: f64, rejected: u64) -> String {
        let mut row = make_up_results(3).rows.into_iter().find(|row| row.policy == "steady").expect("steady");
        (row.cost_vs_raw, row.input_cost, row.raw_cost) = (cost_vs_raw, 100.0 * cost_vs_raw, 100.0);
        (row.edit_anchors, row.edit_anchor_recall, row.invalid_requests) = (edits, recall, rejected);
        policy_sentence(&row)
    }

    #[test]
    fn what_is_saved_is_told_with_its_price() {
        assert_eq!(
            check(0.868, 420, 0.945, 0),
            "steady would have saved $13.20 (13.2 %) and would have hidden 23 of the 420 texts that the agent edited later: it \
             must read these again. No request would have been rejected."
        );
        assert_eq!(
            check(1.002, 3, 1.0, 2),
            "steady would have cost $0.20 more (0.2 %); all 3 texts that the agent edited were still visible then. 2 requests \
             would have been rejected."
        );
        assert!(check(1.0, 0, 1.0, 1).contains("would have cost the same; the agent edited no text"));
    }

    #[test]
    fn time_is_told_as_time() {
        let times = [4.2, 130.0, 9000.0].map(|seconds| format_cost(seconds, CostUnit::Seconds));
        assert_eq!(times, ["4.2 s", "2 min", "2.5 h"]);
        assert_eq!(format_cost(4.2, CostUnit::Dollars), "$4.20");
    }

    #[test]
    fn the_first_sentence_says_what_was_spent_and_whose_prices_those_are() {
        let mut replayed = make_up_results(5);
        replayed.prices = "the prices of claude-opus-5".to_owned();
        let sentences = summary_sentences(&replayed);
        assert!(
            sentences[0].starts_with("5 sessions with ")
                && sentences[0].contains(" at the prices of claude-opus-5. Caches live ")
        );
        assert_eq!(sentences.len(), 2, "{sentences:?}");
    }
}
