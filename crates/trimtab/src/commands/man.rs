//! `trimtab man`: man pages. Takes a folder; writes a page for the program and one for each command into it.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use clap_mangen::Man;

use crate::{
    args,
    output::{count_with_noun, print_note, write_whole},
};

pub(crate) fn run(folder: &Path) -> Result<()> {
    let wrong = || format!("{}: no folder can be made", folder.display());
    fs::create_dir_all(folder).with_context(wrong)?;
    let mut program = args::command();
    program.build();
    let mut pages = 1;
    write_page(folder, "trimtab", program.clone())?;
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        let name = format!("trimtab-{}", command.get_name());
        write_page(folder, &name, command.clone().display_name(name.clone()))?;
        pages += 1;
    }
    print_note(format_args!(
        "{} written to {}; `man -l {}` shows one",
        count_with_noun(pages, "page", "pages"),
        folder.display(),
        folder.join("trimtab.1").display()
    ));
    Ok(())
}

fn write_page(folder: &Path, name: &str, command: clap::Command) -> Result<()> {
    let mut page = Vec::new();
    Man::new(command).title(name.to_uppercase()).render(&mut page)?;
    write_whole(&folder.join(format!("{name}.1")), &page)
}
