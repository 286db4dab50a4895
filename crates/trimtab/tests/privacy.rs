//! Two projects with one store: neither sees the other by accident, and every agent recalls what its own notes name.

#![cfg(unix)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is wrong, in its helpers too"
)]

mod common;
#[path = "proxy/conversations.rs"]
#[allow(dead_code, reason = "the proxy's tests use all of it")]
mod conversations;
#[path = "proxy/running.rs"]
#[allow(dead_code, reason = "the proxy's tests use all of it")]
mod running;
#[path = "proxy/upstream.rs"]
#[allow(dead_code, reason = "the proxy's tests use all of it")]
mod upstream;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Stdio},
    thread,
    time::{Duration, Instant},
};

use common::{Run, command};
use running::Running;
use serde_json::{Value, json};
use trimtab_core::{Millis, Policy, Settings, fit, parse};
use trimtab_store::{Append, SessionLabel, Sqlite, Store};
use upstream::{Script, Upstream};

/// Two repositories, a folder that is none, and a store that all of them use.
struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/.git", "a/src/deep", "b/.git", "plain/sub"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        World { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn store(&self) -> String {
        self.path("kept.db").display().to_string()
    }

    /// Runs a command in a folder.
    fn run(&self, place: &str, arguments: &[&str]) -> Run {
        self.run_with(place, arguments, &[], b"")
    }

    fn run_with(&self, place: &str, arguments: &[&str], variables: &[(&str, &str)], input: &[u8]) -> Run {
        let mut child = command(arguments)
            .current_dir(self.path(place))
            .env("TRIMTAB_STORE", self.store())
            .env_remove("TRIMTAB_NO_STORE")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let _ = child.stdin.take().unwrap().write_all(input);
        let done = child.wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        Run { code: done.status.code(), out: done.stdout, words }
    }

    /// Fits a conversation of a project in which a file was read, edited and shown; gives the handle of what it printed.
    fn work_in(&self, place: &str, file: &str, printed: &str) -> String {
        let request = request(place, file, printed);
        let fitted = self.run_with(place, &["fit", "-", "--policy", "none"], &[], &request);
        assert_eq!(fitted.code, Some(0), "{}", fitted.words);
        let history = parse(request).unwrap();
        let is_printed = |block: &&trimtab_core::Block| history.block_text(block).contains(printed);
        trimtab_core::block_handle(&history, history.blocks().iter().find(is_printed).unwrap())
    }
}

/// A request of an agent that printed something and wrote a file.
fn request(place: &str, file: &str, printed: &str) -> Vec<u8> {
    let call = |id: &str, name: &str, input: Value| json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": input}]});
    let result = |id: &str, text: &str| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]});
    let messages = [
        json!({"role": "user", "content": format!("Work on {place}.")}),
        call("t1", "Bash", json!({"command": "cat .env"})),
        result("t1", printed),
        call("t2", "Write", json!({"file_path": file, "content": format!("written in {place}\n")})),
        result("t2", "ok"),
        json!({"role": "assistant", "content": "Done."}),
        json!({"role": "user", "content": "Go on."}),
    ];
    json!({"model": "claude-opus-5", "max_tokens": 100, "messages": messages}).to_string().into_bytes()
}

fn two_projects() -> (World, String, String) {
    let world = World::new();
    let b = world.work_in("b", "/b/main.rs", "the zebra of b\nDB_PASSWORD=bbbbbbb2\n");
    let a = world.work_in("a", "/a/main.rs", "the zebra of a\nDB_PASSWORD=aaaaaaa1\nwombat\n");
    (world, a, b)
}

#[test]
fn the_command_line_sees_its_own_project_alone() {
    let (world, a, b) = two_projects();
    let found = world.run("b", &["search", "DB_PASSWORD"]);
    assert!(found.text().contains(&b) && !found.text().contains(&a), "{}", found.text());
    assert!(found.text().contains("DB_PASSWORD=[secret]"), "{}", found.text());
    let shown = world.run("b", &["search", "DB_PASSWORD", "--show-secrets"]);
    assert!(shown.text().contains("bbbbbbb2"), "{}", shown.text());
    let only_there = world.run("b", &["search", "wombat"]);
    assert_eq!((only_there.code, only_there.text().as_str()), (Some(1), ""));
    assert!(
        only_there.words.contains("--all")
            && !only_there.words.contains(&a)
            && !only_there.words.contains("zebra"),
        "{}",
        only_there.words
    );
    assert_eq!(world.run("b", &["search", "wombat", "--all"]).code, Some(0));
    // The same project from a folder below it, from elsewhere by its name, and as `wrap` hands it over.
    let project = world.path("a").display().to_string();
    assert!(world.run("a/src/deep", &["search", "wombat"]).text().contains(&a));
    assert!(world.run("b", &["search", "wombat", "--project", &project]).text().contains(&a));
    let handed = world.run_with("b", &["search", "wombat"], &[("TRIMTAB_PROJECT", &project)], b"");
    assert!(handed.text().contains(&a), "{}", handed.words);
    let list: Value = serde_json::from_slice(&world.run("b", &["sessions", "--json"]).out).unwrap();
    assert_eq!((list.as_array().unwrap().len(), list[0]["project"].as_str()), (1, world.path("b").to_str()));
    let listed = world.run("b", &["sessions"]);
    assert!(
        listed.words.contains("1 session of other projects") && listed.words.contains("--all"),
        "{}",
        listed.words
    );
    assert!(world.run("b", &["sessions", "--all"]).text().contains("/a "), "the project is shown");
}

