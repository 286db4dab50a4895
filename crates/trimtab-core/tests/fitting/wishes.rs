//! What is asked for about single blocks: a block pinned by handle is not shortened, and what was hidden comes back when its
//! hiding is taken back.

use std::{cell::Cell, collections::BTreeMap};

use serde_json::json;
use trimtab_core::{
    BlockId, BlockKind, CacheHint, ChainHash, Decision, FittedRequest, Format, Handle, Memory, Millis,
    Policy, Reason, SentVerdict, Settings, Tokens, Verdict, WarmState, block_handle, chain, find_model, fit,
    memory::UndoWhen, session::fit_warm,
};

use super::{Case, Request, fitted, for_each_case, shown, value};
use crate::checker;

/// Long after every provider's cache is gone.
const COLD: i64 = 48 * 3_600_000;

fn handle(fitted: &FittedRequest, block: BlockId) -> Handle {
    let named = block_handle(&fitted.history, fitted.history.block(block).expect("a block"));
    Handle::parse(&named).expect("a handle")
}

fn hidden(fitted: &FittedRequest) -> impl Iterator<Item = &Decision> {
    fitted.plan.decisions().iter().filter(|decision| !decision.verdict.shows_all())
}

/// Reasoning whose signature no longer holds goes, whatever is asked for, and so do summaries' blocks but for pins.
fn is_unbound(decision: &Decision) -> bool {
    matches!(decision.verdict, Verdict::Drop { reason: Reason::Unbound { .. } })
}

/// Lets a part of the cases be those of a model that binds its reasoning to everything before it.
fn with_bound_reasoning(case: &Case, settings: Settings) -> Settings {
    let model = || find_model("claude-opus-5-5").expect("a model");
    settings.with_prices((0.5..1.5).contains(&case.inputs).then(model))
}

fn is_valid(request: &Request, fitted: &FittedRequest) {
    let faults = checker::new_faults(request.format.name(), &value(&request.bytes), &value(&fitted.request));
    assert!(faults.is_empty(), "{faults:?}\n{}", shown(fitted));
    assert_eq!(request.count(&fitted.request), fitted.plan.after(), "{}", shown(fitted));
}

/// What a store keeps of a plan makes the same memory as sending it: the newest verdict that says more than "whole".
fn keeps_the_same(before: &Memory, fitted: &FittedRequest, memory: &Memory) {
    let mut kept: BTreeMap<ChainHash, SentVerdict> =
        before.verdicts().map(|(hash, sent)| (hash, sent.clone())).collect();
    for (hash, verdict) in chain(&fitted.history).into_iter().zip(SentVerdict::of_plan(&fitted.plan)) {
        if verdict != SentVerdict::WHOLE || !kept.contains_key(&hash) {
            kept.insert(hash, verdict);
        }
    }
    let sent: BTreeMap<ChainHash, SentVerdict> =
        memory.verdicts().map(|(hash, sent)| (hash, sent.clone())).collect();
    assert_eq!(kept, sent, "{}", shown(fitted));
}

