//! Tells what a request asks for and of whom. Takes method, path, query, headers and the upstreams there are; gives the upstream,
//! the endpoint and the path to ask there for, or why there is none. Everything that is known about paths is in one table.
//! Never takes a host from a request, and never guesses: a path that no row knows goes nowhere.

use std::sync::Arc;

use hyper::{HeaderMap, Method};
use trimtab_core::Format;

use super::{
    envelope::{self, Wrapping},
    upstream::{Upstream, Upstreams},
};

/// Whose interface a request speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    Anthropic,
    OpenAi,
    Gemini,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteEndpoint {
    /// An answer of the model to a conversation.
    Answer(Format),
    /// How many tokens a conversation has.
    Count(Format),
    /// A conversation in a shape that is not fitted, with the reason for the user.
    Unfitted(&'static str),
    /// Anything else: it passes as it is.
    Other,
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) upstream: Arc<Upstream>,
    /// The path to ask the upstream for: without the name that the request chose it by.
    pub(crate) path: String,
    pub(crate) provider: Provider,
    pub(crate) endpoint: RouteEndpoint,
    /// The model, where the path names it.
    pub(crate) model: Option<String>,
    /// Whether the model may choose another upstream: the path names none.
    pub(crate) by_model: bool,
    /// How the body holds the conversation.
    pub(crate) wrapping: Wrapping,
    pub(super) is_bedrock: bool,
}

/// Why a request goes nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// No row knows the path.
    UnknownPath,
    /// The path belongs to a server whose address nobody gave: the name to give it by, and an example.
    NoAddress(&'static str, &'static str),
}

