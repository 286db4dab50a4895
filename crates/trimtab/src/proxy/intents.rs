//! The intents of edits on their way through. Takes a request; gives it with the argument offered and what was said before put
//! back. Takes an answer as it arrives; gives it without intents, which are kept by their calls. Never holds back anything but
//! the arguments of calls that may hold one.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use hyper::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use serde_json::{Value, json};
use trimtab_core::{
    Format,
    intent::{INTENT, call_key, offer_intent, take_intent},
    parse_as,
};

/// How many intents are kept: more than a long session has edits.
const MOST: usize = 20_000;

/// What models said that their edits are for, by call.
#[derive(Debug, Default)]
pub(crate) struct IntentCache {
    known: Mutex<KnownIntents>,
}

#[derive(Debug, Default)]
struct KnownIntents {
    by_call: HashMap<String, String>,
    /// The calls, oldest first.
    order: VecDeque<String>,
}

/// A request in which an intent is offered.
pub(crate) struct IntentOffer {
    pub(crate) body: Vec<u8>,
    tools: HashSet<String>,
}

impl IntentCache {
    /// Offers the argument in a request; nothing where no tool of it changes files.
    pub(crate) fn offer_in_request(&self, body: &Arc<Vec<u8>>, format: Format) -> Option<IntentOffer> {
        let history = parse_as(Arc::clone(body), format).ok()?;
        let known = |key: &str| self.lock_known().by_call.get(key).cloned();
        let intended = offer_intent(&history, &known)?;
        Some(IntentOffer { body: intended.request, tools: intended.tools.into_iter().collect() })
    }

    fn remember_intent(&self, key: String, intent: String) {
        let mut known = self.lock_known();
        if known.by_call.insert(key.clone(), intent).is_none() {
            known.order.push_back(key);
        }
        while known.order.len() > MOST {
            let oldest = known.order.pop_front();
            oldest.and_then(|oldest| known.by_call.remove(&oldest));
        }
    }

    fn lock_known(&self) -> std::sync::MutexGuard<'_, KnownIntents> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the intents out of one answer.
pub(crate) struct IntentStripper {
    intents: Arc<IntentCache>,
    tools: HashSet<String>,
    format: Format,
    streamed: bool,
    /// What has come of an event, or of the answer.
    open: Vec<u8>,
    calls: BTreeMap<(u64, u64), OpenCall>,
    /// The latest chunk of a chat, as the pattern of one of ours.
    pattern: Option<Value>,
}

/// A call whose arguments are coming.
#[derive(Debug, Default)]
struct OpenCall {
    id: String,
    name: String,
    arguments: String,
}

impl IntentStripper {
    /// Makes ready for an answer; nothing where it is compressed although nobody asked for that.
    pub(crate) fn new(
        intents: Arc<IntentCache>,
        offered: IntentOffer,
        format: Format,
        headers: &HeaderMap,
    ) -> Option<IntentStripper> {
        if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            return None;
        }
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        Some(IntentStripper {
            intents,
            tools: offered.tools,
            format,
            streamed: kind.starts_with("text/event-stream"),
            open: Vec::new(),
            calls: BTreeMap::new(),
            pattern: None,
        })
    }

