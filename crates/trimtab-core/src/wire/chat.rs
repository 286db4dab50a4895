//! OpenAI Chat Completions, and the many servers that speak it. Takes a scanned request; gives its entries
//! and blocks. Never relies on the order of keys: reasoning comes before text, text before calls.

use super::{
    Layout, Question, UserMessages, begins_with_role, has_role, plain_message, plain_result, repair,
    typed_text, unknown,
};
use crate::{
    history::{BlockKind, Format, HistoryOutline, PartKind, Role},
    json::{Array, Object, Value},
};

pub(super) const LAYOUT: Layout = Layout {
    format: Format::Chat,
    name: "chat",
    title: "OpenAI Chat Completions",
    list: "messages",
    fits: |root| root.get("messages").is_some(),
    fits_list: begins_with_role,
    head: read_head,
    entry: read_entry,
    message_has: "`role`",
    is_message: has_role,
    is_known: |_| true,
    repair: repair::chat::repair,
    flags_failures: false,
    user_messages: UserMessages::JoinedIfAlternating,
    user_message: [r#"{"role":"user","content":"#, "}"],
    user_text: <[u8]>::to_vec,
    text_part: typed_text,
    question,
    result_body: plain_result,
};

pub(super) fn is_chat_message(message: Value<'_>) -> bool {
    let role = message.text("role");
    matches!(role.as_deref(), Some("system" | "developer" | "tool" | "function"))
        || message.get("tool_calls").is_some()
}

fn question(asked: &Question<'_>) -> Vec<u8> {
    let messages = Array::new().raw(&plain_message("system", asked.system));
    let messages = messages.raw(&plain_message("user", asked.prompt)).end();
    let request = Object::new().text("model", asked.model);
    request.raw(limit_key(asked.model), asked.most.0.to_string().as_bytes()).raw("messages", &messages).end()
}

/// OpenAI's newer models refuse the name that every other server knows.
fn limit_key(model: &str) -> &'static str {
    let newer = ["gpt-5", "gpt-6", "o1", "o3", "o4"];
    if newer.iter().any(|start| model.starts_with(start)) { "max_completion_tokens" } else { "max_tokens" }
}

fn read_head(root: Value<'_>, outline: &mut HistoryOutline) {
    for key in ["tools", "functions"] {
        let Some(tools) = root.get(key).filter(|tools| tools.is_array()) else { continue };
        outline.add_entry(Role::Tools, tools.span());
        for tool in tools.items() {
            let named = tool
                .path(&["function", "name"])
                .or_else(|| tool.path(&["custom", "name"]))
                .or(tool.get("name"));
            let block = outline.add_block(BlockKind::Definition, tool.span());
            block.name = named.map(Value::span).unwrap_or_default();
            block.marked = has_marker(tool);
            outline.add_part(PartKind::Json, Some(tool));
        }
    }
}

fn read_entry(message: Value<'_>, outline: &mut HistoryOutline) {
    let role = match message.text("role").as_deref() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        _ => Role::Other,
    };
    outline.add_entry(role, message.span());
    if role == Role::Tool {
        result(message, outline);
        return;
    }
    for key in ["reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"] {
        if let Some(value) = message.get(key) {
            read_reasoning(value, outline);
        }
    }
    if let Some(value) = message.get("content") {
        read_content(value, outline);
    }
    if let Some(refusal) = message.get("refusal").filter(|refusal| refusal.is_string()) {
        outline.add_block(BlockKind::Text, refusal.span());
        outline.add_part(PartKind::Text, Some(refusal));
    }
    if let Some(call) = message.get("function_call").filter(|call| call.is_object()) {
        self::call(call, call, outline);
    }
    let calls = message.get("tool_calls").into_iter().flat_map(Value::items);
    calls.for_each(|item| match (item.get("function"), item.get("custom")) {
        (Some(function), _) => call(item, function, outline),
        (None, Some(custom)) => call(item, custom, outline),
        (None, None) => unknown(item, outline),
    });
}

