//! The file below a store: whether the path still names the file that was opened, who may read it, and a copy of it. A file that
//! is deleted or replaced while a process has it open takes everything that is written to it along.

use std::{
    fs::{self, OpenOptions},
    io,
    path::Path,
};

use rusqlite::Connection;

use super::open;
use crate::StoreError;

/// Which file a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity(u64, u64);

impl FileIdentity {
    /// Returns the identity of the file at a path. While the file is open, no other file can have it.
    #[cfg(unix)]
    pub(super) fn identity_at(path: &Path) -> io::Result<FileIdentity> {
        use std::os::unix::fs::MetadataExt;
        let about = fs::metadata(path)?;
        Ok(FileIdentity(about.dev(), about.ino()))
    }

    /// Returns the same for every file: elsewhere a file that is open cannot be deleted or replaced.
    #[cfg(not(unix))]
    pub(super) fn identity_at(path: &Path) -> io::Result<FileIdentity> {
        fs::metadata(path).map(|_| FileIdentity(0, 0))
    }
}

/// Takes the right to read a file away from everybody but its owner.
#[cfg(unix)]
pub(super) fn make_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let Ok(about) = fs::metadata(path) else { return };
    let mode = about.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        // A file of another user stays as that user wants it.
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700));
    }
}

/// Permissions are left to the folder.
#[cfg(not(unix))]
pub(super) fn make_private(_path: &Path) {}

/// Makes an empty file that only its owner can read.
pub(super) fn make_new(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Copies a store as it is at this moment into a new file. Writers are not delayed.
pub(super) fn copy_store(from: &Connection, to: &Path) -> Result<(), StoreError> {
    let io = |source| StoreError::Io { doing: "making the copy", source };
    make_new(to).map_err(io)?;
    let done = copy_pages(from, to);
    if done.is_err() {
        // A copy that is not whole must not be taken for one.
        let _ = fs::remove_file(to);
    }
    done
}

fn copy_pages(from: &Connection, to: &Path) -> Result<(), StoreError> {
    let name = to.to_str().ok_or_else(|| StoreError::Io {
        doing: "making the copy",
        source: io::Error::new(io::ErrorKind::InvalidInput, "its path is not UTF-8"),
    })?;
    from.execute("VACUUM INTO ?", [name])?;
    // Opened once so that it is written ahead like any store; closing leaves one file.
    drop(open::for_writing(to)?);
    let file = fs::File::open(to).map_err(|source| StoreError::Io { doing: "reading the copy", source })?;
    file.sync_all().map_err(|source| StoreError::Io { doing: "writing the copy", source })
}
