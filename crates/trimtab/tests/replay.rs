//! `trimtab replay` as its users meet it: tables, JSON and pages of recordings, wrong words, files that are none.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;

use std::{
    io::Read,
    path::{Path, PathBuf},
    process::Stdio,
};

use common::{command, root, trimtab};
use serde_json::Value;

const RECORDING: &str = "fixtures/recordings/claude-code.jsonl";

/// What others read from the report: these names are promised.
const FIELDS: [&str; 32] = [
    "policy", "model", "sessions", "requests", "tokens", "tokens_vs_raw", "input_cost", "cost_vs_raw",
    "worst_session_vs_raw", "sessions_dearer", "cache_breaks", "forced_refetches", "unmarked_stale_tokens",
    "edit_anchor_recall", "reference_recall", "error_retention", "instruction_retention",
    "strict_reference_recall", "copied_line_recall", "edit_anchors", "cost_net_vs_raw", "invalid_requests",
    "over_budget_requests", "plan_us_p50", "plan_us_p99", "unit", "raw_cost", "net_cost", "cuts",
    "rewritten_tokens", "prefill_tokens", "bound_recall_share",
];

/// Replays with `--json` and returns the rows without the times of plans.
fn rows(arguments: &[&str]) -> Vec<Value> {
    let run = trimtab(&[&["replay", "--json"], arguments].concat());
    assert_eq!(run.code, Some(0), "{arguments:?}: {}", run.words);
    let mut json: Value = serde_json::from_slice(&run.out).expect("JSON");
    let rows = json.as_array_mut().expect("rows");
    for row in rows.iter_mut() {
        row["plan_us_p50"] = Value::Null;
        row["plan_us_p99"] = Value::Null;
    }
    rows.clone()
}

/// A new folder for a test, with copies of fixtures and files that are none.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("trimtab-replay-{name}-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("deep")).expect("a folder");
    let copy = |from: &str, to: &str| {
        std::fs::copy(root().join("fixtures/recordings").join(from), folder.join(to)).expect(from);
    };
    copy("claude-code.jsonl", "one.jsonl");
    copy("codex.jsonl", "deep/two.jsonl");
    std::fs::write(folder.join("empty.jsonl"), "").expect("a file");
    std::fs::write(folder.join("package.json"), r#"{"name":"x","version":"1.0.0"}"#).expect("a file");
    std::fs::write(folder.join("notes.md"), "# Not looked at").expect("a file");
    folder
}

fn path(folder: &Path) -> &str {
    folder.to_str().expect("a path of letters")
}

#[test]
fn json_has_an_object_per_policy_and_model_with_the_promised_fields() {
    let rows = rows(&["fixtures/recordings/pi.jsonl", "--policy", "none", "--policy", "recent(keep_last=3)"]);
    let names: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row["policy"].as_str().expect("a name"), row["model"].as_str().expect("a name")))
        .collect();
    assert_eq!(names, [("none", "claude-sonnet-4-5"), ("recent(keep_last=3)", "claude-sonnet-4-5")]);
    for row in &rows {
        for field in FIELDS {
            assert!(row.get(field).is_some(), "{field} is missing: {row}");
        }
        assert_eq!(row["sessions"], 1);
    }
    assert_eq!(rows[0]["cost_vs_raw"], 1.0);
    assert_eq!(rows[0]["tokens_vs_raw"], 1.0);
    assert_eq!(rows[0]["edit_anchor_recall"], 1.0);
}

