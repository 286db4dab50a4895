//! Conversations that are kept, as users of the command line meet them.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;

use common::{Run, trimtab, trimtab_reading};
use serde_json::Value;

const RECORDING: &str = "fixtures/recordings/claude-code.jsonl";

/// A store that holds one fitted request, in a folder that goes with it.
fn kept() -> (tempfile::TempDir, String, Run) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("new/trimtab.db").display().to_string();
    let fitted = trimtab(&["fit", RECORDING, "--policy", "recent", "--budget", "6000", "--store", &store]);
    assert_eq!(fitted.code, Some(0), "{}", fitted.words);
    (folder, store, fitted)
}

fn json(run: &Run) -> Value {
    assert_eq!(run.code, Some(0), "{}", run.words);
    serde_json::from_slice(&run.out).expect("JSON")
}

#[test]
fn what_fit_hides_is_recalled_from_the_store() {
    let (_folder, store, fitted) = kept();
    assert!(fitted.words.contains("sessions are stored in"), "{}", fitted.words);
    let text = fitted.text();
    let (_, handle) = common::recall_in(&text).expect("something is hidden");
    let handle = handle.as_str();
    let recalled = trimtab(&["recall", handle, "--store", &store]);
    let in_file = trimtab(&["recall", handle, "--in", RECORDING]);
    assert_eq!(recalled.code, Some(0), "{}", recalled.words);
    assert_eq!(recalled.out, in_file.out);
    let first = trimtab(&["recall", handle, "--store", &store, "--lines", "1-1"]);
    assert!(
        !first.out.is_empty() && recalled.out.starts_with(&first.out) && first.out.len() < recalled.out.len()
    );
}

#[test]
fn the_second_fit_says_nothing_about_the_place_and_repeats_the_first() {
    let (_folder, store, first) = kept();
    let again = trimtab(&["fit", RECORDING, "--policy", "recent", "--budget", "6000", "--store", &store]);
    assert!(!again.words.contains("conversations are kept"), "{}", again.words);
    assert_eq!(again.out, first.out);
    let sessions = json(&trimtab(&["sessions", "--store", &store, "--json"]));
    assert_eq!(sessions.as_array().map(Vec::len), Some(1));
    assert_eq!(sessions[0]["requests"], 2);
    let title = sessions[0]["title"].as_str().expect("a title");
    assert!(title.starts_with("Have a look around this repository"), "{title}");
    let shown = trimtab(&["sessions", "--store", &store]).text();
    assert!(
        shown.contains("Have a look around") && shown.lines().all(|line| line.chars().count() <= 120),
        "{shown}"
    );
    assert_eq!(trimtab(&["sessions", "--store", &store, "--limit", "0"]).text().lines().count(), 1);
    assert!(sessions[0]["tokens_after"].as_u64() < sessions[0]["tokens_before"].as_u64());
}

#[test]
fn a_session_is_shown_like_a_file() {
    let (_folder, store, _) = kept();
    let whole = trimtab(&["fit", RECORDING, "--policy", "none"]);
    let request = trimtab(&["fit", "s1", "--policy", "none", "--store", &store, "--no-store"]);
    assert_eq!(request.out, whole.out, "the request that came, not the one that was sent");
    let shown = json(&trimtab(&["show", "s1", "--store", &store, "--json"]));
    assert_eq!(shown["agent"], "request");
    let inspected = json(&trimtab(&["inspect", "s1", "--store", &store, "--json"]));
    assert_eq!(inspected["requests"], 1, "{inspected}");
    let changes = trimtab(&["changelog", "s1", "--store", &store]);
    assert_eq!(changes.code, Some(0), "{}", changes.words);
}

