//! Finds why a request must pass unchanged: the server holds part of its history, or edits it. Takes a request that was
//! read; gives the reason, which names the field and the edit. Never looks at what was said.

use std::borrow::Cow;

use memchr::memmem;
use serde_json::Value;
use trimtab_core::History;

/// The fields by which a server holds history, with the names that are counted.
const FIELDS: [(&str, &str); 4] = [
    ("previous_response_id", "previous_response_id"),
    ("conversation", "conversation"),
    ("cachedContent", "cachedContent"),
    ("cached_content", "cachedContent"),
];

/// The field that asks the server to edit the context.
const EDITS: &str = "context_management";

/// What the names of edits begin with that clear nothing we hide: thinking is never changed here.
const HARMLESS: &str = "clear_thinking_";

/// The longest name of an edit that is repeated in a header.
const LONGEST_NAME: usize = 64;

/// Returns the reason for which a request must pass unchanged.
pub(crate) fn held_by_server(history: &History) -> Option<Cow<'static, str>> {
    let given = |field: &str| history.field(field).filter(|value| *value != b"null");
    if let Some((_, name)) = FIELDS.iter().find(|(field, _)| given(field).is_some()) {
        return Some(Cow::Borrowed(name));
    }
    let edit = clearing_edit(given(EDITS)?)?;
    Some(if edit.is_empty() { Cow::Borrowed(EDITS) } else { Cow::Owned(format!("{EDITS}: {edit}")) })
}

/// Returns such a field of a request that could not be read, where it seems to have one: then it is no fault of ours.
pub(crate) fn seems_held(request: &[u8]) -> Option<Cow<'static, str>> {
    let quoted = |field: &str| memmem::find(request, format!("\"{field}\"").as_bytes()).is_some();
    FIELDS.iter().find(|(field, _)| quoted(field)).map(|(_, name)| Cow::Borrowed(*name))
}

/// Returns the name of the first edit by which a server may clear or replace what we hide; an empty name if nobody can
/// say what the server does. Anthropic has an object with a list of edits, OpenAI the list itself.
fn clearing_edit(asked: &[u8]) -> Option<String> {
    let Ok(asked) = serde_json::from_slice::<Value>(asked) else { return Some(String::new()) };
    let edits = match &asked {
        Value::Array(edits) => Some(edits.as_slice()),
        Value::Object(members) if members.is_empty() => Some(&[][..]),
        Value::Object(members) if members.len() == 1 => match members.get("edits") {
            Some(Value::Array(edits)) => Some(edits.as_slice()),
            Some(Value::Null) => Some(&[][..]),
            _ => None,
        },
        _ => None,
    };
    let Some(edits) = edits else { return Some(String::new()) };
    let kinds = edits.iter().map(|edit| edit.get("type").and_then(Value::as_str).unwrap_or_default());
    kinds.into_iter().find(|kind| !kind.starts_with(HARMLESS)).map(|kind| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if kind.len() <= LONGEST_NAME && kind.bytes().all(plain) { kind.to_owned() } else { String::new() }
    })
}

#[cfg(test)]
mod tests {
    use trimtab_core::Format;

    use super::*;

    fn check(request: &str, expected: Option<&str>) {
        let format = if request.contains("contents") {
            Format::Gemini
        } else if request.contains("messages") {
            Format::Anthropic
        } else {
            Format::Responses
        };
        let history = trimtab_core::parse_as(request.as_bytes().to_vec(), format).unwrap();
        assert_eq!(held_by_server(&history).as_deref(), expected, "{request}");
    }

    #[test]
    fn a_history_held_by_the_server_is_told_by_its_field() {
        check(r#"{"previous_response_id":"resp_1","input":"Go on"}"#, Some("previous_response_id"));
        check(r#"{"conversation":{"id":"c"},"input":[]}"#, Some("conversation"));
        check(r#"{"contents":[],"cachedContent":"cachedContents/1"}"#, Some("cachedContent"));
        check(r#"{"contents":[],"cached_content":"cachedContents/1"}"#, Some("cachedContent"));
    }

    #[test]
    fn only_edits_that_clear_what_we_hide_make_a_request_pass() {
        let with = |edits: &str| format!(r#"{{"messages":[],"context_management":{edits}}}"#);
        for harmless in [
            "null",
            "{}",
            r#"{"edits":[]}"#,
            r#"{"edits":null}"#,
            r#"{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}"#,
            r#"{"edits":[{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":2}}]}"#,
        ] {
            check(&with(harmless), None);
        }
        let clearing =
            r#"{"edits":[{"type":"clear_thinking_20251015"},{"type":"clear_tool_uses_20250919"}]}"#;
        check(&with(clearing), Some("context_management: clear_tool_uses_20250919"));
        check(
            &with(r#"{"edits":[{"type":"compact_20260112"}]}"#),
            Some("context_management: compact_20260112"),
        );
        for unknown in
            ["7", r#"{"edits":[{}]}"#, r#"{"edits":[{"type":"a\nb"}]}"#, r#"{"edits":[],"other":1}"#]
        {
            check(&with(unknown), Some("context_management"));
        }
        let listed = r#"{"input":[],"context_management":[{"type":"compaction","compact_threshold":1000}]}"#;
        check(listed, Some("context_management: compaction"));
    }

    #[test]
    fn items_that_only_the_server_has_do_not_hold_those_beside_them() {
        check(r#"{"input":[{"type":"item_reference","id":"msg_1"}]}"#, None);
    }

    #[test]
    fn a_field_that_is_null_or_quoted_or_deeper_holds_nothing() {
        check(r#"{"previous_response_id":null,"input":[]}"#, None);
        check(r#"{"input":[{"type":"message","content":"the \"conversation\" field"}]}"#, None);
        check(r#"{"tools":[{"properties":{"conversation":{}}}],"input":[]}"#, None);
        check(r#"{"messages":[]}"#, None);
    }

    #[test]
    fn what_cannot_be_read_is_told_by_the_name_of_the_field() {
        assert_eq!(
            seems_held(br#"{"conversation":"c","prompt":{"id":"p"}}"#).as_deref(),
            Some("conversation")
        );
        assert_eq!(seems_held(br#"{"prompt":{"id":"p"}}"#), None);
    }
}
