//! What can be said on the command line. Takes the words; gives values that need no further checking.
//! Never reads a file.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use trimtab::Format;

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
    /// Tell what was done to which file, and why
    Changelog(Changelog),
    /// Write a request that fits, in the format it came in
    Fit(Fit),
    /// Fold the old part of a conversation into one message
    Compact(Compact),
    /// List the policies that ship, or print one
    Policies(Policies),
    /// Bring the original behind a note back
    Recall(Recall),
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
    /// Requests, recordings, or folders of them (.json, .jsonl, .traj); `-` for standard input
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

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
    /// A request or a recording; `-` for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

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
    after_help = "Examples:\n  trimtab fit --budget 50000 request.json > fitted.json\n  trimtab fit --budget 50000 --policy ladder --explain session.jsonl > request.json\n  trimtab fit --policy none --step 20 session.jsonl > request.json"
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

    /// What may be hidden, and when: a name that `trimtab policies` lists, or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = "steady", env = "TRIMTAB_POLICY")]
    pub(crate) policy: String,

    /// Change a setting of the policy
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,

    /// Show on standard error what becomes of every block, and why
    #[arg(long)]
    pub(crate) explain: bool,

    /// Write a report as JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
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

    /// The request or recording that holds the original
    #[arg(long = "in", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Only these lines, counted from 1
    #[arg(long, value_name = "A-B", value_parser = lines)]
    pub(crate) lines: Option<(usize, usize)>,

    /// Only lines that match a regular expression
    #[arg(long, value_name = "RE")]
    pub(crate) grep: Option<String>,
}

/// Which conversation is meant.
#[derive(Debug, ClapArgs)]
pub(crate) struct Input {
    /// A request or a recording; `-` for standard input
    #[arg(value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

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

fn lines(words: &str) -> Result<(usize, usize), String> {
    let (first, last) = words.split_once('-').unwrap_or((words, words));
    let number = |word: &str| word.trim().parse::<usize>().map_err(|_| format!("{word:?} is no line number"));
    Ok((number(first)?, number(last)?))
}