#[test]
fn words_are_found_and_the_session_is_forgotten() {
    let (_folder, store, _) = kept();
    let found = json(&trimtab(&["search", "the", "--store", &store, "--json", "--limit", "3"]));
    let handle = found[0]["handle"].as_str().expect("a handle");
    assert_eq!(trimtab(&["recall", handle, "--store", &store]).code, Some(0));
    let line =
        trimtab(&["search", "hands_out_every_cent", "--store", &store, "--limit", "1", "--color", "always"])
            .text();
    assert!(line.contains("hands_out_every_cent\u{1b}[0m"), "the match is in the line and marked: {line}");
    let stats = json(&trimtab(&["stats", "--store", &store, "--json"]));
    assert_eq!((stats["sessions"].as_u64(), stats["bytes"].as_u64() > Some(0)), (Some(1), true));
    assert_eq!(
        (stats["reported"]["requests"].as_u64(), stats["reported"]["dollars_saved"].as_f64()),
        (Some(0), Some(0.0))
    );
    let words = trimtab(&["stats", "--store", &store]).text();
    assert!(words.contains("no provider reported usage"), "{words}");
    let told = trimtab(&["forget", "s1", "--dry-run", "--store", &store]);
    assert!(told.words.contains("1 session would be deleted"), "{}", told.words);
    let unasked = trimtab(&["forget", "s1", "--store", &store]);
    assert!(unasked.code == Some(2) && unasked.words.contains("--yes"), "{}", unasked.words);
    let done = trimtab(&["forget", "s1", "--yes", "--store", &store]);
    assert!(done.words.contains("1 session deleted"), "{}", done.words);
    let gone = trimtab(&["recall", handle, "--store", &store]);
    assert_eq!(gone.code, Some(1));
    assert!(gone.words.contains("no block has the handle"), "{}", gone.words);
}

#[test]
fn wrong_words_are_told() {
    let (_folder, store, _) = kept();
    let check = |arguments: &[&str], code: i32, words: &str| {
        let run = trimtab(&[arguments, &["--store", &store]].concat());
        assert_eq!(run.code, Some(code), "{arguments:?}");
        assert!(run.words.contains(words), "{arguments:?}: {}", run.words);
    };
    check(&["show", "s9"], 1, "there is no session s9");
    check(&["forget", "session"], 1, "is not a session");
    check(&["forget", "--older-than", "soon"], 2, "is not an age");
    check(&["forget", "--larger-than", "2XB"], 2, "is not a size");
    check(&["forget", "--older-than", "0d"], 2, "would be every session");
    check(&["forget"], 2, "nothing says what to forget");
    check(&["recall", "xyz"], 1, "is not a handle");
    let none = trimtab(&["sessions", "--store", "target/absent/none.db"]);
    assert_eq!(none.code, Some(1));
    assert!(none.words.contains("nothing is stored yet"), "{}", none.words);
}

/// A request of a conversation in which a command printed much and others little, after so many steps.
fn after(steps: usize) -> Vec<u8> {
    let task = "Look at every part of this program, one after the other, and say what you think of it.\n"
        .repeat(300);
    let mut messages = vec![serde_json::json!({"role": "user", "content": task})];
    for step in 1..=steps {
        let lines = if step == 20 { 600 } else { 8 };
        let text: String =
            (0..lines).map(|line| format!("step {step}: part {line} is at {}\n", line * 7)).collect();
        let id = format!("toolu_{step}");
        let call = serde_json::json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": format!("./part {step}")}});
        let result = serde_json::json!({"type": "tool_result", "tool_use_id": id, "content": text});
        messages.push(serde_json::json!({"role": "assistant", "content": [call]}));
        messages.push(serde_json::json!({"role": "user", "content": [result]}));
    }
    serde_json::json!({"model": "claude-opus-5", "max_tokens": 1000, "messages": messages})
        .to_string()
        .into_bytes()
}

