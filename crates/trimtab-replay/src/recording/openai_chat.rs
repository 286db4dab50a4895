//! Lists of sessions, as benchmarks of conversations write them: each an object with a list of messages in it.
//! Takes a JSON list, an object that holds such a list, or JSON lines; gives a segment for each session.
//! Never takes a single request or a bare list of messages: those are requests.

use trimtab_core::{
    Format,
    json::{Array, Object, Value},
    usage,
    wire::parse,
};

use super::{
    RecordingReader, SegmentStart, chat,
    draft::{RecordingDraft, SegmentDraft, parse_time},
    source::RecordingSource,
};

pub(super) const READER: RecordingReader = RecordingReader {
    name: "openai-chat",
    about: "list of sessions with Chat Completions messages (tau-bench and kin)",
    fits,
    read,
};

/// Where a session keeps its messages.
const LISTS: [&str; 7] =
    ["traj", "trajectory", "messages", "conversation", "conversations", "history", "dialog"];

/// Members of a message that only harnesses write.
const NOT_SENT: [&str; 9] = [
    "extra", "usage", "timestamp", "cost", "raw_data", "turn_idx", "requestor", "generation_time_seconds",
    "error",
];

fn fits(source: &RecordingSource<'_>) -> bool {
    match source.document() {
        Some(document) => {
            find_sessions(document).is_some()
                || of_a_session(document).is_some_and(|(key, _)| key != "messages")
        }
        None => source.any_of_first(|line| of_a_session(line).is_some()),
    }
}

