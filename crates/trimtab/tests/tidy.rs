//! How the code reads, as far as a program can tell.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;

use std::process::Command;

use serde_json::Value;

use common::{files_below, root};

/// The most lines a source file may have.
const MOST_LINES: usize = 800;

fn sources() -> Vec<(String, String)> {
    let files =
        files_below("crates").into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "rs"));
    let named = |path: std::path::PathBuf| {
        let name = path.strip_prefix(root()).expect("a path in the project").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(&path).expect("a source file"))
    };
    files.map(named).collect()
}

#[test]
fn every_file_is_short_enough_to_hold_one_idea() {
    let long: Vec<String> = sources()
        .into_iter()
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(name, lines)| format!("{name}: {lines} lines"))
        .collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn every_file_begins_by_saying_what_it_is() {
    let mute: Vec<String> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//!")).map(|(name, _)| name).collect();
    assert!(mute.is_empty(), "no module head: {mute:#?}");
}

#[test]
fn comments_are_about_now() {
    // Spelt in halves, so that this file does not find itself.
    let diary = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["for n", "ow"], ["work in pro", "gress"]]
        .map(|halves| halves.concat());
    let found: Vec<String> = sources()
        .iter()
        .flat_map(|(name, text)| text.lines().enumerate().map(move |(number, line)| (name, number, line)))
        .filter(|(_, _, line)| line.contains("//") && diary.iter().any(|word| line.contains(word.as_str())))
        .map(|(name, number, line)| format!("{name}:{}: {}", number + 1, line.trim()))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// The modules of the library, each below those that may use it: a module uses what stands above it here, and nothing else.
const CORE: &[&str] = &[
    "json", "units", "terminal", "notes", "history", "usage", "recall", "identity", "prices", "wire",
    "count", "facts", "files", "digest", "verdict", "policy", "ledger", "render", "summary", "memory",
    "plan", "session", "intent", "report", "fuzzing",
];

/// The modules of the instrument, in the same way. All of them stand below the library.
const INSTRUMENT: &[&str] = &["recording", "replay", "inspect"];

#[test]
fn modules_of_the_library_use_only_what_comes_before_them() {
    let wrong = used_too_early("crates/trimtab-core/src/", CORE);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn modules_of_the_instrument_use_only_what_comes_before_them() {
    let wrong = used_too_early("crates/trimtab-replay/src/", INSTRUMENT);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_library_knows_nothing_of_the_crates_that_use_it() {
    let manifest =
        std::fs::read_to_string(root().join("crates/trimtab-core/Cargo.toml")).expect("a manifest");
    let used: Vec<&str> = manifest.lines().filter(|line| line.starts_with("trimtab")).collect();
    assert!(used.is_empty(), "{used:#?}");
}

/// Says which files of a crate use a module that comes later in the crate's line.
fn used_too_early(folder: &str, line: &[&str]) -> Vec<String> {
    let place = |module: &str| line.iter().position(|known| *known == module);
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        let Some(inside) = name.strip_prefix(folder).filter(|inside| *inside != "lib.rs") else {
            continue;
        };
        // Tests may look at anything.
        if inside.contains("test") || inside.ends_with("laws.rs") {
            continue;
        }
        let module = inside.split(['/', '.']).next().unwrap_or_default();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let Some(here) = place(module) else {
            wrong.push(format!(
                "{name}: the module `{module}` has no place in the line: put it below what it uses"
            ));
            continue;
        };
        for used in modules_named_in(code) {
            match place(&used) {
                Some(there) if there > here => wrong.push(format!(
                    "{name} uses `crate::{used}`, which comes later in the line: move what it needs to `{module}` or before it"
                )),
                Some(_) | None => {}
            }
        }
    }
    wrong
}

/// Returns the top modules that paths of a source file begin with.
fn modules_named_in(code: &str) -> Vec<String> {
    let code: String =
        code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let word = |text: &str| -> String {
            text.trim_start()
                .chars()
                .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                .collect()
        };
        let Some(list) = rest.strip_prefix('{') else {
            found.push(word(rest));
            continue;
        };
        // The names that begin the list, and those behind a comma that stands in no inner list.
        let mut depth = 0;
        found.push(word(list));
        for (index, letter) in list.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => found.push(word(&list[index + 1..])),
                _ => {}
            }
        }
    }
    found
}

#[test]
fn a_list_of_imports_is_read_by_its_first_words() {
    let code = "use crate::{\n    json::{Span, Tape},\n    wire::{Format, plan::Deep},\n    memory,\n};\ncrate::facts::facts(history)";
    assert_eq!(modules_named_in(code), ["json", "wire", "memory", "", "facts"]);
}

/// Asks cargo, without the network.
fn cargo(arguments: &[&str]) -> String {
    let run = Command::new(env!("CARGO")).current_dir(root()).args(arguments).arg("--offline").output();
    let run = run.expect("cargo runs");
    assert!(run.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).expect("cargo writes UTF-8")
}

#[test]
fn every_crate_that_is_published_says_what_it_is_and_carries_its_licences() {
    let told: Value =
        serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).expect("JSON");
    let packages = told["packages"].as_array().expect("packages");
    let mut published = Vec::new();
    for package in packages.iter().filter(|package| package["publish"].is_null()) {
        let name = package["name"].as_str().expect("a name");
        published.push(name);
        for key in ["description", "license", "readme", "rust_version"] {
            assert!(package[key].as_str().is_some_and(|text| !text.is_empty()), "{name} has no {key}");
        }
        for key in ["keywords", "categories"] {
            let count = package[key].as_array().map_or(0, Vec::len);
            assert!((1..=5).contains(&count), "{name} has {count} {key}: a registry takes one to five");
        }
        // A registry knows a crate by its version, and has no paths. What only tests need is left out of a package.
        let ours = package["dependencies"].as_array().expect("dependencies").iter();
        for ours in ours.filter(|used| !used["path"].is_null() && used["kind"].is_null()) {
            assert_ne!(ours["req"], "*", "{name} asks for no version of {}", ours["name"]);
        }
        let files = cargo(&["package", "--list", "--allow-dirty", "-p", name]);
        for file in ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(files.lines().any(|line| line == file), "the package {name} has no {file}");
        }
    }
    published.sort_unstable();
    assert_eq!(published, ["trimtab", "trimtab-core", "trimtab-replay", "trimtab-store"]);
}
