//! Clients that set no cache marker at a provider that caches nothing without one: what markers bring them, where they stand, and who gets
//! none.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    cache::MarkedCache,
    checker, common,
    conversations::{bytes, output},
    good, ok, refuse,
    running::Running,
    said,
    upstream::{Came, Upstream},
};

const MODEL: &str = "claude-opus-5";

/// How many turns a session has.
const TURNS: usize = 19;

fn instructions(words: usize) -> String {
    (0..words).map(|word| format!("rule {word} ")).collect()
}

/// The request of a turn, as an agent that knows nothing of markers sends it.
fn turn(results: usize) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "Find the value."})];
    for number in 0..results {
        let id = format!("toolu_{number}");
        messages.push(json!({"role": "assistant", "content": [
            {"type": "text", "text": format!("Step {number}.")},
            {"type": "tool_use", "id": id, "name": "read_file", "input": {"path": format!("src/{number}.txt")}},
        ]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": output(number, 60)},
        ]}));
    }
    let tool =
        json!({"name": "read_file", "description": instructions(500), "input_schema": {"type": "object"}});
    json!({"model": MODEL, "max_tokens": 1024, "system": instructions(8000), "tools": [tool], "messages": messages})
}

/// The same in the format of OpenAI.
fn chat_turn(results: usize) -> Value {
    let mut messages = vec![
        json!({"role": "system", "content": instructions(8000)}),
        json!({"role": "user", "content": "Find the value."}),
    ];
    for number in 0..results {
        let id = format!("call_{number}");
        let function =
            json!({"name": "read_file", "arguments": format!("{{\"path\":\"src/{number}.txt\"}}")});
        let call = json!({"id": id, "type": "function", "function": function});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": output(number, 60)}));
    }
    let tool =
        json!({"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}});
    json!({"model": format!("anthropic/{MODEL}"), "tools": [tool], "messages": messages})
}

/// Sets the markers of a client: at the end, at the last result but one, after tools and system.
fn with_markers(mut request: Value, markers: usize) -> Value {
    let last = request["messages"].as_array().unwrap().len() - 1;
    let system = request["system"].take();
    request["system"] = json!([{"type": "text", "text": system}]);
    let end = &mut request["messages"][last]["content"];
    if end.is_string() {
        *end = json!([{"type": "text", "text": end.take()}]);
    }
    let mut places = vec![format!("/messages/{last}/content/0")];
    if last > 2 {
        places.push(format!("/messages/{}/content/0", last - 2));
    }
    places.extend(["/system/0".to_owned(), "/tools/0".to_owned()]);
    for place in places.iter().take(markers) {
        request.pointer_mut(place).unwrap()["cache_control"] = json!({"type": "ephemeral"});
    }
    request
}

/// Starts a provider with a cache that needs markers, and everything else as its answers say.
fn provider() -> Upstream {
    let cache = Arc::new(MarkedCache::new(MODEL));
    Upstream::start(move |_, came: &Came| cache.answer(came))
}

/// Sends a session directly and through the proxy; returns what both cost and the last answer.
fn play(path: &str, flags: &[&str], request: &dyn Fn(usize) -> Value) -> (f64, f64, Came) {
    let (direct, through) = (MarkedCache::new(MODEL), MarkedCache::new(MODEL));
    let upstream = provider();
    let named = format!("openrouter={}", upstream.url);
    let bedrock = format!("bedrock={}", upstream.url);
    let all: Vec<&str> =
        flags.iter().copied().chain(["--upstream", &named, "--upstream", &bedrock]).collect();
    let proxy = Running::before(&upstream, &all);
    let (mut dollars, mut ours, mut answer) = (0.0, 0.0, Came::default());
    for results in 0..TURNS {
        let request = request(results);
        answer = proxy.post(path, &bytes(&request));
        assert!(answer.head[0].contains("200"), "{:?}", answer.head);
        let sent: Value = serde_json::from_slice(&upstream.last().body).unwrap();
        dollars += direct.dollars(&request);
        ours += through.dollars(&sent);
        // What an answer reports is entered after its last byte.
        wait_for_answers(&proxy, results + 1);
    }
    (dollars, ours, answer)
}

/// Waits until what so many answers report is entered.
fn wait_for_answers(proxy: &Running, answers: usize) {
    let output = u32::try_from(7 * answers).unwrap();
    proxy.wait_for(r#"trimtab_reported_tokens_total{kind="output""#, f64::from(output));
}

/// Checks that a session costs at most this share of what it costs directly.
#[track_caller]
fn check(path: &str, flags: &[&str], request: &dyn Fn(usize) -> Value, most: f64) {
    let (direct, ours, answer) = play(path, flags, request);
    assert!(ours <= direct * most, "{path}: ${ours:.4} instead of ${direct:.4}; {:?}", answer.head);
}

#[test]
fn nineteen_turns_without_markers_cost_at_most_a_fifth() {
    check("/v1/messages", &[], &turn, 0.2);
    check("/openrouter/v1/chat/completions", &[], &chat_turn, 0.2);
    // What is not hidden is cached all the same.
    check("/v1/messages", &["--policy", "none"], &turn, 0.2);
}

#[test]
fn a_model_of_anthropics_at_bedrock_is_marked_too() {
    let invoke = "/model/anthropic.claude-opus-5-v1:0/invoke";
    let request = |results: usize| {
        let mut request = turn(results);
        let fields = request.as_object_mut().unwrap();
        fields.remove("model");
        fields.insert("anthropic_version".to_owned(), json!("bedrock-2023-05-31"));
        request
    };
    check(invoke, &[], &request, 0.2);
}

#[test]
fn a_client_with_markers_never_pays_more_than_one_per_cent_more() {
    for markers in 1..=4 {
        check("/v1/messages", &[], &|results| with_markers(turn(results), markers), 1.01);
    }
}

#[test]
fn a_step_of_more_calls_than_the_provider_looks_back_is_read_all_the_same() {
    // Every step reads twelve files at once: 25 blocks.
    let wide = |steps: usize| {
        let mut request = turn(0);
        let messages = request["messages"].as_array_mut().unwrap();
        for step in 0..steps {
            let ids: Vec<String> = (0..12).map(|call| format!("toolu_{step}_{call}")).collect();
            let calls = ids.iter().map(|id| {
                json!({"type": "tool_use", "id": id, "name": "read_file", "input": {"path": format!("src/{id}.txt")}})
            });
            let text = json!({"type": "text", "text": format!("Step {step}.")});
            let calls: Vec<Value> = std::iter::once(text).chain(calls).collect();
            messages.push(json!({"role": "assistant", "content": calls}));
            let results = ids.iter().enumerate().map(|(number, id)| {
                json!({"type": "tool_result", "tool_use_id": id, "content": output(step * 12 + number, 6)})
            });
            let results: Vec<Value> = results.collect();
            messages.push(json!({"role": "user", "content": results}));
        }
        request
    };
    check("/v1/messages", &["--policy", "none"], &wide, 0.25);
}

/// Posts a request; returns what reached the provider, and how trimtab says it was treated.
fn post_request(upstream: &Upstream, proxy: &Running, path: &str, request: &[u8]) -> (Vec<u8>, Came) {
    let answer = proxy.post(path, request);
    (upstream.last().body, answer)
}

#[test]
fn markers_are_inserted_and_nothing_else_is_touched() {
    let upstream = provider();
    let proxy = Running::before(&upstream, &[]);
    // The end, system and tools; then also the place before the first result, which is hidden first.
    for (results, markers) in [(0, "3"), (1, "4"), (5, "4")] {
        let request = bytes(&turn(results));
        let (sent, answer) = post_request(&upstream, &proxy, "/v1/messages", &request);
        assert_eq!((said(&answer), answer.header("x-trimtab-markers")), ("kept", Some(markers)));
        let [input, output]: [Value; 2] =
            [&request, &sent].map(|bytes| serde_json::from_slice(bytes).unwrap());
        assert_eq!(checker::faults("anthropic", &output), Vec::<String>::new());
        assert_eq!(without_markers(&output), input, "{results} results");
    }
}

/// Takes markers out of a request, and texts out of the lists that were made for them.
fn without_markers(value: &Value) -> Value {
    match value {
        Value::Array(items) => match items.as_slice() {
            [Value::Object(item)] if item.contains_key("cache_control") && item.contains_key("text") => {
                item["text"].clone()
            }
            items => items.iter().map(without_markers).collect(),
        },
        Value::Object(fields) => {
            let rest = fields.iter().filter(|(name, _)| *name != "cache_control");
            rest.map(|(name, field)| (name.clone(), without_markers(field))).collect()
        }
        other => other.clone(),
    }
}

fn stop(mut proxy: Running) {
    proxy.terminate();
    proxy.child.wait().unwrap();
}

#[test]
fn who_asks_for_none_gets_none() {
    let request = bytes(&turn(3));
    for flags in [&["--markers", "off"][..], &["--observe"]] {
        let upstream = provider();
        let proxy = Running::before(&upstream, flags);
        let (sent, answer) = post_request(&upstream, &proxy, "/v1/messages", &request);
        assert!(sent == request && answer.header("x-trimtab-markers").is_none(), "{flags:?}");
    }
    let upstream = provider();
    let proxy = Running::with(&upstream, &[], &[("TRIMTAB_MARKERS", "off")]);
    assert!(post_request(&upstream, &proxy, "/v1/messages", &request).0 == request);
}

#[test]
fn servers_of_which_nothing_is_known_get_no_field_that_their_wire_lacks() {
    let upstream = good();
    let mistral = format!("mistral={}", upstream.url);
    let work = format!("work={}", upstream.url);
    let proxy = Running::before(&upstream, &["--upstream", &mistral, "--upstream", &work]);
    let chat = bytes(&chat_turn(3));
    for path in ["/v1/chat/completions", "/work/v1/chat/completions"] {
        assert!(post_request(&upstream, &proxy, path, &chat).0 == chat, "{path}");
    }
    let mut request = chat_turn(3);
    request["model"] = json!("mistral-large-latest");
    let keys: Vec<Value> = [3, 4]
        .iter()
        .map(|results| {
            let mut request = chat_turn(*results);
            request["model"] = json!("mistral-large-latest");
            let (sent, _) = post_request(&upstream, &proxy, "/mistral/v1/chat/completions", &bytes(&request));
            serde_json::from_slice::<Value>(&sent).unwrap()["prompt_cache_key"].clone()
        })
        .collect();
    assert!(keys[0].is_string() && keys[0] == keys[1], "{keys:?}");
    request["prompt_cache_key"] = json!("mine");
    let own = bytes(&request);
    assert!(post_request(&upstream, &proxy, "/mistral/v1/chat/completions", &own).0 == own);
}

#[test]
fn a_provider_that_refuses_markers_gets_the_request_as_it_came_and_no_more_of_them() {
    let upstream = Upstream::start(|_, came| {
        if String::from_utf8_lossy(&came.body).contains("cache_control") {
            return refuse("400 Bad Request", "cache_control: extra inputs are not permitted");
        }
        ok(r#"{"usage":{"input_tokens":1000,"output_tokens":7}}"#)
    });
    let proxy = Running::before(&upstream, &[]);
    let first = proxy.post("/v1/messages", &bytes(&turn(1)));
    assert_eq!((first.header("x-trimtab-retried"), upstream.came().len()), (Some("refused"), 2));
    assert!(upstream.last().body == bytes(&turn(1)));
    let second = proxy.post("/v1/messages", &bytes(&turn(2)));
    assert_eq!((second.header("x-trimtab-retried"), upstream.came().len()), (None, 3));
    assert!(upstream.last().body == bytes(&turn(2)));
}

#[test]
fn what_markers_brought_is_booked_and_what_was_sent_is_kept() {
    let cache = Arc::new(MarkedCache::new(MODEL));
    let upstream = Upstream::start(move |_, came: &Came| cache.answer(came));
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept.db");
    let store = store.to_str().unwrap();
    let kept = [("TRIMTAB_NO_STORE", "0")];
    let proxy = Running::with(&upstream, &["--store", store], &kept);
    for results in 0..4 {
        proxy.post("/v1/messages", &bytes(&turn(results)));
        wait_for_answers(&proxy, results + 1);
    }
    let before = upstream.last().body;
    stop(proxy);
    // A proxy that knows nothing of the session sets the markers at the same places.
    let again = Running::with(&upstream, &["--store", store], &kept);
    again.post("/v1/messages", &bytes(&turn(3)));
    assert!(upstream.last().body == before);
    wait_for_answers(&again, 1);
    stop(again);
    let stats = common::trimtab(&["stats", "--store", store]).text();
    let line = stats.lines().find(|line| line.contains("untouched")).unwrap();
    assert!(line.contains("saved (markers $"), "{stats}");
    let why = common::trimtab(&["why", "latest", "--all", "--store", store]).text();
    assert!(!why.contains("no marker"), "{why}");
    let restored = common::trimtab(&["restore", "latest", "--sent", "--all", "--store", store]);
    assert!(restored.out == before, "{}", restored.words);
}

#[test]
fn a_single_question_is_sent_as_it_came() {
    let upstream = good();
    let proxy = Running::before(&upstream, &[]);
    let mut request = turn(0);
    request.as_object_mut().unwrap().remove("tools");
    let title = bytes(&request);
    assert!(post_request(&upstream, &proxy, "/v1/messages", &title).0 == title);
}
