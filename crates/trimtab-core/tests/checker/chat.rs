//! The rules of OpenAI's Chat Completions and of the servers that are compatible with it.

use serde_json::Value;

use super::{argument_fault, doubled, messages};

pub(super) fn faults(request: &Value) -> Vec<String> {
    let messages = messages("chat", request);
    let mut faults = Vec::new();
    // The calls of the latest assistant message that wait for a result.
    let mut open: Vec<&str> = Vec::new();
    let mut called: Vec<&str> = Vec::new();
    let mut answered: Vec<&str> = Vec::new();
    for message in messages {
        faults.extend(content_faults(message));
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            match open.iter().position(|waiting| *waiting == id) {
                Some(at) => drop(open.remove(at)),
                None => faults.push(format!("result {id} answers no call before it")),
            }
            answered.push(id);
            continue;
        }
        faults.extend(open.drain(..).map(|id| format!("call {id} has no result behind it")));
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let id = call["id"].as_str().unwrap_or_default();
            open.push(id);
            called.push(id);
            faults.extend(argument_fault(&call["function"]["arguments"], id));
        }
        if message["tool_calls"].as_array().is_some_and(Vec::is_empty) {
            faults.push("an empty list of calls".to_owned());
        }
    }
    faults.extend(open.drain(..).map(|id| format!("call {id} has no result behind it")));
    faults.extend(doubled("call", &called));
    faults.extend(doubled("result", &answered));
    if messages.last().is_some_and(|last| last["role"] == "assistant") {
        faults.push("the last message is the model's".to_owned());
    }
    faults
}

fn content_faults(message: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let role = message["role"].as_str().unwrap_or_default();
    let calls = message["tool_calls"].is_array() || message["function_call"].is_object();
    match &message["content"] {
        Value::Null if !calls => faults.push(format!("a message of {role} without content")),
        Value::Array(parts) if parts.is_empty() => {
            faults.push(format!("a message of {role} with an empty list"));
        }
        Value::Array(parts) => {
            let image = |part: &Value| part["type"] == "image_url";
            if role != "user" && parts.iter().any(image) {
                faults.push(format!("an image in a message of {role}"));
            }
            let empty =
                |part: &&Value| part["type"] == "text" && part["text"].as_str().is_none_or(str::is_empty);
            faults.extend(parts.iter().filter(empty).map(|_| format!("an empty text of {role}")));
        }
        Value::String(text) if text.is_empty() && role == "user" => {
            faults.push("an empty message of user".to_owned());
        }
        _ => {}
    }
    faults
}
