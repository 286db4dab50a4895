//! Whole conversations, and the rows that they give.

mod listings;
mod runs;
mod windows_paths;
mod written;

use super::*;
use crate::{
    json::narrow,
    wire::{parse, parse_after},
};

/// How many latest steps count as recent in these tests.
const RECENT: u32 = 2;

fn text(role: &str, text: &str) -> String {
    format!(r#"{{"role":"{role}","content":{}}}"#, serde_json::to_string(text).expect("text"))
}

fn call(id: &str, name: &str, arguments: &str) -> String {
    let arguments = serde_json::to_string(arguments).expect("text");
    format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":{arguments}}}}}]}}"#
    )
}

fn result(id: &str, text: &str) -> String {
    format!(
        r#"{{"role":"tool","tool_call_id":"{id}","content":{}}}"#,
        serde_json::to_string(text).expect("text")
    )
}

/// A call and its result.
fn used(id: &str, name: &str, arguments: &str, answer: &str) -> [String; 2] {
    [call(id, name, arguments), result(id, answer)]
}

fn history(messages: &[String]) -> History {
    let request = format!(r#"{{"model":"gpt-5","messages":[{}]}}"#, messages.join(","));
    parse(request.into_bytes()).expect("a request")
}

fn told(messages: &[String]) -> Facts {
    facts(&history(messages))
}

/// Pictures every row: what it acts as, what it does, how it ended, its priority.
fn check(messages: &[String], expected: &[&str]) {
    let facts = told(messages);
    let picture = |(index, row): (usize, &Fact)| {
        let priority = facts.priority(BlockId(narrow(index)), RECENT).expect("a row");
        let tool = row.tool().map_or_else(String::new, |kind| format!(" {} {}", kind.name(), row.subject()));
        let voice = row.voice.map_or_else(String::new, |voice| format!(" {}", voice.name()));
        let outcome = if row.outcome == Outcome::Unknown { "" } else { " " };
        let outcome =
            format!("{outcome}{}", if row.outcome == Outcome::Unknown { "" } else { row.outcome.name() });
        format!("{}{voice}{tool}{outcome} {}", row.acts_as.name(), priority.number())
    };
    let rows: Vec<String> = facts.rows().iter().enumerate().map(picture).collect();
    assert_eq!(rows, expected);
}

/// Pictures what supersedes what: older block, rule, newer block.
fn check_superseded(messages: &[String], expected: &[&str]) {
    let facts = told(messages);
    let pairs = facts.rows().iter().enumerate().filter_map(|(index, row)| {
        let (newer, rule) = row.superseded_by?;
        Some(format!("{index} {} {}", rule.name(), newer.0))
    });
    assert_eq!(pairs.collect::<Vec<_>>(), expected);
}

fn path(path: &str) -> String {
    format!(r#"{{"path":"{path}"}}"#)
}

#[test]
fn the_classes_of_a_conversation_are_those_of_the_classifier() {
    let mut messages = vec![
        text("system", "You are a helpful assistant"),
        text("user", "# AGENTS.md instructions for /app\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>"),
        text("user", "Old question"),
        text("assistant", "Old answer"),
    ];
    messages.extend(used("1", "read_file", &path("/app/read.ts"), "const a = 1"));
    messages.extend(used("2", "read_file", &path("/app/edited.ts"), "const b = 1"));
    messages.extend(used("3", "grep", r#"{"pattern":"b"}"#, "edited.ts:1"));
    messages.push(text("user", "Rename b"));
    messages.extend(used(
        "4",
        "edit_file",
        r#"{"path":"/app/edited.ts","old_str":"b","new_str":"c"}"#,
        "File updated",
    ));
    messages.extend(used("5", "read_file", &path("/app/other.ts"), "const d = 1"));
    messages.extend(used("6", "grep", r#"{"pattern":"c"}"#, "edited.ts:1"));
    messages.push(text("assistant", "Done"));
    check(
        &messages,
        &[
            "text 100",
            "text instructions 90",
            "text person 40",
            "text 40",
            "call read /app/read.ts 30",
            "result read /app/read.ts 30",
            "call read /app/edited.ts 70",
            "result read /app/edited.ts 70",
            "call search 'b' 30",
            "result search 'b' 30",
            "text person 80",
            "call edit /app/edited.ts:part 70",
            "result edit /app/edited.ts:part 70",
            "call read /app/other.ts 50",
            "result read /app/other.ts 50",
            "call search 'c' 60",
            "result search 'c' 60",
            "text 60",
        ],
    );
}

#[test]
fn a_summary_stands_above_what_it_covers() {
    let messages = [
        text("user", "First wish"),
        text("assistant", "Yes"),
        text(
            "user",
            "This session is being continued from a previous conversation that ran out of context. We did much.",
        ),
        text("assistant", "Going on"),
    ];
    check(&messages, &["text person 80", "text 20", "text summary 75", "text 60"]);
}

#[test]
fn modified_files_are_tracked_from_calls_and_from_results() {
    // The document's example has results without calls; here each result answers one.
    let mut messages = vec![text("user", "Go")];
    messages.extend(used("1", "create_file", "{}", r#"{"path": "/app/new.ts"}"#));
    messages.extend(used("2", "read_file", "{}", r#"{"path": "/app/existing.ts"}"#));
    messages.extend(used("3", "read_file", "{}", "File: /app/shown.ts\nconst a = 1"));
    messages.extend(used("4", "edit_file", &path("/app/failed.ts"), "Error: String to replace not found"));
    messages.extend(used("5", "read_file", &path("/app/file.ts"), "a"));
    messages.extend(used("6", "edit_file", &path("/app/file.ts"), "ok"));
    let facts = told(&messages);
    assert_eq!(facts.modified_files(), ["/app/file.ts", "/app/new.ts"]);
    assert!(facts.is_modified("/app/file.ts") && !facts.is_modified("/app/existing.ts"));
    assert_eq!(facts.rows()[4].subject().to_string(), "/app/existing.ts:part");
    assert_eq!(facts.rows()[6].subject().to_string(), "/app/shown.ts:part");
}

#[test]
fn a_whole_read_or_write_supersedes_what_showed_the_file_before() {
    let mut messages = vec![text("user", "Go")];
    messages.extend(used("1", "read_file", &path("a.py"), "1")); // 1, 2
    messages.extend(used("2", "write_file", r#"{"path":"./a.py","content":"2"}"#, "ok")); // 3, 4
    messages.extend(used("3", "read_file", &path("a.py"), "2")); // 5, 6
    messages.extend(used("4", "read_file", &path("b.py"), "3")); // 7, 8
    check_superseded(&messages, &["2 written again 4", "3 read again 6"]);
}

#[test]
fn failed_calls_edits_and_appends_supersede_nothing() {
    let mut messages = vec![text("user", "Go")];
    messages.extend(used("1", "read_file", &path("a.py"), "1"));
    messages.extend(used("2", "read_file", &path("a.py"), "Error: no such file"));
    messages.extend(used("3", "edit_file", r#"{"path":"a.py","old_str":"1","new_str":"2"}"#, "ok"));
    messages.extend(used("4", "bash", r#"{"command":"echo 3 >> a.py"}"#, "<returncode>0</returncode>"));
    messages.extend(used("5", "write_file", r#"{"path":"a.py","content":"x"}"#, "Error: permission denied"));
    check_superseded(&messages, &[]);
}

#[test]
fn lines_supersede_only_the_lines_they_hold() {
    let read = |id: &str, first: u32, last: u32| {
        used(id, "read_file", &format!(r#"{{"path":"a.py","start_line":{first},"end_line":{last}}}"#), id)
    };
    let mut messages = vec![text("user", "Go")];
    messages.extend(read("1", 10, 20)); // 2
    messages.extend(read("2", 15, 40)); // 4
    messages.extend(read("3", 1, 30)); // 6
    messages.extend(used("4", "bash", r#"{"command":"sed -n '15,60p' a.py"}"#, "x")); // 8
    messages.extend(used("5", "bash", r#"{"command":"cat a.py"}"#, "y")); // 10
    check_superseded(
        &messages,
        &["2 lines read again 6", "4 lines read again 8", "6 read again 10", "8 read again 10"],
    );
}

#[test]
fn a_listing_supersedes_one_that_it_includes_and_a_run_the_same_run() {
    let mut messages = vec![text("user", "Go")];
    messages.extend(used("1", "bash", r#"{"command":"ls src"}"#, "a")); // 2
    messages.extend(used("2", "bash", r#"{"command":"find src"}"#, "src/a\nsrc/b")); // 4
    messages.extend(used("3", "bash", r#"{"command":"ls src"}"#, "a b")); // 6
    messages.extend(used("4", "bash", r#"{"command":"pytest -q | tail -3"}"#, "1 failed in 0.1s")); // 8
    messages.extend(used("5", "bash", r#"{"command":"pytest tests/b.py"}"#, "1 passed in 0.1s")); // 10
    messages.extend(used("6", "bash", r#"{"command":"cd . && pytest -q"}"#, "1 failed, 2 passed in 0.1s")); // 12
    check_superseded(&messages, &["2 listed again 4", "8 run again 12"]);
}

#[test]
fn a_result_that_shows_two_files_is_not_superseded_by_one_of_them() {
    let mut messages = vec![text("user", "Go")];
    messages.extend(used("1", "bash", r#"{"command":"cat a.py b.py"}"#, "1"));
    messages.extend(used("2", "read_file", &path("a.py"), "2"));
    check_superseded(&messages, &[]);
}

#[test]
fn absolute_and_relative_spellings_are_one_file_once_the_root_is_known() {
    let mut messages = vec![
        text("user", "<environment_context>\n  <cwd>/srv/app</cwd>\n</environment_context>"),
        text("user", "Go"),
    ];
    messages.extend(used("1", "read_file", &path("/srv/app/src/a.py"), "1")); // 3
    messages.extend(used("2", "read_file", &path("src/a.py"), "1")); // 5
    messages.extend(used("3", "bash", r#"{"command":"cd src && cat ../src/a.py"}"#, "1")); // 7
    check_superseded(&messages, &["3 read again 5", "5 read again 7"]);

    // Where nothing names the root, two spellings of one path show it.
    let mut messages = vec![text("user", "Go")];
    messages.extend(used("1", "read_file", &path("/srv/app/src/a.py"), "1"));
    messages.extend(used("2", "read_file", &path("src/a.py"), "1"));
    messages.extend(used("3", "read_file", &path("/srv/app/src/a.py"), "1"));
    assert_eq!(told(&messages).root(), Some("/srv/app"));
    check_superseded(&messages, &["2 read again 4", "4 read again 6"]);
}

#[test]
fn actions_written_in_text_are_calls_and_their_answers_results() {
    let messages = [
        text("system", "You use a shell."),
        text("user", "Fix the bug. You must not touch tests."),
        text("assistant", "THOUGHT: look\n\n```bash\ncat a.py\n```"),
        text("user", "<returncode>0</returncode>\n<output>\nprint(1)\n</output>"),
        text("assistant", "THOUGHT: test\n\n```bash\npytest -q\n```"),
        text("user", "<returncode>1</returncode>\n<output>\n1 failed in 0.1s\n</output>"),
        text("assistant", "THOUGHT: done"),
    ];
    check(
        &messages,
        &[
            "text 100",
            "text person 80",
            "call read a.py succeeded 50",
            "result read a.py succeeded 50",
            "call test $ pytest -q failed 60",
            "result test $ pytest -q failed 60",
            "text 60",
        ],
    );
    let facts = told(&messages);
    assert_eq!(facts.rows()[3].partner, Some(BlockId(2)));
    assert_eq!(facts.rows().last().map(|row| row.turn), Some(1));
}

#[test]
fn an_editor_that_names_its_file_in_the_answer_is_understood() {
    let messages = [
        text("user", "Fix it"),
        text("assistant", "Open\n```\nopen src/a.py\n```"),
        text(
            "user",
            "[File: /repo/src/a.py (2 lines total)]\n1:x\n2:y\n\n(Open file: /repo/src/a.py)\n(Current directory: /repo)\nbash-$",
        ),
        text("assistant", "Change\n```\nedit 1:1\nz\nend_of_edit\n```"),
        text(
            "user",
            "[File: /repo/src/a.py (2 lines total)]\n1:z\n2:y\nFile updated.\n(Open file: /repo/src/a.py)\n(Current directory: /repo)\nbash-$",
        ),
    ];
    let facts = told(&messages);
    assert_eq!(facts.rows()[4].tool(), Some(ToolKind::Edit));
    assert_eq!(facts.rows()[4].subject().to_string(), "/repo/src/a.py:part");
    assert_eq!((facts.root(), facts.modified_files()), (Some("/repo"), vec!["src/a.py"]));
}

#[test]
fn the_same_content_points_to_its_first_copy() {
    let mut messages = vec![text("user", "Go")];
    messages.extend(used("1", "read_file", &path("a.py"), "same"));
    messages.extend(used("2", "read_file", &path("b.py"), "same"));
    messages.extend(used("3", "read_file", &path("a.py"), "same"));
    let facts = told(&messages);
    assert_eq!(facts.rows()[4].identical_to, Some(BlockId(2)));
    assert_eq!(facts.rows()[5].identical_to, Some(BlockId(1)));
    assert_eq!(facts.rows()[6].identical_to, Some(BlockId(2)));
}

/// Some of everything, for comparing rows made at once and rows made turn by turn.
fn long_conversation() -> Vec<String> {
    let mut messages = vec![text("system", "Be brief."), text("user", "Go on. Never stop.")];
    for step in 0..24 {
        let id = format!("c{step}");
        let file = format!("/srv/app/src/part{}.rs", step % 3);
        messages.extend(match step % 6 {
            0 => used(&id, "read_file", &path(&file), &format!("text {}", step % 4)),
            1 => used(
                &id,
                "Bash",
                r#"{"command":"cd /srv/app && cargo test | tail -3"}"#,
                "test result: ok. 1 passed; 0 failed",
            ),
            2 => used(&id, "edit_file", &path(&file), "ok"),
            3 => used(&id, "read_file", &path(&file.replace("/srv/app/", "")), "text"),
            4 => [
                text("assistant", "Look\n```bash\nls src\n```"),
                text("user", "<returncode>0</returncode>\n<output>\na\n</output>"),
            ],
            _ => [text("assistant", "Well?"), text("user", &format!("Go on {step}"))],
        });
    }
    messages
}

#[test]
fn rows_told_turn_by_turn_are_those_told_at_once() {
    let messages = long_conversation();
    let mut before = history(&messages[..2]);
    let mut facts_so_far = facts(&before);
    for length in 3..=messages.len() {
        let request = history(&messages[..length]).into_bytes();
        let after = parse_after(&before, request).expect("a request");
        facts_so_far.extend(&after);
        let at_once = facts(&after);
        assert_eq!(facts_so_far.rows(), at_once.rows(), "{length} messages");
        assert_eq!(facts_so_far.modified_files(), at_once.modified_files());
        assert_eq!(facts_so_far.root(), at_once.root());
        before = after;
    }
}

#[test]
fn rows_that_are_taken_back_leave_no_trace() {
    let messages = long_conversation();
    for kept in [2, 5, 9, 14, 20, 27, 33, 41, messages.len() - 1] {
        let whole = history(&messages);
        let mut facts_so_far = facts(&whole);
        let mut other: Vec<String> = messages[..kept].to_vec();
        other.push(text("user", "Something else"));
        other.extend(used("z", "read_file", &path("/srv/app/src/part1.rs"), "text"));
        // What was taken back may come again, an observation in a text too.
        other.extend_from_slice(&messages[kept.max(10)..]);
        let branch = parse_after(&whole, history(&other).into_bytes()).expect("a request");
        facts_so_far.extend(&branch);
        let at_once = facts(&branch);
        assert_eq!(facts_so_far.rows(), at_once.rows(), "{kept} messages kept");
        assert_eq!(facts_so_far.modified_files(), at_once.modified_files());
    }
}

#[test]
fn an_observation_that_became_a_note_is_still_a_result() {
    let note = "[shell `ls`, step 1: 300 lines, hidden: too old; trimtab recall 0123456789ab]";
    let facts = told(&[
        text("user", "Fix it"),
        text("assistant", "THOUGHT: look\n\n```bash\nls\n```"),
        text("user", note),
        text("assistant", "What does this mean?"),
        text("user", note),
    ]);
    let acts_as = |block| facts.row(BlockId(block)).map(|row| row.acts_as);
    assert_eq!(acts_as(2), Some(BlockKind::Result));
    // After an answer that does nothing, a note is what the user quotes.
    assert_eq!(acts_as(4), Some(BlockKind::Text));
}
