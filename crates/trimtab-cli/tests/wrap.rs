//! Agents behind a proxy of their own, played by small shell programs.

#![cfg(unix)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is wrong"
)]

mod common;

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use common::{command, trimtab};

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
