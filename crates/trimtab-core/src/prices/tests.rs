//! The shipped table, names as people write them, budgets.

use super::{Model, PriceCliff, Prices, find_model, models, prices_date, table_rows};
use crate::{units::Tokens, usage::Usage};

#[track_caller]
fn check(written: &[&str], name: &str) {
    for written in written {
        assert_eq!(find_model(written).map(|model| model.name).as_deref(), Ok(name), "{written}");
    }
}

#[test]
fn every_shipped_row_is_read() {
    assert_eq!(models().len(), table_rows().count());
    assert!((80..=200).contains(&models().len()));
    assert_eq!(prices_date().len(), 10);
}

#[test]
fn every_shipped_row_makes_sense() {
    for Model { name, window, max_input, max_output, prices, cliff, .. } in models() {
        assert!(Tokens(4096) < max_input && max_input <= window && window <= Tokens(10_000_000), "{name}");
        assert!(max_output.is_none_or(|output| output <= window), "{name}");
        assert!(0.0 < prices.cache_read && prices.cache_read <= prices.input, "{name}");
        assert!(prices.input <= prices.cache_write && prices.cache_write <= 1.5 * prices.input, "{name}");
        assert!(prices.input <= prices.output, "{name}");
        assert!(prices.cache_write_1h.is_none_or(|hour| hour >= prices.cache_write), "{name}");
        assert!(cliff.is_none_or(|cliff| cliff.above < window && cliff.input_factor > 1.0), "{name}");
    }
}

#[test]
fn names_are_listed_once() {
    let mut names: Vec<_> = models().into_iter().map(|model| super::bare_model_name(&model.name)).collect();
    names.sort();
    let listed = names.len();
    names.dedup();
    assert_eq!(names.len(), listed);
}

#[test]
fn models_are_found_as_people_write_them() {
    check(
        &[
            "claude-sonnet-4-5",
            "claude-sonnet-4-5-20250929",
            "anthropic/claude-sonnet-4.5",
            "Claude-Sonnet-4.5:thinking",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5@20250929",
        ],
        "claude-sonnet-4-5",
    );
    check(&["claude-opus-4-6[1m]", "claude-opus-4.6"], "claude-opus-4-6");
    check(&["gpt-4o-2024-08-06", "openai/gpt-4o"], "gpt-4o");
    check(&["gpt-5-high", "azure/gpt-5-2025-08-07"], "gpt-5");
    check(&["models/gemini-2.5-pro", "gemini-2.5-pro-preview"], "gemini-2.5-pro");
    check(&["gemini-3.1-pro"], "gemini-3.1-pro-preview");
    check(&["kimi-k2-thinking"], "kimi-k2-thinking");
    check(&["z-ai/GLM-4.6"], "glm-4.6");
}

#[test]
fn a_later_version_is_not_taken_for_an_earlier_one() {
    assert!(find_model("gpt-5.99").is_err());
    assert!(find_model("claude-opus-9").is_err());
}

#[test]
fn an_unknown_name_brings_the_nearest() {
    let unknown = find_model("cluade-opus-4-6").unwrap_err();
    assert_eq!(unknown.nearest.first().map(String::as_str), Some("claude-opus-4-6"));
    assert_eq!(unknown.nearest.len(), 3);
    assert!(unknown.to_string().contains("did you mean claude-opus-4-6"));
    assert_eq!(find_model("").unwrap_err().nearest.len(), 3);
}

#[test]
fn a_budget_is_the_window_less_the_reply() {
    let claude = find_model("claude-sonnet-4-5").unwrap();
    assert_eq!(claude.request_budget(Tokens::ZERO), Tokens(200_000 - 8192));
    assert_eq!(claude.request_budget(Tokens(64_000)), Tokens(136_000));
    assert_eq!(claude.request_budget(Tokens(900_000)), Tokens::ZERO);
}

#[test]
fn a_budget_stays_within_what_the_input_may_fill() {
    let gpt = find_model("gpt-5").unwrap();
    assert_eq!((gpt.window, gpt.request_budget(Tokens::ZERO)), (Tokens(400_000), Tokens(272_000)));
}

#[test]
fn a_request_beyond_the_cliff_is_dearer_as_a_whole() {
    let prices =
        Prices { input: 10.0, cache_read: 1.0, cache_write: 12.5, cache_write_1h: Some(20.0), output: 50.0 };
    let cliff = Some(PriceCliff { above: Tokens(200_000), input_factor: 2.0, output_factor: 3.0 });
    let model = Model { prices, cliff, ..find_model("claude-opus-4-6").unwrap() };
    let price = |usage: Usage, dollars: f64| {
        let found = model.cost(usage);
        assert!((found - dollars).abs() < 1e-9, "{usage:?} costs {found} instead of {dollars}");
    };
    let at = Usage {
        input: 100_000,
        cache_read: 50_000,
        cache_write: 50_000,
        cache_write_1h: 20_000,
        output: 10_000,
    };
    price(at, 1.0 + 0.05 + 0.375 + 0.4 + 0.5);
    price(Usage { input: 100_001, ..at }, 2.0 * (1.00001 + 0.05 + 0.375 + 0.4) + 3.0 * 0.5);
    // A report whose part is larger than the whole is not taken at its word.
    price(Usage { cache_write: 10, cache_write_1h: 1_000_000, ..Usage::default() }, 0.0002);
}
