//! A folder of settings that stands in for the user's own. Takes the user's folder and JSON to lay over one file; gives a
//! folder of links to everything else. Never writes into the user's folder, and takes its own away at the end, also where this
//! process is killed: the file may hold a key.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result};
use serde_json::Value;

use super::agents::{Folder, filled};

/// A folder that is removed when it is no longer needed.
pub(super) struct StandIn {
    path: PathBuf,
    /// Removes the folder when this process has ended, however it did.
    _remover: Option<Remover>,
}

/// A process that waits for the end of this one: then nobody holds the other end of its input any more.
struct Remover {
    child: Child,
}

impl Remover {
    /// Starts the process; nothing where that cannot be done.
    #[cfg(unix)]
    fn start(folder: &Path) -> Option<Remover> {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "cat >/dev/null; rm -rf -- \"$0\""]).arg(folder);
        // In a group of its own, so that it outlives what ends the others.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        command.spawn().ok().map(|child| Remover { child })
    }

    #[cfg(not(unix))]
    fn start(_folder: &Path) -> Option<Remover> {
        None
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl StandIn {
    /// Makes the folder.
    pub(super) fn make(folder: &Folder, url: &str) -> Result<StandIn> {
        let set = std::env::var_os(folder.variable).map(PathBuf::from);
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let real = set.or_else(|| home.map(|home| home.join(folder.usual)));
        let path = std::env::temp_dir().join(format!("trimtab-wrap-{}", std::process::id()));
        make_private(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        let remover = Remover::start(&path);
        let stand_in = StandIn { path, _remover: remover };
        let mut settings = Value::Object(serde_json::Map::new());
        if let Some(real) = &real {
            stand_in.link(real, folder.file)?;
            let file = real.join(folder.file);
            if let Ok(text) = fs::read_to_string(&file) {
                settings =
                    serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))?;
            }
        }
        let overlay: Value = serde_json::from_str(&filled(folder.overlay, url))?;
        lay_over(&mut settings, overlay);
        fs::write(stand_in.path.join(folder.file), serde_json::to_vec_pretty(&settings)?)?;
        Ok(stand_in)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Links everything of the user's folder but one file.
    fn link(&self, real: &Path, but: &str) -> Result<()> {
        let Ok(entries) = fs::read_dir(real) else { return Ok(()) };
        for entry in entries {
            let entry = entry?;
            if entry.file_name() != but {
                link(&entry.path(), &self.path.join(entry.file_name()))?;
            }
        }
        Ok(())
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        // Links go without what they lead to. What cannot be removed now, the system removes from its temporary folder.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Lays JSON over JSON: objects are merged, everything else is replaced.
fn lay_over(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                lay_over(below.entry(key).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above,
    }
}

#[cfg(unix)]
fn make_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make_private(path: &Path) -> std::io::Result<()> {
    fs::create_dir(path)
}

#[cfg(unix)]
fn link(real: &Path, here: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(real, here)
}

#[cfg(not(unix))]
fn link(real: &Path, here: &Path) -> std::io::Result<()> {
    if real.is_dir() { Ok(()) } else { fs::copy(real, here).map(drop) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_laid_over_keeps_the_rest() {
        let mut below =
            serde_json::json!({"providers": {"openai": {"apiKey": "k", "baseUrl": "old"}, "own": {}}});
        lay_over(&mut below, serde_json::json!({"providers": {"openai": {"baseUrl": "new"}}}));
        assert_eq!(
            below,
            serde_json::json!({"providers": {"openai": {"apiKey": "k", "baseUrl": "new"}, "own": {}}})
        );
    }
}
