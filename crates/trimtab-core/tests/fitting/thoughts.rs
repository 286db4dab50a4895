//! Reasoning of earlier turns makes room before anything that may be needed: where the format and the model allow it, and never that of a
//! running tool loop or of the latest answer.

use serde_json::{Value, json};
use trimtab_core::{Format, Memory, Millis, Policy, Settings, Tokens, find_model, fit};

use crate::checker;

fn lines(count: usize, of: &str) -> String {
    (0..count).map(|line| format!("{of} {line}: {}\n", line * 37 % 101)).collect()
}

/// Three turns, each with two calls and an answer; the last one runs. Every message of the model begins with reasoning.
fn conversation() -> Value {
    let thought = |name: &str| {
        let thinking = lines(40, &format!("Thought {name}"));
        json!({"type": "thinking", "thinking": thinking, "signature": format!("sig{name}")})
    };
    let mut messages = Vec::new();
    for turn in 0..3 {
        messages.push(json!({"role": "user", "content": format!("Please do part {turn}.")}));
        for call in 0..2 {
            let name = format!("{turn}{call}");
            let asked = json!({"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": format!("src/{name}.rs")}});
            let text = lines(60, &format!("File {name}"));
            messages.push(json!({"role": "assistant", "content": [thought(&name), asked]}));
            messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": text}]}));
        }
        if turn < 2 {
            let answer = json!({"type": "text", "text": format!("Part {turn} is done.")});
            messages.push(json!({"role": "assistant", "content": [thought(&format!("{turn}2")), answer]}));
        }
    }
    json!({"model": "claude-opus-5", "max_tokens": 9000, "thinking": {"type": "adaptive"}, "messages": messages})
}

/// Fits a conversation into a share of what it counts; gives what is sent, and that fitted again.
fn fit_into(conversation: &Value, share: f64, model: &str) -> Value {
    let policy = Policy::shipped_with("steady", &[("cold_low_water".to_owned(), 0.98)]).expect("a policy");
    let settings = Settings::new(policy).with_format(Format::Anthropic).with_cold_cache();
    let settings = settings.with_prices(find_model(model).ok());
    let bytes = conversation.to_string().into_bytes();
    let fit_with = |bytes: Vec<u8>, budget: Option<Tokens>| {
        fit(bytes, &Memory::default(), &settings.clone().with_budget(budget), Millis(0)).expect("a fit")
    };
    let whole = fit_with(bytes.clone(), None).plan.before();
    let once = fit_with(bytes, Some(whole.scale(share)));
    let twice = fit_with(once.request.clone(), Some(whole.scale(share)));
    assert_eq!(String::from_utf8_lossy(&twice.request), String::from_utf8_lossy(&once.request));
    let sent = serde_json::from_slice(&once.request).expect("JSON");
    assert_eq!(checker::new_faults("anthropic", conversation, &sent), Vec::<String>::new());
    sent
}

/// Returns the names of the thoughts, or of the files, that are sent.
fn names_sent(sent: &Value, what: &str) -> Vec<String> {
    let text = sent.to_string();
    let names = (0..3).flat_map(|turn| (0..3).map(move |call| format!("{turn}{call}")));
    names
        .filter(|name| {
            text.contains(&format!("{what} {name} 59: ")) || text.contains(&format!("{what} {name} 39: "))
        })
        .collect()
}

#[test]
fn reasoning_of_earlier_turns_goes_before_any_result_and_that_of_the_running_loop_stays() {
    let all = conversation();
    let sent = fit_into(&all, 0.9, "claude-opus-5");
    assert_eq!(names_sent(&sent, "File"), ["00", "01", "10", "11", "20", "21"]);
    let left = names_sent(&sent, "Thought");
    assert!(left.len() < 8 && left.ends_with(&["20".to_owned(), "21".to_owned()]), "{left:?}");
    // All that may go is gone where room is short, and an exchange can still go when its reasoning went before.
    let sent = fit_into(&all, 0.35, "claude-opus-5");
    assert_eq!(names_sent(&sent, "Thought"), ["20", "21"]);
}

#[test]
fn a_model_that_binds_its_reasoning_keeps_it_until_something_before_it_changes() {
    let sent = fit_into(&conversation(), 0.9, "claude-opus-5-5");
    let left = names_sent(&sent, "Thought");
    assert!(left.is_empty() || left.len() == 8, "{left:?}");
}

#[test]
fn the_reasoning_of_the_latest_answer_stays_when_a_new_turn_begins() {
    let mut all = conversation();
    let messages = all["messages"].as_array_mut().expect("messages");
    let thought = json!({"type": "thinking", "thinking": lines(40, "Thought 22"), "signature": "sig22"});
    messages
        .push(json!({"role": "assistant", "content": [thought, {"type": "text", "text": "All is done."}]}));
    messages.push(json!({"role": "user", "content": "Thank you. What is left?"}));
    let sent = fit_into(&all, 0.5, "claude-opus-5");
    // The latest exchange is kept as well.
    assert_eq!(names_sent(&sent, "Thought"), ["21", "22"]);
}
