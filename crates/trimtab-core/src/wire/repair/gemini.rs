//! Repairs Gemini's contents: roles alternate, and calls are answered in the next content, in their order, before other parts.

use super::{RepairLog, RepairedMessages, given_none, json_list, set_member};
use crate::{
    json::{Object, Value},
    notes::{BEGINNING, NO_RESULT},
};

struct GeminiContent {
    index: usize,
    by_user: bool,
    raw: Vec<u8>,
    parts: Vec<GeminiPart>,
    changed: bool,
}

struct GeminiPart {
    raw: Vec<u8>,
    kind: GeminiKind,
    name: String,
    id: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GeminiKind {
    Call,
    Response,
    Other,
}

pub(in crate::wire) fn repair(contents: &[Value<'_>]) -> RepairedMessages {
    let mut log = RepairLog::default();
    let read: Vec<GeminiContent> =
        contents.iter().enumerate().map(|(index, content)| read(index, *content, &mut log)).collect();
    let mut all = alternating(read, &mut log);
    answer(&mut all, &mut log);
    let mut all = alternating(all, &mut log);
    if all.first().is_some_and(|first| !first.by_user) {
        log.say(
            all.first().map_or(0, |first| first.index),
            "the first content is the model's, one put before it",
        );
        let part = Object::new().text("text", BEGINNING).end();
        let raw = Object::new().text("role", "user").raw("parts", &json_list(&[part])).end();
        all.insert(0, GeminiContent { index: 0, by_user: true, raw, parts: Vec::new(), changed: false });
    }
    (all.into_iter().map(GeminiContent::write).collect(), log.0)
}

fn read(index: usize, content: Value<'_>, log: &mut RepairLog) -> GeminiContent {
    let by_user = content.get("role").is_none_or(|role| !role.is("model"));
    let mut read =
        GeminiContent { index, by_user, raw: content.raw().to_vec(), parts: Vec::new(), changed: false };
    for item in content.items_of("parts") {
        if item.is_object() && item.members().next().is_none() {
            log.say(index, "an empty part, removed");
            read.changed = true;
            continue;
        }
        let call = item.get("functionCall").or(item.get("function_call")).filter(|call| call.is_object());
        let key =
            if item.get("functionResponse").is_some() { "functionResponse" } else { "function_response" };
        let response = item.get(key).filter(|response| response.is_object());
        let mut raw = item.raw().to_vec();
        if let Some(given) =
            response.and_then(|response| response.get("response")).filter(|given| !given.is_object())
        {
            let object = Object::new().raw("output", given.raw()).end();
            let answer = response.map(|response| set_member(response.raw(), "response", &object));
            raw = set_member(&raw, key, &answer.unwrap_or_default());
            log.say(index, "a response that is no object, put into one");
            read.changed = true;
        }
        // A call without `args` is a good one; only one that says null is not.
        if let Some(call) = call.filter(|call| call.get("args").is_some_and(Value::is_null)) {
            let name = if item.get("functionCall").is_some() { "functionCall" } else { "function_call" };
            raw = set_member(&raw, name, &set_member(call.raw(), "args", b"{}"));
            log.say(index, given_none(&call.owned_text("name").unwrap_or_default()));
            read.changed = true;
        }
        let (kind, of) = match (call, response) {
            (Some(call), _) => (GeminiKind::Call, Some(call)),
            (None, Some(response)) => (GeminiKind::Response, Some(response)),
            (None, None) => (GeminiKind::Other, None),
        };
        let text = |key: &str| of.and_then(|of| of.owned_text(key)).unwrap_or_default();
        read.parts.push(GeminiPart { raw, kind, name: text("name"), id: text("id") });
    }
    read
}

/// Takes out what is empty and joins contents of one role in a row.
fn alternating(contents: Vec<GeminiContent>, log: &mut RepairLog) -> Vec<GeminiContent> {
    let mut all: Vec<GeminiContent> = Vec::new();
    for content in contents {
        if content.parts.is_empty() {
            // One that was emptied on the way has been reported.
            if !content.changed {
                log.say(content.index, "a content without parts, removed");
            }
            continue;
        }
        match all.last_mut().filter(|last| last.by_user == content.by_user) {
            Some(last) => {
                log.say(content.index, "two contents of one role in a row, joined");
                last.parts.extend(content.parts);
                last.changed = true;
            }
            None => all.push(content),
        }
    }
    all
}

fn answer(all: &mut Vec<GeminiContent>, log: &mut RepairLog) {
    let mut at = 0;
    while at < all.len() {
        let calls: Vec<(String, String)> = match all.get(at) {
            Some(content) if !content.by_user => {
                let calls = content.parts.iter().filter(|part| part.kind == GeminiKind::Call);
                calls.map(|part| (part.name.clone(), part.id.clone())).collect()
            }
            Some(_) | None => Vec::new(),
        };
        let index = all.get(at).map_or(0, |content| content.index);
        let is_user = all.get(at).is_some_and(|content| content.by_user);
        if at == 0 && is_user {
            order(&[], index, all.get_mut(0), log);
        }
        if !is_user {
            if !calls.is_empty() && all.get(at + 1).is_none() {
                let raw = br#"{"role":"user","parts":[]}"#.to_vec();
                all.push(GeminiContent {
                    index: index + 1,
                    by_user: true,
                    raw,
                    parts: Vec::new(),
                    changed: true,
                });
            }
            order(&calls, index, all.get_mut(at + 1), log);
        }
        at += 1;
    }
}

/// Puts the responses of a content into the order of the calls before it, one each.
fn order(calls: &[(String, String)], asked: usize, content: Option<&mut GeminiContent>, log: &mut RepairLog) {
    let Some(content) = content else { return };
    let before: Vec<Vec<u8>> = content.parts.iter().map(|part| part.raw.clone()).collect();
    let (mut responses, others): (Vec<GeminiPart>, Vec<GeminiPart>) =
        content.parts.drain(..).partition(|part| part.kind == GeminiKind::Response);
    let mut ordered: Vec<GeminiPart> = Vec::new();
    for (name, id) in calls {
        let own =
            |part: &GeminiPart| part.name == *name && (part.id == *id || part.id.is_empty() || id.is_empty());
        match responses.iter().position(own) {
            Some(found) => ordered.push(responses.remove(found)),
            None => {
                log.say(asked, format!("the call of {name:?} has no result, a note put in its place"));
                ordered.push(missing(name, id));
            }
        }
    }
    for orphan in responses {
        log.say(content.index, format!("a result of {:?} without a call before it, removed", orphan.name));
    }
    let told = log.0.len();
    content.parts = ordered.into_iter().chain(others).collect();
    let after: Vec<Vec<u8>> = content.parts.iter().map(|part| part.raw.clone()).collect();
    if before == after {
        return;
    }
    content.changed = true;
    let mut sorted = (before, after);
    sorted.0.sort();
    sorted.1.sort();
    if sorted.0 == sorted.1 && told == log.0.len() {
        log.say(content.index, "results out of the order of their calls, put in order");
    }
}

fn missing(name: &str, id: &str) -> GeminiPart {
    let error = Object::new().text("error", NO_RESULT).end();
    let mut response = Object::new();
    if !id.is_empty() {
        response = response.text("id", id);
    }
    let response = response.text("name", name).raw("response", &error).end();
    let raw = Object::new().raw("functionResponse", &response).end();
    GeminiPart { raw, kind: GeminiKind::Response, name: name.to_owned(), id: id.to_owned() }
}

impl GeminiContent {
    fn write(self) -> Vec<u8> {
        if !self.changed {
            return self.raw;
        }
        let parts: Vec<Vec<u8>> = self.parts.into_iter().map(|part| part.raw).collect();
        set_member(&self.raw, "parts", &json_list(&parts))
    }
}
