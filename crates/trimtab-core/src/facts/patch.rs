//! Which files a patch changes. Takes the text of an `apply_patch` call or a unified diff; gives one action per file,
//! and the lines that say so. [`HunkHeader`] is the one reader of the line above a hunk, for `files` and `digest` too.
//! Never applies anything.

use super::{
    subject::{Subject, SubjectLines},
    tool::{Action, ToolKind},
};

/// The line above a hunk of a unified diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HunkHeader {
    /// The first line of the old file in the hunk, and how many there are. With none, the line it follows.
    pub(crate) old: (usize, usize),
    /// The same of the new file.
    pub(crate) new: (usize, usize),
}

impl HunkHeader {
    /// Reads `@@ -12,5 +12,7 @@`, with anything after it; a side without a count is one line.
    pub(crate) fn parse(line: &str) -> Option<HunkHeader> {
        let mut sides = line.strip_prefix("@@ -")?.split(' ');
        let side = |word: &str| {
            let (start, count) = word.split_once(',').unwrap_or((word, "1"));
            Some((start.parse().ok()?, count.parse().ok()?))
        };
        Some(HunkHeader { old: side(sides.next()?)?, new: side(sides.next()?.strip_prefix('+')?)? })
    }
}

/// Returns the changes that a patch makes, one per file; one without a subject where no file is named.
pub(crate) fn patch_actions(text: &str) -> Vec<Action> {
    let mut actions: Vec<Action> = Vec::new();
    for line in text.lines() {
        let Some(action) = parse_header(line.trim_end()) else { continue };
        if !actions.contains(&action) {
            actions.push(action);
        }
    }
    if actions.is_empty() {
        actions.push(Action::new(ToolKind::Edit, Subject::Nothing));
    }
    actions
}

/// Returns the lines of a patch that name its files, each once.
pub(crate) fn file_lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim_end).filter(|line| parse_header(line).is_some()) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn parse_header(line: &str) -> Option<Action> {
    let marked = [
        ("*** Add File: ", ToolKind::Write),
        ("*** Update File: ", ToolKind::Edit),
        ("*** Delete File: ", ToolKind::Delete),
        ("*** Move to: ", ToolKind::Write),
    ];
    for (mark, kind) in marked {
        let Some(path) = line.strip_prefix(mark) else { continue };
        let lines = if kind == ToolKind::Edit { SubjectLines::Part } else { SubjectLines::All };
        return Some(Action::new(kind, Subject::lines_of(path, lines)));
    }
    let path = line.strip_prefix("+++ ")?.split('\t').next()?.trim();
    let path = path.strip_prefix("b/").unwrap_or(path);
    (path != "/dev/null").then(|| Action::new(ToolKind::Edit, Subject::lines_of(path, SubjectLines::Part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let picture = |action: &Action| format!("{} {}", action.kind.name(), action.subject);
        assert_eq!(patch_actions(text).iter().map(picture).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_file_of_a_patch_is_one_action() {
        check(
            "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-x\n+y\n*** Add File: b.md\n+hi\n*** Delete File: ./c.txt\n*** End Patch",
            &["edit src/a.rs:part", "write b.md", "delete c.txt"],
        );
        check("--- a/x.py\t2024\n+++ b/x.py\t2024\n@@ -1 +1 @@\n-a\n+b", &["edit x.py:part"]);
        check("nothing of the kind", &["edit -"]);
    }

    #[test]
    fn a_hunk_says_where_it_stands_and_how_many_lines_it_has() {
        let read = |line| HunkHeader::parse(line).map(|header| (header.old, header.new));
        assert_eq!(read("@@ -12,5 +13,7 @@ fn main() {"), Some(((12, 5), (13, 7))));
        assert_eq!(read("@@ -1 +1 @@"), Some(((1, 1), (1, 1))));
        assert_eq!(read("@@ -0,0 +1,2 @@"), Some(((0, 0), (1, 2))));
        for other in ["@@ fn main() {", "@@ -1,5 @@", "@@ -a +b @@", "@@@ -1 -1 +1 @@@", "-1 +1"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
