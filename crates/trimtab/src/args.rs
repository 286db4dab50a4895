//! What can be said on the command line. Takes the words; gives values that need no further checking.
//! Never reads a file.

mod serving;
mod view;
mod wishes;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum, ValueHint, builder::FalseyValueParser};
use clap_complete::Shell;
use trimtab_core::{Budget, Contender, Folding, Format, Handle, Model, Tokens};
use trimtab_store::Retention;

pub(crate) use self::{
    serving::{Fitting, Proxy, Wrap},
    view::{KeepLimits, StoreView},
    wishes::{InSession, Pin, Restore, Undo, Unpin},
};

/// Keeps an LLM agent's conversation inside its context window: cheaply, safely and predictably.
#[derive(Debug, Parser)]
#[command(name = "trimtab", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Data goes to standard output, words for people to standard error.\n\
    Exit codes: 0 done, 1 could not (with the reason), 2 wrong usage.")]
pub(crate) struct Args {
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", env = "TRIMTAB_COLOR")]
    pub(crate) color: When,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// When something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    Always,
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show a conversation, one line per block
    Show(Show),
    /// Tell what fills the window: of one conversation, or of all in a folder
    Inspect(Inspect),
    /// Show a file as the conversation knew it at a step
    FileAt(FileAt),
    /// List the files that a conversation touched, the latest first
    Files(TouchedFiles),
    /// Tell what was done to which file, and why
    Changelog(Changelog),
    /// Write a request that fits, in the format it came in
    Fit(Fit),
    /// Stand between an agent and its provider, and fit every request
    Proxy(Box<Proxy>),
    /// Run an agent behind a proxy of its own
    Wrap(Box<Wrap>),
    /// Fold the old part of a conversation into one message
    Compact(Compact),
    /// List the policies that ship, or print one
    Policies(Policies),
    /// Tell what policies would have cost, saved and missed in recorded sessions
    Replay(Replay),
    /// Bring the original behind a note back
    Recall(Recall),
    /// Keep blocks from being hidden while a session runs
    Pin(Pin),
    /// Take pins back
    Unpin(Unpin),
    /// Take back that blocks are hidden
    Undo(Undo),
    /// List this project's conversations that are kept, the newest first
    Sessions(Sessions),
    /// Write a request of a session that is kept, byte for byte
    Restore(Restore),
    /// Find blocks of this project's conversations by their words
    Search(Search),
    /// Forget conversations that are kept
    Forget(Forget),
    /// Copy everything that is kept into one new file, also while it is in use
    Backup(Backup),
    /// Tell how much is kept, and what it saved
    Stats(Stats),
    /// Serve originals and history to agents over the Model Context Protocol
    Mcp(Mcp),
    /// List the models that are known: window, prices, how their tokens are counted
    Models(Models),
    /// Check this installation
    Doctor(Doctor),
    /// Write completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  trimtab show session.jsonl\n  trimtab show request.json --json | jq '.blocks[].tokens'\n  \
    curl -s … | trimtab show -"
)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Count as this model does (`chars/4`: roughly); without it, the model named in the file
    #[arg(long, value_name = "NAME", env = "TRIMTAB_MODEL")]
    pub(crate) model: Option<String>,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  trimtab inspect session.jsonl\n  trimtab inspect ~/.claude/projects --model claude-opus-4-6\n  \
    trimtab inspect recordings --json | jq .mean_tokens"
)]
pub(crate) struct Inspect {
    /// Requests, recordings, folders of them (.json, .jsonl, .traj), or the ID of a session that is kept (`latest`: the one used
    /// last); `-` for standard input
    #[arg(value_name = "PATH|ID", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) view: StoreView,

    /// Count as this model does and take its window; without it, the model named in the file
    #[arg(long, value_name = "NAME", env = "TRIMTAB_MODEL")]
    pub(crate) model: Option<String>,

    /// Which segment of a single recording, counted from 1; without it, the longest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) segment: Option<u32>,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Lines that the conversation never showed are shown as unknown.\n\n\
    Examples:\n  trimtab file-at session.jsonl src/main.rs --step 40\n  trimtab file-at session.jsonl src/main.rs --json | jq -r .text")]
pub(crate) struct FileAt {
    /// A request, a recording, or the ID of a session that is kept (`latest`: the one used last); `-` for standard input
    #[arg(value_name = "FILE|ID", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) view: StoreView,