    /// Takes the next bytes; gives what goes on to the client now.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.open.extend_from_slice(bytes);
        let mut on = Vec::new();
        while self.streamed
            && let Some(end) = event_end(&self.open)
        {
            let rest = self.open.split_off(end);
            let event = std::mem::replace(&mut self.open, rest);
            self.handle_event(&event, &mut on);
        }
        on
    }

    /// Gives the rest, after the last byte.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let open = std::mem::take(&mut self.open);
        let mut on = Vec::new();
        if self.streamed {
            self.flush_chat(&mut on);
            on.extend(open);
            return on;
        }
        let Ok(mut answer) = serde_json::from_slice::<Value>(&open) else { return open };
        if self.strip_answer(&mut answer) { answer.to_string().into_bytes() } else { open }
    }

    /// Hands an event on: unchanged, without its intents, or later.
    fn handle_event(&mut self, event: &[u8], on: &mut Vec<u8>) {
        let data = data_of(event);
        let Some(mut value) = serde_json::from_slice::<Value>(&data).ok().filter(Value::is_object) else {
            self.flush_chat(on);
            on.extend_from_slice(event);
            return;
        };
        let instead = match self.format {
            Format::Anthropic => self.strip_anthropic(&value),
            Format::Chat => self.strip_chat(&mut value),
            Format::Responses => self.strip_responses(&mut value),
            Format::Gemini => self.strip_answer(&mut value).then(|| vec![value]),
        };
        match instead {
            None => on.extend_from_slice(event),
            Some(events) => events.iter().for_each(|value| write_event(event, value, on)),
        }
    }

    /// Returns the events that go on in the place of one; nothing where it goes on as it is.
    fn strip_anthropic(&mut self, event: &Value) -> Option<Vec<Value>> {
        let key = (0, number_at(event, "/index"));
        match text_at(event, "/type").as_str() {
            "content_block_start" => {
                let name = text_at(event, "/content_block/name");
                if text_at(event, "/content_block/type") == "tool_use" && self.tools.contains(&name) {
                    let id = text_at(event, "/content_block/id");
                    self.calls.insert(key, OpenCall { id, name, arguments: String::new() });
                }
                None
            }
            "content_block_delta" => {
                let call = self.calls.get_mut(&key)?;
                call.arguments.push_str(&text_at(event, "/delta/partial_json"));
                Some(Vec::new())
            }
            "content_block_stop" => {
                let arguments = self.end_call(key)?;
                let delta = json!({"type": "content_block_delta", "index": key.1,
                    "delta": {"type": "input_json_delta", "partial_json": arguments}});
                Some(vec![delta, event.clone()])
            }
            _ => None,
        }
    }

    fn strip_chat(&mut self, chunk: &mut Value) -> Option<Vec<Value>> {
        let mut events = Vec::new();
        let mut changed = false;
        let mut says = false;
        for choice in chunk.pointer_mut("/choices").and_then(Value::as_array_mut).into_iter().flatten() {
            let number_of_choice = number_at(choice, "/index");
            let ends = choice.get("finish_reason").is_some_and(|reason| !reason.is_null());
            let others = choice.get("delta").and_then(Value::as_object).is_some_and(|delta| {
                delta.iter().any(|(key, value)| key != "tool_calls" && !value.is_null())
            });
            says |= ends || others;
            let calls = choice.pointer_mut("/delta/tool_calls").and_then(Value::as_array_mut);
            for call in calls.into_iter().flatten() {
                let key = (number_of_choice, number_at(call, "/index"));
                let name = text_at(call, "/function/name");
                says |= !name.is_empty();
                if self.tools.contains(&name) {
                    let id = text_at(call, "/id");
                    self.calls.insert(key, OpenCall { id, name, arguments: String::new() });
                }
                let Some(open) = self.calls.get_mut(&key) else {
                    says = true;
                    continue;
                };
                open.arguments.push_str(&text_at(call, "/function/arguments"));
                if let Some(arguments) = call.pointer_mut("/function/arguments") {
                    *arguments = Value::String(String::new());
                    changed = true;
                }
            }
        }
        let is_last = |choice: &Value| choice.get("finish_reason").is_some_and(|reason| !reason.is_null());
        self.pattern = Some(chunk.clone());
        if chunk.pointer("/choices").and_then(Value::as_array).is_some_and(|all| all.iter().any(is_last)) {
            events.extend(self.end_chat());
        }
        if !changed && events.is_empty() {
            return None;
        }
        if says || chunk.get("usage").is_some_and(Value::is_object) {
            events.push(chunk.clone());
        }
        Some(events)
    }

    /// Makes the chunks that hold the arguments of all calls of a chat.
    fn end_chat(&mut self) -> Vec<Value> {
        let keys: Vec<(u64, u64)> = self.calls.keys().copied().collect();
        let Some(pattern) = self.pattern.clone().filter(|_| !keys.is_empty()) else { return Vec::new() };
        let mut chunks = Vec::new();
        for key in keys {
            let Some(arguments) = self.end_call(key) else { continue };
            let mut chunk = pattern.clone();
            let delta = json!({"tool_calls": [{"index": key.1, "function": {"arguments": arguments}}]});
            if let Some(chunk) = chunk.as_object_mut() {
                chunk.remove("usage");
                let choices = json!([{"index": key.0, "delta": delta, "finish_reason": null}]);
                chunk.insert("choices".to_owned(), choices);
            }
            chunks.push(chunk);
        }
        chunks
    }

    fn flush_chat(&mut self, on: &mut Vec<u8>) {
        if self.format == Format::Chat {
            self.end_chat().iter().for_each(|value| write_event(b"data:", value, on));
        }
    }

    fn strip_responses(&mut self, event: &mut Value) -> Option<Vec<Value>> {
        let key = (0, number_at(event, "/output_index"));
        match text_at(event, "/type").as_str() {
            "response.output_item.added" => {
                let name = text_at(event, "/item/name");
                if text_at(event, "/item/type") == "function_call" && self.tools.contains(&name) {
                    let id = text_at(event, "/item/call_id");
                    self.calls.insert(key, OpenCall { id, name, arguments: String::new() });
                }
                None
            }
            "response.function_call_arguments.delta" => {
                let call = self.calls.get_mut(&key)?;
                call.arguments.push_str(&text_at(event, "/delta"));
                Some(Vec::new())
            }
            "response.function_call_arguments.done" => {
                let arguments = self.end_call(key)?;
                let mut delta = event.clone();
                if let Some(delta) = delta.as_object_mut() {
                    delta.retain(|name, _| !matches!(name.as_str(), "arguments" | "name"));
                    delta.insert("type".to_owned(), json!("response.function_call_arguments.delta"));
                    delta.insert("delta".to_owned(), json!(arguments));
                }
                event["arguments"] = json!(arguments);
                Some(vec![delta, event.clone()])
            }
            "response.output_item.done" => {
                let changed = event.get_mut("item").is_some_and(|item| self.strip_item(item));
                changed.then(|| vec![event.clone()])
            }
            _ => {
                let changed = event.get_mut("response").is_some_and(|answer| self.strip_answer(answer));
                changed.then(|| vec![event.clone()])
            }
        }
    }

    /// Ends a call; gives its arguments without their intent.
    fn end_call(&mut self, key: (u64, u64)) -> Option<String> {
        let OpenCall { id, name, arguments } = self.calls.remove(&key)?;
        Some(self.strip_arguments(&id, &name, &arguments).unwrap_or(arguments))
    }

    /// Takes the intent out of arguments and keeps it; nothing where there is none.
    fn strip_arguments(&self, id: &str, name: &str, arguments: &str) -> Option<String> {
        let (intent, rest) = take_intent(arguments)?;
        self.intents.remember_intent(call_key(Some(id), name, &rest), intent);
        Some(rest)
    }

    /// Takes the intents out of a whole answer; tells whether there were any.
    fn strip_answer(&self, answer: &mut Value) -> bool {
        if let Some(parts) = answer.as_array_mut() {
            return parts.iter_mut().filter_map(|part| self.strip_answer(part).then_some(())).count() > 0;
        }
        let lists: Vec<&mut Value> = match self.format {
            Format::Anthropic => answer.pointer_mut("/content").into_iter().collect(),
            Format::Responses => answer.pointer_mut("/output").into_iter().collect(),
            Format::Chat => values_in_list(answer, "/choices", "/message/tool_calls"),
            Format::Gemini => values_in_list(answer, "/candidates", "/content/parts"),
        };
        let items = lists.into_iter().filter_map(Value::as_array_mut).flatten();
        items.filter_map(|item| self.strip_item(item).then_some(())).count() > 0
    }

    /// Takes the intent out of one call; tells whether there was one.
    fn strip_item(&self, item: &mut Value) -> bool {
        let (id, name, place) = match self.format {
            Format::Anthropic => ("/id", "/name", "/input"),
            Format::Chat => ("/id", "/function/name", "/function/arguments"),
            Format::Responses => ("/call_id", "/name", "/arguments"),
            Format::Gemini => ("/functionCall/id", "/functionCall/name", "/functionCall/args"),
        };
        let (id, name) = (text_at(item, id), text_at(item, name));
        let Some(arguments) = item.pointer_mut(place).filter(|_| self.tools.contains(&name)) else {
            return false;
        };
        match arguments {
            Value::String(text) => match self.strip_arguments(&id, &name, text) {
                Some(rest) => *text = rest,
                None => return false,
            },
            Value::Object(members) => {
                let Some(Value::String(intent)) = members.get(INTENT).cloned() else { return false };
                members.remove(INTENT);
                let rest = Value::Object(members.clone()).to_string();
                self.intents.remember_intent(call_key(Some(&id), &name, &rest), intent);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return false,
        }
        true
    }
}

