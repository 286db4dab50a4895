//! How notes name the recall of what they hide. Takes where originals are kept and who will read the notes; gives the command
//! that works there, or nothing where nobody could bring an original back. Never runs anything.

use std::{
    env,
    path::{Path, PathBuf},
};

use trimtab_core::RecallHint;

use crate::discovery::{Machine, System};

/// What the program is called.
const NAME: &str = "trimtab";

/// Folders that are on the path of every login shell, whatever the user's own settings say.
const LOGIN_FOLDERS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Who runs the command that a note names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HintReader {
    /// A program that is given the store by its environment.
    Child,
    /// A program on this machine whose environment is its own.
    Neighbour,
    /// A program that may run anywhere.
    Anybody,
}

/// Returns how notes name the recall from a store.
pub(crate) fn recall_hint(store: &Path, reader: HintReader) -> RecallHint {
    let program = match reader {
        HintReader::Child | HintReader::Neighbour => program_name(),
        HintReader::Anybody => NAME.to_owned(),
    };
    let usual =
        trimtab_store::default_path().is_some_and(|usual| absolute_path(&usual) == absolute_path(store));
    let place = match reader {
        HintReader::Child => String::new(),
        HintReader::Neighbour | HintReader::Anybody if usual => String::new(),
        HintReader::Neighbour | HintReader::Anybody => {
            format!(" --store {}", shell_word(&absolute_path(store).to_string_lossy()))
        }
    };
    RecallHint::Command(format!("{program} recall{place}").into())
}

/// Returns a path that means the same in every folder.
pub(crate) fn absolute_path(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns how a shell on this machine finds this program: by its name where every shell does, else by its path. A login
/// shell begins with another path.
fn program_name() -> String {
    let Some(this) = env::current_exe().ok().and_then(|this| this.canonicalize().ok()) else {
        return NAME.to_owned();
    };
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    shortest_name(&this, &folders, &LOGIN_FOLDERS.map(PathBuf::from))
}

fn shortest_name(this: &Path, folders: &[PathBuf], login: &[PathBuf]) -> String {
    let file = format!("{NAME}{}", env::consts::EXE_SUFFIX);
    let is_this = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == this);
    let first =
        |folders: &[PathBuf]| folders.iter().map(|folder| folder.join(&file)).find(|path| path.exists());
    let by_name = |folders: &[PathBuf]| first(folders).as_ref().is_some_and(is_this);
    if by_name(folders) && (by_name(login) || cfg!(windows)) {
        return NAME.to_owned();
    }
    // The place where it is installed outlives the version that a link there leads to.
    let installed = folders.iter().filter(|folder| folder.is_absolute()).map(|folder| folder.join(&file));
    let path = installed.into_iter().find(is_this).unwrap_or_else(|| this.to_owned());
    shell_word(&path.to_string_lossy())
}

/// Returns a word as a shell reads it back.
fn shell_word(word: &str) -> String {
    word_for_shell(word, Machine::this().system)
}

fn word_for_shell(word: &str, system: System) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "_-./+:@%,=".contains(letter);
    if word.chars().all(plain) {
        return word.to_owned();
    }
    match system {
        System::Windows => format!("\"{word}\""),
        System::Linux | System::MacOs => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_a_shell_needs_it() {
        assert_eq!(shell_word("/opt/trimtab-1.2/bin/trimtab"), "/opt/trimtab-1.2/bin/trimtab");
        assert_eq!(word_for_shell("/home/a b/it's", System::Linux), r"'/home/a b/it'\''s'");
        assert_eq!(word_for_shell(r"C:\Program Files\t.exe", System::Windows), r#""C:\Program Files\t.exe""#);
    }

    #[cfg(unix)]
    #[test]
    fn the_program_is_named_by_its_path_unless_every_shell_finds_it_by_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a folder");
        let [bin, own, other] = ["bin", "own", "other"].map(|name| root.join(name));
        for place in [&bin, &own, &other] {
            std::fs::create_dir(place).expect("a folder");
        }
        let this = root.join("trimtab-7");
        std::fs::write(&this, "").expect("a file");
        let paths = |places: &[&PathBuf]| places.iter().map(|place| (*place).clone()).collect::<Vec<_>>();
        let check = |path: &[&PathBuf], login: &[&PathBuf]| shortest_name(&this, &paths(path), &paths(login));
        assert_eq!(check(&[&own], &[&bin]), this.to_string_lossy(), "nobody finds it");
        std::os::unix::fs::symlink(&this, own.join("trimtab")).expect("a link");
        assert_eq!(check(&[&own], &[&bin]), own.join("trimtab").to_string_lossy(), "a login shell does not");
        std::os::unix::fs::symlink(&this, bin.join("trimtab")).expect("a link");
        assert_eq!(check(&[&own], &[&bin]), "trimtab");
        std::fs::write(other.join("trimtab"), "").expect("a file");
        assert_eq!(
            check(&[&other, &own], &[&bin]),
            own.join("trimtab").to_string_lossy(),
            "another is first"
        );
    }

    #[test]
    fn a_store_is_named_to_those_who_do_not_know_it() {
        let store = Path::new("/tmp/my kept.db");
        let of = |reader| match recall_hint(store, reader) {
            RecallHint::Command(command) => command.to_string(),
            RecallHint::Nothing => String::new(),
        };
        assert!(!of(HintReader::Child).contains("--store"));
        assert!(of(HintReader::Neighbour).contains(" recall --store "));
        assert!(of(HintReader::Anybody).starts_with("trimtab recall --store "));
        let usual = trimtab_store::default_path().expect("a home");
        assert_eq!(recall_hint(&usual, HintReader::Anybody), RecallHint::default());
    }
}
