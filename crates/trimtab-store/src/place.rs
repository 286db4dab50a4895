//! Where conversations are kept. Takes the environment; gives the file. Never makes anything.

use std::{env, path::PathBuf};

/// Returns the file that is used where none is named: `trimtab/trimtab.db` in the XDG data folder, on every system.
pub fn default_path() -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(env::home_dir()?.join(".local/share")))?;
    Some(data.join("trimtab").join("trimtab.db"))
}
