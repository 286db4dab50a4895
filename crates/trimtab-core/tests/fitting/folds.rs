//! The laws of fitting with folds in play: summaries are handed back, refused or never come, at random. The protocol is judged by
//! the checker; sent messages are compared one by one.

use std::{cell::Cell, sync::Arc};

use proptest::{
    prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof},
    sample::select,
    test_runner::TestRunner,
};
use serde_json::{Value, json};
use trimtab_core::{
    BlockId, BlockKind, CacheHint, Decision, FittedRequest, Format, Handle, History, Memory, Millis, Policy,
    Settings, Tokens, Verdict, WarmState, block_handle, find_model, memory::UndoWhen, parse_as,
    policy::Folding, resend, session::fit_warm, summary::SummaryAnswer, wire::request_of,
};

use super::{Case, Request, fitted, named_break, request, shown, value};
use crate::{
    checker,
    conversations::{long_conversation, style},
};

/// What becomes of a summary that a plan wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Good,
    Empty,
    Refused,
    /// It never comes.
    Never,
    /// The edge gives up.
    GivenUp,
}

#[derive(Debug, Clone)]
struct Folds {
    case: Case,
    folding: Folding,
    /// The share of the budget at which the policy folds.
    over: f64,
    replies: Vec<Reply>,
}

fn read(bytes: &[u8], format: Format) -> Arc<History> {
    Arc::new(parse_as(bytes.to_vec(), format).expect("a request"))
}

fn folds() -> impl Strategy<Value = Folds> {
    let share = prop_oneof![Just(0.75), Just(0.5), Just(0.35), Just(0.25), 0.05..1.1];
    let reply = select(vec![
        Reply::Good,
        Reply::Good,
        Reply::Good,
        Reply::Empty,
        Reply::Refused,
        Reply::Never,
        Reply::GivenUp,
    ]);
    let policies = select(vec!["ladder", "retention", "per-tool"]);
    let talk = (long_conversation(), style(), policies, share);
    let inputs = prop_oneof![Just(0.0), Just(1.0), Just(2.0)];
    let rest = (any::<bool>(), select(vec![0.4, 0.6, 0.85]), prop::collection::vec(reply, 40), inputs);
    (talk, rest).prop_map(|((conversation, style, policy, share), (alone, over, replies, inputs))| Folds {
        case: Case { conversation, style, policy, share, inputs, cache: CacheHint::Unknown },
        folding: if alone { Folding::Ledger } else { Folding::WhenGiven },
        over,
        replies,
    })
}

impl Folds {
    fn settings(&self, request: &Request) -> Settings {
        let knob = match self.case.policy {
            "retention" => "consolidation_budget",
            _ => "compact_threshold",
        };
        let mut changed = vec![(knob.to_owned(), self.over), ("inputs".to_owned(), self.case.inputs)];
        // These conversations are short: where arguments may go, most are to be old enough.
        changed.extend((self.case.inputs > 0.0).then(|| ("preserve_recent".to_owned(), 1.0)));
        let policy = Policy::shipped_with(self.case.policy, &changed);
        let mut settings = request.settings(&self.case, self.case.share).with_folding(self.folding);
        settings.policy = policy.expect("a shipped policy").into();
        settings
    }
}

/// Runs a law in every format; says how many cases it passed and how many of them folded, which must be some.
fn for_each_fold(law: &str, check: impl Fn(&Folds, &Request) -> bool) {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    let cases: u32 =
        number("TRIMTAB_FIT_CASES").or(number("TRIMTAB_CASES").map(|cases: u32| cases / 10)).unwrap_or(25);
    for format in Format::ALL {
        let config = ProptestConfig {
            cases,
            failure_persistence: None,
            max_shrink_iters: 500,
            ..ProptestConfig::default()
        };
        let folded = Cell::new(0);
        TestRunner::new(config)
            .run(&folds(), |folds| {
                let request = request(&folds.case.conversation, format, folds.case.style);
                folded.set(folded.get() + u32::from(check(&folds, &request)));
                Ok(())
            })
            .unwrap_or_else(|failure| panic!("{law}, {format}: {failure}"));
        println!("{law}: {format}: {cases} cases, {} folded", folded.get());
        assert!(folded.get() > 0, "{law}, {format}: none of {cases} cases folded anything");
    }
}

fn valid(request: &Request, fitted: &FittedRequest) {
    let faults =
        checker::new_faults(request.format.name(), &value(fitted.history.bytes()), &value(&fitted.request));
    let (came, sent) = (value(fitted.history.bytes()), value(&fitted.request));
    let turns = checker::turn_faults(request.format.name(), &came, &sent);
    assert!(faults.is_empty() && turns.is_empty(), "{faults:?} {turns:?}\n{}", shown(fitted));
}

