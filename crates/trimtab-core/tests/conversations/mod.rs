//! Conversations made up for the laws. Gives a neutral conversation, its request in each wire format, and the
//! blocks that a reader must find in it. Never asks the library how something is spelled.

mod long;

pub(crate) use long::long_conversation;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};
use serde_json::{Map, Value, json};
use trimtab_core::{BlockKind, Format};

/// A conversation in no format.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    pub(crate) system: Option<String>,
    pub(crate) tools: Vec<String>,
    pub(crate) turns: Vec<Turn>,
}

/// What happens next.
#[derive(Debug, Clone)]
pub(crate) enum Turn {
    /// The human says something, with or without a picture.
    Human { text: String, picture: bool },
    /// The model answers and perhaps calls tools; all calls but the dangling are answered.
    Answer { reasoning: Option<String>, text: Option<String>, calls: Vec<Call> },
    /// The system says something in the middle, where the format has a place for it.
    System(String),
    /// A block of a kind that nobody knows.
    Strange(String),
}

/// A call and what came back.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// The name of its first argument.
    pub(crate) key: String,
    pub(crate) argument: String,
    /// More arguments, as calls that write and edit have them.
    pub(crate) more: Vec<(&'static str, String)>,
    pub(crate) result: CallResult,
}

impl Call {
    fn arguments(&self) -> Value {
        let mut arguments = json!({(self.key.clone()): self.argument});
        for (key, value) in &self.more {
            arguments[*key] = json!(value);
        }
        arguments
    }

    /// Tells whether its tool takes a text and no JSON, where the format has such tools.
    fn is_plain(&self) -> bool {
        self.name == "apply_patch"
    }
}

#[derive(Debug, Clone)]
pub(crate) enum CallResult {
    Text(String),
    Failed(String),
    Empty,
    Picture(String),
    Structured(String),
    /// None came: the call dangles.
    Missing,
}

/// How the JSON is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) spaced: bool,
    pub(crate) reversed: bool,
    pub(crate) escaped: bool,
    pub(crate) extra_fields: bool,
}

/// What a reader must find: kind, tool name and readable text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) kind: BlockKind,
    pub(crate) tool: Option<String>,
    pub(crate) text: Option<String>,
}

pub(crate) fn conversation() -> impl Strategy<Value = Conversation> {
    let system = prop::option::of(text());
    let tools = prop::collection::vec("[a-z_]{1,12}", 0..3);
    (system, tools, prop::collection::vec(turn(), 1..8)).prop_map(|(system, tools, turns)| {
        let first = Turn::Human { text: "begin".to_owned(), picture: false };
        Conversation { system, tools, turns: std::iter::once(first).chain(turns).collect() }
    })
}

pub(crate) fn style() -> impl Strategy<Value = Style> {
    any::<(bool, bool, bool, bool)>().prop_map(|(spaced, reversed, escaped, extra_fields)| Style {
        spaced,
        reversed,
        escaped,
        extra_fields,
    })
}

fn turn() -> impl Strategy<Value = Turn> {
    let human = (text(), any::<bool>()).prop_map(|(text, picture)| Turn::Human { text, picture });
    let answer = (prop::option::of(text()), prop::option::of(text()), prop::collection::vec(call(), 0..4))
        .prop_map(|(reasoning, text, calls)| Turn::Answer { reasoning, text, calls });
    prop_oneof![3 => human, 6 => answer, 1 => text().prop_map(Turn::System), 1 => text().prop_map(Turn::Strange)]
}

fn call() -> impl Strategy<Value = Call> {
    let result = prop_oneof![
        4 => text().prop_map(CallResult::Text),
        1 => text().prop_map(CallResult::Failed),
        1 => Just(CallResult::Empty),
        1 => text().prop_map(CallResult::Picture),
        1 => text().prop_map(CallResult::Structured),
    ];
    ("[a-zA-Z_]{1,16}", text(), result).prop_map(|(name, argument, result)| Call {
        name,
        key: "value".to_owned(),
        argument,
        more: Vec::new(),
        result,
    })
}

/// Texts as agents and tools write them, and as nobody should.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[ -~]{1,40}",
        2 => any::<String>().prop_filter("not empty", |text| !text.is_empty()),
        1 => "(\\\\|\"|\n|\t|/|u00e9){1,20}",
        1 => "[一-龥ぁ-ん😀-😎]{1,12}",
        1 => "[a-z]{1,8}".prop_map(|word| format!("{word} ").repeat(60)),
        1 => Just("{\"type\":\"tool_result\",\"tool_use_id\":\"x\"}".to_owned()),
    ]
}

