//! The proxy under test as a separate process, and a client that shows every byte. Takes flags; gives answers.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    process::{Child, ChildStderr, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use crate::{
    common,
    upstream::{Came, Upstream, read_message},
};

/// A proxy that runs.
pub(crate) struct Running {
    pub(crate) address: String,
    pub(crate) child: Child,
    words: Arc<Mutex<Vec<String>>>,
}

impl Running {
    /// Starts a proxy in front of a provider, with time enough to plan unless the flags say otherwise.
    pub(crate) fn before(upstream: &Upstream, flags: &[&str]) -> Running {
        Running::with(upstream, flags, &[])
    }

    pub(crate) fn with(upstream: &Upstream, flags: &[&str], variables: &[(&str, &str)]) -> Running {
        let [anthropic, openai, gemini] =
            ["anthropic", "openai", "gemini"].map(|provider| format!("{provider}={}", upstream.url));
        let mut arguments = vec![
            "proxy", "--listen", "127.0.0.1:0", "--upstream", &anthropic, "--upstream", &openai,
            "--upstream", &gemini,
        ];
        if !flags.contains(&"--plan-time") {
            arguments.extend(["--plan-time", "20000"]);
        }
        arguments.extend(flags);
        let mut command = common::command(&arguments);
        command.stdin(Stdio::null()).envs(variables.iter().copied());
        let mut child = command.spawn().expect("the binary");
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let words = Arc::new(Mutex::new(Vec::new()));
        let address = loop {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).expect("words") > 0, "the proxy did not start: {words:?}");
            words.lock().expect("no panic").push(line.trim_end().to_owned());
            let listening =
                line.trim_end().split_once("listening at http").and_then(|(_, at)| at.split_once("://"));
            if let Some((_, address)) = listening {
                break address.to_owned();
            }
        };
        listen(stderr, Arc::clone(&words));
        Running { address, child, words }
    }

    /// Sends a request and reads the answer.
    pub(crate) fn ask(&self, head: &[&str], body: &[u8]) -> Came {
        let mut connection = self.connect();
        send(&mut connection, &self.address, head, body);
        read_message(&mut BufReader::new(connection)).expect("an answer")
    }

    /// Posts JSON and reads the answer.
    pub(crate) fn post(&self, path: &str, body: &[u8]) -> Came {
        self.ask(&[&format!("POST {path} HTTP/1.1"), "Content-Type: application/json"], body)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let connection = TcpStream::connect(&self.address).expect("a connection");
        connection.set_nodelay(true).expect("a socket");
        connection.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        connection
    }

    /// Returns the value of a figure, summed over its labels.
    pub(crate) fn figure(&self, name: &str) -> f64 {
        let text = String::from_utf8(self.ask(&["GET /trimtab/metrics HTTP/1.1"], b"").body).expect("text");
        let lines = text.lines().filter(|line| line.starts_with(name));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// Waits until a figure is at least so much: what is learnt from an answer is learnt after its last byte.
    pub(crate) fn wait_for(&self, name: &str, least: f64) {
        let started = Instant::now();
        while self.figure(name) < least {
            assert!(started.elapsed() < Duration::from_secs(20), "{name} is {}", self.figure(name));
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns what was said on standard error so far.
    pub(crate) fn words(&self) -> String {
        self.words.lock().expect("no panic").join("\n")
    }

    /// Waits until something was said.
    pub(crate) fn wait_for_words(&self, words: &str) {
        let started = Instant::now();
        while !self.words().contains(words) {
            assert!(started.elapsed() < Duration::from_secs(20), "nothing says {words:?}:\n{}", self.words());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asks the proxy to stop, as a service manager does.
    pub(crate) fn terminate(&self) {
        let pid = self.child.id().to_string();
        let done = std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("kill");
        assert!(done.success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a request; the host and the length are added where the head does not name them.
pub(crate) fn send(connection: &mut TcpStream, address: &str, head: &[&str], body: &[u8]) {
    let mut text = format!("{}\r\n", head.join("\r\n"));
    let names = |name: &str| head.iter().any(|line| line.to_lowercase().starts_with(name));
    if !names("host:") {
        text += &format!("Host: {address}\r\n");
    }
    if !names("transfer-encoding:") && !names("content-length:") {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    text += "\r\n";
    connection.write_all(text.as_bytes()).expect("a request");
    // A proxy that refuses early may close before all has been written.
    let _ = connection.write_all(body);
}

fn listen(stderr: BufReader<ChildStderr>, words: Arc<Mutex<Vec<String>>>) {
    thread::spawn(move || {
        for line in stderr.lines().map_while(Result::ok) {
            words.lock().expect("no panic").push(line);
        }
    });
}
