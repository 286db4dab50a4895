//! A rule that keeps of a tool's output what has to do with the task.

use serde_json::{Value, json};
use trimtab_core::{Format, Memory, Policy, Settings, Tokens, policy::ConfigFile};

use super::fitted;

/// Sixty parts, each about something different.
fn manual() -> String {
    (0..60).map(|part| format!("Part {part} is about gadget_{part}.\nTurn its wheel slowly.\n\n")).collect()
}

/// Returns what a rule leaves of a page that was fetched, under a task.
fn left_of_page(task: &str, page: &str) -> String {
    let fetch =
        json!({"name": "web_fetch", "arguments": json!({"url": "https://example.com/manual"}).to_string()});
    let call = json!({"id": "c1", "type": "function", "function": fetch});
    let messages = json!([
        {"role": "user", "content": task},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": page},
    ]);
    let rule = "[[rule]]\ntool = 'web_fetch'\nwhen = 'always'\ndo = 'digest relevant'\n";
    let policy = Policy::find_shipped("per-tool").expect("a policy");
    let policy = policy.with_config(&ConfigFile::parse("trimtab.toml", rule).expect("a rule"));
    let settings = Settings::new(policy).with_budget(Tokens(1_000_000)).with_format(Format::Chat);
    let request = json!({"model": "gpt-5", "messages": messages}).to_string();
    let sent = fitted(request.as_bytes(), &Memory::default(), &settings, 0);
    let sent: Value = serde_json::from_slice(&sent.request).expect("JSON");
    sent["messages"][2]["content"].as_str().expect("a text").to_owned()
}

#[test]
fn a_rule_keeps_the_passages_about_the_task_plain_or_wrapped() {
    for page in [manual(), json!({"result": manual()}).to_string()] {
        for part in [7, 42] {
            let left = left_of_page(&format!("Please repair gadget_{part}."), &page);
            assert!(left.contains(&format!("gadget_{part}.")) && left.contains("trimtab recall "), "{left}");
            assert!(!left.contains("gadget_23."), "{left}");
        }
    }
}