/// The PNG of one white pixel.
pub(crate) const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg==";

impl Conversation {
    /// Writes the request, and what must be found in it.
    pub(crate) fn write(&self, format: Format, style: Style) -> (String, Vec<Expected>) {
        let (request, expected) = match format {
            Format::Anthropic => self.anthropic(),
            Format::Chat => self.chat(),
            Format::Responses => self.responses(),
            Format::Gemini => self.gemini(),
        };
        let mut json = String::new();
        render(&request, style, &mut json);
        (json, expected)
    }

    fn anthropic(&self) -> (Value, Vec<Expected>) {
        let mut found = Vec::new();
        let mut request = Map::new();
        request.insert("model".into(), json!("claude-opus-5"));
        let tools = self.tools.iter().map(|name| {
            found.push(expect(BlockKind::Definition, Some(name), None));
            json!({"name": name, "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}})
        });
        request.insert("tools".into(), tools.collect());
        if let Some(system) = &self.system {
            found.push(expect(BlockKind::Text, None, Some(system)));
            request.insert("system".into(), json!([{"type": "text", "text": system}]));
        }
        let mut messages = Vec::new();
        for (number, turn) in self.turns.iter().enumerate() {
            match turn {
                Turn::Human { text, picture } => {
                    found.push(expect(BlockKind::Text, None, Some(text)));
                    let mut content = vec![json!({"type": "text", "text": text})];
                    if *picture {
                        found.push(expect(BlockKind::Media, None, None));
                        content.push(anthropic_picture());
                    }
                    // What the user says right after results stands in their message, as clients write it.
                    let results = messages.last_mut().filter(|last: &&mut Value| {
                        last["role"] == "user" && last["content"][0]["type"] == "tool_result"
                    });
                    match results.and_then(|last| last["content"].as_array_mut()) {
                        Some(results) => results.extend(content),
                        None => messages.push(json!({"role": "user", "content": content})),
                    }
                }
                Turn::Answer { reasoning, text, calls } => {
                    let mut content = Vec::new();
                    if let Some(reasoning) = reasoning {
                        found.push(expect(BlockKind::Reasoning, None, Some(reasoning)));
                        content.push(json!({"type": "thinking", "thinking": reasoning, "signature": "c2ln"}));
                    }
                    if let Some(text) = text {
                        found.push(expect(BlockKind::Text, None, Some(text)));
                        content.push(json!({"type": "text", "text": text}));
                    }
                    for (index, call) in calls.iter().enumerate() {
                        found.push(expect(BlockKind::Call, Some(&call.name), None));
                        let id = format!("toolu_{number}_{index}");
                        content.push(json!({"type": "tool_use", "id": id, "name": call.name,
                            "input": call.arguments()}));
                    }
                    messages.push(json!({"role": "assistant", "content": content}));
                    let results: Vec<Value> = answered(calls)
                        .map(|(index, call)| {
                            let (content, text, failed) = match &call.result {
                                CallResult::Text(text) => (json!(text), Some(text), false),
                                CallResult::Failed(text) => (json!(text), Some(text), true),
                                CallResult::Empty | CallResult::Missing => (json!(""), None, false),
                                CallResult::Picture(text) => (
                                    json!([{"type": "text", "text": text}, anthropic_picture()]),
                                    Some(text),
                                    false,
                                ),
                                CallResult::Structured(text) => {
                                    (json!([{"type": "text", "text": text}]), Some(text), false)
                                }
                            };
                            found.push(expect(BlockKind::Result, Some(&call.name), text.map(String::as_str)));
                            json!({"type": "tool_result", "tool_use_id": format!("toolu_{number}_{index}"),
                            "content": content, "is_error": failed})
                        })
                        .collect();
                    if !results.is_empty() {
                        messages.push(json!({"role": "user", "content": results}));
                    }
                }
                Turn::System(_) => {}
                Turn::Strange(text) => {
                    found.push(expect(BlockKind::Unknown, None, None));
                    messages.push(json!({"role": "user", "content": [{"type": "hologram", "data": text}]}));
                }
            }
        }
        request.insert("messages".into(), messages.into());
        (request.into(), found)
    }

    fn chat(&self) -> (Value, Vec<Expected>) {
        let mut found = Vec::new();
        let mut request = Map::new();
        request.insert("model".into(), json!("gpt-5"));
        let tools = self.tools.iter().map(|name| {
            found.push(expect(BlockKind::Definition, Some(name), None));
            json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}})
        });
        request.insert("tools".into(), tools.collect());
        let mut messages = Vec::new();
        if let Some(system) = &self.system {
            found.push(expect(BlockKind::Text, None, Some(system)));
            messages.push(json!({"role": "system", "content": system}));
        }
        for (number, turn) in self.turns.iter().enumerate() {
            match turn {
                Turn::Human { text, picture: false } => {
                    found.push(expect(BlockKind::Text, None, Some(text)));
                    messages.push(json!({"role": "user", "content": text}));
                }
                Turn::Human { text, picture: true } => {
                    found.push(expect(BlockKind::Text, None, Some(text)));
                    found.push(expect(BlockKind::Media, None, None));
                    let url = format!("data:image/png;base64,{PIXEL}");
                    messages.push(json!({"role": "user", "content": [{"type": "text", "text": text},
                        {"type": "image_url", "image_url": {"url": url}}]}));
                }
                Turn::Answer { reasoning, text, calls } => {
                    let mut message = Map::new();
                    message.insert("role".into(), json!("assistant"));
                    message.insert("content".into(), json!(text));
                    if let Some(reasoning) = reasoning {
                        found.push(expect(BlockKind::Reasoning, None, Some(reasoning)));
                        message.insert("reasoning_content".into(), json!(reasoning));
                    }
                    found.extend(text.iter().map(|text| expect(BlockKind::Text, None, Some(text))));
                    let asked: Vec<Value> = calls
                        .iter()
                        .enumerate()
                        .map(|(index, call)| {
                            let arguments = call.arguments().to_string();
                            let id = format!("call_{number}_{index}");
                            if call.is_plain() {
                                found.push(expect(BlockKind::Call, Some(&call.name), Some(&call.argument)));
                                return json!({"id": id, "type": "custom",
                                    "custom": {"name": call.name, "input": call.argument}});
                            }
                            found.push(expect(BlockKind::Call, Some(&call.name), Some(&arguments)));
                            json!({"id": id, "type": "function",
                                "function": {"name": call.name, "arguments": arguments}})
                        })
                        .collect();
                    if !asked.is_empty() {
                        message.insert("tool_calls".into(), asked.into());
                    }
                    messages.push(message.into());
                    for (index, call) in answered(calls) {
                        let content = match &call.result {
                            CallResult::Text(text) | CallResult::Failed(text) => json!(text),
                            CallResult::Empty | CallResult::Missing => json!(""),
                            CallResult::Picture(text) | CallResult::Structured(text) => {
                                json!([{"type": "text", "text": text}])
                            }
                        };
                        found.push(expect(BlockKind::Result, Some(&call.name), call.result.text()));
                        messages
                            .push(json!({"role": "tool", "tool_call_id": format!("call_{number}_{index}"),
                            "content": content}));
                    }
                }
                Turn::System(text) => {
                    found.push(expect(BlockKind::Text, None, Some(text)));
                    messages.push(json!({"role": "system", "content": text}));
                }
                Turn::Strange(text) => {
                    found.push(expect(BlockKind::Unknown, None, None));
                    messages.push(json!({"role": "user", "content": [{"type": "hologram", "data": text}]}));
                }
            }
        }
        request.insert("messages".into(), messages.into());
        (request.into(), found)
    }

    fn responses(&self) -> (Value, Vec<Expected>) {
        let mut found = Vec::new();
        let mut request = Map::new();
        request.insert("model".into(), json!("gpt-6"));
        let tools = self.tools.iter().map(|name| {
            found.push(expect(BlockKind::Definition, Some(name), None));
            json!({"type": "function", "name": name, "parameters": {"type": "object"}})
        });
        request.insert("tools".into(), tools.collect());
        if let Some(system) = &self.system {
            found.push(expect(BlockKind::Text, None, Some(system)));
            request.insert("instructions".into(), json!(system));
        }
        let mut input = Vec::new();
        for (number, turn) in self.turns.iter().enumerate() {
            match turn {
                Turn::Human { text, picture } => {
                    found.push(expect(BlockKind::Text, None, Some(text)));
                    let mut content = vec![json!({"type": "input_text", "text": text})];
                    if *picture {
                        found.push(expect(BlockKind::Media, None, None));
                        content.push(json!({"type": "input_image", "image_url": format!("data:image/png;base64,{PIXEL}")}));
                    }
                    input.push(json!({"type": "message", "role": "user", "content": content}));
                }
                Turn::Answer { reasoning, text, calls } => {
                    if let Some(reasoning) = reasoning {
                        found.push(expect(BlockKind::Reasoning, None, Some(reasoning)));
                        input.push(json!({"type": "reasoning", "id": format!("rs_{number}"),
                            "summary": [{"type": "summary_text", "text": reasoning}], "encrypted_content": "c2VhbGVk"}));
                    }
                    if let Some(text) = text {
                        found.push(expect(BlockKind::Text, None, Some(text)));
                        input.push(json!({"type": "message", "role": "assistant",
                            "content": [{"type": "output_text", "text": text}]}));
                    }
                    for (index, call) in calls.iter().enumerate() {
                        let arguments = call.arguments().to_string();
                        if call.is_plain() {
                            found.push(expect(BlockKind::Call, Some(&call.name), Some(&call.argument)));
                            input.push(
                                json!({"type": "custom_tool_call", "call_id": format!("call_{number}_{index}"),
                                "name": call.name, "input": call.argument}),
                            );
                            continue;
                        }
                        found.push(expect(BlockKind::Call, Some(&call.name), Some(&arguments)));
                        input.push(
                            json!({"type": "function_call", "call_id": format!("call_{number}_{index}"),
                            "name": call.name, "arguments": arguments}),
                        );
                    }
                    for (index, call) in answered(calls) {
                        let output = match &call.result {
                            CallResult::Text(text) | CallResult::Failed(text) => json!(text),
                            CallResult::Empty | CallResult::Missing => json!(""),
                            CallResult::Picture(text) => json!([{"type": "input_text", "text": text},
                                {"type": "input_image", "image_url": format!("data:image/png;base64,{PIXEL}")}]),
                            CallResult::Structured(text) => json!([{"type": "input_text", "text": text}]),
                        };
                        found.push(expect(BlockKind::Result, Some(&call.name), call.result.text()));
                        let kind =
                            if call.is_plain() { "custom_tool_call_output" } else { "function_call_output" };
                        input.push(json!({"type": kind, "call_id": format!("call_{number}_{index}"),
                            "output": output}));
                    }
                }
                Turn::System(text) => {
                    found.push(expect(BlockKind::Text, None, Some(text)));
                    let content = json!([{"type": "input_text", "text": text}]);
                    input.push(json!({"type": "message", "role": "developer", "content": content}));
                }
                Turn::Strange(text) => {
                    found.push(expect(BlockKind::Unknown, None, None));
                    input.push(json!({"type": "hologram", "data": text}));
                }
            }
        }
        request.insert("input".into(), input.into());
        (request.into(), found)
    }

    fn gemini(&self) -> (Value, Vec<Expected>) {
        let mut found = Vec::new();
        let mut request = Map::new();
        let declared: Vec<Value> = self
            .tools
            .iter()
            .map(|name| {
                found.push(expect(BlockKind::Definition, Some(name), None));
                json!({"name": name, "parameters": {"type": "OBJECT"}})
            })
            .collect();
        request.insert("tools".into(), json!([{"functionDeclarations": declared}]));
        if let Some(system) = &self.system {
            found.push(expect(BlockKind::Text, None, Some(system)));
            request.insert("systemInstruction".into(), json!({"parts": [{"text": system}]}));
        }
        let mut contents = Vec::new();
        for turn in &self.turns {
            match turn {
                Turn::Human { text, picture } => {
                    found.push(expect(BlockKind::Text, None, Some(text)));
                    let mut parts = vec![json!({"text": text})];
                    if *picture {
                        found.push(expect(BlockKind::Media, None, None));
                        parts.push(json!({"inlineData": {"mimeType": "image/png", "data": PIXEL}}));
                    }
                    contents.push(json!({"role": "user", "parts": parts}));
                }
                Turn::Answer { reasoning, text, calls } => {
                    let mut parts = Vec::new();
                    if let Some(reasoning) = reasoning {
                        found.push(expect(BlockKind::Reasoning, None, Some(reasoning)));
                        parts.push(json!({"text": reasoning, "thought": true}));
                    }
                    if let Some(text) = text {
                        found.push(expect(BlockKind::Text, None, Some(text)));
                        parts.push(json!({"text": text}));
                    }
                    for (index, call) in calls.iter().enumerate() {
                        found.push(expect(BlockKind::Call, Some(&call.name), None));
                        let mut part = json!({"functionCall": {"name": call.name, "args": call.arguments()}});
                        // Of calls made together only the first is signed.
                        if index == 0 {
                            part["thoughtSignature"] = json!("c2ln");
                        }
                        parts.push(part);
                    }
                    contents.push(json!({"role": "model", "parts": parts}));
                    let answers: Vec<Value> = answered(calls)
                        .map(|(_, call)| {
                            let (response, text) = match &call.result {
                                CallResult::Text(text) | CallResult::Picture(text) => {
                                    (json!({"output": text}), Some(text))
                                }
                                CallResult::Failed(text) => (json!({"error": text}), Some(text)),
                                CallResult::Empty | CallResult::Missing => (json!({"output": ""}), None),
                                CallResult::Structured(text) => (json!({"rows": [text], "total": 1}), None),
                            };
                            found.push(expect(BlockKind::Result, Some(&call.name), text.map(String::as_str)));
                            json!({"functionResponse": {"name": call.name, "response": response}})
                        })
                        .collect();
                    if !answers.is_empty() {
                        contents.push(json!({"role": "user", "parts": answers}));
                    }
                }
                Turn::System(_) => {}
                Turn::Strange(text) => {
                    found.push(expect(BlockKind::Unknown, None, None));
                    contents.push(json!({"role": "user", "parts": [{"hologram": text}]}));
                }
            }
        }
        request.insert("contents".into(), contents.into());
        (request.into(), found)
    }
}