/// To whom a path leads that names no upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RouteTarget {
    /// The upstream of this wire.
    Wire(Provider),
    /// Anthropic, Gemini or OpenAI, by the headers: their paths are the same.
    ByHeaders,
    /// The upstream of this name, which has its own address.
    Named(&'static str),
    /// The upstream of this name, else that of the wire where the user gave it another address.
    NamedOr(&'static str, Provider),
}

/// One row: a path, what it asks for, and of whom.
///
/// In a path `*` at the end of a segment stands for its rest, a segment `**` for all that follow, and `{model}` for the model.
struct RouteRow(&'static str, Purpose, RouteTarget);

/// What the requests of a row ask for, and how they are written.
#[derive(Debug, Clone, Copy)]
struct Purpose {
    endpoint: RouteEndpoint,
    wrapping: Wrapping,
    /// Whether the format is that of the model's maker, and the body may be signed.
    is_bedrock: bool,
}

impl Purpose {
    const fn from_endpoint(endpoint: RouteEndpoint) -> Purpose {
        Purpose { endpoint, wrapping: Wrapping::None, is_bedrock: false }
    }
}

const MESSAGES: Purpose = Purpose::from_endpoint(RouteEndpoint::Answer(Format::Anthropic));
const COUNT_MESSAGES: Purpose = Purpose::from_endpoint(RouteEndpoint::Count(Format::Anthropic));
const CHAT: Purpose = Purpose::from_endpoint(RouteEndpoint::Answer(Format::Chat));
const RESPONSES: Purpose = Purpose::from_endpoint(RouteEndpoint::Answer(Format::Responses));
const COUNT_RESPONSES: Purpose = Purpose::from_endpoint(RouteEndpoint::Count(Format::Responses));
const GENERATE: Purpose = Purpose::from_endpoint(RouteEndpoint::Answer(Format::Gemini));
const COUNT: Purpose = Purpose::from_endpoint(RouteEndpoint::Count(Format::Gemini));
const COUNT_CONTENTS: Purpose = Purpose { wrapping: Wrapping::Perhaps(envelope::COUNTED), ..COUNT };
const WRAPPED_GENERATE: Purpose = Purpose { wrapping: Wrapping::Always(envelope::CODE_ASSIST), ..GENERATE };
const WRAPPED_COUNT: Purpose = Purpose { wrapping: Wrapping::Always(envelope::CODE_ASSIST), ..COUNT };
const INVOKE: Purpose = Purpose { is_bedrock: true, ..MESSAGES };
const CONVERSE: Purpose = Purpose::from_endpoint(RouteEndpoint::Unfitted(
    "Bedrock's Converse format; invoke with a model of Anthropic's is fitted",
));
const OLLAMA_FORMAT: Purpose =
    Purpose::from_endpoint(RouteEndpoint::Unfitted("Ollama's own format; /v1/chat/completions is fitted"));
const OTHER: Purpose = Purpose::from_endpoint(RouteEndpoint::Other);

/// Why a request to Bedrock passes.
const SIGNED: RouteEndpoint = RouteEndpoint::Unfitted("the body is signed (Bedrock)");
const OF_ANOTHER_MAKER: RouteEndpoint =
    RouteEndpoint::Unfitted("the format of the model's maker (Bedrock); that of Anthropic's is fitted");

const ANTHROPIC: RouteTarget = RouteTarget::Wire(Provider::Anthropic);
const OPENAI: RouteTarget = RouteTarget::Wire(Provider::OpenAi);
const GEMINI: RouteTarget = RouteTarget::Wire(Provider::Gemini);
const AZURE: RouteTarget = RouteTarget::NamedOr("azure", Provider::OpenAi);
const CHATGPT: RouteTarget = RouteTarget::NamedOr("chatgpt", Provider::OpenAi);
const VERTEX: RouteTarget = RouteTarget::NamedOr("vertex", Provider::Gemini);
const CODE_ASSIST: RouteTarget = RouteTarget::NamedOr("code-assist", Provider::Gemini);
const OLLAMA: RouteTarget = RouteTarget::Named("ollama");
const BEDROCK: RouteTarget = RouteTarget::Named("bedrock");

/// Every path that is known; the first row that fits counts.
const TABLE: &[RouteRow] = &[
    RouteRow("/v1/messages", MESSAGES, ANTHROPIC),
    RouteRow("/messages", MESSAGES, ANTHROPIC),
    RouteRow("/v1/messages/count_tokens", COUNT_MESSAGES, ANTHROPIC),
    RouteRow("/v1/messages/**", OTHER, ANTHROPIC),
    RouteRow("/v1/complete", OTHER, ANTHROPIC),
    RouteRow("/v1/organizations/**", OTHER, ANTHROPIC),
    RouteRow("/v1/skills/**", OTHER, ANTHROPIC),
    // What Claude Code asks for beside the model.
    RouteRow("/api/hello", OTHER, ANTHROPIC),
    RouteRow("/api/oauth/**", OTHER, ANTHROPIC),
    RouteRow("/api/organizations/**", OTHER, ANTHROPIC),
    RouteRow("/api/event_logging/**", OTHER, ANTHROPIC),
    RouteRow("/api/claude*/**", OTHER, ANTHROPIC),
    RouteRow("/v1/chat/completions", CHAT, OPENAI),
    RouteRow("/chat/completions", CHAT, OPENAI),
    RouteRow("/v1/responses", RESPONSES, OPENAI),
    RouteRow("/responses", RESPONSES, OPENAI),
    RouteRow("/v1/responses/input_tokens", COUNT_RESPONSES, OPENAI),
    RouteRow("/responses/input_tokens", COUNT_RESPONSES, OPENAI),
    RouteRow("/backend-api/codex/responses", RESPONSES, CHATGPT),
    RouteRow("/backend-api/**", OTHER, CHATGPT),
    RouteRow("/openai/deployments/*/chat/completions", CHAT, AZURE),
    RouteRow("/openai/v1/chat/completions", CHAT, AZURE),
    RouteRow("/openai/v1/responses", RESPONSES, AZURE),
    RouteRow("/openai/responses", RESPONSES, AZURE),
    RouteRow("/openai/v1/responses/input_tokens", COUNT_RESPONSES, AZURE),
    RouteRow("/openai/**", OTHER, AZURE),
    // Gemini also speaks OpenAI's format, below its own path.
    RouteRow("/v1beta/openai/chat/completions", CHAT, GEMINI),
    RouteRow(
        "/v1*/projects/*/locations/*/publishers/google/models/{model}:generateContent",
        GENERATE,
        VERTEX,
    ),
    RouteRow(
        "/v1*/projects/*/locations/*/publishers/google/models/{model}:streamGenerateContent",
        GENERATE,
        VERTEX,
    ),
    RouteRow(
        "/v1*/projects/*/locations/*/publishers/google/models/{model}:countTokens",
        COUNT_CONTENTS,
        VERTEX,
    ),
    RouteRow("/v1*/publishers/google/models/{model}:generateContent", GENERATE, VERTEX),
    RouteRow("/v1*/publishers/google/models/{model}:streamGenerateContent", GENERATE, VERTEX),
    RouteRow(
        "/v1*/projects/*/locations/*/publishers/anthropic/models/count-tokens:rawPredict",
        COUNT_MESSAGES,
        VERTEX,
    ),
    RouteRow("/v1*/projects/*/locations/*/publishers/anthropic/models/{model}:rawPredict", MESSAGES, VERTEX),
    RouteRow(
        "/v1*/projects/*/locations/*/publishers/anthropic/models/{model}:streamRawPredict",
        MESSAGES,
        VERTEX,
    ),
    RouteRow("/v1*/projects/**", OTHER, VERTEX),
    RouteRow("/v1*/publishers/**", OTHER, VERTEX),
    RouteRow("/v1*/models/{model}:generateContent", GENERATE, GEMINI),
    RouteRow("/v1*/models/{model}:streamGenerateContent", GENERATE, GEMINI),
    RouteRow("/v1*/models/{model}:countTokens", COUNT_CONTENTS, GEMINI),
    // Some clients leave the version to the address that they are given.
    RouteRow("/models/{model}:generateContent", GENERATE, GEMINI),
    RouteRow("/models/{model}:streamGenerateContent", GENERATE, GEMINI),
    RouteRow("/models/{model}:countTokens", COUNT_CONTENTS, GEMINI),
    RouteRow("/v1beta/**", OTHER, GEMINI),
    RouteRow("/v1alpha/**", OTHER, GEMINI),
    RouteRow("/upload/**", OTHER, GEMINI),
    RouteRow("/v1internal:generateContent", WRAPPED_GENERATE, CODE_ASSIST),
    RouteRow("/v1internal:streamGenerateContent", WRAPPED_GENERATE, CODE_ASSIST),
    RouteRow("/v1internal:countTokens", WRAPPED_COUNT, CODE_ASSIST),
    RouteRow("/v1internal:*", OTHER, CODE_ASSIST),
    RouteRow("/api/chat", OLLAMA_FORMAT, OLLAMA),
    RouteRow("/api/generate", OLLAMA_FORMAT, OLLAMA),
    RouteRow("/api/tags", OTHER, OLLAMA),
    RouteRow("/api/show", OTHER, OLLAMA),
    RouteRow("/api/ps", OTHER, OLLAMA),
    RouteRow("/api/version", OTHER, OLLAMA),
    RouteRow("/api/pull", OTHER, OLLAMA),
    RouteRow("/api/embed*", OTHER, OLLAMA),
    RouteRow("/model/{model}/invoke", INVOKE, BEDROCK),
    RouteRow("/model/{model}/invoke-with-response-stream", INVOKE, BEDROCK),
    RouteRow("/model/*/converse", CONVERSE, BEDROCK),
    RouteRow("/model/*/converse-stream", CONVERSE, BEDROCK),
    RouteRow("/model/**", OTHER, BEDROCK),
    RouteRow("/v1/models/**", OTHER, RouteTarget::ByHeaders),
    RouteRow("/v1/files/**", OTHER, RouteTarget::ByHeaders),
    RouteRow("/v1/responses/**", OTHER, OPENAI),
    RouteRow("/responses/**", OTHER, OPENAI),
    RouteRow("/v1/chat/**", OTHER, OPENAI),
    RouteRow("/v1/completions", OTHER, OPENAI),
    RouteRow("/v1/embeddings", OTHER, OPENAI),
    RouteRow("/v1/moderations", OTHER, OPENAI),
    RouteRow("/v1/audio/**", OTHER, OPENAI),
    RouteRow("/v1/images/**", OTHER, OPENAI),
    RouteRow("/v1/videos/**", OTHER, OPENAI),
    RouteRow("/v1/batches/**", OTHER, OPENAI),
    RouteRow("/v1/uploads/**", OTHER, OPENAI),
    RouteRow("/v1/vector_stores/**", OTHER, OPENAI),
    RouteRow("/v1/fine_tuning/**", OTHER, OPENAI),
    RouteRow("/v1/assistants/**", OTHER, OPENAI),
    RouteRow("/v1/threads/**", OTHER, OPENAI),
    RouteRow("/v1/conversations/**", OTHER, OPENAI),
    RouteRow("/v1/containers/**", OTHER, OPENAI),
    RouteRow("/v1/evals/**", OTHER, OPENAI),
    RouteRow("/v1/realtime/**", OTHER, OPENAI),
    RouteRow("/v1/organization/**", OTHER, OPENAI),
    RouteRow("/models/**", OTHER, OPENAI),
    RouteRow("/embeddings", OTHER, OPENAI),
    RouteRow("/completions", OTHER, OPENAI),
];

impl Provider {
    pub(crate) const ALL: [Provider; 3] = [Provider::Anthropic, Provider::OpenAi, Provider::Gemini];

    /// Returns the name used on the command line, which is also that of the wire's own upstream.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Provider::Anthropic => "anthropic",
            Provider::OpenAi => "openai",
            Provider::Gemini => "gemini",
        }
    }

    /// Returns the wire that a request without a route seems to speak: its refusal is written so.
    pub(crate) fn guess_from_request(path: &str, query: Option<&str>, headers: &HeaderMap) -> Provider {
        if path.starts_with("/v1/messages") {
            return Provider::Anthropic;
        }
        if path.starts_with("/v1beta") { Provider::Gemini } else { by_headers(query, headers) }
    }

    fn from_format(format: Format) -> Provider {
        match format {
            Format::Anthropic => Provider::Anthropic,
            Format::Chat | Format::Responses => Provider::OpenAi,
            Format::Gemini => Provider::Gemini,
        }
    }
}

