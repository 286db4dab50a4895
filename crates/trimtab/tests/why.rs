//! `trimtab why` as users meet it: on a recording, on many, on nothing, and checked by a script that shares no code with it.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;

use std::{path::Path, process::Command};

use common::{Run, command, root, trimtab, trimtab_reading};
use serde_json::Value;

/// A request and its answer: minutes since the start, tokens read and written.
fn turn(number: usize, minutes: usize, read: u64, written: u64) -> String {
    let at = format!("2026-01-01T{:02}:{:02}:00Z", minutes / 60, minutes % 60);
    let before = number - 1;
    format!(
        r#"{{"type":"user","cwd":"/home/dev/ledger","uuid":"u{number}","parentUuid":"a{before}","timestamp":"{at}","message":{{"role":"user","content":"Go on."}}}}
{{"type":"assistant","uuid":"a{number}","parentUuid":"u{number}","timestamp":"{at}","message":{{"role":"assistant","id":"r{number}","model":"claude-opus-5","content":[{{"type":"text","text":"Done."}}],"usage":{{"input_tokens":0,"cache_read_input_tokens":{read},"cache_creation_input_tokens":{written},"output_tokens":0}}}}}}
"#
    )
}

/// A session with a pause of eight minutes, then a head that changed, then nothing read at all.
fn session() -> String {
    [
        turn(1, 0, 0, 100_000),
        turn(2, 1, 100_000, 1_000),
        turn(3, 9, 0, 102_000),
        turn(4, 10, 40_000, 63_000),
        turn(5, 11, 0, 104_000),
    ]
    .concat()
}

fn json(run: &Run) -> Value {
    assert_eq!(run.code, Some(0), "{}", run.words);
    serde_json::from_slice(&run.out).expect("JSON")
}

fn in_folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

fn path(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

#[test]
fn every_request_that_paid_again_is_told_with_its_reason_and_its_price() {
    let folder = in_folder(&[("session.jsonl", &session())]);
    let report = json(&trimtab(&["why", &path(&folder, "session.jsonl"), "--json"]));
    let misses = report["sessions"][0]["misses"].as_array().expect("misses");
    let told: Vec<(u64, &str, u64)> = misses
        .iter()
        .map(|row| {
            let miss = &row["miss"];
            let kind = miss["reason"]["kind"].as_str().expect("a kind");
            (row["request"].as_u64().expect("a number"), kind, miss["again"].as_u64().expect("tokens"))
        })
        .collect();
    assert_eq!(told, [(3, "expired", 101_000), (4, "unrecorded-change", 62_000), (5, "unknown", 103_000)]);
    assert_eq!(misses[0]["miss"]["reason"]["idle_ms"], 480_000);
    assert_eq!(misses[1]["miss"]["certainty"], "inferred");
    // At 6.25 dollars a million to write and 0.5 to read: 101,000 times 5.75.
    let dollars = misses[0]["miss"]["again_dollars"].as_f64().expect("dollars");
    assert!((dollars - 0.58075).abs() < 1e-9, "{dollars}");
    let summary = &report["summary"];
    assert_eq!((summary["requests"].as_u64(), summary["again"].as_u64()), (Some(5), Some(266_000)));
    assert_eq!(summary["unexplained"], 103_000);
    assert_eq!(report["projects"][0]["project"], "ledger");
}

#[test]
fn the_table_ends_with_one_sentence() {
    let folder = in_folder(&[("session.jsonl", &session())]);
    let shown = trimtab(&["why", &path(&folder, "session.jsonl")]).text();
    for words in [
        "expired: 8 min idle, 3 min over the 5 min that the cache is kept",
        "40000 tokens were still the same (inferred)",
        "unknown: nothing at all was read",
    ] {
        let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "{words}: {shown}");
    }
    let last = shown.lines().last().expect("a line");
    assert!(
        last.starts_with("$1.53 of $2.38 was paid for caching again what had been cached, 266,000 of 510,000 input tokens in 5 requests: unknown $0.59, expired in a pause $0.58"),
        "{last}"
    );
    let one = trimtab(&["why", &path(&folder, "session.jsonl"), "--limit", "1"]).text();
    assert!(one.contains("and 2 requests with fewer tokens"), "{one}");
}

#[test]
fn many_sessions_are_summed_by_reason_and_by_project() {
    let calm =
        [turn(1, 0, 0, 5_000), turn(2, 1, 5_000, 10)].concat().replace("/home/dev/ledger", "/home/dev/calm");
    let folder = in_folder(&[("a.jsonl", &session()), ("b.jsonl", &calm), ("c.jsonl", "{")]);
    let run = trimtab(&["why", &folder.path().display().to_string()]);
    let shown = run.text();
    assert_eq!(run.code, Some(1), "a file that cannot be read is no success");
    assert!(shown.contains("unreadable: ") && shown.contains("c.jsonl"), "{shown}");
    assert!(shown.contains("ledger (1 session)") && shown.contains("calm (1 session)"), "{shown}");
    assert!(shown.contains("expired in a pause"), "{shown}");
}

