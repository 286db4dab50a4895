//! [`TemporaryFile`]: a file that an agent reads while it runs, in a folder that only this user can read. It is removed at the
//! end. Nothing secret may be written to it: a `wrap` that is killed leaves it behind.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// How many names are tried for the folder: a process with the same number may have left one.
const NAMES: u32 = 100;

/// A file in a folder of its own.
pub(super) struct TemporaryFile {
    folder: PathBuf,
    path: PathBuf,
}

impl TemporaryFile {
    /// Writes the file.
    ///
    /// # Errors
    /// Says what cannot be written.
    pub(super) fn write(name: &str, text: &str) -> Result<TemporaryFile> {
        let folder = make_folder(&std::env::temp_dir())
            .with_context(|| format!("{}: no folder can be made in it", std::env::temp_dir().display()))?;
        let path = folder.join(name);
        let file = TemporaryFile { folder, path };
        fs::write(&file.path, text).with_context(|| format!("{} cannot be written", file.path.display()))?;
        Ok(file)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // What cannot be removed now, the system removes from its temporary folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn make_folder(within: &Path) -> io::Result<PathBuf> {
    let mut fault = io::Error::from(io::ErrorKind::AlreadyExists);
    for number in 0..NAMES {
        let path = within.join(format!("trimtab-wrap-{}-{number}", std::process::id()));
        match make_private(&path) {
            Ok(()) => return Ok(path),
            Err(found) if found.kind() == io::ErrorKind::AlreadyExists => fault = found,
            Err(found) => return Err(found),
        }
    }
    Err(fault)
}

#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make_private(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}
