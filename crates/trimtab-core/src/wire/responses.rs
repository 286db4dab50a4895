//! OpenAI Responses. Takes a scanned request; gives one entry per item of `input`.
//! Never pairs by item id: calls and outputs find each other by `call_id`.

use super::{Layout, MESSAGES_LOOKED_AT, Question, UserMessages, has_role, plain_result, repair, unknown};
use crate::{
    history::{BlockKind, Format, HistoryOutline, PartKind, Role},
    json::{Object, Value},
};

pub(super) const LAYOUT: Layout = Layout {
    format: Format::Responses,
    name: "responses",
    title: "OpenAI Responses",
    list: "input",
    fits,
    fits_list,
    head,
    entry,
    message_has: "`role` and no known `type`",
    is_message: |item| has_role(item) || item.text("type").is_some(),
    is_known: is_known_item,
    repair: repair::responses::repair,
    flags_failures: false,
    user_messages: UserMessages::Separate,
    user_message: [r#"{"type":"message","role":"user","content":["#, "]}"],
    user_text: input_text,
    text_part: input_text,
    question,
    result_body: plain_result,
};

fn fits(root: Value<'_>) -> bool {
    let Some(input) = root.get("input").filter(|_| root.get("messages").is_none()) else { return false };
    // A text alone is also what many configurations call their input.
    let beside = ["model", "instructions", "prompt", "conversation", "previous_response_id"];
    input.is_array() || (input.is_string() && beside.iter().any(|key| root.get(key).is_some()))
}

fn fits_list(list: Value<'_>) -> bool {
    let types = ["function_call", "function_call_output", "reasoning", "custom_tool_call", "message"];
    let mut items = list.items().take(MESSAGES_LOOKED_AT);
    items.any(|item| item.text("type").is_some_and(|kind| types.contains(&kind.as_ref())))
}

/// Of the items of a response most may be of a type that is not known yet, but not all.
fn is_known_item(item: Value<'_>) -> bool {
    has_role(item) || item.text("type").is_some_and(|kind| is_item_type(&kind))
}

/// Tells a type of item that the Responses API has or may get; a message is known by its role.
fn is_item_type(kind: &str) -> bool {
    let others = ["reasoning", "item_reference", "compaction", "mcp_list_tools", "mcp_approval_request"];
    others.contains(&kind) || ["_call", "_output", "_response"].iter().any(|ending| kind.ends_with(ending))
}

fn question(asked: &Question<'_>) -> Vec<u8> {
    let request = Object::new().text("model", asked.model).text("instructions", asked.system);
    let request = request.text("input", asked.prompt);
    request.raw("max_output_tokens", asked.most.0.to_string().as_bytes()).raw("store", b"false").end()
}

/// Writes a text, given as JSON, as a part of what the model reads.
fn input_text(json: &[u8]) -> Vec<u8> {
    Object::new().text("type", "input_text").raw("text", json).end()
}

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
