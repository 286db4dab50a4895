//! What test runners, compilers and linters say in the end. [`read_summary`] takes one line; gives what a runner's own summary
//! on it says: [`RunTotals`] and whether all went well. Facts use it for outcomes, digests for the totals in their notes. Never
//! counts anything itself, never takes the name of a test or the word "error" for a summary: a line is one only as a whole.

use super::outcome::Outcome;
use crate::terminal::as_terminal_shows;

/// What a test run or build counted, as it says itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RunTotals {
    /// Tests in all.
    pub(crate) tests: Option<u64>,
    /// Tests that passed.
    pub(crate) passed: Option<u64>,
    /// Tests that failed.
    pub(crate) failed: Option<u64>,
    /// Errors.
    pub(crate) errors: Option<u64>,
    /// Tests that were left out.
    pub(crate) skipped: Option<u64>,
    /// Warnings.
    pub(crate) warnings: Option<u64>,
}

impl RunTotals {
    /// Tells whether nothing was counted.
    pub(crate) fn is_empty(&self) -> bool {
        *self == RunTotals::default()
    }

    /// Adds what another summary line of the same runner says: one line per binary, module or kind of count.
    pub(crate) fn add(&mut self, more: RunTotals) {
        let pairs = [
            (&mut self.tests, more.tests),
            (&mut self.passed, more.passed),
            (&mut self.failed, more.failed),
            (&mut self.errors, more.errors),
            (&mut self.skipped, more.skipped),
            (&mut self.warnings, more.warnings),
        ];
        for (sum, more) in pairs {
            *sum = match (*sum, more) {
                (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
                (sum, more) => sum.or(more),
            };
        }
    }

    /// Returns the count that a word names, however a runner spells it.
    fn count_named(&mut self, word: &str) -> Option<&mut Option<u64>> {
        Some(match word.to_ascii_lowercase().as_str() {
            "tests" | "test" | "total" | "total tests" | "tests run" | "tests completed"
            | "test completed" | "examples" | "example" | "runs" => &mut self.tests,
            "passed" | "passing" | "pass" | "succeeded" | "tests passed" | "test passed" => &mut self.passed,
            "failed" | "failing" | "failures" | "failure" | "fail" | "tests failed" | "test failed" => {
                &mut self.failed
            }
            "error" | "errors" | "error(s)" => &mut self.errors,
            "skipped" | "ignored" | "pending" | "skip" | "skips" => &mut self.skipped,
            "warning" | "warnings" | "warning(s)" => &mut self.warnings,
            _ => return None,
        })
    }

    /// Says how the run ended, where the counts tell.
    fn outcome(&self) -> Outcome {
        let bad = self.failed.unwrap_or(0).saturating_add(self.errors.unwrap_or(0));
        let good = [self.tests, self.passed, self.failed, self.errors, self.skipped];
        match (bad, good.iter().any(Option::is_some)) {
            (1.., _) => Outcome::Failed,
            (0, true) => Outcome::Succeeded,
            (0, false) => Outcome::Unknown,
        }
    }
}

/// What one summary line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunSummary {
    /// The runner that writes such lines; only lines of the same runner are summed.
    pub(crate) runner: &'static str,
    /// What it counted; nothing where the line only says how the run ended.
    pub(crate) totals: RunTotals,
    /// How the run ended, as far as this line tells.
    pub(crate) outcome: Outcome,
}

/// Reads one line, without colours and the space around it; says nothing about lines that are no summary.
type SummaryLineReader = fn(&str) -> Option<RunSummary>;

/// The runners whose summaries are read. A new one is one function and one line.
const READERS: &[SummaryLineReader] = &[
    plain_counts, unittest, cargo_test, rustc, go_test, jest, tap, maven, gradle, checkers, eslint, phpunit,
    ctest, google_test, dotnet, bun, golangci, make, deno,
];

/// The longest summary line, in bytes.
const LONGEST: usize = 240;

/// Reads a line; nothing where it is no runner's summary.
pub(crate) fn read_summary(line: &str) -> Option<RunSummary> {
    let shown = as_terminal_shows(line);
    let line = shown.trim();
    (!line.is_empty() && line.len() <= LONGEST).then(|| READERS.iter().find_map(|reader| reader(line)))?
}

