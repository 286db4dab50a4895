//! Pruning by kind of tool: what each tool's old output becomes, what is protected, and the plain way.

use serde_json::json;

use crate::talk::{ROOM, Talk, output, source};

/// Everything old may be shortened.
const ALL: [(&str, f64); 2] = [("prune_protect", 0.0), ("prune_minimum", 0.0)];

fn pruned(talk: Talk) -> String {
    talk.says("assistant", "Done.").fit("per-tool", &ALL, ROOM).shown(1)
}

/// A listing becomes its number of files and a few of them.
#[test]
fn a_listing_becomes_a_count_and_samples() {
    let names: String = (0..127).map(|number| format!("patchpal/module_{number}.py\n")).collect();
    let note = pruned(Talk::new().calls("list_files", json!({}), &names));
    assert!(note.contains("127 files") && note.contains("e.g. patchpal/module_0.py, "), "{note}");
    assert_eq!(note.lines().count(), 1);
}

/// A tree becomes its directories (its root is one) and lines; a map its files and size.
#[test]
fn trees_and_maps_become_counts() {
    let tree: String =
        (0..45).map(|number| format!("├── package_{number}\n│   ├── a.py\n│   └── b.py\n")).collect();
    let note = pruned(Talk::new().calls("tree", json!({}), &(".\n".to_owned() + &tree)));
    assert!(note.contains("136 lines") && note.contains("46 directories"), "{note}");
    let map: String =
        (0..36).map(|number| format!("src/m{number}.py:\n│ def one(self):\n│ def two(self):\n")).collect();
    let note = pruned(Talk::new().calls("get_repo_map", json!({}), &map));
    assert!(note.contains("map of 36 files") && note.contains(" chars"), "{note}");
}

/// Counts of changes are those of version control: what is staged is not modified too, and untracked files are counted.
#[test]
fn a_status_becomes_its_counts() {
    let status = "On branch main\n\nChanges to be committed:\n  (use \"git restore --staged <file>...\" to unstage)\n\tnew file:   a.py\n\tmodified:   b.py\n\nChanges not staged for commit:\n  (use \"git add <file>...\" to update what will be committed)\n  (use \"git restore <file>...\" to discard changes in working directory)\n\tmodified:   src/some/longer/path/c.py\n\tmodified:   src/some/longer/path/d.py\n\nUntracked files:\n  (use \"git add <file>...\" to include in what will be committed)\n\tnotes/draft_of_something_new.md\n\nno changes added to commit (use \"git add\" and/or \"git commit -a\")\n";
    let note = pruned(Talk::new().calls("git_status", json!({}), status));
    assert!(note.contains("2 staged, 2 modified, 1 untracked"), "{note}");
}

/// A command becomes itself, how it ended and its numbers. "45 passed, 0 failed" is a success: the program that the
/// document describes calls everything an error that contains the word.
#[test]
fn a_command_becomes_how_it_ended_and_its_numbers() {
    let log: String = (0..300).map(|number| format!("tests/test_a.py::test_{number} PASSED\n")).collect();
    let note = pruned(Talk::new().calls(
        "run_shell",
        json!({"command": "pytest tests/"}),
        &(log + "====== 45 passed, 0 failed, 2 skipped in 1.20s ======\n"),
    ));
    assert!(note.contains("`pytest tests/`") && note.contains("45 passed, 0 failed, 2 skipped"), "{note}");
    assert!(note.contains("succeeded") && !note.contains("; failed"), "{note}");
}

/// A file of up to 20 lines stays; of a longer one the first and last ten lines, and how many are missing.
#[test]
fn a_file_keeps_its_first_and_last_ten_lines() {
    let short = source(1, 20);
    assert_eq!(pruned(Talk::new().reads("a.py", &short)), short);
    let long = source(1, 200);
    let note = pruned(Talk::new().reads("agent.py", &long));
    let lines: Vec<&str> = long.lines().collect();
    assert!(
        note.starts_with(
            &(lines[..10].join("\n") + "\n[… lines 11-190 of 200 omitted …]\n" + &lines[190..].join("\n"))
        ),
        "{note}"
    );
}

/// A search keeps its number of matches and the first three.
#[test]
fn a_search_keeps_its_first_three_matches() {
    let hits: String = (0..15)
        .map(|number| {
            format!("patchpal/agent.py:{}: tool_name = call.function.name  # {number}\n", 932 + number)
        })
        .collect();
    let note = pruned(Talk::new().calls("grep_code", json!({"pattern": "tool_name"}), &hits));
    assert_eq!(note.lines().filter(|line| line.starts_with("patchpal/agent.py:")).count(), 3, "{note}");
    assert!(note.contains("15 matches") && note.contains("+12 more"), "{note}");
}

