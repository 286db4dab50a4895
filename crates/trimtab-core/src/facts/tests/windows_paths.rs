//! Sessions on Windows: however a path is spelled, the file is one.

use proptest::prelude::*;

use super::*;
use crate::files::files;

fn read_call(id: &str, spelled: &str) -> [String; 2] {
    used(id, "Read", &serde_json::json!({ "file_path": spelled }).to_string(), "1\tpackage a")
}

fn bash(id: &str, command: &str) -> [String; 2] {
    used(id, "Bash", &serde_json::json!({ "command": command }).to_string(), "package a")
}

/// Each step reads the whole file in another spelling; every one but the last is superseded by the next.
fn check_one_file(steps: &[[String; 2]]) {
    let mut messages = vec![text("user", "Go")];
    messages.extend(steps.iter().flatten().cloned());
    let facts = told(&messages);
    let superseded: Vec<usize> =
        (1..=steps.len()).filter(|step| facts.rows()[step * 2].superseded_by.is_some()).collect();
    let expected: Vec<usize> = (1..steps.len()).collect();
    let spelled: Vec<String> = facts.rows().iter().map(|row| row.subject().to_string()).collect();
    assert_eq!(superseded, expected, "{spelled:#?}\nroot {:?}", facts.root());
    let states = files(&history(&messages), &facts);
    assert_eq!(states.paths().count(), 1, "{:?}", states.paths().collect::<Vec<_>>());
}

#[test]
fn drives_are_spelled_with_any_separators_and_in_any_case() {
    check_one_file(&[
        read_call("1", "D:\\proj\\src\\a.go"),
        read_call("2", "D:/proj/src/a.go"),
        read_call("3", "d:\\proj/src\\a.go"),
        bash("4", "cat /d/proj/src/a.go"),
        bash("5", "cat 'D:\\proj\\src\\a.go'"),
        bash("6", "cat D:\\proj\\src\\a.go"),
    ]);
}

#[test]
fn a_path_of_msys_is_that_of_the_drive_named_later() {
    check_one_file(&[
        bash("1", "cat /d/proj/src/a.go"),
        read_call("2", "D:\\proj\\src\\a.go"),
        bash("3", "cd /d/proj && cat src/a.go"),
        read_call("4", "D:\\proj\\src\\a.go"),
    ]);
}

#[test]
fn directories_between_are_followed() {
    check_one_file(&[
        bash("1", "cd /d/proj && cat src\\a.go"),
        read_call("2", "D:\\proj\\src\\a.go"),
        bash("3", "cd D:\\proj\\src; cat a.go"),
        bash("4", "cat ../src/a.go"),
        read_call("5", "d:/proj/src/a.go"),
        bash("6", "cd \"D:/proj\" && cat src/a.go"),
    ]);
}

#[test]
fn servers_are_spelled_with_any_separators() {
    check_one_file(&[
        read_call("1", "\\\\server\\share\\src\\a.go"),
        read_call("2", "\\\\server\\share/src/a.go"),
        bash("3", "cd '\\\\server\\share' && cat src/a.go"),
    ]);
}

#[test]
fn wsl_names_a_drive_only_where_the_session_shows_it() {
    check_one_file(&[
        read_call("1", "D:\\proj\\src\\a.go"),
        bash("2", "cat /mnt/d/proj/src/a.go"),
        read_call("3", "D:\\proj\\src\\a.go"),
    ]);
    // Another drive, or a directory that only looks like one, is left alone.
    let mut messages = vec![text("user", "Go")];
    messages.extend(read_call("1", "D:\\proj\\src\\a.go"));
    messages.extend(bash("2", "cat /mnt/e/proj/src/a.go"));
    messages.extend(bash("3", "cat /mnt/data/proj/src/a.go"));
    check_superseded(&messages, &[]);
    assert_eq!(told(&messages).file_key("/mnt/d/proj/src/b.go"), "/mnt/d/proj/src/b.go");
}

#[test]
fn a_row_names_a_path_as_the_agent_wrote_it() {
    let mut messages = vec![text("user", "Go")];
    messages.extend(bash("1", "cd /d/proj && go build ./..."));
    messages.extend(read_call("2", "D:\\proj\\src\\a.go"));
    messages.extend(bash("3", "cat src/b.go"));
    let facts = told(&messages);
    assert_eq!(facts.rows()[4].subject().path(), Some("D:\\proj\\src\\a.go"));
    assert_eq!(facts.rows()[6].subject().path(), Some("/d/proj/src/b.go"));
    assert_eq!(facts.file_key("D:\\proj\\src\\a.go"), "src/a.go");
    assert_eq!(facts.root(), Some("D:/proj"));
}

