//! Which listing makes an older one of the same place redundant: one that shows all that it showed.

use super::*;

/// One listing: a shell command, or a tool with its arguments.
fn listing(id: &str, call: &str) -> [String; 2] {
    match call.split_once(" {") {
        Some((name, arguments)) => used(id, name, &format!("{{{arguments}"), "a.rs"),
        None => used(id, "bash", &serde_json::json!({ "command": call }).to_string(), "a.rs"),
    }
}

fn supersedes(older: &str, newer: &str) -> bool {
    let mut messages = vec![text("user", "Go")];
    messages.extend(listing("1", older));
    messages.extend(listing("2", newer));
    told(&messages).rows()[2].superseded_by == Some((BlockId(4), SupersedeRule::ListedAgain))
}

fn check_pairs(table: &[(&str, &str, bool)]) {
    let wrong: Vec<String> = table
        .iter()
        .filter(|(older, newer, expected)| supersedes(older, newer) != *expected)
        .map(|(older, newer, expected)| format!("`{newer}` after `{older}`: expected {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_listing_by_a_shell_supersedes_one_that_shows_less() {
    check_pairs(&[
        ("ls", "ls", true),
        ("ls src", "ls ./src/", true),
        ("ls src", "ls tests", false),
        ("ls", "ls -la", true),
        ("ls -la", "ls", false),
        ("ls -a", "ls", false),
        ("ls -l", "ls", false),
        ("ls -l", "ls -a", false),
        ("ls -la", "ls -al", true),
        ("ls -lt", "ls -lS", true),
        ("ls src", "ls -R src", true),
        ("ls -R src", "ls src", false),
        ("ls -a src", "ls -R src", false),
        ("ls src", "find src", true),
        ("ls -a src", "find src", true),
        ("ls -la src", "find src", false),
        ("find src", "ls src", false),
        ("find src -name '*.rs'", "find src", true),
        ("find src", "find src -name '*.rs'", false),
        ("find src -name '*.rs'", "find src -name '*.rs'", true),
        ("find src -name '*.rs'", "find src -name '*.md'", false),
        ("find src -type f", "find src", true),
        ("find src", "find src -type f", false),
        ("find src -maxdepth 1", "find src -maxdepth 2", true),
        ("find src -maxdepth 2", "find src -maxdepth 1", false),
        ("find src tests", "find src", false),
        ("tree src", "tree -a src", true),
        ("tree -a src", "tree src", false),
        ("tree src", "tree -I target src", false),
        ("tree -I target src", "tree src", true),
        ("tree -L 1 src", "tree -L 2 src", true),
        ("tree -L 2 src", "tree -L 1 src", false),
        ("rg --files src", "find src", true),
        ("find src", "rg --files src", false),
        ("rg --files src", "rg --files --no-ignore --hidden src", true),
        ("rg --files --no-ignore src", "rg --files src", false),
        ("rg --files -g '*.rs' src", "rg --files src", true),
        ("fd", "fd -HI", true),
        ("fd -HI", "fd", false),
        ("ls src", "du -sh src", false),
        ("ls src | head -5", "ls src | head -20", true),
        ("ls src | head -20", "ls src | head -5", false),
        ("ls src", "ls src | head -5", false),
        ("ls src", "ls src | grep a", false),
        ("ls src | grep a", "ls src", true),
        ("ls src | grep a", "ls src | grep b", false),
        ("cd sub && ls", "ls sub", true),
        ("cd sub && fd -e rs", "fd -e rs", false),
        ("Get-ChildItem src", "Get-ChildItem -Recurse -Force src", true),
        ("Get-ChildItem -Force src", "Get-ChildItem src", false),
    ]);
}

#[test]
fn a_listing_by_a_tool_supersedes_one_that_shows_less() {
    check_pairs(&[
        (r#"list_dir {"location":"src"}"#, r#"list_dir {"location":"src"}"#, true),
        (r#"list_dir {"location":"src"}"#, r#"list_dir {"location":"tests"}"#, false),
        (r#"list_dir {"path":"src"}"#, r#"list_dir {"path":"src","recurse":true}"#, true),
        (r#"list_dir {"path":"src","recurse":true}"#, r#"list_dir {"path":"src"}"#, false),
        (
            r#"list_dir {"path":"src","recursive":true}"#,
            r#"list_dir {"path":"src","recursive":false}"#,
            false,
        ),
        (r#"list_files {"path":"src","recursive":"true"}"#, r#"list_files {"path":"src"}"#, false),
        (r#"list_dir {"path":"src","filters":["*.rs"]}"#, r#"list_dir {"path":"src"}"#, true),
        (r#"list_dir {"path":"src"}"#, r#"list_dir {"path":"src","filters":["*.rs"]}"#, false),
        (
            r#"list_dir {"path":"src","filters":["a","b"]}"#,
            r#"list_dir {"path":"src","filters":["b","a"]}"#,
            true,
        ),
        (r#"list_dir {"path":"src","filters":["a"]}"#, r#"list_dir {"path":"src","filters":["b"]}"#, false),
        (r#"list_dir {"path":"src","ignore":["target"]}"#, r#"list_dir {"path":"src"}"#, true),
        (r#"list_dir {"path":"src"}"#, r#"list_dir {"path":"src","ignore":["target"]}"#, false),
        (r#"list_dir {"path":"src"}"#, r#"list_dir {"path":"src","ignore":[]}"#, true),
        (r#"list_dir {"path":"src"}"#, r#"list_dir {"path":"src","include_ignored":true}"#, true),
        (r#"list_dir {"path":"src","include_ignored":true}"#, r#"list_dir {"path":"src"}"#, false),
        (r#"list_dir {"path":"src","respect_git_ignore":false}"#, r#"list_dir {"path":"src"}"#, false),
        (r#"list_dir {"path":"src","show_hidden":true}"#, r#"list_dir {"path":"src"}"#, false),
        (r#"list_dir {"path":"src","depth":1}"#, r#"list_dir {"path":"src","depth":3}"#, true),
        (r#"list_dir {"path":"src","depth":3}"#, r#"list_dir {"path":"src","depth":1}"#, false),
        (r#"glob {"pattern":"**/*.rs","path":"src"}"#, r#"glob {"pattern":"**/*.rs","path":"src"}"#, true),
        (r#"glob {"pattern":"**/*.rs","path":"src"}"#, r#"glob {"pattern":"**/*.md","path":"src"}"#, false),
        (r#"glob {"pattern":"**/*.rs","path":"src"}"#, "find src", true),
    ]);
}

#[test]
fn a_listing_that_was_cut_supersedes_none_that_was_not() {
    let mut messages = vec![text("user", "Go")];
    messages.extend(used("1", "list_dir", r#"{"path":"src"}"#, "a\nb\nc"));
    messages.extend(used("2", "list_dir", r#"{"path":"src"}"#, "a\n[truncated]"));
    check_superseded(&messages, &[]);
}

#[test]
fn listings_are_one_place_once_the_root_is_known() {
    let mut messages = vec![text("user", "Go")];
    messages.extend(used("1", "list_dir", r#"{"path":"/srv/app/src"}"#, "a"));
    messages.extend(used("2", "Bash", r#"{"command":"cd /srv/app && ls src"}"#, "a"));
    check_superseded(&messages, &["2 listed again 4"]);
}
