//! The rules of Anthropic's Messages.

use serde_json::Value;

use super::{doubled, messages};

/// Most cache markers in one request.
const MARKERS: usize = 4;

pub(super) fn faults(request: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let messages = messages("anthropic", request);
    if messages.first().is_some_and(|first| first["role"] != "user") {
        faults.push("the first message is not the user's".to_owned());
    }
    for (index, message) in messages.iter().enumerate() {
        let last = index + 1 == messages.len();
        faults.extend(emptiness(message, last && message["role"] == "assistant"));
    }
    let turns = turns(messages);
    for (index, (role, blocks)) in turns.iter().enumerate() {
        let next = turns.get(index + 1).map_or(&[][..], |(_, blocks)| blocks.as_slice());
        let before = index.checked_sub(1).and_then(|before| turns.get(before));
        match *role {
            "assistant" => {
                let unanswered = of(blocks, "tool_use").filter(|call| answers(next, call).count() == 0);
                faults.extend(unanswered.map(|call| format!("call {} has no result behind it", id(call))));
                let twice = of(blocks, "tool_use").filter(|call| answers(next, call).count() > 1);
                faults.extend(twice.map(|call| format!("call {} has several results", id(call))));
                let other = of(blocks, "tool_use").filter(|call| !call["input"].is_object());
                faults.extend(other.map(|call| format!("the input of call {} is no object", id(call))));
                faults.extend(server_faults(blocks));
            }
            _ => {
                faults.extend(result_faults(blocks, before.map_or(&[][..], |(_, blocks)| blocks.as_slice())));
            }
        }
    }
    let calls: Vec<&str> = turns.iter().flat_map(|(_, blocks)| of(blocks, "tool_use").map(id)).collect();
    faults.extend(doubled("call", &calls));
    if markers(request) > MARKERS {
        faults.push("more than four cache markers".to_owned());
    }
    if turns.last().is_some_and(|(role, _)| *role == "assistant") {
        faults.push("the last message is the model's".to_owned());
    }
    faults
}

/// What the thinking rules forbid to change: the latest assistant message's thinking, and that of a running tool loop.
pub(super) fn changes(input: &Value, output: &Value) -> Vec<String> {
    let (before, after) = (messages("anthropic", input), messages("anthropic", output));
    let mut changes = Vec::new();
    // The latest message may be another one than before, but then as it was.
    let ids = |message: &Value| -> Vec<Value> {
        let blocks = message["content"].as_array().into_iter().flatten();
        blocks.filter(|block| block["type"] == "tool_use").map(|block| block["id"].clone()).collect()
    };
    if let Some(latest) = after.iter().rfind(|message| message["role"] == "assistant")
        && !before.iter().any(|known| {
            known["role"] == "assistant" && thinking(known) == thinking(latest) && ids(known) == ids(latest)
        })
    {
        changes.push("thinking in the latest assistant message is changed".to_owned());
    }
    let thinks = |messages: &[Value]| first_of_loop(messages).is_none_or(begins_thinking);
    if first_of_loop(before).is_some() && thinks(before) && !thinks(after) {
        changes.push("the running tool loop no longer starts with thinking".to_owned());
    }
    // Thinking is signed: it is sent unchanged or not at all.
    let known: Vec<Value> = before.iter().flat_map(thinking).collect();
    let forged = after.iter().flat_map(thinking).filter(|block| !known.contains(block)).count();
    changes.extend((0..forged).map(|_| "a thinking block is changed".to_owned()));
    changes
}

/// The messages as the provider joins them: those of one role in a row are one.
fn turns(messages: &[Value]) -> Vec<(&str, Vec<&Value>)> {
    let mut turns: Vec<(&str, Vec<&Value>)> = Vec::new();
    for message in messages {
        let role = message["role"].as_str().unwrap_or_default();
        let blocks = message["content"].as_array().map(|blocks| blocks.iter().collect::<Vec<_>>());
        let blocks = blocks.unwrap_or_else(|| vec![&message["content"]]);
        match turns.last_mut().filter(|(last, _)| *last == role) {
            Some((_, before)) => before.extend(blocks),
            None => turns.push((role, blocks)),
        }
    }
    turns
}

