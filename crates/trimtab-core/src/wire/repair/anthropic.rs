//! Repairs Anthropic's messages: every call is answered in the user's message right after it, results first.

use super::{RepairLog, RepairedMessages, fresh_id, given_none, id_of, json_list, json_text, set_member};
use crate::{
    json::{Object, Value},
    notes::{BEGINNING, NO_RESULT},
};

struct AnthropicMessage {
    /// Where it stood.
    index: usize,
    role: String,
    raw: Vec<u8>,
    blocks: Vec<AnthropicBlock>,
    changed: bool,
}

#[derive(Clone)]
struct AnthropicBlock {
    raw: Vec<u8>,
    kind: AnthropicKind,
    id: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AnthropicKind {
    Call,
    Result,
    Other,
}

pub(in crate::wire) fn repair(messages: &[Value<'_>]) -> RepairedMessages {
    let mut log = RepairLog::default();
    let last = messages.len().saturating_sub(1);
    let mut all: Vec<AnthropicMessage> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let read = read(index, *message, &mut log);
        let may_be_empty = index == last && read.role == "assistant";
        if read.is_empty() && !may_be_empty {
            log.say(index, format!("an empty message of {}, removed", read.role));
        } else {
            all.push(read);
        }
    }
    let mut all = answer(all, &mut log);
    // The model's last message may be empty as long as it is the last.
    let last = all.len().saturating_sub(1);
    let now_inside = all.iter().take(last).position(AnthropicMessage::is_empty).map(|at| all.remove(at));
    if let Some(AnthropicMessage { index, role, .. }) = now_inside {
        log.say(index, format!("an empty message of {role}, removed"));
    }
    if all.first().is_some_and(|first| first.role == "assistant") {
        log.say(
            all.first().map_or(0, |first| first.index),
            "the first message is the model's, one put before it",
        );
        all.insert(0, text_message(0, BEGINNING));
    }
    (all.into_iter().map(AnthropicMessage::write).collect(), log.0)
}

fn text_message(index: usize, text: &str) -> AnthropicMessage {
    let raw = Object::new().text("role", "user").text("content", text).end();
    AnthropicMessage { index, role: "user".to_owned(), raw, blocks: Vec::new(), changed: false }
}

fn read(index: usize, message: Value<'_>, log: &mut RepairLog) -> AnthropicMessage {
    let role = message.text("role").unwrap_or_default().into_owned();
    let mut read =
        AnthropicMessage { index, role, raw: message.raw().to_vec(), blocks: Vec::new(), changed: false };
    let Some(content) = message.get("content") else { return read };
    if let Some(text) = content.string() {
        if !text.trim().is_empty() {
            let raw = Object::new().text("type", "text").raw("text", content.raw()).end();
            read.blocks.push(AnthropicBlock { raw, kind: AnthropicKind::Other, id: String::new() });
        }
        return read;
    }
    for item in content.items() {
        if is_blank(item) {
            log.say(index, "an empty text, removed");
            read.changed = true;
            continue;
        }
        let (kind, id) = match item.text("type").as_deref() {
            Some("tool_use") => (AnthropicKind::Call, id_of(item, "id")),
            Some("tool_result") => (AnthropicKind::Result, id_of(item, "tool_use_id")),
            _ => (AnthropicKind::Other, "".into()),
        };
        let mut block = AnthropicBlock { raw: item.raw().to_vec(), kind, id: id.into_owned() };
        if kind == AnthropicKind::Call && item.get("input").is_none_or(Value::is_null) {
            block.raw = set_member(&block.raw, "input", b"{}");
            log.say(index, given_none(&block.id));
            read.changed = true;
        }
        if kind == AnthropicKind::Result
            && let Some(inner) = item.get("content").filter(|inner| inner.items().any(is_blank))
        {
            let kept: Vec<Vec<u8>> =
                inner.items().filter(|part| !is_blank(*part)).map(|part| part.raw().to_vec()).collect();
            let content = if kept.is_empty() { json_text("") } else { json_list(&kept) };
            block.raw = set_member(&block.raw, "content", &content);
            log.say(index, "an empty text in a result, removed");
            read.changed = true;
        }
        read.blocks.push(block);
    }
    read
}

fn is_blank(block: Value<'_>) -> bool {
    block.member_is("type", "text") && block.text("text").is_none_or(|text| text.trim().is_empty())
}

/// Puts every result after its call, a note where none came, and takes out what answers nothing.
fn answer(mut all: Vec<AnthropicMessage>, log: &mut RepairLog) -> Vec<AnthropicMessage> {
    let mut done: Vec<AnthropicMessage> = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    while !all.is_empty() {
        let role = all.first().map(|message| message.role.clone()).unwrap_or_default();
        let turn = all.iter().take_while(|message| message.role == role).count();
        let mut rest = all.split_off(turn);
        let mut renamed: Vec<(String, String)> = Vec::new();
        if role == "assistant" {
            renamed = unique(&mut all, &mut ids, log);
        }
        let calls: Vec<String> = if role == "assistant" {
            let blocks = all.iter().flat_map(|message| &message.blocks);
            blocks.filter(|block| block.kind == AnthropicKind::Call).map(|block| block.id.clone()).collect()
        } else {
            Vec::new()
        };
        let index = all.last().map_or(0, |message| message.index);
        done.append(&mut all);
        let replies = rest.iter().take_while(|message| message.role == "user").count();
        if !calls.is_empty() && replies == 0 {
            rest.insert(
                0,
                AnthropicMessage { changed: true, raw: EMPTY.to_vec(), ..text_message(index + 1, "") },
            );
        }
        let replies = rest.iter().take_while(|message| message.role == "user").count();
        let (reply, later) = rest.split_at_mut(replies);
        if role == "assistant" {
            add_results(&calls, &renamed, reply, later, log);
        } else if done.len() == turn {
            // Before the first message of the model there is nothing to answer.
            add_results(&[], &[], done.as_mut_slice(), &mut [], log);
        }
        done.retain(|message| !message.changed || !message.blocks.is_empty());
        rest.retain(|message| !message.changed || !message.blocks.is_empty());
        all = rest;
    }
    done
}

const EMPTY: &[u8] = br#"{"role":"user","content":[]}"#;

/// Gives calls whose id was used before another one; returns old and new ids.
fn unique(
    turn: &mut [AnthropicMessage],
    ids: &mut Vec<String>,
    log: &mut RepairLog,
) -> Vec<(String, String)> {
    let mut renamed = Vec::new();
    for message in turn {
        for block in message.blocks.iter_mut().filter(|block| block.kind == AnthropicKind::Call) {
            if ids.contains(&block.id) {
                let fresh = fresh_id(&block.id, ids);
                log.say(message.index, format!("the id {:?} is used twice, now {fresh:?}", block.id));
                block.raw = set_member(&block.raw, "id", &json_text(&fresh));
                renamed.push((std::mem::replace(&mut block.id, fresh.clone()), fresh));
                message.changed = true;
            }
            ids.push(block.id.clone());
        }
    }
    renamed
}

/// Orders the user's messages after calls: their results first, one each.
fn add_results(
    calls: &[String],
    renamed: &[(String, String)],
    reply: &mut [AnthropicMessage],
    later: &mut [AnthropicMessage],
    log: &mut RepairLog,
) {
    for (old, new) in renamed {
        // The result that comes next is the renamed call's, unless the call of the old name is in the same message.
        let mut results = reply.iter_mut().flat_map(|message| {
            let index = message.index;
            message.blocks.iter_mut().map(move |block| (index, block))
        });
        let skip = usize::from(calls.contains(old));
        let found = results
            .by_ref()
            .filter(|(_, block)| block.kind == AnthropicKind::Result && block.id == *old)
            .nth(skip);
        if let Some((index, block)) = found {
            block.raw = set_member(&block.raw, "tool_use_id", &json_text(new));
            block.id.clone_from(new);
            if let Some(message) = reply.iter_mut().find(|message| message.index == index) {
                message.changed = true;
            }
        }
    }
    let mut answered: Vec<AnthropicBlock> = Vec::new();
    let mut wrong = false;
    let mut other_before = false;
    for message in reply.iter_mut() {
        let index = message.index;
        let before = message.blocks.len();
        message.blocks.retain(|block| {
            if block.kind != AnthropicKind::Result {
                other_before = true;
                return true;
            }
            let known = calls.contains(&block.id);
            let twice = answered.iter().any(|result| result.id == block.id);
            if !known {
                log.say(index, format!("a result for {:?} without a call before it, removed", block.id));
            } else if twice {
                log.say(index, format!("a second result for {:?}, removed", block.id));
            } else {
                if other_before {
                    wrong = true;
                    log.say(
                        index,
                        format!(
                            "the result for {:?} came after something else; moved to the front",
                            block.id
                        ),
                    );
                }
                answered.push(block.clone());
                return true;
            }
            false
        });
        message.changed |= message.blocks.len() != before;
    }
    for call in calls {
        if answered.iter().any(|result| result.id == *call) {
            continue;
        }
        wrong = true;
        let index = reply.first().map_or(0, |first| first.index);
        match take(call, later) {
            Some((from, block)) => {
                log.say(from, format!("the result for {call:?} came too late; moved after its call"));
                answered.push(block);
            }
            None => {
                log.say(
                    index.saturating_sub(1),
                    format!("the call {call:?} has no result, a note put in its place"),
                );
                answered.push(missing(call));
            }
        }
    }
    if !wrong {
        return;
    }
    for message in reply.iter_mut() {
        let before = message.blocks.len();
        message.blocks.retain(|block| block.kind != AnthropicKind::Result);
        message.changed |= message.blocks.len() != before;
    }
    if let Some(first) = reply.first_mut() {
        first.blocks.splice(0..0, answered);
        first.changed = true;
    }
}

/// Takes the result of a call out of later messages, before another call of the same id.
fn take(call: &str, later: &mut [AnthropicMessage]) -> Option<(usize, AnthropicBlock)> {
    for message in later {
        if message.blocks.iter().any(|block| block.kind == AnthropicKind::Call && block.id == call) {
            return None;
        }
        let found =
            message.blocks.iter().position(|block| block.kind == AnthropicKind::Result && block.id == call);
        if let Some(at) = found {
            message.changed = true;
            return Some((message.index, message.blocks.remove(at)));
        }
    }
    None
}

fn missing(call: &str) -> AnthropicBlock {
    let raw = Object::new()
        .text("type", "tool_result")
        .text("tool_use_id", call)
        .text("content", NO_RESULT)
        .raw("is_error", b"true")
        .end();
    AnthropicBlock { raw, kind: AnthropicKind::Result, id: call.to_owned() }
}

impl AnthropicMessage {
    fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    fn write(self) -> Vec<u8> {
        if !self.changed {
            return self.raw;
        }
        let blocks: Vec<Vec<u8>> = self.blocks.into_iter().map(|block| block.raw).collect();
        set_member(&self.raw, "content", &json_list(&blocks))
    }
}