#[test]
fn sessions_are_named_only_inside_their_project() {
    let (world, _, _) = two_projects();
    // The session of b is the first; the one of a was used last.
    for arguments in [&["show"][..], &["changelog"], &["files"], &["inspect"], &["restore"]] {
        let refused = world.run("b", &[arguments, &["s2"]].concat());
        assert_eq!(refused.code, Some(1), "{arguments:?}: {}", refused.text());
        assert!(
            refused.words.contains("--all") && refused.out.is_empty(),
            "{arguments:?}: {}",
            refused.words
        );
        assert_eq!(world.run("b", &[arguments, &["s2", "--all"]].concat()).code, Some(0), "{arguments:?}");
        assert_eq!(world.run("b", &[arguments, &["s1"]].concat()).code, Some(0), "{arguments:?}");
    }
    let latest = world.run("b", &["changelog", "latest"]);
    assert!(latest.text().contains("/b/main.rs") && !latest.text().contains("/a/"), "{}", latest.text());
    let file = world.run("b", &["file-at", "latest", "main.rs"]);
    assert!(file.text().contains("written in b"), "{}", file.text());
    let nothing = world.run("plain", &["changelog", "latest"]);
    assert!(nothing.code == Some(1) && nothing.words.contains("2 of other projects"), "{}", nothing.words);
}

#[test]
fn a_handle_brings_back_what_is_of_the_own_project_or_of_none() {
    let (world, a, b) = two_projects();
    let original = "the zebra of a\nDB_PASSWORD=aaaaaaa1\nwombat\n";
    for place in ["a", "a/src/deep"] {
        assert_eq!(world.run(place, &["recall", &a]).text(), original, "whole, secrets included");
    }
    let refused = world.run("b", &["recall", &a]);
    assert_eq!((refused.code, refused.text().as_str()), (Some(1), ""));
    assert!(refused.words.contains("--all"), "{}", refused.words);
    assert_eq!(world.run("b", &["recall", &a, "--all"]).text(), original);
    assert_eq!(world.run("b", &["recall", &b]).code, Some(0));
    // An agent in a folder that is no repository, and its shell in one below it.
    let plain = world.work_in("plain", "/p/main.rs", "printed in plain\n");
    assert_eq!(world.run("plain/sub", &["recall", &plain]).text(), "printed in plain\n");
    assert_eq!(world.run("a", &["recall", &plain]).code, Some(1));
    assert_eq!(
        world.run("plain/sub", &["search", "printed"]).code,
        Some(1),
        "searching needs the folder itself"
    );
    // A pin by handle never reaches into another project either.
    assert_eq!(world.run("b", &["pin", &a]).code, Some(1));
    assert_eq!(world.run("a", &["pin", &a]).code, Some(0));
    assert_eq!(world.run("b", &["pin", "--list"]).text(), "");
    assert!(world.run("a", &["pin", "--list"]).text().contains(&a));
}

/// A server of the Model Context Protocol, started in a folder as an agent does.
struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    calls: u32,
}

