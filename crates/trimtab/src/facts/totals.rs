//! What test runners, compilers and linters say in the end. Takes both ends of their output; gives whether all went
//! well. Never counts the word "error": only a runner's own line of totals speaks.

use std::borrow::Cow;

use super::outcome::Outcome;

/// Reads one line; says nothing about lines that are no totals.
type Reader = fn(&str) -> Option<Outcome>;

/// The runners whose totals are read. A new one is one function and one line.
const READERS: &[Reader] = &[
    pytest,
    unittest,
    cargo_test,
    rustc,
    go_test,
    jest,
    node_counts,
    mocha,
    maven,
    gradle,
    typescript,
    eslint,
    rspec,
    phpunit,
    ctest,
    dotnet,
    bun,
    ruff,
    mypy,
    golangci,
    make,
    deno,
    biome,
];

/// Tells how a run ended from its totals. One line of totals that names a failure decides; otherwise one that names success.
pub(crate) fn outcome(head: &str, tail: &str) -> Outcome {
    let mut found = Outcome::Unknown;
    let lines = head.lines().chain(tail.lines()).map(plain).filter(|line| !line.is_empty());
    for line in lines {
        match READERS.iter().find_map(|reader| reader(&line)) {
            Some(Outcome::Failed) => return Outcome::Failed,
            Some(Outcome::Succeeded) => found = Outcome::Succeeded,
            Some(Outcome::Unknown) | None => {}
        }
    }
    found
}

/// Takes colours and the space around a line away.
fn plain(line: &str) -> Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line.trim());
    }
    let mut plain = String::new();
    let mut rest = line;
    while let Some((before, escape)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = escape.find('m').and_then(|end| escape.get(end + 1..)).unwrap_or_default();
    }
    plain.push_str(rest);
    Cow::Owned(plain.trim().to_owned())
}

/// Returns the number that stands right before `word`.
fn count(line: &str, word: &str) -> Option<u64> {
    let mut rest = line;
    let mut base = 0;
    while let Some(at) = rest.find(word) {
        let before = line.get(..base + at)?.trim_end();
        let digits = before.chars().rev().take_while(char::is_ascii_digit).count();
        if digits > 0 {
            return before.get(before.len() - digits..)?.parse().ok();
        }
        base += at + word.len();
        rest = line.get(base..)?;
    }
    None
}

fn when(failed: bool) -> Option<Outcome> {
    Some(if failed { Outcome::Failed } else { Outcome::Succeeded })
}

fn pytest(line: &str) -> Option<Outcome> {
    let framed = line.starts_with("==") && line.ends_with("==");
    let quiet = line.contains(" in ")
        && line.ends_with('s')
        && line.chars().next().is_some_and(|letter| letter.is_ascii_digit());
    let line = line.trim_matches(['=', ' ']);
    if !(framed || quiet) {
        return None;
    }
    let failed = ["failed", "error"].iter().any(|word| count(line, word).is_some_and(|count| count > 0));
    let passed = ["passed", "skipped", "deselected", "xfailed", "warning"]
        .iter()
        .any(|word| count(line, word).is_some());
    (failed || passed).then(|| when(failed))?
}

fn unittest(line: &str) -> Option<Outcome> {
    if line == "OK" || line.starts_with("OK (") {
        return when(false);
    }
    (line.starts_with("FAILED (failures=")
        || line.starts_with("FAILED (errors=")
        || line.starts_with("FAILED (unexpected"))
    .then(|| when(true))?
}

fn cargo_test(line: &str) -> Option<Outcome> {
    if let Some(rest) = line.strip_prefix("test result: ") {
        return when(!rest.starts_with("ok"));
    }
    let nextest = line.starts_with("Summary [") && line.contains("tests run:");
    nextest.then(|| when(count(line, "failed").is_some_and(|count| count > 0)))?
}

fn rustc(line: &str) -> Option<Outcome> {
    if line.starts_with("error: could not compile") || line.starts_with("error: aborting due to") {
        return when(true);
    }
    line.starts_with("Finished `").then(|| when(false))?
}

fn go_test(line: &str) -> Option<Outcome> {
    let first = line.split_whitespace().next()?;
    match first {
        "FAIL" if line == "FAIL" || line.starts_with("FAIL\t") || line.starts_with("FAIL ") => when(true),
        "ok" if line.starts_with("ok  \t")
            || (line.starts_with("ok ") && line.ends_with('s'))
            || line.ends_with("(cached)") =>
        {
            when(false)
        }
        "PASS" if line == "PASS" => when(false),
        "DONE" if line.contains(" tests") => when(count(line, "failure").is_some_and(|count| count > 0)),
        _ => None,
    }
}

fn jest(line: &str) -> Option<Outcome> {
    let rest = ["Tests:", "Test Suites:", "Tests  ", "Test Files  "]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))?;
    let failed = count(rest, "failed").is_some_and(|count| count > 0);
    (failed || rest.contains("passed")).then(|| when(failed))?
}