fn read_reasoning(value: Value<'_>, outline: &mut HistoryOutline) {
    if value.is_null() {
        return;
    }
    outline.add_block(BlockKind::Reasoning, value.span());
    if value.is_string() {
        outline.add_part(PartKind::Text, Some(value));
        return;
    }
    for item in value.items() {
        let text = ["text", "summary", "thinking"].iter().find_map(|key| item.get(key));
        outline.add_part(PartKind::Text, text.filter(|text| text.is_string()));
        for key in ["signature", "data"] {
            outline.add_part(PartKind::Sealed, item.get(key));
        }
    }
}

fn read_content(value: Value<'_>, outline: &mut HistoryOutline) {
    if value.is_string() {
        outline.add_block(BlockKind::Text, value.span());
        outline.add_part(PartKind::Text, Some(value));
        return;
    }
    for item in value.items() {
        let kind = item.text("type").unwrap_or_default();
        let (block, part, value) = match kind.as_ref() {
            "text" if item.get("text").is_some() => (BlockKind::Text, PartKind::Text, item.get("text")),
            "refusal" if item.get("refusal").is_some() => {
                (BlockKind::Text, PartKind::Text, item.get("refusal"))
            }
            "image_url" => (BlockKind::Media, PartKind::Image, Some(item)),
            "input_audio" => (BlockKind::Media, PartKind::Audio, Some(item)),
            "file" => (BlockKind::Media, PartKind::Document, Some(item)),
            "thinking" => {
                (BlockKind::Reasoning, PartKind::Text, item.get("thinking").filter(|text| text.is_string()))
            }
            _ => (BlockKind::Unknown, PartKind::Json, Some(item)),
        };
        outline.add_block(block, item.span()).marked = has_marker(item);
        outline.add_part(part, value);
    }
}

fn call(item: Value<'_>, function: Value<'_>, outline: &mut HistoryOutline) {
    let block = outline.add_block(BlockKind::Call, item.span());
    block.id = item.get("id").filter(|id| id.is_string()).map(Value::span).unwrap_or_default();
    block.name = function.get("name").map(Value::span).unwrap_or_default();
    block.body = function.get("arguments").or(function.get("input")).map(Value::span).unwrap_or_default();
    if let Some(arguments) = function.get("arguments") {
        outline.add_part(
            if arguments.is_string() { PartKind::JsonText } else { PartKind::Json },
            Some(arguments),
        );
    } else {
        outline.add_part(PartKind::Text, function.get("input").filter(|input| input.is_string()));
    }
    outline.add_part(PartKind::Sealed, item.path(&["extra_content", "google", "thought_signature"]));
}

fn result(message: Value<'_>, outline: &mut HistoryOutline) {
    let block = outline.add_block(BlockKind::Result, message.span());
    block.id = message.get("tool_call_id").filter(|id| id.is_string()).map(Value::span).unwrap_or_default();
    block.name = message.get("name").filter(|name| name.is_string()).map(Value::span).unwrap_or_default();
    block.marked = has_marker(message);
    let Some(content) = message.get("content") else { return };
    block.body = content.span();
    if content.is_string() {
        outline.add_part(PartKind::Text, Some(content));
        return;
    }
    for item in content.items() {
        match item.text("type").as_deref() {
            Some("text") if item.get("text").is_some_and(Value::is_string) => {
                outline.add_part(PartKind::Text, item.get("text"));
            }
            Some("image_url") => outline.add_part(PartKind::Image, Some(item)),
            _ => outline.add_part(PartKind::Json, Some(item)),
        }
        if let Some(block) = outline.blocks.last_mut() {
            block.marked |= has_marker(item);
        }
    }
}

fn has_marker(item: Value<'_>) -> bool {
    item.get("cache_control").is_some_and(|marker| !marker.is_null())
}
