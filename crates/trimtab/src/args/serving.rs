//! What can be said about the proxy. Takes the words; gives values that need no further checking.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf};

use clap::{Args as ClapArgs, ValueEnum, builder::FalseyValueParser};

use trimtab_core::{Tokens, keep_alive::HOURLY_DOLLARS, policy::Markers};

use super::{FoldChoice, KeepLimitArgs, StorePathArgs, StoreViewArgs, human};
use crate::proxy::{keep_alive::KeepAliveMode, log::LogLevel};

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Point the agent's base URL at it:
  ANTHROPIC_BASE_URL=http://127.0.0.1:8790
  OPENAI_BASE_URL=http://127.0.0.1:8790/v1
  GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8790
If these variables are set when the proxy starts, it forwards to their addresses.
Other servers are named in the path, as in http://127.0.0.1:8790/openrouter/v1. Known by name:
  openrouter, deepseek, mistral, ollama, vllm, llama.cpp, lm-studio, litellm
  with --upstream NAME=URL: azure, vertex, bedrock, chatgpt, code-assist

The header `x-trimtab-project: NAME` says which project a request belongs to; it is not forwarded.
A request with the header `x-trimtab: off` passes unchanged; so does everything with TRIMTAB_OFF=1.
The proxy's own pages: / (in a browser: everything that is stored; else what it saved), /trimtab/health, /trimtab/metrics (Prometheus), and
/trimtab/fit (POST a request, ?budget=TOKENS).

Examples:
  trimtab proxy
  trimtab proxy --observe --upstream work=https://gateway.example/v1
  trimtab proxy --listen 0.0.0.0:8790 --token \"$TOKEN\" --allow-host build-box")]
pub(crate) struct ProxyArgs {
    /// Where to listen: an address with a port, or a port; an address that other machines can reach needs --token
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8790", env = "TRIMTAB_LISTEN", value_parser = human::parse_address)]
    pub(crate) listen: SocketAddr,

    /// The port to listen at, with the address of --listen
    #[arg(long, value_name = "PORT", env = "TRIMTAB_PORT", value_parser = human::parse_port)]
    pub(crate) port: Option<u16>,

    #[command(flatten)]
    pub(crate) fitting: FittingArgs,

    /// Whose stored sessions the page at / shows
    #[arg(long, value_name = "WHOSE", value_enum, default_value = "own", env = "TRIMTAB_PAGE")]
    pub(crate) page: PageScope,

    /// Leave the x-trimtab headers out of responses
    #[arg(long, env = "TRIMTAB_NO_HEADERS", value_parser = FalseyValueParser::new())]
    pub(crate) no_headers: bool,

    /// The token that /trimtab/ requires
    #[arg(long, value_name = "TOKEN", env = "TRIMTAB_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,

    /// A host name that clients may use for the proxy, besides addresses and localhost
    #[arg(long, value_name = "NAME", env = "TRIMTAB_ALLOW_HOST", value_delimiter = ',')]
    pub(crate) allow_host: Vec<String>,

    /// An origin whose web pages may send requests, besides those of this machine: `https://chat.example`
    #[arg(long, value_name = "ORIGIN", env = "TRIMTAB_ALLOW_ORIGIN", value_delimiter = ',')]
    pub(crate) allow_origin: Vec<String>,

    /// A certificate in PEM: clients are then answered in TLS, at https://
    #[arg(long, value_name = "FILE", env = "TRIMTAB_TLS_CERT")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The key of the certificate in PEM, if it is not in the same file
    #[arg(long, value_name = "FILE", env = "TRIMTAB_TLS_KEY", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// The largest request to accept, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64, env = "TRIMTAB_MAX_REQUEST", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) max_request: u32,

    /// The most requests in progress at once
    #[arg(long, value_name = "N", default_value_t = 256, env = "TRIMTAB_MAX_IN_FLIGHT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) max_in_flight: u32,

