//! `trimtab changelog`: what was done to which file, and why. Takes a request or a recording; gives the changes grouped
//! by file, in the order in which the files were first changed.

use anstyle::Style;
use anyhow::Result;
use serde::Serialize;
use trimtab_core::{
    facts,
    files::{Changes, FileChanges, changelog},
};

use crate::{
    args::Changelog,
    input,
    output::{Output, wrapped},
    terminal::escape_name,
};

const BOLD: Style = Style::new().bold();

#[derive(Serialize)]
struct File<'a> {
    path: &'a str,
    changes: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    count: usize,
    first_step: u32,
    last_step: u32,
    words: &'a [String],
}

pub(crate) fn run(asked: &Changelog, out: &mut Output) -> Result<()> {
    let conversation = input::conversation(&asked.input)?;
    let history = &conversation.history;
    let files = changelog(history, &facts(history));
    if asked.json {
        return out.json(&files.iter().map(file).collect::<Vec<File<'_>>>());
    }
    if files.is_empty() {
        return out.line(format_args!("{}: no call changed a file", conversation.name));
    }
    for (index, file) in files.iter().enumerate() {
        if index > 0 {
            out.line("")?;
        }
        out.line(format_args!("{BOLD}{}{BOLD:#}", escape_name(&file.path)))?;
        for changes in &file.changes {
            for line in wrapped(&changes.to_string(), out.width().min(100).saturating_sub(4)) {
                out.line(line)?;
            }
        }
    }
    Ok(())
}

fn file(file: &FileChanges) -> File<'_> {
    let rows = file.changes.iter().map(|Changes { count, first, last, words }| Row {
        count: *count,
        first_step: *first,
        last_step: *last,
        words,
    });
    File { path: &file.path, changes: rows.collect() }
}