impl RouteEndpoint {
    /// Returns the name used in metrics and the log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RouteEndpoint::Answer(Format::Anthropic) => "messages",
            RouteEndpoint::Answer(Format::Chat) => "chat",
            RouteEndpoint::Answer(Format::Responses) => "responses",
            RouteEndpoint::Answer(Format::Gemini) => "generate",
            RouteEndpoint::Count(_) => "count",
            RouteEndpoint::Unfitted(_) | RouteEndpoint::Other => "other",
        }
    }

    fn provider(self) -> Option<Provider> {
        match self {
            RouteEndpoint::Answer(format) | RouteEndpoint::Count(format) => {
                Some(Provider::from_format(format))
            }
            RouteEndpoint::Unfitted(_) | RouteEndpoint::Other => None,
        }
    }
}

impl Route {
    /// Tells whether a request that is written here for the same address is understood there.
    pub(crate) fn takes_plain_requests(&self) -> bool {
        !self.is_bedrock && !matches!(self.wrapping, Wrapping::Always(_))
    }
}

impl NoRoute {
    /// Returns what is wrong and what to do, for whoever sent the request.
    pub(crate) fn describe(&self) -> String {
        match self {
            NoRoute::UnknownPath => {
                let fits = |row: &&RouteRow| matches!(row.1.endpoint, RouteEndpoint::Answer(_));
                let known: Vec<&str> = TABLE.iter().filter(fits).map(|row| row.0).collect();
                format!(
                    "this path is not known, and nothing was sent. Known are {}. Any path of another server: start trimtab with --upstream NAME=URL and ask for /NAME/PATH",
                    known.join(", ")
                )
            }
            NoRoute::NoAddress(name, example) => format!(
                "this path needs an address, and nothing was sent. Start trimtab with --upstream {name}={example}"
            ),
        }
    }
}

