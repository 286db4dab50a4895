//! A session that is folded again and again by a program that has nothing but the request: what must not be lost is still there
//! after ten times, and the request does not grow.

use serde_json::{Value, json};
use trimtab_core::{
    Format, Memory, Millis, Policy, Settings, Tokens, fit, policy::Folding, summary::SummaryAnswer,
};

use super::{checker, fold, value};
use crate::read;

/// The first message, as JSON spells it.
const FIRST: &str = r"Port the tool to Rust.\nYou must keep the file format.";

const FORMATS: [Format; 4] = Format::ALL;

/// Ten rounds of work, each on a different file, with a new limit each, folded after each.
#[test]
fn ten_folds_in_a_row_lose_nothing_and_do_not_grow() {
    for format in FORMATS {
        let mut messages = vec![said(format, "Port the tool to Rust.\nYou must keep the file format.")];
        let mut sizes = Vec::new();
        for round in 0..10 {
            if round > 0 {
                messages.push(said(
                    format,
                    &format!("Good. Never rename module_{round}.\nGo on with the next one."),
                ));
            }
            for step in 0..8 {
                messages.extend(exchange(format, round, step));
            }
            messages.extend(answered(format, &format!("Module {round} is done.")));
            messages.push(said(format, "Next."));
            let request = request(format, &messages);
            let folded = fold(&read(&request.to_string(), format), Tokens(600));
            let output = value(&folded);
            let faults = checker::new_faults(format.name(), &request, &output);
            assert!(faults.is_empty(), "{format}, round {round}: {faults:?}");
            messages = output[list(format)].as_array().expect("messages").clone();
            sizes.push(folded.len());
            let all = String::from_utf8_lossy(&folded).into_owned();
            assert!(all.contains(FIRST), "{format}, round {round}: {all}");
            for earlier in 1..=round {
                assert!(all.contains(&format!("Never rename module_{earlier}.")), "{format}, {round}: {all}");
            }
            for earlier in 0..=round {
                assert!(
                    all.contains(&format!("src/module_{earlier}.rs")),
                    "{format}, {round}, {earlier}: {all}"
                );
            }
            assert_eq!(all.matches("[Previous conversation summary]").count(), 1, "{format}, {round}: {all}");
        }
        assert!(sizes[9] < 9_000 && sizes[9] < sizes[4] + 2_500, "{format}: {sizes:?}");
    }
}

/// The same through `fit`, whose memory holds what was folded while the agent goes on to send everything: more than ten folds,
/// some with a summary and some by the ledger alone.
#[test]
fn ten_folds_in_a_fitted_session_lose_nothing_and_stay_in_the_budget() {
    for format in FORMATS {
        let budget = Tokens(4000);
        let policy = Policy::find_shipped("ladder").expect("a shipped policy");
        let settings = Settings::new(policy).with_folding(Folding::Ledger);
        let settings = settings.with_budget(budget).with_format(format);
        let mut memory = Memory::default();
        let mut messages = vec![said(format, "Port the tool to Rust.\nYou must keep the file format.")];
        let mut folds = Vec::new();
        for round in 0..80 {
            for step in 0..8 {
                messages.extend(exchange(format, round % 12, step));
            }
            messages.extend(answered(format, &format!("Module {} is done.", round % 12)));
            let limit = if round < 10 { format!("Never rename module_{round}.\n") } else { String::new() };
            messages.push(said(format, &format!("Good. {limit}Go on.")));
            let request = request(format, &messages);
            let now = Millis(i64::try_from(round).expect("few rounds") * 1000);
            let fitted = fit(request.to_string().into_bytes(), &memory, &settings, now).expect("it fits");
            let output = value(&fitted.request);
            let faults = checker::new_faults(format.name(), &request, &output);
            assert!(faults.is_empty(), "{format}, round {round}: {faults:?}");
            assert!(fitted.plan.after() <= budget && fitted.plan.floor().is_none(), "{format}, {round}");
            let all = String::from_utf8_lossy(&fitted.request).into_owned();
            assert!(all.contains(FIRST), "{format}, round {round}: {all}");
            for earlier in 0..=round.min(9) {
                assert!(all.contains(&format!("Never rename module_{earlier}.")), "{format}, {round}: {all}");
            }
            for earlier in 0..=round.min(11) {
                assert!(all.contains(&format!("src/module_{earlier}.rs")), "{format}, {round}: {all}");
            }
            assert!(all.matches("[Previous conversation summary]").count() <= 1, "{format}, {round}: {all}");
            let text = fitted.plan.fold_message().map(|(_, text)| text.to_owned());
            if text.is_some() && folds.last() != text.as_ref() {
                folds.extend(text);
            }
            memory.remember_sent(&fitted.plan, now);
            if let Some(asking) = fitted.summary_task().filter(|_| round % 3 > 0) {
                let prose = format!("Modules up to round {round} are ported, and the builds pass.");
                memory
                    .accept_summary(&asking, &SummaryAnswer::of_text(&prose))
                    .expect("a summary that can be trusted");
            }
        }
        let told = folds.iter().filter(|text| text.contains("[Summary, written by a model]")).count();
        assert!(folds.len() >= 10 && told > 0, "{format}: {} folds, {told} with a summary", folds.len());
        println!("ten folds: {format}: {} folds, {told} with a summary", folds.len());
    }
}

fn list(format: Format) -> &'static str {
    match format {
        Format::Anthropic | Format::Chat => "messages",
        Format::Responses => "input",
        Format::Gemini => "contents",
    }
}

fn request(format: Format, messages: &[Value]) -> Value {
    json!({"model": "gpt-5", (list(format)): messages})
}

fn said(format: Format, text: &str) -> Value {
    match format {
        Format::Anthropic => json!({"role": "user", "content": [{"type": "text", "text": text}]}),
        Format::Chat => json!({"role": "user", "content": text}),
        Format::Responses => {
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
        }
        Format::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
    }
}

fn answered(format: Format, text: &str) -> Vec<Value> {
    vec![match format {
        Format::Anthropic => json!({"role": "assistant", "content": [{"type": "text", "text": text}]}),
        Format::Chat => json!({"role": "assistant", "content": text}),
        Format::Responses => {
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
        }
        Format::Gemini => json!({"role": "model", "parts": [{"text": text}]}),
    }]
}

/// Writes the module in the first step, builds it in the others.
fn exchange(format: Format, round: usize, step: usize) -> Vec<Value> {
    let id = format!("call_{round}_{step}");
    let (name, input, output) = if step == 0 {
        let path = format!("src/module_{round}.rs");
        ("write_file", json!({"path": path, "content": "fn main() {}\n"}), "ok".to_owned())
    } else {
        let output = format!("   Compiling module_{round} {step}\n").repeat(12) + "Exit code: 0";
        ("bash", json!({"command": format!("cargo build --step {step}")}), output)
    };
    match format {
        Format::Anthropic => vec![
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": input}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": output}]}),
        ],
        Format::Chat => vec![
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
                "function": {"name": name, "arguments": input.to_string()}}]}),
            json!({"role": "tool", "tool_call_id": id, "content": output}),
        ],
        Format::Responses => vec![
            json!({"type": "function_call", "call_id": id, "name": name, "arguments": input.to_string()}),
            json!({"type": "function_call_output", "call_id": id, "output": output}),
        ],
        Format::Gemini => vec![
            json!({"role": "model", "parts": [{"functionCall": {"name": name, "args": input}, "thoughtSignature": "c2ln"}]}),
            json!({"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"output": output}}}]}),
        ],
    }
}
