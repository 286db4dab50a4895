//! The tools as an agent meets them, over a recording and over a store that kept it.

use std::path::{Path, PathBuf};

use trimtab_core::{Millis, Policy, Settings, fit, parse};
use trimtab_store::{Append, Secrets, SessionLabel, Sqlite, Store};

use super::*;
use crate::{
    args::{StorePathArgs, StoreViewArgs},
    mcp::source::ToolSource,
};

const MOST: usize = 20_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A recording that the project made.
fn recorded() -> ToolLibrary {
    library(ToolSource::File(root().join("fixtures/recordings/claude-code.jsonl")))
}

fn library(source: ToolSource) -> ToolLibrary {
    ToolLibrary { source, secrets: Secrets::default() }
}

/// A store as a server sees it that is started in a project.
fn kept_in(path: &Path, project: &str) -> ToolLibrary {
    let store = StorePathArgs { path: Some(path.to_owned()) };
    library(ToolSource::Store(StoreViewArgs { store, project: Some(project.to_owned()), all: false }))
}

fn call(source: &ToolLibrary, most: usize, tool: &str, arguments: &Value) -> Result<ToolAnswer> {
    let tool = TOOLS.iter().find(|described| described.name == tool).expect("a tool");
    tool.call(source, most, arguments.as_object().expect("an object").clone())
}

/// Calls a tool that answers; gives its text and what is said about it.
#[expect(clippy::needless_pass_by_value, reason = "tests say in place what is asked")]
fn check(source: &ToolLibrary, most: usize, tool: &str, arguments: Value) -> (String, String) {
    let answer = call(source, most, tool, &arguments).expect("an answer");
    (answer.text, answer.note.unwrap_or_default())
}

#[expect(clippy::needless_pass_by_value, reason = "tests say in place what is asked")]
fn fault(source: &ToolLibrary, tool: &str, arguments: Value) -> String {
    format!("{:#}", call(source, MOST, tool, &arguments).expect_err("it is wrong"))
}

/// The handle of a block of about thirty lines, and its text.
fn sizable() -> (String, String) {
    let ToolSource::File(file) = recorded().source else { unreachable!("it is a file") };
    let recording = trimtab_replay::read(&std::fs::read(file).expect("a fixture")).expect("a recording");
    let history = &recording.segments[recording.longest_number() - 1].history;
    let text = |block: &trimtab_core::Block| {
        String::from_utf8(trimtab_core::block_original(history, block).into_owned()).expect("text")
    };
    let away = |block: &&trimtab_core::Block| text(block).lines().count().abs_diff(30);
    let sizable = history.blocks().iter().min_by_key(away).expect("a block");
    (trimtab_core::block_handle(history, sizable), text(sizable))
}

#[test]
fn an_original_comes_back_exactly_and_nothing_is_said_about_it() {
    let (handle, text) = sizable();
    let (recalled, note) = check(&recorded(), MOST, "recall", json!({"handle": handle}));
    assert_eq!((recalled, note.as_str()), (text, ""));
}

#[test]
fn a_long_original_is_read_piece_by_piece_as_the_notes_say() {
    let (handle, text) = sizable();
    let (mut all, mut arguments) = (String::new(), json!({"handle": handle}));
    for _ in 0..1000 {
        let (piece, note) = check(&recorded(), 60, "recall", arguments);
        all += &piece;
        let Some((_, behind)) = note.split_once("lines=\"") else { break };
        let (lines, behind) = behind.split_once('"').expect("the end of the range");
        arguments = json!({"handle": handle, "lines": lines});
        if let Some((_, offset)) = behind.split_once("offset=") {
            let digits: String = offset.chars().take_while(char::is_ascii_digit).collect();
            arguments["offset"] = json!(digits.parse::<usize>().expect("a number"));
        }
    }
    assert_eq!(all, text);
}