    /// The file's path as the conversation spells it, or the end of it
    #[arg(value_name = "PATH")]
    pub(crate) path: String,

    /// After this step, counted from 1; without it, after the last
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) step: Option<u32>,

    /// Which segment of a recording, counted from 1; without it, the longest
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
pub(crate) struct TouchedFiles {
    #[command(flatten)]
    pub(crate) input: Input,

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
#[command(after_help = "Reasons are the `intent` that a call names, else the words said before it.\n\n\
    Example:\n  trimtab changelog session.jsonl")]
pub(crate) struct Changelog {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  trimtab fit --budget 50000 request.json > fitted.json\n  trimtab fit --budget 50000 --policy ladder --explain session.jsonl > request.json\n  trimtab fit --policy none --step 20 session.jsonl > request.json\n\n\
    Settings come from --set, TRIMTAB_* variables, ./trimtab.toml and the user's config.toml, in this order; `trimtab doctor` \
    shows those in force."
)]
pub(crate) struct Fit {
    #[command(flatten)]
    pub(crate) input: Input,

    /// The most tokens that the request may count; without it, what the model's window leaves
    #[arg(long, value_name = "TOKENS", env = "TRIMTAB_BUDGET")]
    pub(crate) budget: Option<u64>,

    /// Count and pay as this model does; without it, the model named in the file
    #[arg(long, value_name = "NAME", env = "TRIMTAB_MODEL")]
    pub(crate) model: Option<String>,

    /// What may be hidden, and when: a name that `trimtab policies` lists, or a TOML file; without it, steady
    #[arg(long, value_name = "NAME|FILE", env = "TRIMTAB_POLICY")]
    pub(crate) policy: Option<String>,

    /// Change a setting of the policy
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,

    /// What the session has cost so far; without it, what a recording reports. Thresholds adapt to it
    #[arg(long, value_name = "DOLLARS", env = "TRIMTAB_SPENT")]
    pub(crate) spent: Option<f64>,

    /// What a policy's steps that fold do where no summary is known: nothing, or fold by the ledger alone
    /// [default: summary]
    #[arg(long, value_name = "HOW", value_enum, env = "TRIMTAB_FOLD")]
    pub(crate) fold: Option<Fold>,

    /// Mend what the protocol forbids before fitting, and say what was mended
    #[arg(long)]
    pub(crate) repair: bool,

    /// Hide whatever is no longer needed: the provider's cache holds nothing of this conversation
    #[arg(long)]
    pub(crate) cold: bool,

    /// Show on standard error what becomes of every block, why and when, what that saves and costs, and which pass hid how much
    #[arg(long)]
    pub(crate) explain: bool,

    /// Write a report as JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,

    /// Never hide the block with this handle; with a store, this holds for the session from now on
    #[arg(long = "pin", value_name = "HANDLE", value_parser = wishes::handle)]
    pub(crate) pins: Vec<Handle>,

    /// Keep nothing, even where `TRIMTAB_STORE` names a store
    #[arg(long)]
    pub(crate) no_store: bool,
}

/// What becomes of a policy's steps that fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fold {
    /// Never fold
    Off,
    /// Fold where there is a summary
    Summary,
    /// Fold without a summary too: the user's words and a list of facts stand for what is old
    Ledger,
}

impl Fold {
    pub(crate) fn folding(self) -> Folding {
        match self {
            Fold::Off => Folding::Off,
            Fold::Summary => Folding::WhenGiven,
            Fold::Ledger => Folding::Ledger,
        }
    }
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Without a summary, what is folded is told by the user's words and a list of facts: files, commands, open errors and \
    tasks. A summary that is empty, refused, cut off or too long is not used.\n\n\
    Examples:\n  trimtab compact session.jsonl > request.json\n  \
    trimtab compact request.json --print-prompt | llm > notes.md && trimtab compact request.json --summary notes.md\n  \
    trimtab compact request.json --endpoint http://localhost:11434/v1 --model qwen3-coder"
)]
pub(crate) struct Compact {
    #[command(flatten)]
    pub(crate) input: Input,

