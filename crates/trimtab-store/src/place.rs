//! Where conversations are kept. Takes the environment; gives the file. Never makes anything.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// Returns the file that is used where none is named: `trimtab/trimtab.db` in the folder where programs keep the user's data. That is
/// `$XDG_DATA_HOME`, else `~/.local/share`, and on Windows `%LOCALAPPDATA%`.
pub fn default_path() -> Option<PathBuf> {
    let data = data_folder(|name| env::var_os(name), env::home_dir().as_deref(), cfg!(windows))?;
    Some(data.join("trimtab").join("trimtab.db"))
}

fn data_folder(
    variable: impl Fn(&str) -> Option<OsString>,
    home: Option<&Path>,
    is_windows: bool,
) -> Option<PathBuf> {
    let named = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = || home.map(|home| home.join(".local/share"));
    let local = || if is_windows { named("LOCALAPPDATA") } else { None };
    named("XDG_DATA_HOME").or_else(local).or_else(usual)
}

// The paths in it are absolute on Unix only.
#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &str)], is_windows: bool) -> Option<String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let folder = data_folder(variable, Some(Path::new("/home/dev")), is_windows)?;
        Some(folder.to_string_lossy().into_owned())
    }

    #[test]
    fn each_system_keeps_data_where_its_programs_do() {
        let local = ("LOCALAPPDATA", "/users/dev/local");
        assert_eq!(check(&[], false).as_deref(), Some("/home/dev/.local/share"));
        assert_eq!(check(&[local], false).as_deref(), Some("/home/dev/.local/share"));
        assert_eq!(check(&[local], true).as_deref(), Some("/users/dev/local"));
        assert_eq!(check(&[], true).as_deref(), Some("/home/dev/.local/share"));
        assert_eq!(check(&[("XDG_DATA_HOME", "/data"), local], true).as_deref(), Some("/data"));
        assert_eq!(check(&[("XDG_DATA_HOME", "data")], false).as_deref(), Some("/home/dev/.local/share"));
    }
}
