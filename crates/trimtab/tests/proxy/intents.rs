//! Edits that say what they are for: the model is asked, the tool never sees it, and the model finds what it said.

use serde_json::{Value, json};

use crate::{
    STREAM, ok,
    running::Running,
    upstream::{Script, Upstream},
};

/// A chat with a tool that changes files, after so many calls of it.
fn chat(calls: usize) -> Value {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let tool = json!({"type": "function", "function": {"name": "edit_file", "parameters": schema}});
    let mut messages = vec![json!({"role": "user", "content": "Go."})];
    for number in 0..calls {
        let id = format!("call_{number}");
        let call = json!({"id": id, "type": "function", "function": {"name": "edit_file", "arguments": "{\"path\":\"a.rs\"}"}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "done"}));
    }
    json!({"model": "gpt-5", "tools": [tool], "messages": messages})
}

const ARGUMENTS: &str = "{\"path\":\"a.rs\",\"intent\":\"tidy up\"}";

fn message() -> Value {
    json!({"tool_calls": [{"index": 0, "id": "call_0", "type": "function", "function": {"name": "edit_file", "arguments": ARGUMENTS}}]})
}

#[track_caller]
fn check(answer: fn() -> Script) {
    let upstream = Upstream::start(move |_, _| answer());
    let proxy = Running::before(&upstream, &["--intent"]);
    let path = "/v1/chat/completions";
    let answer = proxy.post(path, chat(0).to_string().as_bytes());
    let text = String::from_utf8(answer.body).unwrap();
    assert!(
        text.contains("a.rs") && !text.contains("intent"),
        "the client sees the call as its tool takes it: {text}"
    );
    let sent: Value = serde_json::from_slice(&upstream.last().body).unwrap();
    assert_eq!(sent["tools"][0]["function"]["parameters"]["properties"]["intent"]["type"], "string");
    proxy.post(path, chat(1).to_string().as_bytes());
    let sent: Value = serde_json::from_slice(&upstream.last().body).unwrap();
    let said = sent["messages"][1]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(said).unwrap()["intent"],
        "tidy up",
        "the model finds what it said"
    );
}

#[test]
fn an_intent_is_asked_for_taken_out_and_put_back() {
    check(|| ok(&json!({"choices": [{"index": 0, "message": message()}]}).to_string()));
}

#[test]
fn an_intent_is_taken_out_of_a_stream() {
    check(|| {
        let chunk = |delta: Value, end: Value| {
            format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": end}]}))
                .into_bytes()
        };
        let chunks = vec![
            chunk(message(), Value::Null),
            chunk(json!({}), json!("tool_calls")),
            b"data: [DONE]\n\n".to_vec(),
        ];
        Script::Chunks(vec![STREAM.to_owned()], chunks, std::time::Duration::ZERO)
    });
}

#[test]
fn nobody_is_asked_who_did_not_want_it() {
    let upstream = Upstream::start(|_, _| ok("{}"));
    let proxy = Running::before(&upstream, &[]);
    let request = chat(1).to_string().into_bytes();
    proxy.post("/v1/chat/completions", &request);
    assert_eq!(upstream.last().body, request);
}
