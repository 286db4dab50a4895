//! Moments at which hiding costs nothing though no cache expired: the client changed an earlier part, or a turn begins at a model
//! that binds its reasoning to its prefix.

use serde_json::{Value, json};
use trimtab_core::{BlockKind, Format, Memory, Millis, Policy, Settings, Verdict, fit};

use crate::checker;

/// Settings under which a pause makes everything old, so that what is hidden is hidden for the moment and not for its age.
fn settings() -> Settings {
    let policy = "about = \"A test.\"\ncold_ages = 0.1\n[[step]]\nwhen = \"pays\"\nselect = { results_after = 10, tokens_over = 60 }\ndo = \"clear\"\n";
    Settings::new(Policy::from_toml("test", policy, &[]).expect("a policy")).with_format(Format::Anthropic)
}

/// A conversation of tool loops: one turn for each of these numbers of calls.
fn conversation(model: &str, head: &str, turns: &[usize], thinks: bool) -> Vec<u8> {
    let mut messages: Vec<Value> = Vec::new();
    for (turn, calls) in turns.iter().enumerate() {
        let ask = json!({"type": "text", "text": format!("Please do part {turn}.")});
        messages.push(json!({"role": "user", "content": [ask]}));
        for number in 0..*calls {
            let id = format!("toolu_{turn}_{number}");
            let mut said = Vec::new();
            if thinks {
                said.push(json!({"type": "thinking", "thinking": format!("Part {turn}, step {number}."), "signature": format!("sig{turn}{number}")}));
            }
            said.push(json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": format!("make {turn} {number}")}}));
            messages.push(json!({"role": "assistant", "content": said}));
            let text: String =
                (0..90).map(|line| format!("{turn}.{number} line {line} of a listing\n")).collect();
            messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]}));
        }
        let is_last = turn + 1 == turns.len();
        if !is_last {
            messages.push(json!({"role": "assistant", "content": [{"type": "text", "text": format!("Part {turn} is done.")}]}));
        }
    }
    json!({"model": model, "max_tokens": 9000, "thinking": {"type": "adaptive"}, "system": head, "messages": messages})
        .to_string()
        .into_bytes()
}

/// Fits requests one after the other, so many minutes apart; returns how many results the last one hides, and its bytes.
fn hidden_after(minutes: i64, requests: &[Vec<u8>]) -> (usize, Vec<u8>) {
    let (mut memory, settings) = (Memory::default(), settings());
    let mut last = (0, Vec::new());
    for (number, request) in (0..).zip(requests) {
        let now = Millis(number * minutes * 60_000);
        let fitted = fit(request.clone(), &memory, &settings, now).expect("a request");
        memory.remember_sent(&fitted.plan, now);
        let is_hidden = |number: &usize| {
            let decision = &fitted.plan.decisions()[*number];
            fitted.history.blocks()[*number].kind == BlockKind::Result && decision.verdict != Verdict::Keep
        };
        let hidden = (0..fitted.plan.decisions().len()).filter(is_hidden).count();
        last = (hidden, fitted.request);
    }
    last
}

#[test]
fn what_follows_a_change_of_the_head_is_as_old_as_at_a_pause() {
    let talk = |head: &str, calls| conversation("claude-sonnet-4-5", head, &[calls], false);
    let same = [talk("It is Monday.", 6), talk("It is Monday.", 7)];
    assert_eq!(hidden_after(1, &same).0, 0, "the cache is alive, and nothing is old enough");
    let changed = [talk("It is Monday.", 6), talk("It is Tuesday.", 7)];
    assert_eq!(hidden_after(1, &changed).0, 6, "all but the newest are ten results old by a tenth");
    let again = [talk("It is Monday.", 6), talk("It is Tuesday.", 7), talk("It is Tuesday.", 8)];
    assert_eq!(hidden_after(1, &again).0, 6, "the moment is over");
    let twice = [talk("It is Monday.", 6), talk("It is Tuesday.", 7), talk("It is Wednesday.", 8)];
    assert_eq!(hidden_after(1, &twice).0, 7, "what was hidden stays hidden although every hash is another");
}

#[test]
fn where_a_turn_begins_old_reasoning_goes_with_what_is_hidden() {
    const BINDS: &str = "claude-fable-5-1";
    let talk = |turns: &[usize]| conversation(BINDS, "Be brief.", turns, true);
    let (hidden, request) = hidden_after(60, &[talk(&[12]), talk(&[12, 0])]);
    assert_eq!(hidden, 11, "no tool loop runs: all but the newest are old at a pause");
    let sent: Value = serde_json::from_slice(&request).expect("JSON");
    assert_eq!(checker::faults("anthropic", &sent), Vec::<String>::new());
    assert!(
        sent.to_string().contains("Part 0, step 0."),
        "what stands before the first edit is bound to nothing that changed"
    );
    assert!(!sent.to_string().contains("Part 0, step 1."), "what follows it is");
    let running = talk(&[13]);
    assert_eq!(
        hidden_after(60, &[talk(&[12]), running.clone()]),
        (0, running),
        "within a loop nothing changes"
    );
}
