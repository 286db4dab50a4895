//! Where requests are forwarded to. Takes addresses from flags and from the variables that clients read; gives the address
//! of each request. Never takes a host from a request, and never leads back to the proxy itself.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use hyper::{
    Uri,
    http::{HeaderValue, uri::PathAndQuery},
};

use super::route::Provider;

/// The address of one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Upstream {
    scheme: &'static str,
    authority: String,
    /// What stands before the path of a request; without a slash at its end.
    base: String,
}

/// The addresses of all providers.
#[derive(Debug, Clone)]
pub(crate) struct Upstreams {
    anthropic: Upstream,
    openai: Upstream,
    gemini: Upstream,
}

/// The variables in which clients look for another address, by provider.
fn variables(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::Anthropic => &["ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"],
        Provider::OpenAi => &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
        Provider::Gemini => &["GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"],
    }
}

fn own_address(provider: Provider) -> &'static str {
    match provider {
        Provider::Anthropic => "https://api.anthropic.com",
        Provider::OpenAi => "https://api.openai.com/v1",
        Provider::Gemini => "https://generativelanguage.googleapis.com",
    }
}

impl Upstreams {
    /// Settles the addresses: what a flag says, else what a variable says, else the provider's own.
    ///
    /// Gives with them what people should know: which variables were taken, and which were not.
    pub(crate) fn resolve(
        flags: &[String],
        variable: impl Fn(&str) -> Option<String>,
        listen: SocketAddr,
    ) -> Result<(Upstreams, Vec<String>)> {
        let mut given: Vec<(Provider, Upstream)> = Vec::new();
        for flag in flags {
            let (name, address) =
                flag.split_once('=').with_context(|| format!("--upstream {flag}: expected PROVIDER=URL"))?;
            let provider = Provider::ALL
                .into_iter()
                .find(|provider| provider.name() == name)
                .with_context(|| format!("--upstream {flag}: providers are anthropic, openai and gemini"))?;
            let upstream =
                Upstream::parse(provider, address).with_context(|| format!("--upstream {flag}"))?;
            if upstream.is_at(listen) {
                bail!("--upstream {flag}: that is the proxy's own address; name the provider's");
            }
            given.push((provider, upstream));
        }
        let mut notes = Vec::new();
        let mut settle = |provider: Provider| -> Result<Upstream> {
            if let Some((_, upstream)) = given.iter().rev().find(|(given, _)| *given == provider) {
                return Ok(upstream.clone());
            }
            for name in variables(provider) {
                let Some(address) = variable(name).filter(|address| !address.is_empty()) else { continue };
                let upstream =
                    Upstream::parse(provider, &address).with_context(|| format!("{name}={address}"))?;
                if upstream.is_at(listen) {
                    notes.push(format!("{name} is the proxy's own address and is not taken as upstream"));
                    continue;
                }
                notes.push(format!("{} goes to {address}, as {name} says", provider.name()));
                return Ok(upstream);
            }
            Upstream::parse(provider, own_address(provider))
        };
        let upstreams = Upstreams {
            anthropic: settle(Provider::Anthropic)?,
            openai: settle(Provider::OpenAi)?,
            gemini: settle(Provider::Gemini)?,
        };
        Ok((upstreams, notes))
    }

    pub(crate) fn of(&self, provider: Provider) -> &Upstream {
        match provider {
            Provider::Anthropic => &self.anthropic,
            Provider::OpenAi => &self.openai,
            Provider::Gemini => &self.gemini,
        }
    }
}

impl Upstream {
    fn parse(provider: Provider, address: &str) -> Result<Upstream> {
        let uri: Uri = address.trim().parse().context("not an address")?;
        let scheme = match uri.scheme_str() {
            Some("https") => "https",
            Some("http") => "http",
            _ => bail!("an address begins with https:// or http://"),
        };
        let authority = uri.authority().context("the address names no host")?;
        if authority.as_str().contains('@') {
            bail!("a name or password in the address is not sent on; leave it out");
        }
        let path = uri.path().trim_end_matches('/');
        let base = match provider {
            // Clients of OpenAI have the version in their base address, and so in the paths they ask the proxy for:
            // the upstream's base takes its place.
            Provider::OpenAi if path.is_empty() => "/v1",
            Provider::OpenAi => path,
            Provider::Anthropic => path.strip_suffix("/v1").unwrap_or(path),
            Provider::Gemini => path.strip_suffix("/v1beta").unwrap_or(path),
        };
        Ok(Upstream { scheme, authority: authority.as_str().to_owned(), base: base.to_owned() })
    }

