//! Tells when a request is not the whole conversation. Takes a request that was read; gives the field by which the server
//! holds history or edits context itself. Never looks at what was said.

use memchr::memmem;
use serde::Deserialize;
use trimtab::{BlockKind, Format, History};

/// The fields that are looked for, with the names that are counted.
const FIELDS: [(&str, &str); 5] = [
    ("previous_response_id", "previous_response_id"),
    ("conversation", "conversation"),
    ("cachedContent", "cachedContent"),
    ("cached_content", "cachedContent"),
    ("context_management", "context_management"),
];

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<std::borrow::Cow<'a, str>>,
}

/// Returns the field because of which a request must pass as it is.
pub(crate) fn held_by_server(history: &History) -> Option<&'static str> {
    let given = |(field, _): &&(&str, &str)| history.field(field).is_some_and(|value| value != b"null");
    FIELDS.iter().find(given).map(|(_, name)| *name).or_else(|| refers(history).then_some("item_reference"))
}

/// Returns such a field of a request that could not be read, where it seems to have one: then it is no fault of ours.
pub(crate) fn seems_held(request: &[u8]) -> Option<&'static str> {
    let quoted = |field: &str| memmem::find(request, format!("\"{field}\"").as_bytes()).is_some();
    FIELDS.iter().find(|(field, _)| quoted(field)).map(|(_, name)| *name)
}

/// Tells whether a request names an item that only the server has.
fn refers(history: &History) -> bool {
    let unknown = |block: &&trimtab::Block| block.kind == BlockKind::Unknown;
    let mut unknown =
        history.blocks().iter().filter(|_| history.format() == Format::Responses).filter(unknown);
    unknown.any(|block| {
        let item = serde_json::from_slice::<Item<'_>>(block.span.of(history.bytes()));
        item.is_ok_and(|item| item.kind.as_deref() == Some("item_reference"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(request: &str, expected: Option<&str>) {
        let format = if request.contains("contents") {
            Format::Gemini
        } else if request.contains("messages") {
            Format::Anthropic
        } else {
            Format::Responses
        };
        let history = trimtab::parse_as(request.as_bytes().to_vec(), format).unwrap();
        assert_eq!(held_by_server(&history), expected, "{request}");
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
    fn what_cannot_be_read_is_told_by_the_name_of_the_field() {
        assert_eq!(seems_held(br#"{"conversation":"c","prompt":{"id":"p"}}"#), Some("conversation"));
        assert_eq!(seems_held(br#"{"prompt":{"id":"p"}}"#), None);
    }
}
