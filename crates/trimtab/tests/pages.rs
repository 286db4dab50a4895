//! Pages written by hand stay true: what the README shows, links between pages, and the commands of the tutorial.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;

use std::{path::Path, process::Command};

use common::{check_between, files_below, recall_in, root, trimtab};

/// The most lines the README may have.
const MOST_LINES: usize = 200;

/// How many lines of the original the README shows.
const LINES_BEFORE: usize = 6;

const RECORDING: &str = "fixtures/recordings/claude-code.jsonl";

#[test]
fn the_readme_shows_a_block_before_and_after() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store.db");
    let store = store.to_str().expect("a path");
    // The session is short: by its usual limit the policy would still keep the file.
    let arguments =
        ["fit", RECORDING, "--policy", "steady", "--set", "file_need=0.01", "--cold", "--store", store];
    let sent = trimtab(&arguments).text();
    // The note of a file that was read in part: the example is short enough for a README.
    let start = sent.find("[Read /home/dev/ledger/ledger/inventory.py lines 56-84").expect("the note");
    let note = &sent[start..=start + sent[start..].find(']').expect("its end")];
    let (command, handle) = recall_in(note).expect("the command that brings the original back");
    let original = trimtab(&["recall", &handle, "--store", store]).text();
    // Where the program and the store are differs from machine to machine.
    let note = note.replace(&command, &format!("trimtab recall {handle}"));
    let before: Vec<&str> = original.lines().take(LINES_BEFORE).collect();
    let rest = original.lines().count() - LINES_BEFORE;
    let expected = format!(
        "```text\n{}\n    … {rest} more lines\n```\n\n```text\n{}\n```\n",
        before.join("\n"),
        wrapped(&note, 120)
    );
    check_between("README.md", "before-after", &expected);
}

/// Breaks a text at spaces, so that no line is longer than `width` characters.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

#[test]
fn the_readme_can_be_read_in_one_go() {
    let text = std::fs::read_to_string(root().join("README.md")).expect("the README");
    assert!(text.lines().count() <= MOST_LINES, "{} lines", text.lines().count());
}

#[test]
fn links_between_pages_lead_to_pages() {
    let mut pages = files_below("docs");
    pages.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
            .map(|name| root().join(name)),
    );
    let mut broken = Vec::new();
    let mut links = 0;
    for page in pages.iter().filter(|path| path.extension().is_some_and(|kind| kind == "md")) {
        let text = std::fs::read_to_string(page).expect("a page");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") || file.contains(' ') || file.contains('`') {
                continue;
            }
            links += 1;
            if !page.parent().expect("a folder").join(file).exists() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(links > 20, "only {links} links were found");
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Returns the fenced blocks of a page: language and text.
fn fences(page: &str) -> Vec<(&str, &str)> {
    page.split("\n```")
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.split_once('\n'))
        .map(|(language, text)| (language.trim(), text))
        .collect()
}

#[test]
fn the_tutorial_does_what_it_says() {
    let page = std::fs::read_to_string(root().join("docs/tutorial.md")).expect("the tutorial");
    let folder = tempfile::tempdir().expect("a folder");
    let program = Path::new(env!("CARGO_BIN_EXE_trimtab")).parent().expect("a folder").to_owned();
    let (mut said, mut commands) = (String::new(), 0);
    for (language, text) in fences(&page) {
        match language {
            "toml" => {
                let name =
                    text.lines().next().and_then(|line| line.strip_prefix("# ")).expect("the file's name");
                std::fs::write(folder.path().join(name), text).expect("a policy");
            }
            "sh" => {
                commands += 1;
                let path = format!("{}:{}", program.display(), std::env::var("PATH").expect("a path"));
                let done = Command::new("sh")
                    .args(["-e", "-c", text])
                    .current_dir(folder.path())
                    .env("PATH", path)
                    .env("HOME", folder.path())
                    .env("XDG_CONFIG_HOME", folder.path())
                    .env("XDG_DATA_HOME", folder.path())
                    .env("SESSION", root().join(RECORDING))
                    .output()
                    .expect("a shell");
                said = [done.stdout, done.stderr]
                    .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                    .concat();
                assert!(done.status.success(), "{text}\n{said}");
            }
            "text" => {
                for line in text.lines() {
                    assert!(said.contains(line), "not said: {line}\n{said}");
                }
            }
            other => panic!("the tutorial has a block of {other}"),
        }
    }
    assert!(commands > 4, "only {commands} commands were found");
}
