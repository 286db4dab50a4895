//! Asks an endpoint for an answer. Takes a URL, a key and a request; gives the reply's bytes. Tries again after 429 and 5xx with
//! growing pauses, and never beyond its time limit. Never says the key.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use trimtab_core::Format;
use ureq::Agent;

/// How often a request is sent at most.
const ATTEMPTS: u32 = 4;
/// The pause before the second attempt; each one after it is twice as long.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest reply that is read, in bytes: a summary is a few kilobytes.
const LONGEST_REPLY: u64 = 4 * 1024 * 1024;
/// How much of a refused request's reply is quoted, in characters.
const TOLD: usize = 200;

/// Where a summary comes from.
pub(crate) struct SummaryEndpoint {
    url: String,
    pub(crate) format: Format,
    key: Option<String>,
    /// Headers of another request to the same place that say who asks.
    headers: Vec<(String, String)>,
    deadline: Instant,
    limit: Duration,
}

impl SummaryEndpoint {
    /// Makes an endpoint of a URL as people give it: with or without the path of its format.
    pub(crate) fn new(url: &str, key: Option<String>, limit: Duration) -> SummaryEndpoint {
        let (url, format) = resolve_address(url);
        SummaryEndpoint { url, format, key, headers: Vec::new(), deadline: Instant::now() + limit, limit }
    }

    /// Makes an endpoint of a whole address, what is spoken there, and the headers that say who asks.
    pub(crate) fn with_address(
        url: String,
        format: Format,
        headers: Vec<(String, String)>,
        limit: Duration,
    ) -> SummaryEndpoint {
        SummaryEndpoint { url, format, key: None, headers, deadline: Instant::now() + limit, limit }
    }

    /// Sends a request and returns the reply.
    pub(crate) fn ask(&self, request: &[u8]) -> Result<Vec<u8>> {
        let mut pause = PAUSE;
        for attempt in 1.. {
            let said = match self.send_once(request)? {
                EndpointReply::Good(body) => return Ok(body),
                EndpointReply::Bad { status, body } => {
                    bail!("{} answered {status}: {}", self.address_without_query(), beginning_of_body(&body));
                }
                EndpointReply::Later { status, wait } => {
                    pause = wait.unwrap_or(pause);
                    format!("{} answered {status}", self.address_without_query())
                }
            };
            if attempt >= ATTEMPTS {
                bail!("{said} {ATTEMPTS} times");
            }
            if pause >= self.time_left() {
                bail!("{said}, and there is no time for another attempt within {} s", self.limit.as_secs());
            }
            sleep(pause);
            pause *= 2;
        }
        bail!("{} gave no answer", self.address_without_query())
    }

    /// Returns the address without its query: that may be a key.
    fn address_without_query(&self) -> &str {
        self.url.split('?').next().unwrap_or(&self.url)
    }

    fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn send_once(&self, request: &[u8]) -> Result<EndpointReply> {
        let config =
            Agent::config_builder().timeout_global(Some(self.time_left())).http_status_as_error(false);
        let agent: Agent = config.build().into();
        let mut post = agent.post(&self.url).header("content-type", "application/json");
        for (name, value) in &self.headers {
            post = post.header(name, value);
        }
        let versioned = self.headers.iter().any(|(name, _)| name == "anthropic-version");
        if self.format == Format::Anthropic && !versioned {
            post = post.header("anthropic-version", "2023-06-01");
        }
        if let Some(key) = &self.key {
            post = match self.format {
                Format::Anthropic => post.header("x-api-key", key),
                Format::Gemini => post.header("x-goog-api-key", key),
                Format::Chat | Format::Responses => post.header("authorization", format!("Bearer {key}")),
            };
        }
        let sent = post.send(request);
        let mut reply = sent.with_context(|| format!("{} gave no answer", self.address_without_query()))?;
        let status = reply.status().as_u16();
        let wait =
            reply.headers().get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok());
        if status == 429 || status >= 500 {
            return Ok(EndpointReply::Later { status, wait: wait.map(Duration::from_secs) });
        }
        let body = reply.body_mut().with_config().limit(LONGEST_REPLY).read_to_vec();
        let body = body.with_context(|| format!("{} broke off its answer", self.address_without_query()))?;
        Ok(if status == 200 { EndpointReply::Good(body) } else { EndpointReply::Bad { status, body } })
    }
}

enum EndpointReply {
    Good(Vec<u8>),
    /// Another attempt would bring the same.
    Bad {
        status: u16,
        body: Vec<u8>,
    },
    /// Another attempt may help.
    Later {
        status: u16,
        wait: Option<Duration>,
    },
}

/// Returns the whole address and what is spoken there.
fn resolve_address(url: &str) -> (String, Format) {
    let url = url.trim_end_matches('/');
    let at_anthropic = url.split('/').nth(2).is_some_and(|host| host.ends_with("anthropic.com"));
    match url {
        url if url.ends_with("/messages") => (url.to_owned(), Format::Anthropic),
        url if at_anthropic && url.ends_with("/v1") => (format!("{url}/messages"), Format::Anthropic),
        url if at_anthropic => (format!("{url}/v1/messages"), Format::Anthropic),
        url if url.ends_with("/chat/completions") => (url.to_owned(), Format::Chat),
        url => (format!("{url}/chat/completions"), Format::Chat),
    }
}

fn beginning_of_body(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(TOLD).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_given_with_or_without_its_path() {
        for (given, whole, format) in [
            ("http://localhost:1/v1/", "http://localhost:1/v1/chat/completions", Format::Chat),
            (
                "http://localhost:1/v1/chat/completions",
                "http://localhost:1/v1/chat/completions",
                Format::Chat,
            ),
            ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages", Format::Anthropic),
            ("http://localhost:1/v1/messages", "http://localhost:1/v1/messages", Format::Anthropic),
        ] {
            assert_eq!(resolve_address(given), (whole.to_owned(), format), "{given}");
        }
    }
}
