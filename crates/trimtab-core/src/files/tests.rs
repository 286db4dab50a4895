//! Tables: the forms in which tools show lines, the forms of patches, and what the timeline tells.

use super::changelog::{FileChange, group_by_file};
use super::{
    Access, AccessKind, Existence, FileAction, FileEnd, FileOperation, FileState, FileTimeline, LineNow,
    LineRun, Occurrences, ReadExtent, Replacement, ShownLines, codex_patch, search_replace_blocks,
    shown_diff, shown_hits, shown_numbered, shown_plain, shown_tail, unified_diff,
};
use crate::history::BlockId;

fn check(shown: &ShownLines, lines: &[(usize, &str)], total: Option<(usize, FileEnd)>) {
    let found: Vec<(usize, &str)> =
        shown.lines.iter().map(|(number, text)| (*number, text.as_str())).collect();
    assert_eq!(found, lines);
    assert_eq!(shown.total, total);
}

fn part(text: &str, lines: &[(usize, &str)]) {
    check(&shown_numbered(text, ReadExtent::Part), lines, None);
}

fn operation(path: &str, action: FileAction) -> FileOperation {
    FileOperation { path: path.to_owned(), action }
}

fn replace(old: &str, new: &str, which: Occurrences) -> FileAction {
    FileAction::Replace(vec![Replacement { old: old.to_owned(), new: new.to_owned(), which }])
}

fn write(content: &str) -> FileAction {
    FileAction::Write { content: content.to_owned() }
}

/// A picture of a state: known lines as they are, unknown ones as `?`, an open end as `…`.
fn picture(state: &FileState) -> Vec<String> {
    let mut rows = Vec::new();
    for run in state.runs() {
        match run {
            LineRun::Known { lines, .. } => rows.extend(lines.iter().map(|line| line.text.to_owned())),
            LineRun::Unknown { count, .. } => rows.push(format!("? {count}")),
            LineRun::Rest { .. } => rows.push("…".to_owned()),
        }
    }
    rows
}

fn check_state(actions: &[FileAction], expected: &[&str]) -> FileState {
    let states = (1..)
        .zip(actions)
        .fold(FileState::default(), |state, (step, action)| state.after_operation(step, action));
    assert_eq!(picture(&states), expected);
    states
}

#[test]
fn every_form_of_numbered_lines_is_read() {
    let expected: &[(usize, &str)] = &[(9, "fn a() {"), (10, ""), (11, "  1: b")];
    part("     9→fn a() {\n    10→\n    11→  1: b", expected);
    part("     9\tfn a() {\n    10\t\n    11\t  1: b\n", expected);
    part("9: fn a() {\n10: \n11:   1: b", expected);
    part("9: fn a() {\n10:\n11:   1: b", expected);
    part("9:fn a() {\n10:\n11:  1: b", expected);
    part("9|fn a() {\n10|\n11|  1: b", expected);
    part("<file>\n00009| fn a() {\n00010| \n00011|   1: b\n</file>", expected);
    part("9. fn a() {\n10. \n11.   1: b", expected);
    part("   9  fn a() {\n  10  \n  11    1: b", expected);
    part("     9→fn a() {\r\n    10→\r\n    11→  1: b\r\n", expected);
}

#[test]
fn words_around_numbered_lines_are_no_lines() {
    let expected: &[(usize, &str)] = &[(1, "a"), (2, "b")];
    part(
        "The file /x.py has been updated. Here's the result of running `cat -n` on a snippet of the edited file:\n     1→a\n     2→b",
        expected,
    );
    part(
        "Here's the result of running `cat -n` on /x.py:\n     1\ta\n     2\tb\nReview the changes.",
        expected,
    );
    part("     1→a\n     2→b\n\n<system-reminder>\n3→never a line\n</system-reminder>\n", expected);
    part(
        "     1→a\n     2→b\n\n(File has more lines. Use 'offset' parameter to read beyond line 2)",
        expected,
    );
    part("no numbers at all", &[]);
    part("<persisted-output>\nOutput too large (80.1KB).", &[]);
}

#[test]
fn a_window_tells_how_long_the_file_is() {
    let text = "[File: /repo/a.py (94 lines total)]\n(2 more lines above)\n3: x\n4:\n(90 more lines below)\n(Open file: /repo/a.py)";
    check(&shown_numbered(text, ReadExtent::Part), &[(3, " x"), (4, "")], Some((94, FileEnd::LineBreak)));
}

