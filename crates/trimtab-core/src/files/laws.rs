//! Laws over generated sessions: whatever mix of whole and partial reads, writes, edits and patches a file goes
//! through, a line that is known is the line that the file holds.

use proptest::{
    collection::vec,
    prelude::{Just, Strategy, prop_oneof, proptest},
};

use super::{
    FileAction, FileOperation, FileState, FileTimeline, LineNow, Occurrences, ReadExtent, Replacement,
    codex_patch, shown_numbered, shown_plain, unified_diff,
};
use crate::history::BlockId;

/// A step of a generated session; the numbers are taken modulo what the file has at that moment.
#[derive(Debug, Clone)]
enum Step {
    ReadArrows { first: usize, count: usize },
    ReadWholeArrows,
    ReadWholeTabs,
    ReadPlain { first: usize, count: usize },
    Cat,
    Write(String),
    Append(String),
    Replace { from: usize, length: usize, new: String, which: Occurrences },
    Insert { after: usize, text: String },
    ReplaceLines { first: usize, count: usize, text: String },
    UnifiedDiff { first: usize, count: usize, context: usize, text: String },
    CodexPatch { first: usize, count: usize, context: usize, text: String },
    Changed(String),
}

/// Texts of few different lines, so that many of them occur more than once.
fn text() -> impl Strategy<Value = String> {
    let line =
        prop_oneof![Just(""), Just("a"), Just("b"), Just("ab"), Just("  a"), Just("}"), Just("let x = 1;")];
    (vec(line, 0..9), prop_oneof![Just(""), Just("\n")]).prop_map(|(lines, end)| lines.join("\n") + end)
}

fn step() -> impl Strategy<Value = Step> {
    let at = || 0..40_usize;
    let few = || 0..4_usize;
    let which =
        prop_oneof![3 => Just(Occurrences::Only), 1 => Just(Occurrences::First), 1 => Just(Occurrences::All)];
    prop_oneof![
        4 => (at(), 1..6_usize).prop_map(|(first, count)| Step::ReadArrows { first, count }),
        1 => Just(Step::ReadWholeArrows),
        1 => Just(Step::ReadWholeTabs),
        1 => (at(), 1..6_usize).prop_map(|(first, count)| Step::ReadPlain { first, count }),
        1 => Just(Step::Cat),
        1 => text().prop_map(Step::Write),
        1 => text().prop_map(Step::Append),
        6 => (at(), 1..9_usize, text(), which)
            .prop_map(|(from, length, new, which)| Step::Replace { from, length, new, which }),
        1 => (at(), text()).prop_map(|(after, text)| Step::Insert { after, text }),
        1 => (at(), few(), text()).prop_map(|(first, count, text)| Step::ReplaceLines { first, count, text }),
        3 => (at(), few(), few(), text())
            .prop_map(|(first, count, context, text)| Step::UnifiedDiff { first, count, context, text }),
        3 => (at(), few(), few(), text())
            .prop_map(|(first, count, context, text)| Step::CodexPatch { first, count, context, text }),
        1 => text().prop_map(Step::Changed),
    ]
}