#[test]
fn several_budgets_are_replayed_in_one_run() {
    let asked = ["--budget", "50%,64k,50%", "--policy", "steady", "--policy", "oracle:budget"];
    let rows = rows(&[&[RECORDING][..], &asked].concat());
    let names: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row["policy"].as_str().expect("a name"), row["budget"].as_str().expect("a budget")))
        .collect();
    let expected = [("steady", "50%"), ("steady", "64k"), ("oracle:budget", "50%"), ("oracle:budget", "64k")];
    assert_eq!(names, expected);
    let number = |row: usize, field: &str| rows[row][field].as_f64().expect(field);
    assert!(number(0, "tokens") < number(1, "tokens"), "a small budget leaves less");
    assert!(number(2, "edit_anchor_recall") >= number(0, "edit_anchor_recall"));
    assert_eq!(number(2, "bound_recall_share"), 1.0);
    assert_eq!(number(2, "over_budget_requests"), 0.0, "the bound keeps the budget");
    let run = trimtab(&[&["replay", RECORDING][..], &asked].concat());
    let text = run.text();
    assert!(text.contains(", budget 50%: ") && text.contains(", budget 64k: "), "{text}");
    assert!(text.contains("At a budget of 64k, steady would have "), "{text}");
    for head in ["cuts", "rewr", "over", "bound"] {
        assert!(text.contains(head), "{head}: {text}");
    }
}

#[test]
fn a_model_on_this_machine_is_paid_in_seconds() {
    let asked = [RECORDING, "--model", "local:ollama@800", "--policy", "none", "--policy", "peer:mask(3)"];
    let rows = rows(&asked);
    assert_eq!(rows[0]["unit"], "seconds");
    let number = |row: usize, field: &str| rows[row][field].as_f64().expect(field);
    // What was in no cache, at 800 tokens a second.
    assert!((number(0, "prefill_tokens") / 800.0 - number(0, "prefill_seconds")).abs() < 0.01, "{}", rows[0]);
    assert!(
        number(1, "cost_vs_raw") > 1.0 && number(1, "tokens_vs_raw") < 1.0,
        "masking waits longer: {}",
        rows[1]
    );
    let run = trimtab(&[&["replay"][..], &asked].concat());
    let text = run.text();
    assert!(text.contains("at 800 tokens per second") && text.contains("wait"), "{text}");
    assert!(!text.contains('$'), "{text}");
    let wrong = trimtab(&["replay", RECORDING, "--model", "local:tgi"]);
    assert!(
        wrong.code == Some(2) && wrong.words.contains("llama.cpp, ollama, vllm, lm-studio"),
        "{}",
        wrong.words
    );
    let mixed = trimtab(&["replay", RECORDING, "--model", "local", "--model", "gpt-5"]);
    assert!(mixed.code == Some(1) && mixed.words.contains("seconds and dollars"), "{}", mixed.words);
}

#[test]
fn the_order_of_workers_does_not_show() {
    let files = ["fixtures/recordings/pi.jsonl", RECORDING, "fixtures/recordings/codex.jsonl"];
    let one = rows(&[&files[..], &["--policy", "steady", "--policy", "recent", "--jobs", "1"]].concat());
    let many = rows(&[&files[..], &["--policy", "steady", "--policy", "recent", "--jobs", "7"]].concat());
    assert_eq!(one, many);
    assert_eq!(one[0]["sessions"], 3);
    let twice = rows(&[RECORDING, RECORDING, "--policy", "none"]);
    assert_eq!(twice[0]["sessions"], 1, "a file named twice is one session");
}

#[test]
fn a_table_has_a_block_per_model_and_a_line_per_policy() {
    let run =
        trimtab(&["replay", RECORDING, "--policy", "none", "--policy", "steady", "--model", "claude-opus-5"]);
    let text = run.text();
    assert_eq!((run.code, run.words.as_str()), (Some(0), ""), "no progress bar where nobody looks");
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(120), "{widest:?}\n{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("1 session, "), "{text}");
    assert!(
        lines[2].starts_with("claude-opus-5: sending everything costs $")
            && lines[2].contains("11.5 extra cache reads"),
        "{text}"
    );
    assert!(
        lines[3].contains("edits") && lines[4].starts_with("none ") && lines[5].starts_with("steady "),
        "{text}"
    );
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("It cannot show whether the task would still have succeeded"), "{text}");
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn everything_that_is_known_takes_part_with_all() {
    let text = trimtab(&["replay", "fixtures/recordings/pi.jsonl", "--model", "gpt-5", "--all"]).text();
    for (name, _) in trimtab_core::policy::policies() {
        assert!(
            text.lines().any(|line| line.split_whitespace().next() == Some(name)),
            "{name} is missing:\n{text}"
        );
    }
}

