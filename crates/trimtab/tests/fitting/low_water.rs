//! How far `steady` goes once the budget is exceeded: the one knob that only pressure shows.

use serde_json::json;
use trimtab::{Format, Memory, Millis, Policy, Settings, Tokens, fit};

/// Reads of twelve files, none of them old enough to be hidden for its age.
fn request() -> Vec<u8> {
    let mut messages = vec![json!({"role": "user", "content": "Go on."})];
    for number in 0..12 {
        let id = format!("call_{number}");
        let text: String =
            (0..100).map(|line| format!("    let value_{line} = compute({number}, {line});\n")).collect();
        let arguments = json!({"path": format!("src/file_{number}.rs")}).to_string();
        messages
            .push(json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
            "function": {"name": "read_file", "arguments": arguments}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
    }
    json!({"model": "gpt-5", "messages": messages}).to_string().into_bytes()
}

/// Returns what the request counts under a budget of nine tenths of it, in percent of the budget.
fn fills(low_water: f64) -> u64 {
    let fit_with = |budget: Option<Tokens>| {
        let policy =
            Policy::shipped_with("steady", &[("low_water".to_owned(), low_water)]).expect("a policy");
        let settings = Settings { budget, ..Settings::new(policy).with_format(Format::Chat) };
        fit(request(), &Memory::default(), &settings, Millis(0)).expect("a fit")
    };
    let whole = fit_with(None);
    assert!(whole.plan.keeps_all(), "nothing is hidden without pressure");
    let budget = whole.plan.before().scaled(0.9);
    fit_with(Some(budget)).plan.after().0 * 100 / budget.0
}

#[test]
fn results_are_hidden_down_to_the_low_water_mark_and_not_much_further() {
    for (low_water, percent) in [(0.95, 95), (0.85, 85), (0.7, 70)] {
        let filled = fills(low_water);
        // One result is a tenth of the budget.
        assert!(filled <= percent && filled + 12 > percent, "{low_water}: {filled}");
    }
}
