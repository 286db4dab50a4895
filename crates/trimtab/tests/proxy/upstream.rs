//! A provider that does what a test says, on a free port of this machine. Takes requests; gives scripted answers and keeps
//! every byte that came. Knows HTTP/1.1 just as far as the tests need it, and nothing of the program under test.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

/// A request as read from the wire.
#[derive(Debug, Clone, Default)]
pub(crate) struct Came {
    /// The request line and the header lines, in the original spelling.
    pub(crate) head: Vec<String>,
    pub(crate) body: Vec<u8>,
}

impl Came {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.iter().skip(1).filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// What a provider answers.
#[derive(Debug, Clone)]
#[allow(dead_code, reason = "each test file uses its own part of this")]
pub(crate) enum Script {
    /// Status line rest, header lines, body with its length.
    Whole(&'static str, Vec<String>, Vec<u8>),
    /// Chunks of a stream, each sent by itself after a pause.
    Chunks(Vec<String>, Vec<Vec<u8>>, Duration),
    /// Chunks of a stream that breaks off after them.
    BreaksOff(Vec<String>, Vec<Vec<u8>>),
    /// The same after a pause.
    After(Duration, Box<Script>),
    /// Chunks without an end, until nobody listens.
    Endless(Vec<u8>),
    /// Status line rest and the beginning of a body that never goes on.
    Stalls(&'static str, Vec<u8>),
    /// Leaves HTTP and gives back in capitals what it receives.
    Upgrade,
}

/// A provider.
pub(crate) struct Upstream {
    pub(crate) url: String,
    pub(crate) came: Arc<Mutex<Vec<Came>>>,
    /// Says when a client of an endless answer has gone.
    pub(crate) left: mpsc::Receiver<()>,
}

impl Upstream {
    /// Starts a provider that answers each request as the script says.
    pub(crate) fn start(script: impl Fn(usize, &Came) -> Script + Send + Sync + 'static) -> Upstream {
        Upstream::keeping(usize::MAX, script)
    }

    /// Starts a provider that keeps at most so many of the requests that come.
    pub(crate) fn keeping(
        most: usize,
        script: impl Fn(usize, &Came) -> Script + Send + Sync + 'static,
    ) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let came = Arc::new(Mutex::new(Vec::new()));
        let (leaving, left) = mpsc::channel();
        let (kept, script) = (Arc::clone(&came), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, script, leaving) = (Arc::clone(&kept), Arc::clone(&script), leaving.clone());
                thread::spawn(move || serve(stream, (&kept, most), &*script, &leaving));
            }
        });
        Upstream { url, came, left }
    }

    pub(crate) fn came(&self) -> Vec<Came> {
        self.came.lock().expect("no panic").clone()
    }

    pub(crate) fn last(&self) -> Came {
        self.came().pop().expect("a request")
    }
}

fn serve(
    stream: TcpStream,
    (kept, most): (&Mutex<Vec<Came>>, usize),
    script: &dyn Fn(usize, &Came) -> Script,
    leaving: &mpsc::Sender<()>,
) {
    let _ = stream.set_nodelay(true);
    let mut writer = stream.try_clone().expect("a stream");
    let mut reader = BufReader::new(stream);
    while let Some(came) = read_message(&mut reader) {
        let number = {
            let mut kept = kept.lock().expect("no panic");
            if kept.len() < most {
                kept.push(came.clone());
            }
            kept.len().saturating_sub(1)
        };
        if answer(&mut writer, script(number, &came)).is_err() {
            let _ = leaving.send(());
            return;
        }
    }
}

fn answer(writer: &mut TcpStream, script: Script) -> std::io::Result<()> {
    let lines = |headers: &[String]| headers.iter().map(|line| format!("{line}\r\n")).collect::<String>();
    match script {
        Script::Whole(status, headers, body) => {
            let head =
                format!("HTTP/1.1 {status}\r\n{}Content-Length: {}\r\n\r\n", lines(&headers), body.len());
            writer.write_all(head.as_bytes())?;
            writer.write_all(&body)
        }
        Script::Chunks(headers, chunks, pause) => {
            write!(writer, "HTTP/1.1 200 OK\r\n{}Transfer-Encoding: chunked\r\n\r\n", lines(&headers))?;
            for chunk in chunks {
                write_chunk(writer, &chunk)?;
                thread::sleep(pause);
            }
            writer.write_all(b"0\r\n\r\n")
        }
        Script::BreaksOff(headers, chunks) => {
            write!(writer, "HTTP/1.1 200 OK\r\n{}Transfer-Encoding: chunked\r\n\r\n", lines(&headers))?;
            for chunk in chunks {
                write_chunk(writer, &chunk)?;
            }
            Err(std::io::ErrorKind::ConnectionAborted.into())
        }
        Script::After(pause, script) => {
            thread::sleep(pause);
            answer(writer, *script)
        }
        Script::Stalls(status, body) => {
            write!(writer, "HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            write_chunk(writer, &body)?;
            thread::sleep(Duration::from_secs(60));
            Ok(())
        }
        Script::Upgrade => {
            writer.write_all(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: shout\r\nConnection: Upgrade\r\n\r\n",
            )?;
            let mut words = [0; 64];
            loop {
                let count = writer.read(&mut words)?;
                if count == 0 {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                writer.write_all(words[..count].to_ascii_uppercase().as_slice())?;
            }
        }
        Script::Endless(chunk) => {
            writer.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
            )?;
            loop {
                write_chunk(writer, &chunk)?;
                thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn write_chunk(writer: &mut TcpStream, chunk: &[u8]) -> std::io::Result<()> {
    let mut bytes = format!("{:x}\r\n", chunk.len()).into_bytes();
    bytes.extend_from_slice(chunk);
    bytes.extend_from_slice(b"\r\n");
    writer.write_all(&bytes)
}

/// Reads a request or an answer; nothing where the other side has gone.
pub(crate) fn read_message(reader: &mut impl BufRead) -> Option<Came> {
    let head = read_head(reader)?;
    let mut came = Came { head, body: Vec::new() };
    if let Some(length) = came.header("content-length").and_then(|length| length.parse::<usize>().ok()) {
        // Piece by piece: a length is only an announcement.
        reader.by_ref().take(u64::try_from(length).ok()?).read_to_end(&mut came.body).ok()?;
        if came.body.len() < length {
            return None;
        }
    } else if came.header("transfer-encoding").is_some() {
        while let Some(chunk) = read_chunk(reader) {
            came.body.extend_from_slice(&chunk);
        }
    }
    Some(came)
}

/// Reads the lines of a head.
pub(crate) fn read_head(reader: &mut impl BufRead) -> Option<Vec<String>> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => return Some(head),
            line => head.push(line.to_owned()),
        }
    }
}

/// Reads a chunk of a stream; nothing at its end.
pub(crate) fn read_chunk(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut size = String::new();
    reader.read_line(&mut size).ok().filter(|read| *read > 0)?;
    let size = usize::from_str_radix(size.trim(), 16).ok()?;
    let mut chunk = vec![0; size];
    reader.read_exact(&mut chunk).ok()?;
    let mut end = String::new();
    reader.read_line(&mut end).ok()?;
    (size > 0).then_some(chunk)
}
