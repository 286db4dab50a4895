//! `trimtab recall`: the original behind a note. Takes a handle and the file that holds it; gives the bytes.

use anyhow::{Context, Result, bail};
use regex::bytes::Regex;
use trimtab::{read, recall};

use crate::{args::Recall, input, output::Output};

pub(crate) fn run(asked: &Recall, out: &mut Output) -> Result<()> {
    let name = asked.file.display();
    let recording = read(&input::bytes(&asked.file).with_context(|| name.to_string())?)
        .with_context(|| name.to_string())?;
    let found = recording.segments.iter().find_map(|segment| recall(&segment.history, &asked.handle));
    let Some(original) = found else {
        bail!("{name}: no block has the handle {}; was it made from another file?", asked.handle);
    };
    let pattern = asked.grep.as_deref().map(Regex::new).transpose().context("--grep")?;
    if pattern.is_none() && asked.lines.is_none() {
        return out.bytes(&original);
    }
    let (first, last) = asked.lines.unwrap_or((1, usize::MAX));
    for (index, line) in original.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let number = index + 1;
        let wanted =
            (first..=last).contains(&number) && pattern.as_ref().is_none_or(|pattern| pattern.is_match(line));
        if wanted {
            out.bytes(line)?;
        }
    }
    Ok(())
}
