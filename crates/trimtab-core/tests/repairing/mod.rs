//! Broken requests are repaired: over made-up conversations with messages lost, doubled, moved and emptied, in every
//! format. The protocol is judged by the checker, which knows nothing of the library.

use proptest::{
    prelude::{ProptestConfig, Strategy, any, prop},
    test_runner::TestRunner,
};
use serde_json::{Value, json};
use trimtab_core::{
    Format,
    wire::{Repair, repair},
};

use crate::{
    checker,
    conversations::{Conversation, Style, long_conversation, style},
    read,
};

/// What happens to a request on its way.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Lost,
    Doubled,
    Moved,
    Emptied,
    /// A part of a message is lost.
    Torn,
    /// A part of a message stands elsewhere in it.
    Turned,
}

fn damages() -> impl Strategy<Value = Vec<(Damage, usize, usize)>> {
    let damage = prop::sample::select(vec![
        Damage::Lost,
        Damage::Doubled,
        Damage::Moved,
        Damage::Emptied,
        Damage::Torn,
        Damage::Turned,
    ]);
    prop::collection::vec((damage, any::<usize>(), any::<usize>()), 0..4)
}

fn list_key(format: Format) -> &'static str {
    match format {
        Format::Anthropic | Format::Chat => "messages",
        Format::Responses => "input",
        Format::Gemini => "contents",
    }
}

fn content_key(format: Format) -> &'static str {
    if format == Format::Gemini { "parts" } else { "content" }
}

/// Damages a request; the first message, which is the user's, is kept.
fn damage(request: &mut Value, format: Format, damages: &[(Damage, usize, usize)]) {
    let messages = request[list_key(format)].as_array_mut().expect("messages");
    for (damage, at, to) in damages {
        if messages.len() < 2 {
            return;
        }
        let at = 1 + at % (messages.len() - 1);
        let to = 1 + to % (messages.len() - 1);
        let content = content_key(format);
        match damage {
            Damage::Lost => drop(messages.remove(at)),
            Damage::Doubled => {
                let message = messages[at].clone();
                messages.insert(to, message);
            }
            Damage::Moved => {
                let message = messages.remove(at);
                messages.insert(to, message);
            }
            Damage::Emptied => {
                if messages[at][content].is_array() {
                    messages[at][content] = json!([]);
                } else if messages[at][content].is_string() {
                    messages[at][content] = json!("");
                }
            }
            Damage::Torn => {
                for key in [content, "tool_calls"] {
                    if let Some(parts) = messages[at][key].as_array_mut().filter(|parts| !parts.is_empty()) {
                        parts.remove(to % parts.len());
                    }
                }
            }
            Damage::Turned => {
                if let Some(parts) = messages[at][content].as_array_mut() {
                    parts.reverse();
                }
            }
        }
    }
}

fn mended(request: &Value, format: Format) -> (Value, Vec<Repair>) {
    let (bytes, mended) = repair(&read(&request.to_string(), format));
    let value = serde_json::from_slice(&bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&bytes)));
    (value, mended)
}

/// Faults that nobody can repair without making something up: a task, a question after the model's last answer, where a
/// picture belongs.
fn is_left(fault: &str) -> bool {
    fault == "the last message is the model's"
        || fault == "the last content is the model's"
        || fault == "no message is the user's"
        || fault.starts_with("an image in a message of ")
}

fn faults(format: Format, request: &Value) -> Vec<String> {
    checker::faults(format.name(), request).into_iter().filter(|fault| !is_left(fault)).collect()
}

