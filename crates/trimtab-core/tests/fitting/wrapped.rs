//! Results that a client wrapped in JSON are fitted as the same results without it: the same session, once plain and once in each
//! wrapping, saves about the same share; it is sent as JSON of the same shape; what its strings say is honest; nothing changes
//! when it is fitted again; and originals come back byte for byte.

use serde_json::{Value, json};
use trimtab_core::{BlockKind, FittedRequest, Format, Memory, Policy, Settings, Tokens, Verdict};

use super::{fitted, honest, shown};
use crate::checker;

/// How much more or less may be saved than without the wrapping, in percentage points.
const APART: f64 = 5.0;

/// A tool, its arguments, and what it gave.
type Exchange = (&'static str, Value, String);

/// Puts a result into what a client would send.
type Wrap = fn(&'static str, &str) -> String;

const WRAPPINGS: &[(&str, Wrap)] = &[
    ("output", |_, text| json!({"output": text}).to_string()),
    ("result", |_, text| json!({"result": text}).to_string()),
    ("content", |_, text| json!({"content": text}).to_string()),
    ("printed out", |_, text| serde_json::to_string_pretty(&json!({"output": text})).expect("JSON")),
    ("streams", |_, text| json!({"stdout": text, "stderr": "", "exit_code": 0}).to_string()),
    ("two streams", |_, text| {
        json!({"stdout": text, "stderr": "warning: one line beside it", "exit_code": 0}).to_string()
    }),
    ("metadata", |_, text| json!({"output": text, "metadata": {"exit_code": 0}}).to_string()),
    ("name", |tool, text| json!({"name": tool, "content": text}).to_string()),
    ("row", |tool, text| json!([{"query": tool, "result": text, "success": true}]).to_string()),
    ("content part", |_, text| json!({"content": [{"type": "text", "text": text}]}).to_string()),
    ("part", |_, text| json!([{"type": "text", "text": text}]).to_string()),
    ("parts", |_, text| {
        let middle = text.match_indices('\n').nth(text.lines().count() / 2).map_or(0, |(at, _)| at + 1);
        let (one, other) = text.split_at(middle);
        json!([{"type": "text", "text": one}, {"type": "text", "text": other}]).to_string()
    }),
    ("wrapped twice", |_, text| {
        json!([{"type": "text", "text": json!({"result": text}).to_string()}]).to_string()
    }),
];

fn source(file: usize, lines: usize) -> String {
    (1..=lines)
        .map(|line| format!("{line:>6}\t    let value_{line} = compute_{file}({line}, \"text\");\n"))
        .collect()
}

fn test_log(run: usize) -> String {
    let cases: String =
        (0..120).map(|n| format!("tests/test_{run}.py::test_case_{n} PASSED    [ {n}%]\n")).collect();
    format!(
        "===== test session starts =====\n{cases}tests/test_{run}.py::test_last FAILED\nE       assert {run} == 2\n===== 1 failed, 120 passed in 3.20s =====\n"
    )
}

fn hits() -> String {
    (0..60).map(|n| format!("src/file_{}.rs:{}:    let found = compute_{n}();\n", n % 7, n * 3)).collect()
}

/// A session of reads, test runs and searches, with reads again and parts of what was read.
fn session() -> Vec<Exchange> {
    let read = |file: usize, text: String| -> Exchange {
        ("read_file", json!({"path": format!("src/file_{file}.rs")}), text)
    };
    let run = |command: &str, text: String| -> Exchange { ("bash", json!({"command": command}), text) };
    let mut all =
        vec![read(0, source(0, 150)), read(1, source(1, 150)), run("pytest -v tests/a", test_log(1))];
    all.push(("grep", json!({"pattern": "compute", "path": "src"}), hits()));
    all.push(read(0, source(0, 150)));
    all.push(run("cat -n src/file_1.rs | head -100", source(1, 100)));
    all.push(run("pytest -v tests/a", test_log(2)));
    for file in 2..6 {
        all.push(read(file, source(file, 90)));
        all.push(run(&format!("pytest -v tests/{file}"), test_log(file)));
    }
    all.push(read(2, source(2, 90)));
    all.push(("grep", json!({"pattern": "found", "path": "src"}), hits()));
    all
}

fn request(exchanges: &[Exchange], wrap: Option<Wrap>, format: Format) -> Vec<u8> {
    let said = |(tool, _, text): &Exchange| wrap.map_or_else(|| text.clone(), |wrap| wrap(tool, text));
    let mut list = Vec::new();
    for (number, exchange) in exchanges.iter().enumerate() {
        let id = format!("call_{number}");
        let (tool, arguments, _) = exchange;
        let said = said(exchange);
        match format {
            Format::Chat => {
                let function = json!({"name": tool, "arguments": arguments.to_string()});
                let call = json!({"id": id, "type": "function", "function": function});
                list.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
                list.push(json!({"role": "tool", "tool_call_id": id, "content": said}));
            }
            Format::Anthropic => {
                let call = json!({"type": "tool_use", "id": id, "name": tool, "input": arguments});
                list.push(json!({"role": "assistant", "content": [call]}));
                let result = json!({"type": "tool_result", "tool_use_id": id, "content": said});
                list.push(json!({"role": "user", "content": [result]}));
            }
            Format::Responses => {
                let arguments = arguments.to_string();
                list.push(
                    json!({"type": "function_call", "call_id": id, "name": tool, "arguments": arguments}),
                );
                list.push(json!({"type": "function_call_output", "call_id": id, "output": said}));
            }
            Format::Gemini => {
                // What is an object is the response itself, as the provider's own clients send it.
                let response = match serde_json::from_str(&said) {
                    Ok(value @ Value::Object(_)) => value,
                    Ok(_) | Err(_) => json!({"output": said}),
                };
                list.push(
                    json!({"role": "model", "parts": [{"functionCall": {"name": tool, "args": arguments}}]}),
                );
                let answer = json!({"functionResponse": {"name": tool, "response": response}});
                list.push(json!({"role": "user", "parts": [answer]}));
            }
        }
    }
    let task = "Make the tests pass.";
    let request = match format {
        Format::Chat => {
            list.insert(0, json!({"role": "user", "content": task}));
            json!({"model": "gpt-5", "messages": list})
        }
        Format::Anthropic => {
            list.insert(0, json!({"role": "user", "content": task}));
            json!({"model": "claude-sonnet-4-5", "max_tokens": 1000, "messages": list})
        }
        Format::Responses => {
            list.insert(0, json!({"role": "user", "content": task}));
            json!({"model": "gpt-5", "input": list})
        }
        Format::Gemini => {
            list.insert(0, json!({"role": "user", "parts": [{"text": task}]}));
            json!({"contents": list})
        }
    };
    request.to_string().into_bytes()
}

/// Returns a policy that shortens no output for its size alone: which are too large would depend on what is around them.
fn uncapped(name: &str) -> Policy {
    let set = [("largest_output".to_owned(), 0.0), ("birth_lines".to_owned(), 1.0)];
    Policy::shipped_with(name, if name == "steady" { &set } else { &[] }).expect("a shipped policy")
}

fn fit(bytes: &[u8], policy: &str, share: Option<f64>, format: Format) -> FittedRequest {
    let settings = Settings::new(uncapped(policy)).with_format(format).with_cold_cache();
    let whole = || fitted(bytes, &Memory::default(), &settings.clone().with_budget(Tokens(10_000_000)), 0);
    let budget = share.map_or(Tokens(10_000_000), |share| whole().plan.before().scale(share));
    fitted(bytes, &Memory::default(), &settings.clone().with_budget(budget), 0)
}

/// Returns the share of the tokens that is saved, in percent.
#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "tokens of a test are few")]
fn saved(fitted: &FittedRequest) -> f64 {
    100.0 - fitted.plan.after().0 as f64 * 100.0 / fitted.plan.before().0 as f64
}

/// Returns a JSON text with every string that is no key left out: what is left are keys, types and their order.
fn skeleton(json: &str) -> (String, Vec<String>) {
    let (mut bones, mut strings) = (String::new(), Vec::new());
    let mut rest = json;
    while let Some(at) = rest.find('"') {
        let mut is_escaped = false;
        let closing = rest[at + 1..].find(|letter: char| {
            let closes = letter == '"' && !is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            closes
        });
        let end = at + 2 + closing.expect("a closing quote");
        bones.push_str(&rest[..at]);
        let string = &rest[at..end];
        rest = &rest[end..];
        if rest.trim_start().starts_with(':') {
            bones.push_str(string);
        } else {
            bones.push_str("\"\"");
            strings.push(serde_json::from_str(string).expect("a string"));
        }
    }
    (bones + rest, strings)
}

/// Holds a fitted request to its promises about results in JSON.
fn check(
    name: &str,
    fitted_once: &FittedRequest,
    format: Format,
    policy: &str,
    settings: &Settings,
) -> usize {
    let mut shortened = 0;
    let history = &fitted_once.history;
    for decision in fitted_once.plan.decisions() {
        let block = history.block(decision.block).expect("a block");
        let (Some(text), BlockKind::Result) = (decision.verdict.own_text(), block.kind) else {
            continue;
        };
        shortened += 1;
        let original = history.block_text(block);
        if matches!(decision.verdict, Verdict::Rewrite { .. }) {
            super::rewritten::check(&original, text)
                .unwrap_or_else(|lie| panic!("{name}, {policy}: {lie} in {text}"));
            continue;
        }
        if serde_json::from_str::<Value>(&original).is_err() {
            // A Gemini response with nothing but a text is that text.
            assert!(format == Format::Gemini && honest::check(&original, text).is_ok(), "{name}: {text}");
            continue;
        }
        let (before, strings_before) = skeleton(&original);
        let (after, strings_after) = skeleton(text);
        assert_eq!(after, before, "{name}, {policy}: another shape: {text}");
        serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{name}: {error} in {text}"));
        for (before, after) in strings_before.iter().zip(&strings_after) {
            if let Err(lie) = honest::check(before, after) {
                panic!("{name}, {policy}: {lie:?} in\n{after}\n-- of --\n{before}");
            }
        }
        let handle = decision.handle.as_deref().expect("a handle");
        let back = trimtab_core::recall(history, handle).expect("the original comes back");
        assert_eq!(*back, *trimtab_core::block_original(history, block));
    }
    let before: Value = serde_json::from_slice(history.bytes()).expect("JSON");
    let after: Value = serde_json::from_slice(&fitted_once.request).expect("JSON");
    let faults = checker::new_faults(format.name(), &before, &after);
    assert!(faults.is_empty(), "{name}, {policy}: {faults:?}");
    let again = fitted(&fitted_once.request, &Memory::default(), settings, 0);
    assert!(
        again.request == fitted_once.request,
        "{name}, {policy}: {}\nand again\n{}",
        shown(fitted_once),
        shown(&again)
    );
    shortened
}

#[test]
fn results_wrapped_in_json_save_what_they_save_without_it() {
    let session = session();
    let mut far = Vec::new();
    let mut cases = 0;
    for format in Format::ALL {
        for (policy, share) in [("steady", None), ("steady", Some(0.7)), ("per-tool", Some(0.7))] {
            let plain = fit(&request(&session, None, format), policy, share, format);
            let is_hidden = plain.plan.after() < plain.plan.before();
            let plain = saved(&plain);
            // What is text in one format is text in the next: one format sees all wrappings, the others some.
            let some = if format == Format::Chat { 1 } else { 3 };
            for (name, wrap) in WRAPPINGS.iter().step_by(some) {
                let bytes = request(&session, Some(*wrap), format);
                let wrapped = fit(&bytes, policy, share, format);
                let settings = Settings::new(uncapped(policy))
                    .with_format(format)
                    .with_cold_cache()
                    .with_budget(wrapped.budget.expect("a budget"));
                let shortened = check(name, &wrapped, format, policy, &settings);
                assert!(
                    shortened > 0 || !is_hidden,
                    "{format} {policy} {share:?} {name}: nothing was shortened"
                );
                cases += shortened;
                let own = saved(&wrapped);
                if (own - plain).abs() > APART {
                    far.push(format!("{format} {policy} {share:?} {name}: {own:.1} %, plain {plain:.1} %"));
                }
            }
        }
    }
    assert!(far.is_empty(), "{}", far.join("\n"));
    println!("wrapped: {cases} results");
}

#[test]
fn a_log_in_json_is_digested_as_a_log_and_its_totals_are_told() {
    let log = test_log(1);
    let calls: Vec<Exchange> = (0..12)
        .map(|run| -> Exchange {
            (
                "bash",
                json!({"command": format!("pytest -v tests/{run}")}),
                log.replace("test_1.py", &format!("test_{run}.py")),
            )
        })
        .collect();
    let bytes =
        request(&calls, Some(|_, text| json!({"output": text, "exit_code": 1}).to_string()), Format::Chat);
    let sent = fit(&bytes, "per-tool", Some(0.5), Format::Chat);
    let texts = sent
        .plan
        .decisions()
        .iter()
        .filter_map(|decision| decision.verdict.own_text().map(ToString::to_string));
    let texts: Vec<String> = texts.collect();
    assert!(
        texts.iter().any(|text| text.contains("120 passed, 1 failed") && text.contains("passing lines")),
        "{texts:?}"
    );
    assert!(texts.iter().all(|text| text.contains("\"exit_code\":1")), "{texts:?}");
    // Names are those of the text, not of its escapes.
    assert!(!texts.iter().any(|text| text.contains(" ntests/")), "{texts:?}");
}

#[test]
fn lines_that_a_wrapped_result_shows_are_pointed_at_from_any_other_one() {
    let read = |text: String| -> Exchange { ("read_file", json!({"path": "src/file_0.rs"}), text) };
    let calls = [read(source(0, 120)), read(source(0, 60))];
    let wrappings: Vec<Option<Wrap>> = std::iter::once(None)
        .chain(WRAPPINGS.iter().filter(|(name, _)| *name != "parts").map(|(_, wrap)| Some(*wrap)))
        .collect();
    for first in &wrappings {
        for second in &wrappings {
            let one = |exchange: &Exchange, wrap: &Option<Wrap>| {
                let text = wrap.map_or_else(|| exchange.2.clone(), |wrap| wrap(exchange.0, &exchange.2));
                (exchange.0, exchange.1.clone(), text)
            };
            let both = [one(&calls[0], first), one(&calls[1], second)];
            let sent = fit(&request(&both, None, Format::Chat), "steady", None, Format::Chat);
            let sent = String::from_utf8_lossy(&sent.request).into_owned();
            let there = sent.contains("lines 1-60 are lines 1-60 there");
            assert!(there, "{sent}");
        }
    }
}
