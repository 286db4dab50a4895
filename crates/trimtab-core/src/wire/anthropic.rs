//! Anthropic Messages. Takes a scanned request; gives its entries and blocks.
//! Never guesses: a block type that is not listed here is unknown and is left unchanged.

use super::{Layout, unknown};
use crate::{
    history::{BlockKind, Format, HistoryOutline, PartKind, Role},
    json::Value,
};

pub(super) const LAYOUT: Layout = Layout {
    format: Format::Anthropic,
    name: "anthropic",
    title: "Anthropic Messages",
    list: "messages",
    head: read_head,
    entry: read_entry,
};

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
