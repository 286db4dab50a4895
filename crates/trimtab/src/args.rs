//! What can be said on the command line. Takes the words; gives values that need no further checking.
//! Never reads a file.

mod finding;
mod groups;
mod human;
mod replay_choices;
mod serving;
mod view;
mod wishes;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum, ValueHint, builder::FalseyValueParser};
use clap_complete::Shell;
use trimtab_core::{Format, Handle, Model, Tokens, policy::Folding};
use trimtab_replay::{Contender, ContenderError, ReplayBudget, policy_words};

use self::human::parse_tokens;
use crate::near::did_you_mean;

pub(crate) use self::{
    finding::{Finding, Since},
    groups::command,
    human::{Amount, parse_address, parse_long_age, parse_size, tokens_or_share},
    replay_choices::{CacheChoice, ReplayGroups},
    serving::{FittingArgs, MarkerChoice, PageArgs, PageScope, ProxyArgs, WrapArgs},
    view::{KeepLimitArgs, StoreViewArgs},
    wishes::{PinArgs, RestoreArgs, SessionArgs, UndoArgs, UnpinArgs},
};

/// Cuts the cost of long LLM agent sessions without breaking them.
#[derive(Debug, Parser)]
#[command(name = "trimtab", version, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Data goes to stdout, messages to stderr. Exit codes: 0 success, 1 failure, 2 usage error.\n\
    `trimtab COMMAND --help` shows options and examples."
)]
pub(crate) struct Args {
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", env = "TRIMTAB_COLOR")]
    pub(crate) color: ColorWhen,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// When something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    // On a terminal, unless `NO_COLOR` is set.
    Auto,
    Always,
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch it work on a recorded session: no key, no network
    Demo(Demo),
    /// Show a conversation, one line per block
    Show(ShowArgs),
    /// Show what fills the context window
    Inspect(InspectArgs),
    /// Show why the provider's cache was missed, and the cost
    Why(WhyArgs),
    /// Show a file as the model knew it at a step
    FileAt(FileAtArgs),
    /// List the files that a session touched
    Files(TouchedFilesArgs),
    /// List what was done to which file, and why
    Changelog(ChangelogArgs),
    /// Trim one request to a number of tokens
    Fit(FitArgs),
    /// Show sessions, requests and what was hidden in a browser
    Page(PageArgs),
    /// Run the proxy that trims the requests of any agent
    Proxy(Box<ProxyArgs>),
    /// Run an agent with its requests trimmed
    Wrap(Box<WrapArgs>),
    /// Replace the old part of a conversation by a summary
    Compact(CompactArgs),
    /// List the policies, or print one
    Policies(PoliciesArgs),
    /// Measure what it would have saved in recorded sessions
    Replay(ReplayArgs),
    /// Print the original of something that was hidden
    Recall(RecallArgs),
    /// Never hide these blocks
    Pin(PinArgs),
    /// Remove pins
    Unpin(UnpinArgs),
    /// Show hidden blocks to the model again
    Undo(UndoArgs),
    /// List this project's stored sessions, the newest first
    Sessions(SessionsArgs),
    /// Write a stored request, byte for byte
    Restore(RestoreArgs),
    /// Search this project's stored sessions
    Search(SearchArgs),
    /// Delete stored sessions
    Forget(ForgetArgs),
    /// Copy the store into one new file, even while in use
    Backup(BackupArgs),
    /// Show how much is stored, and what was saved
    Stats(StatsArgs),
    /// Serve originals and history to agents over MCP
    Mcp(McpArgs),
    /// List the models with their windows and prices
    Models(ModelsArgs),
    /// Check this installation, and say how to fix it
    Doctor(DoctorArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write a man page for every command into a folder
    Man {
        /// The folder; it is created if it does not exist
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Everything happens on this machine: a scripted agent, the real proxy, a store in a temporary folder and a scripted \
    provider. Nothing is kept.\n\n\
    Examples:\n  trimtab demo\n  trimtab demo --budget 32k"
)]
pub(crate) struct Demo {
    /// The most tokens that a request may have, such as 32k [default: what the model's window leaves]
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub(crate) budget: Option<Tokens>,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  trimtab show session.jsonl\n  trimtab show session.jsonl --block 11\n  trimtab show request.json --json | jq '.blocks[].tokens'\n  \
    curl -s … | trimtab show -"
)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Print one block whole, by its number
    #[arg(long, value_name = "N", conflicts_with = "json")]
    pub(crate) block: Option<u32>,

