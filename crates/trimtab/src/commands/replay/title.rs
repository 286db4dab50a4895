//! By what people know a session: [`session_title`] gives its project, its day and the first words of the user, without secrets.

use jiff::Timestamp;
use trimtab_core::{BlockKind, Role, facts};
use trimtab_replay::{Recording, Segment};
use trimtab_store::Secrets;

/// The most letters of the user's words.
const LETTERS: usize = 60;

pub(super) fn session_title(recording: &Recording, repository: &str) -> String {
    let project = repository.rsplit(['/', '\\']).find(|part| !part.is_empty());
    let first = recording.segments.first();
    let day = first.and_then(|segment| segment.points.iter().find_map(|point| point.at));
    let day = day.and_then(|at| Timestamp::from_millisecond(at.0).ok());
    let day = day.map(|day| day.strftime("%Y-%m-%d").to_string());
    let said = first.and_then(first_words);
    [project.map(str::to_owned), day, said].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Returns the first words of the user on one line.
fn first_words(segment: &Segment) -> Option<String> {
    let history = &segment.history;
    let facts = facts(history);
    let said = history.blocks().iter().zip(facts.rows());
    let mut said = said
        .filter(|(_, fact)| fact.role == Role::User && fact.acts_as == BlockKind::Text && !fact.instructions);
    // Clients put their own reminders in tags before the user's words.
    let text = said.find_map(|(block, _)| {
        let text = history.block_text(block).trim().to_owned();
        (!text.is_empty() && !text.starts_with('<')).then_some(text)
    })?;
    let covered = Secrets::default().cover_secrets(&text).into_owned();
    let words = covered.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = words.chars().take(LETTERS).collect();
    Some(if words.chars().count() > LETTERS { format!("{short}…") } else { short })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_known_by_project_day_and_first_words() {
        let bytes = include_bytes!("../../../../../fixtures/recordings/claude-code.jsonl");
        let recording = trimtab_replay::read(bytes).expect("a recording");
        let title = session_title(&recording, "/home/dev/shop");
        let parts: Vec<&str> = title.split(" · ").collect();
        assert_eq!((parts[0], parts.len()), ("shop", 3), "{title}");
        assert!(parts[1].starts_with("20") && parts[1].len() == 10, "{title}");
        assert!(parts[2].chars().count() <= LETTERS + 1 && !parts[2].is_empty(), "{title}");
    }
}