#[test]
fn without_policies_ours_and_the_three_best_others_take_part_at_the_recorded_prices() {
    let found = rows(&["fixtures/recordings/pi.jsonl"]);
    let names: Vec<&str> = found.iter().filter_map(|row| row["policy"].as_str()).collect();
    assert_eq!(names[..3], ["none", "steady", "steady.safe"]);
    assert_eq!(names.len(), 6, "{names:?}");
    assert!(names[3..].iter().all(|name| name.starts_with("peer:")), "{names:?}");
    assert!(found.iter().all(|row| row["model"] == "claude-sonnet-4-5" && row["invalid_requests"] == 0));
    let mixed = rows(&["fixtures/recordings/pi.jsonl", RECORDING]);
    assert!(mixed.iter().all(|row| row["model"] == "recorded" && row["sessions"] == 2));
    let cost = |rows: &[Value]| rows[0]["input_cost"].as_f64().expect("dollars");
    let one_by_one = cost(&found) + cost(&rows(&[RECORDING]));
    assert!((cost(&mixed) - one_by_one).abs() < 1e-9, "each session is paid for at its own prices");
}

#[test]
fn a_replay_ends_in_sentences_with_dollars() {
    let run = trimtab(&["replay", RECORDING, "--resamples", "0"]);
    let text = run.text();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("1 session with 85 requests: sending everything costs $"), "{text}");
    assert!(
        words.contains("at the recorded models' prices (claude-opus-4-6, claude-haiku-4-5). Caches live "),
        "{text}"
    );
    assert!(words.contains(". steady would have "), "{text}");
    assert!(text.trim_end().ends_with("rejected."), "{text}");
}

#[test]
fn the_sessions_of_every_agent_on_this_machine_are_found() {
    let home = tempfile::tempdir().expect("a folder");
    for (from, to) in [
        ("claude-code.jsonl", ".claude/projects/-home-me-app/one.jsonl"),
        ("codex.jsonl", ".codex/sessions/2026/10/01/rollout-1.jsonl"),
        ("gemini-cli.json", ".gemini/tmp/app/chats/session-1.json"),
        ("pi.jsonl", ".pi/agent/sessions/--app--/1.jsonl"),
        ("copilot-cli.jsonl", ".copilot/session-state/7a/events.jsonl"),
    ] {
        let path = home.path().join(to);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::fs::copy(root().join("fixtures/recordings").join(from), path).expect(from);
    }
    let run = |arguments: &[&str]| {
        let mut command = command(arguments);
        for name in
            ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "PI_CODING_AGENT_DIR"]
        {
            command.env_remove(name);
        }
        let done = command.env("HOME", home.path()).stdin(Stdio::null()).output().expect("the binary");
        (done.status.code(), done.stdout, String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, _, words) = run(&["replay", "--json", "--policy", "none"]);
    assert_eq!(code, Some(0), "{words}");
    let found = "5 sessions found (Claude Code 1, Codex 1, Gemini CLI 1, Copilot CLI 1, pi 1)";
    assert!(words.contains(found), "{words}");
    let (code, out, words) =
        run(&["replay", "--json", "--policy", "none", "--agent", "codex", "--last", "3"]);
    let json: Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(
        (code, &json[0]["model"], &json[0]["sessions"]),
        (Some(0), &"gpt-5.5".into(), &1.into()),
        "{words}"
    );
    let (code, out, words) = run(&["inspect", "--json", "--since", "1h"]);
    let json: Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!((code, &json["files"]), (Some(0), &5.into()), "{words}");
    let (code, _, words) = run(&["replay", "--agent", "cline"]);
    assert_eq!(code, Some(1));
    assert!(
        words.contains("no session of an agent was found") && words.contains(".cline/data/sessions"),
        "{words}"
    );
    let (code, _, words) = run(&["replay", "--agent", "cluade-code"]);
    assert_eq!(code, Some(2));
    assert!(words.contains("did you mean claude-code?"), "{words}");
}