#[test]
fn pinned_by_handle_no_block_is_hidden_by_any_policy_or_budget() {
    let (came_back, floors) = (Cell::new(0), Cell::new(0));
    for_each_case("pinned", |case, request| {
        let settings = with_bound_reasoning(case, request.settings(case, case.share));
        let settings = settings.with_cache(CacheHint::Unknown);
        // After an edit the reasoning of a running tool loop can neither be kept nor removed: there a pin waits.
        let waits = settings.prices.is_some();
        let mut memory = Memory::default();
        let first = fitted(&request.bytes, &memory, &settings, 0);
        memory.remember_sent(&first.plan, Millis(0));
        // Every third block, hidden or not.
        let pinned: Vec<Handle> = (0..first.plan.decisions().len())
            .step_by(3)
            .map(|number| handle(&first, BlockId(u32::try_from(number).expect("few blocks"))))
            .collect();
        let is_pinned =
            |fitted: &FittedRequest, decision: &Decision| pinned.contains(&handle(fitted, decision.block));
        let check = |memory: &Memory, now: i64| {
            let with_pins = fitted(&request.bytes, memory, &settings, now);
            for decision in hidden(&with_pins).filter(|decision| is_pinned(&with_pins, decision)) {
                assert!(
                    waits || is_unbound(decision),
                    "{}: block {}\n{}",
                    case.policy,
                    decision.block.0,
                    shown(&with_pins)
                );
            }
            // What bound reasoning needs under pressure is no matter of pins.
            if !waits {
                is_valid(request, &with_pins);
            }
            let fits = with_pins.budget.is_none_or(|budget| with_pins.plan.after() <= budget);
            assert!(
                fits || with_pins.plan.floor().is_some() || case.policy == "none",
                "{}",
                shown(&with_pins)
            );
            if let Some(floor) = with_pins.plan.floor() {
                let named = floor.made_of.iter().any(|(class, _)| *class == "pinned");
                assert!(named || with_pins.plan.pinned_blocks().is_empty(), "{:?}", floor.made_of);
                floors.set(floors.get() + 1);
            }
            with_pins
        };
        let mut from_the_start = Memory::default();
        pinned.iter().for_each(|handle| from_the_start.pin(*handle));
        check(&from_the_start, 0);
        pinned.iter().for_each(|handle| memory.pin(*handle));
        let again = check(&memory, 1000);
        let warmly =
            fit_warm(request.bytes.clone(), &mut WarmState::default(), &memory, &settings, Millis(1000));
        assert_eq!(warmly.expect("fits cold, fits warm").request, again.request);
        let was_hidden = |id: &&BlockId| hidden(&first).any(|decision| decision.block == **id);
        assert!(again.plan.shown_again().iter().all(|id| was_hidden(&id)), "{}", shown(&again));
        came_back.set(came_back.get() + again.plan.shown_again().len());
        let before = memory.clone();
        memory.remember_sent(&again.plan, Millis(1000));
        keeps_the_same(&before, &again, &memory);
        let twice = check(&memory, 2000);
        assert_eq!(
            String::from_utf8_lossy(&twice.request),
            String::from_utf8_lossy(&again.request),
            "{}\n{}\nand again\n{}",
            case.policy,
            shown(&again),
            shown(&twice)
        );
        assert_eq!(
            (twice.plan.shown_again(), twice.plan.cache_break()),
            (&[][..], None),
            "{}",
            shown(&twice)
        );
    });
    assert!(
        came_back.get() > 0 && floors.get() > 0,
        "nothing came back, or nothing was tight: the law says nothing"
    );
}

#[test]
fn taken_back_what_was_hidden_comes_back_when_that_is_free_and_at_once_where_that_is_asked_for() {
    let came_back = Cell::new(0);
    for_each_case("taken back", |case, request| {
        let mut memory = Memory::default();
        let tight = fitted(&request.bytes, &memory, &request.settings(case, case.share), 0);
        memory.remember_sent(&tight.plan, Millis(0));
        let folded = |decision: &&Decision| decision.verdict.is_fold() || is_unbound(decision);
        if hidden(&tight).any(|decision| folded(&decision)) {
            return;
        }
        let was_hidden: Vec<BlockId> = hidden(&tight).map(|decision| decision.block).collect();
        let step = tight.history.messages().last().map_or(0, |entry| entry.step);
        let undone = |when: UndoWhen| {
            let mut memory = memory.clone();
            was_hidden.iter().for_each(|id| memory.undo(handle(&tight, *id), step, when));
            memory
        };
        // The clock decides here what is warm and what is cold.
        let settings = request.settings(case, 100.0).with_cache(CacheHint::Unknown);
        let whole = |fitted: &FittedRequest| {
            let is_whole = |id: &&BlockId| {
                fitted.plan.decisions()[usize::try_from(id.0).expect("few")].verdict == Verdict::Keep
            };
            was_hidden.iter().filter(is_whole).count()
        };
        let warm = fitted(&request.bytes, &undone(UndoWhen::Free), &settings, 1000);
        let without = fitted(&request.bytes, &memory, &settings, 1000);
        assert!(without.plan.cache_break().is_some() || warm.request == without.request, "{}", shown(&warm));
        for (memory, now) in [(undone(UndoWhen::Free), COLD), (undone(UndoWhen::Now), 1000)] {
            let back = fitted(&request.bytes, &memory, &settings, now);
            assert_eq!(
                whole(&back),
                was_hidden.len(),
                "{}\n{}\nnow\n{}",
                case.policy,
                shown(&tight),
                shown(&back)
            );
            is_valid(request, &back);
            came_back.set(came_back.get() + back.plan.shown_again().len());
            let mut sent = memory.clone();
            sent.remember_sent(&back.plan, Millis(now));
            keeps_the_same(&memory, &back, &sent);
            let twice = fitted(&request.bytes, &sent, &settings, now + 1000);
            assert_eq!(twice.request, back.request, "{}\n{}", case.policy, shown(&twice));
        }
    });
    assert!(came_back.get() > 0, "nothing came back: the law says nothing");
}

/// A conversation in which a tool was called so many times.
fn conversation(results: usize) -> Vec<u8> {
    let mut messages = vec![json!({"role": "user", "content": "Go on."})];
    for number in 0..results {
        let id = format!("call_{number}");
        let text: String = (0..60).map(|line| format!("line {line} of result {number}\n")).collect();
        messages
            .push(json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
            "function": {"name": "look", "arguments": "{}"}}]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
    }
    json!({"model": "gpt-5", "messages": messages}).to_string().into_bytes()
}

