//! The laws of folding: a request with a part of it folded is valid in its format wherever it may be cut, holds every limit that
//! the user set, keeps to its budget, and is left alone when it is folded again. The protocol is judged by the checker, which
//! knows nothing of the library.

mod rows;

use proptest::{
    prelude::{ProptestConfig, Strategy, prop, prop_oneof},
    test_runner::TestRunner,
};
use serde_json::Value;
use trimtab_core::{
    CountMemo, Counter, Facts, Format, History, Tokens, facts,
    facts::find_constraints,
    files,
    summary::{fold_range, fold_request_bytes, folded_text, legal_cuts},
};

use crate::{
    checker,
    conversations::{Conversation, Style, Turn, conversation, long_conversation, style},
    read,
};

/// What a folded message may count here: little, so that there is something to leave out.
const BUDGET: Tokens = Tokens(900);

/// A conversation in which the user sets limits now and then.
fn talk() -> impl Strategy<Value = Conversation> {
    let limit = prop_oneof![
        "You must not touch [a-z]{3,8}\\.",
        "Never use [a-z]{3,8} here",
        "Only edit [a-z]{3,8}\\.rs\\."
    ];
    let limits = prop::collection::vec(prop::option::of(limit), 12);
    (prop_oneof![4 => long_conversation().boxed(), 1 => conversation().boxed()], limits).prop_map(
        |(mut talk, limits)| {
            let humans = talk.turns.iter_mut().filter_map(|turn| match turn {
                Turn::Human { text, .. } => Some(text),
                Turn::Answer { .. } | Turn::System(_) | Turn::Strange(_) => None,
            });
            for (text, limit) in humans.zip(limits) {
                text.extend(limit.map(|limit| format!("\n{limit}")));
            }
            talk
        },
    )
}

fn for_each_talk(law: &str, check: impl Fn(&History)) {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    let cases: u32 =
        number("TRIMTAB_FIT_CASES").or(number("TRIMTAB_CASES").map(|cases: u32| cases / 10)).unwrap_or(25);
    for format in Format::ALL {
        let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
        TestRunner::new(config)
            .run(&(talk(), style()), |(talk, style): (Conversation, Style)| {
                let (request, _) = talk.write(format, style);
                check(&read(&request, format));
                Ok(())
            })
            .unwrap_or_else(|failure| panic!("{law}, {format}: {failure}"));
        println!("{law}: {format}: {cases} cases");
    }
}

/// Every cut of a conversation with the request that it makes, without a model.
fn folds(history: &History) -> Vec<(usize, Vec<u8>)> {
    let facts = facts(history);
    let cuts = legal_cuts(history, &facts);
    cuts.into_iter().map(|cut| (cut, fold_at(history, &facts, cut, None))).collect()
}

fn fold_at(history: &History, facts: &Facts, cut: usize, summary: Option<&str>) -> Vec<u8> {
    let range = trimtab_core::summary::FoldRange::new(history, facts, cut).expect("a legal cut");
    let counter = Counter::for_model(&history.model().unwrap_or_default());
    let folded = folded_text(history, facts, &files(history, facts), &range, summary, BUDGET, counter);
    let least = Tokens(200);
    assert!(folded.tokens <= BUDGET + least, "{} tokens: {}", folded.tokens, folded.text);
    fold_request_bytes(history, &range, &folded.text)
}

fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}

#[test]
fn valid_a_folded_request_breaks_no_rule_that_its_input_kept() {
    for_each_talk("folding is valid", |history| {
        let input = value(history.bytes());
        for (cut, request) in folds(history) {
            let mut faults = checker::new_faults(history.format().name(), &input, &value(&request));
            faults.extend(checker::turn_faults(history.format().name(), &input, &value(&request)));
            assert!(
                faults.is_empty(),
                "cut at {cut}: {faults:?}\n{}\n->\n{}",
                String::from_utf8_lossy(history.bytes()),
                String::from_utf8_lossy(&request)
            );
        }
    });
}

#[test]
fn every_limit_that_the_user_set_is_still_there() {
    for_each_talk("limits stay", |history| {
        let facts = facts(history);
        let said: Vec<String> = limits(history, &facts);
        for (cut, request) in folds(history) {
            let folded = read(std::str::from_utf8(&request).expect("UTF-8"), history.format());
            let all: String =
                folded.blocks().iter().map(|block| folded.block_text(block).into_owned() + "\n").collect();
            for limit in &said {
                assert!(all.contains(limit.as_str()), "cut at {cut}: {limit:?} is gone from\n{all}");
            }
        }
    });
}

fn limits(history: &History, facts: &Facts) -> Vec<String> {
    let persons =
        history.blocks().iter().zip(facts.rows()).filter(|(_, row)| row.voice == Some(facts::Voice::Person));
    persons
        .flat_map(|(block, _)| {
            let text = history.block_text(block).into_owned();
            find_constraints(&text).into_iter().map(|range| text[range].to_owned()).collect::<Vec<String>>()
        })
        .filter(|limit| {
            limit.starts_with("You must") || limit.starts_with("Never") || limit.starts_with("Only")
        })
        .collect()
}

#[test]
fn folding_again_changes_nothing() {
    for_each_talk("folding is idempotent", |history| {
        let once = fold(history, Tokens(300));
        let again = fold(&read(std::str::from_utf8(&once).expect("UTF-8"), history.format()), Tokens(300));
        assert_eq!(String::from_utf8_lossy(&once), String::from_utf8_lossy(&again));
    });
}

#[test]
fn deterministic_folding_twice_gives_the_same() {
    for_each_talk("folding is deterministic", |history| assert_eq!(folds(history), folds(history)));
}

/// Folds all but so many tokens, as a program would that only has the request.
fn fold(history: &History, tail: Tokens) -> Vec<u8> {
    let facts = facts(history);
    let counter = Counter::for_model(&history.model().unwrap_or_default());
    let counts = counter.count_request(history, &mut CountMemo::default());
    match fold_range(history, &facts, &counts, tail) {
        Some(range) => fold_at(history, &facts, range.messages(), None),
        None => history.bytes().to_vec(),
    }
}
