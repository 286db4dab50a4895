//! Gemini generateContent. Takes a scanned request, in camelCase or snake_case; gives its entries and blocks.
//! Never moves a thought signature: it belongs to the exact part that carries it.

use super::{Layout, Question, UserMessages, repair, unknown};
use crate::{
    history::{BlockKind, Format, HistoryOutline, PartKind, Role},
    json::{Array, Object, Value, scan},
};

pub(super) const LAYOUT: Layout = Layout {
    format: Format::Gemini,
    name: "gemini",
    title: "Gemini generateContent",
    list: "contents",
    fits: |root| root.get("contents").is_some_and(Value::is_array),
    fits_list: |list| {
        list.items().next().is_some_and(|first| first.get("parts").is_some_and(Value::is_array))
    },
    head,
    entry,
    message_has: "`parts`",
    is_message: |item| item.get("parts").is_some(),
    is_known: |_| true,
    repair: repair::gemini::repair,
    flags_failures: false,
    user_messages: UserMessages::Joined,
    user_message: [r#"{"role":"user","parts":["#, "]}"],
    user_text: text_part,
    text_part,
    question,
    result_body,
};

fn question(asked: &Question<'_>) -> Vec<u8> {
    let said = |text: &str| Array::new().raw(&Object::new().text("text", text).end()).end();
    let system = Object::new().raw("parts", &said(asked.system)).end();
    let question = Object::new().text("role", "user").raw("parts", &said(asked.prompt)).end();
    let limit = Object::new().raw("maxOutputTokens", asked.most.0.to_string().as_bytes()).end();
    let request = Object::new().raw("systemInstruction", &system);
    request.raw("contents", &Array::new().raw(&question).end()).raw("generationConfig", &limit).end()
}

fn text_part(json: &[u8]) -> Vec<u8> {
    Object::new().raw("text", json).end()
}

/// A response is an object: a text that is not one becomes its output.
fn result_body(text: &str, json: &[u8]) -> Vec<u8> {
    if is_response(text) { text.as_bytes().to_vec() } else { Object::new().raw("output", json).end() }
}

/// Tells whether a text is a JSON object that is read back as one: an object with one text is read as that text.
fn is_response(text: &str) -> bool {
    if !text.starts_with('{') {
        return false;
    }
    let Ok(tape) = scan(text.as_bytes()) else { return false };
    let members = || tape.root(text.as_bytes()).into_iter().flat_map(Value::members);
    members().count() > 1 || members().any(|(_, value)| !value.is_string())
}

fn head(root: Value<'_>, outline: &mut HistoryOutline) {
    if let Some(tools) = root.get("tools").filter(|tools| tools.is_array()) {
        outline.add_entry(Role::Tools, tools.span());
        for tool in tools.items() {
            let Some(functions) = either(tool, "functionDeclarations", "function_declarations") else {
                outline.add_block(BlockKind::Definition, tool.span());
                outline.add_part(PartKind::Json, Some(tool));
                continue;
            };
            for function in functions.items() {
                let block = outline.add_block(BlockKind::Definition, function.span());
                block.name = function.get("name").map(Value::span).unwrap_or_default();
                outline.add_part(PartKind::Json, Some(function));
            }
        }
    }
    let Some(system) = either(root, "systemInstruction", "system_instruction") else { return };
    outline.add_entry(Role::System, system.span());
    if system.is_string() {
        outline.add_block(BlockKind::Text, system.span());
        outline.add_part(PartKind::Text, Some(system));
        return;
    }
    parts(system, outline);
}

fn entry(content: Value<'_>, outline: &mut HistoryOutline) {
    let answers = |part: Value<'_>| either(part, "functionResponse", "function_response").is_some();
    let role = match content.text("role").as_deref() {
        Some("model") => Role::Assistant,
        Some("function") => Role::Tool,
        Some("user") | None if content.get("parts").is_some_and(|parts| parts.items().any(answers)) => {
            Role::Tool
        }
        Some("user") | None => Role::User,
        Some("system") => Role::System,
        Some(_) => Role::Other,
    };
    outline.add_entry(role, content.span());
    parts(content, outline);
}

fn parts(content: Value<'_>, outline: &mut HistoryOutline) {
    let Some(parts) = content.get("parts") else { return };
    if parts.is_array() {
        parts.items().for_each(|item| part(item, outline));
    } else {
        unknown(parts, outline);
    }
}

fn part(item: Value<'_>, outline: &mut HistoryOutline) {
    if let Some(call) = either(item, "functionCall", "function_call") {
        let block = outline.add_block(BlockKind::Call, item.span());
        block.name = call.get("name").map(Value::span).unwrap_or_default();
        block.id = call.get("id").filter(|id| id.is_string()).map(Value::span).unwrap_or_default();
        block.body = call.get("args").map(Value::span).unwrap_or_default();
        outline.add_part(PartKind::Json, call.get("args"));
    } else if let Some(answer) = either(item, "functionResponse", "function_response") {
        result(item, answer, outline);
    } else if let Some(text) = item.get("text").filter(|text| text.is_string()) {
        let thought = item.get("thought").is_some_and(Value::is_true);
        outline.add_block(if thought { BlockKind::Reasoning } else { BlockKind::Text }, item.span());
        outline.add_part(PartKind::Text, Some(text));
    } else if let Some(data) =
        either(item, "inlineData", "inline_data").or(either(item, "fileData", "file_data"))
    {
        outline.add_block(BlockKind::Media, item.span());
        outline.add_part(media_kind(data), Some(data));
    } else {
        unknown(item, outline);
    }
    outline.add_part(PartKind::Sealed, either(item, "thoughtSignature", "thought_signature"));
}

fn result(item: Value<'_>, answer: Value<'_>, outline: &mut HistoryOutline) {
    let response = answer.get("response");
    let block = outline.add_block(BlockKind::Result, item.span());
    block.body = response.map(Value::span).unwrap_or_default();
    block.name = answer.get("name").map(Value::span).unwrap_or_default();
    block.id = answer.get("id").filter(|id| id.is_string()).map(Value::span).unwrap_or_default();
    block.failed =
        response.is_some_and(|response| response.get("error").is_some_and(|error| !error.is_null()));
    match response.and_then(only_text) {
        Some(text) => outline.add_part(PartKind::Text, Some(text)),
        None => outline.add_part(PartKind::Json, response),
    }
    for part in answer.get("parts").into_iter().flat_map(Value::items) {
        let data = either(part, "inlineData", "inline_data").or(either(part, "fileData", "file_data"));
        outline.add_part(data.map_or(PartKind::Json, media_kind), data.or(Some(part)));
    }
}

/// Returns the text of a response that is nothing but a text under one key, as in `{"output": "…"}`.
fn only_text(response: Value<'_>) -> Option<Value<'_>> {
    let mut members = response.members();
    let (_, value) = members.next()?;
    (members.next().is_none() && value.is_string()).then_some(value)
}

fn media_kind(data: Value<'_>) -> PartKind {
    let mime = data.text("mimeType").or(data.text("mime_type")).unwrap_or_default();
    match mime.split('/').next() {
        Some("image") => PartKind::Image,
        Some("audio") => PartKind::Audio,
        _ => PartKind::Document,
    }
}

fn either<'a>(value: Value<'a>, camel: &str, snake: &str) -> Option<Value<'a>> {
    value.get(camel).or_else(|| value.get(snake)).filter(|value| !value.is_null())
}
