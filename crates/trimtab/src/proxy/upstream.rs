//! Where requests are forwarded to. Takes addresses from flags, from files and from the variables that clients read; gives the
//! upstreams by name and the address of each request. Never takes a host from a request, and never leads back to the proxy itself.

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Context, Result, bail};
use hyper::{
    Uri,
    http::{HeaderValue, uri::PathAndQuery},
};

use super::route::{Provider, is_reserved};

/// A server that requests may go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Upstream {
    name: String,
    /// Whose interface it speaks, where a path does not say.
    pub(crate) wire: Provider,
    address: Option<UpstreamAddress>,
    /// Whether the user gave the address: a flag, a file or a variable.
    pub(crate) given: bool,
    /// What the names of models begin with that choose it without a name in the path.
    model_prefix: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct UpstreamAddress {
    scheme: &'static str,
    /// Whether the server is asked in HTTP/2.
    http2: bool,
    authority: String,
    /// What precedes the path of a request; without a slash at its end.
    base: String,
}

/// All upstreams: those that are known by name, and the user's own.
#[derive(Debug, Clone)]
pub(crate) struct Upstreams {
    all: Vec<Arc<Upstream>>,
    /// Those of the wires, in the order of [`Provider::ALL`].
    wires: [Arc<Upstream>; 3],
}

/// An upstream as a file or a flag gives it.
#[derive(Debug, Clone, Default)]
pub(crate) struct UpstreamEntry {
    /// Where it was said, for people.
    pub(crate) place: String,
    pub(crate) name: String,
    pub(crate) url: Option<String>,
    pub(crate) wire: Option<String>,
    pub(crate) model_prefix: Option<String>,
    /// Whether it comes from the file of a project, which somebody else may have written.
    pub(crate) from_project: bool,
}

/// An upstream that is known by name.
struct UpstreamPreset {
    name: &'static str,
    wire: Provider,
    /// Its address, where everybody has the same.
    url: Option<&'static str>,
    /// An address to write, where everybody has another.
    example: &'static str,
    /// The variables in which clients look for another address.
    variables: &'static [&'static str],
}

const fn preset_upstream(name: &'static str, wire: Provider, url: &'static str) -> UpstreamPreset {
    UpstreamPreset { name, wire, url: Some(url), example: url, variables: &[] }
}

const fn without_url(
    name: &'static str,
    wire: Provider,
    example: &'static str,
    variables: &'static [&'static str],
) -> UpstreamPreset {
    UpstreamPreset { name, wire, url: None, example, variables }
}

const PRESETS: &[UpstreamPreset] = &[
    UpstreamPreset {
        variables: &["ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"],
        ..preset_upstream("anthropic", Provider::Anthropic, "https://api.anthropic.com")
    },
    UpstreamPreset {
        variables: &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
        ..preset_upstream("openai", Provider::OpenAi, "https://api.openai.com/v1")
    },
    UpstreamPreset {
        variables: &["GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"],
        ..preset_upstream("gemini", Provider::Gemini, "https://generativelanguage.googleapis.com")
    },
    preset_upstream("openrouter", Provider::OpenAi, "https://openrouter.ai/api/v1"),
    preset_upstream("deepseek", Provider::OpenAi, "https://api.deepseek.com"),
    preset_upstream("mistral", Provider::OpenAi, "https://api.mistral.ai/v1"),
    preset_upstream("ollama", Provider::OpenAi, "http://127.0.0.1:11434"),
    preset_upstream("vllm", Provider::OpenAi, "http://127.0.0.1:8000"),
    preset_upstream("llama.cpp", Provider::OpenAi, "http://127.0.0.1:8080"),
    preset_upstream("lm-studio", Provider::OpenAi, "http://127.0.0.1:1234"),
    preset_upstream("litellm", Provider::OpenAi, "http://127.0.0.1:4000"),
    without_url("azure", Provider::OpenAi, "https://RESOURCE.openai.azure.com", &["AZURE_OPENAI_ENDPOINT"]),
    without_url("chatgpt", Provider::OpenAi, "https://chatgpt.com/backend-api/codex", &[]),
    without_url(
        "vertex",
        Provider::Gemini,
        "https://REGION-aiplatform.googleapis.com",
        &["GOOGLE_VERTEX_BASE_URL"],
    ),
    without_url(
        "code-assist",
        Provider::Gemini,
        "https://cloudcode-pa.googleapis.com",
        &["CODE_ASSIST_ENDPOINT"],
    ),
    without_url("bedrock", Provider::Anthropic, "https://bedrock-runtime.REGION.amazonaws.com", &[]),
];

