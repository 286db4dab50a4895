//! Answers of every format, streamed and whole: what the client gets and what is kept.

use super::*;

fn stripper(format: Format, streamed: bool) -> IntentStripper {
    let mut headers = HeaderMap::new();
    let kind = if streamed { "text/event-stream" } else { "application/json" };
    headers.insert(CONTENT_TYPE, kind.parse().unwrap());
    let offered = IntentOffer { body: Vec::new(), tools: HashSet::from(["edit".to_owned()]) };
    IntentStripper::new(Arc::default(), offered, format, &headers).unwrap()
}

/// Strips an answer in pieces of several sizes; gives what the client gets and the intents that were kept.
fn check(format: Format, streamed: bool, answer: &str) -> (String, Vec<String>) {
    let strip = |size: usize| {
        let mut stripper = stripper(format, streamed);
        let mut on: Vec<u8> = Vec::new();
        for bytes in answer.as_bytes().chunks(size) {
            on.extend(stripper.feed(bytes));
        }
        on.extend(stripper.finish());
        let mut kept: Vec<String> = stripper.intents.lock_known().by_call.values().cloned().collect();
        kept.sort();
        (String::from_utf8(on).unwrap(), kept)
    };
    let whole = strip(answer.len());
    assert_eq!((strip(1), strip(7)), (whole.clone(), whole.clone()), "pieces make no difference");
    assert!(!whole.0.contains("intent"), "{}", whole.0);
    whole
}

fn stream(events: &[Value], named: bool) -> String {
    let line = |event: &Value| {
        let name = if named { format!("event: {}\n", text_at(event, "/type")) } else { String::new() };
        format!("{name}data: {event}\n\n")
    };
    events.iter().map(line).collect()
}

/// Returns what the events of a stream hold at a place, put together.
fn collected(answer: &str, place: &str) -> String {
    let events = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    let values = events.filter_map(|event| serde_json::from_str::<Value>(event).ok());
    values.map(|value| text_at(&value, place)).collect()
}

#[test]
fn whole_answers_of_every_format_lose_their_intents() {
    let (plain, with) = (json!({"path": "a"}), json!({"path": "a", "intent": "tidy up"}));
    let answers = |args: &Value| {
        let text = args.to_string();
        [
            (
                Format::Anthropic,
                json!({"content": [{"type": "text", "text": "So."}, {"type": "tool_use", "id": "c", "name": "edit", "input": args}]}),
            ),
            (
                Format::Chat,
                json!({"choices": [{"message": {"tool_calls": [{"id": "c", "function": {"name": "edit", "arguments": text}}]}}]}),
            ),
            (
                Format::Responses,
                json!({"output": [{"type": "function_call", "call_id": "c", "name": "edit", "arguments": text}]}),
            ),
            (
                Format::Gemini,
                json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "edit", "args": args}}]}}]}),
            ),
        ]
    };
    for ((format, answer), (_, expected)) in answers(&with).into_iter().zip(answers(&plain)) {
        let (on, kept) = check(format, false, &answer.to_string());
        assert_eq!(
            (serde_json::from_str::<Value>(&on).unwrap(), kept),
            (expected.clone(), vec!["tidy up".to_owned()])
        );
        let (on, kept) = check(format, false, &expected.to_string());
        assert_eq!((on, kept.len()), (expected.to_string(), 0), "what holds none passes byte for byte");
    }
}

#[test]
fn a_stream_of_anthropic_s_gives_an_edit_at_once_and_all_else_as_it_comes() {
    let start = |index: u64, name: &str| json!({"type": "content_block_start", "index": index, "content_block": {"type": "tool_use", "id": format!("c{index}"), "name": name, "input": {}}});
    let delta = |index: u64, part: &str| json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": part}});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let events = [
        start(0, "read"),
        delta(0, "{\"path\":"),
        delta(0, "\"a\"}"),
        stop(0),
        start(1, "edit"),
        delta(1, "{\"path\":\"a\",\"int"),
        delta(1, "ent\":\"tidy up\"}"),
        stop(1),
    ];
    let answer = stream(&events, true);
    let (on, kept) = check(Format::Anthropic, true, &answer);
    assert_eq!(kept, ["tidy up"]);
    assert_eq!(on, stream(&[&events[..5], &[delta(1, "{\"path\":\"a\"}"), stop(1)]].concat(), true));
}