    /// Count for this model (`chars/4`: roughly) [default: the model named in the file]
    #[arg(long, value_name = "NAME", env = "TRIMTAB_MODEL")]
    pub(crate) model: Option<String>,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  trimtab inspect\n  trimtab inspect --agent codex --since 30d\n  trimtab inspect session.jsonl\n  trimtab inspect ~/.claude/projects --model claude-opus-4-6\n  \
    trimtab inspect recordings --json | jq .mean_tokens"
)]
pub(crate) struct InspectArgs {
    /// Requests, recordings, folders of them (.json, .jsonl, .traj), or the ID of a stored session (`latest`: the one used last);
    /// `-` for stdin [default: the sessions that agents keep on this machine]
    #[arg(value_name = "PATH|ID", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) finding: Finding,

    #[command(flatten)]
    pub(crate) view: StoreViewArgs,

    /// Count for this model and its window [default: the model named in the file]
    #[arg(long, value_name = "NAME", env = "TRIMTAB_MODEL")]
    pub(crate) model: Option<String>,

    /// Which segment of a single recording, counted from 1 [default: the longest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) segment: Option<u32>,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Of a stored session, tools, system prompt and messages are compared byte by byte. A recording holds the messages alone: \
    reasons that can only be inferred say so.\n\n\
    Examples:\n  trimtab why\n  trimtab why session.jsonl\n  trimtab why latest\n  trimtab why --stored --last 50\n  \
    trimtab why --since 30d --json | jq .summary.reasons"
)]
pub(crate) struct WhyArgs {
    /// Recordings, folders of them (.json, .jsonl, .traj), or the ID of a stored session (`latest`: the one used last); `-` for stdin
    /// [default: the sessions that agents keep on this machine]
    #[arg(value_name = "PATH|ID", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

    /// The stored sessions of this project, the newest 20 or --last N
    #[arg(long, conflicts_with_all = ["paths", "agents", "since"])]
    pub(crate) stored: bool,

    #[command(flatten)]
    pub(crate) finding: Finding,

    #[command(flatten)]
    pub(crate) view: StoreViewArgs,

    /// The most requests to show; all are in the sums
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Lines that the conversation never showed are marked as unknown.\n\n\
    Examples:\n  trimtab file-at session.jsonl src/main.rs --step 40\n  trimtab file-at session.jsonl src/main.rs --json | jq -r .text")]
pub(crate) struct FileAtArgs {
    /// A request, a recording, or the ID of a stored session (`latest`: the one used last); `-` for stdin
    #[arg(value_name = "FILE|ID", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) view: StoreViewArgs,

    /// The file's path as the conversation writes it, or the end of it
    #[arg(value_name = "PATH")]
    pub(crate) path: String,

    /// After this step, counted from 1 [default: the last]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) step: Option<u32>,

    /// Which segment of a recording, counted from 1 [default: the longest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) segment: Option<u32>,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Steps are counted back from the last one. With several conditions, all of them hold.\n\n\
    Examples:\n  trimtab files session.jsonl --recent 10\n  trimtab files s12 --modified --stale 20\n  \
    trimtab files session.jsonl --json | jq -r '.files[].path'"
)]
pub(crate) struct TouchedFilesArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Only files that were read or changed in the last N steps
    #[arg(long, value_name = "N")]
    pub(crate) recent: Option<u32>,

    /// Only files that were neither read nor changed for more than N steps
    #[arg(long, value_name = "N")]
    pub(crate) stale: Option<u32>,

    /// Only files that the session changed
    #[arg(long)]
    pub(crate) modified: bool,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "A reason is the `intent` that a call gives, or else the words before the call.\n\n\
    Example:\n  trimtab changelog session.jsonl")]
