//! The command line of trimtab. Takes arguments, files and standard input; gives data on standard output and
//! words for people on standard error. Never does the work itself: that is the library's.

mod args;
mod commands;
mod endpoint;
mod hint;
mod input;
mod mcp;
mod output;
mod pictures;
mod prices;
mod proxy;
mod scope;
mod settings;
mod store;
mod summarize;
mod temporary;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

// Requests of several megabytes come and go: an allocator that keeps its pages is worth more than any tuning.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let mut out = output::Output::new(args.color);
    let done = commands::run(&args.command, &mut out).and_then(|()| out.finish());
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever closed the pipe has seen enough.
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            if error.is::<settings::WrongUsage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}
