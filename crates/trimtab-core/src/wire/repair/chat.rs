//! Repairs messages of Chat Completions: the results of a message's calls follow it, one each, and nothing between.

use super::{
    RepairLog, RepairedMessages, fresh_id, given_none, id_of, json_list, json_text, lacks_arguments,
    mended_arguments, set_member, without_member,
};
use crate::{
    json::{Object, Value, scan},
    notes::NO_RESULT,
};

struct RepairedMessage {
    index: usize,
    role: String,
    raw: Vec<u8>,
    /// The ids of its calls.
    calls: Vec<String>,
    /// The call that it answers.
    answers: String,
}

pub(in crate::wire) fn repair(messages: &[Value<'_>]) -> RepairedMessages {
    let mut log = RepairLog::default();
    let mut rest: Vec<RepairedMessage> =
        messages.iter().enumerate().filter_map(|(index, message)| read(index, *message, &mut log)).collect();
    let mut done: Vec<Vec<u8>> = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    while !rest.is_empty() {
        let mut message = rest.remove(0);
        if message.role == "tool" {
            log.say(
                message.index,
                format!("a result for {:?} without a call before it, removed", message.answers),
            );
            continue;
        }
        let renamed = unique(&mut message, &mut ids, &mut log);
        done.push(message.raw);
        for call in &message.calls {
            let old = renamed.iter().find(|(_, new)| new == call).map_or(call, |(old, _)| old);
            done.push(answer(message.index, call, old, &mut rest, &mut log));
        }
        // What still answers one of these calls right here answers it a second time.
        while rest.first().is_some_and(|next| next.role == "tool" && message.calls.contains(&next.answers)) {
            let second = rest.remove(0);
            log.say(second.index, format!("a second result for {:?}, removed", second.answers));
        }
    }
    (done, log.0)
}

/// Reads a message; nothing where it is empty.
fn read(index: usize, message: Value<'_>, log: &mut RepairLog) -> Option<RepairedMessage> {
    let role = message.text("role").unwrap_or_default().into_owned();
    let mut raw = message.raw().to_vec();
    let calls: Vec<Value<'_>> = message.items_of("tool_calls").collect();
    if message.get("tool_calls").is_some_and(Value::is_array) && calls.is_empty() {
        raw = without_member(&raw, "tool_calls");
        log.say(index, "an empty list of calls, removed");
    }
    let mut mended_calls: Vec<Vec<u8>> = Vec::new();
    let mut wrong = false;
    for call in &calls {
        let arguments = call.path(&["function", "arguments"]);
        let function = call.get("function").filter(|function| function.is_object());
        match arguments.and_then(mended_arguments).zip(function) {
            None if function.is_some() && lacks_arguments(arguments) => {
                let function = function.map_or(&b"{}"[..], Value::raw);
                let function = set_member(function, "arguments", br#""{}""#);
                mended_calls.push(set_member(call.raw(), "function", &function));
                log.say(index, given_none(&id_of(*call, "id")));
                wrong = true;
            }
            Some((json, function)) => {
                let function = set_member(function.raw(), "arguments", &json);
                mended_calls.push(set_member(call.raw(), "function", &function));
                log.say(
                    index,
                    format!("the arguments of {:?} are no JSON, put into an object", id_of(*call, "id")),
                );
                wrong = true;
            }
            None => mended_calls.push(call.raw().to_vec()),
        }
    }
    if wrong {
        raw = set_member(&raw, "tool_calls", &json_list(&mended_calls));
    }
    let calling = !calls.is_empty() || message.get("function_call").is_some_and(Value::is_object);
    let parts = message.get("content").filter(|content| content.is_array());
    if let Some(parts) = parts {
        let blank = |part: &Value<'_>| {
            part.member_is("type", "text") && part.text("text").is_none_or(|text| text.is_empty())
        };
        let kept: Vec<Vec<u8>> =
            parts.items().filter(|part| !blank(part)).map(|part| part.raw().to_vec()).collect();
        if kept.len() < parts.items().count() {
            raw = set_member(&raw, "content", &json_list(&kept));
            log.say(index, "an empty text, removed");
        }
        if kept.is_empty() && (calling || role == "tool") {
            raw = set_member(&raw, "content", if role == "tool" { b"\"\"" } else { b"null" });
            log.say(index, "an empty list as content, emptied");
        } else if kept.is_empty() {
            log.say(index, format!("an empty message of {role}, removed"));
            return None;
        }
    }
    let missing = message.get("content").is_none_or(Value::is_null) && !calling;
    let blank = role == "user" && message.get("content").is_some_and(|content| content.is(""));
    if missing && role == "tool" {
        raw = set_member(&raw, "content", b"\"\"");
        log.say(index, "a result without content, given an empty one");
    } else if missing || blank {
        log.say(index, format!("an empty message of {role}, removed"));
        return None;
    }
    let calls = calls.iter().map(|call| id_of(*call, "id").into_owned()).collect();
    Some(RepairedMessage { index, raw, calls, answers: id_of(message, "tool_call_id").into_owned(), role })
}

fn unique(
    message: &mut RepairedMessage,
    ids: &mut Vec<String>,
    log: &mut RepairLog,
) -> Vec<(String, String)> {
    let mut renamed = Vec::new();
    for at in 0..message.calls.len() {
        let Some(id) = message.calls.get(at).cloned() else { continue };
        if !ids.contains(&id) {
            ids.push(id);
            continue;
        }
        let fresh = fresh_id(&id, ids);
        log.say(message.index, format!("the id {id:?} is used twice, now {fresh:?}"));
        let calls = scan(&message.raw).ok().map(|tape| {
            let items = tape.root(&message.raw).into_iter().flat_map(|root| root.items_of("tool_calls"));
            items.map(|call| call.raw().to_vec()).collect::<Vec<_>>()
        });
        let mut calls = calls.unwrap_or_default();
        if let Some(call) = calls.get_mut(at) {
            *call = set_member(call, "id", &json_text(&fresh));
        }
        message.raw = set_member(&message.raw, "tool_calls", &json_list(&calls));
        if let Some(call) = message.calls.get_mut(at) {
            call.clone_from(&fresh);
        }
        ids.push(fresh.clone());
        renamed.push((id, fresh));
    }
    renamed
}

/// Takes the result of a call out of what follows, before another call of the same id; a note where there is none.
fn answer(
    index: usize,
    call: &str,
    old: &str,
    rest: &mut Vec<RepairedMessage>,
    log: &mut RepairLog,
) -> Vec<u8> {
    let found = rest.iter().position(|message| {
        (message.role == "tool" && message.answers == old) || message.calls.iter().any(|other| other == old)
    });
    let Some(at) = found.filter(|at| rest.get(*at).is_some_and(|message| message.role == "tool")) else {
        log.say(index, format!("the call {call:?} has no result, a note put in its place"));
        return Object::new()
            .text("role", "tool")
            .text("tool_call_id", call)
            .text("content", NO_RESULT)
            .end();
    };
    let late = rest.iter().take(at).any(|message| message.role != "tool");
    let result = rest.remove(at);
    if late {
        log.say(result.index, format!("the result for {old:?} came too late; moved after its call"));
    }
    if call == old { result.raw } else { set_member(&result.raw, "tool_call_id", &json_text(call)) }
}
