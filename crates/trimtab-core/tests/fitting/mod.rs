//! The laws of fitting, for every shipped policy and many budgets: silence, validity, budget, size, stickiness, honesty
//! and sameness. The protocol is judged by the checker, which knows nothing of the library.

mod again;
mod cold_moments;
mod folds;
mod honest;
mod inputs;
mod pressure;
mod referenced;
mod relevant;
mod rewritten;
mod shipped;
mod small;
mod thoughts;
mod wishes;
mod wrapped;
mod written;

use std::cell::Cell;

use proptest::{
    prelude::{Just, ProptestConfig, Strategy, prop_oneof},
    sample::select,
    test_runner::TestRunner,
};
use serde_json::Value;
use trimtab_core::{
    BlockId, BlockKind, CacheHint, CountMemo, Counter, Decision, FittedRequest, Format, History, Memory,
    Millis, Policy, Reason, Role, Settings, Tokens, Verdict, WarmState, facts, fit, plan::Moment,
    policy::policies, session::fit_warm, wire::request_of,
};

use crate::{
    checker,
    conversations::{Conversation, Style, conversation, long_conversation, style},
    read,
};

/// A conversation with what it is fitted by.
#[derive(Debug, Clone)]
struct Case {
    conversation: Conversation,
    style: Style,
    policy: &'static str,
    /// The share of its tokens that it is fitted into.
    share: f64,
    /// Which arguments of calls may be shortened: none, safe ones, all.
    inputs: f64,
    cache: CacheHint,
}

/// A request and the means to fit it.
struct Request {
    format: Format,
    bytes: Vec<u8>,
    history: History,
    counter: Counter,
    total: Tokens,
}

fn case(long: bool) -> impl Strategy<Value = Case> {
    let names: Vec<&'static str> = policies().map(|(name, _)| name).collect();
    let share = prop_oneof![Just(0.75), Just(0.5), Just(0.25), Just(0.1), Just(0.001), 0.0..1.2];
    let talk = if long { long_conversation().boxed() } else { conversation().boxed() };
    let inputs = prop_oneof![Just(0.0), Just(1.0), Just(2.0)];
    let cache = select(vec![CacheHint::Unknown, CacheHint::Cold]);
    let drawn = (talk, style(), select(names), share, inputs, cache);
    drawn.prop_map(|(conversation, style, policy, share, inputs, cache)| Case {
        conversation,
        style,
        policy,
        share,
        inputs,
        cache,
    })
}

/// Runs a law over made-up conversations in every format and prints how many passed. One case in five is a
/// conversation without sense or size.
fn for_each_case(law: &str, check: impl Fn(&Case, &Request)) {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    // A case here fits several times, with every kind of policy and budget: a tenth of the cases of the other laws.
    // `./scripts/test long laws` runs as many as those.
    let cases: u32 =
        number("TRIMTAB_FIT_CASES").or(number("TRIMTAB_CASES").map(|cases: u32| cases / 10)).unwrap_or(25);
    for format in Format::ALL {
        let config = ProptestConfig {
            cases,
            failure_persistence: None,
            max_shrink_iters: 2000,
            ..ProptestConfig::default()
        };
        let mut runner = TestRunner::new(config);
        runner
            .run(&prop_oneof![4 => case(true), 1 => case(false)], |case| {
                check(&case, &request(&case.conversation, format, case.style));
                Ok(())
            })
            .unwrap_or_else(|failure| panic!("{law}, {format}: {failure}"));
        println!("{law}: {format}: {cases} cases");
    }
}

fn request(conversation: &Conversation, format: Format, style: Style) -> Request {
    let (json, _) = conversation.write(format, style);
    let history = read(&json, format);
    let counter = Counter::for_model(&history.model().unwrap_or_default());
    let total = counter.count_request(&history, &mut CountMemo::default()).total();
    Request { format, bytes: json.into_bytes(), history, counter, total }
}

impl Request {
    /// Returns settings whose budget is a share of the request, with the room that an estimate asks for.
    fn settings(&self, case: &Case, share: f64) -> Settings {
        let budget = self.total.scale(share * self.counter.tokenizer().exactness().guard());
        let mut changed = vec![("inputs".to_owned(), case.inputs)];
        // These conversations are short: where arguments may go, most are to be old enough.
        changed.extend((case.inputs > 0.0).then(|| ("preserve_recent".to_owned(), 1.0)));
        changed.retain(|_| case.policy != "none");
        let policy = Policy::shipped_with(case.policy, &changed).expect("a shipped policy");
        let settings = Settings::new(policy).with_budget(budget).with_format(self.format);
        settings.with_cache(case.cache)
    }

