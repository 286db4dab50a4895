//! Arguments of calls, in every format: what each value of the setting removes, and what is always kept.

use serde_json::{Value, json};
use trimtab_core::{Format, Memory, Millis, Policy, Settings, Tokens, fit};

/// Calls in order: name, arguments, result. The last one waits for its answer.
fn calls() -> Vec<(&'static str, Value, Option<String>)> {
    let lines = |word: &str, count: usize| -> String {
        (0..count).map(|line| format!("{word} number {line} of the file\n")).collect()
    };
    let mut calls = vec![
        ("Write", json!({"file_path": "a.rs", "content": lines("written", 40)}), Some("Written.".to_owned())),
        ("Read", json!({"file_path": "a.rs"}), Some(lines("written", 40))),
        (
            "Edit",
            json!({"file_path": "b.rs", "old_string": lines("old", 40), "new_string": lines("new", 40), "intent": "i".repeat(400)}),
            Some("The file b.rs has been updated.".to_owned()),
        ),
        (
            "Bash",
            json!({"command": format!("cat <<EOF\n{}EOF", lines("piped", 40)), "timeout": 5}),
            Some("ok".to_owned()),
        ),
        ("Write", json!({"file_path": "c.rs", "content": lines("unread", 40)}), Some("Written.".to_owned())),
    ];
    calls.extend(
        (0..6).map(|number| ("Bash", json!({"command": format!("make {number}")}), Some("ok".to_owned()))),
    );
    calls.push((
        "Write",
        json!({"file_path": "d.rs", "content": lines("recent", 40)}),
        Some("Written.".to_owned()),
    ));
    calls.push(("Write", json!({"file_path": "e.rs", "content": lines("pending", 40)}), None));
    calls
}

fn request(format: Format) -> Vec<u8> {
    let mut messages = Vec::new();
    for (number, (name, arguments, result)) in calls().into_iter().enumerate() {
        let id = format!("call_{number}");
        let (call, answer) = match format {
            Format::Anthropic => (
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": arguments}]}),
                result.map(|text| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]})),
            ),
            Format::Chat => (
                json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}}]}),
                result.map(|text| json!({"role": "tool", "tool_call_id": id, "content": text})),
            ),
            Format::Responses => (
                json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments.to_string()}),
                result.map(|text| json!({"type": "function_call_output", "call_id": id, "output": text})),
            ),
            Format::Gemini => (
                json!({"role": "model", "parts": [{"functionCall": {"name": name, "args": arguments}}]}),
                result.map(|text| json!({"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"output": text}}}]})),
            ),
        };
        messages.push(call);
        messages.extend(answer);
    }
    let (list, first) = match format {
        Format::Anthropic | Format::Chat => ("messages", json!({"role": "user", "content": "Go on."})),
        Format::Responses => ("input", json!({"role": "user", "content": "Go on."})),
        Format::Gemini => ("contents", json!({"role": "user", "parts": [{"text": "Go on."}]})),
    };
    messages.insert(0, first);
    json!({"model": "gpt-5", (list): messages}).to_string().into_bytes()
}

/// Returns the arguments that each call is sent with.
fn sent(format: Format, policy: &str, inputs: f64, budget: u64) -> Vec<Value> {
    let policy = Policy::shipped_with(policy, &[("inputs".to_owned(), inputs)]).expect("a policy");
    let settings = Settings::new(policy).with_budget(Tokens(budget)).with_format(format).with_cold_cache();
    let fitted = fit(request(format), &Memory::default(), &settings, Millis(0)).expect("a fit");
    let request: Value = serde_json::from_slice(&fitted.request).expect("JSON");
    let text = |text: &Value| serde_json::from_str(text.as_str().expect("a text")).expect("JSON in a text");
    let list =
        ["messages", "input", "contents"].iter().find_map(|key| request[*key].as_array()).expect("messages");
    let calls = list.iter().filter_map(|message| match format {
        Format::Anthropic => message["content"].get(0).map(|block| block["input"].clone()),
        Format::Chat => message["tool_calls"].get(0).map(|call| text(&call["function"]["arguments"])),
        Format::Responses => message.get("arguments").map(text),
        Format::Gemini => message["parts"].get(0).map(|part| part["functionCall"]["args"].clone()),
    });
    calls.filter(Value::is_object).collect()
}

