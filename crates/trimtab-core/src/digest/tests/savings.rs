//! What is saved per tool, in exact tokens, against what seed 001 promises.

use std::fmt::Write;

use super::{TextContext, chosen, tokens};
use crate::facts::Outcome;

/// Realistic output of a tool, with what the document promises for it.
struct Row {
    tool: &'static str,
    command: Option<&'static str>,
    text: String,
    /// At least this share of the tokens goes, in percent.
    promised: u64,
}

#[test]
fn every_tool_saves_at_least_what_the_document_promises() {
    let row = |tool, text, promised| Row { tool, command: None, text, promised };
    let rows = [
        row("list_files", files(500), 95),
        row("tree", drawn_tree(), 90),
        row("get_repo_map", repo_map(36), 95),
        row("git_status", git_status(), 80),
        Row { command: Some("pytest tests/"), ..row("run_shell", test_run(1000), 95) },
        Row { command: Some("./scripts/import --all"), ..row("run_shell", import_run(1000), 95) },
        row("read_file", source(1230), 90),
        // Ten lines at each end of 210 are a tenth already; the outline and the note come on top.
        row("read_file", source(210), 85),
        row("code_structure", structure(60), 70),
        row("git_diff", diff(12), 90),
        row("git_diff", diff(2), 70),
        row("git_log", commits(30), 70),
        row("grep_code", hits(50), 80),
    ];
    let mut table = String::new();
    let mut short_of = Vec::new();
    for Row { tool, command, text, promised } in rows {
        let about =
            TextContext { tool: Some(tool), command, outcome: Outcome::Succeeded, ..TextContext::default() };
        let (name, short) = chosen(&text, about);
        let (before, after) = (tokens(&text), tokens(&short));
        let saved = (before - after) * 100 / before;
        let _ = writeln!(
            table,
            "{tool:15} {name:10} {before:6} -> {after:5} tokens, {saved:3} % (promised {promised} %)"
        );
        if saved < promised {
            short_of.push(format!("{tool}: {saved} %\n{short}"));
        }
    }
    println!("{table}");
    assert!(short_of.is_empty(), "{table}\n{}", short_of.join("\n"));
}

#[test]
fn a_small_file_saves_nothing_because_it_is_kept_whole() {
    let text = source(20);
    assert_eq!(
        chosen(&text, TextContext { tool: Some("read_file"), ..TextContext::default() }),
        ("file", text)
    );
}

/// The document's long conversation: 500 paths, 1,230 lines of source, 50 hits, 200 lines of tests; 15,000 tokens become 1,500.
#[test]
fn the_documents_long_conversation_keeps_a_tenth() {
    let about = |tool, command| TextContext {
        tool: Some(tool),
        command,
        outcome: Outcome::Succeeded,
        ..TextContext::default()
    };
    let parts = [
        (files(500), about("list_files", None)),
        (source(1230), TextContext { path: Some("patchpal/agent.py"), ..about("read_file", None) }),
        (hits(50), about("grep_code", None)),
        (test_run(200), about("run_shell", Some("pytest tests/"))),
    ];
    let before: u64 = parts.iter().map(|(text, _)| tokens(text)).sum();
    let after: u64 = parts.iter().map(|(text, about)| tokens(&chosen(text, *about).1)).sum();
    println!("{before} -> {after} tokens");
    assert!(before > 15_000, "{before}");
    assert!(after * 10 <= before, "{before} -> {after}");
}

pub(super) fn files(count: usize) -> String {
    (0..count)
        .map(|n| {
            format!(
                "patchpal/{}/{}_{n}.py\n",
                ["core", "tools", "cli", "tests"][n % 4],
                ["agent", "context", "shell"][n % 3]
            )
        })
        .collect()
}

fn drawn_tree() -> String {
    let mut text = ".\n".to_owned();
    for directory in 0..45 {
        let _ = writeln!(text, "├── package_{directory}");
        for file in 0..3 {
            let _ =
                writeln!(text, "│   {} module_{directory}_{file}.py", if file < 2 { "├──" } else { "└──" });
        }
    }
    text + "\n45 directories, 135 files\n"
}

fn repo_map(files: usize) -> String {
    let mut text = String::new();
    for file in 0..files {
        let _ = writeln!(text, "src/package_{}/module_{file}.py:", file % 5);
        for item in 0..4 {
            let _ = writeln!(text, "│    def method_{item}(self, first: int, second: str) -> None:");
        }
    }
    text
}

