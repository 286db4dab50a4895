//! Words for OpenHands events. Takes an event; gives the text that the agent's model reads for it.
//! Never decides who speaks: that is the reader's business.

use std::{borrow::Cow, collections::HashSet};

use trimtab_core::json::Value;

/// Returns a member of an event: inside `args` or `extras`, or, in old recordings, beside the kind.
pub(super) fn field<'a>(event: Value<'a>, key: &str) -> Option<Value<'a>> {
    let inside = event.path(&["args", key]).or_else(|| event.path(&["extras", key]));
    inside.or_else(|| event.get(key)).filter(|value| !value.is_null())
}

/// Returns a text member of an event; empty where there is none.
pub(super) fn text_field<'a>(event: Value<'a>, key: &str) -> Cow<'a, str> {
    let value = field(event, key);
    value.and_then(|value| value.string().or_else(|| value.text("text"))).unwrap_or_default()
}

/// Spells an action that was made without a tool call: the thought, and the action in its tag.
pub(super) fn action_text(event: Value<'_>) -> String {
    let thought = text_field(event, "thought");
    let kind = event.text("action").unwrap_or_default();
    let (tag, body) = match kind.as_ref() {
        "run" => ("execute_bash", text_field(event, "command")),
        "run_ipython" => ("execute_ipython", text_field(event, "code")),
        "browse_interactive" => ("execute_browse", text_field(event, "browser_actions")),
        "browse" => ("execute_browse", text_field(event, "url")),
        "think" => return thought.into_owned(),
        "finish" => return finish_text(event),
        other => (other, event.get("args").map_or("".into(), |args| String::from_utf8_lossy(args.raw()))),
    };
    let spelled = format!("<{tag}>\n{body}\n</{tag}>");
    if thought.is_empty() { spelled } else { format!("{thought}\n{spelled}") }
}

/// Returns what the agent says at its end.
pub(super) fn finish_text(event: Value<'_>) -> String {
    let said = ["thought", "final_thought", "message"].map(|key| text_field(event, key));
    said.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default().into_owned()
}

/// Returns an observation as the model reads it after a tool call.
pub(super) fn observation_text(event: Value<'_>) -> String {
    let content = text_field(event, "content");
    match event.text("observation").as_deref() {
        Some("run") => command_output(event, &content),
        Some("error") => format!("{content}\n[Error occurred in processing last action]"),
        Some("user_rejected") => {
            format!("OBSERVATION:\n{content}\n[Last action has been rejected by the user]")
        }
        Some("delegate") => field(event, "outputs")
            .and_then(|outputs| outputs.text("content"))
            .unwrap_or(content)
            .into_owned(),
        _ => content.into_owned(),
    }
}

/// Returns an observation as the model reads it in a user message.
pub(super) fn bare_observation(event: Value<'_>) -> String {
    let text = observation_text(event);
    match event.text("observation").as_deref() {
        Some("error" | "user_rejected" | "condense") => text,
        _ => format!("OBSERVATION:\n{text}"),
    }
}

fn command_output(event: Value<'_>, content: &str) -> String {
    let shown = |value: Value<'_>| {
        value.string().unwrap_or_else(|| String::from_utf8_lossy(value.raw())).into_owned()
    };
    let Some(metadata) = field(event, "metadata") else {
        let ended = field(event, "exit_code").map(shown);
        let number = field(event, "command_id").map(shown).unwrap_or_default();
        return ended.map_or(content.to_owned(), |code| {
            format!("{content}\n[Command {number} finished with exit code {code}]")
        });
    };
    let member = |key| metadata.get(key).map(shown).unwrap_or_default();
    let mut output = format!("{}{content}{}", member("prefix"), member("suffix"));
    let mut note = |label: &str, value: String| {
        // An exit code of -1 stands for a command that still runs.
        if !value.is_empty() && value != "-1" {
            output.push_str(&format!("\n[{label} {value}]"));
        }
    };
    note("Current working directory:", member("working_dir"));
    note("Python interpreter:", member("py_interpreter_path"));
    note("Command finished with exit code", member("exit_code"));
    output
}

/// Returns what was recalled about workspace and keywords, each piece of knowledge once; nothing where all was
/// known. The facts are those of the recording; the sentences around them are not recorded and left out.
pub(super) fn recalled_text(event: Value<'_>, known: &mut HashSet<String>) -> Option<String> {
    const SECTIONS: [(&str, &[&str]); 4] = [
        ("REPOSITORY_INFO", &["repo_name", "repo_directory", "repo_branch"]),
        ("REPOSITORY_INSTRUCTIONS", &["repo_instructions"]),
        ("RUNTIME_INFORMATION", &["working_dir", "runtime_hosts", "additional_agent_instructions", "date"]),
        ("CONVERSATION_INSTRUCTIONS", &["conversation_instructions"]),
    ];
    let mut sections = Vec::new();
    for (tag, keys) in SECTIONS {
        let lines: Vec<String> = keys.iter().filter_map(|key| told_text(field(event, key)?)).collect();
        if !lines.is_empty() {
            sections.push(format!("<{tag}>\n{}\n</{tag}>", lines.join("\n")));
        }
    }
    for knowledge in field(event, "microagent_knowledge").into_iter().flat_map(Value::items) {
        let content = knowledge.text("content").unwrap_or_default();
        if known.insert(knowledge.text("name").unwrap_or_default().into_owned()) {
            sections.push(format!("<EXTRA_INFO>\n{content}\n</EXTRA_INFO>"));
        }
    }
    (!sections.is_empty()).then(|| sections.join("\n\n"))
}

fn told_text(value: Value<'_>) -> Option<String> {
    if value.is_object() {
        let names: Vec<_> = value.members().filter_map(|(key, _)| key.string()).collect();
        return (!names.is_empty()).then(|| names.join("\n"));
    }
    value.string().filter(|text| !text.trim().is_empty()).map(Cow::into_owned)
}