    fn fit(&self, case: &Case, share: f64) -> FittedRequest {
        fitted(&self.bytes, &Memory::default(), &self.settings(case, share), 0)
    }

    fn count(&self, bytes: &[u8]) -> Tokens {
        let history = read(std::str::from_utf8(bytes).expect("UTF-8"), self.format);
        self.counter.count_request(&history, &mut CountMemo::default()).total()
    }
}

fn fitted(bytes: &[u8], memory: &Memory, settings: &Settings, now: i64) -> FittedRequest {
    let fitted = fit(bytes.to_vec(), memory, settings, Millis(now));
    fitted.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}

fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}

fn shown(fitted: &FittedRequest) -> String {
    let decisions = fitted.plan.decisions().iter().map(|decision| {
        let block = fitted.history.block(decision.block).expect("a block");
        let reason = decision.reason().as_ref().map(ToString::to_string).unwrap_or_default();
        format!("  {:3} {:10} {} {reason}\n", decision.block.0, block.kind.name(), decision.verdict)
    });
    format!(
        "budget {:?}, {} -> {}, floor {:?}\n{}{}\n-> {}",
        fitted.budget,
        fitted.plan.before(),
        fitted.plan.after(),
        fitted.plan.floor(),
        decisions.collect::<String>(),
        String::from_utf8_lossy(fitted.history.bytes()),
        String::from_utf8_lossy(&fitted.request)
    )
}

#[test]
fn silence_where_nothing_is_to_gain_the_request_passes_byte_for_byte() {
    for_each_case("silence", |case, request| {
        let fitted = request.fit(case, 100.0);
        let pressed = |decision: &Decision| decision.reason() == Some(Reason::OverBudget);
        assert!(!fitted.plan.decisions().iter().any(pressed), "{}", shown(&fitted));
        // These hide under pressure only.
        let patient = matches!(case.policy, "none" | "age" | "priority" | "supersede");
        if patient || fitted.plan.keeps_all() {
            assert_eq!(fitted.request, request.bytes, "{}", shown(&fitted));
        }
    });
}

#[test]
fn valid_a_fitted_request_breaks_no_rule_that_its_input_kept() {
    for_each_case("valid", |case, request| {
        let fitted = request.fit(case, case.share);
        let faults =
            checker::new_faults(request.format.name(), &value(&request.bytes), &value(&fitted.request));
        assert!(faults.is_empty(), "{}: {faults:?}\n{}", case.policy, shown(&fitted));
    });
}

#[test]
fn turns_where_roles_alternate_those_of_the_fitted_request_do() {
    for_each_case("turns", |case, request| {
        let fitted = request.fit(case, case.share);
        let faults =
            checker::turn_faults(request.format.name(), &value(&request.bytes), &value(&fitted.request));
        assert!(faults.is_empty(), "{}: {faults:?}\n{}", case.policy, shown(&fitted));
    });
}

/// Two turns of a chat, and the answers that were dropped between the user's words when nothing said that roles take turns.
#[test]
fn turns_an_answer_between_two_messages_of_the_user_stays() {
    for format in [Format::Anthropic, Format::Chat] {
        let mut messages = Vec::new();
        for turn in 0..12 {
            let words = |who: &str| format!("{who} says number {turn}. ").repeat(40);
            messages.push(serde_json::json!({"role": "user", "content": words("The user")}));
            messages.push(serde_json::json!({"role": "assistant", "content": words("The model")}));
        }
        messages.push(serde_json::json!({"role": "user", "content": "And now?"}));
        let bytes = serde_json::json!({"model": "gpt-5", "messages": messages}).to_string().into_bytes();
        for (name, _) in policies() {
            let policy = Policy::find_shipped(name).expect("a shipped policy");
            let settings =
                Settings::new(policy).with_budget(Tokens(600)).with_format(format).with_cold_cache();
            let fitted = fitted(&bytes, &Memory::default(), &settings, 0);
            let faults = checker::turn_faults(format.name(), &value(&bytes), &value(&fitted.request));
            assert!(faults.is_empty(), "{name}: {faults:?}\n{}", shown(&fitted));
        }
    }
}

