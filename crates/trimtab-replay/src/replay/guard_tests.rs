//! Whether `steady` can make a session more expensive. Made-up sessions of every pace and size are replayed under its presets with each
//! provider's cache: none may cost more than a hundredth above what it cost untouched.

use proptest::prelude::*;
use serde_json::{Value, json};
use trimtab_core::{
    Millis,
    prices::{Model, find_model},
    usage::Point,
    wire::parse,
};

use super::{Contender, ReplayBudget, ReplayTerms, replay};
use crate::recording::{Segment, SegmentStart};

/// One step: what is called, how many lines come back, and how long the next request waits, in seconds.
#[derive(Debug, Clone)]
struct Call {
    tool: &'static str,
    file: usize,
    lines: usize,
    /// Whether what comes back are errors, which stay: little is saved by hiding it.
    errors: bool,
    pause: i64,
}

fn call() -> impl Strategy<Value = Call> {
    let tool = prop::sample::select(vec!["Read", "Read", "Bash", "Grep", "Edit", "Task"]);
    let lines = prop_oneof![4 => 1..40_usize, 3 => 40..300_usize, 1 => 300..1500_usize];
    let pause = prop_oneof![12 => 2..60_i64, 2 => 60..330_i64, 2 => 330..900_i64, 1 => 900..20_000_i64];
    (tool, 0..6_usize, lines, prop::bool::weighted(0.3), pause)
        .prop_map(|(tool, file, lines, errors, pause)| Call { tool, file, lines, errors, pause })
}

/// A session after a system prompt of so many lines.
fn segment(calls: &[Call], head: usize) -> Segment {
    let mut messages =
        vec![json!({"role": "user", "content": "Find out why the totals are wrong, and mend it."})];
    let mut points = vec![Point { messages: 1, at: Some(Millis(0)), model: None, usage: None }];
    let mut now = 0;
    for (step, call) in calls.iter().enumerate() {
        let path = format!("/home/dev/src/module_{}.py", call.file);
        let input = match call.tool {
            "Read" => json!({"file_path": path}),
            "Edit" => {
                json!({"file_path": path, "old_string": format!("value_{step}"), "new_string": "value"})
            }
            "Bash" => json!({"command": format!("python -m tool_{} --step {step}", call.file)}),
            _ => json!({"pattern": format!("total_{}", call.file), "prompt": "look"}),
        };
        let row = |line: usize| match call.errors {
            true if line.is_multiple_of(3) => {
                format!("error[E{line}]: part_{line} of step {step} is not where it should be\n")
            }
            true => format!("   it was looked for at {line} and at the places behind it\n"),
            false => format!("{} row_{line} of {path} at {step}\n", call.tool),
        };
        let text: String = (0..call.lines).map(row).collect();
        let id = format!("toolu_{step}");
        let spoken = |role: &str, content: Value| json!({"role": role, "content": [content]});
        messages.push(spoken(
            "assistant",
            json!({"type": "tool_use", "id": id, "name": call.tool, "input": input}),
        ));
        messages.push(spoken("user", json!({"type": "tool_result", "tool_use_id": id, "content": text})));
        now += call.pause * 1000;
        points.push(Point { messages: messages.len(), at: Some(Millis(now)), model: None, usage: None });
    }
    let system: String =
        (0..head).map(|rule| format!("Rule {rule}: do what is right, and say so.\n")).collect();
    let mut request = json!({"model": "claude-opus-5", "max_tokens": 1000, "messages": messages});
    if head > 0 {
        request["system"] = json!(system);
    }
    let history = parse(request.to_string().into_bytes()).unwrap();
    Segment { name: None, start: SegmentStart::Session, history, points }
}

/// Replays a session under every preset at the prices of four providers.
#[track_caller]
fn check(calls: &[Call], head: usize) {
    let segment = segment(calls, head);
    let contenders: Vec<_> =
        ["steady", "steady.safe", "steady.bold"].iter().map(|name| Contender::parse(name).unwrap()).collect();
    let models: Vec<Model> = ["claude-opus-5", "gpt-6.1-sol", "deepseek-v4-flash", "gemini-3.1-pro-preview"]
        .iter()
        .map(|name| find_model(name).unwrap())
        .collect();
    for score in replay(&segment, &contenders, &models, &ReplayTerms::default()) {
        let ratio = score.dollars / score.raw_dollars;
        assert!(ratio <= 1.01, "{} with {}: {ratio}", score.policy, score.model);
        assert_eq!(score.invalid_requests, 0);
    }
}

#[test]
fn where_a_request_was_too_small_for_the_cache_nothing_is_found() {
    let call = |tool, file, lines, pause| Call { tool, file, lines, errors: false, pause };
    let small = || call("Read", 0, 1, 2);
    check(&[small(), small(), small(), call("Bash", 0, 97, 4), call("Task", 5, 145, 22)], 0);
}

#[test]
fn a_cut_that_saves_less_than_it_seems_is_not_made() {
    let call = |tool, file, lines, errors| Call { tool, file, lines, errors, pause: 10 };
    for lines in (100..400).step_by(25) {
        let mut calls = vec![call("Edit", 0, 3, false); 7];
        calls.push(call("Bash", 1, lines, true));
        calls.extend(vec![call("Edit", 0, 3, false); 4]);
        check(&calls, 2500);
    }
}

#[test]
fn behind_a_fixed_head_steady_cuts_at_most_twice_as_often_as_the_plan_that_knows_the_future() {
    let calls: Vec<Call> =
        (0..90).map(|file| Call { tool: "Read", file, lines: 60, errors: false, pause: 20 }).collect();
    let segment = segment(&calls, 200);
    let contenders = ["steady", "oracle:budget-paid"].map(|name| Contender::parse(name).unwrap());
    let budgets = [0.75, 0.5, 0.25].map(ReplayBudget::OfPeak).to_vec();
    let terms = ReplayTerms { budgets, ..ReplayTerms::default() };
    let scores = replay(&segment, &contenders, &[find_model("claude-opus-5").unwrap()], &terms);
    let (ours, bound) = scores.split_at(3);
    for (ours, bound) in ours.iter().zip(bound) {
        assert!(
            bound.cuts > 0 && ours.cuts <= 2 * bound.cuts,
            "{:?}: {} {}",
            ours.budget,
            ours.cuts,
            bound.cuts
        );
        assert_eq!((ours.over_budget_requests, ours.invalid_requests), (0, 0), "{:?}", ours.budget);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_session_is_dearer_than_untouched(
        calls in prop::collection::vec(call(), 5..60),
        head in prop_oneof![Just(0), 0..2500_usize],
    ) {
        check(&calls, head);
    }
}