    /// The most tokens that the compacted request may count; without it, about 28,000 and what cannot be folded
    #[arg(long, value_name = "TOKENS", env = "TRIMTAB_BUDGET")]
    pub(crate) budget: Option<u64>,

    /// Print the prompt for a summary and nothing else
    #[arg(long)]
    pub(crate) print_prompt: bool,

    /// Use the summary in this file; `-` for standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["endpoint", "print_prompt"])]
    pub(crate) summary: Option<PathBuf>,

    /// Ask this endpoint for a summary: Anthropic's where the URL ends in /messages, else one that speaks OpenAI Chat
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, requires = "model", conflicts_with = "print_prompt")]
    pub(crate) endpoint: Option<String>,

    /// The model that writes the summary
    #[arg(long, value_name = "NAME", env = "TRIMTAB_SUMMARY_MODEL")]
    pub(crate) model: Option<String>,

    /// How many tokens that model reads; without it, what the table of models says, or 32,000
    #[arg(long, value_name = "TOKENS", env = "TRIMTAB_SUMMARY_WINDOW")]
    pub(crate) window: Option<u64>,

    /// The environment variable that holds the endpoint's key
    #[arg(long, value_name = "NAME", requires = "endpoint")]
    pub(crate) api_key_env: Option<String>,

    /// Do without the endpoint after this many seconds
    #[arg(long, value_name = "SECONDS", default_value = "120", env = "TRIMTAB_SUMMARY_TIMEOUT")]
    pub(crate) timeout: u64,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Policies {
    /// Print the file of this policy
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  trimtab recall 6ca415216d72 --in session.jsonl --grep error")]
pub(crate) struct Recall {
    /// The handle that a note names
    #[arg(value_name = "HANDLE")]
    pub(crate) handle: String,

    /// The request or recording that holds the original; without it, the store is asked
    #[arg(long = "in", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) view: StoreView,

    /// Write the bytes as they are on a terminal too, control characters included
    #[arg(long)]
    pub(crate) raw: bool,

    /// Write the original to a file instead; of a picture, its bytes
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,

    /// Only these lines, counted from 1
    #[arg(long, value_name = "A-B", value_parser = lines)]
    pub(crate) lines: Option<(usize, usize)>,

    /// Only lines that match a regular expression
    #[arg(long, value_name = "RE")]
    pub(crate) grep: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "What is certified: nothing the agent went on to use was hidden, at this price. Whether the task would have \
    succeeded is not.\n\nFiles that cannot be replayed are listed on standard error; the others are replayed, and the exit code is 1.\n\n\
    Examples:\n  trimtab replay ~/.claude/projects\n  \
    trimtab replay session.jsonl --policy steady --policy 'peer:mask(10)' --policy 'recent(keep_last=5)'\n  \
    trimtab replay recordings --budget 35% --html report.html\n  \
    trimtab replay recordings --json | jq '.[] | select(.policy == \"steady\") | .cost_vs_raw'"
)]
pub(crate) struct Replay {
    /// Recordings, or folders of them (.json, .jsonl, .traj)
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

    /// What to replay: a name with its knob or settings in brackets, or a TOML file; without it, all that is known
    #[arg(long = "policy", value_name = "NAME|FILE", value_parser = contender)]
    pub(crate) policies: Vec<AskedPolicy>,

    /// Pay the prices of this model; without it, of three whose caches cost differently
    #[arg(long = "model", value_name = "NAME", env = "TRIMTAB_MODEL", value_parser = model)]
    pub(crate) models: Vec<Model>,

    /// Replay other tools' policies at every value of their knobs that is compared
    #[arg(long, conflicts_with = "policies")]
    pub(crate) knobs: bool,

    /// The most tokens that a request may count, or a share of the largest request of each segment; without it, what the
    /// model's window leaves
    #[arg(long, value_name = "TOKENS|SHARE%", env = "TRIMTAB_BUDGET", value_parser = budget)]
    pub(crate) budget: Option<Budget>,

    /// Keep caches as long, and at the price, as the recorded clients had them kept; without it, as providers usually do
    #[arg(long)]
    pub(crate) cache_as_recorded: bool,

