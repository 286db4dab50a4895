//! Tells error lines from others. Takes a line; gives whether it reports that something went wrong. Never takes a count of
//! no errors, a name or a source line about error handling for one: a report stands where a program would print it.

use super::text::DigestText;
use crate::terminal::as_terminal_shows;

/// How many error lines of a text survive from its beginning: enough to see what is wrong, few enough that a log of errors shrinks.
pub(super) const FIRST: usize = 20;
/// How many survive from its end.
pub(super) const LAST: usize = 5;

/// Beginnings of lines that report a failure, at the left margin.
const STARTS: &[&str] = &[
    "Traceback (most recent call last)",
    "FAILED ",
    "FAIL ",
    "FAIL\t",
    "FAIL:",
    "ERROR ",
    "ERROR:",
    "ERROR!",
    "Error:",
    "error:",
    "error[",
    "error TS",
    "[ERROR]",
    "[error]",
    "[FATAL]",
    "fatal:",
    "Fatal:",
    "FATAL:",
    "fatal error:",
    "Fatal error:",
    "panic:",
    "BUILD FAILED",
    "Build FAILED",
    "Build failed",
    "Segmentation fault",
    "npm ERR!",
    "npm error",
    "Exception in thread ",
    "Caused by:",
    "Uncaught ",
    "Unhandled ",
    "undefined reference to",
    "collect2: error",
    "ld: ",
    "Command failed",
    "Process exited with code ",
];

/// Beginnings of lines that report a failure, wherever the line is indented to.
const MARKS: &[&str] = &[
    "✗ ", "✘ ", "✕ ", "× ", "❌", "not ok ", "(fail) ", "--- FAIL:", "E   ", "thread '", "[FAIL]", "[FAILED]",
];

/// Ends of messages of shells and small tools: `name: what: No such file or directory`.
const SHELL_ENDS: &[&str] = &[
    ": No such file or directory", ": command not found", ": Permission denied", ": not found",
    ": Is a directory", ": Not a directory", ": No space left on device",
];

/// Levels of log records: the first one that a line names is its own.
const LEVELS: &[&str] =
    &["TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "FATAL", "CRITICAL", "PANIC"];

/// Tells whether a line reports that something went wrong.
pub fn is_error_line(line: &str) -> bool {
    let line = as_terminal_shows(line);
    let line = line.trim_end();
    let inner = line.trim_start();
    // What begins like JSON is a value, whatever it quotes.
    if inner.len() < 4 || inner.starts_with(['"', '{']) || inner.starts_with("[\"") || inner.starts_with("[{")
    {
        return false;
    }
    let at_margin = inner.len() == line.len();
    (at_margin && (starts_a_report(line) || is_exception(line) || is_shell_message(line)))
        || MARKS.iter().any(|mark| inner.starts_with(mark) && is_mark(mark, inner))
        || is_diagnostic(inner)
        || is_placed_exception(inner)
        || is_test_verdict(line)
        || has_log_level(line)
}

/// Returns the error lines that survive every digest, in order.
pub(super) fn surviving_errors(text: &DigestText<'_>) -> Vec<usize> {
    let mut errors: Vec<usize> = (0..text.len()).filter(|&index| is_error_line(text.line(index))).collect();
    if errors.len() > FIRST + LAST {
        errors.drain(FIRST..errors.len() - LAST);
    }
    errors
}

fn starts_a_report(line: &str) -> bool {
    let Some(start) = STARTS.iter().find(|start| line.starts_with(**start)) else {
        return line.starts_with("make") && line.contains(": *** ");
    };
    let rest = line.get(start.len()..).unwrap_or_default();
    match *start {
        // An exit with code 0 is a success.
        "Process exited with code " => rest != "0",
        // The linker speaks of libraries it found, too.
        "ld: " => rest.contains("error") || rest.contains("undefined") || rest.contains("not found"),
        // `Error: 0`, `error: null,`: a field, not a report.
        "Error:" | "error:" | "ERROR:" | "[error]" | "[ERROR]" => says_something(rest),
        "ERROR " | "FAIL " | "FAILED " => says_something(rest) && !rest.starts_with(['=', '|']),
        _ => true,
    }
}

/// Tells a message from a bare value such as `0`, `null,` or `false`.
fn says_something(rest: &str) -> bool {
    let rest = rest.trim().trim_end_matches([',', ';']);
    !rest.is_empty()
        && rest.parse::<f64>().is_err()
        && !matches!(rest, "null" | "none" | "None" | "nil" | "false" | "true" | "{" | "[" | "|" | "\"\"")
}

fn is_mark(mark: &str, inner: &str) -> bool {
    match mark {
        // pytest marks what it explains by an E and three blanks or more; prose does not begin like that.
        "E   " => inner.get(mark.len()..).is_some_and(|rest| !rest.trim().is_empty()),
        "thread '" => {
            inner.contains("' panicked at")
                || inner.contains(") panicked at")
                || inner.contains("' (") && inner.contains("panicked")
        }
        _ => true,
    }
}

/// Tells the last line of an exception: a dotted name ending in Error or Exception, alone or before a colon.
fn is_exception(line: &str) -> bool {
    let name = line.split([':', ' ']).next().unwrap_or_default();
    let rest = line.get(name.len()..).unwrap_or_default();
    let last = name.rsplit(['.', '$']).next().unwrap_or_default();
    let named = last.len() > 5
        && ["Error", "Exception"].iter().any(|end| last.ends_with(end))
        && last.starts_with(|letter: char| letter.is_ascii_uppercase());
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'$'));
    named && plain && (rest.is_empty() || rest.starts_with(": ") || rest == ":")
}

