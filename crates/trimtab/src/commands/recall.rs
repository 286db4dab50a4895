//! `trimtab recall`: the original that a note replaces. Takes a handle, and a file that holds it or the store; gives the bytes.

use anyhow::{Context, Result, bail};
use regex::bytes::Regex;
use trimtab_core::{block_handle, recall};
use trimtab_replay::{Segment, read};

use crate::{
    args::RecallArgs,
    input,
    near::did_you_mean,
    output::{self, Output},
    pictures::{Picture, pictures_in},
    scope::{Asker, StoreScope},
};

pub(crate) fn run(asked: &RecallArgs, out: &mut Output) -> Result<()> {
    let original = match &asked.file {
        Some(file) => in_file(&asked.handle, file)?,
        None => StoreScope::open(&asked.view, Asker::CommandLine)?.recall(&asked.handle)?,
    };
    let pictures = if asked.raw { Vec::new() } else { pictures_in(&original) };
    if let Some(file) = &asked.out {
        let picture = pictures.first().and_then(Picture::decode_bytes);
        return output::write_whole(file, &picture.unwrap_or(original));
    }
    if !pictures.is_empty() {
        return pictures.iter().try_for_each(|picture| {
            let bytes = picture.data.len() / 4 * 3;
            let (kind, handle) = (&picture.kind, &asked.handle);
            out.write_line(format_args!(
                "[{kind}, about {bytes} bytes: `trimtab recall {handle} --out FILE` writes the picture, --raw prints its JSON]"
            ))
        });
    }
    let pattern = asked.grep.as_deref().map(Regex::new).transpose().context("--grep")?;
    let shown = select_lines(&original, asked.lines, pattern.as_ref());
    if asked.raw { out.write_raw_bytes(&shown) } else { out.write_bytes(&shown) }
}

pub(crate) fn in_file(handle: &str, file: &std::path::Path) -> Result<Vec<u8>> {
    let name = file.display();
    let recording = read(&input::read_file_or_stdin(file).with_context(|| name.to_string())?)
        .with_context(|| name.to_string())?;
    let found = recording.segments.iter().find_map(|segment| recall(&segment.history, handle));
    let Some(original) = found else {
        let blocks = |segment: &Segment| -> Vec<String> {
            segment.history.blocks().iter().map(|block| block_handle(&segment.history, block)).collect()
        };
        let known: Vec<String> = recording.segments.iter().flat_map(blocks).collect();
        let near = did_you_mean(handle, &known.iter().map(String::as_str).collect::<Vec<_>>());
        bail!("{name}: no block has the handle {handle}{near}; was it made from another file?");
    };
    Ok(original.into_owned())
}

/// Returns the lines that are asked for.
pub(crate) fn select_lines(
    original: &[u8],
    lines: Option<(usize, usize)>,
    pattern: Option<&Regex>,
) -> Vec<u8> {
    if lines.is_none() && pattern.is_none() {
        return original.to_vec();
    }
    let (first, last) = lines.unwrap_or((1, usize::MAX));
    let numbered = original.split_inclusive(|byte| *byte == b'\n').zip(1..);
    let wanted = numbered.filter(|(line, number)| {
        (first..=last).contains(number) && pattern.is_none_or(|pattern| pattern.is_match(line))
    });
    wanted.flat_map(|(line, _)| line.iter().copied()).collect()
}