/// Reads the totals on a line; nothing where the line holds none.
pub(crate) fn read_totals(line: &str) -> Option<RunSummary> {
    let digits = line.bytes().any(|byte| byte.is_ascii_digit());
    let summary = if digits { read_summary(line) } else { None };
    summary.filter(|summary| !summary.totals.is_empty())
}

/// Tells how a run ended from its summaries. One that names a failure decides; otherwise one that names success.
pub(crate) fn outcome_of_output(head: &str, tail: &str) -> Outcome {
    let mut found = Outcome::Unknown;
    for summary in head.lines().chain(tail.lines()).filter_map(read_summary) {
        match summary.outcome {
            Outcome::Failed => return Outcome::Failed,
            Outcome::Succeeded => found = Outcome::Succeeded,
            Outcome::Unknown => {}
        }
    }
    found
}

/// Gives a summary that says how a run ended and counts nothing.
fn ended_run(runner: &'static str, failed: bool) -> Option<RunSummary> {
    let outcome = if failed { Outcome::Failed } else { Outcome::Succeeded };
    Some(RunSummary { runner, totals: RunTotals::default(), outcome })
}

/// Gives a summary of counts, which also tell how the run ended.
fn counted_run(runner: &'static str, totals: RunTotals) -> Option<RunSummary> {
    (!totals.is_empty()).then(|| RunSummary { runner, totals, outcome: totals.outcome() })
}

/// Splits a number off the beginning of a text.
fn take_number(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text.get(..digits)?.parse().ok()?, text.get(digits..)?))
}

/// The most words after a number: `1 error occurred outside of examples` has five.
const MOST_WORDS: usize = 5;

/// Reads `1 failed, 4 passed`: every part must be a number and words. The known ones are counted; nothing if there are
/// none.
fn parse_counts(text: &str, between: &[char]) -> Option<RunTotals> {
    let mut totals = RunTotals::default();
    for part in text.split(between).map(str::trim).filter(|part| !part.is_empty()) {
        let (count, words) = take_number(part)?;
        let words = words.strip_prefix(' ')?.trim();
        if words.split(' ').count() > MOST_WORDS
            || !words.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b' ')
        {
            return None;
        }
        if let Some(known) = totals.count_named(words) {
            *known = Some(count);
        }
    }
    (!totals.is_empty()).then_some(totals)
}

/// Reads `Failures: 1, Errors: 0` or `failures=1, errors=2`: names before numbers. Parts of another form are passed over.
fn named_counts(text: &str, sign: char) -> Option<RunTotals> {
    let mut totals = RunTotals::default();
    for part in text.split([',', ')']) {
        let Some((name, count)) = part.split_once(sign) else { continue };
        let count = count.trim().trim_end_matches('.');
        if let (Some(known), Ok(count)) = (totals.count_named(name.trim()), count.parse()) {
            *known = Some(count);
        }
    }
    (!totals.is_empty()).then_some(totals)
}

/// Takes a duration off the end of a line: `… in 3.21s`, `… in 61.20s (0:01:01)`, `… (30ms)`.
fn without_time(line: &str) -> &str {
    let is_time = |time: &str| time.starts_with(|digit: char| digit.is_ascii_digit() || digit == '<');
    let line = match line.strip_suffix(')').and_then(|line| line.rsplit_once(" (")) {
        Some((counts, time)) if is_time(time) => counts,
        _ => line,
    };
    match line.rsplit_once(" in ") {
        Some((counts, time)) if is_time(time) && !time.trim_end_matches(" seconds").contains(' ') => counts,
        _ => line,
    }
}

/// Reads the lines that are nothing but counts, framed or not: those of pytest, mocha, bun, rspec, minitest, Gradle, Playwright,
/// pyright and javac. They differ in their words.
fn plain_counts(line: &str) -> Option<RunSummary> {
    let inner =
        if line.starts_with("==") && line.ends_with("==") { line.trim_matches(['=', ' ']) } else { line };
    let inner = inner.strip_suffix(" generated.").unwrap_or(inner);
    let inner = without_time(inner);
    if !inner.starts_with(|digit: char| digit.is_ascii_digit()) {
        return None;
    }
    let totals = match inner.split_once(" and ") {
        // clang: `1 warning and 2 errors generated.`
        Some((one, other)) if line.ends_with("generated.") => {
            parse_counts(&format!("{one}, {other}"), &[','])?
        }
        Some(_) => return None,
        None => parse_counts(inner, &[','])?,
    };
    let has = |words: &[&str]| inner.split([' ', ',']).any(|word| words.contains(&word));
    let runner = match () {
        () if has(&["passing", "failing", "pending"]) && !has(&["examples", "example"]) => "mocha",
        () if has(&["pass", "fail", "skip"]) => "bun",
        () if has(&["examples", "example"]) => "rspec",
        () if has(&["runs"]) => "minitest",
        () if has(&["completed"]) => "gradle",
        () if has(&["passed", "failed", "skipped"]) => "pytest",
        () if has(&["tests", "test"]) => "exunit",
        () => "compiler",
    };
    // A number of tests alone is no verdict: `5 tests` may be a heading.
    let only_tests = RunTotals { tests: totals.tests, ..RunTotals::default() };
    if totals == only_tests { None } else { counted_run(runner, totals) }
}