#[test]
fn a_whole_numbered_view_tells_the_end() {
    let whole = |text| shown_numbered(text, ReadExtent::Whole);
    check(&whole("     1→a\n     2→"), &[(1, "a"), (2, "")], Some((2, FileEnd::Exact)));
    check(&whole("     1→a"), &[(1, "a")], Some((1, FileEnd::LineBreak)));
    check(&whole("     1\ta\n     2\t"), &[(1, "a"), (2, "")], Some((2, FileEnd::LineBreak)));
    check(&whole("     1→a\n... 20 lines not shown"), &[(1, "a")], None);
    let empty = "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>";
    check(&whole(empty), &[(1, "")], Some((1, FileEnd::Exact)));
}

#[test]
fn a_line_that_may_have_been_cut_is_unknown() {
    let long = "x".repeat(2000);
    part(&format!("     1→a\n     2→{long}\n     3→b"), &[(1, "a"), (3, "b")]);
}

#[test]
fn numbers_that_leave_empty_lines_out_are_no_line_numbers() {
    part("     1\ta\n       \n     2\tb", &[]);
}

#[test]
fn plain_lines_are_counted_from_the_line_asked_for() {
    let lines: &[(usize, &str)] = &[(5, "a"), (6, ""), (7, "b")];
    check(&shown_plain("a\n\nb", 5, ReadExtent::Part), lines, None);
    check(&shown_plain("a\r\n\r\nb\r\n", 5, ReadExtent::Part), lines, None);
    check(&shown_plain("Chunk ID: 1\nWall time: 0.1\nOutput:\na\n\nb\n", 5, ReadExtent::Part), lines, None);
    check(
        &shown_plain("a\n\nb", 1, ReadExtent::Whole),
        &[(1, "a"), (2, ""), (3, "b")],
        Some((3, FileEnd::EmptyLines)),
    );
    check(&shown_plain("a\n", 1, ReadExtent::Whole), &[(1, "a")], Some((1, FileEnd::LineBreak)));
    check(&shown_plain("", 1, ReadExtent::Whole), &[], None);
}

#[test]
fn plain_lines_end_where_a_notice_begins() {
    check(
        &shown_plain("a\n\n[Showing lines 1-1 of 9. Use offset=2 to continue.]", 1, ReadExtent::Whole),
        &[(1, "a")],
        None,
    );
    check(&shown_plain("a\nb…12 tokens truncated…c\nd", 1, ReadExtent::Whole), &[(1, "a")], None);
    check(&shown_plain("a\nb... [truncated]\nc", 1, ReadExtent::Whole), &[(1, "a"), (3, "c")], None);
    let gemini = "\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines 150-151 of 300 total lines.\nAction: …\n\n--- FILE CONTENT (truncated) ---\na\nb";
    check(
        &shown_plain(gemini, 1, ReadExtent::Whole),
        &[(150, "a"), (151, "b")],
        Some((300, FileEnd::LineBreak)),
    );
}

#[test]
fn the_tail_of_a_file_has_numbers_only_where_its_length_is_known() {
    check(&shown_tail("y\nz\n", Some(10)), &[(9, "y"), (10, "z")], None);
    check(&shown_tail("y\nz\n", None), &[], None);
    check(&shown_tail("y\nz\n", Some(1)), &[], None);
}

#[test]
fn search_hits_show_lines() {
    let hits = shown_hits("src/a-1.rs:12:fn a()\nsrc/a-1.rs-13-}\n--\nb.rs:3:x: 1\nsome words", None);
    assert_eq!(hits.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), ["src/a-1.rs", "b.rs"]);
    check(&hits[0].1, &[(12, "fn a()"), (13, "}")], None);
    check(&hits[1].1, &[(3, "x: 1")], None);
    let hits = shown_hits("12:fn a()\n13-}\n14-\t/ Note: tidied", Some("a.rs"));
    check(&hits[0].1, &[(12, "fn a()"), (13, "}")], None);
    let hits = shown_hits("Found 1 match\n---\nFile: a.ts\nL7- x\nL8:   y\n---", None);
    check(&hits[0].1, &[(7, "x"), (8, "  y")], None);
}

