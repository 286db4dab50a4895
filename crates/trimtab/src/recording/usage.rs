//! Usage as agents and providers report it. Takes the object with the figures; gives [`Usage`], whose kinds do not
//! overlap. Never makes up a figure: where the input is not reported, there is no usage.

use super::Usage;
use crate::json::Value;

/// The keys of all input, of what was read from and written to the cache, and of the output.
pub(super) type Keys = [&'static str; 4];

/// The keys that agents written in JavaScript use.
pub(super) const CAMEL_CASE: Keys = ["inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens"];

/// Reads a report whose input includes what was cached.
pub(super) fn cached_within(report: Value<'_>, keys: Keys) -> Option<Usage> {
    let [all, cache_read, cache_write, output] = keys;
    number(report, &[all])?;
    let [all, cache_read, cache_write, output] =
        [all, cache_read, cache_write, output].map(|key| number(report, &[key]).unwrap_or_default());
    Some(split(all, cache_read, cache_write, output))
}

/// Reads the usage that OpenAI and the many servers that speak its formats report: input includes cached tokens.
pub(super) fn openai(report: Option<Value<'_>>) -> Option<Usage> {
    let report = report?;
    let largest = |paths: &[&[&str]]| paths.iter().filter_map(|path| number(report, path)).max();
    let all = largest(&[&["prompt_tokens"], &["input_tokens"]])?;
    let cache_read = largest(&[
        &["prompt_tokens_details", "cached_tokens"],
        &["input_tokens_details", "cached_tokens"],
        &["cached_input_tokens"],
        &["cache_read_input_tokens"],
        &["prompt_cache_hit_tokens"],
        &["cache_read_tokens"],
    ]);
    let cache_write = largest(&[
        &["prompt_tokens_details", "cache_creation_tokens"],
        &["prompt_tokens_details", "cache_write_tokens"],
        &["cache_creation_input_tokens"],
        &["cache_write_tokens"],
    ]);
    let output = largest(&[&["completion_tokens"], &["output_tokens"]]);
    let [cache_read, cache_write, output] = [cache_read, cache_write, output].map(Option::unwrap_or_default);
    Some(split(all, cache_read, cache_write, output))
}

/// Reads the usage that Anthropic reports.
pub(super) fn anthropic(report: Option<Value<'_>>) -> Option<Usage> {
    let report = report?;
    let figure = |keys: &[&str]| number(report, keys).unwrap_or_default();
    report.get("input_tokens")?;
    Some(Usage {
        input: figure(&["input_tokens"]),
        cache_read: figure(&["cache_read_input_tokens"]),
        cache_write: figure(&["cache_creation_input_tokens"]),
        cache_write_1h: figure(&["cache_creation", "ephemeral_1h_input_tokens"]),
        output: figure(&["output_tokens"]),
    })
}

/// Parts all input into kinds that do not overlap.
pub(super) fn split(all: u64, cache_read: u64, cache_write: u64, output: u64) -> Usage {
    // LiteLLM counted written tokens beside the prompt at first, and within it later. With cache markers the
    // rest of the prompt is tiny, so a prompt that cannot hold both is of the first kind.
    let both = cache_read.saturating_add(cache_write);
    let input = all.checked_sub(both).unwrap_or_else(|| all.saturating_sub(cache_read));
    Usage { input, cache_read, cache_write, cache_write_1h: 0, output }
}

/// Returns the figure at a path.
pub(super) fn number(report: Value<'_>, path: &[&str]) -> Option<u64> {
    report.path(path)?.number()
}
