//! The rules of OpenAI's Responses.

use serde_json::Value;

use super::{argument_fault, doubled, messages};

pub(super) fn faults(request: &Value) -> Vec<String> {
    let items = messages("responses", request);
    let mut faults = Vec::new();
    let mut calls: Vec<(&str, &str)> = Vec::new();
    let mut outputs: Vec<(&str, &str)> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str().unwrap_or("message") {
            kind @ ("function_call" | "local_shell_call" | "custom_tool_call" | "tool_search_call") => {
                calls.push((family(kind), id));
                if kind == "function_call" {
                    faults.extend(argument_fault(&item["arguments"], id));
                }
            }
            kind if kind.ends_with("_output") && !id.is_empty() => {
                if !calls.contains(&(family(kind), id)) {
                    faults.push(format!("output {id} answers no call before it"));
                }
                outputs.push((family(kind), id));
            }
            "reasoning" => {
                if !item["summary"].is_array() {
                    faults.push(format!("reasoning {} has no summary", item["id"]));
                }
                // Reasoning belongs to what the model did next: more reasoning, a call or an answer.
                let next = items.get(index + 1);
                let followed = next.is_some_and(by_model);
                if item["id"].is_string() && !followed {
                    faults.push(format!("reasoning {} is not followed by its item", item["id"]));
                }
            }
            "message" => {
                let empty = item["content"].as_array().is_some_and(Vec::is_empty) || item["content"] == "";
                if empty || item["content"].is_null() {
                    faults.push(format!("an empty message of {}", item["role"]));
                }
            }
            _ => {}
        }
    }
    let waiting = calls.iter().filter(|call| !outputs.contains(call));
    faults.extend(waiting.map(|(_, id)| format!("call {id} has no output")));
    faults.extend(doubled("call", &calls.iter().map(|(_, id)| *id).collect::<Vec<_>>()));
    faults.extend(doubled("output", &outputs.iter().map(|(_, id)| *id).collect::<Vec<_>>()));
    faults
}

/// Reasoning is sealed and stands right before the item it belongs to; the newest compaction is unchanged.
pub(super) fn changes(input: &Value, output: &Value) -> Vec<String> {
    let (before, after) = (messages("responses", input), messages("responses", output));
    let mut changes = Vec::new();
    for (index, item) in after.iter().enumerate() {
        // Sealed reasoning may be equal to another: any of them will do.
        let origins: Vec<usize> = (0..before.len()).filter(|at| same_item(&before[*at], item)).collect();
        if item["type"] == "reasoning" {
            let next = after.get(index + 1);
            let followed = |at: &usize| match before.get(at + 1).filter(|next| by_model(next)) {
                Some(wanted) => next.is_some_and(|next| same_item(wanted, next)),
                None => true,
            };
            if origins.is_empty() {
                changes.push(format!("reasoning {} is changed", item["id"]));
            } else if !origins.iter().any(followed) {
                changes.push(format!("reasoning {} lost the item it belongs to", item["id"]));
            }
        }
        let previous = index.checked_sub(1).and_then(|at| after.get(at));
        let led = |at: &usize| {
            let needed =
                at.checked_sub(1).and_then(|at| before.get(at)).filter(|item| item["type"] == "reasoning");
            needed.is_none_or(|needed| previous == Some(needed))
        };
        if item["call_id"].is_string() && by_model(item) && !origins.is_empty() && !origins.iter().any(led) {
            changes.push(format!("call {} lost its reasoning", item["call_id"]));
        }
    }
    let compaction = |items: &[Value]| items.iter().rfind(|item| item["type"] == "compaction").cloned();
    if compaction(before) != compaction(after) {
        changes.push("the newest compaction is changed or gone".to_owned());
    }
    changes
}

fn family(kind: &str) -> &str {
    match kind {
        "function_call" | "local_shell_call" | "function_call_output" => "function",
        other => other.trim_end_matches("_call").trim_end_matches("_output").trim_end_matches("_call"),
    }
}

fn by_model(item: &Value) -> bool {
    let kind = item["type"].as_str().unwrap_or("message");
    item["role"] == "assistant" || kind == "reasoning" || (item["role"].is_null() && kind.ends_with("_call"))
}

/// Tells whether two items are the same, their text apart where an id identifies them.
fn same_item(one: &Value, other: &Value) -> bool {
    let told = |key: &str| one[key].is_string() && one[key] == other[key] && one["type"] == other["type"];
    if one["type"] == "reasoning" {
        return one == other;
    }
    told("call_id")
        || told("id")
        || one == other
        || (one["role"] == "assistant" && other["role"] == "assistant")
}
