//! One file per command. Each takes what was asked for and where the data goes; none reads arguments by itself.

mod backup;
mod changelog;
mod compact;
mod demo;
pub(crate) mod doctor;
pub(crate) mod file_at;
pub(crate) mod files;
mod fit;
mod forget;
mod inspect;
mod man;
mod mcp;
mod models;
mod page;
mod policies;
mod proxy;
pub(crate) mod recall;
mod replay;
mod restore;
mod search;
pub(crate) mod sessions;
pub(crate) mod show;
pub(crate) mod stats;
mod sums;
pub(crate) mod why;
pub(crate) mod wish;
mod wrap;

use anyhow::Result;

use crate::{
    args::{self, Command},
    output::Output,
};

/// Does what was asked for.
pub(crate) fn run(command: &Command, out: &mut Output) -> Result<()> {
    match command {
        Command::Demo(asked) => demo::run(asked, out),
        Command::Show(asked) => show::run(asked, out),
        Command::Inspect(asked) => inspect::run(asked, out),
        Command::Why(asked) => why::run(asked, out),
        Command::FileAt(asked) => file_at::run(asked, out),
        Command::Files(asked) => files::run(asked, out),
        Command::Changelog(asked) => changelog::run(asked, out),
        Command::Fit(asked) => fit::run(asked, out),
        Command::Page(asked) => page::run(asked),
        Command::Proxy(asked) => proxy::run(asked),
        Command::Wrap(asked) => wrap::run(asked, out),
        Command::Compact(asked) => compact::run(asked, out),
        Command::Policies(asked) => policies::run(asked, out),
        Command::Recall(asked) => recall::run(asked, out),
        Command::Pin(asked) => wish::pin(asked, out),
        Command::Unpin(asked) => wish::unpin(asked),
        Command::Undo(asked) => wish::undo(asked),
        Command::Restore(asked) => restore::run(asked, out),
        Command::Replay(asked) => replay::run(asked, out),
        Command::Sessions(asked) => sessions::run(asked, out),
        Command::Search(asked) => search::run(asked, out),
        Command::Forget(asked) => forget::run(asked, out),
        Command::Backup(asked) => backup::run(asked),
        Command::Stats(asked) => stats::run(asked, out),
        Command::Mcp(asked) => mcp::run(asked),
        Command::Models(asked) => models::run(asked, out),
        Command::Doctor(asked) => doctor::run(asked, out),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut args::command(), "trimtab", &mut script);
            out.write_raw_bytes(&script)
        }
        Command::Man { folder } => man::run(folder),
    }
}