pub(crate) struct ChangelogArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  trimtab fit --budget 50000 request.json > fitted.json\n  trimtab fit --budget 50000 --policy ladder --explain session.jsonl > request.json\n  trimtab fit --policy none --step 20 session.jsonl > request.json\n\n\
    Settings come from --set, TRIMTAB_* variables, ./trimtab.toml and the user's config.toml, in this order; `trimtab doctor \
    --settings` shows those in force."
)]
pub(crate) struct FitArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// The most tokens that the request may have (50k, 1.5M), or a share of the model's window (35%) [default: what the window leaves
    /// after the answer]
    #[arg(long, value_name = "TOKENS|SHARE%", env = "TRIMTAB_BUDGET", value_parser = human::tokens_or_share)]
    pub(crate) budget: Option<Amount>,

    /// Count and price for this model [default: the model named in the file]
    #[arg(long, value_name = "NAME", env = "TRIMTAB_MODEL")]
    pub(crate) model: Option<String>,

    /// What may be hidden, and when: a name from `trimtab policies`, or a TOML file [default: steady]
    #[arg(long, value_name = "NAME|FILE", env = "TRIMTAB_POLICY")]
    pub(crate) policy: Option<String>,

    /// Change a setting of the policy
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,

    /// What the session has cost so far, for policies that adapt to it [default: what the recording reports]
    #[arg(long, value_name = "DOLLARS", env = "TRIMTAB_SPENT")]
    pub(crate) spent: Option<f64>,

    /// What a policy's folding steps do without a summary: nothing, or fold with a list of facts alone (ledger)
    /// [default: summary]
    #[arg(long, value_name = "HOW", value_enum, env = "TRIMTAB_FOLD")]
    pub(crate) fold: Option<FoldChoice>,

    /// First repair what the protocol forbids, and say what was repaired
    #[arg(long)]
    pub(crate) repair: bool,

    /// Hide everything that is no longer needed, as if the provider's cache were empty
    #[arg(long)]
    pub(crate) cold: bool,

    /// Print to stderr what happens to each block, why and when, what that saves and costs, and what each pass hid
    #[arg(long)]
    pub(crate) explain: bool,

    /// Write a report as JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,

    /// Never hide the block with this handle; with a store, also not later in the session
    #[arg(long = "pin", value_name = "HANDLE", value_parser = wishes::parse_handle)]
    pub(crate) pins: Vec<Handle>,

    /// Store nothing, even if `TRIMTAB_STORE` is set
    #[arg(long)]
    pub(crate) no_store: bool,
}

/// What becomes of a policy's steps that fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FoldChoice {
    /// Never fold
    Off,
    /// Fold when there is a summary
    Summary,
    /// Fold without a summary too: the user's words and a list of facts replace what is old
    Ledger,
}

