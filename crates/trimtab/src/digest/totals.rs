//! Reads the totals that test runs and builds print, and knows lines that only say that all is well. Takes a line; gives
//! numbers. Never guesses: a number counts only beside the word it belongs to.

/// What a test run or build counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Totals {
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

impl Totals {
    /// Tells whether nothing was counted.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Totals::default()
    }

    pub(super) fn add(&mut self, more: Totals) {
        let pairs = [
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

    fn count_of(&mut self, word: &str) -> Option<&mut Option<u64>> {
        Some(match word.to_ascii_lowercase().as_str() {
            "passed" | "passing" | "pass" | "succeeded" => &mut self.passed,
            "failed" | "failing" | "failures" | "failure" | "fail" => &mut self.failed,
            "error" | "errors" => &mut self.errors,
            "skipped" | "ignored" | "pending" | "skip" => &mut self.skipped,
            "warning" | "warnings" => &mut self.warnings,
            _ => return None,
        })
    }
}

/// The longest line that totals stand on, in bytes.
const LONGEST: usize = 240;
/// How many other words may stand beside totals; a sentence has more.
const OTHER_WORDS: usize = 12;

/// Reads the totals on a line; nothing where the line is not made of totals.
pub(super) fn totals(line: &str) -> Option<Totals> {
    let digits = line.len() <= LONGEST && line.bytes().any(|byte| byte.is_ascii_digit());
    (digits && !line.starts_with("Test Suites:") && !line.starts_with("Snapshots:")).then_some(())?;
    let mut totals = Totals::default();
    let mut counted = 0;
    let mut words_met = 0;
    for segment in line.split([',', ';', '(', ')']) {
        let words: Vec<&str> = segment
            .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.')
            .map(|word| word.trim_matches('.'))
            .filter(|word| !word.is_empty())
            .collect();
        words_met += words.len();
        for pair in words.windows(2) {
            let [first, second] = pair else { continue };
            // `3 failed` counts, and so does `Failures: 3`.
            let (number, word) = match (first.parse(), second.parse()) {
                (Ok(number), Err(_)) => (number, second),
                (Err(_), Ok(number)) if named_before(segment, first) => (number, first),
                (Ok(_) | Err(_), _) => continue,
            };
            if let Some(count) = totals.count_of(word) {
                *count = Some(number);
                counted += 1;
            }
        }
    }
    (counted > 0 && words_met <= counted * 2 + OTHER_WORDS).then_some(totals)
}

/// Tells whether a word stands before its number: `Failures: 3`, `errors=2`, `# pass 10`.
fn named_before(segment: &str, word: &str) -> bool {
    let Some(behind) = segment.find(word).and_then(|at| segment.get(at + word.len()..)) else { return false };
    behind.starts_with([':', '=']) || segment.starts_with("# ")
}

/// Tells a line that only says that a test passed or a step of a build went well.
pub(super) fn is_passing(line: &str) -> bool {
    let inner = line.trim();
    let starts = [
        "✓ ",
        "(pass) ",
        "✔ ",
        "√ ",
        "--- PASS:",
        "=== RUN",
        "PASS ",
        "PASS:",
        "Compiling ",
        "Checking ",
        "Downloaded ",
        "Downloading ",
        "Fresh ",
        "Collecting ",
        "Requirement already satisfied",
        "Using cached ",
        "Installing ",
        "Fetching ",
        "Unpacking ",
    ];
    starts.iter().any(|start| inner.starts_with(start))
        || inner.ends_with("... ok")
        || inner.ends_with("... ignored")
        || (inner.contains("::") && inner.contains(" PASSED"))
        || inner
            .strip_prefix("ok ")
            .is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
        || inner.strip_prefix('[').is_some_and(|rest| rest.contains("%] ") && rest.contains("uil"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: [Option<u64>; 5]) {
        let [passed, failed, errors, skipped, warnings] = expected;
        assert_eq!(
            totals(line).unwrap_or_default(),
            Totals { passed, failed, errors, skipped, warnings },
            "{line}"
        );
    }

    #[test]
    fn totals_of_common_runners_are_read() {
        check("===== 45 passed, 2 skipped in 3.21s =====", [Some(45), None, None, Some(2), None]);
        check("45 passed, 0 failed", [Some(45), Some(0), None, None, None]);
        check(
            "test result: ok. 45 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            [Some(45), Some(0), None, Some(1), None],
        );
        check("Tests:       1 failed, 45 passed, 46 total", [Some(45), Some(1), None, None, None]);
        check("Tests run: 5, Failures: 1, Errors: 0, Skipped: 2", [None, Some(1), Some(0), Some(2), None]);
        check("FAILED (failures=1, errors=2)", [None, Some(1), Some(2), None, None]);
        check("  45 passing (3s)", [Some(45), None, None, None, None]);
        check("# pass 10", [Some(10), None, None, None, None]);
        check("Found 3 errors in 2 files.", [None, None, Some(3), None, None]);
        check("✖ 3 problems (2 errors, 1 warning)", [None, None, Some(2), None, Some(1)]);
        check("0 errors", [None, None, Some(0), None, None]);
    }

    #[test]
    fn sentences_and_sources_hold_no_totals() {
        check("Test Suites: 1 failed, 3 passed, 4 total", [None; 5]);
        check("    assert errors == 3", [None; 5]);
        check("line 12 of the file", [None; 5]);
        check("took 45 seconds", [None; 5]);
    }
}