#[test]
fn valid_shortened_arguments_keep_their_shape_and_recall_gives_the_call_back() {
    let shortened = Cell::new(0);
    for_each_case("arguments", |case, request| {
        let fitted = request.fit(case, case.share);
        for decision in fitted.plan.decisions() {
            let block = fitted.history.block(decision.block).expect("a block");
            let (Some(text), BlockKind::Call) = (decision.verdict.own_text(), block.kind) else {
                continue;
            };
            shortened.set(shortened.get() + 1);
            // Where room is made, arguments may go whatever the setting says of other times.
            let makes_room = case.policy.starts_with("steady");
            assert!((case.inputs > 0.0 || makes_room) && block.partner.is_some(), "{}", shown(&fitted));
            let original = fitted.history.block_text(block);
            if let Ok(before) = serde_json::from_str::<Value>(&original) {
                assert!(honest::same_shape(&before, &value(text.as_bytes())), "{original} -> {text}");
            }
            let handle = decision.handle.as_deref().expect("a handle");
            assert!(text.contains(&format!("trimtab recall {handle}")), "{text}");
            let back = trimtab_core::recall(&fitted.history, handle).expect("the call comes back");
            assert_eq!(*back, *trimtab_core::block_original(&fitted.history, block));
        }
    });
    assert!(shortened.get() > 0, "no call was shortened: the law says nothing");
}

#[test]
fn budget_the_output_counts_at_most_the_budget_or_the_floor_is_named() {
    for_each_case("budget", |case, request| {
        let fitted = request.fit(case, case.share);
        let count = request.count(&fitted.request);
        assert_eq!(count, fitted.plan.after(), "the plan counts as the counter does\n{}", shown(&fitted));
        let budget = request.total.scale(case.share);
        // The budget is scaled up by the guard and down again: one token may be lost on the way.
        let fits = count <= budget + Tokens(1);
        let named = fitted.plan.floor().is_some_and(|floor| floor.tokens == count);
        assert!(fits || named || case.policy == "none", "{}\n{}", case.policy, shown(&fitted));
    });
}

#[test]
fn smaller_nothing_grows_and_fitting_twice_changes_nothing() {
    for_each_case("smaller", |case, request| {
        let fitted_once = request.fit(case, case.share);
        assert!(fitted_once.request.len() <= request.bytes.len(), "{}", shown(&fitted_once));
        let counts = request.counter.count_request(&request.history, &mut CountMemo::default());
        for (decision, before) in fitted_once.plan.decisions().iter().zip(counts.blocks()) {
            let (_, tokens) = fitted_once.plan.tokens_of(decision.block);
            assert!(tokens <= *before, "{}", shown(&fitted_once));
        }
        let settings = request.settings(case, case.share);
        let again = fitted(&fitted_once.request, &Memory::default(), &settings, 0);
        assert_eq!(
            String::from_utf8_lossy(&again.request),
            String::from_utf8_lossy(&fitted_once.request),
            "{}\n{}\nand again\n{}",
            case.policy,
            shown(&fitted_once),
            shown(&again)
        );
    });
}

/// The share of the budget to which `steady` cuts an output at its birth.
const LARGEST_OUTPUT: f64 = 0.4;

#[test]
fn monotone_a_smaller_budget_never_shows_more() {
    for_each_case("monotone", |case, request| {
        let more = request.fit(case, case.share);
        let counts = request.counter.count_request(&request.history, &mut CountMemo::default());
        for part in [0.8, 0.4] {
            let less = request.fit(case, case.share * part);
            // An output that is too large for the smaller budget alone is cut there, and something else may stay in its room.
            let largest = |fitted: &FittedRequest| {
                let most = fitted.budget.expect("a budget").scale(LARGEST_OUTPUT);
                counts.blocks().iter().filter(|tokens| **tokens > most).count()
            };
            if case.policy.starts_with("steady") && largest(&less) > largest(&more) {
                continue;
            }
            // How much is left of a text depends on the room there is; whether it is whole, shortened or gone does not get better.
            for (more_of_it, less_of_it) in more.plan.decisions().iter().zip(less.plan.decisions()) {
                let hidden = |decision: &Decision| match decision.verdict {
                    Verdict::Keep | Verdict::Rewrite { .. } => 0,
                    Verdict::Shorten { .. } | Verdict::Point { .. } | Verdict::Trim { .. } => 1,
                    Verdict::Fold { .. } | Verdict::Drop { .. } => 2,
                };
                let good = hidden(more_of_it) <= hidden(less_of_it);
                assert!(
                    good,
                    "{}, block {}\n{}\nless\n{}",
                    case.policy,
                    more_of_it.block.0,
                    shown(&more),
                    shown(&less)
                );
            }
        }
    });
}