#[test]
fn a_diff_shows_the_lines_after_it() {
    let shown = shown_diff("--- a/f\n+++ b/f\n@@ -2,2 +2,3 @@ fn\n a\n-b\n+c\n+d\n@@ -9 +10 @@\n-x\n+y\n");
    assert_eq!(shown[0].0, "f");
    check(&shown[0].1, &[(2, "a"), (3, "c"), (4, "d"), (10, "y")], None);
}

#[test]
fn a_codex_patch_adds_updates_moves_and_deletes() {
    let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: new.txt\n+a\n+b\n*** Update File: old.txt\n*** Move to: moved.txt\n@@ fn x\n one\n-two\n+2\n*** Delete File: gone.txt\n*** End Patch\nEOF";
    let mut files = FileTimeline::default();
    files.apply_operation(1, BlockId(0), &operation("old.txt", write("fn x\none\ntwo\n")));
    files.apply_operation(1, BlockId(0), &operation("gone.txt", write("")));
    codex_patch(patch).iter().for_each(|operation| files.apply_operation(2, BlockId(0), operation));
    let text = |path: &str| files.file_state_at(path, 2).and_then(|state| state.text());
    assert_eq!(text("new.txt").as_deref(), Some("a\nb\n"));
    assert_eq!(text("moved.txt").as_deref(), Some("fn x\none\n2\n"));
    assert_eq!(text("old.txt"), None);
    assert_eq!(files.file_state_at("gone.txt", 2).map(|state| state.existence()), Some(Existence::Absent));
}

#[test]
fn a_codex_patch_is_as_tolerant_as_codex() {
    let patched = |text: &str, patch: &str| {
        let patch = format!("*** Begin Patch\n*** Update File: f\n{patch}\n*** End Patch");
        let action = codex_patch(&patch).remove(0).action;
        FileState::default().after_operation(1, &write(text)).after_operation(2, &action).text()
    };
    assert_eq!(patched("a  \nb\n", "@@\n-a\n+x").as_deref(), Some("x\nb\n"));
    assert_eq!(patched("\ta\nb\n", "@@\n-a\n+x").as_deref(), Some("x\nb\n"));
    assert_eq!(patched("it’s\n", "@@\n-it's\n+x").as_deref(), Some("x\n"));
    assert_eq!(patched("a\nb", "@@\n+c").as_deref(), Some("a\nb\nc\n"));
    assert_eq!(patched("d\na\nd\n", "@@ a\n-d\n+x").as_deref(), Some("d\na\nx\n"));
    assert_eq!(patched("a\n", "@@\n-other\n+x"), None);
}

#[test]
fn a_unified_diff_knows_about_final_line_breaks() {
    let patched = |text: &str, diff: &str| {
        let action = unified_diff(&format!("diff --git a/f b/f\n--- a/f\n+++ b/f\n{diff}")).remove(0).action;
        FileState::default().after_operation(1, &write(text)).after_operation(2, &action).text()
    };
    let no = "\\ No newline at end of file";
    assert_eq!(patched("a\nb", &format!("@@ -2 +2 @@\n-b\n{no}\n+c\n")).as_deref(), Some("a\nc\n"));
    assert_eq!(patched("a\nb\n", &format!("@@ -2 +2 @@\n-b\n+c\n{no}\n")).as_deref(), Some("a\nc"));
    assert_eq!(patched("a\nb", &format!("@@ -1,2 +1,2 @@\n-a\n+c\n b\n{no}\n")).as_deref(), Some("c\nb"));
    assert_eq!(patched("x\nx\na\nb\n", "@@ -1,2 +1,2 @@\n-a\n+c\n b\n").as_deref(), Some("x\nx\nc\nb\n"));
    let made = unified_diff(
        "--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+a\n+b\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
    );
    assert_eq!(made, [operation("new", write("a\nb\n")), operation("old", FileAction::Delete)]);
}

#[test]
fn search_and_replace_blocks_name_their_file() {
    let text = "src/a.py\n```python\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n```\n------- SEARCH\nx\n=======\n+++++++ REPLACE\n";
    let blocks = search_replace_blocks(text);
    let pairs: Vec<(&str, &str)> =
        blocks.iter().map(|(_, edit)| (edit.old.as_str(), edit.new.as_str())).collect();
    assert_eq!(pairs, [("old\n", "new\n"), ("x\n", "")]);
    assert_eq!(blocks[0].0.as_deref(), Some("src/a.py"));
}

