//! The tour of features in docs/policies.md: every row names a command and what it says, and both are compared with the program.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;

use std::{path::Path, process::Command};

/// How many features the documents describe.
const FEATURES: usize = 43;

/// One row: its number, the command, and texts that the command must print.
struct Row {
    number: usize,
    command: String,
    says: Vec<String>,
}

/// Returns the texts between backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(|text| text.replace("\\|", "|")).collect()
}

fn rows() -> Vec<Row> {
    let page = std::fs::read_to_string(common::root().join("docs/policies.md")).unwrap();
    let (_, rest) = page.split_once("<!-- tour -->").expect("the mark");
    let (table, _) = rest.split_once("<!-- /tour -->").expect("its end");
    let lines = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    lines
        .map(|line| {
            // A bar inside a command is written `\|`.
            let line = line.replace("\\|", "\u{1}");
            let cells: Vec<String> =
                line.trim_matches('|').split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect();
            let [number, _, _, command, says] = cells.as_slice() else { panic!("five columns: {line}") };
            Row {
                number: number.parse().expect("a number"),
                command: quoted(command).join(" "),
                says: quoted(says),
            }
        })
        .collect()
}

#[test]
fn every_feature_has_a_row_whose_command_shows_it() {
    let rows = rows();
    let numbers: Vec<usize> = rows.iter().map(|row| row.number).collect();
    assert_eq!(numbers, (1..=FEATURES).collect::<Vec<_>>());
    let mut wrong = Vec::new();
    for row in &rows {
        let folder = tempfile::tempdir().unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_trimtab")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let ours = |name: &str| name.starts_with("TRIMTAB_") || name.starts_with("PATCHPAL_");
        let mut command = Command::new("bash");
        command.args(["-o", "pipefail", "-c", &row.command]).current_dir(common::root());
        for (name, _) in std::env::vars_os().filter(|(name, _)| ours(&name.to_string_lossy())) {
            command.env_remove(name);
        }
        let done = command
            .env("PATH", path)
            .env("HOME", folder.path())
            .env("XDG_CONFIG_HOME", folder.path())
            .env("XDG_DATA_HOME", folder.path())
            .env("STORE", folder.path().join("kept.db"))
            .env("FOLDER", folder.path())
            .env("TOUR", "fixtures/tour/session.json")
            .output()
            .unwrap();
        let said =
            [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(!row.says.is_empty(), "row {} says nothing", row.number);
        let missing: Vec<&String> = row.says.iter().filter(|text| !said.contains(*text)).collect();
        if !done.status.success() || !missing.is_empty() {
            let said: String = said.chars().take(1500).collect();
            wrong.push(format!(
                "row {}: {}\n{}; it does not say {missing:?}:\n{said}",
                row.number, row.command, done.status
            ));
        }
    }
    assert!(wrong.is_empty(), "{} rows are not true:\n\n{}", wrong.len(), wrong.join("\n\n"));
}