    /// Seconds that a provider may be silent, before its response and within it
    #[arg(long, value_name = "SECONDS", default_value_t = 900, env = "TRIMTAB_UPSTREAM_TIMEOUT")]
    pub(crate) upstream_timeout: u64,

    /// Seconds that running responses get when the proxy stops
    #[arg(long, value_name = "SECONDS", default_value_t = 30, env = "TRIMTAB_GRACE")]
    pub(crate) grace: u64,

    /// How much to log to stderr
    #[arg(long, value_name = "LEVEL", default_value = "normal", env = "TRIMTAB_LOG")]
    pub(crate) log: LogLevel,
}

/// Whether requests carry cache markers that their client did not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MarkerChoice {
    /// Only those that the client sets
    Off,
    /// Where a provider caches nothing without them and the conversation is expected to go on
    Auto,
}

impl MarkerChoice {
    pub(crate) fn to_markers(self) -> Markers {
        match self {
            MarkerChoice::Off => Markers::AsTheyCame,
            MarkerChoice::Auto => Markers::OneMore,
        }
    }
}

/// Whose sessions a proxy's page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PageScope {
    /// Those of the project that --project names; of all projects if it names none
    Own,
    /// Those of all projects
    All,
    /// There is no page
    Off,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The page is served on this machine only, asks no other server for anything, and works without JavaScript. It changes nothing but pins
and undos, which a running proxy obeys from its next request on. A proxy serves the same page at its own address.

Examples:
  trimtab page
  trimtab page --all --port 9000
  trimtab page --store backup.db")]
pub(crate) struct PageArgs {
    /// The port to listen at; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 8791, value_parser = human::parse_port)]
    pub(crate) port: u16,

    /// Show passwords, tokens and keys in texts
    #[arg(long)]
    pub(crate) show_secrets: bool,

    #[command(flatten)]
    pub(crate) view: StoreViewArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Put trimtab's options before the agent's name; everything after the name goes to the agent.

Examples:
  trimtab wrap claude
  trimtab wrap codex exec \"fix the failing test\"
  trimtab wrap --policy ladder opencode run \"explain this repository\"
  trimtab wrap ./my-agent.py")]
pub(crate) struct WrapArgs {
    #[command(flatten)]
    pub(crate) fitting: FittingArgs,

    /// A known agent (`trimtab wrap --list`) or any program that reads the usual variables, then its arguments
    #[arg(value_names = ["AGENT", "ARGS"], num_args = 1.., trailing_var_arg = true, required_unless_present = "list")]
    pub(crate) command: Vec<OsString>,

    /// List the known agents
    #[arg(long)]
    pub(crate) list: bool,
}

/// What is done with requests.
#[derive(Debug, ClapArgs)]
pub(crate) struct FittingArgs {
    /// Where requests go; can be repeated. `anthropic`, `openai` and `gemini` replace the provider's own address; any other name is
    /// used by requests whose path begins with it
    #[arg(long, value_name = "NAME=URL", env = "TRIMTAB_UPSTREAM", value_delimiter = ',')]
    pub(crate) upstream: Vec<String>,

    /// What may be hidden, and when: a name from `trimtab policies`, or a TOML file [default: steady]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) policy: Option<String>,

    /// Change a setting of the policy
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,

    /// The most tokens that a request may have (50k, 1.5M) [default: what the model's window leaves]
    #[arg(long, value_name = "TOKENS", env = "TRIMTAB_BUDGET", value_parser = human::parse_tokens)]
    pub(crate) budget: Option<Tokens>,

    #[command(flatten)]
    pub(crate) store: StorePathArgs,

    /// The project of requests that name none in `x-trimtab-project`: a folder in it, or its name [default: none; with `wrap`, the
    /// project of the current folder]
    #[arg(long, value_name = "DIR|NAME", env = "TRIMTAB_PROJECT")]
    pub(crate) project: Option<String>,

