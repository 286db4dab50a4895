//! Snippets as harnesses and runners print them, and the outcome that each tells.

use super::*;
use Outcome::{Failed, Succeeded, Unknown};

fn ended(kind: ToolKind, text: &str, flag: FailureFlag) -> ResultEnding {
    result_ending(kind, &ReadableResult::read_result(text), flag)
}

fn check(kind: ToolKind, text: &str, flag: FailureFlag, expected: Outcome) {
    assert_eq!(ended(kind, text, flag).outcome, expected, "{text}");
}

#[test]
fn exit_codes_are_read_where_each_harness_prints_them() {
    let cases = [
        ("<returncode>0</returncode>\n<output>\nerror: none\n</output>", Succeeded),
        ("<returncode>1</returncode>\n<output>\nx\n</output>", Failed),
        ("Exit code 1\nls: x: No such file", Failed),
        ("Exit code: 2\nOutput:\n", Failed),
        (
            "Chunk ID: a\nWall time: 0.1 seconds\nProcess exited with code 0\nOriginal token count: 3\nOutput:\nfailed",
            Succeeded,
        ),
        ("Chunk ID: a\nWall time: 0.1 seconds\nProcess exited with code 127\nOutput:\n", Failed),
        ("out\n\nCommand exited with code 2", Failed),
        (
            "out\n[The command completed with exit code 0.]\n[Current working directory: /w]\n[Python interpreter: /p]",
            Succeeded,
        ),
        ("out\n[The command completed with exit code 1.]\n[Current working directory: /w]", Failed),
        ("out\n[Command finished with exit code 130]", Failed),
        ("done\n<shellId: 0 completed with exit code 0>", Succeeded),
        ("done\n<shellId: 7 completed with exit code 3>", Failed),
        ("<exited with exit code 1>", Failed),
        ("Command: x\nDirectory: (root)\nStdout: a\nExit Code: 1\nSignal: (none)", Failed),
        ("{\"output\":\"ok\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.1}}", Succeeded),
        ("{\"output\":\"no\",\"metadata\":{\"exit_code\":2,\"duration_seconds\":0.1}}", Failed),
        ("[exit status: 3]", Failed),
        ("text\n(exit code 1)", Failed),
        ("Hello///PROCESS-DONE:0:PROCESS-DONE///", Unknown),
        ("The exit code 1 means that nothing was found.\nSee the manual.", Unknown),
        ("an error occurred, they say", Unknown),
    ];
    for (text, expected) in cases {
        check(ToolKind::Run, text, FailureFlag::Absent, expected);
    }
}

#[test]
fn totals_of_runners_are_read() {
    let cases = [
        ("==== 3 passed in 0.10s ====", Succeeded),
        ("==== 1 failed, 3 passed in 0.10s ====", Failed),
        ("1 passed, 2 warnings in 1.2s", Succeeded),
        ("===== 2 errors in 0.3s =====", Failed),
        ("Ran 4 tests in 0.001s\n\nOK", Succeeded),
        ("Ran 4 tests in 0.001s\n\nFAILED (failures=1)", Failed),
        ("test result: ok. 5 passed; 0 failed; 0 ignored", Succeeded),
        ("test result: FAILED. 4 passed; 1 failed", Failed),
        ("error: could not compile `x` (lib) due to 2 previous errors", Failed),
        ("ok  \texample.com/a\t0.5s\nok  \texample.com/b\t(cached)", Succeeded),
        ("ok  \texample.com/a\t0.5s\nFAIL\texample.com/b\t0.1s\nFAIL", Failed),
        ("Tests:       1 failed, 4 passed, 5 total", Failed),
        ("Tests:       5 passed, 5 total", Succeeded),
        (" Test Files  2 passed (2)\n      Tests  9 passed (9)", Succeeded),
        ("  12 passing (30ms)\n  1 failing", Failed),
        ("[INFO] BUILD SUCCESS", Succeeded),
        ("[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0", Failed),
        ("BUILD FAILED in 3s", Failed),
        ("BUILD SUCCESSFUL in 3s", Succeeded),
        ("src/a.ts(3,1): error TS2304: Cannot find name 'x'.", Failed),
        ("✖ 3 problems (1 error, 2 warnings)", Failed),
        ("✖ 2 problems (0 errors, 2 warnings)", Succeeded),
        ("5 examples, 0 failures", Succeeded),
        ("5 examples, 2 failures", Failed),
        ("OK (12 tests, 40 assertions)", Succeeded),
        ("100% tests passed, 0 tests failed out of 3", Succeeded),
        (" 5 pass\n 1 fail", Failed),
        ("All checks passed!", Succeeded),
        ("Success: no issues found in 3 source files", Succeeded),
        ("\u{1b}[32m3 passed\u{1b}[0m in 0.10s", Succeeded),
        ("collected nothing, error error error", Unknown),
    ];
    for (text, expected) in cases {
        check(ToolKind::Test, text, FailureFlag::Absent, expected);
    }
}

#[test]
fn where_they_disagree_the_stated_order_decides() {
    check(ToolKind::Test, "==== 3 passed in 0.1s ====", FailureFlag::Failed, Failed);
    check(ToolKind::Test, "Exit code 1\n==== 3 passed in 0.1s ====", FailureFlag::Unset, Failed);
    check(
        ToolKind::Test,
        "==== 1 failed in 0.1s ====\nProcess exited with code 0",
        FailureFlag::Unset,
        Failed,
    );
    check(ToolKind::Read, "==== 1 failed in 0.1s ====", FailureFlag::Unset, Succeeded);
    check(ToolKind::Read, "Error: ENOENT: no such file", FailureFlag::Absent, Failed);
    check(
        ToolKind::Read,
        "<tool_use_error>File does not exist.</tool_use_error>",
        FailureFlag::Unset,
        Failed,
    );
    check(ToolKind::Read, "error handling in Rust\n", FailureFlag::Absent, Unknown);
    assert!(ended(ToolKind::Test, "Exit code 1\nFAIL", FailureFlag::Failed).ran);
    assert!(
        !ended(ToolKind::Test, "The user doesn't want to proceed with this tool use.", FailureFlag::Failed)
            .ran
    );
}