/// First segments of paths that servers have in their base addresses too: they are sent once.
const IN_BASES: [&str; 4] = ["openai", "api", "backend-api", "anthropic"];

impl Upstreams {
    /// Settles the addresses: what a flag says, else a file, else a variable, else the provider's own.
    ///
    /// Gives with them what people should know: which variables were taken, and which were not.
    pub(crate) fn resolve(
        flags: &[String],
        files: &[UpstreamEntry],
        variable: impl Fn(&str) -> Option<String>,
        listen: SocketAddr,
    ) -> Result<(Upstreams, Vec<String>)> {
        let mut all: Vec<Upstream> = PRESETS.iter().map(UpstreamPreset::upstream).collect::<Result<_>>()?;
        let mut notes = Vec::new();
        for preset in PRESETS {
            notes.extend(from_variables(preset, &mut all, &variable, listen)?);
        }
        for given in files {
            apply_entry(given, &mut all, listen).with_context(|| given.place.clone())?;
        }
        for flag in flags {
            let given = from_flag(flag).with_context(|| format!("--upstream {flag}"))?;
            apply_entry(&given, &mut all, listen).with_context(|| given.place.clone())?;
        }
        let all: Vec<Arc<Upstream>> = all.into_iter().map(Arc::new).collect();
        let wire = |provider: Provider| {
            let own = all.iter().find(|upstream| upstream.name == provider.name());
            own.cloned().with_context(|| format!("{} has no upstream", provider.name()))
        };
        let [anthropic, openai, gemini] = Provider::ALL;
        let wires = [wire(anthropic)?, wire(openai)?, wire(gemini)?];
        Ok((Upstreams { all, wires }, notes))
    }

    /// Returns the upstream of a wire: where a request goes that names none.
    pub(crate) fn of_wire(&self, provider: Provider) -> Arc<Upstream> {
        let [anthropic, openai, gemini] = &self.wires;
        Arc::clone(match provider {
            Provider::Anthropic => anthropic,
            Provider::OpenAi => openai,
            Provider::Gemini => gemini,
        })
    }

    pub(crate) fn find_by_name(&self, name: &str) -> Option<Arc<Upstream>> {
        self.all.iter().find(|upstream| upstream.name == name).cloned()
    }

    /// Returns where requests of each wire go.
    pub(crate) fn wire_addresses(&self) -> Vec<(String, String)> {
        let addresses = self.wires.iter().filter_map(|upstream| {
            let UpstreamAddress { scheme, authority, base, .. } = upstream.address.as_ref()?;
            Some((upstream.name.clone(), format!("{scheme}://{authority}{base}")))
        });
        addresses.collect()
    }

    /// Tells whether a server is asked in HTTP/2.
    pub(crate) fn any_speaks_http2(&self) -> bool {
        self.all.iter().any(|upstream| upstream.speaks_http2())
    }

    /// Tells whether models of a wire may choose another upstream.
    pub(crate) fn choose_by_model(&self, provider: Provider) -> bool {
        self.all.iter().any(|upstream| upstream.wire == provider && upstream.model_prefix.is_some())
    }

    /// Returns the upstream that a model's name chooses; that with the longest beginning, where several do.
    pub(crate) fn of_model(&self, provider: Provider, model: &str) -> Option<Arc<Upstream>> {
        let prefix = |upstream: &Upstream| {
            let prefix = upstream.model_prefix.as_deref().filter(|prefix| model.starts_with(prefix));
            prefix.filter(|_| upstream.wire == provider).map(str::len)
        };
        let chosen = self.all.iter().filter_map(|upstream| Some((prefix(upstream)?, upstream)));
        chosen.max_by_key(|(length, _)| *length).map(|(_, upstream)| Arc::clone(upstream))
    }
}

impl UpstreamPreset {
    fn upstream(&self) -> Result<Upstream> {
        Ok(Upstream {
            name: self.name.to_owned(),
            wire: self.wire,
            address: self.url.map(UpstreamAddress::parse).transpose()?,
            given: false,
            model_prefix: None,
        })
    }
}