    /// Only sessions whose path contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) session: Option<String>,

    /// How many files are replayed at a time; without it, as many as there are cores
    #[arg(long, value_name = "N", env = "TRIMTAB_JOBS", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,

    /// How often sessions are drawn again for the 95 % intervals; 0: no intervals
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) resamples: u16,

    /// Write JSON: one object per policy and model
    #[arg(long, conflicts_with = "html")]
    pub(crate) json: bool,

    /// Write one page that needs nothing else: pictures, table, sessions, misses
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    /// Say on standard error how long it took and how much memory
    #[arg(long)]
    pub(crate) timing: bool,
}

/// A policy that was asked for.
#[derive(Debug, Clone)]
pub(crate) enum AskedPolicy {
    Known(Contender),
    /// A TOML file, with settings in brackets behind it.
    File(String),
}

/// Which conversation is meant.
#[derive(Debug, ClapArgs)]
pub(crate) struct Input {
    /// A request, a recording, or the ID of a session that is kept (`latest`: the one used last); `-` for standard input
    #[arg(value_name = "FILE|ID", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) view: StoreView,

    /// Read it as a request in this format instead of telling by itself
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) format: Option<Format>,

    /// Which segment of a recording, counted from 1; without it, the longest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) segment: Option<u32>,

    /// The request that was answered by step N, counted from 1; without it, all that was said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) step: Option<u32>,
}

/// Where conversations are kept.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct StorePlace {
    /// The file that conversations are kept in; without it, `trimtab/trimtab.db` in the XDG data folder
    #[arg(id = "store", long, value_name = "PATH", env = "TRIMTAB_STORE", value_hint = ValueHint::FilePath)]
    pub(crate) path: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Sessions {
    #[command(flatten)]
    pub(crate) view: StoreView,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  trimtab search connection refused")]
pub(crate) struct Search {
    /// Words that must all occur
    #[arg(value_name = "TEXT", required = true)]
    pub(crate) words: Vec<String>,

    #[command(flatten)]
    pub(crate) view: StoreView,

    /// Only this session: an ID, the client's name for it, or the handle of a block in it
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,

    /// Show passwords and keys too
    #[arg(long, env = "TRIMTAB_SHOW_SECRETS", value_parser = FalseyValueParser::new())]
    pub(crate) show_secrets: bool,

    /// The most blocks that are shown
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Without sessions, age or size, what the settings keep_for and keep_at_most no longer keep is forgotten.\n\n\
    Examples:\n  trimtab forget s12 s13\n  trimtab forget --older-than 30d --dry-run\n  trimtab forget --larger-than 2GB --yes"
)]
#[command(group = clap::ArgGroup::new("which"))]
pub(crate) struct Forget {
    /// These sessions
    #[arg(value_name = "ID", group = "which")]
    pub(crate) ids: Vec<String>,

    /// Sessions whose last request is older: 30d, 12h, 4w
    #[arg(long, value_name = "AGE", group = "which", value_parser = age)]
    pub(crate) older_than: Option<i64>,

    /// The oldest sessions, until the store is no larger: 2GB, 500MB
    #[arg(long, value_name = "SIZE", group = "which", value_parser = bytes)]
    pub(crate) larger_than: Option<u64>,

    #[command(flatten)]
    pub(crate) keep: KeepLimits,

    /// Only tell what would be forgotten
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Do not ask before more than one session is forgotten
    #[arg(long, short)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) store: StorePlace,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  trimtab backup kept-2026-01-31.db")]
pub(crate) struct Backup {
    /// The file to make; one that is there already is left alone
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) store: StorePlace,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Stats {
    #[command(flatten)]
    pub(crate) store: StorePlace,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Speaks on standard input and output with the agent that starts it, and ends with it. Tools: recall, \
    search_history, file_at, files, changelog, pin, unpin, undo.\n\n\
    Examples:\n  claude mcp add trimtab -- trimtab mcp\n  codex mcp add trimtab -- trimtab mcp\n  trimtab mcp --in session.jsonl"
)]
pub(crate) struct Mcp {
    /// The request or recording that holds the originals; without it, the store
    #[arg(long = "in", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) view: StoreView,

