//! Judges requests by the rules of the providers. Takes the JSON of a request; gives every fault as a sentence that
//! names no position, so that the faults of two requests can be compared. Never asks the library.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use serde_json::Value;

/// Returns what a provider would refuse in a request of a format: anthropic, chat, responses or gemini.
pub(crate) fn faults(format: &str, request: &Value) -> Vec<String> {
    let mut faults = match format {
        "anthropic" => anthropic::faults(request),
        "chat" => chat::faults(request),
        "responses" => responses::faults(request),
        "gemini" => gemini::faults(request),
        other => vec![format!("{other} is no format")],
    };
    // A Responses request may be one text: the user's.
    let is_text = format == "responses" && request["input"].is_string();
    if !is_text && !messages(format, request).iter().any(|message| by_user(format, message)) {
        faults.push("no message is the user's".to_owned());
    }
    faults
}

/// Returns the faults that a fitted request has and its input had not, and what only the two together show.
pub(crate) fn new_faults(format: &str, input: &Value, output: &Value) -> Vec<String> {
    let mut carried = faults(format, input);
    let mut new = Vec::new();
    for fault in faults(format, output) {
        match carried.iter().position(|known| *known == fault) {
            Some(known) => drop(carried.swap_remove(known)),
            None => new.push(fault),
        }
    }
    new.extend(match format {
        "anthropic" => anthropic::changes(input, output),
        "responses" => responses::changes(input, output),
        "gemini" => gemini::changes(input, output),
        _ => Vec::new(),
    });
    new.extend(human_words(format, input, output));
    new.extend(fields(format, input, output));
    new
}

/// Where the roles of a request take turns, so do those of the fitted one; and where the user began, the user does.
/// Items of Responses have no such order, and what the system says between messages does not count.
#[allow(dead_code, reason = "the laws use all of it, others only a part")]
pub(crate) fn turn_faults(format: &str, input: &Value, output: &Value) -> Vec<String> {
    if format == "responses" {
        return Vec::new();
    }
    let roles = |request: &Value| -> Vec<String> {
        let all = messages(format, request).iter();
        let role = |message: &Value| {
            let written = message["role"].as_str().unwrap_or_default();
            if by_user(format, message) { "user".to_owned() } else { written.to_owned() }
        };
        all.map(role).filter(|role| !matches!(role.as_str(), "system" | "developer")).collect()
    };
    let (before, after) = (roles(input), roles(output));
    let meets =
        |roles: &[String], role: &str| roles.windows(2).any(|pair| pair.iter().all(|found| found == role));
    let mut faults = Vec::new();
    for role in ["user", "assistant", "model"] {
        if meets(&after, role) && !meets(&before, role) {
            faults.push(format!("two messages of {role} in a row"));
        }
    }
    if before.first().is_some_and(|first| first == "user")
        && after.first().is_none_or(|first| first != "user")
    {
        faults.push("the first message is no longer the user's".to_owned());
    }
    faults
}

/// Returns the messages of a request.
fn messages<'a>(format: &str, request: &'a Value) -> &'a [Value] {
    let key = match format {
        "gemini" => "contents",
        "responses" => "input",
        _ => "messages",
    };
    request[key].as_array().map_or(&[], Vec::as_slice)
}

fn by_user(format: &str, message: &Value) -> bool {
    message["role"] == "user" || (format == "gemini" && message["role"].is_null())
}

/// Returns the contents of a message as a list; a string is a list of one.
fn contents<'a>(format: &str, message: &'a Value) -> Vec<&'a Value> {
    let content = if format == "gemini" { &message["parts"] } else { &message["content"] };
    match content {
        Value::Array(items) => items.iter().collect(),
        Value::Null => Vec::new(),
        other => vec![other],
    }
}

/// Returns a text of a message that a person or an agent wrote, not a tool.
fn said<'a>(format: &str, content: &'a Value) -> Option<&'a str> {
    let is_text = matches!(content["type"].as_str(), Some("text" | "input_text"))
        || (format == "gemini" && content["thought"] != true);
    content.as_str().or_else(|| content["text"].as_str().filter(|_| is_text))
}

/// Tells whether anything in the request calls a tool.
fn calls_tools(format: &str, request: &Value) -> bool {
    messages(format, request).iter().any(|message| {
        message["tool_calls"].is_array()
            || message["call_id"].is_string()
            || contents(format, message)
                .iter()
                .any(|content| content["type"] == "tool_use" || content["functionCall"].is_object())
    })
}

/// The last words of the human are unchanged. Where the agent writes its calls into text, the user's messages are
/// what its commands printed, and the first one is the task.
fn human_words(format: &str, input: &Value, output: &Value) -> Option<String> {
    let words = |request| {
        let messages = messages(format, request).iter().filter(|message| by_user(format, message));
        let texts = messages.map(|message| {
            let contents = contents(format, message);
            contents.iter().filter_map(|content| said(format, content)).map(str::to_owned).collect()
        });
        // A message of blanks asks for nothing.
        let says = |texts: &Vec<String>| texts.iter().any(|text| !text.trim().is_empty());
        texts.filter(says).collect::<Vec<_>>()
    };
    let (before, after) = (words(input), words(output));
    // Where messages must alternate, other texts may stand in one message with them.
    let holds = |texts: &Vec<String>, known: &Vec<String>| texts.windows(known.len()).any(|run| run == known);
    let kept = if calls_tools(format, input) {
        before.last().is_none_or(|last| after.iter().any(|texts| holds(texts, last)))
    } else {
        before.first().is_none_or(|first| after.first().is_some_and(|texts| texts.starts_with(first)))
    };
    (!kept).then(|| "the user's task is changed or gone".to_owned())
}

/// Everything beside the messages is unchanged.
fn fields(format: &str, input: &Value, output: &Value) -> Vec<String> {
    let list = match format {
        "gemini" => "contents",
        "responses" => "input",
        _ => "messages",
    };
    let beside = |request: &Value| {
        // A bare list of messages has nothing beside it.
        let mut beside = if request.is_array() { Value::Null } else { request.clone() };
        if let Some(members) = beside.as_object_mut() {
            members.remove(list);
        }
        beside
    };
    let changed =
        (beside(input) != beside(output)).then(|| "a field beside the messages is changed".to_owned());
    let system = |request: &Value| -> Vec<Value> {
        let heads = messages(format, request).iter();
        heads
            .filter(|message| matches!(message["role"].as_str(), Some("system" | "developer")))
            .cloned()
            .collect()
    };
    let head = (system(input) != system(output)).then(|| "a system message is changed or gone".to_owned());
    changed.into_iter().chain(head).collect()
}

/// Says which of some names come more than once.
fn doubled(what: &str, names: &[&str]) -> Vec<String> {
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    let pairs = sorted.windows(2).filter(|pair| pair[0] == pair[1]);
    pairs.map(|pair| format!("{what} {} comes twice", pair[0])).collect()
}

/// Arguments are a JSON object in a string; some servers refuse anything else.
fn argument_fault(arguments: &Value, id: &str) -> Option<String> {
    let text = arguments.as_str()?;
    let good = serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
    (!good).then(|| format!("the arguments of call {id} are no JSON object"))
}