/// Takes the address that a client's own variable names.
fn from_variables(
    preset: &UpstreamPreset,
    all: &mut [Upstream],
    variable: &impl Fn(&str) -> Option<String>,
    listen: SocketAddr,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    for name in preset.variables {
        let Some(url) = variable(name).filter(|url| !url.is_empty()) else { continue };
        let address = UpstreamAddress::parse(&url).with_context(|| format!("{name}={url}"))?;
        if address.is_at(listen) {
            notes.push(format!("{name} is the proxy's own address and is not taken as upstream"));
            continue;
        }
        notes.push(format!("{} goes to {url}, as {name} says", preset.name));
        if let Some(upstream) = all.iter_mut().find(|upstream| upstream.name == preset.name) {
            upstream.address = Some(address);
            upstream.given = true;
        }
        break;
    }
    Ok(notes)
}

/// Reads `NAME=URL`.
fn from_flag(flag: &str) -> Result<UpstreamEntry> {
    let (name, url) = flag.split_once('=').context("expected NAME=URL")?;
    Ok(UpstreamEntry {
        place: format!("--upstream {flag}"),
        name: name.trim().to_owned(),
        url: Some(url.trim().to_owned()),
        ..UpstreamEntry::default()
    })
}

/// Adds an upstream, or changes one that is known.
fn apply_entry(given: &UpstreamEntry, all: &mut Vec<Upstream>, listen: SocketAddr) -> Result<()> {
    let name = given.name.as_str();
    let is_preset = PRESETS.iter().any(|preset| preset.name == name);
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || !name.bytes().all(plain) {
        bail!("a name has small letters, digits and hyphens");
    }
    if !is_preset && is_reserved(name) {
        bail!("paths that begin with /{name} mean something already; choose another name");
    }
    if given.from_project && (is_preset || given.model_prefix.is_some()) {
        bail!(
            "the file of a project may add upstreams that paths name, and not change where other requests go; say it in your own config.toml or with --upstream"
        );
    }
    let wire = match given.wire.as_deref() {
        Some(wire) => Some(
            Provider::ALL
                .into_iter()
                .find(|provider| provider.name() == wire)
                .with_context(|| format!("wire = {wire:?}: wires are anthropic, openai and gemini"))?,
        ),
        None => None,
    };
    let address = given.url.as_deref().map(UpstreamAddress::parse).transpose()?;
    if address.as_ref().is_some_and(|address| address.is_at(listen)) {
        bail!("that is the proxy's own address; name the provider's");
    }
    let known = all.iter().position(|upstream| upstream.name == name);
    let Some(upstream) = known.and_then(|at| all.get_mut(at)) else {
        let address = Some(address.context("an upstream with a name needs a url")?);
        let wire = wire.unwrap_or(Provider::OpenAi);
        let model_prefix = given.model_prefix.clone();
        all.push(Upstream { name: name.to_owned(), wire, address, given: true, model_prefix });
        return Ok(());
    };
    if given.from_project {
        // What the user says about the same name counts.
        return Ok(());
    }
    if let Some(address) = address {
        upstream.address = Some(address);
        upstream.given = true;
    }
    upstream.wire = wire.unwrap_or(upstream.wire);
    if upstream.address.is_none() {
        bail!("{name} needs a url");
    }
    if given.model_prefix.is_some() {
        upstream.model_prefix.clone_from(&given.model_prefix);
    }
    Ok(())
}

impl Upstream {
    pub(crate) fn has_address(&self) -> bool {
        self.address.is_some()
    }