#[test]
fn unseen_what_the_model_has_not_seen_is_hidden_last() {
    let pressed_cases = Cell::new(0);
    for_each_case("unseen", |case, request| {
        let fitted = request.fit(case, case.share);
        let history = &fitted.history;
        let facts = facts(history);
        let answered = history.entries().iter().rfind(|entry| entry.role == Role::Assistant);
        let seen = answered.map_or(0, |entry| history.blocks_before_end(entry));
        let is_result = |block: &BlockId| {
            let fact = facts.row(*block).expect("a row");
            fact.acts_as == BlockKind::Result && !fact.instructions
        };
        let results: Vec<&Decision> =
            fitted.plan.decisions().iter().filter(|decision| is_result(&decision.block)).collect();
        let is_seen = |decision: &&&Decision| usize::try_from(decision.block.0).expect("small") < seen;
        let pressed = |decision: &&Decision| {
            decision.reason().is_some_and(|reason| {
                let shown_elsewhere =
                    matches!(reason, Reason::TooLong | Reason::Identical { .. } | Reason::Shown { .. });
                !shown_elsewhere && !matches!(reason, Reason::Rewritten { .. })
            })
        };
        if !results.iter().filter(|result| !is_seen(result)).any(pressed) {
            return;
        }
        pressed_cases.set(pressed_cases.get() + 1);
        // The latest exchange is among the last, seen or not; a block as short as a note is not worth hiding.
        let latest =
            results.iter().filter(is_seen).map(|result| facts.row(result.block).expect("a row").entry).max();
        for result in results.iter().filter(is_seen) {
            let (tokens, _) = fitted.plan.tokens_of(result.block);
            let may_stay = tokens <= Tokens(150) || facts.row(result.block).map(|fact| fact.entry) == latest;
            assert!(
                may_stay || !result.verdict.shows_all(),
                "{}, block {}\n{}",
                case.policy,
                result.block.0,
                shown(&fitted)
            );
        }
    });
    println!("unseen: something unseen had to be hidden in {} cases", pressed_cases.get());
}

#[test]
fn sticky_what_was_sent_before_is_sent_again() {
    for_each_case("sticky", |case, request| {
        let mut memory = Memory::default();
        let mut warm = WarmState::default();
        let mut earlier: Option<FittedRequest> = None;
        let settings = request.settings(case, case.share);
        let messages = request.history.messages();
        // A request is made whenever the model is to speak.
        let starts = (1..=messages.len())
            .filter(|count| messages.get(*count).is_none_or(|next| next.role == Role::Assistant));
        for (number, count) in starts.enumerate() {
            let now = i64::try_from(number).expect("few requests") * 1000;
            let bytes = request_of(&request.history, count);
            let fitted = fitted(&bytes, &memory, &settings, now);
            let warmly =
                fit_warm(bytes, &mut warm, &memory, &settings, Millis(now)).expect("fits cold, fits warm");
            assert_eq!(warmly.plan, fitted.plan, "{}: warm and cold plan the same", case.policy);
            assert_eq!(warmly.request, fitted.request, "{}: warm and cold send the same", case.policy);
            let faults = checker::new_faults(
                request.format.name(),
                &value(fitted.history.bytes()),
                &value(&fitted.request),
            );
            assert!(faults.is_empty(), "{}: {faults:?}\n{}", case.policy, shown(&fitted));
            named_break(earlier.as_ref(), &fitted, case.policy);
            sums_add_up(&fitted, case.policy);
            if let Some(earlier) = &earlier {
                same_again(earlier, &fitted, case.policy);
            }
            memory.remember_sent(&fitted.plan, Millis(now));
            earlier = Some(fitted);
        }
    });
}

