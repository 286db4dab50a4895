//! The rules of Gemini's generateContent.

use serde_json::Value;

use super::{by_user, messages};

pub(super) fn faults(request: &Value) -> Vec<String> {
    let contents = messages("gemini", request);
    let mut faults = Vec::new();
    if contents.first().is_some_and(|first| !by_user("gemini", first)) {
        faults.push("the first content is not the user's".to_owned());
    }
    if contents.last().is_some_and(|last| !by_user("gemini", last)) {
        faults.push("the last content is the model's".to_owned());
    }
    for pair in contents.windows(2) {
        if by_user("gemini", &pair[0]) == by_user("gemini", &pair[1]) {
            faults.push("two contents of one role in a row".to_owned());
        }
    }
    for (index, content) in contents.iter().enumerate() {
        if parts(content).is_empty() {
            faults.push("a content without parts".to_owned());
        }
        let before = index.checked_sub(1).and_then(|before| contents.get(before));
        let calls = names(content, "functionCall");
        if !calls.is_empty() {
            let answers =
                contents.get(index + 1).map(|next| names(next, "functionResponse")).unwrap_or_default();
            if answers.len() != calls.len() {
                faults.push(format!(
                    "{} calls of {} have {} responses",
                    calls.len(),
                    calls.join(","),
                    answers.len()
                ));
            } else if answers != calls {
                faults.push(format!("responses of {} are named {}", calls.join(","), answers.join(",")));
            }
            if before.is_none_or(|before| !by_user("gemini", before)) {
                faults.push("calls stand behind neither the user nor responses".to_owned());
            }
        }
        let answers = names(content, "functionResponse");
        if !answers.is_empty() && before.is_none_or(|before| names(before, "functionCall").is_empty()) {
            faults.push(format!("responses of {} stand behind no calls", answers.join(",")));
        }
        let first_other = parts(content).iter().position(|part| part["functionResponse"].is_null());
        let last_answer = parts(content).iter().rposition(|part| part["functionResponse"].is_object());
        if first_other.zip(last_answer).is_some_and(|(other, answer)| other < answer) {
            faults.push("something stands before a response in its content".to_owned());
        }
        for part in parts(content) {
            let response = &part["functionResponse"];
            if response.is_object() && !response["response"].is_object() {
                faults.push("a response that is no object".to_owned());
            }
            let args = &part["functionCall"]["args"];
            if !args.is_null() && !args.is_object() {
                faults.push("the arguments of a call are no object".to_owned());
            }
            if part.as_object().is_some_and(serde_json::Map::is_empty) {
                faults.push("an empty part".to_owned());
            }
        }
    }
    faults
}

/// Signatures of the current turn stay on the exact part, and the turn does not begin earlier than it did.
pub(super) fn changes(input: &Value, output: &Value) -> Vec<String> {
    let unsigned = |request: &Value| {
        let contents = messages("gemini", request);
        let is_text = |part: &Value| part["text"].is_string() && part["functionResponse"].is_null();
        let human = contents
            .iter()
            .rposition(|content| by_user("gemini", content) && parts(content).iter().any(is_text))
            .map_or(0, |at| at + 1);
        let steps = contents.iter().skip(human).filter(|content| !by_user("gemini", content));
        let firsts =
            steps.filter_map(|step| parts(step).iter().find(|part| part["functionCall"].is_object()));
        firsts.filter(|part| !part["thoughtSignature"].is_string()).count()
    };
    let mut changes = Vec::new();
    if unsigned(output) > unsigned(input) {
        changes.push("a call of the current turn lost its signature".to_owned());
    }
    let signed = |request: &Value| -> Vec<Value> {
        let all = messages("gemini", request).iter().flat_map(|content| parts(content).iter());
        all.filter(|part| part["thoughtSignature"].is_string()).cloned().collect()
    };
    let known = signed(input);
    let forged = signed(output).iter().filter(|part| !known.contains(part)).count();
    changes.extend((0..forged).map(|_| "a signed part is changed".to_owned()));
    changes
}

fn parts(content: &Value) -> &[Value] {
    content["parts"].as_array().map_or(&[], Vec::as_slice)
}

fn names<'a>(content: &'a Value, kind: &str) -> Vec<&'a str> {
    let found = parts(content).iter().filter(|part| part[kind].is_object());
    found.map(|part| part[kind]["name"].as_str().unwrap_or_default()).collect()
}
