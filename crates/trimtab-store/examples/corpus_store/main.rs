//! The table `store` over a folder of recorded sessions: how many bytes they take at rest, and whether every handle in every note
//! of a replay brings the original back. `./scripts/corpus PATH store`; with a second word only `bytes` or `handles`.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "a program that prints a table and stops at the first fault"
)]

mod bytes;
mod handles;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use trimtab_replay::{Recording, read};
use trimtab_store::Sqlite;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let folder = arguments.next().expect("a folder of recordings");
    let part = arguments.next();
    let asked = |name: &str| part.as_deref().is_none_or(|part| part == name);
    let files = files(PathBuf::from(folder));
    if asked("bytes") {
        bytes::table(&files);
    }
    let good = !asked("handles") || handles::table(&files);
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A store that vanishes at the end.
struct Temporary {
    store: Sqlite,
    path: PathBuf,
}

impl Temporary {
    fn new(name: &str) -> Temporary {
        let path = env::temp_dir().join(format!("trimtab-corpus-{name}-{}.db", std::process::id()));
        Temporary { store: Sqlite::open(&path).expect("a store"), path }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if env::var_os("TRIMTAB_KEEP").is_some() {
            return println!("kept in {}", self.path.display());
        }
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(format!("{}{end}", self.path.display()));
        }
    }
}

/// Returns the recording in a file, with the bytes of the file.
fn recording(path: &Path) -> Option<(usize, Recording)> {
    let bytes = fs::read(path).expect("a file");
    Some((bytes.len(), read(&bytes).ok()?))
}

fn files(folder: PathBuf) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder];
    while let Some(path) = folders.pop() {
        match fs::read_dir(&path) {
            Ok(entries) => folders.extend(entries.filter_map(Result::ok).map(|entry| entry.path())),
            Err(_) => files.push(path),
        }
    }
    files.sort();
    files
}
