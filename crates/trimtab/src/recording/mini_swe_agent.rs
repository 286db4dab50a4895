//! mini-swe-agent trajectories: one JSON document with `messages` and `info`. Takes the document; gives one
//! segment: the messages as they were sent, each answer with the model, time and usage in its `extra.response`.
//! Never includes the message by which the agent tells that it ended: no request carried it.

use super::{
    Millis, Reader, Start,
    chat::{self, is_assistant},
    draft::{Draft, SegmentDraft, time},
    source::Source,
};
use crate::{json::Value, wire::Format};

pub(super) const READER: Reader =
    Reader { name: "mini-swe-agent", about: "mini-swe-agent trajectory (.traj.json)", fits, read };

fn fits(source: &Source<'_>) -> bool {
    source.begins(is_trajectory)
}

fn is_trajectory(document: Value<'_>) -> bool {
    let named = document.text("trajectory_format").is_some_and(|name| name.starts_with("mini-swe-agent"));
    let told = ["mini_version", "exit_status", "model_stats"]
        .iter()
        .any(|key| document.path(&["info", key]).is_some());
    document.get("messages").is_some_and(Value::is_array) && (named || told)
}

fn read(source: &Source<'_>, draft: &mut Draft) {
    for (line, document) in source.values() {
        if is_trajectory(document) {
            trajectory(document, line, draft);
        } else {
            draft.problem(line, "not a trajectory: expected `messages` and `info`");
        }
    }
}

fn trajectory(document: Value<'_>, line: usize, draft: &mut Draft) {
    let messages = || document.get("messages").into_iter().flat_map(Value::items);
    let format = if messages().any(is_response) { Format::Responses } else { Format::Chat };
    let mut segment = SegmentDraft::new(Start::Session, format, line);
    segment.name = document.text("instance_id").map(std::borrow::Cow::into_owned);
    let configured = document.path(&["info", "config", "model", "model_name"]).and_then(Value::string);
    let mut sent = None;
    let mut told_end = false;
    for (index, message) in messages().enumerate() {
        if message.get("role").is_some_and(|role| role.is("exit")) {
            continue;
        }
        if !message.is_object() {
            draft.problem(line, format!("message {} is not an object", index + 1));
            continue;
        }
        let answer = is_response(message) || is_assistant(message);
        if answer {
            let response = message
                .path(&["extra", "response"])
                .or(Some(message).filter(|message| is_response(*message)));
            let model = response.and_then(|response| response.text("model")).or_else(|| configured.clone());
            let at = sent.or_else(|| created(response));
            segment.point(at, model);
            chat::answered(&mut segment, chat::usage(response.and_then(|response| response.get("usage"))));
        }
        told_end = message.get("role").is_some_and(|role| role.is("user"));
        sent = time(message.path(&["extra", "timestamp"]));
        add(message, &mut segment);
    }
    // The first version ends with a user message that holds what was handed in.
    let ended = document.path(&["info", "exit_status"]).is_some_and(Value::is_string);
    if ended && told_end && !segment.points.is_empty() {
        segment.messages.pop();
    }
    draft.push(segment);
}

/// Tells whether this is a whole answer of the Responses API, which is sent again as the items in it.
fn is_response(message: Value<'_>) -> bool {
    message.get("object").is_some_and(|object| object.is("response"))
}

fn created(response: Option<Value<'_>>) -> Option<Millis> {
    let response = response?;
    time(response.get("created").or(response.get("created_at")))
}

fn add(message: Value<'_>, segment: &mut SegmentDraft) {
    let write = |item| chat::message(item, |key| key != "extra");
    if is_response(message) {
        let items = message.get("output").into_iter().flat_map(Value::items);
        segment.messages.extend(items.map(write));
    } else {
        segment.messages.push(write(message));
    }
}
