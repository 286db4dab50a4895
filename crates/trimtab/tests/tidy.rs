//! How the code reads, as far as a program can tell.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;

use std::{collections::BTreeMap, process::Command};

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
    "json", "units", "terminal", "notes", "history", "usage", "recall", "identity", "prices", "account",
    "keep_alive", "misses", "wire", "count", "facts", "files", "digest", "rewrite", "verdict", "policy",
    "ledger", "render", "summary", "memory", "plan", "session", "intent", "markers", "report", "fuzzing",
];

/// The modules of the instrument, in the same way. All of them stand below the library.
const INSTRUMENT: &[&str] = &["recording", "replay", "head", "inspect", "misses"];

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
        // The names that begin the list, and those after a comma outside inner lists.
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
        // A registry knows a crate by its version, and has no paths. A package leaves out what only tests need.
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

/// Returns the code of every source file that is no test, without its tests.
fn product_sources() -> Vec<(String, String)> {
    let is_product = |name: &str| {
        let file = name.rsplit('/').next().unwrap_or_default();
        let is_test = file.ends_with("tests.rs") || file == "laws.rs" || name.contains("/tests/");
        name.contains("/src/") && !name.contains("trimtab-fuzz") && !is_test
    };
    let product = |(name, text): (String, String)| {
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
        is_product(&name).then_some((name, code))
    };
    sources().into_iter().filter_map(product).collect()
}

/// Returns what a line of code declares with one of some keywords, where it does: `pub(crate) struct Name<T>` gives `Name`.
fn declared<'a>(line: &'a str, keywords: &[&str]) -> Option<&'a str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')').map_or(rest, |(_, rest)| rest),
        Some(rest) => rest,
        None => line,
    };
    let mut words = line.split_whitespace().skip_while(|word| matches!(*word, "async" | "const" | "unsafe"));
    let keyword = words.next()?;
    let name = words.next().filter(|_| keywords.contains(&keyword))?;
    name.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .next()
        .filter(|name| !name.is_empty())
}

#[test]
fn a_type_name_is_given_once_in_the_workspace() {
    // Names that two crates need, each with its reason.
    let exceptions: [&str; 0] = [];
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, code) in product_sources() {
        // Types of modules stand at the beginning of a line; those inside an `impl` belong to its trait.
        let lines = code.lines().filter(|line| !line.starts_with(' '));
        for type_name in lines.filter_map(|line| declared(line, &["struct", "enum", "trait", "type"])) {
            places.entry(type_name.to_owned()).or_default().push(name.clone());
        }
    }
    let twice: Vec<_> = places
        .into_iter()
        .filter(|(name, files)| files.len() > 1 && !exceptions.contains(&name.as_str()))
        .map(|(name, files)| format!("{name}: {}", files.join(", ")))
        .collect();
    assert!(twice.is_empty(), "say what each of them is of: {twice:#?}");
}

#[test]
fn a_type_name_needs_no_explanation() {
    let metaphors = [
        "Lane", "Lanes", "Shelf", "Spell", "Tap", "Ticket", "Warmth", "Keeper", "Sight", "Regret", "Told",
        "Made", "Said", "Seen", "Kept", "Held", "Asked", "Given", "Wanted", "Known", "Found", "Word", "Row",
        "Manager", "Helper", "Engine",
    ];
    let coined: Vec<String> = product_sources()
        .iter()
        .flat_map(|(file, code)| code.lines().map(move |line| (file, line)))
        .filter_map(|(file, line)| Some((file, declared(line, &["struct", "enum", "trait", "type"])?)))
        .filter(|(_, name)| metaphors.contains(name))
        .map(|(file, name)| format!("{file}: {name}"))
        .collect();
    assert!(coined.is_empty(), "use the word that everybody uses: {coined:#?}");
}

/// Participles that do not end in `ed`.
const PARTICIPLES: [&str; 62] = [
    "asked", "begun", "bound", "broken", "brought", "built", "caught", "chosen", "done", "drawn", "driven",
    "fallen", "felt", "forgotten", "fought", "found", "given", "gone", "gotten", "grown", "heard", "held",
    "hidden", "hung", "kept", "known", "laid", "led", "left", "lent", "lit", "lost", "made", "meant", "met",
    "paid", "proven", "risen", "said", "seen", "sent", "shown", "shrunk", "slept", "sold", "sought", "spent",
    "spoken", "stolen", "struck", "sunk", "sworn", "taken", "taught", "thought", "told", "torn",
    "understood", "won", "worn", "woven", "written",
];

/// Verbs and nouns that end in `ed`.
const NO_PARTICIPLES: [&str; 9] =
    ["bed", "embed", "exceed", "feed", "need", "proceed", "sed", "seed", "speed"];

#[test]
fn a_function_is_no_bare_participle() {
    // The session learns what happened to its request; Python's names are those of its documentation.
    let exceptions = [
        ("crates/trimtab-core/src/session/mod.rs", ["sent", "answered", "repeated", "summarized"].as_slice()),
        ("crates/trimtab-python/src/session.rs", ["answered", "folded"].as_slice()),
    ];
    let is_participle = |name: &str| {
        !name.contains('_')
            && (PARTICIPLES.contains(&name) || name.ends_with("ed") && !NO_PARTICIPLES.contains(&name))
    };
    let bare: Vec<String> = product_sources()
        .iter()
        .flat_map(|(file, code)| code.lines().map(move |line| (file, line)))
        .filter_map(|(file, line)| Some((file, declared(line, &["fn"])?)))
        .filter(|(_, name)| is_participle(name))
        .filter(|(file, name)| {
            !exceptions.iter().any(|(known, names)| *known == file.as_str() && names.contains(name))
        })
        .map(|(file, name)| format!("{file}: {name}"))
        .collect();
    assert!(bare.is_empty(), "say what is done, or name what is given: {bare:#?}");
}

#[test]
fn a_declaration_is_read_by_its_keyword() {
    let types = ["struct", "enum", "trait", "type"];
    assert_eq!(declared("pub(crate) struct LineRow<'a> {", &types), Some("LineRow"));
    assert_eq!(declared("pub(in crate::replay) enum Kind {", &types), Some("Kind"));
    assert_eq!(declared("    type Item = u8;", &types), Some("Item"));
    assert_eq!(declared("    pub async fn told(&self) {", &["fn"]), Some("told"));
    assert_eq!(declared("let told = 1;", &["fn"]), None);
}
