//! The words for a long series of edits: what the block that tells it says. Takes an [`EditSeries`]; gives its net diff with
//! every line after `|`, so that nothing in it can pose as a note, and clauses for the closing note.

use super::{
    clip::{clip_middle, count_with_name},
    cut_line,
};
use crate::digest::{EditSeries, LineCount};

/// The longest path, in characters.
const PATH: usize = 120;
/// The longest intent.
const INTENT: usize = 100;
/// The longest line of a diff that is shown whole.
const LONGEST_LINE: usize = 200;

/// Writes the net diff, a line each; nothing where there is none to show.
pub(super) fn net_diff(series: &EditSeries) -> Option<String> {
    if series.diff.is_empty() {
        return None;
    }
    let head = format!(
        "[… net diff of {} between steps {} and {} …]",
        clip_middle(&series.path, PATH),
        series.first,
        series.last
    );
    let quoted = series.diff.iter().map(|line| format!("| {}", shorten_line(line)));
    let more =
        format!("[… {} of the net diff …]", count_with_name(series.more_diff, "more line", "more lines"));
    let more = (series.more_diff > 0).then_some(more);
    Some([head].into_iter().chain(quoted).chain(more).collect::<Vec<_>>().join("\n"))
}

/// Says what the note lists.
pub(super) fn opening_words(series: &EditSeries) -> String {
    let EditSeries { path, changes, first, last, .. } = series;
    format!("{changes} changes of {} between steps {first} and {last}", clip_middle(path, PATH))
}

/// Says where a change is listed.
pub(super) fn told_at(changes: u32, step: u32) -> String {
    format!("one of the {changes} changes listed at step {step}")
}

/// Says what the changes come to, and why they were made.
pub(super) fn change_facts(series: &EditSeries) -> Option<String> {
    let lines = series.lines.map(|lines| match lines {
        LineCount::Net(added, removed) => format!("net change +{added} -{removed} lines"),
        LineCount::NetOfKnown(added, removed) => format!("net change of the lines known +{added} -{removed}"),
        LineCount::NetSince(step, added, removed) => {
            format!("net change since it was written at step {step} +{added} -{removed} lines")
        }
        LineCount::Sum(added, removed) => format!("in all +{added} -{removed} lines"),
    });
    let intents: Vec<String> = series
        .intents
        .iter()
        .map(|(intent, times)| match times {
            1 => format!("\"{}\"", clip_middle(intent, INTENT)),
            times => format!("\"{}\" ({times} times)", clip_middle(intent, INTENT)),
        })
        .collect();
    let more = (series.more_intents > 0).then(|| format!("+{} more in their calls", series.more_intents));
    let intents: Vec<String> = intents.into_iter().chain(more).collect();
    let intents = (!intents.is_empty()).then(|| format!("intents: {}", intents.join(", ")));
    let clauses: Vec<String> = lines.into_iter().chain(intents).collect();
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

fn shorten_line(line: &str) -> String {
    let line = line.replace('\r', " ");
    if line.chars().count() <= LONGEST_LINE {
        return line;
    }
    let head = line.floor_char_boundary(LONGEST_LINE / 2);
    let tail = line.len() - line.ceil_char_boundary(line.len() - LONGEST_LINE / 4);
    cut_line(&line, head, tail)
}
