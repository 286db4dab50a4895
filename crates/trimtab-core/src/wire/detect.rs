//! Tells the format of a request from what stands in it. Takes the outermost value; gives a format, or why this is no
//! request. Never looks at file names, headers or urls, and never takes a list of other things for a conversation: what
//! is not understood must not be counted as a short request.

use super::WireError;
use crate::{history::Format, json::Value};

/// How many messages are looked at: enough to reach past a system prompt and a first exchange.
const MESSAGES_LOOKED_AT: usize = 40;

pub(super) fn detect(root: Value<'_>) -> Result<Format, WireError> {
    let format = format_of(root).ok_or(WireError::NotAConversation)?;
    let key = format.list_key();
    let Some(list) = (if root.is_array() { Some(root) } else { root.get(key) }) else {
        return Err(WireError::NotAConversation);
    };
    check_messages(list, format)?;
    Ok(format)
}

fn format_of(root: Value<'_>) -> Option<Format> {
    if root.is_array() {
        return bare_list(root);
    }
    if root.get("contents").is_some_and(Value::is_array) {
        return Some(Format::Gemini);
    }
    if let Some(messages) = root.get("messages") {
        return Some(if anthropic(root, messages) { Format::Anthropic } else { Format::Chat });
    }
    let input = root.get("input")?;
    // A text alone is also what many configurations call their input.
    let beside = ["model", "instructions", "prompt", "conversation", "previous_response_id"];
    let asks = input.is_string() && beside.iter().any(|key| root.get(key).is_some());
    (input.is_array() || asks).then_some(Format::Responses)
}

/// Refuses a list in which most items are no messages. A few odd ones are carried as they are.
fn check_messages(list: Value<'_>, format: Format) -> Result<(), WireError> {
    let all = list.items().count();
    let strange = list.items().filter(|item| !is_message(*item, format)).count();
    // Of the items of a response most may be of a type that is not known yet, but not all.
    let is_sure = format != Format::Responses || list.items().any(is_known_item);
    if all == 0 || (is_sure && strange * 2 <= all) {
        return Ok(());
    }
    let strange = if is_sure { strange } else { all };
    let expected = match format {
        Format::Anthropic | Format::Chat => "`role`",
        Format::Responses => "`role` and no known `type`",
        Format::Gemini => "`parts`",
    };
    Err(WireError::NotMessages { strange, all, expected })
}

fn is_message(item: Value<'_>, format: Format) -> bool {
    let spoken = item.get("role").is_some_and(Value::is_string);
    match format {
        Format::Anthropic | Format::Chat => spoken,
        Format::Responses => spoken || item.text("type").is_some(),
        Format::Gemini => item.get("parts").is_some(),
    }
}

fn is_known_item(item: Value<'_>) -> bool {
    let spoken = item.get("role").is_some_and(Value::is_string);
    spoken || item.text("type").is_some_and(|kind| is_item_type(&kind))
}

/// Tells a type of item that the Responses API has or may get; a message is known by its role.
fn is_item_type(kind: &str) -> bool {
    let others = ["reasoning", "item_reference", "compaction", "mcp_list_tools", "mcp_approval_request"];
    others.contains(&kind) || ["_call", "_output", "_response"].iter().any(|ending| kind.ends_with(ending))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::scan;

    fn check(request: &str, expected: Result<Format, &str>) {
        let tape = scan(request.as_bytes()).expect("JSON");
        let found = detect(tape.root(request.as_bytes()).expect("a value"));
        assert_eq!(found.map_err(|fault| fault.to_string()), expected.map_err(str::to_owned), "{request}");
    }

    #[test]
    fn a_list_of_other_things_is_no_request() {
        check(
            r#"{"sessionId":"s","messages":[{"type":"user","content":"Hi"},{"type":"gemini","content":"Yes?"}]}"#,
            Err("not a conversation: 2 of 2 messages have no `role`"),
        );
        check(
            r#"{"messages":["hi",{"role":"user","content":"Hi"},{"id":3}]}"#,
            Err("not a conversation: 2 of 3 messages have no `role`"),
        );
        check(
            r#"{"contents":[{"path":"a.txt","size":3}]}"#,
            Err("not a conversation: 1 of 1 messages have no `parts`"),
        );
        check(
            r#"{"input":[{"type":"file","path":"a.txt"}]}"#,
            Err("not a conversation: 1 of 1 messages have no `role` and no known `type`"),
        );
        check(
            r#"[{"type":"message","text":"a line of a log"}]"#,
            Err("not a conversation: 1 of 1 messages have no `role` and no known `type`"),
        );
    }

    #[test]
    fn a_text_called_input_is_a_request_only_beside_what_requests_have() {
        let refused = WireError::NotAConversation.to_string();
        check(r#"{"input":"src/main.ts","output":"dist"}"#, Err(&refused));
        check(r#"{"model":"gpt-5","input":"Hi"}"#, Ok(Format::Responses));
        check(r#"{"prompt":{"id":"p"},"input":"Hi"}"#, Ok(Format::Responses));
    }

    #[test]
    fn a_few_odd_messages_make_no_other_request() {
        check(r#"{"messages":[{"role":"user","content":"Hi"},{}]}"#, Ok(Format::Chat));
        check(r#"{"messages":[]}"#, Ok(Format::Chat));
        check(r#"{"contents":[]}"#, Ok(Format::Gemini));
        check(
            r#"{"input":[{"type":"item_reference","id":"m"},{"type":"teleport_call"}]}"#,
            Ok(Format::Responses),
        );
    }
}
