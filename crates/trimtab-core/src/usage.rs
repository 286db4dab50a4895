//! Usage as agents and providers report it: the one place that knows their fields. Takes a report, or an answer that holds
//! one; gives [`Usage`], whose kinds do not overlap. The recordings, the proxy, summaries and the Python package all read here.
//! Never makes up a figure: where no input is reported, there is no usage.

use serde::Serialize;

use crate::{
    history::Format,
    json::{Value, scan},
    units::Millis,
};

/// What a provider reported for one request, in tokens. The four kinds do not overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Usage {
    /// Input that was neither read from nor written to the cache.
    pub input: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the cache.
    pub cache_write: u64,
    /// The part of `cache_write` that was written for an hour.
    pub cache_write_1h: u64,
    /// Output, reasoning included.
    pub output: u64,
}

/// A request that was made: with the first `messages` messages of its segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// How many messages the request carried.
    pub messages: usize,
    /// When it was sent, where the recording tells.
    pub at: Option<Millis>,
    /// The model that answered, where the recording tells.
    pub model: Option<String>,
    /// What the provider reported.
    pub usage: Option<Usage>,
}

impl Usage {
    /// Returns all input tokens, cached or not.
    pub fn total_input(self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }

    /// Returns both together.
    #[must_use]
    pub fn plus(self, other: Usage) -> Usage {
        Usage {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            cache_write_1h: self.cache_write_1h.saturating_add(other.cache_write_1h),
            output: self.output.saturating_add(other.output),
        }
    }
}

impl Usage {
    /// Reads what an answer reports to have used: a whole answer, an event of a stream, or a list of answers, whose
    /// last report counts.
    ///
    /// A stream of Anthropic's reports in pieces, each with some of the figures: see [`Usage::or_larger`].
    ///
    /// ```
    /// use trimtab_core::{Format, Usage};
    /// let answer = br#"{"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_cache_hit_tokens":64}}"#;
    /// let usage = Usage::of_answer(Format::Chat, answer).ok_or("no usage")?;
    /// assert_eq!((usage.input, usage.cache_read, usage.output), (36, 64, 7));
    /// # Ok::<(), &str>(())
    /// ```
    pub fn of_answer(format: Format, answer: &[u8]) -> Option<Usage> {
        let tape = scan(answer).ok()?;
        let root = tape.root(answer)?;
        if !root.is_array() {
            return in_answer(format, root);
        }
        // Gemini streams a list where it does not send events.
        root.items().filter_map(|part| in_answer(format, part)).last()
    }

    /// Reads a report whose provider is not known: that of Anthropic, of OpenAI and the servers like it, of Gemini (in
    /// either spelling) or of `LangChain`.
    pub fn of_report(report: &[u8]) -> Option<Usage> {
        let tape = scan(report).ok()?;
        let report = tape.root(report)?;
        let has = |key: &str| report.get(key).and_then(Value::number).is_some();
        if has("promptTokenCount") || has("prompt_token_count") {
            return parse_gemini(report);
        }
        // Anthropic alone counts what is cached beside `input_tokens`.
        let beside = has("cache_read_input_tokens") || has("cache_creation_input_tokens");
        if has("input_tokens") && !has("prompt_tokens") && beside {
            return parse_anthropic(Some(report));
        }
        parse_openai(Some(report))
    }

    /// Takes the larger of every figure: a report that comes in pieces repeats the sums so far.
    #[must_use]
    pub fn or_larger(self, other: Usage) -> Usage {
        Usage {
            input: self.input.max(other.input),
            cache_read: self.cache_read.max(other.cache_read),
            cache_write: self.cache_write.max(other.cache_write),
            cache_write_1h: self.cache_write_1h.max(other.cache_write_1h),
            output: self.output.max(other.output),
        }
    }
}

/// Reads the usage in an answer, or in an event of a stream.
pub(crate) fn in_answer(format: Format, answer: Value<'_>) -> Option<Usage> {
    let report = |paths: [&[&str]; 2]| {
        paths.iter().find_map(|path| answer.path(path).filter(|report| report.is_object()))
    };
    match format {
        Format::Anthropic => report([&["usage"], &["message", "usage"]]).map(anthropic_piece),
        Format::Chat => parse_openai(report([&["usage"], &["x_groq", "usage"]])),
        Format::Responses => parse_openai(report([&["usage"], &["response", "usage"]])),
        Format::Gemini => parse_gemini(report([&["usageMetadata"], &["usage_metadata"]])?),
    }
}

