//! `trimtab inspect`: what fills the window. Takes requests, recordings or folders of them; gives a picture of one
//! conversation, or what many have in common. Never stops at a file that cannot be read: it is listed with the reason.

mod picture;
mod summary;

use std::path::Path;

use anyhow::{Context, Result, bail};
use trimtab_core::Memo;
use trimtab_replay::{Inspection, Recording, inspect, read};

use crate::{
    args::{Inspect, StoreView},
    input::{self, ENDINGS, Unreadable, files_of},
    output::{Output, progress},
    prices::models,
};

pub(crate) fn run(asked: &Inspect, out: &mut Output) -> Result<()> {
    if let [path] = asked.paths.as_slice()
        && !path.is_dir()
    {
        return one(asked, path, out);
    }
    if asked.segment.is_some() {
        bail!("--segment is for a single recording: name one file");
    }
    many(asked, out)
}

fn one(asked: &Inspect, path: &Path, out: &mut Output) -> Result<()> {
    let name = path.display().to_string();
    let recording = recording(path, &asked.view).with_context(|| name.clone())?;
    let number = match asked.segment {
        Some(number) => usize::try_from(number)?,
        None => recording.longest_number(),
    };
    let measured =
        inspect(&name, &recording, number, asked.model.as_deref(), models()?, &mut Memo::default())?;
    if asked.json {
        return out.json(&measured);
    }
    picture::print(&measured, out)
}

fn many(asked: &Inspect, out: &mut Output) -> Result<()> {
    let mut unreadable = Vec::new();
    let mut paths = Vec::new();
    for path in &asked.paths {
        files_of(path, &mut paths, &mut unreadable);
    }
    let mut memo = Memo::default();
    let mut measured: Vec<Inspection> = Vec::new();
    let mut read_files = 0;
    let bar = progress(paths.len());
    for path in &paths {
        bar.inc(1);
        let name = path.display().to_string();
        match recording(path, &asked.view) {
            Ok(recording) => {
                read_files += 1;
                for number in 1..=recording.segments.len() {
                    let model = asked.model.as_deref();
                    measured.push(inspect(&name, &recording, number, model, models()?, &mut memo)?);
                }
            }
            Err(error) => unreadable.push(Unreadable { path: name, reason: format!("{error:#}") }),
        }
    }
    bar.finish_and_clear();
    let files = read_files + unreadable.len();
    let bad = unreadable.len();
    let summary = summary::Summary::of(&measured, read_files, unreadable);
    if asked.json {
        out.json(&summary)?;
    } else {
        summary::print(&summary, &measured, out)?;
    }
    out.flush()?;
    if bad > 0 {
        bail!("{bad} of {files} files could not be read; the reasons are in the report");
    }
    if read_files == 0 {
        bail!("no recording found: a folder is searched for names ending in .{}", ENDINGS.join(", ."));
    }
    Ok(())
}

fn recording(path: &Path, view: &StoreView) -> Result<Recording> {
    if let Some(recording) = input::stored_session(path, view)? {
        return Ok(recording);
    }
    Ok(read(&input::bytes(path)?)?)
}
