//! OpenAI Responses. Takes a scanned request; gives one entry per item of `input`.
//! Never pairs by item id: calls and outputs find each other by `call_id`.

use super::{Layout, unknown};
use crate::{
    history::{BlockKind, Format, HistoryOutline, PartKind, Role},
    json::Value,
};

pub(super) const LAYOUT: Layout = Layout {
    format: Format::Responses,
    name: "responses",
    title: "OpenAI Responses",
    list: "input",
    head,
    entry,
};

fn head(root: Value<'_>, outline: &mut HistoryOutline) {
    if let Some(tools) = root.get("tools").filter(|tools| tools.is_array()) {
        outline.add_entry(Role::Tools, tools.span());
        for tool in tools.items() {
            let block = outline.add_block(BlockKind::Definition, tool.span());
            block.name = tool.get("name").or(tool.get("type")).map(Value::span).unwrap_or_default();
            outline.add_part(PartKind::Json, Some(tool));
        }
    }
    if let Some(instructions) = root.get("instructions").filter(|value| value.is_string()) {
        outline.add_entry(Role::System, instructions.span());
        outline.add_block(BlockKind::Text, instructions.span());
        outline.add_part(PartKind::Text, Some(instructions));
    }
}

/// Reads an `input` that is one string: the user's message.
pub(super) fn bare_input(input: Value<'_>, outline: &mut HistoryOutline) {
    outline.add_entry(Role::User, input.span());
    outline.add_block(BlockKind::Text, input.span());
    outline.add_part(PartKind::Text, Some(input));
}

fn entry(item: Value<'_>, outline: &mut HistoryOutline) {
    let kind = item.text("type").unwrap_or_default();
    match kind.as_ref() {
        "message" => message(item, outline),
        "" if item.get("role").is_some() => message(item, outline),
        "reasoning" => reasoning(item, outline),
        kind if kind.ends_with("_output") && item.get("call_id").is_some() => result(item, outline),
        kind if kind.ends_with("_call") => call(item, kind, outline),
        // What only the server has. Clients refer to what the model said and did: so steps are counted, and what is bound
        // to it stays with it.
        "item_reference" => {
            outline.add_entry(Role::Assistant, item.span());
            unknown(item, outline);
        }
        _ => {
            outline.add_entry(Role::Other, item.span());
            unknown(item, outline);
        }
    }
}

fn message(item: Value<'_>, outline: &mut HistoryOutline) {
    let role = match item.text("role").as_deref() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => Role::Other,
    };
    outline.add_entry(role, item.span());
    let Some(content) = item.get("content") else { return };
    if content.is_string() {
        outline.add_block(BlockKind::Text, content.span());
        outline.add_part(PartKind::Text, Some(content));
        return;
    }
    for part in content.items() {
        let (block, kind, value) = part_of(part);
        outline.add_block(block, part.span());
        outline.add_part(kind, value);
    }
}

fn part_of(part: Value<'_>) -> (BlockKind, PartKind, Option<Value<'_>>) {
    match part.text("type").as_deref() {
        Some("input_text" | "output_text" | "text" | "summary_text")
            if part.get("text").is_some_and(Value::is_string) =>
        {
            (BlockKind::Text, PartKind::Text, part.get("text"))
        }
        Some("refusal") => {
            (BlockKind::Text, PartKind::Text, part.get("refusal").filter(|text| text.is_string()))
        }
        Some("input_image") => (BlockKind::Media, PartKind::Image, Some(part)),
        Some("input_file") => (BlockKind::Media, PartKind::Document, Some(part)),
        Some("input_audio") => (BlockKind::Media, PartKind::Audio, Some(part)),
        _ => (BlockKind::Unknown, PartKind::Json, Some(part)),
    }
}

fn reasoning(item: Value<'_>, outline: &mut HistoryOutline) {
    outline.add_entry(Role::Assistant, item.span());
    outline.add_block(BlockKind::Reasoning, item.span());
    for key in ["summary", "content"] {
        for part in item.get(key).into_iter().flat_map(Value::items) {
            outline.add_part(PartKind::Text, part.get("text").filter(|text| text.is_string()));
        }
    }
    outline.add_part(PartKind::Sealed, item.get("encrypted_content"));
}

/// Reads a call. One without `call_id` was run by the provider, its result inside it.
fn call(item: Value<'_>, kind: &str, outline: &mut HistoryOutline) {
    outline.add_entry(Role::Assistant, item.span());
    let block = outline.add_block(BlockKind::Call, item.span());
    block.id = item.get("call_id").filter(|id| id.is_string()).map(Value::span).unwrap_or_default();
    block.by_server = block.id.is_empty();
    block.name = item.get("name").or(item.get("type")).map(Value::span).unwrap_or_default();
    block.body = ["arguments", "input", "action", "operation"]
        .iter()
        .find_map(|key| item.get(key))
        .map(Value::span)
        .unwrap_or_default();
    match kind {
        "function_call" => {
            outline.add_part(PartKind::JsonText, item.get("arguments").filter(|value| value.is_string()));
        }
        "custom_tool_call" => {
            outline.add_part(PartKind::Text, item.get("input").filter(|value| value.is_string()));
        }
        _ => {
            let body = ["action", "operation", "arguments"].iter().find_map(|key| item.get(key));
            outline.add_part(PartKind::Json, body.or(Some(item)));
        }
    }
}

fn result(item: Value<'_>, outline: &mut HistoryOutline) {
    outline.add_entry(Role::Tool, item.span());
    let block = outline.add_block(BlockKind::Result, item.span());
    block.id = item.get("call_id").map(Value::span).unwrap_or_default();
    block.failed = matches!(item.text("status").as_deref(), Some("failed" | "incomplete"));
    block.body = item.get("output").map(Value::span).unwrap_or_default();
    // A search for tools answers with definitions.
    let Some(output) = item.get("output").or(item.get("tools")) else { return };
    if output.is_string() {
        outline.add_part(PartKind::Text, Some(output));
        return;
    }
    if !output.is_array() {
        outline.add_part(PartKind::Json, Some(output));
        return;
    }
    for part in output.items() {
        let (_, kind, value) = part_of(part);
        outline.add_part(kind, value);
    }
}