impl CallResult {
    fn text(&self) -> Option<&str> {
        match self {
            CallResult::Text(text)
            | CallResult::Failed(text)
            | CallResult::Picture(text)
            | CallResult::Structured(text) => Some(text),
            CallResult::Empty | CallResult::Missing => None,
        }
    }
}

/// Returns the calls that were answered, each with its number.
fn answered(calls: &[Call]) -> impl Iterator<Item = (usize, &Call)> {
    calls.iter().enumerate().filter(|(_, call)| !matches!(call.result, CallResult::Missing))
}

fn expect(kind: BlockKind, tool: Option<&str>, text: Option<&str>) -> Expected {
    Expected { kind, tool: tool.map(str::to_owned), text: text.map(str::to_owned) }
}

fn anthropic_picture() -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}})
}

fn render(value: &Value, style: Style, json: &mut String) {
    let gap = if style.spaced { " \n\t" } else { "" };
    match value {
        Value::Array(items) => {
            json.push('[');
            for (index, item) in items.iter().enumerate() {
                json.push_str(if index > 0 { "," } else { "" });
                json.push_str(gap);
                render(item, style, json);
            }
            json.push_str(gap);
            json.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            if style.reversed {
                members.reverse();
            }
            let note = json!({"unknown": [1e300, null]});
            let extra = "x_extra".to_owned();
            if style.extra_fields {
                members.insert(members.len() / 2, (&extra, &note));
            }
            let style = Style {
                extra_fields: style.extra_fields && members.iter().all(|(key, _)| *key != "value"),
                ..style
            };
            json.push('{');
            for (index, (key, member)) in members.into_iter().enumerate() {
                json.push_str(if index > 0 { "," } else { "" });
                json.push_str(gap);
                string(key, style, json);
                json.push_str(gap);
                json.push(':');
                json.push_str(gap);
                let inner = Style { extra_fields: style.extra_fields && !opaque(key), ..style };
                render(member, inner, json);
            }
            json.push_str(gap);
            json.push('}');
        }
        Value::String(text) => string(text, style, json),
        other => json.push_str(&other.to_string()),
    }
}

/// Members whose value is the tool's own, so that nothing may be added inside.
fn opaque(key: &str) -> bool {
    matches!(key, "input" | "args" | "response" | "x_extra" | "input_schema" | "parameters")
}

fn string(text: &str, style: Style, json: &mut String) {
    let plain = serde_json::to_string(text).expect("a string");
    if !style.escaped {
        json.push_str(&plain);
        return;
    }
    for letter in plain.chars() {
        if letter.is_ascii() {
            json.push(letter);
        } else {
            letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| json.push_str(&format!("\\u{unit:04X}")));
        }
    }
}
