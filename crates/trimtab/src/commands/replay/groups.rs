//! Rows of single repositories, agents or sessions beside those of all: [`RowGroup`], made by [`group_rows`] for `--by`.

use trimtab_replay::{ScoreRow, SessionScores, pool_sessions};

use crate::args::ReplayGroups;

/// What sessions are counted under that do not name what they are grouped by.
const UNKNOWN: &str = "unknown";

/// The rows of the sessions that have something in common.
pub(super) struct RowGroup {
    pub(super) name: String,
    pub(super) rows: Vec<ScoreRow>,
}

/// Adds sessions up by group, in the order of the groups' names.
pub(super) fn group_rows(sessions: &[SessionScores], by: ReplayGroups, resamples: usize) -> Vec<RowGroup> {
    let name_of = |session: &SessionScores| {
        let name = match by {
            ReplayGroups::Repository => &session.repository,
            ReplayGroups::Agent => &session.agent,
            ReplayGroups::Session => &session.name,
        };
        if name.is_empty() { UNKNOWN.to_owned() } else { name.clone() }
    };
    let mut names: Vec<String> = sessions.iter().map(name_of).collect();
    names.sort();
    names.dedup();
    let group = |name: String| {
        let own = sessions.iter().filter(|session| name_of(session) == name);
        let mut rows = pool_sessions(&own.cloned().collect::<Vec<_>>(), resamples);
        rows.iter_mut().for_each(|row| row.group = Some(name.clone()));
        RowGroup { name, rows }
    };
    names.into_iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_the_rows_of_its_own_sessions() {
        let session = |name: &str, agent: &str, repository: &str| SessionScores {
            name: name.to_owned(),
            agent: agent.to_owned(),
            repository: repository.to_owned(),
            scores: vec![trimtab_replay::Score::default()],
            ..SessionScores::default()
        };
        let sessions = [session("1", "pi", "app"), session("2", "codex", "app"), session("3", "codex", "")];
        let sizes = |by| -> Vec<(String, u64)> {
            let groups = group_rows(&sessions, by, 0);
            groups.into_iter().map(|group| (group.name, group.rows[0].sessions)).collect()
        };
        let named = |names: &[(&str, u64)]| -> Vec<(String, u64)> {
            names.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        assert_eq!(sizes(ReplayGroups::Repository), named(&[("app", 2), ("unknown", 1)]));
        assert_eq!(sizes(ReplayGroups::Agent), named(&[("codex", 2), ("pi", 1)]));
        assert_eq!(sizes(ReplayGroups::Session), named(&[("1", 1), ("2", 1), ("3", 1)]));
    }
}