/// Names the arguments that are sent otherwise than they came.
fn changed(format: Format, policy: &str, inputs: f64, budget: u64) -> Vec<String> {
    let after = sent(format, policy, inputs, budget);
    let before: Vec<Value> = calls().into_iter().map(|(_, arguments, _)| arguments).collect();
    assert_eq!(before.len(), after.len(), "{policy}");
    let pairs = before.iter().zip(&after);
    pairs
        .flat_map(|(before, after)| {
            let keys = before.as_object().expect("an object").iter();
            let file = before["file_path"].as_str().unwrap_or("-");
            keys.filter(|(key, value)| after[key.as_str()] != **value)
                .map(move |(key, _)| format!("{file} {key}"))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// A budget that everything fits into: policies that hide at any time do it all the same.
const ROOM: u64 = 1_000_000;

#[test]
fn off_means_that_no_argument_is_touched() {
    for format in Format::ALL {
        for policy in ["steady", "per-tool", "recent", "retention"] {
            assert_eq!(changed(format, policy, 0.0, ROOM), Vec::<String>::new(), "{format} {policy}");
        }
    }
}

#[test]
fn safe_means_what_an_edit_replaced_and_what_was_written_to_a_file_that_was_shown_since() {
    for format in Format::ALL {
        for policy in ["steady", "per-tool", "recent", "retention"] {
            assert_eq!(
                changed(format, policy, 1.0, ROOM),
                ["a.rs content", "b.rs old_string"],
                "{format} {policy}"
            );
        }
    }
}

#[test]
fn all_means_every_long_text_that_is_neither_recent_nor_a_name_nor_waiting() {
    let all = ["a.rs content", "b.rs new_string", "b.rs old_string", "- command", "c.rs content"];
    for format in Format::ALL {
        for policy in ["steady", "per-tool", "recent", "retention"] {
            assert_eq!(changed(format, policy, 2.0, ROOM), all, "{format} {policy}");
        }
    }
}

#[test]
fn policies_that_wait_for_pressure_wait_with_arguments_too() {
    let total = |format| {
        let settings = Settings::new(Policy::find_shipped("none").expect("a policy")).with_format(format);
        fit(request(format), &Memory::default(), &settings, Millis(0)).expect("a fit").plan.before().0
    };
    for format in Format::ALL {
        for policy in ["priority", "age", "supersede", "ladder"] {
            assert_eq!(changed(format, policy, 2.0, ROOM), Vec::<String>::new(), "{format} {policy}");
            let pressed = changed(format, policy, 2.0, total(format) * 9 / 10);
            assert_eq!(pressed.first().map(String::as_str), Some("a.rs content"), "{format} {policy}");
        }
    }
}

#[test]
fn a_note_says_what_was_there_why_it_went_and_how_it_comes_back() {
    let arguments = sent(Format::Anthropic, "per-tool", 2.0, ROOM);
    let written = arguments[0]["content"].as_str().expect("a text");
    assert!(
        written
            .starts_with("[1,190 characters, 40 lines of this argument are hidden: superseded by step 2; "),
        "{written}"
    );
    let command = arguments[3]["command"].as_str().expect("a text");
    assert!(
        command.starts_with("cat <<EOF\n[") && command.contains("hidden: too old; trimtab recall "),
        "{command}"
    );
    assert_eq!(arguments[3]["timeout"], 5);
    assert_eq!(arguments[2]["intent"].as_str().map(str::len), Some(400), "what an edit is for stays");
}