    /// Returns the name of one that is known by name.
    pub(crate) fn known_name(&self) -> &'static str {
        self.preset().map_or("", |preset| preset.name)
    }

    /// Returns an address as it may be written.
    pub(crate) fn example(&self) -> &'static str {
        self.preset().map_or("", |preset| preset.example)
    }

    fn preset(&self) -> Option<&'static UpstreamPreset> {
        PRESETS.iter().find(|preset| preset.name == self.name)
    }

    /// Returns the host of its address.
    pub(crate) fn host_name(&self) -> Option<&str> {
        self.address.as_ref().map(|address| address.host().0)
    }

    /// Tells whether the server is one of Azure's.
    pub(crate) fn is_azure(&self) -> bool {
        self.address.as_ref().is_some_and(|address| address.host().0.ends_with(".azure.com"))
    }

    /// Returns the address of a request for a path.
    pub(crate) fn uri(&self, path: &str, query: Option<&str>) -> Result<Uri> {
        let address = self.address()?;
        let mut wanted = join_path(&address.base, path, self.wire);
        if !wanted.starts_with('/') {
            wanted.insert(0, '/');
        }
        if let Some(query) = query {
            wanted.push('?');
            wanted.push_str(query);
        }
        let path: PathAndQuery = wanted.parse().context("the path cannot be sent on")?;
        Ok(Uri::builder()
            .scheme(address.scheme)
            .authority(address.authority.as_str())
            .path_and_query(path)
            .build()?)
    }

    /// Tells whether the server is asked in HTTP/2.
    pub(crate) fn speaks_http2(&self) -> bool {
        self.address.as_ref().is_some_and(|address| address.http2)
    }

    /// Returns the value of the `host` header.
    pub(crate) fn host(&self) -> Result<HeaderValue> {
        Ok(HeaderValue::from_str(&self.address()?.authority)?)
    }

    fn address(&self) -> Result<&UpstreamAddress> {
        self.address.as_ref().with_context(|| format!("{} has no address", self.name))
    }
}

/// Puts a path after a base: as both are written, but nothing twice that both name. A version that neither names is the provider's
/// usual one: some clients take it to be part of the address that they are given.
fn join_path(base: &str, path: &str, wire: Provider) -> String {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    let rest = || path.trim_start_matches('/').strip_prefix(first).unwrap_or_default();
    let (before, last) = base.rsplit_once('/').unwrap_or_default();
    let is_version = |segment: &str| {
        let mut letters = segment.bytes();
        letters.next() == Some(b'v') && letters.next().is_some_and(|letter| letter.is_ascii_digit())
    };
    let version = match (wire, first) {
        (Provider::Anthropic, "messages") => "/v1",
        (Provider::Gemini, "models") => "/v1beta",
        (Provider::Anthropic | Provider::OpenAi | Provider::Gemini, _) => "",
    };
    if !version.is_empty() && !is_version(last) {
        return format!("{base}{version}{path}");
    }
    if base.is_empty() {
        return path.to_owned();
    }
    // Clients of OpenAI have the version in their base address, and so in the paths they ask the proxy for: the upstream's base
    // takes its place.
    if wire == Provider::OpenAi && first == "v1" {
        return format!("{base}{}", rest());
    }
    if is_version(first) && is_version(last) {
        return format!("{before}{path}");
    }
    let named = base.rfind(&format!("/{first}/")).or_else(|| (last == first).then_some(before.len()));
    match named.and_then(|at| base.get(..at)).filter(|_| IN_BASES.contains(&first)) {
        Some(before) => format!("{before}{path}"),
        None => format!("{base}{path}"),
    }
}

impl UpstreamAddress {
    fn parse(url: &str) -> Result<UpstreamAddress> {
        let uri: Uri = url.trim().parse().context("not an address")?;
        let (scheme, http2) = match uri.scheme_str() {
            Some("https") => ("https", false),
            Some("http") => ("http", false),
            Some("h2") => ("https", true),
            Some("h2c") => ("http", true),
            _ => bail!(
                "an address begins with https:// or http://; with h2:// (TLS) or h2c:// the server is asked in HTTP/2"
            ),
        };
        let authority = uri.authority().context("the address names no host")?;
        if authority.as_str().contains('@') {
            bail!("a name or password in the address is not sent on; leave it out");
        }
        if uri.query().is_some() {
            bail!("what follows `?` belongs to a request; leave it out");
        }
        let base = uri.path().trim_end_matches('/').to_owned();
        Ok(UpstreamAddress { scheme, http2, authority: authority.as_str().to_owned(), base })
    }

    /// Returns the host without its port, and the port.
    fn host(&self) -> (&str, u16) {
        let usual = if self.scheme == "https" { 443 } else { 80 };
        match self.authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                (host, port.parse().unwrap_or(usual))
            }
            _ => (self.authority.as_str(), usual),
        }
    }

    /// Tells whether this is the address that the proxy listens at.
    fn is_at(&self, listen: SocketAddr) -> bool {
        let (host, port) = self.host();
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
mod tests;