#[test]
fn lines_and_matches_are_chosen() {
    let (handle, text) = sizable();
    let second: String = text.lines().skip(1).take(2).map(|line| format!("{line}\n")).collect();
    let (lines, _) = check(&recorded(), MOST, "recall", json!({"handle": handle, "lines": "2-3"}));
    assert_eq!(lines, second);
    let (found, _) =
        check(&recorded(), MOST, "recall", json!({"handle": handle, "grep": "^.", "lines": "1-1"}));
    assert_eq!(found, format!("1: {}\n", text.lines().next().expect("a line")));
    let (none, note) = check(&recorded(), MOST, "recall", json!({"handle": handle, "grep": "zzzzqqqq"}));
    assert_eq!((none.as_str(), note.as_str()), ("", "[trimtab: no line matches.]"));
}

#[test]
fn what_is_found_can_be_recalled() {
    let (found, _) = check(&recorded(), MOST, "search_history", json!({"text": "fees", "limit": 3}));
    assert!((1..=3).contains(&found.lines().count()), "{found}");
    for row in found.lines() {
        let handle = row.split(' ').next().expect("a handle");
        let (text, _) = check(&recorded(), 1_000_000, "recall", json!({"handle": handle}));
        assert!(text.to_lowercase().contains("fees"), "{row}");
    }
    let (none, note) = check(&recorded(), MOST, "search_history", json!({"text": "zzzzqqqq"}));
    assert!(none.is_empty() && note.contains("no block holds all of these words"), "{note}");
}

#[test]
fn files_and_changes_are_told_with_their_steps() {
    let (changes, _) = check(&recorded(), MOST, "changelog", json!({}));
    let path = changes.lines().next().expect("a file was changed").to_owned();
    assert!(changes.contains("step"), "{changes}");
    let (file, note) = check(&recorded(), MOST, "file_at", json!({"path": path}));
    assert!(file.starts_with("1\t") || file.starts_with('['), "{file}");
    assert!(note.contains("after step"), "{note}");
    let (one, _) = check(&recorded(), MOST, "file_at", json!({"path": path, "lines": "2"}));
    assert_eq!(one.lines().count(), 1, "{one}");
}

#[test]
fn files_touched_are_listed_by_question() {
    let (all, _) = check(&recorded(), MOST, "files", json!({}));
    assert!(
        all.contains("ledger/money.py\n") && all.contains(", modified, ") && all.contains("  begins: "),
        "{all}"
    );
    let (modified, _) = check(&recorded(), MOST, "files", json!({"modified": true}));
    assert!(
        modified.lines().count() < all.lines().count() && !modified.contains("not modified"),
        "{modified}"
    );
    let (none, note) = check(&recorded(), MOST, "files", json!({"stale": 100_000}));
    assert!(none.is_empty() && note.contains("none is such a file"), "{note}");
}

#[test]
fn a_list_that_is_cut_says_how_much_more_there_is_and_how_to_get_it() {
    for tool in ["changelog", "files"] {
        let (all, _) = check(&recorded(), MOST, tool, json!({}));
        let (mut read, mut arguments) = (String::new(), json!({}));
        for _ in 0..1000 {
            let (piece, note) = check(&recorded(), 400, tool, arguments);
            read += &piece;
            let left = all.lines().count() - read.lines().count();
            if left == 0 {
                break;
            }
            assert!(note.contains(&format!("+{left} more lines; call {tool} with lines=\"")), "{note}");
            let lines = note.split('"').nth(1).expect("the range");
            arguments = json!({"lines": lines});
        }
        assert_eq!(read, all);
    }
}