fn unittest(line: &str) -> Option<RunSummary> {
    if line == "OK" {
        return ended_run("unittest", false);
    }
    if let Some(rest) = line.strip_prefix("Ran ") {
        let (tests, words) = take_number(rest)?;
        let is_totals = words.starts_with(" tests in ") || words.starts_with(" test in ");
        let totals = RunTotals { tests: Some(tests), ..RunTotals::default() };
        // How many ran does not tell how it went.
        return is_totals.then_some(RunSummary { runner: "unittest", totals, outcome: Outcome::Unknown });
    }
    let failed = line.starts_with("FAILED (");
    let inner = line.strip_prefix("FAILED (").or_else(|| line.strip_prefix("OK ("))?.strip_suffix(')')?;
    // PHPUnit writes `OK (5 tests, 9 assertions)`.
    inner.contains('=').then_some(())?;
    let totals = named_counts(inner, '=').unwrap_or_default();
    let outcome = if failed { Outcome::Failed } else { Outcome::Succeeded };
    Some(RunSummary { runner: "unittest", totals, outcome })
}

fn cargo_test(line: &str) -> Option<RunSummary> {
    if let Some(rest) = line.strip_prefix("test result: ") {
        let (verdict, rest) = rest.split_once(". ").unwrap_or((rest, ""));
        let parts = rest.split("; finished in ").next().unwrap_or_default();
        let parts: Vec<&str> = parts.split(';').filter(|part| !part.contains("filtered")).collect();
        let totals = parse_counts(&parts.join(";"), &[';']).unwrap_or_default();
        let outcome = if verdict.starts_with("ok") { Outcome::Succeeded } else { Outcome::Failed };
        return Some(RunSummary { runner: "cargo test", totals, outcome });
    }
    // nextest: `Summary [   0.5s] 45 tests run: 44 passed (1 slow), 1 failed, 2 skipped`; `40/45` where it was stopped.
    let (_, rest) = line.strip_prefix("Summary [")?.split_once("] ")?;
    let (tests, rest) = rest.split_once(" tests run: ").or_else(|| rest.split_once(" test run: "))?;
    let tests = tests.rsplit('/').next()?.parse().ok();
    let totals = parse_counts(&without_asides(rest), &[',']).unwrap_or_default();
    counted_run("nextest", RunTotals { tests, ..totals })
}

/// Takes what stands in brackets out of a line.
fn without_asides(line: &str) -> String {
    line.split('(').map(|part| part.split_once(')').map_or(part, |(_, rest)| rest)).collect()
}

fn rustc(line: &str) -> Option<RunSummary> {
    let stopped = line.starts_with("error: could not compile") || line.starts_with("error: aborting due to");
    if stopped {
        let due = line.split_once(" due to ").map_or("", |(_, due)| due);
        // Separate lines list warnings.
        let errors =
            take_number(due).filter(|(_, rest)| rest.starts_with(" previous error")).map(|(count, _)| count);
        let totals = RunTotals { errors, ..RunTotals::default() };
        return Some(RunSummary { runner: "rustc", totals, outcome: Outcome::Failed });
    }
    if line.starts_with("Finished `") {
        return ended_run("rustc", false);
    }
    let (_, generated) = line.strip_prefix("warning: `")?.split_once(") generated ")?;
    let (warnings, rest) = take_number(generated)?;
    let totals = RunTotals { warnings: Some(warnings), ..RunTotals::default() };
    rest.starts_with(" warning").then_some(RunSummary { runner: "rustc", totals, outcome: Outcome::Unknown })
}

