//! The intent of an edit. Takes a request; gives it with an optional argument `intent` for every tool that changes files, and
//! with the intents that were taken out of earlier calls put back. Takes the arguments of a call; gives them without their
//! intent, so that no tool sees an argument that it does not know. Never touches a tool that names every argument as required.

use std::borrow::Cow;

use crate::{
    facts::changes_files,
    history::{Block, BlockKind, History},
    json::{Object, Span, Value, encode, narrow, scan},
    plan::{arguments_part, replace_content},
    wire::{Edit, write},
};

/// The name of the argument.
pub const INTENT: &str = "intent";

/// What the argument is for, in the words that a model reads.
const ABOUT: &str = "Brief description of why this change is being made";

/// A request whose edit tools take an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestWithIntents {
    /// The request.
    pub request: Vec<u8>,
    /// The tools that take one and did not before.
    pub tools: Vec<String>,
}

/// Offers the argument to every tool that changes files, and puts back what calls said in it, by their [`call_key`]; nothing
/// where no tool changes files.
pub fn offer_intent(history: &History, known: &dyn Fn(&str) -> Option<String>) -> Option<RequestWithIntents> {
    let definitions = history.blocks().iter().filter(|block| block.kind == BlockKind::Definition);
    let offered: Vec<(String, Edit)> =
        definitions.filter_map(|block| offer_in_tool(history, block)).collect();
    let tools: Vec<String> = offered.iter().map(|(name, _)| name.clone()).collect();
    if tools.is_empty() {
        return None;
    }
    let calls = history.blocks().iter().filter(|block| block.kind == BlockKind::Call);
    let put_back = calls.filter_map(|block| {
        let name = history.tool_name(block).filter(|name| tools.iter().any(|tool| *tool == **name))?;
        let text = history.part_text(arguments_part(history, block)?);
        let id = history.call_id(block);
        let intent = known(&call_key(id.as_deref(), &name, &text))?;
        replace_content(history, block, &with_intent(&text, &intent)?)
    });
    let edits: Vec<Edit> = offered.iter().map(|(_, edit)| edit.clone()).chain(put_back).collect();
    Some(RequestWithIntents { request: write(history, &edits), tools })
}

/// Returns what a call is known by when it comes back without its intent: its id, or what it does.
pub fn call_key(id: Option<&str>, name: &str, arguments: &str) -> String {
    if let Some(id) = id.filter(|id| !id.is_empty()) {
        return id.to_owned();
    }
    let text = in_one_order(arguments).unwrap_or_else(|| arguments.to_owned());
    format!("{name} {}", blake3::hash(text.as_bytes()).to_hex())
}

/// Writes arguments in an order and a spelling that we choose: clients write them again in theirs.
fn in_one_order(arguments: &str) -> Option<String> {
    let bytes = arguments.as_bytes();
    let tape = scan(bytes).ok()?;
    let root = tape.root(bytes).filter(|root| root.is_object())?;
    let member = |(key, value): (Value<'_>, Value<'_>)| {
        let plain = || String::from_utf8_lossy(value.raw()).split_ascii_whitespace().collect::<String>();
        Some((key.string()?.into_owned(), value.string().map_or_else(plain, Cow::into_owned)))
    };
    let mut members: Vec<(String, String)> = root.members().filter_map(member).collect();
    members.sort();
    Some(members.iter().map(|(key, value)| format!("{}:{key}{}:{value}", key.len(), value.len())).collect())
}

/// Takes the intent out of a call's arguments; gives both. Nothing where there is none.
pub fn take_intent(arguments: &str) -> Option<(String, String)> {
    let bytes = arguments.as_bytes();
    let tape = scan(bytes).ok()?;
    let root = tape.root(bytes).filter(|root| root.is_object())?;
    let intent = root.get(INTENT)?.string()?.into_owned();
    let mut rest = Object::new();
    for (key, value) in root.members() {
        let key = key.string()?;
        if key != INTENT {
            rest = rest.raw(&key, value.raw());
        }
    }
    Some((intent, String::from_utf8(rest.end()).ok()?))
}

/// Adds an intent to a call's arguments; nothing where they have one, or are no object.
fn with_intent(arguments: &str, intent: &str) -> Option<String> {
    let bytes = arguments.as_bytes();
    let tape = scan(bytes).ok()?;
    let root = tape.root(bytes).filter(|root| root.is_object() && root.get(INTENT).is_none())?;
    let comma = if root.members().next().is_some() { "," } else { "" };
    let mut said = Vec::new();
    encode(intent, &mut said);
    let before = arguments.trim_end().strip_suffix('}')?.trim_end();
    Some(format!("{before}{comma}\"{INTENT}\":{}}}", String::from_utf8(said).ok()?))
}