    /// Returns the address of a request.
    pub(crate) fn uri(&self, provider: Provider, asked: &Uri) -> Result<Uri> {
        let path = match provider {
            Provider::OpenAi => asked
                .path()
                .strip_prefix("/v1")
                .filter(|rest| rest.is_empty() || rest.starts_with('/'))
                .unwrap_or(asked.path()),
            Provider::Anthropic | Provider::Gemini => asked.path(),
        };
        let mut wanted = format!("{}{path}", self.base);
        if !wanted.starts_with('/') {
            wanted.insert(0, '/');
        }
        if let Some(query) = asked.query() {
            wanted.push('?');
            wanted.push_str(query);
        }
        let path: PathAndQuery = wanted.parse().context("the path cannot be sent on")?;
        Ok(Uri::builder()
            .scheme(self.scheme)
            .authority(self.authority.as_str())
            .path_and_query(path)
            .build()?)
    }

    /// Returns the value of the `host` header.
    pub(crate) fn host(&self) -> Result<HeaderValue> {
        Ok(HeaderValue::from_str(&self.authority)?)
    }

    /// Tells whether this is the address that the proxy listens at.
    fn is_at(&self, listen: SocketAddr) -> bool {
        let (host, port) = match self.authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port.parse().ok()),
            _ => (self.authority.as_str(), None),
        };
        let port = port.unwrap_or(if self.scheme == "https" { 443 } else { 80 });
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let address = host.parse::<std::net::IpAddr>().ok();
        let local = host.eq_ignore_ascii_case("localhost")
            || address.is_some_and(|address| {
                address.is_loopback() || address.is_unspecified() || address == listen.ip()
            });
        port == listen.port() && local
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTEN: &str = "127.0.0.1:8790";

    fn resolve(flags: &[&str], variables: &[(&str, &str)]) -> Result<(Upstreams, Vec<String>)> {
        let flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Upstreams::resolve(&flags, variable, LISTEN.parse().unwrap())
    }

    fn check(flags: &[&str], variables: &[(&str, &str)], provider: Provider, asked: &str, expected: &str) {
        let (upstreams, _) = resolve(flags, variables).unwrap();
        let uri = upstreams.of(provider).uri(provider, &asked.parse().unwrap()).unwrap();
        assert_eq!(uri.to_string(), expected);
    }

    #[test]
    fn without_a_word_requests_go_to_the_providers() {
        check(
            &[],
            &[],
            Provider::Anthropic,
            "/v1/messages?beta=true",
            "https://api.anthropic.com/v1/messages?beta=true",
        );
        check(&[], &[], Provider::OpenAi, "/v1/responses", "https://api.openai.com/v1/responses");
        check(&[], &[], Provider::OpenAi, "/chat/completions", "https://api.openai.com/v1/chat/completions");
        let gemini = "/v1beta/models/gemini-3-pro:generateContent";
        check(
            &[],
            &[],
            Provider::Gemini,
            gemini,
            &format!("https://generativelanguage.googleapis.com{gemini}"),
        );
    }

    #[test]
    fn a_base_path_stands_before_the_request_s() {
        let router = ["openai=https://router.example/api/v1/"];
        check(
            &router,
            &[],
            Provider::OpenAi,
            "/v1/chat/completions",
            "https://router.example/api/v1/chat/completions",
        );
        let plain = ["openai=http://127.0.0.1:9000"];
        check(&plain, &[], Provider::OpenAi, "/v1/models", "http://127.0.0.1:9000/v1/models");
        let other = ["anthropic=https://router.example/anthropic"];
        check(
            &other,
            &[],
            Provider::Anthropic,
            "/v1/messages",
            "https://router.example/anthropic/v1/messages",
        );
    }

    #[test]
    fn a_flag_beats_a_variable_and_a_variable_the_provider() {
        let set = [("OPENAI_BASE_URL", "http://10.0.0.9/v1")];
        check(&[], &set, Provider::OpenAi, "/v1/models", "http://10.0.0.9/v1/models");
        check(
            &["openai=http://10.0.0.8/v1"],
            &set,
            Provider::OpenAi,
            "/v1/models",
            "http://10.0.0.8/v1/models",
        );
    }

    #[test]
    fn the_proxy_never_asks_itself() {
        for address in ["http://127.0.0.1:8790", "http://localhost:8790/v1", "http://[::1]:8790"] {
            assert!(resolve(&[&format!("anthropic={address}")], &[]).is_err(), "{address}");
            check(
                &[],
                &[("ANTHROPIC_BASE_URL", address)],
                Provider::Anthropic,
                "/v1/messages",
                "https://api.anthropic.com/v1/messages",
            );
        }
        check(
            &[],
            &[("ANTHROPIC_BASE_URL", "http://127.0.0.1:8787")],
            Provider::Anthropic,
            "/v1/messages",
            "http://127.0.0.1:8787/v1/messages",
        );
    }

    #[test]
    fn a_wrong_address_is_refused_with_a_reason() {
        for flag in
            ["anthropic", "mistral=https://x", "openai=ftp://x", "openai=https://user:pw@x", "openai=:"]
        {
            assert!(resolve(&[flag], &[]).is_err(), "{flag}");
        }
    }
}