/// Tells whether a path that begins with this segment means something without an upstream's name.
pub(super) fn is_reserved(segment: &str) -> bool {
    let first = |row: &RouteRow| row.0.split('/').nth(1).unwrap_or_default();
    segment == "trimtab" || TABLE.iter().any(|row| segment_fits(first(row), segment))
}

/// Finds where a request goes.
pub(crate) fn find_route(
    upstreams: &Upstreams,
    method: &Method,
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Route, NoRoute> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    if let Some((upstream, rest)) = named_by_path(upstreams, path, &segments) {
        return below_a_name(upstream, method, rest, &Signed::from_request(query, headers));
    }
    let (row, model) = find_row(method, &segments).ok_or(NoRoute::UnknownPath)?;
    let upstream = match row.2 {
        RouteTarget::Wire(provider) => upstreams.of_wire(provider),
        RouteTarget::ByHeaders => upstreams.of_wire(by_headers(query, headers)),
        RouteTarget::Named(name) => upstreams.find_by_name(name).ok_or(NoRoute::UnknownPath)?,
        RouteTarget::NamedOr(name, provider) => {
            let named = upstreams.find_by_name(name).filter(|upstream| upstream.has_address());
            let own = || Some(upstreams.of_wire(provider)).filter(|upstream| upstream.given);
            named.or_else(own).or_else(|| upstreams.find_by_name(name)).ok_or(NoRoute::UnknownPath)?
        }
    };
    if !upstream.has_address() {
        return Err(NoRoute::NoAddress(upstream.known_name(), upstream.example()));
    }
    let by_model = matches!(row.2, RouteTarget::Wire(_)) && row.1.endpoint.provider().is_some();
    Ok(Route {
        by_model,
        ..resolve_route(upstream, path, row.1, model, &Signed::from_request(query, headers))
    })
}

