//! OpenAI messages and usage as harnesses store them. Takes recorded messages and answers; gives the messages
//! that went over the wire and normalized usage. Never changes a member that it keeps.

use super::{Usage, draft::SegmentDraft};
use crate::json::{Object, Value};

/// Copies the members of a message that went over the wire.
pub(super) fn message(message: Value<'_>, sent: impl Fn(&str) -> bool) -> Vec<u8> {
    let members = message.members().filter_map(|(key, value)| Some((key.string()?, value)));
    let kept = members.filter(|(key, _)| sent(key));
    kept.fold(Object::new(), |copy, (key, value)| copy.raw(&key, value.raw())).end()
}

/// Writes a message that is nothing but text.
pub(super) fn text(role: &str, text: &str) -> Vec<u8> {
    Object::new().text("role", role).text("content", text).end()
}

/// Tells whether a value is a message of one of the roles that OpenAI knows.
pub(super) fn is_message(value: Value<'_>) -> bool {
    let roles = ["system", "developer", "user", "assistant", "tool", "function"];
    let spoken = value.text("role").is_some_and(|role| roles.contains(&role.as_ref()));
    spoken && (value.get("content").is_some() || value.get("tool_calls").is_some())
}

pub(super) fn is_assistant(message: Value<'_>) -> bool {
    message.get("role").is_some_and(|role| role.is("assistant"))
}

/// Notes the usage of an answer at the last point.
pub(super) fn answered(segment: &mut SegmentDraft, usage: Option<Usage>) {
    if let Some(point) = segment.points.last_mut() {
        point.usage = usage.or(point.usage);
    }
}

/// Reads the usage that OpenAI and the many servers that speak its formats report: input includes cached tokens.
pub(super) fn usage(value: Option<Value<'_>>) -> Option<Usage> {
    let value = value?;
    let number = |paths: &[&[&str]]| {
        let found = paths.iter().filter_map(|path| value.path(path)?.number());
        found.max().unwrap_or_default()
    };
    value.get("prompt_tokens").or(value.get("input_tokens"))?.number()?;
    let all = number(&[&["prompt_tokens"], &["input_tokens"]]);
    let cache_read = number(&[
        &["prompt_tokens_details", "cached_tokens"],
        &["input_tokens_details", "cached_tokens"],
        &["cache_read_input_tokens"],
        &["prompt_cache_hit_tokens"],
        &["cache_read_tokens"],
    ]);
    let cache_write = number(&[
        &["prompt_tokens_details", "cache_creation_tokens"],
        &["prompt_tokens_details", "cache_write_tokens"],
        &["cache_creation_input_tokens"],
        &["cache_write_tokens"],
    ]);
    Some(split(all, cache_read, cache_write, number(&[&["completion_tokens"], &["output_tokens"]])))
}

/// Parts all input into kinds that do not overlap.
pub(super) fn split(all: u64, cache_read: u64, cache_write: u64, output: u64) -> Usage {
    // LiteLLM counted written tokens beside the prompt at first, and within it later. With cache markers the
    // rest of the prompt is tiny, so a prompt that cannot hold both is of the first kind.
    let both = cache_read.saturating_add(cache_write);
    let input = all.checked_sub(both).unwrap_or_else(|| all.saturating_sub(cache_read));
    Usage { input, cache_read, cache_write, cache_write_1h: 0, output }
}