/// A session under a policy that shows the last three results.
struct Going {
    memory: Memory,
    settings: Settings,
}

impl Going {
    fn new() -> Going {
        let policy =
            Policy::shipped_with("recent", &[("keep_last".to_owned(), 3.0), ("batch".to_owned(), 1.0)]);
        let policy = policy.expect("a policy");
        let settings = Settings::new(policy).with_format(Format::Chat).with_budget(Tokens(100_000));
        Going { memory: Memory::default(), settings }
    }

    /// Sends a request of so many results; gives the numbers of those that are whole.
    fn send(&mut self, results: usize, now: i64) -> (FittedRequest, Vec<usize>) {
        let fitted = fit(conversation(results), &self.memory, &self.settings, Millis(now)).expect("a fit");
        self.memory.remember_sent(&fitted.plan, Millis(now));
        let blocks = fitted.history.blocks().iter().zip(fitted.plan.decisions());
        let results = blocks.filter(|(block, _)| block.kind == BlockKind::Result).enumerate();
        let whole = results.filter(|(_, (_, decision))| decision.verdict == Verdict::Keep);
        let whole = whole.map(|(number, _)| number).collect();
        (fitted, whole)
    }
}

fn result(fitted: &FittedRequest, number: usize) -> Handle {
    let blocks = (0..).map(BlockId).zip(fitted.history.blocks());
    let mut results = blocks.filter(|(_, block)| block.kind == BlockKind::Result);
    handle(fitted, results.nth(number).expect("a result").0)
}

#[test]
fn an_undo_waits_while_the_cache_is_warm_and_its_block_is_hidden_again_when_it_is_old_again() {
    let mut going = Going::new();
    let (first, whole) = going.send(6, 0);
    assert_eq!(whole, [3, 4, 5]);
    going.memory.undo(result(&first, 0), 6, UndoWhen::Free);
    // The policy hides whenever a result is old, so that every new result makes the request differ before the older ones.
    let (same, whole) = going.send(6, 1000);
    assert_eq!((whole, same.plan.cache_break()), (vec![3, 4, 5], None));
    let (back, whole) = going.send(6, COLD);
    assert_eq!(whole, [0, 3, 4, 5]);
    assert_eq!(back.plan.shown_again().len(), 1);
    // Counted from the undo it is as old as result 5.
    assert_eq!(going.send(8, COLD + 1000).1, [0, 5, 6, 7]);
    assert_eq!(going.send(9, COLD + 2000).1, [6, 7, 8]);
    assert_eq!(going.send(9, 2 * COLD).1, [6, 7, 8], "what was hidden later was not taken back");
}

#[test]
fn an_undo_is_done_where_the_request_differs_before_its_block_anyway() {
    let mut going = Going::new();
    let (first, _) = going.send(6, 0);
    going.memory.undo(result(&first, 1), 6, UndoWhen::Free);
    // A pin makes it differ from the first result on.
    going.memory.pin(result(&first, 0));
    let (back, whole) = going.send(6, 1000);
    assert_eq!(whole, [0, 1, 3, 4, 5]);
    assert_eq!((back.plan.shown_again().len(), back.plan.pinned_blocks().len()), (2, 1));
    assert_eq!(going.send(6, 2000).1, [0, 1, 3, 4, 5]);
}

#[test]
fn an_undo_does_not_wait_where_it_is_asked_for_now_and_a_pin_never_does() {
    let mut going = Going::new();
    let (first, _) = going.send(6, 0);
    going.memory.undo(result(&first, 1), 6, UndoWhen::Now);
    assert_eq!(going.send(6, 1000).1, [1, 3, 4, 5]);
    going.memory.pin(result(&first, 2));
    assert_eq!(going.send(6, 2000).1, [1, 2, 3, 4, 5]);
    assert_eq!(going.send(12, 3000).1, [2, 9, 10, 11], "a pin lasts");
    going.memory.unpin(result(&first, 2));
    assert_eq!(going.send(12, 4000).1, [9, 10, 11], "until it is taken back");
}

#[test]
fn an_undo_of_what_is_in_sight_only_makes_it_young() {
    let mut going = Going::new();
    let (first, _) = going.send(6, 0);
    going.memory.undo(result(&first, 3), 6, UndoWhen::Now);
    assert_eq!(going.send(6, 1000).1, [3, 4, 5]);
    assert_eq!(going.send(8, 2000).1, [3, 5, 6, 7]);
    assert_eq!(going.send(9, 3000).1, [6, 7, 8]);
    assert_eq!(going.send(9, COLD).1, [6, 7, 8]);
}