/// Carries a step out on the true text and says which action the conversation shows of it; none where the tool would
/// have refused.
fn act(truth: &mut String, step: &Step) -> Option<FileAction> {
    let lines: Vec<String> = truth.split('\n').map(str::to_owned).collect();
    let count = lines.len();
    match step {
        Step::ReadArrows { first, count: rows } => {
            let first = first % count;
            let rows = &lines[first..(first + rows).min(count)];
            Some(FileAction::Read(shown_numbered(&numbered(rows, first + 1, "→"), ReadExtent::Part)))
        }
        Step::ReadWholeArrows => {
            Some(FileAction::Read(shown_numbered(&numbered(&lines, 1, "→"), ReadExtent::Whole)))
        }
        Step::ReadWholeTabs => {
            let rows =
                if lines.last().is_some_and(String::is_empty) { &lines[..count - 1] } else { &lines[..] };
            Some(FileAction::Read(shown_numbered(&numbered(rows, 1, "\t"), ReadExtent::Whole)))
        }
        Step::ReadPlain { first, count: rows } => {
            let first = first % count;
            let rows = &lines[first..(first + rows).min(count)];
            Some(FileAction::Read(shown_plain(&(rows.join("\n") + "\n"), first + 1, ReadExtent::Part)))
        }
        Step::Cat => Some(FileAction::Read(shown_plain(truth.trim_end_matches('\n'), 1, ReadExtent::Whole))),
        Step::Write(text) => {
            truth.clone_from(text);
            Some(FileAction::Write { content: text.clone() })
        }
        Step::Append(text) => {
            truth.push_str(text);
            Some(FileAction::Append { content: text.clone() })
        }
        Step::Replace { from, length, new, which } => {
            let from = from % (truth.len() + 1);
            let old = truth[from..(from + length).min(truth.len())].to_owned();
            let found = truth.matches(&old).count();
            if old.is_empty() || (*which == Occurrences::Only && overlapping(truth, &old) != 1) || found == 0
            {
                return None;
            }
            *truth = match which {
                Occurrences::Only | Occurrences::First => truth.replacen(&old, new, 1),
                Occurrences::All => truth.replace(&old, new),
            };
            Some(FileAction::Replace(vec![Replacement { old, new: new.clone(), which: *which }]))
        }
        Step::Insert { after, text } => {
            let after = after % (count + 1);
            let mut lines = lines;
            lines.splice(after..after, text.split('\n').map(str::to_owned));
            *truth = lines.join("\n");
            Some(FileAction::Insert { after, text: text.clone() })
        }
        Step::ReplaceLines { first, count: rows, text } => {
            let first = first % count;
            let last = (first + rows).min(count);
            if last == first {
                return None;
            }
            let mut lines = lines;
            lines.splice(first..last, text.split('\n').map(str::to_owned));
            *truth = lines.join("\n");
            Some(FileAction::ReplaceLines { first: first + 1, last, text: Some(text.clone()) })
        }
        Step::UnifiedDiff { first, count: rows, context, text } => {
            diffed(truth, *first, *rows, *context, text)
        }
        Step::CodexPatch { first, count: rows, context, text } => {
            patched(truth, *first, *rows, *context, text)
        }
        Step::Changed(text) => {
            truth.clone_from(text);
            Some(FileAction::Changed)
        }
    }
}

fn overlapping(text: &str, old: &str) -> usize {
    (0..text.len()).filter(|at| text[*at..].starts_with(old)).count()
}

fn numbered(lines: &[String], first: usize, separator: &str) -> String {
    let rows: Vec<String> =
        lines.iter().zip(first..).map(|(line, number)| format!("{number:6}{separator}{line}")).collect();
    rows.join("\n")
}

/// Real lines: a final line break ends the last one and begins none.
fn rows(text: &str) -> Vec<&str> {
    text.strip_suffix('\n').map_or_else(|| text.split('\n').collect(), |text| text.split('\n').collect())
}

fn diffed(truth: &mut String, first: usize, count: usize, context: usize, text: &str) -> Option<FileAction> {
    if !truth.ends_with('\n') {
        return None;
    }
    let lines: Vec<String> = rows(truth).into_iter().map(str::to_owned).collect();
    let first = first % lines.len();
    let last = (first + count).min(lines.len());
    let new: Vec<&str> = rows(text);
    let (from, to) = (first.saturating_sub(context), (last + context).min(lines.len()));
    let old_count = to - from;
    let new_count = old_count - (last - first) + new.len();
    let start = |count: usize| if count == 0 { from } else { from + 1 };
    let mut diff = format!(
        "--- a/f\n+++ b/f\n@@ -{},{old_count} +{},{new_count} @@\n",
        start(old_count),
        start(new_count)
    );
    lines[from..first].iter().for_each(|line| diff += &format!(" {line}\n"));
    lines[first..last].iter().for_each(|line| diff += &format!("-{line}\n"));
    new.iter().for_each(|line| diff += &format!("+{line}\n"));
    lines[last..to].iter().for_each(|line| diff += &format!(" {line}\n"));
    let mut after: Vec<&str> = lines[..first].iter().map(String::as_str).collect();
    after.extend(new);
    after.extend(lines[last..].iter().map(String::as_str));
    *truth = after.join("\n") + "\n";
    unified_diff(&diff).pop().map(|operation| operation.action)
}