#[test]
fn a_cut_that_pays_is_made_where_another_process_goes_on_and_its_sum_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let [store, report] =
        ["trimtab.db", "report.json"].map(|name| folder.path().join(name).display().to_string());
    let mut cut = None;
    for steps in 1..=24 {
        let arguments = [
            "fit", "-", "--store", &store, "--policy", "steady", "--set", "other_need=1", "--explain",
            "--report", &report,
        ];
        let fitted = trimtab_reading(&arguments, &after(steps));
        assert_eq!(fitted.code, Some(0), "{}", fitted.words);
        let told: Value = serde_json::from_slice(&std::fs::read(&report).expect("a report")).expect("JSON");
        let sums = told["sums"].as_array().expect("sums").clone();
        let line = |word: &str| fitted.words.lines().find(|line| line.starts_with(word)).map(str::to_owned);
        match (&cut, sums.as_slice()) {
            (None, []) => {}
            (None, [pays]) => {
                assert!(steps > 20 && pays["when"] == "pays" && pays["blocks"] == 1, "{steps}: {pays}");
                let number = |name: &str| pays[name].as_f64().expect("a number");
                assert!(number("break_even_requests") < number("expected_requests"), "{pays}");
                let (saved, anew) = (number("saved_per_request"), number("written_anew"));
                // The command printed some 8,700 tokens; everything after it and the rest of it are some hundred.
                assert!(saved > 5_000.0 && anew > 0.0 && anew < 1_000.0, "{pays}");
                let line = line("pays ").expect("the sum");
                for part in [
                    "1 block, it pays: ",
                    " tokens fewer at every request, ",
                    " written again now; paid back ",
                ] {
                    assert!(line.contains(part), "{line}");
                }
                cut = Some(saved);
            }
            (Some(saved), [before]) => {
                assert!(before["when"] == "before" && before["written_anew"] == 0, "{before}");
                assert_eq!(before["saved_per_request"].as_f64(), Some(*saved), "sent again as it was");
            }
            (_, other) => panic!("{steps}: {other:?}"),
        }
    }
    assert!(cut.is_some(), "nothing was cut");
}