#[test]
fn the_root_is_told_in_any_spelling() {
    let mut messages = vec![
        text("system", "<env>\nWorking directory: d:\\proj\nPlatform: win32\n</env>"),
        text("user", "Go"),
    ];
    messages.extend(used("1", "edit_file", r#"{"path":"src\\a.go"}"#, "ok"));
    messages.extend(used("2", "edit_file", r#"{"path":"D:/proj/src/a.go"}"#, "ok"));
    messages.extend(used("3", "edit_file", r#"{"path":"C:\\Users\\me\\b.go"}"#, "ok"));
    let facts = told(&messages);
    assert_eq!(
        (facts.root(), facts.modified_files()),
        (Some("D:/proj"), vec!["C:/Users/me/b.go", "src/a.go"])
    );
    assert!(facts.is_modified("/d/proj/src/a.go"));
}

#[test]
fn other_systems_keep_their_paths() {
    let mut messages = vec![text("user", "<cwd>/d/proj</cwd>"), text("user", "Go")];
    messages.extend(read_call("1", "/d/proj/we\\ird.py"));
    messages.extend(read_call("2", "/mnt/d/proj/a.py"));
    messages.extend(read_call("3", "src\\a.py"));
    let facts = told(&messages);
    let key = |row: usize| facts.file_key(facts.rows()[row].subject().path().expect("a path")).into_owned();
    assert_eq!(
        (facts.root(), key(3), key(5), key(7)),
        (Some("/d/proj"), "we\\ird.py".to_owned(), "/mnt/d/proj/a.py".to_owned(), "src\\a.py".to_owned(),)
    );
}

#[test]
fn names_told_turn_by_turn_are_those_told_at_once() {
    let mut messages = vec![text("user", "Go")];
    messages.extend(bash("1", "cat /d/proj/src/a.go"));
    messages.extend(bash("2", "cat src\\\\a.go"));
    messages.extend(bash("3", "cat /mnt/d/proj/src/a.go"));
    messages.extend(read_call("4", "D:\\proj\\src\\a.go"));
    messages.extend(bash("5", "cd /d/proj && cat src/a.go"));
    messages.extend(bash("6", "ls D:/proj"));
    let mut before = history(&messages[..1]);
    let (mut so_far, mut states) = (facts(&before), files(&before, &facts(&before)));
    for length in (2..=messages.len()).chain([7, 5, 13]) {
        let after = parse_after(&before, history(&messages[..length]).into_bytes()).expect("a request");
        so_far.extend(&after);
        states.extend(&after, &so_far);
        let at_once = facts(&after);
        assert_eq!(so_far.rows(), at_once.rows(), "{length} messages");
        assert_eq!((so_far.root(), so_far.naming_key()), (at_once.root(), at_once.naming_key()));
        let paths: Vec<&str> = states.paths().collect();
        assert_eq!(paths, files(&after, &at_once).paths().collect::<Vec<_>>());
        before = after;
    }
}

/// Reads a file in one of the ways in which a session on Windows may.
fn step(id: usize, names: &[String], form: u8, upper: bool) -> [String; 2] {
    let letter = if upper { 'D' } else { 'd' };
    let (directory, file) = names.split_at(names.len() - 1);
    let (backslashes, slashes) = (directory.join("\\"), directory.join("/"));
    let (file, id) = (&file[0], id.to_string());
    match form {
        0 => read_call(&id, &format!("{letter}:\\{backslashes}\\{file}")),
        1 => read_call(&id, &format!("{letter}:/{slashes}/{file}")),
        2 => read_call(&id, &format!("{letter}:/{slashes}\\{file}")),
        3 => bash(&id, &format!("cat /d/{slashes}/{file}")),
        4 => bash(&id, &format!("cd /d/{slashes} && cat {file}")),
        5 => bash(&id, &format!("cd {letter}:\\{backslashes} && cat ./{file}")),
        _ => bash(&id, &format!("cd '{letter}:/{slashes}'; cat \"{file}\"")),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_read_in_any_spellings_is_one(
        names in prop::collection::vec("[a-z][a-z0-9_]{1,5}", 2..5),
        forms in prop::collection::vec((0_u8..7, any::<bool>()), 2..7),
    ) {
        let mut names = names;
        if let Some(name) = names.last_mut() {
            name.push_str(".go");
        }
        let mut steps = vec![step(0, &names, 0, true)];
        steps.extend(forms.iter().enumerate().map(|(id, (form, upper))| step(id + 1, &names, *form, *upper)));
        check_one_file(&steps);
    }
}