fn git_status() -> String {
    let mut text = "On branch main\nYour branch is up to date with 'origin/main'.\n\nChanges to be committed:\n  (use \"git restore --staged <file>...\" to unstage)\n".to_owned();
    for n in 0..6 {
        let _ = writeln!(text, "\tnew file:   src/package/added_{n}.py");
    }
    text += "\nChanges not staged for commit:\n  (use \"git add <file>...\" to update what will be committed)\n  (use \"git restore <file>...\" to discard changes in working directory)\n";
    for n in 0..24 {
        let _ = writeln!(text, "\tmodified:   src/package/changed_{n}.py");
    }
    text += "\nUntracked files:\n  (use \"git add <file>...\" to include in what will be committed)\n";
    for n in 0..5 {
        let _ = writeln!(text, "\tnotes/draft_{n}.md");
    }
    text
}

pub(super) fn test_run(lines: usize) -> String {
    let mut text = "============================= test session starts ==============================\nplatform linux -- Python 3.12.3, pytest-8.2.0\nrootdir: /home/dev/project\ncollected 47 items\n\n".to_owned();
    for n in 0..lines.saturating_sub(7) {
        let _ = writeln!(
            text,
            "tests/test_module_{}.py::TestThing::test_case_{n} PASSED [{:3}%]",
            n % 9,
            n * 100 / lines
        );
    }
    text + "\n======================== 45 passed, 2 skipped in 3.21s =========================\n"
}

fn import_run(lines: usize) -> String {
    let row = |n: usize| format!("{n:05} imported customer record {:x} in {} ms\n", n * 7919, n % 37);
    (0..lines).map(row).collect::<String>() + "done: 1000 records\n"
}

pub(super) fn source(lines: usize) -> String {
    let mut text = "\"\"\"An agent that runs tools.\"\"\"\nimport argparse\nimport json\n\n".to_owned();
    let mut written = 4;
    for n in 0.. {
        let body = [
            format!("def handle_request_{n}(state, name, arguments):"),
            format!("    \"\"\"Handles request {n} and returns what the tool said.\"\"\""),
            "    tool_name = arguments.get(\"name\") or name".to_owned(),
            format!("    result = state.run(tool_name, timeout={n})"),
            "    if result is None:".to_owned(),
            "        raise ValueError(f\"Unknown tool {tool_name}\")".to_owned(),
            "    for index, item in enumerate(result.items):".to_owned(),
            "        state.log.append((index, item.value, item.kind))".to_owned(),
            "    return json.dumps(result.to_dict(), indent=2)".to_owned(),
            String::new(),
        ];
        for line in body {
            if written == lines {
                return text;
            }
            text = text + &line + "\n";
            written += 1;
        }
    }
    text
}

fn structure(items: usize) -> String {
    (0..items).map(|n| format!("L{:4}: def function_{n}(first, second=None) -> Result\n", n * 12)).collect()
}

fn diff(files: usize) -> String {
    let mut text = String::new();
    for file in 0..files {
        let _ = write!(
            text,
            "diff --git a/src/m{file}.py b/src/m{file}.py\nindex 83db48f..bf269f4 100644\n--- a/src/m{file}.py\n+++ b/src/m{file}.py\n@@ -10,20 +10,20 @@ def run():\n"
        );
        for n in 0..18 {
            let mark = [" ", "-", "+"][n % 3];
            let _ = writeln!(text, "{mark}    value_{n} = compute(value_{n}, state={file})");
        }
    }
    text
}

fn commits(count: usize) -> String {
    (0..count)
        .map(|n| {
            let hash = format!("{:040x}", n * 7_654_321 + 99);
            format!("commit {hash}\nAuthor: A Person <person@example.org>\nDate:   Mon Jan 5 10:{:02}:00 2026 +0000\n\n    topic: change number {n} and say why\n\n", n % 60)
        })
        .collect()
}

pub(super) fn hits(count: usize) -> String {
    (0..count)
        .map(|n| {
            format!(
                "patchpal/{}.py:{}:        tool_name = tool_call.function.name  # call {n}\n",
                ["agent", "context", "cli"][n % 3],
                100 + n * 13
            )
        })
        .collect()
}
