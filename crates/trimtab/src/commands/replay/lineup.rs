//! Who takes part in a replay: [`contenders_for`], [`keep_best`]. Takes what was asked for; gives contenders. Where nothing was asked for,
//! the default policy, its neighbours and some methods that other tools use; of these the best are shown.

use std::{collections::HashSet, fs};

use anyhow::{Context, Result};
use trimtab_replay::{Contender, KnobRange, ScoreRow, contenders, policy_words};

use super::ReplayResults;
use crate::args::{PolicyChoice, ReplayArgs};

/// Policies of ours that are always shown.
const OURS: &[&str] = &["none", "steady", "steady.safe"];

/// Methods that people know: what providers, agents and libraries do. The best that are never rejected are shown.
const PEERS: &[&str] = &[
    "peer:clear-tool-uses", "peer:opencode-prune", "peer:gemini-masking", "peer:mask", "peer:mask-ski",
    "peer:last-n-polling",
];

/// What could be done with hindsight, where a budget is asked for: every recall is related to the first.
const BUDGET_BOUNDS: &[&str] = &["oracle:budget", "oracle:budget-paid"];

/// How many of them are shown.
const BEST: usize = 3;

/// Tells whether nobody said who takes part.
pub(super) fn is_usual(asked: &ReplayArgs) -> bool {
    asked.policies.is_empty() && !asked.all && !asked.values
}

/// Returns who takes part.
///
/// # Errors
/// Says which policy file cannot be read.
pub(super) fn contenders_for(asked: &ReplayArgs) -> Result<Vec<Contender>> {
    if is_usual(asked) {
        let bounds: &[&str] = if asked.budgets.is_empty() { &[] } else { BUDGET_BOUNDS };
        let names = OURS.iter().chain(PEERS).chain(bounds);
        return Ok(names.map(|name| Contender::parse(name)).collect::<Result<_, _>>()?);
    }
    if asked.policies.is_empty() {
        return Ok(contenders(if asked.values { KnobRange::All } else { KnobRange::Default }));
    }
    let mut found: Vec<Contender> = Vec::new();
    for policy in &asked.policies {
        let contender = match policy {
            PolicyChoice::Known(contender) => contender.clone(),
            PolicyChoice::File(words) => {
                let policy = policy_words(words);
                let file = policy.split('(').next().unwrap_or(policy).trim_end();
                let toml =
                    fs::read_to_string(file).with_context(|| format!("{file}: the policy cannot be read"))?;
                Contender::from_toml(words, &toml)?
            }
        };
        // Asked for twice, shown once.
        if found.iter().all(|other| other.name() != contender.name()) {
            found.push(contender);
        }
    }
    Ok(found)
}

/// Keeps of the others the best that no provider would reject: the cheapest, with what it costs to fetch again what was missed.
pub(super) fn keep_best(replayed: &mut ReplayResults) {
    let mut others: Vec<&ScoreRow> =
        replayed.rows.iter().filter(|row| !is_always_shown(&row.policy)).collect();
    // Rejected at one budget, rejected at all; compared at the first.
    let rejected: HashSet<&str> =
        replayed.rows.iter().filter(|row| row.invalid_requests > 0).map(|row| &*row.policy).collect();
    others.retain(|row| !rejected.contains(&*row.policy) && Some(&row.budget) == replayed.budgets.first());
    others.sort_by(|one, other| one.cost_net_vs_raw.total_cmp(&other.cost_net_vs_raw));
    let best: HashSet<String> = others.iter().take(BEST).map(|row| row.policy.clone()).collect();
    let is_kept = |name: &str| is_always_shown(name) || best.contains(name);
    replayed.entrants.retain(|entrant| is_kept(&entrant.name));
    let of_groups = replayed.groups.iter_mut().map(|group| &mut group.rows);
    for rows in of_groups.chain([&mut replayed.rows]) {
        rows.retain(|row| is_kept(&row.policy));
    }
    for session in &mut replayed.sessions {
        session.scores.retain(|score| is_kept(&score.policy));
    }
}

fn is_always_shown(name: &str) -> bool {
    OURS.contains(&name) || BUDGET_BOUNDS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::replay::invented::make_up_results;

    #[test]
    fn everybody_who_takes_part_is_known() {
        for name in OURS.iter().chain(PEERS).chain(BUDGET_BOUNDS) {
            assert!(Contender::parse(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn no_method_is_shown_whose_requests_are_rejected() {
        let mut replayed = make_up_results(20);
        let columns = replayed.models.len();
        replayed.rows.retain(|row| row.model == replayed.models[0].name);
        for row in &mut replayed.rows {
            row.invalid_requests = u64::from(row.policy == "peer:ingest-cap(2000)");
        }
        keep_best(&mut replayed);
        let names: Vec<&str> = replayed.rows.iter().map(|row| row.policy.as_str()).collect();
        assert_eq!(names.len(), 2 + BEST, "the made-up figures have no steady.safe: {names:?}");
        assert!(!names.contains(&"peer:ingest-cap(2000)"));
        assert_eq!(replayed.entrants.len(), names.len());
        assert!(replayed.sessions.iter().all(|session| session.scores.len() == names.len() * columns));
    }
}
