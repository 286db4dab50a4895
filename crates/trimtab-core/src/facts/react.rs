//! Actions of agents that reason in text. Takes an assistant's text; gives the actions written in it: `Action: …` with its
//! input, a JSON object after `Action:`, Python code between its marks, a list after `Calling tools:`.
//! Never takes code in an answer for an action: only marks that such agents write make it one.

use super::{
    names::{self, CallManner},
    protocol::WrittenCall,
    python_text,
    tool::ToolKind,
};
use crate::json::{Value, scan};

/// Finds the actions in an assistant's text that name their tools, in order.
pub(super) fn find_named_actions(text: &str) -> Vec<WrittenCall> {
    let called = called_tools(text);
    if called.is_empty() { named_actions(text) } else { called }
}

/// Finds the code of an agent that acts in Python.
pub(super) fn find_code_action(text: &str) -> Option<WrittenCall> {
    let code = python_code(text)?.to_owned();
    Some(WrittenCall { name: "python_interpreter".to_owned(), arguments: vec![("code".to_owned(), code)] })
}

/// Reads the list after `Calling tools:`, as Python prints it.
fn called_tools(text: &str) -> Vec<WrittenCall> {
    let Some((before, list)) = text.rsplit_once("Calling tools:") else { return Vec::new() };
    if !(before.is_empty() || before.ends_with('\n')) {
        return Vec::new();
    }
    let Some(json) = python_text::json_of(list) else { return Vec::new() };
    let Ok(tape) = scan(json.as_bytes()) else { return Vec::new() };
    let calls = tape.root(json.as_bytes()).into_iter().flat_map(Value::items);
    calls.filter_map(|call| tool_object(call.get("function").unwrap_or(call))).collect()
}

/// Reads an object that names a tool and its arguments.
fn tool_object(call: Value<'_>) -> Option<WrittenCall> {
    let name = ["name", "action", "tool", "tool_name"].iter().find_map(|key| call.text(key))?.into_owned();
    let given =
        ["arguments", "action_input", "args", "input", "parameters"].iter().find_map(|key| call.get(key));
    let arguments = match given {
        Some(object) if object.is_object() => object_members(object),
        Some(value) => value.string().map(|text| vec![only_argument(&name, &text)]).unwrap_or_default(),
        None => Vec::new(),
    };
    Some(WrittenCall { name, arguments })
}

fn object_members(object: Value<'_>) -> Vec<(String, String)> {
    let text = |value: Value<'_>| {
        value
            .string()
            .unwrap_or_else(|| String::from_utf8_lossy(value.raw()).into_owned().into())
            .into_owned()
    };
    object.members().filter_map(|(key, value)| Some((key.string()?.into_owned(), text(value)))).collect()
}

/// Names the only argument of a tool by what the tool does.
fn only_argument(name: &str, text: &str) -> (String, String) {
    let key = match names::manner_by_name(name).unwrap_or(CallManner::Plain(names::guess_tool_kind(name))) {
        CallManner::Shell | CallManner::LastingShell => "command",
        CallManner::Editor
        | CallManner::Plain(
            ToolKind::Read | ToolKind::Write | ToolKind::Edit | ToolKind::Delete | ToolKind::List,
        ) => "path",
        CallManner::Plain(ToolKind::Search | ToolKind::Web) if text.starts_with("http") => "url",
        CallManner::Plain(ToolKind::Search | ToolKind::Web) => "query",
        CallManner::Plain(ToolKind::Run) => "code",
        CallManner::Plain(ToolKind::Recall) => "handle",
        CallManner::Patch
        | CallManner::Session
        | CallManner::Plain(
            ToolKind::Git
            | ToolKind::Test
            | ToolKind::Build
            | ToolKind::SubAgent
            | ToolKind::Todo
            | ToolKind::Ask
            | ToolKind::Think
            | ToolKind::Other,
        ) => "input",
    };
    (key.to_owned(), text.trim().to_owned())
}