fn go_test(line: &str) -> Option<RunSummary> {
    let runner = "go test";
    let first = line.split_whitespace().next()?;
    match first {
        "FAIL" if line == "FAIL" || line.starts_with("FAIL\t") || line.starts_with("FAIL ") => {
            ended_run(runner, true)
        }
        "ok" if line.starts_with("ok  \t")
            || (line.starts_with("ok ") && line.ends_with('s'))
            || line.ends_with("(cached)") =>
        {
            ended_run(runner, false)
        }
        "PASS" if line == "PASS" => ended_run(runner, false),
        // gotestsum: `DONE 45 tests, 2 skipped, 3 failures in 1.234s`.
        "DONE" => counted_run("gotestsum", parse_counts(without_time(line.strip_prefix("DONE ")?), &[','])?),
        _ => None,
    }
}

fn jest(line: &str) -> Option<RunSummary> {
    // Files are no tests: what is said about them tells only how it went.
    for files in ["Test Suites:", "Test Files  "] {
        if let Some(rest) = line.strip_prefix(files) {
            return ended_run(
                "jest",
                parse_counts(in_all(rest).0, &[',', '|'])?.outcome() == Outcome::Failed,
            );
        }
    }
    let rest = line.strip_prefix("Tests:").or_else(|| line.strip_prefix("Tests  "))?;
    let (rest, all) = in_all(rest);
    let totals = parse_counts(rest, &[',', '|'])?;
    counted_run("jest", RunTotals { tests: totals.tests.or(all), ..totals })
}

/// Takes the number in all off the end, where vitest writes it: `4 passed (5)`.
fn in_all(rest: &str) -> (&str, Option<u64>) {
    match rest.trim().strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
        Some((counts, all)) => (counts, all.parse().ok()),
        None => (rest.trim(), None),
    }
}

fn tap(line: &str) -> Option<RunSummary> {
    let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?;
    let (name, count) = rest.split_once(' ')?;
    let count = count.trim().parse().ok()?;
    let mut totals = RunTotals::default();
    match name {
        "tests" | "pass" | "fail" | "skipped" | "skip" => *totals.count_named(name)? = Some(count),
        _ => return None,
    }
    let outcome = match totals.failed {
        Some(1..) => Outcome::Failed,
        Some(0) => Outcome::Succeeded,
        None => Outcome::Unknown,
    };
    Some(RunSummary { runner: "tap", totals, outcome })
}

fn maven(line: &str) -> Option<RunSummary> {
    let marks = ["[INFO] ", "[ERROR] ", "[WARNING] "];
    let line = marks.iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
    match line {
        "BUILD SUCCESS" => return ended_run("maven", false),
        "BUILD FAILURE" => return ended_run("maven", true),
        _ => {}
    }
    let totals = line.starts_with("Tests run:").then(|| named_counts(line, ':'))??;
    // A line of one class has its time; the line of the module counts all classes again.
    let of_class = line.contains("Time elapsed");
    let told = if of_class { RunTotals::default() } else { totals };
    Some(RunSummary { runner: "maven", totals: told, outcome: totals.outcome() })
}

fn gradle(line: &str) -> Option<RunSummary> {
    if line.starts_with("BUILD SUCCESSFUL") {
        return ended_run("gradle", false);
    }
    (line.starts_with("BUILD FAILED") || line.starts_with("FAILURE: Build failed"))
        .then(|| ended_run("gradle", true))?
}

/// Reads TypeScript's, mypy's, ruff's and biome's lines, which begin alike.
fn checkers(line: &str) -> Option<RunSummary> {
    if line.contains(": error TS") || line.starts_with("error TS") {
        return ended_run("checker", true);
    }
    if line == "All checks passed!" || line.starts_with("Success: no issues found") {
        return ended_run("checker", false);
    }
    let (count, rest) = take_number(line.strip_prefix("Found ")?)?;
    let rest = rest.strip_prefix(" error")?;
    let rest = rest.strip_prefix('s').unwrap_or(rest);
    let ends = rest.is_empty() || rest.starts_with(['.', ',', ' ']);
    ends.then(|| counted_run("checker", RunTotals { errors: Some(count), ..RunTotals::default() }))?
}

fn eslint(line: &str) -> Option<RunSummary> {
    let (_, inner) = line.strip_prefix('✖')?.split_once(" (")?;
    counted_run("eslint", parse_counts(inner.strip_suffix(')')?, &[','])?)
}

