//! Finds programs as a shell would: [`find_program`]. `wrap` runs what it finds, `doctor` says which agents are there.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

/// Returns the file of a program; nothing where none of that name is in the path.
pub(crate) fn find_program(name: &OsStr) -> Option<PathBuf> {
    let endings = if cfg!(windows) {
        env::var_os("PATHEXT").unwrap_or_else(|| USUAL_ENDINGS.into())
    } else {
        OsString::new()
    };
    let path = env::var_os("PATH").unwrap_or_else(|| USUAL_FOLDERS.into());
    find_in(name, &path, &endings)
}

/// Where systems look for programs if no variable says where.
const USUAL_FOLDERS: &str = if cfg!(windows) { "" } else { "/bin:/usr/bin" };

/// How names of programs end on Windows. npm installs agents as `.cmd`.
const USUAL_ENDINGS: &str = ".COM;.EXE;.BAT;.CMD";

/// Finds a program in folders, with endings that a system adds to names.
fn find_in(name: &OsStr, path: &OsStr, endings: &OsStr) -> Option<PathBuf> {
    let endings = endings.to_string_lossy().to_lowercase();
    // A name with its ending is taken as it is.
    let has_ending = endings
        .split(';')
        .any(|ending| !ending.is_empty() && name.to_string_lossy().to_lowercase().ends_with(ending));
    let endings: Vec<&str> = if endings.is_empty() || has_ending {
        vec![""]
    } else {
        endings.split(';').filter(|ending| !ending.is_empty()).collect()
    };
    let with = |folder: &Path, ending: &str| {
        let mut file = name.to_owned();
        file.push(ending);
        Some(folder.join(file)).filter(|file| file.is_file())
    };
    let in_folder = |folder: &Path| endings.iter().find_map(|ending| with(folder, ending));
    if Path::new(name).components().count() > 1 {
        return in_folder(Path::new(""));
    }
    env::split_paths(path).find_map(|folder| in_folder(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, endings: &str) -> Option<String> {
        let folder = tempfile::tempdir().expect("a folder");
        for file in ["codex.cmd", "claude", "tool.exe"] {
            std::fs::write(folder.path().join(file), "").expect("a file");
        }
        let path = env::join_paths([Path::new("/nowhere"), folder.path()]).expect("a path");
        let found = find_in(name.as_ref(), &path, endings.as_ref())?;
        Some(found.file_name()?.to_string_lossy().into_owned())
    }

    #[test]
    fn a_program_is_found_by_its_name_and_on_windows_with_an_ending() {
        assert_eq!(check("claude", "").as_deref(), Some("claude"));
        assert_eq!(check("codex", ""), None);
        assert_eq!(check("codex", ".exe;.CMD").as_deref(), Some("codex.cmd"));
        assert_eq!(check("tool.exe", ".exe;.cmd").as_deref(), Some("tool.exe"));
        assert_eq!(check("claude", ".exe;.cmd"), None);
    }
}