#[test]
fn an_edit_in_shown_lines_moves_the_lines_behind_it() {
    let read = FileAction::Read(shown_numbered("    10→a\n    11→b\n    12→c", ReadExtent::Part));
    check_state(&[read, replace("b", "b1\nb2", Occurrences::Only)], &["? 9", "a", "b1", "b2", "c", "…"]);
}

#[test]
fn an_edit_among_unseen_lines_makes_no_seen_line_unknown_that_it_cannot_touch() {
    let read = FileAction::Read(shown_numbered("     1→a\n     2→b", ReadExtent::Part));
    check_state(&[read.clone(), replace("unseen", "x\ny", Occurrences::Only)], &["a", "b", "…"]);
    check_state(&[read, replace("b\nunseen", "x", Occurrences::Only)], &["a", "…"]);
    let ends = FileAction::Read(ShownLines {
        lines: vec![(1, "a".to_owned()), (5, String::new())],
        total: Some((5, FileEnd::Exact)),
    });
    check_state(&[ends, replace("unseen\n", "", Occurrences::Only)], &["a", "? 3"]);
}

#[test]
fn replacing_all_keeps_what_cannot_have_moved() {
    let read = FileAction::Read(shown_numbered("     1→x = a\n     2→y = a", ReadExtent::Part));
    check_state(&[read.clone(), replace("a", "b", Occurrences::All)], &["x = b", "y = b", "…"]);
    check_state(&[read, replace(" = a", "\n", Occurrences::All)], &["x", "", "y", "", "…"]);
}

#[test]
fn a_read_that_contradicts_takes_the_rest_with_it() {
    let actions = [write("a\nb\nc\n"), FileAction::Read(shown_numbered("     2→other", ReadExtent::Part))];
    check_state(&actions, &["? 1", "other", "…"]);
}

#[test]
fn deleted_changed_and_missing_files_hold_nothing_known() {
    let state = check_state(&[write("a"), FileAction::Delete], &[]);
    assert_eq!(state.existence(), Existence::Absent);
    check_state(&[write("a"), FileAction::Changed], &["…"]);
    assert_eq!(check_state(&[FileAction::Missing], &[]).existence(), Existence::Absent);
    let state = check_state(&[FileAction::Missing, replace("", "new\n", Occurrences::Only)], &["new", ""]);
    assert_eq!((state.line_count(), state.preview().as_deref()), (Some(1), Some("new\n")));
}

#[test]
fn tracks_modified_files_correctly() {
    let mut files = FileTimeline::default();
    let read = FileAction::Read(shown_numbered("     1→let a = 1;\n     2→", ReadExtent::Whole));
    files.apply_operation(1, BlockId(0), &operation("/app/file.ts", read.clone()));
    assert!(!files.was_modified("/app/file.ts"));
    files.apply_operation(2, BlockId(0), &operation("/app/file.ts", replace("1", "2", Occurrences::Only)));
    files.apply_operation(3, BlockId(0), &operation("/app/file.ts", FileAction::Changed));
    files.apply_operation(4, BlockId(0), &operation("/app/file.ts", read));
    assert!(files.was_modified("/app/file.ts"));
    assert!(!files.was_modified("/app/other.ts"));
}

#[test]
fn builds_from_a_session() {
    let mut files = FileTimeline::default();
    files.apply_operation(1, BlockId(0), &operation("/app/new.ts", write("export {};\n")));
    let read = FileAction::Read(shown_numbered("     1→x\n     2→", ReadExtent::Whole));
    files.apply_operation(2, BlockId(0), &operation("/app/existing.ts", read));
    assert!(files.was_modified("/app/new.ts"));
    assert!(!files.was_modified("/app/existing.ts"));
    assert_eq!(files.modified_files().collect::<Vec<_>>(), ["/app/new.ts"]);
    let kinds = |path| files.accesses(path).iter().map(|access: &Access| access.kind).collect::<Vec<_>>();
    assert_eq!(kinds("/app/new.ts"), [AccessKind::Create]);
    assert_eq!(kinds("/app/existing.ts"), [AccessKind::Read]);
    assert_eq!(files.recent_files(3, 2), ["/app/existing.ts", "/app/new.ts"]);
    assert_eq!(files.recent_files(3, 1), ["/app/existing.ts"]);
    assert!(files.is_stale("/app/new.ts", 3, 1));
    assert!(files.is_stale("/app/never.ts", 3, 100));
    assert_eq!(files.last_access("/app/existing.ts"), Some(2));
}