fn of<'a>(blocks: &[&'a Value], kind: &'static str) -> impl Iterator<Item = &'a Value> {
    blocks.iter().copied().filter(move |block| block["type"] == kind).collect::<Vec<_>>().into_iter()
}

fn id(block: &Value) -> &str {
    block["id"].as_str().or_else(|| block["tool_use_id"].as_str()).unwrap_or_default()
}

fn answers<'a>(blocks: &[&'a Value], call: &'a Value) -> impl Iterator<Item = &'a Value> {
    of(blocks, "tool_result").filter(|result| result["tool_use_id"] == call["id"])
}

fn result_faults(blocks: &[&Value], before: &[&Value]) -> Vec<String> {
    let mut faults = Vec::new();
    for result in of(blocks, "tool_result") {
        if !of(before, "tool_use").any(|call| call["id"] == result["tool_use_id"]) {
            faults.push(format!("result {} has no call before it", id(result)));
        }
    }
    let first_other = blocks.iter().position(|block| block["type"] != "tool_result");
    let last_result = blocks.iter().rposition(|block| block["type"] == "tool_result");
    if first_other.zip(last_result).is_some_and(|(other, result)| other < result) {
        faults.push("something stands before a result in its message".to_owned());
    }
    faults
}

/// Tools of the server are answered in the same message.
fn server_faults(blocks: &[&Value]) -> Vec<String> {
    let is_result = |block: &Value| {
        block["type"].as_str().is_some_and(|kind| kind != "tool_result" && kind.ends_with("_tool_result"))
    };
    let results: Vec<&str> = blocks.iter().filter(|block| is_result(block)).map(|block| id(block)).collect();
    let calls: Vec<&str> = of(blocks, "server_tool_use").map(id).collect();
    let alone = calls.iter().filter(|call| !results.contains(call));
    let alone = alone.map(|call| format!("server call {call} has no result"));
    let orphans = results.iter().filter(|result| !calls.contains(result));
    alone.chain(orphans.map(|result| format!("server result {result} has no call"))).collect()
}

fn emptiness(message: &Value, may_be_empty: bool) -> Vec<String> {
    let mut faults = Vec::new();
    match &message["content"] {
        Value::String(text) if text.trim().is_empty() && !may_be_empty => {
            faults.push("an empty message".to_owned());
        }
        Value::Array(blocks) if blocks.is_empty() && !may_be_empty => {
            faults.push("an empty message".to_owned());
        }
        Value::Array(blocks) => {
            let inner = blocks.iter().flat_map(|block| block["content"].as_array().into_iter().flatten());
            for block in blocks.iter().chain(inner) {
                if block["type"] == "text" && block["text"].as_str().is_none_or(|text| text.trim().is_empty())
                {
                    faults.push("an empty text".to_owned());
                }
                if block["type"] == "thinking" && block["cache_control"].is_object() {
                    faults.push("a cache marker on thinking".to_owned());
                }
            }
        }
        Value::String(_) => {}
        _ => faults.push("a message without content".to_owned()),
    }
    faults
}

fn markers(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(markers).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(key, member)| match key.as_str() {
                "cache_control" => 1,
                // What tools are given and schemas are the tool's own.
                "input" | "input_schema" => 0,
                _ => markers(member),
            })
            .sum(),
        _ => 0,
    }
}

fn thinking(message: &Value) -> Vec<Value> {
    let blocks = message["content"].as_array().into_iter().flatten();
    let thinks = |block: &&Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    blocks.filter(thinks).cloned().collect()
}

fn begins_thinking(message: &Value) -> bool {
    let first = message["content"].as_array().and_then(|blocks| blocks.first());
    first.is_some_and(|block| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking")))
}

/// The first message of the model that calls a tool after the last message of the user that answers none.
fn first_of_loop(messages: &[Value]) -> Option<&Value> {
    let holds = |message: &Value, kind: &str| {
        message["content"].as_array().is_some_and(|blocks| blocks.iter().any(|block| block["type"] == kind))
    };
    let human =
        messages.iter().rposition(|message| message["role"] == "user" && !holds(message, "tool_result"));
    let after = messages.get(human.map_or(0, |at| at + 1)..).unwrap_or_default();
    after.iter().find(|message| message["role"] == "assistant" && holds(message, "tool_use"))
}