fn in_budget(request: &Request, fitted: &FittedRequest, settings: &Settings) {
    let count = request.count(&fitted.request);
    assert_eq!(count, fitted.plan.after(), "the plan counts as the counter does\n{}", shown(fitted));
    let guard = request.counter.tokenizer().exactness().guard();
    let budget = settings.budget.expect("a budget").scale(1.0 / guard);
    let named = fitted.plan.floor().is_some_and(|floor| floor.tokens == count);
    assert!(count <= budget + Tokens(1) || named, "{count} over {budget}\n{}", shown(fitted));
}

#[test]
fn folded_by_the_ledger_alone_a_request_is_valid_small_and_left_alone_the_second_time() {
    for_each_fold("folding alone", |folds, request| {
        let settings = folds.settings(request).with_folding(Folding::Ledger);
        let once = fitted(&request.bytes, &Memory::default(), &settings, 0);
        valid(request, &once);
        in_budget(request, &once, &settings);
        assert!(once.request.len() <= request.bytes.len(), "{}", shown(&once));
        let again = fitted(&once.request, &Memory::default(), &settings, 0);
        valid(request, &again);
        let both = format!("{}\nand again\n{}", shown(&once), shown(&again));
        let texts = [&again, &once].map(|fitted| String::from_utf8_lossy(&fitted.request).into_owned());
        assert_eq!(texts[0], texts[1], "{both}");
        let twice = fitted(&request.bytes, &Memory::default(), &settings, 0);
        assert_eq!((twice.request, twice.plan), (once.request, once.plan.clone()));
        once.plan.fold_message().is_some()
    });
}

#[test]
fn sticky_a_folded_conversation_stays_folded() {
    for_each_fold("folding is sticky", |folds, request| {
        let settings = folds.settings(request);
        let mut memory = Memory::default();
        let mut warm = WarmState::default();
        let mut replies = folds.replies.iter().copied();
        let mut earlier: Option<FittedRequest> = None;
        let messages = request.history.messages();
        let starts = (1..=messages.len()).filter(|count| {
            messages.get(*count).is_none_or(|next| next.role == trimtab_core::Role::Assistant)
        });
        for (number, count) in starts.enumerate() {
            let now = i64::try_from(number).expect("few requests") * 1000;
            let bytes = request_of(&request.history, count);
            let again = resend(read(&bytes, request.format), &memory);
            let fitted = fitted(&bytes, &memory, &settings, now);
            let warmly = fit_warm(bytes.clone(), &mut warm, &memory, &settings, Millis(now))
                .expect("fits cold, fits warm");
            assert_eq!(warmly.plan, fitted.plan, "warm and cold plan the same");
            assert_eq!(warmly.request, fitted.request, "warm and cold send the same");
            valid(request, &fitted);
            in_budget(request, &fitted, &settings);
            named_break(earlier.as_ref(), &fitted, folds.case.policy);
            if let Some(earlier) = &earlier {
                stays_folded(earlier, &fitted);
                begins_as(request.format, earlier, &again.request, &fitted);
                if fitted.plan.cache_break().is_none() {
                    begins_as(request.format, earlier, &fitted.request, &fitted);
                }
            }
            memory.remember_sent(&fitted.plan, Millis(now));
            restored(&memory, &bytes, request.format);
            hand_back(&mut memory, &fitted, &mut replies);
            earlier = Some(fitted);
        }
        earlier.is_some_and(|last| last.plan.fold_message().is_some())
    });
}

/// Folded messages are never shown again; the message that replaces them is the same or replaces more.
fn stays_folded(earlier: &FittedRequest, later: &FittedRequest) {
    for (was, is) in earlier.plan.decisions().iter().zip(later.plan.decisions()) {
        if was.verdict.is_fold() {
            assert!(
                is.verdict.is_gone(),
                "block {}\n{}\nlater\n{}",
                was.block.0,
                shown(earlier),
                shown(later)
            );
        }
    }
    let (Some((was, before)), Some((is, after))) = (earlier.plan.fold_message(), later.plan.fold_message())
    else {
        assert!(earlier.plan.fold_message().is_none(), "{}\nlater\n{}", shown(earlier), shown(later));
        return;
    };
    assert!(was < is || before == after, "{}\nlater\n{}", shown(earlier), shown(later));
}

/// What was sent is the beginning of what is sent now.
fn begins_as(format: Format, earlier: &FittedRequest, now: &[u8], fitted: &FittedRequest) {
    let list = |request: &Value| -> Vec<Value> {
        let key = match format {
            Format::Anthropic | Format::Chat => "messages",
            Format::Responses => "input",
            Format::Gemini => "contents",
        };
        let messages = request[key].as_array().cloned().unwrap_or_default();
        messages.iter().flat_map(|message| parts_of_message(format, message)).collect()
    };
    let (before, now) = (list(&value(&earlier.request)), list(&value(now)));
    for (index, message) in before.iter().enumerate() {
        assert_eq!(Some(message), now.get(index), "{}\nlater\n{}", shown(earlier), shown(fitted));
    }
}