/// Makes the route of a request whose purpose is known.
fn resolve_route(
    upstream: Arc<Upstream>,
    path: &str,
    purpose: Purpose,
    model: Option<String>,
    signed: &Signed,
) -> Route {
    let Purpose { endpoint, wrapping, is_bedrock } = purpose;
    let is_of_anthropic = || model.as_ref().is_some_and(|model| model.contains("anthropic."));
    let endpoint = match (is_bedrock, signed) {
        (true, Signed::Body) => SIGNED,
        (true, Signed::No) if !is_of_anthropic() => OF_ANOTHER_MAKER,
        (true, Signed::No) | (false, _) => endpoint,
    };
    let provider = endpoint.provider().unwrap_or(upstream.wire);
    let path = path.to_owned();
    Route { upstream, path, provider, endpoint, model, by_model: false, wrapping, is_bedrock }
}

/// Whether a request carries a signature that another body makes invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signed {
    No,
    Body,
}

impl Signed {
    /// Looks for a signature of AWS. It covers the hash of the body, unless it says that it does not.
    fn from_request(query: Option<&str>, headers: &HeaderMap) -> Signed {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let given = text("authorization");
        let by_query = query.is_some_and(|query| {
            query.split('&').any(|pair| pair.to_ascii_lowercase().starts_with("x-amz-signature="))
        });
        let is_open = text("x-amz-content-sha256") == "UNSIGNED-PAYLOAD" && !given.contains("content-length");
        if by_query || (given.starts_with("AWS4-") && !is_open) { Signed::Body } else { Signed::No }
    }
}

