//! mini-swe-agent trajectories: one JSON document with `messages` and `info`. Takes the document; gives one
//! segment: the messages as they were sent, each answer with the model, time and usage in its `extra.response`.
//! Never includes the message by which the agent tells that it ended: no request carried it.

use trimtab_core::{Format, Millis, json::Value, usage};

use super::{
    RecordingReader, SegmentStart, chat,
    draft::{RecordingDraft, SegmentDraft, parse_time},
    source::RecordingSource,
};

pub(super) const READER: RecordingReader =
    RecordingReader { name: "mini-swe-agent", about: "mini-swe-agent trajectory (.traj.json)", fits, read };

fn fits(source: &RecordingSource<'_>) -> bool {
    source.any_of_first(is_trajectory)
}

fn is_trajectory(document: Value<'_>) -> bool {
    let named = document.text("trajectory_format").is_some_and(|name| name.starts_with("mini-swe-agent"));
    let told = ["mini_version", "exit_status", "model_stats"]
        .iter()
        .any(|key| document.path(&["info", key]).is_some());
    document.get("messages").is_some_and(Value::is_array) && (named || told)
}

fn read(source: &RecordingSource<'_>, draft: &mut RecordingDraft) {
    for (line, document) in source.values() {
        if is_trajectory(document) {
            read_trajectory(document, line, draft);
        } else {
            draft.add_problem(line, "not a trajectory: expected `messages` and `info`");
        }
    }
}

fn read_trajectory(document: Value<'_>, line: usize, draft: &mut RecordingDraft) {
    let messages = || document.items_of("messages");
    let format = if messages().any(is_response) { Format::Responses } else { Format::Chat };
    let mut segment = SegmentDraft::new(SegmentStart::Session, format, line);
    segment.name = document.owned_text("instance_id");
    let configured = document.path(&["info", "config", "model", "model_name"]).and_then(Value::string);
    let mut sent = None;
    let mut told_end = false;
    for (index, message) in messages().enumerate() {
        if message.member_is("role", "exit") {
            continue;
        }
        if !message.is_object() {
            draft.add_problem(line, format!("message {} is not an object", index + 1));
            continue;
        }
        let answer = is_response(message) || message.member_is("role", "assistant");
        if answer {
            let response = message
                .path(&["extra", "response"])
                .or(Some(message).filter(|message| is_response(*message)));
            let model = response.and_then(|response| response.text("model")).or_else(|| configured.clone());
            let at = sent.or_else(|| creation_time(response));
            segment.add_point(at, model).usage =
                usage::parse_openai(response.and_then(|response| response.get("usage")));
        }
        told_end = message.member_is("role", "user");
        sent = parse_time(message.path(&["extra", "timestamp"]));
        add_message(message, &mut segment);
    }
    // The first version ends with a user message that holds what was handed in.
    let ended = document.path(&["info", "exit_status"]).is_some_and(Value::is_string);
    if ended && told_end && !segment.points.is_empty() {
        segment.messages.pop();
    }
    draft.add_segment(segment);
}

/// Tells whether this is a whole answer of the Responses API, which is sent again as the items in it.
fn is_response(message: Value<'_>) -> bool {
    message.member_is("object", "response")
}

fn creation_time(response: Option<Value<'_>>) -> Option<Millis> {
    let response = response?;
    parse_time(response.get("created").or(response.get("created_at")))
}

fn add_message(message: Value<'_>, segment: &mut SegmentDraft) {
    let write = |item| chat::copy_members(item, |key| key != "extra");
    if is_response(message) {
        let items = message.items_of("output");
        segment.messages.extend(items.map(write));
    } else {
        segment.messages.push(write(message));
    }
}

#[cfg(test)]
mod tests {
    use crate::recording::picture::check;

    #[test]
    fn commands_in_text_stay_text_and_the_end_is_left_out() {
        check(
            r#"{"trajectory_format":"mini-swe-agent-1","instance_id":"demo-1","info":{"exit_status":"Submitted"},
            "messages":[{"role":"system","content":"One command."},{"role":"user","content":"Fix it."},
            {"role":"assistant","content":"```bash\nls\n```","extra":{"response":{"model":"m-1","created":7,
            "usage":{"prompt_tokens":90,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":60}}}}},
            {"role":"user","content":"<output>a.py</output>"},{"role":"assistant","content":"done"},
            {"role":"user","content":"diff --git"}]}"#,
            &[
                "mini-swe-agent",
                "session (demo-1), chat",
                "  system: One command.",
                "  user: Fix it.",
                "  assistant: ```bash/ls/```",
                "  user: <output>a.py</output>",
                "  assistant: done",
                "  @2 7000ms m-1 30+60r+0w>5",
                "  @4",
            ],
        );
    }

    #[test]
    fn tool_calls_are_sent_when_the_message_before_was_written() {
        check(
            r#"{"info":{"mini_version":"2.0.0","exit_status":"Submitted","config":{"model":{"model_name":"m-2"}}},
            "messages":[{"role":"user","content":"Fix it.","extra":{"timestamp":5.25}},
            {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash",
            "arguments":"{\"command\":\"ls\"}"}}],"extra":{"response":{"created":9,"usage":{"prompt_tokens":4,
            "completion_tokens":2,"cache_creation_input_tokens":50}}}},
            {"role":"tool","tool_call_id":"c1","content":"a.py","extra":{"returncode":0}},
            7, {"role":"exit","content":"diff"}]}"#,
            &[
                "mini-swe-agent",
                "session, chat",
                "  user: Fix it.",
                r#"  assistant: bash#c1 {"command":"ls"}"#,
                "  tool: bash#c1 = a.py",
                "  @1 5250ms m-2 4+0r+50w>2",
                "line 1: message 4 is not an object",
            ],
        );
    }

    #[test]
    fn answers_of_the_responses_api_are_the_items_in_them() {
        check(
            r#"{"info":{"mini_version":"2.0.0"},"messages":[{"role":"user","content":"Fix it."},
            {"object":"response","model":"m-3","created_at":8,"usage":{"input_tokens":20,"output_tokens":3},
            "output":[{"type":"function_call","call_id":"c1","name":"bash","arguments":"{}"}],"extra":{"cost":1}},
            {"type":"function_call_output","call_id":"c1","output":"ok","extra":{}}]}"#,
            &[
                "mini-swe-agent", "session, responses", "  user: Fix it.", "  assistant: bash#c1 {}",
                "  tool: bash#c1 = ok", "  @1 8000ms m-3 20+0r+0w>3",
            ],
        );
    }

    #[test]
    fn a_request_is_no_trajectory() {
        check(
            r#"{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}]}"#,
            &["request", "session, chat", "  system: s", "  user: hi", "  @2 m"],
        );
    }
}
