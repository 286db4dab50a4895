//! One file per command. Each takes what was asked for and where the data goes; none reads arguments by itself.

mod changelog;
mod compact;
mod doctor;
mod file_at;
mod fit;
mod inspect;
mod models;
mod policies;
mod recall;
mod show;

use anyhow::Result;
use clap::CommandFactory;

use crate::{
    args::{Args, Command},
    output::Output,
};

/// Does what was asked for.
pub(crate) fn run(command: &Command, out: &mut Output) -> Result<()> {
    match command {
        Command::Show(asked) => show::run(asked, out),
        Command::Inspect(asked) => inspect::run(asked, out),
        Command::FileAt(asked) => file_at::run(asked, out),
        Command::Changelog(asked) => changelog::run(asked, out),
        Command::Fit(asked) => fit::run(asked, out),
        Command::Compact(asked) => compact::run(asked, out),
        Command::Policies(asked) => policies::run(asked, out),
        Command::Recall(asked) => recall::run(asked, out),
        Command::Models(asked) => models::run(asked, out),
        Command::Doctor(asked) => doctor::run(asked, out),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "trimtab", &mut script);
            out.bytes(&script)
        }
    }
}
