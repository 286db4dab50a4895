//! Tells what a request asks for and of whom. Takes method, path, query and headers; gives the provider and the endpoint.
//! Never looks at the host: who is asked is decided at start.

use hyper::{HeaderMap, Method};
use trimtab::Format;

/// Whose interface a request speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    Anthropic,
    OpenAi,
    Gemini,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// An answer of the model to a conversation.
    Answer(Format),
    /// How many tokens a conversation has.
    Count(Format),
    /// Anything else: it passes as it is.
    Other,
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) provider: Provider,
    pub(crate) endpoint: Endpoint,
    /// The model, where the path names it.
    pub(crate) model: Option<String>,
}

impl Provider {
    pub(crate) const ALL: [Provider; 3] = [Provider::Anthropic, Provider::OpenAi, Provider::Gemini];

    /// Returns the name used on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Provider::Anthropic => "anthropic",
            Provider::OpenAi => "openai",
            Provider::Gemini => "gemini",
        }
    }
}

impl Endpoint {
    /// Returns the name used in metrics and the log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Endpoint::Answer(Format::Anthropic) => "messages",
            Endpoint::Answer(Format::Chat) => "chat",
            Endpoint::Answer(Format::Responses) => "responses",
            Endpoint::Answer(Format::Gemini) => "generate",
            Endpoint::Count(_) => "count",
            Endpoint::Other => "other",
        }
    }
}

/// Finds where a request goes.
pub(crate) fn route(method: &Method, path: &str, query: Option<&str>, headers: &HeaderMap) -> Route {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    if *method == Method::POST
        && let Some(route) = conversation(&segments)
    {
        return route;
    }
    Route { provider: provider(&segments, query, headers), endpoint: Endpoint::Other, model: None }
}

fn conversation(segments: &[&str]) -> Option<Route> {
    let (provider, endpoint) = match segments {
        [.., "v1", "messages"] | ["messages"] => (Provider::Anthropic, Endpoint::Answer(Format::Anthropic)),
        [.., "v1", "messages", "count_tokens"] => (Provider::Anthropic, Endpoint::Count(Format::Anthropic)),
        // Gemini also speaks OpenAI's format, below a path of its own.
        ["v1beta", .., "chat", "completions"] => (Provider::Gemini, Endpoint::Answer(Format::Chat)),
        [.., "chat", "completions"] => (Provider::OpenAi, Endpoint::Answer(Format::Chat)),
        [.., "v1", "responses"] | ["responses"] => (Provider::OpenAi, Endpoint::Answer(Format::Responses)),
        [.., "models", call] => return generate(call),
        _ => return None,
    };
    Some(Route { provider, endpoint, model: None })
}

fn generate(call: &str) -> Option<Route> {
    let (model, verb) = call.split_once(':')?;
    matches!(verb, "generateContent" | "streamGenerateContent").then(|| Route {
        provider: Provider::Gemini,
        endpoint: Endpoint::Answer(Format::Gemini),
        model: Some(model.to_owned()),
    })
}

fn provider(segments: &[&str], query: Option<&str>, headers: &HeaderMap) -> Provider {
    let key_in_query = query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("key=")));
    match segments {
        ["v1beta" | "v1alpha" | "upload" | "v1internal", ..] => Provider::Gemini,
        ["v1", "messages" | "complete" | "organizations", ..] | ["api", ..] => Provider::Anthropic,
        _ if headers.contains_key("anthropic-version") => Provider::Anthropic,
        _ if headers.contains_key("x-goog-api-key") || key_in_query => Provider::Gemini,
        _ => Provider::OpenAi,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        method: &Method,
        path: &str,
        header: Option<&'static str>,
        expected: (&str, &str, Option<&str>),
    ) {
        let mut headers = HeaderMap::new();
        if let Some(name) = header {
            headers.insert(name, "1".parse().unwrap());
        }
        let found = route(method, path, None, &headers);
        let found = (found.provider.name(), found.endpoint.name(), found.model.as_deref());
        assert_eq!(found, expected, "{method} {path}");
    }

    #[test]
    fn conversations_are_known_by_their_path() {
        let post = Method::POST;
        check(&post, "/v1/messages", None, ("anthropic", "messages", None));
        check(&post, "/v1/messages/", None, ("anthropic", "messages", None));
        check(&post, "/v1/messages/count_tokens", None, ("anthropic", "count", None));
        check(&post, "/v1/chat/completions", None, ("openai", "chat", None));
        check(&post, "/chat/completions", None, ("openai", "chat", None));
        check(&post, "/v1/responses", None, ("openai", "responses", None));
        let model = Some("gemini-3-pro");
        check(&post, "/v1beta/models/gemini-3-pro:generateContent", None, ("gemini", "generate", model));
        check(
            &post,
            "/v1beta/models/gemini-3-pro:streamGenerateContent",
            None,
            ("gemini", "generate", model),
        );
        check(&post, "/v1beta/openai/chat/completions", None, ("gemini", "chat", None));
    }

    #[test]
    fn everything_else_goes_to_whom_it_looks_meant_for() {
        let (get, post) = (Method::GET, Method::POST);
        check(&get, "/v1/messages", None, ("anthropic", "other", None));
        check(&post, "/v1/messages/batches", None, ("anthropic", "other", None));
        check(&get, "/v1/models", None, ("openai", "other", None));
        check(&get, "/v1/models", Some("anthropic-version"), ("anthropic", "other", None));
        check(&get, "/v1/models", Some("x-goog-api-key"), ("gemini", "other", None));
        check(&post, "/v1beta/models/gemini-3-pro:countTokens", None, ("gemini", "other", None));
        check(&post, "/v1/threads/thread_1/messages", None, ("openai", "other", None));
        check(&post, "/v1/responses/compact", None, ("openai", "other", None));
    }
}