    #[command(flatten)]
    pub(crate) keep: KeepLimitArgs,

    /// Store nothing: what is hidden cannot be recalled, and a restart forgets what was sent
    #[arg(long, env = "TRIMTAB_NO_STORE", value_parser = FalseyValueParser::new())]
    pub(crate) no_store: bool,

    /// Change nothing; only record what would have been done
    #[arg(long, env = "TRIMTAB_OBSERVE", value_parser = FalseyValueParser::new())]
    pub(crate) observe: bool,

    /// Pass everything unchanged
    #[arg(long, env = "TRIMTAB_OFF", value_parser = FalseyValueParser::new())]
    pub(crate) off: bool,

    /// What a policy's folding steps do: nothing, ask for a summary in the background, or fold without one
    /// [default: summary]
    #[arg(long, value_name = "HOW", value_enum, env = "TRIMTAB_FOLD")]
    pub(crate) fold: Option<FoldChoice>,

    /// Set cache markers, and keys by which a cache finds a conversation, in requests of clients that set none and where they are expected
    /// to pay [default: auto]
    #[arg(long, value_name = "WHEN", value_enum, env = "TRIMTAB_MARKERS")]
    pub(crate) markers: Option<MarkerChoice>,

    /// The model that writes summaries [default: the session's own]
    #[arg(long, value_name = "NAME", env = "TRIMTAB_SUMMARY_MODEL")]
    pub(crate) summary_model: Option<String>,

    /// Where to ask for summaries [default: the session's own provider, with the session's key]
    #[arg(long, value_name = "URL", env = "TRIMTAB_SUMMARY_ENDPOINT", requires = "summary_model")]
    pub(crate) summary_endpoint: Option<String>,

    /// The environment variable that holds the key for --summary-endpoint
    #[arg(long, value_name = "NAME", requires = "summary_endpoint")]
    pub(crate) summary_key_env: Option<String>,

    /// Give up on a summary after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120, env = "TRIMTAB_SUMMARY_TIMEOUT")]
    pub(crate) summary_timeout: u64,

    /// Keep the provider's cache of a conversation alive in pauses, by requests that read it with the smallest possible output, sent with
    /// the agent's own key: never, or where that is expected to pay
    #[arg(long, value_name = "WHEN", value_enum, default_value = "off", env = "TRIMTAB_KEEP_ALIVE")]
    pub(crate) keep_alive: KeepAliveMode,

    /// The most US dollars that these requests may cost in an hour
    #[arg(long, value_name = "DOLLARS", default_value_t = HOURLY_DOLLARS, env = "TRIMTAB_KEEP_ALIVE_DOLLARS", value_parser = parse_dollars)]
    pub(crate) keep_alive_dollars: f64,

    /// Send them as soon as they are planned, as if it were the time: for tests
    #[arg(long, hide = true)]
    pub(crate) keep_alive_at_once: bool,

    /// Ask the model why it makes each edit: edit tools get an optional argument `intent`, which the tools never
    /// receive
    #[arg(long, env = "TRIMTAB_INTENT", value_parser = FalseyValueParser::new())]
    pub(crate) intent: bool,

    /// Milliseconds of work that a plan may take, or a tenth of the provider's response time if that is more; after that, the session's
    /// last plan is used
    #[arg(long, value_name = "MS", default_value_t = 50, env = "TRIMTAB_PLAN_TIME")]
    pub(crate) plan_time: u64,

    /// The most sessions to remember
    #[arg(long, value_name = "N", default_value_t = 256, env = "TRIMTAB_SESSIONS", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) sessions: u32,
}

/// Reads an amount that may be spent.
fn parse_dollars(words: &str) -> Result<f64, String> {
    let dollars = words.trim_start_matches('$').parse::<f64>().ok();
    let dollars = dollars.filter(|dollars| dollars.is_finite() && *dollars >= 0.0);
    dollars.ok_or_else(|| format!("{words:?} is no amount in dollars"))
}
