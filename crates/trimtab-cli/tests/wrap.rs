//! Agents behind a proxy of their own, played by small shell programs.

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
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use common::{command, recall_in, trimtab};
use upstream::{Script, Upstream};

fn check(script: &str, code: i32, out: &str) -> String {
    let run = trimtab(&["wrap", "sh", "--", "-c", script]);
    assert_eq!((run.code, run.text().trim()), (Some(code), out), "{}", run.words);
    run.words
}

#[test]
fn the_agent_s_exit_code_is_ours() {
    assert!(check("exit 0", 0, "").contains("no conversation came by"));
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

#[test]
fn settings_of_pi_are_laid_over_in_a_folder_of_our_own() {
    let home = std::env::temp_dir().join(format!("trimtab-test-{}", std::process::id()));
    let bin = home.join("bin");
    std::fs::create_dir_all(home.join(".pi/agent")).expect("a folder");
    std::fs::create_dir_all(&bin).expect("a folder");
    std::fs::write(home.join(".pi/agent/auth.json"), "{}").expect("a file");
    let own = r#"{"providers":{"openai":{"apiKey":"k"}}}"#;
    std::fs::write(home.join(".pi/agent/models.json"), own).expect("a file");
    let pi = bin.join("pi");
    std::fs::write(&pi, "#!/bin/sh\ncd \"$PI_CODING_AGENT_DIR\" && ls && cat models.json\n").expect("a file");
    std::fs::set_permissions(&pi, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a file");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a path"));
    let done = command(&["wrap", "pi"]).env("HOME", &home).env("PATH", path).output().expect("an end");
    let shown = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        shown.contains("auth.json")
            && shown.contains("\"apiKey\": \"k\"")
            && shown.contains("http://127.0.0.1:"),
        "{shown}"
    );
    assert_eq!(std::fs::read_to_string(home.join(".pi/agent/models.json")).expect("a file"), own);
    std::fs::remove_dir_all(home).expect("a folder");
}

/// An agent that sends its conversation to the model and runs, in a login shell with a path of its own, what the model says.
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

#[test]
fn a_wrap_that_is_killed_leaves_no_copy_of_a_key() {
    let home = tempfile::tempdir().unwrap();
    let temporary = home.path().join("tmp");
    let bin = home.path().join("bin");
    for folder in [&temporary, &bin, &home.path().join(".pi/agent")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let own = r#"{"providers":{"openai":{"apiKey":"hush"}}}"#;
    std::fs::write(home.path().join(".pi/agent/models.json"), own).unwrap();
    let pi = bin.join("pi");
    std::fs::write(&pi, "#!/bin/sh\necho ready\nexec sleep 5\n").unwrap();
    std::fs::set_permissions(&pi, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut wrapped = command(&["wrap", "pi"]);
    wrapped.env("HOME", home.path()).env("TMPDIR", &temporary).env("PATH", path);
    let mut child = wrapped.stdin(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    let files = || std::fs::read_dir(&temporary).unwrap().count();
    assert_eq!((line.trim(), files()), ("ready", 1));
    child.kill().unwrap();
    child.wait().unwrap();
    let started = std::time::Instant::now();
    while files() > 0 {
        assert!(started.elapsed() < Duration::from_secs(10), "a copy stays");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(std::fs::read_to_string(home.path().join(".pi/agent/models.json")).unwrap(), own);
}