/// A folded message is joined to what the user said before it, so that the parts of the user's messages show what was sent.
fn parts_of_message(format: Format, message: &Value) -> Vec<Value> {
    let role = &message["role"];
    let content = &message[if format == Format::Gemini { "parts" } else { "content" }];
    let joins = format == Format::Gemini || (format != Format::Responses && role == "user");
    match content {
        Value::String(text) if joins => vec![json!({"role": role, "part": {"type": "text", "text": text}})],
        Value::Array(parts) if joins => {
            parts.iter().map(|part| json!({"role": role, "part": part})).collect()
        }
        _ => vec![message.clone()],
    }
}

/// A memory that was stored and read back repeats the same.
fn restored(memory: &Memory, bytes: &[u8], format: Format) {
    let mut again = Memory::default();
    memory.verdicts().for_each(|(hash, sent)| again.remember(hash, sent.clone()));
    let send = |memory: &Memory| resend(read(bytes, format), memory).request;
    assert_eq!(String::from_utf8_lossy(&send(&again)), String::from_utf8_lossy(&send(memory)));
}

fn hand_back(memory: &mut Memory, fitted: &FittedRequest, replies: &mut impl Iterator<Item = Reply>) {
    let Some(asking) = fitted.summary_task() else { return };
    let said = |text: &str| SummaryAnswer::of_text(text);
    let good = "The user asked for a change. The files were read and edited. The tests are still to be run.";
    match replies.next().unwrap_or(Reply::Good) {
        Reply::Good => {
            let taken = memory.accept_summary(&asking, &said(good));
            assert!(
                taken.is_ok() || asking.request().tokens < Tokens(100),
                "{taken:?}: {:?}",
                asking.request()
            );
        }
        Reply::Empty => assert!(memory.accept_summary(&asking, &said("")).is_err()),
        Reply::Refused => {
            assert!(memory.accept_summary(&asking, &said("I'm sorry, I can't help with that.")).is_err());
        }
        Reply::Never => {}
        Reply::GivenUp => memory.no_summary(asking.request()),
    }
}

/// Handles are named for what tools gave.
fn is_result(fitted: &FittedRequest, decision: &Decision) -> bool {
    fitted.history.block(decision.block).is_some_and(|block| block.kind == BlockKind::Result)
}

#[test]
fn pinned_what_a_summary_stands_for_comes_back_and_no_summary_stands_for_it_again() {
    for_each_fold("pinned in a fold", |folds, request| {
        // Where reasoning is bound to what precedes it, a pin waits for the end of the tool loop.
        let prices = find_model("claude-sonnet-4-5").ok();
        let settings = folds.settings(request).with_folding(Folding::Ledger).with_prices(prices);
        let mut memory = Memory::default();
        let first = fitted(&request.bytes, &memory, &settings, 0);
        memory.remember_sent(&first.plan, Millis(0));
        let folded: Vec<BlockId> = first
            .plan
            .decisions()
            .iter()
            .filter(|decision| decision.verdict.is_fold() && is_result(&first, decision))
            .map(|decision| decision.block)
            .collect();
        let Some(block) = folded.get(folded.len() / 2) else { return false };
        let named = block_handle(&first.history, first.history.block(*block).expect("a block"));
        let handle = Handle::parse(&named).expect("a handle");
        // A summary is not taken back for one of its blocks by an undo.
        let mut undone = memory.clone();
        undone.undo(handle, 1, UndoWhen::Now);
        let same = fitted(&request.bytes, &undone, &settings, 1000);
        assert_eq!(same.plan.fold_message(), first.plan.fold_message(), "{}", shown(&same));
        memory.pin(handle);
        for now in [1000, 2000] {
            let pinned = fitted(&request.bytes, &memory, &settings, now);
            assert!(pinned.plan.pinned_blocks().contains(block));
            for id in pinned.plan.pinned_blocks() {
                let verdict = &pinned.plan.decisions()[usize::try_from(id.0).expect("few blocks")].verdict;
                assert_eq!(
                    *verdict,
                    Verdict::Keep,
                    "block {}\n{}\nnow\n{}",
                    id.0,
                    shown(&first),
                    shown(&pinned)
                );
            }
            valid(request, &pinned);
            in_budget(request, &pinned, &settings);
            memory.remember_sent(&pinned.plan, Millis(now));
        }
        true
    });
}
