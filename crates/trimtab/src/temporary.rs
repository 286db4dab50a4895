//! [`TemporaryFolder`]: a folder that only this user can read and that is removed at the end. `wrap` puts an agent's file in it,
//! `demo` its store. Nothing secret may be written to it: a process that is killed does not remove it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// How many names are tried for the folder: a process with the same number may have left one.
const NAMES: u32 = 100;

/// A folder that is removed when this is dropped.
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Makes a folder. Its name tells what it is for.
    ///
    /// # Errors
    /// Says where no folder can be made.
    pub(crate) fn make(purpose: &str) -> Result<TemporaryFolder> {
        let within = std::env::temp_dir();
        let folder = make_folder(&within, purpose)
            .with_context(|| format!("{}: no folder can be made in it", within.display()))?;
        Ok(TemporaryFolder(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // What cannot be removed now, the system removes from its temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn make_folder(within: &Path, purpose: &str) -> io::Result<PathBuf> {
    let mut fault = io::Error::from(io::ErrorKind::AlreadyExists);
    for number in 0..NAMES {
        let path = within.join(format!("trimtab-{purpose}-{}-{number}", std::process::id()));
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