#[test]
fn a_stream_of_a_chat_gives_the_arguments_of_an_edit_before_its_end() {
    let chunk = |delta: Value, end: Value| json!({"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]});
    let call = |index: u64, name: &str, part: &str| json!({"tool_calls": [{"index": index, "id": format!("c{index}"), "type": "function", "function": {"name": name, "arguments": part}}]});
    let part =
        |index: u64, part: &str| json!({"tool_calls": [{"index": index, "function": {"arguments": part}}]});
    let events = [
        chunk(json!({"role": "assistant", "content": "So."}), Value::Null),
        chunk(call(0, "edit", ""), Value::Null),
        chunk(part(0, "{\"path\":\"a\",\"int"), Value::Null),
        chunk(part(0, "ent\":\"tidy up\"}"), Value::Null),
        chunk(json!({}), json!("tool_calls")),
    ];
    let answer = stream(&events, false) + "data: [DONE]\n\n";
    let (on, kept) = check(Format::Chat, true, &answer);
    assert_eq!(kept, ["tidy up"]);
    assert_eq!(collected(&on, "/choices/0/delta/tool_calls/0/function/arguments"), "{\"path\":\"a\"}");
    assert!(on.starts_with(&stream(&events[..2], false)) && on.ends_with("data: [DONE]\n\n"), "{on}");
    let cut = stream(&events[..4], false) + "data: [DONE]\n\n";
    let (on, _) = check(Format::Chat, true, &cut);
    assert_eq!(collected(&on, "/choices/0/delta/tool_calls/0/function/arguments"), "{\"path\":\"a\"}");
}

#[test]
fn a_stream_of_responses_loses_the_intent_wherever_it_is_said() {
    let item = |arguments: &str| json!({"type": "function_call", "id": "i", "call_id": "c", "name": "edit", "arguments": arguments});
    let with = "{\"path\":\"a\",\"intent\":\"tidy up\"}";
    let delta = |part: &str| json!({"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "i", "delta": part});
    let events = [
        json!({"type": "response.output_item.added", "output_index": 1, "item": item("")}),
        delta(&with[..20]),
        delta(&with[20..]),
        json!({"type": "response.function_call_arguments.done", "output_index": 1, "item_id": "i", "arguments": with}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": item(with)}),
        json!({"type": "response.completed", "response": {"output": [item(with)]}}),
    ];
    let (on, kept) = check(Format::Responses, true, &stream(&events, true));
    assert_eq!(kept, ["tidy up"]);
    for place in ["/delta", "/arguments", "/item/arguments", "/response/output/0/arguments"] {
        assert_eq!(collected(&on, place), "{\"path\":\"a\"}", "{place}");
    }
}

#[test]
fn a_stream_of_gemini_s_loses_the_intent_in_its_chunk() {
    let chunk = |args: Value| json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "edit", "args": args}}]}}]});
    let answer = stream(&[chunk(json!({"path": "a", "intent": "tidy up"}))], false);
    let (on, kept) = check(Format::Gemini, true, &answer);
    assert_eq!((on, kept), (stream(&[chunk(json!({"path": "a"}))], false), vec!["tidy up".to_owned()]));
}

#[test]
fn the_oldest_intents_are_forgotten() {
    let intents = IntentCache::default();
    (0..MOST + 5).for_each(|number| intents.remember_intent(number.to_string(), "why".to_owned()));
    let known = intents.lock_known();
    assert_eq!((known.by_call.len(), known.order.len()), (MOST, MOST));
    assert!(!known.by_call.contains_key("4") && known.by_call.contains_key("5"));
}