impl FoldChoice {
    pub(crate) fn to_folding(self) -> Folding {
        match self {
            FoldChoice::Off => Folding::Off,
            FoldChoice::Summary => Folding::WhenGiven,
            FoldChoice::Ledger => Folding::Ledger,
        }
    }
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Without a summary, the user's words and a list of facts replace the old part: files, commands, open errors and tasks. \
    A summary that is empty, refused, cut off or too long is not used.\n\n\
    Examples:\n  trimtab compact session.jsonl > request.json\n  \
    trimtab compact request.json --print-prompt | llm > notes.md && trimtab compact request.json --summary notes.md\n  \
    trimtab compact request.json --endpoint http://localhost:11434/v1 --model qwen3-coder"
)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// The most tokens that the compacted request may have (50k) [default: about 28,000, and what cannot be folded]
    #[arg(long, value_name = "TOKENS", env = "TRIMTAB_BUDGET", value_parser = parse_tokens)]
    pub(crate) budget: Option<Tokens>,

    /// Print the prompt for a summary and nothing else
    #[arg(long)]
    pub(crate) print_prompt: bool,

    /// Use the summary in this file; `-` for stdin
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["endpoint", "print_prompt"])]
    pub(crate) summary: Option<PathBuf>,

    /// Ask this endpoint for a summary: in Anthropic's format if the URL ends in /messages, else in OpenAI's Chat format
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, requires = "model", conflicts_with = "print_prompt")]
    pub(crate) endpoint: Option<String>,

    /// The model that writes the summary
    #[arg(long, value_name = "NAME", env = "TRIMTAB_SUMMARY_MODEL")]
    pub(crate) model: Option<String>,

    /// How many tokens that model reads (32k) [default: its window in the table of models, or 32k]
    #[arg(long, value_name = "TOKENS", env = "TRIMTAB_SUMMARY_WINDOW", value_parser = parse_tokens)]
    pub(crate) window: Option<Tokens>,

    /// The environment variable that holds the endpoint's key
    #[arg(long, value_name = "NAME", requires = "endpoint")]
    pub(crate) api_key_env: Option<String>,

    /// Fold without a summary if the endpoint takes longer than this
    #[arg(long, value_name = "SECONDS", default_value = "120", env = "TRIMTAB_SUMMARY_TIMEOUT")]
    pub(crate) timeout: u64,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PoliciesArgs {
    /// Print the file of this policy
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// List every setting with its default, and what a policy file may use
    #[arg(long, conflicts_with = "name")]
    pub(crate) settings: bool,

    /// List the methods of other tools that `replay` compares with
    #[arg(long, conflicts_with_all = ["name", "settings"])]
    pub(crate) peers: bool,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  trimtab recall 6ca415216d72 --in session.jsonl --grep error")]
pub(crate) struct RecallArgs {
    /// The handle in a note
    #[arg(value_name = "HANDLE")]
    pub(crate) handle: String,

    /// The request or recording that holds the original [default: the store]
    #[arg(long = "in", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) view: StoreViewArgs,

    /// Print the bytes unchanged, including control characters
    #[arg(long)]
    pub(crate) raw: bool,

    /// Write the original to a file; for a picture, its bytes
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,

    /// Only these lines, counted from 1
    #[arg(long, value_name = "A-B", value_parser = parse_line_range)]
    pub(crate) lines: Option<(usize, usize)>,

    /// Only lines that match a regular expression
    #[arg(long, value_name = "RE")]
    pub(crate) grep: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Shows what each policy would have cost, and how much of what the agent later used was still visible. It cannot show \
    whether the task would still have succeeded. Nothing is sent anywhere.\n\n\
    Files that cannot be replayed are listed on stderr; the others are replayed, and the exit code is 1.\n\n\
    Examples:\n  trimtab replay\n  trimtab replay --agent claude --last 20 --html report.html\n  \
    trimtab replay session.jsonl --policy steady --policy 'peer:mask(10)' --policy 'recent(keep_last=5)'\n  \
    trimtab replay recordings --budget 25%,35%,50%,75%\n  trimtab replay recordings --budget 16k --model local:llama.cpp@800\n  \
    trimtab replay recordings --json | jq '.[] | select(.policy == \"steady\") | .cost_vs_raw'"
)]
pub(crate) struct ReplayArgs {
    /// Recordings, or folders of them (.json, .jsonl, .traj) [default: the sessions that agents keep on this machine]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) finding: Finding,

    /// What to replay: a name, with settings in brackets after it, or a TOML file [default: none, steady, steady.safe, and the three
    /// best known methods that no provider rejects]
    #[arg(long = "policy", value_name = "NAME|FILE", value_parser = parse_contender)]
    pub(crate) policies: Vec<PolicyChoice>,

    /// Replay every policy and every known method
    #[arg(long, conflicts_with = "policies")]
    pub(crate) all: bool,