/// All that is hidden has its moment, the sums of the moments are those of the blocks, and only a warm cache is paid for.
fn sums_add_up(fitted: &FittedRequest, policy: &str) {
    let plan = &fitted.plan;
    for decision in plan.decisions() {
        let has_moment = plan.moment_of(decision.block).is_some();
        assert_eq!(has_moment, decision.verdict != Verdict::Keep, "{policy}\n{}", shown(fitted));
    }
    for sum in plan.moment_sums() {
        let of_it =
            plan.decisions().iter().filter(|decision| plan.moment_of(decision.block) == Some(sum.when));
        let blocks: Vec<Tokens> = of_it.map(|decision| plan.tokens_saved(decision.block)).collect();
        let added = (blocks.len(), blocks.into_iter().sum::<Tokens>());
        assert_eq!(added, (sum.blocks, sum.saved_per_request), "{policy}\n{}", shown(fitted));
        let is_free = !matches!(sum.when, Moment::Pays | Moment::Warm);
        assert!(!is_free || sum.written_anew == Tokens::ZERO, "{policy}: {sum:?}");
        let pays = sum.expected_requests.is_none_or(|expected| sum.break_even_requests < expected);
        assert!(
            pays && (plan.cache_break().is_some() || is_free || sum.when == Moment::Pays),
            "{policy}: {sum:?}"
        );
    }
    let hidden = plan.decisions().iter().filter(|decision| decision.verdict != Verdict::Keep).count();
    let by_passes: usize = plan.passes().iter().map(|pass| pass.blocks).sum();
    assert_eq!(by_passes, hidden, "{policy}: every hidden block counts for one pass\n{}", shown(fitted));
    assert_eq!(
        plan.moment_sums().iter().map(|sum| sum.blocks).sum::<usize>(),
        hidden,
        "{policy}\n{}",
        shown(fitted)
    );
}

/// The plan names the first block that is sent otherwise than before, and nothing where none is.
fn named_break(earlier: Option<&FittedRequest>, fitted: &FittedRequest, policy: &str) {
    let differs = earlier.and_then(|earlier| {
        let pairs = earlier.plan.decisions().iter().zip(fitted.plan.decisions());
        pairs.into_iter().find(|(was, is)| !was.verdict.sends_same(&is.verdict)).map(|(was, _)| was.block)
    });
    let named = fitted.plan.cache_break().map(|broken| broken.block);
    assert_eq!(named, differs, "{policy}\n{}", shown(fitted));
}

/// A hidden block is hidden in the same words, or goes altogether; a whole block is whole again or a reason is named.
fn same_again(earlier: &FittedRequest, later: &FittedRequest, policy: &str) {
    for (was, is) in earlier.plan.decisions().iter().zip(later.plan.decisions()) {
        let pointer = |verdict: &Verdict| matches!(verdict, Verdict::Point { .. } | Verdict::Trim { .. });
        let same = match (&was.verdict, &is.verdict) {
            (was, is) if was.sends_same(is) => true,
            // What was sent, whole or rewritten, may be hidden later; it is not written in another way.
            (was, is) if was.shows_all() => {
                let late = is.reason() == Some(Reason::TooLong)
                    && matches!(policy, "ladder" | "steady" | "steady.safe" | "steady.bold");
                !late && !is.shows_all()
            }
            (was, Verdict::Drop { reason }) => {
                let late = *reason == Reason::TooLong
                    && matches!(policy, "ladder" | "steady" | "steady.safe" | "steady.bold");
                !was.is_gone() && !late
            }
            // A note that points at what is no longer shown says something else.
            (was, is) => pointer(was) && !pointer(is) && is.own_text().is_some(),
        };
        assert!(same, "{policy}, block {}\n{}\nlater\n{}", was.block.0, shown(earlier), shown(later));
    }
}

#[test]
fn honest_a_shortened_text_is_whole_lines_of_the_original_and_notes() {
    for_each_case("honest", |case, request| {
        let fitted = request.fit(case, case.share);
        for decision in fitted.plan.decisions() {
            let Some(text) = decision.verdict.own_text() else { continue };
            let block = fitted.history.block(decision.block).expect("a block");
            let original = fitted.history.block_text(block);
            let checked = match &decision.verdict {
                Verdict::Rewrite { .. } => rewritten::check(&original, text),
                _ => honest::check(&original, text),
            };
            if let Err(lie) = checked {
                panic!("{}: {lie:?} in\n{text}\n-- of --\n{original}", case.policy);
            }
        }
    });
}

#[test]
fn deterministic_twice_the_same() {
    for_each_case("deterministic", |case, request| {
        let (one, other) = (request.fit(case, case.share), request.fit(case, case.share));
        assert_eq!(one.request, other.request);
        assert_eq!(one.plan, other.plan);
    });
}