#[test]
fn a_page_and_json_are_written_in_one_run_and_the_place_is_checked_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("report.html");
    let run = trimtab(&["replay", RECORDING, "--policy", "steady", "--json", "--html", path(&page)]);
    assert_eq!(run.code, Some(0), "{}", run.words);
    let json: Value = serde_json::from_slice(&run.out).expect("JSON");
    assert_eq!(json[0]["policy"], "steady");
    assert!(std::fs::read_to_string(&page).expect("a page").contains("<html"));
    assert!(
        run.words.contains("steady would have ") && run.words.contains("report.html written ("),
        "{}",
        run.words
    );
    // Long work would come first: the recording is not even opened.
    for (place, reason) in [
        (folder.path().join("no/such/page.html"), "cannot be written"),
        (folder.path().to_owned(), "is a folder"),
    ] {
        let run = trimtab(&["replay", "nowhere", "--html", path(&place)]);
        assert_eq!(run.code, Some(1));
        assert!(run.words.contains(reason) && !run.words.contains("nowhere"), "{}", run.words);
    }
}

#[test]
fn a_folder_is_replayed_and_what_cannot_be_is_named_with_the_reason() {
    let folder = folder("folder");
    let run = trimtab(&["replay", path(&folder), "--policy", "none", "--json"]);
    assert_eq!(run.code, Some(1), "{}", run.words);
    let json: Value = serde_json::from_slice(&run.out).expect("JSON");
    assert_eq!(json[0]["sessions"], 2);
    for part in ["empty.jsonl: the file is empty", "package.json: ", "2 of 4 files could not be replayed"] {
        assert!(run.words.contains(part), "{part}: {}", run.words);
    }
    assert!(!run.words.contains("notes.md"));
    let chosen = trimtab(&["replay", path(&folder), "--policy", "none", "--json", "--session", "deep/two"]);
    let json: Value = serde_json::from_slice(&chosen.out).expect("JSON");
    assert_eq!((chosen.code, &json[0]["sessions"]), (Some(0), &Value::from(1)));
    std::fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn nothing_to_replay_is_said() {
    let folder = std::env::temp_dir().join(format!("trimtab-replay-nothing-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for (arguments, sentence) in [
        (
            &["replay", path(&folder)][..],
            "no recording found: a folder is searched for names ending in .json",
        ),
        (&["replay", "Cargo.toml"], "nothing could be replayed; the reasons are above"),
        (&["replay", "nowhere"], "nowhere: cannot be opened"),
        (&["replay", RECORDING, "--session", "zzz"], "no recording whose path contains \"zzz\" was found"),
        (&["replay", RECORDING, "--policy", "none.toml"], "none.toml: the policy cannot be read"),
    ] {
        let run = trimtab(arguments);
        assert_eq!(run.code, Some(1), "{arguments:?}");
        assert!(run.words.contains(sentence), "{arguments:?} said: {}", run.words);
        assert!(run.out.is_empty(), "{arguments:?} wrote data");
    }
    std::fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn wrong_words_are_refused_with_what_is_expected() {
    for (arguments, sentence) in [
        (&["--policy", "sloppy"][..], "there is no policy \"sloppy\"\n  `trimtab policies` lists ours"),
        (
            &["--policy", "recent(keep=1)"],
            "policy \"recent\" has no setting \"keep\"; it has: batch, deduplication",
        ),
        (&["--policy", "recent(5)"], "expected recent(SETTING=VALUE)"),
        (
            &["--model", "claude-opos-5"],
            "model \"claude-opos-5\" is not in the table; did you mean claude-opus-5",
        ),
        (
            &["--budget", "much"],
            "\"much\" is neither a number of tokens (50000, 50k, 1.5M) nor a share (35%)",
        ),
        (&["--budget", "120%"], "\"120%\" is neither"),
        (&["--jobs", "0"], "0 is not in 1.."),
        (&["--last", "3"], "cannot be used with"),
    ] {
        let run = trimtab(&[&["replay", RECORDING], arguments].concat());
        assert_eq!(run.code, Some(2), "{arguments:?}: {}", run.words);
        assert!(run.words.contains(sentence), "{arguments:?} said: {}", run.words);
        assert!(run.out.is_empty(), "{arguments:?} wrote data");
    }
}

#[test]
fn a_policy_of_ones_own_takes_part() {
    let file = std::env::temp_dir().join(format!("trimtab-replay-own-{}.toml", std::process::id()));
    let toml = "about = 'Clears all but the latest.'\n[settings]\nkeep = 4\n[[step]]\nwhen = 'always'\n\
        select = { keep_last = '$keep' }\ndo = 'clear'\n";
    std::fs::write(&file, toml).expect("a policy");
    let asked = format!("{}(keep=2)", file.display());
    let found = rows(&[RECORDING, "--policy", &asked, "--model", "gpt-5"]);
    assert_eq!(found[0]["policy"], Value::from(asked));
    std::fs::remove_file(file).expect("the policy");
}

#[test]
fn a_closed_pipe_is_no_error_for_replay_either() {
    for arguments in [&["replay", RECORDING, "--json"][..], &["replay", RECORDING]] {
        let mut child = command(arguments).stdin(Stdio::null()).spawn().expect("the binary");
        let mut first = [0; 10];
        child.stdout.take().expect("a pipe").read_exact(&mut first).expect("some output");
        let done = child.wait_with_output().expect("an end");
        assert_eq!(done.status.code(), Some(0), "{arguments:?}");
        // Beside JSON the sentences are on standard error.
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!words.contains("trimtab: "), "{arguments:?}: {words}");
    }
}

#[test]
fn a_page_of_a_hostile_recording_holds_no_markup_of_it() {
    let folder = std::env::temp_dir().join(format!("trimtab-replay-hostile-{}", std::process::id()));
    let nasty = "</script><img src=x onerror=alert(1)>";
    let file = folder.join("a <img src=x onerror=alert(2)>.json");
    std::fs::create_dir_all(&folder).expect("a folder");
    // Words that begin with a tag would be taken for a client's reminder, and would not name the session.
    let said = format!("Mend {nasty}");
    let mut messages = vec![serde_json::json!({"role": "user", "content": said})];
    for number in 0..12 {
        let id = format!("call{number}");
        let call = serde_json::json!({"id": id, "type": "function", "function": {"name": nasty, "arguments":
            serde_json::json!({"path": format!("src/{nasty}{number}.rs"), "old_string": nasty}).to_string()}});
        messages.push(serde_json::json!({"role": "assistant", "content": nasty, "tool_calls": [call]}));
        messages.push(
            serde_json::json!({"role": "tool", "tool_call_id": id, "content": format!("{nasty}{number}\n")}),
        );
    }
    messages.push(serde_json::json!({"role": "assistant", "content": "Done."}));
    let request = serde_json::json!({"model": nasty, "messages": messages});
    std::fs::write(&file, request.to_string()).expect("a recording");
    let page = folder.join("report.html");
    let run = trimtab(&["replay", path(&file), "--html", path(&page), "--timing"]);
    assert_eq!(run.code, Some(0), "{}", run.words);
    assert!(run.text().contains("1 session with "), "{}", run.text());
    assert!(run.words.contains("sessions: 1; ") && run.words.contains(" at a time; "), "{}", run.words);
    let text = std::fs::read_to_string(&page).expect("a page");
    assert!(text.contains("&lt;img src=x onerror=alert(1)&gt;"), "the session is named by its first words");
    assert!(text.contains("&lt;img src=x onerror=alert(2)&gt;"), "and by its path");
    assert!(!text.contains("<img") && !text.contains("<script"), "markup got through");
    std::fs::remove_dir_all(folder).expect("the folder");
}