#[test]
fn a_read_goes_stale_line_by_line_and_an_edit_names_the_reads_it_relied_on() {
    let mut files = FileTimeline::default();
    let path = "f";
    files.apply_operation(
        1,
        BlockId(0),
        &operation(path, FileAction::Read(shown_numbered("     1→a\n     2→b\n     3→c", ReadExtent::Part))),
    );
    files.apply_operation(
        2,
        BlockId(0),
        &operation(path, FileAction::Read(shown_numbered("     8→x\n     9→y", ReadExtent::Part))),
    );
    files.apply_operation(3, BlockId(0), &operation(path, replace("a\nb", "a\nnew\nb2", Occurrences::Only)));
    files.apply_operation(4, BlockId(0), &operation(path, replace("y", "z", Occurrences::Only)));
    let fates = |access, step| {
        files.lines_now(path, access, step).into_iter().map(|(_, fate)| fate).collect::<Vec<_>>()
    };
    assert_eq!(fates(0, 2), [LineNow::Current; 3]);
    assert_eq!(fates(0, 3), [LineNow::Current, LineNow::Stale, LineNow::Moved(4)]);
    assert_eq!(files.stale_lines(path, 0, 4), [2]);
    assert_eq!(fates(1, 4), [LineNow::Moved(9), LineNow::Stale]);
    assert_eq!(files.relied_on(path, 2), [0]);
    assert_eq!(files.relied_on(path, 3), [1]);
}

#[test]
fn a_changelog_groups_by_file_and_tells_series_as_such() {
    let change = |path: &'static str, step, intent: Option<&'static str>, said: Option<&'static str>| {
        FileChange { path: path.into(), step, intent: intent.map(Into::into), said: said.map(Into::into) }
    };
    let log = group_by_file([
        change("a.rs", 1, Some("Keep more results"), Some("Now the agent.")),
        change("b.rs", 2, None, Some("Let me fix the parser. It fails on tabs:")),
        change("b.rs", 3, None, None),
        change("a.rs", 4, None, None),
    ]);
    let told: Vec<String> =
        log.iter().flat_map(|file| file.changes.iter().map(|row| format!("{}: {row}", file.path))).collect();
    assert_eq!(
        told,
        [
            "a.rs: 2 changes between steps 1 and 4: Keep more results",
            "b.rs: 2 changes between steps 2 and 3: Let me fix the parser"
        ]
    );
    let said =
        |words: &'static str| group_by_file([change("d.rs", 1, None, Some(words))])[0].changes[0].to_string();
    assert_eq!(said("You're right!\n\nThere are two. Now fix both:\n"), "step 1: There are two");
    assert_eq!(said("Perfect! Now I mend the parser:"), "step 1: Now I mend the parser");
    assert_eq!(said("THOUGHT: Write the file.\n\n```bash\ncat > d.rs\n```"), "step 1: Write the file");
    assert_eq!(said("Done."), "step 1: Done");
    let many = (0..20).map(|number: u32| FileChange {
        path: "c.rs".into(),
        step: number + 10,
        intent: Some(format!("Reason {number}").into()),
        said: None,
    });
    let rows: Vec<String> = group_by_file(many)[0].changes.iter().map(ToString::to_string).collect();
    let all: Vec<String> = (0..20).map(|number| format!("step {}: Reason {number}", number + 10)).collect();
    assert_eq!(rows, all, "none is left out");
    let again = group_by_file([
        change("e.rs", 1, Some("Fix the parser"), None),
        change("e.rs", 2, Some("Add a test"), None),
        change("e.rs", 3, Some("Fix the parser"), None),
        change("e.rs", 4, None, None),
    ]);
    let rows: Vec<String> = again[0].changes.iter().map(ToString::to_string).collect();
    assert_eq!(rows, ["3 changes between steps 1 and 4: Fix the parser", "step 2: Add a test"]);
}
