//! Totals in notes are those that runners print in their own summary lines, and nothing else.

use proptest::{
    collection::vec,
    prelude::{Just, ProptestConfig, Strategy, prop_oneof},
    sample::select,
    test_runner::TestRunner,
};

use super::{TextContext, chosen};
use crate::facts::{ContentKind, Outcome};

const LOG: TextContext<'static> = TextContext {
    content: ContentKind::BuildLog,
    kind: None,
    tool: None,
    command: Some("run the tests"),
    path: None,
    outcome: Outcome::Unknown,
    terms: &[],
};

/// Returns the closing note of a log.
fn note(text: &str) -> String {
    let (_, short) = chosen(text, LOG);
    short.lines().last().unwrap_or_default().to_owned()
}

/// Returns the clauses of the closing note that tell totals: all that stand between the reason and the handle.
fn told(text: &str) -> String {
    let note = note(text);
    let (_, rest) = note.split_once("too old; ").unwrap_or_default();
    rest.rsplit_once("trimtab recall").map_or("", |(totals, _)| totals).trim_end_matches("; ").to_owned()
}

/// Puts lines between others that only name tests.
fn log(summary: &str) -> String {
    let names: String =
        (0..260).map(|n| format!("tests/x.py::test_{n} PASSED [ {}%]\n", n * 100 / 260)).collect();
    format!("collecting ...\n{names}{summary}\n")
}

#[track_caller]
fn check(summary: &str, expected: &str) {
    assert_eq!(told(&log(summary)), expected, "{summary}");
}

#[test]
fn names_of_tests_that_end_in_a_number_are_no_totals() {
    check("all done", "");
    check("===== 1 failed, 259 passed in 3.20s =====", "259 passed, 1 failed");
    check("tests/x.py::test_131 FAILED [ 3%]\n1 failed, 259 passed in 3.20s", "259 passed, 1 failed");
    check("test_12 PASSED\ntest 13 failed\nrun-14 errors\nFAILED 15 tests: see above", "");
    check("=== test_12 failed ===", "");
    check("step 3 passed the gate, 4 failed attempts before", "");
}

#[test]
fn totals_are_told_as_the_runner_says_them() {
    let cases = [
        (
            "1 failed, 259 passed, 2 skipped, 3 warnings in 3.20s (0:00:03)",
            "259 passed, 1 failed, 2 skipped, 3 warnings",
        ),
        ("== 3 passed, 1 xfailed, 2 errors in 3.20s ==", "3 passed, 2 errors"),
        ("45 passed, 0 failed", "45 passed, 0 failed"),
        (
            "Ran 5 tests in 0.003s\n\nFAILED (failures=1, errors=2, skipped=3)",
            "5 tests, 1 failed, 2 errors, 3 skipped",
        ),
        ("Ran 5 tests in 0.003s\n\nOK", "5 tests"),
        (
            "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            "5 passed, 0 failed, 1 skipped",
        ),
        (
            "     Summary [   0.5s] 45 tests run: 44 passed (1 slow), 1 failed, 2 skipped",
            "45 tests, 44 passed, 1 failed, 2 skipped",
        ),
        ("ok  \texample.com/a12\t0.512s\nok  \texample.com/b\t(cached)", ""),
        (
            "DONE 45 tests, 2 skipped, 3 failures, 1 error in 1.234s",
            "45 tests, 3 failed, 1 errors, 2 skipped",
        ),
        (
            "Test Suites: 1 failed, 3 passed, 4 total\nTests:       1 failed, 4 passed, 5 total",
            "5 tests, 4 passed, 1 failed",
        ),
        (
            " Test Files  1 failed | 2 passed (3)\n      Tests  2 failed | 45 passed | 1 skipped (48)",
            "48 tests, 45 passed, 2 failed, 1 skipped",
        ),
        ("  45 passing (3s)\n  2 failing\n  1 pending", "45 passed, 2 failed, 1 skipped"),
        ("# tests 12\n# pass 10\n# fail 2\n# skipped 0", "12 tests, 10 passed, 2 failed, 0 skipped"),
        ("ℹ tests 12\nℹ pass 10\nℹ fail 2", "12 tests, 10 passed, 2 failed"),
        (
            "Passed!  - Failed:     0, Passed:    45, Skipped:     2, Total:    47, Duration: 2 s - a.dll (net8.0)",
            "47 tests, 45 passed, 0 failed, 2 skipped",
        ),
        (
            "[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in a.BTest\n[ERROR] Tests run: 45, Failures: 1, Errors: 2, Skipped: 3",
            "45 tests, 1 failed, 2 errors, 3 skipped",
        ),
        ("45 tests completed, 2 failed, 1 skipped", "45 tests, 2 failed, 1 skipped"),
        ("5 examples, 1 failure, 2 pending", "5 tests, 1 failed, 2 skipped"),
        ("5 runs, 9 assertions, 1 failures, 2 errors, 3 skips", "5 tests, 1 failed, 2 errors, 3 skipped"),
        ("OK (5 tests, 9 assertions)", "5 tests"),
        (
            "Tests: 5, Assertions: 9, Failures: 1, Errors: 2, Skipped: 3.",
            "5 tests, 1 failed, 2 errors, 3 skipped",
        ),
        ("80% tests passed, 1 tests failed out of 5", "5 tests, 1 failed"),
        (
            " 45 pass\n 2 fail\n 1 skip\nRan 48 tests across 3 files. [12.00ms]",
            "48 tests, 45 passed, 2 failed, 1 skipped",
        ),
        ("FAILED | 4 passed (2 steps) | 1 failed (12ms)", "4 passed, 1 failed"),
        ("[  PASSED  ] 5 tests.\n[  FAILED  ] 1 test, listed below:", "5 passed, 1 failed"),
        (
            "✖ 3 problems (2 errors, 1 warning)\n  1 error and 0 warnings potentially fixable with the `--fix` option.",
            "2 errors, 1 warnings",
        ),
        ("Found 3 errors in 2 files.", "3 errors"),
        ("Found 3 errors in 2 files (checked 5 source files)", "3 errors"),
        ("3 errors, 1 warning, 0 informations", "3 errors, 1 warnings"),
        ("error: could not compile `x` (lib) due to 2 previous errors; 3 warnings emitted", "2 errors"),
        ("warning: `x` (lib) generated 3 warnings", "3 warnings"),
    ];
    for (summary, expected) in cases {
        check(summary, expected);
    }
}

