//! A page server under test, a store with conversations in it, and what a browser would ask.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use trimtab_core::{Millis, Policy, Settings, Tokens, Usage, fit, parse};
use trimtab_store::{Append, Appended, RequestId, SessionId, SessionLabel, Sqlite, Store};

use crate::{
    common::command,
    running::send,
    upstream::{Came, read_message},
};

/// Two repositories and a store that both use.
pub(crate) struct World {
    folder: tempfile::TempDir,
}

/// A request that is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptRequest {
    pub(crate) session: SessionId,
    pub(crate) id: RequestId,
}

impl World {
    pub(crate) fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/.git", "b/.git"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        World { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn store(&self) -> Sqlite {
        Sqlite::open(&self.path("kept.db")).unwrap()
    }

    /// Keeps a request of a project under a policy with a budget, and what the provider reported for it.
    pub(crate) fn keep(
        &self,
        project: &str,
        request: &[u8],
        policy: &str,
        budget: u64,
        at: i64,
    ) -> KeptRequest {
        let store = self.store();
        let project = self.path(project).display().to_string();
        let label = SessionLabel { name: None, project: Some(&project) };
        let known = store.recognize(&parse(request.to_vec()).unwrap(), label).unwrap();
        let settings = Settings::new(Policy::find_shipped(policy).unwrap()).with_budget(Tokens(budget));
        let fitted = fit(request.to_vec(), &known.memory, &settings, Millis(at)).unwrap();
        let append = Append::new(&fitted.history, &fitted.plan, &known, Millis(at));
        let Appended::Stored { session, request: id } = store.append_request(&append).unwrap() else {
            panic!("nobody else writes")
        };
        let usage = Usage { input: 11, cache_write: fitted.plan.after().0, output: 50, ..Usage::default() };
        store.record_usage(id, &usage).unwrap();
        KeptRequest { session, id }
    }

    /// Runs a command in a folder.
    pub(crate) fn run(&self, place: &str, arguments: &[&str]) -> String {
        let done = self.command(place, arguments).output().unwrap();
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    pub(crate) fn command(&self, place: &str, arguments: &[&str]) -> std::process::Command {
        let mut command = command(arguments);
        command
            .current_dir(self.path(place))
            .env("TRIMTAB_STORE", self.path("kept.db"))
            .env_remove("TRIMTAB_NO_STORE");
        command
    }

    /// Starts `trimtab page` in a folder.
    pub(crate) fn page(&self, place: &str, flags: &[&str]) -> PageProcess {
        let mut arguments = vec!["page", "--port", "0"];
        arguments.extend(flags);
        let mut child = self.command(place, &arguments).stdin(Stdio::null()).spawn().unwrap();
        let mut words = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        words.read_line(&mut line).unwrap();
        let address = line.split_once("http://").and_then(|(_, rest)| rest.split_once(' '));
        let address = address.unwrap_or_else(|| panic!("{line}")).0.to_owned();
        PageProcess { address, child }
    }
}

/// A page server that runs.
pub(crate) struct PageProcess {
    pub(crate) address: String,
    child: Child,
}

impl Drop for PageProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl PageProcess {
    pub(crate) fn get(&self, path: &str) -> Shown {
        ask(&self.address, &[&format!("GET {path} HTTP/1.1"), "Accept: text/html"], "")
    }

    /// Listens as a page does that shows what was there at a mark, until there is something newer.
    pub(crate) fn hear_news(&self, mark: &str) {
        let mut events = TcpStream::connect(&self.address).unwrap();
        events.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        send(&mut events, &self.address, &[&format!("GET /trimtab/events?shown={mark} HTTP/1.1")], b"");
        // The head, the first frame, and a few signs of life, of which one comes every quarter of a minute.
        let mut lines = BufReader::new(events).lines().take(30);
        assert!(lines.any(|line| line.expect("news in time") == "event: news"), "no news of what is new");
    }
}

/// What a browser got.
pub(crate) struct Shown {
    pub(crate) status: u16,
    pub(crate) text: String,
    pub(crate) came: Came,
}

impl Shown {
    /// Makes sure that it is a page, and returns it.
    pub(crate) fn page(self) -> String {
        assert_eq!(self.status, 200, "{}", self.text);
        self.text
    }

    /// Returns the figure of a tile.
    pub(crate) fn figure(&self, name: &str) -> String {
        let mark = format!("data-figure=\"{name}\">");
        let (_, rest) = self.text.split_once(&mark).unwrap_or_else(|| panic!("no {name} in {}", self.text));
        rest.split('<').next().unwrap().to_owned()
    }

    /// Returns the token that forms carry.
    pub(crate) fn token(&self) -> String {
        let (_, rest) = self.text.split_once("name=\"token\" value=\"").expect("a form");
        rest.split('"').next().unwrap().to_owned()
    }
}

/// Sends a request and reads the answer.
pub(crate) fn ask(address: &str, head: &[&str], body: &str) -> Shown {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut head = head.to_vec();
    head.push("Connection: close");
    send(&mut connection, address, &head, body.as_bytes());
    let came = read_message(&mut BufReader::new(connection)).unwrap();
    let status = came.head[0].split(' ').nth(1).unwrap().parse().unwrap();
    Shown { status, text: String::from_utf8_lossy(&came.body).into_owned(), came }
}

/// Posts a form as a browser does from a page of an origin.
pub(crate) fn post_from(address: &str, origin: &str, path: &str, fields: &[(&str, &str)]) -> Shown {
    let body: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let head = [
        &format!("POST {path} HTTP/1.1"),
        "Content-Type: application/x-www-form-urlencoded",
        &format!("Origin: {origin}"),
        "Sec-Fetch-Site: same-origin",
    ];
    ask(address, &head.map(str::to_owned).each_ref().map(String::as_str), &body.join("&"))
}

/// A conversation with a tool of an MCP server, files and results that say so many lines.
pub(crate) fn working(words: &str, results: usize) -> Vec<u8> {
    let mut messages = vec![json!({"role": "user", "content": words})];
    for number in 0..results {
        let id = format!("toolu_{number}");
        let path = format!("/repo/src/{}.rs", number % 3);
        messages.push(json!({"role": "assistant", "content": [
            {"type": "text", "text": format!("Step {number}.")},
            {"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": path}},
        ]}));
        let lines: String =
            (1..60).map(|line| format!("{line:6}\tline {line} of reading {number}\n")).collect();
        messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": lines}]}));
    }
    let tool =
        |name: &str| json!({"name": name, "description": "Does it", "input_schema": {"type": "object"}});
    let tools = [tool("Read"), tool("mcp__github__search"), tool("mcp__github__create_issue")];
    json!({"model": "claude-opus-5", "max_tokens": 100, "system": "Be brief.", "tools": tools, "messages": messages})
        .to_string()
        .into_bytes()
}

/// Reads JSON that a command wrote.
pub(crate) fn read_json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