fn is_shell_message(line: &str) -> bool {
    let ends = SHELL_ENDS.iter().any(|end| line.ends_with(end));
    let cannot =
        line.split_once(": cannot ").is_some_and(|(name, _)| !name.is_empty() && !name.contains([' ', '\t']));
    (ends && line.matches(": ").count() >= 1 && !line.contains(['(', '{', ';'])) || cannot
}

/// Tells a compiler's or linter's diagnostic: a place, then `error`.
fn is_diagnostic(inner: &str) -> bool {
    let Some(at) = inner.find("error").or_else(|| inner.find("undefined: ")).or_else(|| inner.find("Error"))
    else {
        return false;
    };
    let (place, message) = inner.split_at(at);
    // A found line of source keeps its own indentation after the place; a compiler writes one blank.
    if place.ends_with("  ") && place.trim_end().ends_with(':') {
        return false;
    }
    let place = place.trim_end();
    let place = place.strip_suffix("fatal").map_or(place, str::trim_end);
    let place = place.strip_suffix('-').map_or(place, str::trim_end);
    let reports =
        ["error:", "error TS", "error[", "error C", "error CS", "error  ", "error ", "undefined: ", "Error:"]
            .iter()
            .any(|start| message.starts_with(start));
    reports && is_place(place, message)
}

/// Tells `tests/a.py:330: AssertionError`.
fn is_placed_exception(inner: &str) -> bool {
    let Some((place, name)) = inner.rsplit_once(": ") else { return false };
    let numbered =
        place.rsplit_once(':').is_some_and(|(path, number)| is_path(path) && number.parse::<u32>().is_ok());
    numbered && is_exception(name)
}

