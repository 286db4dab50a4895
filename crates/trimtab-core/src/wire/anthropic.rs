//! Anthropic Messages. Takes a scanned request; gives its entries and blocks.
//! Never guesses: a block type that is not listed here is unknown and is left unchanged.

use super::{
    Layout, MESSAGES_LOOKED_AT, Question, UserMessages, begins_with_role, chat::is_chat_message, has_role,
    plain_message, plain_result, repair, typed_text, unknown,
};
use crate::{
    history::{BlockKind, Format, HistoryOutline, PartKind, Role},
    json::{Array, Object, Value},
};

pub(super) const LAYOUT: Layout = Layout {
    format: Format::Anthropic,
    name: "anthropic",
    title: "Anthropic Messages",
    list: "messages",
    fits: |root| root.get("messages").is_some_and(|messages| is_anthropic(root, messages)),
    fits_list: |list| {
        begins_with_role(list) && list.items().take(MESSAGES_LOOKED_AT).any(is_anthropic_message)
    },
    head: read_head,
    entry: read_entry,
    message_has: "`role`",
    is_message: has_role,
    is_known: |_| true,
    repair: repair::anthropic::repair,
    flags_failures: true,
    user_messages: UserMessages::JoinedIfAlternating,
    user_message: [r#"{"role":"user","content":["#, "]}"],
    user_text: typed_text,
    text_part: typed_text,
    question,
    result_body: plain_result,
};

/// Chat and Anthropic share the key `messages`; the first sign that only one of them has decides.
fn is_anthropic(root: Value<'_>, messages: Value<'_>) -> bool {
    let only_anthropic =
        ["system", "anthropic_version", "anthropic_beta", "thinking", "stop_sequences", "top_k"];
    if only_anthropic.iter().any(|key| root.get(key).is_some()) {
        return true;
    }
    let only_chat =
        ["max_completion_tokens", "functions", "response_format", "stream_options", "parallel_tool_calls"];
    if only_chat.iter().any(|key| root.get(key).is_some()) {
        return false;
    }
    if let Some(tool) = root.get("tools").and_then(|tools| tools.items().next()) {
        return tool.get("function").is_none() && tool.get("custom").is_none();
    }
    for message in messages.items().take(MESSAGES_LOOKED_AT) {
        if is_anthropic_message(message) {
            return true;
        }
        if is_chat_message(message) {
            return false;
        }
    }
    root.text("model").is_some_and(|model| model.contains("claude") && !model.contains('/'))
}

fn is_anthropic_message(message: Value<'_>) -> bool {
    let types =
        ["tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use"];
    let contents = message.get("content").into_iter().flat_map(Value::items);
    contents
        .take(MESSAGES_LOOKED_AT)
        .any(|item| item.text("type").is_some_and(|kind| types.contains(&kind.as_ref())))
}

fn question(asked: &Question<'_>) -> Vec<u8> {
    let messages = Array::new().raw(&plain_message("user", asked.prompt)).end();
    let request = Object::new().text("model", asked.model);
    let request = request.raw("max_tokens", asked.most.0.to_string().as_bytes());
    request.text("system", asked.system).raw("messages", &messages).end()
}

fn read_head(root: Value<'_>, outline: &mut HistoryOutline) {
    if let Some(tools) = root.get("tools").filter(|tools| tools.is_array()) {
        outline.add_entry(Role::Tools, tools.span());
        for tool in tools.items() {
            let block = outline.add_block(BlockKind::Definition, tool.span());
            block.marked = has_marker(tool);
            block.name = tool.get("name").map(Value::span).unwrap_or_default();
            outline.add_part(PartKind::Json, Some(tool));
        }
    }
    if let Some(system) = root.get("system").filter(|system| !system.is_null()) {
        outline.add_entry(Role::System, system.span());
        read_content(system, outline);
    }
}

fn read_entry(message: Value<'_>, outline: &mut HistoryOutline) {
    let role = match message.text("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => Role::Other,
    };
    outline.add_entry(role, message.span());
    if let Some(value) = message.get("content") {
        read_content(value, outline);
    }
}

/// Reads a content: a string, or a list of blocks.
fn read_content(value: Value<'_>, outline: &mut HistoryOutline) {
    if value.is_string() {
        outline.add_block(BlockKind::Text, value.span());
        outline.add_part(PartKind::Text, Some(value));
        return;
    }
    if !value.is_array() {
        unknown(value, outline);
        return;
    }
    value.items().for_each(|item| read_block(item, outline));
}

fn read_block(item: Value<'_>, outline: &mut HistoryOutline) {
    let kind = item.text("type").unwrap_or_default();
    match kind.as_ref() {
        "text" if item.get("text").is_some_and(Value::is_string) => {
            outline.add_block(BlockKind::Text, item.span()).marked = has_marker(item);
            outline.add_part(PartKind::Text, item.get("text"));
        }
        "thinking" => {
            outline.add_block(BlockKind::Reasoning, item.span());
            outline.add_part(PartKind::Text, item.get("thinking"));
            outline.add_part(PartKind::Sealed, item.get("signature"));
        }
        "redacted_thinking" => {
            outline.add_block(BlockKind::Reasoning, item.span());
            outline.add_part(PartKind::Sealed, item.get("data"));
        }
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            let block = outline.add_block(BlockKind::Call, item.span());
            block.by_server = kind != "tool_use";
            block.marked = has_marker(item);
            block.id = item.get("id").map(Value::span).unwrap_or_default();
            block.name = item.get("name").map(Value::span).unwrap_or_default();
            block.body = item.get("input").map(Value::span).unwrap_or_default();
            outline.add_part(PartKind::Json, item.get("input"));
        }
        kind if kind == "tool_result" || kind.ends_with("_tool_result") => {
            let by_server = kind != "tool_result";
            let block = outline.add_block(BlockKind::Result, item.span());
            block.by_server = by_server;
            block.marked = has_marker(item);
            block.failed = item.get("is_error").is_some_and(Value::is_true);
            block.id = item.get("tool_use_id").map(Value::span).unwrap_or_default();
            block.body = item.get("content").map(Value::span).unwrap_or_default();
            result_parts(item.get("content"), by_server, outline);
        }
        "image" | "document" => {
            outline.add_block(BlockKind::Media, item.span()).marked = has_marker(item);
            outline.add_part(media_kind(&kind), Some(item));
        }
        "search_result" => {
            outline.add_block(BlockKind::Media, item.span()).marked = has_marker(item);
            outline.add_part(PartKind::Json, Some(item));
        }
        _ => {
            unknown(item, outline);
            if let Some(block) = outline.blocks.last_mut() {
                block.marked = has_marker(item);
            }
        }
    }
}

fn result_parts(content: Option<Value<'_>>, by_server: bool, outline: &mut HistoryOutline) {
    let Some(content) = content else { return };
    if content.is_string() {
        outline.add_part(PartKind::Text, Some(content));
        return;
    }
    if by_server || !content.is_array() {
        outline.add_part(PartKind::Json, Some(content));
        return;
    }
    for item in content.items() {
        match item.text("type").as_deref() {
            Some("text") if item.get("text").is_some_and(Value::is_string) => {
                outline.add_part(PartKind::Text, item.get("text"));
            }
            Some(kind @ ("image" | "document")) => outline.add_part(media_kind(kind), Some(item)),
            _ => outline.add_part(PartKind::Json, Some(item)),
        }
    }
}

fn media_kind(kind: &str) -> PartKind {
    if kind == "image" { PartKind::Image } else { PartKind::Document }
}

fn has_marker(item: Value<'_>) -> bool {
    item.get("cache_control").is_some_and(|marker| !marker.is_null())
}