    /// Use the prices of this model [default: the models in the recordings]; `local:llama.cpp`, `local:800` (tokens per second) or
    /// `local:vllm@4000` counts seconds of waiting instead of dollars
    #[arg(long = "model", value_name = "NAME", env = "TRIMTAB_MODEL", value_parser = parse_model)]
    pub(crate) models: Vec<Model>,

    /// Like --all, with several values of each method's parameter
    #[arg(long, alias = "knobs", conflicts_with = "policies")]
    pub(crate) values: bool,

    /// The most tokens that a request may have (50k), or a share of the largest request of each segment (35%); several with
    /// commas [default: what the model's window leaves]
    #[arg(long = "budget", value_name = "TOKENS|SHARE%", env = "TRIMTAB_BUDGET", value_delimiter = ',', value_parser = parse_budget)]
    pub(crate) budgets: Vec<ReplayBudget>,

    /// How long the provider keeps its cache, and at which price
    #[arg(long, value_enum, value_name = "LIFETIME", default_value_t)]
    pub(crate) cache: CacheChoice,

    /// How long pauses last, for pings: a table that `scripts/fit-pauses --without NAME` prints
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) pauses: Option<PathBuf>,

    /// Rows for each repository, agent or session, as well as for all together
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) by: Option<ReplayGroups>,

    /// Only sessions whose path contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) session: Option<String>,

    /// How many files to replay at a time [default: one per core]
    #[arg(long, value_name = "N", env = "TRIMTAB_JOBS", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,

    /// How often sessions are drawn again for the 95 % intervals; 0: no intervals
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) resamples: u16,

    /// Write JSON: one object per policy and model
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a self-contained page: charts, table, sessions, and what was missed
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    /// Print to stderr how long it took and how much memory it needed
    #[arg(long)]
    pub(crate) timing: bool,
}

/// A policy that was asked for.
#[derive(Debug, Clone)]
pub(crate) enum PolicyChoice {
    Known(Contender),
    /// A TOML file, with settings in brackets after it.
    File(String),
}

/// Which conversation is meant.
#[derive(Debug, ClapArgs)]
pub(crate) struct InputArgs {
    /// A request, a recording, or the ID of a stored session (`latest`: the one used last); `-` for stdin
    #[arg(value_name = "FILE|ID", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) view: StoreViewArgs,

    /// Read it as a request in this format instead of detecting the format
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    pub(crate) format: Option<Format>,

    /// Which segment of a recording, counted from 1 [default: the longest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) segment: Option<u32>,

    /// The request that step N answered, counted from 1 [default: the whole conversation]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) step: Option<u32>,
}

/// Where conversations are kept.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct StorePathArgs {
    /// The file that sessions are stored in [default: `trimtab/trimtab.db` in your data folder]
    #[arg(id = "store", long, value_name = "PATH", env = "TRIMTAB_STORE", value_hint = ValueHint::FilePath)]
    pub(crate) path: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SessionsArgs {
    #[command(flatten)]
    pub(crate) view: StoreViewArgs,

    /// The most sessions to list
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  trimtab search connection refused")]
pub(crate) struct SearchArgs {
    /// Words that a block must contain, all of them
    #[arg(value_name = "TEXT", required = true)]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) view: StoreViewArgs,

    /// Only this session: an ID, the client's name for it, or the handle of a block in it
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,

    /// Show passwords and keys too
    #[arg(long, env = "TRIMTAB_SHOW_SECRETS", value_parser = FalseyValueParser::new())]
    pub(crate) show_secrets: bool,

    /// The most blocks to show
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Without sessions, age or size, deletes what the settings keep_for and keep_at_most no longer keep. It asks first; where nobody can \
    be asked, it wants --yes.\n\n\
    Examples:\n  trimtab forget s12 s13\n  trimtab forget --older-than 30d --dry-run\n  trimtab forget --larger-than 2GB --yes"
)]
#[command(group = clap::ArgGroup::new("which"))]
pub(crate) struct ForgetArgs {
    /// These sessions
    #[arg(value_name = "ID", group = "which")]
    pub(crate) ids: Vec<String>,