/// Reads lines that begin with `Action:`, each with a name and its input, or with a JSON object after it.
fn named_actions(text: &str) -> Vec<WrittenCall> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(behind) = behind_mark(rest, "Action") {
        rest = behind;
        let body = behind.trim_start();
        if body.starts_with(['{', '[', '`']) {
            found.extend(json_action(body));
            continue;
        }
        let line = behind.lines().next().unwrap_or_default().trim();
        let Some(name) = line.split(['[', '(']).next().map(|name| name.trim().trim_matches(['`', '*']))
        else {
            continue;
        };
        if name.is_empty() || name.len() > 80 || name.contains(' ') {
            continue;
        }
        let inside = line.strip_suffix(']').and_then(|line| line.split_once('[')).map(|(_, inside)| inside);
        let until = behind_mark(behind, "Action").map_or(behind.len(), |next| behind.len() - next.len());
        let input = inside.or_else(|| behind_mark(behind.get(..until)?, "Action Input").map(input_of));
        found.extend(input.map(|input| with_input(name, input)));
    }
    found
}

/// Returns what follows a mark that begins a line: `Action:`, `Action 2:`, `**Action:**`.
fn behind_mark<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let begins = line.trim_start_matches([' ', '*', '#']);
        let behind = begins.strip_prefix(mark).map(|behind| {
            behind
                .trim_start_matches(|letter: char| letter == ' ' || letter.is_ascii_digit())
                .trim_start_matches('*')
        });
        if let Some(behind) = behind.and_then(|behind| behind.strip_prefix(':')) {
            let behind = behind.trim_start_matches('*');
            return text.get(at + (line.len() - behind.len())..);
        }
        at += line.len();
    }
    None
}

/// Returns an input up to the next mark.
fn input_of(text: &str) -> &str {
    let ends = ["\nAction", "\nObservation", "\nThought", "\nFinal Answer"];
    let end = ends.iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    text.get(..end).unwrap_or(text).trim()
}

fn with_input(name: &str, input: &str) -> WrittenCall {
    let object = scan(input.as_bytes()).ok();
    let object =
        object.as_ref().and_then(|tape| tape.root(input.as_bytes())).filter(|value| value.is_object());
    let arguments = match object {
        Some(object) => object_members(object),
        None if input.is_empty() => Vec::new(),
        None => vec![only_argument(name, input.trim_matches(['"', '`']))],
    };
    WrittenCall { name: name.to_owned(), arguments }
}

/// Reads the object or list of objects at the beginning of a text, in a fence or not.
fn json_action(text: &str) -> Vec<WrittenCall> {
    let text =
        text.strip_prefix("```").map_or(text, |fenced| fenced.split_once('\n').map_or("", |(_, body)| body));
    let Some(json) = python_text::json_of(text) else { return Vec::new() };
    let Ok(tape) = scan(json.as_bytes()) else { return Vec::new() };
    let Some(root) = tape.root(json.as_bytes()) else { return Vec::new() };
    match root.is_array() {
        true => root.items().filter_map(tool_object).collect(),
        false => tool_object(root).into_iter().collect(),
    }
}

/// Finds the code of an agent that acts in Python: between `<code>` tags that end its text, or in a fence of Python where
/// the text is one of thought and code.
fn python_code(text: &str) -> Option<&str> {
    let body = text.trim_end();
    if let Some((before, code)) = body.rsplit_once("<code>") {
        let ends = code.strip_suffix("</code>").or_else(|| code.split_once("</code>").map(|(code, _)| code));
        let is_line = before.is_empty() || before.ends_with('\n') || before.contains("Thought:");
        return ends.filter(|_| is_line).map(str::trim);
    }
    let thinks = ["Thought:", "Thoughts:", "Code:"]
        .iter()
        .any(|mark| behind_mark(text, mark.trim_end_matches(':')).is_some());
    if !(thinks || body.ends_with("<end_code>")) {
        return None;
    }
    let fenced = body.trim_end_matches("<end_code>").trim_end();
    let inner = fenced.strip_suffix("```")?;
    let (_, inner) = inner.rsplit_once("```")?;
    let (language, code) = inner.split_once('\n')?;
    matches!(language.trim(), "py" | "python" | "python3").then(|| code.trim())
}
