//! Errors that are not solved yet. Takes a track; gives every failed call's signature with the requests in which it is live:
//! from its result on until the same thing succeeds. Never takes a word for a failure: the outcome says it.
//!
//! The signature is the first line that reports the failure (the exception, the diagnostic), and the nearest line with the
//! place (`file:line`) where that line names none.

use std::collections::HashMap;

use trimtab_core::{
    BlockId, BlockKind,
    digest::{has_place, is_error_line},
    facts::{Fact, Outcome, Subject, ToolKind},
    json::narrow,
};

use super::{lasting::LastingTexts, normal::NormalText, texts::SegmentTexts, visible::arrival_request};
use crate::replay::Track;

/// How many characters of a line count: a digest may cut lines from 500 on.
const LINE_CHARACTERS: usize = 200;

/// How many lines around the report are looked at for its place.
const PLACE_LINES: usize = 4;

/// Finds the errors of a segment.
pub(super) fn find_errors(track: &Track<'_>, texts: &SegmentTexts) -> Vec<LastingTexts> {
    let mut successes: HashMap<(ToolKind, String), Vec<BlockId>> = HashMap::new();
    let results = || {
        let rows = track.facts.rows().iter().enumerate();
        rows.filter(|(_, fact)| fact.acts_as == BlockKind::Result)
            .map(|(index, fact)| (BlockId(narrow(index)), fact))
    };
    for (block, fact) in results().filter(|(_, fact)| fact.outcome != Outcome::Failed) {
        successes.entry(call_key(track, fact)).or_default().push(block);
    }
    let error = |(block, fact): (BlockId, &Fact)| {
        let mended =
            successes.get(&call_key(track, fact)).and_then(|all| all.iter().find(|later| **later > block));
        let until = mended.map_or(track.requests.len(), |later| arrival_request(track, *later));
        let wanted = error_signature(texts.text_of(block)?);
        LastingTexts::from_block(block, wanted, arrival_request(track, block)..until, texts)
    };
    results().filter(|(_, fact)| fact.outcome == Outcome::Failed).filter_map(error).collect()
}

/// Returns the name under which two calls are the same: what is done to which file, or the command, as the facts tell them.
fn call_key(track: &Track<'_>, fact: &Fact) -> (ToolKind, String) {
    let kind = fact.tool().unwrap_or(ToolKind::Other);
    let subject = match fact.subject() {
        Subject::File { path, .. } => track.facts.file_key(path).into_owned(),
        Subject::Nothing => {
            let call = fact.partner.and_then(|call| track.facts.row(call));
            format!("{:?}", call.map(|call| call.digest))
        }
        subject @ (Subject::Directory { .. }
        | Subject::Command(_)
        | Subject::Query { .. }
        | Subject::Url(_)) => subject.to_string(),
    };
    (kind, subject)
}

fn error_signature(normal: &NormalText) -> Vec<String> {
    let lines: Vec<&str> = normal.readable().split('\n').collect();
    let reports = |line: &&str| is_error_line(line) && !line.trim_start().starts_with("Traceback ");
    let Some(at) = lines.iter().position(reports) else {
        let mut said = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
        let first = said.next();
        // A harness's line with the exit code tells less than what follows it.
        let second =
            said.next().filter(|_| first.is_some_and(|line| line.to_lowercase().contains("exit code")));
        return second.or(first).map(cut_line).into_iter().collect();
    };
    let Some(report) = lines.get(at) else { return Vec::new() };
    let near = (1..=PLACE_LINES).flat_map(|away| [at.checked_sub(away), at.checked_add(away)]).flatten();
    let near = near.filter_map(|index| lines.get(index)).find(|line| has_place(line));
    let place = near.filter(|_| !has_place(report));
    std::iter::once(report).chain(place).map(|line| cut_line(line.trim())).collect()
}

fn cut_line(line: &str) -> String {
    line.chars().take(LINE_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(error_signature(&NormalText::from_text(text)), expected);
    }

    #[test]
    fn a_signature_is_the_report_and_its_place() {
        check(
            "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    x()\nNameError: name 'x' is not defined",
            &["NameError: name 'x' is not defined", "File \"a.py\", line 3, in <module>"],
        );
        check(
            "warning: unused\nerror[E0308]: mismatched types\n --> src/a.rs:3:5\n  |",
            &["error[E0308]: mismatched types", "--> src/a.rs:3:5"],
        );
        check(
            "src/a.ts:12:5 - error TS2304: Cannot find name 'x'.",
            &["src/a.ts:12:5 - error TS2304: Cannot find name 'x'."],
        );
        check("Exit code 2\nnothing to be done", &["nothing to be done"]);
        check("String to replace not found", &["String to replace not found"]);
    }
}
