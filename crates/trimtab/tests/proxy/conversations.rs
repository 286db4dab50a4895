//! Conversations that agents hold, as long as a test wants them. Gives the bytes of requests.

use serde_json::{Value, json};

/// What a tool printed: lines that no digest can do without looking.
pub(crate) fn output(number: usize, lines: usize) -> String {
    (0..lines)
        .map(|line| {
            format!("result {number}, line {line}: the value is {}\n", number * 7919 + line * 104_729)
        })
        .collect()
}

/// A request for an answer of Anthropic's, of a client that sets a cache marker.
pub(crate) fn anthropic(results: usize) -> Vec<u8> {
    let mut messages = vec![json!({"role": "user", "content": "Find the value."})];
    for number in 0..results {
        let id = format!("toolu_{number}");
        messages.push(json!({"role": "assistant", "content": [
            {"type": "text", "text": format!("Step {number}.")},
            {"type": "tool_use", "id": id, "name": "read_file", "input": {"path": format!("src/{number}.txt")}},
        ]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": output(number, 120)},
        ]}));
    }
    let tool = json!({"name": "read_file", "description": "Reads a file", "input_schema": {"type": "object"},
        "cache_control": {"type": "ephemeral"}});
    bytes(
        &json!({"model": "claude-sonnet-4-5", "max_tokens": 1024, "system": "Be brief.", "tools": [tool], "messages": messages}),
    )
}

/// A request for a chat completion.
pub(crate) fn chat(results: usize) -> Vec<u8> {
    bytes(&json!({"model": "gpt-5", "messages": chat_messages(results, 120)}))
}

pub(crate) fn chat_messages(results: usize, lines: usize) -> Vec<Value> {
    let mut messages = vec![
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": "Find the value."}),
    ];
    for number in 0..results {
        let id = format!("call_{number}");
        let arguments = format!("{{\"path\":\"src/{number}.txt\"}}");
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "read_file", "arguments": arguments}},
        ]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": output(number, lines)}));
    }
    messages
}

/// A request for a response.
pub(crate) fn responses(results: usize) -> Vec<u8> {
    let mut input = vec![json!({"role": "user", "content": "Find the value."})];
    for number in 0..results {
        let id = format!("call_{number}");
        let arguments = format!("{{\"path\":\"src/{number}.txt\"}}");
        input.push(
            json!({"type": "function_call", "call_id": id, "name": "read_file", "arguments": arguments}),
        );
        input.push(json!({"type": "function_call_output", "call_id": id, "output": output(number, 120)}));
    }
    bytes(&json!({"model": "gpt-5", "store": false, "input": input}))
}

/// The same as an SDK sends it where the server stores answers: what the model did is named, what tools gave stands here.
pub(crate) fn referenced(results: usize) -> Vec<u8> {
    let mut input = vec![json!({"role": "user", "content": "Find the value."})];
    for number in 0..results {
        input.push(json!({"type": "item_reference", "id": format!("rs_{number}")}));
        input.push(json!({"type": "item_reference", "id": format!("fc_{number}")}));
        let id = format!("call_{number}");
        input.push(json!({"type": "function_call_output", "call_id": id, "output": output(number, 120)}));
    }
    bytes(&json!({"model": "gpt-5", "input": input}))
}

/// A request of Claude Code with thinking: each asks the server to keep all thinking.
pub(crate) fn thinking(results: usize) -> Vec<u8> {
    let mut request: Value = serde_json::from_slice(&anthropic(results)).unwrap();
    request["thinking"] = json!({"type": "enabled", "budget_tokens": 1000});
    request["context_management"] = json!({"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]});
    bytes(&request)
}

/// A request for generated content.
pub(crate) fn gemini(results: usize) -> Vec<u8> {
    let mut contents = vec![json!({"role": "user", "parts": [{"text": "Find the value."}]})];
    for number in 0..results {
        let call =
            json!({"functionCall": {"name": "read_file", "args": {"path": format!("src/{number}.txt")}}});
        contents.push(json!({"role": "model", "parts": [call]}));
        let result =
            json!({"functionResponse": {"name": "read_file", "response": {"output": output(number, 120)}}});
        contents.push(json!({"role": "user", "parts": [result]}));
    }
    bytes(&json!({"contents": contents}))
}

pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    // Spaces that a serializer would not write: what is kept must keep them.
    let mut bytes = value.to_string().replacen(':', " :  ", 1).into_bytes();
    bytes.extend_from_slice(b" \n");
    bytes
}
