//! Chat Completions messages as harnesses store them and as agents send them. Takes recorded messages, or what
//! they are made of; gives the messages that went over the wire. Never changes a member that it keeps.

use trimtab_core::json::{Object, Value};

/// Copies the members that went over the wire, of a message or of a part of one.
pub(super) fn copy_members(value: Value<'_>, sent: impl Fn(&str) -> bool) -> Vec<u8> {
    let members = value.members().filter_map(|(key, value)| Some((key.string()?, value)));
    let kept = members.filter(|(key, _)| sent(key));
    kept.fold(Object::new(), |copy, (key, value)| copy.raw(&key, value.raw())).end()
}

/// Writes a message with content in JSON.
pub(super) fn write_message(role: &str, content: &[u8]) -> Vec<u8> {
    Object::new().text("role", role).raw("content", content).end()
}

/// Writes a message that is nothing but text.
pub(super) fn write_text(role: &str, text: &str) -> Vec<u8> {
    Object::new().text("role", role).text("content", text).end()
}

/// Writes a call; id and name are JSON strings, the arguments a text that holds JSON.
pub(super) fn call(id: &[u8], name: &[u8], arguments: &str) -> Vec<u8> {
    let function = Object::new().raw("name", name).text("arguments", arguments).end();
    Object::new().raw("id", id).text("type", "function").raw("function", &function).end()
}

/// Writes the result of a call, a JSON string.
pub(super) fn write_result(call: &str, content: &[u8]) -> Vec<u8> {
    Object::new().text("role", "tool").text("tool_call_id", call).raw("content", content).end()
}

/// Tells whether a value is a message of one of the roles that OpenAI knows.
pub(super) fn is_message(value: Value<'_>) -> bool {
    let roles = ["system", "developer", "user", "assistant", "tool", "function"];
    let spoken = value.text("role").is_some_and(|role| roles.contains(&role.as_ref()));
    spoken && (value.get("content").is_some() || value.get("tool_calls").is_some())
}