/// The handles in the notes of a request.
fn handles(text: &str) -> Vec<String> {
    let pattern = regex::Regex::new(r"recall (?:--store \S+ )?([0-9a-f]{12})").expect("a pattern");
    pattern.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

fn fit_again(store: &str, more: &[&str]) -> Run {
    let fitted = trimtab(
        &[
            &[
                "fit", RECORDING, "--policy", "recent", "--set", "batch=1", "--budget", "20000", "--store",
                store,
            ],
            more,
        ]
        .concat(),
    );
    assert_eq!(fitted.code, Some(0), "{}", fitted.words);
    fitted
}

/// A store that holds a request of which something is hidden that would fit.
fn kept_with_room() -> (tempfile::TempDir, String, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("trimtab.db").display().to_string();
    let hidden = handles(&fit_again(&store, &[]).text());
    assert!(hidden.len() > 1, "{hidden:?}");
    (folder, store, hidden)
}

#[test]
fn what_is_pinned_is_shown_again_at_once_and_stays_until_it_is_unpinned() {
    let (_folder, store, hidden) = kept_with_room();
    let pinned = trimtab(&["pin", &hidden[0], "--store", &store]);
    assert!(pinned.words.contains("is pinned in s1"), "{}", pinned.words);
    let again = fit_again(&store, &["--explain"]);
    assert!(!handles(&again.text()).contains(&hidden[0]));
    assert!(again.words.contains("[pinned: shown again]"), "{}", again.words);
    let later = fit_again(&store, &["--explain"]);
    assert!(later.words.contains("[pinned] ") && later.out == again.out, "{}", later.words);
    let list = json(&trimtab(&["pin", "--list", "--json", "--store", &store]));
    assert_eq!(
        (list[0]["handle"].as_str(), list[0]["session"].as_str()),
        (Some(hidden[0].as_str()), Some("s1"))
    );
    assert!(trimtab(&["pin", "--list", "--session", "s1", "--store", &store]).text().starts_with(&hidden[0]));
    assert_eq!(trimtab(&["unpin", &hidden[0], "--store", &store]).code, Some(0));
    assert!(handles(&fit_again(&store, &[]).text()).contains(&hidden[0]));
}

#[test]
fn fit_pins_with_a_flag_for_once_and_with_a_store_for_the_session() {
    let (_folder, store, hidden) = kept_with_room();
    // Nothing is kept, so that no note names a handle; the picture of the plan does.
    let without = ["fit", RECORDING, "--policy", "recent", "--budget", "20000", "--explain"];
    let once = trimtab(&[&without[..], &["--pin", &hidden[0], "--pin", &hidden[1]]].concat());
    assert!(!handles(&once.words).iter().any(|handle| hidden[..2].contains(handle)), "{}", once.words);
    assert!(handles(&trimtab(&without).words).contains(&hidden[0]));
    fit_again(&store, &["--pin", &hidden[0]]);
    assert!(!handles(&fit_again(&store, &[]).text()).contains(&hidden[0]), "it is remembered");
    let tight = trimtab(&["fit", RECORDING, "--policy", "recent", "--budget", "100", "--pin", &hidden[0]]);
    assert!(tight.code == Some(1) && tight.words.contains("pinned "), "{}", tight.words);
    let unknown = trimtab(&[&without[..], &["--pin", "0123456789ab"]].concat());
    assert!(
        unknown.code == Some(1) && unknown.words.contains("no block has the handle 0123456789ab"),
        "{}",
        unknown.words
    );
}

#[test]
fn an_undo_waits_for_a_free_moment_unless_it_is_asked_for_now() {
    let (_folder, store, hidden) = kept_with_room();
    let undone = trimtab(&["undo", &hidden[0], "--store", &store]);
    assert!(undone.words.contains("as soon as that costs nothing"), "{}", undone.words);
    assert!(handles(&fit_again(&store, &[]).text()).contains(&hidden[0]), "the cache is warm");
    let now = trimtab(&["undo", &hidden[1], "--now", "--store", &store]);
    assert!(now.words.contains("with the next request"), "{}", now.words);
    let shown = fit_again(&store, &["--explain"]);
    assert!(!handles(&shown.text()).contains(&hidden[1]));
    assert!(shown.words.contains("[shown again] "), "{}", shown.words);
    let again = trimtab(&["undo", &hidden[1], "--store", &store]);
    assert!(again.code == Some(1) && again.words.contains("is not hidden"), "{}", again.words);
}

#[test]
fn a_session_is_restored_as_it_came_and_as_it_was_sent() {
    let (folder, store, _) = kept_with_room();
    let whole = trimtab(&["fit", RECORDING, "--policy", "none"]);
    let first = fit_again(&store, &[]);
    let tight = trimtab(&["fit", RECORDING, "--policy", "ladder", "--budget", "6000", "--store", &store]);
    let restored = |more: &[&str]| trimtab(&[&["restore", "s1", "--store", &store], more].concat());
    assert_eq!(restored(&[]).out, whole.out);
    assert_eq!(restored(&["--request", "1"]).out, whole.out);
    assert_eq!(restored(&["--sent"]).out, tight.out, "the latest");
    assert_eq!(restored(&["--sent", "--request", "2"]).out, first.out);
    let file = folder.path().join("request.json");
    let name = file.display().to_string();
    let written = restored(&["--out", &name]);
    assert!(written.out.is_empty() && written.words.contains("request 3 of 3 of s1"), "{}", written.words);
    assert_eq!(std::fs::read(&file).expect("the file"), whole.out);
    let refused = restored(&["--sent", "--out", &name]);
    assert!(refused.code == Some(1) && refused.words.contains("--force"), "{}", refused.words);
    assert_eq!(std::fs::read(&file).expect("the file"), whole.out, "nothing is overwritten");
    assert_eq!(restored(&["--sent", "--out", &name, "--force"]).code, Some(0));
    assert_eq!(std::fs::read(&file).expect("the file"), tight.out);
}

#[test]
fn wrong_words_about_single_blocks_and_requests_are_told() {
    let (_folder, store, hidden) = kept_with_room();
    let check = |arguments: &[&str], code: i32, words: &str| {
        let run = trimtab(&[arguments, &["--store", &store]].concat());
        assert_eq!(run.code, Some(code), "{arguments:?}: {}", run.words);
        assert!(run.words.contains(words), "{arguments:?}: {}", run.words);
    };
    check(&["pin"], 2, "required");
    check(&["pin", "xyz"], 2, "is not a handle");
    check(&["pin", "0123456789ab"], 1, "no block has the handle");
    check(&["pin", &hidden[0], "--session", "s9"], 1, "there is no session s9");
    check(&["unpin", &hidden[0]], 1, "is not pinned");
    check(&["undo", "0123456789ab"], 1, "no block has the handle");
    check(&["restore", "s9"], 1, "there is no session s9");
    check(&["restore", "s1", "--request", "9"], 1, "has the requests 1 to 1");
    check(&["restore", "s1", "--request", "0"], 2, "0 is not in");
    check(&["restore", "s1", "--force"], 2, "--out");
}

#[test]
fn a_store_is_one_file_that_can_be_copied_at_any_time() {
    let (folder, store, fitted) = kept();
    let names = || {
        let files = std::fs::read_dir(folder.path().join("new")).expect("a folder");
        files.map(|file| file.expect("a file").file_name().into_string().expect("text")).collect::<Vec<_>>()
    };
    assert_eq!(names(), ["trimtab.db"]);
    let (_, handle) = common::recall_in(&fitted.text()).expect("something is hidden");
    let copy = folder.path().join("copy.db").display().to_string();
    let done = trimtab(&["backup", &copy, "--store", &store]);
    assert_eq!(done.code, Some(0), "{}", done.words);
    let recalled = trimtab(&["recall", &handle, "--store", &copy]);
    assert_eq!(recalled.out, trimtab(&["recall", &handle, "--store", &store]).out);
    assert_eq!(trimtab(&["backup", &copy, "--store", &store]).code, Some(1), "nothing is overwritten");
}

#[test]
fn several_sessions_are_forgotten_only_when_that_is_confirmed() {
    let (_folder, store, _) = kept();
    let other = r#"{"model":"gpt-5","messages":[{"role":"user","content":"Something else."}]}"#;
    let fitted = trimtab_reading(&["fit", "-", "--budget", "6000", "--store", &store], other.as_bytes());
    assert_eq!(fitted.code, Some(0), "{}", fitted.words);
    let count = || json(&trimtab(&["sessions", "--store", &store, "--json"])).as_array().map(Vec::len);
    let asked = trimtab(&["forget", "--larger-than", "0", "--store", &store]);
    assert_eq!((asked.code, count()), (Some(2), Some(2)), "{}", asked.words);
    assert!(asked.words.contains("--yes"), "{}", asked.words);
    let done = trimtab(&["forget", "--larger-than", "0", "--yes", "--store", &store]);
    assert_eq!((done.code, count()), (Some(0), Some(0)), "{}", done.words);
}

/// Tells whether disks can be made here; says so where they cannot.
#[cfg(target_os = "linux")]
fn can_mount() -> bool {
    let try_it = ["--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt"];
    let can = std::process::Command::new("unshare").args(try_it).status().is_ok_and(|done| done.success());
    if !can {
        eprintln!("NOT TESTED: this machine lets nobody mount a disk in a name space of their own");
    }
    can
}

/// A process that crashed leaves a log. On a full disk nobody can make the file by which readers share it.
#[cfg(target_os = "linux")]
#[test]
fn sessions_are_forgotten_on_a_full_disk_after_a_crash() {
    if !can_mount() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let [disk, kept, crashed] = ["disk", "kept.db", "crashed.db"].map(|name| folder.path().join(name));
    std::fs::create_dir(&disk).expect("a folder");
    for words in ["First.", "Second.", "Third."] {
        let request = format!(r#"{{"model":"gpt-5","messages":[{{"role":"user","content":"{words}"}}]}}"#);
        let arguments = ["fit", "-", "--budget", "6000", "--store", kept.to_str().expect("text")];
        assert_eq!(trimtab_reading(&arguments, request.as_bytes()).code, Some(0));
    }
    // The files as they are while a process has the store open and has just written to it.
    let store = trimtab_store::Sqlite::open(&kept).expect("a store");
    let usage = trimtab_core::Usage::default();
    trimtab_store::Store::record_usage(&store, trimtab_store::RequestId(1), &usage).expect("the store");
    std::fs::copy(&kept, &crashed).expect("a copy");
    std::fs::copy(kept.with_extension("db-wal"), crashed.with_extension("db-wal")).expect("a copy");
    drop(store);
    let script = r#"mount -t tmpfs -o size=1m tmpfs "$1" && cp "$2" "$2-wal" "$1" && cd "$1" && export TRIMTAB_STORE="$1/crashed.db"
        { dd if=/dev/zero of=other bs=4096 || :; } 2> /dev/null
        "$0" forget s1 s2 --yes && rm other && "$0" sessions --all"#;
    let mut inside = std::process::Command::new("unshare");
    inside.args(["--map-root-user", "--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_trimtab")]);
    let done = inside.arg(&disk).arg(&crashed).output().expect("an end");
    let words = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && words.contains("2 sessions deleted"), "{words}");
    let left = String::from_utf8_lossy(&done.stdout).into_owned();
    let listed = left.lines().skip_while(|line| !line.starts_with("id ")).count();
    assert_eq!(listed, 2, "a heading and one session: {left}");
}