/// Returns a tool that changes files, and the edit that lets it take an intent.
fn offer_in_tool(history: &History, block: &Block) -> Option<(String, Edit)> {
    let name = history.tool_name(block).filter(|name| changes_files(name))?;
    let bytes = block.span.bytes_in(history.bytes());
    let tape = scan(bytes).ok()?;
    let root = tape.root(bytes)?;
    let tool = root.get("function").filter(|inner| inner.is_object()).unwrap_or(root);
    let schema =
        tool.get("input_schema").or_else(|| tool.get("parameters")).filter(|schema| schema.is_object())?;
    let properties = schema.get("properties").filter(|properties| properties.is_object())?;
    if tool.is_flag_set("strict") || root.is_flag_set("strict") || properties.get(INTENT).is_some() {
        return None;
    }
    // Gemini spells types in capitals, as its other properties here do.
    let capitals = properties.members().any(|(_, property)| property.member_is("type", "STRING"));
    let kind = if capitals { "STRING" } else { "string" };
    let argument = Object::new().text("type", kind).text("description", ABOUT).end();
    let comma = if properties.members().next().is_some() { "," } else { "" };
    let mut with = format!("{comma}\"{INTENT}\":").into_bytes();
    with.extend_from_slice(&argument);
    with.push(b'}');
    let end = block.span.start() + properties.span().end();
    let span = Span::new(narrow(end.checked_sub(1)?), narrow(end));
    Some((name.into_owned(), Edit { span, with }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::parse;

    fn schema() -> serde_json::Value {
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})
    }

    /// A request of every format with one tool and one call of it.
    fn requests(name: &str) -> Vec<serde_json::Value> {
        let args = json!({"path": "a.rs"});
        let text = args.to_string();
        vec![
            json!({"max_tokens": 1, "tools": [{"name": name, "input_schema": schema()}], "messages": [
                {"role": "user", "content": "Go."},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": name, "input": args}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]}]}),
            json!({"tools": [{"type": "function", "function": {"name": name, "parameters": schema()}}], "messages": [
                {"role": "user", "content": "Go."},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": name, "arguments": text}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "done"}]}),
            json!({"tools": [{"type": "function", "name": name, "parameters": schema()}], "input": [
                {"role": "user", "content": "Go."},
                {"type": "function_call", "call_id": "c1", "name": name, "arguments": text},
                {"type": "function_call_output", "call_id": "c1", "output": "done"}]}),
            json!({"tools": [{"functionDeclarations": [{"name": name, "parameters": schema()}]}], "contents": [
                {"role": "user", "parts": [{"text": "Go."}]},
                {"role": "model", "parts": [{"functionCall": {"name": name, "args": args}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"output": "done"}}}]}]}),
        ]
    }

    #[test]
    fn edit_tools_of_every_format_take_an_intent_and_calls_get_theirs_back() {
        for request in requests("edit_file") {
            let history = parse(request.to_string().into_bytes()).unwrap();
            let nothing = offer_intent(&history, &|_| None).unwrap();
            assert_eq!(nothing.tools, ["edit_file"]);
            let text = String::from_utf8(nothing.request.clone()).unwrap();
            assert!(
                text.contains(&format!(r#""intent":{{"type":"string","description":"{ABOUT}"}}"#)),
                "{text}"
            );
            assert!(text.contains(r#""required":["path"]"#), "it stays optional: {text}");
            let again = parse(nothing.request).unwrap();
            assert_eq!(offer_intent(&again, &|_| None), None, "one intent is enough");
            let known = |key: &str| (key == "c1" || key.starts_with("edit_file ")).then(|| "why".to_owned());
            let both = offer_intent(&history, &known).unwrap();
            let back = parse(both.request.clone()).unwrap();
            let call = back.blocks().iter().find(|block| block.kind == BlockKind::Call).unwrap();
            let said = take_intent(&back.part_text(arguments_part(&back, call).unwrap()));
            assert_eq!(said, Some(("why".to_owned(), r#"{"path":"a.rs"}"#.to_owned())));
            assert_eq!(offer_intent(&history, &known), Some(both), "the same each time");
        }
    }

    #[test]
    fn tools_that_only_read_and_strict_ones_stay_as_they_are() {
        for request in requests("read_file") {
            assert_eq!(offer_intent(&parse(request.to_string().into_bytes()).unwrap(), &|_| None), None);
        }
        let strict = json!({"tools": [{"type": "function", "name": "edit_file", "strict": true, "parameters": schema()}],
            "input": [{"role": "user", "content": "Go."}]});
        assert_eq!(offer_intent(&parse(strict.to_string().into_bytes()).unwrap(), &|_| None), None);
    }

    #[test]
    fn a_call_without_an_id_is_known_by_what_it_does() {
        let one = call_key(None, "edit", r#"{"a":1,"b":2}"#);
        assert_eq!(one, call_key(Some(""), "edit", r#"{ "b": 2, "a": 1 }"#));
        assert_ne!(one, call_key(None, "edit", r#"{"a":1,"b":3}"#));
        assert_eq!(call_key(Some("c1"), "edit", "{}"), "c1");
        assert_eq!(take_intent(r#"{"path":"a"}"#), None);
        assert_eq!(take_intent("no JSON"), None);
    }
}
