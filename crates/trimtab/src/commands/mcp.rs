//! `trimtab mcp`: a server that agents ask for originals. Takes a store or a recording; speaks on standard input and output.

use anyhow::{Context, Result};

use crate::{
    args::Mcp,
    mcp::{Source, serve},
    settings::{Files, keeping::secrets},
};

pub(crate) fn run(asked: &Mcp) -> Result<()> {
    let source = match &asked.file {
        Some(file) => Source::File(file.clone()),
        None => Source::Store(asked.view.clone()),
    };
    let secrets = secrets(asked.show_secrets, &Files::read()?)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no threads can be started")?;
    runtime.block_on(serve(source, secrets, asked.max_chars))
}