#[test]
fn what_is_wrong_is_told_in_words() {
    let source = recorded();
    let check = |tool: &str, arguments: Value, words: &str| {
        let fault = fault(&source, tool, arguments);
        assert!(fault.contains(words), "{fault}");
    };
    check("recall", json!({}), "missing field `handle`");
    check("recall", json!({"handel": "x"}), "unknown field `handel`");
    check("recall", json!({"handle": 7}), "expected a string");
    check("recall", json!({"handle": "0123456789ab"}), "no block has the handle 0123456789ab");
    let (handle, _) = sizable();
    check("recall", json!({"handle": handle, "lines": "9-2"}), "write \"40-80\"");
    check("recall", json!({"handle": handle, "lines": "99999"}), "there is no line 99999");
    check("recall", json!({"handle": handle, "grep": "("}), "grep");
    check("search_history", json!({"text": "?!"}), "holds no word");
    check("file_at", json!({"path": "no/such/file.rs"}), "is not known");
    check("file_at", json!({"path": "x", "step": 99_999}), "has no step 99999");
    check("files", json!({"recent": "x"}), "wrong arguments");
    check("changelog", json!({"session": "77"}), "the recording has the segments");
}

#[test]
fn a_store_that_is_not_there_yet_is_told_and_not_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("none.db");
    let source = kept_in(&path, "any");
    assert!(fault(&source, "recall", json!({"handle": "0123456789ab"})).contains("nothing is stored yet"));
    assert!(!path.exists());
}

#[test]
fn a_block_is_pinned_and_taken_back_in_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trimtab.db");
    let store = Sqlite::open(&path).expect("a store");
    let call = |number: usize| {
        let text = format!("line of result {number}\n").repeat(200);
        [
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": format!("c{number}"), "type": "function",
                "function": {"name": "look", "arguments": "{}"}}]}),
            json!({"role": "tool", "tool_call_id": format!("c{number}"), "content": text}),
        ]
    };
    let messages: Vec<Value> =
        [json!({"role": "user", "content": "Look."})].into_iter().chain((0..9).flat_map(call)).collect();
    let request = json!({"model": "gpt-5", "messages": messages}).to_string().into_bytes();
    let label = SessionLabel { name: None, project: Some("any") };
    let known = store.recognize(&parse(request.clone()).expect("a request"), label).expect("the store");
    let policy = Policy::shipped_with("recent", &[("keep_last".to_owned(), 3.0)]).expect("a policy");
    let fitted = fit(request, &known.memory, &Settings::new(policy), Millis(0)).expect("a plan");
    store.append_request(&Append::new(&fitted.history, &fitted.plan, &known, Millis(0))).expect("the store");
    let hidden: Vec<&str> =
        fitted.plan.decisions().iter().filter_map(|decision| decision.handle.as_deref()).collect();
    let source = kept_in(&path, "any");
    let (said, _) = check(&source, MOST, "pin", json!({"handle": hidden[0]}));
    assert!(said.contains("is pinned in s1"), "{said}");
    assert_eq!(store.pins(None).expect("the store").len(), 1);
    check(&source, MOST, "unpin", json!({"handle": hidden[0], "session": "s1"}));
    assert_eq!(store.pins(None).expect("the store").len(), 0);
    let (said, _) = check(&source, MOST, "undo", json!({"handle": hidden[1]}));
    assert!(said.contains("as soon as that costs nothing"), "{said}");
    let wishes = store.wishes(&fitted.history, fitted.plan.chain(), label).expect("the store");
    assert_eq!(wishes.undone_handles().count(), 1);
    assert!(fault(&source, "undo", json!({"handle": "0123456789ab"})).contains("no block has the handle"));
    assert!(fault(&source, "pin", json!({"handle": "x"})).contains("is not a handle"));
    assert!(
        fault(&source, "pin", json!({"handle": hidden[0], "session": "s7"}))
            .contains("there is no session s7")
    );
    assert!(fault(&recorded(), "pin", json!({"handle": hidden[0]})).contains("need a store"));
}

#[test]
fn every_tool_is_described_for_who_has_never_seen_it() {
    for tool in TOOLS {
        let schema = tool.argument_schema();
        let properties = schema["properties"].as_object().expect("properties");
        assert!(tool.about.len() > 100, "{}", tool.name);
        assert!(tool.required.iter().all(|name| properties.contains_key(*name)), "{}", tool.name);
        assert!(properties.values().all(|property| property["description"].is_string()), "{}", tool.name);
        assert_eq!(schema["additionalProperties"], false);
    }
}
