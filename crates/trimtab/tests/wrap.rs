//! Agents, each with its own proxy, played by small shell programs.

#![cfg(unix)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is wrong"
)]

mod common;
#[path = "proxy/conversations.rs"]
#[allow(dead_code, reason = "the proxy's tests use all of it")]
mod conversations;
#[path = "proxy/upstream.rs"]
#[allow(dead_code, reason = "the proxy's tests use all of it")]
mod upstream;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use common::{command, recall_in, trimtab};
use upstream::{Script, Upstream};

fn check(script: &str, code: i32, out: &str) -> String {
    let run = trimtab(&["wrap", "sh", "-c", script]);
    assert_eq!((run.code, run.text().trim()), (Some(code), out), "{}", run.words);
    run.words
}

#[test]
fn the_agent_s_exit_code_is_ours() {
    check("exit 0", 0, "");
    check("exit 7", 7, "");
    check("kill -9 $$", 137, "");
}

#[test]
fn the_agent_is_pointed_at_the_proxy() {
    check("echo $OPENAI_BASE_URL | sed s/:[0-9][0-9]*/:N/", 0, "http://127.0.0.1:N/v1");
    check("echo $ANTHROPIC_BASE_URL | sed s/:[0-9][0-9]*/:N/", 0, "http://127.0.0.1:N");
    check("case $NO_PROXY in *127.0.0.1) echo yes;; esac", 0, "yes");
}

#[test]
fn an_agent_that_is_not_there_is_named_with_what_to_do() {
    let run = trimtab(&["wrap", "no-such-agent"]);
    assert_eq!(run.code, Some(1));
    assert!(run.words.contains("--list"), "{}", run.words);
    assert!(trimtab(&["wrap", "--list"]).text().contains("codex"));
    let run = trimtab(&["wrap", "cladue"]);
    assert!(run.words.contains("`cladue` not found in PATH (did you mean claude?)"), "{}", run.words);
}

#[test]
fn signals_reach_the_agent() {
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child =
        command(&["wrap", "sh", "--", "-c", script]).stdin(Stdio::null()).spawn().expect("the binary");
    let mut ready = [0; 5];
    std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut ready).expect("a word");
    std::thread::sleep(Duration::from_millis(50));
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill");
    assert_eq!(child.wait().expect("an end").code(), Some(9));
}

