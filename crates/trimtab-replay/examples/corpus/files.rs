//! The files of a folder, read. Takes a path; gives every file below it with what the library makes of it.

use std::path::{Path, PathBuf};

use trimtab_replay::{ReadError, Recording, read};

pub(crate) struct File {
    pub(crate) path: PathBuf,
    pub(crate) bytes: usize,
    pub(crate) recording: Result<Recording, ReadError>,
}

/// Reads every file below a path, in the order of their names. Files that only describe the others are left out.
pub(crate) fn below(path: &Path) -> Vec<File> {
    let mut paths = Vec::new();
    collect(path, &mut paths);
    paths.sort();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        match std::fs::read(&path) {
            Ok(bytes) => files.push(File { path, bytes: bytes.len(), recording: read(&bytes) }),
            Err(error) => eprintln!("{}: {error}", path.display()),
        }
    }
    files
}

fn collect(path: &Path, paths: &mut Vec<PathBuf>) {
    let described = path.extension().is_some_and(|extension| extension == "md");
    if path.is_file() && !described {
        paths.push(path.to_owned());
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        collect(&entry.path(), paths);
    }
}
