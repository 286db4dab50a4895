//! Agents that write their calls into text: their observations, which stand in the user's messages, are trimmed like results
//! of tools, and nothing that a person wrote is.

use serde_json::{Value, json};
use trimtab_core::{Format, Memory, Policy, Settings, Tokens};

use super::{checker, fitted, shown, value};

/// How an agent writes a call and gets its answer: as the texts of the two messages.
type Protocol = fn(usize, &str) -> (String, Vec<String>);

fn code_agent(step: usize, printed: &str) -> (String, Vec<String>) {
    let code = format!("print(load({step}))");
    let call = format!(
        "{{'id': 'call_{step}', 'type': 'function', 'function': {{'name': 'python_interpreter', 'arguments': '{code}'}}}}"
    );
    let said = format!("Thought: I load part {step}.\n<code>\n{code}\n</code>\nCalling tools:\n[{call}]");
    (said, vec![format!("Observation:\nExecution logs:\n{printed}\nLast output from code snippet:\nNone")])
}

fn fenced_code_agent(step: usize, printed: &str) -> (String, Vec<String>) {
    let said = format!("Thought: I load part {step}.\nCode:\n```py\nprint(load({step}))\n```<end_code>");
    (said, vec![format!("Observation:\n{printed}")])
}

fn tool_calling_agent(step: usize, printed: &str) -> (String, Vec<String>) {
    let call = format!(
        "{{'id': 'call_{step}', 'type': 'function', 'function': {{'name': 'load', 'arguments': {{'part': {step}}}}}}}"
    );
    (format!("Calling tools:\n[{call}]"), vec![format!("Observation:\n{printed}")])
}

fn json_agent(step: usize, printed: &str) -> (String, Vec<String>) {
    (
        format!("Action:\n{{\"name\": \"load\", \"arguments\": {{\"part\": {step}}}}}"),
        vec![format!("Observation: {printed}")],
    )
}

fn react(step: usize, printed: &str) -> (String, Vec<String>) {
    (
        format!("Thought: I load it.\nAction: load\nAction Input: part {step}"),
        vec![format!("Observation: {printed}")],
    )
}

fn tags(step: usize, printed: &str) -> (String, Vec<String>) {
    let said = format!("I read it.\n<read_file>\n<path>src/part{step}.ts</path>\n</read_file>");
    let heading = format!("[read_file for 'src/part{step}.ts'] Result:");
    (
        said,
        vec![
            heading,
            printed.to_owned(),
            "<environment_details>\n# Mode\nACT\n</environment_details>".to_owned(),
        ],
    )
}

const PROTOCOLS: [(&str, Protocol); 6] = [
    ("code", code_agent),
    ("fenced code", fenced_code_agent),
    ("tools", tool_calling_agent),
    ("json", json_agent),
    ("react", react),
    ("tags", tags),
];

const TASK: &str = "Load every part and tell me which of them is broken. Never skip one.";
const WISH: &str = "Observation of mine: part 3 looked odd to me, so be careful there.";

/// How a message carries its texts.
#[derive(Clone, Copy)]
enum Carried {
    Whole,
    InParts,
}

fn message(role: &str, texts: &[String], carried: Carried) -> Value {
    match carried {
        Carried::Whole => json!({"role": role, "content": texts.join("\n")}),
        Carried::InParts => {
            let parts: Vec<Value> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
            json!({"role": role, "content": parts})
        }
    }
}

fn request(format: Format, protocol: Protocol, carried: Carried) -> Vec<u8> {
    let mut messages = vec![message("user", &[TASK.to_owned()], carried)];
    for step in 1..=40 {
        let lines = (0..60).map(|line| format!("part {step} line {line} holds value {}", line * step * 37));
        let (said, answers) = protocol(step, &lines.collect::<Vec<_>>().join("\n"));
        messages.push(message("assistant", &[said], carried));
        messages.push(message("user", &answers, carried));
        if step == 4 {
            messages.push(message("assistant", &["I saw four parts.".to_owned()], carried));
            messages.push(message("user", &[WISH.to_owned()], carried));
        }
    }
    let body = match format {
        Format::Anthropic => json!({"model": "claude-sonnet-4-5", "max_tokens": 1000, "messages": messages}),
        _ => json!({"model": "gpt-5", "messages": messages}),
    };
    body.to_string().into_bytes()
}

#[test]
fn observations_are_trimmed_like_results_and_a_persons_words_never() {
    for format in [Format::Chat, Format::Anthropic] {
        for (name, protocol) in PROTOCOLS {
            for carried in [Carried::Whole, Carried::InParts] {
                for policy in ["recent", "age", "steady"] {
                    check(format, name, protocol, carried, policy);
                }
            }
        }
    }
}

#[track_caller]
fn check(format: Format, name: &str, protocol: Protocol, carried: Carried, policy: &str) {
    let bytes = request(format, protocol, carried);
    let settings = Settings::new(Policy::find_shipped(policy).expect("a shipped policy"));
    let settings = settings.with_budget(Tokens(25_000)).with_format(format);
    let fitted = fitted(&bytes, &Memory::default(), &settings, 0);
    let what = format!("{name}, {policy}, {}", format.name());
    let output = value(&fitted.request);
    let faults = checker::new_faults(format.name(), &value(&bytes), &output);
    assert!(faults.is_empty(), "{what}: {faults:?}\n{}", shown(&fitted));
    let text = String::from_utf8_lossy(&fitted.request);
    assert!(
        text.contains(TASK) && text.contains(WISH),
        "{what}: the person's words are gone\n{}",
        shown(&fitted)
    );
    assert!(
        !text.contains("part 2 line 30 holds"),
        "{what}: an old observation is whole\n{}",
        shown(&fitted)
    );
    assert!(
        text.contains("part 40 line 30 holds"),
        "{what}: the latest observation is gone\n{}",
        shown(&fitted)
    );
}