fn node_counts(line: &str) -> Option<Outcome> {
    let rest = ["# fail ", "ℹ fail "].iter().find_map(|mark| line.strip_prefix(mark))?;
    when(rest.trim().parse::<u64>().ok()? > 0)
}

fn mocha(line: &str) -> Option<Outcome> {
    let mut words = line.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    match words.next()? {
        "passing" => when(false),
        "failing" => when(number > 0),
        _ => None,
    }
}

fn maven(line: &str) -> Option<Outcome> {
    let line = line.strip_prefix("[INFO] ").or_else(|| line.strip_prefix("[ERROR] ")).unwrap_or(line);
    match line {
        "BUILD SUCCESS" => when(false),
        "BUILD FAILURE" => when(true),
        line if line.starts_with("Tests run:") => {
            let of = |word: &str| {
                line.split_once(word)
                    .and_then(|(_, rest)| rest.split([',', ' ']).find(|part| !part.is_empty())?.parse().ok())
            };
            when(of("Failures:").unwrap_or(0_u64) + of("Errors:").unwrap_or(0) > 0)
        }
        _ => None,
    }
}

fn gradle(line: &str) -> Option<Outcome> {
    if line.starts_with("BUILD SUCCESSFUL") {
        return when(false);
    }
    (line.starts_with("BUILD FAILED") || line.starts_with("FAILURE: Build failed")).then(|| when(true))?
}

fn typescript(line: &str) -> Option<Outcome> {
    if line.contains(": error TS") || line.starts_with("error TS") {
        return when(true);
    }
    let found = line.strip_prefix("Found ")?;
    let number: u64 = found.split(' ').next()?.parse().ok()?;
    found.contains(" error").then(|| when(number > 0))?
}

fn eslint(line: &str) -> Option<Outcome> {
    let rest = line.strip_prefix('✖')?;
    let errors = count(rest, "error")?;
    when(errors > 0)
}

fn rspec(line: &str) -> Option<Outcome> {
    let starts = line.chars().next().is_some_and(|letter| letter.is_ascii_digit());
    let is_totals = starts && line.contains("example") && line.contains("failure");
    is_totals.then(|| when(count(line, "failure").is_some_and(|count| count > 0)))?
}

fn phpunit(line: &str) -> Option<Outcome> {
    if line.starts_with("OK (") && line.contains("assertion") {
        return when(false);
    }
    matches!(line, "FAILURES!" | "ERRORS!").then(|| when(true))?
}

fn ctest(line: &str) -> Option<Outcome> {
    let (_, rest) = line.split_once("% tests passed, ")?;
    when(count(rest, "tests failed").or_else(|| count(rest, "test failed"))? > 0)
}

fn dotnet(line: &str) -> Option<Outcome> {
    if line.starts_with("Passed!") || line.starts_with("Build succeeded") {
        return when(false);
    }
    (line.starts_with("Failed!") || line.starts_with("Build FAILED")).then(|| when(true))?
}

fn bun(line: &str) -> Option<Outcome> {
    let mut words = line.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    match (words.next()?, words.next()) {
        ("pass", None) => when(false),
        ("fail", None) => when(number > 0),
        _ => None,
    }
}

fn ruff(line: &str) -> Option<Outcome> {
    if line == "All checks passed!" {
        return when(false);
    }
    let is_totals = line.starts_with("Found ") && (line.ends_with("errors.") || line.ends_with("error."));
    is_totals.then(|| when(true))?
}

fn mypy(line: &str) -> Option<Outcome> {
    if line.starts_with("Success: no issues found") {
        return when(false);
    }
    let is_pyright = line.contains(" errors, ") && line.contains(" warnings");
    is_pyright.then(|| when(count(line, "errors").is_some_and(|count| count > 0)))?
}

fn golangci(line: &str) -> Option<Outcome> {
    let rest = line.strip_suffix(" issues:").or_else(|| line.strip_suffix(" issues."))?;
    when(rest.trim().parse::<u64>().ok()? > 0)
}

fn make(line: &str) -> Option<Outcome> {
    let is_stop = (line.starts_with("make: ***") || line.starts_with("make["))
        && line.contains("Error ")
        && line.contains("***");
    (is_stop || line.starts_with("ninja: build stopped")).then(|| when(true))?
}

fn deno(line: &str) -> Option<Outcome> {
    if line.starts_with("ok | ") {
        return when(false);
    }
    line.starts_with("FAILED | ").then(|| when(true))?
}

fn biome(line: &str) -> Option<Outcome> {
    let found = line.strip_prefix("Found ")?;
    let number: u64 = found.split(' ').next()?.parse().ok()?;
    (found.ends_with(" error.") || found.ends_with(" errors.")).then(|| when(number > 0))?
}
