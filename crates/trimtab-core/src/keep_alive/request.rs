//! The request of a ping: [`ping_request`] takes the bytes of a conversation's last request; gives the same conversation with the smallest
//! output that its format allows, not streamed ([`PingRequest`]). Never changes anything that a provider's cache depends on.

use crate::{
    history::Format,
    json::{Object, Value, scan},
};

/// A request that reads what is cached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PingRequest {
    /// Its bytes.
    pub body: Vec<u8>,
    /// The most tokens that it lets the model write.
    pub most_output: u64,
}

/// The least that the Responses API takes as a limit.
const LEAST_OF_RESPONSES: u64 = 16;

/// Makes the ping of a conversation whose last request had these bytes; nothing where its provider promises no cache that a read would keep
/// alive, or where another request would do more than read.
///
/// ```
/// use trimtab_core::{Format, keep_alive::ping_request};
/// let last = br#"{"model":"m","max_tokens":8000,"stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;
/// let ping = ping_request(last, Format::Anthropic, "anthropic").ok_or("a ping")?;
/// assert_eq!(ping.body, br#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"Hi"}]}"#);
/// # Ok::<(), &str>(())
/// ```
pub fn ping_request(last: &[u8], format: Format, provider: &str) -> Option<PingRequest> {
    let tape = scan(last).ok()?;
    let root = tape.root(last).filter(|root| root.is_object())?;
    match format {
        Format::Anthropic => {
            let most = 1 + bound_thinking(root);
            Some(rewrite(root, &["max_tokens"], &["stream"], most))
        }
        Format::Chat => {
            let limits = ["max_completion_tokens", "max_tokens"];
            let named: Vec<&str> = limits.into_iter().filter(|name| root.get(name).is_some()).collect();
            let usual = if provider == "openai" { "max_completion_tokens" } else { "max_tokens" };
            let limits = if named.is_empty() { vec![usual] } else { named };
            Some(rewrite(root, &limits, &["stream", "stream_options", "n"], 1))
        }
        // What runs in the background is stored, and is no answer.
        Format::Responses if root.is_flag_set("background") => None,
        Format::Responses => {
            Some(rewrite(root, &["max_output_tokens"], &["stream", "stream_options"], LEAST_OF_RESPONSES))
        }
        // Its cache is implicit: no lifetime is promised, and none that a read would lengthen.
        Format::Gemini => None,
    }
}

/// Returns the tokens that the model may think before it writes. Thinking is kept unchanged, because what is cached of the messages depends on
/// it; a budget of it must be below the limit.
fn bound_thinking(root: Value<'_>) -> u64 {
    let thinking = root.get("thinking").filter(|thinking| thinking.member_is("type", "enabled"));
    thinking.and_then(|thinking| thinking.get("budget_tokens")?.number()).unwrap_or_default()
}

/// Copies a request with these limits of its output, and without some members.
fn rewrite(root: Value<'_>, limits: &[&str], without: &[&str], most_output: u64) -> PingRequest {
    let most = most_output.to_string();
    let mut body = Object::new();
    for (key, value) in root.members() {
        let Some(key) = key.string().filter(|key| !without.contains(&key.as_ref())) else { continue };
        body = body.raw(&key, if limits.contains(&key.as_ref()) { most.as_bytes() } else { value.raw() });
    }
    for limit in limits.iter().filter(|limit| root.get(limit).is_none()) {
        body = body.raw(limit, most.as_bytes());
    }
    PingRequest { body: body.end(), most_output }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: Format, provider: &str, last: &str, expected: Option<(&str, u64)>) {
        let ping = ping_request(last.as_bytes(), format, provider);
        let found = ping.map(|ping| (String::from_utf8(ping.body).expect("text"), ping.most_output));
        assert_eq!(found.as_ref().map(|(body, most)| (body.as_str(), *most)), expected);
    }

    #[test]
    fn thinking_stays_and_its_budget_bounds_the_output_from_below() {
        check(
            Format::Anthropic,
            "anthropic",
            r#"{"max_tokens":32000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[]}"#,
            Some((
                r#"{"max_tokens":1025,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[]}"#,
                1025,
            )),
        );
        check(
            Format::Anthropic,
            "anthropic",
            r#"{"max_tokens":32000,"thinking":{"type":"adaptive"},"messages":[]}"#,
            Some((r#"{"max_tokens":1,"thinking":{"type":"adaptive"},"messages":[]}"#, 1)),
        );
    }

    #[test]
    fn a_chat_gets_the_limit_that_it_has_or_that_its_provider_knows() {
        let streamed =
            r#"{"messages":[],"max_tokens":9,"stream":true,"stream_options":{"include_usage":true},"n":2}"#;
        check(Format::Chat, "openai", streamed, Some((r#"{"messages":[],"max_tokens":1}"#, 1)));
        check(
            Format::Chat,
            "openai",
            r#"{"messages":[]}"#,
            Some((r#"{"messages":[],"max_completion_tokens":1}"#, 1)),
        );
        check(Format::Chat, "deepseek", r#"{"messages":[]}"#, Some((r#"{"messages":[],"max_tokens":1}"#, 1)));
    }

    #[test]
    fn responses_write_at_least_sixteen_tokens_and_never_in_the_background() {
        let last = r#"{"input":[],"stream":true,"reasoning":{"effort":"high"}}"#;
        let ping = r#"{"input":[],"reasoning":{"effort":"high"},"max_output_tokens":16}"#;
        check(Format::Responses, "openai", last, Some((ping, 16)));
        check(Format::Responses, "openai", r#"{"input":[],"background":true}"#, None);
    }

    #[test]
    fn where_no_lifetime_is_promised_there_is_no_ping() {
        check(Format::Gemini, "google", r#"{"contents":[]}"#, None);
        check(Format::Anthropic, "anthropic", "[]", None);
    }
}
