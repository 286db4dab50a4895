//! Which run makes an older one redundant: the same command in the same place, shown at least as whole.

use super::*;

fn bash(id: &str, command: &str, answer: &str) -> [String; 2] {
    used(id, "bash", &serde_json::json!({ "command": command }).to_string(), answer)
}

fn is_superseded(older: (&str, &str), newer: (&str, &str)) -> bool {
    let mut messages = vec![text("user", "Go")];
    messages.extend(bash("1", older.0, older.1));
    messages.extend(bash("2", newer.0, newer.1));
    told(&messages).rows()[2].superseded_by == Some((BlockId(4), SupersedeRule::RunAgain))
}

#[test]
fn the_same_test_build_or_status_command_supersedes_its_older_run() {
    let table: &[(&str, &str, bool)] = &[
        ("cargo test", "cargo test", true),
        ("cargo test", "cargo test -p core", false),
        ("cargo test -p core", "cargo test", false),
        ("npm run build", "npm run build", true),
        ("pytest -q tests/a.py", "pytest -q tests/a.py", true),
        ("pytest -q tests/a.py", "pytest -q tests/b.py", false),
        ("tsc --noEmit", "npx tsc --noEmit", true),
        ("git status", "git status", true),
        ("git status", "git status --short", false),
        ("git diff", "git --no-pager diff", true),
        ("git diff src/a.rs", "git diff src/a.rs", true),
        ("git diff src/a.rs", "git diff src/b.rs", false),
        ("git diff", "git diff --stat", false),
        ("git commit -m a", "git commit -m a", false),
        ("git log --oneline -5", "git log --oneline -5", false),
        ("git show HEAD", "git show HEAD", false),
        ("cargo test", "RUST_BACKTRACE=1 cargo test 2>&1", true),
        ("cargo test", "timeout 60 cargo test", true),
        ("cd core && cargo test", "cd core && cargo test", true),
        ("cd core && cargo test", "cd other && cargo test", false),
        ("cargo test", "cd core && cargo test", false),
        ("cargo test", "cd . && cargo test", true),
        ("cargo test", "cargo test 2>&1 | tail -50", false),
        ("cargo test 2>&1 | tail -50", "cargo test", true),
        ("cargo test 2>&1 | tail -50", "cargo test 2>&1 | tail -50", true),
        ("cargo test 2>&1 | tail -50", "cargo test | tail -n 20", false),
        ("cargo test 2>&1 | tail -20", "cargo test | tail -n 50", true),
        ("cargo test | head -50", "cargo test | tail -50", false),
        ("cargo test | grep FAILED", "cargo test | grep FAILED", true),
        ("cargo test | grep FAILED", "cargo test | grep ok", false),
        ("cargo test", "cargo test | grep FAILED", false),
        ("cargo test | tail -50", "cargo test | tail -50 | grep x", false),
        ("cargo test", "cargo test | cat", true),
        ("git diff", "git diff | head -100", false),
        ("git diff | head -100", "git diff", true),
        ("cargo fmt && cargo test", "cargo fmt && cargo test", true),
        ("cargo fmt && cargo test", "cargo test", false),
        ("cargo test", "cargo fmt && cargo test", false),
        ("go vet ./... && go test ./... | tail -5", "go vet ./... && go test ./...", true),
        ("go vet ./... && go test ./...", "go vet ./... && go test ./... | tail -5", false),
        ("echo --- && cargo test", "cargo test", true),
        ("cargo test && cat a.rs", "cargo test", false),
        ("python app.py", "python app.py", false),
    ];
    let wrong: Vec<String> = table
        .iter()
        .filter(|(older, newer, expected)| is_superseded((older, "ok"), (newer, "ok")) != *expected)
        .map(|(older, newer, expected)| format!("`{newer}` after `{older}`: expected {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_run_that_failed_is_a_newer_run_and_one_that_could_not_run_is_none() {
    let table: &[(&str, &str, bool)] = &[
        ("cargo test", "test a ... FAILED\ntest result: FAILED. 1 passed; 1 failed\nexit code: 101", true),
        ("pytest -q", "1 failed, 3 passed in 0.10s", true),
        ("cargo build", "error[E0308]: mismatched types\nerror: could not compile `a` (lib)", true),
        ("npm run build", "exit code: 2", true),
        ("pytest -q", "bash: pytest: command not found\nexit code: 127", false),
        ("pytest -q | tail -5", "bash: line 1: pytest: command not found", false),
        ("python -m pytest", "/usr/bin/python: No module named pytest\nexit code: 1", false),
        ("npm run build", "npm error Missing script: \"build\"\nexit code: 1", false),
        ("cargo test", "Compiling a v0.1.0\nCommand timed out after 120 seconds", false),
        ("cargo test", "exit code: 124", false),
        ("cargo test", "Error: permission denied by the user", false),
        (
            "cargo test",
            "Command running in background with ID: b1. Output is being written to: /tmp/b1.output",
            false,
        ),
        ("git status", "fatal: not a git repository\nexit code: 128", false),
    ];
    let wrong: Vec<String> = table
        .iter()
        .filter(|(command, answer, expected)| is_superseded((command, "ok"), (command, answer)) != *expected)
        .map(|(command, answer, expected)| format!("`{command}` that gave {answer:?}: expected {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn runs_of_one_place_are_one_once_the_root_is_known() {
    let mut messages = vec![text("user", "<cwd>/srv/app</cwd>"), text("user", "Go")];
    messages.extend(bash("1", "cd /srv/app && cargo test", "ok")); // 3
    messages.extend(bash("2", "cargo test", "ok")); // 5
    messages.extend(bash("3", "cd /srv/app/core && cargo test", "ok")); // 7
    messages.extend(bash("4", "cd core && cargo test", "ok")); // 9
    check_superseded(&messages, &["3 run again 5", "7 run again 9"]);
}

#[test]
fn runs_and_listings_that_are_taken_back_leave_no_trace() {
    let mut messages = vec![text("user", "Go")];
    for step in 0..12 {
        let id = step.to_string();
        messages.extend(match step % 4 {
            0 => bash(&id, "cargo fmt && cargo test", "ok"),
            1 => bash(&id, "cd /srv/app && git status", "clean"),
            2 => bash(&id, "ls -la src", "a"),
            _ => used(&id, "glob", r#"{"pattern":"*.rs"}"#, "a.rs"),
        });
    }
    for kept in 1..messages.len() {
        let whole = history(&messages);
        let mut so_far = facts(&whole);
        let mut other = messages[..kept].to_vec();
        other.push(text("user", "Something else"));
        other.extend_from_slice(&messages[kept..]);
        let branch = parse_after(&whole, history(&other).into_bytes()).expect("a request");
        so_far.extend(&branch);
        assert_eq!(so_far.rows(), facts(&branch).rows(), "{kept} messages kept");
    }
}
