//! Conversations about as large as the smallest that a provider's cache takes, with copies in them: what `steady` leaves alone
//! there for the cache's sake, it leaves alone the next time.

use proptest::{
    prelude::{Just, ProptestConfig, Strategy, prop, prop_oneof},
    sample::select,
    test_runner::TestRunner,
};
use serde_json::{Value, json};
use trimtab_core::{Format, Memory, Policy, Settings, Tokens};

use super::{fitted, shown};

/// A tool, the path it is called with, and what came back.
type Exchange = (&'static str, String, String);

fn failure() -> String {
    "Traceback (most recent call last):\n  File 'a.py', line 1\nValueError: no\n".repeat(30)
}

fn lines(count: usize) -> String {
    (0..count).map(|line| format!("{line}: value {}", line * 31)).collect::<Vec<_>>().join("\n")
}

fn rows(count: usize) -> String {
    let rows: Vec<Value> = (0..count).map(|row| json!({"row": row, "name": format!("n{row}")})).collect();
    json!(rows).to_string()
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let result = prop_oneof![
        3 => Just(failure()),
        2 => (5..60_usize).prop_map(lines),
        2 => (5..60_usize).prop_map(rows),
        2 => "[ -~]{0,160}",
        1 => Just(String::new()),
    ];
    (select(vec!["read_file", "bash", "edit_file", "grep"]), "[a-z0-9:]{0,6}", result)
}

fn request(exchanges: &[Exchange]) -> Vec<u8> {
    let mut messages = vec![json!({"role": "user", "content": "Make the tests pass."})];
    for (number, (tool, path, result)) in exchanges.iter().enumerate() {
        let id = format!("call_{number}");
        let function = json!({"name": tool, "arguments": json!({"path": path}).to_string()});
        let call = json!({"id": id, "type": "function", "function": function});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
    }
    json!({"model": "gpt-5", "messages": messages}).to_string().into_bytes()
}

#[track_caller]
fn check(exchanges: &[Exchange], budget: u64, policy: &str) {
    let policy = Policy::find_shipped(policy).expect("a shipped policy");
    let settings =
        Settings::new(policy).with_budget(Tokens(budget)).with_format(Format::Chat).with_cold_cache();
    let once = fitted(&request(exchanges), &Memory::default(), &settings, 0);
    let again = fitted(&once.request, &Memory::default(), &settings, 0);
    assert!(once.request == again.request, "{}\nand again\n{}", shown(&once), shown(&again));
}

#[test]
fn smaller_what_is_left_alone_for_the_cache_is_left_alone_again() {
    let cases: u32 = std::env::var("TRIMTAB_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(250);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let policy = select(vec!["steady", "steady.safe", "steady.bold"]);
    let drawn = (prop::collection::vec(exchange(), 3..12), 600..2600_u64, policy);
    TestRunner::new(config)
        .run(&drawn, |(exchanges, budget, policy)| {
            check(&exchanges, budget, policy);
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
}
