//! Pictures in what is recalled. Takes the original of a block; gives the pictures in it, so that a model or a person can look at
//! them instead of reading base64. Knows the four wire formats, and nothing of where an original comes from.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

/// A picture as the formats carry it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picture {
    /// What it is, such as `image/png`.
    pub(crate) kind: String,
    /// Its bytes in base64.
    pub(crate) data: String,
}

impl Picture {
    /// Returns the bytes of the picture; nothing where they are not base64.
    pub(crate) fn decode_bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(&self.data).ok()
    }
}

/// Finds the pictures in the original of a block that is not text alone.
pub(crate) fn pictures_in(original: &[u8]) -> Vec<Picture> {
    let mut found = Vec::new();
    // A text of a tool may be JSON that holds anything: only what a format writes as a block is looked into.
    if let Some(block) = serde_json::from_slice(original).ok().filter(is_block) {
        add_pictures(&block, &mut found);
    }
    found
}

fn is_block(value: &Value) -> bool {
    let is_part = |kind: &str| {
        let kinds = ["tool_result", "image", "image_url", "input_image", "document", "function_call_output"];
        kinds.contains(&kind)
    };
    value["type"].as_str().is_some_and(is_part)
        || ["functionResponse", "inlineData", "inline_data"].iter().any(|key| value.get(key).is_some())
        || value["role"].as_str().is_some_and(|role| matches!(role, "tool" | "user"))
}

fn add_pictures(value: &Value, found: &mut Vec<Picture>) {
    match value {
        Value::Object(members) => match parse_picture(value) {
            Some(picture) => found.push(picture),
            None => members.values().for_each(|member| add_pictures(member, found)),
        },
        Value::Array(items) => items.iter().for_each(|item| add_pictures(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Reads a picture as one of the formats writes it.
fn parse_picture(value: &Value) -> Option<Picture> {
    let of = |kind: &Value, data: &Value| {
        let kind = kind.as_str().filter(|kind| kind.starts_with("image/"))?;
        Some(Picture { kind: kind.to_owned(), data: data.as_str()?.to_owned() })
    };
    if let Some(source) = value.get("source").filter(|source| source["type"] == "base64") {
        return of(&source["media_type"], &source["data"]);
    }
    if let Some(inline) = value.get("inlineData").or_else(|| value.get("inline_data")) {
        return of(inline.get("mimeType").or_else(|| inline.get("mime_type"))?, &inline["data"]);
    }
    let address = value.get("image_url").map(|url| url.get("url").unwrap_or(url))?.as_str()?;
    let (kind, data) = address.strip_prefix("data:")?.split_once(";base64,")?;
    of(&Value::from(kind), &Value::from(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(original: &str, pictures: &[(&str, &str)]) {
        let found = pictures_in(original.as_bytes());
        let found: Vec<(&str, &str)> = found.iter().map(|picture| (&*picture.kind, &*picture.data)).collect();
        assert_eq!(found, pictures, "{original}");
    }

    #[test]
    fn pictures_of_every_format_are_found() {
        let png = [("image/png", "AAAA")];
        check(
            r#"{"type":"tool_result","content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}"#,
            &png,
        );
        check(r#"{"type":"input_image","image_url":"data:image/png;base64,AAAA"}"#, &png);
        check(r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}"#, &png);
        check(r#"{"inlineData":{"mimeType":"image/png","data":"AAAA"}}"#, &png);
    }

    #[test]
    fn a_text_is_no_picture_and_neither_is_an_address() {
        check("plain", &[]);
        check(r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]"#, &[]);
        check(r#"{"type":"image_url","image_url":{"url":"http://example.org/a.png"}}"#, &[]);
    }
}
