//! Recorded sessions driven turn by turn through the real proxy. The provider answers with what was recorded, simulates its
//! cache and judges every request; the cost must be what `replay` predicts for the same requests.
//!
//! The long part (`./scripts/test long drive PATH...`) takes any recording, named by `TRIMTAB_DRIVE`.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

#[path = "../../trimtab-core/tests/checker/mod.rs"]
#[allow(dead_code, reason = "the laws use all of it, this only a part")]
mod checker;
mod common;
#[path = "drive/play.rs"]
mod play;
#[path = "proxy/running.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod running;
#[path = "proxy/upstream.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod upstream;

use std::{borrow::Cow, fs, path::Path};

use play::{Driven, Kill, Part, at, drive};
use trimtab_core::{RecallHint, Tokens, find_model};
use trimtab_replay::{Contender, ReplayBudget, ReplayTerms, read, replay};

/// How far spending may be from what replay predicts: the provider rounds what it reports.
const NEAR: f64 = 0.01;

/// What a session may cost that was killed in the middle: a request that was not yet on disk was sent whole, and what it cost is not
/// known any more.
const AFTER_A_KILL: f64 = 1.01;

/// Drives the longest segment of a recording and holds the outcome against replay.
fn check(path: &Path, model: &str, budget: Option<u64>) {
    let bytes = fs::read(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy();
    let recording = read(&bytes).unwrap();
    let mut segment = recording.segments.into_iter().max_by_key(|segment| segment.points.len()).unwrap();
    // The proxy goes by the clock on the wall: the pauses and reports of the recording are not played.
    for (number, point) in segment.points.iter_mut().enumerate() {
        (point.at, point.usage, point.model) = (Some(at(number)), None, Some(model.to_owned()));
    }
    let priced = find_model(model).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("kept.db");
    let part = Part { segment: &segment, model: &priced, budget: budget.map(Tokens), store: &store };
    let terms = ReplayTerms {
        budgets: budget.map(|tokens| ReplayBudget::Tokens(Tokens(tokens))).into_iter().collect(),
        recall: recall_from(&store),
        ..ReplayTerms::default()
    };
    let predicted =
        &replay(&segment, &[Contender::parse("steady").unwrap()], std::slice::from_ref(&priced), &terms)[0];
    let driven = drive(&part, Kill::Never);
    let killed = drive(&part, Kill::After(segment.points.len() / 2));
    let ratio = |one: f64, of: f64| if of > 0.0 { one / of } else { 1.0 };
    let predicted_tokens = ratio(predicted.tokens.to_float(), predicted.raw_tokens.to_float());
    let predicted_dollars = ratio(predicted.dollars, predicted.raw_dollars);
    let Driven { tokens, dollars, raw_tokens, raw_dollars, .. } = driven;
    let (tokens, dollars) = (ratio(tokens, raw_tokens), ratio(dollars, raw_dollars));
    println!(
        "{name} for {model}: {} requests, {raw_tokens:.0} tokens came; sent {:.1} % of them for {:.1} % of the input cost; \
         replay predicts {:.1} % and {:.1} %; {} invalid; {:.2} ms each; cache read {:.0} %",
        driven.sent.len(),
        tokens * 100.0,
        dollars * 100.0,
        predicted_tokens * 100.0,
        predicted_dollars * 100.0,
        driven.faults.len() + killed.faults.len(),
        driven.overhead_ms,
        driven.cache_read * 100.0,
    );
    assert_eq!(driven.faults, Vec::<String>::new());
    assert_eq!(killed.faults, Vec::<String>::new());
    assert!((tokens - predicted_tokens).abs() < NEAR, "{tokens} of the tokens instead of {predicted_tokens}");
    assert!(
        (dollars - predicted_dollars).abs() < NEAR,
        "{dollars} of the cost instead of {predicted_dollars}"
    );
    assert_eq!(driven.sent.len(), killed.sent.len());
    let half = driven.sent.len() / 2;
    for (number, (one, other)) in driven.sent.iter().zip(&killed.sent).enumerate().take(half + 1) {
        assert!(one == other, "request {number} is another one, with a kill before {half}");
    }
    let same = driven.sent.iter().zip(&killed.sent).filter(|(one, other)| one == other).count();
    let dearer = ratio(killed.dollars, driven.dollars);
    println!(
        "  killed before request {half}: it begins as without the kill, {same} of {} are the same to the end, at {:.1} % of the cost",
        driven.sent.len(),
        dearer * 100.0
    );
    assert!(dearer < AFTER_A_KILL, "{dearer} of the cost after a kill");
}

/// How notes name a recall here: the program and the store have no usual place.
fn recall_from(store: &Path) -> RecallHint {
    let program = Path::new(env!("CARGO_BIN_EXE_trimtab")).canonicalize().unwrap();
    let command = format!("{} recall --store {}", program.display(), store.display());
    RecallHint::Command(Cow::Owned(command))
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recordings").join(name)
}

#[test]
fn a_session_of_claude_code_costs_what_replay_predicts() {
    check(&fixture("claude-code.jsonl"), "claude-opus-4-6", Some(32_000));
}

#[test]
fn a_session_of_codex_costs_what_replay_predicts() {
    check(&fixture("codex.jsonl"), "gpt-5", None);
}

#[test]
#[ignore = "needs recordings: TRIMTAB_DRIVE names them, as PATH or PATH=MODEL, one per line"]
fn recordings_that_are_named() {
    let named = std::env::var("TRIMTAB_DRIVE").expect("TRIMTAB_DRIVE names recordings");
    for line in named.lines().filter(|line| !line.is_empty()) {
        let (path, model) = line.split_once('=').unwrap_or((line, "claude-opus-4-6"));
        let budget = std::env::var("TRIMTAB_DRIVE_BUDGET").ok().and_then(|budget| budget.parse().ok());
        check(Path::new(path), model, budget);
    }
}