    /// Sessions whose last request is older than this: 30d, 12h, 4w
    #[arg(long, value_name = "AGE", group = "which", value_parser = human::real_age)]
    pub(crate) older_than: Option<i64>,

    /// The oldest sessions, until the store is no larger than this: 2GB, 500MB
    #[arg(long, value_name = "SIZE", group = "which", value_parser = parse_size)]
    pub(crate) larger_than: Option<u64>,

    #[command(flatten)]
    pub(crate) keep: KeepLimitArgs,

    /// Only list what would be deleted
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Delete without asking
    #[arg(long, short)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) store: StorePathArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  trimtab backup kept-2026-01-31.db")]
pub(crate) struct BackupArgs {
    /// The file to create; an existing file is never overwritten
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) store: StorePathArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) store: StorePathArgs,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "An agent starts this, and speaks with it on stdin and stdout. Tools: recall, \
    search_history, file_at, files, changelog, pin, unpin, undo.\n\n\
    Examples:\n  claude mcp add trimtab -- trimtab mcp\n  codex mcp add trimtab -- trimtab mcp\n  trimtab mcp --in session.jsonl")]
pub(crate) struct McpArgs {
    /// The request or recording that holds the originals [default: the store]
    #[arg(long = "in", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) view: StoreViewArgs,

    /// Show passwords and keys in results
    #[arg(long, env = "TRIMTAB_SHOW_SECRETS", value_parser = FalseyValueParser::new())]
    pub(crate) show_secrets: bool,

    /// The most characters of one answer; a longer one comes in pieces
    #[arg(long, value_name = "N", env = "TRIMTAB_MCP_MAX_CHARS", default_value_t = 20_000, value_parser = parse_max_chars)]
    pub(crate) max_chars: usize,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ModelsArgs {
    /// Only models whose name contains this
    #[arg(value_name = "TEXT")]
    pub(crate) filter: Option<String>,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    /// List every setting in force and where it comes from
    #[arg(long)]
    pub(crate) settings: bool,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_format(name: &str) -> Result<Format, String> {
    let known = || Format::ALL.map(Format::name).join(", ");
    Format::find_by_name(name).ok_or_else(|| format!("formats are: {}", known()))
}

fn parse_contender(words: &str) -> Result<PolicyChoice, String> {
    let policy = policy_words(words);
    let name = policy.split('(').next().unwrap_or(policy);
    if name.trim_end().ends_with(".toml") {
        return Ok(PolicyChoice::File(words.to_owned()));
    }
    Contender::parse(words).map(PolicyChoice::Known).map_err(|error| match error {
        ContenderError::Unknown { name, known } => {
            let known: Vec<&str> = known.split(", ").collect();
            let near = did_you_mean(&name, &known);
            format!(
                "there is no policy {name:?}{near}\n  `trimtab policies` lists ours, with --peers the others; or name a TOML file"
            )
        }
        error => error.to_string(),
    })
}

fn parse_model(name: &str) -> Result<Model, String> {
    crate::prices::find_model(name).map_err(|error| format!("{error:#}"))
}

fn parse_budget(words: &str) -> Result<ReplayBudget, String> {
    tokens_or_share(words).map(|amount| match amount {
        Amount::Tokens(tokens) => ReplayBudget::Tokens(tokens),
        Amount::Share(share) => ReplayBudget::OfPeak(share),
    })
}

fn parse_line_range(words: &str) -> Result<(usize, usize), String> {
    let (first, last) = words.split_once('-').unwrap_or((words, words));
    let number = |word: &str| word.trim().parse::<usize>().map_err(|_| format!("{word:?} is no line number"));
    Ok((number(first)?, number(last)?))
}

/// Reads how long an answer may be: room for a line at least.
fn parse_max_chars(words: &str) -> Result<usize, String> {
    let count = words.parse::<usize>().ok().filter(|count| *count >= 200);
    count.ok_or_else(|| format!("{words:?} is no number of characters from 200 on"))
}