/// A home with a program of this name in its path.
fn home_with(program: &str, script: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    for folder in ["bin", "tmp"] {
        std::fs::create_dir(home.path().join(folder)).unwrap();
    }
    let file = home.path().join("bin").join(program);
    std::fs::write(&file, format!("#!/bin/bash\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    home
}

fn command_in(home: &Path, arguments: &[&str]) -> Command {
    let path = format!("{}:{}", home.join("bin").display(), std::env::var("PATH").unwrap());
    let mut command = command(arguments);
    command.env("HOME", home).env("TMPDIR", home.join("tmp")).env("PATH", path).stdin(Stdio::null());
    command
}

/// What an agent was given, one argument a line.
fn check_arguments(program: &str, arguments: &[&str], expected: &[&str]) {
    let home = home_with(program, r#"printf '%s\n' "$@""#);
    let done = command_in(home.path(), arguments).output().unwrap();
    let shown = String::from_utf8(done.stdout).unwrap();
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected, "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn everything_behind_the_agent_s_name_is_the_agent_s() {
    check_arguments("claude", &["wrap", "claude", "--version"], &["--version"]);
    check_arguments("claude", &["wrap", "claude", "--help"], &["--help"]);
    check_arguments("claude", &["wrap", "claude", "-p", "two words"], &["-p", "two words"]);
    check_arguments(
        "claude",
        &["wrap", "--policy", "ladder", "claude", "--policy", "x", "--color"],
        &["--policy", "x", "--color"],
    );
    check_arguments("other", &["wrap", "other", "--", "exec", "--"], &["exec", "--"]);
    check_arguments("other", &["wrap", "--", "other", "--list"], &["--list"]);
}

#[test]
fn codex_is_run_with_its_own_command() {
    let home = home_with("codex", r#"shift 10; printf '%s\n' "$@""#);
    let done = command_in(home.path(), &["wrap", "codex", "exec", "fix it"]).output().unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "exec\nfix it\n");
}

/// Does with its home what pi does, and shows the extension that it is given.
const PI: &str = r#"
folder=${PI_CODING_AGENT_DIR:-$HOME/.pi/agent}
mkdir -p "$folder/sessions/here"
echo '{"anthropic":{"key":"hush"}}' > "$folder/auth.json"
echo '{}' > "$folder/sessions/here/1.jsonl"
[ "$1" != -e ] || cat "$2"
"#;

#[test]
fn what_pi_writes_in_a_fresh_home_stays() {
    let home = home_with("pi", PI);
    let done = command_in(home.path(), &["wrap", "pi", "-p", "hello"]).output().unwrap();
    let extension = String::from_utf8(done.stdout).unwrap();
    for line in [
        "registerProvider(\"anthropic\", { baseUrl: \"http://127.0.0.1:",
        "registerProvider(\"openai\", { baseUrl: \"http://127.0.0.1:",
        "registerProvider(\"google\", { baseUrl: \"http://127.0.0.1:",
    ] {
        assert!(extension.contains(line), "{extension}");
    }
    for file in ["auth.json", "sessions/here/1.jsonl"] {
        assert!(home.path().join(".pi/agent").join(file).exists(), "{file} is lost");
    }
    assert_eq!(std::fs::read_dir(home.path().join("tmp")).unwrap().count(), 0, "our own file is removed");
}

#[test]
fn commands_of_pi_that_ask_no_model_are_its_first_argument() {
    check_arguments("pi", &["wrap", "pi", "install", "npm:a"], &["install", "npm:a"]);
}

/// An agent that sends its conversation to the model and runs, in a login shell with another path, what the model says.
const AGENT: &str = r#"
address=${ANTHROPIC_BASE_URL#http://}
exec 3<>"/dev/tcp/${address%:*}/${address#*:}"
size=$(wc -c < "$1")
printf 'POST /v1/messages HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n' "$address" "$size" >&3
cat "$1" >&3
command=$(tail -n 1 <&3)
PATH=/usr/bin:/bin exec bash -lc "PATH=/usr/bin:/bin; $command"
"#;

/// Runs the agent, whose model recalls what the first note names; gives what the provider saw and what the agent got.
fn check_recall(flags: &[&str], home: &Path) -> (String, String) {
    let upstream = Upstream::start(|_, came| {
        let sent = String::from_utf8_lossy(&came.body);
        let command = recall_in(&sent).map_or("echo no recall".to_owned(), |(command, _)| command);
        let head = vec!["Content-Type: text/plain".to_owned()];
        Script::Whole("200 OK", head, format!("{command}\n").into_bytes())
    });
    let request = home.join("request.json");
    std::fs::write(&request, conversations::anthropic(30)).expect("a file");
    std::fs::write(home.join("agent.sh"), AGENT).expect("a file");
    let provider = format!("anthropic={}", upstream.url);
    let mut arguments = vec!["wrap", "--upstream", &provider, "--policy", "steady", "--budget", "40000"];
    arguments.extend(["--plan-time", "20000"].iter().chain(flags));
    let script = home.join("agent.sh").display().to_string();
    let request = request.display().to_string();
    arguments.extend(["bash", "--", &script, &request]);
    let mut wrapped = command(&arguments);
    wrapped.env_remove("TRIMTAB_NO_STORE").env_remove("XDG_DATA_HOME").env("HOME", home);
    let done = wrapped.stdin(Stdio::null()).output().expect("an end");
    let words = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{words}");
    let sent = String::from_utf8(upstream.last().body).expect("text");
    assert!(sent.contains(" at step "), "something is hidden: {words}");
    (sent, String::from_utf8(done.stdout).expect("text"))
}

#[test]
fn a_login_shell_of_the_agent_recalls_what_a_note_names() {
    let home = tempfile::tempdir().expect("a folder");
    let kept = home.path().join("its own place.db").display().to_string();
    for flags in [&[][..], &["--store", &kept]] {
        let (sent, recalled) = check_recall(flags, home.path());
        assert!(sent.contains(" recall "), "{flags:?}");
        assert_eq!(recalled, conversations::output(0, 120), "{flags:?}");
    }
    assert!(Path::new(&kept).exists() && home.path().join(".local/share/trimtab/trimtab.db").exists());
}

#[test]
fn where_nothing_is_kept_no_note_promises_a_recall() {
    let home = tempfile::tempdir().expect("a folder");
    let (sent, recalled) = check_recall(&["--no-store"], home.path());
    assert!(sent.contains("hidden: ") && !sent.contains("recall"), "{sent}");
    assert_eq!(recalled, "no recall\n");
}

/// Returns the files below a folder that hold these words.
fn files_with(folder: &Path, words: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, words));
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(words) {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_wrap_that_is_killed_leaves_no_copy_of_a_key() {
    let home = home_with("pi", "echo ready\nexec sleep 5");
    let own = home.path().join(".pi/agent");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("models.json"), r#"{"providers":{"openai":{"apiKey":"hush"}}}"#).unwrap();
    std::fs::write(own.join("auth.json"), r#"{"anthropic":{"key":"hush"}}"#).unwrap();
    let mut child = command_in(home.path(), &["wrap", "pi"]).spawn().unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert_eq!(line.trim(), "ready");
    child.kill().unwrap();
    child.wait().unwrap();
    let mut found = files_with(home.path(), "hush");
    found.sort();
    assert_eq!(found, [own.join("auth.json"), own.join("models.json")]);
}

/// An agent that posts each file that it is given, then says that it has done so.
const POSTING: &str = r#"
address=${ANTHROPIC_BASE_URL#http://}
for file in "$@"; do
    exec 3<>"/dev/tcp/${address%:*}/${address#*:}"
    printf 'POST /v1/messages HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n' "$address" "$(wc -c < "$file")" >&3
    cat "$file" >&3
    cat <&3 > /dev/null
done
"#;

/// Runs an agent that posts these requests to a provider, and gives the lines of the summary.
fn summary(url: &str, flags: &[&str], requests: &[Vec<u8>]) -> Vec<String> {
    let home = home_with("poster", POSTING);
    let provider = format!("anthropic={url}");
    let mut arguments = vec!["wrap", "--upstream", &provider];
    if !flags.contains(&"--plan-time") {
        arguments.extend(["--plan-time", "20000"]);
    }
    arguments.extend(flags.iter().chain(&["poster"]));
    let files: Vec<String> = (0..requests.len())
        .map(|number| home.path().join(format!("{number}.json")).display().to_string())
        .collect();
    for (file, request) in files.iter().zip(requests) {
        std::fs::write(file, request).unwrap();
    }
    arguments.extend(files.iter().map(String::as_str));
    let done = command_in(home.path(), &arguments).output().unwrap();
    let words = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(0), "{words}");
    words.lines().map(|line| line.trim_start_matches("trimtab: ").to_owned()).collect()
}

fn answering(status: &'static str) -> Upstream {
    Upstream::start(move |_, _| {
        let usage = r#"{"usage":{"input_tokens":1000,"cache_read_input_tokens":500,"output_tokens":7}}"#;
        Script::Whole(status, vec!["Content-Type: application/json".to_owned()], usage.as_bytes().to_vec())
    })
}

#[test]
fn the_summary_says_in_two_lines_what_was_saved() {
    let provider = answering("200 OK");
    let requests = [conversations::anthropic(30), conversations::anthropic(31)];
    let lines = summary(&provider.url, &["--policy", "ladder", "--budget", "30000"], &requests);
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].starts_with("2 requests: ") && lines[0].contains(" % less)"), "{lines:#?}");
    assert!(lines[1].starts_with("reported: 3,000 input tokens, 33 % of them from the cache"), "{lines:#?}");
}

#[test]
fn the_summary_says_that_no_request_came_and_what_to_do() {
    let lines = summary("http://127.0.0.1:9", &[], &[]);
    assert_eq!(lines[0], "nothing was saved: no request reached trimtab");
    assert!(lines[1].contains("OPENAI_BASE_URL") && lines[1].contains("subscription"), "{lines:#?}");
    let home = home_with("gemini", "exit 0");
    let done = command_in(home.path(), &["wrap", "gemini"]).output().unwrap();
    let words = String::from_utf8(done.stderr).unwrap();
    assert!(words.contains("GEMINI_API_KEY") && words.contains("Google account"), "{words}");
}

#[test]
fn the_summary_names_the_field_that_made_requests_pass() {
    let provider = answering("200 OK");
    let mut request: serde_json::Value = serde_json::from_slice(&conversations::anthropic(3)).unwrap();
    request["context_management"] = serde_json::json!({"edits": [{"type": "compact_20260112"}]});
    let request = request.to_string().into_bytes();
    let lines = summary(&provider.url, &[], &[request.clone(), request]);
    let expected = "nothing was saved in 2 requests: 2 requests passed unchanged because of `context_management: compact_20260112`";
    assert_eq!(lines[0], expected);
}

#[test]
fn the_summary_says_how_full_the_window_is_where_there_is_nothing_to_trim() {
    let provider = answering("200 OK");
    let lines = summary(&provider.url, &[], &[conversations::anthropic(2)]);
    let (start, end) =
        ("nothing was saved in 1 request: 1 request had nothing to trim yet", "claude-sonnet-4-5)");
    assert!(lines[0].starts_with(start) && lines[0].ends_with(end), "{lines:#?}");
    assert!(lines[0].contains(" % of the window of "), "{lines:#?}");
    assert!(lines[1].starts_with("reported: "), "{lines:#?}");
}

#[test]
fn the_summary_tells_errors_of_the_provider_from_our_own() {
    let provider = answering("529 Overloaded");
    let lines = summary(&provider.url, &[], &[conversations::anthropic(2)]);
    let expected = "errors of the provider: no good answer to 1 request (529: 1)";
    assert!(lines.contains(&expected.to_owned()), "{lines:#?}");
    assert!(
        !lines.iter().any(|line| line.contains("in trimtab") || line.contains("late plan")),
        "{lines:#?}"
    );
    // Nobody listens at a port that was given back.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let lines = summary(&dead, &[], &[conversations::anthropic(2)]);
    let expected = "errors of the provider: no good answer to 1 request (unreachable: 1)";
    assert!(lines.contains(&expected.to_owned()), "{lines:#?}");
    assert!(
        lines[0].starts_with("error of the provider: ") && lines[0].contains("cannot be reached"),
        "{lines:#?}"
    );
    assert!(
        !lines.iter().any(|line| line.contains("in trimtab") || line.contains("late plan")),
        "{lines:#?}"
    );
}

#[test]
fn the_summary_tells_late_plans_from_errors() {
    let provider = answering("200 OK");
    let lines = summary(&provider.url, &["--plan-time", "0"], &[conversations::anthropic(2)]);
    assert!(
        lines.iter().any(|line| line.starts_with("late plans: 1 plan was not ready in time")),
        "{lines:#?}"
    );
    assert!(lines.iter().any(|line| line.starts_with("late plan: messages: ")), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("errors ")), "{lines:#?}");
}

#[test]
fn the_summary_tells_errors_of_our_own() {
    let provider = answering("200 OK");
    let lines = summary(&provider.url, &[], &[b"{\"messages\":7}".to_vec()]);
    assert!(lines.contains(&"errors in trimtab: 1 error (plan: 1)".to_owned()), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("error in trimtab: messages: ")), "{lines:#?}");
    assert!(
        !lines.iter().any(|line| line.contains("of the provider") || line.contains("late")),
        "{lines:#?}"
    );
}