    /// Show passwords and keys in what is found too
    #[arg(long, env = "TRIMTAB_SHOW_SECRETS", value_parser = FalseyValueParser::new())]
    pub(crate) show_secrets: bool,

    /// The most characters of one answer; what is longer comes in pieces, as the answer says
    #[arg(long, value_name = "N", env = "TRIMTAB_MCP_MAX_CHARS", default_value_t = 20_000, value_parser = letters)]
    pub(crate) max_chars: usize,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Models {
    /// Only models whose name contains this
    #[arg(value_name = "TEXT")]
    pub(crate) filter: Option<String>,

    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Doctor {
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn format(name: &str) -> Result<Format, String> {
    let known = || Format::ALL.map(Format::name).join(", ");
    Format::named(name).ok_or_else(|| format!("formats are: {}", known()))
}

fn contender(words: &str) -> Result<AskedPolicy, String> {
    let name = words.split('(').next().unwrap_or(words);
    if name.trim_end().ends_with(".toml") {
        return Ok(AskedPolicy::File(words.to_owned()));
    }
    Contender::parse(words).map(AskedPolicy::Known).map_err(|error| error.to_string())
}

fn model(name: &str) -> Result<Model, String> {
    crate::prices::find_model(name).map_err(|error| format!("{error:#}"))
}

fn budget(words: &str) -> Result<Budget, String> {
    let wrong = || format!("{words:?} is neither a number of tokens nor a share such as 35%");
    if let Some(share) = words.trim().strip_suffix('%') {
        let share: f64 = share.trim().parse().map_err(|_| wrong())?;
        let sensible = share > 0.0 && share <= 100.0;
        return if sensible { Ok(Budget::OfPeak(share / 100.0)) } else { Err(wrong()) };
    }
    words
        .trim()
        .parse()
        .ok()
        .filter(|tokens| *tokens > 0)
        .map(|tokens| Budget::Tokens(Tokens(tokens)))
        .ok_or_else(wrong)
}

fn lines(words: &str) -> Result<(usize, usize), String> {
    let (first, last) = words.split_once('-').unwrap_or((words, words));
    let number = |word: &str| word.trim().parse::<usize>().map_err(|_| format!("{word:?} is no line number"));
    Ok((number(first)?, number(last)?))
}

/// Reads how long an answer may be: room for a line at least.
fn letters(words: &str) -> Result<usize, String> {
    let count = words.parse::<usize>().ok().filter(|count| *count >= 200);
    count.ok_or_else(|| format!("{words:?} is no number of characters from 200 on"))
}

/// Reads an age as milliseconds: `30d`.
fn age(words: &str) -> Result<i64, String> {
    let wrong = || format!("{words:?} is no age: write 30d, 12h or 4w");
    let (digits, unit) =
        words.trim().split_at_checked(words.trim().len().saturating_sub(1)).ok_or_else(wrong)?;
    let minutes = match unit {
        "m" => 1,
        "h" => 60,
        "d" => 24 * 60,
        "w" => 7 * 24 * 60,
        _ => return Err(wrong()),
    };
    let count = digits.parse::<u32>().map_err(|_| wrong())?;
    Ok(i64::from(count) * minutes * 60_000)
}

/// Reads how long conversations are kept: long enough that nothing goes which a conversation still needs.
pub(crate) fn long_age(words: &str) -> Result<i64, String> {
    let age = age(words)?;
    let long = age >= Retention::LIVE_MS;
    if long {
        Ok(age)
    } else {
        Err(format!("{words:?} is too short: conversations are kept for 1d at least"))
    }
}

/// Reads a size in bytes: `2GB`.
pub(crate) fn bytes(words: &str) -> Result<u64, String> {
    let wrong = || format!("{words:?} is no size: write 2GB, 500MB or a number of bytes");
    let digits = words.trim().trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = words.trim().get(digits.len()..).unwrap_or_default().to_ascii_uppercase();
    let factor = match unit.as_str() {
        "" | "B" => 1,
        "K" | "KB" => 1_000,
        "M" | "MB" => 1_000_000,
        "G" | "GB" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    digits.trim().parse::<u64>().ok().and_then(|count| count.checked_mul(factor)).ok_or_else(wrong)
}