/// Diffs and logs keep their beginning and what they hold.
#[test]
fn a_diff_keeps_its_beginning_and_counts() {
    let diff: String = (0..9).map(|number| format!("diff --git a/m{number}.py b/m{number}.py\n--- a/m{number}.py\n+++ b/m{number}.py\n@@ -1,3 +1,3 @@\n-old line\n+new line\n context of the change\n")).collect();
    let note = pruned(Talk::new().calls("git_diff", json!({}), &diff));
    assert!(
        note.starts_with("diff --git a/m0.py b/m0.py") && note.contains("9 files changed, +9 -9"),
        "{note}"
    );
}

/// A shortened text is left alone: the program that the document describes shortens its own notes again.
#[test]
fn pruning_twice_changes_nothing() {
    let once = pruned(Talk::new().reads("agent.py", &source(1, 200)));
    assert_eq!(pruned(Talk::new().reads("agent.py", &once)), once);
}

/// Small outputs never grow.
#[test]
fn a_small_output_stays_as_it_is() {
    assert_eq!(pruned(Talk::new().calls("list_files", json!({}), "a\nb\n")), "a\nb\n");
}

fn long(results: usize) -> Talk {
    (0..results).fold(Talk::new(), |talk, number| talk.reads(&format!("m{number}.py"), &source(number, 500)))
}

/// The latest 40,000 tokens of results are never pruned; nothing is unless 20,000 tokens could be.
#[test]
fn the_latest_results_are_protected_and_little_is_not_worth_it() {
    let one = long(1).tokens() - Talk::new().tokens();
    let protected = usize::try_from(40_000_u64.div_ceil(one)).expect("few");
    let worthwhile = usize::try_from(20_000_u64.div_ceil(one)).expect("few");
    let little = long(protected + worthwhile - 2);
    assert!(little.fit("per-tool", &[], ROOM).fitted.plan.keeps_all());
    let enough = long(protected + worthwhile + 1);
    let whole = enough.whole("per-tool", &[], ROOM);
    assert_eq!(whole.len(), protected, "{whole:?}");
    assert_eq!(whole.last(), Some(&(protected + worthwhile + 1)));
    // More aggressive settings.
    let fewer = enough.whole("per-tool", &[("prune_protect", 20_000.0)], ROOM);
    assert!(fewer.len() < whole.len());
    assert!(!little.fit("per-tool", &[("prune_minimum", 1_000.0)], ROOM).fitted.plan.keeps_all());
}

/// A short session of three to five calls loses nothing.
#[test]
fn a_short_session_is_left_alone() {
    assert!(long(4).fit("per-tool", &[], ROOM).fitted.plan.keeps_all());
}

/// Protection goes by tokens, not by the user's turns: a run with one prompt is pruned too.
#[test]
fn a_run_with_one_prompt_is_pruned_too() {
    let before = long(30);
    let after = before.fit("per-tool", &[], ROOM).fitted.plan.after().0;
    assert!(after * 10 < before.tokens() * 6, "{after} of {}", before.tokens());
}

/// Without intelligent pruning a note says the size and nothing else.
#[test]
fn the_plain_way_says_the_size_alone() {
    let text = source(1, 200);
    let talk = Talk::new().reads("agent.py", &text).says("assistant", "Done.");
    let note = talk.fit("per-tool", &[ALL[0], ALL[1], ("intelligent_pruning", 0.0)], ROOM).shown(1);
    let size = format!("{},{:03}", text.len() / 1000, text.len() % 1000);
    assert!(note.starts_with(&format!("[Tool output pruned - {size} chars - trimtab recall ")), "{note}");
    assert_eq!(note.lines().count(), 1);
}

/// Compaction is wanted above three quarters; the setting moves it.
#[test]
fn a_summary_is_wanted_above_three_quarters() {
    let talk = Talk::new().runs("make", &output(200));
    let tokens = talk.tokens();
    let wanted = |budget, set: &[(&str, f64)]| talk.fit("per-tool", set, budget).fitted.plan.fold_wanted();
    assert!(!wanted(tokens * 100 / 74, &[]) && wanted(tokens * 100 / 76, &[]));
    assert!(wanted(tokens * 100 / 65, &[("compact_threshold", 0.60)]));
}