fn patched(truth: &mut String, first: usize, count: usize, context: usize, text: &str) -> Option<FileAction> {
    let lines: Vec<String> = rows(truth).into_iter().map(str::to_owned).collect();
    let first = first % lines.len();
    let last = (first + count).min(lines.len());
    let new: Vec<&str> = rows(text);
    let (from, to) = (first.saturating_sub(context), (last + context).min(lines.len()));
    let block = &lines[from..to];
    if truth.is_empty() {
        return None;
    }
    // codex takes the first block of equal lines: only a patch that is meant so is one.
    let place = lines.windows(block.len().max(1)).position(|rows| rows == block);
    if block.is_empty() || place != Some(from) {
        return None;
    }
    let mut patch = "*** Begin Patch\n*** Update File: f\n@@\n".to_owned();
    lines[from..first].iter().for_each(|line| patch += &format!(" {line}\n"));
    lines[first..last].iter().for_each(|line| patch += &format!("-{line}\n"));
    new.iter().for_each(|line| patch += &format!("+{line}\n"));
    lines[last..to].iter().for_each(|line| patch += &format!(" {line}\n"));
    patch += "*** End Patch\n";
    let mut after: Vec<&str> = lines[..first].iter().map(String::as_str).collect();
    after.extend(new);
    after.extend(lines[last..].iter().map(String::as_str));
    let has_text = after.last().is_some_and(|line| !line.is_empty());
    *truth = after.join("\n") + if has_text { "\n" } else { "" };
    codex_patch(&patch).pop().map(|operation| operation.action)
}

fn check(state: &FileState, truth: &str) {
    let lines: Vec<&str> = truth.split('\n').collect();
    for number in 1..=lines.len() + 40 {
        let Some(line) = state.line(number) else { continue };
        assert_eq!(Some(&line.text), lines.get(number - 1), "line {number} of {truth:?}: {:?}", state.runs());
    }
    if let Some(text) = state.text() {
        assert_eq!(text, truth);
    }
    if let Some(count) = state.line_count().filter(|_| !truth.is_empty()) {
        assert_eq!(count, truth.lines().count(), "{truth:?}: {:?} {:?}", state.runs(), state.end());
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(2000))]

    #[test]
    fn a_known_line_is_the_line_that_the_file_holds(start in text(), steps in vec(step(), 1..12)) {
        let mut truth = start;
        let mut state = FileState::default();
        for (number, step) in (1..).zip(&steps) {
            let Some(action) = act(&mut truth, step) else { continue };
            state = state.after_operation(number, &action);
            check(&state, &truth);
        }
    }

    #[test]
    fn a_file_written_once_stays_known_through_every_told_edit(start in text(), steps in vec(step(), 1..12)) {
        let mut truth = start.clone();
        let mut state = FileState::default().after_operation(1, &FileAction::Write { content: start });
        for (number, step) in (2..).zip(&steps) {
            if matches!(step, Step::Changed(_)) {
                continue;
            }
            let Some(action) = act(&mut truth, step) else { continue };
            state = state.after_operation(number, &action);
            assert_eq!(state.text().as_deref(), Some(truth.as_str()), "after {step:?}");
        }
    }

    #[test]
    fn every_earlier_state_stays_as_it_was_and_current_lines_are_current(start in text(), steps in vec(step(), 1..12)) {
        let mut truth = start;
        let mut files = FileTimeline::default();
        let mut truths = Vec::new();
        for (number, step) in (1..).zip(&steps) {
            let Some(action) = act(&mut truth, step) else { continue };
            files.apply_operation(number, BlockId(0), &FileOperation { path: "f".to_owned(), action });
            truths.push((number, truth.clone()));
        }
        for (number, truth) in &truths {
            check(&files.file_state_at("f", *number).expect("a state"), truth);
        }
        let now: Vec<&str> = truth.split('\n').collect();
        for (access, (_, then)) in truths.iter().enumerate() {
            let then: Vec<&str> = then.split('\n').collect();
            for (number, fate) in files.lines_now("f", access, u32::MAX) {
                match fate {
                    LineNow::Current => assert_eq!(now.get(number - 1), then.get(number - 1)),
                    LineNow::Moved(place) => assert_eq!(now.get(place - 1), then.get(number - 1)),
                    LineNow::Stale => assert_ne!(now.get(number - 1), then.get(number - 1)),
                    LineNow::Unknown => {}
                }
            }
        }
    }
}