fn for_each_broken(law: &str, check: impl Fn(&Value, Format)) {
    let cases = std::env::var("TRIMTAB_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256);
    for format in Format::ALL {
        let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
        let mut runner = TestRunner::new(config);
        runner
            .run(&(long_conversation(), style(), damages()), |(conversation, style, damages)| {
                check(&broken(&conversation, format, style, &damages), format);
                Ok(())
            })
            .unwrap_or_else(|failure| panic!("{law}, {format}: {failure}"));
        println!("{law}: {format}: {cases} cases");
    }
}

fn broken(
    conversation: &Conversation,
    format: Format,
    style: Style,
    damages: &[(Damage, usize, usize)],
) -> Value {
    let (request, _) = conversation.write(format, style);
    let mut request: Value = serde_json::from_str(&request).expect("JSON");
    damage(&mut request, format, damages);
    request
}

#[test]
fn repaired_requests_break_no_rule() {
    for_each_broken("repair", |request, format| {
        let (after, mended) = mended(request, format);
        let faults = faults(format, &after);
        assert!(faults.is_empty(), "{faults:?}\nmended {mended:?}\n{request}\n-> {after}");
        // The list says everything: what is not in it was not touched.
        assert_eq!(mended.is_empty(), *request == after, "{mended:?}\n{request}\n-> {after}");
    });
}

#[test]
fn repairing_touches_nothing_where_no_rule_is_broken() {
    for_each_broken("repair of the sound", |request, format| {
        if faults(format, request).is_empty() {
            let text = request.to_string();
            let (bytes, mended) = repair(&read(&text, format));
            assert_eq!(mended, [], "{text}");
            assert_eq!(String::from_utf8_lossy(&bytes), text);
        }
    });
}

#[test]
fn repairing_twice_changes_nothing_more() {
    for_each_broken("repair twice", |request, format| {
        let (once, first) = mended(request, format);
        let (twice, second) = mended(&once, format);
        assert_eq!(second, [], "{first:?}\n{request}\n-> {once}\n-> {twice}");
    });
}

#[test]
fn what_the_person_said_survives_every_repair() {
    for_each_broken("repair and words", |request, format| {
        let words = |request: &Value| -> Vec<Value> {
            let messages = request[list_key(format)].as_array().expect("messages").iter();
            let said = messages.filter(|message| message["role"] == "user").flat_map(|message| {
                let parts = message[content_key(format)].as_array().cloned().unwrap_or_default();
                let text = message[content_key(format)].as_str().map(|text| json!({"text": text}));
                parts.into_iter().chain(text).map(|part| part["text"].clone())
            });
            said.filter(|text| text.as_str().is_some_and(|text| !text.trim().is_empty())).collect()
        };
        let (after, mended) = mended(request, format);
        let (before, after) = (words(request), words(&after));
        assert!(before.iter().all(|text| after.contains(text)), "{mended:?}\n{before:?}\n-> {after:?}");
    });
}

/// A call that came without arguments, in every format and spelling, gets an empty object and is named.
#[test]
fn a_call_without_arguments_is_given_an_empty_object() {
    let chat = |function: Value| {
        json!({"messages": [{"role": "user", "content": "Hi"},
            {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": "a", "content": "x"}]})
    };
    let responses = |mut call: Value| {
        call["type"] = json!("function_call");
        call["call_id"] = json!("a");
        json!({"input": [{"role": "user", "content": "Hi"}, call,
            {"type": "function_call_output", "call_id": "a", "output": "x"}]})
    };
    let anthropic = |mut call: Value| {
        call["type"] = json!("tool_use");
        call["id"] = json!("a");
        json!({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}]})
    };
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "a", "args": null}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "a", "response": {"output": "x"}}}]}]});
    let text = "/messages/1/tool_calls/0/function/arguments";
    for (format, request, place, given) in [
        (Format::Chat, chat(json!({"name": "ls", "arguments": null})), text, json!("{}")),
        (Format::Chat, chat(json!({"name": "ls"})), text, json!("{}")),
        (Format::Chat, chat(json!({"name": "ls", "arguments": ""})), text, json!("{}")),
        (Format::Chat, chat(json!({"name": "ls", "arguments": "null"})), text, json!("{}")),
        (
            Format::Responses,
            responses(json!({"name": "ls", "arguments": null})),
            "/input/1/arguments",
            json!("{}"),
        ),
        (Format::Responses, responses(json!({"name": "ls"})), "/input/1/arguments", json!("{}")),
        (
            Format::Anthropic,
            anthropic(json!({"name": "ls", "input": null})),
            "/messages/1/content/0/input",
            json!({}),
        ),
        (Format::Anthropic, anthropic(json!({"name": "ls"})), "/messages/1/content/0/input", json!({})),
        (Format::Gemini, gemini, "/contents/1/parts/0/functionCall/args", json!({})),
    ] {
        let (after, mended) = mended(&request, format);
        let said: Vec<String> = mended.iter().map(ToString::to_string).collect();
        assert_eq!(said, ["message 2: the call \"a\" has no arguments, given an empty object"], "{request}");
        assert_eq!(after.pointer(place), Some(&given), "{after}");
        assert_eq!(faults(format, &after), Vec::<String>::new(), "{after}");
        let mut expected = request.clone();
        let (parent, key) = place.rsplit_once('/').expect("a place");
        expected.pointer_mut(parent).expect("a call")[key] = given;
        assert_eq!(after, expected, "nothing else is touched");
    }
}

#[test]
fn each_fault_is_mended_and_named() {
    let chat = |messages: Value| json!({"model": "gpt-5", "messages": messages});
    let call =
        |id: &str| json!({"id": id, "type": "function", "function": {"name": "ls", "arguments": "{}"}});
    let user = json!({"role": "user", "content": "Hi"});
    for (messages, said) in [
        (
            json!([user, {"role": "assistant", "content": null, "tool_calls": [call("a")]}]),
            "message 2: the call \"a\" has no result, a note put in its place",
        ),
        (
            json!([user, {"role": "assistant", "content": null, "tool_calls": [call("a")]}, user, {"role": "tool", "tool_call_id": "a", "content": "x"}]),
            "message 4: the result for \"a\" came too late; moved after its call",
        ),
        (
            json!([user, {"role": "assistant", "content": "x", "tool_calls": []}, user]),
            "message 2: an empty list of calls, removed",
        ),
        (
            json!([user, {"role": "assistant", "content": null}, user]),
            "message 2: an empty message of assistant, removed",
        ),
        (
            json!([user, {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{\"path\": \"/x"}}]},
                {"role": "tool", "tool_call_id": "a", "content": "x"}]),
            "message 2: the arguments of \"a\" are no JSON, put into an object",
        ),
    ] {
        let request = chat(messages);
        let (after, mended) = mended(&request, Format::Chat);
        assert_eq!(mended.iter().map(ToString::to_string).collect::<Vec<_>>(), [said], "{after}");
        assert_eq!(faults(Format::Chat, &after), Vec::<String>::new(), "{after}");
    }
}
