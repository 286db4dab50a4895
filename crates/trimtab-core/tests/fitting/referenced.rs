//! Conversations of Responses in which items that only the server has stand beside items that stand in the request, as SDKs
//! write them where the server stores answers: what stands in the request is fitted, and nothing that belongs to a reference goes.

use serde_json::{Value, json};
use trimtab_core::{Format, Memory, Policy, Settings, Tokens, policy::policies, wire::repair};

use super::{fitted, shown, value};
use crate::{checker, read};

/// How the calls of a conversation are written.
#[derive(Clone, Copy)]
enum Calls {
    /// Reasoning and calls are references, only outputs stand in the request.
    Referenced,
    /// Reasoning is a reference, the call after it is in the request.
    BehindReasoning,
    /// A call stands in the request, its output is a reference.
    OutputReferenced,
}

fn request(calls: Calls, steps: usize) -> Vec<u8> {
    let mut input = vec![json!({"role": "user", "content": "Find the value."})];
    for step in 0..steps {
        let id = format!("call_{step}");
        let reference = |kind: &str| json!({"type": "item_reference", "id": format!("{kind}_{step}")});
        let call = json!({"type": "function_call", "call_id": id, "name": "read_file", "arguments": "{\"path\":\"a.txt\"}"});
        let lines: String =
            (0..60).map(|line| format!("result {step}, line {line}: {}\n", line * 7919)).collect();
        let output = json!({"type": "function_call_output", "call_id": id, "output": lines});
        match calls {
            Calls::Referenced => input.extend([reference("rs"), reference("fc"), output]),
            Calls::BehindReasoning => input.extend([reference("rs"), call, output]),
            Calls::OutputReferenced => input.extend([call, reference("fco"), reference("msg")]),
        }
    }
    input.push(json!({"role": "user", "content": "And now?"}));
    json!({"model": "gpt-5", "input": input}).to_string().into_bytes()
}

/// Returns an item without the text that may be another one.
fn bare(item: &Value) -> Value {
    let mut item = item.clone();
    if let Some(members) = item.as_object_mut() {
        members.remove("output");
    }
    item
}

#[track_caller]
fn check(calls: Calls, policy: &str, share: f64) -> usize {
    let bytes = request(calls, 12);
    let budget = Tokens::from_len(bytes.len() / 3).scale(share);
    let policy = Policy::find_shipped(policy).expect("a shipped policy");
    let settings = Settings::new(policy).with_budget(budget).with_format(Format::Responses).with_cold_cache();
    let fitted = fitted(&bytes, &Memory::default(), &settings, 0);
    let (before, after) = (value(&bytes), value(&fitted.request));
    let faults = checker::new_faults("responses", &before, &after);
    assert!(faults.is_empty(), "{faults:?}\n{}", shown(&fitted));
    let items = |request: &Value| -> Vec<Value> {
        request["input"].as_array().into_iter().flatten().map(bare).collect()
    };
    assert_eq!(items(&after), items(&before), "{}", shown(&fitted));
    bytes.len() - fitted.request.len()
}

#[test]
fn outputs_beside_references_are_shortened_and_nothing_goes_or_moves() {
    for (policy, _) in policies() {
        for share in [0.5, 0.1, 0.001] {
            let saved = check(Calls::Referenced, policy, share);
            assert!(saved > 0 || policy == "none", "{policy} at {share} saves nothing");
            check(Calls::BehindReasoning, policy, share);
            check(Calls::OutputReferenced, policy, share);
        }
    }
}

#[test]
fn references_count_as_steps_of_the_model() {
    let request = String::from_utf8(request(Calls::Referenced, 12)).expect("UTF-8");
    let history = read(&request, Format::Responses);
    assert_eq!(history.messages().last().map(|entry| entry.step), Some(12));
}

#[test]
fn an_output_whose_call_is_a_reference_is_no_orphan_to_be_repaired() {
    for calls in [Calls::Referenced, Calls::BehindReasoning, Calls::OutputReferenced] {
        let request = String::from_utf8(request(calls, 3)).expect("UTF-8");
        let (repaired, mended) = repair(&read(&request, Format::Responses));
        assert!(mended.is_empty() && repaired == request.as_bytes(), "{mended:?}");
    }
}