#[test]
fn what_reported_no_usage_is_said_and_standard_input_is_read() {
    let none = trimtab(&["why", "fixtures/requests/anthropic-no-system.json"]);
    let said = none.text();
    assert!(said.contains("no usage was reported"), "{said}{}", none.words);
    let calm = [turn(1, 0, 0, 5_000), turn(2, 1, 5_000, 10)].concat();
    let read = trimtab_reading(&["why", "-"], calm.as_bytes()).text();
    assert_eq!(read, "nothing was paid again: 2 requests read all that was cached\n");
}

#[test]
fn a_wrong_path_and_a_wrong_session_are_said() {
    let missing = trimtab(&["why", "no-such-file.jsonl"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.text().contains("unreadable: no-such-file.jsonl"), "{}", missing.text());
    let folder = in_folder(&[]);
    let empty = trimtab(&["why", &folder.path().display().to_string()]);
    assert!(empty.code == Some(1) && empty.words.contains("no recording found"), "{}", empty.words);
    let store = path(&folder, "none.db");
    let unknown = trimtab(&["why", "s7", "--store", &store]);
    assert!(unknown.code == Some(1) && unknown.words.contains("nothing is stored yet"), "{}", unknown.words);
    let both = trimtab(&["why", "--stored", "x.jsonl"]);
    assert_eq!(both.code, Some(2), "{}", both.words);
}

#[test]
fn stored_sessions_of_the_project_are_explained() {
    let folder = in_folder(&[]);
    let store = path(&folder, "trimtab.db");
    let recording = "fixtures/recordings/claude-code.jsonl";
    let kept = trimtab(&["fit", recording, "--budget", "6000", "--policy", "recent", "--store", &store]);
    assert_eq!(kept.code, Some(0), "{}", kept.words);
    for arguments in [["why", "--stored", "--store", &store], ["why", "latest", "--store", &store]] {
        let run = trimtab(&arguments);
        assert_eq!(run.code, Some(0), "{}", run.words);
        assert!(run.text().contains("no usage was reported"), "{}", run.text());
    }
    // A recording holds neither tools nor system prompt.
    let head = json(&trimtab(&["inspect", "latest", "--store", &store, "--json"]));
    assert_eq!(head["head"]["recorded"], false, "the recording left the head out: {}", head["head"]);
}

#[test]
fn another_program_bears_the_reasons_out() {
    let folder = in_folder(&[("session.jsonl", &session())]);
    let check = |paths: &[&str]| {
        let mut script = Command::new("python3");
        script.arg(root().join("scripts/why-check")).arg(command(&[]).get_program()).args(paths);
        script.current_dir(root()).env("TRIMTAB_NO_STORE", "1");
        let done = script.output().expect("python3, which the tests need");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
        said
    };
    let own = check(&[&path(&folder, "session.jsonl")]);
    assert!(
        own.contains("confirmed from the raw lines: 100.0 %")
            && own.contains("missed by trimtab: 0 requests"),
        "{own}"
    );
    let recorded = check(&["fixtures/recordings/claude-code.jsonl"]);
    assert!(recorded.contains("missed by trimtab: 0 requests"), "{recorded}");
    assert!(Path::new(&root().join("scripts/why-check")).exists());
}

#[test]
fn a_request_tells_what_its_tools_cost_by_server() {
    let tools = r#"{"model":"claude-opus-5","max_tokens":9,"tools":[
        {"name":"Read","description":"Reads a file.","input_schema":{"type":"object"}},
        {"name":"mcp__github__search","description":"Searches for code in all repositories.","input_schema":{"type":"object"}}],
        "system":"You help.","messages":[{"role":"user","content":"Hi"}]}"#;
    let folder = in_folder(&[("request.json", tools)]);
    let file = path(&folder, "request.json");
    let head = json(&trimtab(&["inspect", &file, "--json"]))["head"].clone();
    assert_eq!((head["recorded"].as_bool(), head["never_called"].as_u64()), (Some(true), Some(2)));
    assert_eq!(head["servers"][0]["name"], "github");
    let shown = trimtab(&["inspect", &file]).text();
    assert!(shown.contains("MCP github (1 tool)"), "{shown}");
    assert!(shown.contains("2 tools were not called in 1 conversation"), "{shown}");
}