#[test]
fn summary_lines_of_one_runner_are_summed_and_those_of_two_are_told_apart() {
    let binary =
        |passed: u32| format!("test result: ok. {passed} passed; 0 failed; 0 ignored; finished in 0.1s\n");
    check(&[binary(5), binary(7), binary(0)].concat(), "12 passed, 0 failed, 0 skipped");
    let two = format!("{}  30 passing (3s)\n✖ 3 problems (2 errors, 1 warning)\n", binary(5));
    check(&two, "5 passed, 0 failed, 0 skipped; 30 passed; 2 errors, 1 warnings");
}

/// Lines that hold numbers and words of verdicts and are no summary.
const NAMES: &[&str] = &[
    "tests/x.py::test_# PASSED [ 3%]",
    "tests/x.py::test_# FAILED [ 3%]",
    "test_# PASSED",
    "test #: passed",
    "FAILED tests/x.py::test_# - assert # == 3",
    "ERROR tests/x.py::test_# - Exception",
    "ok # - handles failed 12 times",
    "not ok # - reports # errors",
    "test module::case_# ... ok",
    "test module::errors_# ... FAILED",
    "--- PASS: Test# (0.#s)",
    "--- FAIL: TestFailed# (0.#s)",
    "=== RUN   Test_passed_#",
    "✓ renders # failed items (# ms)",
    "  # failed logins are reported",
    "[#/260] 12 passed so far, go on",
    "retry # failed, trying again",
    "warning: # warnings were seen by test_#",
    "PASS src/a#.test.js (#.2 s)",
    "worker # passed item # to worker 3",
];

/// Summary lines, with the numbers that they hold as counts.
const SUMMARIES: &[(&str, usize)] = &[
    ("===== # failed, # passed in 3.20s =====", 0),
    ("# failed, # passed, # skipped in 12.34s", 0),
    ("test result: FAILED. # passed; # failed; # ignored; 0 measured; 0 filtered out", 1),
    ("Tests:       # failed, # passed, # total", 2),
    ("FAILED (failures=#, errors=#)", 3),
    ("# examples, # failures", 4),
    ("✖ 900 problems (# errors, # warnings)", 5),
];

#[test]
fn every_number_in_the_note_is_one_of_the_summary_lines() {
    let cases = std::env::var("TRIMTAB_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let name =
        (select(NAMES), 0..900_u64).prop_map(|(line, number)| (line.replace('#', &number.to_string()), None));
    // From 1,000 on: no name holds such a number.
    let summary = (select(SUMMARIES), vec(1_000..9_000_u64, 3)).prop_map(|((line, runner), numbers)| {
        let mut counts = Vec::new();
        let mut said = line.to_owned();
        for number in numbers {
            if said.contains('#') {
                said = said.replacen('#', &number.to_string(), 1);
                counts.push(number);
            }
        }
        (said, Some((runner, counts)))
    });
    let line = prop_oneof![12 => name, 1 => summary, 1 => Just((String::new(), None))];
    TestRunner::new(config)
        .run(&vec(line, 40..160), |lines| {
            let text: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
            let told = told(&text);
            let summed = |runner: usize, column: usize| -> u64 {
                let of =
                    lines.iter().filter_map(|(_, counts)| counts.as_ref()).filter(|(of, _)| *of == runner);
                of.filter_map(|(_, counts)| counts.get(column)).sum()
            };
            let mut allowed: Vec<u64> = vec![0];
            for runner in 0..6 {
                allowed.extend((0..3).map(|column| summed(runner, column)));
            }
            let numbers =
                told.split(|letter: char| !letter.is_ascii_digit()).filter(|number| !number.is_empty());
            for number in numbers {
                let number: u64 = number.parse().expect("digits");
                assert!(allowed.contains(&number), "{number} in {told:?} is none of {allowed:?} in\n{text}");
            }
            let any = lines.iter().any(|(_, counts)| counts.is_some());
            let is_short = note(&text).contains("trimtab recall ");
            assert!(!any || !is_short || !told.is_empty(), "nothing told of\n{text}");
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
}
