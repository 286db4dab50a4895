//! `trimtab changelog`: what was done to which file, and why. Takes a request or a recording; gives the changes grouped
//! by file, in the order in which the files were first changed.

use anstyle::Style;
use anyhow::Result;
use serde::Serialize;
use trimtab_core::{
    facts,
    files::{ChangeGroup, FileChanges, changelog},
};

use crate::{
    args::ChangelogArgs,
    input,
    output::{Output, wrap_text},
    terminal::escape_name,
};

const BOLD: Style = Style::new().bold();

#[derive(Serialize)]
struct ChangedFileJson<'a> {
    path: &'a str,
    changes: Vec<ChangesJson<'a>>,
}

#[derive(Serialize)]
struct ChangesJson<'a> {
    count: usize,
    first_step: u32,
    last_step: u32,
    words: &'a [String],
}

pub(crate) fn run(asked: &ChangelogArgs, out: &mut Output) -> Result<()> {
    let conversation = input::read_conversation(&asked.input)?;
    let history = &conversation.history;
    let files = changelog(history, &facts(history));
    if asked.json {
        return out.write_json(&files.iter().map(changed_file_json).collect::<Vec<ChangedFileJson<'_>>>());
    }
    if files.is_empty() {
        return out.write_line(format_args!("{}: no call changed a file", conversation.name));
    }
    for (index, file) in files.iter().enumerate() {
        if index > 0 {
            out.write_line("")?;
        }
        out.write_line(format_args!("{BOLD}{}{BOLD:#}", escape_name(&file.path)))?;
        for changes in &file.changes {
            for line in wrap_text(&changes.to_string(), out.width().min(100).saturating_sub(4)) {
                out.write_line(line)?;
            }
        }
    }
    Ok(())
}

fn changed_file_json(file: &FileChanges) -> ChangedFileJson<'_> {
    let rows = file.changes.iter().map(|ChangeGroup { count, first, last, words }| ChangesJson {
        count: *count,
        first_step: *first,
        last_step: *last,
        words,
    });
    ChangedFileJson { path: &file.path, changes: rows.collect() }
}
