//! `trimtab inspect`: what fills the window. Takes requests, recordings or folders of them; gives a picture of one
//! conversation, or what many have in common. Never stops at a file that cannot be read: it is listed with the reason.

mod picture;
mod summary;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use trimtab_core::CountMemo;
use trimtab_replay::{Inspection, Recording, inspect, read};

use crate::{
    args::{InspectArgs, StoreViewArgs},
    input::{self, ENDINGS, Unreadable, files_of},
    output::{Output, Progress, count_with_noun},
    own_sessions::own_sessions,
    prices::models,
};

pub(crate) fn run(asked: &InspectArgs, out: &mut Output) -> Result<()> {
    if asked.paths.is_empty() {
        return inspect_many(asked, &own_sessions(&asked.finding, "inspect")?, Vec::new(), out);
    }
    if let [path] = asked.paths.as_slice()
        && !path.is_dir()
    {
        return inspect_one(asked, path, out);
    }
    if asked.segment.is_some() {
        bail!("--segment is for a single recording: name one file");
    }
    let (mut paths, mut unreadable) = (Vec::new(), Vec::new());
    asked.paths.iter().for_each(|path| files_of(path, &mut paths, &mut unreadable));
    if paths.is_empty() && unreadable.is_empty() {
        bail!("no recording found: a folder is searched for names ending in .{}", ENDINGS.join(", ."));
    }
    inspect_many(asked, &paths, unreadable, out)
}

fn inspect_one(asked: &InspectArgs, path: &Path, out: &mut Output) -> Result<()> {
    let name = path.display().to_string();
    let recording = read_recording(path, &asked.view).with_context(|| name.clone())?;
    let number = match asked.segment {
        Some(number) => usize::try_from(number)?,
        None => recording.longest_number(),
    };
    let mut measured =
        inspect(&name, &recording, number, asked.model.as_deref(), models()?, &mut CountMemo::default())?;
    // Of a stored session, it counts what any session of its project called.
    if let Some(calls) = input::stored_calls(path, &asked.view)? {
        measured.head.count_calls(&calls);
    }
    if asked.json {
        return out.write_json(&measured);
    }
    picture::print_inspection(&measured, out)
}

fn inspect_many(
    asked: &InspectArgs,
    paths: &[PathBuf],
    mut unreadable: Vec<Unreadable>,
    out: &mut Output,
) -> Result<()> {
    let mut memo = CountMemo::default();
    let mut measured: Vec<Inspection> = Vec::new();
    let mut read_files = 0;
    let bar = Progress::begin(paths);
    for path in paths {
        bar.begin_file(path);
        let name = path.display().to_string();
        match read_recording(path, &asked.view) {
            Ok(recording) => {
                read_files += 1;
                for number in 1..=recording.segments.len() {
                    let model = asked.model.as_deref();
                    measured.push(inspect(&name, &recording, number, model, models()?, &mut memo)?);
                }
            }
            Err(error) => unreadable.push(Unreadable { path: name, reason: format!("{error:#}") }),
        }
        bar.finish_file(path);
    }
    bar.finish();
    let files = read_files + unreadable.len();
    let bad = unreadable.len();
    let summary = summary::InspectionSummary::from_inspections(&measured, read_files, unreadable);
    if asked.json {
        out.write_json(&summary)?;
    } else {
        summary::print_summary(&summary, &measured, out)?;
    }
    out.flush()?;
    if bad > 0 {
        bail!(
            "{bad} of {} could not be read; the reasons are in the report",
            count_with_noun(files, "file", "files")
        );
    }
    Ok(())
}

fn read_recording(path: &Path, view: &StoreViewArgs) -> Result<Recording> {
    if let Some(recording) = input::stored_session(path, view)? {
        return Ok(recording);
    }
    Ok(read(&input::read_file_or_stdin(path)?)?)
}
