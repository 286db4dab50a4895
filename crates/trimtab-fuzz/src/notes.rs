//! Notes: the reader of notes takes any text, and knows every note that shortening a text leaves; each names an original
//! that comes back byte for byte.

use std::{borrow::Cow, sync::LazyLock};

use serde_json::json;
use trimtab_core::{
    BlockKind, Format, Memory, Millis, Policy, fit,
    fuzzing::{holds_note, read_notes},
    recall,
};

use crate::{number_of, settings};

/// How many results a conversation holds: enough that the policies find old ones.
const RESULTS: usize = 12;

/// Policies that shorten, read once.
static POLICIES: LazyLock<[Policy; 4]> = LazyLock::new(|| {
    ["recent", "steady", "priority", "ladder"].map(|name| Policy::find_shipped(name).expect("a shipped policy"))
});

/// Checks what is read in a text, and what is left of it when it is shortened.
pub fn check_notes(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    read_notes(&text);
    let request = conversation(&text, number_of(data) % 3);
    let (policy, budget) =
        (number_of(data) / 4 % POLICIES.len(), [100, 1500, 6000][number_of(data) / 16 % 3]);
    let settings = settings(&POLICIES[policy], budget, Format::Chat).with_cold_cache();
    let fitted = fit(request, &Memory::default(), &settings, Millis(0)).expect("a request");
    for decision in fitted.plan.decisions() {
        let Some(left) = decision.verdict.own_text() else { continue };
        let block = fitted.history.block(decision.block).expect("a block");
        if block.kind != BlockKind::Result {
            continue;
        }
        read_notes(left);
        let handle = decision.handle.as_deref().expect("a handle");
        let original = recall(&fitted.history, handle).expect("the original comes back");
        assert_eq!(*original, *fitted.history.block_text(block).as_bytes());
        assert!(holds_note(left), "nothing tells that this was shortened:\n{left}");
    }
}

/// A conversation whose results are the text: alone, many times over, or among other lines.
fn conversation(text: &str, form: usize) -> Vec<u8> {
    let mut messages = vec![json!({"role": "user", "content": "Find the value."})];
    for number in 0..RESULTS {
        let id = format!("call_{number}");
        let arguments = json!({"path": format!("src/{}.txt", number % 5)}).to_string();
        let call =
            json!({"id": id, "type": "function", "function": {"name": "read_file", "arguments": arguments}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        let lines =
            || (0..60).map(|line| format!("{number}, line {line}: {}\n", line * 104_729)).collect::<String>();
        let result: Cow<'_, str> = match form {
            0 => Cow::Borrowed(text),
            1 => Cow::Owned(format!("{text}\n").repeat(1 + number)),
            _ => Cow::Owned(format!("{}{text}{}", lines(), lines())),
        };
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
    }
    json!({"model": "claude-sonnet-4-5", "messages": messages}).to_string().into_bytes()
}
