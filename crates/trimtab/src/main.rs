//! The command line of trimtab. Takes arguments, files and standard input; gives data on standard output and
//! messages on standard error. Never does the work itself: that is the library's.

mod accounts;
mod args;
mod commands;
mod discovery;
mod endpoint;
mod heads;
mod hint;
mod input;
#[allow(dead_code, unused_imports, reason = "the charts of reports and of the page are one set")]
mod look;
mod mcp;
mod near;
mod output;
mod own_sessions;
mod page;
mod pictures;
mod prices;
mod programs;
mod proxy;
mod scope;
mod settings;
mod store;
mod stored_misses;
mod summarize;
mod temporary;
mod terminal;

use std::process::ExitCode;

use clap::{Command, FromArgMatches};

// Requests of several megabytes come and go: an allocator that keeps its pages is worth more than any tuning.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut command = args::command();
    if std::env::args_os().len() < 2 {
        return say_help(&mut command);
    }
    let matches = command.clone().get_matches();
    let args =
        args::Args::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit());
    let mut out = output::Output::new(args.color);
    let done = commands::run(&args.command, &mut out).and_then(|()| out.finish());
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever closed the pipe has seen enough.
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error);
            if error.is::<settings::WrongUsage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// Says what there is to do, to somebody who said nothing.
fn say_help(command: &mut Command) -> ExitCode {
    match command.print_help() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Ok(()) | Err(_) => ExitCode::SUCCESS,
    }
}
