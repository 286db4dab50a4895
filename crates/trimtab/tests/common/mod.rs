//! Runs the binary as a user would. Gives what it wrote and its exit code.

#![allow(dead_code, clippy::expect_used, clippy::panic, reason = "each test file uses its own part of this")]

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// What came of a run.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) words: String,
}

impl Run {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }
}

/// The project's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project's folder")
}

/// Runs `trimtab` in the project's folder.
pub(crate) fn trimtab(arguments: &[&str]) -> Run {
    trimtab_reading(arguments, b"")
}

/// Runs `trimtab` with something on its standard input.
pub(crate) fn trimtab_reading(arguments: &[&str], input: &[u8]) -> Run {
    let mut child = command(arguments).stdin(Stdio::piped()).spawn().expect("the binary");
    // A child that does not read its input closes it: that is its right.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    let done = child.wait_with_output().expect("an end");
    Run {
        code: done.status.code(),
        out: done.stdout,
        words: String::from_utf8_lossy(&done.stderr).into_owned(),
    }
}

/// Returns the first command by which a note says that an original comes back, with its handle.
pub(crate) fn recall_in(text: &str) -> Option<(String, String)> {
    let (before, behind) = text.split_once(" recall ")?;
    let start = before.rfind("; ").map_or(0, |at| at + 2);
    let (options, _) = behind.split_once(']')?;
    let handle = options.rsplit(' ').next()?;
    Some((format!("{} recall {options}", before.get(start..)?), handle.to_owned()))
}

/// A command that runs `trimtab` away from the settings of whoever runs the tests.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trimtab"));
    command.args(arguments).current_dir(root()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let theirs = |name: &str| name.starts_with("TRIMTAB_") || name.starts_with("PATCHPAL_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| theirs(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    command.env("XDG_CONFIG_HOME", root().join("target/no-config"));
    // Nothing is kept but where a test says so: not in the home of whoever runs it.
    command.env("TRIMTAB_NO_STORE", "1");
    command.env_remove("CLICOLOR_FORCE").env("NO_COLOR", "1");
    command
}

/// Files below a folder of the project, in the order of their names.
pub(crate) fn files_below(folder: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Compares a text with what a file says between two marks, or writes it there when `TRIMTAB_BLESS` is set.
pub(crate) fn check_between(file: &str, mark: &str, expected: &str) {
    let path = root().join(file);
    let text = std::fs::read_to_string(&path).expect(file);
    let (start, end) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
    let from = text.find(&start).unwrap_or_else(|| panic!("{file} has no mark {mark}")) + start.len();
    let to = from + text[from..].find(&end).unwrap_or_else(|| panic!("{file}: mark {mark} has no end"));
    if std::env::var_os("TRIMTAB_BLESS").is_some() {
        std::fs::write(&path, [&text[..from], expected, &text[to..]].concat()).expect(file);
        return;
    }
    assert_eq!(
        &text[from..to],
        expected,
        "{file} is out of date at {mark}: run the tests once with TRIMTAB_BLESS=1"
    );
}

/// Compares a whole file, or writes it when `TRIMTAB_BLESS` is set.
pub(crate) fn check_file(file: &str, expected: &str) {
    let path = root().join(file);
    if std::env::var_os("TRIMTAB_BLESS").is_some() {
        std::fs::write(&path, expected).expect(file);
        return;
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{file} is out of date: run the tests once with TRIMTAB_BLESS=1");
}
