//! Arguments of the commands about single blocks and requests of a session that is kept: `pin`, `unpin`, `undo` and `restore`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};
use trimtab_core::Handle;

use super::StoreViewArgs;

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "No policy or budget ever shortens, replaces or drops a pinned block. If it is hidden now, the next request sends it whole \
    again. A handle names every block with that content.\n\n\
    Examples:\n  trimtab pin 6ca415216d72\n  trimtab pin 6ca415216d72 --session s12\n  trimtab pin --list"
)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct PinArgs {
    /// The handles in notes
    #[arg(value_name = "HANDLE", group = "what", value_parser = parse_handle)]
    pub(crate) handles: Vec<Handle>,

    /// List the pins, of all sessions or of the named one
    #[arg(long, group = "what")]
    pub(crate) list: bool,

    /// Write the list as JSON
    #[arg(long, requires = "list")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) session: SessionArgs,

    #[command(flatten)]
    pub(crate) view: StoreViewArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  trimtab unpin 6ca415216d72")]
pub(crate) struct UnpinArgs {
    /// The handles that were pinned
    #[arg(value_name = "HANDLE", required = true, value_parser = parse_handle)]
    pub(crate) handles: Vec<Handle>,

    #[command(flatten)]
    pub(crate) session: SessionArgs,

    #[command(flatten)]
    pub(crate) view: StoreViewArgs,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "The block is sent whole again when that costs nothing: the provider's cache is cold, or the request differs before the \
    block anyway. Its age then counts from this undo.\n\n\
    Examples:\n  trimtab undo 6ca415216d72\n  trimtab undo 6ca415216d72 --now"
)]
pub(crate) struct UndoArgs {
    /// The handles in notes
    #[arg(value_name = "HANDLE", required = true, value_parser = parse_handle)]
    pub(crate) handles: Vec<Handle>,

    /// Do it with the next request, whatever that costs
    #[arg(long)]
    pub(crate) now: bool,

    #[command(flatten)]
    pub(crate) session: SessionArgs,

    #[command(flatten)]
    pub(crate) view: StoreViewArgs,
}

/// Which session is meant.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct SessionArgs {
    /// The session: an ID from `trimtab sessions`, or the client's name for it [default: the last used session that holds the block]
    #[arg(long = "session", value_name = "ID")]
    pub(crate) id: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "What the agent sent comes back byte for byte. With --sent, what the provider got instead.\n\n\
    Examples:\n  trimtab restore s12 > request.json\n  trimtab restore s12 --request 3 --out request.json\n  \
    diff <(trimtab restore s12 | jq .) <(trimtab restore s12 --sent | jq .)"
)]
pub(crate) struct RestoreArgs {
    /// The session: an ID from `trimtab sessions`, or the client's name for it
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// Which request of the session, counted from 1 [default: the latest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) request: Option<u32>,

    /// What was sent to the provider instead of what the agent sent
    #[arg(long)]
    pub(crate) sent: bool,

    /// Write to this file [default: stdout]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,

    /// Overwrite the file
    #[arg(long, requires = "out")]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) view: StoreViewArgs,
}

/// Reads a handle.
pub(super) fn parse_handle(word: &str) -> Result<Handle, String> {
    let wrong =
        || format!("{word} is not a handle: a handle has 12 digits of 0-9 and a-f, and notes name it");
    Handle::parse(word).ok_or_else(wrong)
}
