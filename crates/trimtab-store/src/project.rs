//! Which project a folder belongs to. Takes a folder, or what the environment says; gives the name under which conversations of
//! that project are kept and found. Reads the folder's `.git`, and never runs git.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The variable that names the project: `trimtab wrap` sets it for the agent that it runs.
pub const PROJECT_VARIABLE: &str = "TRIMTAB_PROJECT";

/// The longest name that is taken, in bytes: the longest path of most systems.
const LONGEST: usize = 4096;

/// Returns the project of this process: the one that the environment names, else that of the current folder.
pub fn current_project() -> Option<String> {
    let named = env::var(PROJECT_VARIABLE).ok().and_then(|word| project_named(&word));
    named.or_else(|| Some(project_of(&env::current_dir().ok()?)))
}

/// Returns the project that a word names: an absolute path, or one that begins with a dot, is a folder of it; any other word is
/// the project's own name.
pub fn project_named(word: &str) -> Option<String> {
    let word = project_in_header(word.as_bytes())?;
    let is_folder = Path::new(&word).is_absolute() || word.starts_with('.');
    Some(if is_folder { project_of(Path::new(&word)) } else { word })
}

/// Returns the project that a client names in a header, exactly as written. Nothing is looked up: the client may run on another
/// machine.
pub fn project_in_header(value: &[u8]) -> Option<String> {
    let word = std::str::from_utf8(value).ok()?.trim();
    let word = if word.len() > 1 { word.trim_end_matches('/') } else { word };
    let fits = !word.is_empty() && word.len() <= LONGEST && !word.chars().any(char::is_control);
    fits.then(|| word.to_owned())
}

/// Returns the project that a folder belongs to: the root of its git repository, which all its work trees share; else the folder.
pub fn project_of(folder: &Path) -> String {
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let root = folder.ancestors().find_map(repository_at).unwrap_or(folder);
    root.to_string_lossy().into_owned()
}

/// Returns the repository whose work tree begins at this folder.
fn repository_at(folder: &Path) -> Option<PathBuf> {
    let entry = folder.join(".git");
    let about = fs::metadata(&entry).ok()?;
    let shared = if about.is_file() { shared_repository(folder, &entry) } else { None };
    Some(shared.unwrap_or_else(|| folder.to_owned()))
}

/// Returns the repository that a linked work tree belongs to. A submodule is a separate repository.
fn shared_repository(folder: &Path, entry: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(entry).ok()?;
    let own = folder.join(text.strip_prefix("gitdir:")?.trim());
    let common = fs::read_to_string(own.join("commondir")).ok()?;
    let common = fs::canonicalize(own.join(common.trim())).ok()?;
    let is_inside = common.file_name().is_some_and(|name| name == ".git");
    if is_inside { common.parent().map(Path::to_owned) } else { Some(common) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_of_a_repository_and_of_its_work_trees_is_one_project() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a folder");
        let [main, deep, tree, module, plain] =
            ["main", "main/src/deep", "tree/src", "main/module", "plain/sub"].map(|name| root.join(name));
        for place in [&deep, &tree, &module, &plain, &root.join("main/.git/worktrees/tree")] {
            fs::create_dir_all(place).expect("a folder");
        }
        let write = |name: &str, text: &str| fs::write(root.join(name), text).expect("a file");
        let own = root.join("main/.git/worktrees/tree");
        write("tree/.git", &format!("gitdir: {}\n", own.display()));
        write("main/.git/worktrees/tree/commondir", "../..\n");
        write("main/module/.git", "gitdir: ../.git/modules/module\n");
        let name = |path: &Path| path.to_string_lossy().into_owned();
        assert_eq!(project_of(&main), name(&main));
        assert_eq!(project_of(&deep), name(&main));
        assert_eq!(project_of(&tree), name(&main), "a linked work tree");
        assert_eq!(project_of(&module), name(&module), "a submodule");
        assert_eq!(project_of(&plain), name(&plain), "no repository");
        assert_eq!(project_named(&name(&deep)), Some(name(&main)));
    }

    #[test]
    fn a_word_that_is_no_path_is_the_project_s_own_name() {
        assert_eq!(project_named(" billing "), Some("billing".to_owned()));
        assert_eq!(project_named(""), None);
        assert_eq!(project_in_header(b"/srv/app/"), Some("/srv/app".to_owned()));
        assert_eq!(project_in_header(b"a\x1b]52;c"), None, "nothing that a terminal obeys");
        assert_eq!(project_in_header(&[0xff, 0xfe]), None);
    }
}
