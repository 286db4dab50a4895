//! [`TemporaryFile`]: a file that an agent reads while it runs. It is removed at the end.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::temporary::TemporaryFolder;

/// A file in its own folder.
pub(super) struct TemporaryFile {
    path: PathBuf,
    _folder: TemporaryFolder,
}

impl TemporaryFile {
    /// Writes the file.
    ///
    /// # Errors
    /// Says what cannot be written.
    pub(super) fn write(name: &str, text: &str) -> Result<TemporaryFile> {
        let folder = TemporaryFolder::make("wrap")?;
        let path = folder.path().join(name);
        fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(TemporaryFile { path, _folder: folder })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
