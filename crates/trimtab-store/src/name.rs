//! The name that a client gives its conversation. Takes the headers and keys it sent; gives the first that is a session's
//! name. Never gives anything else of them: no other header is kept anywhere.

use serde_json::Value;
use trimtab_core::History;

/// Headers that name a session, the most telling first. Only these are ever looked at.
const HEADERS: [&str; 14] = [
    "x-claude-code-session-id", "session_id", "session-id", "x-session-id", "conversation_id",
    "conversation-id", "x-conversation-id", "thread_id", "thread-id", "x-codex-window-id",
    "x-opencode-session", "x-session-affinity", "x-amp-thread-id", "x-trimtab-session",
];

/// The longest name that is kept, in characters: a UUID with a prefix, and room.
const LONGEST: usize = 120;

/// Returns the name that headers give the conversation.
pub fn name_from_headers<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<String> {
    let sent: Vec<(&str, &str)> = headers.into_iter().collect();
    let value_of = |name: &&str| sent.iter().find(|(sent, _)| sent.eq_ignore_ascii_case(name));
    HEADERS.iter().filter_map(value_of).find_map(|(_, value)| name_of_value(value))
}

/// Returns the name that a request itself gives the conversation.
pub fn name_from_request(request: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct SessionKeys {
        prompt_cache_key: Option<Value>,
        metadata: Option<Value>,
    }
    let keys: SessionKeys = serde_json::from_slice(request).ok()?;
    name_from_fields(keys.metadata.as_ref(), keys.prompt_cache_key.as_ref())
}

/// Returns the name that a request gives the conversation, where it was read already.
pub fn name_in_history(history: &History) -> Option<String> {
    let field = |key: &str| history.field(key).and_then(|value| serde_json::from_slice(value).ok());
    name_from_fields(field("metadata").as_ref(), field("prompt_cache_key").as_ref())
}

fn name_from_fields(metadata: Option<&Value>, prompt_cache_key: Option<&Value>) -> Option<String> {
    let text = |value: &Value| value.as_str().and_then(name_of_value);
    let of_key = |key: &str| metadata?.get(key).and_then(text);
    let said = ["session_id", "conversation_id", "thread_id"].into_iter().find_map(of_key);
    said.or_else(|| metadata?.get("user_id")?.as_str().and_then(name_in_user))
        .or_else(|| prompt_cache_key.and_then(text))
}

/// Claude Code writes its session's id into the id of the user: after `_session_`, or as a key of a JSON text.
fn name_in_user(user: &str) -> Option<String> {
    if let Some((_, session)) = user.rsplit_once("_session_") {
        return name_of_value(session);
    }
    let keys: Value = serde_json::from_str(user).ok()?;
    name_of_value(keys.get("session_id")?.as_str()?)
}

/// Takes a value as a name where it can be one. A value that looks like a key never is.
fn name_of_value(value: &str) -> Option<String> {
    let value = value.trim();
    let letters = |letter: char| letter.is_ascii_alphanumeric() || "-_.:/".contains(letter);
    let secret =
        ["sk-", "sk_", "pk-", "ghp_", "AIza", "eyJ", "xox"].iter().any(|start| value.starts_with(start));
    let fits = !value.is_empty() && value.len() <= LONGEST && value.chars().all(letters) && !secret;
    fits.then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_headers_that_name_a_session_are_looked_at() {
        let check = |headers: &[(&str, &str)], expected: Option<&str>| {
            assert_eq!(name_from_headers(headers.iter().copied()).as_deref(), expected, "{headers:?}");
        };
        check(&[("Authorization", "Bearer sk-secret"), ("x-api-key", "sk-ant-secret")], None);
        check(&[("x-api-key", "secret"), ("Session_ID", " 0199-ab ")], Some("0199-ab"));
        check(&[("session_id", "sk-ant-api03-secret")], None);
        check(&[("session_id", "Bearer abc")], None);
    }

    #[test]
    fn requests_name_their_session_in_several_ways() {
        let check = |request: &str, expected: Option<&str>| {
            assert_eq!(name_from_request(request.as_bytes()).as_deref(), expected, "{request}");
            let read = trimtab_core::parse_as(
                request.replacen('{', r#"{"input":[],"#, 1).into_bytes(),
                trimtab_core::Format::Responses,
            );
            if let Ok(history) = read {
                assert_eq!(name_in_history(&history).as_deref(), expected, "{request}");
            }
        };
        check(r#"{"prompt_cache_key":"0199-ab"}"#, Some("0199-ab"));
        check(r#"{"metadata":{"user_id":"user_1_account__session_5e9f"}}"#, Some("5e9f"));
        check(r#"{"metadata":{"user_id":"{\"session_id\":\"5e9f\"}"}}"#, Some("5e9f"));
        check(r#"{"metadata":{"session_id":"a"},"prompt_cache_key":"b"}"#, Some("a"));
        check(r#"{"messages":[]}"#, None);
        check("no JSON", None);
    }
}
