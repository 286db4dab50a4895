//! Conversations of every agent, and what is known of their files afterwards.

use super::*;
use crate::{
    facts::facts,
    files::{AccessKind, LineRun},
    wire::{parse, parse_after},
};

/// A call with its arguments as JSON, and its result.
fn used(number: usize, name: &str, arguments: &str, answer: &str) -> [String; 2] {
    let text = |text: &str| serde_json::to_string(text).expect("text");
    [
        format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{number}","type":"function","function":{{"name":"{name}","arguments":{}}}}}]}}"#,
            text(arguments)
        ),
        format!(r#"{{"role":"tool","tool_call_id":"{number}","content":{}}}"#, text(answer)),
    ]
}

fn said(role: &str, text: &str) -> String {
    format!(r#"{{"role":"{role}","content":{}}}"#, serde_json::to_string(text).expect("text"))
}

fn history(messages: &[String]) -> History {
    parse(format!(r#"{{"model":"gpt-5","messages":[{}]}}"#, messages.join(",")).into_bytes())
        .expect("a request")
}

fn told(messages: &[String]) -> FileTimeline {
    let history = history(messages);
    files(&history, &facts(&history))
}

/// Pictures a file: its lines, `?3` for three unknown ones, `…` for whatever follows.
fn picture(files: &FileTimeline, path: &str) -> String {
    let Some(state) = files.file_state_at(path, u32::MAX) else { return "never touched".to_owned() };
    let runs = state.runs().into_iter().flat_map(|run| match run {
        LineRun::Known { lines, .. } => lines.iter().map(|line| line.text.to_owned()).collect::<Vec<_>>(),
        LineRun::Unknown { count, .. } => vec![format!("?{count}")],
        LineRun::Rest { .. } => vec!["…".to_owned()],
    });
    runs.collect::<Vec<_>>().join("|")
}

/// Tells calls (name, arguments, result) one after the other and pictures one file after them.
fn check(calls: &[(&str, &str, &str)], path: &str, expected: &str) {
    let mut messages = vec![said("user", "Go")];
    for (number, (name, arguments, answer)) in calls.iter().enumerate() {
        messages.extend(used(number, name, arguments, answer));
    }
    assert_eq!(picture(&told(&messages), path), expected, "{calls:?}");
}

fn shell(command: &str) -> String {
    format!(r#"{{"command":{}}}"#, serde_json::to_string(command).expect("text"))
}

#[test]
fn claude_code_reads_writes_and_edits() {
    let read = ("Read", r#"{"file_path":"/w/a.rs"}"#, "     1→one\n     2→two\n     3→");
    let edit = ("Edit", r#"{"file_path":"/w/a.rs","old_string":"two","new_string":"2"}"#, "updated");
    check(&[read], "/w/a.rs", "one|two|");
    check(&[read, edit], "/w/a.rs", "one|2|");
    check(&[read, (edit.0, edit.1, "Error: String to replace not found")], "/w/a.rs", "one|two|");
    check(&[("Write", r#"{"file_path":"/w/b","content":"x\ny\n"}"#, "created")], "/w/b", "x|y|");
    check(
        &[read, ("Grep", r#"{"pattern":"t","path":"/w/a.rs","output_mode":"content"}"#, "7:seven")],
        "/w/a.rs",
        "?6|seven|…",
    );
    check(
        &[("Read", r#"{"file_path":"/w/a.rs","offset":7,"limit":2}"#, "     7→g\n     8→h")],
        "/w/a.rs",
        "?6|g|h|…",
    );
}

#[test]
fn codex_patches_and_reads_through_a_shell() {
    let read = (
        "exec_command",
        r#"{"cmd":"sed -n '1,3p' a.ts","workdir":"/w"}"#,
        "Chunk ID: 1\nWall time: 0\nProcess exited with code 0\nOutput:\na\nb\nc\n",
    );
    let patch =
        "*** Begin Patch\n*** Delete File: old.ts\n*** Update File: a.ts\n@@\n a\n-b\n+B\n*** End Patch";
    let patch = serde_json::to_string(patch).expect("text");
    let patch = format!(r#"{{"input":{patch}}}"#);
    check(&[read], "a.ts", "a|b|c|…");
    check(&[read, ("apply_patch", &patch, "Exit code: 0\nOutput:\nSuccess")], "a.ts", "a|B|c|…");
    check(
        &[(
            "exec_command",
            r#"{"cmd":"nl -ba a.ts | sed -n '5,6p'","workdir":"/w"}"#,
            "Chunk ID: 1\nProcess exited with code 0\nOutput:\n     5\te\n     6\t\n",
        )],
        "a.ts",
        "?4|e||…",
    );
    let shell_patch =
        shell("apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: n.ts\n+x\n*** End Patch\nEOF");
    check(&[("shell", &shell_patch, "Exit code: 0\nOutput:\nSuccess")], "n.ts", "x|");
}

#[test]
fn pi_and_gemini_show_lines_as_they_are() {
    let read = (
        "read",
        r#"{"path":"a.ts","offset":4,"limit":2}"#,
        "d\ne\n\n... (31 more lines not shown. Use offset=6 to continue reading)",
    );
    check(&[read], "a.ts", "?3|d|e|…");
    check(
        &[read, ("edit", r#"{"path":"a.ts","oldText":"e","newText":"E\nF"}"#, "Successfully replaced")],
        "a.ts",
        "?3|d|E|F|…",
    );
    let head = "\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines 3-4 of 9 total lines.\nAction: read on.\n\n--- FILE CONTENT (truncated) ---\nc\nd";
    check(&[("read_file", r#"{"file_path":"a.ts","start_line":3,"end_line":4}"#, head)], "a.ts", "?2|c|d|?5");
}

#[test]
fn opencode_cline_and_copilot_number_their_lines() {
    check(
        &[(
            "read",
            r#"{"filePath":"/w/a.py"}"#,
            "<path>/w/a.py</path>\n<type>file</type>\n<content>\n1: x\n2: \n3: y\n\n(End of file - total 3 lines)\n</content>",
        )],
        "/w/a.py",
        "x||y|…",
    );
    check(
        &[(
            "read_files",
            r#"{"files":[{"path":"/w/a.py"},{"path":"/w/b.py"}]}"#,
            r#"[{"query":"/w/a.py","result":" 1 | x\n 2 | y","success":true},{"query":"/w/b.py","result":" 1 | z","success":true}]"#,
        )],
        "/w/b.py",
        "z|…",
    );
    check(
        &[("view", r#"{"path":"/w/a.md","view_range":[2,3]}"#, "2. two\n3. three")],
        "/w/a.md",
        "?1|two|three|…",
    );
    let read = ("read_file", r#"{"path":"a.ts"}"#, "[read_file for 'a.ts'] Result:\nx\ny\n");
    let diff = r#"{"path":"a.ts","diff":"------- SEARCH\nx\n=======\nX\n+++++++ REPLACE"}"#;
    check(&[read, ("replace_in_file", diff, "[replace_in_file for 'a.ts'] Result:\nsaved")], "a.ts", "X|y");
}

#[test]
fn openhands_edits_by_command() {
    let view = (
        "str_replace_editor",
        r#"{"command":"view","path":"/w/a.c"}"#,
        "Here's the result of running `cat -n` on /w/a.c:\n     1\ta\n     2\tb\n",
    );
    let edit = r#"{"command":"str_replace","path":"/w/a.c","old_str":"b","new_str":"B"}"#;
    let insert = r#"{"command":"insert","path":"/w/a.c","insert_line":1,"new_str":"x"}"#;
    check(&[view, ("str_replace_editor", edit, "The file /w/a.c has been edited.")], "/w/a.c", "a|B");
    check(&[view, ("str_replace_editor", insert, "The file /w/a.c has been edited.")], "/w/a.c", "a|x|b");
    check(&[view, ("str_replace_editor", edit, "ERROR:\nNo replacement was performed")], "/w/a.c", "a|b");
}

#[test]
fn actions_in_text_are_told_too() {
    let observed =
        |text: &str| said("user", &format!("<returncode>0</returncode>\n<output>\n{text}</output>"));
    let acted = |command: &str| said("assistant", &format!("THOUGHT: go\n\n```bash\n{command}\n```"));
    let messages = [
        said("user", "Fix it"),
        acted("cat > a.py <<'EOF'\nx = $1\ny = 2\nEOF"),
        observed(""),
        acted("cat >> a.py <<EOF\nz = 3\nEOF"),
        observed(""),
        acted("sed -n '2,3p' b.py"),
        observed("two\nthree\n"),
    ];
    let files = told(&messages);
    assert_eq!(picture(&files, "a.py"), "x = $1|y = 2|z = 3|");
    assert_eq!(picture(&files, "b.py"), "?1|two|three|…");
    let window = "[File: /r/a.py (3 lines total)]\n1:x\n2:y\n3:z\n(Open file: /r/a.py)\n(Current directory: /r)\nbash-$";
    let edited = "[File: /r/a.py (3 lines total)]\n1:x\n2:Y\n3:z\nFile updated.\n(Open file: /r/a.py)\n(Current directory: /r)\nbash-$";
    let messages = [
        said("user", "Fix it"),
        said("assistant", "Open\n```\nopen a.py\n```"),
        said("user", window),
        said("assistant", "Change\n```\nedit 2:2\nY\nend_of_edit\n```"),
        said("user", edited),
    ];
    let files = told(&messages);
    assert_eq!(
        files.accesses("/r/a.py").iter().map(|access| access.kind).collect::<Vec<_>>(),
        [AccessKind::Read, AccessKind::Edit, AccessKind::Read]
    );
    assert_eq!(
        files.state_before("/r/a.py", 2).and_then(|state| Some(state.line(2)?.text.to_owned())).as_deref(),
        Some("Y")
    );
}

#[test]
fn what_may_have_changed_is_unknown() {
    let read = ("Read", r#"{"file_path":"a.rs"}"#, "     1→one\n     2→two");
    for (command, expected) in [
        ("git checkout main", "…"),
        ("git checkout -b new", "one|two"),
        ("git checkout -- other.rs", "one|two"),
        ("git checkout -- a.rs", "…"),
        ("git status", "one|two"),
        ("gh pr checkout 12", "…"),
        ("cargo fmt", "…"),
        ("cargo fmt --check", "one|two"),
        ("cargo test", "one|two"),
        ("npm run lint:fix", "…"),
        ("prettier --write a.rs", "…"),
        ("prettier --write b.rs", "one|two"),
        ("sed -i 's/one/1/' a.rs", "…"),
        ("sed -i 's/one/1/' *.rs", "…"),
        ("git grep -l one | xargs sed -i 's/one/1/g'", "…"),
        ("git ls-files | xargs wc -l", "one|two"),
        ("find . -name '*.rs' -exec sed -i 's/one/1/' {} +", "…"),
        ("python3 - <<'EOF'\np = 'a.rs'\nopen(p, 'w').write('x')\nEOF", "…"),
        ("python3 -c 'print(1)'", "one|two"),
        ("echo hi > a.rs", "hi|"),
        ("cat b.rs > a.rs", "…"),
        ("docker exec box sed -i s/one/1/ a.rs", "one|two"),
        ("test -f a.rs || echo hi > a.rs", "…"),
    ] {
        check(&[read, ("bash", &shell(command), "ok")], "a.rs", expected);
    }
    let mut messages = vec![said("user", "Go")];
    messages.extend(used(1, read.0, read.1, read.2));
    messages.extend([said("assistant", "Done"), said("user", "I reverted that, try again")]);
    assert_eq!(picture(&told(&messages), "a.rs"), "…");
}

#[test]
fn moved_and_deleted_files_are_followed() {
    let write = ("write", r#"{"path":"a.txt","content":"x\n"}"#, "ok");
    check(&[write, ("bash", &shell("mv a.txt sub/b.txt"), "")], "sub/b.txt", "x|");
    check(&[write, ("bash", &shell("mv a.txt sub/b.txt"), "")], "a.txt", "");
    check(&[write, ("bash", &shell("rm a.txt"), "")], "a.txt", "");
    check(&[write, ("bash", &shell("rm -rf sub"), "")], "a.txt", "x|");
}

#[test]
fn an_output_of_several_commands_is_no_file() {
    check(&[("bash", &shell("cat a.txt; ls"), "x\na.txt")], "a.txt", "never touched");
    check(&[("bash", &shell("cd sub && cat a.txt"), "x\n")], "sub/a.txt", "x");
    check(&[("bash", &shell("cat -A a.txt"), "x$\n")], "a.txt", "never touched");
    check(&[("bash", &shell("cat a.txt | tr a b"), "x\n")], "a.txt", "never touched");
    check(&[("bash", &shell("grep -n x a.txt"), "4:xx\n")], "a.txt", "?3|xx|…");
    check(&[("bash", &shell("grep -rn x ."), "sub/a.txt:4:xx\n")], "sub/a.txt", "?3|xx|…");
}

#[test]
fn files_told_turn_by_turn_are_those_told_at_once() {
    let mut messages = vec![said("user", "Go")];
    for number in 0..12 {
        messages.extend(match number % 4 {
            0 => used(number, "Read", r#"{"file_path":"/w/src/a.rs"}"#, "     1→one\n     2→two"),
            1 => used(
                number,
                "Edit",
                r#"{"file_path":"/w/src/a.rs","old_string":"two","new_string":"2"}"#,
                "ok",
            ),
            2 => used(number, "bash", &shell("cat src/a.rs"), "one\n2\n"),
            _ => used(number, "bash", &shell("git checkout main"), "ok"),
        });
    }
    let mut before = history(&messages[..1]);
    let mut facts_so_far = facts(&before);
    let mut so_far = files(&before, &facts_so_far);
    let mut lengths: Vec<usize> = (2..=messages.len()).collect();
    // The conversation also goes back and on from an earlier message.
    lengths.extend([9, 15, 25]);
    for length in lengths {
        let after = parse_after(&before, history(&messages[..length]).into_bytes()).expect("a request");
        facts_so_far.extend(&after);
        so_far.extend(&after, &facts_so_far);
        let at_once = files(&after, &facts(&after));
        let seen = |files: &FileTimeline| {
            let one = |path: &str| (path.to_owned(), files.accesses(path).len(), picture(files, path));
            files.paths().map(one).collect::<Vec<_>>()
        };
        assert_eq!(seen(&so_far), seen(&at_once), "{length} messages");
        before = after;
    }
}