/// Returns a value of every element of a list.
fn values_in_list<'a>(answer: &'a mut Value, list: &str, place: &str) -> Vec<&'a mut Value> {
    let elements = answer.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
    elements.filter_map(|element| element.pointer_mut(place)).collect()
}

fn text_at(value: &Value, place: &str) -> String {
    value.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn number_at(value: &Value, place: &str) -> u64 {
    value.pointer(place).and_then(Value::as_u64).unwrap_or_default()
}

/// Returns where the first event ends, its blank line included.
fn event_end(bytes: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'\n', bytes).find_map(|at| {
        let behind = bytes.get(at + 1..)?;
        let blank = ["\n", "\r\n"].iter().find(|blank| behind.starts_with(blank.as_bytes()))?;
        Some(at + 1 + blank.len())
    })
}

/// Returns what an event says.
fn data_of(event: &[u8]) -> Vec<u8> {
    let lines = event.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    lines.collect::<Vec<_>>().join(&b'\n')
}

/// Writes an event in the manner of the one it stands for.
fn write_event(like: &[u8], value: &Value, on: &mut Vec<u8>) {
    if like.starts_with(b"event:") {
        on.extend_from_slice(format!("event: {}\n", text_at(value, "/type")).as_bytes());
    }
    on.extend_from_slice(format!("data: {value}\n\n").as_bytes());
}

#[cfg(test)]
mod tests;
