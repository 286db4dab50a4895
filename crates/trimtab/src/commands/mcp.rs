//! `trimtab mcp`: a server that agents ask for originals. Takes a store or a recording; speaks on standard input and output.

use std::io::{self, IsTerminal};

use anyhow::{Context, Result};

use crate::{
    args::McpArgs,
    input,
    mcp::{ToolSource, serve},
    output::print_note,
    settings::{SettingsFiles, keeping::resolve_secrets},
};

pub(crate) fn run(asked: &McpArgs) -> Result<()> {
    let source = match &asked.file {
        Some(file) => {
            // An agent that starts this sees no reason later.
            input::check_readable(file)?;
            ToolSource::File(file.clone())
        }
        None => ToolSource::Store(asked.view.clone()),
    };
    let secrets = resolve_secrets(asked.show_secrets, &SettingsFiles::read()?)?;
    if io::stdin().is_terminal() {
        print_note(
            "an agent starts this and speaks the Model Context Protocol with it, for example by `claude mcp add trimtab -- trimtab mcp`; \
             Ctrl-C ends it",
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no threads can be started")?;
    runtime.block_on(serve(source, secrets, asked.max_chars))
}
