//! `trimtab inspect`: what fills the window. Takes requests, recordings or folders of them; gives a picture of one
//! conversation, or what many have in common. Never stops at a file that cannot be read: it is listed with the reason.

mod measure;
mod picture;
mod summary;

use std::{
    fs,
    io::IsTerminal,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use trimtab::{Memo, Recording, read};

use crate::{args::Inspect, input, output::Output};
use measure::Measured;
pub(crate) use measure::RECENT_STEPS;

/// How names of files end that are looked for in a folder.
const ENDINGS: &[&str] = &["json", "jsonl", "traj"];

/// A file that could not be read.
#[derive(Serialize)]
struct Unreadable {
    path: String,
    reason: String,
}

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
    let recording = recording(path).with_context(|| name.clone())?;
    let number = match asked.segment {
        Some(number) => usize::try_from(number)?,
        None => recording.longest_number(),
    };
    let measured = measure::measure(&name, &recording, number, asked.model.as_deref(), &mut Memo::default())?;
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
    let mut measured: Vec<Measured> = Vec::new();
    let mut read_files = 0;
    let bar = progress(paths.len());
    for path in &paths {
        bar.inc(1);
        let name = path.display().to_string();
        match recording(path) {
            Ok(recording) => {
                read_files += 1;
                for number in 1..=recording.segments.len() {
                    let model = asked.model.as_deref();
                    measured.push(measure::measure(&name, &recording, number, model, &mut memo)?);
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

fn recording(path: &Path) -> Result<Recording> {
    Ok(read(&input::bytes(path)?)?)
}

/// Collects the files of a path: itself, or those below it that may be recordings.
fn files_of(path: &Path, files: &mut Vec<PathBuf>, unreadable: &mut Vec<Unreadable>) {
    if !path.is_dir() {
        files.push(path.to_owned());
        return;
    }
    let listed = match fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()),
        Err(error) => {
            unreadable.push(Unreadable { path: path.display().to_string(), reason: error.to_string() });
            return;
        }
    };
    let may_be = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        path.is_dir() || ENDINGS.contains(&ending)
    };
    let mut listed: Vec<PathBuf> = listed.filter(may_be).collect();
    listed.sort();
    listed.iter().for_each(|path| files_of(path, files, unreadable));
}

/// Returns a bar on standard error; one that nobody sees where that is no terminal or there is little to wait for.
fn progress(files: usize) -> ProgressBar {
    if files < 2 || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{wide_bar} {pos} of {len} files")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(u64::try_from(files).unwrap_or(0)).with_style(style)
}
