//! Scores that nobody measured, for tests of tables and pages. Takes a number of sessions; gives plausible figures, the
//! same every time. Only tests are built with it.

use std::sync::Arc;

use trimtab_core::{Tokens, find_model};
use trimtab_replay::{MissReport, NeededShare, Score, SessionScores, pool_sessions};

use super::{Entrant, ReplayResults};

/// Name, share of tokens hidden, share of uses missed, share of requests that break the cache.
const CONTENDERS: &[(&str, f64, f64, f64)] = &[
    ("none", 0.0, 0.0, 0.0),
    ("recent", 0.16, 0.06, 0.6),
    ("retention", 0.08, 0.02, 0.25),
    ("per-tool", 0.22, 0.03, 0.2),
    ("supersede", 0.05, 0.001, 0.02),
    ("age", 0.02, 0.004, 0.01),
    ("priority", 0.03, 0.003, 0.01),
    ("ladder", 0.12, 0.05, 0.04),
    ("steady", 0.24, 0.0008, 0.01),
    ("peer:clear-tool-uses(100000)", 0.24, 0.09, 0.03),
    ("peer:mask(20)", 0.22, 0.04, 0.55),
    ("peer:mask(10)", 0.32, 0.12, 0.65),
    ("peer:mask(5)", 0.38, 0.25, 0.7),
    ("peer:opencode-prune", 0.13, 0.054, 0.02),
    ("peer:ingest-cap(2000)", 0.21, 0.19, 0.0),
    ("peer:ingest-cap(8000)", 0.07, 0.047, 0.0),
    ("peer:sliding-window(0.5)", 0.3, 0.2, 0.5),
    ("oracle:block", 0.34, 0.0, 0.0),
    ("oracle:line", 0.42, 0.0, 0.0),
];

/// Models whose prices are paid: rewriting a cached token costs them 11.5, 24 and 49 times what reading it does.
const MODELS: [&str; 3] = ["claude-opus-5", "claude-opus-5-5", "claude-fable-5-1"];

const NASTY: &str = "<img src=x onerror=\"document.title='broken in'\">";

/// Makes up what came of so many sessions.
pub(super) fn make_up_results(sessions: u32) -> ReplayResults {
    let models = MODELS.map(|name| find_model(name).expect(name)).to_vec();
    let entrant = |(name, ..): &(&str, f64, f64, f64)| Entrant {
        name: (*name).to_owned(),
        family: match name.split_once(':') {
            Some(("peer", _)) => "peer",
            Some(_) => "oracle",
            None => "policy",
        },
        about: format!("What {name} does, in a sentence."),
    };
    let made: Vec<SessionScores> = (0..sessions).map(|number| make_up_session(number, &models)).collect();
    let rows = pool_sessions(&made, 200);
    ReplayResults {
        groups: Vec::new(),
        entrants: CONTENDERS.iter().map(entrant).collect(),
        models,
        budgets: vec![None],
        sessions: made,
        rows,
        unusable: 2,
        prices: String::new(),
    }
}

fn make_up_session(number: u32, models: &[trimtab_core::Model]) -> SessionScores {
    let name = match number % 7 {
        3 => format!("recordings/{NASTY}/{number}.jsonl"),
        _ => format!("recordings/project-{}/session-{number:03}.jsonl", number % 5),
    };
    let scores =
        CONTENDERS.iter().flat_map(|of| models.iter().map(move |model| make_up_score(number, of, model)));
    SessionScores { name, scores: scores.collect(), ..SessionScores::default() }
}

fn make_up_score(
    number: u32,
    (name, hidden, missed, breaks): &(&str, f64, f64, f64),
    model: &trimtab_core::Model,
) -> Score {
    let chance = |salt: u32| f64::from(number.wrapping_mul(2_654_435_761).rotate_left(salt) % 1000) / 1000.0;
    let requests = 30 + number * 37 % 170;
    let swing = 0.4 + 1.2 * chance(3);
    let raw_sizes: Vec<u64> = (0..requests).map(|request| 18_000 + u64::from(request) * 700).collect();
    let late = |index: usize| if index > 12 { 1.0 - hidden * swing } else { 1.0 };
    let sizes: Vec<u64> =
        raw_sizes.iter().enumerate().map(|(index, size)| Tokens(*size).scale(late(index)).0).collect();
    let (tokens, raw_tokens) = (sizes.iter().sum::<u64>(), raw_sizes.iter().sum::<u64>());
    let dollars = |tokens: u64| {
        Tokens(tokens).0.to_string().parse::<f64>().expect("a number") * model.prices.cache_read / 1e6
    };
    let rewriting = breaks * swing * (model.prices.cache_write / model.prices.cache_read).sqrt() * 0.25;
    let share =
        |of: u64, missed: f64| NeededShare { held: of - Tokens(of).scale((missed * swing).min(1.0)).0, of };
    let anchors = share(u64::from(20 + number % 40), *missed);
    let miss = |index: u32| MissReport {
        metric: if index.is_multiple_of(2) { "edit_anchors" } else { "references" },
        block: 40 + index,
        step: 12 + index,
        about: if index.is_multiple_of(3) {
            NASTY.to_owned()
        } else {
            "src/ledger/money.rs:10-80".to_owned()
        },
        used_in: 90 + index,
        used_at_step: 31 + index,
        what: format!("pub fn round(cents: i64) -> i64 {{ </script>{NASTY} {index}"),
        recoverable: !name.starts_with("peer:"),
    };
    let first = *model.name == *MODELS[0];
    let misses: Arc<[MissReport]> = (0..if first && *missed > 0.0 { 4 } else { 0 }).map(miss).collect();
    Score {
        policy: (*name).into(),
        model: model.name.as_str().into(),
        requests: u64::from(requests),
        budget: None,
        unit: trimtab_core::prices::CostUnit::Dollars,
        hour_requests: 0,
        tokens: Tokens(tokens),
        raw_tokens: Tokens(raw_tokens),
        dollars: dollars(tokens) * (1.0 + rewriting),
        raw_dollars: dollars(raw_tokens),
        pings: 0,
        ping_dollars: 0.0,
        refetch_dollars: dollars(raw_tokens) * missed * 0.3,
        cache_breaks: Tokens(u64::from(requests)).scale(*breaks).0,
        cuts: Tokens(u64::from(requests)).scale(*breaks * 1.2).0,
        rewritten: Tokens(raw_tokens / 20).scale(*breaks),
        prefilled: Tokens(raw_tokens / 12).scale(1.0 + breaks),
        raw_prefilled: Tokens(raw_tokens / 12),
        refetches: Tokens(10).scale(*missed * swing * 3.0).0,
        unmarked_stale: Tokens(raw_tokens / 40).scale(1.0 - hidden),
        edit_anchors: anchors,
        all_anchors: anchors,
        anchor_lines: anchors,
        references: share(90, missed * 0.8),
        strict_references: share(70, missed * 0.9),
        copied_lines: share(200, missed * 0.7),
        errors: share(40, missed * 0.4),
        instructions: share(400, if *name == "peer:sliding-window(0.5)" { 0.02 } else { 0.0 }),
        invalid_requests: u64::from(*name == "peer:sliding-window(0.5)" && number.is_multiple_of(9)) * 3,
        over_budget_requests: 0,
        plan_us: if name.contains(':') { Vec::new() } else { vec![180 + number % 90; 30] },
        sizes: if first { sizes.into() } else { [].into() },
        raw_sizes: if first { raw_sizes.into() } else { [].into() },
        missed: u64::try_from(misses.len()).expect("a count"),
        misses,
    }
}