fn phpunit(line: &str) -> Option<RunSummary> {
    if matches!(line, "FAILURES!" | "ERRORS!") {
        return ended_run("phpunit", true);
    }
    if let Some(inner) = line.strip_prefix("OK (").and_then(|rest| rest.strip_suffix(')')) {
        return inner.contains("assertion").then(|| counted_run("phpunit", parse_counts(inner, &[','])?))?;
    }
    let is_totals = line.starts_with("Tests: ") && line.contains("Assertions: ");
    is_totals.then(|| counted_run("phpunit", named_counts(line, ':')?))?
}

fn ctest(line: &str) -> Option<RunSummary> {
    let (_, rest) = line.split_once("% tests passed, ")?;
    let (failed, rest) = take_number(rest)?;
    let (_, all) = rest.split_once(" failed out of ")?;
    counted_run("ctest", RunTotals { failed: Some(failed), tests: all.parse().ok(), ..RunTotals::default() })
}

fn google_test(line: &str) -> Option<RunSummary> {
    let passed = line.strip_prefix("[  PASSED  ] ");
    let (count, rest) = take_number(passed.or_else(|| line.strip_prefix("[  FAILED  ] "))?)?;
    // `[  FAILED  ] 1 test, listed below:`; lines of single tests hold their names.
    let is_totals = rest == " tests." || rest == " test." || rest.ends_with(", listed below:");
    let (passed, failed) = if passed.is_some() { (Some(count), None) } else { (None, Some(count)) };
    is_totals.then(|| counted_run("gtest", RunTotals { passed, failed, ..RunTotals::default() }))?
}

fn dotnet(line: &str) -> Option<RunSummary> {
    let build = [("Build succeeded", false), ("Build FAILED", true)];
    if let Some((_, failed)) = build.iter().find(|(words, _)| line.starts_with(words)) {
        return ended_run("dotnet build", *failed);
    }
    if let Some(rest) = line.strip_suffix(" Warning(s)").or_else(|| line.strip_suffix(" Error(s)")) {
        let mut totals = RunTotals::default();
        let count = rest.parse().ok()?;
        *totals.count_named(line.get(rest.len() + 1..)?)? = Some(count);
        return counted_run("dotnet build", totals);
    }
    let rest = line
        .strip_prefix("Passed!")
        .or_else(|| line.strip_prefix("Failed!"))
        .or_else(|| line.strip_prefix("Test summary:"))?;
    let counts = named_counts(rest.trim_start_matches([' ', '-']), ':').unwrap_or_default();
    let outcome = match line.starts_with("Failed!") {
        true => Outcome::Failed,
        false if line.starts_with("Passed!") => Outcome::Succeeded,
        false => counts.outcome(),
    };
    Some(RunSummary { runner: "dotnet test", totals: counts, outcome })
}

/// Reads `Ran 48 tests across 3 files.`; its other lines are plain counts.
fn bun(line: &str) -> Option<RunSummary> {
    let (tests, rest) = take_number(line.strip_prefix("Ran ")?)?;
    let is_totals = rest.starts_with(" tests across ") || rest.starts_with(" test across ");
    let totals = RunTotals { tests: Some(tests), ..RunTotals::default() };
    is_totals.then_some(RunSummary { runner: "bun", totals, outcome: Outcome::Unknown })
}

fn golangci(line: &str) -> Option<RunSummary> {
    let rest = line.strip_suffix(" issues:").or_else(|| line.strip_suffix(" issues."))?;
    ended_run("golangci-lint", rest.trim().parse::<u64>().ok()? > 0)
}

fn make(line: &str) -> Option<RunSummary> {
    let is_stop = (line.starts_with("make: ***") || line.starts_with("make["))
        && line.contains("Error ")
        && line.contains("***");
    (is_stop || line.starts_with("ninja: build stopped")).then(|| ended_run("make", true))?
}

/// Reads `ok | 5 passed (2 steps) | 0 failed (12ms)`.
fn deno(line: &str) -> Option<RunSummary> {
    let (verdict, rest) = line.split_once(" | ")?;
    let failed = match verdict {
        "ok" => false,
        "FAILED" => true,
        _ => return None,
    };
    let totals = parse_counts(&without_asides(rest), &['|']).unwrap_or_default();
    let outcome = if failed { Outcome::Failed } else { Outcome::Succeeded };
    Some(RunSummary { runner: "deno", totals, outcome })
}