/// The keys of all input, of what was read from and written to the cache, and of the output.
pub type UsageKeys = [&'static str; 4];

/// The keys that agents written in JavaScript use.
pub const CAMEL_CASE: UsageKeys = ["inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens"];

/// Reads a report whose input includes what was cached.
pub fn cached_within(report: Value<'_>, keys: UsageKeys) -> Option<Usage> {
    let [all, cache_read, cache_write, output] = keys;
    number_at(report, &[all])?;
    let [all, cache_read, cache_write, output] =
        [all, cache_read, cache_write, output].map(|key| number_at(report, &[key]).unwrap_or_default());
    Some(split_input(all, cache_read, cache_write, output))
}

/// Reads the usage that OpenAI and the many servers that speak its formats report: input includes cached tokens.
pub fn parse_openai(report: Option<Value<'_>>) -> Option<Usage> {
    let report = report?;
    let largest = |paths: &[&[&str]]| paths.iter().filter_map(|path| number_at(report, path)).max();
    let all = largest(&[&["prompt_tokens"], &["input_tokens"]])?;
    let cache_read = largest(&[
        &["prompt_tokens_details", "cached_tokens"],
        &["input_tokens_details", "cached_tokens"],
        &["cached_input_tokens"],
        &["cache_read_input_tokens"],
        &["prompt_cache_hit_tokens"],
        &["cache_read_tokens"],
        &["input_token_details", "cache_read"],
    ]);
    let cache_write = largest(&[
        &["prompt_tokens_details", "cache_creation_tokens"],
        &["prompt_tokens_details", "cache_write_tokens"],
        &["cache_creation_input_tokens"],
        &["cache_write_tokens"],
        &["input_token_details", "cache_creation"],
    ]);
    let output = largest(&[&["completion_tokens"], &["output_tokens"]]);
    let [cache_read, cache_write, output] = [cache_read, cache_write, output].map(Option::unwrap_or_default);
    Some(split_input(all, cache_read, cache_write, output))
}

/// Reads the usage that Anthropic reports.
pub fn parse_anthropic(report: Option<Value<'_>>) -> Option<Usage> {
    let report = report?;
    number_at(report, &["input_tokens"])?;
    Some(anthropic_piece(report))
}

/// Reads a piece of such a report, in which some figures may be missing.
fn anthropic_piece(report: Value<'_>) -> Usage {
    let figure = |keys: &[&str]| number_at(report, keys).unwrap_or_default();
    Usage {
        input: figure(&["input_tokens"]),
        cache_read: figure(&["cache_read_input_tokens"]),
        cache_write: figure(&["cache_creation_input_tokens"]),
        cache_write_1h: figure(&["cache_creation", "ephemeral_1h_input_tokens"]),
        output: figure(&["output_tokens"]),
    }
}

/// Reads the usage that Gemini reports: the prompt includes what was cached, not what its own tools read in; thoughts
/// are counted beside what was said.
fn parse_gemini(report: Value<'_>) -> Option<Usage> {
    let figure =
        |camel: &str, snake: &str| number_at(report, &[camel]).or_else(|| number_at(report, &[snake]));
    let prompt = figure("promptTokenCount", "prompt_token_count")?;
    let tools = figure("toolUsePromptTokenCount", "tool_use_prompt_token_count").unwrap_or_default();
    let cached = figure("cachedContentTokenCount", "cached_content_token_count").unwrap_or_default();
    let said = figure("candidatesTokenCount", "candidates_token_count").unwrap_or_default();
    let thought = figure("thoughtsTokenCount", "thoughts_token_count").unwrap_or_default();
    Some(split_input(prompt + tools, cached, 0, said + thought))
}

/// Parts all input into kinds that do not overlap.
pub fn split_input(all: u64, cache_read: u64, cache_write: u64, output: u64) -> Usage {
    // LiteLLM counted written tokens beside the prompt at first, and within it later. With cache markers the
    // rest of the prompt is tiny, so a prompt that cannot hold both is of the first kind.
    let both = cache_read.saturating_add(cache_write);
    let input = all.checked_sub(both).unwrap_or_else(|| all.saturating_sub(cache_read));
    Usage { input, cache_read, cache_write, cache_write_1h: 0, output }
}

/// The largest figure that is believed, in tokens: far more than any request has, and sums of it stay within their type.
const MOST: u64 = 1 << 40;

/// Returns the figure at a path; nothing where no request could have so many tokens.
pub fn number_at(report: Value<'_>, path: &[&str]) -> Option<u64> {
    report.path(path)?.number().filter(|figure| *figure <= MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares input, cache read, cache write, the part of it for an hour, and output.
    fn check(found: Option<Usage>, expected: Option<[u64; 5]>, what: &str) {
        let kinds = |usage: Usage| {
            [usage.input, usage.cache_read, usage.cache_write, usage.cache_write_1h, usage.output]
        };
        assert_eq!(found.map(kinds), expected, "{what}");
    }

    #[test]
    fn a_figure_that_no_request_can_have_is_not_believed() {
        let largest = u64::MAX;
        let answers = [
            (
                Format::Anthropic,
                format!(
                    r#"{{"usage":{{"input_tokens":{largest},"cache_read_input_tokens":{largest},"output_tokens":7}}}}"#
                ),
                Some([0, 0, 0, 0, 7]),
            ),
            (
                Format::Gemini,
                format!(
                    r#"{{"usageMetadata":{{"promptTokenCount":9,"toolUsePromptTokenCount":{largest},"candidatesTokenCount":7}}}}"#
                ),
                Some([9, 0, 0, 0, 7]),
            ),
            (
                Format::Chat,
                format!(r#"{{"usage":{{"prompt_tokens":{largest},"completion_tokens":7}}}}"#),
                None,
            ),
        ];
        for (format, answer, expected) in answers {
            check(Usage::of_answer(format, answer.as_bytes()), expected, &answer);
        }
    }

    #[test]
    fn every_provider_is_read_alike_from_its_answer_and_from_its_bare_report() {
        let reports: [(Format, &str, &str, [u64; 5]); 11] = [
            (
                Format::Anthropic,
                "usage",
                r#"{"input_tokens":3,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,
                "cache_creation":{"ephemeral_1h_input_tokens":8},"output_tokens":5}"#,
                [3, 100, 20, 8, 5],
            ),
            (Format::Anthropic, "usage", r#"{"input_tokens":9,"output_tokens":2}"#, [9, 0, 0, 0, 2]),
            (
                Format::Chat,
                "usage",
                r#"{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":64}}"#,
                [36, 64, 0, 0, 7],
            ),
            (
                Format::Chat,
                "usage",
                r#"{"prompt_tokens":100,"completion_tokens":7,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}"#,
                [36, 64, 0, 0, 7],
            ),
            (
                Format::Chat,
                "usage",
                r#"{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60,"cache_creation_tokens":30}}"#,
                [10, 60, 30, 0, 7],
            ),
            // Written tokens that are counted beside the prompt.
            (
                Format::Chat,
                "usage",
                r#"{"prompt_tokens":100,"completion_tokens":7,"cache_read_input_tokens":90,"cache_creation_input_tokens":50}"#,
                [10, 90, 50, 0, 7],
            ),
            (Format::Chat, "usage", r#"{"prompt_tokens":100,"completion_tokens":7}"#, [100, 0, 0, 0, 7]),
            (
                Format::Responses,
                "usage",
                r#"{"input_tokens":50,"output_tokens":5,"input_tokens_details":{"cached_tokens":40}}"#,
                [10, 40, 0, 0, 5],
            ),
            (
                Format::Gemini,
                "usageMetadata",
                r#"{"promptTokenCount":30,"cachedContentTokenCount":10,"candidatesTokenCount":4,"thoughtsTokenCount":6,
                "toolUsePromptTokenCount":5}"#,
                [25, 10, 0, 0, 10],
            ),
            (
                Format::Gemini,
                "usage_metadata",
                r#"{"prompt_token_count":30,"cached_content_token_count":10,"candidates_token_count":4}"#,
                [20, 10, 0, 0, 4],
            ),
            (
                Format::Responses,
                "usage",
                r#"{"input_tokens":50,"output_tokens":5,"input_token_details":{"cache_read":30,"cache_creation":10}}"#,
                [10, 30, 10, 0, 5],
            ),
        ];
        for (format, key, report, expected) in reports {
            let answer = format!(r#"{{"{key}":{report}}}"#);
            check(Usage::of_answer(format, answer.as_bytes()), Some(expected), &answer);
            check(Usage::of_report(report.as_bytes()), Some(expected), report);
        }
    }

    #[test]
    fn what_reports_no_input_is_no_usage() {
        for report in
            ["{}", "null", "7", "[]", r#"{"prompt_tokens":null}"#, r#"{"total_tokens":9}"#, "not JSON"]
        {
            check(Usage::of_report(report.as_bytes()), None, report);
        }
        for format in Format::ALL {
            check(Usage::of_answer(format, br#"{"usage":null,"usageMetadata":7}"#), None, format.name());
        }
    }

    #[test]
    fn the_pieces_of_a_stream_add_up() {
        let start = br#"{"type":"message_start","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":9,"output_tokens":1}}}"#;
        let end = br#"{"type":"message_delta","usage":{"output_tokens":45}}"#;
        let pieces = [start.as_slice(), end].map(|piece| Usage::of_answer(Format::Anthropic, piece));
        let sum = pieces.into_iter().flatten().reduce(Usage::or_larger);
        check(sum, Some([3, 9, 0, 0, 45]), "a stream");
        let list =
            br#"[{"usageMetadata":{"promptTokenCount":30,"candidatesTokenCount":1}},{"candidates":[]}]"#;
        check(Usage::of_answer(Format::Gemini, list), Some([30, 0, 0, 0, 1]), "a list");
    }
}
