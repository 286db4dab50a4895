//! `trimtab backup`: copies the store into one new file, also while a proxy writes to it.

use anyhow::Result;

use crate::{args::BackupArgs, output::print_line, store, terminal::escape_name};

pub(crate) fn run(asked: &BackupArgs) -> Result<()> {
    store::open_existing(&asked.store)?.backup(&asked.file)?;
    let bytes = std::fs::metadata(&asked.file)?.len();
    let name = asked.file.display().to_string();
    print_line(format_args!(
        "{}: {}; --store names it to any command",
        escape_name(&name),
        store::format_size(bytes)
    ));
    Ok(())
}