/// Returns the upstream that the beginning of a path names, and the rest of the path.
fn named_by_path<'a>(
    upstreams: &Upstreams,
    path: &'a str,
    segments: &[&str],
) -> Option<(Arc<Upstream>, &'a str)> {
    let name = segments.first()?;
    let upstream = upstreams.find_by_name(name)?;
    let rest = path.trim_start_matches('/').strip_prefix(name)?;
    if *name != Provider::OpenAi.name() {
        return Some((upstream, rest));
    }
    // Azure's own paths begin with the same word: they are meant where Azure has an address, here or as OpenAI's.
    let azure = upstreams.find_by_name("azure").is_some_and(|azure| azure.has_address());
    let versioned = segments.get(1).is_some_and(|segment| *segment == "v1");
    (versioned && !azure && !upstream.is_azure()).then_some((upstream, rest))
}

/// Routes the path after an upstream's name: the user named it, so that every path may go there, and a conversation is known
/// by the end of its path.
fn below_a_name(
    upstream: Arc<Upstream>,
    method: &Method,
    path: &str,
    signed: &Signed,
) -> Result<Route, NoRoute> {
    if !upstream.has_address() {
        return Err(NoRoute::NoAddress(upstream.known_name(), upstream.example()));
    }
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    // Many paths end in `messages`: the word alone tells nothing.
    let tells = |row: &RouteRow| row.1.endpoint != RouteEndpoint::Other && row.0 != "/messages";
    let ends = (1..segments.len()).filter_map(|from| find_row(method, segments.get(from..)?));
    let found = find_row(method, &segments).or_else(|| ends.into_iter().find(|(row, _)| tells(row)));
    let (purpose, model) = found.map_or((OTHER, None), |(row, model)| (row.1, model));
    Ok(resolve_route(upstream, path, purpose, model, signed))
}

/// Finds the row of a path, and the model that the path names.
fn find_row(method: &Method, segments: &[&str]) -> Option<(&'static RouteRow, Option<String>)> {
    let rows = TABLE.iter().filter(|row| row.1.endpoint == RouteEndpoint::Other || *method == Method::POST);
    rows.into_iter().find_map(|row| Some((row, match_pattern(row.0, segments)?)))
}

/// Tells whether a path fits a row's; gives the model that it names.
fn match_pattern(pattern: &str, segments: &[&str]) -> Option<Option<String>> {
    let mut model = None;
    let mut left = segments.iter();
    for wanted in pattern.split('/').filter(|wanted| !wanted.is_empty()) {
        if wanted == "**" {
            return Some(model);
        }
        let segment = left.next()?;
        match wanted.strip_prefix("{model}") {
            Some(verb) => {
                model = Some(percent_decoded(segment.strip_suffix(verb).filter(|name| !name.is_empty())?));
            }
            None if segment_fits(wanted, segment) => {}
            None => return None,
        }
    }
    left.next().is_none().then_some(model)
}

/// Returns a part of an address with its `%3A` as `:`; an escape of anything but text is left alone.
pub(crate) fn percent_decoded(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut left = text.as_bytes();
    while let Some((first, rest)) = left.split_first() {
        let digits = rest.get(..2).filter(|_| *first == b'%').and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(byte.unwrap_or(*first));
        left = if byte.is_some() { rest.get(2..).unwrap_or_default() } else { rest };
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}

fn segment_fits(wanted: &str, segment: &str) -> bool {
    wanted.strip_suffix('*').map_or(wanted == segment, |start| segment.starts_with(start))
}

fn by_headers(query: Option<&str>, headers: &HeaderMap) -> Provider {
    let key_in_query = query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("key=")));
    if headers.contains_key("anthropic-version") {
        return Provider::Anthropic;
    }
    if headers.contains_key("x-goog-api-key") || key_in_query { Provider::Gemini } else { Provider::OpenAi }
}

#[cfg(test)]
mod tests;
