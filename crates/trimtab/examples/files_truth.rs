//! Compares what the file states predict with what later reads show. Takes folders of Claude Code recordings; prints
//! how many lines were predicted, how many agree, and the classes of those that do not with samples.
//!
//! ```sh
//! cargo run --release -p trimtab --example files_truth -- FOLDER...
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people to run by hand")]

#[path = "files_truth/claude_code.rs"]
mod claude_code;

use std::{
    collections::{BTreeMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
};

use trimtab::{AccessKind, FileAction, Files, Operation, Run, Shown};

/// How many samples of each class are printed.
const SAMPLES: usize = 12;

#[derive(Default)]
struct Tally {
    reads: usize,
    shown: usize,
    predicted: usize,
    agreeing: usize,
    edits: BTreeMap<&'static str, usize>,
    classes: BTreeMap<&'static str, (usize, Vec<String>)>,
}

fn main() -> io::Result<()> {
    let mut tally = Tally::default();
    for argument in std::env::args().skip(1) {
        for file in files_under(Path::new(&argument))? {
            let bytes = fs::read(&file)?;
            match trimtab::read(&bytes) {
                Ok(recording) => measure(&file, &recording, &mut tally),
                Err(error) => eprintln!("{}: {error}", file.display()),
            }
        }
    }
    print(&tally);
    Ok(())
}

fn measure(file: &Path, recording: &trimtab::Recording, tally: &mut Tally) {
    // Branches and compactions repeat messages: each call is measured once.
    let mut measured: HashSet<String> = HashSet::new();
    for segment in &recording.segments {
        let mut files = Files::default();
        for step in claude_code::operations(&segment.history) {
            let new = measured.insert(step.call.clone());
            for operation in &step.operations {
                if new {
                    count(file, &files, step.step, operation, tally);
                }
                files.apply(step.step, operation);
            }
        }
    }
}

fn count(file: &Path, files: &Files, step: u32, operation: &Operation, tally: &mut Tally) {
    let before = files.file_state_at(&operation.path, u32::MAX).cloned().unwrap_or_default();
    match &operation.action {
        FileAction::Read(shown) => compare(file, files, step, &operation.path, shown, tally),
        FileAction::Replace(_) => {
            let after = before.after(step, &operation.action);
            let added = after.runs().iter().any(|run| match run {
                Run::Known { lines, .. } => lines.iter().any(|line| line.seen == step),
                Run::Unknown { .. } | Run::Rest { .. } => false,
            });
            let class = match (before.known_lines(), after.known_lines()) {
                (0, 0) => "of files of which nothing was known",
                (_, 0) => "after which nothing is known",
                _ if added => "placed",
                _ => "placed among unknown lines",
            };
            *tally.edits.entry(class).or_default() += 1;
            if class.starts_with("after") && std::env::var_os("FORGOTTEN").is_some() {
                println!("{} step {step} {}", file.display(), operation.path);
            }
        }
        _ => {}
    }
}

fn compare(file: &Path, files: &Files, step: u32, path: &str, shown: &Shown, tally: &mut Tally) {
    tally.reads += 1;
    tally.shown += shown.lines.len();
    let Some(state) = files.file_state_at(path, u32::MAX) else { return };
    for (number, text) in &shown.lines {
        let Some(line) = state.line(*number) else { continue };
        tally.predicted += 1;
        if line.text == text {
            tally.agreeing += 1;
            continue;
        }
        let edited = files
            .accesses(path)
            .iter()
            .any(|access| access.kind != AccessKind::Read && access.step >= line.seen);
        let class = if text.contains("REDACTED") || line.text.contains("REDACTED") {
            "redacted where it was recorded"
        } else if !edited {
            "changed outside: no call touched the file since the line was seen"
        } else if line.text.split_whitespace().eq(text.split_whitespace()) {
            "other white space after an edit: a formatter ran"
        } else {
            "other text after an edit"
        };
        let (count, samples) = tally.classes.entry(class).or_default();
        *count += 1;
        let sample = format!(
            "{} step {step} {path}:{number} (seen in step {})\n      predicted {:?}\n      shown     {:?}",
            file.display(),
            line.seen,
            short(line.text),
            short(text)
        );
        if samples.len() < SAMPLES
            && samples.last().is_none_or(|last| !last.contains(&format!("step {step} {path}")))
        {
            samples.push(sample);
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(100).collect()
}

fn print(tally: &Tally) {
    let Tally { reads, shown, predicted, agreeing, edits, classes } = tally;
    println!("{reads} reads showed {shown} lines");
    for (class, count) in edits {
        println!("{count:6} edits {class}");
    }
    let share = percent(*agreeing, *predicted);
    println!("{predicted} lines were predicted, {agreeing} agree: {share} %");
    for (class, (count, samples)) in classes {
        println!("{count:6}  {} %  {class}", percent(*count, *predicted));
        for sample in samples {
            println!("    {sample}");
        }
    }
}

fn percent(part: usize, whole: usize) -> String {
    let thousandths = (part * 100_000).checked_div(whole).unwrap_or_default();
    format!("{}.{:03}", thousandths / 1000, thousandths % 1000)
}

fn files_under(path: &Path) -> io::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        found.extend(files_under(&entry?.path())?);
    }
    found.sort();
    Ok(found)
}
