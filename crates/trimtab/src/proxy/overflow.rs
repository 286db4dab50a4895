//! Recognizes the answer that a request is too long. Takes status and body of an error; gives by how much it was too long,
//! as far as the provider says. Never takes another error for this one: what is wrong otherwise goes to the client.

use std::sync::LazyLock;

use hyper::StatusCode;
use regex::Regex;

/// How a provider said that a request is too long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TooLong {
    /// What share of the request would have been allowed, where the provider says.
    pub(crate) allowed: Option<f64>,
}

/// Sentences with figures: what was sent, what is allowed, and the output that was asked for beside it.
const WITH_FIGURES: &[&str] = &[
    // Anthropic.
    r"prompt is too long: (?<sent>\d+) tokens > (?<limit>\d+) maximum",
    r"exceed context limit: (?<sent>\d+) \+ (?<output>\d+) > (?<limit>\d+)",
    // OpenAI, DeepSeek, vLLM, OpenRouter and others.
    r"maximum context length is (?<limit>\d+) tokens.{0,200}?\((?<sent>\d+) (?:in the messages|of text input|in your prompt)[^)]*?(?<output>\d+) (?:in the completion|in the output|for the completion)",
    r"maximum context length is (?<limit>\d+) tokens.{0,120}?(?:resulted in|requested(?: about)?) (?<sent>\d+) tokens",
    // xAI, Mistral.
    r"maximum prompt length is (?<limit>\d+) but the request contains (?<sent>\d+) tokens",
    r"Prompt contains (?<sent>\d+) tokens.{0,120}?(?<limit>\d+) maximum context length",
    // Gemini.
    r"input token count \((?<sent>\d+)\) exceeds the maximum number of tokens allowed \((?<limit>\d+)\)",
    // llama.cpp.
    r"request \((?<sent>\d+) tokens\) exceeds the available context size \((?<limit>\d+) tokens\)",
];

/// What such answers say in any case.
const WITHOUT_FIGURES: &[&str] = &[
    "context_length_exceeded",
    "prompt is too long",
    "request_too_large",
    "exceed_context_size_error",
    "exceeds the available context size",
    "exceeds the context window",
    "exceed context limit",
    "maximum context length",
    "maximum prompt length",
    "exceeds the maximum number of tokens",
    "Input is too long for requested model",
    "reduce the length of the messages",
    "too large for model with",
];

static SENTENCES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    WITH_FIGURES.iter().filter_map(|sentence| Regex::new(&format!("(?s){sentence}")).ok()).collect()
});

/// Tells whether an answer could be of this kind, by its status alone.
pub(crate) fn may_be(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY
    )
}

/// Returns what an error says about the length of the request; nothing where it is about something else.
pub(crate) fn too_long(status: StatusCode, body: &str) -> Option<TooLong> {
    if !may_be(status) {
        return None;
    }
    if let Some(found) = SENTENCES.iter().find_map(|sentence| sentence.captures(body)) {
        let figure = |name: &str| found.name(name).and_then(|figure| figure.as_str().parse::<f64>().ok());
        let output = figure("output").unwrap_or_default();
        let allowed = figure("limit").zip(figure("sent")).map(|(limit, sent)| (limit - output) / sent);
        return Some(TooLong { allowed: allowed.filter(|share| *share > 0.0 && *share < 1.0) });
    }
    // The status alone proves nothing: gateways on the way refuse large bodies whatever the model would take.
    let is_said = WITHOUT_FIGURES.iter().any(|words| body.contains(words));
    is_said.then_some(TooLong { allowed: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, body: &str, expected: Option<Option<f64>>) {
        let found = too_long(StatusCode::from_u16(status).unwrap(), body);
        let rounded = found.map(|found| found.allowed.map(|share| (share * 1000.0).round() / 1000.0));
        assert_eq!(rounded, expected, "{body}");
    }

    #[test]
    fn every_sentence_is_a_pattern() {
        assert_eq!(SENTENCES.len(), WITH_FIGURES.len());
    }

    #[test]
    fn anthropic_says_it() {
        check(
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 250000 tokens > 200000 maximum"}}"#,
            Some(Some(0.8)),
        );
        check(
            400,
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
            Some(Some(0.947)),
        );
        check(
            413,
            r#"{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            Some(None),
        );
    }

    #[test]
    fn openai_and_its_kin_say_it() {
        check(
            400,
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 160000 tokens. Please reduce the length of the messages.",
            Some(Some(0.8)),
        );
        check(
            400,
            "This endpoint's maximum context length is 100000 tokens. However, you requested about 125000 tokens (120000 of text input, 5000 in the output).",
            Some(Some(0.792)),
        );
        check(
            400,
            r#"{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}"#,
            Some(None),
        );
        check(
            400,
            "This model's maximum prompt length is 100000 but the request contains 200000 tokens",
            Some(Some(0.5)),
        );
    }

    #[test]
    fn gemini_says_it() {
        check(
            400,
            "The input token count (2000000) exceeds the maximum number of tokens allowed (1000000).",
            Some(Some(0.5)),
        );
    }

    #[test]
    fn another_error_is_not_taken_for_it() {
        check(400, "messages.3.content.0: unexpected `tool_use_id` found in `tool_result` blocks", None);
        check(400, "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens", None);
        check(500, "prompt is too long", None);
        check(429, "Request too large: rate limit of tokens per minute", None);
        check(413, "<html><center><h1>413 Request Entity Too Large</h1></center><hr>nginx</html>", None);
        check(413, "", None);
    }
}