/// Finds the list of sessions in a document: itself or one of its members.
fn find_sessions(document: Value<'_>) -> Option<Value<'_>> {
    let is_list = |list: &Value<'_>| list.items().take(10).any(|item| of_a_session(item).is_some());
    if document.is_array() {
        return Some(document).filter(is_list);
    }
    let is_request = document.get("messages").is_some() || document.get("contents").is_some();
    document.members().map(|(_, value)| value).find(is_list).filter(|_| !is_request)
}

/// Finds the messages of a session, with the key they stand under.
fn of_a_session(session: Value<'_>) -> Option<(&'static str, Value<'_>)> {
    if session.get("role").is_some() {
        return None;
    }
    let is_message = |item: Value<'_>| chat::is_message(item) || bare_text(item).is_some();
    let spoken = |list: &Value<'_>| list.items().take(10).any(is_message);
    LISTS.iter().find_map(|key| Some((*key, session.get(key).filter(spoken)?)))
}

fn read(source: &RecordingSource<'_>, draft: &mut RecordingDraft) {
    let list = source.document().and_then(find_sessions);
    let Some(list) = list else {
        source.values().for_each(|(line, session)| read_session(session, line, "the session", draft));
        return;
    };
    for (index, session) in list.items().enumerate() {
        read_session(session, 1, &format!("item {}", index + 1), draft);
    }
}

fn read_session(session: Value<'_>, line: usize, place: &str, draft: &mut RecordingDraft) {
    let Some((key, list)) = of_a_session(session) else {
        draft.add_problem(line, format!("{place} holds no list of messages"));
        return;
    };
    // A session that keeps its messages as a request does may be one, with more to tell its format by.
    let request = if key == "messages" { session } else { list };
    let format = parse(request.raw().to_vec()).map_or(Format::Chat, |history| history.format());
    let mut segment = SegmentDraft::new(SegmentStart::Session, format, line);
    segment.name = session_name(session);
    let present = |key: &&str| session.get(key).is_some_and(|value| value.is_array() || value.is_string());
    for key in ["system", "tools", "functions"].into_iter().filter(present) {
        segment.head.extend(session.get(key).map(|value| (key, value.raw().to_vec())));
    }
    let model = session.text("model").or_else(|| session.text("model_name"));
    let mut sent = None;
    for (index, message) in list.items().enumerate() {
        if message.get("role").is_none() {
            draft.add_problem(line, format!("{place}: message {} has no role", index + 1));
            continue;
        }
        if message.member_is("role", "assistant") || message.member_is("role", "ai") {
            segment.add_point(sent, message.text("model").or_else(|| model.clone())).usage =
                usage::parse_openai(message.get("usage"));
        }
        sent = parse_time(message.get("timestamp"));
        segment.messages.push(write_message(message));
    }
    draft.add_segment(segment);
}

/// Names a session by its task and trial, or by its id.
fn session_name(session: Value<'_>) -> Option<String> {
    let shown = |key: &str| {
        let value = session.get(key)?;
        value.string().map(std::borrow::Cow::into_owned).or_else(|| value.number().map(|id| id.to_string()))
    };
    let task = shown("task_id").map(|task| format!("task {task}"));
    let id =
        || ["instance_id", "session_id", "conversation_id", "id", "name"].iter().find_map(|key| shown(key));
    let trial = shown("trial").map(|trial| format!("trial {trial}"));
    let parts: Vec<String> = task.or_else(id).into_iter().chain(trial).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// Returns role and text of a message of a text protocol, as published SWE-agent trajectories spell it: the model is `ai`,
/// and the system's words stand apart.
fn bare_text(message: Value<'_>) -> Option<(&'static str, Value<'_>)> {
    let (role, key) = match message.text("role")?.as_ref() {
        "system" => ("system", "system_prompt"),
        "user" => ("user", "text"),
        "ai" => ("assistant", "text"),
        _ => return None,
    };
    let text = message.get(key).filter(|text| text.is_string() && message.get("content").is_none())?;
    Some((role, text))
}

/// Writes a message as it was sent. tau2-bench stores calls without `function` around name and arguments.
fn write_message(message: Value<'_>) -> Vec<u8> {
    if let Some((role, text)) = bare_text(message) {
        return chat::write_message(role, text.raw());
    }
    let is_flat = |call: Value<'_>| call.get("function").is_none() && call.get("name").is_some();
    let calls = || message.items_of("tool_calls");
    let flat_answer = message.member_is("role", "tool")
        && message.get("tool_call_id").is_none()
        && message.get("id").is_some_and(Value::is_string);
    if !calls().any(is_flat) && !flat_answer {
        return chat::copy_members(message, |key| !NOT_SENT.contains(&key));
    }
    let mut copy = Object::new();
    for (key, value) in message.members() {
        let Some(key) = key.string().filter(|key| !NOT_SENT.contains(&key.as_ref())) else { continue };
        copy = match key.as_ref() {
            "tool_calls" if value.is_array() => copy.raw(
                "tool_calls",
                &calls().fold(Array::new(), |list, call| list.raw(&nest_function(call))).end(),
            ),
            "id" if flat_answer => copy.raw("tool_call_id", value.raw()),
            _ => copy.raw(&key, value.raw()),
        };
    }
    copy.end()
}

fn nest_function(call: Value<'_>) -> Vec<u8> {
    let Some(name) = call.get("name").filter(|_| call.get("function").is_none()) else {
        return call.raw().to_vec();
    };
    let arguments = call.get("arguments");
    let text = arguments.map_or("{}".into(), |arguments| {
        arguments.string().unwrap_or_else(|| String::from_utf8_lossy(arguments.raw()))
    });
    chat::call(call.get("id").map_or(b"null".as_slice(), Value::raw), name.raw(), &text)
}

#[cfg(test)]
mod tests {
    use crate::recording::picture::check;

    #[test]
    fn each_session_is_a_segment() {
        check(
            r#"[{"task_id":3,"trial":1,"traj":[{"role":"system","content":"S"},{"role":"user","content":"Hi"},
            {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"find",
            "arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","name":"find","content":"x"},{"role":"user","content":"Bye."}]},
            {"error":"timed out"},
            {"id":"b","model":"m","messages":[{"role":"user","content":"Hi","timestamp":"1970-01-01T00:00:02"},
            {"role":"assistant","content":"Yes?","usage":{"prompt_tokens":9,"completion_tokens":1}}]}]"#,
            &[
                "openai-chat",
                "session (task 3 trial 1), chat",
                "  system: S",
                "  user: Hi",
                "  assistant: find#c1 {}",
                "  tool: find#c1 = x",
                "  user: Bye.",
                "  @2",
                "session (b), chat",
                "  user: Hi",
                "  assistant: Yes?",
                "  @1 2000ms m 9+0r+0w>1",
                "line 1: item 2 holds no list of messages",
            ],
        );
    }

    #[test]
    fn calls_without_function_around_them_get_it() {
        check(
            r#"{"info":{},"simulations":[{"id":"s","messages":[{"role":"user","content":"Hi","turn_idx":0},
            {"role":"assistant","tool_calls":[{"id":"c1","name":"find","arguments":{"a":1},"requestor":"assistant"}],"cost":0.1},
            {"role":"tool","id":"c1","content":"x","requestor":"assistant","error":false}]}]}"#,
            &[
                "openai-chat",
                "session (s), chat",
                "  user: Hi",
                r#"  assistant: find#c1 {"a":1}"#,
                "  tool: find#c1 = x",
                "  @1",
            ],
        );
    }

    #[test]
    fn messages_of_a_text_protocol_get_the_roles_that_providers_know() {
        check(
            r#"[{"instance_id":"a-1","model_name":"m","trajectory":[{"role":"system","system_prompt":"S","text":null},
            {"role":"user","system_prompt":null,"text":"Fix it."},{"role":"ai","text":"ls"},{"role":"user","text":"a.py"}]}]"#,
            &[
                "openai-chat", "session (a-1), chat", "  system: S", "  user: Fix it.", "  assistant: ls",
                "  user: a.py", "  @2 m",
            ],
        );
    }

    #[test]
    fn lines_are_sessions_and_bad_ones_are_listed() {
        check(
            "{\"messages\":[{\"role\":\"user\",\"content\":\"A\"}]}\n{\"score\":1}\n{\"messages\":[{\"role\":\"user\"",
            &[
                "openai-chat",
                "session, chat",
                "  user: A",
                "  @1",
                "line 2: the session holds no list of messages",
                "line 3: not JSON: it breaks off at column 28, where `,` or `}` was expected",
            ],
        );
    }

    #[test]
    fn a_bare_list_of_messages_is_a_request() {
        check(r#"[{"role":"user","content":"Hi"}]"#, &["request", "session, chat", "  user: Hi", "  @1"]);
        check(
            r#"[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"text":"Yes?"}]}]"#,
            &["request", "session, gemini", "  user: Hi", "  assistant: Yes?", "  @1"],
        );
    }
}
