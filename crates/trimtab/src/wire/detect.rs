//! Tells the format of a request from what stands in it. Takes the outermost value; gives a format, or none
//! where there is no conversation. Never looks at file names, headers or urls.

use super::Format;
use crate::json::Value;

/// How many messages are looked at: enough to reach past a system prompt and a first exchange.
const MESSAGES_LOOKED_AT: usize = 40;

pub(super) fn detect(root: Value<'_>) -> Option<Format> {
    if root.is_array() {
        return bare_list(root);
    }
    if root.get("contents").is_some_and(Value::is_array) {
        return Some(Format::Gemini);
    }
    if let Some(messages) = root.get("messages") {
        return Some(if anthropic(root, messages) { Format::Anthropic } else { Format::Chat });
    }
    root.get("input").filter(|input| input.is_array() || input.is_string()).map(|_| Format::Responses)
}

/// Tells the format of a list of messages without a request around it.
fn bare_list(list: Value<'_>) -> Option<Format> {
    let first = list.items().next()?;
    if first.get("parts").is_some_and(Value::is_array) {
        return Some(Format::Gemini);
    }
    let items = || list.items().take(MESSAGES_LOOKED_AT);
    let item_types = ["function_call", "function_call_output", "reasoning", "custom_tool_call", "message"];
    if items().any(|item| item.text("type").is_some_and(|kind| item_types.contains(&kind.as_ref()))) {
        return Some(Format::Responses);
    }
    let spoken = |item: Value<'_>| item.get("role").is_some_and(Value::is_string);
    if !spoken(first) {
        return None;
    }
    Some(if items().any(anthropic_message) { Format::Anthropic } else { Format::Chat })
}

/// Chat and Anthropic share the key `messages`; the first sign that only one of them has decides.
fn anthropic(root: Value<'_>, messages: Value<'_>) -> bool {
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
        if anthropic_message(message) {
            return true;
        }
        if chat_message(message) {
            return false;
        }
    }
    root.text("model").is_some_and(|model| model.contains("claude") && !model.contains('/'))
}

fn anthropic_message(message: Value<'_>) -> bool {
    let types =
        ["tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use"];
    let contents = message.get("content").into_iter().flat_map(Value::items);
    contents
        .take(MESSAGES_LOOKED_AT)
        .any(|item| item.text("type").is_some_and(|kind| types.contains(&kind.as_ref())))
}

fn chat_message(message: Value<'_>) -> bool {
    let role = message.text("role");
    matches!(role.as_deref(), Some("system" | "developer" | "tool" | "function"))
        || message.get("tool_calls").is_some()
}
