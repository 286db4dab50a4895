//! Tells when a request is not the whole conversation. Takes the request's bytes; gives the field by which the server holds
//! history or edits context itself. Never parses a request that cannot have such a field.

use memchr::memmem;
use serde::{Deserialize, de::IgnoredAny};

/// The fields that are looked for, as they stand in JSON.
const FIELDS: [&[u8]; 6] = [
    b"\"previous_response_id\"",
    b"\"conversation\"",
    b"\"cachedContent\"",
    b"\"cached_content\"",
    b"\"context_management\"",
    b"\"item_reference\"",
];

#[derive(Deserialize)]
struct Request<'a> {
    previous_response_id: Option<IgnoredAny>,
    conversation: Option<IgnoredAny>,
    #[serde(rename = "cachedContent")]
    cached_content: Option<IgnoredAny>,
    #[serde(rename = "cached_content")]
    snake_cached_content: Option<IgnoredAny>,
    context_management: Option<IgnoredAny>,
    #[serde(borrow)]
    input: Option<&'a serde_json::value::RawValue>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<std::borrow::Cow<'a, str>>,
}

/// Returns the field because of which a request must pass as it is.
pub(crate) fn held_by_server(request: &[u8]) -> Option<&'static str> {
    // A quotation of such a field inside a text is escaped, so it is not found here.
    if !FIELDS.iter().any(|field| memmem::find(request, field).is_some()) {
        return None;
    }
    let Ok(request) = serde_json::from_slice::<Request<'_>>(request) else { return Some("unreadable") };
    let fields = [
        ("previous_response_id", request.previous_response_id),
        ("conversation", request.conversation),
        ("cachedContent", request.cached_content),
        ("cachedContent", request.snake_cached_content),
        ("context_management", request.context_management),
    ];
    let given = fields.into_iter().find_map(|(name, value)| value.map(|_| name));
    given.or_else(|| request.input.is_some_and(|input| refers(input.get())).then_some("item_reference"))
}

/// Tells whether a list of items names one that only the server has.
fn refers(input: &str) -> bool {
    let Ok(items) = serde_json::from_str::<Vec<Item<'_>>>(input) else { return false };
    items.iter().any(|item| item.kind.as_deref() == Some("item_reference"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(request: &str, expected: Option<&str>) {
        assert_eq!(held_by_server(request.as_bytes()), expected, "{request}");
    }

    #[test]
    fn a_history_held_by_the_server_is_told_by_its_field() {
        check(r#"{"previous_response_id":"resp_1","input":"Go on"}"#, Some("previous_response_id"));
        check(r#"{"conversation":{"id":"c"},"input":[]}"#, Some("conversation"));
        check(r#"{"contents":[],"cachedContent":"cachedContents/1"}"#, Some("cachedContent"));
        check(r#"{"contents":[],"cached_content":"cachedContents/1"}"#, Some("cachedContent"));
        check(r#"{"messages":[],"context_management":{"edits":[]}}"#, Some("context_management"));
        check(r#"{"input":[{"type":"item_reference","id":"msg_1"}]}"#, Some("item_reference"));
    }

    #[test]
    fn a_field_that_is_null_or_quoted_or_deeper_holds_nothing() {
        check(r#"{"previous_response_id":null,"input":[]}"#, None);
        check(r#"{"input":[{"type":"message","content":"the \"conversation\" field"}]}"#, None);
        check(r#"{"tools":[{"properties":{"conversation":{}}}],"input":[]}"#, None);
        check(r#"{"messages":[]}"#, None);
    }

    #[test]
    fn what_cannot_be_read_passes() {
        check(r#"{"conversation":"#, Some("unreadable"));
    }
}
