//! Machines in temporary folders, and what is found on them.

use super::*;

/// A machine with a home in a temporary folder, and these files in it.
fn check(system: System, files: &[&str], agents: &[&str], expected: &[(&str, &str)]) -> Discovery {
    let home = tempfile::tempdir().expect("a folder");
    for file in files {
        let path = home.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, "{}").expect("a file");
    }
    let machine = Machine { system, variable: |_| None, home: Some(home.path().to_owned()) };
    let agents: Vec<_> = agents.iter().flat_map(|name| agents_named(name).expect("an agent")).collect();
    let agents = if agents.is_empty() { AGENTS.iter().collect() } else { agents };
    let found = discover(&machine, &agents);
    let shown = |session: &FoundSession| {
        let path = session.path.strip_prefix(home.path()).expect("below the home");
        (session.agent.to_owned(), path.to_string_lossy().replace('\\', "/"))
    };
    let mut shown: Vec<(String, String)> = found.sessions.iter().map(shown).collect();
    shown.sort();
    let mut expected: Vec<(String, String)> =
        expected.iter().map(|(agent, path)| ((*agent).to_owned(), (*path).to_owned())).collect();
    expected.sort();
    assert_eq!(shown, expected);
    found
}

#[test]
fn sessions_of_every_agent_are_found_where_it_keeps_them() {
    let files = [
        ".claude/projects/-home-me-app/11.jsonl",
        ".claude/projects/-home-me-app/notes.md",
        ".claude/history.jsonl",
        ".codex/sessions/2026/10/01/rollout-2026-10-01.jsonl",
        ".codex/sessions/2026/10/01/other.jsonl",
        ".gemini/tmp/app/chats/session-2026-10-01T10-00-ab.jsonl",
        ".gemini/tmp/app/logs.json",
        ".copilot/session-state/7a/events.jsonl",
        ".pi/agent/sessions/--home--/1_2.jsonl",
        ".cline/data/sessions/5/5.messages.json",
        ".cline/data/sessions/5/5.json",
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/9/api_conversation_history.json",
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/9/ui_messages.json",
        ".config/mini-swe-agent/last_mini_run.traj.json",
        ".local/share/opencode/opencode.db",
    ];
    let expected = [
        ("claude-code", files[0]),
        ("codex", files[3]),
        ("gemini-cli", files[5]),
        ("copilot-cli", files[7]),
        ("pi", files[8]),
        ("cline-cli", files[9]),
        ("cline", files[11]),
        ("mini-swe-agent", files[13]),
    ];
    let found = check(System::Linux, &files, &[], &expected);
    assert_eq!(found.elsewhere.len(), 1, "opencode's database is named, not read");
    check(System::Linux, &files, &["codex"], &expected[1..2]);
    check(System::Linux, &files, &["cline"], &expected[5..7]);
}

#[test]
fn editors_have_other_folders_on_other_systems() {
    let mac = "Library/Application Support/Cursor/User/globalStorage/saoudrizwan.claude-dev/tasks/1/api_conversation_history.json";
    let linux =
        ".config/Cursor/User/globalStorage/saoudrizwan.claude-dev/tasks/1/api_conversation_history.json";
    check(System::MacOs, &[mac, linux], &[], &[("cline", mac)]);
    check(System::Linux, &[mac, linux], &[], &[("cline", linux)]);
}

#[test]
fn variables_name_other_places_on_every_system() {
    let variable = |name: &str| match name {
        "CODEX_HOME" => Some(OsString::from("/elsewhere/codex")),
        "APPDATA" => Some(OsString::from("/roaming")),
        _ => None,
    };
    let machine = Machine { system: System::Windows, variable, home: Some(PathBuf::from("/me")) };
    assert_eq!(machine.folders("$CODEX_HOME/sessions"), [Path::new("/elsewhere/codex/sessions")]);
    assert_eq!(machine.folders("~/.codex/sessions"), [Path::new("/me/.codex/sessions")]);
    assert!(machine.folders("$PI_CODING_AGENT_DIR/sessions").is_empty());
    let editors = machine.folders("$APPDATA/{editor}/User");
    assert!(editors.len() > 3 && editors.contains(&PathBuf::from("/roaming/Cursor/User")));
    let nobody = Machine { home: None, ..machine };
    assert!(nobody.folders("~/.codex/sessions").is_empty());
}

#[test]
fn the_newest_session_is_first_and_an_empty_file_is_none() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join(".claude/projects/p");
    fs::create_dir_all(&folder).expect("folders");
    for (name, text, seconds) in [("old", "{}", 10), ("new", "{}", 20), ("empty", "", 30)] {
        let path = folder.join(format!("{name}.jsonl"));
        fs::write(&path, text).expect("a file");
        let time = UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        fs::File::options().write(true).open(&path).and_then(|file| file.set_modified(time)).expect("a time");
    }
    let machine = Machine { system: System::Linux, variable: |_| None, home: Some(home.path().to_owned()) };
    let found = discover(&machine, &AGENTS.iter().collect::<Vec<_>>());
    let names: Vec<_> = found.sessions.iter().filter_map(|session| session.path.file_stem()).collect();
    assert_eq!(names, ["new", "old"]);
    assert_eq!(found.sessions[0].modified, Millis(20_000));
}

#[test]
fn agents_have_the_names_that_people_use() {
    let named =
        |name: &str| agents_named(name).map(|found| found.iter().map(|agent| agent.name).collect::<Vec<_>>());
    assert_eq!(named("claude"), Ok(vec!["claude-code"]));
    assert_eq!(named("gemini"), Ok(vec!["gemini-cli"]));
    assert_eq!(named("Codex"), Ok(vec!["codex"]));
    assert!(named("cladue-code").is_err_and(|words| words.contains("did you mean claude-code?")));
    let known: Vec<&str> = trimtab_replay::agents().map(|(name, _)| name).collect();
    assert!(AGENTS.iter().all(|agent| known.contains(&agent.name)), "every agent has a reader");
}

#[test]
fn the_users_settings_are_where_each_system_keeps_them() {
    let machine = |system, variable| Machine { system, variable, home: None };
    let usual: fn(&str) -> Option<OsString> = |name| match name {
        "HOME" => Some(OsString::from("/home/me")),
        "APPDATA" => Some(OsString::from("/roaming")),
        "XDG_CONFIG_HOME" => Some(OsString::new()),
        _ => None,
    };
    let named: fn(&str) -> Option<OsString> = |name| match name {
        "XDG_CONFIG_HOME" => Some(OsString::from("/configs")),
        _ => None,
    };
    for (system, expected) in [
        (System::Linux, "/home/me/.config"),
        (System::MacOs, "/home/me/.config"),
        (System::Windows, "/roaming"),
    ] {
        assert_eq!(machine(system, usual).settings_folder(), Some(PathBuf::from(expected)));
        assert_eq!(machine(system, named).settings_folder(), Some(PathBuf::from("/configs")));
        assert_eq!(machine(system, |_| None).settings_folder(), None);
    }
}