impl Server {
    fn start(world: &World, place: &str, flags: &[&str]) -> Server {
        let mut child = command(&[&["mcp"], flags].concat())
            .current_dir(world.path(place))
            .env("TRIMTAB_STORE", world.store())
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut server = Server { child, out, calls: 0 };
        server.ask(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}}),
        );
        server.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.out.read_line(&mut line).unwrap() > 0, "the server ended");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == id {
                return answer["result"].clone();
            }
        }
    }

    /// Calls a tool; gives all that the agent reads.
    #[expect(clippy::needless_pass_by_value, reason = "tests say in place what is asked")]
    fn call(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        let texts = answer["content"].as_array().unwrap().iter();
        texts.filter_map(|content| content["text"].as_str()).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_agent_sees_its_own_project_alone() {
    let (world, a, b) = two_projects();
    let mut server = Server::start(&world, "b", &[]);
    let found = server.call("search_history", json!({"text": "DB_PASSWORD"}));
    assert!(found.contains(&b) && !found.contains(&a) && !found.contains("aaaaaaa1"), "{found}");
    assert!(!found.contains("bbbbbbb2"), "{found}");
    let none = server.call("search_history", json!({"text": "wombat"}));
    assert!(none.contains("trimtab mcp --all") && !none.contains(&a) && !none.contains("zebra"), "{none}");
    for (tool, arguments) in
        [("file_at", json!({"path": "main.rs"})), ("changelog", json!({})), ("files", json!({}))]
    {
        let shown = server.call(tool, arguments);
        assert!(shown.contains("written in b") || shown.contains("/b/main.rs"), "{tool}: {shown}");
        assert!(!shown.contains("/a/main.rs") && !shown.contains("written in a"), "{tool}: {shown}");
    }
    let refused = server.call("changelog", json!({"session": "s2"}));
    assert!(refused.contains("another project") && !refused.contains("/a/"), "{refused}");
    let refused = server.call("recall", json!({"handle": a}));
    assert!(refused.contains("trimtab mcp --all") && !refused.contains("zebra"), "{refused}");
    assert!(server.call("recall", json!({"handle": b})).contains("bbbbbbb2"), "an original is whole");
    let mut of_all = Server::start(&world, "b", &["--all"]);
    assert!(of_all.call("search_history", json!({"text": "wombat"})).contains(&a));
}

fn good() -> Upstream {
    Upstream::start(|_, _| {
        let head = vec!["Content-Type: application/json".to_owned()];
        Script::Whole("200 OK", head, br#"{"usage":{"input_tokens":10,"output_tokens":7}}"#.to_vec())
    })
}

/// Posts a request to a proxy, with further headers.
fn post(proxy: &Running, headers: &[&str], body: &[u8]) {
    let head = [&["POST /v1/messages HTTP/1.1", "Content-Type: application/json"], headers].concat();
    let answer = proxy.ask(&head, body);
    assert!(answer.head[0].contains("200"), "{:?}", answer.head);
}

/// Returns the handle of the block that holds a text.
fn handle_in(body: &[u8], text: &str) -> String {
    let history = parse(body.to_vec()).unwrap();
    let holds = |block: &&trimtab_core::Block| history.block_text(block).contains(text);
    trimtab_core::block_handle(&history, history.blocks().iter().find(holds).unwrap())
}

#[test]
fn two_projects_behind_one_proxy_keep_apart() {
    let (world, upstream) = (World::new(), good());
    let store = world.store();
    let mut proxy = Running::with(&upstream, &["--store", &store], &[("TRIMTAB_NO_STORE", "0")]);
    let bodies =
        ["a", "b", "nobody"].map(|place| request(place, "/w/main.rs", &format!("the zebra of {place}\n")));
    for (place, body) in ["a", "b"].iter().zip(&bodies) {
        post(&proxy, &[&format!("X-Trimtab-Project: {}", world.path(place).display())], body);
        assert_eq!(upstream.last().header("x-trimtab-project"), None, "it is not forwarded");
    }
    post(&proxy, &["Session_Id: conv-7"], &bodies[2]);
    proxy.terminate();
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
    let handle = handle_in(&bodies[2], "the zebra of nobody");
    for place in ["a", "b"] {
        let found = world.run(place, &["search", "zebra"]).text();
        assert!(found.contains(&format!("the zebra of {place}")) && found.lines().count() == 1, "{found}");
        // What belongs to no project is searched by nobody, and brought back by its handle.
        assert_eq!(world.run(place, &["recall", &handle]).text(), "the zebra of nobody\n");
        let mut server = Server::start(&world, place, &[]);
        assert!(!server.call("search_history", json!({"text": "zebra"})).contains("nobody"));
        let own = server.call("search_history", json!({"text": "zebra", "session": handle}));
        assert!(own.contains("the zebra of nobody"), "{own}");
        let file = server.call("file_at", json!({"path": "main.rs", "session": handle}));
        assert!(file.contains("written in nobody"), "{file}");
    }
    let named = world.run("a", &["search", "zebra", "--project", "conv-7"]);
    assert!(named.text().contains("the zebra of nobody"), "{}", named.words);
    let foreign = handle_in(&bodies[0], "the zebra of a");
    assert_eq!(world.run("b", &["recall", &foreign]).code, Some(1));
}

#[test]
fn wrap_hands_its_project_to_the_agent() {
    let world = World::new();
    let project = |place: &str, variables: &[(&str, &str)]| {
        let script = "cd / && echo $TRIMTAB_PROJECT";
        let run = world.run_with(place, &["wrap", "sh", "--", "-c", script], variables, b"");
        assert_eq!(run.code, Some(0), "{}", run.words);
        run.text().trim().to_owned()
    };
    assert_eq!(Path::new(&project("a/src/deep", &[])), world.path("a"));
    assert_eq!(Path::new(&project("plain", &[])), world.path("plain"));
    assert_eq!(project("a", &[("TRIMTAB_PROJECT", "billing")]), "billing");
}

/// Keeps a conversation that was used at a time.
fn keep_at(store: &str, word: &str, at: i64) {
    let store = Sqlite::open(Path::new(store)).unwrap();
    let body = request(word, "/w/main.rs", word);
    let known = store.recognize(&parse(body.clone()).unwrap(), SessionLabel::default()).unwrap();
    let settings = Settings::new(Policy::find_shipped("none").unwrap());
    let fitted = fit(body, &known.memory, &settings, Millis(at)).unwrap();
    store.append_request(&Append::new(&fitted.history, &fitted.plan, &known, Millis(at))).unwrap();
}

#[test]
fn what_is_too_old_goes_by_itself_and_what_is_live_stays() {
    let world = World::new();
    let day = 24 * 60 * 60 * 1000;
    let now = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    for (word, days) in [("ancient", 400), ("old", 40), ("live", 0)] {
        keep_at(&world.store(), word, now - days * day);
    }
    let count = || {
        let list = world.run("a", &["sessions", "--all", "--json"]);
        serde_json::from_slice::<Value>(&list.out).unwrap().as_array().unwrap().len()
    };
    // By a flag, listed and not done; by the user's file; never by a project's.
    let told = world.run("a", &["forget", "--keep-for", "90d", "--dry-run"]);
    assert!(told.words.contains("1 session would be deleted") && count() == 3, "{}", told.words);
    let config = world.path("config");
    fs::create_dir_all(config.join("trimtab")).unwrap();
    fs::write(config.join("trimtab/config.toml"), "keep_for = '90d'\n").unwrap();
    let set = [("XDG_CONFIG_HOME", config.to_str().unwrap())];
    let done = world.run_with("a", &["forget", "--yes"], &set, b"");
    assert!(done.words.contains("1 session deleted") && count() == 2, "{}", done.words);
    fs::write(world.path("b/trimtab.toml"), "keep_for = '1d'\n").unwrap();
    let refused = world.run("b", &["forget"]);
    assert!(refused.code == Some(2) && refused.words.contains("config.toml"), "{}", refused.words);
    let short = world.run("a", &["forget", "--keep-for", "1h"]);
    assert!(short.code == Some(2) && short.words.contains("1d at least"), "{}", short.words);
    // A proxy applies it when it starts.
    let (upstream, store) = (good(), world.store());
    let flags = ["--store", &store, "--keep-at-most", "1"];
    let _proxy = Running::with(&upstream, &flags, &[("TRIMTAB_NO_STORE", "0")]);
    let started = Instant::now();
    while count() > 1 {
        assert!(started.elapsed() < Duration::from_secs(20), "{} are left", count());
        thread::sleep(Duration::from_millis(50));
    }
    assert!(world.run("a", &["search", "live", "--all"]).code == Some(0), "what is live stays");
}

#[test]
fn patterns_of_secrets_come_from_files_and_only_the_user_s_own_shows_them() {
    let world = World::new();
    world.work_in("a", "/a/main.rs", "employee emp-123456 has the zebra\nDB_PASSWORD=aaaaaaa1 zebra\n");
    fs::write(world.path("a/trimtab.toml"), "secret_patterns = ['emp-[0-9]+']\n").unwrap();
    let found = world.run("a", &["search", "employee", "zebra"]).text();
    assert!(found.contains("employee [secret] has"), "{found}");
    assert_eq!(world.run("a", &["search", "123456"]).code, Some(1));
    fs::write(world.path("a/trimtab.toml"), "secret_patterns = ['emp-(']\n").unwrap();
    let wrong = world.run("a", &["search", "zebra"]);
    assert!(
        wrong.code == Some(2) && wrong.words.contains("trimtab.toml, line 1: secret_patterns"),
        "{}",
        wrong.words
    );
    fs::write(world.path("a/trimtab.toml"), "show_secrets = true\n").unwrap();
    assert_eq!(world.run("a", &["search", "zebra"]).code, Some(2));
    fs::remove_file(world.path("a/trimtab.toml")).unwrap();
    let config = world.path("config");
    fs::create_dir_all(config.join("trimtab")).unwrap();
    fs::write(config.join("trimtab/config.toml"), "show_secrets = true\n").unwrap();
    let set = [("XDG_CONFIG_HOME", config.to_str().unwrap())];
    let shown = world.run_with("a", &["search", "DB_PASSWORD"], &set, b"").text();
    assert!(shown.contains("aaaaaaa1"), "{shown}");
}
