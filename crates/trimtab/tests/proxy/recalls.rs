//! A scripted agent that does what notes say: whenever it sees one, it asks for the original, and must get it. Over the command
//! line and over MCP, for logs, files, JSON and pictures.

use std::{
    collections::HashSet,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{common, conversations::bytes, good, running::Running, upstream::Upstream};

/// Requests that a recalled text must reach the model in, unchanged: as many as count as recent.
const RECENT: usize = 5;

/// An agent with its conversation, behind a proxy.
struct Agent {
    upstream: Upstream,
    proxy: Running,
    folder: tempfile::TempDir,
    messages: Vec<Value>,
    calls: usize,
}

impl Agent {
    fn new(policy: &[&str]) -> Agent {
        let (upstream, folder) = (good(), tempfile::tempdir().unwrap());
        let store = folder.path().join("kept.db");
        let flags: Vec<&str> =
            policy.iter().copied().chain(["--project", ".", "--store", store.to_str().unwrap()]).collect();
        let proxy = Running::with(&upstream, &flags, &[("TRIMTAB_NO_STORE", "0")]);
        let messages = vec![json!({"role": "user", "content": "Find out why the build is slow."})];
        Agent { upstream, proxy, folder, messages, calls: 0 }
    }

    fn store(&self) -> std::path::PathBuf {
        self.folder.path().join("kept.db")
    }

    /// Adds a call and its result, and sends the request; returns what the model was given.
    fn turn(&mut self, tool: &str, input: &Value, result: &Value) -> Value {
        let id = format!("toolu_{}", self.calls);
        self.calls += 1;
        let said = format!("Step {}.", self.calls);
        let call = json!({"type": "tool_use", "id": id, "name": tool, "input": input});
        self.messages.push(json!({"role": "assistant", "content": [{"type": "text", "text": said}, call]}));
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": result});
        self.messages.push(json!({"role": "user", "content": [result]}));
        let request = json!({"model": "claude-opus-5", "max_tokens": 1024, "messages": self.messages});
        self.proxy.post("/v1/messages", &bytes(&request));
        serde_json::from_slice(&self.upstream.last().body).unwrap()
    }

    /// Runs a command as the tool of an agent does, and gives the model what it printed; returns both.
    fn run(&mut self, command: &str) -> (String, Value) {
        let trimtab = Path::new(env!("CARGO_BIN_EXE_trimtab")).parent().unwrap();
        let path = format!("{}:{}", trimtab.display(), std::env::var("PATH").unwrap());
        let done = Command::new("bash")
            .args(["-c", command])
            .env("PATH", path)
            .env("TRIMTAB_STORE", self.store())
            .output()
            .unwrap();
        assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
        let printed = String::from_utf8(done.stdout).unwrap();
        let given = self.turn("Bash", &json!({"command": command}), &json!(printed));
        (printed, given)
    }

    /// Goes on with something small.
    fn go_on(&mut self) -> Value {
        let number = self.calls;
        self.turn("Bash", &json!({"command": format!("date +{number}")}), &json!(format!("{number}\n")))
    }
}

/// Returns the commands that notes in what the model was given name, in order.
fn named_recalls(given: &Value) -> Vec<String> {
    let is_result = |block: &&Value| block["type"] == "tool_result";
    let blocks =
        given["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_array());
    let text: String = blocks.flatten().filter(is_result).map(|block| block["content"].to_string()).collect();
    let pattern = regex::Regex::new(r"[^ \[;`]*trimtab recall (--store \S+ )?[0-9a-f]{12}").unwrap();
    pattern.find_iter(&text).map(|found| found.as_str().to_owned()).collect()
}

/// Returns the content of the last result.
fn last_result(given: &Value) -> &Value {
    let message = given["messages"].as_array().unwrap().last().unwrap();
    &message["content"].as_array().unwrap().last().unwrap()["content"]
}

/// Tells whether a result with this content is in what the model was given.
fn has_result(given: &Value, content: &Value) -> bool {
    let blocks =
        given["messages"].as_array().unwrap().iter().filter_map(|message| message["content"].as_array());
    blocks.flatten().any(|block| block["type"] == "tool_result" && block["content"] == *content)
}

fn test_log() -> String {
    let passed: String = (0..200).map(|test| format!("test unit::case_{test} ... ok\n")).collect();
    let detail: String = (0..60).map(|line| format!("  at frame {line}: value {}\n", line * 7919)).collect();
    format!(
        "running 201 tests\n{passed}test unit::broken ... FAILED\n{detail}\ntest result: FAILED. 200 passed; 1 failed\n"
    )
}

fn source_file() -> String {
    (0..300).map(|line| format!("    let value_{line} = compute({});\n", line * 104_729)).collect()
}

fn json_rows() -> String {
    let rows: Vec<Value> =
        (0..150).map(|row| json!({"id": row, "name": format!("row {row}"), "sum": row * 7919})).collect();
    serde_json::to_string_pretty(&rows).unwrap()
}

/// What the agent does before it looks at notes: a log, a file, JSON and a few small things.
fn work(agent: &mut Agent) -> Value {
    agent.turn("Bash", &json!({"command": "cargo test"}), &json!(test_log()));
    agent.turn("Read", &json!({"file_path": "/w/src/lib.rs"}), &json!(source_file()));
    agent.turn("Bash", &json!({"command": "curl http://localhost/rows"}), &json!(json_rows()));
    agent.go_on();
    agent.go_on()
}

/// Hides all but the last result at once, so that every note is there soon.
const LAST_ONLY: [&str; 8] =
    ["--policy", "recent", "--set", "keep_last=1", "--set", "batch=1", "--budget", "100000"];

/// Asks for what a note names with each of the suffixes, and goes on for a while; every answer must reach the model, and stay.
#[track_caller]
fn recall(agent: &mut Agent, command: &str, suffixes: &[&str]) -> Value {
    let mut given = Value::Null;
    for suffix in suffixes {
        let (printed, now) = agent.run(&format!("{command}{suffix}"));
        assert!(!printed.is_empty(), "{command}{suffix}");
        assert_eq!(last_result(&now), &json!(printed), "{command}{suffix} must reach the model");
        for later in 0..RECENT {
            given = agent.go_on();
            assert!(has_result(&given, &json!(printed)), "{command}{suffix} is there {later} steps later");
        }
    }
    given
}

#[test]
fn an_agent_that_recalls_whenever_it_sees_a_note_gets_every_original_once() {
    let mut agent = Agent::new(&LAST_ONLY);
    let mut given = work(&mut agent);
    let mut asked: HashSet<String> = HashSet::new();
    while let Some(command) = named_recalls(&given).into_iter().find(|command| !asked.contains(command)) {
        given = recall(&mut agent, &command, &[""]);
        asked.insert(command);
        assert!(asked.len() < 20, "the agent runs in circles: {asked:?}");
    }
    assert!(asked.len() >= 3, "the log, the file and the rows were hidden: {asked:?}");
}

#[test]
fn parts_that_the_agent_asks_for_come_back() {
    let mut agent = Agent::new(&LAST_ONLY);
    let named: HashSet<String> = named_recalls(&work(&mut agent)).into_iter().collect();
    assert_eq!(named.len(), 3, "the log, the file and the rows were hidden: {named:?}");
    for command in named {
        let parts = [" | head -60", " | sed -n 1,80p", " --lines 1-40", " --grep '[05]'", " | grep -n 7"];
        recall(&mut agent, &command, &parts);
    }
}

#[test]
fn the_default_policy_gives_back_what_it_shortened_at_once() {
    let mut agent = Agent::new(&["--policy", "steady"]);
    // A request that the provider's cache takes.
    agent.messages[0]["content"] = json!("Find out why the build is slow. ".repeat(2000));
    let given = agent.turn("Bash", &json!({"command": "cargo test"}), &json!(test_log()));
    let command = named_recalls(&given).pop().expect("a long log is shortened at once");
    for suffix in ["", " | head -60", " --lines 1-40"] {
        let (printed, given) = agent.run(&format!("{command}{suffix}"));
        assert_eq!(last_result(&given), &json!(printed), "{command}{suffix}");
    }
}

#[test]
fn a_recall_that_is_old_is_hidden_with_a_note_that_says_what_it_was() {
    let mut agent = Agent::new(&LAST_ONLY);
    let given = work(&mut agent);
    let command = named_recalls(&given).remove(0);
    agent.run(&command);
    let given = (0..=RECENT).map(|_| agent.go_on()).last().unwrap();
    let words = given["messages"].to_string();
    assert!(words.contains(&format!("Recalled by `{command}`")), "{words}");
}

/// A server of the Model Context Protocol, as a client starts it.
struct Server(Child, BufReader<std::process::ChildStdout>, u64);

impl Server {
    fn start(store: &Path) -> Server {
        let mut child = common::command(&["mcp", "--store", store.to_str().unwrap()])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut server = Server(child, out, 0);
        let who = json!({"name": "agent", "version": "0"});
        server.ask(
            "initialize",
            &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who}),
        );
        server.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.0.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.2 += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": self.2, "method": method, "params": parameters}));
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["result"].clone()
    }

    /// Calls a tool; returns its content as a client hands it on.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert_ne!(result["isError"], json!(true), "{result}");
        let hand_on = |block: &Value| match block["type"].as_str() {
            Some("image") => {
                let source =
                    json!({"type": "base64", "media_type": block["mimeType"], "data": block["data"]});
                json!({"type": "image", "source": source})
            }
            _ => json!({"type": "text", "text": block["text"]}),
        };
        result["content"].as_array().unwrap().iter().map(hand_on).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_the_server_brings_back_reaches_the_model() {
    let mut agent = Agent::new(&LAST_ONLY);
    let given = work(&mut agent);
    let mut server = Server::start(&agent.store());
    let mut calls = 0;
    for command in named_recalls(&given) {
        let handle = &command[command.len() - 12..];
        for (tool, arguments) in [
            ("recall", json!({"handle": handle})),
            ("recall", json!({"handle": handle, "lines": "1-40"})),
            ("recall", json!({"handle": handle, "grep": "[05]"})),
            ("search_history", json!({"text": "value"})),
        ] {
            let content = server.call(tool, &arguments);
            let given = agent.turn(&format!("mcp__trimtab__{tool}"), &arguments, &content);
            assert_eq!(last_result(&given), &content, "{tool} {arguments}");
            for _ in 0..RECENT {
                let given = agent.go_on();
                assert!(has_result(&given, &content), "{tool} {arguments} is there a few steps later");
            }
            calls += 1;
        }
    }
    assert!(calls >= 12, "{calls}");
}

/// The beginning of a picture of 1,024 by 1,024 dots: as much as is looked at.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAABAAAAAQACAIAAADwf7zUAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn a_picture_comes_back_as_a_picture() {
    let mut agent = Agent::new(&LAST_ONLY);
    let picture =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}});
    agent.turn("screenshot", &json!({}), &json!([picture]));
    let given = work(&mut agent);
    let command = named_recalls(&given).remove(0);
    let handle = &command[command.len() - 12..];
    let content = Server::start(&agent.store()).call("recall", &json!({"handle": handle}));
    assert_eq!(content, json!([picture]), "the server gives the picture itself");
    let given = agent.turn("mcp__trimtab__recall", &json!({"handle": handle}), &content);
    assert_eq!(last_result(&given), &content);
    // A shell shows no pictures: the note says how to get it, and the agent gets it.
    let (printed, _) = agent.run(&command);
    assert!(printed.contains("--out FILE") && !printed.contains(PICTURE), "{printed}");
    let file = agent.folder.path().join("shot.png");
    agent.run(&format!("{command} --out {}", file.display()));
    assert!(std::fs::read(file).unwrap().starts_with(b"\x89PNG"));
}