/// Tells `path:12:5:`, `path(12,5):`, `path:12:5`, or for linters that group by file a bare `12:5`.
fn is_place(place: &str, message: &str) -> bool {
    let place_without_colon = place.strip_suffix(':').unwrap_or(place);
    let bare_error =
        message.starts_with("error ") && !message.starts_with("error TS") && !message.starts_with("error C");
    if let Some((path, numbers)) =
        place_without_colon.strip_suffix(')').and_then(|place| place.rsplit_once('('))
    {
        return is_path(path)
            && !numbers.is_empty()
            && numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    }
    let mut parts = place_without_colon.rsplitn(3, ':');
    let number = |part: Option<&str>| {
        part.is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let (last, middle, path) = (parts.next(), parts.next(), parts.next());
    match (number(last), number(middle), path) {
        // ESLint: line and column, then `error` and two blanks.
        (true, true, None) => message.starts_with("error  "),
        (true, true, Some(path)) => is_path(path),
        (true, false, _) => !bare_error && middle.is_some_and(is_path),
        _ => false,
    }
}

fn is_path(path: &str) -> bool {
    !path.is_empty() && path.len() < 300 && !path.contains([' ', '"', '(', '\'', '=', '{'])
}

/// Tells `test name ... FAILED`, `tests/a.py::name FAILED`, `tests/a.py::name ERROR`.
fn is_test_verdict(line: &str) -> bool {
    if line.starts_with("test ") && (line.ends_with("... FAILED") || line.ends_with("... failed")) {
        return true;
    }
    let Some((name, verdict)) = line.split_once(' ') else { return false };
    name.contains("::") && (verdict.starts_with("FAILED") || verdict.starts_with("ERROR"))
}

/// Tells a log record of level ERROR or worse: the level follows a time or is in its usual place.
fn has_log_level(line: &str) -> bool {
    if !line.starts_with(|letter: char| letter.is_ascii_digit() || letter == '[') {
        return false;
    }
    let dated = line.bytes().take(24).filter(u8::is_ascii_digit).count() >= 4;
    let words = line.split([' ', '\t', '[', ']', '|', ',']).filter(|word| !word.is_empty());
    let level = words.take(6).map(|word| word.trim_end_matches(':')).find(|word| LEVELS.contains(word));
    dated && matches!(level, Some("ERROR" | "FATAL" | "CRITICAL" | "PANIC"))
}

/// Tells whether a line names a place in a file: `a.rs:12`, `File "a.py", line 12`, `a.ts(12,5)`.
pub fn has_place(line: &str) -> bool {
    let digit_at = |at: usize| line.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let named = |at: usize, sign: char| {
        let before = line.get(..at).and_then(|head| head.rsplit([' ', '"', '(']).next()).unwrap_or_default();
        before.contains('.') && digit_at(at + sign.len_utf8())
    };
    line.contains("\", line ")
        || line.match_indices([':', '(']).any(|(at, sign)| named(at, sign.chars().next().unwrap_or(':')))
}

#[cfg(test)]
mod tests {
    use super::is_error_line;

    #[test]
    fn reports_of_compilers_tests_and_shells_are_error_lines() {
        for line in [
            "error[E0308]: mismatched types",
            "error: could not compile `trimtab` (lib) due to 2 previous errors",
            "src/main.c:10:5: error: expected ';' before '}' token",
            "src/main.c:10: error: stray",
            "main.c:3:10: fatal error: foo.h: No such file or directory",
            "src/app.ts(12,5): error TS2304: Cannot find name 'x'.",
            "src/app.ts:12:5 - error TS2304: Cannot find name 'x'.",
            "  12:5  error  'x' is not defined  no-undef",
            "./main.go:5:2: undefined: foo",
            "Foo.java:3: error: ';' expected",
            "Traceback (most recent call last):",
            "ValueError: invalid literal for int()",
            "requests.exceptions.ConnectionError: refused",
            "java.lang.NullPointerException",
            "java.lang.IllegalStateException: closed",
            "Exception in thread \"main\" java.lang.RuntimeException: x",
            "E       assert 1 == 2",
            "E   ModuleNotFoundError: No module named 'x'",
            "FAILED tests/test_a.py::test_one - AssertionError",
            "tests/test_a.py::test_one FAILED                 [ 50%]",
            "test render::clips ... FAILED",
            "--- FAIL: TestParse (0.00s)",
            "    --- FAIL: TestParse/empty (0.00s)",
            "FAIL\tgithub.com/x/y\t0.01s",
            "FAIL src/app.test.js",
            "not ok 3 - parses",
            "  ✗ parses numbers",
            "  ✕ renders (12 ms)",
            "thread 'main' panicked at src/main.rs:4:5:",
            "thread 'tests::a' (1234) panicked at src/main.rs:4:5:",
            "panic: runtime error: index out of range",
            "fatal: not a git repository (or any of the parent directories): .git",
            "bash: foo: command not found",
            "ls: cannot access 'x': No such file or directory",
            "cat: x: No such file or directory",
            "make: *** [Makefile:3: all] Error 2",
            "make[1]: *** [x] Error 1",
            "npm ERR! code ELIFECYCLE",
            "[ERROR] COMPILATION ERROR :",
            "2026-01-02 10:00:00,123 ERROR app.db: connection lost",
            "[2026-01-02T10:00:00Z ERROR app] connection lost",
            "\u{1b}[31merror\u{1b}[0m: red",
            "\u{1b}[1m\u{1b}[31mFAILED\u{1b}[0m tests/a.py::b",
            "Error: Cannot find module 'x'",
            "Process exited with code 1",
            "(fail) module > does it [0.42ms]",
            "tests/test_std.py:330: AssertionError",
        ] {
            assert!(is_error_line(line), "{line}");
        }
    }

    #[test]
    fn counts_of_none_names_and_source_lines_are_not() {
        for line in [
            "",
            "0 errors",
            "0 errors, 0 warnings",
            "45 passed, 0 failed in 3.21s",
            "test result: ok. 45 passed; 0 failed; 0 ignored",
            "Found 0 errors. Watching for file changes.",
            "src/error.rs",
            "src/errors/mod.rs:3:use crate::errors::Failure;",
            "    error: null,",
            "error: null,",
            "error: 0",
            "    error: String,",
            "if err != nil { return fmt.Errorf(\"error: %w\", err) }",
            "    raise ValueError(\"error: bad\")",
            "except ValueError:",
            "class ParseError(Exception):",
            "        ValueError: if the text is no number",
            "// error handling: see below",
            "#[error(\"invalid input\")]",
            "src/a.rs:12:    eprintln!(\"error: {message}\");",
            "src/a.c:10:  fprintf(stderr, \"error: %s\\n\", text);",
            "test errors::parses ... ok",
            "   Compiling thiserror v2.0.1",
            "tests/test_errors.py::test_error PASSED",
            "ok 3 - error is reported",
            "Process exited with code 0",
            "Errors are values.",
            "(pass) module > fails clearly [7.00ms]",
            "src/trace.ts:595:  error: z.infer<typeof Schema>,",
            "1013\tbug: cannot find it",
            "[\"tests/a.py::b FAILED\"]",
            "  \"error: no\",",
            "Exceptions",
            "2026-01-02 10:00:00 INFO no ERROR seen since yesterday morning at all",
        ] {
            assert!(!is_error_line(line), "{line}");
        }
    }
}
