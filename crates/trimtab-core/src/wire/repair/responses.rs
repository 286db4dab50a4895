//! Repairs items of Responses: one output follows every call, and reasoning precedes the item it belongs to.

use super::{
    RepairLog, RepairedMessages, fresh_id, given_none, id_of, json_text, lacks_arguments, mended_arguments,
    set_member,
};
use crate::{
    json::{Object, Value},
    notes::NO_RESULT,
};

#[derive(Clone)]
struct ResponsesItem {
    index: usize,
    kind: ResponsesKind,
    /// The family of its tool: a call and its output have the same.
    family: String,
    id: String,
    raw: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ResponsesKind {
    Call,
    Output,
    /// Reasoning with an id, which needs the item after it.
    Reasoning,
    /// Another item of the model.
    Model,
    /// An item that only the server has: it may be any call or output.
    Reference,
    Other,
}

pub(in crate::wire) fn repair(items: &[Value<'_>]) -> RepairedMessages {
    let mut log = RepairLog::default();
    let read = items.iter().enumerate().filter_map(|(index, item)| read(index, *item, &mut log));
    let mut items: Vec<ResponsesItem> = read.collect();
    unique(&mut items, &mut log);
    let items = answer_calls(items, &mut log);
    let mut done: Vec<ResponsesItem> = Vec::new();
    // From the end, so that reasoning before reasoning that goes is seen to have lost its item too.
    for item in items.into_iter().rev() {
        let next = done.last().map_or(ResponsesKind::Other, |next| next.kind);
        if item.kind == ResponsesKind::Reasoning
            && matches!(next, ResponsesKind::Output | ResponsesKind::Other)
        {
            log.say(item.index, "reasoning without the item it belongs to, removed");
        } else {
            done.push(item);
        }
    }
    (done.into_iter().rev().map(|item| item.raw).collect(), log.0)
}

fn read(index: usize, item: Value<'_>, log: &mut RepairLog) -> Option<ResponsesItem> {
    let written = item.text("type").unwrap_or("message".into());
    let id = id_of(item, "call_id").into_owned();
    let mut raw = item.raw().to_vec();
    let kind = match written.as_ref() {
        kind if kind.ends_with("_output") && !id.is_empty() => ResponsesKind::Output,
        kind if kind.ends_with("_call") && !id.is_empty() => ResponsesKind::Call,
        "reasoning" if item.get("id").is_some_and(Value::is_string) => ResponsesKind::Reasoning,
        "item_reference" => ResponsesKind::Reference,
        kind if kind.ends_with("_call") || kind == "reasoning" || item.member_is("role", "assistant") => {
            ResponsesKind::Model
        }
        _ => ResponsesKind::Other,
    };
    if written == "reasoning" && !item.get("summary").is_some_and(Value::is_array) {
        raw = set_member(&raw, "summary", b"[]");
        log.say(index, "reasoning without a summary, given an empty one");
    }
    if written == "message" {
        let content = item.get("content");
        let empty = content.is_none_or(|content| {
            content.is_null() || content.is("") || (content.is_array() && content.items().next().is_none())
        });
        if empty {
            let role = item.text("role").unwrap_or_default();
            log.say(index, format!("an empty message of {role}, removed"));
            return None;
        }
    }
    if written == "function_call" && lacks_arguments(item.get("arguments")) {
        raw = set_member(&raw, "arguments", br#""{}""#);
        log.say(index, given_none(&id));
    }
    if written == "function_call"
        && let Some(json) = item.get("arguments").and_then(mended_arguments)
    {
        raw = set_member(&raw, "arguments", &json);
        log.say(index, format!("the arguments of {id:?} are no JSON, put into an object"));
    }
    Some(ResponsesItem { index, kind, family: family(&written).to_owned(), id, raw })
}

fn family(kind: &str) -> &str {
    match kind {
        "function_call" | "local_shell_call" | "function_call_output" => "function",
        other => other.trim_end_matches("_output").trim_end_matches("_call"),
    }
}

/// Gives calls whose id was used before another one, and the output that follows with it.
fn unique(items: &mut [ResponsesItem], log: &mut RepairLog) {
    let mut ids: Vec<String> = Vec::new();
    for at in 0..items.len() {
        let Some(call) = items.get(at).filter(|item| item.kind == ResponsesKind::Call).cloned() else {
            continue;
        };
        if !ids.contains(&call.id) {
            ids.push(call.id);
            continue;
        }
        let fresh = fresh_id(&call.id, &ids);
        log.say(call.index, format!("the id {:?} is used twice, now {fresh:?}", call.id));
        let open = items
            .iter()
            .take(at)
            .filter(|item| item.kind == ResponsesKind::Call && item.id == call.id)
            .count()
            > items
                .iter()
                .take(at)
                .filter(|item| item.kind == ResponsesKind::Output && item.id == call.id)
                .count();
        // Where the first call still waits, the next output is its own.
        let mut outputs = items
            .iter_mut()
            .skip(at + 1)
            .filter(|item| item.kind == ResponsesKind::Output && item.id == call.id);
        let own = if open { outputs.nth(1) } else { outputs.next() };
        if let Some(output) = own {
            output.raw = set_member(&output.raw, "call_id", &json_text(&fresh));
            output.id.clone_from(&fresh);
        }
        if let Some(item) = items.get_mut(at) {
            item.raw = set_member(&item.raw, "call_id", &json_text(&fresh));
            item.id.clone_from(&fresh);
        }
        ids.push(fresh);
    }
}

fn answer_calls(items: Vec<ResponsesItem>, log: &mut RepairLog) -> Vec<ResponsesItem> {
    let same = |one: &ResponsesItem, other: &ResponsesItem| one.id == other.id && one.family == other.family;
    let mut kept: Vec<ResponsesItem> = Vec::new();
    // Outputs that came before their call wait for it.
    let mut early: Vec<ResponsesItem> = Vec::new();
    for item in items {
        if item.kind != ResponsesKind::Output {
            let waiting = (item.kind == ResponsesKind::Call)
                .then(|| early.iter().position(|output| same(output, &item)))
                .flatten();
            kept.push(item);
            if let Some(at) = waiting {
                let output = early.remove(at);
                log.say(
                    output.index,
                    format!("the output of {:?} came before its call; moved after it", output.id),
                );
                kept.push(output);
            }
            continue;
        }
        if kept.iter().any(|other| other.kind == ResponsesKind::Output && same(other, &item)) {
            log.say(item.index, format!("a second output of {:?}, removed", item.id));
        } else if kept.iter().any(|other| {
            other.kind == ResponsesKind::Reference
                || (other.kind == ResponsesKind::Call && same(other, &item))
        }) {
            // A reference may name the call: what follows is not judged.
            kept.push(item);
        } else {
            early.push(item);
        }
    }
    for orphan in early {
        log.say(orphan.index, format!("a result for {:?} without a call before it, removed", orphan.id));
    }
    with_notes(kept, log)
}

/// Puts a note after every run of calls of which some have no output.
fn with_notes(items: Vec<ResponsesItem>, log: &mut RepairLog) -> Vec<ResponsesItem> {
    let outputs: Vec<(String, String)> = items
        .iter()
        .filter(|item| item.kind == ResponsesKind::Output)
        .map(|item| (item.family.clone(), item.id.clone()))
        .collect();
    // A reference may be the output that seems to be missing.
    let last_reference =
        items.iter().filter(|item| item.kind == ResponsesKind::Reference).map(|item| item.index).max();
    let mut done: Vec<ResponsesItem> = Vec::new();
    let mut missing: Vec<ResponsesItem> = Vec::new();
    for item in items {
        // Parallel calls and the reasoning between them stay together: notes follow them.
        if !matches!(
            item.kind,
            ResponsesKind::Call | ResponsesKind::Reasoning | ResponsesKind::Model | ResponsesKind::Reference
        ) {
            done.append(&mut missing);
        }
        let waits =
            item.kind == ResponsesKind::Call && !outputs.contains(&(item.family.clone(), item.id.clone()));
        if waits && last_reference.is_none_or(|reference| reference < item.index) {
            log.say(item.index, format!("the call {:?} has no result, a note put in its place", item.id));
            missing.push(note(&item));
        }
        done.push(item);
    }
    done.append(&mut missing);
    done
}

fn note(call: &ResponsesItem) -> ResponsesItem {
    let kind =
        if call.family == "function" { "function_call_output".to_owned() } else { output_kind(&call.family) };
    let raw = Object::new().text("type", &kind).text("call_id", &call.id).text("output", NO_RESULT).end();
    ResponsesItem { kind: ResponsesKind::Output, raw, ..call.clone() }
}

fn output_kind(family: &str) -> String {
    if family == "tool_search" { "tool_search_output".to_owned() } else { format!("{family}_call_output") }
}
