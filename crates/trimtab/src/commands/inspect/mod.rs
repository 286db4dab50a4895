//! `trimtab inspect`: what fills the window. Takes requests, recordings or folders of them; gives a picture of one
//! conversation, or what many have in common. Never stops at a file that cannot be read: it is listed with the reason.

mod picture;
mod summary;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use trimtab_core::Memo;
use trimtab_replay::{Inspection, Recording, inspect, read};

use crate::{
    args::{Inspect, StoreView},
    input::{self, ENDINGS, Unreadable, files_of},
    output::{Output, Progress, counted},
    own_sessions::own_sessions,
    prices::models,
};

pub(crate) fn run(asked: &Inspect, out: &mut Output) -> Result<()> {
    if asked.paths.is_empty() {
        return many(asked, own_sessions(&asked.finding, "inspect")?, Vec::new(), out);
    }
    if let [path] = asked.paths.as_slice()
        && !path.is_dir()
    {
        return one(asked, path, out);
    }
    if asked.segment.is_some() {
        bail!("--segment is for a single recording: name one file");
    }
    let (mut paths, mut unreadable) = (Vec::new(), Vec::new());
    asked.paths.iter().for_each(|path| files_of(path, &mut paths, &mut unreadable));
    if paths.is_empty() && unreadable.is_empty() {
        bail!("no recording found: a folder is searched for names ending in .{}", ENDINGS.join(", ."));
    }
    many(asked, paths, unreadable, out)
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

fn many(
    asked: &Inspect,
    paths: Vec<PathBuf>,
    mut unreadable: Vec<Unreadable>,
    out: &mut Output,
) -> Result<()> {
    let mut memo = Memo::default();
    let mut measured: Vec<Inspection> = Vec::new();
    let mut read_files = 0;
    let bar = Progress::begin(&paths);
    for path in &paths {
        bar.file(path);
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
        bar.done(path);
    }
    bar.finish();
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
        bail!(
            "{bad} of {} could not be read; the reasons are in the report",
            counted(files, "file", "files")
        );
    }
    Ok(())
}

fn recording(path: &Path, view: &StoreView) -> Result<Recording> {
    if let Some(recording) = input::stored_session(path, view)? {
        return Ok(recording);
    }
    Ok(read(&input::bytes(path)?)?)
}
